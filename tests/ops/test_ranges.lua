-- test_ranges.lua: operators that square, raise to powers or normalise, on elements whose squares no dtype holds: what
-- they say of s * x is what they say of x, times a power of s, since powers of two change no digit.
local t = require "harness"

local F = tide.nn.functional
local SCALES = { float32 = { 2 ^ 100, 2 ^ -100 }, bfloat16 = { 2 ^ 100, 2 ^ -100 }, float64 = { 2 ^ 800, 2 ^ -800 },
    float16 = { 2 ^ 7, 2 ^ -10 } }
local EPS = { float64 = 2 ^ -48, float32 = 2 ^ -20, float16 = 2 ^ -9, bfloat16 = 2 ^ -6 }

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
    foreach_norm = { function(x) return tide.foreach.norm({ x }, 3)[1] end, 1 },
    dist = { function(x) return tide.dist(x, -x, 3) end, 1 },
    pairwise_distance = { function(x) return F.pairwise_distance(x, -x, 2, 0) end, 1 },
    cdist = { function(x) return tide.cdist(x, -x) end, 1 },
    hypot = { function(x) return tide.hypot(x, x * 2) end, 1 },
    normalize = { function(x) return F.normalize(x, 2, 2, 0) end, 0 },
    normalize_3 = { function(x) return F.normalize(x, 3, 2, 0) end, 0 },
    cosine_similarity = { function(x) return F.cosine_similarity(x, x:flip { 2 }, 2, 0) end, 0 },
    layer_norm = { function(x) return F.layer_norm(x, { x:size(2) }, { eps = 0 }) end, 0 },
    layer_norm_long = { function(x) return F.layer_norm(x:repeat_interleave(40, 2), { 240 }, { eps = 0 }) end, 0 },
    layer_norm_with_weights = { function(x)
        local w = tide.arange(1, x:size(2) + 1):to(x.dtype)
        return F.layer_norm(x, { x:size(2) }, w, w, 0)
    end, 0 },
    corrcoef = { function(x) return tide.corrcoef(x) end, 0 },
    rms_norm = { function(x) return F.rms_norm(x, { x:size(2) }, { eps = 0 }) end, 0 },
    group_norm = { function(x) return F.group_norm(x:reshape(2, 3, 4), 3, { eps = 0 }) end, 0 },
    group_norm_of_two = { function(x) return F.group_norm(x:reshape(1, 4, 6), 2, { eps = 0 }) end, 0 },
}

local function values(dtype)
    return tide.tensor({ { 3, -1, 2, 5, -4, 1 }, { 1, 1, -2, 0, 7, 2 }, { -5, 2, 2, 1, 1, 3 }, { 4, -4, 1, 6, 2, -3 } },
        { dtype = tide.float64 }):to(dtype)
end

for name, op in pairs(operators) do
    for dtype, scales in pairs(SCALES) do
        t.test(("%s_in_%s"):format(name, dtype), function()
            local f, power = op[1], op[2]
            local plain = f(values(tide[dtype])):double()
            for _, s in ipairs(scales) do
                local got = f(values(tide[dtype]) * s):double() / s ^ power
                local off = ((got - plain):abs() / (plain:abs() + EPS[dtype])):max():item()
                t.is_true(off <= EPS[dtype], ("scaled by %g: off by %g"):format(s, off))
            end
        end)
    end
end

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
