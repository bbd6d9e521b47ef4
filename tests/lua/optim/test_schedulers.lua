-- test_schedulers.lua: what schedulers refuse, warn of and remember; their rates are in test_training.lua.
local t = require "harness"
local schedulers = tide.optim.lr_scheduler

local function make(options) return tide.optim.SGD({ tide.ones(1, { requires_grad = true }) }, options or { lr = 1 }) end

-- What fn warns of.
local function warnings(fn)
    local list, before = {}, warn
    warn = function(text) list[#list + 1] = text end
    local ok, message = pcall(fn)
    warn = before
    assert(ok, message)
    return list
end

t.test("a_step_before_the_optimizers_is_warned_of_once", function()
    local optimizer = make()
    local scheduler = schedulers.ExponentialLR(optimizer, 0.5)
    local list = warnings(function()
        scheduler:step()
        scheduler:step()
    end)
    t.eq(#list, 1)
    t.is_true(list[1]:find("ExponentialLR: step() before the optimizer's", 1, true) ~= nil)
    local other = make()
    scheduler = schedulers.StepLR(other, 1)
    t.eq(#warnings(function()
        other:step()
        scheduler:step()
    end), 0)
end)

t.test("wrong_arguments", function()
    local o = make()
    t.error_has(function() schedulers.StepLR() end, "StepLR: argument 1 (optimizer)")
    t.error_has(function() schedulers.StepLR(3, 1) end, "StepLR: argument 1 (optimizer): expected a Optimizer, got number 3")
    t.error_has(function() schedulers.StepLR(o, 0) end, "step_size")
    t.error_has(function() schedulers.ConstantLR(o, 1.5) end, "factor")
    t.error_has(function() schedulers.LinearLR(o, 0) end, "LinearLR: option start_factor: a number above 0 expected")
    t.error_has(function() schedulers.ReduceLROnPlateau(o, { factor = 1 }) end, "a number below 1 expected, got 1")
    t.error_has(function() schedulers.ReduceLROnPlateau(o, { mode = "up" }) end, "mode")
    t.error_has(function() schedulers.ReduceLROnPlateau(o, { min_lr = { 0, 1 } }) end, "min_lr has 2 values, the optimizer 1")
    t.error_has(function() schedulers.OneCycleLR(o, 1) end, "OneCycleLR: option total_steps")
    t.error_has(function() schedulers.LambdaLR(o, 3) end, "a function or a list of functions expected, got number 3")
    t.error_has(function() schedulers.LambdaLR(o, { math.sin, math.cos }) end, "LambdaLR: 2 functions for the 1 groups")
    t.error_has(function() schedulers.CyclicLR(tide.optim.Rprop({ tide.ones(1, { requires_grad = true }) }), 0.1, 1) end,
        "Rprop has neither momentum nor betas")
    t.error_has(function() schedulers.ExponentialLR(o, 0.9, { last_epoch = 3 }) end, "group 1 has no initial_lr")
    t.error_has(function() schedulers.ExponentialLR(o, { gama = 3 }) end, "did you mean 'gamma'?")
    t.error_has(function() schedulers.LambdaLR(o, type) end, "LambdaLR: lr_lambda must return a number, got string")
    t.error_has(function()
        schedulers.MultiplicativeLR(make(), function() end):step()
    end, "MultiplicativeLR: lr_lambda must return a number, got nil")
end)

t.test("schedulers_of_schedulers_refuse_what_does_not_go_together", function()
    local o, other = make(), make()
    local a, b = schedulers.ExponentialLR(o, 0.5), schedulers.ExponentialLR(other, 0.5)
    local plateau = schedulers.ReduceLROnPlateau(o)
    t.error_has(function() schedulers.SequentialLR(o, { a, a }, {}) end, "2 schedulers want 1 milestones, got 0")
    t.error_has(function() schedulers.SequentialLR(o, { a, b }, { 3 }) end, "scheduler 2 is of another optimizer")
    t.error_has(function() schedulers.SequentialLR(o, { plateau }, {}) end, "scheduler 1 is a ReduceLROnPlateau")
    t.error_has(function() schedulers.ChainedScheduler({}) end, "the list of schedulers is empty")
    t.error_has(function() schedulers.ChainedScheduler({ 3 }) end, "scheduler 1: a scheduler expected, got number 3")
end)

t.test("a_cycle_ends", function()
    local o = make()
    local scheduler = schedulers.OneCycleLR(o, 1, 3)
    o:step()
    scheduler:step()
    scheduler:step()
    scheduler:step()
    t.error_has(function() scheduler:step() end, "OneCycleLR: step 4 of a cycle of 3 steps")
end)

t.test("a_state_of_another_scheduler_is_refused_and_changes_nothing", function()
    local o = make()
    local a, b = schedulers.ExponentialLR(o, 0.5), schedulers.StepLR(o, 2)
    local dict = b:state_dict()
    dict.last_epoch = 9
    t.error_has(function() a:load_state_dict(dict) end, "the state is that of another scheduler")
    t.eq(a.last_epoch, 0)
    t.error_has(function() a:load_state_dict({ gamma = 1 }) end, "is missing")
end)

t.test("a_rate_that_is_a_tensor_is_written", function()
    local rate = tide.tensor(1.0)
    local o = make({ lr = rate })
    local scheduler = schedulers.ExponentialLR(o, 0.5)
    o:step()
    scheduler:step()
    t.eq(rate:item(), 0.5)
    t.eq(scheduler:get_last_lr(), { 0.5 })
end)

t.test("restarts_can_be_asked_for_a_fraction_of_an_epoch", function()
    local o = make()
    local scheduler = schedulers.CosineAnnealingWarmRestarts(o, 4, 2)
    o:step()
    scheduler:step(1.5)
    t.close(o.param_groups[1].lr, (1 + math.cos(math.pi * 1.5 / 4)) / 2, 1e-15)
    scheduler:step(10)
    t.close(o.param_groups[1].lr, (1 + math.cos(math.pi * 6 / 8)) / 2, 1e-15)
end)

t.test("the_plateau_takes_a_loss_as_it_comes", function()
    local o = make()
    local scheduler = schedulers.ReduceLROnPlateau(o, { patience = 0, factor = 0.5 })
    scheduler:step(tide.tensor(1.0))
    scheduler:step(tide.tensor(2.0))
    t.eq(o.param_groups[1].lr, 0.5)
    t.error_has(function() scheduler:step() end, "metrics")
end)

t.test("a_second_cosine_begins_again_where_the_first_ended", function()
    for _, low in ipairs { 0, 0.01 } do
        local o = tide.optim.SGD({ tide.zeros(1, { requires_grad = true }) }, { lr = 0.1 })
        local function run(n)
            local scheduler, rates = schedulers.CosineAnnealingLR(o, 4, low), {}
            for k = 1, n do
                o:step()
                scheduler:step()
                rates[k] = o.param_groups[1].lr
            end
            return rates
        end
        local first, second = run(4), run(4)
        t.close(first[4], low, 1e-15)
        for k = 1, 4 do
            t.close(first[k], low + (0.1 - low) * (1 + math.cos(math.pi * k / 4)) / 2, 1e-12)
            t.close(second[k], first[k], 1e-12, "the second")
        end
    end
end)

t.test("a_scheduler_is_shown_with_its_settings", function()
    local function opt() return tide.optim.SGD({ tide.ones(1, { requires_grad = true }) }, { lr = 0.1 }) end
    local s = tide.optim.lr_scheduler
    for text, scheduler in pairs {
        ["StepLR(step_size=10, gamma=0.5)"] = s.StepLR(opt(), 10, 0.5), ["MultiStepLR(milestones={2, 4}, gamma=0.1)"] = s.MultiStepLR(opt(), { 2, 4 }),
        ["ExponentialLR(gamma=0.9)"] = s.ExponentialLR(opt(), 0.9) } do
        t.eq(tostring(scheduler), text)
    end
end)
