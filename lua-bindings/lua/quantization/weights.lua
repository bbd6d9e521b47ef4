-- quantization/weights.lua: quantize_weights: linear layers whose weights alone have few bits.
local tide = ...
local tree, groups = tide._require "quantization.folding", tide._require "quantization.groups"

return function(quantization)
    local nn = tide.nn

    quantization.quantize_weights = tide._function(
        'quantize_weights(Module model, *, "int8"|"int4"|"int6" dtype="int8", int(1..)? group_size=nil, bool? symmetric=nil, function? filter=nil) -> Module',
        "A copy of the model whose linear layers are tide.nn.quantized.WeightOnlyLinear: weights of 8, 6 or 4 bits, floats in and "
        .. "out, and no data to calibrate with. filter: filter(layer, name) says which layers are replaced. What torchao's "
        .. "quantize_ does with int8_weight_only and int4_weight_only.", function(model, dtype, size, symmetric, filter)
            local options = { dtype = dtype, group_size = size, symmetric = symmetric }
            local function replaced(layer) return nn.quantized.WeightOnlyLinear.from_float(layer, options) end
            if tree.is_a(model, nn.Linear) then
                return replaced(model)
            end
            local copy, names = model:clone(), {}
            for name, module in copy:named_modules() do
                names[module] = name
            end
            tree.each(copy, { nn.Linear }, function(parent, children, k)
                local layer = parent[children[k]]
                if not filter or filter(layer, names[layer]) then
                    groups.check(layer, string.format("quantize_weights: layer '%s'", names[layer]))
                    parent[children[k]] = replaced(layer)
                end
            end)
            return copy
        end)
end
