-- nn/qat.lua: tide.nn.qat: layers that round their weights as bytes do while they are trained. The gradient goes straight
-- through the rounding.
local tide = ...
local fail = tide._fail
local qat = {}

-- A weight rounded as tide.nn.quantized would round it, by its range at that moment: by output channel, symmetric, or by the
-- observer that `make` makes. dim (1 as if nothing is said): that of the output channels.
local function rounded(weight, make, dim)
    local quantization = tide.quantization
    local observer = make and make() or quantization.PerChannelMinMaxObserver { dtype = "qint8", qscheme = "per_channel_symmetric" }
    if observer.ch_axis then
        observer.ch_axis = dim or observer.ch_axis
    end
    observer(weight)
    local scales, points = observer:calculate_qparams()
    if not observer.ch_axis then
        return quantization.fake_quantize_per_tensor_affine(weight, scales, points, -128, 127)
    end
    return quantization.fake_quantize_per_channel_affine(weight, scales, points, dim or 1, -128, 127)
end

-- One number for each output channel of a weight, in a shape that broadcasts over it.
local function along_channels(x, weight)
    local sizes = { -1 }
    for d = 2, weight:dim() do
        sizes[d] = 1
    end
    return x:reshape(sizes)
end

local function convolve(conv, x, weight, bias)
    return tide[string.format("conv%dd", #conv.kernel_size)](x, weight, bias, conv.stride, conv.padding, conv.dilation, conv.groups)
end

local function check_padding(conv)
    if conv.padding_mode ~= "zeros" then
        fail("%s: padding_mode '%s': convolutions of bytes pad with zeros", getmetatable(conv).__name, conv.padding_mode)
    end
end

-- A class with the arguments, parameters and names of one of tide.nn.
local function derive(room, nn, name, schema, check, forward)
    local parent = nn[name]
    local class = nn.class(name, parent)
    function class:init(...)
        parent.init(self, ...)
        check(self)
    end
    class.forward = forward
    room[name] = class
    local doc = string.format("A layer as tide.nn.%s, whose weight is rounded in every call to what int8 can hold.", name)
    tide._document(class, tide._function(name .. schema, doc, nil, tide._doc(parent).shapes))
end

-- A convolution and its batch norm: the weight that is rounded is the one into which the norm is folded, by the
-- statistics so far; what it gives is normalised by the batch's.
local function join_norm(room, nn, n)
    local name = string.format("ConvBn%dd", n)
    local class = nn.class(name)
    local read = tide._function(name .. "(Module conv, Module bn)", string.format("A tide.nn.Conv%dd and its BatchNorm%dd as one layer, "
        .. "whose rounded weight is the one into which the norm is folded.", n, n), nil, tide._doc(nn[string.format("Conv%dd", n)]).shapes)

    function class:init(...)
        local given = read(...)
        check_padding(given.conv)
        if not rawget(given.bn, "running_mean") then
            fail("%s: %s keeps no statistics", name, getmetatable(given.bn).__name)
        end
        self.conv, self.bn = given.conv, given.bn
    end

    function class:forward(x)
        local conv, bn = self.conv, self.bn
        local factor = (bn.running_var + bn.eps):rsqrt()
        factor = bn.weight and factor * bn.weight or factor
        local weight = rounded(conv.weight * along_channels(factor, conv.weight), self.weight_observer)
        return bn(convolve(conv, x, weight / along_channels(factor, weight), conv.bias))
    end

    room[name] = class
    tide._document(class, read)
end

local ROOM = {}

--- of(layer): the layer, of tide.nn.Linear or a convolution, as the one for training; others as they are.
function qat.of(layer)
    local class = ROOM[getmetatable(layer).__name]
    if class and getmetatable(layer) == tide.nn[class.__name] then
        if layer.padding_mode then
            check_padding(layer)
        end
        setmetatable(layer, class)
    end
    return layer
end

--- join(conv, bn): both as one layer for training.
function qat.join(conv, bn) return ROOM[string.format("ConvBn%dd", #conv.kernel_size)](conv, bn) end

--- float_of(layer): a layer for training as one of floats that does the same in evaluation, but for the rounding.
function qat.float_of(layer)
    local class = getmetatable(layer)
    if ROOM[class.__name] ~= class then
        return layer
    elseif layer.conv then
        return tide.nn.utils.fuse_conv_bn_eval(layer.conv:clone():eval(), layer.bn:clone():eval())
    end
    return setmetatable(layer:clone(), tide.nn[class.__name])
end

function qat.open(nn)
    local room = ROOM
    derive(room, nn, "Linear", "(int(1..) in_features, int(1..) out_features, bool bias=true)", function() end,
        function(self, x) return tide.linear(x, rounded(self.weight, self.weight_observer), self.bias) end)
    for n = 1, 3 do
        local ones, zeros = "{" .. string.rep("1, ", n - 1) .. "1}", "{" .. string.rep("0, ", n - 1) .. "0}"
        local function schema_of(sizes)
            return (string.gsub(string.gsub(string.gsub("(int(1..) in_channels, int(1..) out_channels, int(1..)[N] kernel_size, "
                .. sizes .. ")", "%[N%]", "[" .. n .. "]"), "ONES", ones), "ZEROS", zeros))
        end
        derive(room, nn, string.format("ConvTranspose%dd", n), schema_of("int(1..)[N] stride=ONES, int(0..)[N] padding=ZEROS, "
            .. "int(0..)[N] output_padding=ZEROS, int(1..) groups=1, bool bias=true, int(1..)[N] dilation=ONES"), check_padding, function(self, x)
            return tide[string.format("conv_transpose%dd", n)](x, rounded(self.weight, self.weight_observer, 2), self.bias, self.stride,
                self.padding, self.output_padding, self.groups, self.dilation)
        end)
        derive(room, nn, string.format("Conv%dd", n), schema_of('int(1..)[N] stride=ONES, int(0..)[N]|"same"|"valid" padding=ZEROS, '
            .. "int(1..)[N] dilation=ONES, int(1..) groups=1, bool bias=true"), check_padding,
            function(self, x) return convolve(self, x, rounded(self.weight, self.weight_observer), self.bias) end)
        join_norm(room, nn, n)
    end
    nn.qat = room
    tide._document(room, "qat", "tide.nn.qat", "Layers whose weights are rounded as bytes while they are trained.")
end

return qat
