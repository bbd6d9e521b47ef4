-- nn/utils.lua: more of tide.nn.utils: parameters as one vector, sequences of different lengths as one tensor, and
-- layers with the normalisation behind them as one layer.
local tide = ...
local fail, declare = tide._fail, tide._function

return function(nn)
    local utils = nn.utils

    -- ---- vectors ----

    utils.parameters_to_vector = declare("parameters_to_vector(Tensor|Tensor[] parameters) -> Tensor",
        "All elements of the parameters in one vector.", function(params)
            local flat = {}
            for k, p in ipairs(params) do
                flat[k] = p:reshape(-1)
            end
            return tide.cat(flat)
        end)

    utils.vector_to_parameters = declare("vector_to_parameters(Tensor vec, Tensor|Tensor[] parameters) -> nothing",
        "The elements of a vector into the parameters, one after the other.", function(vec, params)
            local total, first = 0, 1
            for _, p in ipairs(params) do
                total = total + p:numel()
            end
            if vec:dim() ~= 1 or vec:numel() ~= total then
                fail("vector_to_parameters: expected a vector of %d elements for these parameters, got shape %s", total,
                    tostring(vec.shape))
            end
            local _ <close> = tide.no_grad()
            for _, p in ipairs(params) do
                p:copy_(vec:narrow(1, first, p:numel()):reshape(p.shape))
                first = first + p:numel()
            end
        end)

    -- ---- sequences ----

    utils.rnn = {}
    utils.rnn.pad_sequence = declare("pad_sequence(Tensor[] sequences, bool batch_first=false, number padding_value=0, "
        .. '"right"|"left" padding_side="right") -> Tensor',
        "Sequences (L, ...) of different lengths as one tensor, filled up behind (or before) the shorter ones.",
        function(sequences, batch_first, value, side)
            local longest, padded = 0, {}
            for _, x in ipairs(sequences) do
                if x:dim() == 0 then
                    fail("pad_sequence: sequences have at least one dim, got a tensor of none")
                end
                longest = math.max(longest, x.shape[1])
            end
            for k, x in ipairs(sequences) do
                local sizes = { table.unpack(x.shape) }
                sizes[1] = longest - x.shape[1]
                local rest = tide.full(sizes, value, { dtype = x.dtype, device = x.device })
                padded[k] = tide.cat(side == "right" and { x, rest } or { rest, x }, 1)
            end
            return tide.stack(padded, batch_first and 1 or 2)
        end)

    utils.rnn.unpad_sequence = declare(
        "unpad_sequence(Tensor padded_sequences, any lengths, bool batch_first=false) -> list",
        "The sequences of a padded tensor without what was filled up behind them.",
        function(padded, lengths, batch_first)
            local list, along = {}, batch_first and 1 or 2
            lengths = tide.is_tensor(lengths) and lengths:tolist() or lengths
            if type(lengths) ~= "table" or #lengths ~= padded.shape[along] then
                fail("unpad_sequence: expected a length for each of %d sequences, got %s", padded.shape[along],
                    tide._describe(lengths))
            end
            for k, length in ipairs(lengths) do
                list[k] = padded:select(along, k):narrow(1, 1, length)
            end
            return list
        end)
    tide._require("nn.packed").open(utils.rnn)
    tide._document(utils.rnn, "rnn", "tide.nn.utils.rnn", "Sequences of different lengths: pad_sequence, unpad_sequence; "
        .. "pack_padded_sequence, pad_packed_sequence, pack_sequence, unpack_sequence.")

    -- ---- a layer and the normalisation behind it ----

    -- A copy of the layer that does what both do in evaluation; `dim` of its weight are the channels.
    local function fuse(fname, layer, bn, dim)
        if layer.training or bn.training then
            fail("%s: both modules must be in evaluation: call eval()", fname)
        elseif not rawget(bn, "running_mean") then
            fail("%s: %s keeps no statistics", fname, getmetatable(bn).__name)
        elseif not rawget(layer, "weight") or layer.weight:dim() < 2 or layer.weight.shape[dim] ~= bn.num_features then
            fail("%s: %s has no weight of %d channels", fname, getmetatable(layer).__name, bn.num_features)
        end
        local fused, _ <close> = layer:clone(), tide.no_grad()
        local weight, scale = fused.weight, (bn.running_var + bn.eps):rsqrt()
        scale = rawget(bn, "weight") and scale * bn.weight or scale
        local sizes = {}
        for d = 1, weight:dim() do
            sizes[d] = d == dim and scale:numel() or 1
        end
        local bias = (rawget(fused, "bias") or 0) - bn.running_mean
        fused.bias = nn.Parameter(bias * scale + (rawget(bn, "bias") or 0))
        fused.weight = nn.Parameter(weight * scale:reshape(sizes))
        rawset(fused, "has_bias", true)
        return fused
    end

    utils.fuse_conv_bn_eval = declare("fuse_conv_bn_eval(Module conv, Module bn, bool transpose=false) -> Module",
        "A convolution that does what both do in evaluation.",
        function(conv, bn, transpose) return fuse("fuse_conv_bn_eval", conv, bn, transpose and 2 or 1) end)
    utils.fuse_linear_bn_eval = declare("fuse_linear_bn_eval(Module linear, Module bn) -> Module",
        "A linear layer that does what both do in evaluation.",
        function(linear, bn) return fuse("fuse_linear_bn_eval", linear, bn, 1) end)

    tide._document(utils, "utils", "tide.nn.utils", "Gradients kept within bounds: clip_grad_norm_, clip_grad_value_, "
        .. "get_total_norm; weight_norm, spectral_norm; parametrize, parametrizations; parameters_to_vector, "
        .. "vector_to_parameters; rnn; fuse_conv_bn_eval.")
end
