-- nn/attention.lua: tide.nn.MultiheadAttention: projections around scaled_dot_product_attention.
local tide = ...
local fail, layer, init = tide._fail, tide._require("nn.layer").layer, tide._require "nn.init"

local function parameter(x) return x:requires_grad_(true) end

local function make(self)
    local size = self.embed_dim
    local has_bias = self.bias
    rawset(self, "bias", nil)
    rawset(self, "has_bias", has_bias)
    if size % self.num_heads ~= 0 then
        fail("MultiheadAttention: embed_dim %d can't be divided into %d heads", size, self.num_heads)
    end
    rawset(self, "kdim", self.kdim or size)
    rawset(self, "vdim", self.vdim or size)
    if self.kdim == size and self.vdim == size then
        self.in_proj_weight = parameter(init.xavier_uniform_(tide.empty(3 * size, size)))
    else
        self.q_proj_weight = parameter(init.xavier_uniform_(tide.empty(size, size)))
        self.k_proj_weight = parameter(init.xavier_uniform_(tide.empty(size, self.kdim)))
        self.v_proj_weight = parameter(init.xavier_uniform_(tide.empty(size, self.vdim)))
    end
    if has_bias then
        self.in_proj_bias = parameter(tide.zeros(3 * size))
    end
    self.out_proj = tide.nn.Linear(size, size, has_bias)
    if has_bias then
        init.zeros_(self.out_proj.bias)
    end
    if self.add_bias_kv then
        self.bias_k = parameter(init.xavier_normal_(tide.empty(1, 1, size)))
        self.bias_v = parameter(init.xavier_normal_(tide.empty(1, 1, size)))
    end
end

-- ---- masks: true is what is left out, numbers are added to scores ----

local function added(mask, dtype)
    if mask.dtype ~= tide.bool then
        return mask:to(dtype)
    end
    return tide.zeros_like(mask, { dtype = dtype }):masked_fill(mask, -math.huge)
end

local function check_mask(name, mask, ...)
    if mask.dtype ~= tide.bool and not mask:is_floating_point() then
        fail("MultiheadAttention: %s must be of bool or a floating dtype, got %s", name, tostring(mask.dtype))
    end
    local texts = {}
    for _, sizes in ipairs { ... } do
        texts[#texts + 1] = string.format("(%s)", table.concat(sizes, ", "))
        if tostring(mask.shape) == texts[#texts] then
            return
        end
    end
    fail("MultiheadAttention: %s must have shape %s, got %s", name, table.concat(texts, " or "), tostring(mask.shape))
end

local function check_masks(self, query, key, mask, padding)
    local batch, length, keys = query.shape[1], query.shape[2], key.shape[2]
    if mask then
        check_mask("attn_mask", mask, { length, keys }, { batch * self.num_heads, length, keys })
    end
    if padding then
        check_mask("key_padding_mask", padding, { batch, keys })
    end
end

-- (N, heads, L, S) of both masks, or nil.
local function merged(self, batch, dtype, mask, padding)
    local all
    if mask then
        all = added(mask, dtype)
        if all:dim() == 3 then
            all = all:reshape(batch, self.num_heads, all.shape[2], all.shape[3])
        end
    end
    if padding then
        local own = added(padding, dtype):unsqueeze(2):unsqueeze(2)
        all = all and all + own or own
    end
    return all
end

-- As many zeros behind a mask's last dim as keys were added.
local function widened(mask, count)
    if not mask or count == 0 then
        return mask
    end
    local sizes = { table.unpack(mask.shape) }
    sizes[#sizes] = count
    return tide.cat({ mask, tide.zeros(sizes, { dtype = mask.dtype, device = mask.device }) }, -1)
end

-- ---- projections ----

local function project(self, query, key, value)
    local size, bias = self.embed_dim, rawget(self, "in_proj_bias")
    local weights, biases
    if rawget(self, "in_proj_weight") then
        weights = self.in_proj_weight:chunk(3)
    else
        weights = { self.q_proj_weight, self.k_proj_weight, self.v_proj_weight }
    end
    biases = bias and bias:split(size) or {}
    return tide.linear(query, weights[1], biases[1]), tide.linear(key, weights[2], biases[2]),
        tide.linear(value, weights[3], biases[3])
end

-- (N, L, E) as (N, heads, L, E / heads).
local function heads(self, x)
    return x:reshape(x.shape[1], x.shape[2], self.num_heads, self.embed_dim // self.num_heads):transpose(2, 3)
end

-- Keys and values that every query sees: learnt ones, zeros.
local function extended(self, k, v)
    local count, batch, size = 0, k.shape[1], self.embed_dim
    if self.add_bias_kv then
        k = tide.cat({ k, self.bias_k:expand(batch, 1, size) }, 2)
        v = tide.cat({ v, self.bias_v:expand(batch, 1, size) }, 2)
        count = count + 1
    end
    if self.add_zero_attn then
        local none = tide.zeros(batch, 1, size, { dtype = k.dtype, device = k.device })
        k, v, count = tide.cat({ k, none }, 2), tide.cat({ v, none }, 2), count + 1
    end
    return k, v, count
end

-- ---- forward ----

local function with_weights(self, q, k, v, mask, average)
    local scores = tide.matmul(q / math.sqrt(q.shape[-1]), k:transpose(-2, -1))
    local weights = tide.softmax(mask and scores + mask or scores, -1)
    weights = self.dropout > 0 and self.training and tide.dropout(weights, self.dropout) or weights
    return tide.matmul(weights, v), average and weights:mean(2) or weights
end

local function attend(self, query, key, value, options)
    check_masks(self, query, key, options.attn_mask, options.key_padding_mask)
    local q, k, v = project(self, query, key, value)
    local mask = merged(self, query.shape[1], q.dtype, options.attn_mask, options.key_padding_mask)
    local count
    k, v, count = extended(self, k, v)
    mask = widened(mask, count)
    q, k, v = heads(self, q), heads(self, k), heads(self, v)
    local y, weights
    if options.need_weights then
        y, weights = with_weights(self, q, k, v, mask, options.average_attn_weights)
    elseif options.is_causal and not options.key_padding_mask and count == 0 then -- the mask says no more
        y = tide.scaled_dot_product_attention(q, k, v, nil, self.training and self.dropout or 0, true)
    else
        y = tide.scaled_dot_product_attention(q, k, v, mask, self.training and self.dropout or 0)
    end
    y = y:transpose(2, 3):reshape(query.shape[1], query.shape[2], self.embed_dim)
    return self.out_proj(y), weights
end

local read

local function forward(self, ...)
    local given = read(...)
    local query, key, value = given.query, given.key, given.value
    local single = query:dim() == 2
    if not single and query:dim() ~= 3 or key:dim() ~= query:dim() or value:dim() ~= query:dim() then
        fail("MultiheadAttention: query, key and value must have 3 dims, or 2 without batch, got shapes %s, %s and %s",
            tostring(query.shape), tostring(key.shape), tostring(value.shape))
    end
    if given.is_causal and not given.attn_mask then
        fail("MultiheadAttention: is_causal is a hint about attn_mask: give that too")
    end
    local function arranged(x)
        return single and x:unsqueeze(1) or self.batch_first and x or x:transpose(1, 2)
    end
    if single and given.key_padding_mask then
        given.key_padding_mask = given.key_padding_mask:unsqueeze(1)
    end
    local y, weights = attend(self, arranged(query), arranged(key), arranged(value), given)
    if single then
        return y:squeeze(1), weights and weights:squeeze(1)
    end
    return self.batch_first and y or y:transpose(1, 2), weights
end

return function(nn)
    read = tide._function("MultiheadAttention(Tensor query, Tensor key, Tensor value, "
        .. "Tensor? key_padding_mask=nil, bool need_weights=true, Tensor? attn_mask=nil, "
        .. "bool average_attn_weights=true, bool is_causal=false)", "Attention of queries to keys and values.")
    layer(nn, "MultiheadAttention(int(1..) embed_dim, int(1..) num_heads, number(0..1) dropout=0, bool bias=true, "
        .. "bool add_bias_kv=false, bool add_zero_attn=false, int(1..)? kdim=nil, int(1..)? vdim=nil, "
        .. "bool batch_first=false)",
        "Attention in several heads: m(query, key, value, {attn_mask = ...}) gives outputs and weights.",
        "query (L, N?, embed_dim), key (S, N?, kdim), value (S, N?, vdim), key_padding_mask (N?, S), attn_mask (mask...) -> "
        .. "(L, N?, embed_dim), (weights...) if not batch_first | query (N?, L, embed_dim), key (N?, S, kdim), "
        .. "value (N?, S, vdim), key_padding_mask (N?, S), attn_mask (mask...) -> (N?, L, embed_dim), (weights...); "
        .. "mask: (L, S) or (N*num_heads, L, S); weights: (N?, L, S), each head's own (N?, num_heads, L, S) where "
        .. "average_attn_weights is false", {
        make = make,
        forward = forward,
        extra_repr = function(self)
            return string.format("embed_dim=%d, num_heads=%d%s", self.embed_dim, self.num_heads,
                self.batch_first and ", batch_first=true" or "")
        end,
    })
end
