-- nn/weight_only.lua: tide.nn.quantized.WeightOnlyLinear: a linear layer whose weights have 4, 6 or 8 bits, and which takes and
-- gives floats.
local tide = ...
local layers, groups = tide._require "nn.layer", tide._require "quantization.groups"

local BITS <const> = { int4 = 4, int6 = 6, int8 = 8 }
local OPTIONS <const> = '*, "int8"|"int4"|"int6" dtype="int8", int(1..)? group_size=nil, bool? symmetric=nil'

local function put(self, weight, scales, mins)
    self.weight, self.scales = weight, scales
    if mins then
        self.mins = mins
    end
    return self
end

local function multiply(self, x)
    local dtype = x.dtype
    local y = tide._grouped_linear(dtype == tide.float32 and x or x:float(), self.weight, self.scales, self.mins, self.bias,
        self.out_features, self.bits, self.group_size)
    return dtype == tide.float32 and y or y:to(dtype)
end

-- The same for an x that requires a gradient, which is that of the weight's floats: what is trained stands in front.
local Product
local function recorded(x, layer)
    Product = Product or tide.autograd.Function("WeightOnlyLinear", {
        forward = function(ctx, given, of)
            ctx.layer = of
            return multiply(of, given)
        end,
        backward = function(ctx, g) return g:matmul(ctx.layer:dequantize():to(g.dtype)) end,
    })
    return Product(x, layer)
end

return function(quantized)
    layers.layer(quantized, "WeightOnlyLinear(int(1..) in_features, int(1..) out_features, bool bias=true, " .. OPTIONS .. ")",
        "y = x W^T + b of floats and a weight of few bits, which stay as they are: x is rounded to 8 bits in blocks of 32. group_size: "
        .. "elements of a row that share a scale, a multiple of 32 (16 of int6); as if nothing is said the whole row of int8 and 32 "
        .. "of others. symmetric: no zero points; as if nothing is said of int8 alone. The same bits on every processor. A gradient goes to x, as of the weight's floats, and to no weight.",
        "x (..., in_features) -> (..., out_features)", {
        derive = function(self)
            local bits, has_bias = BITS[self.dtype], layers.take_bias(self)
            local size = groups.fit(bits, self.in_features, self.group_size or bits < 8 and 32 or nil)
            rawset(self, "bits", bits)
            rawset(self, "group_size", size)
            if self.symmetric == nil then
                rawset(self, "symmetric", bits == 8)
            end
            local lines, numbers = groups.sizes(self.out_features, self.in_features, bits, size)
            self:register_buffer("weight", tide.zeros(lines, { dtype = tide.uint8 }))
            self:register_buffer("scales", tide.zeros(numbers))
            if not self.symmetric then
                self:register_buffer("mins", tide.zeros(numbers))
            end
            if has_bias then
                self:register_buffer("bias", tide.zeros(self.out_features))
            end
        end,
        forward = function(self, x)
            return x.requires_grad and tide.is_grad_enabled() and recorded(x, self) or multiply(self, x)
        end,
        -- set_ints(ints, scales, mins): the weight as integers (quantization/groups.lua); returns the layer.
        set_ints = function(self, ints, scales, mins)
            return put(self, groups.pack(ints, scales, mins, self.bits, self.group_size))
        end,
        -- dequantize(): the matrix of float32 that the weight stands for.
        dequantize = function(self)
            return groups.floats(self.weight, self.scales, self.mins, self.out_features, self.in_features, self.bits, self.group_size)
        end,
        extra_repr = function(self)
            return string.format("in_features=%d, out_features=%d, bias=%s, dtype=%s, group_size=%d, symmetric=%s", self.in_features,
                self.out_features, self.has_bias, self.dtype, self.group_size, self.symmetric)
        end,
    })
    local WeightOnlyLinear = quantized.WeightOnlyLinear
    WeightOnlyLinear.from_float = tide._function("from_float(Module linear, " .. OPTIONS .. ") -> Module",
        "The layer of the weights of a tide.nn.Linear, each rounded to the nearest.", function(linear, dtype, size, symmetric)
            local layer = WeightOnlyLinear(linear.in_features, linear.out_features, linear.has_bias,
                { dtype = dtype, group_size = size, symmetric = symmetric })
            if linear.bias then
                layer.bias = linear.bias:detach():float():clone()
            end
            groups.check(linear, "from_float")
            return layer:set_ints(groups.round(linear.weight, layer.bits, layer.group_size, layer.symmetric))
        end)
end
