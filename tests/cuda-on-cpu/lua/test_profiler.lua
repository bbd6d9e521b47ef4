-- test_profiler.lua: what a recording tells of a device: kernels, copies and sets on a row for each stream, each with
-- the operator that asked for it, in table, trace and timeline; by CUDA's events where CUPTI can't be had; NVTX.
local t = require "harness"
local profiler = tide.profiler

-- Begun before the module is loaded.
local early = profiler.profile()
local there = tide.cuda.is_available()
local early_sum = there and tide.ones(10, { device = "cuda" }):sum()
early:stop()

if not there then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end
local opened = package.loadlib(os.getenv "TIDE_CUDA_MODULE" or "", "luaopen_played")
local played = opened and opened()

local function device_kind(kind) return kind == "device" or kind == "transfer" or kind == "memset" end

-- The events of devices, those of one kind where it is named.
local function of_devices(profile, kind)
    local found = {}
    for _, e in ipairs(profile:events()) do
        if device_kind(e.kind) and (not kind or e.kind == kind) then
            found[#found + 1] = e
        end
    end
    return found
end

-- A recording of fn, and what it had the device do.
local function counted(fn)
    tide.cuda.synchronize()
    local profile = profiler.profile(function()
        played.reset()
        fn()
    end)
    return profile, played.counts()
end

local function tensors(n, size)
    local list = {}
    for k = 1, n do
        list[k] = tide.full({ size }, k + 0.5, { device = "cuda" })
    end
    return list
end

-- Everything of a device lies within the recording, nothing on a row overlaps, and operators asked for it.
local function check_rows(profile, by)
    local events, ends = profile:events(), {}
    local wall = 0
    for _, e in ipairs(events) do
        wall = math.max(wall, e.start_us + e.duration_us)
    end
    for _, e in ipairs(of_devices(profile)) do
        t.is_true(e.start_us >= 0 and e.duration_us > 0, e.name)
        t.is_true((ends[e.track] or 0) <= e.start_us + 1e-6, "nothing overlaps on " .. e.track)
        ends[e.track] = e.start_us + e.duration_us
        t.is_true(e.track:find("^cuda:%d stream %d+") ~= nil, e.track)
        local asked = events[e.launcher]
        t.is_true(asked ~= nil, e.name .. " has nobody who asked for it")
        t.is_true(asked.start_us <= e.start_us, asked.name .. " asked before it was done")
        t.is_true(asked.track ~= e.track, "on the host")
        if by then
            t.eq(asked.kind, by, e.name)
        end
    end
    return wall
end

t.test("a_recording_that_began_before_the_module_was_loaded_hears_of_it", function()
    t.eq(early_sum:item(), 10)
    local names = {}
    for _, e in ipairs(early:events()) do
        names[e.kind] = (names[e.kind] or 0) + 1
    end
    t.is_true((names.device or 0) >= 2, "a fill and a sum")
end)

if played then
    t.test("a_loop_launches_a_kernel_for_each_call_and_foreach_one_for_all", function()
        local params, grads = tensors(60, 100), tensors(60, 100)
        for seed = 1, 3 do
            played.seed(seed)
            local loop, counts = counted(function()
                for k = 1, #params do
                    params[k]:add_(grads[k])
                end
            end)
            t.eq(counts.launches, 60)
            t.eq(#of_devices(loop, "device"), 60)
            check_rows(loop, "operator")
            local each, fewer = counted(function() tide.foreach.add_(params, grads) end)
            t.eq(#of_devices(each, "device"), fewer.launches)
            t.is_true(fewer.launches < 6, "one launch, or few")
            check_rows(each, "operator")
            local events = each:events()
            for _, e in ipairs(of_devices(each, "device")) do
                t.eq(events[e.launcher].name, "foreach_add_")
            end
        end
    end)

    t.test("each_kernel_has_its_own_operator", function()
        local x = tide.rand(50, 50):to("cuda")
        local profile, counts = counted(function()
            local y = x + 1
            return (y:matmul(x)):sum(1)
        end)
        t.eq(#of_devices(profile, "device"), counts.launches)
        local events, seen = profile:events(), {}
        for _, e in ipairs(of_devices(profile, "device")) do
            seen[events[e.launcher].name] = true
        end
        t.is_true(seen.add and seen.sum, "add and sum")
        t.is_true(seen.matmul or seen.mm, "the product")
        check_rows(profile, "operator")
    end)

    t.test("kernels_are_called_as_in_their_source", function()
        local x = tide.rand(40, 40):to("cuda")
        local profile, counts = counted(function() return x:sort(1), x:cumsum(1), x:tril(), x:nonzero(), x:matmul(x) end)
        local seen = {}
        for _, e in ipairs(of_devices(profile, "device")) do
            seen[e.name] = (seen[e.name] or 0) + 1
        end
        t.eq(seen, counts.kernels)
    end)

    t.test("backward_and_optimizers_are_asked_for_by_theirs", function()
        local w = tide.rand(20, 20):to("cuda"):requires_grad_(true)
        local sgd = tide.optim.SGD({ w }, { lr = 0.1, momentum = 0.9 })
        local profile, counts = counted(function()
            (w * 2):exp():sum():backward()
            sgd:step()
        end)
        t.eq(#of_devices(profile, "device"), counts.launches)
        check_rows(profile)
        local events, around = profile:events(), {}
        for _, e in ipairs(of_devices(profile)) do
            local at = e.launcher
            while at do
                around[events[at].kind] = true
                at = events[at].parent
            end
        end
        t.is_true(around.operator and around.backward and around.optimizer, "all three launch")
    end)

    t.test("recorded_work_is_seen_kernel_by_kernel", function()
        local x = tide.ones(1000, { device = "cuda" })
        local graph = tide.cuda.graph(function() return (x * 2 + 1):sqrt() end)
        local profile, counts = counted(function() profiler.record("replay", function() graph:replay() end) end)
        t.eq({ counts.launches, #of_devices(profile, "device") }, { 3, 3 })
        check_rows(profile, "range")
    end)

    t.test("a_kernel_runs_before_a_recording_begins_and_is_not_kept", function()
        local x = tide.ones(10, { device = "cuda" })
        played.reset()
        local profile = profiler.profile(function() return x end)
        t.eq({ played.counts().launches, #of_devices(profile) }, { 1, 0 })
    end)

    t.test("nothing_of_a_device_is_kept_where_nothing_is_recorded", function()
        local x = tide.ones(100, { device = "cuda" })
        local _ = x + 1
        local profile, counts = counted(function() return x * 2 end)
        t.eq({ counts.launches, #of_devices(profile, "device") }, { 1, 1 })
    end)
end

t.test("streams_have_rows_of_their_own", function()
    local x, side = tide.ones(1000, { device = "cuda" }), tide.cuda.Stream()
    local number = tostring(side):match("Stream (%d+)")
    local profile = profiler.profile(function()
        local a = x + 1
        local s <close> = tide.cuda.stream(side)
        return a * 2
    end)
    local rows = {}
    for _, e in ipairs(of_devices(profile, "device")) do
        rows[e.track] = (rows[e.track] or 0) + 1
    end
    t.eq(rows, { ["cuda:0 stream 0"] = 1, ["cuda:0 stream " .. number] = 1 })
    check_rows(profile, "operator")
    if tide.cuda.device_count() > 1 then
        local y = tide.ones(1000, { device = "cuda:1" })
        profile = profiler.profile(function() return x + 1, y + 1 end)
        rows = {}
        for _, e in ipairs(of_devices(profile, "device")) do
            rows[#rows + 1] = e.track
        end
        t.eq(rows, { "cuda:0 stream 0", "cuda:1 stream 0" })
    end
end)

t.test("copies_have_bytes_and_a_direction", function()
    local x = tide.rand(1000)
    local profile = profiler.profile(function()
        local y = x:to("cuda")
        return y:to("cpu")
    end)
    local seen = {}
    for _, e in ipairs(of_devices(profile, "transfer")) do
        seen[e.name] = (seen[e.name] or 0) + e.bytes
    end
    t.eq(seen, { ["copy to device"] = 4000, ["copy to host"] = 4000 })
    check_rows(profile)
end)

local function read(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    return text
end

t.test("a_trace_has_arrows_and_comes_back_as_it_was", function()
    local x = tide.rand(1000):to("cuda")
    local profile = profiler.profile(function() return ((x + 1) * 2):to("cpu") end)
    local path = os.tmpname()
    profile:export_chrome_trace(path)
    local text, devices = read(path), of_devices(profile)
    t.is_true(#devices >= 3)
    t.eq(select(2, text:gsub('"ph":"s","cat":"ac2g"', "")), #devices)
    t.eq(select(2, text:gsub('"ph":"f","cat":"ac2g"', "")), #devices)
    t.is_true(text:find('"name":"cuda:0 stream 0"', 1, true) ~= nil, "the row's name")
    local again = profiler.load(path)
    os.remove(path)
    local back, events, were = of_devices(again), again:events(), profile:events()
    t.eq(#back, #devices)
    for k, e in ipairs(back) do
        t.eq({ e.name, e.kind, e.track, e.bytes }, { devices[k].name, devices[k].kind, devices[k].track, devices[k].bytes })
        t.eq(events[e.launcher].name, were[devices[k].launcher].name)
        t.eq(events[e.launcher].kind, "operator")
        t.is_true(math.abs(e.duration_us - devices[k].duration_us) < 0.01, "its time")
    end
    t.eq(again:table { sort = "device" }:match("name[^\n]*"), profile:table { sort = "device" }:match("name[^\n]*"))
end)

t.test("a_table_tells_devices_times_by_operator", function()
    local x = tide.rand(200000):to("cuda")
    local profile = profiler.profile(function()
        profiler.record("mine", function() return x:exp():sum() end)
    end)
    local text, sum = profile:table { sort = "device" }, 0
    t.is_true(text:find("device +dev%.total") ~= nil, text)
    t.is_true(text:find("devices busy for [%d.]+ %S+ of it %([%d.]+ %%%)") ~= nil, text)
    t.is_true(text:find("\nmine +range [^\n]* 0 ns +[%d.]+ %S+\n") ~= nil, "the range itself asked for nothing: " .. text)
    t.is_true(text:find("\nexp +operator") ~= nil and text:find("\nsum +operator") ~= nil, text)
    for _, e in ipairs(of_devices(profile)) do
        sum = sum + e.duration_us
    end
    t.is_true(sum > 0)
    -- the host's shares are of the host's time
    local shares = 0
    for line in text:gmatch("[^\n]+") do
        local kind, share = line:match("  (%l+) +[%d.]+ %S+ +([%d.]+) %%")
        shares = shares + (kind and not device_kind(kind) and tonumber(share) or 0)
    end
    t.is_true(math.abs(shares - 100) < 1, ("%.1f %%"):format(shares))
end)

t.test("a_timeline_draws_the_streams", function()
    local x = tide.rand(100000):to("cuda")
    local text = tostring(profiler.profile(function() return x:exp() end):timeline { width = 40 })
    t.is_true(text:find("cuda:0 stream 0 device", 1, true) ~= nil, text)
end)

t.test("the_talks_pictures_are_drawn_on_the_device_too", function()
    local path, out = os.getenv "TIDE_SOURCE" .. "/notebooks/foreach_timeline.lua", {}
    local env = setmetatable({ arg = { [0] = path }, print = function(x) out[#out + 1] = tostring(x or "") end },
        { __index = _G })
    assert(loadfile(path, "t", env))()
    local text = table.concat(out, "\n")
    local loop, each = text:match("\na loop on [^\n]*: %d+ µs, kernels at work (%d+) %% of it\n.*"
        .. "\nforeach on [^\n]*: %d+ µs, kernels at work (%d+) %% of it\n")
    t.is_true(tonumber(loop) ~= nil and tonumber(each) ~= nil, text)
    t.eq(select(2, text:gsub("\ncuda:0 stream 0 device▕", "")), 2)
end)

t.test("a_recording_without_work_for_a_device_is_as_it_was", function()
    local profile = profiler.profile(function() return tide.ones(3) + 1 end)
    t.eq(#of_devices(profile), 0)
    t.eq(profile:events()[1].track, nil)
    local text = profile:table()
    t.is_true(not text:find("device"), text)
end)

t.test("an_error_ends_a_recording_and_what_was_done_is_kept", function()
    local x = tide.ones(100, { device = "cuda" })
    local profile
    local ok, message = pcall(function()
        local p <close> = profiler.profile()
        profile = p
        local _ = x + 1
        error("of its own", 0)
    end)
    t.eq({ ok, message }, { false, "of its own" })
    t.eq(#of_devices(profile, "device"), 1)
    check_rows(profile, "operator")
    t.eq(#of_devices(profiler.profile(function() return x + 1 end), "device"), 1, "and the next one records")
end)

t.test("steps_and_old_events_go_for_devices_too", function()
    local x = tide.ones(10, { device = "cuda" })
    local profile = profiler.profile { max_events = 2000 }
    for _ = 1, 3000 do
        x:add_(1)
    end
    profile:stop()
    local n = #of_devices(profile, "device")
    t.is_true(n >= 1 and n <= 2000, n .. " kernels")
    for _, e in ipairs(of_devices(profile, "device")) do
        t.is_true(e.start_us >= 0)
    end
    t.is_true(profile:table():find("the oldest [%d,]+ events made room") ~= nil)
end)

if played then
    local function with_events(result, kind, fn)
        played.fail_cupti(result, kind)
        local ok, message = pcall(fn)
        played.fail_cupti(0)
        if not ok then
            error(message, 0)
        end
    end

    t.test("where_cupti_is_refused_events_tell_the_times_and_the_profile_says_so", function()
        local x = tide.rand(1000):to("cuda")
        with_events(39, nil, function()
            local profile = profiler.profile(function()
                local y = (x + 1):sum()
                return y:to("cpu")
            end)
            local names = {}
            for _, e in ipairs(of_devices(profile)) do
                names[#names + 1] = e.name
            end
            t.eq(names, { "pointwise", "reduce", "copy to host" })
            t.eq(of_devices(profile, "transfer")[1].bytes, 4)
            check_rows(profile, "operator")
            local text = profile:table()
            t.is_true(text:find("less precise: CUPTI can't be used (another profiler is attached)", 1, true) ~= nil, text)
        end)
        t.is_true(not profiler.profile(function() return x + 1 end):table():find("less precise"), "CUPTI again")
    end)

    t.test("a_kind_that_may_not_be_recorded_leaves_nothing_behind", function()
        local x = tide.ones(10, { device = "cuda" })
        with_events(0, 10, function()
            local profile = profiler.profile(function() return x + 1 end)
            t.eq(#of_devices(profile), 1)
            t.is_true(profile:table():find("CUPTI can't be used", 1, true) ~= nil)
        end)
        local profile, counts = counted(function() return x + 1 end)
        t.eq(#of_devices(profile, "device"), counts.launches)
    end)

    t.test("what_the_cpu_does_instead_is_no_work_of_the_device", function()
        local x = tide.rand(5, 5):to("cuda")
        with_events(39, nil, function()
            for _, e in ipairs(of_devices(profiler.profile(function() return x:erfinv() end), "device")) do
                t.is_true(e.name ~= "pointwise", "a fallback")
            end
        end)
    end)

    t.test("a_recording_ends_while_a_graph_is_recorded_and_spoils_nothing", function()
        local x = tide.ones(10, { device = "cuda" })
        local function both()
            local before, within = profiler.profile(), nil
            local graph, y = tide.cuda.graph(function()
                before:stop()
                within = profiler.profile()
                local y = x * 2
                within:stop()
                return y
            end, { warmup = 0 })
            t.eq(#of_devices(within, "device"), 0, "nothing was done yet")
            local profile = profiler.profile(function() graph:replay() end)
            t.eq(y:sum():item(), 20)
            return of_devices(profile, "device")
        end
        t.eq(#both(), 1)
        with_events(39, nil, function()
            local seen = both()
            t.eq({ #seen, seen[1].name }, { 1, "graph" })
        end)
    end)

    t.test("events_are_used_again_when_many_are_under_way", function()
        local x = tide.ones(10, { device = "cuda" })
        with_events(39, nil, function()
            local profile = profiler.profile(function()
                for _ = 1, 6000 do
                    x:add_(1)
                end
            end)
            t.is_true(#of_devices(profile, "device") > 4000)
            check_rows(profile, "operator")
        end)
    end)

    t.test("nvtx_hears_of_operators_ranges_and_steps_of_optimizers", function()
        local x = tide.ones(10, { device = "cuda" })
        played.nvtx()
        profiler.profile { function() return profiler.record("mine", function() return x + 1 end) end, nvtx = true }
        t.eq(played.nvtx(), { "push mine", "push add", "pop", "pop" })
        local w = tide.ones(3, { device = "cuda" }):requires_grad_(true)
        local sgd = tide.optim.SGD({ w }, { lr = 0.1 })
        w.grad = tide.ones(3, { device = "cuda" })
        profiler.profile { function() sgd:step() end, nvtx = true }
        local lines, open, optimizer = played.nvtx(), 0, false
        for _, line in ipairs(lines) do
            open = open + (line:find("^push") and 1 or -1)
            t.is_true(open >= 0)
            optimizer = optimizer or line:find("^push SGD") ~= nil
        end
        t.eq(open, 0)
        t.is_true(optimizer, table.concat(lines, "; "))
        local _ = x + 1
        profiler.profile(function() return x + 1 end)
        t.eq(played.nvtx(), {}, "nobody asked for it")
    end)

    t.test("nvtx_ranges_end_with_the_recording", function()
        played.nvtx()
        local profile = profiler.profile { nvtx = true }
        local range = profiler.record("open")
        profile:stop()
        local mt = getmetatable(range)
        t.is_true(mt ~= nil)
        t.eq(played.nvtx(), { "push open", "pop" })
        local steps = profiler.profile { nvtx = true }
        steps:step()
        local _ = tide.ones(2) + 1
        steps:step()
        steps:stop()
        local open = 0
        for _, line in ipairs(played.nvtx()) do
            open = open + (line:find("^push") and 1 or -1)
        end
        t.eq(open, 0)
    end)

    t.test("nvtx_by_hand", function()
        played.nvtx()
        t.eq(tide.cuda.nvtx.range_push("outer"), 0)
        t.eq(tide.cuda.nvtx.range_push("inner"), 1)
        tide.cuda.nvtx.mark("now")
        t.eq(tide.cuda.nvtx.range_pop(), 1)
        t.eq(tide.cuda.nvtx.range_pop(), 0)
        t.is_true(tide.cuda.nvtx.range_pop() < 0)
        t.eq(played.nvtx(), { "push outer", "push inner", "mark now", "pop", "pop", "pop without a push" })
        t.error_has(function() tide.cuda.nvtx.range_push() end, "range_push")
        t.error_has(function() tide.cuda.nvtx.mark(tide.ones(1)) end, "mark")
    end)
end
