-- onnx/elementwise.lua: ONNX's operators of elements alone.
local tide = ...
local common, tensors = tide._require "onnx.common", tide._require "onnx.tensors"
local wrong, number, is_float = tensors.wrong, common.number, common.is_float
local F = tide.nn.functional
local operators = {}

-- Those that Tide has under another name or its own, of one tensor.
for name, own in pairs { Abs = "abs", Acos = "acos", Acosh = "acosh", Asin = "asin", Asinh = "asinh", Atan = "atan", Atanh = "atanh",
    Ceil = "ceil", Cos = "cos", Cosh = "cosh", Erf = "erf", Exp = "exp", Floor = "floor", IsNaN = "isnan", Log = "log", Neg = "neg",
    Not = "logical_not", Reciprocal = "reciprocal", Relu = "relu", Round = "round", Sigmoid = "sigmoid", Sign = "sign", Sin = "sin",
    Sinh = "sinh", Sqrt = "sqrt", Tan = "tan", Tanh = "tanh" } do
    operators[name] = function(_, x) return tide[own](x) end
end
-- Of two.
for name, own in pairs { And = "logical_and", Or = "logical_or", Xor = "logical_xor", Equal = "eq", Greater = "gt", GreaterOrEqual = "ge",
    Less = "lt", LessOrEqual = "le", BitwiseAnd = "bitwise_and", BitwiseOr = "bitwise_or", BitwiseXor = "bitwise_xor" } do
    operators[name] = function(_, a, b) return tide[own](a, b) end
end
operators.BitwiseNot = function(_, a) return tide.bitwise_not(a) end

-- Before opset 7 the second operand was laid along an axis of the first where `broadcast` said so.
local function aligned(call, a, b)
    local axis = call.attributes.axis
    if call.opset < 7 and call.attributes.broadcast == 1 and axis then
        local sizes = common.sizes(b)
        for _ = 1, a:dim() - (common.dim(axis, a) - 1) - b:dim() do
            sizes[#sizes + 1] = 1
        end
        return b:view(sizes)
    end
    return b
end
for name, own in pairs { Add = "add", Sub = "sub", Mul = "mul" } do
    operators[name] = function(call, a, b) return tide[own](a, aligned(call, a, b)) end
end

function operators.Div(call, a, b)
    b = aligned(call, a, b)
    return is_float(a) and a / b or tide.div(a, b, { rounding_mode = "trunc" })
end

function operators.Pow(call, a, b)
    b = aligned(call, a, b)
    if not is_float(a) and is_float(b) then
        return tide.pow(a:double(), b:double()):to(a.dtype)
    end
    return tide.pow(a, b:to(a.dtype)):to(a.dtype)
end

function operators.Mod(call, a, b)
    return call.attributes.fmod == 1 and tide.fmod(a, b) or tide.remainder(a, b)
end

function operators.BitShift(call, a, b)
    return call.attributes.direction == "LEFT" and tide.bitwise_left_shift(a, b) or tide.bitwise_right_shift(a, b)
end

-- Of any number of operands.
local function of_many(combine)
    return function(_, first, ...)
        for _, x in ipairs { ... } do
            first = combine(first, x)
        end
        return first
    end
end
operators.Max, operators.Min, operators.Sum = of_many(tide.maximum), of_many(tide.minimum), of_many(tide.add)
function operators.Mean(call, ...) return operators.Sum(call, ...) / call.inputs end

function operators.Where(_, condition, a, b) return tide.where(condition, a, b) end
function operators.Identity(_, x) return x end

function operators.Clip(call, x, low, high)
    low, high = number(low) or call.attributes.min, number(high) or call.attributes.max
    if low and high and low > high then -- ONNX: then all become high
        return tide.full_like(x, high)
    end
    if low then
        x = tide.maximum(x, common.scalar(low, x.dtype))
    end
    return high and tide.minimum(x, common.scalar(high, x.dtype)) or x
end

function operators.Cast(call, x)
    return x:to((tensors.dtype(call.attributes.to, "what it makes")))
end
function operators.CastLike(_, x, like) return x:to(like.dtype) end

function operators.IsInf(call, x)
    local a = call.attributes
    local up, down = x:eq(math.huge), x:eq(-math.huge)
    if a.detect_positive == 0 then
        return a.detect_negative == 0 and tide.zeros_like(down) or down
    end
    return a.detect_negative == 0 and up or up | down
end

-- ---- activations ----

function operators.LeakyRelu(call, x) return F.leaky_relu(x, call.attributes.alpha or 0.01) end
function operators.Elu(call, x) return F.elu(x, call.attributes.alpha or 1) end
function operators.Celu(call, x) return F.celu(x, call.attributes.alpha or 1) end
function operators.Softplus(_, x) return (1 + x:exp()):log():where(x:lt(20), x) end
function operators.Softsign(_, x) return x / (1 + x:abs()) end
function operators.HardSigmoid(call, x)
    return (x * (call.attributes.alpha or 0.2) + (call.attributes.beta or 0.5)):clamp(0, 1)
end
function operators.HardSwish(_, x) return x * (x / 6 + 0.5):clamp(0, 1) end
function operators.Mish(_, x) return F.mish(x) end
function operators.Gelu(call, x) return F.gelu(x, { approximate = call.attributes.approximate or "none" }) end
function operators.ThresholdedRelu(call, x) return x * x:gt(call.attributes.alpha or 1):to(x.dtype) end

function operators.Selu(call, x)
    local alpha, gamma = call.attributes.alpha or 1.67326319217681884765625, call.attributes.gamma or 1.05070102214813232421875
    return (tide.maximum(x, tide.zeros_like(x)) + tide.minimum(alpha * (x:exp() - 1), tide.zeros_like(x))) * gamma
end

function operators.Shrink(call, x)
    local lambd, bias = call.attributes.lambd or 0.5, call.attributes.bias or 0
    return ((x + bias) * x:lt(-lambd):to(x.dtype) + (x - bias) * x:gt(lambd):to(x.dtype)):to(x.dtype)
end

function operators.PRelu(call, x, slope)
    if call.opset < 7 and slope:dim() == 1 and x:dim() > 1 then
        local sizes = { slope:size(1) }
        for k = 2, x:dim() - 1 do
            sizes[k] = 1
        end
        slope = slope:view(sizes)
    end
    return tide.where(x:lt(0), x * slope, x)
end

-- Before opset 13 all dims from the axis on were one line.
local function by_lines(own)
    return function(call, x)
        local axis = call.attributes.axis or (call.opset < 13 and 1 or -1)
        if call.opset >= 13 then
            return tide[own](x, common.dim(axis, x))
        end
        local dim = axis == x:dim() and axis + 1 or common.dim(axis, x)
        local rows = common.product(table.move(common.sizes(x), 1, dim - 1, 1, {}))
        return tide[own](x:reshape(rows, -1), 2):view(common.sizes(x))
    end
end
operators.Softmax, operators.LogSoftmax = by_lines "softmax", by_lines "log_softmax"

function operators.Hardmax(call, x)
    local axis = call.attributes.axis or (call.opset < 13 and 1 or -1)
    local rows = x
    local dim = common.dim(axis, x)
    if call.opset < 13 then
        rows, dim = x:reshape(common.product(table.move(common.sizes(x), 1, dim - 1, 1, {})), -1), 2
    end
    local places = rows:argmax(dim, { keepdim = true })
    return tide.zeros_like(rows):scatter(dim, places, 1):view(common.sizes(x))
end

-- ---- made of nothing ----

function operators.Constant(call)
    local a = call.attributes
    if a.value ~= nil then
        return a.value
    elseif a.value_float then
        return common.scalar(a.value_float, tide.float32)
    elseif a.value_int then
        return common.scalar(a.value_int, tide.int64)
    elseif a.value_floats then
        return tide.tensor(a.value_floats, { dtype = tide.float32 })
    elseif a.value_ints then
        return common.integers(a.value_ints)
    elseif a.sparse_value then
        return tide._require("onnx.graph").dense(a.sparse_value.sparse, a.sparse_value.context)
    end
    wrong("it holds what is not read")
end

function operators.ConstantOfShape(call, shape)
    local value = call.attributes.value
    return tide.full(common.list(shape), value and number(value) or 0, { dtype = value and value.dtype or tide.float32 })
end

function operators.Range(_, first, last, step)
    local from, to, by = number(first), number(last), number(step)
    local n = math.max(0, math.ceil((to - from) / by))
    return (tide.arange(n, { dtype = first.dtype }) * by + from):to(first.dtype)
end

function operators.EyeLike(call, x)
    local dtype = call.attributes.dtype and tensors.dtype(call.attributes.dtype, "what it makes") or x.dtype
    local rows, columns = x.shape:unpack()
    local line, column = tide.arange(rows):unsqueeze(2), tide.arange(columns):unsqueeze(1)
    return (line + (call.attributes.k or 0)):eq(column):to(dtype)
end

-- Windows of a number of samples: sums of cosines.
local function window_of(...)
    local terms = { ... }
    return function(call, size)
        local n = number(size)
        local over = call.attributes.periodic == 0 and n - 1 or n
        local x, sum = tide.arange(n, { dtype = tide.float64 }), 0
        for k, factor in ipairs(terms) do
            sum = sum + (x * (2 * math.pi * (k - 1) / over)):cos() * factor
        end
        return sum:to((tensors.dtype(call.attributes.output_datatype or 1, "what it makes")))
    end
end
operators.HannWindow = window_of(0.5, -0.5)
operators.HammingWindow = window_of(25 / 46, -21 / 46)
operators.BlackmanWindow = window_of(0.42, -0.5, 0.08)

-- ---- random ones ----

local function dtype_of(call, x)
    return call.attributes.dtype and tensors.dtype(call.attributes.dtype, "what it makes") or x and x.dtype or tide.float32
end

local function drawn(call)
    local seed = call.attributes.seed
    return { generator = seed and tide.Generator():manual_seed(math.floor(seed)) or nil }
end

function operators.RandomUniformLike(call, x)
    local low, high = call.attributes.low or 0, call.attributes.high or 1
    return (tide.rand(common.sizes(x), drawn(call)) * (high - low) + low):to(dtype_of(call, x))
end
function operators.RandomNormalLike(call, x)
    return (tide.randn(common.sizes(x), drawn(call)) * (call.attributes.scale or 1) + (call.attributes.mean or 0)):to(dtype_of(call, x))
end
function operators.RandomUniform(call)
    local low, high = call.attributes.low or 0, call.attributes.high or 1
    return (tide.rand(call.attributes.shape, drawn(call)) * (high - low) + low):to(dtype_of(call))
end
function operators.RandomNormal(call)
    return (tide.randn(call.attributes.shape, drawn(call)) * (call.attributes.scale or 1) + (call.attributes.mean or 0)):to(dtype_of(call))
end
function operators.Bernoulli(call, x)
    return tide.rand(common.sizes(x), drawn(call)):lt(x):to(dtype_of(call, x))
end

return operators
