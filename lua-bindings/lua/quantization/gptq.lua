-- quantization/gptq.lua: weights of few bits rounded one column after the other, so that later columns make up for the errors
-- of earlier ones on the data that the layer meets (Frantar and others, "GPTQ", 2022).
local tide = ...
local fail = tide._fail
local tree, groups = tide._require "quantization.folding", tide._require "quantization.groups"
local watch_inputs = tide._require "quantization.watching"

-- The sums of x^T x over all that each layer is given while run(model) runs.
local function second_moments(model, layers, run)
    local sums = {}
    watch_inputs(model, layers, run, function(layer, x)
        x = x:double():reshape(-1, layer.in_features)
        sums[layer] = sums[layer] and sums[layer] + x:t():mm(x) or x:t():mm(x)
    end)
    return sums
end

-- The upper factor of the inverse of a matrix of second moments, whose diagonal is raised by a share of its mean. A feature that
-- is always 0 has no say.
local function inverse_factor(moments, damping)
    local diagonal = moments:diagonal()
    local mean = diagonal:mean():item()
    if not (mean > 0 and mean < math.huge) then
        return nil
    end
    local raised = moments + tide.eye(moments.shape[1], { dtype = tide.float64 }) * (damping * mean)
    -- With both orders turned round, a lower factor's inverse is the upper factor of the inverse.
    local lower = tide.linalg.cholesky(raised:flip { 1, 2 })
    return tide.linalg.solve_triangular(lower, tide.eye(raised.shape[1], { dtype = tide.float64 }), { upper = false }):flip { 1, 2 }
end

-- The integers, scales and mins of a weight, group by group. U is the factor of the inverse: what column k is off by, over U[k][k],
-- is taken off the columns behind it in the measure of U's row k. Columns lie as rows here.
local function compensate(weight, U, bits, size, symmetric)
    local columns, rows = weight.shape[2], weight.shape[1]
    local diagonal = U:diagonal():tolist()
    U = U:float()
    local w, ints, scales, zeros = weight:float():t():contiguous(), tide.zeros(columns, rows), {}, {}
    local first = 1
    while first <= columns do
        local last = math.min(first + size - 1, columns)
        local part = w[{ { first, last }, {} }]
        local scale, zero = groups.choose(part:t():contiguous(), bits, size, symmetric)
        scales[#scales + 1], zeros[#zeros + 1] = scale, zero
        local s, z = scale:view(-1), zero and zero:view(-1)
        local middle, errors = z or 1 << (bits - 1), tide.zeros(last - first + 1, rows)
        for k = first, last do
            local column = w[k]
            local q = groups.round_to(column, s, z, bits)
            ints[k] = q
            local off = (column - (q - middle) * s) / diagonal[k]
            errors[k - first + 1] = off
            if k < last then
                w[{ { k + 1, last } }]:addr_(U[{ k, { k + 1, last } }], off, { alpha = -1 })
            end
        end
        if last < columns then
            w[{ { last + 1, columns } }]:addmm_(U[{ { first, last }, { last + 1, columns } }]:t(), errors, { alpha = -1 })
        end
        first = last + 1
    end
    scales = tide.cat(scales, 2)
    return ints:t():to(tide.uint8):contiguous(), scales, not symmetric and scales * tide.cat(zeros, 2) or nil
end

return function(quantization)
    local nn = tide.nn

    quantization.gptq = tide._function('gptq(Module model, function run, *, "int8"|"int4"|"int6" dtype="int4", int(1..)? group_size=nil, '
        .. "bool? symmetric=nil, number damping=0.01, function? filter=nil) -> Module",
        "What quantize_weights makes, with weights rounded for data: run(model) calls the model with some, and each layer's columns "
        .. "are rounded in turn, later ones making up for what earlier ones are off by there (GPTQ). damping: the share of the mean "
        .. "second moment that is added to each. A layer that run does not reach is rounded to the nearest.",
        function(model, run, dtype, size, symmetric, damping, filter)
            local _ <close> = tide.no_grad()
            local copy, places, layers = model:clone():eval(), {}, {}
            if tree.is_a(copy, nn.Linear) then
                fail("gptq: a model that holds linear layers expected: nn.Sequential(layer)")
            end
            local names = {}
            for name, module in copy:named_modules() do
                names[module] = name
            end
            tree.each(copy, { nn.Linear }, function(parent, children, k)
                local layer = parent[children[k]]
                if not filter or filter(layer, names[layer]) then
                    places[#places + 1], layers[#layers + 1] = { parent, children[k] }, layer
                end
            end)
            local moments = second_moments(copy, layers, run)
            for k, layer in ipairs(layers) do
                local small = nn.quantized.WeightOnlyLinear.from_float(layer, { dtype = dtype, group_size = size, symmetric = symmetric })
                local U = moments[layer] and inverse_factor(moments[layer], damping)
                if U then
                    small:set_ints(compensate(layer.weight:detach(), U, small.bits, small.group_size, small.symmetric))
                end
                places[k][1][places[k][2]] = small
            end
            return copy
        end)
end
