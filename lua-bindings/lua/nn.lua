-- nn.lua: modules: what a network is made of. This file has the base that every module shares and the
-- containers; layers, losses, initialisations and functions are in files called _nn_NAME.
local tide = ...
local fail, declare = tide._fail, tide._function
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
tide._class("Module", Module)

-- A method of every module: "name(PARAMETERS) -> RESULT" behind self.
local function method(name, parameters, doc, fn)
    Module[name] = declare(("%s(Module self%s"):format(name, parameters), doc, fn)
end

local class_meta = {}

local function is_module(value)
    local meta = type(value) == "table" and getmetatable(value)
    return type(meta) == "table" and rawget(meta, "is_module_class") or false -- x.shape's is locked
end
nn.is_module = declare("is_module(any value=nil) -> bool", "Is the value a module?", is_module)

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
        fail("a module's fields can be set after its class made it: call %s(...)", getmetatable(self).__name)
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

nn.class = declare("class(str name, any parent=nil) -> class",
    "A class of modules: give it init(self, ...) and forward(self, ...); Class(...) makes one.",
    function(name, parent)
        if parent ~= nil and not (type(parent) == "table" and rawget(parent, "is_module_class")) then
            fail("class: argument 2 (parent): expected a class, got %s", tide._describe(parent))
        end
        return make_class(name, parent or Module)
    end)

Module.is_module_class = true
Module.__index = Module
setmetatable(Module, { __call = new, __name = "class" })
Module.__newindex, Module.__call = assign, function(self, ...) return self:forward(...) end
Module.__tostring = function(self) return self:describe() end

function Module:init() end

function Module:forward()
    fail("%s has no forward: write function %s:forward(...)", getmetatable(self).__name,
        getmetatable(self).__name)
end

nn.Parameter = declare("Parameter(Tensor x) -> Tensor", "A leaf of x's values that requires grad.",
    function(x) return x:detach():requires_grad_(true) end)

-- ---- parts ----

local function register(self, name, value, kind)
    if type(name) ~= "string" and math.type(name) ~= "integer" then
        fail("register_%s: argument 2 (name): expected a name, got %s", kind, tide._describe(name))
    end
    if not self._kinds[name] then
        self._names[#self._names + 1] = name
    end
    self._kinds[name] = kind
    rawset(self, name, value)
end

method("register_buffer", ", any name, Tensor? value=nil)",
    "A tensor that belongs to the module and is no parameter; nil makes room for one.",
    function(self, name, value) register(self, name, value, "buffer") end)
method("register_parameter", ", any name, Tensor? value=nil)", "A parameter by name; nil makes room for one.",
    function(self, name, value) register(self, name, value, "parameter") end)
method("add_module", ", any name, Module? module=nil)", "A child by name; nil makes room for one.",
    function(self, name, module) register(self, name, module, "module") end)

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
            fail("%s: %s is a parameter and can't become the result of an operator (%s)",
                getmetatable(self).__name, name, tostring(value.grad_fn))
        end
    end
    for name, value in next, self do
        if not kinds[name] and kind_of(value) then
            added[#added + 1] = name
        end
    end
    table.sort(added, function(a, b) return tide._before(tostring(a), tostring(b)) end)
    for _, name in ipairs(added) do
        kinds[name] = kind_of(rawget(self, name))
        names[#names + 1] = name
    end
end

-- A module that is a part of itself would be walked for ever. `path`: the modules around, true.
local function enter(module, name, path)
    if path[module] then
        fail("%s is a part of itself, as '%s': take it out", getmetatable(module).__name, tostring(name))
    end
    path[module] = true
end

-- Calls visit(name, value, owner) for every part of a kind, by full name ("fc1.weight"): once each, or
-- (`seen` is nil) under each of its names.
local function walk(self, kind, prefix, seen, visit, path)
    path = path or { [self] = true }
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
            enter(child, name, path)
            walk(child, kind, prefix .. name .. ".", seen, visit, path)
            path[child] = nil
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

method("parameters", ") -> list", "All parameters of the module and its children.",
    function(self) return values(self, "parameter") end)
method("named_parameters", ") -> function",
    "Parameters with their names: for name, p in model:named_parameters() do ... end.",
    function(self) return each(named(self, "parameter")) end)
method("buffers", ") -> list", "All buffers of the module and its children.",
    function(self) return values(self, "buffer") end)
method("named_buffers", ") -> function", "Buffers with their names, for a loop.",
    function(self) return each(named(self, "buffer")) end)

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

method("named_children", ") -> function", "Children with their names, for a loop.",
    function(self) return each(children(self)) end)

method("children", ") -> list", "The modules that are fields of this one.", function(self)
    local list = {}
    for k, child in ipairs(children(self)) do
        list[k] = child[2]
    end
    return list
end)

-- Refuses a module that is a part of itself; `path` is false for those whose parts were seen.
local function check_tree(self, path)
    path = path or { [self] = true }
    for _, child in ipairs(children(self)) do
        if path[child[2]] ~= false then
            enter(child[2], child[1], path)
            check_tree(child[2], path)
        end
    end
    path[self] = false
    return self
end

local function modules(self)
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
method("modules", ") -> list", "The module itself and all within it, once each.", modules)

-- ---- modes and changes ----

method("apply", ", function fn) -> Module", "Call fn with every module within, children first, and with this one.",
    function(self, fn)
        for _, child in ipairs(children(check_tree(self))) do
            child[2]:apply(fn)
        end
        fn(self)
        return self
    end)

local function train(self, mode)
    for _, module in ipairs(modules(self)) do
        rawset(module, "training", mode)
    end
    return self
end
method("train", ", bool mode=true) -> Module", "Let modules behave as in training: dropout drops.", train)
method("eval", ") -> Module", "Let modules behave as in use: dropout passes.",
    function(self) return self:train(false) end)

method("zero_grad", ")", "Forget the gradients of all parameters.", function(self)
    for _, p in ipairs(self:parameters()) do
        p.grad = nil
    end
end)

method("requires_grad_", ", bool requires_grad=true) -> Module", "Freeze all parameters (false), or let them learn.",
    function(self, flag)
        for _, p in ipairs(self:parameters()) do
            p:requires_grad_(flag)
        end
        return self
    end)

-- The arguments of x:to without a memory format, and how many dims a tensor has that it is meant for.
local function without_format(arguments)
    local options, rest = arguments[arguments.n], table.pack(table.unpack(arguments, 1, arguments.n))
    if type(options) ~= "table" or not options.memory_format then
        return arguments, 0
    end
    rest[rest.n] = {}
    for name, value in pairs(options) do
        if name ~= "memory_format" then
            rest[rest.n][name] = value
        end
    end
    return rest, options.memory_format == tide.channels_last and 4
        or options.memory_format == tide.channels_last_3d and 5 or 0
end

-- Tensors that change are new ones, shared where the old ones were. A memory format is for those that have
-- its dims.
local function move_to(self, ...)
    local given, moved = table.pack(...), {}
    local plain, dims = without_format(given)
    local function move(x)
        local arguments = (dims == 0 or x:dim() == dims) and given or plain
        local y = x:detach():to(table.unpack(arguments, 1, arguments.n))
        if not y:is_floating_point() then
            fail("to: expected a floating dtype, got %s", tostring(y.dtype))
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
method("to", ", ...) -> Module", "Floating parameters and buffers in another dtype, memory format or on another "
    .. "device, as x:to(...): make the optimizer afterwards.", move_to)
method("float", ") -> Module", "Floating parameters and buffers in float32.",
    function(self) return move_to(self, tide.float32) end)
method("double", ") -> Module", "Floating parameters and buffers in float64.",
    function(self) return move_to(self, tide.float64) end)

method("state_dict", ") -> table",
    "Parameters and buffers by full name, under each of their names; they share memory with the module.",
    function(self)
        local dict = {}
        for _, kind in ipairs { "parameter", "buffer" } do
            walk(self, kind, "", nil, function(name, x) dict[name] = x:detach() end)
        end
        return dict
    end)

-- Names and shapes must agree; nothing is changed when they don't.
local function load_state_dict(self, dict)
    local own, missing, unexpected = self:state_dict(), {}, {}
    for name, x in pairs(own) do
        if not tide.is_tensor(dict[name]) then
            missing[#missing + 1] = name
        elseif dict[name].shape ~= x.shape then
            fail("load_state_dict: %s has shape %s, expected %s", name, tostring(dict[name].shape), tostring(x.shape))
        end
    end
    for name in pairs(dict) do
        if own[name] == nil then
            unexpected[#unexpected + 1] = tostring(name)
        end
    end
    if #missing + #unexpected > 0 then
        table.sort(missing, tide._before)
        table.sort(unexpected, tide._before)
        fail("load_state_dict: %s%s%s", #missing > 0 and "missing " .. table.concat(missing, ", ") or "",
            #missing > 0 and #unexpected > 0 and "; " or "",
            #unexpected > 0 and "unexpected " .. table.concat(unexpected, ", ") or "")
    end
    local _ <close> = tide.no_grad()
    for name, x in pairs(own) do
        x:copy_(dict[name])
    end
end
method("load_state_dict", ", table dict)", "Copy a state_dict's values in.", load_state_dict)

-- ---- print(model) ----

-- What stands in a module's parentheses; classes override it.
function Module:extra_repr() return "" end

function Module:describe()
    local lines, extra = {}, self:extra_repr()
    for name, child in check_tree(self):named_children() do
        lines[#lines + 1] = ("  (%s): %s"):format(name, (child:describe():gsub("\n", "\n  ")))
    end
    local title = getmetatable(self).__name
    if #lines == 0 then
        return ("%s(%s)"):format(title, extra)
    end
    return ("%s(%s\n%s\n)"):format(title, extra ~= "" and "\n  " .. extra or "", table.concat(lines, "\n"))
end

-- ---- containers ----

-- A class of modules that are its arguments, or a list of them.
local function container(name, doc)
    local read, c = declare(name .. "(Module[] modules)", doc), nn.class(name)
    function c:init(...)
        for k, module in ipairs(select("#", ...) > 0 and read(...).modules or {}) do
            self:add_module(k, module)
        end
    end
    c.append = declare("append(Module self, Module module) -> Module", "Add a module behind the others.",
        function(self, module)
            self:add_module(#self._names + 1, module)
            return self
        end)
    c.__len = function(self) return #self:children() end
    nn[name] = c
    tide._document(c, read)
    return c
end

local Sequential = container("Sequential", "Calls its modules one after the other; they count from 1.")

function Sequential:forward(x)
    for _, name in ipairs(self._names) do
        local module = rawget(self, name)
        if is_module(module) then -- else it was taken out
            x = module(x)
        end
    end
    return x
end

container("ModuleList", "Modules in a list, for a forward that you write.")

-- nn.functional: PyTorch's names for what lies in tide itself.
nn.functional = {}
for _, name in ipairs { "relu", "gelu", "silu", "tanh", "sigmoid", "softmax", "log_softmax", "dropout", "linear",
    "conv2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "interpolate", "one_hot",
    "conv1d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "max_pool1d", "max_pool3d", "avg_pool1d",
    "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "pad",
    "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "grid_sample", "affine_grid",
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits" } do
    nn.functional[name] = tide[name]
end
nn.functional.unfold, nn.functional.fold, nn.functional.upsample = tide.im2col, tide.col2im, tide.interpolate

nn.init = tide._nn_init
nn.utils = tide._nn_clip
tide._nn_layers(nn)
tide._nn_spatial(nn)
tide._nn_functional(nn)
tide._nn_losses(nn)
tide._nn_activations(nn)
tide._nn_norms(nn)
tide._nn_tables(nn)
tide._nn_attention(nn)
tide._nn_recurrent(nn)

tide._document(Module, "Module", "Module", "What every module is: parameters(), named_parameters(), children(), "
    .. "train(), eval(), zero_grad(), to(), state_dict(), apply(fn).")
tide._document(nn, "nn", "tide.nn",
    "Modules: layers, losses, containers; nn.class makes your own, nn.init fills parameters.")
tide._document(nn.functional, "functional", "tide.nn.functional", "PyTorch's names for what lies in tide itself.")
tide._document(nn.init, "init", "tide.nn.init", "Starting values, in place: uniform_, normal_, constant_, zeros_, "
    .. "ones_, kaiming_uniform_, kaiming_normal_, xavier_uniform_, xavier_normal_.")

return nn
