-- test_nn_reset.lua: layers start anew, and losses follow their fields.
local t = require "harness"
local nn = tide.nn

t.test("a_layer_that_starts_anew_is_as_one_that_is_just_made", function()
    for _, case in ipairs {
        { "Linear", 3, 4 }, { "Linear", 3, 4, false }, { "Conv2d", 4, 4, 3, { padding = "same", groups = 2 } }, { "ConvTranspose1d", 2, 3, 3 },
        { "BatchNorm2d", 3 }, { "BatchNorm1d", 3, { affine = false } }, { "InstanceNorm1d", 3, { affine = true } }, { "LayerNorm", { 3, 4 } },
        { "GroupNorm", 2, 4 }, { "RMSNorm", 3 }, { "Embedding", 4, 3, { padding_idx = 2 } }, { "EmbeddingBag", 4, 3 }, { "Bilinear", 2, 3, 4 },
        { "LSTM", 3, 4, 2, { bidirectional = true, proj_size = 2 } }, { "RNN", 3, 4, { nonlinearity = "relu" } }, { "GRU", 3, 4, { bias = false } },
        { "LSTMCell", 3, 4 }, { "RNNCell", 3, 4 }, { "GRUCell", 3, 4 }, { "MultiheadAttention", 8, 2 },
        { "AdaptiveLogSoftmaxWithLoss", 16, 10, { 4, 7 }, { div_value = 2 } }, { "Linear", 3, 4, { dtype = tide.float64 } },
    } do
        local class = nn[case[1]]
        tide.manual_seed(1)
        local want = class(table.unpack(case, 2)):state_dict()
        local module = class(table.unpack(case, 2))
        local first = module:parameters()[1]
        tide.no_grad(function()
            for name, x in pairs(module:state_dict()) do
                x:fill_(9)
            end
        end)
        tide.manual_seed(1)
        module:reset_parameters()
        t.is_true(rawequal(first, module:parameters()[1]), "the parameters are the same tensors")
        for name, x in pairs(module:state_dict()) do
            t.eq(x.dtype, want[name].dtype)
            t.is_true(tide.equal(x, want[name]), case[1] .. "." .. name)
        end
    end
end)

t.test("running_statistics_start_anew_alone", function()
    local norm = nn.BatchNorm1d(2)
    norm(tide.randn(4, 2))
    tide.no_grad(function() norm.weight:fill_(5) end)
    norm:reset_running_stats()
    t.eq({ norm.running_mean:tolist(), norm.running_var:tolist(), norm.num_batches_tracked:item() }, { { 0, 0 }, { 1, 1 }, 0 })
    t.eq(norm.weight:tolist(), { 5, 5 })
    nn.BatchNorm1d(2, { track_running_stats = false }):reset_running_stats()
end)

t.test("losses_follow_their_fields", function()
    local x, y = tide.zeros(2, 3), tide.tensor { 1, 2 }
    local loss = nn.CrossEntropyLoss()
    t.eq({ loss.reduction, loss.ignore_index, loss.label_smoothing, loss.weight }, { "mean", -100, 0, nil })
    loss.reduction = "none"
    t.eq(loss(x, y).shape, { 2 })
    loss.ignore_index = 1
    t.eq(loss(x, y)[1]:item(), 0)
    loss.reduction = "total"
    t.error_has(function() loss(x, y) end, "reduction is mean, sum or none, got total")
    local weighted = nn.CrossEntropyLoss { weight = tide.tensor { 1.0, 0, 0 }, reduction = "sum" }
    t.eq(#weighted:buffers(), 1)
    weighted.weight = tide.tensor { 0.0, 2, 0 }
    t.close(weighted(x, y):item(), 2 * math.log(3), 1e-6)
    t.eq(nn.BCEWithLogitsLoss { pos_weight = tide.ones(3) }:double().pos_weight.dtype, tide.float64)
    local margin = nn.MarginRankingLoss()
    margin.margin = 3
    t.eq(margin(tide.ones(1), tide.ones(1), tide.ones(1)):item(), 3)
    local own = nn.TripletMarginWithDistanceLoss { distance_function = function(a, b) return (a - b):abs():sum(-1) end, margin = 2 }
    t.eq(own(tide.ones(1, 3), tide.ones(1, 3), tide.zeros(1, 3)):item(), 0)
    own.margin = 5
    t.eq(own(tide.ones(1, 3), tide.ones(1, 3), tide.zeros(1, 3)):item(), 2)
end)
