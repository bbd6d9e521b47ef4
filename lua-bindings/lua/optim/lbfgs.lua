-- optim/lbfgs.lua: L-BFGS (Nocedal and Wright, Numerical Optimization, algorithms 7.4, 7.5, 3.5 and 3.6): all
-- parameters are one vector, whose curvature is known from the last steps; with or without a line search that
-- meets the strong Wolfe conditions.
local tide = ...
local fail, declare = tide._fail, tide._function

-- ---- the parameters as one vector ----

local function flat_gradient(group)
    local parts = {}
    for k, p in ipairs(group.params) do
        parts[k] = p.grad and p.grad:reshape(-1) or tide.zeros({ p:numel() }, { dtype = p.dtype, device = p.device })
    end
    local flat = tide.cat(parts, 1)
    return group.maximize and -flat or flat
end

-- Parameters + length * direction.
local function move(group, length, direction)
    local from = 1
    for _, p in ipairs(group.params) do
        local n = p:numel()
        p:add_(direction:narrow(1, from, n):view_as(p), { alpha = length })
        from = from + n
    end
end

local function largest(x) return x:abs():max():item() end

local function evaluate(group, closure)
    local value = closure()
    local number = tide.is_tensor(value) and value:item() or value
    return group.maximize and -number or number, value
end

-- ---- the line search ----

-- The minimum within [low, high] of the cubic with these values and slopes at x1 and x2.
local function minimum_of_cubic(a, b, low, high)
    if not low then
        low, high = math.min(a.x, b.x), math.max(a.x, b.x)
    end
    local d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.x - b.x)
    local square = d1 * d1 - a.slope * b.slope
    if not (square >= 0) then
        return (low + high) / 2
    end
    local d2 = math.sqrt(square)
    if a.x > b.x then
        a, b = b, a
    end
    local at = b.x - (b.x - a.x) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return math.min(math.max(at, low), high)
end

local ARMIJO, CURVATURE = 1e-4, 0.9

-- Two points that enclose one that meets the conditions, or the point itself.
local function bracket(try, start, first, limit)
    local before, now, tries = start, try(first), 0
    while tries < limit do
        if now.f > start.f + ARMIJO * now.x * start.slope or (tries > 1 and now.f >= before.f) then
            return tries, before, now
        elseif math.abs(now.slope) <= -CURVATURE * start.slope then
            return tries, now
        elseif now.slope >= 0 then
            return tries, before, now
        end
        local x = minimum_of_cubic(before, now, now.x + 0.01 * (now.x - before.x), now.x * 10)
        before, now = now, try(x)
        tries = tries + 1
    end
    return tries, start, now
end

-- The next point to try between two; away from the ends where the last tries came no further.
local function choose_between(a, b, stuck)
    local low, high = math.min(a.x, b.x), math.max(a.x, b.x)
    local x, margin = minimum_of_cubic(a, b), 0.1 * (high - low)
    if not (math.min(high - x, x - low) < margin) then
        return x, false
    elseif not stuck and x < high and x > low then
        return x, true
    end
    return math.abs(x - high) < math.abs(x - low) and high - margin or low + margin, false
end

-- A point that meets the strong Wolfe conditions, or the best that was found.
local function strong_wolfe(try, start, first, limit, reach, tolerance)
    local tries, a, b = bracket(try, start, first, limit)
    if not b then
        return a
    end
    local points, stuck = { a, b }, false
    local low = a.f <= b.f and 1 or 2
    while tries < limit and math.abs(points[2].x - points[1].x) * reach >= tolerance do
        local x
        x, stuck = choose_between(points[1], points[2], stuck)
        local now = try(x)
        tries = tries + 1
        if now.f > start.f + ARMIJO * x * start.slope or now.f >= points[low].f then
            points[3 - low] = now
            low = points[1].f <= points[2].f and 1 or 2
        else
            local done = math.abs(now.slope) <= -CURVATURE * start.slope
            if not done and now.slope * (points[3 - low].x - points[low].x) >= 0 then
                points[3 - low] = points[low]
            end
            points[low] = now
            if done then
                break
            end
        end
    end
    return points[low]
end

-- The values along a direction from where the parameters are, to which they come back each time.
local function make_try(group, closure, direction, count)
    local before = {}
    for k, p in ipairs(group.params) do
        before[k] = p:detach():clone()
    end
    return function(x)
        move(group, x, direction)
        local f = evaluate(group, closure)
        local gradient = flat_gradient(group)
        for k, p in ipairs(group.params) do
            p:copy_(before[k])
        end
        count()
        return { x = x, f = f, gradient = gradient, slope = gradient:dot(direction):item() }
    end
end

-- ---- directions ----

-- Take the last step and what it changed of the gradient into the memory.
local function remember(state, group, gradient)
    local y, s = gradient - state.prev_flat_grad, state.d * state.t
    local ys = y:dot(s):item()
    if ys <= 1e-10 then
        return
    end
    if #state.old_dirs == group.history_size then
        for _, list in ipairs { state.old_dirs, state.old_stps, state.ro } do
            table.remove(list, 1)
        end
    end
    local n = #state.old_dirs + 1
    state.old_dirs[n], state.old_stps[n], state.ro[n] = y, s, 1 / ys
    state.H_diag = ys / y:dot(y):item()
end

-- Minus the gradient times the inverse Hessian as the memory has it.
local function next_direction(state, gradient)
    local q, al = -gradient, {}
    for k = #state.old_dirs, 1, -1 do
        al[k] = state.old_stps[k]:dot(q):item() * state.ro[k]
        q:add_(state.old_dirs[k], { alpha = -al[k] })
    end
    local d = q * state.H_diag
    for k = 1, #state.old_dirs do
        local be = state.old_dirs[k]:dot(d):item() * state.ro[k]
        d:add_(state.old_stps[k], { alpha = al[k] - be })
    end
    return d
end

local function turn(state, group, gradient)
    state.n_iter = state.n_iter + 1
    if state.n_iter == 1 then
        state.d, state.old_dirs, state.old_stps, state.ro, state.H_diag = -gradient, {}, {}, {}, 1
    else
        remember(state, group, gradient)
        state.d = next_direction(state, gradient)
    end
    state.prev_flat_grad = gradient:clone()
end

-- ---- the step ----

-- Move along state.d; returns the loss and the gradient there and how many evaluations it took.
local function advance(self, group, closure, at, left)
    local state, evaluations = self.state[group.params[1]], 0
    if group.line_search_fn then
        local try = make_try(group, closure, state.d, function() evaluations = evaluations + 1 end)
        local point = strong_wolfe(try, at, state.t, left, largest(state.d), group.tolerance_change)
        state.t = point.x
        move(group, point.x, state.d)
        return point.f, point.gradient or at.gradient, evaluations
    end
    move(group, state.t, state.d)
    if at.last then
        return at.f, at.gradient, 0
    end
    local f = evaluate(group, closure)
    return f, flat_gradient(group), 1
end

local function converged(group, state, gradient, f)
    return largest(gradient) <= group.tolerance_grad or largest(state.d * state.t) <= group.tolerance_change
        or math.abs(f - state.prev_loss) < group.tolerance_change
end

-- The first step is short, since nothing is known of the scale.
local function first_length(state, gradient, lr)
    return state.n_iter == 1 and math.min(1, 1 / gradient:abs():sum():item()) * lr or lr
end

local function step(self, closure)
    if type(self) ~= "table" or rawget(getmetatable(self) or {}, "__name") ~= "LBFGS" then
        fail("LBFGS.step: argument 1 (self): expected an LBFGS, got %s", tide._describe(self))
    end
    local _ <close> = tide.no_grad()
    local group = self.param_groups[1]
    local lr = tide.is_tensor(group.lr) and group.lr:item() or group.lr
    local state = self.state[group.params[1]] or { func_evals = 0, n_iter = 0 }
    self.state[group.params[1]] = state
    self.stepped = true
    local run = function() return tide.enable_grad(closure) end
    local f, loss = evaluate(group, run)
    local gradient, evaluations, iteration = flat_gradient(group), 1, 0
    state.func_evals = state.func_evals + 1
    if largest(gradient) <= group.tolerance_grad then
        return loss
    end
    repeat
        iteration = iteration + 1
        turn(state, group, gradient)
        state.prev_loss = f
        state.t = first_length(state, gradient, lr)
        local slope = gradient:dot(state.d):item()
        if slope > -group.tolerance_change then
            break
        end
        local more
        f, gradient, more = advance(self, group, run, { x = 0, f = f, gradient = gradient, slope = slope,
            last = iteration == group.max_iter }, group.max_eval - evaluations)
        evaluations, state.func_evals = evaluations + more, state.func_evals + more
    until iteration == group.max_iter or evaluations >= group.max_eval or converged(group, state, gradient, f)
    return loss
end

return function(define)
    local LBFGS = define {
        schema = "LBFGS(list params, *, Tensor|number lr=1, int(1..) max_iter=20, int? max_eval=nil, "
            .. "number tolerance_grad=1e-7, number tolerance_change=1e-9, int(1..) history_size=100, "
            .. "\"strong_wolfe\"? line_search_fn=nil, bool maximize=false)",
        doc = "Steps by a curvature that is known from the last steps; step(closure) computes the loss several times. "
            .. "max_eval: max_iter * 5 // 4.",
        check = function(options)
            options.max_eval = options.max_eval or options.max_iter * 5 // 4
        end,
        counts = false,
        shaped = false,
        single = true,
    }
    LBFGS.step = declare("step(Optimizer self, function closure) -> any",
        "Take up to max_iter steps. The closure computes the loss and its gradients; its first result is returned.", function(self, closure)
            self:_run_hooks("pre")
            local loss = step(self, closure)
            self:_run_hooks("post")
            return loss
        end)
end
