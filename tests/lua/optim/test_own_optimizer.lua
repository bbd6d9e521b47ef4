-- test_own_optimizer.lua: optimizers of a script's own, made by tide.optim.class.
local t = require "harness"
local nn, optim = tide.nn, tide.optim

local function momentum()
    local Own = optim.class("Own", { lr = 0.1, momentum = 0, weight_decay = 0, nesterov = false })
    function Own:update(p, grad, state, group)
        local d = group.weight_decay ~= 0 and grad + group.weight_decay * p or grad
        if group.momentum ~= 0 then
            state.momentum_buffer = state.momentum_buffer and state.momentum_buffer:mul_(group.momentum):add_(d) or d:clone()
            d = state.momentum_buffer
        end
        p:add_(d, { alpha = -group.lr })
    end
    return Own
end

local function network()
    tide.manual_seed(2)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)):double()
end

local function train(net, opt, steps, scheduler)
    local x = tide.arange(15, { dtype = tide.float64 }):view(5, 3):sin()
    for _ = 1, steps do
        opt:zero_grad()
        net(x):pow(2):mean():backward()
        opt:step()
        if scheduler then
            scheduler:step()
        end
    end
end

local function same(a, b)
    for k, p in ipairs(a:parameters()) do
        t.is_true(tide.allclose(p, b:parameters()[k], { rtol = 1e-12, atol = 1e-14 }), k)
    end
end

t.test("a_class_of_one_s_own_steps_as_its_update_says", function()
    local Own = momentum()
    local a, b = network(), network()
    local options = { lr = 0.05, momentum = 0.9, weight_decay = 0.01 }
    local mine, theirs = Own(a:parameters(), options), optim.SGD(b:parameters(), options)
    train(a, mine, 5, optim.lr_scheduler.StepLR(mine, 2, 0.5))
    train(b, theirs, 5, optim.lr_scheduler.StepLR(theirs, 2, 0.5))
    same(a, b)
    t.eq(mine.param_groups[1].lr, theirs.param_groups[1].lr)
    t.eq(tostring(Own), "class Own")
    t.eq(tostring(mine), (tostring(optim.SGD(b:parameters(), options)):gsub("SGD", "Own"):gsub("    dampening[^\n]*\n", "")
        :gsub("    foreach[^\n]*\n", ""):gsub("    maximize[^\n]*\n", ""):gsub("lr: 0.05", "initial_lr: 0.05\n    lr: 0.0125")))
end)

t.test("groups_have_options_of_their_own_and_states_are_kept", function()
    local Own = momentum()
    local a, b = network(), network()
    local function groups(net) return { { params = net[1]:parameters(), lr = 0.2 }, { params = net[3]:parameters(), momentum = 0.5 } } end
    local mine = Own(groups(a), { lr = 0.01 })
    train(a, mine, 3)
    train(b, optim.SGD(groups(b), { lr = 0.01 }), 3)
    same(a, b)
    local file = os.tmpname()
    tide.save({ net = a:state_dict(), opt = mine:state_dict() }, file)
    local kept, c = tide.load(file), network()
    os.remove(file)
    c:load_state_dict(kept.net)
    local again = Own(groups(c), { lr = 0.7 })
    again:load_state_dict(kept.opt)
    t.eq(again.param_groups[2].momentum, 0.5)
    train(a, mine, 2)
    train(c, again, 2)
    same(a, c)
    mine:add_param_group { params = { nn.Parameter(tide.ones(1)) } }
    t.eq(mine.param_groups[3].lr, 0.01)
end)

t.test("closures_hooks_and_a_grad_scaler_work_with_it", function()
    local Own = momentum()
    local p = nn.Parameter(tide.ones(2))
    local opt = Own { { p }, lr = 0.5 }
    local steps = 0
    opt:register_step_post_hook(function() steps = steps + 1 end)
    local loss = opt:step(function()
        opt:zero_grad()
        local y = p:sum()
        y:backward()
        return y
    end)
    t.eq({ loss:item(), p:tolist(), steps }, { 2, { 0.5, 0.5 }, 1 })
    local scaler = tide.amp.GradScaler("cpu", { init_scale = 8 })
    opt:zero_grad()
    scaler:scale(p:sum()):backward()
    scaler:step(opt)
    scaler:update()
    t.eq(p:tolist(), { 0, 0 })
    p.grad = nil
    opt:step()
    t.eq(p:tolist(), { 0, 0 }, "without a gradient nothing is changed")
end)

t.test("default_lists_are_each_optimizer_s_own", function()
    local Own = optim.class("Own", { lr = 0.1, betas = { 0.9, 0.99 } })
    local p = { nn.Parameter(tide.ones(1)) }
    local first = Own(p)
    first.param_groups[1].betas[1] = 0
    t.eq(Own(p).param_groups[1].betas, { 0.9, 0.99 })
    function Own:betas_of(k) return self.param_groups[k].betas end
    t.eq(first:betas_of(1), { 0, 0.99 })
end)

t.test("what_does_not_fit_a_class_of_one_s_own_is_refused", function()
    local Own = momentum()
    local p = { nn.Parameter(tide.ones(1)) }
    for text, fn in pairs {
        ["Own: no option 'beta'"] = function() Own(p, { beta = 1 }) end,
        ["Own: option momentum: expected a number, got"] = function() Own(p, { momentum = "much" }) end,
        ["Own: option lr: expected a number from 0 on"] = function() Own(p, { lr = -1 }) end,
        ["Own: the list of parameters is empty"] = function() Own({}) end,
        ["Own: the parameters must be a list of tensors"] = function() Own(p[1]) end,
        ["Own: parameter 1 is given twice"] = function() Own({ { params = p }, { params = p } }) end,
        ["an optimizer has no 'lr'"] = function() return Own(p).lr end,
        ["options by name expected"] = function() optim.class("Own", { 0.1 }) end,
        ["Plain has no update: write function Plain:update"] = function()
            local opt = optim.class("Plain", { lr = 1 })(p)
            p[1].grad = tide.ones(1)
            opt:step()
        end,
    } do
        t.error_has(fn, text)
    end
end)
