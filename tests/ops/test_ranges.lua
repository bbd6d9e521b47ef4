-- test_ranges.lua: operators that square, raise to powers or normalise, on elements whose squares no dtype holds: what
-- they say of s * x is what they say of x, times a power of s, since powers of two change no digit.
local t = require "harness"

local F = tide.nn.functional
local SCALES = { float32 = { 2 ^ 100, 2 ^ -100 }, bfloat16 = { 2 ^ 100, 2 ^ -100 }, float64 = { 2 ^ 800, 2 ^ -800 },
    float16 = { 2 ^ 7, 2 ^ -10 } }
local EPS = { float64 = 2 ^ -48, float32 = 2 ^ -20, float16 = 2 ^ -9, bfloat16 = 2 ^ -6 }

-- Under a runner for a device all runs there.
local device = RANGES_DEVICE or "cpu"

local function channels_last(x) return x:contiguous { memory_format = tide.channels_last } end

-- The largest magnitude in the place of 0.
local function without_0(x) return x:where(x:ne(0), x:detach():abs():amax()) end

-- Each with the power of s that comes out: 1 of lengths, 0 of directions.
local operators = {
    std = { function(x) return x:std() end, 1 },
    std_of_rows = { function(x) return x:std(2) end, 1 },
    std_of_columns = { function(x) return x:std(1, { correction = 0 }) end, 1 },
    std_mean = { function(x) return (tide.std_mean(x)) end, 1 },
    norm = { function(x) return x:norm() end, 1 },
    norm_of_columns = { function(x) return x:norm(2, 1) end, 1 },
    norm_3 = { function(x) return x:norm(3, 2) end, 1 },
    norm_half = { function(x) return x:norm(0.5, 2) end, 1 },
    norm_minus_3 = { function(x) return x:norm(-3, 2) end, 1 },
    vector_norm = { function(x) return tide.linalg.vector_norm(x, 5) end, 1 },
    frobenius = { function(x) return tide.linalg.matrix_norm(x) end, 1 },
    nuclear = { function(x) return tide.linalg.matrix_norm(x, "nuc") end, 1 },
    spectral = { function(x) return tide.linalg.matrix_norm(x, 2) end, 1 },
    spectral_least = { function(x) return tide.linalg.matrix_norm(x:t(), -2) end, 1 },
    svdvals = { function(x) return tide.linalg.svdvals(x) end, 1 },
    cond = { function(x) return tide.linalg.cond(x) end, 0 },
    norm_7 = { function(x) return x:norm(7, 2) end, 1 },
    norm_half_of_all = { function(x) return without_0(x):norm(0.5, 2) end, 1 },
    norm_minus_2 = { function(x) return without_0(x):norm(-2, 2) end, 1 },
    norm_minus_3_of_all = { function(x) return without_0(x):norm(-3, 2) end, 1 },
    renorm = { function(x) return x:renorm(2, 1, x:abs():amax():item() / 2) end, 1 },
    renorm_3 = { function(x) return x:renorm(3, 2, x:abs():amax():item() / 4) end, 1 },
    foreach_norm = { function(x) return tide.foreach.norm({ x }, 3)[1] end, 1 },
    dist = { function(x) return tide.dist(x, -x, 3) end, 1 },
    pairwise_distance = { function(x) return F.pairwise_distance(x, -x, 2, 0) end, 1 },
    cdist = { function(x) return tide.cdist(x, -x) end, 1 },
    cdist_3 = { function(x) return tide.cdist(x, -x, 3) end, 1 },
    cdist_by_product = { function(x) return tide.cdist(x, -x, 2, "use_mm_for_euclid_dist") end, 1 },
    cdist_of_many = { function(x) return tide.cdist(x:repeat_interleave(10, 1), -x) end, 1 },
    pdist = { function(x) return F.pdist(x) end, 1 },
    pairwise_distance_3 = { function(x) return F.pairwise_distance(x, x:flip { 2 }, 3, 0) end, 1 },
    linalg_norm = { function(x) return tide.linalg.norm(x, "fro") end, 1 },
    lp_pool1d = { function(x) return F.lp_pool1d(x:reshape(1, 4, 6), 2, 2) end, 1 },
    lp_pool1d_inf = { function(x) return F.lp_pool1d(x:reshape(1, 4, 6), math.huge, 3) end, 1 },
    lp_pool2d = { function(x) return F.lp_pool2d(x:abs():reshape(1, 1, 4, 6), 3, 2) end, 1 },
    lp_pool3d = { function(x) return F.lp_pool3d(x:reshape(1, 2, 2, 6), 4, { 2, 2, 3 }) end, 1 },
    hypot = { function(x) return tide.hypot(x, x * 2) end, 1 },
    normalize = { function(x) return F.normalize(x, 2, 2, 0) end, 0 },
    normalize_3 = { function(x) return F.normalize(x, 3, 2, 0) end, 0 },
    cosine_similarity = { function(x) return F.cosine_similarity(x, x:flip { 2 }, 2, 0) end, 0 },
    layer_norm = { function(x) return F.layer_norm(x, { x:size(2) }, { eps = 0 }) end, 0 },
    layer_norm_long = { function(x) return F.layer_norm(x:repeat_interleave(40, 2), { 240 }, { eps = 0 }) end, 0 },
    layer_norm_with_weights = { function(x)
        local w = tide.arange(1, x:size(2) + 1):to(x.dtype):to(x.device)
        return F.layer_norm(x, { x:size(2) }, w, w, 0)
    end, 0 },
    corrcoef = { function(x) return tide.corrcoef(x) end, 0 },
    rms_norm = { function(x) return F.rms_norm(x, { x:size(2) }, { eps = 0 }) end, 0 },
    group_norm = { function(x) return F.group_norm(x:reshape(2, 3, 4), 3, { eps = 0 }) end, 0 },
    group_norm_of_channels_last = { function(x)
        local w = tide.arange(1, 5):to(x.dtype):to(x.device)
        return F.group_norm(channels_last(x:reshape(1, 4, 2, 3)), 2, w, w, 0)
    end, 0 },
    instance_norm = { function(x) return F.instance_norm(x:reshape(2, 3, 4), { eps = 0 }) end, 0 },
    instance_norm_of_channels_last = { function(x)
        return F.instance_norm(channels_last(x:reshape(1, 4, 2, 3)), { eps = 0 })
    end, 0 },
    batch_norm = { function(x) return F.batch_norm(x, nil, nil, { training = true, eps = 0 }) end, 0 },
    batch_norm_with_weights = { function(x)
        local w = tide.arange(1, 4):to(x.dtype):to(x.device)
        return F.batch_norm(x:reshape(2, 3, 4), nil, nil, w, w, { training = true, eps = 0 })
    end, 0 },
    batch_norm_of_channels_last = { function(x)
        return F.batch_norm(channels_last(x:reshape(2, 3, 2, 2)), nil, nil, { training = true, eps = 0 })
    end, 0 },
    local_response_norm = { function(x)
        return F.local_response_norm(x:reshape(1, 6, 4), 3, { alpha = 1, beta = 0.5, k = 0 })
    end, 0 },
    group_norm_of_two = { function(x) return F.group_norm(x:reshape(1, 4, 6), 2, { eps = 0 }) end, 0 },
}

local function values(dtype)
    return tide.tensor({ { 3, -1, 2, 5, -4, 1 }, { 1, 1, -2, 0, 7, 2 }, { -5, 2, 2, 1, 1, 3 }, { 4, -4, 1, 6, 2, -3 } },
        { dtype = tide.float64 }):to(dtype):to(device)
end

-- What matrices are decomposed by is refused in 16 bits.
local FULL = { nuclear = true, spectral = true, spectral_least = true, svdvals = true, cond = true }
-- PyTorch leaves a little room below maxnorm, of norms above 1 a constant.
local COARSE = { renorm = 2 ^ -22, renorm_3 = 2 ^ -22 }

for name, op in pairs(operators) do
    for dtype, scales in pairs(SCALES) do
        t.test(("%s_in_%s"):format(name, dtype), function()
            local f, power = op[1], op[2]
            if FULL[name] and dtype:find("16") then
                return
            end
            local eps = math.max(EPS[dtype], COARSE[name] or 0)
            local plain = f(values(tide[dtype])):double()
            for _, s in ipairs(scales) do
                local got = f(values(tide[dtype]) * s):double() / s ^ power
                local off = ((got - plain):abs() / (plain:abs() + eps)):max():item()
                t.is_true(off <= eps, ("scaled by %g: off by %g"):format(s, off))
            end
        end)
    end
end

-- A row of numbers of x's shape that begin anew every seven.
local function ramp(x) return (tide.arange(1, x:numel() + 1):reshape(x.shape) % 7):to(x.dtype):to(x.device) end

-- Gradients of one order, by kernels or as what can be differentiated again; of the second one along a direction, which is
-- scaled as far as results of the power 0 ask for.
local function gradient(f, order, power)
    return function(x, s)
        x = x:detach():requires_grad_(true)
        local y = f(x)
        local g = tide.autograd.grad({ y }, { x }, { grad_outputs = { ramp(y) }, create_graph = order > 1 })[1]
        if order < 3 then
            return g
        end
        local along = ramp(x):flip { 1 } * (power == 0 and s or 1)
        return tide.autograd.grad({ g }, { x }, { grad_outputs = { along } })[1]
    end
end

-- Where the result is the norm of what cancels, or 16-bit floats are multiplied, last digits are no measure.
local ROUGH = { cdist_by_product = 64, cdist_of_many = 64, layer_norm_long = 64 }
local ORDERS = { "gradient_of_%s_in_%s", "gradient_with_a_graph_of_%s_in_%s", "second_gradient_of_%s_in_%s" }
-- At 0 powers below 2 have no second gradient.
local STRAIGHT = { norm_half = true, norm_minus_3 = true }
for name, op in pairs(operators) do
    for _, dtype in ipairs { "float32", "float64" } do
        for order, called in ipairs(ORDERS) do
            t.test(called:format(name, dtype), function()
                local f, power = gradient(op[1], order, op[2]), op[2]
                local eps = math.max(EPS[dtype] * (ROUGH[name] or 4) * (order == 3 and 16 or 1), 4 * (COARSE[name] or 0))
                if order == 3 and STRAIGHT[name] then
                    return
                end
                local plain = f(values(tide[dtype]), 1):double()
                local most = math.max(plain:abs():max():item(), 1e-300)
                for _, s in ipairs(SCALES[dtype]) do
                    local got = f(values(tide[dtype]) * s, s):double() * s ^ (order < 3 and 1 - power or 1)
                    local off = ((got - plain):abs() / (plain:abs() + most)):max():item()
                    t.is_true(off <= eps, ("scaled by %g: off by %g"):format(s, off))
                end
            end)
        end
    end
end

if device ~= "cpu" then
    return
end

t.test("statistics_that_follow_huge_elements", function()
    local mean, var = tide.zeros(2), tide.ones(2)
    local y = F.batch_norm(tide.tensor { { 1e15, 1.0 }, { 3e15, 3 } } * 1e15, mean, var, { training = true })
    t.eq(y:tolist(), { { -1.0, -1.0 }, { 1.0, 1.0 } })
    t.close(mean[2]:item() / 2e14, 1, 1e-6)
    t.eq(var[1]:item(), math.huge) -- which is what it is
end)

-- A huge row beside small ones: each pair keeps its own digits (by float64's root of the sum of squares).
t.test("distances_of_rows_of_unlike_size", function()
    local x = tide.tensor { { 1e25, 0 }, { 1, 0 }, { 0, 2 } }
    local d = tide.cdist(x:repeat_interleave(10, 1), x)
    t.is_true(tide.allclose(d[21], tide.tensor { 1e25, 5 ^ 0.5, 0 }))
    t.is_true(tide.allclose(d[1], tide.tensor { 0, 1e25, 1e25 }))
end)

-- mpmath: x / (2 + 0.5 / 3 * (sum of three squares)) ^ 0.75 with elements that differ by 1e20 and more.
t.test("local_response_norm_of_unlike_sizes", function()
    local function row(dtype, ...)
        local x = tide.tensor({ ... }, { dtype = dtype }):reshape(1, -1, 1)
        return F.local_response_norm(x, 3, { alpha = 0.5, beta = 0.75, k = 2 }):flatten():double():tolist()
    end
    for _, case in ipairs {
        { tide.float32, { 1e25, 1, 1, 2, 1e-30 }, { 1.21230930281e-12, 1.21230930281e-37, 0.438691337651, 0.915812870009, 4.79207328185e-31 } },
        { tide.float64, { 1e200, 1, 1, 2, 1e-300 }, { 3.83365862548e-100, 3.83365862548e-300, 0.438691337651, 0.915812870009, 4.79207328185e-301 } },
    } do
        local got = row(case[1], table.unpack(case[2]))
        for k, want in ipairs(case[3]) do
            t.is_true(math.abs(got[k] - want) <= 1e-6 * math.abs(want), ("%d: %g, not %g"):format(k, got[k], want))
        end
    end
end)

-- PyTorch 2: p = inf is the largest magnitude, -inf the smallest; a window with NaN is NaN and its gradient passes.
t.test("lp_pool_of_windows_with_nan_and_of_infinite_p", function()
    local nan, inf = 0 / 0, math.huge
    local function same(got, want)
        t.is_true(tide.allclose(got, tide.tensor { { want } }, { equal_nan = true, rtol = 1e-5 }), tostring(got))
    end
    for _, case in ipairs {
        { 1, { nan, 7.0, 0.0 }, { 0.0, 0.0, 1.0, 1.0, 0.0, 0.0 } },
        { 2, { nan, 5.0, 0.0 }, { nan, nan, 0.6, 0.8, 0.0, 0.0 } },
        { 3, { nan, 4.4979415, 0.0 }, { nan, nan, 0.4448513, 0.7908468, 0.0, 0.0 } },
        { 0.5, { nan, 13.9282036, 0.0 }, { nan, nan, 2.1547005, 1.8660254, nan, nan } },
        { inf, { nan, 4.0, 0.0 }, { 0.0, 0.0, 0.0, 1.0, 0.0, 0.0 } },
        { -inf, { nan, 3.0, 0.0 }, { 0.0, 0.0, 1.0, 0.0, 0.0, 0.0 } },
    } do
        local x = tide.tensor { { { 1, nan, 3, 4, 0, 0 } } }:requires_grad_(true)
        local y = F.lp_pool1d(x, case[1], 2)
        y:sum():backward()
        same(y, case[2])
        same(x.grad, case[3])
    end
    t.error_has(function() return F.lp_pool1d(tide.ones(1, 1, 4), 0, 2) end, "norm_type must not be 0")
end)

t.test("ends_stay_what_they_are", function()
    local inf, nan = math.huge, 0 / 0
    local function is_nan(x) return tide.isnan(x):all():item() end
    t.is_true(is_nan(tide.tensor { inf, 1 }:std()))
    t.is_true(is_nan(tide.tensor { nan, 1 }:std()))
    t.eq(tide.tensor { inf, 1 }:norm(3):item(), inf)
    t.is_true(is_nan(tide.tensor { nan, 1 }:norm(3)))
    t.eq(tide.tensor { 0.0, 0 }:std():item(), 0.0)
    t.eq(tide.tensor { 0.0, 0 }:norm(3):item(), 0.0)
    t.eq(tide.tensor { 0.0, 2 }:norm(-3):item(), 0.0)
    t.eq(tide.tensor { 1e30, 1e30 }:std():item(), 0.0)
    t.eq(tide.tensor { 1e20, -1e20 }:var():item(), inf) -- which is what it is
    t.is_true(is_nan(F.layer_norm(tide.tensor { inf, 1 }, { 2 })))
    t.eq(F.layer_norm(tide.zeros(3), { 3 }):tolist(), { 0.0, 0.0, 0.0 })
    t.eq(F.rms_norm(tide.zeros(3), { 3 }):tolist(), { 0.0, 0.0, 0.0 })
end)

-- Nothing goes through a length that is 0, whichever gradient it is.
t.test("gradients_through_a_length_of_0_are_0", function()
    for name, f in pairs {
        norm = function(x) return x:norm() end, norm_of_rows = function(x) return x:norm(2, 2) end,
        std = function(x) return (x + 3):std() end, std_of_rows = function(x) return (x + 3):std(2) end,
        hypot = function(x) return tide.hypot(x, x * 2) end, atan2 = function(x) return tide.atan2(x, x * 2) end,
    } do
        local x = tide.zeros(2, 3):requires_grad_()
        local y = f(x)
        local g = tide.autograd.grad({ y }, { x }, { grad_outputs = { ramp(y) + 1 }, create_graph = true })[1]
        t.eq({ g:abs():max():item(), tide.autograd.grad({ g }, { x }, { grad_outputs = { ramp(x) + 1 } })[1]:abs():max():item() }, { 0.0, 0.0 }, name)
    end
end)
