-- onnx/export_quantized.lua: models of bytes as ONNX has them: layers of floats between QuantizeLinear and DequantizeLinear, which
-- runtimes join again. A model is copied with layers that calculate in floats and round what bytes would, and that copy is traced.
local tide = ...
local tensors = tide._require "onnx.tensors"
local wrong = tensors.wrong
local export = { writers = {} }

-- ---- the copy in floats ----

local function byte(scale, point) return { scale = scale:float():reshape({}), point = point:float():reshape({}) } end

local function rounded(x, to) return to and tide._fake_quantize(x, to.scale, to.point, 0, 255) or x end

-- A weight that is rounded by what its integers mean, so that the writer finds them again.
local function weight_of(q)
    local sizes = { q:size(1) }
    for d = 2, q:dim() do
        sizes[d] = 1
    end
    local by_channel = q:qscheme() == "per_channel_affine"
    local function along(p) return by_channel and p:float():reshape(sizes) or tide.tensor(p + 0.0, { dtype = tide.float32 }) end
    return { value = q:dequantize(), scale = along(by_channel and q:q_per_channel_scales() or q:q_scale()),
        point = along(by_channel and q:q_per_channel_zero_points() or q:q_zero_point()) }
end

-- A module that calls forward(x, ...) and has nothing in it.
local function calling(forward)
    local class = tide.nn.class("InFloats")
    class.forward = function(_, ...) return forward(...) end
    return class()
end

-- The layer of floats of one with a qint8 weight; `multiply` is given x, the weight and the bias.
local function weighted(layer, multiply)
    local w, bias = weight_of(layer.weight), layer.bias
    local from = layer.in_scale and byte(layer.in_scale, layer.in_zero_point)
    local to = byte(layer.scale, layer.zero_point)
    return calling(function(x, residual)
        local y = multiply(rounded(x, from), tide._fake_quantize(w.value, w.scale, w.point, -128, 127), bias)
        y = residual and y + residual or y
        return rounded(layer.relu and y:relu() or y, to)
    end)
end

-- By the class's name in tide.nn.quantized: what stands in its place.
local COPIES = {}

function COPIES.Linear(layer) return weighted(layer, tide.linear) end

for n = 1, 3 do
    local function copy(layer)
        return weighted(layer, function(x, weight, bias)
            return tide[string.format("conv%dd", n)](x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups)
        end)
    end
    COPIES[string.format("Conv%dd", n)], COPIES[string.format("ConvReLU%dd", n)] = copy, copy
end

function COPIES.Quantize(layer)
    if layer.dtype ~= "quint8" then
        wrong("Quantize to %s: activations are quint8", layer.dtype)
    end
    local to = byte(layer.scale, layer.zero_point)
    return calling(function(x) return rounded(x, to) end)
end

function COPIES.DeQuantize() return tide.nn.Identity() end

function COPIES.Float(around)
    local to = not around.floats and byte(around.scale, around.zero_point) or nil
    local copy = calling(function() end)
    copy.module = around.module
    getmetatable(copy).forward = function(self, x) return rounded(self.module(x), to) end
    return copy
end

function COPIES.QFunctional(f)
    local to, copy = byte(f.scale, f.zero_point), tide.nn.quantized.FloatFunctional()
    copy.output = calling(function(x) return rounded(x, to) end)
    return copy
end

local function kind_of(module)
    for name, class in pairs(tide.nn.quantized) do
        if getmetatable(module) == class then
            return name
        end
    end
    return getmetatable(module) == tide.nn.quantized.dynamic.Linear and "dynamic.Linear" or nil
end

-- In a Sequential means of bytes are rounded by the parameters of what made the bytes.
local function copy_children(parent)
    local tree, last = tide._require "quantization.folding", nil
    local in_order = tree.is_a(parent, tide.nn.Sequential)
    for name, child in parent:named_children() do
        local kind = kind_of(child)
        local to = last
        last = tree.is_one_of(child, tree.HANDED) and last or nil
        if COPIES[kind] then
            parent[name] = COPIES[kind](child)
            last = child.scale and not child.floats and byte(child.scale, child.zero_point) or nil
        elseif to and in_order and tree.is_one_of(child, tree.MEANS) then
            parent[name] = calling(function(x) return rounded(child(x), to) end)
        elseif kind and kind ~= "FloatFunctional" then
            wrong("'%s' is a tide.nn.quantized.%s: its form in ONNX is not written: quantize statically", name, kind)
        else
            copy_children(child)
        end
    end
end

--- in_floats(model): a copy of a module whose layers of bytes calculate in floats, or nothing where it has none.
function export.in_floats(model)
    local found = false
    for _, module in model:named_modules() do
        found = found or kind_of(module) ~= nil and not tide._require("quantization.folding").is_a(module, tide.nn.quantized.FloatFunctional)
    end
    if not found then
        return nil
    end
    local root = tide.nn.Sequential(model:clone())
    copy_children(root)
    return root[1]:eval()
end

-- ---- nodes ----

local BYTES <const> = { [0] = { 255, "uint8" }, [-128] = { 127, "int8" } }

-- A constant argument as a tensor.
local function constant(call, w, name)
    local known = w.constants[call:name_of(name)]
    return known and known.what == "tensor" and known.constant or nil
end

-- Scale and zero point as ONNX has them: one number, or a line along an axis that counts from 0.
local function parameters(call, w, dtype)
    local scale, point = constant(call, w, "scale"), constant(call, w, "zero_point")
    if not scale or not point then
        wrong("fake_quantize: its scale and zero point are worked out while the model runs")
    end
    local axis
    for d = 1, scale:dim() do
        axis = scale:size(d) > 1 and d - 1 or axis
    end
    local sizes = axis and { scale:numel() } or {}
    return scale:reshape(sizes), point:expand_as(scale):reshape(sizes):to(dtype), axis
end

--- Between floats that are rounded as bytes are there is a pair of nodes; a constant is written as its bytes.
function export.writers.fake_quantize(call, w)
    local low, high = call:get "low", call:get "high"
    local name = BYTES[low] and BYTES[low][1] == high and BYTES[low][2] or wrong("fake_quantize from %d to %d: the range of a byte is wanted", low, high)
    local scale, point, axis = parameters(call, w, tide[name])
    local inputs, attributes = { w:tensor(scale), w:tensor(point) }, { axis = axis }
    local x, ints = constant(call, w, "x"), nil
    if x then
        local whole = tide._fake_quantize(x, constant(call, w, "scale"), constant(call, w, "zero_point"), low, high)
        ints = w:tensor(((whole / constant(call, w, "scale")):round() + constant(call, w, "zero_point")):to(tide[name]))
    else
        ints = w:node("QuantizeLinear", { call:tensor "x", inputs[1], inputs[2] }, attributes)
    end
    return w:node("DequantizeLinear", { ints, inputs[1], inputs[2] }, attributes)
end

return export
