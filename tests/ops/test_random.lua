-- test_random.lua: random operators: the same seed gives the same numbers, successive draws differ, and
-- the numbers are distributed as they should be. All seeds are fixed: nothing here fails by chance.
local t = require "harness"

local N = 100000

local draws = {
    rand = function(n, o) return tide.rand(n, o or {}) end,
    randn = function(n, o) return tide.randn(n, o or {}) end,
    rand_like = function(n, o) return tide.rand_like(tide.empty(n, o or {}), o or {}) end,
    randn_like = function(n, o) return tide.randn_like(tide.empty(n, o or {}), o or {}) end,
    randint = function(n) return tide.randint(0, 1 << 30, { n }) end,
    randperm = function(n) return tide.randperm(n) end,
    uniform_ = function(n, o) return tide.empty(n, o or {}):uniform_(-1, 3) end,
    normal_ = function(n, o) return tide.empty(n, o or {}):normal_(10, 2) end,
    bernoulli_ = function(n, o) return tide.empty(n, o or {}):bernoulli_(0.25) end,
    bernoulli = function(n, o) return (tide.ones(n, o or {}) * 0.25):bernoulli() end,
    randint_like = function(n) return tide.randint_like(tide.empty(n, { dtype = tide.int64 }), 1 << 40) end,
    random_ = function(n) return tide.empty(n, { dtype = tide.int64 }):random_(1 << 40) end,
    log_normal_ = function(n, o) return tide.empty(n, o or {}):log_normal_(1, 0.5) end,
    exponential_ = function(n, o) return tide.empty(n, o or {}):exponential_(2) end,
    cauchy_ = function(n, o) return tide.empty(n, o or {}):cauchy_(1, 3) end,
    geometric_ = function(n, o) return tide.empty(n, o or {}):geometric_(0.25) end,
    normal = function(n, o) return tide.normal(tide.full({ n }, 10, o or { dtype = tide.float32 }), 2) end,
    poisson = function(n, o) return tide.poisson(tide.full({ n }, 4, o or { dtype = tide.float32 })) end,
    multinomial = function(n) return tide.multinomial(tide.tensor { 1, 0, 2, 5 }:float(), n, true) end,
    dropout = function(n, o) return tide.dropout(tide.ones(n, o or {}), 0.25) end,
    rrelu = function(n, o) return tide.rrelu(-tide.ones(n, o or {}), 0.25, 0.75, true) end,
    alpha_dropout = function(n, o) return tide.alpha_dropout(tide.ones(n, o or {}), 0.25) end,
    feature_dropout = function(n, o) return tide.feature_dropout(tide.ones(n, 1, o or {}), 0.25):flatten() end,
    feature_alpha_dropout = function(n, o)
        return tide.feature_alpha_dropout(tide.ones(n, 1, 2, o or {}), 0.25):select(3, 1):flatten()
    end,
}

t.test("every_random_operator_is_drawn_here", function()
    for _, op in ipairs(tide._ops()) do
        if op.random and not op.internal then
            t.is_true(draws[op.name], op.name)
        end
    end
end)

for name, draw in pairs(draws) do
    t.test(name .. "_successive_draws_differ", function()
        tide.manual_seed(1)
        local first, second, third = draw(64), draw(64), draw(64)
        t.is_false(tide.equal(first, second), "first and second")
        t.is_false(tide.equal(second, third), "second and third")
        t.is_false(tide.equal(first, third), "first and third")
    end)
    t.test(name .. "_same_seed_same_numbers", function()
        tide.manual_seed(7)
        local one, two = draw(1001), draw(3)
        tide.manual_seed(7)
        t.is_true(tide.equal(draw(1001), one), "the first draw")
        t.is_true(tide.equal(draw(3), two), "the second draw")
        tide.manual_seed(8)
        t.is_false(tide.equal(draw(1001), one), "another seed")
    end)
    t.test(name .. "_small_draws_differ_as_well", function()
        tide.manual_seed(3)
        local seen, different = {}, 0
        for _ = 1, 64 do
            local key = table.concat(draw(4):tolist(), " ")
            different = different + (seen[key] and 0 or 1)
            seen[key] = true
        end
        t.is_true(different > 4, different .. " of 64 draws of 4 differ")
    end)
end

t.test("upper_and_lower_half_of_the_seed_count", function()
    tide.manual_seed(5)
    local x = tide.rand(8)
    tide.manual_seed(5 + (1 << 40))
    t.is_false(tide.equal(tide.rand(8), x))
    t.eq(tide.initial_seed(), 5 + (1 << 40))
end)

t.test("a_generator_has_a_stream_of_its_own", function()
    tide.manual_seed(1)
    local want = { tide.rand(5), tide.rand(5) }
    local g = tide.Generator()
    g:manual_seed(1)
    tide.manual_seed(99)
    t.is_true(tide.equal(tide.rand(5, { generator = g }), want[1]))
    tide.rand(17)
    t.is_true(tide.equal(tide.rand(5, { generator = g }), want[2]))
end)

-- ---- distributions ----

-- The share of elements below each of some bounds, against what it should be; the worst difference of a
-- sample of N is about 1.6 / sqrt(N) = 0.005 in one case of a hundred, and the seeds are fixed.
local function check_shares(x, bounds)
    for _, b in ipairs(bounds) do
        local share = x:le(b[1]):double():mean():item()
        t.is_true(math.abs(share - b[2]) < 0.006, ("%.4f lie below %g, expected %.4f"):format(share, b[1], b[2]))
    end
end

-- The correlation of neighbours, and of elements that lie `lag` apart.
local function check_independent(x)
    local n = x:numel()
    x = (x:double() - x:double():mean()) / x:double():std()
    for _, lag in ipairs { 1, 2, 4, 8, 16, 32, 64, 128 } do
        local r = (x:narrow(1, 1, n - lag) * x:narrow(1, 1 + lag, n - lag)):mean():item()
        t.is_true(math.abs(r) < 0.015, ("elements %d apart are correlated: %.4f"):format(lag, r))
    end
end

local normal_shares = {
    { -2, 0.02275 }, { -1, 0.15866 }, { 0, 0.5 }, { 0.5, 0.69146 }, { 1.5, 0.93319 }, { 3, 0.99865 },
}

local function scaled(shares, mean, std)
    local list = {}
    for k, b in ipairs(shares) do
        list[k] = { mean + std * b[1], b[2] }
    end
    return list
end

for _, dtype in ipairs { tide.float32, tide.float64 } do
    local o = { dtype = dtype }
    local suffix = "_" .. tostring(dtype):gsub("tide.", "")
    local uniform = { { 0, 0 }, { 0.1, 0.1 }, { 0.25, 0.25 }, { 0.5, 0.5 }, { 0.9, 0.9 }, { 1, 1 } }
    for _, name in ipairs { "rand", "rand_like" } do
        t.test(name .. suffix .. "_is_uniform_in_0_to_1", function()
            tide.manual_seed(11)
            local x = draws[name](N, o)
            t.eq(x.dtype, dtype)
            t.is_true(x:min():item() >= 0 and x:max():item() < 1)
            check_shares(x, uniform)
            check_independent(x)
        end)
    end
    t.test("uniform_" .. suffix .. "_is_uniform_between_its_bounds", function()
        tide.manual_seed(12)
        local x = draws.uniform_(N, o)
        t.is_true(x:min():item() >= -1 and x:max():item() <= 3)
        check_shares(x, { { -0.6, 0.1 }, { 1, 0.5 }, { 2, 0.75 }, { 2.6, 0.9 } })
    end)
    for _, name in ipairs { "randn", "randn_like" } do
        t.test(name .. suffix .. "_is_normal", function()
            tide.manual_seed(13)
            local x = draws[name](N, o)
            check_shares(x, normal_shares)
            check_independent(x)
            check_independent(x * x)
        end)
    end
    t.test("normal_" .. suffix .. "_has_its_mean_and_deviation", function()
        tide.manual_seed(14)
        check_shares(draws.normal_(N, o), scaled(normal_shares, 10, 2))
        t.is_true(tide.empty(7, o):normal_(5, 0):eq(5):all():item())
    end)
    for _, name in ipairs { "bernoulli", "bernoulli_" } do
        t.test(name .. suffix .. "_is_1_as_often_as_asked", function()
            tide.manual_seed(15)
            local x = draws[name](N, o)
            t.is_true((x:eq(0) | x:eq(1)):all():item())
            t.close(x:double():mean():item(), 0.25, 0.005)
            check_independent(x)
        end)
    end
    t.test("dropout" .. suffix .. "_keeps_the_mean_and_scales_the_gradient", function()
        tide.manual_seed(16)
        local x = tide.ones(N, { dtype = dtype, requires_grad = true })
        local y = tide.dropout(x, 0.25)
        t.close(y:eq(0):double():mean():item(), 0.25, 0.005)
        t.is_true((y:eq(0) | (y - 4 / 3):abs():lt(1e-6)):all():item(), "others are 4/3")
        y:sum():backward()
        t.is_true(tide.equal(x.grad, y:detach()), "the gradient is the mask")
    end)
end

t.test("randint_has_each_number_equally_often", function()
    tide.manual_seed(17)
    local x = tide.randint(-3, 7, { N })
    t.eq(x.dtype, tide.int64)
    t.eq(x:min():item(), -3)
    t.eq(x:max():item(), 6)
    for k = -3, 6 do
        t.close(x:eq(k):double():mean():item(), 0.1, 0.006, tostring(k))
    end
end)

t.test("randperm_moves_everything_anywhere", function()
    tide.manual_seed(18)
    local sums, rounds, n = tide.zeros(8), 4000, 8
    for _ = 1, rounds do
        local p = tide.randperm(n)
        t.is_true(p:sum():item() == n * (n + 1) // 2 and p:min():item() == 1 and p:max():item() == n)
        sums:add_(p)
    end
    t.is_true(((sums / rounds) - 4.5):abs():max():item() < 0.16, tostring(sums / rounds))
end)

t.test("choices_do_not_depend_on_how_weights_lie", function()
    local x = tide.rand(300, 700) -- more than are copied together
    local function drawn(weights)
        tide.manual_seed(20)
        return weights:multinomial(5, true)
    end
    local want = drawn(x)
    t.is_true(tide.equal(drawn(x:t():contiguous():t()), want), "transposed")
    t.is_true(tide.equal(drawn(tide.cat({ x, x }, 2):narrow(2, 1, 700)), want), "with gaps between rows")
    t.is_true(tide.equal(drawn(x[1]:unsqueeze(2):expand(700, 2):t()[1]), drawn(x[1])), "with gaps between elements")
end)

t.test("numbers_do_not_depend_on_how_many_are_drawn_at_once", function()
    tide.manual_seed(19)
    local many = tide.rand(1000)
    tide.manual_seed(19)
    t.is_true(tide.equal(tide.rand(4), many:narrow(1, 1, 4)))
    tide.manual_seed(19)
    t.is_true(tide.equal(tide.rand(131), many:narrow(1, 1, 131)))
end)

-- Random123's known answer of Philox 4x32-10 for counter 0 and key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
t.test("the_first_numbers_are_those_of_philox", function()
    tide.manual_seed(0)
    t.eq(tide.rand(4):tolist(), { 0x6627e8 / 2 ^ 24, 0xe169c5 / 2 ^ 24, 0xbc57ac / 2 ^ 24, 0x9b00db / 2 ^ 24 })
end)

t.test("the_default_generator_is_asked_also_after_another_one", function()
    tide.manual_seed(7)
    local want, g = tide.get_rng_state(), tide.Generator(12345)
    g:get_state()
    t.is_true(tide.equal(tide.get_rng_state(), want))
    g:initial_seed()
    t.eq(tide.initial_seed(), 7)
end)

t.test("a_state_is_a_strided_tensor", function()
    local n = tide.get_rng_state():numel()
    t.error_has(function() tide.set_rng_state(tide.zeros(n, { dtype = tide.uint8 }):to_sparse()) end, "a uint8 tensor")
end)
