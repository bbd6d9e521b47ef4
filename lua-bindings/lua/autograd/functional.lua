-- autograd/functional.lua: tide.autograd.functional: what is derived from gradients, of functions of
-- tensors. All of it runs backward; jvp and hvp run it twice.
--
-- A function of one tensor gives a tensor, of a list of them a list; results of several outputs and inputs
-- are lists by output, then by input.
local tide = ...
local grad, fail = tide._autograd.grad, tide._fail
local functional = {}

-- The inputs as the function is to see them: apart from the graph outside, or (create_graph) in it.
local function enter(inputs, create_graph)
    local given = {}
    for k, x in ipairs(inputs) do
        if create_graph and x.requires_grad then
            given[k] = x:view(x.shape)
        else
            given[k] = x:detach():requires_grad_(true)
        end
    end
    return given
end

local function outputs_of(fname, ...)
    local outputs = table.pack(...)
    for j = 1, outputs.n do
        if not tide.is_tensor(outputs[j]) then
            fail("%s: the function's result %d is %s: tensors expected", fname, j, tide._describe(outputs[j]))
        end
    end
    if outputs.n == 0 then
        fail("%s: the function returned nothing", fname)
    end
    return outputs
end

-- The outputs that require grad, and what is given for them; gradients empty: ones.
local function only_wanted(outputs, gradients)
    local wanted, given = {}, {}
    for j = 1, #outputs do
        if outputs[j].requires_grad then
            wanted[#wanted + 1] = outputs[j]
            given[#given + 1] = gradients[j]
        end
    end
    return wanted, given
end

-- Gradients of all the outputs; zeros where there are none, or with `strict` an error.
local function gradients_of(fname, outputs, inputs, gradients, create_graph, strict)
    local wanted, given = only_wanted(outputs, gradients)
    local got = #wanted > 0
        and grad(wanted, inputs, { grad_outputs = #given > 0 and given or nil, allow_unused = true, create_graph = create_graph,
            retain_graph = true })
        or {}
    for k, x in ipairs(inputs) do
        if not got[k] and strict then
            fail("%s: the outputs don't depend on input %d (strict)", fname, k)
        end
        got[k] = got[k] or tide.zeros_like(x:detach())
    end
    return got
end

local function leave(list, create_graph)
    for k, x in ipairs(list) do
        list[k] = create_graph and x or x:detach()
    end
    return list
end

local function one_or_all(list, one)
    return one and list[1] or list
end

-- The vectors given for tensors of these shapes; ones where a single element needs none.
local function check_vectors(fname, v, tensors, what)
    if v == nil then
        if #tensors ~= 1 or tensors[1]:numel() ~= 1 then
            fail("%s: v is missing: it may be left out for a single %s of one element", fname, what)
        end
        return { tide.ones_like(tensors[1]:detach()) }
    end
    if #v ~= #tensors then
        fail("%s: v has %d tensors for %d %ss", fname, #v, #tensors, what)
    end
    for k, x in ipairs(tensors) do
        if tostring(v[k].shape) ~= tostring(x.shape) then
            fail("%s: v %d has shape %s, the %s %s", fname, k, tostring(v[k].shape), what, tostring(x.shape))
        end
    end
    return v
end

-- Tensors given as one or as a list; nil stays nil.
local function as_list(fname, what, v)
    if v == nil or tide.is_tensor(v) then
        return v and { v }
    elseif type(v) ~= "table" then
        fail("%s: %s: a tensor or a list of tensors expected, got %s", fname, what, tide._describe(v))
    end
    for key in next, v do
        if math.type(key) ~= "integer" then
            fail("%s: %s: a tensor or a list of tensors expected, got '%s' in it (options: {create_graph = true, "
                .. "strict = true})", fname, what, tostring(key))
        end
    end
    for k, x in ipairs(v) do
        if not tide.is_tensor(x) then
            fail("%s: %s %d: a tensor expected, got %s", fname, what, k, tide._describe(x))
        end
    end
    return v
end

-- What each function here begins with: the inputs as a list, and was it one tensor?
local function call(fname, fn, inputs, create_graph)
    if inputs == nil then
        fail("%s: inputs: a tensor or a list of tensors expected, got nil", fname)
    end
    local given = enter(as_list(fname, "inputs", inputs), create_graph)
    return given, outputs_of(fname, fn(table.unpack(given))), tide.is_tensor(inputs)
end

local function declare(name, parameters, result, doc, fn)
    functional[name] = tide._function(string.format(("%s(function fn, any inputs%s, *, bool create_graph=false, bool strict=false) -> %s")
        , name, parameters, result), doc, function(...)
        local _ <close> = tide.enable_grad()
        return fn(...)
    end)
end

-- ---- products ----

declare("vjp", ", any v=nil", "any, any",
    "fn(inputs), and the vector v (as its outputs are) times its Jacobian: what backward gives.",
    function(fn, inputs, v, create_graph, strict)
        local given, outputs, one = call("vjp", fn, inputs, create_graph)
        v = check_vectors("vjp", as_list("vjp", "v", v), outputs, "output")
        local got = gradients_of("vjp", outputs, given, v, create_graph, strict)
        return one_or_all(leave(outputs, create_graph), #outputs == 1), one_or_all(leave(got, create_graph), one)
    end)

-- Backward is linear in the vector it starts from; its own gradient by that vector is the Jacobian times v.
local function forward_products(fname, outputs, given, v, create_graph, strict)
    local starts = {}
    for j, y in ipairs(outputs) do
        starts[j] = tide.zeros_like(y:detach()):requires_grad_(true)
    end
    local got = gradients_of(fname, outputs, given, starts, true, strict)
    return gradients_of(fname, got, starts, v, create_graph, false)
end

declare("jvp", ", any v=nil", "any, any",
    "fn(inputs), and its Jacobian times the vector v (as the inputs are).",
    function(fn, inputs, v, create_graph, strict)
        local given, outputs = call("jvp", fn, inputs, create_graph)
        v = check_vectors("jvp", as_list("jvp", "v", v), given, "input")
        local got = forward_products("jvp", outputs, given, v, create_graph, strict)
        local one = #outputs == 1
        return one_or_all(leave(outputs, create_graph), one), one_or_all(leave(got, create_graph), one)
    end)

local function check_scalar(fname, outputs)
    if outputs.n ~= 1 or outputs[1]:numel() ~= 1 then
        fail("%s: fn must return one tensor of one element", fname)
    end
end

-- With `product`, of the first gradients and v.
local function declare_hessian_product(name, text, product)
    declare(name, ", any v=nil", "any, any", text, function(fn, inputs, v, create_graph, strict)
        local given, outputs, one = call(name, fn, inputs, create_graph)
        check_scalar(name, outputs)
        v = check_vectors(name, as_list(name, "v", v), given, "input")
        local first = gradients_of(name, outputs, given, {}, true, strict)
        local got = product(name, first, given, v, create_graph, strict)
        return one_or_all(leave(outputs, create_graph), true), one_or_all(leave(got, create_graph), one)
    end)
end
declare_hessian_product("vhp", "fn(inputs), of one element, and the vector v (as the inputs are) times its Hessian.",
    gradients_of)
declare_hessian_product("hvp", "fn(inputs), of one element, and its Hessian times the vector v (as the inputs are).",
    forward_products)

-- ---- matrices ----

local function shape_of(y, x)
    local shape = {}
    for _, t in ipairs { y, x } do
        for d = 1, t.ndim do
            shape[#shape + 1] = t:size(d)
        end
    end
    return shape
end

-- The Jacobian of one output by each input: shaped as the output, then the input.
local function rows_of(fname, y, given, create_graph, strict)
    local rows, flat = {}, y:reshape(-1)
    for k = 1, #given do
        rows[k] = {}
    end
    for i = 1, y:numel() do
        local got = gradients_of(fname, { flat[i] }, given, {}, create_graph, strict)
        for k = 1, #given do
            rows[k][i] = got[k]:reshape(-1)
        end
    end
    for k, x in ipairs(given) do
        local matrix = #rows[k] > 0 and tide.stack(rows[k]) or tide.zeros(0, x:numel(), { dtype = x.dtype })
        rows[k] = matrix:reshape(shape_of(y, x))
    end
    return rows
end

local function jacobian(fname, fn, inputs, create_graph, strict)
    local given, outputs, one = call(fname, fn, inputs, create_graph)
    local all = {}
    for j, y in ipairs(outputs) do
        all[j] = one_or_all(leave(rows_of(fname, y, given, create_graph, strict), create_graph), one)
    end
    return one_or_all(all, outputs.n == 1), given, outputs
end

declare("jacobian", "", "any",
    "The Jacobian of each output of fn by each input, shaped as the output, then the input.",
    function(fn, inputs, create_graph, strict)
        return (jacobian("jacobian", fn, inputs, create_graph, strict))
    end)

declare("hessian", "", "any",
    "The Hessian of fn, which returns one element: by each input and each input, shaped as the one, then the other.",
    function(fn, inputs, create_graph, strict)
        local one = tide.is_tensor(inputs)
        local function gradient(...)
            local given = { ... }
            local outputs = outputs_of("hessian", fn(...))
            check_scalar("hessian", outputs)
            return table.unpack(gradients_of("hessian", outputs, given, {}, true, strict))
        end
        local rows = jacobian("hessian", gradient, inputs, create_graph, strict)
        return not one and #inputs == 1 and { rows } or rows
    end)

tide._document(functional, "functional", "tide.autograd.functional", "jacobian, hessian, vjp, jvp, vhp, hvp.")

return functional
