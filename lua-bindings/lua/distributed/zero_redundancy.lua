-- distributed/zero_redundancy.lua: ZeroRedundancyOptimizer: an optimizer whose states are shared out among the ranks (ZeRO,
-- stage 1; Rajbhandari et al. 2020). Each rank steps the parameters that are its own and sends them to the others.
--
-- It is an optimizer of the class that it is given, with all parameters in its groups; a step sees those of this rank alone.
-- Whose a parameter is follows from sizes and places, as in PyTorch: in each group the largest first, each to the rank that
-- has least.
local tide = ...
local fail = tide._fail
local distributed

local methods = {} -- of self: group, owner (a rank by parameter), own (a group with this rank's parameters, by group)

-- The places of a group's parameters, largest first.
local function by_size(params)
    local places = {}
    for k in ipairs(params) do
        places[k] = k
    end
    table.sort(places, function(a, b)
        local x, y = params[a]:numel(), params[b]:numel()
        return x > y or x == y and a < b
    end)
    return places
end

-- Give the parameters of a group that have no owner yet to ranks. What else the group has is read and written through its own.
local function share_out(self, group)
    local rank, mine = distributed.rank(self.group), {}
    for _, place in ipairs(by_size(group.params)) do
        local p, least = group.params[place], 1
        for r = 2, #self.loads do
            least = self.loads[r] < self.loads[least] and r or least
        end
        self.loads[least] = self.loads[least] + p:numel()
        self.owner[p] = least - 1
    end
    for _, p in ipairs(group.params) do
        if self.owner[p] == rank then
            mine[#mine + 1] = p
        else
            self.state[p] = nil
        end
    end
    self.own[group] = setmetatable({ params = mine }, { __index = group, __newindex = group })
end

function methods:step_group(group)
    local own = self.own[group]
    if #own.params > 0 then
        self.whole.step_group(self, own)
    end
end

function methods:step(closure)
    local loss = self.whole.step(self, closure)
    self.gathered = nil
    local works = {}
    for _, group in ipairs(self.param_groups) do
        for _, p in ipairs(group.params) do
            works[#works + 1] = distributed.broadcast(p:detach(), self.owner[p], { group = self.group, async = true })
        end
    end
    for _, work in ipairs(works) do
        work:wait()
    end
    return loss
end

function methods:add_param_group(group)
    self.whole.add_param_group(self, group)
    share_out(self, self.param_groups[#self.param_groups])
end

-- fn(number, parameter) of each parameter, numbered as in a state_dict.
local function each_parameter(self, fn)
    local number = 0
    for _, group in ipairs(self.param_groups) do
        for _, p in ipairs(group.params) do
            number = number + 1
            fn(number, p)
        end
    end
end

local function consolidate(self, to)
    local dict, rank, mine = self.whole.state_dict(self), distributed.rank(self.group), {}
    each_parameter(self, function(number, p)
        if self.owner[p] == rank then
            mine[#mine + 1] = { number = number, state = dict.state[number] }
        end
    end)
    for _, entries in ipairs(distributed.gather_object(mine, to, { group = self.group }) or {}) do
        for _, entry in ipairs(entries) do
            dict.state[entry.number] = entry.state
        end
    end
    self.gathered = rank == to and dict or nil
end

methods.consolidate_state_dict = tide._function("consolidate_state_dict(Optimizer self, int(0..) to=0)",
    "All ranks' states come to rank `to`, whose state_dict gives them until the next step. All ranks call it.", consolidate)

function methods:state_dict()
    return self.gathered or fail("state_dict: the states are not here: all ranks call opt:consolidate_state_dict(to) first, and rank `to` "
        .. "has them until the next step")
end

-- Of the states of all parameters, as any optimizer of the class has them, each rank keeps its own.
function methods:load_state_dict(dict)
    local rank, mine = distributed.rank(self.group), {}
    for name, value in pairs(dict) do
        mine[name] = value
    end
    if type(dict.state) == "table" then
        mine.state = {}
        for number, state in pairs(dict.state) do
            mine.state[number] = state
        end
        each_parameter(self, function(number, p)
            if mine.state[number] ~= nil and self.owner[p] ~= rank then
                mine.state[number] = {}
            end
        end)
    end
    self.whole.load_state_dict(self, mine)
    self.gathered = nil
end

local classes = {} -- by the class of the whole

local function class_of(whole)
    if not classes[whole] then
        local class = { __name = string.format("ZeroRedundancyOptimizer(%s)", whole.__name), __tostring = whole.__tostring,
            __newindex = whole.__newindex, whole = whole }
        class.__index = class
        for name, fn in pairs(methods) do
            class[name] = fn
        end
        classes[whole] = setmetatable(class, { __index = whole })
    end
    return classes[whole]
end

--- new(params, whole, options): see tide.distributed.optim.ZeroRedundancyOptimizer.
local function new(params, whole, options)
    distributed = tide.distributed
    if type(whole) ~= "table" or type(rawget(whole, "read")) ~= "function" then
        fail("ZeroRedundancyOptimizer: argument 2 (optimizer_class): a class such as tide.optim.AdamW expected, got %s", tide._describe(whole))
    elseif whole.single then
        fail("ZeroRedundancyOptimizer: %s steps all parameters as one vector, which can't be shared out", whole.__name)
    end
    local given, group = {}, nil
    for name, value in pairs(options or {}) do
        if name == "group" or name == "process_group" then
            group = value
        else
            given[name] = value
        end
    end
    local self = setmetatable(whole(params, given), class_of(whole))
    self.group, self.owner, self.own, self.loads = group, {}, {}, {}
    for r = 1, distributed.size(group) do
        self.loads[r] = 0
    end
    for _, of in ipairs(self.param_groups) do
        share_out(self, of)
    end
    return self
end

return { new = new, methods = methods }
