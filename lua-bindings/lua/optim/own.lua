-- optim/own.lua: tide.optim.class: optimizers of a script's own, which say what becomes of one parameter and have groups, states,
-- hooks, schedulers and checkpoints as all others.
local tide = ...
local fail, declare, describe = tide._fail, tide._function, tide._describe

-- What an option may be: of the kind of its default, or where that is a number a tensor.
local function check_option(fname, defaults, key, value)
    local default = defaults[key]
    if default == nil then
        fail("%s: no option '%s'", fname, tostring(key))
    elseif type(value) ~= type(default) and not (type(default) == "number" and tide.is_tensor(value)) then
        fail("%s: option %s: expected a %s, got %s", fname, key, type(default), describe(value))
    end
end

-- (params, {lr = 0.1}), {params, lr = 0.1} or {params = ..., lr = 0.1}, as one table with all options.
local function reader(fname, defaults, base)
    return function(first, options)
        local group, given = {}, options or {}
        for key, value in pairs(defaults) do
            group[key] = base.kept(value)
        end
        if type(first) ~= "table" then
            fail("%s: the parameters must be a list of tensors, got %s", fname, describe(first))
        elseif options == nil then
            given, group.params = {}, first.params or table.move(first, 1, #first, 1, {})
            for key, value in pairs(first) do
                given[key] = math.type(key) == nil and key ~= "params" and value or nil
            end
        else
            group.params = first
        end
        for key, value in pairs(given) do
            check_option(fname, defaults, key, value)
            group[key] = value
        end
        if defaults.lr then
            base.read_rate(fname, group.lr)
        end
        return group
    end
end

return function(optim, base)
    local function step_group(self, group)
        for k, p in ipairs(group.params) do
            base.check_parameter(self.__name, k, p)
            if p.grad then
                self.state[p] = self.state[p] or {}
                self:update(p, p.grad, self.state[p], group)
            end
        end
    end

    optim.class = declare("class(str name, table defaults) -> class",
        'A class of optimizers: Lion = tide.optim.class("Lion", {lr = 1e-4, betas = {0.9, 0.99}}); function Lion:update(p, grad, state, group) '
            .. "... end changes a parameter in place by its gradient, within no_grad; state is the parameter's own table, empty at first, group has "
            .. "the options. opt = Lion(model:parameters(), {lr = 3e-4}) then has what all optimizers have.", function(name, defaults)
            for key in pairs(defaults) do
                if type(key) ~= "string" or key == "params" then
                    fail("class: argument 2 (defaults): options by name expected, such as {lr = 0.1}, got the key %s", describe(key))
                end
            end
            local class = { __name = name, __tostring = base.Optimizer.__tostring, __newindex = base.assign, read = reader(name, defaults, base),
                step_group = step_group }
            class.__index = class
            function class.update()
                fail("%s has no update: write function %s:update(p, grad, state, group)", name, name)
            end
            return setmetatable(class, { __index = base.Optimizer, __call = base.new, __tostring = function() return "class " .. name end })
        end)
end
