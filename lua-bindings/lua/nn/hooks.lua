-- nn/hooks.lua: functions that a module calls around its forward, and around the backward of what it gave.
local tide = ...
local fail, declare = tide._fail, tide._function

local KINDS = { "pre", "after", "backward", "backward_pre" }

local Hook = { __name = "ModuleHook" }
Hook.__index = Hook

-- Takes out the first hook of a list for which is_it(hook); without any, calls cost nothing.
local function take_out(module, kind, is_it)
    local hooks, found, left = rawget(module, "_hooks"), nil, 0
    for k, hook in ipairs(hooks and hooks[kind] or {}) do
        if is_it(hook) then
            found = table.remove(hooks[kind], k)
            break
        end
    end
    for _, each_kind in ipairs(KINDS) do
        left = left + (hooks and #hooks[each_kind] or 0)
    end
    if left == 0 then
        rawset(module, "_hooks", nil)
    end
    return found
end

function Hook:remove()
    if self.module then
        take_out(self.module, self.kind, function(hook) return hook == self end)
        self.module = nil
    end
end
Hook.__close = Hook.remove
Hook.__tostring = function(self) return "ModuleHook: " .. (self.module and "set; remove() ends it" or "removed") end

-- The hooks of a kind as they are now: one may remove itself.
local function each(list)
    return ipairs(table.move(list, 1, #list, 1, {}))
end

-- ---- forward ----

local function run_before(self, hooks, args)
    for _, hook in each(hooks.pre) do
        local given = table.pack(hook.fn(self, args))
        if given.n > 0 and given[1] ~= nil then
            args = given
        end
    end
    return args
end

local function run_after(self, hooks, args, results)
    for _, hook in each(hooks.after) do
        local given = table.pack(hook.fn(self, args, table.unpack(results, 1, results.n)))
        if given.n > 0 and given[1] ~= nil then
            results = given
        end
    end
    return results
end

-- ---- backward ----

-- What a hook put in the place of n gradients.
local function replaced(what, given, grads)
    if given == nil then
        return grads
    elseif tide.is_tensor(given) then
        given = { given }
    elseif type(given) ~= "table" then
        fail("%s: expected a tensor, a list of gradients or nothing from the hook, got %s", what, tide._describe(given))
    end
    for k in pairs(given) do
        if k ~= "n" and (math.type(k) ~= "integer" or k < 1 or k > grads.n) then
            fail("%s: the hook gave a gradient %s, there are %d", what, tostring(k), grads.n)
        end
    end
    given.n = grads.n
    return given
end

-- The tensors among values that take part in gradients, and where they stand.
local function differentiable(values)
    local tensors, places = {}, {}
    for k = 1, values.n do
        local x = values[k]
        if tide.is_tensor(x) and x.requires_grad then
            tensors[#tensors + 1], places[#places + 1] = x, k
        end
    end
    return tensors, places
end

-- values whose gradients go through backward(...).
local function through(name, values, tensors, places, backward)
    local fn = tide.autograd.Function(name, {
        forward = function(ctx, ...)
            ctx:set_materialize_grads(false)
            return ...
        end,
        backward = function(_, ...) return backward(table.pack(...)) end,
    })
    local passed = table.pack(fn(table.unpack(tensors)))
    local changed = table.move(values, 1, values.n, 1, { n = values.n })
    for k, place in ipairs(places) do
        changed[place] = passed[k]
    end
    return changed
end

-- Gradients among those of all values.
local function spread(grads, places, n)
    local all = { n = n }
    for k, place in ipairs(places) do
        all[place] = grads[k]
    end
    return all
end

local function gathered(all, places)
    local grads = {}
    for k, place in ipairs(places) do
        grads[k] = all[place]
    end
    return table.unpack(grads, 1, #places)
end

-- One call whose backward is watched: gradients of results come first, those of arguments last.
local Watch = {}
Watch.__index = Watch

function Watch:finish(grads)
    for _, hook in each(self.hooks.backward) do
        grads = replaced("register_full_backward_hook", hook.fn(self.module, grads, self.grad_output), grads)
    end
    self.grad_output = nil
    return grads
end

function Watch:inputs(args)
    local tensors, places = differentiable(args)
    self.count, self.any = args.n, #tensors > 0
    if not self.any or #self.hooks.backward == 0 then
        return args
    end
    return through("ModuleInput", args, tensors, places, function(grads)
        return gathered(self:finish(spread(grads, places, args.n)), places)
    end)
end

function Watch:results(results)
    local tensors, places = differentiable(results)
    if #tensors == 0 then
        return results
    end
    return through("ModuleOutput", results, tensors, places, function(grads)
        local all = spread(grads, places, results.n)
        for _, hook in each(self.hooks.backward_pre) do
            all = replaced("register_full_backward_pre_hook", hook.fn(self.module, all), all)
        end
        self.grad_output = all
        if not self.any then
            self:finish({ n = self.count })
        end
        return gathered(all, places)
    end)
end

-- module(...), where hooks are.
local function call(self, hooks, ...)
    local args = run_before(self, hooks, table.pack(...))
    local watched = #hooks.backward + #hooks.backward_pre > 0 and tide.is_grad_enabled()
        and setmetatable({ module = self, hooks = hooks }, Watch)
    if watched then
        args = watched:inputs(args)
    end
    local results = table.pack(self:forward(table.unpack(args, 1, args.n)))
    results = run_after(self, hooks, args, results)
    if watched then
        results = watched:results(results)
    end
    return table.unpack(results, 1, results.n)
end

-- ---- registering ----

local function register(self, kind, fn, prepend)
    local hooks = rawget(self, "_hooks")
    if not hooks then
        hooks = {}
        for _, each_kind in ipairs(KINDS) do
            hooks[each_kind] = {}
        end
        rawset(self, "_hooks", hooks)
    end
    local hook = setmetatable({ fn = fn, module = self, kind = kind }, Hook)
    table.insert(hooks[kind], prepend and 1 or #hooks[kind] + 1, hook)
    return hook
end

return function(nn, base)
    nn._ModuleHook = Hook -- by this name it goes to another state
    for _, row in ipairs {
        { "register_forward_pre_hook", "pre", "Call hook(module, args) before forward; values that it returns are the "
            .. "arguments instead. The hook's remove() ends it." },
        { "register_forward_hook", "after", "Call hook(module, args, results...) after forward; values that it returns "
            .. "are the results instead. The hook's remove() ends it." },
        { "register_full_backward_hook", "backward", "Call hook(module, grad_input, grad_output) when the gradients of "
            .. "the arguments are there; a list that it returns is in their place. The hook's remove() ends it." },
        { "register_full_backward_pre_hook", "backward_pre", "Call hook(module, grad_output) before the module's "
            .. "backward; a list that it returns is in their place. The hook's remove() ends it." },
    } do
        base.method(row[1], ", function hook, *, bool prepend=false) -> ModuleHook", row[3],
            function(self, fn, prepend) return register(self, row[2], fn, prepend) end)
    end

    -- The first hook before forward for which is_it(hook).
    function base.find_hook(module, is_it)
        local hooks = rawget(module, "_hooks")
        for _, hook in ipairs(hooks and hooks.pre or {}) do
            if is_it(hook) then
                return hook
            end
        end
    end

    -- Ends the hook of a key that runs before forward, and gives what it computes with.
    function base.remove_hook(module, key)
        local hook = take_out(module, "pre", function(hook) return hook.key == key end)
        return hook and hook.compute
    end
    return call
end
