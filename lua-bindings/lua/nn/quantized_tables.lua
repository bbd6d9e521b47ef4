-- nn/quantized_tables.lua: tide.nn.quantized.Embedding and EmbeddingBag: tables whose rows have 8 or 4 bits for an element, in
-- PyTorch's order of bytes (engine/ops/plan/plan.h, td_pack_rows_plan).
local tide = ...
local fail, layers = tide._fail, tide._require "nn.layer"

local BITS <const> = { quint8 = 8, quint4x2 = 4 }

local function pack(weight, dtype)
    weight = weight:detach():float()
    if not weight:isfinite():all():item() then
        fail("from_float: the weight has NaN or infinity in it: there is no scale for it")
    elseif dtype == "quint4x2" and weight:numel() > 0 and weight:abs():amax():item() > 65504 then
        fail("from_float: quint4x2 keeps offsets in float16: an element beyond 65504")
    end
    return tide._pack_rows(weight, BITS[dtype])
end

local function start(self)
    rawset(self, "bits", BITS[self.dtype])
    self:register_buffer("weight", pack(tide.zeros(self.num_embeddings, self.embedding_dim), self.dtype))
end

-- Rows as floats, each by itself.
local function rows_of(self, index)
    local flat = index:reshape(-1, 1)
    local y = tide._add_rows(self.weight, flat, nil, nil, self.embedding_dim, self.bits, false, false, nil)
    local sizes = { table.unpack(index.shape) }
    sizes[#sizes + 1] = self.embedding_dim
    return y:view(sizes)
end

-- dequantize(): the table of float32 that the rows stand for.
local function dequantize(self) return rows_of(self, tide.arange(1, self.num_embeddings + 1, { device = self.weight.device })) end

local function text(self)
    return string.format("num_embeddings=%d, embedding_dim=%d, dtype=%s%s", self.num_embeddings, self.embedding_dim, self.dtype,
        self.mode and ", mode=" .. self.mode or "")
end

local function from_float(quantized, name, fields)
    quantized[name].from_float = tide._function(string.format('from_float(Module table, "quint8"|"quint4x2" dtype="quint8") -> Module'),
        "The layer of the rows of a tide.nn." .. name .. ".", function(from, dtype)
            if from.max_norm then
                fail("from_float: option max_norm: rows of bytes are not made shorter")
            end
            local options = { dtype = dtype }
            for _, field in ipairs(fields) do
                options[field] = from[field]
            end
            local layer = quantized[name](from.num_embeddings, from.embedding_dim, options)
            layer.weight = pack(from.weight, dtype)
            return layer
        end)
end

return function(quantized)
    local HEAD <const> = '(int(1..) num_embeddings, int(1..) embedding_dim, *, "quint8"|"quint4x2" dtype="quint8", '
    layers.layer(quantized, "Embedding" .. HEAD .. "index? padding_idx=nil)",
        "A table of rows that indices choose, 8 or 4 bits for an element and a scale and an offset for a row. quint4x2: an even embedding_dim.",
        "index (...) -> (..., embedding_dim)", { derive = start, forward = rows_of, dequantize = dequantize, extra_repr = text })
    layers.layer(quantized, "EmbeddingBag" .. HEAD .. '"sum"|"mean" mode="sum", bool include_last_offset=false, index? padding_idx=nil)',
        "Sums or means of rows of such a table, by bags of indices, added in the bags' order.",
        "index (B, L), per_sample_weights (B, L) -> (B, embedding_dim) if offsets == nil | index (n), offsets (B), "
        .. "per_sample_weights (n) -> (B - 1 if include_last_offset else B, embedding_dim)", {
        derive = start,
        forward = function(self, index, offsets, weights)
            if weights and self.mode ~= "sum" then
                fail("EmbeddingBag: per_sample_weights are for mode 'sum'")
            end
            return tide._add_rows(self.weight, index, offsets, weights, self.embedding_dim, self.bits, self.mode == "mean",
                self.include_last_offset, self.padding_idx)
        end,
        dequantize = dequantize,
        extra_repr = text,
    })
    from_float(quantized, "Embedding", { "padding_idx" })
    from_float(quantized, "EmbeddingBag", { "padding_idx", "include_last_offset", "mode" })
end
