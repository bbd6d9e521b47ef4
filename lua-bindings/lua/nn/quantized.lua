-- nn/quantized.lua: tide.nn.quantized: linear layers whose weights are bytes, packed once. Products are exact in
-- integers, so that a model gives the same bits on every processor (engine/ops/quantized/README.md).
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"

-- The packed weight of a layer, and the tensor that it was packed of.
local packs = setmetatable({}, { __mode = "k" })

local function packed_of(self)
    local entry = packs[self]
    if not entry or entry.weight ~= self.weight or entry.version ~= self.weight._version then
        entry = { weight = self.weight, version = self.weight._version, packed = tide._quantized_pack(self.weight) }
        packs[self] = entry
    end
    return entry.packed
end

-- A weight of floats as qint8, by row, symmetric.
local function quantize_weight(weight)
    weight = weight:detach():float()
    local observer = tide.quantization.PerChannelMinMaxObserver { dtype = "qint8", qscheme = "per_channel_symmetric" }
    observer(weight)
    local scales, points = observer:calculate_qparams()
    return tide.quantize_per_channel(weight, scales, points, 1, tide.qint8)
end

-- Weights that stand for 0 until they are given.
local function start(self)
    local has_bias = layers.take_bias(self)
    self:register_buffer("weight", quantize_weight(tide.zeros(self.out_features, self.in_features)))
    if has_bias then
        self:register_buffer("bias", tide.zeros(self.out_features))
    end
end

-- Numbers that belong to the state of a layer, as tensors.
local function keep_numbers(self, names)
    for _, name in ipairs(names) do
        local value = self[name]
        if value ~= nil then
            rawset(self, name, nil)
            self:register_buffer(name, tide.tensor(value, { dtype = math.type(value) == "integer" and tide.int64 or tide.float64 }))
        end
    end
end

local function set_weight(self, linear)
    self.weight = quantize_weight(linear.weight)
    if linear.bias then
        self.bias = linear.bias:detach():float():clone()
    end
    return self
end

local PROOF = { "magic", "columns", "depth", "panels", "groups", "pairs", "unsafe_pairs", "moved_groups", "ordered", "centred", "bytes" }

-- proof(): what packing has proved of the weights: how many pairs of weights were looked at, how many of them could
-- make `vpmaddubsw` saturate, and how many groups of four rows were put aside for it, to be multiplied in 16 bits.
local function proof(self)
    local head, found = packed_of(self)[{ { 1, 8 * #PROOF } }]:tolist(), {}
    local words = table.pack(string.unpack("<" .. string.rep("i8", #PROOF), string.char(table.unpack(head))))
    for k, name in ipairs(PROOF) do
        found[name] = words[k]
    end
    local cost = found.moved_groups / (found.panels * found.groups) / 3
    return { pairs = found.pairs, unsafe_pairs = found.unsafe_pairs, groups = found.panels * found.groups,
        moved_groups = found.moved_groups, cost = cost, bytes = found.bytes }
end

local function repr(self)
    return string.format("in_features=%d, out_features=%d, bias=%s%s", self.in_features, self.out_features, self.has_bias,
        self.relu and ", relu=true" or "")
end

local function define(room, schema, doc, class)
    class.extra_repr, class.proof = class.extra_repr or repr, proof
    layers.layer(room, schema, doc, "x (..., in_features) -> (..., out_features)", class)
end

return function(nn)
    local quantized, dynamic = { class = nn.class }, { class = nn.class }

    define(dynamic, "Linear(int(1..) in_features, int(1..) out_features, bool bias=true, *, bool relu=false, bool reduce_range=false)",
        "y = x W^T + b of a float32 x, which is quantized in each call by its own range, and a qint8 weight.", {
        derive = start,
        forward = function(self, x) return tide._quantized_linear_dynamic(x, packed_of(self), self.bias, self.relu, self.reduce_range) end,
    })
    dynamic.Linear.from_float = tide._function("from_float(Module linear, bool relu=false) -> Module",
        "The layer of the weights of a tide.nn.Linear.", function(linear, relu)
            return set_weight(dynamic.Linear(linear.in_features, linear.out_features, linear.has_bias, { relu = relu }), linear)
        end)

    define(quantized, "Linear(int(1..) in_features, int(1..) out_features, bool bias=true, *, number scale=1, int zero_point=0, "
        .. "bool relu=false, number? in_scale=nil, int in_zero_point=0, bool floats=false)",
        "y = x W^T + b of a quint8 x, as quint8 of a scale and a zero point. With in_scale a float x is quantized first, with "
        .. "floats the result is dequantized.", {
        derive = function(self)
            start(self)
            self.scale, self.in_scale = self.scale + 0.0, self.in_scale and self.in_scale + 0.0
            keep_numbers(self, { "scale", "zero_point", self.in_scale and "in_scale", self.in_scale and "in_zero_point" })
        end,
        forward = function(self, x)
            if not x.is_quantized then
                if not self.in_scale then
                    fail("Linear: x is %s: a quint8 tensor expected, or in_scale to quantize it by", string.match(tostring(x.dtype), "%w+$"))
                end
                x = tide.quantize_per_tensor(x, self.in_scale:item(), self.in_zero_point:item(), tide.quint8)
            end
            local y = tide._quantized_linear(x, packed_of(self), self.bias, self.scale:item(), self.zero_point:item(), self.relu)
            return self.floats and y:dequantize() or y
        end,
        extra_repr = function(self)
            return string.format("%s, scale=%s, zero_point=%d", repr(self), tide._number(self.scale:item(), 6), self.zero_point:item())
        end,
    })
    quantized.Linear.from_float = tide._function("from_float(Module linear, *, number scale=1, int zero_point=0, bool relu=false, "
        .. "number? in_scale=nil, int in_zero_point=0, bool floats=false) -> Module",
        "The layer of the weights of a tide.nn.Linear.", function(linear, scale, point, relu, in_scale, in_point, floats)
            return set_weight(quantized.Linear(linear.in_features, linear.out_features, linear.has_bias, { scale = scale,
                zero_point = point, relu = relu, in_scale = in_scale, in_zero_point = in_point, floats = floats }), linear)
        end)

    quantized.class, dynamic.class = nil, nil
    quantized.dynamic = dynamic
    nn.quantized = quantized
    tide._document(dynamic, "dynamic", "tide.nn.quantized.dynamic", "Layers that quantize what they are given by its own range.")
    tide._document(quantized, "quantized", "tide.nn.quantized", "Layers with weights of bytes.")
end
