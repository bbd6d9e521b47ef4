-- test_benchmark_more.lua: the fuzzer of sizes, rates, measurements in files, two builds side by side, instruction counts.
local t = require "harness"
local benchmark = tide.benchmark
local Fuzzer, Parameter, Tensor = benchmark.Fuzzer, benchmark.FuzzedParameter, benchmark.FuzzedTensor

local function given(times, options)
    options = options or {}
    options.label = options.label or "x"
    return benchmark.measurement(times, options)
end

-- ---- the fuzzer ----

local function sizes_of(fuzzer, n)
    local list = {}
    for tensors, params in fuzzer:take(n) do
        list[#list + 1] = { tensors.x:size(1), params.n, tensors.x:sum():item() }
    end
    return list
end

t.test("a_fuzzer_draws_the_same_cases_from_the_same_seed", function()
    local function make(seed)
        return Fuzzer { parameters = { Parameter { "n", min = 1, max = 1000, distribution = "loguniform" } },
            tensors = { Tensor { "x", size = { "n" } } }, seed = seed }
    end
    local first = sizes_of(make(7), 20)
    t.eq(#first, 20)
    t.eq(sizes_of(make(7), 20), first)
    local fuzzer = make(8)
    local other = sizes_of(fuzzer, 20)
    t.eq(sizes_of(fuzzer, 20), other)
    t.is_false(other[1][1] == first[1][1] and other[2][1] == first[2][1] and other[3][1] == first[3][1])
    for _, case in ipairs(first) do
        t.is_true(case[1] == case[2] and case[1] >= 1 and case[1] <= 1000)
    end
end)

-- Numbers that 2,000 draws of a parameter give.
local function draws(options)
    local list = {}
    local fuzzer = Fuzzer { parameters = { Parameter(options) }, tensors = {}, seed = 1 }
    for _, params in fuzzer:take(2000) do
        list[#list + 1] = params.p
    end
    return list
end

t.test("distributions_are_what_they_are_called", function()
    local function share(list, fits)
        local n = 0
        for _, value in ipairs(list) do
            n = n + (fits(value) and 1 or 0)
        end
        return n / #list
    end
    local log = draws { "p", min = 1, max = 10000, distribution = "loguniform" }
    t.close(share(log, function(v) return v < 100 end), 0.5, 0.05)
    t.eq(share(log, function(v) return math.type(v) == "integer" and v >= 1 and v <= 10000 end), 1.0)
    local whole = draws { "p", min = 3, max = 6 }
    for value = 3, 6 do
        t.close(share(whole, function(v) return v == value end), 0.25, 0.05)
    end
    local real = draws { "p", min = 0.5, max = 1.5 }
    t.close(share(real, function(v) return v < 1 end), 0.5, 0.05)
    t.eq(share(real, function(v) return v >= 0.5 and v <= 1.5 end), 1.0)
    local chosen = draws { "p", choices = { "a", "b", "c" }, weights = { 3, 1, 0 } }
    t.close(share(chosen, function(v) return v == "a" end), 0.75, 0.05)
    t.eq(share(chosen, function(v) return v == "c" end), 0.0)
end)

t.test("tensors_have_steps_orders_and_dims_as_the_parameters_say", function()
    local strided, dims = 0, {}
    local fuzzer = Fuzzer { parameters = { Parameter { "d", min = 1, max = 3 }, Parameter { "n", min = 2, max = 9 },
            Parameter { "m", choices = { 1, "n" } }, Parameter { "s", choices = { 1, 2 } } },
        tensors = { Tensor { "x", size = { "n", "m", 4 }, steps = { "s" }, dim = "d", probability_contiguous = 0.5,
            dtype = tide.int32 } }, seed = 3 }
    for tensors, params, properties in fuzzer:take(100) do
        local x = tensors.x
        t.eq({ x.ndim, x.dtype, x:size(1) }, { params.d, tide.int32, params.n })
        t.is_true(params.d < 2 or x:size(2) == params.m)
        t.is_true(params.m == 1 or params.m == params.n, "a name stands for its value")
        t.eq({ properties.x.numel, properties.x.is_contiguous }, { x:numel(), x:is_contiguous() })
        strided = strided + (x:is_contiguous() and 0 or 1)
        dims[params.d] = true
    end
    t.is_true(strided > 20 and strided < 100, strided)
    t.eq(dims, { true, true, true })
    for tensors in Fuzzer { parameters = {}, tensors = { Tensor { "x", size = { 3, 4 }, probability_contiguous = 1 } } }:take(5) do
        t.is_true(tensors.x:is_contiguous())
    end
end)

t.test("constraints_draw_again_and_give_up", function()
    local n = Parameter { "n", min = 1, max = 100 }
    local fuzzer = Fuzzer { parameters = { n, Parameter { "k", min = 1, max = 9, strict = true } },
        tensors = { Tensor { "x", size = { "n" }, min_elements = 10, max_elements = 50 } },
        constraints = { function(p) return p.n % 2 == 0 end }, seed = 1 }
    for tensors, params in fuzzer:take(30) do
        t.is_true(params.n % 2 == 0 and tensors.x:numel() >= 10 and tensors.x:numel() <= 50)
    end
    t.is_true(fuzzer.rejection_rate > 0.5 and fuzzer.rejection_rate < 0.95, fuzzer.rejection_rate)
    local never = Fuzzer { parameters = { n }, tensors = {}, constraints = { function() return false end } }
    t.error_has(function() never:take(1)() end, "none of 1000 draws met the constraints")
end)

t.test("wrong_fuzzers_are_refused_in_one_line", function()
    for _, case in ipairs {
        { function() Parameter { "n" } end, "min and max expected" }, { function() Parameter { "n", min = 5, max = 1 } end, "min 5 is not below max 1" },
        { function() Parameter { "n", min = 0, max = 1, distribution = "loguniform" } end, "min must be above 0" },
        { function() Parameter { "n", choices = {} } end, "choices are empty" },
        { function() Parameter { "n", choices = { 1 }, weights = { 1, 2 } } end, "2 weights for 1 choices" },
        { function() Parameter { "n", choices = { 1 }, weights = { -1 } } end, "weight 1" },
        { function() Parameter { "n", choices = { 1 }, min = 1 } end, "either choices or min and max" },
        { function() Parameter { "n", min = 1, max = 2, distribution = "normal" } end, "distribution" },
        { function() Tensor { "x", size = { -1 } } end, "size 1: an integer from 0 on" },
        { function() Fuzzer { parameters = {}, tensors = { Tensor { "x", size = { "n" } } } } end, "no parameter is called 'n'" },
        { function() Fuzzer { parameters = { 3 }, tensors = {} } end, "entry 1: a FuzzedParameter expected" },
        { function() Fuzzer { parameters = { Parameter { "x", min = 1, max = 2 } }, tensors = { Tensor { "x", size = { 1 } } } } end, "two are called 'x'" },
        { function() Fuzzer { parameters = { Parameter { "a", choices = { "b" } }, Parameter { "b", choices = { "a" } } }, tensors = {} }:take(1)() end,
            "round in a circle" },
        { function() Fuzzer { parameters = { Parameter { "n", min = 1.5, max = 1.6 } }, tensors = { Tensor { "x", size = { "n" } } } }:take(1)() end,
            "a size or step of" },
        { function() Fuzzer { parameters = {}, tensors = { Tensor { "x", size = { 2 }, make = function() return 3 end } } }:take(1)() end,
            "x: make: a tensor of 1 dims expected, got number 3" } } do
        local message = t.error_has(case[1], case[2])
        t.is_true(not message:find("\n"), message)
    end
end)

-- ---- rates and files ----

t.test("measurements_know_their_rates", function()
    local m = benchmark.Timer { stmt = "a:mm(b)", setup = "local a, b = tide.ones(20, 30), tide.ones(30, 40)", rates = true }:timeit(5)
    t.eq({ m.flops, m.bytes }, { 2 * 20 * 30 * 40, 4 * (20 * 30 + 30 * 40 + 20 * 40) })
    t.close(m:flops_per_second(), m.flops / m.median, 1)
    t.is_true(tostring(m):find("FLOP/s, ", 1, true), tostring(m))
    local linear = benchmark.Timer { stmt = "l(x)", setup = "local l, x = tide.nn.Linear(8, 4), tide.ones(2, 8)", rates = true }:timeit(2)
    t.eq(linear.flops, 2 * 2 * 8 * 4, "the operators within one count once")
    for kind, gates in pairs { LSTM = 4, GRU = 3, RNN = 1 } do -- inputs and states by their weights
        local layer, x = tide.nn[kind](6, 8), tide.ones(5, 2, 6)
        local made = benchmark.Timer { fn = function() return layer(x) end, rates = true }:timeit(1)
        t.eq(made.flops, (2 * 5 * 2 * (6 + 8) + (kind == "GRU" and 0 or 1)) * 8 * gates, kind) -- two biases are added but a GRU's
    end
    local told = benchmark.Timer { fn = function() end, flops = 100, bytes = 8 }:timeit(10)
    t.eq({ told.flops, told.bytes }, { 100, 8 })
    t.eq(given({ 1 }):flops_per_second(), nil)
    t.is_false(tostring(given { 1 }):find("FLOP") ~= nil)
end)

t.test("measurements_come_back_from_a_file", function()
    local path = os.tmpname()
    local list = { given({ 0.1, 0.2 / 3, 1e-9 }, { label = 'l"\n', sub_label = "s", number_per_run = 10, num_threads = 2 }), given { 1 } }
    list[2].flops = 12.5
    benchmark.save(list, path)
    local back = benchmark.load(path)
    t.eq(#back, 2)
    t.eq({ back[1].label, back[1].times, back[1].median, back[1].num_threads, back[1].number_per_run, back[2].flops },
        { list[1].label, list[1].times, list[1].median, 2, 10, 12.5 })
    t.eq(tostring(benchmark.Compare(back)), tostring(benchmark.Compare(list)))
    t.eq(#benchmark.merge { back[1], list[1] }[1].times, 6)
    for _, text in ipairs { "", "{}", "[1]", '{"format":"tide.benchmark.measurements"}', "\0\1", '{"format":"x","measurements":[]}' } do
        local file = assert(io.open(path, "w"))
        file:write(text)
        file:close()
        t.error_has(function() benchmark.load(path) end, "holds no measurements that tide.benchmark.save wrote")
    end
    local file = assert(io.open(path, "w"))
    file:write('{"format":"tide.benchmark.measurements","measurements":[{"label":"x","num_threads":1,"number_per_run":1,"raw_times":[-1]}]}')
    file:close()
    t.error_has(function() benchmark.load(path) end, "measurement 1 is broken")
    os.remove(path)
    t.error_has(function() benchmark.load(path) end, "load: " .. path)
    t.error_has(function() benchmark.save(list, "/no/such/folder/m.json") end, "save: /no/such/folder/m.json")
    t.error_has(function() benchmark.save({ 3 }, path) end, "Measurement")
    t.error_has(function() benchmark.save(list, path .. ".gz") end, "measurements are not packed")
    local folder = os.tmpname() -- a link stays one: what it leads to is written
    benchmark.save(list, path)
    os.execute(("ln -sf %s %s"):format(path, folder))
    benchmark.save(list, folder)
    t.is_true(os.execute(("test -L %s && test -f %s"):format(folder, path)))
    t.eq(#benchmark.load(folder), 2)
    os.remove(folder)
    os.remove(path)
end)

-- ---- two builds ----

local process = tide._require "benchmark.process"

t.test("the_interval_of_a_ratio_is_students", function()
    local ratio, low, high = process.ratio_of({ 1, 1, 1, 1 }, { 1, 2, 1, 2 })
    -- logarithms 0, log 2, 0, log 2: mean 0.34657, standard error 0.20010, t of three degrees of freedom 3.182
    t.close(ratio, 2 ^ 0.5, 1e-12)
    t.close(low, math.exp(0.5 * math.log(2) - 3.182 * math.log(2) / 12 ^ 0.5), 1e-9)
    t.close(high, math.exp(0.5 * math.log(2) + 3.182 * math.log(2) / 12 ^ 0.5), 1e-9)
    ratio, low, high = process.ratio_of({ 2, 4 }, { 1, 2 })
    t.eq({ ratio, low, high }, { 0.5, 0.5, 0.5 })
end)

-- Programs that print what a version of Tide would, so that nothing depends on the clock.
local function with_versions(fn)
    local paths = {}
    for k, seconds in ipairs { 4e-6, 2e-6 } do
        paths[k] = os.tmpname()
        local file = assert(io.open(paths[k], "w"))
        file:write(("#!/bin/sh\n[ -n \"$2\" ] || exit 0\necho noise\necho tide-benchmark 100 %g\n"):format(seconds))
        file:close()
        os.execute("chmod +x " .. paths[k])
    end
    local ok, message = xpcall(fn, debug.traceback, paths[1], paths[2])
    os.remove(paths[1])
    os.remove(paths[2])
    t.is_true(ok, message)
end

t.test("versions_are_compared_in_turns", function()
    with_versions(function(slow, fast)
        local c = benchmark.compare_versions { before = slow, after = fast, stmt = "1 + 1", rounds = 4 }
        t.eq({ c.before.times, c.after.times }, { { 4e-6, 4e-6, 4e-6, 4e-6 }, { 2e-6, 2e-6, 2e-6, 2e-6 } })
        t.eq({ c.ratio, c.faster }, { 0.5, "after" })
        t.is_true(tostring(c):find("after is 2.000 times as fast (95 %: 2.000 to 2.000), 4 rounds", 1, true), tostring(c))
        c = benchmark.compare_versions { before = slow, after = slow, stmt = "1 + 1", rounds = 3 }
        t.eq(c.faster, nil)
        t.is_true(tostring(c):find("no difference that is sure", 1, true), tostring(c))
        c = benchmark.compare_versions { before = fast, after = slow, script = slow, rounds = 2 }
        t.is_true(c.ratio > 0 and c.low <= c.high)
    end)
end)

t.test("versions_that_fail_are_named", function()
    with_versions(function(slow)
        for _, case in ipairs {
            { { before = "/no/such", after = slow, stmt = "1" }, "compare_versions: before: /no/such: No such file" },
            { { before = slow, after = "/tmp", stmt = "1" }, "compare_versions: after: " },
            { { before = slow, after = slow }, "one of stmt and script expected, got neither" },
            { { before = slow, after = slow, stmt = "1", script = slow }, "got both" },
            { { before = slow, after = slow, stmt = "1 +" }, "compare_versions: stmt: stmt:1:" },
            { { before = slow, after = slow, script = "/no/such.lua" }, "script: /no/such.lua" },
            { { before = slow, after = slow, stmt = "1", rounds = 1 }, "rounds" },
            { { before = slow, after = "/bin/false", stmt = "1" }, "after ('/bin/false') ended with code 1" },
            { { before = "/bin/true", after = slow, stmt = "1" }, "before ('/bin/true') measured nothing" } } do
            local message = t.error_has(function() benchmark.compare_versions(case[1]) end, case[2])
            t.is_true(not message:find("\n"), message)
        end
    end)
end)

t.test("instructions_are_of_statements_alone", function()
    t.error_has(function() benchmark.Timer { fn = function() end }:collect_callgrind() end, "a timer of stmt expected")
    t.error_has(function() benchmark.Timer { stmt = "f()", globals = { f = print } }:collect_callgrind() end, "put them into setup")
    t.error_has(function() benchmark.Timer { stmt = "1" }:collect_callgrind { program = "/bin/false" } end, "collect_callgrind: ")
end)

t.test("stmt_is_code_or_a_function", function()
    local calls = 0
    tide.benchmark.Timer { stmt = function() calls = calls + 1 end }:timeit(3)
    tide.benchmark.Timer(function() calls = calls + 100 end, { label = "b" }):timeit(1)
    t.is_true(calls >= 103, calls)
    t.error_has(function() tide.benchmark.Timer { stmt = 3 } end, "argument 1 (stmt): expected a string, got number")
    t.error_has(function() tide.benchmark.Timer { stmt = print, setup = "x = 1" } end, "setup and globals are for stmt")
    t.error_has(function() tide.benchmark.Timer { stmt = "x", fn = print } end, "both")
end)
