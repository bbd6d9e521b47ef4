-- nn/spatial.lua: the layers of tide.nn over one to three spatial dims: convolution, pooling, padding,
-- resampling, windows and shuffles. Arguments, defaults and starting values are PyTorch's.
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"
local layer, list_text, short_text, all_are = layers.layer, layers.list_text, layers.short_text, layers.all_are
local shapes_of = layers.shapes_of

local INPUTS = { "signals (N, C, L)", "images (N, C, H, W)", "volumes (N, C, D, H, W)" }

-- "{0, 0}"
local function repeated(value, n)
    return "{" .. string.rep(value .. ", ", n - 1) .. value .. "}"
end

-- N in a schema's text stands for the number of dims, {0} and {1} for so many of them.
local function for_dims(text, n)
    return (string.gsub(string.gsub(string.gsub(text, "Nd", n .. "d"), "%[N%]", "[" .. n .. "]"), "{(%d)}", function(v) return repeated(v, n) end))
end

local function product(list)
    local n = 1
    for _, v in ipairs(list) do
        n = n * v
    end
    return n
end

-- "name=value" of fields, with a text for lists.
local function fields_text(self, names, text)
    local parts = {}
    for name in string.gmatch(names, "%S+") do
        parts[#parts + 1] = name .. "=" .. text(self[name])
    end
    return table.concat(parts, ", ")
end

-- ---- convolution ----

local function check_groups(self)
    if self.in_channels % self.groups ~= 0 or self.out_channels % self.groups ~= 0 then
        fail("%s: %d and %d channels can't be divided into %d groups", getmetatable(self).__name, self.in_channels,
            self.out_channels, self.groups)
    end
end

local function conv_text(self)
    local text = string.format("%d, %d, kernel_size=%s, stride=%s", self.in_channels, self.out_channels,
        list_text(self.kernel_size), list_text(self.stride))
    for _, field in ipairs { { "padding", 0 }, { "dilation", 1 }, { "output_padding", 0 } } do
        local value = self[field[1]]
        if type(value) == "string" or value and not all_are(value, field[2]) then
            text = string.format("%s, %s=%s", text, field[1], list_text(value))
        end
    end
    text = text .. (self.groups ~= 1 and ", groups=" .. self.groups or "") .. (self.has_bias and "" or ", bias=false")
    return text .. (self.padding_mode ~= "zeros" and ", padding_mode=" .. self.padding_mode or "")
end

-- The argument of tide.pad that stands for a convolution's padding: the last dim first.
local function pads_of(self)
    local pads, n = {}, #self.kernel_size
    for d = n, 1, -1 do
        local around = self.dilation[d] * (self.kernel_size[d] - 1)
        local p = self.padding
        pads[#pads + 1] = p == "same" and around // 2 or p == "valid" and 0 or p[d]
        pads[#pads + 1] = p == "same" and around - around // 2 or p == "valid" and 0 or p[d]
    end
    return pads
end

local AXES = { { "L" }, { "H", "W" }, { "D", "H", "W" } }

-- A convolution's shapes by the names of its layer's fields: O and C are channels, kH a size of the kernel.
local function conv_shapes(fn, n)
    local text = string.gsub(shapes_of(fn), "O%*groups", "out_channels")
    local outputs = string.find(fn, "transpose") and "out_channels//groups" or "out_channels"
    text = string.gsub(string.gsub(text, "%f[%w]C%f[%W]", "in_channels"), "%f[%w]O%f[%W]", outputs)
    for d, axis in ipairs(AXES[n]) do
        text = string.gsub(text, "%f[%w]k" .. axis .. "%f[%W]", "kernel_size[" .. d .. "]")
    end
    return text
end

local function conv(nn, n)
    local fn = tide[string.format("conv%dd", n)]
    layer(nn, for_dims('ConvNd(int(1..) in_channels, int(1..) out_channels, int(1..)[N] kernel_size, int(1..)[N] stride={1}, '
        .. 'int(0..)[N]|"same"|"valid" padding={0}, int(1..)[N] dilation={1}, int(1..) groups=1, bool bias=true, '
        .. '"zeros"|"reflect"|"replicate"|"circular" padding_mode="zeros")', n), "Convolution of " .. INPUTS[n] .. ".",
        conv_shapes("conv" .. n .. "d", n), {
        make = function(self)
            check_groups(self)
            if self.padding == "same" and not all_are(self.stride, 1) then
                fail('Conv%dd: padding "same" needs a stride of 1, got %s', n, list_text(self.stride))
            end
            local inputs = self.in_channels // self.groups
            layers.start_weights(self, { self.out_channels, inputs, table.unpack(self.kernel_size) }, self.out_channels,
                inputs * product(self.kernel_size))
        end,
        forward = function(self, x)
            if self.padding_mode == "zeros" then
                return fn(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
            end
            x = tide.pad(x, pads_of(self), self.padding_mode)
            return fn(x, self.weight, self.bias, self.stride, "valid", self.dilation, self.groups)
        end,
        extra_repr = conv_text,
    })
end

-- What output_padding gives a result of output_size: its spatial sizes, or all.
local function padding_for(self, x, size)
    local n, padding = #self.kernel_size, {}
    if #size ~= n and #size ~= #x.shape then
        fail("%s: output_size must have %d or %d sizes, got %d", getmetatable(self).__name, n, #x.shape, #size)
    end
    for d = 1, n do
        local least = (x.shape[#x.shape - n + d] - 1) * self.stride[d] - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1) + 1
        local wanted = size[#size - n + d]
        if wanted < least or wanted >= least + self.stride[d] then
            fail("%s: output_size must lie between %d and %d for an input of shape %s, got %d", getmetatable(self).__name,
                least, least + self.stride[d] - 1, tostring(x.shape), wanted)
        end
        padding[d] = wanted - least
    end
    return padding
end

local function conv_transpose(nn, n)
    local fn = tide[string.format("conv_transpose%dd", n)]
    layer(nn, for_dims('ConvTransposeNd(int(1..) in_channels, int(1..) out_channels, int(1..)[N] kernel_size, '
        .. 'int(1..)[N] stride={1}, int(0..)[N] padding={0}, int(0..)[N] output_padding={0}, int(1..) groups=1, '
        .. 'bool bias=true, int(1..)[N] dilation={1}, "zeros" padding_mode="zeros")', n),
        "Transposed convolution of " .. INPUTS[n] .. "; called with a second argument, gives results of that size.",
        conv_shapes("conv_transpose" .. n .. "d", n), {
        make = function(self)
            check_groups(self)
            local outputs = self.out_channels // self.groups
            layers.start_weights(self, { self.in_channels, outputs, table.unpack(self.kernel_size) }, self.out_channels,
                outputs * product(self.kernel_size))
        end,
        forward = function(self, x, output_size)
            local padding = output_size and padding_for(self, x, output_size) or self.output_padding
            return fn(x, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation)
        end,
        extra_repr = conv_text,
    })
end

-- ---- pooling ----

-- The stride is the window's size where none is given.
local function default_stride(self)
    rawset(self, "stride", self.stride or self.kernel_size)
end

local function pools(nn, n)
    local max, avg = tide[string.format("max_pool%dd", n)], tide[string.format("avg_pool%dd", n)]
    layer(nn, for_dims("MaxPoolNd(int(1..)[N] kernel_size, int(1..)[N]? stride=nil, int(0..)[N] padding={0}, "
        .. "int(1..)[N] dilation={1}, bool return_indices=false, bool ceil_mode=false)", n),
        "Largest element of each window of " .. INPUTS[n] .. "; the stride is the window's size where none is given.",
        shapes_of(max), {
        derive = default_stride,
        forward = function(self, x)
            return max(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)
        end,
        extra_repr = function(self)
            return fields_text(self, "kernel_size stride padding dilation ceil_mode", short_text)
        end,
    })
    layer(nn, for_dims("AvgPoolNd(int(1..)[N] kernel_size, int(1..)[N]? stride=nil, int(0..)[N] padding={0}, "
        .. "bool ceil_mode=false, bool count_include_pad=true" .. (n > 1 and ", int? divisor_override=nil" or "") .. ")", n),
        "Mean of each window of " .. INPUTS[n] .. "; the stride is the window's size where none is given.", shapes_of(avg), {
        derive = default_stride,
        forward = function(self, x)
            return avg(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                self.divisor_override)
        end,
        extra_repr = function(self)
            return fields_text(self, "kernel_size stride padding", n == 1 and list_text or short_text)
        end,
    })
    local power = tide[string.format("lp_pool%dd", n)]
    layer(nn, for_dims("LPPoolNd(number norm_type, int(1..)[N] kernel_size, int(1..)[N]? stride=nil, bool ceil_mode=false)", n),
        "Root of the sum of powers over each window of " .. INPUTS[n] .. ".", shapes_of(power), {
        derive = default_stride,
        forward = function(self, x) return power(x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode) end,
        extra_repr = function(self) return fields_text(self, "norm_type kernel_size stride ceil_mode", short_text) end,
    })
    local unpool = tide[string.format("max_unpool%dd", n)]
    layer(nn, for_dims("MaxUnpoolNd(int(1..)[N] kernel_size, int(1..)[N]? stride=nil, int(0..)[N] padding={0})", n),
        "Elements of " .. INPUTS[n] .. " at the places that MaxPool" .. n .. "d found, zeros elsewhere.", shapes_of(unpool), {
        derive = default_stride,
        forward = function(self, x, indices, output_size)
            return unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size)
        end,
        extra_repr = function(self) return fields_text(self, "kernel_size stride padding", list_text) end,
    })
end

local function adaptive_pools(nn, n)
    local function size_text(self) return "output_size=" .. short_text(self.output_size) end
    local avg, max = tide[string.format("adaptive_avg_pool%dd", n)], tide[string.format("adaptive_max_pool%dd", n)]
    layer(nn, for_dims("AdaptiveAvgPoolNd(int?[N] output_size)", n),
        "Means of windows that divide " .. INPUTS[n] .. "; false leaves a size as it is.", shapes_of(avg), {
        forward = function(self, x) return avg(x, self.output_size) end,
        extra_repr = size_text,
    })
    layer(nn, for_dims("AdaptiveMaxPoolNd(int?[N] output_size, bool return_indices=false)", n),
        "Largest elements of windows that divide " .. INPUTS[n] .. "; false leaves a size as it is.", shapes_of(max), {
        forward = function(self, x) return max(x, self.output_size, self.return_indices) end,
        extra_repr = size_text,
    })
end

-- ---- padding ----

-- One number, or a pair for each dim.
local function read_padding(self, n)
    local p = self.padding
    if #p == 1 then
        for k = 2, 2 * n do
            p[k] = p[1]
        end
    elseif #p ~= 2 * n then
        fail("%s: padding must be a number or have %d of them, got %d", getmetatable(self).__name, 2 * n, #p)
    end
end

local function pad_shapes(n)
    local sizes = {}
    for d, axis in ipairs(AXES[n]) do -- the last dim's are first
        sizes[d] = string.format("padding[%d] + %s + padding[%d]", 2 * (n - d) + 1, axis, 2 * (n - d) + 2)
    end
    return string.format("x (N?, C, %s) -> (N?, C, %s)", table.concat(AXES[n], ", "), table.concat(sizes, ", "))
end

local function pad(nn, name, n, parameters, doc, mode)
    local function make(self) read_padding(self, n) end
    layer(nn, string.format("%s%dd(int[] padding%s)", name, n, parameters), doc .. " around " .. INPUTS[n] .. ".",
        pad_shapes(n), {
        derive = make,
        forward = function(self, x) return tide.pad(x, self.padding, mode, self.value) end,
        extra_repr = function(self)
            return self.value and string.format("padding=%s, value=%s", list_text(self.padding), tide._number(self.value, 6))
                or list_text(self.padding)
        end,
    })
end

local function pads(nn, n)
    pad(nn, "ConstantPad", n, ", number value", "A constant", "constant")
    pad(nn, "ZeroPad", n, "", "Zeros", "constant")
    pad(nn, "ReflectionPad", n, "", "The input's elements reflected at its edges", "reflect")
    pad(nn, "ReplicationPad", n, "", "The elements at the edges", "replicate")
    pad(nn, "CircularPad", n, "", "The elements of the other end", "circular")
end

-- ---- the rest ----

local function upsampling(nn)
    layer(nn, 'Upsample(int[]? size=nil, number[]? scale_factor=nil, "nearest"|"nearest-exact"|"linear"|"bilinear"|'
        .. '"bicubic"|"trilinear"|"area" mode="nearest", bool? align_corners=nil, bool? recompute_scale_factor=nil)',
        "Signals, images or volumes (N, C, ...) in another size.", shapes_of "interpolate", {
        forward = function(self, x)
            return tide.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners,
                self.recompute_scale_factor)
        end,
        extra_repr = function(self)
            local by = self.size and "size" or "scale_factor"
            return string.format("%s=%s, mode='%s'", by, short_text(self[by]), self.mode)
        end,
    })
    for name, mode in pairs { Nearest = "nearest", Bilinear = "bilinear" } do
        layer(nn, string.format("Upsampling%s2d(int[]? size=nil, number[]? scale_factor=nil)", name),
            string.format("Images in another size, mode %q.", mode), shapes_of "interpolate", {
            forward = function(self, x)
                local align = mode == "bilinear" or nil
                return tide.interpolate(x, self.size, self.scale_factor, mode, align)
            end,
            extra_repr = function(self)
                local by = self.size and "size" or "scale_factor"
                return string.format("%s=%s, mode='%s'", by, short_text(self[by]), mode)
            end,
        })
    end
end

local function windows(nn)
    layer(nn, "Unfold(int(1..)[2] kernel_size, int(1..)[2] dilation={1, 1}, int(0..)[2] padding={0, 0}, "
        .. "int(1..)[2] stride={1, 1})", "The windows of images as columns (N, C kh kw, L).", shapes_of "im2col", {
        forward = function(self, x) return tide.im2col(x, self.kernel_size, self.dilation, self.padding, self.stride) end,
        extra_repr = function(self) return fields_text(self, "kernel_size dilation padding stride", short_text) end,
    })
    layer(nn, "Fold(int(1..)[2] output_size, int(1..)[2] kernel_size, int(1..)[2] dilation={1, 1}, "
        .. "int(0..)[2] padding={0, 0}, int(1..)[2] stride={1, 1})", "Columns (N, C kh kw, L) added up to images.",
        shapes_of "col2im", {
        forward = function(self, x)
            return tide.col2im(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
        end,
        extra_repr = function(self)
            return fields_text(self, "output_size kernel_size dilation padding stride", short_text)
        end,
    })
end

local function shuffles(nn)
    for name, parameter in pairs { PixelShuffle = "upscale_factor", PixelUnshuffle = "downscale_factor",
        ChannelShuffle = "groups" } do
        local fn = tide[string.lower((string.gsub(name, "(%l)(%u)", "%1_%2")))]
        layer(nn, string.format("%s(int(1..) %s)", name, parameter), tide._doc(fn).doc, shapes_of(fn), {
            forward = function(self, x) return fn(x, self[parameter]) end,
            extra_repr = function(self) return fields_text(self, parameter, tostring) end,
        })
    end
end

return function(nn)
    for n = 1, 3 do
        conv(nn, n)
        conv_transpose(nn, n)
        pools(nn, n)
        adaptive_pools(nn, n)
        pads(nn, n)
    end
    upsampling(nn)
    windows(nn)
    shuffles(nn)
end
