-- test_profiler.lua: what a recording holds, its table, its trace file, and errors inside.
local t = require "harness"
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

t.test("the_trace_is_written_whole_or_not_at_all", function()
    local path = os.tmpname()
    local profile = profiler.profile(function()
        profiler.record('with "quotes" and \\', work)
    end)
    profile:export_chrome_trace(path)
    local text = assert(io.open(path)):read("a")
    os.remove(path)
    local slices = select(2, text:gsub('"ph":"X"', ""))
    t.eq(slices, #profile)
    t.is_true(text:find('"fwdbwd"', 1, true))
    t.is_true(text:find('with \\"quotes\\" and \\\\', 1, true))
    t.is_true(not text:find('"dur":0.000', 1, true))
    t.error_has(function() profile:export_chrome_trace("/nonexistent/trace.json") end, "No such file")
end)

t.test("wrong_arguments", function()
    t.error_has(function() profiler.profile(3) end, "a function expected")
    t.error_has(function() profiler.record() end, "string expected")
    t.error_has(function() profiler.record("x", 3) end, "a function expected")
end)
