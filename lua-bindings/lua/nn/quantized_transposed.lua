-- nn/quantized_transposed.lua: tide.nn.quantized.ConvTranspose1d to 3d: their weights are packed by the remainders of the
-- stride (engine/ops/quantized/quantized_conv.c says why).
local tide = ...
local fail = tide._fail

local CHANNELS <const> = 2 -- the dim of a weight (in, out / groups, kernel) that has a scale for each of its places

local function gcd(a, b) return b == 0 and a or gcd(b, a % b) end

-- The elements of a kernel, from 0 on, whose distance leaves a remainder of the stride: the first, and from one to the next.
local function elements(size, stride, dilation, remainder)
    local step = stride // gcd(dilation, stride)
    for first = 0, math.min(size, step) - 1 do
        if first * dilation % stride == remainder then
            return first, step
        end
    end
end

-- Integers (in, out / groups, kernel) as those of a convolution, (out, in / groups, kernel).
local function turn(ints, groups)
    local sizes = { table.unpack(ints.shape) }
    local inputs, outputs = sizes[1] // groups, sizes[2]
    local kernel = table.move(sizes, 3, #sizes, 1, {})
    return ints:reshape(groups, inputs, outputs, -1):transpose(2, 3):reshape(groups * outputs, inputs, table.unpack(kernel))
end

-- The part of a weight for a remainder of each dim, in the other order; where no element leaves one, one that stands for 0.
local function part_of(ints, zeros, remainders, stride, dilation)
    local turned, empty = {}, false
    for d, remainder in ipairs(remainders) do
        local first, step = elements(ints:size(d + 2), stride[d], dilation[d], remainder)
        local size = ints:size(d + 2)
        empty = empty or not first
        ints = first and ints:slice(d + 2, first + 1, size, step) or ints:narrow(d + 2, 1, 1)
        turned[d] = d + 2
    end
    return empty and zeros:expand(ints.shape):contiguous() or ints:flip(turned)
end

--- pack(weight, groups, stride, dilation): a list of packed weights, one for all remainders of the stride, row-major.
local function pack(weight, groups, stride, dilation)
    local outputs, n = weight:size(2), weight:dim() - 2
    local by_channel = weight:qscheme() ~= "per_tensor_affine"
    if by_channel and weight:q_per_channel_axis() ~= CHANNELS then
        fail("weight is quantized along dim %d: the channels of a transposed convolution are its columns, dim %d",
            weight:q_per_channel_axis(), CHANNELS)
    end
    local scales = by_channel and weight:q_per_channel_scales() or tide.full({ outputs }, weight:q_scale(), { dtype = tide.float64, device = weight.device })
    local points = by_channel and weight:q_per_channel_zero_points() or tide.full({ outputs }, weight:q_zero_point(), { dtype = tide.int64, device = weight.device })
    local ints, ones = weight:int_repr(), {}
    for d = 1, n do
        ones[d] = 1
    end
    local zeros = points:to(tide.int8):view(1, -1, table.unpack(ones))
    scales, points = scales:double():tile { groups }, points:long():tile { groups }
    local packs, remainders = {}, {}
    local function add(d)
        if d > n then
            local part = turn(part_of(ints, zeros, remainders, stride, dilation), groups)
            packs[#packs + 1] = tide._quantized_pack(tide._make_per_channel_quantized_tensor(part:contiguous(), scales, points, 1), groups)
            return
        end
        for remainder = 0, stride[d] - 1 do
            remainders[d] = remainder
            add(d + 1)
        end
    end
    add(1)
    return packs
end

local INPUTS <const> = { "signals (N, C, L)", "images (N, C, H, W)", "volumes (N, C, D, H, W)" }

local function for_dims(schema, n)
    local function repeated(value) return "{" .. string.rep(value .. ", ", n - 1) .. value .. "}" end
    return (string.gsub(string.gsub(schema, "%[N%]", "[" .. n .. "]"), "{(%d)}", repeated))
end

local function layer(quantized, nn, n, shared)
    local name = string.format("ConvTranspose%dd", n)
    local float = nn[name]
    shared.define(quantized, name .. for_dims("(int(1..) in_channels, int(1..) out_channels, int(1..)[N] kernel_size, int(1..)[N] stride={1}, "
        .. "int(0..)[N] padding={0}, int(0..)[N] output_padding={0}, int(1..) groups=1, bool bias=true, int(1..)[N] dilation={1}, ", n)
        .. string.gsub(shared.HOW, ', "exact".*$', "") .. ")",
        "Transposed convolution of quint8 " .. INPUTS[n] .. ", as quint8 of a scale and a zero point."
        .. string.gsub(shared.HOW_DOC, " saturate = .*$", ""), tide._doc(float).shapes, {
        channel_dim = CHANNELS,
        derive = function(self)
            if self.in_channels % self.groups ~= 0 or self.out_channels % self.groups ~= 0 then
                fail("%s: %d and %d channels can't be divided into %d groups", name, self.in_channels, self.out_channels, self.groups)
            end
            rawset(self, "padding_mode", "zeros")
            shared.start(self, { self.in_channels, self.out_channels // self.groups, table.unpack(self.kernel_size) }, self.out_channels)
            shared.keep_parameters(self)
        end,
        pack = function(self) return pack(self.weight, self.groups, self.stride, self.dilation) end,
        multiply = function(self, x, weight)
            return tide[string.format("conv_transpose%dd", n)](x, weight, self.bias, self.stride, self.padding, self.output_padding, self.groups,
                self.dilation)
        end,
        forward = function(self, x)
            return shared.given(self, tide._quantized_conv_transpose(shared.bytes_of(self, x), shared.packed_of(self), self.bias,
                shared.number(self.scale), shared.number(self.zero_point), self.kernel_size, self.stride, self.padding, self.output_padding, self.dilation,
                self.relu))
        end,
        extra_repr = function(self)
            return float.extra_repr(self) .. (self.relu and ", relu=true" or "") .. ", " .. shared.scale_text(self)
        end,
    })
    shared.define_from_float(quantized[name], name, function(from, options)
        options.dilation = from.dilation
        options.saturate = nil
        return quantized[name](from.in_channels, from.out_channels, from.kernel_size, from.stride, from.padding, from.output_padding,
            from.groups, from.has_bias, options)
    end)
end

--- functions(F): conv_transpose1d to 3d of bytes.
local function functions(F)
    for n = 1, 3 do
        local name = string.format("conv_transpose%dd", n)
        F[name] = tide._function(name .. for_dims("(Tensor input, Tensor weight, Tensor? bias=nil, int(1..)[N] stride={1}, "
            .. "int(0..)[N] padding={0}, int(0..)[N] output_padding={0}, int(1..) groups=1, int(1..)[N] dilation={1}, number scale=1, "
            .. "int zero_point=0) -> Tensor", n),
            "Transposed convolution of quint8 " .. INPUTS[n] .. " with a qint8 weight, as quint8. The layer of tide.nn.quantized packs its weight once.",
            function(x, weight, bias, stride, padding, extra, groups, dilation, scale, point)
                if not weight.is_quantized or weight.dtype ~= tide.qint8 or weight:dim() ~= n + 2 or weight:size(1) % groups ~= 0 then
                    fail("%s: weight is %s: a qint8 tensor (in, out / groups, kernel) of %d dims and %d groups expected", name,
                        tide._describe(weight), n + 2, groups)
                end
                local kernel = table.move(weight.shape, 3, weight:dim(), 1, {})
                return tide._quantized_conv_transpose(x, pack(weight, groups, stride, dilation), bias, scale, point, kernel, stride, padding,
                    extra, dilation)
            end, tide._doc(tide[name]).shapes)
    end
end

return {
    --- layers(quantized, nn, shared): ConvTranspose1d to 3d, by what nn/quantized.lua shares.
    layers = function(quantized, nn, shared)
        for n = 1, 3 do
            layer(quantized, nn, n, shared)
        end
    end,
    functions = functions,
}
