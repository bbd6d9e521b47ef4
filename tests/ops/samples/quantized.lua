-- Samples of quantized tensors (see test_walk.lua for what `mk` makes): of one scale, and of one for each row or column.
local function whole(mk) return tide.quantize_per_tensor(mk(2, 3), 0.05, 100, tide.quint8) end
local function columns(mk)
    return tide.quantize_per_channel(mk(4, 3), tide.tensor { 0.5, 0.1, 0.02 }, tide.tensor { 0, -3, 5 }, 2, tide.qint8)
end
local function none(mk) return tide.quantize_per_tensor(mk(0, 3), 1, 0, tide.qint32) end

local function of(...)
    local list = {}
    for k, make in ipairs { ... } do
        list[k] = function(mk) return { make(mk) } end
    end
    return list
end

return {
    quantize_per_tensor = {
        function(mk) return { mk(3, 4), 0.05, 100, tide.quint8 } end,
        function(mk) return { mk(5), 0.5, -3, "qint8" } end,
        function(mk) return { mk(2, 0, 3), 1, 0, tide.qint32 } end,
        function(mk) return { mk(), 0.25, 7, tide.qint8 } end,
    },
    quantize_per_channel = {
        function(mk) return { mk(3, 4), tide.tensor { 0.5, 0.1, 0.02 }, tide.tensor { 0, 3, 5 }, 1, tide.quint8 } end,
        function(mk) return { mk(2, 3, 2), tide.tensor { 0.5, 0.1, 0.02 }, tide.tensor { 0, -3, 5 }, 2, tide.qint8 } end,
        function(mk) return { mk(2, 0), tide.zeros(0), tide.zeros(0, { dtype = tide.int64 }), -1, tide.qint8 } end,
    },
    dequantize = of(whole, columns, none, function(mk) return mk(2, 3) end),
    int_repr = of(whole, columns, none),
}
