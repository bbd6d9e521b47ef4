-- quantization/equalization.lua: channels of layers that follow one another scaled to the same range (Nagel and others,
-- "Data-Free Quantization", 2019).
local tide = ...
local tree = tide._require "quantization.folding"

local ROUNDS <const>, ENOUGH <const> = 20, 1e-4

return function(quantization)
    local nn = tide.nn
    local LAYERS <const> = { nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d }
    -- What stands between two layers and gives s * y for s * x, by channel and for s > 0.
    local BETWEEN <const> = { nn.Identity, nn.ReLU, nn.LeakyReLU, nn.Dropout, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d,
        nn.AvgPool2d, nn.AvgPool3d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d }

    local function is_one_of(module, classes)
        for _, class in ipairs(classes) do
            if tree.is_a(module, class) then
                return true
            end
        end
        return false
    end

    local function outputs(layer) return layer.out_features or layer.out_channels end
    local function inputs(layer) return layer.in_features or layer.in_channels end
    local function is_depthwise(layer) return (layer.groups or 1) > 1 and layer.groups == layer.in_channels and layer.groups == layer.out_channels end

    -- The weight with what input channel it meets in front, (in, rest).
    local function by_input(layer)
        local weight = is_depthwise(layer) and layer.weight or layer.weight:transpose(1, 2)
        return weight:reshape(weight.shape[1], -1)
    end

    local function shaped(factors, ndim, dim)
        local sizes = {}
        for k = 1, ndim do
            sizes[k] = k == dim and factors.shape[1] or 1
        end
        return factors:view(sizes)
    end

    -- Factors of one round; how far they are from 1.
    local function equalize(first, second)
        local out, into = first.weight:reshape(first.weight.shape[1], -1):abs():amax(2), by_input(second):abs():amax(2)
        local factors = (out / into):sqrt()
        factors = tide.where(out:gt(0) & into:gt(0), factors, tide.ones_like(factors))
        first.weight:div_(shaped(factors, first.weight.ndim, 1))
        if first.bias then
            first.bias:div_(factors)
        end
        second.weight:mul_(shaped(factors, second.weight.ndim, is_depthwise(second) and 1 or 2))
        return (factors - 1):abs():amax():item()
    end

    local function follows(first, second)
        return first and inputs(second) == outputs(first) and ((second.groups or 1) == 1 or is_depthwise(second))
            and tree.is_a(first, nn.Linear) == tree.is_a(second, nn.Linear)
    end

    -- Layers in Sequentials of which the second alone takes what the first gives.
    local function neighbours(model)
        local pairs_of = {}
        for _, module in model:named_modules() do
            local before
            for _, child in module:named_children() do
                if not tree.is_a(module, nn.Sequential) then
                    break
                elseif is_one_of(child, LAYERS) then
                    if follows(before, child) then
                        pairs_of[#pairs_of + 1] = { before, child }
                    end
                    before = child
                elseif not is_one_of(child, BETWEEN) then
                    before = nil
                end
            end
        end
        return pairs_of
    end

    quantization.equalize = tide._function("equalize(Module model) -> Module",
        "A copy of the model, in evaluation, that gives the same, and whose neighbouring layers in a Sequential (linear ones, convolutions and "
        .. "depthwise ones, with ReLU, LeakyReLU or pooling between them) have each channel scaled so that its weights behind are as large as its "
        .. "weights before: what a scale for a whole weight loses, channels of other ranges, is gone. Batch norms are folded first.",
        function(model)
            local _ <close> = tide.no_grad()
            local copy = model:clone():eval()
            tree.fold(copy)
            local pairs_of = neighbours(copy)
            for _ = 1, ROUNDS do
                local change = 0
                for _, pair in ipairs(pairs_of) do
                    change = math.max(change, equalize(pair[1], pair[2]))
                end
                if change < ENOUGH then
                    break
                end
            end
            return copy
        end)
end
