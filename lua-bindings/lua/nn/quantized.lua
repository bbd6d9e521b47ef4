-- nn/quantized.lua: tide.nn.quantized: layers whose weights are bytes, packed once, and what stands between them.
-- Products are exact in integers, so that a model gives the same bits on every processor
-- (engine/ops/quantized/README.md).
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"

-- The packed weight of a layer, and the tensor that it was packed of.
local packs = setmetatable({}, { __mode = "k" })

local function packed_of(self)
    local entry = packs[self]
    if not entry or entry.weight ~= self.weight or entry.version ~= self.weight._version then
        entry = { weight = self.weight, version = self.weight._version, packed = tide._quantized_pack(self.weight, self.groups or 1) }
        packs[self] = entry
    end
    return entry.packed
end

-- A weight of floats as qint8, by output channel, symmetric.
local function quantize_weight(weight)
    weight = weight:detach():float()
    local observer = tide.quantization.PerChannelMinMaxObserver { dtype = "qint8", qscheme = "per_channel_symmetric" }
    observer(weight)
    local scales, points = observer:calculate_qparams()
    return tide.quantize_per_channel(weight, scales, points, 1, tide.qint8)
end

-- Weights of a shape that stand for 0 until they are given.
local function start(self, shape)
    local has_bias = layers.take_bias(self)
    self:register_buffer("weight", quantize_weight(tide.zeros(shape)))
    if has_bias then
        self:register_buffer("bias", tide.zeros(shape[1]))
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

local function keep_parameters(self)
    self.scale, self.in_scale = self.scale + 0.0, self.in_scale and self.in_scale + 0.0
    keep_numbers(self, { "scale", "zero_point", self.in_scale and "in_scale", self.in_scale and "in_zero_point" })
end

local function set_weight(self, layer)
    self.weight = quantize_weight(layer.weight)
    if layer.bias then
        self.bias = layer.bias:detach():float():clone()
    end
    return self
end

-- What a layer multiplies: floats are quantized where it knows how.
local function bytes_of(self, x)
    if x.is_quantized then
        return x
    elseif not self.in_scale then
        fail("%s: x is %s: a quint8 tensor expected, or in_scale to quantize it by", getmetatable(self).__name,
            string.match(tostring(x.dtype), "%w+$"))
    end
    return tide.quantize_per_tensor(x, self.in_scale:item(), self.in_zero_point:item(), tide.quint8)
end

local function given(self, y) return self.floats and y:dequantize() or y end

local PROOF = { "magic", "columns", "depth", "panels", "groups", "pairs", "unsafe_pairs", "moved_groups", "ordered", "centred",
    "depthwise", "bytes" }

-- proof(): what packing has proved of the weights: how many pairs of weights were looked at, how many of them could
-- make `vpmaddubsw` saturate, and how many groups of four rows were put aside for it, to be multiplied in 16 bits.
local function proof(self)
    local packed = packed_of(self)
    local sums, total = { pairs = 0, unsafe_pairs = 0, groups = 0, moved_groups = 0, bytes = 0 }, 0
    packed = packed:view(packed:dim() == 2 and packed:size(1) or 1, -1)
    for row = 1, packed:size(1) do
        local head, found = packed[row][{ { 1, 8 * #PROOF } }]:tolist(), {}
        local words = table.pack(string.unpack("<" .. string.rep("i8", #PROOF), string.char(table.unpack(head))))
        for k, name in ipairs(PROOF) do
            found[name] = words[k]
        end
        found.groups = found.panels * found.groups
        for name in pairs(sums) do
            sums[name] = sums[name] + found[name]
        end
        total = total + found.groups
    end
    sums.cost = sums.moved_groups / math.max(total, 1) / 3
    return sums
end

local function linear_text(self)
    return string.format("in_features=%d, out_features=%d, bias=%s%s", self.in_features, self.out_features, self.has_bias,
        self.relu and ", relu=true" or "")
end

local function scale_text(self) return string.format("scale=%s, zero_point=%d", tide._number(self.scale:item(), 6), self.zero_point:item()) end

-- A layer with a weight.
local function define(room, schema, doc, shapes, class)
    class.proof = proof
    layers.layer(room, schema, doc, shapes, class)
end

-- How a layer of bytes is made of one of floats.
local HOW = "*, number scale=1, int zero_point=0, bool relu=false, number? in_scale=nil, int in_zero_point=0, bool floats=false"
local HOW_DOC = " With in_scale a float x is quantized first, with floats the result is dequantized."

local function define_from_float(class, of, make)
    class.from_float = tide._function("from_float(Module layer, " .. HOW .. ") -> Module", "The layer of the weights of a tide.nn." .. of .. ".",
        function(layer, scale, point, relu, in_scale, in_point, floats)
            return set_weight(make(layer, { scale = scale, zero_point = point, relu = relu, in_scale = in_scale, in_zero_point = in_point,
                floats = floats }), layer)
        end)
end

local function linears(quantized, dynamic)
    local LINEAR, SHAPES = "Linear(int(1..) in_features, int(1..) out_features, bool bias=true, ", "x (..., in_features) -> (..., out_features)"
    local function make(self) start(self, { self.out_features, self.in_features }) end
    define(dynamic, LINEAR .. "*, bool relu=false, bool reduce_range=false)",
        "y = x W^T + b of a float32 x, which is quantized in each call by its own range, and a qint8 weight.", SHAPES, {
        derive = make,
        forward = function(self, x) return tide._quantized_linear_dynamic(x, packed_of(self), self.bias, self.relu, self.reduce_range) end,
        extra_repr = linear_text,
    })
    dynamic.Linear.from_float = tide._function("from_float(Module linear, bool relu=false) -> Module",
        "The layer of the weights of a tide.nn.Linear.", function(linear, relu)
            return set_weight(dynamic.Linear(linear.in_features, linear.out_features, linear.has_bias, { relu = relu }), linear)
        end)
    define(quantized, LINEAR .. HOW .. ")", "y = x W^T + b of a quint8 x, as quint8 of a scale and a zero point." .. HOW_DOC, SHAPES, {
        derive = function(self)
            make(self)
            keep_parameters(self)
        end,
        forward = function(self, x)
            return given(self, tide._quantized_linear(bytes_of(self, x), packed_of(self), self.bias, self.scale:item(),
                self.zero_point:item(), self.relu))
        end,
        extra_repr = function(self) return linear_text(self) .. ", " .. scale_text(self) end,
    })
    define_from_float(quantized.Linear, "Linear", function(linear, options)
        return quantized.Linear(linear.in_features, linear.out_features, linear.has_bias, options)
    end)
end

-- ---- convolutions ----

local INPUTS = { "signals (N, C, L)", "images (N, C, H, W)", "volumes (N, C, D, H, W)" }

local function repeated(value, n) return "{" .. string.rep(value .. ", ", n - 1) .. value .. "}" end

local function conv_shape(self) return { self.out_channels, self.in_channels // self.groups, table.unpack(self.kernel_size) } end

local function conv_forward(self, x, residual)
    return given(self, tide._quantized_conv(bytes_of(self, x), packed_of(self), self.bias, self.scale:item(), self.zero_point:item(),
        self.kernel_size, self.stride, self.padding, self.dilation, self.relu, residual))
end

local function conv(quantized, nn, n)
    local of = string.format("Conv%dd", n)
    local float = nn[of]
    local schema = string.format("(int(1..) in_channels, int(1..) out_channels, int(1..)[%d] kernel_size, int(1..)[%d] stride=%s, "
        .. 'int(0..)[%d]|"same"|"valid" padding=%s, int(1..)[%d] dilation=%s, int(1..) groups=1, bool bias=true, ', n, n, repeated(1, n), n,
        repeated(0, n), n, repeated(1, n))
    for _, relu in ipairs { false, true } do
        local name = relu and string.format("ConvReLU%dd", n) or of
        define(quantized, name .. schema .. (relu and string.gsub(HOW, "bool relu=false, ", "") or HOW) .. ")",
            "Convolution of quint8 " .. INPUTS[n] .. ", as quint8 of a scale and a zero point" .. (relu and ", and ReLU" or "")
            .. "; a second argument, quint8 of the result's shape, is added before the rounding." .. HOW_DOC, tide._doc(float).shapes, {
            derive = function(self)
                if self.in_channels % self.groups ~= 0 or self.out_channels % self.groups ~= 0 then
                    fail("%s: %d and %d channels can't be divided into %d groups", name, self.in_channels, self.out_channels, self.groups)
                end
                if relu then
                    rawset(self, "relu", true)
                end
                rawset(self, "padding_mode", "zeros")
                start(self, conv_shape(self))
                keep_parameters(self)
            end,
            forward = conv_forward,
            extra_repr = function(self)
                return float.extra_repr(self) .. (self.relu and not relu and ", relu=true" or "") .. ", " .. scale_text(self)
            end,
        })
        define_from_float(quantized[name], of, function(layer, options)
            if layer.padding_mode ~= "zeros" then
                fail("from_float: padding_mode '%s': convolutions of bytes pad with zeros", layer.padding_mode)
            end
            options.relu = not relu and options.relu or nil
            return quantized[name](layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride, layer.padding, layer.dilation,
                layer.groups, layer.has_bias, options)
        end)
    end
end

-- ---- functions ----

-- What the layers do, with a weight that is packed in each call.
local function functions(quantized)
    local F = {}
    local declare = tide._function
    F.linear = declare("linear(Tensor input, Tensor weight, Tensor? bias=nil, number scale=1, int zero_point=0) -> Tensor",
        "x W^T + b of a quint8 x and a qint8 weight (out, in), as quint8. tide.nn.quantized.Linear packs its weight once.",
        function(x, weight, bias, scale, point) return tide._quantized_linear(x, tide._quantized_pack(weight), bias, scale, point) end,
        tide._doc(tide.linear).shapes)
    for n = 1, 3 do
        local name = string.format("conv%dd", n)
        F[name] = declare(string.format("%s(Tensor input, Tensor weight, Tensor? bias=nil, int(1..)[%d] stride=%s, "
            .. 'int(0..)[%d]|"same"|"valid" padding=%s, int(1..)[%d] dilation=%s, int(1..) groups=1, number scale=1, int zero_point=0) -> Tensor',
            name, n, repeated(1, n), n, repeated(0, n), n, repeated(1, n)),
            "Convolution of quint8 " .. INPUTS[n] .. " with a qint8 weight, as quint8. The layer of tide.nn.quantized packs its weight once.",
            function(x, weight, bias, stride, padding, dilation, groups, scale, point)
                local kernel = table.move(weight.shape, 3, weight:dim(), 1, {})
                return tide._quantized_conv(x, tide._quantized_pack(weight, groups), bias, scale, point, kernel, stride, padding, dilation)
            end, tide._doc(tide[name]).shapes)
    end
    quantized.functional = F
    tide._document(F, "functional", "tide.nn.quantized.functional", "linear, conv1d, conv2d and conv3d of bytes, with weights that nothing keeps packed.")
end

-- ---- between layers ----

local function between(quantized)
    layers.layer(quantized, 'Quantize(number scale, int zero_point, "quint8"|"qint8" dtype="quint8")',
        "Floats as bytes of a scale and a zero point.", "x (...) -> (...)", {
        derive = function(self)
            self.scale = self.scale + 0.0
            keep_numbers(self, { "scale", "zero_point" })
        end,
        forward = function(self, x) return tide.quantize_per_tensor(x, self.scale:item(), self.zero_point:item(), self.dtype) end,
        extra_repr = scale_text,
    })
    layers.layer(quantized, "DeQuantize()", "Bytes as the floats that they stand for.", "x (...) -> (...)", {
        forward = function(_, x) return x:dequantize() end,
    })
    local function combining(operator, relu)
        return function(self, a, b) return operator(a, b, self.scale:item(), self.zero_point:item(), relu) end
    end
    layers.layer(quantized, "QFunctional(number scale=1, int zero_point=0)",
        "Sums and products of quantized tensors as bytes of a scale and a zero point: q:add(a, b), add_relu, mul, mul_relu, and "
        .. "q:cat(list, dim). What tide.quantization.convert makes of a FloatFunctional.", nil, {
        derive = function(self)
            self.scale = self.scale + 0.0
            keep_numbers(self, { "scale", "zero_point" })
        end,
        add = combining(tide._quantized_add, false),
        add_relu = combining(tide._quantized_add, true),
        mul = combining(tide._quantized_mul, false),
        mul_relu = combining(tide._quantized_mul, true),
        cat = function(self, list, dim)
            local scale, point, parts = self.scale:item(), self.zero_point:item(), {}
            for k, x in ipairs(list) do
                local same = x:qscheme() == "per_tensor_affine" and x:q_scale() == scale and x:q_zero_point() == point
                parts[k] = same and x or tide.quantize_per_tensor(x:dequantize(), scale, point, x.dtype)
            end
            return tide.cat(parts, dim)
        end,
        forward = function() fail "QFunctional: call its add, add_relu, mul, mul_relu or cat" end,
        extra_repr = scale_text,
    })
end

return function(nn)
    local quantized, dynamic = { class = nn.class }, { class = nn.class }
    linears(quantized, dynamic)
    for n = 1, 3 do
        conv(quantized, nn, n)
    end
    tide._require("nn.weight_only")(quantized)
    tide._require("nn.quantized_tables")(quantized)
    between(quantized)
    functions(quantized)
    quantized.class, dynamic.class = nil, nil
    quantized.dynamic = dynamic
    nn.quantized = quantized
    tide._document(dynamic, "dynamic", "tide.nn.quantized.dynamic", "Layers that quantize what they are given by its own range.")
    tide._document(quantized, "quantized", "tide.nn.quantized", "Layers with weights of bytes, and what stands between them.")
end
