-- test_draws.lua: draws of rarer shapes are distributed as they should be and do not depend on threads.
-- What every random operator has in common is test_random.lua's. All seeds are fixed.
local t = require "harness"

local N = 100000

-- The share of elements up to each bound, against what it should be.
local function check_shares(x, share, bounds)
    for _, b in ipairs(bounds) do
        local got = x:le(b):double():mean():item()
        t.is_true(math.abs(got - share(b)) < 0.006, ("%.4f lie below %g, expected %.4f"):format(got, b, share(b)))
    end
end

-- Of a distribution of counts, from its probabilities.
local function counted(probability)
    return function(bound)
        local sum = 0
        for k = 0, math.floor(bound) do
            sum = sum + probability(k)
        end
        return sum
    end
end

local function poisson(mean)
    return counted(function(k)
        local log = -mean + k * math.log(mean)
        for f = 2, k do
            log = log - math.log(f)
        end
        return math.exp(log)
    end)
end

-- erf by its series, near enough for shares.
local function normal_share(z)
    local sum, term = z, z
    for k = 1, 60 do
        term = -term * z * z / (2 * k)
        sum = sum + term / (2 * k + 1)
    end
    return 0.5 + sum / math.sqrt(2 * math.pi)
end

for _, dtype in ipairs { tide.float32, tide.float64 } do
    local suffix = "_" .. tostring(dtype):gsub("tide.", "")
    local function empty() return tide.empty(N, { dtype = dtype }) end
    t.test("exponential_" .. suffix, function()
        tide.manual_seed(31)
        local x = empty():exponential_(2)
        t.is_true(x:min():item() > 0)
        check_shares(x, function(b) return 1 - math.exp(-2 * b) end, { 0.01, 0.1, 0.5, 1, 2, 3 })
        t.close(x:double():mean():item(), 0.5, 0.006)
    end)
    t.test("cauchy_" .. suffix, function()
        tide.manual_seed(32)
        check_shares(empty():cauchy_(1, 3), function(b) return 0.5 + math.atan((b - 1) / 3) / math.pi end,
            { -100, -10, -2, 0, 1, 2, 4, 20, 100 })
    end)
    t.test("log_normal_" .. suffix, function()
        tide.manual_seed(33)
        check_shares(empty():log_normal_(1, 0.5), function(b) return normal_share((math.log(b) - 1) / 0.5) end,
            { 1, 2, math.exp(1), 3, 4, 8 })
    end)
    t.test("geometric_" .. suffix, function()
        tide.manual_seed(34)
        for _, p in ipairs { 0.25, 0.7, 0.01 } do
            local x = empty():geometric_(p)
            t.eq(x:min():item(), 1)
            t.is_true(x:eq(x:floor()):all():item(), "whole numbers")
            check_shares(x, function(b) return 1 - (1 - p) ^ b end, { 1, 2, 5, 20, 100 })
        end
        t.is_true(empty():geometric_(1e-18):min():item() > 1e11)
    end)
    t.test("poisson" .. suffix, function()
        tide.manual_seed(35)
        for _, mean in ipairs { 0.3, 4, 9.9, 10, 37, 400 } do
            local x = tide.poisson(tide.full({ N }, mean, { dtype = dtype }))
            local width = math.sqrt(mean)
            check_shares(x, poisson(mean), { 0, mean - 2 * width, mean - width, mean, mean + width, mean + 3 * width })
            t.close(x:double():mean():item(), mean, 0.02 * width, "mean")
            t.close(x:double():std():item(), width, 0.02 * width, "deviation")
        end
    end)
    t.test("normal" .. suffix .. "_has_means_and_deviations_of_its_own", function()
        tide.manual_seed(36)
        local mean = tide.tensor({ { 0.0 }, { 10.0 } }, { dtype = dtype })
        local std = tide.tensor({ 1.0, 0.0, 5.0 }, { dtype = dtype })
        local x = tide.normal(mean, std)
        t.eq(x.shape, tide.zeros(2, 3).shape)
        t.eq(x.dtype, dtype)
        t.eq(x[{ {}, 2 }]:tolist(), { 0, 10 })
        local many = tide.normal(tide.full({ N }, 7.0, { dtype = dtype }), 3)
        check_shares(many, function(b) return normal_share((b - 7) / 3) end, { 1, 4, 7, 8, 13 })
    end)
end

t.test("random_fills_with_integers_of_a_range_or_of_all", function()
    tide.manual_seed(37)
    local x = tide.empty(N, { dtype = tide.int8 }):random_()
    t.eq(x:min():item(), 0)
    t.eq(x:max():item(), 127)
    t.close(x:le(63):double():mean():item(), 0.5, 0.006)
    local bits = tide.empty(1000, { dtype = tide.bool }):random_()
    t.close(bits:double():mean():item(), 0.5, 0.05)
    local floats = tide.empty(N):random_()
    t.is_true(floats:max():item() > 0.99 * 2 ^ 24 and floats:max():item() <= 2 ^ 24)
    t.is_true(floats:eq(floats:floor()):all():item())
    local some = tide.empty(N):random_(-2, 3)
    for k = -2, 2 do
        t.close(some:eq(k):double():mean():item(), 0.2, 0.006, tostring(k))
    end
    t.is_true(tide.empty(100, { dtype = tide.int64 }):random_():max():item() > 1 << 60)
end)

t.test("bernoulli_takes_a_probability_for_each", function()
    tide.manual_seed(38)
    local x = tide.empty(N, 3, { dtype = tide.int32 }):bernoulli_(tide.tensor { 0, 0.3, 1.0 })
    local means = x:double():mean(1)
    t.eq(means[1]:item(), 0)
    t.close(means[2]:item(), 0.3, 0.006)
    t.eq(means[3]:item(), 1)
    t.close(tide.zeros(N, { dtype = tide.int64 }):bernoulli(0.2):double():mean():item(), 0.2, 0.006)
end)

t.test("multinomial_draws_in_proportion_to_weights", function()
    tide.manual_seed(39)
    local weights = tide.tensor { { 1.0, 0, 3, 6, 0 }, { 0, 2, 0, 0, 2 } }
    local x = tide.multinomial(weights, N, true)
    t.eq(x.shape, tide.zeros(2, N).shape)
    t.eq(x.dtype, tide.int64)
    for row, shares in ipairs { { 0.1, 0, 0.3, 0.6, 0 }, { 0, 0.5, 0, 0, 0.5 } } do
        for k, share in ipairs(shares) do
            local got = x[row]:eq(k):double():mean():item()
            t.is_true(share == 0 and got == 0 or math.abs(got - share) < 0.006, row .. ", " .. k)
        end
    end
    t.eq(tide.tensor({ 0, 1.0 }):half():multinomial(3, true):tolist(), { 2, 2, 2 })
end)

t.test("multinomial_of_many_rows_draws_from_each_as_from_few", function()
    tide.manual_seed(61)
    local x = tide.rand(700, 300):bfloat16()
    x:masked_fill_(tide.rand(700, 300):lt(0.9), 0)
    local function drawn(weights)
        tide.manual_seed(62)
        return weights:multinomial(4, true)
    end
    local all = drawn(x)
    t.is_true(x:gather(2, all):gt(0):all():item(), "places whose weight is not 0")
    t.is_true(tide.equal(all[":3"], drawn(x[":3"])), "rows do not depend on those behind")
    for _, dtype in ipairs { tide.float32, tide.float64 } do
        t.is_true(tide.equal(all, drawn(x:to(dtype))), "the dtype of weights is of no matter")
    end
    x[650] = 0
    t.error_has(function() drawn(x) end, "multinomial: the weights of a row must have a sum above 0")
    x[699][5] = -1
    x[650][1] = 1
    t.error_has(function() drawn(x) end, "multinomial: weights must be finite and not negative")
end)

t.test("multinomial_without_replacement_draws_no_place_twice", function()
    tide.manual_seed(40)
    local rows = 20000
    local x = tide.multinomial(tide.tensor({ 1.0, 2, 3, 4 }):expand(rows, 4), 4)
    t.is_true(x:sum(2):eq(10):all():item() and x:min():item() == 1, "each of the four")
    for k = 1, 4 do
        t.close(x[{ {}, 1 }]:eq(k):double():mean():item(), k / 10, 0.012, "first " .. k)
    end
    -- the second after 4: in proportion to the rest
    local after = x[x[{ {}, 1 }]:eq(4)][{ {}, 2 }]
    for k = 1, 3 do
        t.close(after:eq(k):double():mean():item(), k / 6, 0.02, "second " .. k)
    end
    t.eq(tide.multinomial(tide.tensor { 0, 1.0, 0 }, 2):tolist()[1], 2, "weights of 0 come last")
end)

t.test("draws_do_not_depend_on_the_number_of_threads", function()
    local n = 300000
    local draws = {
        function() return tide.empty(n):exponential_() end, function() return tide.empty(n):cauchy_() end,
        function() return tide.empty(n):log_normal_() end, function() return tide.empty(n):geometric_(0.1) end,
        function() return tide.poisson(tide.full({ n // 8 }, 30.0)) end,
        function() return tide.multinomial(tide.rand(40, 500) + 0.01, 90) end,
        function() return tide.multinomial(tide.rand(500) + 0.01, n, true) end,
        function() return tide.empty(n, { dtype = tide.int64 }):random_() end,
    }
    local before = tide.get_num_threads()
    for k, draw in ipairs(draws) do
        local want
        for _, threads in ipairs { 1, 2, 3 } do
            tide.set_num_threads(threads)
            tide.manual_seed(50 + k)
            local x = draw()
            want = want or x
            t.is_true(tide.equal(x, want), ("draw %d with %d threads"):format(k, threads))
        end
    end
    tide.set_num_threads(before)
end)

-- The same bits on every machine and instruction set: worked out once from Philox's words.
t.test("a_seed_gives_the_same_bits_everywhere", function()
    local function bits(x) return ("%a"):format(x[1]:item()) end
    local wide = { dtype = tide.float64 }
    for _, case in ipairs {
        { "exponential_", 1.0 }, { "cauchy_", 0.0, 1.0 }, { "log_normal_", 0.0, 1.0 },
    } do
        tide.manual_seed(0)
        local x = tide.empty(2, wide)
        x[case[1]](x, table.unpack(case, 2))
        local u = (0x6627e8d5e169c >> 0) -- the first 52 bits of Philox's words for seed 0
        u = (u + 0.5) * 2.0 ^ -52
        if case[1] == "exponential_" then
            t.close(x[1]:item(), -math.log(u), 1e-15)
            t.eq(bits(x), "0x1.d65ce25e23c14p-1")
        elseif case[1] == "cauchy_" then
            t.close(x[1]:item(), math.tan(math.pi * (u - 0.5)), 1e-14)
            t.eq(bits(x), "-0x1.501cc7ad0576cp-2")
        else
            t.eq(bits(x), "0x1.d3b6223872744p-1")
        end
    end
end)

-- ---- ranges that end before their upper bound ----

-- What is drawn is rounded to the dtype, and stays below `to` and at `from` or above it, also where the dtype holds
-- neither.
for _, dtype in ipairs { tide.float64, tide.float32, tide.float16, tide.bfloat16 } do
    local name = tostring(dtype):gsub("tide.", "")
    t.test("half_open_ranges_in_" .. name, function()
        tide.manual_seed(35)
        local function check(x, from, to, what)
            local wide = x:double()
            t.is_true(wide:min():item() >= from, what .. ": the least")
            t.is_true(wide:max():item() < to, what .. ": the largest")
        end
        for _, r in ipairs { { 3, 4 }, { -4, -3 }, { 0, 1 }, { -1, 1 }, { 1, 1.003 }, { 1000, 1001.5 }, { 2.999, 3.999 },
            { -3.999, -2.999 }, { 1e-7, 1.5e-7 } } do
            local x = tide.empty(400000, { dtype = dtype }):uniform_(r[1], r[2])
            local ends = tide.tensor(r, { dtype = tide.float64 }):to(dtype):double():tolist()
            if ends[1] < ends[2] and not (name == "bfloat16" and r[1] == 1000) then
                check(x, r[1], r[2], ("uniform_(%g, %g)"):format(r[1], r[2]))
            end
            x = tide.empty(1001, 3, { dtype = dtype }):t():uniform_(r[1], r[2])
            t.is_true(x:double():max():item() <= math.max(r[2], ends[1]))
        end
        check(tide.rand(400000, { dtype = dtype }), 0, 1, "rand")
        check(tide.rand_like(tide.empty(400000, { dtype = dtype })), 0, 1, "rand_like")
        for _, r in ipairs { { 0, 1000 }, { -1000, -1 }, { 255, 300 }, { -2049, 2050 }, { 5, 6 } } do
            check(tide.randint(r[1], r[2], { 100000 }, { dtype = dtype }), r[1], r[2], ("randint(%d, %d)"):format(r[1], r[2]))
            check(tide.empty(100000, { dtype = dtype }):random_(r[1], r[2]), r[1], r[2], ("random_(%d, %d)"):format(r[1], r[2]))
        end
        -- a range in which the dtype has no number is what `from` is rounded to
        t.eq(tide.empty(3, { dtype = dtype }):uniform_(2, 2):tolist(), { 2.0, 2.0, 2.0 })
    end)
end
