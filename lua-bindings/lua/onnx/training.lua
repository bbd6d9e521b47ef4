-- onnx/training.lua: ONNX's losses and steps of optimizers.
local tide = ...
local common = tide._require "onnx.common"
local operators = {}

-- The negative of the logarithms' entries at the classes, weighed and reduced.
local function negative_log(call, logs, classes, weight)
    local a, ignored = call.attributes, call.attributes.ignore_index
    local target = classes:to(tide.int64)
    local out = ignored and target:eq(ignored)
    local at = (out and tide.where(out, tide.zeros_like(target), target) or target) + 1
    local loss = -logs:gather(2, at:unsqueeze(2)):squeeze(2)
    local weights = weight and weight[at] or tide.ones_like(loss)
    if out then
        weights = weights * out:logical_not():to(weights.dtype)
    end
    loss = loss * weights
    local reduction = a.reduction or "mean"
    if reduction == "none" then
        return loss
    elseif reduction == "sum" then
        return loss:sum()
    end
    return loss:sum() / ((weight or out) and weights:sum() or loss:numel())
end

operators.NegativeLogLikelihoodLoss = negative_log

function operators.SoftmaxCrossEntropyLoss(call, scores, classes, weight)
    local logs = scores:log_softmax(2)
    return negative_log(call, logs, classes, weight), logs
end

-- ---- optimizers: rate, step, then parameters, gradients and states, group by group ----

-- Calls update(parameter, gradient, states...) for each parameter and orders what it returns by kind.
local function stepped(count, update)
    return function(call, rate, step, ...)
        local all, results = { ... }, {}
        local n = #all // count
        for k = 1, n do
            local own = {}
            for j = 1, count do
                own[j] = all[(j - 1) * n + k]
            end
            for j, value in ipairs { update(call.attributes, common.number(rate), common.number(step), table.unpack(own)) } do
                results[(j - 1) * n + k] = value
            end
        end
        return table.unpack(results)
    end
end
local PREVIEW <const> = "ai.onnx.preview.training."

operators[PREVIEW .. "Adagrad"] = stepped(3, function(a, rate, step, x, g, h)
    g = g + x * (a.norm_coefficient or 0)
    h = h + g * g
    return x - g * (rate / (1 + step * (a.decay_factor or 0))) / (h:sqrt() + (a.epsilon or 0)), h
end)

operators[PREVIEW .. "Momentum"] = stepped(3, function(a, rate, step, x, g, v)
    g = g + x * (a.norm_coefficient or 0)
    v = v * a.alpha + g * (step > 0 and a.beta or 1)
    return x - (a.mode == "nesterov" and g + v * a.alpha or v) * rate, v
end)

operators[PREVIEW .. "Adam"] = stepped(4, function(a, rate, step, x, g, v, h)
    local alpha, beta = a.alpha or 0.9, a.beta or 0.999
    g = g + x * (a.norm_coefficient or 0)
    v, h = v * alpha + g * (1 - alpha), h * beta + g * g * (1 - beta)
    if step > 0 then
        rate = rate * math.sqrt(1 - beta ^ step) / (1 - alpha ^ step)
    end
    x = x - v / (h:sqrt() + (a.epsilon or 0)) * rate
    return x * (1 - (a.norm_coefficient_post or 0)), v, h
end)

return operators
