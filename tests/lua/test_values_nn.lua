-- test_values_nn.lua: what tide.nn and tide.optim compute, where test_nn.lua and test_optim.lua ask how they
-- behave: the spread of starting weights, losses with their options, steps that share nothing.
local t = require "harness"
local nn, optim = tide.nn, tide.optim

-- ---- starting values ----

-- Shares of a sample within half, the whole and all of a uniform distribution's bound.
local function check_uniform(x, bound, what)
    t.is_true(x:abs():max():item() <= bound * 1.000001, what .. ": within the bound")
    t.is_true(x:abs():max():item() > bound * 0.99, what .. ": up to the bound")
    t.close(x:abs():le(bound / 2):double():mean():item(), 0.5, 0.02, what .. ": half within half")
    t.close(x:mean():item(), 0, bound * 0.03, what .. ": mean")
end

local function check_normal(x, std, what)
    t.close(x:std():item() / std, 1, 0.03, what .. ": deviation")
    t.close(x:mean():item() / std, 0, 0.03, what .. ": mean")
    t.close(x:abs():le(std):double():mean():item(), 0.6827, 0.02, what .. ": within one deviation")
end

t.test("init_spreads_as_pytorch", function()
    tide.manual_seed(1)
    local function empty() return tide.empty(200, 50) end -- 50 inputs, 200 outputs
    local gain = math.sqrt(2)
    check_uniform(nn.init.kaiming_uniform_(empty()), gain * math.sqrt(3 / 50), "kaiming_uniform_")
    check_uniform(nn.init.kaiming_uniform_(empty(), { mode = "fan_out" }), gain * math.sqrt(3 / 200), "fan_out")
    check_uniform(nn.init.kaiming_uniform_(empty(), { a = math.sqrt(5) }), 1 / math.sqrt(50), "a")
    check_normal(nn.init.kaiming_normal_(empty(), { nonlinearity = "relu" }), gain / math.sqrt(50), "kaiming_normal_")
    check_normal(nn.init.kaiming_normal_(empty(), { mode = "fan_out", nonlinearity = "tanh" }),
        5 / 3 / math.sqrt(200), "fan_out tanh")
    check_uniform(nn.init.xavier_uniform_(empty()), math.sqrt(6 / 250), "xavier_uniform_")
    check_uniform(nn.init.xavier_uniform_(empty(), 2), 2 * math.sqrt(6 / 250), "xavier_uniform_ of gain 2")
    check_normal(nn.init.xavier_normal_(empty()), math.sqrt(2 / 250), "xavier_normal_")
    check_uniform(nn.init.uniform_(empty(), -3, 3), 3, "uniform_")
    check_normal(nn.init.normal_(empty(), 0, 2), 2, "normal_")
    t.eq(nn.init.constant_(tide.empty(2), 3):tolist(), { 3, 3 })
    t.eq(nn.init.ones_(tide.empty(2)):tolist(), { 1, 1 })
    t.eq(nn.init.zeros_(tide.ones(2)):tolist(), { 0, 0 })
end)

t.test("fans_of_a_convolution_count_its_kernel", function()
    tide.manual_seed(2)
    check_normal(nn.init.kaiming_normal_(tide.empty(64, 16, 3, 3)), math.sqrt(2 / (16 * 9)), "fan_in")
    check_normal(nn.init.kaiming_normal_(tide.empty(64, 16, 3, 3), { mode = "fan_out" }), math.sqrt(2 / (64 * 9)),
        "fan_out")
end)

t.test("gains", function()
    t.eq(nn.init.calculate_gain("relu"), math.sqrt(2))
    t.eq(nn.init.calculate_gain("tanh"), 5 / 3)
    t.eq(nn.init.calculate_gain("linear"), 1)
    t.eq(nn.init.calculate_gain("sigmoid"), 1)
    t.close(nn.init.calculate_gain("leaky_relu", 0.5), math.sqrt(2 / 1.25), 1e-15)
    t.close(nn.init.calculate_gain("leaky_relu"), math.sqrt(2 / 1.0001), 1e-15)
end)

t.test("layers_start_within_the_root_of_their_inputs", function()
    tide.manual_seed(3)
    local linear = nn.Linear(50, 200)
    check_uniform(linear.weight, 1 / math.sqrt(50), "Linear")
    t.is_true(linear.bias:abs():max():item() <= 1 / math.sqrt(50))
    check_uniform(nn.Conv2d(16, 64, 3).weight, 1 / math.sqrt(16 * 9), "Conv2d")
    check_uniform(nn.Conv2d(16, 64, 3, { groups = 4 }).weight, 1 / math.sqrt(4 * 9), "Conv2d of groups")
    check_normal(nn.Embedding(100, 100).weight, 1, "Embedding")
end)

-- ---- layers ----

t.test("pools_stride_by_their_kernel", function()
    local x = tide.arange(16, { dtype = tide.float32 }):reshape(1, 1, 4, 4)
    t.eq(nn.MaxPool2d(2)(x):tolist(), { { { { 5, 7 }, { 13, 15 } } } })
    t.eq(nn.AvgPool2d(2)(x):tolist(), { { { { 2.5, 4.5 }, { 10.5, 12.5 } } } })
    t.eq(nn.AvgPool2d(2, { stride = 1 })(x).shape, tide.zeros(1, 1, 3, 3).shape)
    t.eq(nn.AvgPool2d(2, { padding = 1, count_include_pad = false })(x):tolist()[1][1][1], { 0, 1.5, 3 })
    t.eq(nn.AdaptiveAvgPool2d(1)(x):item(), 7.5)
end)

t.test("dropout_is_off_in_eval", function()
    local model = nn.Sequential(nn.Sequential(nn.Dropout(0.5)))
    local x = tide.ones(1000)
    tide.manual_seed(4)
    t.is_true(model(x):eq(0):any():item())
    model:eval()
    t.is_true(model(x) == x)
    model:train()
    t.is_true(model(x):eq(0):any():item())
end)

t.test("activations_are_their_functions", function()
    local x = tide.tensor { -2.0, -0.5, 0.0, 0.5, 2.0 }
    for class, name in pairs { ReLU = "relu", Tanh = "tanh", Sigmoid = "sigmoid", GELU = "gelu", SiLU = "silu" } do
        t.is_true(nn[class]()(x) == tide[name](x), class)
    end
    t.is_true(nn.Softmax(1)(x) == x:softmax(1))
    t.is_true(nn.LogSoftmax(1)(x) == x:log_softmax(1))
    t.is_true(nn.Identity()(x) == x)
end)

t.test("frozen_modules_require_no_grad", function()
    local model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model:requires_grad_(false)
    t.is_false(model(tide.ones(1, 2)).requires_grad)
    model:requires_grad_(true)
    t.is_true(model(tide.ones(1, 2)).requires_grad)
end)

t.test("a_state_that_would_broadcast_is_refused_and_changes_nothing", function()
    local model = nn.Linear(2, 2)
    local before = model.weight:detach():clone()
    t.error_has(function() model:load_state_dict { weight = tide.ones(1, 2), bias = tide.zeros(2) } end,
        "weight has shape (1, 2), expected (2, 2)")
    t.error_has(function() model:load_state_dict { weight = tide.ones(2, 2), bias = tide.zeros(1) } end,
        "bias has shape (1), expected (2)")
    t.is_true(tide.equal(model.weight:detach(), before))
end)

-- ---- losses ----

t.test("losses_take_their_options", function()
    local x = tide.tensor({ { 1, 2, 0.5 }, { 0, -1, 3 } }, { dtype = tide.float64 })
    local y = tide.tensor { 2, 3 }
    local w = tide.tensor({ 1, 2, 5 }, { dtype = tide.float64 })
    local losses = -x:log_softmax(2):gather(2, y:unsqueeze(2)):squeeze(2)
    local a, b = losses[1]:item(), losses[2]:item()
    t.close(nn.CrossEntropyLoss()(x, y):item(), (a + b) / 2, 1e-14)
    t.close(nn.CrossEntropyLoss { weight = w }(x, y):item(), (2 * a + 5 * b) / 7, 1e-14)
    t.close(nn.CrossEntropyLoss { ignore_index = 3 }(x, y):item(), a, 1e-14)
    t.close(nn.CrossEntropyLoss { reduction = "sum" }(x, y):item(), a + b, 1e-14)
    t.close(nn.CrossEntropyLoss { reduction = "none" }(x, y):tolist(), { a, b }, 1e-14)
    t.close(nn.NLLLoss { weight = w }(x:log_softmax(2), y):item(), (2 * a + 5 * b) / 7, 1e-14)
    t.close(nn.NLLLoss { ignore_index = 2 }(x:log_softmax(2), y):item(), b, 1e-14)
    local p, q = tide.tensor { 1.0, 4.0 }, tide.tensor { 2.0, 1.0 }
    t.close(nn.MSELoss()(p, q):item(), 5)
    t.close(nn.L1Loss { reduction = "sum" }(p, q):item(), 4)
    t.close(nn.SmoothL1Loss { beta = 2 }(p, q):item(), (0.25 + 2) / 2)
    local prob, truth = tide.tensor { 0.25, 0.5 }, tide.tensor { 1.0, 0.0 }
    t.close(nn.BCELoss()(prob, truth):item(), (math.log(4) + math.log(2)) / 2)
    t.close(nn.BCELoss { weight = tide.tensor { 1.0, 3.0 } }(prob, truth):item(), (math.log(4) + 3 * math.log(2)) / 2)
    local logits = (prob / (1 - prob)):log()
    t.close(nn.BCEWithLogitsLoss()(logits, truth):item(), (math.log(4) + math.log(2)) / 2)
    t.close(nn.BCEWithLogitsLoss { pos_weight = tide.tensor { 3.0, 3.0 } }(logits, truth):item(),
        (3 * math.log(4) + math.log(2)) / 2)
end)

t.test("weights_of_a_loss_move_with_it", function()
    local loss = nn.CrossEntropyLoss { weight = tide.tensor { 1.0, 2.0 } }:double()
    local x = tide.tensor({ { 1, 2 } }, { dtype = tide.float64 })
    t.eq(loss(x, tide.tensor { 1 }).dtype, tide.float64)
end)

-- ---- steps ----

t.test("momentum_keeps_a_buffer_of_its_own", function()
    local p = tide.tensor({ 1.0 }, { requires_grad = true })
    local sgd = optim.SGD({ p }, { lr = 1, momentum = 0.5 })
    p.grad = tide.tensor { 1.0 }
    sgd:step()
    t.eq(p.grad:item(), 1.0, "the gradient stays what it was")
    sgd:step() -- the same gradient again: buffer 0.5 + 1
    t.eq(p.grad:item(), 1.0)
    t.eq(p:item(), 1 - 1 - 1.5)
end)

t.test("loaded_states_are_copies", function()
    local function make()
        local p = tide.tensor({ 1.0 }, { requires_grad = true })
        p.grad = tide.tensor { 1.0 }
        return p, optim.SGD({ p }, { lr = 1, momentum = 0.5 })
    end
    local p, first = make()
    local q, second = make()
    first:step()
    second:load_state_dict(first:state_dict())
    first:step()
    first:step()
    second:step()
    t.eq(q:item(), 1 - 1.5, "the buffer was 1 when it was loaded")
    t.eq(p:item(), 1 - 1 - 1.5 - 1.75)
end)

t.test("zero_grad_forgets_or_clears", function()
    local p = tide.tensor({ 1.0 }, { requires_grad = true })
    local sgd = optim.SGD({ p }, { lr = 1 })
    p.grad = tide.tensor { 2.0 }
    sgd:zero_grad { set_to_none = false }
    t.eq(p.grad:item(), 0)
    sgd:zero_grad()
    t.eq(p.grad, nil)
    local model = nn.Linear(1, 1)
    model(tide.ones(1, 1)):sum():backward()
    t.is_true(model.weight.grad)
    model:zero_grad()
    t.eq(model.weight.grad, nil)
end)
