-- onnx/quantized.lua: ONNX's operators of integers with a scale and a zero point. Sums are exact (float64 holds them, or the operators of
-- bytes, onnx/bytes.lua, where they are for it); one rounding: half to even, then within the type.
local tide = ...
local common = tide._require "onnx.common"
local windows = tide._require "onnx.windows"
local bytes = tide._require "onnx.bytes"
local operators = {}

local RANGES <const> = { [tide.uint8] = { 0, 255 }, [tide.int8] = { -128, 127 }, [tide.int16] = { -32768, 32767 } }

-- A scale or zero point as it lies along an axis of x.
local function along(p, x, axis)
    if p:numel() == 1 then
        return p:view({})
    end
    local sizes = {}
    for k = 1, x:dim() do
        sizes[k] = 1
    end
    sizes[common.dim(axis, x)] = p:numel()
    return p:view(sizes)
end

local function within(y, dtype)
    local range = RANGES[dtype]
    return y:clamp(range[1], range[2]):to(dtype)
end

local function zero_like(scale) return tide.zeros(common.sizes(scale), { dtype = tide.uint8 }) end

function operators.QuantizeLinear(call, x, scale, zero)
    zero = zero or zero_like(scale)
    local axis = call.attributes.axis or 1
    return within((x / along(scale, x, axis)):double():round() + along(zero, x, axis):double(), zero.dtype)
end

function operators.DequantizeLinear(call, x, scale, zero)
    local axis = call.attributes.axis or 1
    local y = x:to(tide.int32)
    if zero then
        y = y - along(zero, x, axis):to(tide.int32)
    end
    return y:to(scale.dtype) * along(scale, x, axis)
end

function operators.DynamicQuantizeLinear(_, x)
    local low, high = math.min(0, x:amin():item()), math.max(0, x:amax():item())
    local scale = tide.tensor((high - low) / 255, { dtype = tide.float32 })
    if high == low then
        return tide.zeros(common.sizes(x), { dtype = tide.uint8 }), tide.tensor(0.0), tide.tensor(0, { dtype = tide.uint8 })
    end
    local zero = (tide.tensor(-low) / scale):clamp(0, 255):round()
    return within((x / scale):round() + zero, tide.uint8), scale, zero:to(tide.uint8)
end

-- x less its zero point, in float64: along the last dim but one of a left side, the last of a right one.
local function less(x, zero, by_rows)
    x = x:double()
    if not zero then
        return x
    end
    zero = zero:double()
    if zero:numel() > 1 and zero:dim() == 1 then
        zero = by_rows and zero:unsqueeze(2) or zero
    elseif zero:numel() == 1 then
        zero = zero:view({})
    end
    return x - zero
end

function operators.MatMulInteger(_, a, b, a_zero, b_zero)
    return less(a, a_zero, true):matmul(less(b, b_zero)):to(tide.int32)
end

function operators.QLinearMatMul(_, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
    local small = bytes.product({ turned = true }, a, a_scale, a_zero, b, b_scale, b_zero, nil, y_scale, y_zero)
    if small then
        return small
    end
    local sums = less(a, a_zero, true):matmul(less(b, b_zero))
    local factor = a_scale:double():view({}) * b_scale:double() / y_scale:double():view({})
    return within((sums * (factor:numel() == 1 and factor:view({}) or factor)):round() + y_zero:double():view({}), y_zero.dtype)
end

function operators.QLinearConv(call, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias)
    local floats, exact = bytes.float_bias(bias, x_scale, w_scale)
    local small = exact and bytes.product({ conv = call.attributes }, x, x_scale, x_zero, w, w_scale, w_zero, floats, y_scale, y_zero)
    if small then
        return small
    end
    local sums = windows.ConvInteger(call, x, w, x_zero, w_zero):double()
    local function by_channel(p) return common.by_channel(p:double(), x) end
    if bias then
        sums = sums + by_channel(bias)
    end
    local factor = by_channel(w_scale) * x_scale:double():view({}) / y_scale:double():view({})
    return within((sums * factor):round() + y_zero:double():view({}), y_zero.dtype)
end

return operators
