-- optim/steps.lua: the optimizers whose step is a recipe: formulas over a parameter, its gradient and its
-- state, which the engine runs over all parameters at once (engine/ops/neural/optim.c). Each formula computes what
-- the loop of operators would, in its order, so that both have the same bits.
local tide = ...
local fail = tide._fail

-- A moving average as lerp computes it: which of its two forms is known here.
local function lerp(x, target, weight, number)
    if number < 0.5 then
        return string.format("%s = %s + %s * (%s - %s)", x, x, weight, target, x)
    end
    return string.format("%s = %s - (%s - %s) * (1 - %s)", x, target, target, x, weight)
end

-- What every optimizer does to the gradient first: g. `shrink` and `decay` are numbers of the recipe.
local function gradient(group)
    local text = { group.maximize and "g = -grad" or "g = grad" }
    if group.weight_decay ~= 0 and group.decoupled_weight_decay then
        text[2] = "param = param * shrink"
    elseif group.weight_decay ~= 0 then
        text[2] = "g = g + decay * param"
    end
    return text
end

local function recipe(names, text) return names .. ": " .. table.concat(text, "; ") end

-- A list that was given as its one number.
local function list_of(value) return math.type(value) and { value } or value end

local function check_betas(name, options)
    options.betas = list_of(options.betas or { 0.9, 0.999 })
    if #options.betas ~= 2 then
        fail("%s: option betas: two numbers expected, got %d", name, #options.betas)
    end
    for k, beta in ipairs(options.betas) do
        if not (beta >= 0 and beta < 1) then
            fail("%s: option betas: number %d must be from 0 to below 1, got %s", name, k, tide._number(beta))
        end
    end
end

return function(define)
    -- ---- SGD ----

    define {
        schema = "SGD(list params, *, Tensor|number lr=0.001, number(0..) momentum=0, number dampening=0, "
            .. "number(0..) weight_decay=0, bool nesterov=false, bool maximize=false, bool foreach=true)",
        doc = "Stochastic gradient descent. params: a list of tensors, or of groups {params = ..., lr = ...}; "
            .. "step(), zero_grad().",
        check = function(options)
            if options.nesterov and (options.momentum <= 0 or options.dampening ~= 0) then
                fail("SGD: nesterov needs a momentum above 0 and no dampening")
            end
        end,
        step = tide._sgd_step,
        states = function(group) return group.momentum ~= 0 and { "momentum_buffer" } or {} end,
        counts = false,
        start = function(p, group)
            return group.momentum ~= 0 and { momentum_buffer = tide.empty_like(p) } or nil
        end,
        recipe = function(group, lr, _, starts)
            local text, change = gradient(group), "g"
            if group.momentum ~= 0 then
                text[#text + 1] = starts and "momentum_buffer = g"
                    or "momentum_buffer = momentum_buffer * momentum + keep * g"
                change = group.nesterov and "(g + momentum * momentum_buffer)" or "momentum_buffer"
            end
            text[#text + 1] = "param = param + rate * " .. change
            return recipe("param grad" .. (group.momentum ~= 0 and " momentum_buffer" or "") .. " rate momentum keep decay",
                text), { -lr, group.momentum, 1 - group.dampening, group.weight_decay }
        end,
    }

    -- ---- Adam and its kin ----

    local function moments(p)
        return { step = 0, exp_avg = tide.zeros_like(p), exp_avg_sq = tide.zeros_like(p) }
    end
    local MOMENTS = "exp_avg_sq = exp_avg_sq * beta2 + keep * g * g"

    local function adam(name, decay, decoupled, step)
        define {
            schema = name .. "(list params, *, Tensor|number lr=0.001, number[]? betas=nil, number(0..) eps=1e-8, "
                .. "number(0..) weight_decay=" .. decay .. ", bool amsgrad=false, bool maximize=false, bool foreach=true, "
                .. "bool decoupled_weight_decay=" .. decoupled .. ")",
            doc = name .. (name == "AdamW" and ": Adam whose weight decay shrinks the parameters themselves"
                or ": steps of a size of their own for each element") .. ". betas: {0.9, 0.999}.",
            check = function(options) check_betas(name, options) end,
            step = step,
            states = function(group)
                return group.amsgrad and { "exp_avg", "exp_avg_sq", "max_exp_avg_sq" } or { "exp_avg", "exp_avg_sq" }
            end,
            start = function(p, group)
                local state = moments(p)
                state.max_exp_avg_sq = group.amsgrad and tide.zeros_like(p) or nil
                return state
            end,
            recipe = function(group, lr, n)
                local beta1, beta2 = group.betas[1], group.betas[2]
                local text = gradient(group)
                text[#text + 1] = lerp("exp_avg", "g", "weight", 1 - beta1)
                text[#text + 1] = MOMENTS
                local names, square = "param grad exp_avg exp_avg_sq", "exp_avg_sq"
                if group.amsgrad then
                    names, square = names .. " max_exp_avg_sq", "max_exp_avg_sq"
                    text[#text + 1] = "max_exp_avg_sq = maximum(max_exp_avg_sq, exp_avg_sq)"
                end
                -- PyTorch divides the root by this number, then adds eps: taken out of the fraction, it costs nothing
                local root = (1 - beta2 ^ n) ^ 0.5
                text[#text + 1] = string.format("param = param + rate * exp_avg / (sqrt(%s) + eps)", square)
                return recipe(names .. " rate weight beta2 keep eps decay shrink", text), {
                    -(lr / (1 - beta1 ^ n)) * root, 1 - beta1, beta2, 1 - beta2, group.eps * root,
                    group.weight_decay, 1 - lr * group.weight_decay }
            end,
        }
    end
    adam("Adam", "0", "false", tide._adam_step)
    adam("AdamW", "0.01", "true", tide._adamw_step)

    define {
        schema = "Adamax(list params, *, Tensor|number lr=0.002, number[]? betas=nil, number(0..) eps=1e-8, "
            .. "number(0..) weight_decay=0, bool maximize=false, bool foreach=true)",
        doc = "Adam by the largest gradient instead of the mean square. betas: {0.9, 0.999}.",
        check = function(options) check_betas("Adamax", options) end,
        step = tide._adamax_step,
        states = function() return { "exp_avg", "exp_inf" } end,
        start = function(p) return { step = 0, exp_avg = tide.zeros_like(p), exp_inf = tide.zeros_like(p) } end,
        recipe = function(group, lr, n)
            local beta1, beta2 = group.betas[1], group.betas[2]
            local text = gradient(group)
            text[#text + 1] = lerp("exp_avg", "g", "weight", 1 - beta1)
            text[#text + 1] = "exp_inf = maximum(exp_inf * beta2, abs(g) + eps)"
            text[#text + 1] = "param = param + rate * exp_avg / exp_inf"
            return recipe("param grad exp_avg exp_inf rate weight beta2 eps decay", text),
                { -(lr / (1 - beta1 ^ n)), 1 - beta1, beta2, group.eps, group.weight_decay }
        end,
    }

    define {
        schema = "NAdam(list params, *, Tensor|number lr=0.002, number[]? betas=nil, number(0..) eps=1e-8, "
            .. "number(0..) weight_decay=0, number(0..) momentum_decay=0.004, bool decoupled_weight_decay=false, "
            .. "bool maximize=false, bool foreach=true)",
        doc = "Adam with Nesterov's momentum. betas: {0.9, 0.999}.",
        check = function(options) check_betas("NAdam", options) end,
        step = tide._nadam_step,
        states = function() return { "exp_avg", "exp_avg_sq" } end,
        start = function(p)
            local state = moments(p)
            state.mu_product = 1.0
            return state
        end,
        -- The product of all momenta so far is a number that each parameter brings along.
        carries = "mu_product",
        carry = function(group, n, product)
            return product * (group.betas[1] * (1 - 0.5 * 0.96 ^ (n * group.momentum_decay)))
        end,
        recipe = function(group, lr, n, _, product)
            local beta1, beta2 = group.betas[1], group.betas[2]
            local mu = beta1 * (1 - 0.5 * 0.96 ^ (n * group.momentum_decay))
            local following = beta1 * (1 - 0.5 * 0.96 ^ ((n + 1) * group.momentum_decay))
            local text = gradient(group)
            text[#text + 1] = lerp("exp_avg", "g", "weight", 1 - beta1)
            text[#text + 1] = MOMENTS
            text[#text + 1] = "denom = sqrt(exp_avg_sq / correction) + eps"
            text[#text + 1] = "param = param + of_grad * g / denom"
            text[#text + 1] = "param = param + of_avg * exp_avg / denom"
            return recipe("param grad exp_avg exp_avg_sq of_grad of_avg weight beta2 keep correction eps decay shrink", text),
                { -lr * (1 - mu) / (1 - product), -lr * following / (1 - product * following), 1 - beta1, beta2, 1 - beta2,
                    1 - beta2 ^ n, group.eps, group.weight_decay, 1 - lr * group.weight_decay }
        end,
    }

    define {
        schema = "RAdam(list params, *, Tensor|number lr=0.001, number[]? betas=nil, number(0..) eps=1e-8, "
            .. "number(0..) weight_decay=0, bool decoupled_weight_decay=false, bool maximize=false, bool foreach=true)",
        doc = "Adam that begins as momentum alone, until the mean square can be trusted. betas: {0.9, 0.999}.",
        check = function(options) check_betas("RAdam", options) end,
        step = tide._radam_step,
        states = function() return { "exp_avg", "exp_avg_sq" } end,
        start = moments,
        recipe = function(group, lr, n)
            local beta1, beta2 = group.betas[1], group.betas[2]
            local correction = 1 - beta2 ^ n
            local longest = 2 / (1 - beta2) - 1
            local length = longest - 2 * n * beta2 ^ n / correction
            local text, rectified = gradient(group), 0
            text[#text + 1] = lerp("exp_avg", "g", "weight", 1 - beta1)
            text[#text + 1] = MOMENTS
            if length > 5 then
                rectified = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ^ 0.5
                text[#text + 1] =
                    "param = param - exp_avg / correction1 * rate * (root / (sqrt(exp_avg_sq) + eps)) * rectified"
            else
                text[#text + 1] = "param = param - exp_avg / correction1 * rate"
            end
            return recipe("param grad exp_avg exp_avg_sq rate correction1 weight beta2 keep root rectified eps decay shrink",
                text), { lr, 1 - beta1 ^ n, 1 - beta1, beta2, 1 - beta2, correction ^ 0.5, rectified, group.eps,
                group.weight_decay, 1 - lr * group.weight_decay }
        end,
    }

    -- ---- others ----

    define {
        schema = "RMSprop(list params, *, Tensor|number lr=0.01, number(0..) alpha=0.99, number(0..) eps=1e-8, "
            .. "number(0..) weight_decay=0, number(0..) momentum=0, bool centered=false, bool maximize=false, "
            .. "bool foreach=true)",
        doc = "Gradients divided by the root of their mean square.",
        step = tide._rmsprop_step,
        states = function(group)
            local names = { "square_avg" }
            names[#names + 1] = group.momentum > 0 and "momentum_buffer" or nil
            names[#names + 1] = group.centered and "grad_avg" or nil
            return names
        end,
        start = function(p, group)
            return { step = 0, square_avg = tide.zeros_like(p),
                momentum_buffer = group.momentum > 0 and tide.zeros_like(p) or nil,
                grad_avg = group.centered and tide.zeros_like(p) or nil }
        end,
        recipe = function(group, lr)
            local text, names, mean = gradient(group), "param grad square_avg", "square_avg"
            text[#text + 1] = "square_avg = square_avg * alpha + keep * g * g"
            names = names .. (group.momentum > 0 and " momentum_buffer" or "")
            if group.centered then
                names, mean = names .. " grad_avg", "(square_avg - grad_avg * grad_avg)"
                text[#text + 1] = lerp("grad_avg", "g", "keep", 1 - group.alpha)
            end
            text[#text + 1] = string.format("root = sqrt(%s) + eps", mean)
            if group.momentum > 0 then
                text[#text + 1] = "momentum_buffer = momentum_buffer * momentum + g / root"
                text[#text + 1] = "param = param + rate * momentum_buffer"
            else
                text[#text + 1] = "param = param + rate * g / root"
            end
            return recipe(names .. " rate alpha keep eps momentum decay", text),
                { -lr, group.alpha, 1 - group.alpha, group.eps, group.momentum, group.weight_decay }
        end,
    }

    define {
        schema = "Rprop(list params, *, Tensor|number lr=0.01, number[]? etas=nil, number[]? step_sizes=nil, "
            .. "bool maximize=false, bool foreach=true)",
        doc = "Steps by the sign of the gradient, longer where it stays, shorter where it changes. etas: {0.5, 1.2}, "
            .. "step_sizes: {1e-6, 50}.",
        check = function(options)
            options.etas = list_of(options.etas or { 0.5, 1.2 })
            options.step_sizes = list_of(options.step_sizes or { 1e-6, 50.0 })
            local low, high = table.unpack(options.etas)
            if #options.etas ~= 2 or not (low and high and low > 0 and low < 1 and high > 1) then
                fail("Rprop: option etas: a number between 0 and 1 and one above 1 expected")
            elseif #options.step_sizes ~= 2 then
                fail("Rprop: option step_sizes: two numbers expected, got %d", #options.step_sizes)
            end
        end,
        step = tide._rprop_step,
        states = function() return { "prev", "step_size" } end,
        start = function(p, _, lr) return { step = 0, prev = tide.zeros_like(p), step_size = tide.full_like(p, lr) } end,
        recipe = function(group)
            local text = { group.maximize and "g = -grad" or "g = grad" }
            text[#text + 1] = "turn = sign(g * prev)"
            text[#text + 1] = "step_size = minimum(maximum(step_size * "
                .. "where(gt(turn, 0), up, where(lt(turn, 0), down, 1)), shortest), longest)"
            text[#text + 1] = "prev = where(lt(turn, 0), 0, g)"
            text[#text + 1] = "param = param - sign(prev) * step_size"
            return recipe("param grad prev step_size down up shortest longest", text),
                { group.etas[1], group.etas[2], group.step_sizes[1], group.step_sizes[2] }
        end,
    }

    define {
        schema = "Adagrad(list params, *, Tensor|number lr=0.01, number(0..) lr_decay=0, number(0..) weight_decay=0, "
            .. "number(0..) initial_accumulator_value=0, number(0..) eps=1e-10, bool maximize=false, bool foreach=true)",
        doc = "Gradients divided by the root of the sum of their squares.",
        step = tide._adagrad_step,
        states = function() return { "sum" } end,
        eager = true,
        start = function(p, group)
            return { step = 0, sum = tide.full_like(p, group.initial_accumulator_value) }
        end,
        recipe = function(group, lr, n)
            local text = gradient(group)
            text[#text + 1] = "sum = sum + g * g"
            text[#text + 1] = "param = param + rate * g / (sqrt(sum) + eps)"
            return recipe("param grad sum rate eps decay", text),
                { -(lr / (1 + (n - 1) * group.lr_decay)), group.eps, group.weight_decay }
        end,
    }

    define {
        schema = "Adadelta(list params, *, Tensor|number lr=1.0, number(0..1) rho=0.9, number(0..) eps=1e-6, "
            .. "number(0..) weight_decay=0, bool maximize=false, bool foreach=true)",
        doc = "Steps as long as those before, by the ratio of their mean square to that of the gradients.",
        step = tide._adadelta_step,
        states = function() return { "square_avg", "acc_delta" } end,
        start = function(p) return { step = 0, square_avg = tide.zeros_like(p), acc_delta = tide.zeros_like(p) } end,
        recipe = function(group, lr)
            local text = gradient(group)
            text[#text + 1] = "square_avg = square_avg * rho + keep * g * g"
            text[#text + 1] = "delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g"
            text[#text + 1] = "acc_delta = acc_delta * rho + keep * delta * delta"
            text[#text + 1] = "param = param + rate * delta"
            return recipe("param grad square_avg acc_delta rate rho keep eps decay", text),
                { -lr, group.rho, 1 - group.rho, group.eps, group.weight_decay }
        end,
    }
end
