-- test_profiler_schedule.lua: which steps a profile records, what it hands over, and how much it keeps.
local t = require "harness"
local profiler = tide.profiler

t.test("a_schedule_says_what_becomes_of_each_step", function()
    local function plan(options, n)
        local fn, said = profiler.schedule(options), {}
        for step = 0, n - 1 do
            said[#said + 1] = fn(step):sub(1, 1)
        end
        return table.concat(said)
    end
    t.eq(plan({ wait = 1, warmup = 1, active = 3, repeats = 2 }, 12), "nwrrsnwrrsnn")
    t.eq(plan({ active = 1 }, 3), "sss")
    t.eq(plan({ active = 2, skip_first = 2, wait = 1 }, 9), "nnnrsnrsn")
    t.error_has(function() profiler.schedule { wait = 1 } end, "active")
    t.error_has(function() profiler.schedule { active = 0 } end, "option active: expected an integer from 1 on")
end)

-- The names of the operators outside all others, in their order.
local function operators(profile)
    local names, events = {}, profile:events()
    for _, e in ipairs(events) do
        local outer = events[e.parent]
        if e.kind == "operator" and not (outer and outer.kind == "operator") then
            names[#names + 1] = e.name
        end
    end
    return table.concat(names, " ")
end

local steps = { "exp", "sin", "cos", "tanh", "sqrt", "neg", "abs", "log" }

local function run(profile, x)
    for _, name in ipairs(steps) do
        x[name](x)
        profile:step()
    end
end

t.test("active_steps_are_recorded_and_handed_over_cycle_by_cycle", function()
    local x, seen, ranges = tide.ones(3), {}, {}
    do
        local p <close> = profiler.profile { schedule = profiler.schedule { wait = 1, warmup = 1, active = 2 },
            on_trace_ready = function(p)
                seen[#seen + 1] = operators(p)
                for _, e in ipairs(p:events()) do
                    if e.kind == "step" then
                        ranges[#ranges + 1] = e.name
                    end
                end
            end }
        run(p, x)
    end
    t.eq(seen, { "cos tanh", "abs log" })
    t.eq(ranges, { "ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#1", "ProfilerStep#2" })
end)

t.test("what_is_cut_short_is_handed_over_and_warming_up_is_not", function()
    local x, seen = tide.ones(3), {}
    local function ready(p) seen[#seen + 1] = operators(p) end
    do
        local p <close> = profiler.profile { schedule = profiler.schedule { active = 3 }, on_trace_ready = ready }
        x:exp()
        p:step()
        x:sin()
    end
    t.eq(seen, { "exp sin" })
    do
        local p <close> = profiler.profile { schedule = profiler.schedule { active = 3, warmup = 2 },
            on_trace_ready = ready }
        x:exp()
    end
    t.eq(#seen, 1)
    local p = profiler.profile { function() x:exp() end, on_trace_ready = ready }
    t.eq(seen, { "exp sin", "exp" })
    t.eq(#p:events(), 2)
end)

t.test("a_step_marks_the_recording_without_a_schedule_too", function()
    local x = tide.ones(3)
    profiler.step() -- no profile runs: nothing
    local profile = profiler.profile(function()
        for _ = 1, 3 do
            profiler.step()
            x:exp()
        end
    end)
    local found = {}
    for _, e in ipairs(profile:events()) do
        found[#found + 1] = e.kind == "step" and e.name or e.kind == "operator" and "in " .. e.step or nil
    end
    t.eq(table.concat(found, ", "), "ProfilerStep#1, in 1, ProfilerStep#2, in 2, ProfilerStep#3, in 3")
    t.error_has(function() profile:step() end, "step: the profile has ended")
end)

t.test("an_error_of_the_schedule_or_of_the_handler_is_raised_and_nothing_goes_on_recording", function()
    t.error_has(function() profiler.profile { schedule = function() return 5 end } end,
        'schedule(0): expected "none", "warmup", "record" or "save", got')
    t.error_has(function() profiler.profile { function() end, on_trace_ready = function() error("mine") end } end, "mine")
    t.error_has(function() profiler.profile { function() end, max_events = 0 } end, "max_events")
    t.is_true(#profiler.profile(function() tide.ones(2):exp() end) > 0)
end)

t.test("old_steps_make_room_and_the_table_says_how_many", function()
    local x = tide.ones(3)
    local profile = profiler.profile { function()
        for _ = 1, 100 do
            profiler.step()
            for _ = 1, 50 do
                x:exp()
            end
        end
    end, max_events = 2000, kernels = true }
    t.is_true(#profile < 3200)
    local lost = profile:table():match("the oldest (%d+) of 100 steps made room")
    t.is_true(tonumber(lost) > 50, profile:table())
    t.eq(profile:events()[1].name, ("ProfilerStep#%d"):format(lost + 1))
end)

t.test("optimizers_and_the_collector_have_ranges", function()
    local w = tide.ones(3, { requires_grad = true })
    local sgd = tide.optim.SGD({ w }, { lr = 0.1 })
    local profile = profiler.profile(function()
        w:sum():backward()
        sgd:step()
        for _ = 1, 400 do
            local _ = tide.zeros(500000)
        end
    end)
    local found = {}
    for _, e in ipairs(profile:events()) do
        found[e.kind] = e.name
    end
    t.eq(found.optimizer, "SGD.step")
    t.is_true(found.collector, "collections that tensors' memory asks for")
end)

t.test("memory_and_kinds_of_ranges_are_recorded", function()
    local profile = profiler.profile { function()
        profiler.record { "next batch", function() return tide.zeros(1000) end, kind = "data" }
        local x = tide.ones(5000)
        x = nil
        collectgarbage()
        return x
    end, profile_memory = true }
    local kinds, most = {}, 0
    for _, e in ipairs(profile:events()) do
        kinds[e.kind] = e.name
        most = math.max(most, e.bytes or 0)
        t.is_true(e.kind ~= "memory" or e.total >= 0)
    end
    t.eq(kinds.data, "next batch")
    t.is_true(kinds.memory and most >= 20000)
    t.error_has(function() profiler.record { "x", function() end, kind = "other" } end, "kind")
end)

t.test("lines_hold_when_old_events_make_room", function()
    local a, first, second = tide.ones(2)
    local p = profiler.profile { function()
        for _ = 1, 3000 do
            first = debug.getinfo(1, "l").currentline + 1
            local _ = a + a
            second = debug.getinfo(1, "l").currentline + 1
            _ = a * a
        end
    end, with_stack = true, max_events = 2000 }
    for _, e in ipairs(p:events()) do
        if e.kind == "operator" then
            t.eq(e.line and e.line:match(":(%d+)$"), tostring(e.name == "add" and first or second), e.name)
        end
    end
    t.is_true(#p > 1000 and #p < 6000)
end)
