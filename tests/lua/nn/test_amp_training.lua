-- test_amp_training.lua: mixed precision in training loops: several models, losses and optimizers with one
-- scaler, clipping, penalties, backward outside autocast, checkpoints. Scales are powers of two, so float32 under
-- a scaler goes the way without one to the last bit.
local t = require "harness"
local nn, optim, amp = tide.nn, tide.optim, tide.amp

local function model(seed)
    tide.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
end

local function data()
    tide.manual_seed(7)
    return tide.randn(20, 6), tide.randn(20, 3)
end

local function same(a, b, what)
    local theirs = b:parameters()
    for k, p in ipairs(a:parameters()) do
        t.is_true(tide.equal(p, theirs[k]), ("%s: parameter %d differs"):format(what or "model", k))
    end
end

-- A scaler, or what does nothing in its place.
local function scaler_of(scaled)
    return amp.GradScaler { init_scale = 2 ^ 10, growth_interval = 3, enabled = scaled }
end

-- Two models, two losses that both read both models, two optimizers, one scaler.
local function several(scaled, dtype)
    local x, y = data()
    local one, two, scaler = model(1), model(2), scaler_of(scaled)
    local sgd = optim.SGD(one:parameters(), { lr = 0.1, momentum = 0.9 })
    local adam = optim.Adam(two:parameters(), { lr = 0.01 })
    for _ = 1, 7 do
        sgd:zero_grad()
        adam:zero_grad()
        local first, second = tide.autocast({ device = "cpu", dtype = dtype, enabled = dtype ~= nil }, function()
            local a, b = one(x), two(x)
            return nn.functional.mse_loss(2 * a + 3 * b, y), nn.functional.mse_loss(3 * a - 5 * b, y)
        end)
        scaler:scale(first):backward { retain_graph = true } -- outside autocast, as all backward
        scaler:scale(second):backward()
        scaler:unscale_(sgd) -- one is clipped, the other left to step
        nn.utils.clip_grad_norm_(one:parameters(), 0.5)
        scaler:step(sgd)
        scaler:step(adam)
        scaler:update()
    end
    return one, two, scaler
end

t.test("several_models_losses_and_optimizers_go_the_way_without_a_scaler", function()
    for _, dtype in ipairs { false, tide.bfloat16 } do
        local one, two, scaler = several(true, dtype or nil)
        local plain_one, plain_two = several(false, dtype or nil)
        same(one, plain_one, "first model")
        same(two, plain_two, "second model")
        t.eq(scaler:get_scale(), 2 ^ 12)
    end
end)

t.test("inf_in_one_model_skips_its_optimizer_alone", function()
    local x = data()
    local one, two, scaler = model(1), model(2), scaler_of(true)
    local sgd, adam = optim.SGD(one:parameters(), { lr = 0.1 }), optim.Adam(two:parameters(), { lr = 0.1 })
    scaler:scale(one(x):sum() * 1 / 0 + two(x):sum()):backward()
    scaler:step(sgd)
    scaler:step(adam)
    scaler:update()
    same(one, model(1), "the one with inf")
    t.is_false(tide.equal(two:parameters()[1], model(2):parameters()[1]))
    t.eq(scaler:get_scale(), 2 ^ 9)
end)

t.test("a_penalty_by_double_backward_goes_the_way_without_a_scaler", function()
    local function train(scaled)
        local x, y = data()
        local net, scaler = model(3), scaler_of(scaled)
        local adam = optim.Adam(net:parameters(), { lr = 0.01 })
        for _ = 1, 5 do
            adam:zero_grad()
            local loss = nn.functional.mse_loss(net(x), y)
            local grads = tide.autograd.grad(scaler:scale(loss), net:parameters(), { create_graph = true })
            local penalty = 0
            for _, g in ipairs(grads) do
                penalty = penalty + (g * (1 / scaler:get_scale())):square():sum()
            end
            scaler:scale(loss + penalty:sqrt()):backward()
            scaler:step(adam)
            scaler:update()
        end
        return net
    end
    same(train(true), train(false))
end)

t.test("backward_outside_autocast_gives_float32_gradients_of_what_ran_lower", function()
    local x, y = data()
    local net, kinds = model(4), {}
    net[1]:register_forward_hook(function(_, _, out) kinds[#kinds + 1] = out.dtype end)
    local loss
    do
        local _ <close> = tide.autocast { device = "cpu", dtype = tide.bfloat16 }
        loss = nn.functional.mse_loss(net(x):float(), y)
    end
    loss:backward()
    t.eq({ kinds[1], loss.dtype }, { tide.bfloat16, tide.float32 })
    for _, p in ipairs(net:parameters()) do
        t.eq(p.grad.dtype, tide.float32)
    end
end)

-- A training with everything that has a state; stops behind step `stop` to go on from its checkpoint.
local function resumable(stop)
    local x, y = data()
    local path = os.tmpname()
    local function start(seed)
        local s = { net = model(seed), scaler = amp.GradScaler { init_scale = 2 ^ 8, growth_interval = 2 } }
        s.optimizer = optim.Adam(s.net:parameters(), { lr = 0.05 })
        s.scheduler = optim.lr_scheduler.StepLR(s.optimizer, 2, { gamma = 0.5 })
        return s
    end
    local s = start(5)
    for step = 1, 8 do
        s.optimizer:zero_grad()
        local loss = tide.autocast({ device = "cpu", dtype = tide.bfloat16 }, function()
            return nn.functional.mse_loss(s.net(x + tide.randn(20, 6) * 0.1):float(), y)
        end)
        s.scaler:scale(step == 3 and loss * (1 / 0) or loss):backward() -- one step is skipped
        s.scaler:step(s.optimizer)
        s.scaler:update()
        s.scheduler:step()
        if step == stop then
            tide.save({ net = s.net:state_dict(), optimizer = s.optimizer:state_dict(), scaler = s.scaler:state_dict(),
                scheduler = s.scheduler:state_dict(), rng = tide.get_rng_state() }, path)
            s = start(6)
            local saved = tide.load(path)
            for _, part in ipairs { "net", "optimizer", "scaler", "scheduler" } do
                s[part]:load_state_dict(saved[part])
            end
            tide.set_rng_state(saved.rng)
        end
    end
    os.remove(path)
    return s
end

t.test("resumed_training_with_a_scaler_equals_uninterrupted_training_to_the_bit", function()
    local whole = resumable()
    for _, stop in ipairs { 1, 3, 4, 7 } do
        local resumed = resumable(stop)
        same(resumed.net, whole.net, "stopped behind step " .. stop)
        t.eq(resumed.scaler:state_dict(), whole.scaler:state_dict())
        t.eq(resumed.optimizer.param_groups[1].lr, whole.optimizer.param_groups[1].lr)
    end
end)

t.test("mixed_precision_is_a_line_each_in_a_script", function()
    local x, y = data()
    local net = model(8)
    local optimizer = optim.SGD(net:parameters(), { lr = 0.1 })
    local scaler = amp.GradScaler()
    local first, last
    for _ = 1, 30 do
        optimizer:zero_grad()
        local _ <close> = tide.autocast { device = "cpu", dtype = tide.bfloat16 }
        local loss = nn.functional.mse_loss(net(x), y)
        scaler:scale(loss):backward()
        scaler:step(optimizer)
        scaler:update()
        first, last = first or loss:item(), loss:item()
    end
    t.is_true(last < first * 0.9, "the loss fell from " .. first .. " to " .. last)
end)
