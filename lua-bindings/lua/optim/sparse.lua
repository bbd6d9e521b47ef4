-- optim/sparse.lua: what optimizers do where a gradient is sparse: only the rows that it names are read and
-- written. SGD and Adagrad take such gradients besides others, SparseAdam takes no others, the rest none.
local tide = ...
local fail = tide._fail

-- The gradient as a step goes down it: each place once.
local function downhill(grad, group)
    return (group.maximize and -grad or grad):coalesce()
end

-- The rows of a dense state at the places of a gradient.
local function rows(state, grad) return state:sparse_mask(grad):_values() end

local steps = {}

-- Momentum keeps a sum of gradients that grows by the places of each; it stays sparse.
function steps.SGD(self, group, lr, p, grad)
    if group.weight_decay ~= 0 then
        fail("SGD: weight_decay is not for sparse gradients: it changes all rows")
    end
    local change = group.maximize and -grad or grad
    if group.momentum ~= 0 then
        local state = self.state[p] or {}
        local buffer = state.momentum_buffer
        if buffer then
            buffer:mul_(group.momentum):add_(change, { alpha = 1 - group.dampening })
        else
            buffer = change:clone()
        end
        state.momentum_buffer, self.state[p] = buffer, state
        change = group.nesterov and change:add(buffer, { alpha = group.momentum }) or buffer
    end
    p:add_(change, { alpha = -lr })
end

function steps.Adagrad(self, group, lr, p, grad)
    if group.weight_decay ~= 0 then
        fail("Adagrad: weight_decay is not for sparse gradients: it changes all rows")
    end
    local state = self.state[p] or
        { step = 0, sum = tide.full_like(p, group.initial_accumulator_value or 0, { requires_grad = false }) }
    grad = downhill(grad, group)
    state.step, self.state[p] = state.step + 1, state
    state.sum:add_(grad:square())
    local root = rows(state.sum, grad):sqrt():add_(group.eps)
    p:add_(tide._sparse_with_values(grad, grad:_values() / root),
        { alpha = -lr / (1 + (state.step - 1) * group.lr_decay) })
end

-- Adam whose averages move only where there is a gradient, so that they lag behind elsewhere.
function steps.SparseAdam(self, group, lr, p, grad)
    local beta1, beta2 = group.betas[1], group.betas[2]
    local state = self.state[p] or { step = 0, exp_avg = tide.zeros_like(p), exp_avg_sq = tide.zeros_like(p) }
    state.step, self.state[p] = state.step + 1, state
    grad = downhill(grad, group)
    local g = grad:_values()
    if g:numel() == 0 then
        return
    end
    local mean, square = rows(state.exp_avg, grad), rows(state.exp_avg_sq, grad)
    local mean_change, square_change = (g - mean) * (1 - beta1), (g * g - square) * (1 - beta2)
    state.exp_avg:add_(tide._sparse_with_values(grad, mean_change))
    state.exp_avg_sq:add_(tide._sparse_with_values(grad, square_change))
    local rate = lr * (1 - beta2 ^ state.step) ^ 0.5 / (1 - beta1 ^ state.step)
    local change = (mean + mean_change) / ((square + square_change):sqrt() + group.eps)
    p:add_(tide._sparse_with_values(grad, change), { alpha = -rate })
end

local sparse = {}

--- step(optimizer, group, lr, p, grad): one step of one parameter whose gradient is sparse, in the
-- optimizer's state; refused where its class knows none.
function sparse.step(self, group, lr, p, grad)
    local name = self.__name
    if not steps[name] then
        fail("%s: sparse gradients are not supported%s", name,
            string.find(name, "^Adam") and ": use SparseAdam, or a dense gradient (sparse = false)"
                or ": use SGD, Adagrad or SparseAdam, or a dense gradient (sparse = false)")
    end
    steps[name](self, group, lr, p, grad)
end

--- define(class, rate_of): makes tide.optim.SparseAdam by optim.lua's class; rate_of(name, lr) reads a rate.
function sparse.define(class, rate_of)
    return class {
        schema = "SparseAdam(list params, *, Tensor|number lr=0.001, number[]? betas=nil, number(0..) eps=1e-8, "
            .. "bool maximize=false)",
        doc = "Adam for sparse gradients: moments and parameters change only in the rows that have one. "
            .. "betas: {0.9, 0.999}.",
        check = function(options)
            options.betas = options.betas or { 0.9, 0.999 }
            if type(options.betas) ~= "table" or #options.betas ~= 2 or not (options.betas[1] >= 0 and options.betas[1] < 1)
                or not (options.betas[2] >= 0 and options.betas[2] < 1) then
                fail("SparseAdam: option betas: two numbers from 0 to below 1 expected")
            end
        end,
        step_group = function(self, group)
            for _, p in ipairs(group.params) do
                local grad = p.grad
                if grad and not grad.is_sparse then
                    fail("SparseAdam: a dense gradient of shape %s: use Adam, or sparse gradients",
                        tostring(grad.shape))
                end
            end
            local lr = rate_of("SparseAdam", group.lr)
            for _, p in ipairs(group.params) do
                if p.grad then
                    steps.SparseAdam(self, group, lr, p, p.grad)
                end
            end
        end,
    }
end

return sparse
