-- test_advice_optimizers.lua: of an optimizer written by hand the advice names the one of tide.optim that it is.
local t = require "harness"
local advised = require "advised"
local counted = require "counted"

local PARAMS, STEPS, SIZE = 6, 60, 64

-- The advice on steps of an update(p, state, step), which is told its state's tensors m, v and u.
local function advice_on(update)
    local params, state = {}, {}
    for k = 1, PARAMS do
        params[k] = tide.randn(SIZE):requires_grad_()
        state[k] = { m = tide.zeros(SIZE), v = tide.zeros(SIZE), u = tide.zeros(SIZE) }
    end
    return counted.advice_of(function()
        for step = 1, STEPS do
            for _, p in ipairs(params) do
                p.grad = tide.rand(SIZE)
            end
            tide.no_grad(function()
                for k, p in ipairs(params) do
                    update(p, state[k], step)
                end
            end)
        end
    end)
end

local function square(s, p) s.v:mul_(0.999):addcmul_(p.grad, p.grad, { value = 0.001 }) end

-- As people write them, with operators or in place.
local by_hand = {
    ["Adam(params, {lr = …})"] = {
        function(p, s, step)
            s.m = 0.9 * s.m + 0.1 * p.grad
            s.v = 0.999 * s.v + 0.001 * p.grad ^ 2
            p:sub_(0.01 * (s.m / (1 - 0.9 ^ step)) / ((s.v / (1 - 0.999 ^ step)):sqrt() + 1e-8))
        end,
        function(p, s)
            s.m:lerp_(p.grad, 0.1)
            square(s, p)
            p:addcdiv_(s.m, s.v:sqrt():add_(1e-8), { value = -0.01 })
        end,
        function(p, s)
            s.m:mul_(0.9):add_(p.grad * 0.1)
            square(s, p)
            p:copy_(p - 0.01 * s.m * (s.v + 1e-8):rsqrt())
        end,
    },
    ["AdamW(params, {lr = …})"] = { function(p, s)
        p:mul_(1 - 1e-4)
        s.m:lerp_(p.grad, 0.1)
        square(s, p)
        p:addcdiv_(s.m, s.v:sqrt():add_(1e-8), { value = -0.01 })
    end },
    ["Adam(params, {lr = …, amsgrad = true})"] = { function(p, s)
        s.m:lerp_(p.grad, 0.1)
        square(s, p)
        s.u:copy_(tide.maximum(s.u, s.v))
        p:addcdiv_(s.m, s.u:sqrt():add_(1e-8), { value = -0.01 })
    end },
    ["RMSprop(params, {lr = …})"] = {
        function(p, s)
            s.v = 0.9 * s.v + 0.1 * p.grad * p.grad
            p:sub_(0.01 * p.grad / (s.v:sqrt() + 1e-8))
        end,
        function(p, s)
            s.v:mul_(0.9):addcmul_(p.grad, p.grad, { value = 0.1 })
            p:addcdiv_(p.grad, s.v ^ 0.5 + 1e-8, { value = -0.01 })
        end,
    },
    ["RMSprop(params, {lr = …, momentum = …})"] = { function(p, s)
        square(s, p)
        s.m:mul_(0.9):addcdiv_(p.grad, s.v:sqrt() + 1e-8)
        p:add_(s.m, { alpha = -0.01 })
    end },
    ["Adagrad(params, {lr = …})"] = { function(p, s)
        s.v = s.v + p.grad ^ 2
        p:sub_(0.01 * p.grad / (s.v ^ 0.5 + 1e-8))
    end },
    ["Adamax(params, {lr = …})"] = { function(p, s)
        s.m:mul_(0.9):add_(p.grad, { alpha = 0.1 })
        s.u = tide.maximum(s.u * 0.999, p.grad:abs())
        p:addcdiv_(s.m, s.u + 1e-8, { value = -0.01 })
    end },
    ["Adadelta(params, {lr = …})"] = { function(p, s)
        square(s, p)
        local d = (s.u + 1e-6):sqrt() / (s.v + 1e-6):sqrt() * p.grad
        s.u:mul_(0.9):addcmul_(d, d, { value = 0.1 })
        p:sub_(d)
    end },
    ["SGD(params, {lr = …, momentum = …})"] = { function(p, s)
        local g = p.grad + 1e-4 * p
        s.m = 0.9 * s.m + g
        p:copy_(p - 0.1 * s.m)
    end },
    ["tide.foreach over"] = { function(p, s)
        p:sub_((s.m * 0.9 + p.grad * 0.1):sign() * 0.01)
        s.m:mul_(0.99):add_(p.grad, { alpha = 0.01 })
    end },
}

for name, updates in pairs(by_hand) do
    for k, update in ipairs(updates) do
        t.test(("%s_way_%d"):format(name:match("^[%w.]+"), k) .. (name:match(", (%w+) =", 10) or ""), function()
            local advice = advice_on(update)
            local item = advised.of_kind(advice, "optimizer")
            t.is_true(item and item.fix:find(name, 1, true), tostring(advice))
        end)
    end
end
