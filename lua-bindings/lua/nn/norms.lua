-- nn/norms.lua: the normalisations of tide.nn: what learns and what is remembered around the operators of
-- the same meaning.
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"
local layer, shapes_of = layers.layer, layers.shapes_of

local function number(value) return tide._number(value, 6) end

-- weight of ones and bias of zeros, where there are to be any.
local function start(self, shape, has_weight, has_bias)
    if has_weight then
        self.weight = tide.ones(shape):requires_grad_(true)
    end
    if has_bias then
        self.bias = tide.zeros(shape):requires_grad_(true)
    end
end

-- ---- over the last dims ----

local function neighbours_text(self)
    return string.format("%d, alpha=%s, beta=%s, k=%s", self.size, number(self.alpha), number(self.beta), number(self.k))
end

local function last_dims(nn)
    layer(nn, "LayerNorm(int[] normalized_shape, number eps=1e-05, bool elementwise_affine=true, bool bias=true)",
        "Deviations from the mean of the last dims over their standard deviation.", shapes_of "layer_norm", {
        make = function(self)
            local has_bias = layers.take_bias(self)
            start(self, self.normalized_shape, self.elementwise_affine, self.elementwise_affine and has_bias)
        end,
        forward = function(self, x)
            return tide.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        end,
        extra_repr = function(self)
            return string.format("%s, eps=%s, elementwise_affine=%s, bias=%s", layers.list_text(self.normalized_shape),
                number(self.eps), self.elementwise_affine, self.has_bias)
        end,
    })
    layer(nn, "RMSNorm(int[] normalized_shape, number? eps=nil, bool elementwise_affine=true)",
        "The last dims over the root of their mean square.", shapes_of "rms_norm", {
        make = function(self) start(self, self.normalized_shape, self.elementwise_affine, false) end,
        forward = function(self, x) return tide.rms_norm(x, self.normalized_shape, self.weight, self.eps) end,
        extra_repr = function(self)
            return string.format("%s, eps=%s, elementwise_affine=%s", layers.list_text(self.normalized_shape),
                self.eps and number(self.eps) or "nil", self.elementwise_affine)
        end,
    })
    layer(nn, "GroupNorm(int(1..) num_groups, int(1..) num_channels, number eps=1e-05, bool affine=true, *, "
        .. "bool bias=true)",
        "Channels normalised by groups.",
        "x (N, num_channels, ...), weight (num_channels), bias (num_channels) -> (N, num_channels, ...)", {
        make = function(self)
            if self.num_channels % self.num_groups ~= 0 then
                fail("GroupNorm: %d channels can't be divided into %d groups", self.num_channels, self.num_groups)
            end
            local has_bias = layers.take_bias(self)
            start(self, { self.num_channels }, self.affine, self.affine and has_bias)
        end,
        forward = function(self, x) return tide.group_norm(x, self.num_groups, self.weight, self.bias, self.eps) end,
        extra_repr = function(self)
            return string.format("%d, %d, eps=%s, affine=%s, bias=%s", self.num_groups, self.num_channels,
                number(self.eps), self.affine, self.has_bias)
        end,
    })
    -- As many channels before as behind: an even size is one less, but for alpha.
    layer(nn, "CrossMapLRN2d(int(1..) size, number alpha=0.0001, number beta=0.75, number k=1)",
        "Channels of images divided by what the channels around them hold together.",
        "x (N, C, H, W) -> (N, C, H, W)", {
        forward = function(self, x)
            if x:dim() ~= 4 then
                tide._fail("CrossMapLRN2d: images (N, C, H, W) expected, got shape %s", tostring(x.shape))
            end
            local width = 2 * ((self.size - 1) // 2) + 1
            return tide.local_response_norm(x, width, self.alpha * width / self.size, self.beta, self.k)
        end,
        extra_repr = neighbours_text,
    })
    layer(nn, "LocalResponseNorm(int(1..) size, number alpha=0.0001, number beta=0.75, number k=1)",
        "Channels over a power of the mean square of their neighbours.", shapes_of "local_response_norm", {
        forward = function(self, x) return tide.local_response_norm(x, self.size, self.alpha, self.beta, self.k) end,
        extra_repr = neighbours_text,
    })
end

-- ---- by channel ----

local function start_channels(self)
    local has_bias = layers.take_bias(self)
    start(self, { self.num_features }, self.affine, self.affine and has_bias)
    if self.track_running_stats then
        self:register_buffer("running_mean", tide.zeros(self.num_features))
        self:register_buffer("running_var", tide.ones(self.num_features))
        self:register_buffer("num_batches_tracked", tide.zeros({}, { dtype = tide.int64 }))
    end
end

-- How far the running statistics follow a batch: their mean over all batches where momentum is false.
local function pace(self)
    if not self.training or not self.track_running_stats then
        return self.momentum or 0
    end
    self.num_batches_tracked:add_(1)
    return self.momentum or 1 / self.num_batches_tracked:item()
end

local function describe(self)
    return string.format("%d, eps=%s, momentum=%s, affine=%s, bias=%s, track_running_stats=%s", self.num_features,
        number(self.eps), self.momentum and number(self.momentum) or "false", self.affine, self.has_bias,
        self.track_running_stats)
end

local function check_dims(name, x, least, most)
    if x:dim() < least or x:dim() > most then
        fail("%s: expected %s dims, got shape %s", name, least == most and tostring(least) or least .. " or " .. most,
            tostring(x.shape))
    end
end

-- Shapes of a norm whose channels have parameters and running statistics.
local function shapes_over(input)
    input = string.gsub(input, "C", "num_features")
    return string.format("x %s, weight (num_features), bias (num_features), running_mean (num_features), "
        .. "running_var (num_features) -> %s", input, input)
end

local function schema(name, affine, track)
    return name .. "(int(1..) num_features, number eps=1e-05, any momentum=0.1, bool affine=" .. affine
        .. ", bool track_running_stats=" .. track .. ", *, bool bias=true)"
end

local function make_channels(self)
    if self.momentum ~= false and type(self.momentum) ~= "number" then
        fail("%s: argument 3 (momentum): expected a number, or false for means over all batches, got %s",
            getmetatable(self).__name, tide._describe(self.momentum))
    end
    start_channels(self)
end

-- The operators take the statistics by which they are to work, or that are to follow.
local function statistics(self)
    if self.training and not self.track_running_stats then
        return nil, nil
    end
    return rawget(self, "running_mean"), rawget(self, "running_var")
end

local reset_running_stats = tide._function("reset_running_stats(Module self)", "Running means become 0, variances 1, and no batch has been seen.",
    function(self)
        if rawget(self, "running_mean") then
            self.running_mean:zero_()
            self.running_var:fill_(1)
            self.num_batches_tracked:zero_()
        end
    end)

local function batch_norm(nn, name, least, most, doc, input)
    layer(nn, schema(name, "true", "true"), doc, shapes_over(input), {
        make = make_channels,
        reset_running_stats = reset_running_stats,
        forward = function(self, x)
            check_dims(name, x, least, most)
            local momentum, mean, var = pace(self), statistics(self)
            return tide.batch_norm(x, mean, var, self.weight, self.bias, self.training or not mean, momentum,
                self.eps)
        end,
        extra_repr = describe,
    })
end

local function instance_norm(nn, name, dims, doc, input)
    layer(nn, schema(name, "false", "false"), doc, shapes_over(input), {
        make = make_channels,
        reset_running_stats = reset_running_stats,
        forward = function(self, x)
            check_dims(name, x, dims - 1, dims)
            local single = x:dim() < dims
            local momentum, mean, var = self.momentum or 0, statistics(self)
            local y = tide.instance_norm(single and x:unsqueeze(1) or x, mean, var, self.weight, self.bias,
                self.training or not self.track_running_stats, momentum, self.eps)
            return single and y:squeeze(1) or y
        end,
        extra_repr = describe,
    })
end

return function(nn)
    last_dims(nn)
    batch_norm(nn, "BatchNorm1d", 2, 3, "Channels (N, C) or (N, C, L) normalised over the batch.", "(N, C, ...)")
    batch_norm(nn, "BatchNorm2d", 4, 4, "Channels (N, C, H, W) normalised over the batch.", "(N, C, H, W)")
    batch_norm(nn, "BatchNorm3d", 5, 5, "Channels (N, C, D, H, W) normalised over the batch.", "(N, C, D, H, W)")
    instance_norm(nn, "InstanceNorm1d", 3, "Each channel of (N, C, L) or (C, L) normalised by itself.", "(N?, C, L)")
    instance_norm(nn, "InstanceNorm2d", 4, "Each channel of (N, C, H, W) or (C, H, W) normalised by itself.", "(N?, C, H, W)")
    instance_norm(nn, "InstanceNorm3d", 5, "Each channel of (N, C, D, H, W) normalised by itself.", "(N?, C, D, H, W)")
end
