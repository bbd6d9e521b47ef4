-- test_benchmark.lua: timers and what their measurements say, by times that are given, and the tables of Compare.
local t = require "harness"
local benchmark = tide.benchmark

local function given(times, options)
    options = options or {}
    options.label = options.label or "x"
    return benchmark.measurement(times, options)
end

t.test("a_measurement_has_median_range_and_digits", function()
    local m = given { 1, 2, 3, 4, 10 }
    t.eq({ m.median, m.mean, m.iqr }, { 3, 4, 2 })
    t.is_false(m:meets_confidence(0.5), "2 is more than half of 3")
    t.is_true(m:meets_confidence(0.7))
    t.eq(m.significant_figures, 1)
    t.eq(given({ 1e-3, 1e-3, 1.000001e-3, 1e-3 }).significant_figures, 4) -- what PyTorch says of these
    t.eq(given({ 5e-3 }, { number_per_run = 1000 }).median, 5e-6)
    t.is_true(tostring(given { 1, 1, 3, 3 }):find("interquartile range is 100 %% of the median: something else"))
    t.is_true(tostring(given { 0.002 }):find("^x\n  2.00 ms\n  1 measurement, 1 runs each, 1 thread$"))
end)

t.test("a_statement_sees_setup_and_globals_and_runs_as_often_as_is_said", function()
    local seen = { n = 0 }
    local timer = benchmark.Timer { stmt = "counter.n = counter.n + step", setup = "local step = 2", globals = { counter = seen } }
    local m = timer:timeit(500)
    t.eq(seen.n, 2 * (500 + 5))
    t.eq({ #m.times, m.number_per_run, m.label }, { 1, 500, "counter.n = counter.n + step" })
    t.is_true(benchmark.Timer { stmt = "1 + 1" }:timeit(10).median > 0, "an expression")
    t.is_true(benchmark.Timer { stmt = "math.abs(-1) -- with a remark" }:timeit(10).median > 0)
end)

t.test("ranges_choose_their_runs", function()
    local calls, threads = 0, nil
    local before = tide.get_num_threads()
    local timer = benchmark.Timer { fn = function()
        calls = calls + 1
        threads = tide.get_num_threads()
    end, num_threads = 3, label = "f" }
    local m = timer:blocked_autorange { min_run_time = 0.01 }
    t.is_true(calls >= #m.times * m.number_per_run and m.number_per_run > 1)
    t.eq({ threads, tide.get_num_threads(), m.num_threads }, { 3, before, 3 })
    m = timer:adaptive_autorange { threshold = 0, min_run_time = 0.001, max_run_time = 0.02 }
    t.is_true(#m.times >= 1)
    t.error_has(function() benchmark.Timer { fn = function() error("mine", 0) end, num_threads = 2 }:timeit(1) end, "mine")
    t.eq(tide.get_num_threads(), before)
end)

local function some()
    local list = {}
    for row, n in ipairs { "n = 1", "n = 10" } do
        for column, name in ipairs { "take", "gather" } do
            list[#list + 1] = given({ row * column * 1.234e-6 }, { label = "index", sub_label = n, description = name })
        end
    end
    return list
end

t.test("compare_has_a_column_per_description_and_a_row_per_name", function()
    t.eq(tostring(benchmark.Compare(some())), table.concat({ "[ index -------------------]", "          |  take  |  gather",
        "1 thread: ------------------", "  n = 1   |   1.2  |     2.5", "  n = 10  |   2.5  |     4.9",
        "", "Times are in microseconds (µs)." }, "\n"))
    local list = some()
    list[#list + 1] = given({ 1 }, { label = "other", description = "take", num_threads = 4, env = "old" })
    local text = tostring(benchmark.Compare(list))
    t.is_true(text:find("[ other", 1, true) and text:find("4 threads: %-") and text:find("%(old%)") and text:find("1.0"), text)
end)

t.test("compare_merges_what_is_the_same_and_shows_what_is_sure", function()
    local c = benchmark.Compare { given({ 1e-3, 2e-3 }), given({ 3e-3 }) }
    t.eq(#c.results, 1)
    t.eq(c.results[1].median, 2e-3)
    c:trim_significant_figures()
    t.is_true(tostring(c):find("  |  2\n"), tostring(c))
    local colored = benchmark.Compare(some())
    colored:colorize()
    local frontend = tide._frontend
    for _, colors in ipairs { false, true } do
        tide._frontend = function() return { color = colors } end
        local found = tostring(colored):find("\27[32;1m 1.2\27[0m", 1, true)
        tide._frontend = frontend
        t.eq(found ~= nil, colors, "colours go to who shows them")
    end
end)

t.test("compare_speaks_csv_and_markdown", function()
    local c = benchmark.Compare { given({ 0.5 }, { label = 'a,"b"', description = "x|y" }) }
    t.eq(c:csv(), 'label,sub_label,description,env,num_threads,median_s,iqr_s,measurements\n"a,""b""",,x|y,,1,0.5,0,1\n')
    t.eq(c:markdown(), '| a,"b" (ms) | x\\|y |\n|---|---:|\n| , 1 thread | 500.0 |\n')
end)

t.test("wrong_timers_are_refused_in_one_line", function()
    for _, case in ipairs {
        { {}, "Timer: one of stmt and fn expected, got neither" }, { { stmt = "1", fn = print }, "got both" },
        { { stmt = "x = = 1" }, "Timer: stmt: stmt:1:" }, { { stmt = "f()", setup = "local" }, "Timer: setup: setup:1:" },
        { { stmt = "end end end" }, "Timer: stmt:" }, { { stmt = "f()", num_threads = 0 }, "num_threads" },
        { { fn = print, setup = "x = 1" }, "setup and globals are for stmt" }, { { smt = "1" }, "did you mean 'stmt'" } } do
        local message = t.error_has(function() benchmark.Timer(case[1]) end, case[2])
        t.is_true(not message:find("\n"), message)
    end
    t.error_has(function() benchmark.Timer { stmt = "nothing()" }:timeit(1) end, "nothing")
    t.error_has(function() benchmark.Timer { stmt = "do return 1 end" }:timeit(5) end, "Timer: stmt must not return")
    t.error_has(function() benchmark.Timer { stmt = "1" }:timeit(0) end, "number")
    t.error_has(function() benchmark.Timer { stmt = "1" }:blocked_autorange { min_run_time = -1 } end, "min_run_time")
    t.error_has(function() benchmark.Compare { 3 } end, "Measurement")
    t.error_has(function() given {} end, "no times")
    t.error_has(function() given { 1, -1 } end, "entry 2: seconds expected")
end)
