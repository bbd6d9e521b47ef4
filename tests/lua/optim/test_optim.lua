-- test_optim.lua: SGD against numbers that PyTorch computed, groups, state, wrong arguments.
local t = require "harness"
local SGD = tide.optim.SGD

local weights = tide.tensor({ 1, 2, 0.5 }, { dtype = tide.float64 })

local function run(options, steps)
    local p = tide.tensor({ 1, -2, 3 }, { dtype = tide.float64, requires_grad = true })
    local optimizer = SGD({ p }, options)
    for _ = 1, steps or 4 do
        optimizer:zero_grad()
        local loss = options.maximize and p:sin():sum() or (p * p * weights):sum()
        loss:backward()
        optimizer:step()
    end
    return p
end

local function check(options, want, steps)
    local p = run(options, steps)
    for k, v in ipairs(want) do
        t.close(p[k]:item(), v, 1e-12)
    end
end

t.test("plain", function() check({ lr = 0.1 }, { 0.4096, -0.2592, 1.9683 }) end)
-- The step as a loop of operators.
local function plain_step(p, state, o)
    local g = p.grad
    if o.maximize then
        g = -g
    end
    if o.weight_decay then
        g = g:add(p, { alpha = o.weight_decay })
    end
    if o.momentum then
        if not state.buffer then
            state.buffer = g:detach():clone()
        else
            state.buffer:mul_(o.momentum):add_(g, { alpha = 1 - (o.dampening or 0) })
        end
        g = o.nesterov and g:add(state.buffer, { alpha = o.momentum }) or state.buffer
    end
    p:add_(g, { alpha = -o.lr })
end

local recipes = {
    { lr = 0.1 }, { lr = 0.3, maximize = true }, { lr = 0.1, weight_decay = 0.01 },
    { lr = 0.1, momentum = 0.9 }, { lr = 0.1, momentum = 0.9, dampening = 0.3 },
    { lr = 0.7, momentum = 0.9, nesterov = true, weight_decay = 0.03 },
    { lr = 0.1, momentum = 0.5, nesterov = true, maximize = true, weight_decay = 1 },
}

t.test("sgd_equals_the_loop_of_operators_to_the_last_bit", function()
    for number, recipe in ipairs(recipes) do
        tide.manual_seed(number)
        local ours, theirs, states = {}, {}, {}
        for k, shape in ipairs { { 3, 5 }, { 1 }, { 40, 70 }, { 0 }, {} } do
            local dtype = k == 3 and tide.float64 or tide.float32
            local p = tide.randn(shape, { dtype = dtype })
            if k == 1 then
                p = tide.randn({ 5, 3 }):t()
            end
            ours[k], theirs[k] = p:clone():requires_grad_(), p:clone():requires_grad_()
            states[k] = {}
        end
        local optimizer = SGD(ours, recipe)
        for _ = 1, 3 do
            for k, p in ipairs(ours) do
                local g = tide.randn_like(p)
                p.grad, theirs[k].grad = g, g:clone()
            end
            optimizer:step()
            tide.no_grad(function()
                for k, p in ipairs(theirs) do
                    plain_step(p, states[k], recipe)
                end
            end)
            for k, p in ipairs(ours) do
                t.is_true(tide.equal(p:detach(), theirs[k]:detach()), ("recipe %d, parameter %d"):format(number, k))
            end
        end
    end
end)

t.test("sgd_steps_parameters_that_share_memory_one_after_the_other", function()
    local x = tide.ones(40000)
    local a, b = x:detach():requires_grad_(), x:detach():requires_grad_()
    a.grad, b.grad = tide.ones(40000), tide.ones(40000)
    SGD({ a, b }, { lr = 0.25 }):step()
    t.is_true(tide.equal(x, tide.ones(40000) * 0.5))
end)

t.test("sgd_is_noticed_by_backward_through_what_it_changed", function()
    local p = tide.ones(3, { requires_grad = true })
    local y = (p * p):sum()
    p.grad = tide.ones(3)
    SGD({ p }, { lr = 0.1 }):step()
    t.error_has(function() y:backward() end, "in place")
end)

t.test("sgd_refuses_a_buffer_of_another_shape", function()
    local p = tide.ones(3, { requires_grad = true })
    p.grad = tide.ones(3)
    local optimizer = SGD({ p }, { lr = 0.1, momentum = 0.9 })
    optimizer.state[p] = { momentum_buffer = tide.ones(2) }
    t.error_has(function() optimizer:step() end, "buffer 1 has shape (2), its parameter (3)")
end)

t.test("momentum", function()
    check({ lr = 0.1, momentum = 0.9 }, { -0.3086, 1.62, 0.6804 })
end)
t.test("weight_decay", function()
    check({ lr = 0.1, momentum = 0.9, weight_decay = 0.01 }, { -0.3128789558990001, 1.6218765101980004, 0.660995621103 })
end)
t.test("dampening_spares_the_first_step", function()
    check({ lr = 0.1, momentum = 0.9, dampening = 0.5 }, { -0.0324, 1.3584, 1.2936375 })
end)
t.test("nesterov", function()
    check({ lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.1 },
        { -0.34671587789900005, 0.6741896300380001, 0.09941823738299996 })
end)
t.test("maximize", function()
    check({ lr = 0.05, momentum = 0.5, maximize = true },
        { 1.1102439392665349, -2.09222086064449, 2.7914853383717277 }, 3)
end)

t.test("groups_have_options_of_their_own", function()
    local a, b = tide.ones(1, { requires_grad = true }), tide.ones(1, { requires_grad = true })
    local optimizer = SGD({ { params = { a } }, { params = { b }, lr = 0.5 } }, { lr = 0.1 })
    local loss = (a + b):sum()
    loss:backward()
    optimizer:step()
    t.close(a:item(), 0.9, 1e-6)
    t.close(b:item(), 0.5, 1e-6)
    optimizer.param_groups[1].lr = 0
    optimizer:step()
    t.close(a:item(), 0.9, 1e-6)
end)

t.test("parameters_without_gradient_are_left_alone", function()
    local a = tide.ones(1, { requires_grad = true })
    SGD({ a }, { lr = 1, weight_decay = 1 }):step()
    t.eq(a:item(), 1)
end)

t.test("state_goes_there_and_back", function()
    local function make()
        local p = tide.ones(2, { requires_grad = true })
        return p, SGD({ p }, { lr = 0.1, momentum = 0.9 })
    end
    local function step(p, optimizer)
        optimizer:zero_grad()
        local loss = (p * p):sum()
        loss:backward()
        optimizer:step()
    end
    local p, optimizer = make()
    step(p, optimizer)
    local q, other = make()
    tide.no_grad(function() q:copy_(p) end)
    other:load_state_dict(optimizer:state_dict())
    step(p, optimizer)
    step(q, other)
    t.eq(p:detach() == q:detach(), true)
end)

t.test("weight_decay_dampening_and_maximize_together", function()
    check({ lr = 0.1, momentum = 0.9, weight_decay = 0.1, dampening = 0.3, maximize = true },
        { 1.288443703618203, -2.174532009051281, 2.0967267836257046 })
end)

t.test("a_state_that_does_not_fit_changes_nothing", function()
    local function make(...)
        local list = {}
        for k, n in ipairs { ... } do
            list[k] = tide.ones(n, { requires_grad = true })
        end
        return SGD(list, { lr = 0.5, momentum = 0.9 }), list
    end
    local optimizer, list = make(2)
    local loss = list[1]:sum()
    loss:backward()
    optimizer:step()
    local dict = optimizer:state_dict()
    dict.param_groups[1].lr = 7
    local wider = make(3)
    t.error_has(function() wider:load_state_dict(dict) end, "has shape (2), expected (3)")
    t.error_has(function() make(2, 2):load_state_dict(dict) end, "1 parameters for an optimizer of 2")
    t.error_has(function() wider:load_state_dict({ param_groups = { {} } }) end, "1 groups")
    t.error_has(function() wider:load_state_dict({ param_groups = { { lr = 7 } }, state = { 5 } }) end,
        "the state of parameter 1: expected a table, got number 5")
    t.eq(wider.param_groups[1].lr, 0.5)
end)

t.test("a_closure_computes_the_loss_anew", function()
    local p = tide.ones(1, { requires_grad = true })
    local optimizer = SGD({ p }, { lr = 0.1 })
    local loss = optimizer:step(function()
        optimizer:zero_grad()
        local y = (p * 2):sum()
        y:backward()
        return y
    end)
    t.eq(loss:item(), 2)
    t.close(p:item(), 0.8, 1e-6)
end)

t.test("wrong_arguments", function()
    local p = tide.ones(1, { requires_grad = true })
    t.error_has(function() SGD() end, "SGD: argument 1 (params): expected a list, got nothing")
    t.error_has(function() SGD({}, { lr = 1 }) end, "empty")
    t.error_has(function() SGD(p, { lr = 1 }) end, "put it in a table")
    t.error_has(function() SGD({ 3 }, { lr = 1 }) end, "parameter 1: expected a tensor, got number 3")
    t.error_has(function() SGD({ p * 2 }, { lr = 1 }) end, "only leaves")
    t.error_has(function() SGD({ p, p }, { lr = 1 }) end, "twice")
    t.error_has(function() SGD({ p }, { lr = -1 }) end, "from 0 on")
    t.error_has(function() SGD({ p }, { lrr = 1 }) end, "did you mean 'lr'?")
    t.error_has(function() SGD(tide.nn.Linear(2, 2), { lr = 1 }) end, "pass model:parameters()")
    t.error_has(function() SGD({ p }, { lr = 1 }):zero_grad({ set_to_nome = true }) end, "did you mean 'set_to_none'?")
    t.error_has(function() SGD({ p }, { nesterov = true }) end, "momentum")
    t.error_has(function() SGD({ p }, 0.1, 0.9) end, "table such as")
    t.error_has(function() SGD({ p }, "0.1") end, "table such as")
    t.error_has(function() SGD({ p }, -0.1) end, "lr")
    t.eq(SGD({ p }, 0.25).param_groups[1].lr, 0.25)
    t.eq(SGD({ p }, 0.25, { momentum = 0.5 }).param_groups[1].momentum, 0.5)
end)

-- ---- all classes ----

local classes = { "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "Adagrad", "Adadelta", "ASGD", "Adafactor", "Muon",
    "LBFGS" }

local function leaf(n) return tide.ones(n, { requires_grad = true }) end

t.test("every_class_refuses_what_pytorch_refuses", function()
    local optim = tide.optim
    for _, name in ipairs(classes) do
        t.error_has(function() optim[name]({}) end, name .. ": the list of parameters is empty")
        t.error_has(function() optim[name]({ leaf(1) }, { lr = -1 }) end, name .. ": option lr: expected a number from 0 on")
        t.error_has(function() optim[name]({ leaf(1) }, { lr = tide.ones(2) }) end, "a tensor of one element expected")
    end
    for _, name in ipairs { "Adam", "AdamW", "Adamax", "NAdam", "RAdam" } do
        local function with(options) return function() optim[name]({ leaf(1) }, options) end end
        t.error_has(with { betas = { 1, 0.9 } }, name .. ": option betas: number 1 must be from 0 to below 1, got 1")
        t.error_has(with { betas = { 0.9, -1 } }, "number 2 must be")
        t.error_has(with { betas = { 0.9 } }, "two numbers expected, got 1")
        t.error_has(with { eps = -1 }, "eps")
        t.error_has(with { weight_decay = -1 }, "weight_decay")
    end
    t.error_has(function() optim.RMSprop({ leaf(1) }, { alpha = -1 }) end, "alpha")
    t.error_has(function() optim.Rprop({ leaf(1) }, { etas = { 1.5, 2 } }) end, "etas")
    t.error_has(function() optim.Adadelta({ leaf(1) }, { rho = 1.5 }) end, "rho")
    t.error_has(function() optim.Adagrad({ leaf(1) }, { lr_decay = -1 }) end, "lr_decay")
    t.error_has(function() optim.NAdam({ leaf(1) }, { momentum_decay = -1 }) end, "momentum_decay")
    t.error_has(function() optim.LBFGS({ leaf(1) }, { line_search_fn = "weak" }) end, "strong_wolfe")
    t.error_has(function() optim.LBFGS({ { params = { leaf(1) } }, { params = { leaf(1) } } }) end, "one group")
    t.error_has(function() optim.LBFGS({ leaf(1) }):step() end, "closure")
end)

t.test("groups_are_added_with_the_defaults_of_the_optimizer", function()
    local a, b, c = leaf(1), leaf(1), leaf(1)
    local optimizer = tide.optim.Adam({ a }, { lr = 0.5, betas = { 0.5, 0.6 } })
    optimizer:add_param_group({ params = b, lr = 0.25 })
    t.eq(optimizer.param_groups[2].lr, 0.25)
    t.eq(optimizer.param_groups[2].betas, { 0.5, 0.6 })
    t.error_has(function() optimizer:add_param_group({ params = { a } }) end, "parameter 1 is given twice")
    t.error_has(function() optimizer:add_param_group({ params = { c }, momentum = 1 }) end, "momentum")
    t.error_has(function() optimizer:add_param_group({ lr = 1 }) end, "group 3: expected {params = {...}, ...}")
    t.eq(#optimizer.param_groups, 2)
    a.grad, b.grad = tide.ones(1), tide.ones(1)
    optimizer:step()
    t.close(a:item(), 0.5, 1e-5)
    t.close(b:item(), 0.75, 1e-5)
end)

t.test("a_rate_may_be_a_tensor_that_changes", function()
    for _, name in ipairs { "SGD", "Adam", "Rprop" } do
        local p, q, rate = leaf(3), leaf(3), tide.tensor(0.5)
        local by_tensor = tide.optim[name]({ p }, { lr = rate })
        local by_number = tide.optim[name]({ q }, { lr = 0.5 })
        for step = 1, 3 do
            p.grad, q.grad = tide.ones(3) * step, tide.ones(3) * step
            by_tensor:step()
            by_number:step()
            rate:mul_(0.5)
            by_number.param_groups[1].lr = rate:item()
        end
        t.is_true(tide.equal(p:detach(), q:detach()), name)
    end
end)

t.test("gradients_become_zeros_where_they_are_kept", function()
    local a, b = leaf(2), leaf(2)
    a.grad = tide.ones(2)
    local grad, optimizer = a.grad, tide.optim.Adam({ a, b })
    optimizer:zero_grad({ set_to_none = false })
    t.eq(grad:sum():item(), 0)
    t.eq(b.grad, nil)
    optimizer:zero_grad()
    t.eq(a.grad, nil)
end)

t.test("a_refused_step_changes_nothing", function()
    local a, b = leaf(2), leaf(3)
    local optimizer = tide.optim.Adam({ a, b }, { lr = 0.5 })
    a.grad, b.grad = tide.ones(2), tide.ones(3)
    optimizer:step()
    local before = { a:detach():clone(), optimizer.state[a].exp_avg:clone() }
    optimizer.state[b].exp_avg_sq = tide.ones(2)
    t.error_has(function() optimizer:step() end, "exp_avg_sq 2 has shape (2), its parameter (3)")
    t.is_true(tide.equal(a:detach(), before[1]))
    t.is_true(tide.equal(optimizer.state[a].exp_avg, before[2]))
    t.eq(optimizer.state[a].step, 1)
end)

t.test("a_state_has_pytorchs_structure_and_takes_steps_that_are_tensors", function()
    local a, b, c = leaf(2), leaf(3), leaf(1)
    local optimizer = tide.optim.Adam({ { params = { a, b } }, { params = { c }, lr = 0.5 } }, { amsgrad = true })
    a.grad, c.grad = tide.ones(2), tide.ones(1)
    optimizer:step()
    local dict = optimizer:state_dict()
    t.eq(dict.param_groups[1].params, { 1, 2 })
    t.eq(dict.param_groups[2].params, { 3 })
    t.eq(dict.param_groups[2].lr, 0.5)
    local names = {}
    for name in pairs(dict.state[3]) do
        names[#names + 1] = name
    end
    table.sort(names)
    t.eq(names, { "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step" })
    t.error_has(function() SGD({ { params = { a, b } }, { params = { c } } }):load_state_dict(dict) end,
        "the state is not that of SGD")
    dict.state[1].step = tide.tensor(7.0)
    optimizer:load_state_dict(dict)
    t.eq(optimizer.state[a].step, 7.0)
    optimizer:step()
    t.error_has(function() optimizer:load_state_dict({ param_groups = { {}, 3 }, state = {} }) end, "group 2: a table expected")
end)

t.test("a_step_over_other_layouts_is_that_of_the_loop", function()
    local function make()
        tide.manual_seed(3)
        local base = tide.randn(6, 4)
        local list = { tide.randn(2, 3, 4, 4):contiguous({ memory_format = "channels_last" }), base:t()[{ { 1, 2 } }],
            base[{ { 1, 6, 2 }, 4 }], tide.randn(5):double(), tide.randn({}) }
        for k, p in ipairs(list) do
            list[k] = p:detach():requires_grad_()
            list[k].grad = tide.randn(p.shape):to(p.dtype)
        end
        return list
    end
    local a, b = make(), make()
    local one, other = tide.optim.Adam(a, { foreach = true }), tide.optim.Adam(b, { foreach = false })
    for _ = 1, 3 do
        one:step()
        other:step()
    end
    for k, p in ipairs(a) do
        t.is_true(tide.equal(p:detach(), b[k]:detach()), "parameter " .. k)
    end
end)

t.test("lbfgs_finds_the_minimum_of_rosenbrocks_valley", function()
    local p = tide.tensor({ -1.2, 1 }, { dtype = tide.float64, requires_grad = true })
    local optimizer = tide.optim.LBFGS({ p }, { line_search_fn = "strong_wolfe", max_iter = 100, tolerance_change = 0 })
    local calls = 0
    local first = optimizer:step(function()
        calls = calls + 1
        optimizer:zero_grad()
        local x, y = p[1], p[2]
        local loss = (1 - x) ^ 2 + 100 * (y - x * x) ^ 2
        loss:backward()
        return loss
    end)
    t.close(first:item(), 24.2, 1e-9)
    t.close(p[1]:item(), 1, 1e-6)
    t.close(p[2]:item(), 1, 1e-6)
    t.eq(optimizer.state[p].func_evals, calls)
end)

-- Adam as a loop of operators.
local function plain_adam(p, s, o, n)
    local g = o.maximize and -p.grad or p.grad
    if o.weight_decay and o.decoupled_weight_decay then
        p:mul_(1 - o.lr * o.weight_decay)
    elseif o.weight_decay then
        g = g:add(p, { alpha = o.weight_decay })
    end
    local b1, b2 = o.betas[1], o.betas[2]
    s.avg:lerp_(g, 1 - b1)
    s.square:mul_(b2):addcmul_(g, g, { value = 1 - b2 })
    local largest = s.square
    if o.amsgrad then
        s.most = tide.maximum(s.most, s.square)
        largest = s.most
    end
    local root = (1 - b2 ^ n) ^ 0.5
    p:addcdiv_(s.avg, largest:sqrt():add_(1e-8 * root), { value = -(o.lr / (1 - b1 ^ n)) * root })
end

t.test("adam_equals_the_loop_of_operators_to_the_last_bit", function()
    for number, recipe in ipairs {
        { lr = 0.1, betas = { 0.9, 0.999 } }, { lr = 0.1, betas = { 0.3, 0.6 }, amsgrad = true },
        { lr = 0.2, betas = { 0.9, 0.99 }, weight_decay = 0.1, maximize = true },
        { lr = 0.2, betas = { 0.5, 0.9 }, weight_decay = 0.1, decoupled_weight_decay = true },
    } do
        tide.manual_seed(number)
        local ours, theirs, states = {}, {}, {}
        for k, shape in ipairs { { 3, 5 }, { 1 }, { 40, 70 }, { 0 }, {}, { 7 } } do
            local p = tide.randn(shape, { dtype = k == 3 and tide.float64 or tide.float32 })
            ours[k], theirs[k] = p:clone():requires_grad_(), p:clone():requires_grad_()
            states[k] = { avg = tide.zeros_like(p), square = tide.zeros_like(p), most = tide.zeros_like(p) }
        end
        local optimizer = tide.optim.Adam(ours, recipe)
        for n = 1, 4 do
            for k, p in ipairs(ours) do
                p.grad = tide.randn_like(p)
                theirs[k].grad = p.grad:clone()
            end
            optimizer:step()
            tide.no_grad(function()
                for k, p in ipairs(theirs) do
                    plain_adam(p, states[k], recipe, n)
                end
            end)
            for k, p in ipairs(ours) do
                t.is_true(tide.equal(p:detach(), theirs[k]:detach()), ("recipe %d, parameter %d"):format(number, k))
            end
        end
    end
end)

t.test("a_number_worked_out_within_a_step_holds_for_all_elements", function()
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16 } do
        local p, g = tide.zeros(3000, { dtype = dtype }), tide.ones(3000, { dtype = dtype }) * 2
        tide._sgd_step("param grad a: param = (param + (a + 1) * grad) * 1", { p }, { g }, { numbers = { 2 } })
        t.is_true(tide.equal(p, tide.ones(3000, { dtype = dtype }) * 6), tostring(dtype))
    end
end)

t.test("a_product_that_is_read_later_is_kept", function()
    local p, g = tide.zeros(100), tide.ones(100) * 2
    tide._sgd_step("param grad a: x = grad * a; y = a + 1; param = x * y", { p }, { g }, { numbers = { 3 } })
    t.is_true(tide.equal(p, tide.ones(100) * 24))
end)

t.test("what_is_no_rate_and_no_pair_is_named", function()
    local w = tide.zeros(2, { requires_grad = true })
    t.error_has(function() tide.optim.Adam({ w }, { lr = tide.tensor(true) }) end,
        "Adam: option lr: expected a number from 0 on, got true")
    t.error_has(function() tide.optim.AdamW({ w }, { betas = 0 }) end, "AdamW: option betas: two numbers expected, got 1")
    t.error_has(function() tide.optim.SparseAdam({ w }, { betas = -1 }) end, "SparseAdam: option betas: two numbers")
    t.error_has(function() tide.optim.Rprop({ w }, { step_sizes = 2 }) end, "Rprop: option step_sizes: two numbers expected, got 1")
    t.error_has(function() tide.optim.Rprop({ w }, { etas = 2 }) end, "Rprop: option etas: a number between 0 and 1")
    local sgd = tide.optim.SGD({ w }, { lr = 1 })
    t.error_has(function() tide.optim.LBFGS.step(sgd, function() end) end, "LBFGS.step: argument 1 (self): expected an LBFGS")
end)

-- ---- states that are kept ----

-- What a state_dict holds stays what it was, whatever the optimizer does next; going back to it gives the same way again.
t.test("a_state_dict_in_memory_does_not_move_on", function()
    local optim = tide.optim
    local makers = {
        SGD = function(p) return optim.SGD(p, { lr = 0.1, momentum = 0.9 }) end,
        Adam = function(p) return optim.Adam(p, { lr = 0.1, amsgrad = true }) end,
        AdamW = function(p) return optim.AdamW(p, { lr = 0.1 }) end,
        RMSprop = function(p) return optim.RMSprop(p, { lr = 0.1, momentum = 0.5, centered = true }) end,
        Adagrad = function(p) return optim.Adagrad(p, { lr = 0.1 }) end,
        Adadelta = function(p) return optim.Adadelta(p) end,
        NAdam = function(p) return optim.NAdam(p) end,
        LBFGS = function(p) return optim.LBFGS(p, { max_iter = 3 }) end,
    }
    for name, make in pairs(makers) do
        local x = tide.tensor({ 3.0, -2, 1 }, { requires_grad = true })
        local opt = make({ x })
        local function steps(n)
            for _ = 1, n do
                opt:step(function()
                    opt:zero_grad()
                    local loss = (x * x):sum()
                    loss:backward()
                    return loss
                end)
            end
            return x:detach():clone()
        end
        steps(3)
        local dict, there = opt:state_dict(), x:detach():clone()
        local first = steps(3)
        tide.no_grad(function() x:copy_(there) end)
        opt:load_state_dict(dict)
        t.is_true(tide.equal(steps(3), first), name)
        tide.no_grad(function() x:copy_(there) end)
        opt:load_state_dict(dict) -- and once more: neither loading nor stepping has touched it
        t.is_true(tide.equal(steps(3), first), name .. " again")
    end
end)

t.test("options_of_an_optimizer_are_its_groups", function()
    local x = tide.ones(2, { requires_grad = true })
    for _, name in ipairs { "SGD", "Adam", "RMSprop", "LBFGS" } do
        local opt = tide.optim[name]({ x }, { lr = 0.1 })
        for _, option in ipairs { "lr", "weight_decay", "momentum", "betas" } do
            t.error_has(function() return opt[option] end, "opt.param_groups[1]." .. option)
            t.error_has(function() opt[option] = 1 end, "opt.param_groups[1]." .. option)
        end
        opt.mine = 3
        t.eq(opt.mine, 3)
        t.is_false(tostring(opt):find("table: 0x", 1, true) ~= nil, name)
    end
end)

t.test("a_table_of_one_list_of_parameters_is_one_group", function()
    local model = tide.nn.Linear(2, 2)
    local opt = tide.optim.Adam { model:parameters(), lr = 0.5 }
    t.eq({ #opt.param_groups, #opt.param_groups[1].params, opt.param_groups[1].lr }, { 1, 2, 0.5 })
    t.error_has(function() tide.optim.Adam { { model.weight }, { model.bias }, lr = 1 } end, "parameters of one group are one list")
end)

-- ---- Muon ----

-- Where PyTorch's Muon is after four steps: its products are of bfloat16, so the last digits are the library's.
local MUON = {
    { {}, { -1.10071, 0.53498, -0.39518, 1.27055, 0.27843, -0.63102, 1.04155, 0.08973, -0.85567, 0.81255, -0.09893, -1.08049, 0.57146, -0.39511,
        1.28392 }, { -0.62628, 0.60472, 0.05465, -0.41026, 0.8824, 0.3215, -0.19172, -0.62861, 0.60894, 0.05465, -0.41566, 0.88466 } },
    { { nesterov = false, momentum = 0.5, adjust_lr_fn = "match_rms_adamw", weight_decay = 0 }, { -1.13627, 0.57939, -0.39939, 1.32642, 0.32635,
        -0.64503, 1.08281, 0.09664, -0.88695, 0.8392, -0.13292, -1.12872, 0.59204, -0.39932, 1.33075 },
        { -0.64067, 0.60466, 0.07818, -0.40667, 0.86925, 0.33752, -0.17117, -0.64193, 0.60673, 0.07822, -0.40939, 0.87009 } },
    { { adjust_lr_fn = "spectral_unclamped", ns_steps = 3 }, { -1.09739, 0.5383, -0.39049, 1.27136, 0.28557, -0.62898, 1.0414, 0.09028, -0.85456,
        0.8117, -0.10501, -1.08019, 0.56897, -0.39136, 1.2796 },
        { -0.63587, 0.60185, 0.07321, -0.40752, 0.86582, 0.33417, -0.17214, -0.63505, 0.60031, 0.07325, -0.40552, 0.86499 } },
}

t.test("muon_goes_the_way_that_pytorch_goes", function()
    for _, case in ipairs(MUON) do
        local p = (((tide.arange(15) * 7) % 11 - 5) / 4 + 0.1):reshape(5, 3):requires_grad_()
        local q = (((tide.arange(12) * 5) % 7 - 3) / 4 + 0.1):reshape(2, 6):requires_grad_()
        local options = { lr = 0.02 }
        for name, value in pairs(case[1]) do
            options[name] = value
        end
        local optimizer = tide.optim.Muon({ p, q }, options)
        for _ = 1, 4 do
            optimizer:zero_grad();
            ((p * p):sum() + (q * 3):sin():sum()):backward()
            optimizer:step()
        end
        t.close((p:detach():reshape(-1) - tide.tensor(case[2])):abs():max():item(), 0, 4e-3)
        t.close((q:detach():reshape(-1) - tide.tensor(case[3])):abs():max():item(), 0, 4e-3)
    end
    t.error_has(function()
        local p = leaf(3)
        p.grad = tide.ones(3)
        tide.optim.Muon({ p }):step()
    end, "only matrices")
end)

t.test("optimizers_of_whole_parameters_go_on_from_a_saved_state", function()
    for _, name in ipairs { "ASGD", "Adafactor", "Muon" } do
        local p, q = tide.ones(3, 2):requires_grad_(), tide.ones(3, 2):requires_grad_()
        local function step(optimizer, x)
            optimizer:zero_grad();
            (x:sin() * tide.arange(6):reshape(3, 2)):sum():backward()
            optimizer:step()
        end
        local first, second = tide.optim[name]({ p }, { lr = 0.1 }), tide.optim[name]({ q }, { lr = 0.1 })
        step(first, p)
        step(first, p)
        q.data:copy_(p)
        second:load_state_dict(first:state_dict())
        step(first, p)
        step(second, q)
        t.is_true(tide.equal(p, q), name)
    end
end)

-- ---- hooks ----

t.test("hooks_are_called_around_every_step_until_they_are_removed", function()
    for _, name in ipairs { "SGD", "LBFGS", "Adafactor" } do
        local p, calls = leaf(2), {}
        local optimizer = tide.optim[name]({ p }, { lr = 0.1 })
        local before = optimizer:register_step_pre_hook(function(opt)
            calls[#calls + 1] = { "pre", rawequal(opt, optimizer), p[1]:item() }
        end)
        optimizer:register_step_post_hook(function() calls[#calls + 1] = { "post", p[1]:item() < 1 } end)
        local function closure()
            optimizer:zero_grad()
            local loss = (p * p):sum()
            loss:backward()
            return loss
        end
        optimizer:step(closure)
        t.eq(calls, { { "pre", true, 1.0 }, { "post", true } }, name)
        before:remove()
        before:remove()
        optimizer:step(closure)
        t.eq(#calls, 3, name)
        optimizer:state_dict()
    end
end)
