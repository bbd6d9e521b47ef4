-- autograd.lua: tide.autograd: gradients as values, and checks of gradients against differences.
local tide = ...
local raw, fail = tide._autograd, tide._fail
local autograd = { grad = raw.grad, backward = raw.backward }

local function as_list(...)
    local list = {}
    for k = 1, select("#", ...) do
        local x = select(k, ...)
        if tide.is_tensor(x) then
            list[#list + 1] = x
        end
    end
    return list
end

local function differentiable(fname, inputs)
    local places = {}
    for k, x in ipairs(inputs) do
        if x.requires_grad then
            if x.dtype ~= tide.float64 then
                fail("%s: input %d is %s: differences need float64", fname, k, tostring(x.dtype))
            end
            places[#places + 1] = k
        end
    end
    return places
end

-- Element i, counted from 0 in row-major order, of input k moved by `by`: the function's outputs there.
local function outputs_near(fn, inputs, k, i, by)
    local moved = { table.unpack(inputs) }
    local x = inputs[k]:detach():clone({ memory_format = "contiguous" })
    local flat = x:view(-1)
    flat[i + 1] = flat[i + 1] + by
    moved[k] = x
    local _ <close> = tide.no_grad()
    return as_list(fn(table.unpack(moved)))
end

-- d (sum of outputs * weights) / d element i of input k, by central differences.
local function difference(fn, inputs, weights, k, i, eps)
    local above, below = outputs_near(fn, inputs, k, i, eps), outputs_near(fn, inputs, k, i, -eps)
    local total = 0
    for j, w in ipairs(weights) do
        if w then
            total = total + ((above[j] - below[j]) * w):sum():item()
        end
    end
    return total / (2 * eps)
end

-- A fixed weight per element, so that every output counts and none cancels another.
local function weights_for(outputs)
    local weights = {}
    for j, y in ipairs(outputs) do
        weights[j] = y.requires_grad
            and (tide.arange(y:numel(), { dtype = tide.float64 }) * 0.7 + 0.3 * j):sin():reshape(y.shape)
    end
    return weights
end

-- Compares the gradients of fn's outputs with differences. Inputs after the first `own` are what fn's
-- own outputs are weighted with, and are called so in messages.
local function compare(fname, fn, inputs, places, own, eps, atol, rtol)
    local outputs = as_list(fn(table.unpack(inputs)))
    local weights, wanted, gradients, leaves = weights_for(outputs), {}, {}, {}
    for j, y in ipairs(outputs) do
        if y.requires_grad then
            wanted[#wanted + 1], gradients[#gradients + 1] = y, weights[j]
        end
    end
    for n, k in ipairs(places) do
        leaves[n] = inputs[k]
    end
    if #wanted == 0 or #leaves == 0 then
        fail("%s: no output requires grad", fname)
    end
    local got = raw.grad(wanted, leaves, { grad_outputs = gradients, allow_unused = true })
    for n, k in ipairs(places) do
        local flat = got[n] and got[n]:reshape(-1)
        for i = 0, inputs[k]:numel() - 1 do
            local numeric = difference(fn, inputs, weights, k, i, eps)
            local analytic = flat and flat[i + 1]:item() or 0
            local off = math.abs(numeric - analytic)
            if not (off <= atol + rtol * math.abs(numeric)) then
                fail("%s: %s %d, element %d: the gradient is %s, differences give %s", fname,
                    k <= own and "input" or "grad_output", k <= own and k or k - own, i + 1, tide._number(analytic, 9), tide._number(numeric, 9))
            end
        end
    end
    return true
end

local parameters = "(function fn, Tensor|Tensor[] inputs, *, number eps=1e-6, number(0..) atol=1e-5, "
    .. "number(0..) rtol=1e-3) -> bool"

autograd.gradcheck = tide._function("gradcheck" .. parameters,
    "Compare fn's gradients with central differences in float64; an error names the element where they differ.",
    function(fn, inputs, ...)
        return compare("gradcheck", fn, inputs, differentiable("gradcheck", inputs), #inputs, ...)
    end)

-- The gradient itself, made with create_graph, as a function of the inputs and of the gradients that come
-- in (one per output that requires grad).
local function gradgradcheck(fn, inputs, eps, atol, rtol)
    local places, own = differentiable("gradgradcheck", inputs), #inputs
    local all, all_places = { table.unpack(inputs) }, { table.unpack(places) }
    for _, w in ipairs(weights_for(as_list(fn(table.unpack(inputs))))) do
        if w then
            all[#all + 1] = w:requires_grad_(true)
            all_places[#all_places + 1] = #all
        end
    end
    if #places == 0 or #all == own then
        fail("gradgradcheck: no output requires grad")
    end
    local function gradient(...)
        local given, leaves, wanted, gradients = { ... }, {}, {}, {}
        local _ <close> = tide.enable_grad()
        for n, k in ipairs(places) do
            if not given[k].requires_grad then
                given[k] = given[k]:detach():requires_grad_(true)
            end
            leaves[n] = given[k]
        end
        for _, y in ipairs(as_list(fn(table.unpack(given, 1, own)))) do
            if y.requires_grad then
                wanted[#wanted + 1], gradients[#gradients + 1] = y, given[own + #wanted + 1]
            end
        end
        local got = raw.grad(wanted, leaves,
            { grad_outputs = gradients, allow_unused = true, create_graph = true })
        for n = 1, #leaves do
            got[n] = got[n] or tide.zeros_like(leaves[n])
        end
        return table.unpack(got, 1, #leaves)
    end
    for _, g in ipairs(as_list(gradient(table.unpack(all)))) do
        if g.requires_grad then
            return compare("gradgradcheck", gradient, all, all_places, own, eps, atol, rtol)
        end
    end
    return true -- the gradient is 0 everywhere: it depends on nothing
end

autograd.gradgradcheck = tide._function("gradgradcheck" .. parameters, "The same of the gradients of gradients.",
    gradgradcheck)

tide._document(autograd, "autograd", "tide.autograd", "grad, backward, gradcheck, gradgradcheck.")

return autograd
