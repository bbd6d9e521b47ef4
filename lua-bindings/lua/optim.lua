-- optim.lua: optimizers. An optimizer holds groups of parameters with their options and a state per
-- parameter; a class says what one step does to one group.
local tide = ...
local fail, declare = tide._fail, tide._function
local optim = {}

local Optimizer = { __name = "Optimizer" }
Optimizer.__index = Optimizer
tide._class("Optimizer", Optimizer)

-- A method of every optimizer: "name(PARAMETERS) -> RESULT" behind self.
local function method(name, parameters, doc, fn)
    Optimizer[name] = declare(("%s(Optimizer self%s"):format(name, parameters), doc, fn)
end

local function check_parameters(fname, params)
    if #params == 0 then
        fail("%s: the list of parameters is empty", fname)
    end
    for k, p in ipairs(params) do
        if not tide.is_tensor(p) then
            fail("%s: parameter %d: expected a tensor, got %s", fname, k, tide._describe(p))
        elseif not p.is_leaf then
            fail("%s: parameter %d is the result of an operator (%s): only leaves can be optimized", fname, k,
                tostring(p.grad_fn))
        end
    end
end

local function is_group(value) return type(value) == "table" and not tide.is_tensor(value) and value.params ~= nil end

-- A group's own options, with those of the optimizer where it has none.
local function read_group(class, k, given, defaults)
    if not is_group(given) then
        fail("%s: group %d: expected {params = {...}, ...}, got %s", class.__name, k, tide._describe(given))
    end
    local merged = {}
    for name, value in pairs(defaults) do
        merged[name] = value
    end
    for name, value in pairs(given) do
        merged[name] = value
    end
    return class.read(merged)
end

-- params: a list of tensors, or of groups { params = {...}, lr = ... } with options of their own.
local function new(class, ...)
    local fname = class.__name
    local first, options = ...
    if tide.is_tensor(first) then
        fail("%s: the parameters must be a list of tensors, got one tensor: put it in a table", fname)
    elseif tide.nn.is_module(first) then
        fail("%s: the parameters must be a list of tensors, got %s: pass model:parameters()", fname,
            tide._describe(first))
    elseif options ~= nil and type(options) ~= "table" then
        fail("%s: options must be a table such as {lr = 0.1}, got %s", fname, tide._describe(options))
    end
    local self = setmetatable({ param_groups = {}, state = {} }, class)
    local defaults, seen = class.read(...), {}
    local groups = { defaults }
    if type(defaults.params[1]) == "table" then
        groups = {}
        for k, given in ipairs(defaults.params) do
            groups[k] = read_group(class, k, given, defaults)
        end
    end
    for k, group in ipairs(groups) do
        check_parameters(fname, group.params)
        for n, p in ipairs(group.params) do
            if seen[p] then
                fail("%s: parameter %d is given twice", fname, n)
            end
            seen[p] = true
        end
        self.param_groups[k] = group
    end
    return self
end

method("step", ", function? closure=nil) -> any", "Change the parameters by their gradients. A closure, when given, "
    .. "is called first to compute the loss anew, and its result is returned.", function(self, closure)
    local loss
    if closure then
        loss = tide.enable_grad(closure)
    end
    local _ <close> = tide.no_grad()
    for _, group in ipairs(self.param_groups) do
        self:step_group(group)
    end
    return loss
end)

method("zero_grad", ", bool set_to_none=true)", "Forget the gradients; with {set_to_none = false} they become zeros.",
    function(self, set_to_none)
        for _, group in ipairs(self.param_groups) do
            for _, p in ipairs(group.params) do
                if not set_to_none and p.grad then
                    p.grad:detach():zero_()
                else
                    p.grad = nil
                end
            end
        end
    end)

local function options_of(group)
    local options = {}
    for name, value in pairs(group) do
        if name ~= "params" then
            options[name] = value
        end
    end
    return options
end

local function state_dict(self)
    local dict, number = { param_groups = {}, state = {} }, 0
    for g, group in ipairs(self.param_groups) do
        dict.param_groups[g] = options_of(group)
        for _, p in ipairs(group.params) do
            number = number + 1
            local copy = {}
            for name, value in pairs(self.state[p] or {}) do
                copy[name] = value
            end
            dict.state[number] = copy
        end
    end
    return dict
end
method("state_dict", ") -> table",
    "Options and states by the parameters' numbers, for load_state_dict of an optimizer of the same shape.", state_dict)

-- The groups' options that a state_dict holds, once all of it fits this optimizer.
local function read_state(self, dict)
    if type(dict.param_groups) ~= "table" or type(dict.state) ~= "table"
        or #dict.param_groups ~= #self.param_groups then
        fail("load_state_dict: expected the state of an optimizer of %d groups", #self.param_groups)
    end
    local options, number = {}, 0
    for g, group in ipairs(self.param_groups) do
        options[g] = options_of(self.read(group.params, dict.param_groups[g]))
        for _, p in ipairs(group.params) do
            number = number + 1
            local state = dict.state[number] or {}
            if type(state) ~= "table" then
                fail("load_state_dict: the state of parameter %d: expected a table, got %s", number,
                    tide._describe(state))
            end
            for name, value in pairs(state) do
                if tide.is_tensor(value) and value:dim() > 0 and value.shape ~= p.shape then
                    fail("load_state_dict: %s of parameter %d has shape %s, expected %s", tostring(name), number,
                        tostring(value.shape), tostring(p.shape))
                end
            end
        end
    end
    if #dict.state ~= number then
        fail("load_state_dict: the state of %d parameters for an optimizer of %d", #dict.state, number)
    end
    return options
end

-- Nothing is changed when the state doesn't fit.
local function load_state_dict(self, dict)
    local options, number = read_state(self, dict), 0
    for g, group in ipairs(self.param_groups) do
        for name, value in pairs(options[g]) do
            group[name] = value
        end
        for _, p in ipairs(group.params) do
            number = number + 1
            local state = {}
            for name, value in pairs(dict.state[number] or {}) do
                state[name] = tide.is_tensor(value) and value:clone() or value
            end
            self.state[p] = next(state) ~= nil and state or nil
        end
    end
end
method("load_state_dict", ", table dict)", "Take over a state_dict's options and states.", load_state_dict)

function Optimizer:__tostring()
    local lines = { getmetatable(self).__name .. " (" }
    for g, group in ipairs(self.param_groups) do
        lines[#lines + 1] = ("Parameter Group %d"):format(g)
        local names = {}
        for name in pairs(options_of(group)) do
            names[#names + 1] = name
        end
        table.sort(names, tide._before)
        for _, name in ipairs(names) do
            local value = group[name]
            lines[#lines + 1] = ("    %s: %s"):format(name,
                type(value) == "number" and tide._number(value) or tostring(value))
        end
    end
    lines[#lines + 1] = ")"
    return table.concat(lines, "\n")
end

-- A class whose constructor has this schema; check(options) refuses what does not go together.
local function class(schema, doc, check)
    local name, read = schema:match("^%w+"), declare(schema, doc)
    local c = { __name = name, __tostring = Optimizer.__tostring }
    c.__index = c
    function c.read(...)
        local options = read(...)
        check(options)
        return options
    end
    optim[name] = setmetatable(c, { __index = Optimizer, __call = new })
    tide._document(c, read)
    return c
end

-- A learning rate: a number, or a tensor of one element, which is read anew at every step.
local function read_rate(fname, lr)
    local number = lr
    if tide.is_tensor(lr) then
        if lr:numel() ~= 1 then
            fail("%s: option lr: a tensor of one element expected, got shape %s", fname, tostring(lr.shape))
        end
        number = lr:item()
    end
    if not (number >= 0) then
        fail("%s: option lr: expected a number from 0 on, got %s", fname, tide._number(number))
    end
    return number
end

-- ---- SGD ----

local SGD = class("SGD(list params, *, Tensor|number lr=0.001, number(0..) momentum=0, number dampening=0, "
    .. "number(0..) weight_decay=0, bool nesterov=false, bool maximize=false)",
    "Stochastic gradient descent. params: a list of tensors, or of groups {params = ..., lr = ...}; step(), zero_grad().",
    function(options)
        read_rate("SGD", options.lr)
        if options.nesterov and (options.momentum <= 0 or options.dampening ~= 0) then
            fail("SGD: nesterov needs a momentum above 0 and no dampening")
        end
    end)

local function new_lists()
    return { params = {}, grads = {}, buffers = {} }
end

local function add_to(lists, p, buffer)
    local n = #lists.params + 1
    lists.params[n], lists.grads[n], lists.buffers[n] = p, p.grad, buffer
end

-- One program over all parameters; those whose momentum starts now are a list of their own.
function SGD:step_group(group)
    local going, starting = new_lists(), new_lists()
    for _, p in ipairs(group.params) do
        local state = self.state[p]
        if p.grad and group.momentum == 0 then
            add_to(going, p)
        elseif p.grad and state then
            add_to(going, p, state.momentum_buffer)
        elseif p.grad then
            add_to(starting, p, tide.empty_like(p.grad))
        end
    end
    local options = {
        lr = read_rate("SGD", group.lr), momentum = group.momentum, dampening = group.dampening,
        weight_decay = group.weight_decay, nesterov = group.nesterov, maximize = group.maximize,
    }
    tide._sgd_step(going.params, going.grads, going.buffers, options)
    options.starts = true
    tide._sgd_step(starting.params, starting.grads, starting.buffers, options)
    for k, p in ipairs(starting.params) do
        self.state[p] = { momentum_buffer = starting.buffers[k] }
    end
end

tide._document(optim, "optim", "tide.optim", "Optimizers: SGD.")

return optim
