-- quantized.lua: linear layers of bytes, 1024 by 1024, for 1, 16 and 256 rows: bytes in and out, floats in and out,
-- weights of 8 and 4 bits, and float32; the convolutions of a ResNet-18 depthwise ones of a MobileNet and ones of 32 groups, of an image, bytes and float32; transposed ones. One thread; quantized.py has the same cases in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local one = { threads = 1 }

local size = bench.size(1024)
local weight, bias = bench.uniform({ size, size }), bench.uniform { size }
local zeros = tide.zeros(size, { dtype = tide.int64 })
local packed = tide._quantized_pack(tide.quantize_per_channel(weight, weight:abs():amax(2):double() / 127, zeros, 1, tide.qint8))
local linear_of = tide.nn.Linear(size, size)
linear_of:load_state_dict { weight = weight, bias = bias }
local small = { [8] = tide.quantization.quantize_weights(linear_of), [4] = tide.quantization.quantize_weights(linear_of, { dtype = "int4" }) }

for _, rows in ipairs { 1, 16, 256 } do
    local x = bench.uniform { rows, size }
    local bytes = tide.quantize_per_tensor(x, 1 / 127, 128, tide.quint8)
    local function linear() return tide._quantized_linear(bytes, packed, bias, 0.5, 128) end
    bench.case("linear_bytes_" .. rows, linear, { threads = 1, result = function() return linear():int_repr() end })
    bench.case("linear_dynamic_" .. rows, function() return tide._quantized_linear_dynamic(x, packed, bias) end, one)
    for _, bits in ipairs { 8, 4 } do
        bench.case(("linear_weights_of_%d_bits_%d"):format(bits, rows), function() return small[bits](x) end, one)
    end
    bench.case("linear_float32_" .. rows, function() return tide.linear(x, weight, bias) end, one)
end

-- channels, out, places, kernel, stride, groups
local CONVS = { { 3, 64, 224, 7, 2 }, { 64, 64, 56, 3, 1 }, { 64, 128, 56, 3, 2 }, { 64, 128, 56, 1, 2 }, { 128, 128, 28, 3, 1 },
    { 128, 256, 28, 3, 2 }, { 128, 256, 28, 1, 2 }, { 256, 256, 14, 3, 1 }, { 256, 512, 14, 3, 2 }, { 256, 512, 14, 1, 2 },
    { 512, 512, 7, 3, 1 }, { 32, 32, 112, 3, 1, 32 }, { 144, 144, 56, 3, 2, 144 }, { 384, 384, 14, 3, 1, 384 },
    { 128, 128, 56, 3, 1, 32 }, { 256, 256, 28, 3, 1, 32 } }

for _, c in ipairs(CONVS) do
    local channels, out, places, k, stride, groups = table.unpack(c)
    groups, places = groups or 1, bench.size(places, 7)
    local w, b = bench.uniform { out, channels // groups, k, k }, bench.uniform { out }
    local x = bench.uniform { 1, channels, places, places }
    local small = tide._quantized_pack(tide.quantize_per_channel(w, w:abs():amax { 2, 3, 4 }:double() / 127, tide.zeros(out):long(), 1, tide.qint8),
        groups)
    local bytes = tide.quantize_per_tensor(x, 1 / 127, 128, tide.quint8):contiguous { memory_format = "channels_last" }
    local size, steps, pad = { k, k }, { stride, stride }, { k // 2, k // 2 }
    local function conv() return tide._quantized_conv(bytes, small, b, 0.1, 128, size, steps, pad, { 1, 1 }) end
    local name = ("%s_%d_%d_%d_%dx%d_s%d"):format(groups == channels and "depthwise" or groups > 1 and "grouped" or "conv", channels, out, places, k, k, stride)
    bench.case(name .. "_bytes", conv, { threads = 1, result = function() return conv():int_repr() end })
    bench.case(name .. "_float32", function() return tide.conv2d(x, w, b, steps, pad, { 1, 1 }, groups) end, one)
end

-- channels, out, places, kernel, stride, padding, groups
for _, c in ipairs { { 64, 32, 56, 4, 2, 1, 1 }, { 256, 128, 28, 2, 2, 0, 1 }, { 128, 64, 28, 3, 2, 1, 1 }, { 32, 32, 56, 4, 2, 1, 32 } } do
    local channels, out, places, k, stride, pad, groups = table.unpack(c)
    places = bench.size(places, 7)
    local w, b = bench.uniform { channels, out // groups, k, k }, bench.uniform { out }
    local x = bench.uniform { 1, channels, places, places }
    local layer = tide.nn.quantized.ConvTranspose2d(channels, out, k, stride, pad, 0, groups, { scale = 0.1, zero_point = 128 })
    layer.weight, layer.bias = tide.quantize_per_tensor(w, 1 / 127, 0, tide.qint8), b
    local bytes = tide.quantize_per_tensor(x, 1 / 127, 128, tide.quint8):contiguous { memory_format = "channels_last" }
    local name = ("transposed_%d_%d_%d_%dx%d_s%d"):format(channels, out, places, k, k, stride)
    bench.case(name .. "_bytes", function() return layer(bytes) end, { threads = 1, result = function() return layer(bytes):int_repr() end })
    bench.case(name .. "_float32", function() return tide.conv_transpose2d(x, w, b, stride, pad, 0, groups) end, one)
end
