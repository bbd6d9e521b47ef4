-- optim/matrix.lua: the optimizers whose step looks at a parameter as a whole (norms, products of matrices, averages of the
-- parameter itself) and so is no formula over its elements: ASGD, Adafactor, Muon. They run operators, one parameter after the other.
local tide = ...
local fail = tide._fail

-- The number of a state that a file may hold as a tensor of one element.
local function number(value) return tide.is_tensor(value) and value:item() or value end

-- Moves an average towards a target, in place.
local function follow(average, target, weight) average:lerp_(target, weight) end

-- A class whose step changes one parameter by step_one(group, lr, p, grad, state), begun with start(p, group, lr).
local function by_parameter(define, read_rate, c)
    local start, step_one = c.start, c.step_one
    c.counts, c.shaped, c.step_one = false, false, nil
    local class = define(c)
    function class:step_group(group)
        local lr = read_rate(class.__name, group.lr)
        for k, p in ipairs(group.params) do
            local grad = p.grad
            if grad and grad.is_sparse then
                fail("%s: parameter %d: the gradient is sparse: SparseAdam, SGD and Adagrad take those", class.__name, k)
            elseif grad then
                local state = self.state[p] or start(p, group, lr)
                state.step = number(state.step) + 1
                step_one(group, lr, p, group.maximize and -grad or grad, state)
                self.state[p] = state
            end
        end
    end
    return class
end

-- ---- ASGD ----

local ASGD = {
    schema = "ASGD(list params, *, Tensor|number lr=0.01, number lambd=0.0001, number alpha=0.75, number t0=1000000, "
        .. "number(0..) weight_decay=0, bool maximize=false, bool foreach=true)",
    doc = "Stochastic gradient descent with an average of the parameters from step t0 on, opt.state[p].ax. The rate falls as "
        .. "lr / (1 + lambd * lr * step) ^ alpha.",
    start = function(p, _, lr) return { step = 0, eta = lr, mu = 1, ax = tide.zeros_like(p) } end,
    step_one = function(group, lr, p, grad, state)
        local eta, mu = number(state.eta), number(state.mu)
        if group.weight_decay ~= 0 then
            grad = grad:add(p, { alpha = group.weight_decay })
        end
        p:mul_(1 - group.lambd * eta)
        p:add_(grad, { alpha = -eta })
        if mu == 1 then
            state.ax:copy_(p)
        else
            state.ax:add_((p - state.ax):mul_(mu))
        end
        state.eta = lr / (1 + group.lambd * lr * state.step) ^ group.alpha
        state.mu = 1 / math.max(1, state.step - group.t0)
    end,
}

-- ---- Adafactor ----

local function mean_squares(grad, dim)
    return tide.linalg.vector_norm(grad, { dim = dim, keepdim = true }):square_():div_(grad:size(dim))
end

local function mean_root(x) return x:norm():item() / x:numel() ^ 0.5 end

local Adafactor = {
    schema = "Adafactor(list params, *, Tensor|number lr=0.01, number beta2_decay=-0.8, list? eps=nil, number(1..) d=1, "
        .. "number(0..) weight_decay=0, bool maximize=false, bool foreach=true)",
    doc = "Gradients divided by the root of a mean square that is kept as one row and one column for a matrix, so that the state is small; "
        .. "steps are relative to the parameter's size, at most lr of it. eps: {false (the dtype's), 0.001}: the least mean square, the "
        .. "least size. d: what an update is clipped to.",
    check = function(options)
        if options.beta2_decay > 0 then
            fail("Adafactor: option beta2_decay: expected a number up to 0, got %s", tide._number(options.beta2_decay))
        end
        options.eps = options.eps or { false, 1e-3 }
        local least, size = options.eps[1], options.eps[2]
        if least and not (math.type(least) and least >= 0) or not (math.type(size) and size >= 0) then
            fail("Adafactor: option eps: expected {false or a number from 0 on, a number from 0 on}")
        end
    end,
    start = function(p)
        if p:dim() < 2 then
            return { step = 0, variance = tide.zeros_like(p) }
        end
        local row, column = table.move(p.shape, 1, p:dim(), 1, {}), table.move(p.shape, 1, p:dim(), 1, {})
        row[#row], column[#column - 1] = 1, 1
        return { step = 0, row_var = p:new_zeros(row), col_var = p:new_zeros(column) }
    end,
    step_one = function(group, lr, p, grad, state)
        local least = group.eps[1] or tide.finfo(p.dtype).eps
        local weight = state.step ^ group.beta2_decay
        local rate = math.max(group.eps[2], mean_root(p)) * math.min(lr, 1 / state.step ^ 0.5)
        if group.weight_decay ~= 0 then
            p:mul_(1 - lr * group.weight_decay)
        end
        local mean
        if grad:dim() > 1 then
            follow(state.row_var, mean_squares(grad, -1), weight)
            follow(state.col_var, mean_squares(grad, -2), weight)
            mean = state.row_var:matmul(state.col_var):div_(state.row_var:mean(-2, { keepdim = true }):clamp_(least))
        else
            follow(state.variance, grad * grad, weight)
            mean = state.variance:clone()
        end
        local update = mean:clamp_(least * least):rsqrt_():mul_(grad)
        p:add_(update, { alpha = -rate / math.max(1, mean_root(update) / group.d) })
    end,
}

-- ---- Muon ----

-- The nearest matrix whose rows (or columns) are orthonormal, roughly: Newton and Schulz's iteration in bfloat16.
local function orthogonalized(x, group)
    local tall, a, b, c = x.shape[1] > x.shape[2], table.unpack(group.ns_coefficients)
    local y = x:to(tide.bfloat16, { copy = true })
    y = tall and y:t() or y
    y:div_(y:norm():clamp(group.eps))
    for _ = 1, group.ns_steps do
        local gram = y:matmul(y:t())
        y = tide.addmm(y, tide.addmm(gram, gram, gram, { beta = b, alpha = c }), y, { beta = a })
    end
    return tall and y:t() or y
end

local RATES = {
    original = function(rows, columns) return math.max(1, rows / columns) ^ 0.5 end,
    match_rms_adamw = function(rows, columns) return 0.2 * math.max(rows, columns) ^ 0.5 end,
    spectral_unclamped = function(rows, columns) return (rows / columns) ^ 0.5 end,
}

local Muon = {
    schema = "Muon(list params, *, Tensor|number lr=0.001, number(0..) weight_decay=0.1, number(0..) momentum=0.95, bool nesterov=true, "
        .. 'number[]? ns_coefficients=nil, number(0..) eps=1e-7, int(0..99) ns_steps=5, '
        .. '"original"|"match_rms_adamw"|"spectral_unclamped"? adjust_lr_fn=nil)',
    doc = "Momentum whose matrices are made orthogonal before they are added: for the weights of hidden layers, which are matrices; the other "
        .. "parameters go to AdamW. adjust_lr_fn: by what the rate of a matrix is scaled, \"original\" where it is nil. ns_coefficients: {3.4445, -4.775, 2.0315}.",
    check = function(options)
        options.ns_coefficients = options.ns_coefficients or { 3.4445, -4.775, 2.0315 }
        if #options.ns_coefficients ~= 3 then
            fail("Muon: option ns_coefficients: three numbers expected, got %d", #options.ns_coefficients)
        end
    end,
    start = function(p) return { step = 0, momentum_buffer = tide.zeros_like(p) } end,
    step_one = function(group, lr, p, grad, state)
        if p:dim() ~= 2 then
            fail("Muon: a parameter has shape %s, only matrices are taken: give the others to AdamW", tostring(p.shape))
        end
        follow(state.momentum_buffer, grad, 1 - group.momentum)
        local update = group.nesterov and grad:lerp(state.momentum_buffer, group.momentum) or state.momentum_buffer
        p:mul_(1 - lr * group.weight_decay)
        p:add_(orthogonalized(update, group), { alpha = -lr * RATES[group.adjust_lr_fn or "original"](p.shape[1], p.shape[2]) })
    end,
}

return function(define, read_rate)
    by_parameter(define, read_rate, ASGD)
    by_parameter(define, read_rate, Adafactor)
    by_parameter(define, read_rate, Muon)
end
