-- quantization/smoothing.lua: outliers of activations moved into the weights behind a norm (Xiao and others, "SmoothQuant", 2022).
local tide = ...
local fail = tide._fail
local tree, watch_inputs = tide._require "quantization.folding", tide._require "quantization.watching"

local LEAST <const> = 1e-5 -- of a factor

return function(quantization)
    local nn = tide.nn

    local function is_norm(module)
        return (tree.is_a(module, nn.LayerNorm) or tree.is_a(module, nn.RMSNorm)) and module.weight and module.weight.ndim == 1
    end

    local function part_of(model, name)
        local ok, module = pcall(model.get_submodule, model, name)
        return ok and module or fail("smooth: the model has no part '%s'", tostring(name))
    end

    -- A norm and the linear layers that take what it gives, by their names.
    local function named_set(model, names)
        local set = { norm = part_of(model, names[1]) }
        for k = 2, #names do
            set[k - 1] = part_of(model, names[k])
            if not tree.is_a(set[k - 1], nn.Linear) or set[k - 1].in_features ~= set.norm.weight.shape[1] then
                fail("smooth: '%s' is no linear layer of what '%s' gives", names[k], names[1])
            end
        end
        if not is_norm(set.norm) or #set == 0 then
            fail("smooth: a layer norm with weights over one dim, then linear layers, expected: %s", table.concat(names, ", "))
        end
        return set
    end

    -- Norms whose neighbour in a Sequential is a linear layer.
    local function neighbours(model)
        local sets = {}
        for _, module in model:named_modules() do
            local before
            for _, child in module:named_children() do
                if tree.is_a(module, nn.Sequential) and before and is_norm(before) and tree.is_a(child, nn.Linear) then
                    sets[#sets + 1] = { norm = before, child }
                end
                before = child
            end
        end
        return sets
    end

    local function move(set, seen, alpha)
        local most
        for _, linear in ipairs(set) do
            local largest = linear.weight:abs():amax(1)
            most = most and tide.maximum(most, largest) or largest
        end
        local factors = seen:pow(alpha) / most:clamp(LEAST):pow(1 - alpha)
        factors = tide.where(seen:gt(0), factors:clamp(LEAST), tide.ones_like(factors))
        set.norm.weight:div_(factors)
        if set.norm.bias then
            set.norm.bias:div_(factors)
        end
        for _, linear in ipairs(set) do
            linear.weight:mul_(factors)
        end
    end

    quantization.smooth = tide._function("smooth(Module model, function run, *, number alpha=0.5, list? layers=nil) -> Module",
        "A copy of the model that gives the same, whose linear layers behind a layer norm or RMS norm meet smaller outliers: each "
        .. "channel is divided by max|x|^alpha / max|w|^(1 - alpha) in the norm and multiplied by it in the weights (SmoothQuant). "
        .. "run(model) calls the model with data. layers: lists of names, a norm and then the linear layers that alone take what "
        .. "it gives; as if nothing is said those that follow one another in a Sequential.", function(model, run, alpha, layers)
            local _ <close> = tide.no_grad()
            local copy, sets, linears, seen = model:clone(), {}, {}, {}
            for k, names in ipairs(layers or {}) do
                sets[k] = named_set(copy, names)
            end
            sets = layers and sets or neighbours(copy)
            for k, set in ipairs(sets) do
                linears[k] = set[1]
            end
            watch_inputs(copy, linears, run, function(layer, x)
                local most = x:float():abs():reshape(-1, layer.in_features):amax(1)
                seen[layer] = seen[layer] and tide.maximum(seen[layer], most) or most
            end)
            for _, set in ipairs(sets) do
                if seen[set[1]] then
                    move(set, seen[set[1]], alpha)
                end
            end
            return copy
        end)
end
