-- nn/transformer.lua: the layers and stacks of tide.nn.Transformer. Arguments, names of parts, starting values and
-- masks are PyTorch's; the attention itself is MultiheadAttention's.
local tide = ...
local fail, declare = tide._fail, tide._function

local WIDTHS = "number(0..1) dropout=0.1, any activation=nil"
local FORMS = "number(0..) layer_norm_eps=1e-05, bool batch_first=false, bool norm_first=false, bool bias=true"
local LAYER = "(int(1..) d_model, int(1..) nhead, int(1..) dim_feedforward=2048, " .. WIDTHS .. ", " .. FORMS .. ")"

-- A class whose constructor's and call's arguments are read by schemas; those that make fresh parameters take dtype
-- and device.
local function class(nn, schema, doc, shapes, call, methods)
    local name, layers = string.match(schema, "^%w+"), tide._require "nn.layer"
    schema = methods.fresh and layers.with_factory(schema) or schema
    local read, read_call = declare(schema, doc, nil, shapes), declare(name .. call, doc)
    local c = nn.class(name)
    function c:init(...)
        local options = read(...)
        layers.made_as(self, function() methods.make(self, options) end, options.dtype, options.device)
    end
    function c:forward(...) return methods.forward(self, read_call(...)) end
    nn[name] = c
    tide._document(c, read)
    return c
end

-- A name, a function or a module that is called with the hidden layer; modules become children.
local function take_activation(self, given)
    local name = getmetatable(self).__name
    local fn = given == nil and tide.relu or given
    if type(given) == "string" then
        fn = ({ relu = tide.relu, gelu = tide.gelu })[given]
            or fail('%s: activation: expected "relu", "gelu", a function or a module, got "%s"', name, given)
    elseif type(fn) ~= "function" and not tide.nn.is_module(fn) then
        fail('%s: activation: expected "relu", "gelu", a function or a module, got %s', name, tide._describe(fn))
    end
    self.activation = fn
end

-- ---- layers ----

local function attention(options)
    return tide.nn.MultiheadAttention(options.d_model, options.nhead,
        { dropout = options.dropout, bias = options.bias, batch_first = options.batch_first })
end

-- What follows the attentions, `count` norms and dropouts in all.
local function add_feedforward(self, options, count)
    local nn = tide.nn
    self.linear1 = nn.Linear(options.d_model, options.dim_feedforward, options.bias)
    self.dropout = nn.Dropout(options.dropout)
    self.linear2 = nn.Linear(options.dim_feedforward, options.d_model, options.bias)
    for k = 1, count do
        self["norm" .. k] = nn.LayerNorm({ options.d_model }, { eps = options.layer_norm_eps, bias = options.bias })
    end
    for k = 1, count do
        self["dropout" .. k] = nn.Dropout(options.dropout)
    end
    self.norm_first = options.norm_first
    take_activation(self, options.activation)
end

local function feedforward(self, x) return self.linear2(self.dropout(self.activation(self.linear1(x)))) end

local function attend(module, x, memory, mask, padding, is_causal)
    return (module(x, memory, memory, { attn_mask = mask, key_padding_mask = padding, is_causal = is_causal,
        need_weights = false }))
end

-- x through the k-th block, around which lie a norm, before it or behind the sum, and a dropout.
local function around(self, x, k, block)
    local norm, dropout = self["norm" .. k], self["dropout" .. k]
    if self.norm_first then
        return x + dropout(block(norm(x)))
    end
    return norm(x + dropout(block(x)))
end

-- Shapes for both orders of dims: L before the batch N, or with batch_first behind it.
local function both_orders(text)
    return string.format("%s if not batch_first | %s", text, (string.gsub(text, "%(([ST]), N%?, ", "(N?, %1, ")))
end

local function encoder_layer(nn)
    class(nn, "TransformerEncoderLayer" .. LAYER, "Attention of a sequence to itself and two linear layers, each with "
        .. "dropout, a sum and a norm.",
        both_orders("src (S, N?, d_model), src_mask (mask...), src_key_padding_mask (N?, S) -> (S, N?, d_model)")
        .. "; mask: (S, S) or (N*nhead, S, S)",
        "(Tensor src, Tensor? src_mask=nil, Tensor? src_key_padding_mask=nil, bool is_causal=false)", {
            fresh = true,
            make = function(self, options)
                self.self_attn = attention(options)
                add_feedforward(self, options, 2)
            end,
            forward = function(self, given)
                local x = around(self, given.src, 1, function(x)
                    return attend(self.self_attn, x, x, given.src_mask, given.src_key_padding_mask, given.is_causal)
                end)
                return around(self, x, 2, function(y) return feedforward(self, y) end)
            end,
        })
end

local function decoder_layer(nn)
    class(nn, "TransformerDecoderLayer" .. LAYER, "Attention of a sequence to itself and to a memory, and two linear "
        .. "layers, each with dropout, a sum and a norm.",
        both_orders("tgt (T, N?, d_model), memory (S, N?, d_model), tgt_mask (mask...), memory_mask (between...), "
        .. "tgt_key_padding_mask (N?, T), memory_key_padding_mask (N?, S) -> (T, N?, d_model)")
        .. "; mask: (T, T) or (N*nhead, T, T); between: (T, S) or (N*nhead, T, S)",
        "(Tensor tgt, Tensor memory, Tensor? tgt_mask=nil, Tensor? memory_mask=nil, Tensor? tgt_key_padding_mask=nil, "
        .. "Tensor? memory_key_padding_mask=nil, bool tgt_is_causal=false, bool memory_is_causal=false)", {
            fresh = true,
            make = function(self, options)
                self.self_attn = attention(options)
                self.multihead_attn = attention(options)
                add_feedforward(self, options, 3)
            end,
            forward = function(self, given)
                local x = around(self, given.tgt, 1, function(x)
                    return attend(self.self_attn, x, x, given.tgt_mask, given.tgt_key_padding_mask, given.tgt_is_causal)
                end)
                x = around(self, x, 2, function(y)
                    return attend(self.multihead_attn, y, given.memory, given.memory_mask,
                        given.memory_key_padding_mask, given.memory_is_causal)
                end)
                return around(self, x, 3, function(y) return feedforward(self, y) end)
            end,
        })
end

-- ---- stacks ----

local function causal_mask(size, options)
    return tide.full({ size, size }, -math.huge, options):triu(1)
end

-- The length of a sequence (L, N, E), (N, L, E) or (L, E).
local function length_of(x, batch_first) return x.shape[x:dim() == 3 and batch_first and 2 or 1] end

-- The hint about a mask, found out where none is given.
local function causal(mask, hint, x, layer)
    if hint ~= nil or not mask then
        return hint or false
    end
    local size = length_of(x, layer.self_attn and layer.self_attn.batch_first)
    if not mask:is_floating_point() or mask:dim() ~= 2 or mask.shape[1] ~= size or mask.shape[2] ~= size then
        return false
    end
    return tide.equal(mask, causal_mask(size, { dtype = mask.dtype, device = mask.device }))
end

local function take_layers(self, layer, count, norm)
    local list = {}
    for k = 1, count do
        list[k] = layer:clone()
    end
    self.layers = tide.nn.ModuleList(list)
    self.num_layers = count
    self.norm = norm
end

local function finish(self, x)
    local norm = rawget(self, "norm")
    return norm and norm(x) or x
end

local function stacks(nn)
    class(nn, "TransformerEncoder(Module encoder_layer, int(1..65536) num_layers, Module? norm=nil, "
        .. "bool enable_nested_tensor=true, bool mask_check=true)", "Copies of a layer one behind the other, and a norm.",
        "src (...), mask (mask...), src_key_padding_mask (padding...) -> (...); mask: as its layers take; "
        .. "padding: as its layers take",
        "(Tensor src, Tensor? mask=nil, Tensor? src_key_padding_mask=nil, bool? is_causal=nil)", {
            make = function(self, options) take_layers(self, options.encoder_layer, options.num_layers, options.norm) end,
            forward = function(self, given)
                local x, hint = given.src, causal(given.mask, given.is_causal, given.src, self.layers[1])
                for _, layer in ipairs(self.layers) do
                    x = layer(x, { src_mask = given.mask, src_key_padding_mask = given.src_key_padding_mask,
                        is_causal = hint })
                end
                return finish(self, x)
            end,
        })
    class(nn, "TransformerDecoder(Module decoder_layer, int(1..65536) num_layers, Module? norm=nil)",
        "Copies of a layer one behind the other, which all see the memory, and a norm.",
        "tgt (...), memory (memory...) -> (...); memory: as its layers take, as masks are",
        "(Tensor tgt, Tensor memory, Tensor? tgt_mask=nil, Tensor? memory_mask=nil, Tensor? tgt_key_padding_mask=nil, "
        .. "Tensor? memory_key_padding_mask=nil, bool? tgt_is_causal=nil, bool memory_is_causal=false)", {
            make = function(self, options) take_layers(self, options.decoder_layer, options.num_layers, options.norm) end,
            forward = function(self, given)
                local x, memory = given.tgt, given.memory
                given.tgt_is_causal = causal(given.tgt_mask, given.tgt_is_causal, x, self.layers[1])
                given.tgt, given.memory = nil, nil
                for _, layer in ipairs(self.layers) do
                    x = layer(x, memory, given)
                end
                return finish(self, x)
            end,
        })
end

-- ---- the whole ----

local function default_stack(nn, options, side)
    local layer = nn["Transformer" .. side .. "Layer"](options.d_model, options.nhead, {
        dim_feedforward = options.dim_feedforward, dropout = options.dropout, activation = options.activation,
        layer_norm_eps = options.layer_norm_eps, batch_first = options.batch_first, norm_first = options.norm_first,
        bias = options.bias })
    local norm = nn.LayerNorm({ options.d_model }, { eps = options.layer_norm_eps, bias = options.bias })
    return nn["Transformer" .. side](layer, options["num_" .. string.lower(side) .. "_layers"], norm)
end

local function make_transformer(self, options)
    self.encoder = options.custom_encoder or default_stack(tide.nn, options, "Encoder")
    self.decoder = options.custom_decoder or default_stack(tide.nn, options, "Decoder")
    for _, p in ipairs(self:parameters()) do
        if p:dim() > 1 then
            tide.nn.init.xavier_uniform_(p)
        end
    end
    for _, field in ipairs { "d_model", "nhead", "batch_first" } do
        self[field] = options[field]
    end
end

local function check_inputs(self, src, tgt)
    local batch = self.batch_first and 1 or 2
    if src:dim() == 3 and tgt:dim() == 3 and src.shape[batch] ~= tgt.shape[batch] then
        fail("Transformer: src and tgt must have batches of one size, got shapes %s and %s", tostring(src.shape),
            tostring(tgt.shape))
    elseif src.shape[-1] ~= self.d_model or tgt.shape[-1] ~= self.d_model then
        fail("Transformer: the last dim of src and tgt must be d_model = %d, got shapes %s and %s", self.d_model,
            tostring(src.shape), tostring(tgt.shape))
    end
end

local function transform(self, given)
    check_inputs(self, given.src, given.tgt)
    local memory = self.encoder(given.src, { mask = given.src_mask, src_key_padding_mask = given.src_key_padding_mask,
        is_causal = given.src_is_causal })
    return self.decoder(given.tgt, memory, { tgt_mask = given.tgt_mask, memory_mask = given.memory_mask,
        tgt_key_padding_mask = given.tgt_key_padding_mask, memory_key_padding_mask = given.memory_key_padding_mask,
        tgt_is_causal = given.tgt_is_causal, memory_is_causal = given.memory_is_causal })
end

local function transformer(nn)
    local c = class(nn, "Transformer(int(1..) d_model=512, int(1..) nhead=8, int(1..65536) num_encoder_layers=6, "
        .. "int(1..65536) num_decoder_layers=6, int(1..) dim_feedforward=2048, " .. WIDTHS .. ", Module? custom_encoder=nil, "
        .. "Module? custom_decoder=nil, " .. FORMS .. ")",
        "An encoder of the source, whose result a decoder of the target attends to: m(src, tgt, {tgt_mask = ...}).",
        both_orders("src (S, N?, d_model), tgt (T, N?, d_model), src_mask (S, S), tgt_mask (T, T), memory_mask (T, S), "
        .. "src_key_padding_mask (N?, S), tgt_key_padding_mask (N?, T), memory_key_padding_mask (N?, S) -> (T, N?, d_model)"),
        "(Tensor src, Tensor tgt, Tensor? src_mask=nil, Tensor? tgt_mask=nil, Tensor? memory_mask=nil, "
        .. "Tensor? src_key_padding_mask=nil, Tensor? tgt_key_padding_mask=nil, Tensor? memory_key_padding_mask=nil, "
        .. "bool? src_is_causal=nil, bool? tgt_is_causal=nil, bool memory_is_causal=false)",
        { fresh = true, make = make_transformer, forward = transform })
    local mask = declare(
        "generate_square_subsequent_mask(int(0..) sz, *, dtype? dtype=nil, device? device=nil) -> Tensor",
        "The mask that hides what comes later: -inf above the diagonal, 0 elsewhere.",
        function(size, dtype, device) return causal_mask(size, { dtype = dtype, device = device }) end)
    function c.generate_square_subsequent_mask(first, ...) -- of the class, or a method
        if nn.is_module(first) then
            return mask(...)
        end
        return mask(first, ...)
    end
    tide._document(c.generate_square_subsequent_mask, mask)
end

return function(nn)
    encoder_layer(nn)
    decoder_layer(nn)
    stacks(nn)
    transformer(nn)
end
