-- test_profiler_traces.lua: traces written and read back, those of others, and files that are no traces.
local t = require "harness"
local profiler = tide.profiler

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local path = folder .. "/trace.json"

local function write(text, name)
    local file = assert(io.open(name or path, "wb"))
    file:write(text)
    file:close()
end

local function load_text(text)
    write(text)
    return profiler.load(path)
end

local function near(a, b) return math.abs(a - b) < 1e-6 end

-- ---- Tide's own ----

t.test("what_was_written_reads_back_the_same", function()
    local profile = profiler.profile { function()
        profiler.step()
        local x = tide.ones(4, 3, { requires_grad = true })
        profiler.record { "a batch", function() return tide.zeros(3000) end, kind = "data" }
        tide.optim.SGD({ x }, { lr = 0.1 }):step()
        x:matmul(tide.ones(3, 2)):sum():backward()
        tide.cat { x, x }
    end, with_stack = true, profile_memory = true }
    for _, name in ipairs { "/t.json", "/t.json.gz" } do
        profile:export_chrome_trace(folder .. name)
        local again = profiler.load(folder .. name)
        local before, after = profile:events(), again:events()
        t.eq(#after, #before)
        local first = before[1].start_us
        for k, e in ipairs(before) do
            local f = after[k]
            for _, field in ipairs { "name", "kind", "line", "parent", "bytes", "total", "thread", "step" } do
                t.eq(f[field], e[field], e.name .. "." .. field)
            end
            if e.kind == "operator" or e.kind == "backward" then
                t.eq(f.sequence, e.sequence, e.name)
            end
            t.is_true(near(f.start_us, e.start_us - first) and near(f.duration_us, e.duration_us), e.name)
            t.is_true(near(f.self_us, e.self_us), e.name)
            t.eq(f.shapes or {}, e.shapes or {})
            t.eq(f.dtypes or {}, e.dtypes or {})
        end
        local function rows(p) return (p:table():gsub("\n[^\n]*$", "")) end
        t.eq(rows(again), rows(profile))
    end
    local plain, packed = io.open(folder .. "/t.json"), io.open(folder .. "/t.json.gz")
    t.is_true(packed:seek("end") * 4 < plain:seek("end"))
    packed:seek("set", 0)
    t.eq(packed:read(2), "\x1f\x8b")
    plain:close()
    packed:close()
end)

t.test("memory_is_a_counter_for_viewers", function()
    local json = require "json"
    profiler.profile { function() return tide.zeros(5000) end, profile_memory = true }:export_chrome_trace(path)
    local file, counters = assert(io.open(path)), 0
    for _, e in ipairs(json.read(file:read("a")).traceEvents) do
        if e.ph == "C" then
            counters = counters + 1
            t.is_true(e.name == "memory" and e.args.bytes >= 20000)
        end
    end
    file:close()
    t.is_true(counters >= 1)
end)

-- ---- what other programs need ----

local function rows_of(p)
    local json = require "json"
    p:export_chrome_trace(path)
    local file = assert(io.open(path))
    local rows = json.read(file:read("a")).traceEvents
    file:close()
    return rows
end

t.test("steps_are_called_as_pytorch_calls_them", function()
    local seen = {}
    for _, e in ipairs(rows_of(profiler.profile(function()
        for _ = 1, 3 do
            profiler.step()
            tide.ones(3)
        end
    end))) do
        if e.name:find("^ProfilerStep") then
            seen[#seen + 1] = e.name .. " " .. e.cat
        end
    end
    t.eq(seen, { "ProfilerStep#1 user_annotation", "ProfilerStep#2 user_annotation", "ProfilerStep#3 user_annotation" })
end)

t.test("rows_of_devices_keep_device_stream_and_correlation", function()
    local text = [==[[
        {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":0,"dur":40,"args":{"External id":4}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":5,"dur":5,"args":{"correlation":90,"External id":4}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":15,"dur":5,"args":{"correlation":91}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":7,"tid":7,"ts":50,"dur":5,"args":{"correlation":"92"}},
        {"ph":"X","cat":"kernel","name":"gemm","pid":1,"tid":7,"ts":50,"dur":30,"args":{"External id":4,"device":1,"stream":7,"correlation":90}},
        {"ph":"X","cat":"kernel","name":"bias","pid":1,"tid":7,"ts":90,"dur":30,"args":{"device":1,"stream":7,"correlation":91}},
        {"ph":"X","cat":"kernel","name":"beside","pid":1,"tid":20,"ts":95,"dur":30,"args":{"device":1,"stream":20,"correlation":93}},
        {"ph":"X","cat":"gpu_memcpy","name":"copy","pid":1,"tid":7,"ts":190,"dur":3,"args":{"device":1,"stream":7,"correlation":92,"bytes":8}},
        {"ph":"X","cat":"gpu_memset","name":"set","pid":0,"tid":0,"ts":195,"dur":3,"args":{}}]]==]
    local want = { gemm = { 1, 7, 90 }, bias = { 1, 7, 91 }, beside = { 1, 20, 93 }, copy = { 1, 7, 92 }, set = { 0, 0 } }
    local p = load_text(text)
    for _ = 1, 2 do -- and what was written is read as it was
        local launchers, found, calls = {}, {}, {}
        local events = p:events()
        for _, e in ipairs(events) do
            launchers[e.name] = e.launcher and events[e.launcher].name
        end
        t.eq(launchers, { gemm = "aten::mm", bias = "aten::mm", copy = "cudaMemcpyAsync" })
        for _, e in ipairs(rows_of(p)) do
            if want[e.name] and e.ph == "X" then
                found[e.name] = { e.args.device, e.args.stream, e.args.correlation }
            elseif e.cat == "cuda_runtime" or e.cat == "cpu_op" then
                calls[#calls + 1] = e.args.correlation or "none"
            end
        end
        t.eq(found, want)
        t.eq(calls, { "none", 90, 91, 92 })
        p = profiler.load(path)
    end
end)

t.test("begins_and_ends_are_joined_in_whatever_order_they_stand", function()
    local function of(rows)
        local found = {}
        for _, e in ipairs(load_text("[" .. table.concat(rows, ",") .. "]"):events()) do
            found[#found + 1] = ("%s %g+%g"):format(e.name, e.start_us, e.duration_us)
        end
        table.sort(found)
        return found
    end
    local function row(ph, name, ts, more)
        return ('{"ph":"%s","name":"%s","pid":1,"tid":1,"ts":%g%s}'):format(ph, name, ts, more or "")
    end
    local rows = { row("B", "outer", 0), row("B", "inner", 10), row("E", "", 30), row("B", "second", 35), row("E", "", 50), row("E", "", 100),
        row("b", "wait", 5, ',"id":"a","cat":"c"'), row("b", "wait", 6, ',"id":"b","cat":"c"'), row("e", "wait", 25, ',"id":"a","cat":"c"'),
        row("e", "wait", 46, ',"id":"b","cat":"c"') }
    local want = { "inner 10+20", "outer 0+100", "second 35+15", "wait 5+20", "wait 6+40" }
    t.eq(of(rows), want)
    local turned = {}
    for k, r in ipairs(rows) do
        turned[#rows + 1 - k] = r
    end
    t.eq(of(turned), want)
    for shift = 1, #rows - 1 do
        local moved = table.move(rows, 1, #rows, 1, {})
        for _ = 1, shift do
            table.insert(moved, table.remove(moved, 1))
        end
        t.eq(of(moved), want)
    end
    -- what has no end lasts as long as the trace, what has no begin began before it
    t.eq(of { row("E", "", 3), row("B", "open", 10), row("B", "too", 20), row("X", "last", 40, ',"dur":60') },
        { "last 30+60", "open 0+90", "too 10+80" })
    t.eq(of { row("B", "a", 10), row("b", "b", 20, ',"id":1'), row("E", "", 15) }, { "a 0+5", "b 10+0.001" })
end)

t.test("numbers_may_stand_in_strings", function()
    local p = load_text([==[[{"ph":"X","tid":"1","name":"a","ts":"1700000000000000.001","dur":"0.125"},
        {"ph":"X","tid":"1","name":"b","ts":" 1700000000000001.126 ","dur":"1e-2","args":{"Sequence number":"9"},"cat":"cpu_op"},
        {"ph":"B","tid":"2","name":"c","ts":"1700000000000002"},{"ph":"E","tid":2,"ts":"1700000000000004.5"}]]==])
    local events = p:events()
    t.is_true(near(events[2].start_us, 1.125) and near(events[1].duration_us, 0.125) and near(events[2].duration_us, 0.01))
    t.eq({ events[2].sequence, events[3].name }, { 9, "c" })
    t.is_true(near(events[3].duration_us, 2.5))
    t.is_false((p:table():find("without", 1, true)))
end)

t.test("a_slice_that_lacks_something_leaves_the_others", function()
    for _, odd in ipairs { '{"ph":"X","name":"odd","ts":5}', '{"ph":"X","name":"odd","ts":5,"dur":-3}', '{"ph":"X","name":"odd","ts":5,"dur":"long"}',
        '{"ph":"X","name":"odd","ts":5,"dur":null}' } do
        local p = load_text('[{"ph":"X","name":"a","ts":1,"dur":10},' .. odd .. "]")
        local events = p:events()
        t.eq({ #events, events[2].name }, { 2, "odd" })
        t.is_true(near(events[2].duration_us, 0.001), odd)
        t.is_true(p:table():find("without a duration", 1, true), odd)
    end
    for _, odd in ipairs { '{"ph":"X","name":"odd","dur":5}', '{"ph":"X","name":"odd","ts":"soon","dur":5}', '{"ph":"B","name":"odd"}', '{"ph":"E"}' } do
        local p = load_text('[{"ph":"X","name":"a","ts":1,"dur":10},' .. odd .. "]")
        t.eq(#p:events(), 1)
        t.is_true(p:table():find("without a time", 1, true), odd)
    end
end)

t.test("stacks_are_what_speedscope_reads", function()
    -- its reader of collapsed stacks: /^(.*) (\d+)$/ of each line, frames parted by semicolons
    local names = { "plain", "with blank", "semi;colon", "new\nline", "bad\xff\xfebyte", "half\xc3", "täst 漢", "tab\tdel\x7f", "" }
    profiler.profile(function()
        local function nest(k)
            if names[k] then
                profiler.record(names[k], function()
                    local till = os.clock() + 2e-4
                    while os.clock() < till do end
                    nest(k + 1)
                end)
            end
        end
        nest(1)
    end):export_stacks(path)
    local deepest
    for line in io.lines(path) do
        local frames, weight = line:match "^(.*) (%d+)$"
        t.is_true(frames and tonumber(weight) > 0, line)
        t.is_true(utf8.len(line) and not line:find "%c", line)
        deepest = #frames > #(deepest or "") and frames or deepest
    end
    t.is_true(deepest:find("plain;with blank;semi colon;new line;bad��byte;half�;täst 漢;tab del ;(no name)", 1, true), deepest)
end)

-- ---- PyTorch's ----

-- As Kineto writes it: absolute times, events in no order, a stream, overlaps, asynchronous slices, B and E.
local kineto = [==[{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100", "totalGlobalMem": 85}],
"baseTimeNanoseconds": 1700000000000000000, "displayTimeUnit": "ms",
"traceEvents": [
{"ph": "M", "name": "process_name", "ts": 1000.0, "pid": 77, "tid": 0, "args": {"name": "python"}},
{"ph": "M", "name": "thread_name", "ts": 1000.0, "pid": 77, "tid": 78, "args": {"name": "thread 78 (python)"}},
{"ph": "M", "name": "thread_name", "ts": 1000.0, "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
{"ph": "X", "cat": "Trace", "ts": 1000.0, "dur": 900.0, "pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)"},
{"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 77, "tid": 78, "ts": 1020.250, "dur": 100.500,
 "args": {"External id": 5, "Sequence number": 12, "Fwd thread id": 0, "Record function id": 0,
  "Input Dims": [[20], [4, 10], [10, 20], [], []], "Input type": ["float", "c10::BFloat16", "float", "Scalar", "Scalar"]}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 77, "tid": 78, "ts": 1010.0, "dur": 400.0, "args": {}},
{"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 77, "tid": 78, "ts": 1030.0, "dur": 20.0, "args": {}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 78, "ts": 1100.0, "dur": 10.0,
 "args": {"correlation": 9}},
{"ph": "s", "id": 9, "pid": 77, "tid": 78, "ts": 1100.0, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1130.0, "dur": 50.0, "args": {"correlation": 9, "stream": 7}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1160.0, "dur": 50.0, "args": {"correlation": 10}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 1210.0, "dur": 5.0, "args": {}},
{"ph": "X", "cat": "cpu_op", "name": "aten::cat", "pid": 77, "tid": 78, "ts": 1200.0, "dur": 30.0,
 "args": {"Input Dims": [[[2, 3], [4, 3]], [5], []], "Input type": ["TensorList", "double", "Scalar"]}},
{"ph": "X", "cat": "cpu_op", "name": "rounded", "pid": 77, "tid": 78, "ts": 1229.998, "dur": 10.0, "args": {}},
{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "pid": 77, "tid": 79, "ts": 1300.0,
 "dur": 60.0, "args": {"Sequence number": 12, "Fwd thread id": 1}},
{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 77, "tid": 78, "ts": 1021.0,
 "args": {"Total Reserved": 0, "Total Allocated": 320, "Bytes": 320, "Addr": 94, "Device Id": -1, "Device Type": 0}},
{"ph": "b", "cat": "comm", "id": "0x1", "name": "all_reduce", "pid": 77, "tid": 78, "ts": 1050.0},
{"ph": "b", "cat": "comm", "id": "0x2", "name": "all_reduce", "pid": 77, "tid": 78, "ts": 1060.0},
{"ph": "e", "cat": "comm", "id": "0x1", "name": "all_reduce", "pid": 77, "tid": 78, "ts": 1090.0},
{"ph": "e", "cat": "comm", "id": "0x2", "name": "all_reduce", "pid": 77, "tid": 78, "ts": 1095.0},
{"ph": "B", "cat": "user_annotation", "name": "by hand", "pid": 77, "tid": 80, "ts": 1000},
{"ph": "E", "pid": 77, "tid": 80, "ts": 1.5e3},
{"ph": "C", "name": "GPU", "pid": 0, "ts": 1.0, "args": {"x": 1}}
], "traceName": "x.pt.trace.json"}]==]

t.test("a_trace_of_pytorch_becomes_a_profile", function()
    local profile = load_text(kineto)
    local events, by_name, tracks = profile:events(), {}, {}
    for k, e in ipairs(events) do
        by_name[e.name] = by_name[e.name] or {}
        table.insert(by_name[e.name], e)
        tracks[e.track] = (tracks[e.track] or 0) + 1
        local outer = events[e.parent]
        if outer then
            t.is_true(e.parent < k and outer.track == e.track, e.name)
            t.is_true(outer.start_us <= e.start_us, e.name)
            t.is_true(outer.start_us + outer.duration_us >= e.start_us + e.duration_us - 1e-6, e.name)
        end
    end
    local addmm = by_name["aten::addmm"][1]
    t.eq(addmm.kind, "operator")
    t.is_true(near(addmm.start_us, 20.25) and near(addmm.duration_us, 100.5))
    t.is_true(near(addmm.self_us, 70.5), "without the copy and the launch inside")
    t.eq(addmm.shapes, { { 20 }, { 4, 10 }, { 10, 20 } })
    t.eq(addmm.dtypes, { "float32", "bfloat16", "float32" })
    t.eq(addmm.sequence, 12)
    t.eq(addmm.step, 1)
    t.eq(events[addmm.parent].kind, "step")
    t.eq(by_name["aten::cat"][1].shapes, { { 2, 3 }, { 4, 3 }, { 5 } })
    t.eq(by_name["aten::cat"][1].dtypes, { "unknown", "unknown", "float64" })
    t.eq(by_name["autograd::engine::evaluate_function: AddmmBackward0"][1].kind, "backward")
    t.eq(by_name["[memory]"][1].bytes, 320)
    t.eq(by_name["cudaLaunchKernel"][1].kind, "runtime")
    t.eq(by_name["Memcpy HtoD"][1].kind, "transfer")
    t.eq(by_name["PyTorch Profiler (0)"], nil)
    t.is_true(near(by_name["by hand"][1].duration_us, 500))
    -- what overlaps lies beside
    t.eq({ by_name.gemm[1].track, by_name.gemm[2].track }, { "stream 7", "stream 7 (2)" })
    t.is_true(near(by_name.gemm[1].duration_us, 50) and near(by_name.gemm[2].duration_us, 50))
    local async = by_name.all_reduce
    t.is_true(near(async[1].duration_us, 40) and near(async[2].duration_us, 35) and async[1].track ~= async[2].track)
    -- two nanoseconds of overlap are rounding
    t.eq(by_name.rounded[1].track, by_name["aten::cat"][1].track)
    t.eq(events[by_name.rounded[1].parent].name, "ProfilerStep#3")
    local text = profile:table()
    t.is_true(text:find("gemm +device +100 µs +%d+%.%d %% +100 µs +2 +50 µs"), text)
    t.is_true(text:find("aten::addmm +operator +70%.5 µs"), text)
end)

-- A launch and its kernel bear the number of the operator; another operator inside bears one of its own.
t.test("a_kernel_of_a_trace_belongs_to_the_operator_of_its_number", function()
    local profile = load_text([==[[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":50,"dur":30,"args":{"External id":5}},
        {"ph":"X","cat":"cpu_op","name":"linear","pid":1,"tid":1,"ts":0,"dur":40,"args":{"External id":4}},
        {"ph":"X","cat":"cuda_runtime","name":"launch","pid":1,"tid":1,"ts":15,"dur":5,"args":{"External id":5}},
        {"ph":"X","cat":"cpu_op","name":"addmm","pid":1,"tid":1,"ts":10,"dur":20,"args":{"External id":5}},
        {"ph":"X","cat":"gpu_memset","name":"set","pid":0,"tid":7,"ts":90,"dur":10,"args":{"bytes":64,"External id":99}},
        {"ph":"X","cat":"kernel","name":"lost","pid":0,"tid":7,"ts":110,"dur":10}]]==])
    local events, by_name = profile:events(), {}
    for k, e in ipairs(events) do
        by_name[e.name] = e
        e.number = k
    end
    t.eq(by_name.gemm.launcher, by_name.addmm.number)
    t.eq({ by_name.set.kind, by_name.set.bytes, by_name.set.launcher }, { "memset", 64, nil })
    t.eq(by_name.lost.launcher, nil)
    t.eq(by_name.addmm.step, nil)
    local text = profile:table { sort = "device" }
    t.is_true(text:find("addmm +operator [^\n]* 30 µs +30 µs\n"), text)
    t.is_true(text:find("linear +operator [^\n]* 0 ns +30 µs\n"), text)
    t.is_true(text:find("devices busy for 50 µs of it (41.7 %)", 1, true), text)
end)

t.test("a_list_of_events_is_a_trace_and_none_are_too", function()
    t.eq(#load_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"dur":0}]'), 1)
    t.eq(#load_text("[]"), 0)
    local none = load_text('{"traceEvents": []}')
    t.eq(#none, 0)
    t.is_true(none:table():find("0 events"))
end)

t.test("times_since_1970_keep_their_nanoseconds", function()
    local events = load_text([==[[{"ph":"X","tid":1,"name":"a","ts":1700000000000000.001,"dur":0.125},
        {"ph":"X","tid":1,"name":"b","ts":1700000000000001.126,"dur":1e-2}]]==]):events()
    t.is_true(near(events[2].start_us, 1.125) and near(events[1].duration_us, 0.125) and near(events[2].duration_us, 0.01))
end)

t.test("what_is_no_trace_is_refused_in_one_line", function()
    for text, message in pairs {
        [""] = "trace.json: the file is empty", ["hello"] = "trace.json: JSON: '{' expected at byte 1",
        ["{}"] = "it has no traceEvents", ['{"traceEvents":5}'] = "'[' expected",
        ['[{"ph":"X","ts":1e300,"dur":3}]'] = "event 1: a time of 1e+300",
        ['[{"ph":"X","ts":NaN,"dur":3}]'] = "event 1: JSON", ['[{"ph":"X","ts":1,"dur":3},'] = "event 2: JSON",
        ['[{"ph":"X","ts":1,"dur":3}] more'] = "JSON", [("["):rep(100000)] = "event 1: JSON",
        ['[{"args":' .. ('{"a":'):rep(100000)] = "nested too deeply", ['[{"name":"\xff"}]'] = "JSON",
    } do
        local got = t.error_has(function() load_text(text) end, message)
        t.is_true(not got:find("\n") and #got < 300, got)
    end
    t.error_has(function() profiler.load(folder .. "/none") end, "/none: No such file or directory")
    t.error_has(function() profiler.load(folder) end, folder .. ": Is a directory")
    t.error_has(function() profiler.load() end, "load: argument 1 (path): expected a string")
end)

t.test("every_part_of_a_file_is_refused_or_read", function()
    for n = 1, #kineto - 1, 7 do
        local ok, message = pcall(load_text, kineto:sub(1, n))
        t.is_true(not ok and message:find("trace.json: ", 1, true), message)
    end
    profiler.profile(function() return tide.ones(2) + 1 end):export_chrome_trace(folder .. "/p.json.gz")
    local file = assert(io.open(folder .. "/p.json.gz", "rb"))
    local bytes = file:read("a")
    file:close()
    for n = 20, #bytes - 1, 13 do
        write(bytes:sub(1, n))
        t.error_has(function() profiler.load(path) end, "the packed file is cut short or damaged")
    end
end)

t.test("hostile_slices_do_no_harm", function()
    local many = {}
    for k = 1, 300 do
        many[k] = ('{"ph":"X","name":"o","tid":1,"ts":%d,"dur":%d}'):format(k, 1000)
    end
    t.error_has(function() load_text("[" .. table.concat(many, ",") .. "]") end, "more than 256 slices of one thread overlap")
    local p = load_text('[{"ph":"X","name":"' .. ("n"):rep(5000) .. '","tid":"' .. ("t"):rep(5000)
        .. '","ts":-4e15,"dur":4e15,"args":{"Input Dims":[[[[[1]]]],[9223372036854775807,-4,2.5]],"Input type":["float"]}},'
        .. '{"ph":"E","ts":3},{"ph":"e","id":7},{"ph":"B","ts":1},{"ph":"XX"},{}]')
    t.eq(#p, 2)
    t.is_true(#p:events()[1].name <= 512)
end)

-- ---- tables ----

t.test("work_follows_from_shapes", function()
    local function op(name, dims, start)
        return ('{"ph":"X","cat":"cpu_op","name":"%s","tid":1,"ts":%d,"dur":1,"args":{"Input Dims":%s,"Input type":%s}}')
            :format(name, start, dims, '["float","float","float"]')
    end
    local profile = load_text("[" .. table.concat({ op("aten::mm", "[[20,30],[30,40]]", 0),
        op("aten::addmm", "[[40],[20,30],[30,40]]", 10), op("bmm", "[[5,2,3],[5,3,4]]", 20), op("linear", "[[7,3],[4,3]]", 30),
        op("mv", "[[20,30],[30]]", 40), op("add", "[[1],[1000]]", 50), op("exp", "[[1000]]", 60),
        op("conv_transpose2d", "[[2,3,5,5],[3,4,2,2]]", 70) }, ",") .. "]")
    local text = profile:table { sort_by = "flops" }
    for name, rate in pairs { ["aten::mm"] = "48 GFLOP/s", ["aten::addmm"] = "48 GFLOP/s", bmm = "240 MFLOP/s",
        linear = "168 MFLOP/s", mv = "1.2 GFLOP/s", add = "1 GFLOP/s", conv_transpose2d = "4.8 GFLOP/s" } do
        t.is_true(text:find("\n" .. name .. " [^\n]* " .. rate:gsub("%.", "%%.") .. " "), name .. ": " .. text)
    end
    t.is_true(text:find("\nexp [^\n]*µs *\n"), text)
    t.eq(text:match("\n(%S+)"), "aten::addmm")
end)

t.test("shapes_part_rows_and_memory_is_its_operators", function()
    local profile = load_text([==[[{"ph":"X","cat":"cpu_op","name":"f","tid":1,"ts":0,"dur":10,"args":{"Input Dims":[[2,3]],"Input type":["float"]}},
        {"ph":"X","cat":"cpu_op","name":"f","tid":1,"ts":20,"dur":30,"args":{"Input Dims":[[2,4]],"Input type":["float"]}},
        {"ph":"X","cat":"cpu_op","name":"f","tid":1,"ts":60,"dur":50,"args":{"Input Dims":[[2,3]],"Input type":["float"]}},
        {"ph":"i","name":"[memory]","tid":1,"ts":25,"args":{"Bytes":4096,"Total Allocated":4096}},
        {"ph":"i","name":"[memory]","tid":1,"ts":27,"args":{"Bytes":-1024,"Total Allocated":3072}}]]==])
    local text = profile:table { group_by_shape = true, sort_by = "total" }
    t.is_true(text:find("\nf +operator +60 µs +66%.7 %% +60 µs +2 +30 µs +2x3 float32\n"), text)
    t.is_true(text:find("\nf +operator +30 µs +33%.3 %% +30 µs +1 +30 µs +3 KiB  2x4 float32\n"), text)
    t.is_true(profile:table():find("\nf +operator +90 µs +100%.0 %% +90 µs +3 +30 µs +3 KiB"))
    t.eq(select(2, profile:table { top = 1 }:gsub("\n", "")), 3)
    for theirs, ours in pairs { self_cpu_time_total = "self", cpu_time_total = "total", count = "calls", self_cpu_memory_usage = "memory",
        cuda_time_total = "device", key = "name" } do
        t.eq(profile:table { sort_by = theirs }, profile:table { sort_by = ours }, theirs)
    end
    t.error_has(function() profile:table { sort_by = "size" } end, 'sort_by: expected "self", "total"')
    t.error_has(function() profile:table { top = -1 } end, "option top: expected an integer from 1 on")
end)

-- ---- writing ----

t.test("what_cannot_be_written_leaves_nothing", function()
    local profile = profiler.profile(function() return tide.ones(2) + 1 end)
    for _, method in ipairs { "export_chrome_trace", "export_stacks" } do
        for _, name in ipairs { "/none/t.json", "/none/t.json.gz" } do
            local message = t.error_has(function() profile[method](profile, folder .. name) end,
                method .. ": " .. folder .. name .. ": No such file or directory")
            t.is_true(not message:find("\n"))
        end
        if io.open("/dev/full") then
            t.error_has(function() profile[method](profile, "/dev/full") end, "/dev/full: No space left on device")
        end
    end
end)

t.test("stacks_are_folded_with_their_own_time", function()
    local profile = load_text([==[[{"ph":"X","name":"a;b","tid":1,"ts":0,"dur":100,"args":{"line":"x.lua:3"}},
        {"ph":"X","name":"c","tid":1,"ts":10,"dur":20},{"ph":"X","name":"c","tid":1,"ts":40,"dur":5},
        {"ph":"X","name":"c","tid":2,"ts":40,"dur":7}]]==])
    profile:export_stacks(path)
    local file = assert(io.open(path))
    t.eq(file:read("a"), "x.lua:3;a b 75\nx.lua:3;a b;c 25\nc 7\n")
    file:close()
end)

os.execute("rm -r " .. folder)
