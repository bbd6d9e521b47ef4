-- test_quantized_moves.lua: what Module:half() and the like make of layers of tide.nn.quantized: nothing, since their scales, mins and
-- biases are what integers are read by.
local t = require "harness"
local nn = tide.nn
local quantized = nn.quantized

tide.manual_seed(4)
local how = { in_scale = 0.02, in_zero_point = 120, scale = 0.05, zero_point = 100 }
local linear, rows = nn.Linear(8, 6), tide.randn(5, 8)

-- A layer of each class, and what it is called with.
local CASES = {
    Linear = { quantized.Linear.from_float(linear, how), rows },
    ["dynamic.Linear"] = { quantized.dynamic.Linear.from_float(linear), rows },
    Quantize = { quantized.Quantize(0.1, 30), rows },
    DeQuantize = { quantized.DeQuantize(), tide.quantize_per_tensor(rows, 0.1, 30, tide.quint8) },
    Float = { quantized.Float(nn.Tanh(), { scale = 0.013, zero_point = 3 }), tide.quantize_per_tensor(rows, 0.1, 30, tide.quint8) },
    Embedding = { quantized.Embedding.from_float(nn.Embedding(9, 6)), tide.tensor { 1, 9, 3 } },
    EmbeddingBag = { quantized.EmbeddingBag.from_float(nn.EmbeddingBag(9, 6), "quint4x2"), tide.tensor { { 1, 9, 3 } } },
    QFunctional = { quantized.QFunctional { scale = 0.013, zero_point = 3 }, tide.quantize_per_tensor(rows, 0.1, 30, tide.quint8) },
}
CASES.QFunctional[1].forward = function(self, x) return self:add(x, x) end
for dtype, symmetric in pairs { int8 = true, int6 = true, int4 = false } do
    CASES["WeightOnlyLinear " .. dtype] = { quantized.WeightOnlyLinear.from_float(nn.Linear(32, 6), { dtype = dtype, symmetric = symmetric }), tide.randn(2, 32) }
end
for n = 1, 3 do
    local sizes = table.move({ 5, 6, 4 }, 1, n, 3, { 2, 4 })
    for _, class in ipairs { "Conv%dd", "ConvReLU%dd", "ConvTranspose%dd" } do
        local name = class:format(n)
        CASES[name] = { quantized[name].from_float(nn[name:gsub("ReLU", "")](4, 6, 3), how), tide.randn(sizes) }
    end
end
for _, name in ipairs { "RNN", "LSTM", "GRU" } do
    CASES["dynamic." .. name] = { quantized.dynamic[name].from_float(nn[name](8, 6)), tide.randn(3, 2, 8) }
end

local function call(layer, x)
    local _ <close> = tide.no_grad()
    local y = layer(x)
    return y.is_quantized and y:dequantize() or y
end

t.test("every_class_is_tried", function()
    for room, classes in pairs { [""] = quantized, ["dynamic."] = quantized.dynamic } do
        for name, class in pairs(classes) do
            if type(class) == "table" and rawget(class, "forward") and name ~= "FloatFunctional" then -- which is one of floats
                t.is_true(CASES[room .. name] ~= nil or CASES[room .. name .. " int8"] ~= nil, room .. name)
            end
        end
    end
end)

t.test("floats_of_another_dtype_leave_layers_of_bytes_as_they_are", function()
    for name, case in pairs(CASES) do
        local layer, x = case[1], case[2]
        local want, buffers = call(layer, x), {}
        for key, buffer in layer:named_buffers() do
            buffers[key] = { tostring(buffer.dtype), buffer:clone() }
        end
        for _, move in ipairs { "half", "bfloat16", "double", "float", "cpu" } do
            layer[move](layer)
            for key, buffer in layer:named_buffers() do
                t.eq(tostring(buffer.dtype), buffers[key][1], ("%s:%s(): %s"):format(name, move, key))
                t.is_true(tide.equal(buffer, buffers[key][2]), ("%s:%s(): %s"):format(name, move, key))
            end
            t.is_true(tide.equal(call(layer, x), want), name .. ":" .. move)
        end
        layer:to { dtype = tide.float16, device = "cpu" }
        t.is_true(tide.equal(call(layer, x), want), name .. ":to")
    end
end)

t.test("floats_beside_them_and_within_them_change_their_dtype", function()
    local net = nn.Sequential(quantized.Float(nn.Linear(8, 6), { floats = true }), quantized.Linear.from_float(nn.Linear(6, 4), how), nn.Linear(4, 3)):half()
    t.eq(net[1].module.weight.dtype, tide.float16)
    t.eq(net[1].scale.dtype, tide.float64)
    t.eq(net[2].bias.dtype, tide.float32)
    t.eq(net[3].weight.dtype, tide.float16)
    t.eq(net:clone():double()[2].scale.dtype, tide.float64)
end)

t.test("a_layer_takes_floats_of_any_dtype", function()
    for _, name in ipairs { "Linear", "Conv2d", "ConvTranspose2d", "Quantize", "WeightOnlyLinear int8" } do
        local layer, x = CASES[name][1], CASES[name][2]:half()
        t.is_true(tide.equal(call(layer, x):float(), call(layer, x:float()):to(call(layer, x).dtype):float()), name)
    end
end)

t.finish()
