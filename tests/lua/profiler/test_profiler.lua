-- test_profiler.lua: what a recording holds, its table, its trace file, and errors inside.
local t = require "harness"
local json = require "json"
local profiler = tide.profiler

local function work()
    local x = tide.ones(4, 3, { requires_grad = true })
    local y = (x:matmul(tide.ones(3, 2)):relu() * 2):sum()
    y:backward()
end

t.test("operators_hold_their_kernels_and_backward_its_nodes", function()
    local profile = profiler.profile(work)
    local events, kinds, forward = profile:events(), {}, {}
    t.eq(#profile, #events)
    for _, e in ipairs(events) do
        kinds[e.kind] = (kinds[e.kind] or 0) + 1
        t.is_true(e.duration_us > 0, e.name)
        t.is_true(e.self_us >= 0 and e.self_us <= e.duration_us, e.name)
        if e.parent then
            local outer = events[e.parent]
            t.is_true(outer.start_us <= e.start_us, e.name)
            t.is_true(outer.start_us + outer.duration_us >= e.start_us + e.duration_us - 1e-6, e.name)
        end
        if e.kind == "kernel" then
            t.is_true(e.parent ~= nil, e.name)
        elseif e.kind == "operator" and e.sequence then
            forward[e.sequence] = e.name
        elseif e.kind == "backward" then
            t.is_true(forward[e.sequence], e.name .. " has a forward call")
        end
        if e.name == "mm" and e.kind == "operator" and not e.parent then
            t.eq(e.shapes[1], { 4, 3 })
        end
    end
    t.is_true(kinds.operator >= 6 and kinds.kernel >= 5 and kinds.backward >= 4)
end)

t.test("a_block_records_too_and_results_come_back", function()
    local profile
    do
        local p <close> = profiler.profile()
        profile = p
        tide.ones(2):exp()
        t.error_has(function() profiler.profile(work) end, "already")
    end
    t.is_true(#profile >= 2)
    tide.ones(2):exp()
    local n = #profile
    tide.ones(2):exp()
    t.eq(#profile, n, "stopped")
    local _, a, b = profiler.profile(function(x) return x, 2 end, 1)
    t.eq({ a, b }, { 1, 2 })
end)

t.test("an_error_inside_ends_the_recording", function()
    t.error_has(function() profiler.profile(function() error("inside") end) end, "inside")
    t.is_true(#profiler.profile(work) > 0)
end)

t.test("ranges_are_named_by_the_user", function()
    local profile = profiler.profile(function()
        local sum = profiler.record("my range", function() return tide.ones(3):sum() end)
        t.eq(sum:item(), 3)
        local _ <close> = profiler.record("block")
    end)
    local found = {}
    for _, e in ipairs(profile:events()) do
        found[e.name] = e.kind
    end
    t.eq(found["my range"], "range")
    t.eq(found.block, "range")
    t.eq(profiler.record("outside a profile", function() return 5 end), 5)
end)

t.test("the_table_sorts_by_self_time", function()
    local text = profiler.profile(work):table()
    local first, last = text:match("^name +kind"), math.huge
    t.is_true(first, text)
    for share in text:gmatch("(%d+%.%d) %%") do
        t.is_true(tonumber(share) <= last, text)
        last = tonumber(share)
    end
    local profile = profiler.profile(work)
    t.is_true(#profile:table({ limit = 2 }) < #profile:table())
    t.error_has(function() profile:table({ sort = "size" }) end, "sort")
    t.error_has(function() profile:table({ limt = 2 }) end, "did you mean 'limit'?")
end)

t.test("an_error_inside_keeps_its_traceback", function()
    local function culprit()
        local x = tide.ones(2) + 1
        error("inside" .. #x)
    end
    local _, trace = xpcall(profiler.profile, debug.traceback, function()
        profiler.record("range", culprit)
    end)
    t.is_true(trace:find("test_profiler.lua:%d+: inside2"), trace)
    t.is_true(trace:find("in function <[^\n]*>\n[^\n]*'record'"), trace) -- what `record` called is there still
    t.is_true(#profiler.profile(work) > 0, "and the next profile works")
end)

t.test("a_range_that_nobody_closed_leaves_others_alone", function()
    local first = profiler.profile()
    profiler.record("forgotten")
    first:stop()
    local profile = profiler.profile(function()
        profiler.record("live", function()
            collectgarbage()
            tide.ones(3):exp()
        end)
    end)
    for _, e in ipairs(profile:events()) do
        t.eq(e.parent ~= nil, e.name ~= "live", e.name)
    end
end)

t.test("recursion_nests", function()
    local function descend(n)
        local _ <close> = profiler.record("level")
        return n > 0 and descend(n - 1) or tide.ones(1):exp()
    end
    local profile = profiler.profile(function()
        descend(1000)
        profiler.record("after", function() end)
    end)
    local events, depth = profile:events(), {}
    for k, e in ipairs(events) do
        depth[k] = e.parent and depth[e.parent] + 1 or 1
    end
    t.eq(math.max(table.unpack(depth)), 1003, "1,001 ranges, an operator and its kernel")
    t.eq(depth[#depth], 1)
end)

-- ---- lines ----

-- The events of a script of its own, "step.lua", whose lines are those of the text.
local function lines_of(text, ...)
    return profiler.profile { assert(load(text, "=step.lua")), ..., with_stack = true }
end

-- The lines of the outermost events of a name: "1 3"; "-" for none.
local function lines(profile, name)
    local found = {}
    for _, e in ipairs(profile:events()) do
        local outer = e.parent and profile:events()[e.parent]
        if e.name == name and e.kind ~= "kernel" and not (outer and outer.kind == "operator") then
            found[#found + 1] = e.line and assert(e.line:match("^step%.lua:(%d+)$"), e.line) or "-"
        end
    end
    return table.concat(found, " ")
end

t.test("operators_and_backward_nodes_bear_the_line_of_the_forward_call", function()
    local profile = lines_of([[local tide = ...
        local x = tide.ones(3, { requires_grad = true })
        local half = x * 2
        local y = half:exp()
        local z = y:sum()
        z:backward()
        y:detach():neg_()]], tide)
    t.eq(lines(profile, "ones"), "2")
    t.eq(lines(profile, "exp"), "4")
    t.eq(lines(profile, "sum"), "5")
    t.eq(lines(profile, "SumBackward"), "5")
    t.eq(lines(profile, "ExpBackward"), "4")
    t.eq(lines(profile, "MulBackward"), "3")
    t.eq(lines(profile, "neg_"), "7")
    for _, e in ipairs(profile:events()) do -- what runs in a node is of the line that made the node
        local outer = e.parent and profile:events()[e.parent]
        if outer and outer.kind ~= "kernel" and e.kind ~= "kernel" then
            t.eq(e.line, outer.line, e.name)
        end
    end
end)

t.test("lines_are_the_users_in_modules_coroutines_and_protected_calls", function()
    local profile = lines_of([[local tide = ...
        local net, x = tide.nn.Linear(2, 3), tide.ones(1, 2)
        net(x)
        local co = coroutine.create(function(y)
            y = y:sin() coroutine.yield()
            for _ in coroutine.wrap(function()
                coroutine.yield(y:cos())
            end) do end
            pcall(function() y:tan() end)
        end)
        coroutine.resume(co, x)
        x:exp()
        coroutine.resume(co)
        select(2, xpcall(error, function() return x:log() end))
        table.sort({ 1, 2 }, function(a, b) x:sqrt() return a < b end)]], tide)
    for name, line in pairs { linear = "3", sin = "5", cos = "7", tan = "9", exp = "12", log = "14" } do
        t.eq(lines(profile, name), line, name)
    end
    t.is_true(lines(profile, "sqrt"):find("^15"))
end)

t.test("calls_over_lists_have_their_line_and_their_kernel", function()
    local profile = lines_of([[local tide = ...
        local a, b = { tide.ones(300), tide.ones(300) }, { tide.ones(300), tide.ones(300) }

        tide.foreach.add_(a, b)
        local c = tide.foreach.exp(a)]], tide)
    t.eq(lines(profile, "foreach_add_"), "4")
    t.eq(lines(profile, "foreach_exp"), "5")
    local events, kernels = profile:events(), 0
    for _, e in ipairs(events) do
        if e.kind == "kernel" and e.name:find("^foreach_") then
            kernels = kernels + 1
            t.eq(events[e.parent].name, e.name)
        end
    end
    t.eq(kernels, 2)
end)

t.test("a_backward_that_fails_leaves_no_line_behind", function()
    local profile = lines_of([[local tide = ...
        local x = tide.ones(3, { requires_grad = true })
        local y = x:exp()
        local z = y:sin()
        y:mul_(2)
        local ok, message = pcall(z.sum(z).backward, z:sum())
        assert(not ok and message:find("changed in place"), message)
        x:detach():cos()]], tide)
    t.eq(lines(profile, "SinBackward"), "4")
    t.eq(lines(profile, "cos"), "8")
end)

t.test("what_was_made_before_has_no_line_and_nobody_asks_for_none", function()
    local x = tide.ones(3, { requires_grad = true })
    local y = x:exp()
    local profile = lines_of("local y = ...\ny:sum():backward()", y)
    t.eq(lines(profile, "ExpBackward"), "-")
    t.eq(lines(profile, "SumBackward"), "2")
    for _, e in ipairs(profiler.profile(work):events()) do
        t.eq(e.line, nil, e.name)
    end
    do
        local block <close> = profiler.profile { with_stack = true }
        x:exp()
        block:stop()
        local at = debug.getinfo(1, "S").short_src .. ":" .. debug.getinfo(1, "l").currentline - 2
        t.eq(block:events()[1].line, at)
    end
end)

-- ---- trace files ----

local function read_trace(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    os.remove(path)
    return json.read(text).traceEvents
end

-- Slices of each thread lie in one another or apart, none is empty; returns them, and the other events.
local function check_trace(events)
    local slices, others, open = {}, {}, {}
    for _, e in ipairs(events) do
        local list = e.ph == "X" and slices or others
        list[#list + 1] = e
    end
    table.sort(slices, function(a, b) return a.ts < b.ts or a.ts == b.ts and a.dur > b.dur end)
    for _, e in ipairs(slices) do
        local stack = open[e.tid] or {}
        open[e.tid] = stack
        t.is_true(e.dur > 0 and e.ts >= 0 and math.type(e.pid) == "integer", e.name)
        while #stack > 0 and stack[#stack].ts + stack[#stack].dur <= e.ts + 1e-6 do
            stack[#stack] = nil
        end
        local outer = stack[#stack]
        t.is_true(not outer or e.ts + e.dur <= outer.ts + outer.dur + 1e-6, e.name .. " nests")
        stack[#stack + 1] = e
    end
    return slices, others
end

t.test("the_trace_nests_and_its_arrows_join_forward_and_backward", function()
    local path = os.tmpname()
    local profile = profiler.profile(function()
        profiler.record('with "quotes", \\ and \n', work)
        profiler.record("not UTF-8: \xff, \xc3(, \xed\xa0\x80; yes: µ 界 😀", function() end)
    end)
    profile:export_chrome_trace(path)
    local slices, others = check_trace(read_trace(path))
    t.eq(#slices, #profile)
    local names, at, arrows = {}, {}, {}
    for _, e in ipairs(slices) do
        names[e.name], at[e.ts] = e, e
    end
    t.is_true(names['with "quotes", \\ and \n'])
    t.is_true(names["not UTF-8: \u{FFFD}, \u{FFFD}(, \u{FFFD}\u{FFFD}\u{FFFD}; yes: µ 界 😀"])
    t.eq(names.matmul.args["Input Dims"], { { 4, 3 }, { 3, 2 } })
    t.eq(names.matmul.args["Input type"], { "float32", "float32" })
    local n = 0
    for _, e in ipairs(others) do
        if e.ph == "s" then
            arrows[e.id] = at[e.ts]
        elseif e.ph == "f" then
            n = n + 1
            local from, to = arrows[e.id], at[e.ts]
            t.eq(from.cat .. " to " .. to.cat, "cpu_op to autograd")
            t.eq(from.args["Sequence number"], to.args["Sequence number"])
            t.is_true(from.ts < to.ts)
            t.is_true(to.name:lower():find(from.name, 1, true), from.name .. " to " .. to.name)
        else
            t.eq(e.ph, "M")
            t.is_true(e.name == "process_name" or e.name == "thread_name", e.name)
        end
    end
    t.is_true(n >= 4)
end)

t.test("lines_are_in_the_trace", function()
    local path = os.tmpname()
    lines_of("local x = ...\n\nx:exp()", tide.ones(1)):export_chrome_trace(path)
    for _, e in ipairs(read_trace(path)) do
        t.eq(e.args and e.args.line, e.cat == "cpu_op" and "step.lua:3" or nil, e.name)
    end
end)

t.test("an_empty_recording_is_a_trace_too", function()
    local path = os.tmpname()
    profiler.profile(function() end):export_chrome_trace(path)
    t.eq(#check_trace(read_trace(path)), 0)
end)

t.test("a_path_that_cannot_be_written_is_one_line", function()
    local profile = profiler.profile(work)
    local message = t.error_has(function() profile:export_chrome_trace("/nonexistent/trace.json") end,
        "/nonexistent/trace.json: No such file")
    t.is_true(not message:find("\n"), message)
    t.error_has(function() profile:export_chrome_trace() end, "(path): expected a string")
end)

-- Run the script with `arg`; returns its exit code, what it printed, and what it wrote to stderr.
local function run_profile_step(...)
    local path = os.getenv("TIDE_SOURCE") .. "/notebooks/profile_step.lua"
    local out, err = {}, {}
    local env = setmetatable({
        arg = { [0] = path, ... },
        print = function(x) out[#out + 1] = tostring(x) end,
        io = { stderr = { write = function(_, x) err[#err + 1] = x end } },
        os = { exit = function(code) error({ code = code }) end },
    }, { __index = _G })
    local ok, exit = pcall(assert(loadfile(path, "t", env)))
    return ok and 0 or type(exit) == "table" and exit.code or exit, table.concat(out, "\n"), table.concat(err)
end

t.test("profile_step_writes_a_trace_of_one_step", function()
    local path = os.tmpname()
    local code, out = run_profile_step(path)
    t.eq(code, 0)
    t.is_true(out:find("^name +kind +self"), out)
    local slices, count, total = check_trace(read_trace(path)), {}, 0
    for _, e in ipairs(slices) do
        count[e.cat .. " " .. e.name] = (count[e.cat .. " " .. e.name] or 0) + 1
        total = total + 1
    end
    t.is_true(total > 100)
    for name, n in pairs { ["cpu_op conv2d"] = 2, ["cpu_op linear"] = 3, ["autograd Conv2dBackward"] = 2,
        ["autograd LinearBackward"] = 3, ["user_annotation backward"] = 1 } do
        t.eq(count[name], n, name)
    end
    local exit, _, err = run_profile_step()
    t.eq(exit, 2)
    t.is_true(err:find("^usage: [^\n]+\n$"), err)
end)

t.test("the_talks_two_pictures_are_drawn", function()
    local path, out = os.getenv("TIDE_SOURCE") .. "/notebooks/foreach_timeline.lua", {}
    local env = setmetatable({ arg = { [0] = path }, print = function(x) out[#out + 1] = tostring(x or "") end }, { __index = _G })
    assert(loadfile(path, "t", env))()
    local loop, foreach = table.concat(out, "\n"):match("^(a loop: .*)(foreach: .*)$")
    t.is_true(loop and loop:find("\ndispatch +▕") and loop:find("\nkernels +▕") and loop:find("█ add_ "), loop)
    t.is_true(foreach and foreach:find("\nkernels +▕") and foreach:find("█ foreach_add_ "), foreach)
end)

t.test("wrong_arguments", function()
    t.error_has(function() profiler.profile { with_stak = true } end, "did you mean 'with_stack'?")
    t.error_has(function() profiler.profile { with_stack = 1 } end, "option with_stack: expected true or false")
    t.error_has(function() profiler.profile { 3, with_stack = true } end, "argument 1 (fn): expected a function")
    t.error_has(function() profiler.profile(3) end, "profile: argument 1 (fn): expected a function")
    t.error_has(function() profiler.record() end, "record: argument 1 (name): expected a string")
    t.error_has(function() profiler.record("x", 3) end, "record: argument 2 (fn): expected a function")
end)
