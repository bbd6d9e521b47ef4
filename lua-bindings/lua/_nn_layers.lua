-- _nn_layers.lua: the layers of tide.nn. Arguments, defaults and starting values are PyTorch's; dims count
-- from 1. Layer(a, b, {option = value}) and Layer{a, b, option = value} mean the same.
local tide = ...
local fail, init, layer = tide._fail, tide._nn_init, tide._nn_layer

-- "(3, 3)" of a pair; the number alone where both are equal and `short`.
local function pair_text(pair, short)
    if type(pair) ~= "table" then
        return tostring(pair)
    elseif short and pair[1] == pair[2] then
        return tostring(pair[1])
    end
    return ("(%d, %d)"):format(pair[1], pair[2])
end

local function is_pair(pair, value)
    return pair[1] == value and pair[2] == value
end

-- Weights in U(-1/sqrt(fan_in), 1/sqrt(fan_in)), which is what PyTorch's kaiming_uniform(a = sqrt 5) gives.
local function start_weights(self, shape, outputs, fan_in)
    local bound = fan_in > 0 and 1 / math.sqrt(fan_in) or 0
    local has_bias = self.bias
    rawset(self, "has_bias", has_bias)
    rawset(self, "bias", nil)
    self.weight = init.uniform_(tide.empty(shape), -bound, bound):requires_grad_(true)
    if has_bias then
        self.bias = init.uniform_(tide.empty(outputs), -bound, bound):requires_grad_(true)
    end
end

return function(nn)
    layer(nn, "Linear(int(0..) in_features, int(0..) out_features, bool bias=true)", "y = x W^T + b.", {
        make = function(self)
            start_weights(self, { self.out_features, self.in_features }, self.out_features, self.in_features)
        end,
        forward = function(self, x) return tide.linear(x, self.weight, self.bias) end,
        extra_repr = function(self)
            return ("in_features=%d, out_features=%d, bias=%s"):format(self.in_features, self.out_features,
                self.has_bias)
        end,
    })

    layer(nn, "Conv2d(int(1..) in_channels, int(1..) out_channels, int(1..)[2] kernel_size, "
        .. "int(1..)[2] stride={1, 1}, int(0..)[2] padding={0, 0}, int(1..)[2] dilation={1, 1}, "
        .. "int(1..) groups=1, bool bias=true)", "Convolution of images (N, C, H, W).", {
        make = function(self)
            if self.in_channels % self.groups ~= 0 or self.out_channels % self.groups ~= 0 then
                fail("Conv2d: %d and %d channels can't be divided into %d groups", self.in_channels,
                    self.out_channels, self.groups)
            end
            local inputs = self.in_channels // self.groups
            local kernel = self.kernel_size
            start_weights(self, { self.out_channels, inputs, kernel[1], kernel[2] }, self.out_channels,
                inputs * kernel[1] * kernel[2])
        end,
        forward = function(self, x)
            return tide.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        end,
        extra_repr = function(self)
            local text = ("%d, %d, kernel_size=%s, stride=%s"):format(self.in_channels, self.out_channels,
                pair_text(self.kernel_size), pair_text(self.stride))
            if not is_pair(self.padding, 0) then
                text = text .. ", padding=" .. pair_text(self.padding)
            end
            if not is_pair(self.dilation, 1) then
                text = text .. ", dilation=" .. pair_text(self.dilation)
            end
            if self.groups ~= 1 then
                text = text .. ", groups=" .. self.groups
            end
            return text .. (self.has_bias and "" or ", bias=false")
        end,
    })

    layer(nn, "MaxPool2d(int(1..)[2] kernel_size, int(1..)[2]? stride=nil, int(0..)[2] padding={0, 0}, "
        .. "int(1..)[2] dilation={1, 1}, bool ceil_mode=false)",
        "Largest element of each window; the stride is the window's size where none is given.", {
        make = function(self) rawset(self, "stride", self.stride or self.kernel_size) end,
        forward = function(self, x)
            return tide.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)
        end,
        extra_repr = function(self)
            return ("kernel_size=%s, stride=%s, padding=%s, dilation=%s, ceil_mode=%s"):format(
                pair_text(self.kernel_size, true), pair_text(self.stride, true), pair_text(self.padding, true),
                pair_text(self.dilation, true), self.ceil_mode)
        end,
    })

    layer(nn, "AvgPool2d(int(1..)[2] kernel_size, int(1..)[2]? stride=nil, int(0..)[2] padding={0, 0}, "
        .. "bool ceil_mode=false, bool count_include_pad=true)",
        "Mean of each window; the stride is the window's size where none is given.", {
        make = function(self) rawset(self, "stride", self.stride or self.kernel_size) end,
        forward = function(self, x)
            return tide.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                self.count_include_pad)
        end,
        extra_repr = function(self)
            return ("kernel_size=%s, stride=%s, padding=%s"):format(pair_text(self.kernel_size, true),
                pair_text(self.stride, true), pair_text(self.padding, true))
        end,
    })

    layer(nn, "AdaptiveAvgPool2d(int(1..)[2] output_size)", "Means of windows that divide each plane.", {
        forward = function(self, x) return tide.adaptive_avg_pool2d(x, self.output_size) end,
        extra_repr = function(self) return "output_size=" .. pair_text(self.output_size, true) end,
    })

    layer(nn, "Flatten(dim start_dim=1, dim end_dim=-1)", "Joins dims into one.", {
        forward = function(self, x) return x:flatten(self.start_dim, self.end_dim) end,
        extra_repr = function(self)
            return ("start_dim=%d, end_dim=%d"):format(self.start_dim, self.end_dim)
        end,
    })

    layer(nn, "Unflatten(dim dim, int[] sizes)", "Divides one dim into several.", {
        forward = function(self, x) return x:unflatten(self.dim, self.sizes) end,
        extra_repr = function(self)
            return ("dim=%d, sizes=(%s)"):format(self.dim, table.concat(self.sizes, ", "))
        end,
    })

    layer(nn, "Dropout(number(0..1) p=0.5, bool inplace=false)", "In training zeroes elements with probability p.", {
        forward = function(self, x)
            if self.inplace then
                return x:dropout_(self.p, self.training)
            end
            return tide.dropout(x, self.p, self.training)
        end,
        extra_repr = function(self) return ("p=%s, inplace=%s"):format(tide._number(self.p, 6), self.inplace) end,
    })

    layer(nn, "Softmax(dim dim)", "exp(x) over its sum along a dim.", {
        forward = function(self, x) return tide.softmax(x, self.dim) end,
        extra_repr = function(self) return "dim=" .. self.dim end,
    })

    layer(nn, "LogSoftmax(dim dim)", "Logarithm of softmax.", {
        forward = function(self, x) return tide.log_softmax(x, self.dim) end,
        extra_repr = function(self) return "dim=" .. self.dim end,
    })

    layer(nn, "Identity()", "Gives back what it gets.", { forward = function(_, x) return x end })

    -- Activations: a function of the input alone, which says what they do.
    for name, fn in pairs { ReLU = "relu", Tanh = "tanh", Sigmoid = "sigmoid", GELU = "gelu", SiLU = "silu" } do
        layer(nn, name .. "()", tide._doc(fn).doc, { forward = function(_, x) return tide[fn](x) end })
    end
end
