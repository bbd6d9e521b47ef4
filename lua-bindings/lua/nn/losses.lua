-- nn/losses.lua: the losses of tide.nn, each a module around the function of the same meaning. Class
-- labels count from 1.
local tide = ...
local shapes_of = tide._require("nn.layer").shapes_of

local REDUCTIONS = '"mean"|"sum"|"none"'

-- A loss loss(input, target, ...) of a function with options by name: PARAMETERS and the reduction. `fn` is an
-- operator's name or a function that has the shapes of the operator `like`.
local function loss(nn, name, fn, parameters, doc, reductions, like)
    local read = tide._function(string.format('%s(%s%s reduction="mean")', name,
        parameters ~= "" and parameters .. ", " or "", reductions or REDUCTIONS), doc, nil, shapes_of(like or fn))
    local c, names = nn.class(name), tide._doc(read).params
    function c:init(...)
        local options = read(...)
        for _, field in ipairs(names) do
            if tide.is_tensor(options[field]) then
                self:register_buffer(field, options[field])
            else
                rawset(self, field, options[field])
            end
        end
    end
    -- The fields decide at each call, as they may have been written since, or have moved with the module.
    function c:forward(...)
        local arguments, options = table.pack(...), {}
        for _, field in ipairs(names) do
            options[field] = rawget(self, field)
        end
        arguments[arguments.n + 1] = options
        return (type(fn) == "function" and fn or tide[fn])(table.unpack(arguments, 1, arguments.n + 1))
    end
    nn[name] = c
    tide._document(c, read)
end

-- What compares distributions and elements.
local function elements(nn)
    loss(nn, "CrossEntropyLoss", "cross_entropy",
        "Tensor? weight=nil, int ignore_index=-100, number(0..1) label_smoothing=0",
        "Cross entropy of scores (N, C, ...) with classes that count from 1, or probabilities.")
    loss(nn, "NLLLoss", "nll_loss", "Tensor? weight=nil, int ignore_index=-100", "Negative log likelihood of classes.")
    loss(nn, "MSELoss", "mse_loss", "", "Squared error.")
    loss(nn, "L1Loss", "l1_loss", "", "Absolute error.")
    loss(nn, "SmoothL1Loss", "smooth_l1_loss", "number(0..) beta=1", "Absolute error, squared where it is small.")
    loss(nn, "HuberLoss", "huber_loss", "number delta=1", "Half the squared error, linear where it is over delta.")
    loss(nn, "BCELoss", "binary_cross_entropy", "Tensor? weight=nil", "Cross entropy of probabilities.")
    loss(nn, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", "Tensor? weight=nil, Tensor? pos_weight=nil",
        "Cross entropy of sigmoid(x).")
    loss(nn, "KLDivLoss", "kl_div", "bool log_target=false",
        "Divergence of log probabilities from a distribution.", '"mean"|"sum"|"none"|"batchmean"')
    loss(nn, "PoissonNLLLoss", "poisson_nll_loss", "bool log_input=true, bool full=false, number eps=1e-08",
        "Negative log likelihood of counts.")
    loss(nn, "GaussianNLLLoss", "gaussian_nll_loss", "*, bool full=false, number eps=1e-06",
        "Negative log likelihood of normal distributions: loss(input, target, var).")
    loss(nn, "CTCLoss", nn.functional.ctc_loss, "int blank=1, bool zero_infinity=false",
        "Minus log probability of sequences: loss(log_probs, targets, input_lengths, target_lengths).", nil, "ctc_loss")
end

-- What keeps scores or distances apart.
local function margins(nn)
    loss(nn, "SoftMarginLoss", "soft_margin_loss", "", "log(1 + exp(-target input)).")
    loss(nn, "HingeEmbeddingLoss", "hinge_embedding_loss", "number margin=1", "Distances that should be small or large.")
    loss(nn, "MarginRankingLoss", "margin_ranking_loss", "number margin=0",
        "Which of two should be larger: loss(input1, input2, target).")
    loss(nn, "CosineEmbeddingLoss", "cosine_embedding_loss", "number margin=0",
        "Vectors that should agree or not: loss(input1, input2, target).")
    loss(nn, "TripletMarginLoss", "triplet_margin_loss",
        "number margin=1, number p=2, number eps=1e-06, bool swap=false",
        "Nearer to positive than to negative: loss(anchor, positive, negative).")
    loss(nn, "TripletMarginWithDistanceLoss", nn.functional.triplet_margin_with_distance_loss,
        "*, function? distance_function=nil, number margin=1, bool swap=false", "The same by a distance of one's own.", nil,
        "triplet_margin_loss")
    loss(nn, "MultiMarginLoss", "multi_margin_loss", "int p=1, number margin=1, Tensor? weight=nil",
        "The target class's score above all others by a margin.")
    loss(nn, "MultiLabelMarginLoss", "multilabel_margin_loss", "", "The same with several target classes.")
    loss(nn, "MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", "Tensor? weight=nil",
        "Binary cross entropies over classes.")
end

return function(nn)
    elements(nn)
    margins(nn)
end
