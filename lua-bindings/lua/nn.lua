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
-- Tensors that require grad become parameters and modules become children when they are first assigned
-- to a field, in that order.
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

local function assign(self, name, value)
    local names = rawget(self, "_names")
    if not names then
        check.fail("a module's fields can be set after its class made it: call %s(...)", getmetatable(self).__name)
    end
    local kind = is_module(value) and "module"
        or tide.is_tensor(value) and value.requires_grad and value.is_leaf and "parameter" or nil
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

-- Calls visit(name, value, owner) for every part of a kind, by full name ("fc1.weight"), once each.
local function walk(self, kind, prefix, seen, visit)
    for _, name in ipairs(self._names) do
        local value = rawget(self, name)
        if value ~= nil and self._kinds[name] == kind and not seen[value] then
            seen[value] = true
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

-- The module itself and all within it.
function Module:modules()
    local list = { self }
    for _, child in ipairs(children(self)) do
        for _, module in ipairs(child[2]:modules()) do
            list[#list + 1] = module
        end
    end
    return list
end

-- ---- modes and changes ----

-- Call fn with every module within, children first, and with this one.
function Module:apply(fn)
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

-- Floating parameters and buffers in another dtype or on another device. The tensors are new: make
-- the optimizer afterwards.
function Module:to(...)
    local arguments = table.pack(...)
    local function convert(_, x, owner, name)
        local kind = owner._kinds[name]
        if tostring(x.dtype):find("float", 1, true) then
            local moved = x:detach():to(table.unpack(arguments, 1, arguments.n))
            rawset(owner, name, kind == "parameter" and moved:requires_grad_(x.requires_grad) or moved)
        end
    end
    walk(self, "parameter", "", {}, convert)
    walk(self, "buffer", "", {}, convert)
    return self
end

function Module:float() return self:to(tide.float32) end
function Module:double() return self:to(tide.float64) end

-- Parameters and buffers by full name; they share memory with the module.
function Module:state_dict()
    local dict = {}
    for _, kind in ipairs { "parameter", "buffer" } do
        walk(self, kind, "", {}, function(name, x) dict[name] = x:detach() end)
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
    for k = 1, #self._names do
        x = rawget(self, k)(x)
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

Sequential.__len = function(self) return #self._names end

-- nn.ModuleList{a, b, ...}: modules in a list, for a forward that you write.
local ModuleList = nn.class "ModuleList"
nn.ModuleList = ModuleList

function ModuleList:init(...) add_all(self, "ModuleList", ...) end

ModuleList.append, ModuleList.__len = Sequential.append, Sequential.__len

nn.init = tide._nn_init
tide._nn_layers(nn)
tide._nn_losses(nn)

return nn
