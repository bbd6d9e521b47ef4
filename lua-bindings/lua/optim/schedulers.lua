-- optim/schedulers.lua: tide.optim.lr_scheduler: what changes learning rates from step to step. Most change the
-- rate that a group has now (so several can be chained); what they are in closed form is for SequentialLR,
-- which starts one anew. Knows of optimizers only their groups and whether they were stepped.
local tide = ...
local fail, declare = tide._fail, tide._function
local check_given = tide._require "files.state"

local Scheduler = { __name = "LRScheduler" }
Scheduler.__index = Scheduler
tide._class("LRScheduler", Scheduler)

local function method(name, parameters, doc, fn)
    Scheduler[name] = declare(string.format("%s(LRScheduler self%s", name, parameters), doc, fn)
end

-- ---- rates in groups ----

local function number_of(value) return tide.is_tensor(value) and value:item() or value end

local function set_value(group, name, value)
    if tide.is_tensor(group[name]) then
        tide.no_grad(function() group[name]:fill_(value) end)
    else
        group[name] = value
    end
end

-- f(group, its number) of every group.
local function map(optimizer, f)
    local list = {}
    for k, group in ipairs(optimizer.param_groups) do
        list[k] = f(group, k)
    end
    return list
end

local function rates_now(optimizer) return map(optimizer, function(group) return number_of(group.lr) end) end

-- Every rate times a factor.
local function scaled(self, factor) return map(self.optimizer, function(group) return number_of(group.lr) * factor end) end
local function from_base(self, f) return map(self.optimizer, function(_, k) return f(self.base_lrs[k], k) end) end

-- One value for each group, from one for all or a list of them.
local function one_each(self, name, value)
    local list = {}
    for k in ipairs(self.optimizer.param_groups) do
        list[k] = type(value) == "table" and (#value == 1 and value[1] or value[k]) or value
    end
    if type(value) == "table" and #value ~= 1 and #value ~= #list then
        fail("%s: %s has %d values, the optimizer %d groups", self.__name, name, #value, #list)
    end
    return list
end

-- ---- momenta that go along with rates ----

local function set_momentum(group, uses_betas, value)
    if uses_betas then
        group.betas = { value, table.unpack(group.betas, 2) }
    else
        group.momentum = value
    end
end

local function begin_momenta(self, base, most)
    local defaults = self.optimizer.defaults
    if defaults.momentum == nil and defaults.betas == nil then
        fail("%s: option cycle_momentum: %s has neither momentum nor betas: pass {cycle_momentum = false}", self.__name,
            self.optimizer.__name)
    end
    self.use_beta1 = defaults.betas ~= nil
    self.base_momentums, self.max_momentums = one_each(self, "base_momentum", base), one_each(self, "max_momentum", most)
    for k, group in ipairs(self.last_epoch == -1 and self.optimizer.param_groups or {}) do
        set_momentum(group, self.use_beta1, self.max_momentums[k])
        group.max_momentum, group.base_momentum = self.max_momentums[k], self.base_momentums[k]
    end
end

-- ---- what all have ----

-- The rates at a step: by closed form where one is asked for and known.
local function update(self, epoch)
    self.last_epoch = epoch or self.last_epoch + 1
    local rates = epoch and self.closed and self:closed() or self:rates()
    for k, group in ipairs(self.optimizer.param_groups) do
        set_value(group, "lr", rates[k])
    end
    self._last_lr = rates_now(self.optimizer)
end

-- Read the rates that the optimizer begins with, and take the step 0.
local function begin(self)
    for k, group in ipairs(self.optimizer.param_groups) do
        if self.last_epoch == -1 then
            group.initial_lr = group.initial_lr or number_of(group.lr)
        elseif not group.initial_lr then
            fail("%s: option last_epoch: group %d has no initial_lr to go on from: load the optimizer's state first",
                self.__name, k)
        end
    end
    self.base_lrs = map(self.optimizer, function(group) return group.initial_lr end)
end

local function step_initially(self)
    self._step_count = 0
    self.starting = true
    self:advance()
    self.starting = nil
end

local function warn_of_order(self)
    if self._step_count == 1 and not self.optimizer.stepped then
        warn(string.format("tide: %s: step() before the optimizer's: the first learning rate is skipped; step the optimizer first",
            self.__name))
    end
end

function Scheduler:advance()
    warn_of_order(self)
    self._step_count = self._step_count + 1
    update(self)
end

method("step", ")", "Go on to the next learning rate; behind the optimizer's step.", function(self) self:advance() end)
method("get_last_lr", ") -> list", "The rates that the groups have got last.",
    function(self) return table.move(self._last_lr, 1, #self._last_lr, 1, {}) end)

local function copy(value)
    if type(value) ~= "table" then
        return value
    end
    local list = {}
    for k, v in pairs(value) do
        list[k] = copy(v)
    end
    return list
end

local function is_state(name, value)
    return name ~= "optimizer" and name ~= "schedulers" and type(value) ~= "function" and string.sub(name, 1, 10) ~= "lr_lambdas"
end

local function state_dict(self)
    local dict = {}
    for name, value in pairs(self) do
        if is_state(name, value) then
            dict[name] = copy(value)
        end
    end
    if self.schedulers then
        dict.schedulers = {}
        for k, part in ipairs(self.schedulers) do
            dict.schedulers[k] = state_dict(part)
        end
    end
    return dict
end

-- All that a state holds must be known here: it may be another scheduler's.
local function check_state(self, dict)
    local mine = state_dict(self)
    for name in pairs(dict) do
        if mine[name] == nil then
            fail("load_state_dict: %s has no '%s': the state is that of another scheduler", self.__name, tostring(name))
        end
    end
    for name in pairs(mine) do
        if dict[name] == nil then
            fail("load_state_dict: '%s' is missing: the state is not that of %s", name, self.__name)
        end
    end
    if self.schedulers and #dict.schedulers ~= #self.schedulers then
        fail("load_state_dict: the state of %d schedulers, expected %d", #dict.schedulers, #self.schedulers)
    end
    for k, part in ipairs(self.schedulers or {}) do
        check_state(part, dict.schedulers[k])
    end
end

local function take_state(self, dict)
    for name, value in pairs(dict) do
        if name ~= "schedulers" then
            self[name] = copy(value)
        end
    end
    for k, part in ipairs(self.schedulers or {}) do
        take_state(part, dict.schedulers[k])
    end
end

method("state_dict", ") -> table", "All that it has but the optimizer and functions.", state_dict)
method("load_state_dict", ", any dict)", "Take over what state_dict said; nothing is changed when it doesn't fit.",
    function(self, dict)
        check_given(dict)
        check_state(self, dict)
        take_state(self, dict)
    end)

local function setting_text(value)
    if type(value) == "table" and getmetatable(value) == nil then
        local texts = {}
        for k, v in ipairs(value) do
            texts[k] = setting_text(v)
        end
        return "{" .. table.concat(texts, ", ") .. "}"
    end
    return math.type(value) and tide._number(value) or type(value) == "string" and string.format('"%s"', value) or tostring(value)
end

-- Its class with its settings, but for the optimizer and what steps change.
function Scheduler:__tostring()
    local texts = {}
    for _, name in ipairs(self.settings or {}) do
        local value = rawget(self, name)
        local shown = math.type(value) or type(value) == "string" or type(value) == "boolean" or type(value) == "table" and math.type(value[1])
        if name ~= "last_epoch" and shown then
            texts[#texts + 1] = string.format("%s=%s", name, setting_text(value))
        end
    end
    return string.format("%s(%s)", self.__name, table.concat(texts, ", "))
end

-- ---- classes ----

local schedulers = {}

-- c.rates(self) are the rates at self.last_epoch, c.closed(self) the same from nothing but that; c.init(self)
-- checks options, which are fields of the scheduler.
local function define(c)
    local name, read = string.match(c.schema, "^%w+"), declare(c.schema, c.doc)
    c.__name, c.__index, c.__tostring = name, c, Scheduler.__tostring
    c.settings = tide._doc(read).params
    schedulers[name] = setmetatable(c, { __index = Scheduler, __tostring = function() return "class " .. name end, __call = function(class, ...)
        local self = setmetatable(read(...), class)
        if class.init then
            class.init(self)
        end
        if class.alone then
            return self
        end
        begin(self)
        step_initially(self)
        self.base_lrs = self.own_base_lrs or self.base_lrs
        self.own_base_lrs = nil
        return self
    end })
    tide._document(c, read)
    return c
end

local REST = ", int(-1..) last_epoch=-1)"

define {
    schema = "StepLR(Optimizer optimizer, int(1..) step_size, number gamma=0.1" .. REST,
    doc = "The rate times gamma every step_size steps.",
    rates = function(self)
        local now = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return scaled(self, now and self.gamma or 1)
    end,
    closed = function(self)
        return from_base(self, function(base) return base * self.gamma ^ (self.last_epoch // self.step_size) end)
    end,
}

-- How many milestones meet a condition.
local function count(milestones, meets)
    local n = 0
    for _, m in ipairs(milestones) do
        n = n + (meets(m) and 1 or 0)
    end
    return n
end

define {
    schema = "MultiStepLR(Optimizer optimizer, int[] milestones, number gamma=0.1" .. REST,
    doc = "The rate times gamma at each milestone.",
    rates = function(self)
        return scaled(self, self.gamma ^ count(self.milestones, function(m) return m == self.last_epoch end))
    end,
    closed = function(self)
        local n = count(self.milestones, function(m) return m <= self.last_epoch end)
        return from_base(self, function(base) return base * self.gamma ^ n end)
    end,
}

define {
    schema = "ConstantLR(Optimizer optimizer, number(0..1) factor=0.3333333333333333, int(0..) total_iters=5" .. REST,
    doc = "The rate times factor for total_iters steps.",
    rates = function(self)
        return scaled(self, self.last_epoch == 0 and self.factor
            or self.last_epoch == self.total_iters and 1 / self.factor or 1)
    end,
    closed = function(self)
        local factor = self.last_epoch >= self.total_iters and 1 or self.factor
        return from_base(self, function(base) return base * factor end)
    end,
}

define {
    schema = "LinearLR(Optimizer optimizer, number(0..1) start_factor=0.3333333333333333, number(0..1) end_factor=1, "
        .. "int(0..) total_iters=5" .. REST,
    doc = "The rate times a factor that goes from start_factor to end_factor within total_iters steps.",
    init = function(self)
        if self.start_factor == 0 then
            fail("LinearLR: option start_factor: a number above 0 expected, got 0")
        end
    end,
    rates = function(self)
        local from, to, n = self.start_factor, self.end_factor, self.last_epoch
        if n == 0 then
            return scaled(self, from)
        elseif self.starting or n > self.total_iters then
            return rates_now(self.optimizer)
        end
        return scaled(self, 1 + (to - from) / (self.total_iters * from + (n - 1) * (to - from)))
    end,
    closed = function(self)
        local from, to = self.start_factor, self.end_factor
        local done = self.total_iters == 0 and 1 or math.min(self.total_iters, self.last_epoch) / self.total_iters
        return from_base(self, function(base) return base * (from + (to - from) * done) end)
    end,
}

define {
    schema = "ExponentialLR(Optimizer optimizer, number gamma" .. REST,
    doc = "The rate times gamma at every step.",
    rates = function(self) return scaled(self, self.starting and 1 or self.gamma) end,
    closed = function(self)
        return from_base(self, function(base) return base * self.gamma ^ self.last_epoch end)
    end,
}

define {
    schema = "PolynomialLR(Optimizer optimizer, int(1..) total_iters=5, number power=1" .. REST,
    doc = "The rate falls to 0 within total_iters steps as (1 - step / total_iters) to this power.",
    rates = function(self)
        local n, total = self.last_epoch, self.total_iters
        if self.starting or n > total then
            return rates_now(self.optimizer)
        end
        return scaled(self, ((1 - n / total) / (1 - (n - 1) / total)) ^ self.power)
    end,
    closed = function(self)
        local left = 1 - math.min(self.total_iters, self.last_epoch) / self.total_iters
        return from_base(self, function(base) return base * left ^ self.power end)
    end,
}

-- ---- by functions of one's own ----

-- A function for each group; they are no part of a state.
local function read_lambdas(self)
    local given, list = self.lr_lambda, {}
    if type(given) == "table" and given.lr_lambda then -- by name: a table may be a list of functions as well
        self.last_epoch, given = given.last_epoch or self.last_epoch, given.lr_lambda
    end
    if type(given) == "table" and #given ~= #self.optimizer.param_groups then
        fail("%s: %d functions for the %d groups of the optimizer", self.__name, #given, #self.optimizer.param_groups)
    end
    for k in ipairs(self.optimizer.param_groups) do
        list[k] = type(given) == "table" and given[k] or given
        if type(list[k]) ~= "function" then
            fail("%s: argument 2 (lr_lambda): a function or a list of functions expected, got %s", self.__name,
                tide._describe(list[k]))
        end
    end
    self.lr_lambda, self.lr_lambdas = nil, list
end

-- What a group's function says.
local function factor(self, k)
    local value = self.lr_lambdas[k](self.last_epoch)
    if type(value) ~= "number" then
        fail("%s: lr_lambda must return a number, got %s", self.__name, tide._describe(value))
    end
    return value
end

define {
    schema = "LambdaLR(Optimizer optimizer, any lr_lambda" .. REST,
    doc = "The first rate times lr_lambda(step): one function, or a list of one for each group.",
    init = read_lambdas,
    rates = function(self)
        return map(self.optimizer, function(_, k) return self.base_lrs[k] * factor(self, k) end)
    end,
}

define {
    schema = "MultiplicativeLR(Optimizer optimizer, any lr_lambda" .. REST,
    doc = "The rate times lr_lambda(step), at every step: one function, or a list of one for each group.",
    init = read_lambdas,
    rates = function(self)
        return map(self.optimizer, function(group, k)
            return number_of(group.lr) * (self.starting and 1 or factor(self, k))
        end)
    end,
}

-- ---- cosines ----

local function half_wave(x) return 1 + math.cos(math.pi * x) end

define {
    schema = "CosineAnnealingLR(Optimizer optimizer, int(1..) T_max, number eta_min=0" .. REST,
    doc = "The rate goes down to eta_min in T_max steps along a cosine, and up again.",
    rates = function(self)
        local n, whole, low = self.last_epoch, self.T_max, self.eta_min
        if self.starting then
            return rates_now(self.optimizer)
        elseif self._step_count == 1 and n > 0 then
            return self:closed()
        elseif (n - 1 - whole) % (2 * whole) == 0 then
            return map(self.optimizer, function(group, k)
                return number_of(group.lr) + (self.base_lrs[k] - low) * (1 - math.cos(math.pi / whole)) / 2
            end)
        end
        return map(self.optimizer, function(group, k)
            local rate = number_of(group.lr)
            if rate == low and self._last_lr[k] == low then -- nothing of the wave is left in it to go on from
                return low + (self.base_lrs[k] - low) * half_wave(n / whole) / 2
            end
            return half_wave(n / whole) / half_wave((n - 1) / whole) * (rate - low) + low
        end)
    end,
    closed = function(self)
        local low = self.eta_min
        return from_base(self, function(base) return low + (base - low) * half_wave(self.last_epoch / self.T_max) / 2 end)
    end,
}

-- How far SWALR has come to its rate after so many steps, from 0 to 1.
local function annealed(self, n)
    local done = math.min(math.max(n / math.max(1, self.anneal_epochs), 0), 1)
    return self.anneal_strategy == "cos" and (1 - math.cos(math.pi * done)) / 2 or done
end

define {
    schema = "SWALR(Optimizer optimizer, number[] swa_lr, int(0..) anneal_epochs=10, \"cos\"|\"linear\" anneal_strategy=\"cos\"" .. REST,
    doc = "From the rate to swa_lr, a number or one for each group, within anneal_epochs steps, where it stays: for "
        .. "optim.swa_utils.AveragedModel.",
    rates = function(self)
        local n = self.anneal_epochs == 0 and math.max(1, self.last_epoch) or self.last_epoch
        local before, now = annealed(self, n - 1), annealed(self, n)
        local goals = one_each(self, "swa_lr", self.swa_lr)
        return map(self.optimizer, function(group, k)
            local base = before == 1 and goals[k] or (number_of(group.lr) - before * goals[k]) / (1 - before)
            return goals[k] * now + base * (1 - now)
        end)
    end,
    closed = function(self)
        local goals, now = one_each(self, "swa_lr", self.swa_lr), annealed(self, self.last_epoch)
        return from_base(self, function(base, k) return goals[k] * now + base * (1 - now) end)
    end,
}

local Restarts = define {
    schema = "CosineAnnealingWarmRestarts(Optimizer optimizer, int(1..) T_0, int(1..) T_mult=1, number eta_min=0" .. REST,
    doc = "The rate goes down to eta_min along a cosine and begins anew: after T_0 steps, then after T_mult times as many.",
    init = function(self) self.T_i, self.T_cur = self.T_0, self.last_epoch end,
    rates = function(self)
        local low = self.eta_min
        return from_base(self, function(base) return low + (base - low) * half_wave(self.T_cur / self.T_i) / 2 end)
    end,
}

-- The restart that an epoch, perhaps a fraction, falls behind.
local function seek(self, epoch)
    self.T_i, self.T_cur = self.T_0, epoch
    if epoch >= self.T_0 and self.T_mult == 1 then
        self.T_cur = epoch % self.T_0
    elseif epoch >= self.T_0 then
        local n = math.floor(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult ^ n - 1) / (self.T_mult - 1)
        self.T_i = self.T_0 * self.T_mult ^ n
    end
end

function Restarts:advance(epoch)
    warn_of_order(self)
    self._step_count = self._step_count + 1
    if epoch or self.last_epoch < 0 then
        epoch = epoch or 0
        seek(self, epoch)
    else
        epoch = self.last_epoch + 1
        self.T_cur = self.T_cur + 1
        if self.T_cur >= self.T_i then
            self.T_cur = self.T_cur % self.T_i
            self.T_i = self.T_i * self.T_mult
        end
    end
    update(self, math.floor(epoch))
end
Restarts.step = declare("step(LRScheduler self, number(0..)? epoch=nil)",
    "Go on to the next learning rate, or to that of an epoch, which may be a fraction.", Restarts.advance)

-- ---- cycles ----

local scales = {
    triangular = function() return 1 end,
    triangular2 = function(x) return 1 / 2 ^ (x - 1) end,
}

local function begin_cycle(self)
    local low = one_each(self, "base_lr", self.base_lr)
    self.max_lrs = one_each(self, "max_lr", self.max_lr)
    self.own_base_lrs, self.base_lr, self.max_lr = low, nil, nil
    for k, group in ipairs(self.last_epoch == -1 and self.optimizer.param_groups or {}) do
        set_value(group, "lr", low[k])
    end
    local up = self.step_size_up
    self.total_size = up + (self.step_size_down or up)
    self.step_ratio = up / self.total_size
    self.step_size_up, self.step_size_down = nil, nil
    if self.cycle_momentum then
        begin_momenta(self, self.base_momentum, self.max_momentum)
    end
    self.base_momentum, self.max_momentum = nil, nil
end

define {
    schema = "CyclicLR(Optimizer optimizer, number[] base_lr, number[] max_lr, int(1..) step_size_up=2000, "
        .. 'int(1..)? step_size_down=nil, "triangular"|"triangular2"|"exp_range" mode="triangular", number gamma=1, '
        .. 'function? scale_fn=nil, "cycle"|"iterations" scale_mode="cycle", bool cycle_momentum=true, '
        .. "number[]? base_momentum=nil, number[]? max_momentum=nil" .. REST,
    doc = "The rate goes up from base_lr to max_lr and down again, the momentum the other way (from max_momentum, 0.9, to "
        .. "base_momentum, 0.8).",
    init = function(self)
        self.base_momentum, self.max_momentum = self.base_momentum or 0.8, self.max_momentum or 0.9
        if not self.scale_fn then
            self.scale_mode = self.mode == "exp_range" and "iterations" or "cycle"
        end
        begin_cycle(self)
    end,
    rates = function(self)
        local cycle = math.floor(1 + self.last_epoch / self.total_size)
        local x = 1 + self.last_epoch / self.total_size - cycle
        local height = x <= self.step_ratio and x / self.step_ratio or (x - 1) / (self.step_ratio - 1)
        local scale = self.scale_fn or scales[self.mode] or function(n) return self.gamma ^ n end
        local factor = scale(self.scale_mode == "cycle" and cycle or self.last_epoch)
        for k, group in ipairs(self.cycle_momentum and self.optimizer.param_groups or {}) do
            local most = self.max_momentums[k]
            set_momentum(group, self.use_beta1, most - (most - self.base_momentums[k]) * height * factor)
        end
        return map(self.optimizer, function(_, k)
            return self.base_lrs[k] + (self.max_lrs[k] - self.base_lrs[k]) * height * factor
        end)
    end,
}

local anneal = {
    cos = function(from, to, part) return to + (from - to) / 2 * half_wave(part) end,
    linear = function(from, to, part) return (to - from) * part + from end,
}

-- Where the phases end and from what to what they lead.
local function make_phases(total, share, three)
    local rise = { share * total - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum" }
    if not three then
        return { rise, { total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum" } }
    end
    return { rise, { 2 * share * total - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum" },
        { total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum" } }
end

define {
    schema = "OneCycleLR(Optimizer optimizer, number[] max_lr, int(1..)? total_steps=nil, int(1..)? epochs=nil, "
        .. 'int(1..)? steps_per_epoch=nil, number(0..1) pct_start=0.3, "cos"|"linear" anneal_strategy="cos", '
        .. "bool cycle_momentum=true, number[]? base_momentum=nil, number[]? max_momentum=nil, number div_factor=25, "
        .. "number final_div_factor=1e4, bool three_phase=false" .. REST,
    doc = "The rate goes up to max_lr and then down far below where it began, in total_steps steps (or epochs * "
        .. "steps_per_epoch); the momentum the other way (max_momentum: 0.95, base_momentum: 0.85).",
    init = function(self)
        if not self.total_steps and not (self.epochs and self.steps_per_epoch) then
            fail("OneCycleLR: option total_steps: a number of steps expected, or epochs and steps_per_epoch")
        end
        self.total_steps = self.total_steps or self.epochs * self.steps_per_epoch
        self.phases = make_phases(self.total_steps, self.pct_start, self.three_phase)
        local most = one_each(self, "max_lr", self.max_lr)
        for k, group in ipairs(self.last_epoch == -1 and self.optimizer.param_groups or {}) do
            group.initial_lr = most[k] / self.div_factor
            group.max_lr, group.min_lr = most[k], group.initial_lr / self.final_div_factor
        end
        if self.cycle_momentum then
            begin_momenta(self, self.base_momentum or 0.85, self.max_momentum or 0.95)
        end
        self.max_lr, self.epochs, self.steps_per_epoch, self.base_momentum, self.max_momentum = nil, nil, nil, nil, nil
    end,
    rates = function(self)
        local n, between = self.last_epoch, anneal[self.anneal_strategy]
        if n > self.total_steps then
            fail("OneCycleLR: step %d of a cycle of %d steps", n, self.total_steps)
        end
        local from, k = 0, 1
        while k < #self.phases and n > self.phases[k][1] do
            from, k = self.phases[k][1], k + 1
        end
        local last, start_lr, end_lr, start_momentum, end_momentum = table.unpack(self.phases[k])
        local part = (n - from) / (last - from)
        return map(self.optimizer, function(group)
            if self.cycle_momentum then
                set_momentum(group, self.use_beta1, between(group[start_momentum], group[end_momentum], part))
            end
            return between(group[start_lr], group[end_lr], part)
        end)
    end,
}

-- ---- by how training goes ----

local Plateau = define {
    schema = 'ReduceLROnPlateau(Optimizer optimizer, "min"|"max" mode="min", number factor=0.1, int(0..) patience=10, '
        .. 'number threshold=1e-4, "rel"|"abs" threshold_mode="rel", int(0..) cooldown=0, number[]? min_lr=nil, '
        .. "number eps=1e-8)",
    doc = "The rate times factor when a number, which step(number) tells, has not become better for more than patience "
        .. "steps. min_lr: 0, one or a list of one for each group.",
    alone = true,
    init = function(self)
        if not (self.factor < 1) then
            fail("ReduceLROnPlateau: option factor: a number below 1 expected, got %s", tide._number(self.factor))
        end
        self.min_lrs, self.min_lr = one_each(self, "min_lr", self.min_lr or 0), nil
        self.best = self.mode == "min" and math.huge or -math.huge
        self.cooldown_counter, self.num_bad_epochs, self.last_epoch = 0, 0, 0
        self._last_lr = rates_now(self.optimizer)
    end,
}

local function is_better(self, value)
    local sign = self.mode == "min" and -1 or 1
    local margin = sign * self.threshold
    local wanted = self.threshold_mode == "rel" and self.best * (1 + margin) or self.best + margin
    return self.mode == "min" and value < wanted or self.mode == "max" and value > wanted
end

local function reduce(self)
    for k, group in ipairs(self.optimizer.param_groups) do
        local old = number_of(group.lr)
        local new = math.max(old * self.factor, self.min_lrs[k] or 0)
        if old - new > self.eps then
            set_value(group, "lr", new)
        end
    end
end

Plateau.step = declare("step(LRScheduler self, Tensor|number metrics)",
    "Say how good the model is now; the rate is reduced where that has not become better.", function(self, metrics)
        local value = number_of(metrics)
        self.last_epoch = self.last_epoch + 1
        if is_better(self, value) then
            self.best, self.num_bad_epochs = value, 0
        else
            self.num_bad_epochs = self.num_bad_epochs + 1
        end
        if self.cooldown_counter > 0 then
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        end
        if self.num_bad_epochs > self.patience then
            reduce(self)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        end
        self._last_lr = rates_now(self.optimizer)
    end)

-- ---- schedulers of schedulers ----

local function check_parts(self)
    if #self.schedulers == 0 then
        fail("%s: the list of schedulers is empty", self.__name)
    end
    local first = self.schedulers[1]
    self.optimizer = self.optimizer or type(first) == "table" and first.optimizer
    for k, part in ipairs(self.schedulers) do
        if type(part) ~= "table" or not part.get_last_lr then
            fail("%s: scheduler %d: a scheduler expected, got %s", self.__name, k, tide._describe(part))
        elseif getmetatable(part) == Plateau then
            fail("%s: scheduler %d is a ReduceLROnPlateau, whose step wants a number", self.__name, k)
        elseif part.optimizer ~= self.optimizer then
            fail("%s: scheduler %d is of another optimizer", self.__name, k)
        end
    end
end

-- Take back the step that the parts have taken when they were made.
local function undo(self)
    for _, part in ipairs(self.schedulers or {}) do
        undo(part)
    end
    if not self.schedulers then
        self.last_epoch = self.last_epoch - 1
    end
end

local Sequential = define {
    schema = "SequentialLR(Optimizer optimizer, list schedulers, int[] milestones" .. REST,
    doc = "Several schedulers one after the other: the next from each milestone on.",
    alone = true,
    init = function(self)
        check_parts(self)
        if #self.milestones ~= #self.schedulers - 1 then
            fail("SequentialLR: %d schedulers want %d milestones, got %d", #self.schedulers, #self.schedulers - 1,
                #self.milestones)
        end
        self.last_epoch = self.last_epoch + 1
        for _, group in ipairs(self.optimizer.param_groups) do
            set_value(group, "lr", group.initial_lr)
        end
        undo(self)
        local first = self.schedulers[1 + count(self.milestones, function(m) return m <= 0 end)]
        step_initially(first)
        self._last_lr = first:get_last_lr()
    end,
}

function Sequential:advance()
    self.last_epoch = self.last_epoch + 1
    local passed = count(self.milestones, function(m) return m <= self.last_epoch end)
    local part = self.schedulers[passed + 1]
    if passed > 0 and self.milestones[passed] == self.last_epoch then
        update(part, 0)
    else
        part:advance()
    end
    self._last_lr = part:get_last_lr()
end

local Chained = define {
    schema = "ChainedScheduler(list schedulers, Optimizer? optimizer=nil)",
    doc = "Several schedulers at once: each changes what the one before it has left.",
    alone = true,
    init = function(self)
        check_parts(self)
        self._last_lr = rates_now(self.optimizer)
    end,
}

function Chained:advance()
    for _, part in ipairs(self.schedulers) do
        part:advance()
    end
    self._last_lr = rates_now(self.optimizer)
end

tide._document(schedulers, "lr_scheduler", "tide.optim.lr_scheduler",
    "Learning rates that change: StepLR, MultiStepLR, ConstantLR, LinearLR, ExponentialLR, PolynomialLR, LambdaLR, "
    .. "MultiplicativeLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR, SWALR, ReduceLROnPlateau, "
    .. "SequentialLR, ChainedScheduler.")

return schedulers
