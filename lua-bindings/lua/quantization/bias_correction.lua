-- quantization/bias_correction.lua: what rounded weights shift the mean of a layer's results by, taken off its bias (Nagel and
-- others, "Data-Free Quantization", 2019).
local tide = ...
local fail = tide._fail
local tree, watch_inputs = tide._require "quantization.folding", tide._require "quantization.watching"

return function(quantization)
    local nn = tide.nn
    local LAYERS <const> = { nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d }

    -- The weight of a quantized layer as floats, and of any other nothing.
    local function floats_of(layer)
        if layer.dequantize then
            return layer:dequantize()
        end
        return tide.is_tensor(layer.weight) and layer.weight.is_quantized and layer.weight:dequantize() or nil
    end

    -- The mean of each input channel.
    local function channel_means(layer, x)
        x = tree.is_a(layer, nn.Linear) and x:reshape(-1, layer.in_features) or x:transpose(1, -layer.weight.ndim + 1)
            :reshape(layer.in_channels, -1):t()
        return x:double():mean(1)
    end

    -- What the results of a weight that is off by `error` (out, in / groups, kernel) are off by in the mean.
    local function shift_of(error, means, groups)
        local out = error.shape[1]
        local by_channel = error:double():reshape(groups, out // groups, error.shape[2], -1):sum(4)
        return (by_channel * means:view(groups, 1, -1)):sum(3):view(-1)
    end

    local function parts_of(model)
        local parts = {}
        for name, module in model:named_modules() do
            parts[name] = module
        end
        return parts
    end

    quantization.correct_bias = tide._function("correct_bias(Module model, Module quantized, function run) -> Module",
        "A copy of a quantized model whose biases make up for what rounded weights shift the means of results by. model: what it was made "
        .. "of, with layers of the same names; run(model) calls that with data. Weights of few data or of few bits gain most.",
        function(model, small, run)
            local _ <close> = tide.no_grad()
            local fused, copy, layers, means, calls = model:clone():eval(), small:clone(), {}, {}, {}
            tree.fold(fused)
            local floats, rounded = parts_of(fused), parts_of(copy)
            for name, layer in pairs(floats) do
                for _, class in ipairs(LAYERS) do
                    if tree.is_a(layer, class) and rounded[name] and floats_of(rounded[name]) then
                        layers[#layers + 1] = layer
                    end
                end
            end
            if #layers == 0 then
                fail("correct_bias: no layer of the quantized model has the name of one of the model's")
            end
            watch_inputs(fused, layers, run, function(layer, x)
                local mean = channel_means(layer, x)
                means[layer], calls[layer] = means[layer] and means[layer] + mean or mean, (calls[layer] or 0) + 1
            end)
            for name, layer in pairs(floats) do
                if means[layer] then
                    local there = rounded[name]
                    local shift = shift_of(floats_of(there) - layer.weight:detach():float(), means[layer] / calls[layer], layer.groups or 1)
                    if there.bias then
                        there.bias = (there.bias:double() - shift):float()
                    else
                        there:register_buffer("bias", (-shift):float())
                    end
                end
            end
            return copy
        end)
end
