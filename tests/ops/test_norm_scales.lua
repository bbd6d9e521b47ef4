-- test_norm_scales.lua: every normalisation, in training and by given statistics, of elements as large and as small as its
-- dtype has them: results and first gradients against the definition in float64, which is worked out on the elements over
-- their scale, so that no square leaves it.
local t = require "harness"

local F = tide.nn.functional
local device = RANGES_DEVICE or "cpu"
local EPS = { float64 = 2 ^ -46, float32 = 2 ^ -18, bfloat16 = 2 ^ -6, float16 = 2 ^ -8 }
local LEAST = { float64 = 2 ^ -1074, float32 = 2 ^ -149, bfloat16 = 2 ^ -133, float16 = 2 ^ -24 }
local EXPONENTS = {
    float64 = { 0, 30, -30, 100, -100, 800, -800, 1000, -1000 },
    float32 = { 0, 30, -30, 100, -100, 120, -115 },
    bfloat16 = { 0, 30, -30, 100, -100, 120, -115 },
    float16 = { 0, 4, -4, 12, -8 },
}
local N, C = 3, 4

-- hypot without squares that leave float64.
local function hypot(a, b)
    local most, least = math.max(a, b), math.min(a, b)
    return most == 0 and 0 or most * math.sqrt(1 + (least / most) ^ 2)
end

-- set(n, c) names what is normalised together, weight(c, l, L) the weight; none of given statistics.
local norms = {
    layer_norm = { set = function(n) return n end, weight = function(c, l, L) return (c - 1) * L + l end,
        call = function(x, w, b, eps) return F.layer_norm(x, { C, x:size(3) }, w:reshape(C, -1), b:reshape(C, -1), eps) end },
    rms_norm = { set = function(n) return n end, weight = function(c, l, L) return (c - 1) * L + l end, plain = true,
        call = function(x, w, _, eps) return F.rms_norm(x, { C, x:size(3) }, w:reshape(C, -1), eps) end },
    group_norm = { set = function(n, c) return n * C + (c + 1) // 2 end,
        call = function(x, w, b, eps) return F.group_norm(x, 2, w, b, eps) end },
    instance_norm = { set = function(n, c) return n * C + c end,
        call = function(x, w, b, eps) return F.instance_norm(x, nil, nil, w, b, { eps = eps }) end },
    batch_norm = { set = function(_, c) return c end,
        call = function(x, w, b, eps) return F.batch_norm(x, nil, nil, w, b, { training = true, eps = eps }) end },
    batch_norm_of_channels_last = { set = function(_, c) return c end,
        call = function(x, w, b, eps)
            local last = x:unsqueeze(3):contiguous { memory_format = tide.channels_last }
            return F.batch_norm(last, nil, nil, w, b, { training = true, eps = eps }):squeeze(3)
        end },
    batch_norm_by_given = { given = true,
        call = function(x, w, b, eps, mean, var) return F.batch_norm(x, mean, var, w, b, { eps = eps }) end },
    instance_norm_by_given = { given = true,
        call = function(x, w, b, eps, mean, var)
            return F.instance_norm(x, mean, var, w, b, { use_input_stats = false, eps = eps })
        end },
}

local function each(L, f)
    for n = 1, N do
        for c = 1, C do
            for l = 1, L do f(n, c, l) end
        end
    end
end

-- What a norm and its gradients are: x over s, factors and g as lists.
local function define(norm, L, s, eps, x, w, b, g, mean, var)
    local sets, y, dx, dw, db = {}, {}, {}, {}, {}
    local function at(n, c, l) return ((n - 1) * C + c - 1) * L + l end
    local function of(n, c) return norm.given and c or norm.set(n, c) end
    local function weight(c, l) return norm.weight and norm.weight(c, l, L) or c end
    local function sum(name, value)
        each(L, function(n, c, l)
            local set = sets[of(n, c)] or { count = 0 }
            sets[of(n, c)] = set
            set[name] = (set[name] or 0) + value(at(n, c, l), set, weight(c, l))
        end)
    end
    sum("count", function() return 1 end)
    sum("sum", function(i) return norm.plain and 0 or x[i] end)
    for c, set in pairs(sets) do
        set.mean = norm.given and mean[c] / s or set.sum / set.count
    end
    sum("squares", function(i, set) return (x[i] - set.mean) ^ 2 end)
    for c, set in pairs(sets) do
        set.long = hypot(norm.given and math.sqrt(var[c]) or math.sqrt(set.squares / set.count) * s, math.sqrt(eps))
    end
    local function normal(i, set) return (x[i] - set.mean) * s / set.long end
    sum("g", function(i, _, k) return g[i] * w[k] end)
    sum("along", function(i, set, k) return g[i] * w[k] * normal(i, set) end)
    each(L, function(n, c, l)
        local i, set, k = at(n, c, l), sets[of(n, c)], weight(c, l)
        y[i] = normal(i, set) * w[k] + (norm.plain and 0 or b[k])
        local own = norm.given and 0 or ((norm.plain and 0 or set.g) + normal(i, set) * set.along) / set.count
        dx[i] = (g[i] * w[k] - own) / set.long
        dw[k] = (dw[k] or 0) + g[i] * normal(i, set)
        db[k] = (db[k] or 0) + g[i]
    end)
    return { y = y, x = dx, weight = dw, bias = not norm.plain and db or nil }
end

local function ramp(n, by, less) return (tide.arange(1, n + 1):double() * by % 7 - less):tolist() end

for name, norm in pairs(norms) do
    for dtype, exponents in pairs(EXPONENTS) do
        t.test(("%s_in_%s"):format(name, dtype), function()
            for _, case in ipairs { { 5, 1e-5 }, { 5, 0 }, { 70, 1e-5 } } do
                local L, eps = case[1], case[2]
                local weights = norm.weight and C * L or C
                local wide = dtype:find("16") and tide.float32 or tide[dtype]
                local function leaf(list, as) return tide.tensor(list, { dtype = as, device = device }):requires_grad_() end
                for _, exponent in ipairs(exponents) do
                    local s = 2.0 ^ exponent
                    local x, g = ramp(N * C * L, 3.3, 2.5), ramp(N * C * L, 2.2, 2)
                    local t_x = tide.tensor(x, { dtype = tide[dtype], device = device }):reshape(N, C, L):mul(s):requires_grad_()
                    x = t_x:detach():cpu():double():div(s):flatten():tolist()
                    local t_g = tide.tensor(g, { dtype = tide[dtype], device = device }):reshape(N, C, L)
                    g = t_g:cpu():double():flatten():tolist()
                    local w, b = ramp(weights, 1.5, 3), ramp(weights, 2, 1.5)
                    local t_w, t_b = leaf(w, wide), leaf(b, wide)
                    -- Running statistics of such elements, whose variances the dtype holds.
                    local most = math.min(math.max(exponent * 2, dtype == "float64" and -1000 or -110), dtype == "float64" and 1000 or 110)
                    local mean, var = { s, 2 * s, -s, 0.0 }, {}
                    for c = 1, C do var[c] = c * 2.0 ^ most end
                    local function list(of) return tide.tensor(of, { dtype = wide, device = device }) end
                    local y = norm.call(t_x, t_w, t_b, eps, list(mean), list(var))
                    local wanted = define(norm, L, s, eps, x, w, b, g, mean, var)
                    local inputs = { t_x, t_w, not norm.plain and t_b or nil }
                    local got = tide.autograd.grad({ y }, inputs, { grad_outputs = { t_g } })
                    got = { y = y, x = got[1], weight = got[2], bias = got[3] }
                    for what, want in pairs(wanted) do
                        want = tide.tensor(want, { dtype = tide.float64 })
                        local is = got[what]:detach():cpu():double():flatten()
                        local size = want:abs():max():item()
                        -- Squares that are 0 or inf in every dtype are no matter: what does not fit is no digit lost.
                        local room = LEAST[what == "y" and dtype or what == "x" and dtype or tostring(wide):match("%w+$")]
                        local off = (is - want):abs():max():item()
                        t.is_true(off <= EPS[dtype] * size + room,
                            ("%s of elements by 2^%d, eps %g, %d of a channel: off by %g of %g"):format(what, exponent, eps, L, off, size))
                    end
                end
            end
        end)
    end
end
