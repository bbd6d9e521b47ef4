-- quantization/watching.lua: what layers are given while a model runs.
local tide = ...

--- watch_inputs(model, layers, run, look): runs run(model), and look(layer, x) with the first argument of every call of the layers.
--- No gradients are recorded.
return function(model, layers, run, look)
    local hooks = {}
    for _, layer in ipairs(layers) do
        hooks[#hooks + 1] = layer:register_forward_pre_hook(function(_, arguments) look(layer, arguments[1]:detach()) end)
    end
    local ok, why = pcall(tide.no_grad, run, model)
    for _, hook in ipairs(hooks) do
        hook:remove()
    end
    if not ok then
        error(why, 0)
    end
end
