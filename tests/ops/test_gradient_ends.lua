-- test_gradient_ends.lua: derivatives where formulas fail: at 0 and beside it, at kinks, far out, at infinity, in all
-- float dtypes, against numbers of 420 digits (tests/golden/ends/generate.py).
local t = require "harness"
local json = require "json"

local FLOATS = { "float64", "float32", "float16", "bfloat16" }
local EPS = { float64 = 2 ^ -52, float32 = 2 ^ -23, float16 = 2 ^ -10, bfloat16 = 2 ^ -7 }
local MOST = { float64 = 1.7976931348623157e308, float32 = 2 ^ 127, float16 = 65504, bfloat16 = 2 ^ 127 }
local LEAST = { float64 = 2 ^ -1022, float32 = 2 ^ -126, float16 = 2 ^ -14, bfloat16 = 2 ^ -126 }

-- Gradients that are made of the result: what that has lost of the way to its limit is lost, in units of the last place
-- of 1.
local of_the_result = { tanh = true, sigmoid = true, expm1 = true, mish = true, silu = true, gelu = true }
-- Results that are large beside what is asked, or cancel: so many times the rounding of the argument.
local conditioned = {
    erfinv = 64, ["special.ndtri"] = 64, ["special.log_ndtr"] = 4096, ["special.erfcx"] = 2048, ["special.i0e"] = 512,
    ["special.i1e"] = 1024, lgamma = 64, digamma = 64, logit = 16, sinc = 64, ["special.gammainc"] = 2048, tan = 64, exp = 32,
    exp2 = 32, sinh = 32, cosh = 32, ["special.ndtr"] = 64, erf = 64, erfc = 64, pow = 64, i0 = 64, ["special.i1"] = 64,
    ["special.entr"] = 64, gelu = 64, atan2 = 8, hypot = 8,
}

local function read(name)
    local list = {}
    for line in io.lines((debug.getinfo(1, "S").source:match("^@(.*)ops/") or "./") .. "golden/ends/" .. name) do
        list[#list + 1] = json.read(line)
    end
    return list
end

local function number(v) return v == "inf" and math.huge or v == "-inf" and -math.huge or v end

local function find(name)
    local short = name:match("^special%.(.*)")
    return short and tide.special[short] or tide[name]
end

-- Does a dtype hold the number, with room for what is worked out of it?
local function held(dtype, x)
    local there = tide.tensor({ x }, { dtype = tide.float64 }):to(tide[dtype]):double():item()
    return there == x and (x == 0 or math.abs(x) >= LEAST[dtype])
end

local function near(got, want, dtype, factor, absolute)
    local eps = EPS[dtype]
    if got == want then
        return true
    elseif math.abs(want) >= MOST[dtype] * (1 - 8 * eps) then -- rounded to infinity
        return math.abs(got) >= MOST[dtype] * (1 - 8 * eps) and (got > 0) == (want > 0)
    end
    return math.abs(got - want) <= (factor or 4) * eps * math.abs(want) + LEAST[dtype] + (absolute or 0) * eps
end

local function check(name, what, dtype, at, got, want, absolute)
    if not near(got, want, dtype, 4 + (conditioned[name] or 4), absolute) then
        error(("%s at %s in %s: got %.17g, expected %.17g"):format(what, at, dtype, got, want), 0)
    end
end

local function check_unary(entry, dtype)
    local fn, xs, firsts, seconds = find(entry.op), {}, {}, {}
    for _, point in ipairs(entry.at) do
        if held(dtype, point[1]) then
            xs[#xs + 1], firsts[#xs + 1], seconds[#xs + 1] = point[1], number(point[2]), number(point[3])
        end
    end
    local x = tide.tensor(xs, { dtype = tide[dtype], requires_grad = true })
    local again = EPS[dtype] < 2 ^ -20 -- 16 bits are rounded in between
    local y = fn(x)
    local slope = tide.autograd.grad(y:sum(), { x }, { create_graph = again })[1]
    local list = slope:detach():double():tolist()
    for k, want in ipairs(firsts) do
        local there = math.abs(y[k]:double():item()) < math.huge -- in the narrow range of float16
        local _ = there and check(entry.op, "the gradient", dtype, xs[k], list[k], want, of_the_result[entry.op] and 8 or nil)
    end
    if not slope.requires_grad then
        return
    end
    list = tide.autograd.grad(slope:sum(), { x })[1]:double():tolist()
    for k, want in ipairs(seconds) do
        -- a second derivative is as exact as the first one's terms
        local got, eps = list[k], EPS[dtype]
        local size = math.max(math.abs(want), math.abs(firsts[k]), math.abs(firsts[k] / (xs[k] == 0 and 1 or xs[k])))
        local fine = got == want or math.abs(want) >= MOST[dtype] / 2 and math.abs(got) >= MOST[dtype] / 2
            or size >= MOST[dtype] / 4 or math.abs(got - want) <= 32 * (conditioned[entry.op] or 4) * eps * size
                + LEAST[dtype] / eps + (of_the_result[entry.op] and 32 * eps or 0)
        if not fine then
            error(("the second derivative at %s in %s: got %.17g, expected %.17g"):format(xs[k], dtype, got, want), 0)
        end
    end
end

local function check_pairs(entry, dtype)
    local fn, as, bs, pairs_ = find(entry.op), {}, {}, {}
    for _, p in ipairs(entry.pairs) do
        if held(dtype, p[1]) and held(dtype, p[2]) then
            as[#as + 1], bs[#bs + 1], pairs_[#pairs_ + 1] = p[1], p[2], p
        end
    end
    local a = tide.tensor(as, { dtype = tide[dtype], requires_grad = true })
    local b = tide.tensor(bs, { dtype = tide[dtype], requires_grad = true })
    fn(a, b):sum():backward()
    for k, p in ipairs(pairs_) do
        for which, x in ipairs { a, b } do
            local want = p[2 + which]
            if want ~= json.null then
                check(entry.op, "the gradient by operand " .. which, dtype, ("(%s, %s)"):format(p[1], p[2]),
                    x.grad[k]:double():item(), number(want))
            end
        end
    end
end

for _, entry in ipairs(read("gradients.jsonl")) do
    local name = entry.op:gsub("%.", "_")
    for _, dtype in ipairs(FLOATS) do
        if entry.pairs then
            t.test(("%s_in_%s"):format(name, dtype), function() check_pairs(entry, dtype) end)
        else
            t.test(("%s_in_%s"):format(name, dtype), function() check_unary(entry, dtype) end)
        end
    end
    if entry.ends and #entry.ends > 0 then
        t.test(name .. "_at_infinity", function()
            for _, e in ipairs(entry.ends) do
                for _, dtype in ipairs(FLOATS) do
                    local x = tide.tensor({ number(e[1]) }, { dtype = tide[dtype], requires_grad = true })
                    find(entry.op)(x):sum():backward()
                    check(entry.op, "the gradient", dtype, e[1], x.grad:double():item(), e[2])
                end
            end
        end)
    end
end

-- What has a corner there takes a side or the mean; NaN hands on what comes in.
local corners = {
    { "abs", 0, 0 }, { "relu", 0, 0 }, { "relu", 0 / 0, 1 }, { "relu6", 0, 0 }, { "relu6", 6, 0 }, { "relu6", 0 / 0, 1 },
    { "elu", 0, 1 }, { "elu", 0 / 0, 1 }, { "selu", 0 / 0, 1.0507009873554805 }, { "celu", 0 / 0, 1 }, { "softshrink", 0.5, 0 },
    { "softshrink", 0 / 0, 1 }, { "hardshrink", 0.5, 0 }, { "hardshrink", 0 / 0, 1 }, { "hardtanh", 1, 0 },
    { "hardtanh", 0 / 0, 1 }, { "hardswish", -3, 0 }, { "hardswish", 0 / 0, 1 }, { "hardsigmoid", 3, 0 },
    { "leaky_relu", 0, 0.01 }, { "sign", 0, 0 }, { "sqrt", 0, math.huge }, { "rsqrt", 0, -math.huge }, { "log", 0, math.huge },
}
t.test("corners", function()
    for _, c in ipairs(corners) do
        for _, dtype in ipairs(FLOATS) do
            local x = tide.tensor({ c[2] }, { dtype = tide[dtype], requires_grad = true })
            tide[c[1]](x):sum():backward()
            check(c[1], c[1], dtype, tostring(c[2]), x.grad:double():item(), c[3])
        end
    end
end)

t.test("at_the_origin_and_between_infinities", function()
    local inf = math.huge
    for _, c in ipairs { { "atan2", 0, 0, 0, 0 }, { "hypot", 0, 0, 0, 0 }, { "xlogy", 0, 0, 0, 0 }, { "logaddexp", -inf, -inf, 0.5, 0.5 },
        { "logaddexp", inf, inf, 0.5, 0.5 }, { "logaddexp2", -inf, -inf, 0.5, 0.5 }, { "logaddexp", 0, inf, 0, 1 },
        { "maximum", 0 / 0, 1, 1, 1 }, { "minimum", 1, 0 / 0, 1, 1 }, { "maximum", 2, 2, 0.5, 0.5 }, { "copysign", -inf, 2, -1, 0 },
        { "pow", 0, 0, 0, 0 }, { "pow", inf, -1, 0, 0 } } do
        local a = tide.tensor({ c[2] }, { dtype = tide.float64, requires_grad = true })
        local b = tide.tensor({ c[3] }, { dtype = tide.float64, requires_grad = true })
        tide[c[1]](a, b):sum():backward()
        t.eq(a.grad:item() + 0.0, c[4] + 0.0, c[1] .. " by the first")
        t.eq(b.grad:item() + 0.0, c[5] + 0.0, c[1] .. " by the second")
    end
end)

t.test("norms_of_large_and_small_elements", function()
    for _, scale in ipairs { 2 ^ 100, 2 ^ -100 } do
        for _, p in ipairs { 1.5, 2, 3, 5 } do
            local x = tide.tensor({ 3 * scale, -4 * scale, 0 }, { requires_grad = true })
            x:norm(p):backward()
            local y = tide.tensor({ 3, -4, 0 }, { dtype = tide.float64, requires_grad = true })
            y:norm(p):backward()
            for k = 1, 3 do
                t.close(x.grad[k]:item(), y.grad[k]:item(), 1e-6, ("norm %g of elements of %g"):format(p, scale))
            end
        end
    end
end)

t.test("second_derivatives_of_det_need_no_inverse", function()
    local function hessian_product(values, direction)
        local A = tide.tensor(values, { dtype = tide.float64, requires_grad = true })
        local g = tide.autograd.grad(A:det(), { A }, { create_graph = true })[1]
        return tide.autograd.grad((g * tide.tensor(direction, { dtype = tide.float64 })):sum(), { A })[1]
    end
    local h = hessian_product({ { 1, 2 }, { 2, 4 } }, { { 1, 2 }, { 3, 5 } })
    for k, want in ipairs { 5, -3, -2, 1 } do
        t.close(h:flatten()[k]:item(), want, 1e-12)
    end
    -- rank 1 and 0 of three rows: by differences of the first gradient, which is exact there
    local D = { { 1, -2, 3 }, { 0, 4, 1 }, { 2, 2, -1 } }
    for _, values in ipairs { { { 1, 2, 3 }, { 2, 4, 6 }, { 3, 6, 9 } }, { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
        { { 2, 0, 1 }, { 1, 3, 0 }, { 0, 1, 1 } } } do
        local h3 = hessian_product(values, D)
        local function gradient(sign)
            local A = (tide.tensor(values, { dtype = tide.float64 }) + tide.tensor(D, { dtype = tide.float64 }) * sign * 2 ^ -10)
                :requires_grad_()
            A:det():backward()
            return A.grad
        end
        local want = (gradient(1) - gradient(-1)) * 2 ^ 9
        t.is_true((h3 - want):abs():max():item() < 1e-9, "of three rows")
    end
end)

t.test("variance_beyond_its_degrees_of_freedom_is_infinite", function()
    local x = tide.tensor({ 1.0, 2.0 }, { requires_grad = true })
    t.eq(x:var { correction = 2 }:item(), math.huge)
    t.eq(x:std { correction = 3 }:item(), math.huge)
    t.is_true(tide.isnan(tide.tensor { 1.5, 1.5 }:var { correction = 2 }):item())
    x:var { correction = 2 }:backward()
    t.eq(x.grad:tolist(), { math.huge, math.huge })
end)

t.test("extremes_share_their_gradient_among_what_is_there", function()
    for _, c in ipairs { { "amax", -math.huge }, { "amin", math.huge } } do
        local src = tide.full({ 3 }, c[2], { requires_grad = true })
        local x = tide.full({ 3 }, c[2], { requires_grad = true })
        x:scatter_reduce(1, tide.tensor { 1, 1, 2 }, src, c[1], { include_self = false }):sum():backward()
        t.eq(src.grad:tolist(), { 0.5, 0.5, 1.0 }, c[1])
        t.eq(x.grad:tolist(), { 0.0, 0.0, 1.0 }, c[1])
        src.grad, x.grad = nil, nil
        x:scatter_reduce(1, tide.tensor { 1, 1, 2 }, src, c[1]):sum():backward()
        t.eq(src.grad[3]:item(), 0.5, c[1])
    end
end)
