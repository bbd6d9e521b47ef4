-- nn/quantized.lua: tide.nn.quantized: layers whose weights are bytes, packed once, and what stands between them.
-- Products are exact in integers, so that a model gives the same bits on every processor
-- (engine/ops/quantized/README.md).
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"

-- What was made of a layer's weight, while it stays the same: packed, and floats.
local made = setmetatable({}, { __mode = "k" })

local function made_of(self)
    local entry = made[self]
    if not entry or not rawequal(entry.weight, self.weight) or entry.version ~= self.weight._version then
        entry = { weight = self.weight, version = self.weight._version }
        made[self] = entry
    end
    return entry
end

local function packed_of(self)
    local entry = made_of(self)
    entry.packed = entry.packed or self.pack and self:pack()
        or tide._quantized_pack(self.weight, self.groups or 1, self.saturate == "fbgemm")
    return entry.packed
end

local numbers = setmetatable({}, { __mode = "k" })

-- What a tensor of one number holds; of a device it is asked for once while it stays the same.
local function number(x)
    local known = numbers[x]
    if not known or known.version ~= x._version then
        known = { value = x:item(), version = x._version }
        numbers[x] = known
    end
    return known.value
end

-- A weight of floats as qint8, by what an observer that `make` makes says of it, or else by output channel, symmetric; dim
-- (1 as if nothing is said): that of its output channels.
local function quantize_weight(weight, make, dim)
    weight = weight:detach():float()
    local observer = make and make()
        or tide.quantization.PerChannelMinMaxObserver { dtype = "qint8", qscheme = "per_channel_symmetric" }
    if observer.dtype ~= "qint8" then
        fail("from_float: weight: an observer of qint8 expected, got one of %s", tostring(observer.dtype))
    end
    if observer.ch_axis then
        observer.ch_axis = dim or observer.ch_axis
    end
    observer(weight)
    local scales, points = observer:calculate_qparams()
    if observer.ch_axis then
        return tide.quantize_per_channel(weight, scales, points, dim or 1, tide.qint8)
    end
    return tide.quantize_per_tensor(weight, scales:item(), points:item(), tide.qint8)
end

-- Weights of a shape that stand for 0 until they are given, and a bias of so many channels (as many as rows).
local function start(self, shape, channels)
    local has_bias = layers.take_bias(self)
    self:register_buffer("weight", quantize_weight(tide.zeros(shape), nil, self.channel_dim))
    if has_bias then
        self:register_buffer("bias", tide.zeros(channels or shape[1]))
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

local function set_weight(self, layer, make)
    self.weight = quantize_weight(layer.weight, make, self.channel_dim)
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
    return tide.quantize_per_tensor(x, number(self.in_scale), number(self.in_zero_point), tide.quint8)
end

local function given(self, y) return self.floats and y:dequantize() or y end

local PROOF = { "magic", "columns", "depth", "panels", "groups", "pairs", "unsafe_pairs", "moved_groups", "ordered", "centred",
    "depthwise", "saturates", "bytes" }

-- proof(): what packing has proved of the weights: how many pairs of weights were looked at, how many of them could
-- make `vpmaddubsw` saturate, and how many groups of four rows were put aside for it, to be multiplied in 16 bits. Of a
-- weight on another device it tells what the CPU's packing would prove.
local function proof(self)
    if self.weight.device ~= "cpu" then
        return self:clone():cpu():proof()
    end
    local packed, rows = packed_of(self), {}
    local sums, total = { pairs = 0, unsafe_pairs = 0, groups = 0, moved_groups = 0, bytes = 0 }, 0
    for _, packs in ipairs(tide.is_tensor(packed) and { packed } or packed) do
        for row = 1, packs:dim() == 2 and packs:size(1) or 1 do
            rows[#rows + 1] = packs:dim() == 2 and packs[row] or packs
        end
    end
    for _, row in ipairs(rows) do
        local head, found = row[{ { 1, 8 * #PROOF } }]:tolist(), {}
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

local function scale_text(self) return string.format("scale=%s, zero_point=%d", tide._number(number(self.scale), 6), number(self.zero_point)) end

-- ---- floats where they are quicker ----

-- What a layer does in floats: with the weight that its bytes stand for; class.multiply(self, x, weight).
local function in_floats(self, x, residual)
    local entry = made_of(self)
    entry.floats = entry.floats or self.weight:dequantize()
    local y = self:multiply(x.is_quantized and x:dequantize() or x, entry.floats)
    y = residual and y + residual:dequantize() or y
    y = self.relu and y:relu() or y
    local whole = self.floats or not self.scale
    return whole and y or tide.quantize_per_tensor(y, number(self.scale), number(self.zero_point), tide.quint8)
end

local Choice = { __name = "choice" }

function Choice:__tostring()
    return string.format("%s for x of shape %s: int8 %.1f us, float32 %.1f us", self.kept, self.shape, 1e6 * self.seconds, 1e6 * self.float_seconds)
end

-- The least of the seconds that some calls take.
local function least_of(fn, runs, timer, ...)
    local least = math.huge
    for _ = 1, runs do
        local begun = timer()
        fn(...)
        least = math.min(least, timer() - begun)
    end
    return least
end

-- plan(x): measures the layer on x in bytes and in floats, and from then on does what was quicker: {kept = "int8" or "float32", shape,
-- seconds, float_seconds}, which prints. What is kept in floats differs by the rounding, and from machine to machine by the choice.
local plan = tide._function("plan(Module self, Tensor x, *, int(1..) runs=10, function? timer=nil) -> table",
    "Measures the layer on x in bytes and in floats, and lets it do what was quicker from then on.", function(self, x, runs, timer)
        local _ <close> = tide.no_grad()
        timer = timer or tide.time
        local class, choice = getmetatable(self), { shape = tostring(x.shape) }
        choice.seconds, choice.float_seconds = least_of(class.in_bytes, runs, timer, self, x), least_of(in_floats, runs, timer, self, x)
        choice.kept = choice.float_seconds < choice.seconds and "float32" or "int8"
        rawset(self, "kept", choice.kept)
        return setmetatable(choice, Choice)
    end)

-- A layer with a weight: class.forward(self, x, residual) is what it does in bytes.
local function define(room, schema, doc, shapes, class)
    class.proof, class.plan, class.in_bytes = proof, plan, class.forward
    class.forward = function(self, x, residual)
        return (self.kept == "float32" and in_floats or class.in_bytes)(self, x, residual)
    end
    local text = class.extra_repr
    class.extra_repr = function(self) return text(self) .. (self.kept == "float32" and ", in float32" or "") end
    layers.layer(room, schema, doc, shapes, class)
end

-- How a layer of bytes is made of one of floats.
local HOW = "*, number scale=1, int zero_point=0, bool relu=false, number? in_scale=nil, int in_zero_point=0, bool floats=false, "
    .. '"exact"|"fbgemm" saturate="exact"'
local HOW_DOC = " With in_scale a float x is quantized first, with floats the result is dequantized. saturate = \"fbgemm\": sums as "
    .. "fbgemm has them on processors without VNNI, slowly, to compare with."

local function define_from_float(class, of, make)
    class.from_float = tide._function("from_float(Module layer, " .. HOW .. ", function? weight=nil) -> Module",
        "The layer of the weights of a tide.nn." .. of .. ". weight: makes an observer of them, qint8 by channel and symmetric as if nothing is said.",
        function(layer, scale, point, relu, in_scale, in_point, floats, saturate, weight)
            return set_weight(make(layer, { scale = scale, zero_point = point, relu = relu, in_scale = in_scale, in_zero_point = in_point,
                floats = floats, saturate = saturate }), layer, weight)
        end)
end

local function linears(quantized, dynamic)
    local LINEAR, SHAPES = "Linear(int(1..) in_features, int(1..) out_features, bool bias=true, ", "x (..., in_features) -> (..., out_features)"
    local function make(self) start(self, { self.out_features, self.in_features }) end
    local function multiply(self, x, weight) return tide.linear(x, weight, self.bias) end
    define(dynamic, LINEAR .. "*, bool relu=false, bool reduce_range=false)",
        "y = x W^T + b of a float32 x, which is quantized in each call by its own range, and a qint8 weight.", SHAPES, {
        derive = make,
        multiply = multiply,
        forward = function(self, x) return tide._quantized_linear_dynamic(x, packed_of(self), self.bias, self.relu, self.reduce_range) end,
        extra_repr = function(self) return linear_text(self) .. ", dtype=qint8" end,
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
        multiply = multiply,
        forward = function(self, x)
            return given(self, tide._quantized_linear(bytes_of(self, x), packed_of(self), self.bias, number(self.scale),
                number(self.zero_point), self.relu))
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
    return given(self, tide._quantized_conv(bytes_of(self, x), packed_of(self), self.bias, number(self.scale), number(self.zero_point),
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
            multiply = function(self, x, weight)
                return tide[string.lower(of)](x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
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

-- ---- a number and a tensor ----

local INTEGERS = { [tide.quint8] = { 0, 255, tide.uint8 }, [tide.qint8] = { -128, 127, tide.int8 } }

local function range_of(x)
    local range = tide.is_tensor(x) and x.is_quantized and INTEGERS[x.dtype]
    if not range or x:qscheme() ~= "per_tensor_affine" then
        fail("QFunctional: a quint8 or qint8 tensor of one scale expected, got %s", tide._describe(x))
    end
    return table.unpack(range)
end

-- x + number by PyTorch's rule: the zero point moves and the integers stay; where it would leave its type, the scale
-- becomes what the range still needs, and the integers are rounded anew.
local function add_scalar(x, number)
    local low, high, dtype = range_of(x)
    local scale, point = x:q_scale(), x:q_zero_point()
    local steps = math.tointeger(tide.tensor(number / scale, { dtype = tide.float64 }):round():item())
    local moved = point - steps
    if moved >= low and moved <= high then
        return tide._make_per_tensor_quantized_tensor(x:int_repr(), scale, moved)
    end
    local wider = (moved < low and high - moved or moved - low) / (high - low) * scale
    local to = moved < low and low or high
    local factor = tide.tensor(scale / wider, { dtype = tide.float32 })
    local ints = ((x:int_repr():int() - point + steps):float() * factor):round():int() + to
    return tide._make_per_tensor_quantized_tensor(ints:clamp(low, high):to(dtype), wider, to)
end

-- x * number by PyTorch's rule: the scale changes, and for a negative number the integers are turned round.
local function mul_scalar(x, number)
    local low, high, dtype = range_of(x)
    local scale, point, ints = x:q_scale(), x:q_zero_point(), x:int_repr()
    if number == 0 then
        return tide._make_per_tensor_quantized_tensor(tide.zeros_like(ints), 1, 0)
    elseif number < 0 then
        ints, point = (high + low - ints:int()):to(dtype), high + low - point
    end
    return tide._make_per_tensor_quantized_tensor(ints, scale * math.abs(number), point)
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
    tide._require("nn.quantized_transposed").functions(F)
    -- fn of each element, by a table of all bytes where there are many.
    local function elementwise(fn)
        return function(x, scale, point, ...)
            local range = x:numel() >= 2048 and x:qscheme() == "per_tensor_affine" and INTEGERS[x.dtype]
            if not range then
                return tide.quantize_per_tensor(fn(x:dequantize(), ...), scale, point, x.dtype)
            end
            local all = tide._make_per_tensor_quantized_tensor(tide.arange(range[1], range[2] + 1):to(range[3]), x:q_scale(), x:q_zero_point())
            local known = tide.quantize_per_tensor(fn(all:dequantize(), ...), scale, point, x.dtype):int_repr()
            return tide._make_per_tensor_quantized_tensor(tide._lookup_bytes(x:int_repr(), known), scale, point)
        end
    end
    local function rounded(fn)
        return function(x, scale, point, ...) return tide.quantize_per_tensor(fn(x:dequantize(), ...), scale, point, x.dtype) end
    end

    -- Functions of floats, of what bytes stand for, rounded to bytes of a scale and a zero point.
    local function of_floats(name, rest, doc, compute)
        F[name] = declare(name .. "(Tensor input, number scale, int zero_point" .. rest .. ") -> Tensor",
            doc .. " What a quantized input stands for goes in, bytes of the scale and the zero point come out.", function(x, scale, point, ...)
                if not x.is_quantized then
                    fail("%s: input is %s: a quantized tensor expected", name, tide._describe(x))
                end
                return compute(x, scale, point, ...)
            end, "input (...) -> (...)")
    end
    of_floats("hardswish", "", "x * hardsigmoid(x).", elementwise(function(x) return x:hardswish() end))
    of_floats("elu", ", number alpha=1", "x where positive, else alpha * (exp(x) - 1).", elementwise(function(x, alpha) return x:elu(alpha) end))
    of_floats("celu", ", number alpha=1", "x where positive, else alpha * (exp(x / alpha) - 1).", elementwise(function(x, alpha) return x:celu(alpha) end))
    of_floats("softmax", ", dim dim=-1", "exp(x) by its sum along a dim.", rounded(function(x, dim) return x:softmax(dim) end))
    of_floats("layer_norm", ", int[] normalized_shape, Tensor? weight=nil, Tensor? bias=nil, number eps=1e-05", "Normalized over the last dims.",
        rounded(function(x, shape, weight, bias, eps) return tide.layer_norm(x, shape, weight, bias, eps) end))

    quantized.functional = F
    tide._document(F, "functional", "tide.nn.quantized.functional",
        "linear, conv1d to conv3d and conv_transpose1d to 3d of bytes, with weights that nothing keeps packed; hardswish, elu, celu, softmax, layer_norm.")
end

-- ---- between layers ----

local function between(quantized)
    layers.layer(quantized, 'Quantize(number scale, int zero_point, "quint8"|"qint8" dtype="quint8")',
        "Floats as bytes of a scale and a zero point.", "x (...) -> (...)", {
        derive = function(self)
            self.scale = self.scale + 0.0
            keep_numbers(self, { "scale", "zero_point" })
        end,
        forward = function(self, x) return tide.quantize_per_tensor(x, number(self.scale), number(self.zero_point), self.dtype) end,
        extra_repr = scale_text,
    })
    layers.layer(quantized, "DeQuantize()", "Bytes as the floats that they stand for.", "x (...) -> (...)", {
        forward = function(_, x) return x.is_quantized and x:dequantize() or x end,
    })
    layers.layer(quantized, "Float(Module module, number scale=1, int zero_point=0, bool floats=false)",
        "A module of floats among those of bytes: it is given what the bytes stand for, and what it gives is quantized, unless floats.",
        "x (...) -> (...)", {
        derive = function(self)
            local module = self.module
            rawset(self, "module", nil)
            self.module = module
            self.scale = self.scale + 0.0
            keep_numbers(self, { "scale", "zero_point" })
        end,
        forward = function(self, x)
            local y = self.module(x.is_quantized and x:dequantize() or x)
            return self.floats and y or tide.quantize_per_tensor(y, number(self.scale), number(self.zero_point), tide.quint8)
        end,
        extra_repr = scale_text,
    })
    local function combining(operator, relu)
        return function(self, a, b) return operator(a, b, number(self.scale), number(self.zero_point), relu) end
    end
    layers.layer(quantized, "QFunctional(number scale=1, int zero_point=0)",
        "Sums and products of quantized tensors as bytes of a scale and a zero point: q:add(a, b), add_relu, mul, mul_relu, and "
        .. "q:cat(list, dim); add_scalar, mul_scalar and these with _relu change a tensor's own scale and zero point instead. What "
        .. "tide.quantization.convert makes of a FloatFunctional.", nil, {
        derive = function(self)
            self.scale = self.scale + 0.0
            keep_numbers(self, { "scale", "zero_point" })
        end,
        add = combining(tide._quantized_add, false),
        add_relu = combining(tide._quantized_add, true),
        mul = combining(tide._quantized_mul, false),
        mul_relu = combining(tide._quantized_mul, true),
        add_scalar = function(_, x, number) return add_scalar(x, number) end,
        add_scalar_relu = function(_, x, number) return add_scalar(x, number):relu() end,
        mul_scalar = function(_, x, number) return mul_scalar(x, number) end,
        mul_scalar_relu = function(_, x, number) return mul_scalar(x, number):relu() end,
        cat = function(self, list, dim)
            local scale, point, parts = number(self.scale), number(self.zero_point), {}
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
    tide._require("nn.quantized_transposed").layers(quantized, nn, { define = define, define_from_float = define_from_float, start = start,
        keep_parameters = keep_parameters, bytes_of = bytes_of, given = given, packed_of = packed_of, number = number, scale_text = scale_text,
        HOW = HOW, HOW_DOC = HOW_DOC })
    tide._require("nn.weight_only")(quantized)
    tide._require("nn.quantized_tables")(quantized)
    between(quantized)
    functions(quantized)
    tide._require("nn.quantized_recurrent")(dynamic, set_weight)
    quantized.class, dynamic.class = nil, nil
    for _, room in ipairs { quantized, dynamic } do -- scales, mins and biases are what integers are read by: no float of the model's dtype
        for _, class in pairs(room) do
            class.keeps_dtypes = true
        end
    end
    quantized.dynamic = dynamic
    nn.quantized = quantized
    tide._document(dynamic, "dynamic", "tide.nn.quantized.dynamic", "Layers that quantize what they are given by its own range.")
    tide._document(quantized, "quantized", "tide.nn.quantized", "Layers with weights of bytes, and what stands between them.")
end
