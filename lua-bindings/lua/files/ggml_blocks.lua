-- files/ggml_blocks.lua: blocks of GGML's types Q8_0, Q4_0, Q4_K and Q6_K as integers with scales and mins
-- (quantization/groups.lua), which products take as they are. Layouts are those of engine/io/blocks.c, which unpacks all types
-- to floats; what the integers stand for are the same floats, bit for bit.
local tide = ...
local blocks = {}

local function part(x, from, n) return x[{ {}, {}, { from + 1, from + n } }] end

-- Two bytes from byte `at` of each block as the half that they are, in float32.
local function half(x, at)
    local low, high = part(x, at, 1):to(tide.int32), part(x, at + 1, 1):to(tide.int32)
    local mantissa, exponent = (low + (high & 3) * 256):float(), (high & 124):bitwise_right_shift(2)
    local small = mantissa * 2.0 ^ -24
    local normal = tide.ldexp(mantissa + 1024, (exponent - 25):float())
    local value = tide.where(exponent:eq(0), small, normal)
    value = tide.where(exponent:eq(31), tide.where(mantissa:eq(0), tide.full_like(value, math.huge), tide.full_like(value, 0 / 0)), value)
    return tide.where(high:ge(128), -value, value)
end

local function signed(x) return x:to(tide.int32):bitwise_xor(128) - 128 end

-- Rows of blocks to rows of elements.
local function rows(x) return x:reshape(x.shape[1], -1) end

local kinds = {}
kinds.Q8_0 = { bits = 8, size = 32, read = function(x)
    return rows(part(x, 2, 32):bitwise_xor(128)), rows(half(x, 0))
end }

kinds.Q4_0 = { bits = 4, size = 32, read = function(x)
    local q = part(x, 2, 16)
    return rows(tide.cat({ q & 15, q:bitwise_right_shift(4) }, 3)), rows(half(x, 0))
end }

kinds.Q4_K = { bits = 4, size = 32, read = function(x)
    local s, q, parts = part(x, 4, 12), part(x, 16, 128), {}
    local low, middle, high = part(s, 0, 4), part(s, 4, 4), part(s, 8, 4)
    local scales = tide.cat({ low & 63, (high & 15) | (low:bitwise_right_shift(6)):bitwise_left_shift(4) }, 3)
    local mins = tide.cat({ middle & 63, high:bitwise_right_shift(4) | (middle:bitwise_right_shift(6)):bitwise_left_shift(4) }, 3)
    for k = 1, 8 do
        parts[k] = part(q, (k - 1) // 2 * 32, 32):bitwise_right_shift((k - 1) % 2 * 4) & 15
    end
    return rows(tide.cat(parts, 3)), rows(half(x, 0) * scales:float()), rows(half(x, 2) * mins:float())
end }

kinds.Q6_K = { bits = 6, size = 16, read = function(x)
    local q, h, parts = part(x, 0, 128), part(x, 128, 64), {}
    for k = 0, 15 do
        local side, place = k // 8, k % 8
        local low = part(q, 64 * side + place % 4 * 16, 16):bitwise_right_shift(place // 4 * 4) & 15
        local high = part(h, 32 * side + place % 2 * 16, 16):bitwise_right_shift(place // 2 * 2) & 3
        parts[k + 1] = low | high:bitwise_left_shift(4)
    end
    return rows(tide.cat(parts, 3)), rows(half(x, 208) * signed(part(x, 192, 16)):float())
end }

--- has(type): are there products for blocks of a type ("Q4_K")?
function blocks.has(type) return kinds[type] ~= nil end

--- linear(type, bytes, in_features): the layer of tide.nn.quantized, without a bias, of a matrix whose rows are blocks: bytes
--- (uint8) is (out_features, blocks, bytes of a block).
function blocks.linear(type, bytes, in_features)
    local kind = kinds[type]
    local ints, scales, mins = kind.read(bytes)
    local layer = tide.nn.quantized.WeightOnlyLinear(in_features, bytes.shape[1], false,
        { dtype = "int" .. kind.bits, group_size = kind.size, symmetric = mins == nil })
    return layer:set_ints(ints, scales, mins)
end

return blocks
