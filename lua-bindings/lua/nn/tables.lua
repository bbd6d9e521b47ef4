-- nn/tables.lua: layers around tables of rows, products of two inputs and distances.
local tide = ...
local fail, layers, init = tide._fail, tide._require "nn.layer", tide._require "nn.init"
local layer, shapes_of = layers.layer, layers.shapes_of

-- A table of normal draws, whose row for padding is zero. Places may be counted from the end.
local function start_table(self)
    local padding, rows = self.padding_idx, self.num_embeddings
    if padding and (padding > rows or padding < -rows) then
        fail("%s: padding_idx %d is not a row from 1 to %d", getmetatable(self).__name, padding, rows)
    end
    local weight = init.normal_(tide.empty(rows, self.embedding_dim))
    if padding then
        weight[padding] = 0
    end
    self.weight = weight:requires_grad_(true)
end

local function options_text(self, names)
    local text = string.format("%d, %d", self.num_embeddings, self.embedding_dim)
    for _, pair in ipairs(names) do
        local value = self[pair[1]]
        if value ~= pair[2] then
            text = string.format("%s, %s=%s", text, pair[1],
                math.type(value) == "float" and tide._number(value, 6) or tostring(value))
        end
    end
    return text
end

local function tables(nn)
    layer(nn, "Embedding(int(1..) num_embeddings, int(1..) embedding_dim, index? padding_idx=nil, "
        .. "number? max_norm=nil, number norm_type=2, bool scale_grad_by_freq=false, bool sparse=false)",
        "A table of rows that indices choose.",
        "index (...), weight (num_embeddings, embedding_dim) -> (..., embedding_dim)", {
        make = start_table,
        forward = function(self, index)
            return tide.embedding(self.weight, index, self.padding_idx, self.scale_grad_by_freq, self.sparse,
                { max_norm = self.max_norm, norm_type = self.norm_type })
        end,
        extra_repr = function(self)
            return options_text(self, { { "padding_idx" }, { "max_norm" }, { "norm_type", 2 },
                { "scale_grad_by_freq", false }, { "sparse", false } })
        end,
    })
    layer(nn, "EmbeddingBag(int(1..) num_embeddings, int(1..) embedding_dim, number? max_norm=nil, "
        .. 'number norm_type=2, bool scale_grad_by_freq=false, "sum"|"mean"|"max" mode="mean", bool sparse=false, '
        .. "bool include_last_offset=false, index? padding_idx=nil)",
        "Sums, means or largest elements of the rows that bags of indices choose.",
        "index (B, L), per_sample_weights (B, L), weight (num_embeddings, embedding_dim) -> (B, embedding_dim) if offsets == nil "
        .. "| index (n), offsets (B), per_sample_weights (n), weight (num_embeddings, embedding_dim) -> "
        .. "(B - 1 if include_last_offset else B, embedding_dim)", {
        make = start_table,
        forward = function(self, index, offsets, per_sample_weights)
            return tide.embedding_bag(self.weight, index, offsets, { mode = self.mode, per_sample_weights = per_sample_weights,
                include_last_offset = self.include_last_offset, padding_idx = self.padding_idx,
                max_norm = self.max_norm, norm_type = self.norm_type,
                scale_grad_by_freq = self.scale_grad_by_freq, sparse = self.sparse })
        end,
        extra_repr = function(self)
            return options_text(self, { { "max_norm" }, { "norm_type", 2 }, { "scale_grad_by_freq", false } })
                .. ", mode=" .. self.mode .. (self.padding_idx and ", padding_idx=" .. self.padding_idx or "")
        end,
    })
end

-- A layer around a table that is given, which it shares.
local function around(class, x, freeze, options)
    if x:dim() ~= 2 then
        fail("from_pretrained: expected a table (num_embeddings, embedding_dim), got shape %s", tostring(x.shape))
    end
    options.device = "meta"
    local module = class(x:size(1), x:size(2), options)
    module:register_parameter("weight", x:detach():requires_grad_(not freeze))
    return module
end

local function pretrained(nn)
    local doc = "A layer around a table (num_embeddings, embedding_dim) of rows, whose memory it shares; it learns where freeze is false."
    nn.Embedding.from_pretrained = tide._function("from_pretrained(Tensor embeddings, bool freeze=true, index? padding_idx=nil, number? max_norm=nil, "
        .. "number norm_type=2, bool scale_grad_by_freq=false, bool sparse=false) -> Module", doc,
        function(x, freeze, padding_idx, max_norm, norm_type, scaled, sparse)
            return around(nn.Embedding, x, freeze, { padding_idx = padding_idx, max_norm = max_norm, norm_type = norm_type,
                scale_grad_by_freq = scaled, sparse = sparse })
        end)
    nn.EmbeddingBag.from_pretrained = tide._function("from_pretrained(Tensor embeddings, bool freeze=true, number? max_norm=nil, number norm_type=2, "
        .. 'bool scale_grad_by_freq=false, "sum"|"mean"|"max" mode="mean", bool sparse=false, bool include_last_offset=false, '
        .. "index? padding_idx=nil) -> Module", doc,
        function(x, freeze, max_norm, norm_type, scaled, mode, sparse, last, padding_idx)
            return around(nn.EmbeddingBag, x, freeze, { padding_idx = padding_idx, max_norm = max_norm, norm_type = norm_type,
                scale_grad_by_freq = scaled, sparse = sparse, mode = mode, include_last_offset = last })
        end)
end

local function pairs_of_inputs(nn)
    layer(nn, "Bilinear(int(1..) in1_features, int(1..) in2_features, int(0..) out_features, bool bias=true)",
        "y = x1^T W x2 + b for each output.",
        "x1 (..., in1_features), x2 (..., in2_features), weight (out_features, in1_features, in2_features), "
        .. "bias (out_features) -> (..., out_features)", {
        make = function(self)
            local bound, has_bias = 1 / math.sqrt(self.in1_features), self.bias
            rawset(self, "has_bias", has_bias)
            rawset(self, "bias", nil)
            self.weight = init.uniform_(tide.empty(self.out_features, self.in1_features, self.in2_features), -bound,
                bound):requires_grad_(true)
            if has_bias then
                self.bias = init.uniform_(tide.empty(self.out_features), -bound, bound):requires_grad_(true)
            end
        end,
        forward = function(self, a, b) return tide.bilinear(a, b, self.weight, self.bias) end,
        extra_repr = function(self)
            return string.format("in1_features=%d, in2_features=%d, out_features=%d, bias=%s", self.in1_features,
                self.in2_features, self.out_features, self.has_bias)
        end,
    })
    layer(nn, "CosineSimilarity(dim dim=1, number eps=1e-08)", "Cosine of the angle between vectors along a dim.",
        shapes_of "cosine_similarity", {
        forward = function(self, a, b) return tide.cosine_similarity(a, b, self.dim, self.eps) end,
        extra_repr = function(self) return string.format("dim=%d, eps=%s", self.dim, tide._number(self.eps, 6)) end,
    })
    layer(nn, "PairwiseDistance(number p=2, number eps=1e-06, bool keepdim=false)",
        "p-norm of the difference of vectors.", shapes_of "pairwise_distance", {
        forward = function(self, a, b) return tide.pairwise_distance(a, b, self.p, self.eps, self.keepdim) end,
        extra_repr = function(self)
            return string.format("p=%s, eps=%s, keepdim=%s", tide._number(self.p, 6), tide._number(self.eps, 6), self.keepdim)
        end,
    })
end

return function(nn)
    tables(nn)
    pretrained(nn)
    pairs_of_inputs(nn)
    layer(nn, "Softmin(dim dim)", "softmax of -x.", shapes_of "softmax", {
        forward = function(self, x) return tide.softmax(-x, self.dim) end,
        extra_repr = function(self) return "dim=" .. self.dim end,
    })
end
