-- nn/functional.lua: tide.nn.functional's functions that are no operators of the same name and arguments.
local tide = ...
local declare, fail = tide._function, tide._fail
local shapes_of = tide._require("nn.layer").shapes_of

-- Lengths as PyTorch takes them: a tensor, or a list of integers.
local function lengths_of(lengths)
    return tide.is_tensor(lengths) and lengths or tide.tensor(lengths, { dtype = tide.int64 })
end

local function reduced(loss, reduction)
    return reduction == "mean" and loss:mean() or reduction == "sum" and loss:sum() or loss
end

-- Standard Gumbel draws: -log(-log(u)), u kept off 0 and 1.
local function gumbel(like)
    local u = tide.rand_like(like:detach():float())
    return (-(-u:clamp(1e-10, 1 - 1e-7):log()):log()):to(like.dtype)
end

-- One at each line's largest element, with the gradient of y.
local function straight_through(y, dim)
    local _, index = y:detach():max(dim, { keepdim = true })
    local hard = tide.zeros_like(y:detach()):scatter(dim, index, tide.ones_like(index, { dtype = y.dtype }))
    return hard - y:detach() + y
end

return function(nn)
    local F = nn.functional
    for _, name in ipairs { "layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm",
        "local_response_norm", "normalize", "scaled_dot_product_attention", "bilinear", "cosine_similarity",
        "pairwise_distance", "huber_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "soft_margin_loss",
        "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss",
        "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss" } do
        F[name] = tide[name]
    end

    F.embedding = declare("embedding(Tensor input, Tensor weight, index? padding_idx=nil, number? max_norm=nil, "
        .. "number norm_type=2, bool scale_grad_by_freq=false, bool sparse=false) -> Tensor",
        "The rows of a table that indices name: tide.embedding with the indices first.",
        function(input, weight, padding, max_norm, norm_type, by_freq, sparse)
            return tide.embedding(weight, input, padding, by_freq, sparse,
                { max_norm = max_norm, norm_type = norm_type })
        end, "input (...), weight (V, D) -> (..., D)")

    F.embedding_bag = declare("embedding_bag(Tensor input, Tensor weight, Tensor? offsets=nil, number? max_norm=nil, "
        .. 'number norm_type=2, bool scale_grad_by_freq=false, "sum"|"mean"|"max" mode="mean", bool sparse=false, '
        .. "Tensor? per_sample_weights=nil, bool include_last_offset=false, index? padding_idx=nil) -> Tensor",
        "Sums, means or largest elements of bags of rows: tide.embedding_bag with the indices first.",
        function(input, weight, offsets, max_norm, norm_type, by_freq, mode, sparse, samples, last, padding)
            return tide.embedding_bag(weight, input, offsets, { mode = mode, per_sample_weights = samples,
                include_last_offset = last, padding_idx = padding, max_norm = max_norm, norm_type = norm_type,
                scale_grad_by_freq = by_freq, sparse = sparse })
        end, (string.gsub(shapes_of "embedding_bag", "index", "input")))

    F.ctc_loss = declare("ctc_loss(Tensor log_probs, Tensor targets, any input_lengths, any target_lengths, "
        .. 'index blank=0, "mean"|"sum"|"none" reduction="mean", bool zero_infinity=false) -> Tensor',
        "tide.ctc_loss, which takes lengths as lists too.",
        function(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity)
            return tide.ctc_loss(log_probs, targets, lengths_of(inputs), lengths_of(lengths), blank,
                { reduction = reduction, zero_infinity = zero_infinity })
        end, shapes_of "ctc_loss")

    F.softmin = declare("softmin(Tensor x, dim dim, *, dtype? dtype=nil) -> Tensor", "softmax of -x.",
        function(x, dim, dtype) return tide.softmax(-x, dim, { dtype = dtype }) end, shapes_of "softmax")

    F.gumbel_softmax = declare("gumbel_softmax(Tensor logits, number tau=1, bool hard=false, dim dim=-1) -> Tensor",
        "A draw from the categorical distribution of logits, softened by tau; hard: one 1, with the soft gradient.",
        function(logits, tau, hard, dim)
            if not logits:is_floating_point() then
                fail("gumbel_softmax: needs a floating dtype, got %s", tostring(logits.dtype))
            end
            local y = tide.softmax((logits + gumbel(logits)) / tau, dim)
            return hard and straight_through(y, dim) or y
        end, "logits (...) -> (...)")

    F.triplet_margin_with_distance_loss = declare("triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, "
        .. 'Tensor negative, *, function? distance_function=nil, number margin=1, bool swap=false, '
        .. '"mean"|"sum"|"none" reduction="mean") -> Tensor',
        "max(0, distance to positive - distance to negative + margin) by a distance of one's own.",
        function(anchor, positive, negative, distance, margin, swap, reduction)
            distance = distance or tide.pairwise_distance
            if margin <= 0 then
                fail("triplet_margin_with_distance_loss: margin must be positive, got %s", tostring(margin))
            elseif anchor:dim() ~= positive:dim() or anchor:dim() ~= negative:dim() then
                fail("triplet_margin_with_distance_loss: anchor, positive and negative must have as many dims, "
                    .. "got shapes %s, %s and %s", tostring(anchor.shape), tostring(positive.shape),
                    tostring(negative.shape))
            end
            local apart = distance(anchor, negative)
            if swap then
                apart = tide.minimum(apart, distance(positive, negative))
            end
            return reduced((distance(anchor, positive) - apart + margin):clamp(0), reduction)
        end, shapes_of "triplet_margin_loss")
end
