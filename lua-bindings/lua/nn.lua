-- nn.lua: modules: what a network is made of. This file has the base that every module shares and the
-- containers; layers, losses and initialisations are in _nn_layers, _nn_losses and _nn_init.
local tide = ...
local check = tide._check
local nn = {}

-- ---- classes ----

-- nn.class(name [, parent]): a new class of modules. Give it `init(self, ...)`, which makes the parts,
-- and `forward(self, ...)`; Class(...) makes a module, and module(...) calls forward.
--
--     local Net = nn.class "Net"
--     function Net:init() self.fc = nn.Linear(4, 2) end
--     function Net:forward(x) return self.fc(x):relu() end
--
-- Tensors that require grad become parameters and modules become children when they are assigned to a
-- field, in the order of assignment.
local Module = { __name = "Module" }
nn.Module = Module

local class_meta = {}

local function is_module(value)
    local meta = type(value) == "table" and getmetatable(value)
    return meta and rawget(meta, "is_module_class") or false
end
nn.is_module = is_module

local function new(class, ...)
    local self = setmetatable({ training = true, _names = {}, _kinds = {} }, class)
    self:init(...)
    return self
end

-- What a value assigned to a field is; nil: a plain field.
local function kind_of(value)
    return is_module(value) and "module"
        or tide.is_tensor(value) and value.requires_grad and value.is_leaf and "parameter" or nil
end

local function assign(self, name, value)
    local names = rawget(self, "_names")
    if not names then
        check.fail("a module's fields can be set after its class made it: call %s(...)", getmetatable(self).__name)
    end
    local kind = kind_of(value)
    if kind and not self._kinds[name] then
        names[#names + 1] = name
    end
    if kind then
        self._kinds[name] = kind
    end
    rawset(self, name, value)
end

local function make_class(name, parent)
    local class = { __name = name, is_module_class = true, __newindex = assign }
    class.__index = class
    class.__call = function(self, ...) return self:forward(...) end
    class.__tostring = function(self) return self:describe() end
    return setmetatable(class, { __index = parent, __call = new, __name = "class",
        __tostring = function() return "class " .. name end })
end

function nn.class(name, parent)
    if type(name) ~= "string" then
        check.fail("class: argument 1: the class's name expected, got %s", check.describe(name))
    elseif parent ~= nil and not (type(parent) == "table" and rawget(parent, "is_module_class")) then
        check.fail("class: argument 2: a class expected, got %s", check.describe(parent))
    end
    return make_class(name, parent or Module)
end

Module.is_module_class = true
Module.__index = Module
setmetatable(Module, { __call = new, __name = "class" })
Module.__newindex, Module.__call = assign, function(self, ...) return self:forward(...) end
Module.__tostring = function(self) return self:describe() end

function Module:init() end

function Module:forward()
    check.fail("%s has no forward: write function %s:forward(...)", getmetatable(self).__name,
        getmetatable(self).__name)
end

-- nn.Parameter(x): a leaf of x's values that requires grad.
function nn.Parameter(x)
    if not tide.is_tensor(x) then
        check.fail("Parameter: argument 1: expected a tensor, got %s", check.describe(x))
    end
    return x:detach():requires_grad_(true)
end

-- ---- parts ----

local function register(self, name, value, kind)
    if type(name) ~= "string" and math.type(name) ~= "integer" then
        check.fail("register_%s: a name expected, got %s", kind, check.describe(name))
    end
    if not self._kinds[name] then
        self._names[#self._names + 1] = name
    end
    self._kinds[name] = kind
    rawset(self, name, value)
end

-- A tensor that belongs to the module and is no parameter; nil makes room for one.
function Module:register_buffer(name, value) register(self, name, value, "buffer") end
function Module:register_parameter(name, value) register(self, name, value, "parameter") end
function Module:add_module(name, module) register(self, name, module, "module") end

-- Fields that exist are assigned to without assign's knowledge: bring the kinds up to date. What became
-- a part only then comes after the others, by name; a part that is a plain value by now is none.
local function refresh(self)
    local names, kinds, added = self._names, self._kinds, {}
    for k = #names, 1, -1 do
        local name = names[k]
        local value, kind = rawget(self, name), kinds[name]
        if value ~= nil and not (kind == "module" and is_module(value) or kind ~= "module" and tide.is_tensor(value)) then
            kinds[name] = kind_of(value)
            if not kinds[name] then
                table.remove(names, k)
            end
        end
        if value ~= nil and kinds[name] == "parameter" and not value.is_leaf then
            check.fail("%s: %s is a parameter and can't become the result of an operator (%s)",
                getmetatable(self).__name, name, tostring(value.grad_fn))
        end
    end
    for name, value in next, self do
        if not kinds[name] and kind_of(value) then
            added[#added + 1] = name
        end
    end
    table.sort(added, function(a, b) return tostring(a) < tostring(b) end)
    for _, name in ipairs(added) do
        kinds[name] = kind_of(rawget(self, name))
        names[#names + 1] = name
    end
end

-- Calls visit(name, value, owner) for every part of a kind, by full name ("fc1.weight"): once each, or
-- (`seen` is nil) under each of its names.
local function walk(self, kind, prefix, seen, visit)
    refresh(self)
    for _, name in ipairs(self._names) do
        local value = rawget(self, name)
        if value ~= nil and self._kinds[name] == kind and not (seen and seen[value]) then
            if seen then
                seen[value] = true
            end
            visit(prefix .. name, value, self, name)
        end
    end
    for _, name in ipairs(self._names) do
        local child = rawget(self, name)
        if child ~= nil and self._kinds[name] == "module" then
            walk(child, kind, prefix .. name .. ".", seen, visit)
        end
    end
end

local function named(self, kind)
    local list = {}
    walk(self, kind, "", {}, function(name, value) list[#list + 1] = { name, value } end)
    return list
end

local function values(self, kind)
    local list = {}
    walk(self, kind, "", {}, function(_, value) list[#list + 1] = value end)
    return list
end

local function each(list)
    local k = 0
    return function()
        k = k + 1
        if list[k] then
            return list[k][1], list[k][2]
        end
    end
end

-- All parameters of the module and its children, as a list.
function Module:parameters() return values(self, "parameter") end

-- for name, p in model:named_parameters() do ... end
function Module:named_parameters() return each(named(self, "parameter")) end
function Module:buffers() return values(self, "buffer") end
function Module:named_buffers() return each(named(self, "buffer")) end

local function children(self)
    local list = {}
    refresh(self)
    for _, name in ipairs(self._names) do
        if self._kinds[name] == "module" and rawget(self, name) ~= nil then
            list[#list + 1] = { name, rawget(self, name) }
        end
    end
    return list
end

function Module:named_children() return each(children(self)) end

function Module:children()
    local list = {}
    for k, child in ipairs(children(self)) do
        list[k] = child[2]
    end
    return list
end

-- The module itself and all within it, once each.
function Module:modules()
    local list, seen = {}, {}
    local function add(module)
        if not seen[module] then
            seen[module] = true
            list[#list + 1] = module
            for _, child in ipairs(children(module)) do
                add(child[2])
            end
        end
    end
    add(self)
    return list
end

-- ---- modes and changes ----

-- Call fn with every module within, children first, and with this one.
function Module:apply(fn)
    if type(fn) ~= "function" then
        check.fail("apply: argument fn: expected a function, got %s", check.describe(fn))
    end
    for _, child in ipairs(self:children()) do
        child:apply(fn)
    end
    fn(self)
    return self
end

function Module:train(mode)
    if mode ~= nil and type(mode) ~= "boolean" then
        check.fail("train: argument mode: expected true or false, got %s", check.describe(mode))
    end
    for _, module in ipairs(self:modules()) do
        rawset(module, "training", mode ~= false)
    end
    return self
end

function Module:eval() return self:train(false) end

function Module:zero_grad()
    for _, p in ipairs(self:parameters()) do
        p.grad = nil
    end
end

function Module:requires_grad_(flag)
    for _, p in ipairs(self:parameters()) do
        p:requires_grad_(flag ~= false)
    end
    return self
end

-- Floating parameters and buffers in another dtype or on another device. Tensors that change are new
-- ones, shared where the old ones were: make the optimizer afterwards.
function Module:to(...)
    local arguments, moved = table.pack(...), {}
    local function move(x)
        local y = x:detach():to(table.unpack(arguments, 1, arguments.n))
        if not y:is_floating_point() then
            check.fail("to: expected a floating dtype, got %s", tostring(y.dtype))
        elseif y.dtype == x.dtype and tostring(y.device) == tostring(x.device) and y:data_ptr() == x:data_ptr() then
            return x
        end
        y:requires_grad_(x.requires_grad)
        if x.grad then
            y.grad = x.grad:detach():to(table.unpack(arguments, 1, arguments.n))
        end
        return y
    end
    local function convert(_, x, owner, name)
        if x:is_floating_point() then
            moved[x] = moved[x] or move(x)
            rawset(owner, name, moved[x])
        end
    end
    walk(self, "parameter", "", nil, convert)
    walk(self, "buffer", "", nil, convert)
    return self
end

function Module:float() return self:to(tide.float32) end
function Module:double() return self:to(tide.float64) end

-- Parameters and buffers by full name, under each of their names; they share memory with the module.
function Module:state_dict()
    local dict = {}
    for _, kind in ipairs { "parameter", "buffer" } do
        walk(self, kind, "", nil, function(name, x) dict[name] = x:detach() end)
    end
    return dict
end

-- Copy a state_dict's values in. Names and shapes must agree; nothing is changed when they don't.
function Module:load_state_dict(dict)
    if type(dict) ~= "table" then
        check.fail("load_state_dict: expected a table of tensors, got %s", check.describe(dict))
    end
    local own, missing, unexpected = self:state_dict(), {}, {}
    for name, x in pairs(own) do
        if not tide.is_tensor(dict[name]) then
            missing[#missing + 1] = name
        elseif tostring(dict[name].shape) ~= tostring(x.shape) then
            check.fail("load_state_dict: %s has shape %s, expected %s", name, tostring(dict[name].shape),
                tostring(x.shape))
        end
    end
    for name in pairs(dict) do
        if own[name] == nil then
            unexpected[#unexpected + 1] = tostring(name)
        end
    end
    if #missing + #unexpected > 0 then
        table.sort(missing)
        table.sort(unexpected)
        check.fail("load_state_dict: %s%s%s", #missing > 0 and "missing " .. table.concat(missing, ", ") or "",
            #missing > 0 and #unexpected > 0 and "; " or "",
            #unexpected > 0 and "unexpected " .. table.concat(unexpected, ", ") or "")
    end
    local _ <close> = tide.no_grad()
    for name, x in pairs(own) do
        x:copy_(dict[name])
    end
end

-- ---- print(model) ----

-- What stands in a module's parentheses; classes override it.
function Module:extra_repr() return "" end

function Module:describe()
    local lines, extra = {}, self:extra_repr()
    for name, child in self:named_children() do
        lines[#lines + 1] = ("  (%s): %s"):format(name, (child:describe():gsub("\n", "\n  ")))
    end
    local title = getmetatable(self).__name
    if #lines == 0 then
        return ("%s(%s)"):format(title, extra)
    end
    return ("%s(%s\n%s\n)"):format(title, extra ~= "" and "\n  " .. extra or "", table.concat(lines, "\n"))
end

-- ---- containers ----

local function add_all(self, fname, ...)
    local list = { ... }
    if #list == 1 and type(list[1]) == "table" and not is_module(list[1]) then
        list = list[1]
    end
    for k, module in ipairs(list) do
        if not is_module(module) then
            check.fail("%s: argument %d: expected a module, got %s", fname, k, check.describe(module))
        end
        self:add_module(k, module)
    end
end

-- nn.Sequential(a, b, ...): calls its modules one after the other; they count from 1.
local Sequential = nn.class "Sequential"
nn.Sequential = Sequential

function Sequential:init(...) add_all(self, "Sequential", ...) end

function Sequential:forward(x)
    for _, name in ipairs(self._names) do
        local module = rawget(self, name)
        if is_module(module) then -- else it was taken out
            x = module(x)
        end
    end
    return x
end

function Sequential:append(module)
    if not is_module(module) then
        check.fail("append: expected a module, got %s", check.describe(module))
    end
    self:add_module(#self._names + 1, module)
    return self
end

Sequential.__len = function(self) return #self:children() end

-- nn.ModuleList{a, b, ...}: modules in a list, for a forward that you write.
local ModuleList = nn.class "ModuleList"
nn.ModuleList = ModuleList

function ModuleList:init(...) add_all(self, "ModuleList", ...) end

ModuleList.append, ModuleList.__len = Sequential.append, Sequential.__len

-- nn.functional: PyTorch's names for what lies in tide itself.
nn.functional = {}
for _, name in ipairs { "relu", "gelu", "silu", "tanh", "sigmoid", "softmax", "log_softmax", "dropout", "linear",
    "conv2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "embedding", "interpolate", "one_hot",
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits" } do
    nn.functional[name] = tide[name]
end

nn.init = tide._nn_init
tide._nn_layers(nn)
tide._nn_losses(nn)

return nn
