-- autograd/check.lua: gradcheck and gradgradcheck: gradients against central differences.
--
-- The slow way compares all entries of the Jacobian of each output by each input; the fast one compares a
-- weighted sum of them, which takes one difference and one backward a pair.
local tide = ...
local fail = tide._fail

-- Gradients, sparse ones made dense: all elements are compared.
local function grad(...)
    local got = tide._autograd.grad(...)
    for n, g in pairs(got) do
        got[n] = g and g:to_dense()
    end
    return got
end

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

-- The numbers of the inputs that require grad.
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
    if #places == 0 then
        fail("%s: no input requires grad", fname)
    end
    return places
end

local function wanted_of(outputs)
    local wanted = {}
    for _, y in ipairs(outputs) do
        if y.requires_grad then
            wanted[#wanted + 1] = y
        end
    end
    return wanted
end

-- The function's outputs where input k has these elements. `counts`: which of the outputs are asked for.
local function outputs_at(fn, inputs, k, x, counts)
    local moved = { table.unpack(inputs) }
    moved[k] = x
    local _ <close> = tide.no_grad()
    local all, some = as_list(fn(table.unpack(moved))), {}
    for j, y in ipairs(all) do
        if counts[j] then
            some[#some + 1] = y:detach():clone() -- it may be what we are about to move
        end
    end
    return some
end

-- Differences of each output where `move` goes up and down: a list of flat tensors.
local function differences(fn, inputs, k, move, eps, counts)
    local above = inputs[k]:detach():clone({ memory_format = "contiguous" })
    local below = above:clone()
    move(above, eps)
    move(below, -eps)
    local up, down = outputs_at(fn, inputs, k, above, counts), outputs_at(fn, inputs, k, below, counts)
    for j = 1, #up do
        up[j] = ((up[j] - down[j]) / (2 * eps)):reshape(-1)
    end
    return up
end

-- numeric[j]: elements of input k by those of output j.
local function numeric_jacobians(fn, inputs, k, eps, counts)
    local rows = {}
    for i = 1, inputs[k]:numel() do
        local columns = differences(fn, inputs, k, function(x, by)
            local flat = x:view(-1)
            flat[i] = flat[i] + by
        end, eps, counts)
        for j, column in ipairs(columns) do
            rows[j] = rows[j] or {}
            rows[j][i] = column
        end
    end
    for j = 1, #rows do
        rows[j] = tide.stack(rows[j])
    end
    return rows
end

local function zeros_for(g, x)
    return g or tide.zeros_like(x)
end

-- For each leaf: its elements by those of the output.
local function analytic_jacobians(y, leaves)
    local columns = {}
    for n = 1, #leaves do
        columns[n] = {}
    end
    local seed = tide.zeros_like(y:detach()):contiguous()
    local flat = seed:view(-1)
    for o = 1, y:numel() do
        flat[o] = 1
        local got = grad({ y }, leaves, { grad_outputs = { seed:clone() }, retain_graph = true, allow_unused = true })
        flat[o] = 0
        for n, x in ipairs(leaves) do
            columns[n][o] = zeros_for(got[n], x):detach():reshape(-1)
        end
    end
    for n, x in ipairs(leaves) do
        columns[n] = #columns[n] > 0 and tide.stack(columns[n], 2) or tide.zeros(x:numel(), 0, { dtype = x.dtype })
    end
    return columns
end

-- A fixed weight per element, so that every element counts and none cancels another.
local function weights_of(x, phase)
    local numbers = tide.arange(x:numel(), { dtype = tide.float64, device = x.device })
    return (numbers * 0.7 + 0.3 * phase):sin():reshape(x.shape)
end

-- ---- comparing ----

local number = function(x) return tide._number(x, 9) end

-- "" where they are close, else what to say of the first pair that is not.
local function mismatch(numeric, analytic, atol, rtol)
    local close = (analytic - numeric):abs():le(numeric:abs() * rtol + atol) | (analytic:eq(numeric))
    if close:all():item() then
        return nil
    end
    local wrong = (~close):nonzero()
    local i, o = wrong[1][1]:item(), wrong[1][2]:item()
    return string.format("element %d of the output by element %d of the input: the gradient is %s, differences give %s%s",
        o, i, number(analytic[i][o]:item()), number(numeric[i][o]:item()),
        #wrong > 1 and string.format(", and %d of %d such pairs differ", #wrong, close:numel()) or "")
end

local Checker = {}
Checker.__index = Checker

-- Inputs after the first `own` are what fn's own outputs are weighted with, and are called so.
function Checker:name_of(k)
    return k <= self.own and string.format("input %d", k) or string.format("grad_output %d", k - self.own)
end

function Checker:fail(format, ...)
    self.wrong = self.fname .. ": " .. string.format(format, ...)
    return false
end

function Checker:leaves()
    local leaves = {}
    for n, k in ipairs(self.places) do
        leaves[n] = self.inputs[k]
    end
    return leaves
end

function Checker:slow(wanted, counts)
    local o, analytic, leaves = self.options, {}, self:leaves()
    for j, y in ipairs(wanted) do
        analytic[j] = analytic_jacobians(y, leaves)
    end
    for n, k in ipairs(self.places) do
        for j, numeric in ipairs(numeric_jacobians(self.fn, self.inputs, k, o.eps, counts)) do
            local wrong = numeric:numel() > 0 and mismatch(numeric, analytic[j][n], o.atol, o.rtol)
            if wrong then
                return self:fail("output %d by %s: %s", j, self:name_of(k), wrong)
            end
        end
    end
    return true
end

function Checker:fast(wanted, counts)
    local o, leaves = self.options, self:leaves()
    for n, k in ipairs(self.places) do
        local u = weights_of(self.inputs[k], n)
        local moved = differences(self.fn, self.inputs, k, function(x, by) x:add_(u * by) end, o.eps, counts)
        for j, y in ipairs(wanted) do
            local v = weights_of(y, j + 7)
            local g = grad({ y }, { leaves[n] }, { grad_outputs = { v }, retain_graph = true, allow_unused = true })[1]
            local analytic = (zeros_for(g, leaves[n]) * u):sum():item()
            local numeric = (moved[j] * v:reshape(-1)):sum():item()
            if not (math.abs(analytic - numeric) <= o.atol + o.rtol * math.abs(numeric)) then
                return self:fail("output %d by %s: a weighted sum of the gradient is %s, differences give %s (fast_mode)",
                    j, self:name_of(k), number(analytic), number(numeric))
            end
        end
    end
    return true
end

-- The same gradients twice give the same numbers.
function Checker:repeats(wanted)
    local leaves, gradients = self:leaves(), {}
    for j, y in ipairs(wanted) do
        gradients[j] = weights_of(y, j)
    end
    local options = { grad_outputs = gradients, retain_graph = true, allow_unused = true }
    local first, second = grad(wanted, leaves, options), grad(wanted, leaves, options)
    for n, k in ipairs(self.places) do
        local off = first[n] and first[n]:numel() > 0 and (first[n] - second[n]):abs():max():item() or 0
        if off > self.options.nondet_tol then
            return self:fail("backward is not the same twice: gradients of %s differ by %s (nondet_tol = %s)",
                self:name_of(k), number(off), number(self.options.nondet_tol))
        end
    end
    return true
end

-- No output requires grad: then none may depend on the inputs.
function Checker:expect_nothing(outputs)
    local counts = {}
    for j, y in ipairs(outputs) do
        counts[j] = y:is_floating_point()
    end
    for _, k in ipairs(self.places) do
        for j, numeric in ipairs(numeric_jacobians(self.fn, self.inputs, k, self.options.eps, counts)) do
            if numeric:numel() > 0 and numeric:abs():max():item() > 0 then
                return self:fail("output %d does not require grad, and differences by %s give %s", j, self:name_of(k),
                    number(numeric:abs():max():item()))
            end
        end
    end
    return true
end

function Checker:run()
    local outputs, counts = as_list(self.fn(table.unpack(self.inputs))), {}
    for j, y in ipairs(outputs) do
        counts[j] = y.requires_grad
    end
    local wanted = wanted_of(outputs)
    local ok
    if #wanted == 0 then
        ok = self:expect_nothing(outputs)
    else
        ok = self[self.options.fast_mode and "fast" or "slow"](self, wanted, counts) and self:repeats(wanted)
    end
    if not ok and self.options.raise_exception then
        fail("%s", self.wrong)
    end
    return ok
end

local function check(fname, fn, inputs, places, own, options)
    return setmetatable({ fname = fname, fn = fn, inputs = inputs, places = places, own = own, options = options },
        Checker):run()
end

-- ---- gradients of gradients ----

-- The gradient of fn, made with create_graph, as a function of the inputs and of the gradients that come in
-- (one per output that requires grad).
local function gradient_of(fn, places, own)
    return function(...)
        local given, leaves, gradients = { ... }, {}, {}
        local _ <close> = tide.enable_grad()
        for n, k in ipairs(places) do
            if not given[k].requires_grad then
                given[k] = given[k]:detach():requires_grad_(true)
            end
            leaves[n] = given[k]
        end
        local wanted = wanted_of(as_list(fn(table.unpack(given, 1, own))))
        for j = 1, #wanted do
            gradients[j] = given[own + j]
        end
        local got = grad(wanted, leaves, { grad_outputs = gradients, allow_unused = true, create_graph = true })
        for n = 1, #leaves do
            got[n] = zeros_for(got[n], leaves[n])
        end
        return table.unpack(got, 1, #leaves)
    end
end

local function gradgradcheck(fn, inputs, options)
    local places, own = differentiable("gradgradcheck", inputs), #inputs
    local all, all_places = { table.unpack(inputs) }, { table.unpack(places) }
    local wanted = wanted_of(as_list(fn(table.unpack(inputs))))
    local given = options.grad_outputs
    if given and #given ~= #wanted then
        fail("gradgradcheck: %d grad_outputs for %d outputs that require grad", #given, #wanted)
    elseif #wanted == 0 then
        fail("gradgradcheck: no output requires grad")
    end
    for j, y in ipairs(wanted) do
        all[#all + 1] = (given and given[j]:detach() or weights_of(y, j)):requires_grad_(true)
        all_places[#all_places + 1] = #all
    end
    local gradient = gradient_of(fn, places, own)
    if #wanted_of(as_list(gradient(table.unpack(all)))) == 0 then
        return true -- the gradient is the same everywhere: it depends on nothing
    end
    return check("gradgradcheck", gradient, all, all_places, own, options)
end

local checks = {}
local parameters = "(function fn, Tensor|Tensor[] inputs, *, %snumber(0..) eps=1e-6, number(0..) atol=1e-5, "
    .. "number(0..) rtol=1e-3, bool raise_exception=true, number(0..) nondet_tol=0, bool fast_mode=false) -> bool"

local function options_of(eps, atol, rtol, raise_exception, nondet_tol, fast_mode)
    return { eps = eps, atol = atol, rtol = rtol, raise_exception = raise_exception, nondet_tol = nondet_tol,
        fast_mode = fast_mode }
end

checks.gradcheck = tide._function("gradcheck" .. string.format(parameters, ""),
    "Compare fn's gradients with central differences in float64; an error (or false, without raise_exception) says of "
        .. "which output and input they differ.",
    function(fn, inputs, ...)
        return check("gradcheck", fn, inputs, differentiable("gradcheck", inputs), #inputs, options_of(...))
    end)

checks.gradgradcheck = tide._function("gradgradcheck" .. string.format(parameters, "Tensor|Tensor[]? grad_outputs=nil, "),
    "The same of the gradients of gradients.",
    function(fn, inputs, grad_outputs, ...)
        local options = options_of(...)
        options.grad_outputs = grad_outputs
        return gradgradcheck(fn, inputs, options)
    end)

return checks
