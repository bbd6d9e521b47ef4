-- nn/layers.lua: the layers of tide.nn. Arguments, defaults and starting values are PyTorch's; dims count
-- from 1. Layer(a, b, {option = value}) and Layer{a, b, option = value} mean the same.
local tide = ...
local init = tide._require "nn.init"
local layers = tide._require "nn.layer"
local layer, start_weights, shapes_of = layers.layer, layers.start_weights, layers.shapes_of

return function(nn)
    layer(nn, "Linear(int(0..) in_features, int(0..) out_features, bool bias=true)", "y = x W^T + b.",
        "input (..., in_features), weight (out_features, in_features), bias (out_features) -> (..., out_features)", {
        make = function(self)
            start_weights(self, { self.out_features, self.in_features }, self.out_features, self.in_features)
        end,
        forward = function(self, x) return tide.linear(x, self.weight, self.bias) end,
        extra_repr = function(self)
            return string.format("in_features=%d, out_features=%d, bias=%s", self.in_features, self.out_features,
                self.has_bias)
        end,
    })

    layer(nn, "Flatten(dim start_dim=1, dim end_dim=-1)", "Joins dims into one.", shapes_of "flatten", {
        forward = function(self, x) return x:flatten(self.start_dim, self.end_dim) end,
        extra_repr = function(self)
            return string.format("start_dim=%d, end_dim=%d", self.start_dim, self.end_dim)
        end,
    })

    layer(nn, "Unflatten(dim dim, int[] sizes)", "Divides one dim into several.", shapes_of "unflatten", {
        forward = function(self, x) return x:unflatten(self.dim, self.sizes) end,
        extra_repr = function(self)
            return string.format("dim=%d, sizes=(%s)", self.dim, table.concat(self.sizes, ", "))
        end,
    })

    layer(nn, "Dropout(number(0..1) p=0.5, bool inplace=false)", "In training zeroes elements with probability p.",
        shapes_of "dropout", {
        forward = function(self, x)
            if self.inplace then
                return x:dropout_(self.p, self.training)
            end
            return tide.dropout(x, self.p, self.training)
        end,
        extra_repr = function(self) return string.format("p=%s, inplace=%s", tide._number(self.p, 6), self.inplace) end,
    })

    layer(nn, "Softmax(dim dim)", "exp(x) over its sum along a dim.", shapes_of "softmax", {
        forward = function(self, x) return tide.softmax(x, self.dim) end,
        extra_repr = function(self) return "dim=" .. self.dim end,
    })

    layer(nn, "LogSoftmax(dim dim)", "Logarithm of softmax.", shapes_of "log_softmax", {
        forward = function(self, x) return tide.log_softmax(x, self.dim) end,
        extra_repr = function(self) return "dim=" .. self.dim end,
    })

    layer(nn, "Identity()", "Gives back what it gets.", "x (...) -> (...)", { forward = function(_, x) return x end })
end
