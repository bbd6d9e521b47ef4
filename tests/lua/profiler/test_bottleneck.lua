-- test_bottleneck.lua: the page of tide --bottleneck, of what its runs left in files.
local t = require "harness"

-- The page of three parts that saw this.
local function page_of(operators, functions, memory, codes)
    local paths = {}
    for name, seen in pairs { operators = operators, functions = functions, memory = memory } do
        seen.rows, seen.places = tide._require("files.json").list(seen.rows or {}), tide._require("files.json").list(seen.places or {})
        local totals = { wall_ns = 1000000, all_ns = 1000000, loading_ns = 0, events = 10, evicted = 0, peak_bytes = 0 }
        for key, value in pairs(seen.totals or {}) do
            totals[key] = value
        end
        seen.totals = totals
        paths[name] = os.tmpname()
        local file = assert(io.open(paths[name], "w"))
        file:write(tide._require("files.json").encode(seen))
        file:close()
    end
    local page = tide._require("profiler.bottleneck").page("x.lua", paths, codes or { operators = 0, functions = 0, memory = 0 })
    for _, path in pairs(paths) do
        os.remove(path)
    end
    return page
end

local function change_first(page)
    local list = {}
    for text in page:match("To change first:\n(.*)"):gmatch("  %d%. ([^\n]+)") do
        list[#list + 1] = text
    end
    return list
end

t.test("the_greatest_shares_come_first_and_memory_has_the_third_place", function()
    local list = change_first(page_of({
        places = { { name = "mm", line = "x.lua:3", calls = 2, ns = 300000, bytes = 0 },
            { name = "add_", line = "x.lua:5", calls = 200, ns = 400000, bytes = 0 }, { name = "exp", calls = 1, ns = 49000, bytes = 0 } },
        rows = { { name = "full collection", kind = "collector", calls = 1, self_ns = 100000, total_ns = 100000 } } },
    { rows = { { name = "f (x.lua:1)", kind = "function", calls = 1, self_ns = 600000, total_ns = 700000 },
        { name = "mm", kind = "operator", calls = 1, self_ns = 900000, total_ns = 900000 } } },
    { totals = { wall_ns = 1, events = 1, evicted = 0, peak_bytes = 3 << 20, peak_line = "x.lua:9", peak_name = "cat" } }))
    t.eq(#list, 3)
    t.is_true(list[1]:find("^60 %% of the time: f %(x.lua:1%): 600 µs in Lua itself"), list[1])
    t.is_true(list[2]:find("^40 %% of the time: x.lua:5: 200 × add_, 2 µs each: calls so small"), list[2])
    t.eq(list[3], "memory is at its peak of 3.0 MiB at x.lua:9 (cat): what is alive there?")
end)

t.test("what_was_let_go_or_left_out_is_said", function()
    local page = page_of({ totals = { all_ns = 9000000, wall_ns = 2000000, loading_ns = 1500000, events = 1000, evicted = 4000 },
        places = { { name = "mm", line = "x.lua:3", calls = 2, ns = 1000000, bytes = 0 } } }, {}, {})
    t.is_true(page:find("---- x.lua: 9 ms with operators recorded, 1 ms with functions recorded", 1, true), page)
    t.is_true(page:find("with operators recorded, the last 1000 of 5000 events are kept, of the last 3.5 ms: calls, times and shares are theirs", 1, true), page)
    t.is_true(page:find("first touches of memory, took 1.5 ms more, which is left out", 1, true), page)
    t.is_true(page:find("1. 50 % of the time: x.lua:3: 2 × mm", 1, true), page)
    page = page_of({}, {}, {})
    t.is_true(not page:find("are kept", 1, true) and not page:find("left out", 1, true), page)
end)

t.test("a_recording_that_lets_events_go_has_shares_of_what_it_keeps", function()
    local p = tide.profiler.profile { function()
        local x = tide.ones(3)
        for _ = 1, 20000 do
            x:exp()
        end
    end, max_events = 1000, functions = true }
    local totals = p:_totals()
    t.eq({ totals.events, #p:events() }, { 1000, 1000 })
    t.is_true(totals.evicted > 19000 and totals.wall_ns < totals.all_ns / 4, totals.wall_ns / totals.all_ns)
    local own = 0
    for _, row in ipairs(p:_rows(100)) do
        own = own + row.self_ns
        t.is_true(row.total_ns <= totals.wall_ns, row.name)
    end
    t.is_true(own > 0.9 * totals.wall_ns and own <= totals.wall_ns, own / totals.wall_ns)
end)

t.test("the_advisers_lines_come_before_what_was_found_here", function()
    local list = change_first(page_of({ advice = { "x.lua:5: use foreach", "x.lua:6: use no_grad" },
        places = { { name = "mm", line = "x.lua:3", calls = 2, ns = 300000, bytes = 0 } } }, {}, {}))
    t.eq({ list[1], list[2], #list }, { "x.lua:5: use foreach", "x.lua:6: use no_grad", 3 })
    t.is_true(list[3]:find("x.lua:3: 2 × mm, 150 µs each: kernels", 1, true), list[3])
end)

t.test("memory_has_the_third_place_behind_advice_too", function()
    local list = change_first(page_of({ advice = { "a", "b", "c" } }, {},
        { totals = { wall_ns = 1, events = 1, evicted = 0, peak_bytes = 3 << 20, peak_line = "x.lua:9", peak_name = "cat" } }))
    t.eq(list, { "a", "b", "memory is at its peak of 3.0 MiB at x.lua:9 (cat): what is alive there?" })
end)

t.test("what_the_adviser_said_reaches_the_page_as_its_lines", function()
    local path = os.tmpname()
    tide._require("profiler.bottleneck").begin("operators")
    local all = tide.zeros(0, 64)
    for _ = 1, 300 do
        all = tide.cat { all, tide.rand(16, 64) }
    end
    tide._require("profiler.bottleneck").finish("operators", path)
    local file = assert(io.open(path))
    local seen = tide._require("files.json").decode(file:read("a"))
    file:close()
    os.remove(path)
    t.is_true(#seen.advice > 0)
    for _, text in ipairs(seen.advice) do
        t.is_true(text:find("test_bottleneck.lua:%d+: .* — .*× %(") ~= nil, text)
    end
end)

t.test("where_nothing_takes_time_nothing_is_advised", function()
    local page = page_of({ places = { { name = "mm", line = "x.lua:3", calls = 2, ns = 3, bytes = 0 } } }, {}, {})
    t.is_true(page:find("Nothing takes enough of the time to be worth a change.", 1, true), page)
    t.eq(page_of({ totals = { wall_ns = 1, events = 0, peak_bytes = 0 } }, { totals = { wall_ns = 1, events = 0, peak_bytes = 0 } }, {},
        { operators = 1, functions = 1, memory = 1 }), nil)
    t.eq(tide._require("profiler.bottleneck").page("x.lua", { operators = "/no/such", functions = "/no/such", memory = "/no/such" }, {}), nil)
end)

t.test("calls_are_counted_by_line_and_operator_with_what_they_did_within", function()
    local x = tide.ones(16, 16, { requires_grad = true })
    local line = debug.getinfo(1, "l").currentline + 2
    local p = tide.profiler.profile { function()
        for _ = 1, 5 do x:matmul(x):sum():backward() end
    end, with_stack = true, profile_memory = true }
    local calls, places = {}, p:_places(100)
    local sum = 0
    for k, place in ipairs(places) do
        calls[place.name] = place.calls
        sum = sum + place.ns
        t.is_true(place.line:find(":" .. line .. "$"), tostring(place.line))
        t.is_true(k == 1 or places[k - 1].ns >= place.ns)
    end
    t.eq({ calls.matmul, calls.sum, calls.mm }, { 5, 5, nil })
    t.is_true(calls.SumBackward == 5 or calls.backward == 5, "backward nodes are calls of their own")
    local totals = p:_totals()
    t.is_true(sum <= totals.wall_ns and totals.peak_bytes > 0 and totals.peak_line:find(":" .. line .. "$"))
end)
