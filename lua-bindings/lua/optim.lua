-- optim.lua: optimizers. An optimizer holds groups of parameters with their options and a state per
-- parameter; a class says what one step does to one group.
local tide = ...
local check = tide._check
local optim = {}

local Optimizer = { __name = "Optimizer" }
Optimizer.__index = Optimizer

local function read_parameters(fname, params)
    if tide.is_tensor(params) then
        check.fail("%s: the parameters must be a list of tensors, got one tensor: put it in a table", fname)
    elseif tide.nn.is_module(params) then
        check.fail("%s: the parameters must be a list of tensors, got %s: pass model:parameters()", fname,
            check.describe(params))
    elseif type(params) ~= "table" then
        check.fail("%s: argument params: expected a list of tensors, got %s", fname, check.describe(params))
    elseif #params == 0 then
        check.fail("%s: the list of parameters is empty", fname)
    end
    for k, p in ipairs(params) do
        if not tide.is_tensor(p) then
            check.fail("%s: parameter %d: expected a tensor, got %s", fname, k, check.describe(p))
        elseif not p.is_leaf then
            check.fail("%s: parameter %d is the result of an operator (%s): only leaves can be optimized", fname, k,
                tostring(p.grad_fn))
        end
    end
    return params
end

-- params: a list of tensors, or of groups { params = {...}, lr = ... } with options of their own.
local function new(class, params, options)
    local fname = class.__name
    local self = setmetatable({ param_groups = {}, state = {} }, class)
    local defaults = class.read_options(options)
    local seen = {}
    local function add(list, group)
        group.params = read_parameters(fname, list)
        for k, p in ipairs(list) do
            if seen[p] then
                check.fail("%s: parameter %d is given twice", fname, k)
            end
            seen[p] = true
        end
        self.param_groups[#self.param_groups + 1] = group
    end
    if type(params) == "table" and not tide.is_tensor(params) and type(params[1]) == "table"
        and not tide.is_tensor(params[1]) then
        for k, given in ipairs(params) do
            if type(given) ~= "table" or given.params == nil then
                check.fail("%s: group %d: expected {params = {...}, ...}, got %s", fname, k, check.describe(given))
            end
            local merged = {}
            for name, value in pairs(defaults) do
                merged[name] = value
            end
            for name, value in pairs(given) do
                if name ~= "params" then
                    merged[name] = value
                end
            end
            add(given.params, class.read_options(merged))
        end
        if #self.param_groups == 0 then
            check.fail("%s: the list of parameters is empty", fname)
        end
    else
        add(params, defaults)
    end
    return self
end

-- Change the parameters by their gradients. A closure, when given, is called first to compute the loss
-- anew, and its result is returned.
function Optimizer:step(closure)
    local loss
    if closure ~= nil then
        if type(closure) ~= "function" then
            check.fail("step: argument closure: expected a function, got %s", check.describe(closure))
        end
        loss = tide.enable_grad(closure)
    end
    local _ <close> = tide.no_grad()
    for _, group in ipairs(self.param_groups) do
        self:step_group(group)
    end
    return loss
end

local zero_grad_options = { { "set_to_none", kind = "boolean", default = true } }

-- Forget the gradients; with {set_to_none = false} they become zeros instead.
function Optimizer:zero_grad(options)
    local keep = not check.arguments("zero_grad", zero_grad_options, options).set_to_none
    for _, group in ipairs(self.param_groups) do
        for _, p in ipairs(group.params) do
            if keep and p.grad then
                p.grad:detach():zero_()
            else
                p.grad = nil
            end
        end
    end
end

local function options_of(group)
    local options = {}
    for name, value in pairs(group) do
        if name ~= "params" then
            options[name] = value
        end
    end
    return options
end

-- Options and states by the parameters' numbers, for load_state_dict of an optimizer of the same shape.
function Optimizer:state_dict()
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

-- The groups' options that a state_dict holds, once all of it fits this optimizer.
local function read_state(self, dict)
    if type(dict) ~= "table" or type(dict.param_groups) ~= "table" or type(dict.state) ~= "table"
        or #dict.param_groups ~= #self.param_groups then
        check.fail("load_state_dict: expected the state of an optimizer of %d groups", #self.param_groups)
    end
    local options, number = {}, 0
    for g, group in ipairs(self.param_groups) do
        options[g] = self.read_options(dict.param_groups[g])
        for _, p in ipairs(group.params) do
            number = number + 1
            local state = dict.state[number] or {}
            if type(state) ~= "table" then
                check.fail("load_state_dict: the state of parameter %d: expected a table, got %s", number,
                    check.describe(state))
            end
            for name, value in pairs(state) do
                if tide.is_tensor(value) and value:dim() > 0 and tostring(value.shape) ~= tostring(p.shape) then
                    check.fail("load_state_dict: %s of parameter %d has shape %s, expected %s", tostring(name), number,
                        tostring(value.shape), tostring(p.shape))
                end
            end
        end
    end
    if #dict.state ~= number then
        check.fail("load_state_dict: the state of %d parameters for an optimizer of %d", #dict.state, number)
    end
    return options
end

-- Nothing is changed when the state doesn't fit.
function Optimizer:load_state_dict(dict)
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

function Optimizer:__tostring()
    local lines = { getmetatable(self).__name .. " (" }
    for g, group in ipairs(self.param_groups) do
        lines[#lines + 1] = ("Parameter Group %d"):format(g)
        local names = {}
        for name in pairs(options_of(group)) do
            names[#names + 1] = name
        end
        table.sort(names)
        for _, name in ipairs(names) do
            lines[#lines + 1] = ("    %s: %s"):format(name, tostring(group[name]))
        end
    end
    lines[#lines + 1] = ")"
    return table.concat(lines, "\n")
end

local function class(name)
    local c = { __name = name, __tostring = Optimizer.__tostring }
    c.__index = c
    setmetatable(c, { __index = Optimizer, __call = new })
    optim[name] = c
    return c
end

-- ---- SGD ----

local SGD = class "SGD"

local sgd_options = {
    { "lr", kind = "unsigned", default = 1e-3 },
    { "momentum", kind = "unsigned", default = 0 },
    { "dampening", kind = "number", default = 0 },
    { "weight_decay", kind = "unsigned", default = 0 },
    { "nesterov", kind = "boolean", default = false },
    { "maximize", kind = "boolean", default = false },
}

function SGD.read_options(options)
    if options ~= nil and type(options) ~= "table" then
        check.fail("SGD: options must be a table such as {lr = 0.1}, got %s", check.describe(options))
    end
    local values = check.arguments("SGD", sgd_options, options and next(options) ~= nil and options or nil)
    if values.nesterov and (values.momentum <= 0 or values.dampening ~= 0) then
        check.fail("SGD: nesterov needs a momentum above 0 and no dampening")
    end
    return values
end

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
    local options = {}
    for _, option in ipairs(sgd_options) do
        options[option[1]] = group[option[1]]
    end
    tide._sgd_step(going.params, going.grads, going.buffers, options)
    options.starts = true
    tide._sgd_step(starting.params, starting.grads, starting.buffers, options)
    for k, p in ipairs(starting.params) do
        self.state[p] = { momentum_buffer = starting.buffers[k] }
    end
end

return optim
