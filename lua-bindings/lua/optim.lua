-- optim.lua: optimizers. An optimizer holds groups of parameters with their options and a state per
-- parameter; a class says what one step does to one group, mostly as a recipe (optim/steps.lua). How a
-- recipe is run over many parameters at once is the engine's matter.
local tide = ...
local fail, declare = tide._fail, tide._function
local check_given = tide._require "files.state"
local optim = {}

local Optimizer = { __name = "Optimizer" }
Optimizer.__index = Optimizer

-- Options are a group's: an optimizer has none of these names.
local OPTIONS = {}
for name in string.gmatch("lr momentum dampening weight_decay nesterov maximize betas eps amsgrad alpha centered rho lambd lr_decay etas "
    .. "step_sizes initial_lr", "%S+") do
    OPTIONS[name] = true
end

local function refuse_option(name)
    if OPTIONS[name] then
        fail("an optimizer has no '%s': it is its groups', opt.param_groups[1].%s", name, name)
    end
end
setmetatable(Optimizer, { __index = function(_, name) refuse_option(name) end })

local function assign(self, name, value)
    refuse_option(name)
    rawset(self, name, value)
end
tide._class("Optimizer", Optimizer)

-- A method of every optimizer: "name(PARAMETERS) -> RESULT" behind self.
local function method(name, parameters, doc, fn)
    Optimizer[name] = declare(string.format("%s(Optimizer self%s", name, parameters), doc, fn)
end

local function check_parameter(fname, k, p)
    if not tide.is_tensor(p) then
        fail("%s: parameter %d: expected a tensor, got %s", fname, k, tide._describe(p))
    elseif not p.is_leaf then
        fail("%s: parameter %d is the result of an operator (%s): only leaves can be optimized", fname, k,
            tostring(p.grad_fn))
    end
end

-- A list of tensors; named_parameters() stands for its tensors.
local function listed(params)
    local meta = type(params) == "table" and getmetatable(params)
    local tensors = type(meta) == "table" and rawget(meta, "__tensors")
    return tide.is_tensor(params) and { params } or tensors and tensors(params) or params
end

local function is_group(value) return type(value) == "table" and not tide.is_tensor(value) and value.params ~= nil end

-- A group's own options, with those of the optimizer where it has none.
local function read_group(class, k, given, defaults)
    if not is_group(given) then
        fail("%s: group %d: expected {params = {...}, ...}, got %s (parameters of one group are one list: %s(model:parameters(), {lr = 0.1}))",
            class.__name, k, tide._describe(given), class.__name)
    end
    local merged = {}
    for name, value in pairs(defaults) do
        merged[name] = value
    end
    for name, value in pairs(given) do
        merged[name] = value
    end
    merged.params = listed(merged.params)
    return class.read(merged)
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
    if not (math.type(number) and number >= 0) then
        fail("%s: option lr: expected a number from 0 on, got %s", fname,
            math.type(number) and tide._number(number) or tide._describe(number))
    end
    return number
end

-- Behind the other groups, once all of it is sound.
local function append_group(self, group)
    local fname, seen = self.__name, {}
    if self.single and #self.param_groups > 0 then
        fail("%s: takes one group of parameters, not several", fname)
    elseif #group.params == 0 then
        fail("%s: the list of parameters is empty: model:parameters() has those of modules that are fields or in a "
            .. "nn.ModuleList, not in a plain table", fname)
    end
    for _, other in ipairs(self.param_groups) do
        for _, p in ipairs(other.params) do
            seen[p] = true
        end
    end
    for k, p in ipairs(group.params) do
        check_parameter(fname, k, p)
        if seen[p] then
            fail("%s: parameter %d is given twice", fname, k)
        end
        seen[p] = true
    end
    self.param_groups[#self.param_groups + 1] = group
    if self.eager then
        for _, p in ipairs(group.params) do
            self.state[p] = self.start(p, group)
        end
    end
end

local new

-- params: a list of tensors, or of groups { params = ..., lr = ... } with options of their own.
function new(class, ...)
    local fname = class.__name
    local first, options, more = ...
    if type(options) == "number" and (more == nil or type(more) == "table") then -- the rate by itself
        local all = { lr = options }
        for name, value in pairs(more or {}) do
            all[name] = value
        end
        return new(class, first, all)
    elseif tide.is_tensor(first) then
        fail("%s: the parameters must be a list of tensors, got one tensor: put it in a table", fname)
    elseif tide.nn.is_module(first) then
        fail("%s: the parameters must be a list of tensors, got %s: pass model:parameters()", fname,
            tide._describe(first))
    elseif options ~= nil and type(options) ~= "table" then
        fail("%s: options must be a table such as {lr = 0.1}, got %s", fname, tide._describe(options))
    end
    local self = setmetatable({ param_groups = {}, state = {} }, class)
    local group = class.read(listed(first), select(2, ...))
    self.defaults = {}
    for name, value in pairs(group) do
        self.defaults[name] = value
    end
    self.defaults.params = nil
    local first_of = group.params[1]
    if #group.params == 1 and type(first_of) == "table" and not is_group(first_of) and tide.is_tensor(first_of[1]) then
        group.params = first_of -- Adam{model:parameters(), lr = 0.1}
    end
    if type(group.params[1]) ~= "table" then
        append_group(self, group)
    end
    for k, given in ipairs(type(group.params[1]) == "table" and group.params or {}) do
        append_group(self, read_group(class, k, given, self.defaults))
    end
    return self
end

method("add_param_group", ", table group)", "One group {params = ..., lr = ...} more, with the optimizer's options where "
    .. "it has none of its own.", function(self, group)
    append_group(self, read_group(getmetatable(self), #self.param_groups + 1, group, self.defaults))
end)

-- ---- hooks ----

-- What is called around every step: opt.hooks = {pre = {...}, post = {...}}, once there is one.
local Hook = { __name = "StepHook" }
Hook.__index = Hook

function Hook:remove()
    for k, hook in ipairs(self.list or {}) do
        if hook == self then
            table.remove(self.list, k)
        end
    end
    self.list = nil
end
Hook.__close = Hook.remove
Hook.__tostring = function(self) return "StepHook: " .. (self.list and "set; remove() ends it" or "removed") end

local function register(self, kind, fn)
    self.hooks = self.hooks or { pre = {}, post = {} }
    local hook = setmetatable({ fn = fn, list = self.hooks[kind] }, Hook)
    table.insert(hook.list, hook)
    return hook
end

function Optimizer:_run_hooks(kind)
    if not self.hooks then
        return
    end
    local list = self.hooks[kind]
    for _, hook in ipairs(table.move(list, 1, #list, 1, {})) do -- one may remove itself
        hook.fn(self)
    end
end

method("register_step_pre_hook", ", function hook) -> StepHook", "Call hook(opt) before every step. The hook's remove() ends it.",
    function(self, fn) return register(self, "pre", fn) end)
method("register_step_post_hook", ", function hook) -> StepHook", "Call hook(opt) after every step. The hook's remove() ends it.",
    function(self, fn) return register(self, "post", fn) end)

method("step", ", function? closure=nil) -> any", "Change the parameters by their gradients. A closure, when given, "
    .. "is called first to compute the loss anew, and its result is returned.", function(self, closure)
    local _range <close> = tide.profiler.record { self.__name .. ".step", kind = "optimizer" }
    local loss
    self:_run_hooks("pre")
    if closure then
        loss = tide.enable_grad(closure)
    end
    do
        local _ <close> = tide.no_grad()
        for _, group in ipairs(self.param_groups) do
            self:step_group(group)
        end
    end
    self.stepped = true -- schedulers want to be stepped behind it
    self:_run_hooks("post")
    return loss
end)

method("zero_grad", ", bool set_to_none=true)", "Forget the gradients; with {set_to_none = false} they become zeros.",
    function(self, set_to_none)
        local zeros = {}
        for _, group in ipairs(self.param_groups) do
            for _, p in ipairs(group.params) do
                if set_to_none then
                    p.grad = nil
                elseif p.grad then
                    zeros[#zeros + 1] = p.grad:detach()
                end
            end
        end
        tide.foreach.zero_(zeros)
    end)

-- ---- steps ----

-- Parameters that one run of a recipe changes: those whose numbers are the same. `index` is where the
-- gradients and states of the next one go.
local function new_bucket(class, group, key)
    local lists = { {}, {} }
    for k in ipairs(class.states(group)) do
        lists[k + 2] = {}
    end
    return { key = key, n = 0, lists = lists, states = {} }
end

local function bucket_for(buckets, class, group, key)
    for k = 1, group.foreach and #buckets or 0 do
        if buckets[k].key == key then
            return buckets[k]
        end
    end
    local bucket = new_bucket(class, group, key)
    buckets[#buckets + 1] = bucket
    return bucket
end

-- Those of some parameters of a group that have a gradient, by how often they were stepped.
local function sort_out(self, group, lr, params)
    local buckets, bucket = {}, nil
    local class, all, names = getmetatable(self), self.state, self.states(group)
    local first, second, third = table.unpack(names)
    local counts, carries = class.counts, class.carries
    for k, p in ipairs(params) do
        check_parameter(self.__name, k, p)
        local grad = p.grad
        if grad and grad.is_sparse then
            tide._require("optim.sparse").step(self, group, lr, p, grad)
        elseif grad then
            local state, key = all[p], 0
            local fresh = not state or (first and state[first] == nil)
            if fresh then
                state = class.start(p, group, lr) or nil
            end
            if counts and not math.type(state.step) then
                fail("%s: the state of parameter %d: step must be a number, got %s", self.__name, k,
                    tide._describe(state.step))
            elseif counts then
                key = carries and string.format("%d %a", state.step, state[carries]) or state.step
            elseif fresh then
                key = -1
            end
            if not bucket or bucket.key ~= key or not group.foreach then
                bucket = bucket_for(buckets, class, group, key)
            end
            local n, lists = bucket.n + 1, bucket.lists
            bucket.n, bucket.states[n] = n, state
            lists[1][n], lists[2][n] = p, grad
            if first then
                lists[3][n] = state[first]
                if second then
                    lists[4][n] = state[second]
                    if third then
                        lists[5][n] = state[third]
                    end
                end
            end
        end
    end
    return buckets
end

-- What the step has changed besides tensors, now that it is done.
local function keep(self, group, bucket, n, carried)
    local class, params, states = getmetatable(self), bucket.lists[1], bucket.states
    for k = 1, class.counts and bucket.n or 0 do
        states[k].step = n
    end
    for k = 1, class.carries and bucket.n or 0 do
        states[k][class.carries] = carried
    end
    if bucket.key == -1 or n == 1 then
        for k = 1, bucket.n do
            self.state[params[k]] = states[k]
        end
    end
end

-- What is plain, in the engine's own walk over parameters and states (lua-bindings/modules/optim.c), and of it what was
-- stepped equally often at once. Returns the parameters that want another way; nil when none does.
local function step_plain(self, group, lr)
    local class, names, left = getmetatable(self), self.states(group), group.params
    while left do
        local n, carried, carry, done
        if class.counts then
            n, carried = tide._optim_next(left, self.state, class.carries)
            if not n then
                return n == false and left or nil
            end
            carry = class.carries and class.carry(group, n + 1, carried)
        end
        local text, numbers = class.recipe(group, lr, n and n + 1, false, carry)
        local before = left
        done, left = tide._optim_step(class.apply, text, numbers, left, self.state, names, n, class.carries, carried, carry)
        if not done then
            return before
        end
    end
end

-- One run of the recipe for each bucket: first steps, and where lists are not wanted.
local function step_sorted(self, group, lr, params)
    local class = getmetatable(self)
    for _, bucket in ipairs(sort_out(self, group, lr, params)) do
        local one, carried = bucket.states[1], nil
        local n = class.counts and one.step + 1 or nil
        if class.carries then
            carried = class.carry(group, n, one[class.carries])
        end
        local text, numbers = class.recipe(group, lr, n, bucket.key == -1, carried)
        local lists = bucket.lists
        class.apply(text, lists[1], lists[2], lists[3], lists[4], lists[5], { numbers = numbers })
        keep(self, group, bucket, n, carried)
    end
end

function Optimizer:step_group(group)
    local lr, left = read_rate(self.__name, group.lr), group.params
    if type(left) ~= "table" then
        fail("%s: a group's params must be a list of tensors, got %s", self.__name, tide._describe(left))
    end
    if group.foreach then
        left = step_plain(self, group, lr)
    end
    if left then
        step_sorted(self, group, lr, left)
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

-- A value that steps to come don't reach.
local function kept(value)
    if tide.is_tensor(value) then
        return value:detach():clone()
    elseif type(value) ~= "table" or getmetatable(value) then
        return value
    end
    local list = {}
    for k, v in pairs(value) do
        list[k] = kept(v)
    end
    return list
end

local function state_dict(self)
    local dict, number = { param_groups = {}, state = {} }, 0
    for g, group in ipairs(self.param_groups) do
        dict.param_groups[g] = kept(options_of(group))
        dict.param_groups[g].params = {}
        for k, p in ipairs(group.params) do
            number = number + 1
            dict.param_groups[g].params[k] = number
            dict.state[number] = kept(self.state[p] or {})
        end
    end
    return dict
end
method("state_dict", ") -> table",
    "Options and states by the parameters' numbers, as they are now, for load_state_dict of an optimizer of the same "
    .. "shape.", state_dict)

-- The options that a class knows are read as those of a constructor; others are what schedulers noted.
local function read_options(self, g, group, given)
    if type(given) ~= "table" then
        fail("load_state_dict: group %d: a table expected, got %s", g, tide._describe(given))
    elseif given.params and #given.params ~= #group.params then
        fail("load_state_dict: group %d: the state of %d parameters for an optimizer of %d", g, #given.params,
            #group.params)
    end
    for name in pairs(given.params and self.defaults or {}) do
        if given[name] == nil and name ~= "foreach" then
            fail("load_state_dict: group %d has no '%s': the state is not that of %s", g, name, self.__name)
        end
    end
    local known, options = { params = group.params }, {}
    for name, value in pairs(given) do
        if self.defaults[name] ~= nil then
            known[name] = value
        elseif name ~= "params" then
            options[name] = value
        end
    end
    for name, value in pairs(options_of(self.read(known))) do
        options[name] = value
    end
    return options
end

-- The groups' options that a state_dict holds, once all of it fits this optimizer.
local function read_state(self, dict)
    if type(dict.param_groups) ~= "table" or type(dict.state) ~= "table"
        or #dict.param_groups ~= #self.param_groups then
        fail("load_state_dict: expected the state of an optimizer of %d groups", #self.param_groups)
    end
    local options, number = {}, 0
    for g, group in ipairs(self.param_groups) do
        options[g] = read_options(self, g, group, dict.param_groups[g])
        for _, p in ipairs(group.params) do
            number = number + 1
            local state = dict.state[number] or {}
            if type(state) ~= "table" then
                fail("load_state_dict: the state of parameter %d: expected a table, got %s", number,
                    tide._describe(state))
            end
            for name, value in pairs(state) do
                if tide.is_tensor(value) and value:dim() > 0 and self.shaped and value.shape ~= p.shape then
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

-- A state's value as the parameter wants it: of its dtype and device, and nobody else's.
local function take_over(p, name, value)
    if type(value) == "table" and not tide.is_tensor(value) then
        local list = {}
        for k, v in pairs(value) do
            list[k] = take_over(p, k, v)
        end
        return list
    elseif name == "step" or name == "mu_product" then
        local number = tide.is_tensor(value) and value:item() or value
        return name == "step" and math.tointeger(number) or number
    elseif not tide.is_tensor(value) then
        return value
    end
    return value:to(p.dtype, p.device, { copy = true })
end

-- Nothing is changed when the state doesn't fit.
local function load_state_dict(self, dict)
    check_given(dict)
    local options, number = read_state(self, dict), 0
    for g, group in ipairs(self.param_groups) do
        for name, value in pairs(options[g]) do
            group[name] = value
        end
        for _, p in ipairs(group.params) do
            number = number + 1
            local state = {}
            for name, value in pairs(dict.state[number] or {}) do
                state[name] = take_over(p, name, value)
            end
            self.state[p] = next(state) ~= nil and state or nil
        end
    end
end
method("load_state_dict", ", any dict)", "Take over a state_dict's options and states.", load_state_dict)

local function option_text(value)
    if type(value) ~= "table" or getmetatable(value) ~= nil then
        return type(value) == "number" and tide._number(value) or tostring(value)
    end
    local texts = {}
    for k, v in ipairs(value) do
        texts[k] = option_text(v)
    end
    return "{" .. table.concat(texts, ", ") .. "}"
end

function Optimizer:__tostring()
    local lines = { self.__name .. " (" }
    for g, group in ipairs(self.param_groups) do
        lines[#lines + 1] = string.format("Parameter Group %d", g)
        local names = {}
        for name in pairs(options_of(group)) do
            names[#names + 1] = name
        end
        table.sort(names, tide._before)
        for _, name in ipairs(names) do
            local value = group[name]
            lines[#lines + 1] = string.format("    %s: %s", name, option_text(value))
        end
    end
    lines[#lines + 1] = ")"
    return table.concat(lines, "\n")
end

-- ---- classes ----

-- What PyTorch's constructors take besides: which of them, and what becomes of it.
local FUSED = { SGD = true, Adam = true, AdamW = true, Adagrad = true }

local function with_switches(schema)
    local more = "bool foreach=true, bool capturable=false, bool differentiable=false"
    return (string.gsub(schema, "bool foreach=true", FUSED[string.match(schema, "^%w+")] and more .. ", bool? fused=nil" or more))
end

-- A step over lists is the fused one already.
local function read_switches(name, options)
    if options.capturable then
        fail("%s: option capturable: there are no graphs of calls that a step could be captured in", name)
    elseif options.differentiable then
        fail("%s: option differentiable: a step is not recorded; write it with operators to go back through it", name)
    end
    options.foreach = options.foreach or options.fused
    options.capturable, options.differentiable, options.fused = nil, nil, nil
end

-- A class whose constructor has the schema c.schema; c.check(options) refuses what does not go together.
local function class(c)
    local name, read = string.match(c.schema, "^%w+"), declare(with_switches(c.schema), c.doc)
    c.__name, c.__tostring, c.__index, c.__newindex, c.apply = name, Optimizer.__tostring, c, assign, c.step
    c.step = nil
    c.counts = c.counts == nil or c.counts
    c.shaped = c.shaped == nil or c.shaped
    function c.read(...)
        local options = read(...)
        read_rate(name, options.lr)
        read_switches(name, options)
        if c.check then
            c.check(options)
        end
        return options
    end
    optim[name] = setmetatable(c, { __index = Optimizer, __call = new, __tostring = function() return "class " .. name end })
    tide._document(c, read)
    return c
end

tide._require("optim.steps")(class)
tide._require("optim.lbfgs")(class)
tide._require("optim.sparse").define(class, read_rate)
tide._require("optim.matrix")(class, read_rate)
tide._require("optim.own")(optim, { Optimizer = Optimizer, new = new, assign = assign, read_rate = read_rate,
    check_parameter = check_parameter, kept = kept })
optim.lr_scheduler = tide._require "optim.schedulers"
optim.swa_utils = tide._require "optim.swa"
optim.swa_utils.SWALR = optim.lr_scheduler.SWALR

tide._document(optim, "optim", "tide.optim", "Optimizers: SGD, Adam, AdamW, Adamax, NAdam, RAdam, RMSprop, Rprop, Adagrad, "
    .. "Adadelta, ASGD, Adafactor, Muon, LBFGS; class makes your own; lr_scheduler has what changes their learning rates, swa_utils averages of models.")

return optim
