-- quantized.lua: linear layers of bytes, 1024 by 1024, for 1, 16 and 256 rows: bytes in and out, floats in and out, and
-- float32. One thread; quantized.py has the same cases in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local one = { threads = 1 }

local size = bench.size(1024)
local weight, bias = bench.uniform({ size, size }), bench.uniform { size }
local zeros = tide.zeros(size, { dtype = tide.int64 })
local packed = tide._quantized_pack(tide.quantize_per_channel(weight, weight:abs():amax(2):double() / 127, zeros, 1, tide.qint8))

for _, rows in ipairs { 1, 16, 256 } do
    local x = bench.uniform { rows, size }
    local bytes = tide.quantize_per_tensor(x, 1 / 127, 128, tide.quint8)
    local function linear() return tide._quantized_linear(bytes, packed, bias, 0.5, 128) end
    bench.case("linear_bytes_" .. rows, linear, { threads = 1, result = function() return linear():int_repr() end })
    bench.case("linear_dynamic_" .. rows, function() return tide._quantized_linear_dynamic(x, packed, bias) end, one)
    bench.case("linear_float32_" .. rows, function() return tide.linear(x, weight, bias) end, one)
end
