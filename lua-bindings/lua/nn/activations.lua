-- nn/activations.lua: the activations of tide.nn, each a module around the function of the same meaning, and
-- the dropouts of channels. Names and defaults are PyTorch's.
local tide = ...

-- A class of this schema whose forward calls fn(x, fields...), with the shapes of fn where none are given.
local function activation(nn, schema, fn, fields, shapes)
    local name, doc = string.match(schema, "^%w+"), tide._doc(fn)
    local read = tide._function(schema, doc.doc, nil, shapes or doc.shapes)
    local c = nn.class(name)
    function c:init(...)
        for field, value in pairs(read(...)) do
            rawset(self, field, value)
        end
    end
    function c:forward(x)
        local args = { x }
        for k, field in ipairs(fields) do
            args[k + 1] = rawget(self, field)
        end
        if rawget(self, "inplace") then
            return x[fn .. "_"](table.unpack(args, 1, #fields + 1))
        end
        return tide[fn](table.unpack(args, 1, #fields + 1))
    end
    function c:extra_repr()
        local texts = {}
        for k, field in ipairs(fields) do
            local value = rawget(self, field)
            texts[k] = string.format("%s=%s", field, type(value) == "number" and tide._number(value, 6) or tostring(value))
        end
        texts[#texts + 1] = rawget(self, "inplace") and "inplace=true" or nil
        return table.concat(texts, ", ")
    end
    nn[name] = c
    tide._document(c, read)
    return c
end

-- nn.functional.dropout1d to 3d: whole channels; one with n + 1 dims is no batch, but for images.
local function feature_dropout(nn, n)
    local name = string.format("dropout%dd", n)
    nn.functional[name] = tide._function(name .. "(Tensor input, number p=0.5, bool training=true) -> Tensor",
        "In training, zero each channel with probability p and divide the others by 1 - p.",
        function(x, p, training)
            if n ~= 2 and x.ndim == n + 1 then
                return tide.feature_dropout(x:unsqueeze(1), p, training):squeeze(1)
            elseif n ~= 2 and x.ndim ~= n + 2 then
                tide._fail("%s: input must have %d or %d dims, got shape %s", name, n + 1, n + 2, tostring(x.shape))
            end
            return tide.feature_dropout(x, p, training)
        end, "input (...) -> (...)")
end

local function prelu(nn)
    local layers = tide._require "nn.layer"
    local doc = tide._doc "prelu"
    local read = tide._function(layers.with_factory("PReLU(int(1..) num_parameters=1, number init=0.25)"), doc.doc, nil,
        doc.shapes)
    local c = nn.class("PReLU")
    function c:init(...)
        local options = read(...)
        rawset(self, "num_parameters", options.num_parameters)
        layers.made_as(self, function()
            self.weight = tide.full({ options.num_parameters }, options.init):float():requires_grad_(true)
        end, options.dtype, options.device)
    end
    function c:forward(x) return tide.prelu(x, self.weight) end
    function c:extra_repr() return "num_parameters=" .. self.num_parameters end
    nn.PReLU = c
    tide._document(c, read)
end

-- Dropouts work in training alone.
local function dropout(nn, name, fn)
    local c = activation(nn, name .. "(number(0..1) p=0.5, bool inplace=false)", fn, { "p" })
    function c:forward(x)
        if self.inplace then
            return x[fn .. "_"](x, self.p, self.training)
        end
        return tide[fn](x, self.p, self.training)
    end
    function c:extra_repr() return string.format("p=%s, inplace=%s", tide._number(self.p, 6), self.inplace) end
end

return function(nn)
    activation(nn, "LeakyReLU(number negative_slope=0.01, bool inplace=false)", "leaky_relu", { "negative_slope" })
    activation(nn, "ELU(number alpha=1, bool inplace=false)", "elu", { "alpha" })
    activation(nn, "CELU(number alpha=1, bool inplace=false)", "celu", { "alpha" })
    activation(nn, "Softplus(number beta=1, number threshold=20)", "softplus", { "beta", "threshold" })
    activation(nn, "Hardtanh(number min_val=-1, number max_val=1, bool inplace=false)", "hardtanh", { "min_val", "max_val" })
    activation(nn, "Threshold(number threshold, number value, bool inplace=false)", "threshold", { "threshold", "value" })
    activation(nn, "Hardshrink(number lambd=0.5)", "hardshrink", { "lambd" })
    activation(nn, "Softshrink(number(0..) lambd=0.5)", "softshrink", { "lambd" })
    local gelu = activation(nn, "GELU(\"none\"|\"tanh\" approximate=\"none\")", "gelu", { "approximate" })
    function gelu:forward(x) return tide.gelu(x, { approximate = self.approximate }) end
    activation(nn, "Softmax2d()", "softmax", {}, "x (N?, C, H, W) -> (N?, C, H, W)").forward = function(_, x)
        if not tide.is_tensor(x) or (x:dim() ~= 3 and x:dim() ~= 4) then
            tide._fail("Softmax2d: input must have shape (N, C, H, W) or (C, H, W), got %s",
                tide.is_tensor(x) and tostring(x.shape) or tide._describe(x))
        end
        return x:softmax(-3)
    end
    activation(nn, "GLU(dim dim=-1)", "glu", { "dim" })
    for name, fn in pairs { Tanh = "tanh", Sigmoid = "sigmoid", Softsign = "softsign", Tanhshrink = "tanhshrink",
        LogSigmoid = "logsigmoid" } do
        activation(nn, name .. "()", fn, {})
    end
    for name, fn in pairs { ReLU = "relu", ReLU6 = "relu6", SELU = "selu", SiLU = "silu", Mish = "mish",
        Hardsigmoid = "hardsigmoid", Hardswish = "hardswish" } do
        activation(nn, name .. "(bool inplace=false)", fn, {})
    end
    local rrelu = activation(nn, "RReLU(number lower=0.125, number upper=0.3333333333333333, bool inplace=false)",
        "rrelu", { "lower", "upper" })
    function rrelu:forward(x)
        if self.inplace then
            return x:rrelu_(self.lower, self.upper, self.training)
        end
        return tide.rrelu(x, self.lower, self.upper, self.training)
    end
    prelu(nn)
    dropout(nn, "AlphaDropout", "alpha_dropout")
    dropout(nn, "FeatureAlphaDropout", "feature_alpha_dropout")
    for _, name in ipairs { "Dropout1d", "Dropout2d", "Dropout3d" } do
        dropout(nn, name, "feature_dropout")
    end
    for _, name in ipairs { "leaky_relu", "elu", "celu", "softplus", "hardtanh", "threshold", "hardshrink",
        "softshrink", "glu", "relu6", "selu", "mish", "softsign", "hardsigmoid", "hardswish", "tanhshrink",
        "logsigmoid", "rrelu", "prelu" } do
        nn.functional[name] = tide[name]
    end
    for _, name in ipairs { "alpha_dropout", "feature_alpha_dropout" } do
        nn.functional[name] = tide._function(name .. "(Tensor input, number p=0.5, bool training=false, "
            .. "bool inplace=false, *, generator? generator=nil) -> Tensor",
            string.format("tide.%s, which here is off unless it is asked for.", name),
            function(x, p, training, inplace, generator)
                local options = { generator = generator }
                if inplace then
                    return x[name .. "_"](x, p, training, options)
                end
                return tide[name](x, p, training, options)
            end, "input (...) -> (...)")
    end
    for n = 1, 3 do
        feature_dropout(nn, n)
    end
    for _, name in ipairs { "relu_", "elu_", "celu_", "selu_", "leaky_relu_", "hardtanh_", "threshold_", "rrelu_" } do
        nn.functional[name] = tide.empty(0)[name]
    end
end
