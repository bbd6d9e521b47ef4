-- onnx/export_elements.lua: operators of elements, as nodes of ONNX: writer(call, w), by Tide's name. call has the arguments, w writes nodes
-- (onnx/export.lua).
local tide = ...
local tensors = tide._require "onnx.tensors"
local wrong = tensors.wrong
local elements = {}

-- ---- one tensor ----

-- The argument x as the dtype of the result: integers become floats where the operator says so.
local function promoted(call) return call:operand("x", call:result_dtype()) end

for name, op in pairs { abs = "Abs", acos = "Acos", acosh = "Acosh", asin = "Asin", asinh = "Asinh", atan = "Atan", atanh = "Atanh", ceil = "Ceil",
    cos = "Cos", cosh = "Cosh", erf = "Erf", exp = "Exp", floor = "Floor", log = "Log", neg = "Neg", negative = "Neg", reciprocal = "Reciprocal",
    relu = "Relu", round = "Round", sigmoid = "Sigmoid", sign = "Sign", sgn = "Sign", sin = "Sin", sinh = "Sinh", softsign = "Softsign",
    sqrt = "Sqrt", tan = "Tan", tanh = "Tanh", hardswish = "HardSwish", mish = "Mish" } do
    elements[name] = function(call, w) return w:node(op, { promoted(call) }) end
end

for _, name in ipairs { "clone", "contiguous", "detach", "alias", "positive" } do
    elements[name] = function(call) return call:tensor(call.node.params[1].name) end
end

-- From indices that count from 1 to those of ONNX, which count from 0; those from the end stay.
elements.from_one_based = function(call, w)
    local x = call:operand(call.node.params[1].name, "int64")
    local above = w:node("Greater", { x, w:number(0, "int64") })
    return w:node("Sub", { x, w:cast(above, "bool", "int64") })
end

-- Floats without their fractions.
local function toward_zero(w, x) return w:node("Mul", { w:node("Sign", { x }), w:node("Floor", { w:node("Abs", { x }) }) }) end

-- What integers are already.
for _, name in ipairs { "ceil", "floor", "round", "trunc" } do
    local of_floats = elements[name]
    elements[name] = function(call, w)
        if not string.find(call:result_dtype(), "float") then
            return call:tensor("x")
        elseif name == "round" and call:get("decimals", 0) ~= 0 then
            wrong("round to %d decimals", call:get("decimals"))
        elseif name == "trunc" then
            return toward_zero(w, call:tensor("x"))
        end
        return of_floats(call, w)
    end
end

--- Those made of others. formula(w, x, number): number(v) is one of the result's dtype.
for name, formula in pairs {
    square = function(w, x) return w:node("Mul", { x, x }) end,
    rsqrt = function(w, x) return w:node("Reciprocal", { w:node("Sqrt", { x }) }) end,
    log1p = function(w, x, number) return w:node("Log", { w:node("Add", { x, number(1) }) }) end,
    expm1 = function(w, x, number) return w:node("Sub", { w:node("Exp", { x }), number(1) }) end,
    log2 = function(w, x, number) return w:node("Mul", { w:node("Log", { x }), number(1 / math.log(2)) }) end,
    log10 = function(w, x, number) return w:node("Mul", { w:node("Log", { x }), number(1 / math.log(10)) }) end,
    exp2 = function(w, x, number) return w:node("Exp", { w:node("Mul", { x, number(math.log(2)) }) }) end,
    erfc = function(w, x, number) return w:node("Sub", { number(1), w:node("Erf", { x }) }) end,
    silu = function(w, x) return w:node("Mul", { x, w:node("Sigmoid", { x }) }) end,
    relu6 = function(w, x, number) return w:node("Clip", { x, number(0), number(6) }) end,
    hardsigmoid = function(w, x) return w:node("HardSigmoid", { x }, { alpha = 1 / 6, beta = 0.5 }) end,
    logsigmoid = function(w, x, number) return w:node("Sub", { w:node("Min", { x, number(0) }),
        w:node("Log", { w:node("Add", { w:node("Exp", { w:node("Neg", { w:node("Abs", { x }) }) }), number(1) }) }) }) end,
    tanhshrink = function(w, x) return w:node("Sub", { x, w:node("Tanh", { x }) }) end,
    frac = function(w, x) return w:node("Sub", { x, toward_zero(w, x) }) end,
    deg2rad = function(w, x, number) return w:node("Mul", { x, number(math.pi / 180) }) end,
    rad2deg = function(w, x, number) return w:node("Mul", { x, number(180 / math.pi) }) end,
} do
    elements[name] = function(call, w)
        return formula(w, promoted(call), function(value) return w:number(value, call:result_dtype()) end)
    end
end

elements.selu = function(call, w) return w:node("Selu", { promoted(call) }) end
elements.elu = function(call, w) return w:node("Elu", { promoted(call) }, { alpha = call:get("alpha", 1) + 0.0 }) end
elements.celu = function(call, w) return w:node("Celu", { promoted(call) }, { alpha = call:get("alpha", 1) + 0.0 }) end
elements.leaky_relu = function(call, w)
    return w:node("LeakyRelu", { promoted(call) }, { alpha = call:get("negative_slope", 0.01) + 0.0 })
end
elements.hardtanh = function(call, w)
    local dtype = call:result_dtype()
    return w:node("Clip", { promoted(call), w:number(call:get("min_val", -1), dtype), w:number(call:get("max_val", 1), dtype) })
end
elements.softplus = function(call, w)
    local dtype, x, beta = call:result_dtype(), promoted(call), call:get("beta", 1)
    local scaled = w:node("Mul", { x, w:number(beta, dtype) })
    local soft = w:node("Div", { w:node("Softplus", { scaled }), w:number(beta, dtype) })
    return w:node("Where", { w:node("Greater", { scaled, w:number(call:get("threshold", 20), dtype) }), x, soft })
end
elements.threshold = function(call, w)
    local dtype, x = call:result_dtype(), promoted(call)
    return w:node("Where", { w:node("Greater", { x, w:number(call:get("threshold"), dtype) }), x, w:number(call:get("value"), dtype) })
end
elements.hardshrink = function(call, w)
    local dtype, x = call:result_dtype(), promoted(call)
    return w:node("Where", { w:node("Greater", { w:node("Abs", { x }), w:number(call:get("lambd", 0.5), dtype) }), x, w:number(0, dtype) })
end
elements.logit = function(call, w)
    local dtype, x, eps = call:result_dtype(), promoted(call), call:get("eps")
    if eps then
        x = w:node("Clip", { x, w:number(eps, dtype), w:number(1 - eps, dtype) })
    end
    return w:node("Log", { w:node("Div", { x, w:node("Sub", { w:number(1, dtype), x }) }) })
end

elements.gelu = function(call, w)
    local dtype, x = call:result_dtype(), promoted(call)
    local function number(value) return w:number(value, dtype) end
    local inner
    if call:get("approximate", "none") == "tanh" then
        local cube = w:node("Mul", { w:node("Mul", { x, x }), x })
        local sum = w:node("Add", { x, w:node("Mul", { cube, number(0.044715) }) })
        inner = w:node("Tanh", { w:node("Mul", { sum, number(math.sqrt(2 / math.pi)) }) })
    else
        inner = w:node("Erf", { w:node("Mul", { x, number(math.sqrt(0.5)) }) })
    end
    return w:node("Mul", { w:node("Mul", { x, number(0.5) }), w:node("Add", { inner, number(1) }) })
end

elements.prelu = function(call, w)
    local rank, weight = #call:sizes("x"), call:tensor("weight")
    if #call:sizes("weight") == 1 and rank > 2 then -- along the channels
        local sizes = { -1 }
        for d = 2, rank - 1 do
            sizes[d] = 1
        end
        weight = w:node("Reshape", { weight, w:ints(sizes) })
    end
    return w:node("PRelu", { call:tensor("x"), weight })
end

elements.isnan = function(call, w)
    return w:node("IsNaN", { w:cast(call:tensor("x"), call:dtype("x"), string.find(call:dtype("x"), "float") and call:dtype("x") or "float32") })
end
elements.isinf = function(call, w)
    local dtype = call:dtype("x")
    return w:node("IsInf", { w:cast(call:tensor("x"), dtype, dtype == "float64" and dtype or "float32") })
end
elements.isfinite = function(call, w)
    return w:node("Not", { w:node("Or", { elements.isnan(call, w), elements.isinf(call, w) }) })
end

-- ---- two tensors, or a tensor and a number ----

-- The dtype in which a and b meet.
local function common_dtype(call)
    local a, b = call:type("a"), call:type("b")
    local dtype_a, dtype_b = call:dtype("a"), call:dtype("b")
    if a.number and b.number then
        return (dtype_a == "float64" or dtype_b == "float64") and "float64" or dtype_a
    elseif a.number or b.number then
        local tensor, number = a.number and dtype_b or dtype_a, a.number and dtype_a or dtype_b
        if string.find(tensor, "float") or number == "bool" or tensor ~= "bool" and number == "int64" then
            return tensor
        end
        return number == "float64" and "float32" or number
    end
    local x, y = tide.zeros(#(a.sizes or {}) > 0 and 1 or {}, { dtype = tide[dtype_a] }), tide.zeros(#(b.sizes or {}) > 0 and 1 or {}, { dtype = tide[dtype_b] })
    return tensors.dtype_of(x:mul(y))
end

-- Both, in the dtype of the result, or in that in which they meet.
local function pair(call, dtype) return { call:operand("a", dtype), call:operand("b", dtype) } end

for name, op in pairs { mul = "Mul", pow = "Pow" } do
    elements[name] = function(call, w)
        local dtype = call:result_dtype()
        if dtype == "bool" then
            return w:node("And", pair(call, dtype))
        end
        return w:node(op, pair(call, dtype))
    end
end

for name, op in pairs { add = "Add", sub = "Sub" } do
    elements[name] = function(call, w)
        local dtype, alpha = call:result_dtype(), call:get("alpha", 1)
        local both = pair(call, dtype)
        if dtype == "bool" then
            return w:node("Or", both)
        elseif alpha ~= 1 then
            both[2] = w:node("Mul", { both[2], w:number(alpha, dtype) })
        end
        return w:node(op, both)
    end
end
elements.rsub = function(call, w)
    local both = pair(call, call:result_dtype())
    return w:node("Sub", { both[2], both[1] })
end

-- a / b rounded down, of floats and of integers, whose division of ONNX rounds towards 0.
local function floor_divide(w, both, dtype)
    local quotient = w:node("Div", both)
    if string.find(dtype, "float") then
        return w:node("Floor", { quotient })
    end
    local zero, rest = w:number(0, dtype), w:node("Sub", { both[1], w:node("Mul", { quotient, both[2] }) })
    local other = w:node("Xor", { w:node("Less", { both[1], zero }), w:node("Less", { both[2], zero }) })
    local off = w:node("And", { other, w:node("Not", { w:node("Equal", { rest, zero }) }) })
    return w:node("Sub", { quotient, w:node("Cast", { off }, { to = tensors.dtype_number(dtype) }) })
end

elements.div = function(call, w)
    local mode, dtype = call:get("rounding_mode"), call:result_dtype()
    local both = pair(call, dtype)
    if mode == "floor" then
        return floor_divide(w, both, dtype)
    elseif mode == "trunc" and string.find(dtype, "float") then
        return toward_zero(w, w:node("Div", both))
    end
    return w:node("Div", both)
end
for _, name in ipairs { "floordiv", "floor_divide" } do
    elements[name] = function(call, w) return floor_divide(w, pair(call, call:result_dtype()), call:result_dtype()) end
end
elements.trunc_divide = function(call, w) return w:node("Div", pair(call, call:result_dtype())) end
elements.remainder = function(call, w)
    local dtype = call:result_dtype()
    local both = pair(call, dtype)
    if string.find(dtype, "float") then
        return w:node("Sub", { both[1], w:node("Mul", { w:node("Floor", { w:node("Div", both) }), both[2] }) })
    end
    return w:node("Mod", both)
end
elements.fmod = function(call, w) return w:node("Mod", pair(call, call:result_dtype()), { fmod = 1 }) end

for name, op in pairs { maximum = "Max", minimum = "Min" } do
    elements[name] = function(call, w) return w:node(op, pair(call, call:result_dtype())) end
end

for name, op in pairs { eq = "Equal", lt = "Less", le = "LessOrEqual", gt = "Greater", ge = "GreaterOrEqual" } do
    elements[name] = function(call, w)
        local dtype = common_dtype(call)
        return w:node(op, pair(call, dtype == "bool" and name ~= "eq" and "int32" or dtype))
    end
end
elements.ne = function(call, w) return w:node("Not", { elements.eq(call, w) }) end

for name, op in pairs { logical_and = "And", logical_or = "Or", logical_xor = "Xor" } do
    elements[name] = function(call, w) return w:node(op, pair(call, "bool")) end
end
elements.logical_not = function(call, w) return w:node("Not", { call:operand("x", "bool") }) end

for name, ops in pairs { bitwise_and = { "And", "BitwiseAnd" }, bitwise_or = { "Or", "BitwiseOr" }, bitwise_xor = { "Xor", "BitwiseXor" } } do
    elements[name] = function(call, w)
        local dtype = call:result_dtype()
        return w:node(dtype == "bool" and ops[1] or ops[2], pair(call, dtype))
    end
end
elements.bitwise_not = function(call, w) return w:node(call:dtype("x") == "bool" and "Not" or "BitwiseNot", { call:tensor("x") }) end

-- ---- three ----

elements.clamp = function(call, w)
    local x, dtype = promoted(call), call:result_dtype()
    for _, bound in ipairs { { "min", "Max" }, { "max", "Min" } } do
        x = call:has(bound[1]) and w:node(bound[2], { x, call:operand(bound[1], dtype) }) or x
    end
    return x
end
elements.clamp_min = function(call, w) return w:node("Max", { promoted(call), call:operand("min", call:result_dtype()) }) end
elements.clamp_max = function(call, w) return w:node("Min", { promoted(call), call:operand("max", call:result_dtype()) }) end

elements.where = function(call, w)
    local both = pair(call, call:result_dtype())
    return w:node("Where", { call:operand("condition", "bool"), both[1], both[2] })
end
elements.masked_fill = function(call, w)
    return w:node("Where", { call:operand("mask", "bool"), call:operand("value", call:result_dtype()), call:tensor("x") })
end
elements.lerp = function(call, w)
    local dtype, x = call:result_dtype(), promoted(call)
    local way = w:node("Sub", { call:operand("target", dtype), x })
    return w:node("Add", { x, w:node("Mul", { way, call:operand("weight", dtype) }) })
end
for name, op in pairs { addcmul = "Mul", addcdiv = "Div" } do
    elements[name] = function(call, w)
        local dtype = call:result_dtype()
        local part = w:node(op, pair(call, dtype))
        return w:node("Add", { promoted(call), w:node("Mul", { part, w:number(call:get("value", 1), dtype) }) })
    end
end

-- ---- dtypes ----

for _, name in ipairs { "to", "_to_copy", "type_as" } do
    elements[name] = function(call, w)
        local first = call.node.params[1].name
        return w:cast(call:tensor(first), call:dtype(first), call:result_dtype())
    end
end

return elements
