-- autograd/function.lua: tide.autograd.Function: functions whose gradient is written in Lua.
--
-- A function is a table with forward(ctx, ...) and backward(ctx, ...), called by F(...) or F.apply(...).
-- Each call has a context, a table whose fields are the user's; what it saves, and what it knows of its
-- inputs and outputs, the engine keeps in its call (custom.c).
local tide = ...
local raw, fail = tide._autograd, tide._fail
local CALL = {} -- the key of a context's call

local Context = {}
local methods = {}

function Context.__index(ctx, key)
    if key == "saved_tensors" then
        local call = rawget(ctx, CALL)
        if not call then
            fail("saved_tensors: this context's call is over")
        end
        return call:saved()
    end
    return methods[key]
end

local function call_of(ctx, what)
    local call = type(ctx) == "table" and rawget(ctx, CALL)
    if not call then
        fail("%s: call it as ctx:%s(...) in forward or setup_context", what, what)
    end
    return call
end

function methods.save_for_backward(ctx, ...)
    call_of(ctx, "save_for_backward"):save(...)
end

function methods.mark_dirty(ctx, ...)
    local call = call_of(ctx, "mark_dirty")
    for k = 1, select("#", ...) do
        call:dirty((select(k, ...)))
    end
end

function methods.mark_non_differentiable(ctx, ...)
    local call = call_of(ctx, "mark_non_differentiable")
    for k = 1, select("#", ...) do
        call:plain((select(k, ...)))
    end
end

function methods.set_materialize_grads(ctx, on)
    if type(on) ~= "boolean" then
        fail("set_materialize_grads: true or false expected, got %s", tide._describe(on))
    end
    call_of(ctx, "set_materialize_grads"):materialize(on)
end

-- What backward returned: at most one gradient for each input, and none for what is no tensor.
local function check_gradients(name, given, inputs)
    local n = given.n
    while n > inputs.n and given[n] == nil do
        n = n - 1
    end
    if n > inputs.n then
        fail("%s: backward returned %d gradients for %d inputs", name, n, inputs.n)
    end
    for k = n + 1, inputs.n do
        if inputs.needs[k] then
            fail("%s: backward returned %d gradients for %d inputs (nil stands for none)", name, n, inputs.n)
        end
    end
    for k = 1, n do
        local g = given[k]
        if g and not tide.is_tensor(g) then
            fail("%s: backward returned %s as the gradient of input %d: a tensor or nil expected", name,
                tide._describe(g), k)
        elseif g and not inputs.tensors[k] then
            fail("%s: backward returned a gradient for input %d, which is no tensor", name, k)
        end
    end
    given.n = nil
    return given
end

-- What backward calls; it knows of the inputs what they were, and holds none.
local function runner_of(def, name, ctx, inputs)
    return function(call, ...)
        if type(def.backward) ~= "function" then
            fail("%s: the function has no backward", name)
        end
        local before = rawget(ctx, CALL)
        rawset(ctx, CALL, call)
        local given = table.pack(def.backward(ctx, ...))
        rawset(ctx, CALL, before)
        return check_gradients(name, given, inputs)
    end
end

local function describe_inputs(...)
    local inputs = { n = select("#", ...), tensors = {}, needs = {} }
    local given = { ... }
    for k = 1, inputs.n do
        inputs.tensors[k] = tide.is_tensor(given[k])
    end
    return inputs, given
end

local function needs_of(call, inputs)
    local needs = {}
    for k = 1, inputs.n do
        needs[k] = inputs.tensors[k] and call:needs(k)
    end
    return needs
end

local function apply(def, ...)
    if type(def.forward) ~= "function" then
        fail("%s: the function has no forward", def.name)
    end
    local inputs, given = describe_inputs(...)
    local ctx = setmetatable({}, Context)
    local name = def.name .. "Backward"
    local call = raw._begin(name, inputs.n, given, runner_of(def, name, ctx, inputs))
    inputs.needs = needs_of(call, inputs)
    ctx.needs_input_grad = { table.unpack(inputs.needs, 1, inputs.n) }
    rawset(ctx, CALL, call)
    local outputs
    if def.setup_context then
        outputs = table.pack(tide.no_grad(def.forward, ...))
        tide.no_grad(def.setup_context, ctx, given, table.unpack(outputs, 1, outputs.n))
    else
        outputs = table.pack(tide.no_grad(def.forward, ctx, ...))
    end
    call:finish(outputs.n, outputs)
    rawset(ctx, CALL, nil)
    return table.unpack(outputs, 1, outputs.n)
end

local Function = {}

-- F.apply(...) and F:apply(...).
function Function.__index(def, key)
    if key == "apply" then
        return function(first, ...)
            if rawequal(first, def) then
                return apply(def, ...)
            end
            return apply(def, first, ...)
        end
    end
end

-- With F.apply() there is not even a first argument.
function Function.__call(def, ...)
    return apply(def, ...)
end

function Function.__tostring(def)
    return string.format("tide.autograd.Function(%q)", def.name)
end
Function.__name = "Function"

local functions = {}

local doc = "A function with a gradient of its own. function F.forward(ctx, ...) returns the outputs, "
    .. "function F.backward(ctx, ...) the gradient of each input from those of the outputs, and y = F(x) calls it. "
    .. "ctx:save_for_backward(...) and ctx.saved_tensors, ctx.needs_input_grad, ctx:mark_dirty(...), "
    .. "ctx:mark_non_differentiable(...), ctx:set_materialize_grads(on). With function F.setup_context(ctx, inputs, outputs...), which saves, "
    .. "forward is called without ctx."

function functions.Function(name, methods)
    if type(name) == "table" and methods == nil then
        name, methods = name.name or "Function", name
    end
    if type(name) ~= "string" then
        fail("Function: a name expected, got %s", tide._describe(name))
    elseif methods ~= nil and type(methods) ~= "table" then
        fail("Function: a table with forward and backward expected, got %s", tide._describe(methods))
    end
    local def = {}
    for key, value in pairs(methods or {}) do
        def[key] = value
    end
    def.name = name
    return setmetatable(def, Function)
end
tide._document(functions.Function, "Function",
    'Function(str name, {function forward, function backward, function setup_context}) -> Function', doc)

-- Hands its first n arguments on; what lies behind the others can't be reached through them.
local Twice = setmetatable({ name = "OnceDifferentiable" }, Function)

function Twice.forward(_, n, ...)
    local outputs = table.pack(...)
    for k = 1, n do
        outputs[k] = tide.is_tensor(outputs[k]) and outputs[k]:detach() or outputs[k]
    end
    return table.unpack(outputs, 1, n)
end

function Twice.backward()
    fail("backward through a backward that is once_differentiable: its result can't be differentiated again")
end

functions.once_differentiable = tide._function("once_differentiable(function backward) -> function",
    "A backward whose result can't be differentiated again: it is not recorded, and an error says so.",
    function(backward)
        return function(ctx, ...)
            local outputs = table.pack(tide.no_grad(backward, ctx, ...))
            if not tide.is_grad_enabled() then
                return table.unpack(outputs, 1, outputs.n)
            end
            local all = { table.unpack(outputs, 1, outputs.n) }
            for k = 1, select("#", ...) do
                all[outputs.n + k] = (select(k, ...))
            end
            return Twice(outputs.n, table.unpack(all, 1, outputs.n + select("#", ...)))
        end
    end)

return functions
