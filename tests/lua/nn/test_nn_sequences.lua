-- test_nn_sequences.lua: recurrent layers, attention, normalisations and tables of rows as modules: their
-- parts, forms without batch, states that they keep. What the numbers should be PyTorch 2.15 says, of the
-- same weights; operators by themselves are tests/ops/test_golden.lua's.
local t = require "harness"
local nn = tide.nn

-- Numbers that both sides can make: cos(0.61 k + o).
local function X(...)
    local sizes = { ... }
    local offset = type(sizes[#sizes]) == "table" and table.remove(sizes)[1] or 0
    local n = 1
    for _, size in ipairs(sizes) do
        n = n * size
    end
    return ((tide.arange(0, n, { dtype = tide.float64 })) * 0.61 + offset):cos():reshape(sizes)
end

local function filled(module)
    local _ <close> = tide.no_grad()
    module:double()
    local k = 0
    for _, p in module:named_parameters() do
        k = k + 1
        p:copy_(((tide.arange(0, p:numel(), { dtype = tide.float64 }) * 0.37 + k):sin() * 0.5):reshape(p.shape))
    end
    return module
end

local function check(x, shape, sum, weighted)
    t.eq(tostring(x.shape), shape)
    t.close(x:sum():item(), sum, 1e-9)
    t.close((x * X(table.pack(table.unpack(x.shape))[1], select(2, table.unpack(x.shape)))):sum():item(),
        (x * X(table.unpack(x.shape))):sum():item(), 1e-12)
    local sizes = { table.unpack(x.shape) }
    sizes[#sizes + 1] = { 1 }
    t.close((x * X(table.unpack(sizes))):sum():item(), weighted, 1e-9)
end

local function names(module)
    local list = {}
    for name in module:named_parameters() do
        list[#list + 1] = name
    end
    return table.concat(list, " ")
end

-- ---- recurrent ----

t.test("lstm_names_its_weights_and_computes_as_pytorch", function()
    local lstm = filled(nn.LSTM(3, 4, 2, { bidirectional = true }))
    t.eq(names(lstm), "weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 weight_ih_l0_reverse weight_hh_l0_reverse "
        .. "bias_ih_l0_reverse bias_hh_l0_reverse weight_ih_l1 weight_hh_l1 bias_ih_l1 bias_hh_l1 "
        .. "weight_ih_l1_reverse weight_hh_l1_reverse bias_ih_l1_reverse bias_hh_l1_reverse")
    local y, states = lstm(X(5, 2, 3))
    check(y, "(5, 2, 8)", 6.73436318466, -0.024865575354)
    check(states[1], "(4, 2, 4)", 0.85575505376, -0.078189361146)
    check(states[2], "(4, 2, 4)", 1.27299108109, 1.26501703061)
    y, states = lstm(X(5, 3), { X(4, 4, { 2 }), X(4, 4, { 3 }) })
    check(y, "(5, 8)", 2.46118439083, 0.45335286138)
    check(states[1], "(4, 4)", -0.212313703596, 0.0534172917688)
    check(states[2], "(4, 4)", -0.319211241386, 0.480460758249)
    t.eq(tostring(lstm), "LSTM(3, 4, num_layers=2, bidirectional=true)")
end)

t.test("gru_and_rnn_compute_as_pytorch", function()
    local y, h = filled(nn.GRU(3, 4, { batch_first = true }))(X(2, 5, 3))
    check(y, "(2, 5, 4)", 8.70441268926, -0.192634058605)
    check(h, "(1, 2, 4)", 2.22911480798, -0.928324912338)
    y, h = filled(nn.RNN(3, 4, { nonlinearity = "relu", bias = false }))(X(5, 2, 3), X(1, 2, 4))
    check(y, "(5, 2, 4)", 12.6021782888, -1.59093338031)
    check(h, "(1, 2, 4)", 1.86163223669, -1.24984925823)
end)

t.test("cells_compute_as_pytorch", function()
    local h, c = filled(nn.LSTMCell(3, 4))(X(2, 3))
    check(h, "(2, 4)", 0.0707578165008, -0.406077235779)
    check(c, "(2, 4)", 0.248494370413, -0.659424530924)
    check(filled(nn.GRUCell(3, 4))(X(3), X(4)), "(4)", 0.830278665348, -0.014789382955)
    check(filled(nn.RNNCell(3, 4, { nonlinearity = "relu" }))(X(2, 3)), "(2, 4)", 0.92409777117, 0.413608064804)
    t.eq(tostring(nn.GRUCell(2, 3, { bias = false })), "GRUCell(2, 3, bias=false)")
end)

t.test("recurrent_layers_start_within_the_root_of_their_states", function()
    tide.manual_seed(5)
    for _, p in ipairs(nn.LSTM(30, 25):parameters()) do
        local largest = p:abs():max():item()
        t.is_true(largest <= 0.2 and largest > 0.18, "up to 1 / sqrt(25)")
    end
end)

t.test("dropout_lies_between_layers_in_training_alone", function()
    local gru = nn.GRU(3, 4, 2, { dropout = 1 })
    local x = tide.randn(5, 2, 3)
    local dropped, again = (gru(x)), (gru(x * 2))
    t.is_true(tide.equal(dropped, again), "the second layer sees nothing of the input")
    gru:eval()
    t.is_false(tide.equal((gru(x)), (gru(x * 2))), "in use it does")
end)

t.test("recurrent_layers_refuse_what_does_not_fit", function()
    t.error_has(function() nn.LSTM(3, 4)(tide.ones(5, 2, 2)) end, "must be input_size 3")
    t.error_has(function() nn.LSTM(3, 4)(tide.ones(3)) end, "of 3 dims, or of 2 without batch, got shape (3)")
    t.error_has(function() nn.LSTM(3, 4)(tide.ones(5, 2, 3), tide.ones(1, 2, 4)) end, "{hidden state, cell state}")
    t.error_has(function() nn.GRU(3, 4)(tide.ones(5, 2, 3), tide.ones(2, 2, 4)) end, "expected (1, 2, hidden size)")
    t.error_has(function() nn.GRU(3, 4)(tide.ones(0, 2, 3)) end, "has no steps")
    t.error_has(function() nn.RNN(3, 4, { nonlinearity = "gelu" }) end, '"tanh" or "relu"')
end)

-- ---- attention ----

t.test("multihead_attention_computes_as_pytorch", function()
    local m = filled(nn.MultiheadAttention(4, 2))
    t.eq(names(m), "in_proj_weight in_proj_bias out_proj.weight out_proj.bias")
    local y, w = m(X(3, 2, 4), X(5, 2, 4, { 1 }), X(5, 2, 4, { 2 }))
    check(y, "(3, 2, 4)", -10.394448445, 1.30419712896)
    check(w, "(2, 3, 5)", 6, -0.107972131998)
    y, w = m(X(3, 4), X(5, 4, { 1 }), X(5, 4, { 2 }), { average_attn_weights = false })
    check(y, "(3, 4)", -5.19424584975, 0.374014147685)
    check(w, "(2, 3, 5)", 6, -0.416932131138)
end)

t.test("multihead_attention_takes_masks_and_keys_of_its_own", function()
    local m = filled(nn.MultiheadAttention { 4, 2, add_bias_kv = true, add_zero_attn = true, kdim = 3, vdim = 2,
        batch_first = true })
    t.eq(names(m), "q_proj_weight k_proj_weight v_proj_weight in_proj_bias bias_k bias_v out_proj.weight out_proj.bias")
    local padding = tide.tensor { { false, false, true, false, true }, { false, true, false, false, false } }
    local mask = tide.triu(tide.ones(3, 5), 2):to(tide.bool)
    local q, k, v = X(2, 3, 4), X(2, 5, 3, { 1 }), X(2, 5, 2, { 2 })
    local y, w = m(q, k, v, { key_padding_mask = padding, attn_mask = mask })
    check(y, "(2, 3, 4)", 7.94312836943, -0.00759338695321)
    check(w, "(2, 3, 7)", 6, 0.917867967882)
    y, w = m(q, k, v, { key_padding_mask = padding, attn_mask = X(4, 3, 5), need_weights = false })
    check(y, "(2, 3, 4)", 8.13148836418, -0.24918875127)
    t.eq(w, nil)
end)

t.test("long_attention_needs_no_matrix_of_all_scores", function()
    local q = tide.randn(1, 2, 3000, 4, { requires_grad = true })
    tide.reset_peak_memory_stats()
    local before = tide.memory_stats().allocated
    tide.scaled_dot_product_attention(q, q, q, nil, 0, true):sum():backward()
    local peak = tide.memory_stats().peak - before
    t.is_true(peak < 2 * 3000 * 3000 * 4 / 2, ("%d bytes at the peak"):format(peak))
end)

t.test("attention_in_blocks_has_second_gradients", function()
    tide.manual_seed(3)
    local function parts(n) return tide.randn(1, n, 2, { dtype = tide.float64, requires_grad = true }) end
    local q, k = parts(700), parts(900)
    local function slopes(attend)
        local y = attend(q, k)
        local g = tide.autograd.grad(y:square():sum(), { q, k }, { create_graph = true })
        return tide.autograd.grad(g[1]:square():sum() + g[2]:square():sum(), { q, k })
    end
    local blocks = slopes(function(a, b) return tide.scaled_dot_product_attention(a, b, b) end)
    local whole = slopes(function(a, b)
        return tide.matmul(tide.softmax(tide.matmul(a, b:transpose(-1, -2)) / math.sqrt(2), -1), b)
    end)
    for n = 1, 2 do
        t.is_true((blocks[n] - whole[n]):abs():max():item() < 1e-9 * whole[n]:abs():max():item(), "input " .. n)
    end
end)

-- ---- norms ----

t.test("batch_norm_follows_by_momentum_or_by_the_mean_of_all", function()
    for _, want in ipairs {
        { 0.3, -0.0714716863117, 0.0996365161093, 2.10710898367, -0.0486035088133, 9.49121429919, 3.502106 },
        { false, -0.0398406014628, 0.157742129786, 1.6304633297, -0.0532789443207, 9.56835060388, 3.81479739444 } } do
        local m = filled(nn.BatchNorm1d(3, { momentum = want[1] }))
        local y
        for o = 0, 2 do
            y = m(X(4, 3, 2, { o }))
        end
        check(y, "(4, 3, 2)", 7.98983977594, 4.26621443019)
        check(m.running_mean, "(3)", want[2], want[3])
        check(m.running_var, "(3)", want[4], want[5])
        t.eq(m.num_batches_tracked:item(), 3)
        m:eval()
        check(m(X(4, 3, 2)), "(4, 3, 2)", want[6], want[7])
        t.eq(m.num_batches_tracked:item(), 3)
        local keys = {}
        for key in pairs(m:state_dict()) do
            keys[#keys + 1] = key
        end
        table.sort(keys)
        t.eq(table.concat(keys, " "), "bias num_batches_tracked running_mean running_var weight")
    end
end)

t.test("batch_norm_keeps_channels_last", function()
    local x = tide.randn(2, 70, 3, 5)
    local last = x:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3)
    local w, b = tide.randn(70), tide.randn(70)
    local function both(a)
        local leaf = a:detach():requires_grad_(true)
        local y = tide.batch_norm(leaf, nil, nil, w, b, true);
        (y * y:detach():exp()):sum():backward()
        return y, leaf.grad
    end
    local y, g = both(x)
    local z, h = both(last)
    t.eq(z:stride(), last:stride())
    t.is_true((y - z):abs():max():item() < 1e-5)
    t.is_true((g - h):abs():max():item() < 1e-5 * g:abs():max():item())
    t.eq(tide.batch_norm(last, w, b:exp(), w, b):stride(), last:stride())
    t.eq(tide.group_norm(last, 7, w, b):stride(), last:stride())
end)

t.test("batch_norm_needs_several_values_in_training", function()
    t.error_has(function() nn.BatchNorm1d(3)(tide.ones(1, 3)) end, "more than one value per channel")
    t.error_has(function() nn.BatchNorm2d(3)(tide.ones(1, 3)) end, "BatchNorm2d: expected 4 dims, got shape (1, 3)")
    t.error_has(function() nn.BatchNorm1d(3, { momentum = "a" }) end, "momentum")
    local frozen = nn.BatchNorm1d(3, { track_running_stats = false }):eval()
    t.eq(tostring(frozen(tide.randn(4, 3)):mean(1):abs():lt(1e-6):all():item()), "true")
end)

t.test("norms_refuse_what_does_not_fit", function()
    t.error_has(function() tide.group_norm(tide.ones(2, 4, 0), 2) end, "the groups are empty: input of shape (2, 4, 0)")
    t.error_has(function() tide.group_norm(tide.ones(2, 4, 3), 3) end, "4 channels can't be divided into 3 groups")
    t.error_has(function() tide.layer_norm(tide.ones(2, 3), { 2 }) end,
        "input of shape (2, 3) doesn't end in normalized_shape (2)")
    t.error_has(function() tide.layer_norm(tide.ones(2, 3), { 3 }, tide.ones(2)) end,
        "weight of shape (2), expected normalized_shape (3)")
    t.error_has(function() tide.layer_norm(tide.ones(2, 3), { 3 }, tide.ones(3):double()) end,
        "weight is float64, expected float32 as the input")
    t.error_has(function() tide.batch_norm(tide.ones(2, 3)) end, "running_mean and running_var are needed")
    t.error_has(function() tide.batch_norm(tide.ones(2, 3), tide.ones(2), tide.ones(3)) end,
        "running_mean of shape (2), expected one for each of 3 channels")
    t.error_has(function() tide.instance_norm(tide.ones(2, 3, 1)) end, "more than one value per instance")
end)

t.test("running_statistics_are_written_both_or_not_at_all", function()
    local x, mean = tide.randn(4, 3), tide.zeros(3)
    t.error_has(function() tide.batch_norm(x, mean, tide.ones(1):expand(3), nil, nil, true) end,
        "running_var can't be written")
    t.error_has(function() tide.batch_norm(x, mean, tide.ones(3):requires_grad_(true), nil, nil, true) end,
        "running_var requires grad")
    t.eq(mean:tolist(), { 0, 0, 0 })
end)

t.test("instance_norm_follows_as_pytorch", function()
    local m = nn.InstanceNorm2d(3, { affine = true, track_running_stats = true }):double()
    m(X(2, 3, 2, 3))
    check(m.running_mean, "(3)", 0.00874349505471, 0.0200661049124)
    check(m.running_var, "(3)", 2.82754273555, -0.0972584027214)
    m:eval()
    check(m(X(3, 2, 3)), "(3, 2, 3)", -1.16683126768, 4.77241629844)
end)

t.test("norms_are_exact_far_from_zero", function()
    local x = tide.arange(0, 5000, { dtype = tide.float64 }) % 2 + 1e6
    local y = tide.layer_norm(x:float(), { 5000 })
    t.close(y[1]:item(), -1, 1e-4)
    t.close(y[2]:item(), 1, 1e-4)
    local z = tide.batch_norm(x:float():reshape(5000, 1), nil, nil, nil, nil, true)
    t.close(z[2][1]:item(), 1, 1e-4)
end)

t.test("norms_of_16_bit_floats_compute_in_float32", function()
    for _, dtype in ipairs { tide.float16, tide.bfloat16 } do
        local x = (tide.randn(4, 300) + 100):to(dtype)
        local w = tide.randn(300)
        for _, norm in ipairs {
            function(a, b) return tide.layer_norm(a, { 300 }, b) end,
            function(a, b) return tide.batch_norm(a, nil, nil, b, nil, true) end } do
            local got, want = norm(x, w), norm(x:float(), w):to(dtype)
            t.eq(got.dtype, dtype)
            t.is_true(tide.equal(got, want), "rounded once")
            t.is_true(tide.equal(norm(x, w:to(dtype)), norm(x:float(), w:to(dtype):float()):to(dtype)))
        end
    end
end)

t.test("norms_print_what_they_are", function()
    t.eq(tostring(nn.LayerNorm({ 2, 3 }, {})), "LayerNorm((2, 3), eps=1e-05, elementwise_affine=true, bias=true)")
    t.eq(tostring(nn.RMSNorm(3)), "RMSNorm((3,), eps=nil, elementwise_affine=true)")
    t.eq(tostring(nn.GroupNorm(2, 4)), "GroupNorm(2, 4, eps=1e-05, affine=true, bias=true)")
    t.eq(tostring(nn.BatchNorm2d(3)),
        "BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=true, bias=true, track_running_stats=true)")
    t.eq(names(nn.LayerNorm(3, { bias = false })), "weight")
    t.eq(names(nn.InstanceNorm1d(3)), "")
end)

-- ---- tables ----

t.test("functional_embedding_takes_indices_first", function()
    local F, w = nn.functional, X(4, 3)
    local index = tide.tensor { 3, 1, 3 }
    t.is_true(tide.equal(F.embedding(index, w), tide.embedding(w, index)))
    t.is_true(tide.equal(F.embedding_bag(index, w, tide.tensor { 1, 2 }, { mode = "max" }),
        tide.embedding_bag(w, index, tide.tensor { 1, 2 }, { mode = "max" })))
    t.is_true(tide.equal(F.embedding(index, w, { sparse = true }), tide.embedding(w, index)))
    t.error_has(function() tide.embedding(w, index, 5) end, "padding_idx 5 is not a row from 1 to 4")
    t.error_has(function() tide.embedding_bag(w, index, tide.tensor { 2, 3 }) end, "must begin at 1, got 2")
end)

t.test("embedding_shortens_the_rows_it_reads_in_place", function()
    local m = nn.Embedding(3, 2, { max_norm = 1 })
    local _ = tide.no_grad(function() m.weight:copy_(tide.tensor { { 3.0, 4.0 }, { 3.0, 4.0 }, { 0.3, 0.4 } }) end)
    local y = m(tide.tensor { 1, 3, 1 })
    t.close(y:tolist()[1], { 0.6, 0.8 }, 1e-5)
    t.close(m.weight:tolist()[1], { 0.6, 0.8 }, 1e-5)
    t.eq(m.weight:tolist()[2], { 3, 4 })
    t.is_true(y.requires_grad and m.weight.is_leaf)
end)

t.test("padding_starts_at_zero_and_stays_there", function()
    local m = nn.Embedding(4, 2, { padding_idx = -1 })
    t.eq(m.weight:tolist()[4], { 0, 0 })
    m(tide.tensor { 4, 1, 4 }):sum():backward()
    t.eq(m.weight.grad:tolist(), { { 1, 1 }, { 0, 0 }, { 0, 0 }, { 0, 0 } })
    t.eq(tostring(m), "Embedding(4, 2, padding_idx=-1)")
end)

-- ---- draws and losses ----

t.test("gumbel_softmax_draws_lines_of_one", function()
    tide.manual_seed(1)
    local logits = tide.tensor { { 0.0, math.log(3) } }:expand(4000, 2):clone():requires_grad_(true)
    local hard = nn.functional.gumbel_softmax(logits, { hard = true })
    t.is_true(tide.equal(hard:detach():sum(2), tide.ones(4000)))
    t.close(hard:detach():mean(1)[2]:item(), 0.75, 0.03);
    (hard * tide.tensor { 1.0, 2.0 }):sum():backward()
    t.is_true(logits.grad:abs():sum():item() > 1)
    t.close(nn.functional.softmin(tide.tensor { 0.0, math.log(3) }, 1):tolist(), { 0.75, 0.25 }, 1e-6)
end)

t.test("loss_modules_hand_their_options_on", function()
    local a, b, c = X(4, 3), X(4, 3, { 1 }), X(4, 3, { 2 })
    t.close(nn.TripletMarginLoss { margin = 2, swap = true }(a, b, c):item(),
        tide.triplet_margin_loss(a, b, c, { margin = 2, swap = true }):item(), 0)
    t.close(nn.TripletMarginWithDistanceLoss { margin = 2 }(a, b, c):item(),
        tide.triplet_margin_loss(a, b, c, { margin = 2 }):item(), 1e-12)
    t.close(nn.KLDivLoss { reduction = "batchmean" }(a, b:exp()):item(),
        tide.kl_div(a, b:exp(), { reduction = "sum" }):item() / 4, 1e-12)
    t.close(nn.GaussianNLLLoss { full = true }(a, b, c:exp()):item(),
        tide.gaussian_nll_loss(a, b, c:exp(), true):item(), 0)
    local scores = X(6, 2, 4):log_softmax(-1)
    t.close(nn.CTCLoss()(scores, tide.tensor { { 2, 3 }, { 4, 2 } }, { 6, 5 }, { 2, 1 }):item(),
        tide.ctc_loss(scores, tide.tensor { { 2, 3 }, { 4, 2 } }, tide.tensor { 6, 5 }, tide.tensor { 2, 1 }):item(), 0)
    t.error_has(function()
        nn.functional.ctc_loss(scores, tide.tensor { { 2, 9 }, { 4, 2 } }, { 6, 5 }, { 2, 1 })
    end, "target 9 of sequence 1 is not a class from 1 to 4")
end)

t.test("gradients_of_ctc_have_no_derivative", function()
    local scores = X(4, 1, 3):requires_grad_(true)
    local loss = tide.ctc_loss(scores:log_softmax(-1), tide.tensor { { 2 } }, tide.tensor { 4 }, tide.tensor { 1 })
    local g = tide.autograd.grad(loss, scores, { create_graph = true })
    t.error_has(function() (type(g) == "table" and g[1] or g):square():sum():backward() end, "has no derivative")
end)

-- ---- all times of a layer at once ----

local KINDS = { lstm = "LSTM", gru = "GRU", rnn_tanh = "RNN", rnn_relu = "RNN" }

local function recurrent(operator, options)
    options.nonlinearity = operator:match "^rnn_(.*)"
    return filled(nn[KINDS[operator]](3, 4, options))
end

-- What the layers give, cell by cell; c: of an LSTM.
local function by_cells(layer, x, h, c)
    local step = tide[layer.operator .. "_cell"]
    local hidden, cells, directions, forward = {}, {}, layer.bidirectional and 2 or 1, nil
    for place = 1, layer.num_layers * directions do
        local back = directions == 2 and place % 2 == 0
        local suffix = ("_l%d%s"):format((place - 1) // directions, back and "_reverse" or "")
        local outputs, state, cell = {}, h[place], c and c[place]
        for k = 1, #x do
            local time = back and #x + 1 - k or k
            state, cell = step(x[time], c and { state, cell } or state, layer["weight_ih" .. suffix], layer["weight_hh" .. suffix],
                layer["bias_ih" .. suffix], layer["bias_hh" .. suffix])
            outputs[time] = state
        end
        hidden[place], cells[place] = state, cell
        local y = tide.stack(outputs, 1)
        if directions == 1 then
            x = y
        elseif back then
            x = tide.cat({ forward, y }, 3)
        else
            forward = y
        end
    end
    return x, tide.stack(hidden, 1), c and tide.stack(cells, 1)
end

for operator in pairs(KINDS) do
    for _, both in ipairs { false, true } do
        t.test(operator .. "_has_the_gradients_of_its_cells_both_of_them" .. (both and "_in_both_directions" or ""), function()
            local layer = recurrent(operator, { num_layers = 2, bidirectional = both })
            local places = both and 4 or 2
            local x, h = X(5, 2, 3, { 2 }):requires_grad_(true), X(places, 2, 4, { 3 }):requires_grad_(true)
            local c = operator == "lstm" and X(places, 2, 4, { 4 }):requires_grad_(true) or nil
            local inputs = { x, h, c }
            for _, p in ipairs(layer:parameters()) do
                inputs[#inputs + 1] = p
            end
            local function slopes(y, last, cell)
                local loss = (y * X(5, 2, both and 8 or 4)):sum() + (last * X(places, 2, 4, { 5 })):sum() + (cell or last):square():sum()
                local plain = tide.autograd.grad({ loss }, inputs, { retain_graph = true })
                local first, of_first = tide.autograd.grad({ loss }, inputs, { create_graph = true }), 0
                for _, g in ipairs(first) do
                    of_first = of_first + (g * g):sum()
                end
                return plain, first, tide.autograd.grad({ of_first }, inputs)
            end
            local y, last = layer(x, c and { h, c } or h)
            local plain, first, second = slopes(y, c and last[1] or last, c and last[2])
            local wanted_plain, wanted_first, wanted_second = slopes(by_cells(layer, x, h, c))
            for k = 1, #inputs do
                t.is_true(tide.allclose(plain[k], first[k], 1e-10, 1e-12))
                t.is_true(tide.allclose(plain[k], wanted_plain[k], 1e-10, 1e-12))
                t.is_true(tide.allclose(first[k], wanted_first[k], 1e-10, 1e-12))
                t.is_true(tide.allclose(second[k], wanted_second[k], 1e-9, 1e-12))
            end
            local only = tide.no_grad(function() return (layer(x, c and { h, c } or h)) end)
            t.is_true(tide.allclose(only, y, 0, 1e-15))
        end)
    end

    t.test(operator .. "_gives_what_its_cells_do_in_every_dtype_and_size", function()
        local near = { float64 = 1e-13, float32 = 1e-5, float16 = 5e-3, bfloat16 = 4e-2 }
        tide.manual_seed(5)
        for _, size in ipairs { { 1, 1 }, { 3, 17 }, { 33, 5 }, { 2, 300 }, { 1, 513 } } do
            local rows, units = table.unpack(size)
            for dtype, tolerance in pairs(near) do
                local options = { nonlinearity = operator:match "^rnn_(.*)", bidirectional = true }
                local layer = nn[KINDS[operator]](3, units, options):to(dtype)
                local x, h = tide.randn(4, rows, 3, { dtype = dtype }), tide.randn(2, rows, units, { dtype = dtype })
                local c = operator == "lstm" and tide.randn(2, rows, units, { dtype = dtype }) or nil
                local wanted = { by_cells(layer:double(), x:double(), h:double(), c and c:double()) }
                layer:to(dtype)
                for _, records in ipairs { true, false } do -- cell states and gates of all times, of one
                    local y, last = tide.set_grad_enabled(records, function() return layer(x, c and { h, c } or h) end)
                    local made = { y, c and last[1] or last, c and last[2] }
                    for k, result in ipairs(made) do
                        t.eq(result.dtype, tide[dtype])
                        t.is_true(tide.allclose(result:double(), wanted[k], tolerance, tolerance), ("%s, %d x %d"):format(dtype, rows, units))
                    end
                end
            end
        end
    end)

    t.test(operator .. "_multiplies_the_gradient_of_a_weight_once", function()
        local layer, x = recurrent(operator, {}):float(), tide.randn(20, 2, 3)
        local function products()
            local y, count = layer(x):sum(), 0
            for _, event in ipairs(tide.profiler.profile(function() y:backward() end):events()) do
                count = count + (event.kind == "kernel" and event.name == "mm" and 1 or 0)
            end
            return count
        end
        products()
        t.eq(products(), 19 + 2) -- each time's state but the first, which is given; both weights
    end)

    t.test(operator .. "_under_autocast_is_near_what_float32_gives", function()
        tide.manual_seed(5) -- of a sum that rounding takes across relu's corner the gradient is another one
        local layer, x = recurrent(operator, {}):float(), tide.randn(6, 2, 3)
        local wanted = layer(x)
        local y, states = tide.autocast("cpu", function() return layer(x) end, { dtype = tide.bfloat16 })
        local dtype = operator:find "rnn" and tide.bfloat16 or tide.float32 -- gates that keep a state keep its digits
        t.eq(y.dtype, dtype)
        t.eq((operator == "lstm" and states[2] or states).dtype, dtype)
        t.is_true(tide.allclose(y:float(), wanted, 0.02, 0.02))
        y:float():sum():backward()
        local rounded = {}
        for k, p in ipairs(layer:parameters()) do
            t.eq(p.grad.dtype, tide.float32)
            rounded[k] = p.grad
        end
        layer:zero_grad()
        wanted:sum():backward()
        for k, p in ipairs(layer:parameters()) do
            t.is_true(tide.allclose(rounded[k], p.grad, 0.05, 0.1 * p.grad:abs():max():item()), k)
        end
    end)
end

t.test("recurrent_layers_refuse_biases_of_another_size", function()
    local x, h = tide.ones(2, 2, 3), tide.ones(1, 2, 4)
    for operator, gates in pairs { lstm = 4, gru = 3, rnn_tanh = 1, rnn_relu = 1 } do
        local width = 4 * gates
        for _, sizes in ipairs { { 1, width }, { width, 1 }, { width, 2 * width }, { 2, width } } do
            local params = { tide.ones(width, 3), tide.ones(width, 4), tide.ones(sizes[1]), tide.ones(sizes[2]) }
            local state, wanted = operator == "lstm" and { h, h } or h, ("bias must have shape (%d)"):format(width)
            t.error_has(function() tide[operator](x, state, params, true, 1, 0, false, false, false) end, wanted)
            t.error_has(function()
                tide[operator .. "_cell"](x[1], operator == "lstm" and { h[1], h[1] } or h[1], table.unpack(params))
            end, wanted)
        end
    end
end)

t.test("lstm_refuses_a_cell_state_of_another_batch", function()
    local cell = nn.LSTMCell(3, 4)
    t.error_has(function() cell(tide.ones(2, 3), { tide.ones(2, 4), tide.ones(1, 4) }) end,
        "cell state of shape (1, 4) doesn't fit gates of shape (2, 16)")
end)

-- ---- states of another size ----

t.test("lstm_projects_its_states", function()
    local m = nn.LSTM(3, 6, { num_layers = 2, bidirectional = true, proj_size = 2 })
    t.eq(m.weight_hr_l0.shape, { 2, 6 })
    t.eq(m.weight_hh_l1_reverse.shape, { 24, 2 })
    t.eq(m.weight_ih_l1.shape, { 24, 4 })
    local y, states = m(tide.randn(5, 4, 3))
    t.eq(y.shape, { 5, 4, 4 })
    t.eq(states[1].shape, { 4, 4, 2 })
    t.eq(states[2].shape, { 4, 4, 6 })
    -- by hand: one step of one layer
    local one, x = nn.LSTM(3, 6, { proj_size = 2 }):double(), tide.randn(1, 1, 3, { dtype = tide.float64 })
    local c = tide.lstm_cell(x[1], { tide.zeros(1, 6):double(), tide.zeros(1, 6):double() }, one.weight_ih_l0,
        tide.zeros(24, 6):double(), one.bias_ih_l0, one.bias_hh_l0)
    local got = one(x)
    t.is_true(tide.allclose(got[1], c:matmul(one.weight_hr_l0:t())))
    t.eq(tostring(one), "LSTM(3, 6, proj_size=2)")
    t.error_has(function() nn.LSTM(3, 6, { proj_size = 6 }) end, "LSTM: proj_size must be less than hidden_size 6, got 6")
    t.error_has(function() m(tide.randn(5, 4, 3), { tide.zeros(4, 4, 3), tide.zeros(4, 4, 6) }) end, "doesn't fit weights")
end)
