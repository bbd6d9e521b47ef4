-- nn.lua: modules: what a network is made of. This file has the base that every module shares; what modules
-- do besides (state, hooks, printing), containers, layers, losses and functions are in nn/NAME.lua.
local tide = ...
local fail, declare = tide._fail, tide._function
local lazy = tide._require "nn.lazy"
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
    Module[name] = declare(string.format("%s(Module self%s", name, parameters), doc, fn)
end

local function is_module(value)
    local meta = type(value) == "table" and getmetatable(value)
    return type(meta) == "table" and rawget(meta, "is_module_class") or false -- x.shape's is locked
end
nn.is_module = declare("is_module(any value=nil) -> bool", "Is the value a module?", is_module)

local function made_from(own, class)
    while own and own ~= class do
        own = own ~= Module and getmetatable(own).__index
        own = type(own) == "table" and own
    end
    return own == class
end

nn.is = declare("is(any value, any class) -> bool", "Is the value a module of a class, or of one made from it, or with a list of one of several: "
    .. "nn.is(layer, nn.Linear), nn.is(layer, {nn.Conv1d, nn.Conv2d}), as isinstance? type(layer) is \"table\", layer.__name the class's name.",
    function(value, class)
        local classes = type(class) == "table" and not rawget(class, "is_module_class") and #class > 0 and class or { class }
        local own, found = is_module(value) and getmetatable(value), false
        for k = 1, math.max(#classes, 1) do
            local one = classes[k]
            if type(one) ~= "table" or not rawget(one, "is_module_class") then
                fail("is: argument 2 (class): expected a class such as nn.Linear, or a list of them, got %s", tide._describe(one))
            end
            found = found or made_from(own, one)
        end
        return found
    end)

-- What is a part of some module, frozen parameters among it; and the modules whose parts are known, as those of copies
-- are once they were looked at.
local accepted, looked_at = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "k" })

local function new(class, ...)
    local self = setmetatable({ training = true, _names = {}, _kinds = {} }, class)
    looked_at[self] = true
    self:init(...)
    return self
end

-- Parameters that were made frozen.
local frozen = setmetatable({}, { __mode = "k" })

-- What a value assigned to a field is; nil: a plain field.
local function kind_of(value)
    return is_module(value) and "module"
        or tide.is_tensor(value) and (value.requires_grad and value.is_leaf or frozen[value]) and "parameter" or nil
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
        accepted[value] = true
    end
    rawset(self, name, value)
end

local check_parts -- below

local run_hooked -- nn/hooks.lua's

local function call(self, ...)
    check_parts(self)
    local hooks = rawget(self, "_hooks")
    if hooks then
        return run_hooked(self, hooks, ...)
    end
    return self:forward(...)
end

-- Names that Python and other libraries for Lua have for what a class is given here.
local MEANT = { __init = "init", __init__ = "init", _init = "init", initialize = "init", constructor = "init", new = "init",
    __call__ = "forward", __call = "forward", call = "forward", __repr__ = "describe", extra_repr = "describe" }

local function define(class, name, value)
    if MEANT[name] and type(value) == "function" and (name ~= "extra_repr" or rawget(Module, "extra_repr") == nil) then
        fail("class %s: %s would never be called: write function %s:%s(...)", class.__name, name, class.__name, MEANT[name])
    end
    rawset(class, name, value)
end

local function make_class(name, parent)
    local class = { __name = name, is_module_class = true, __newindex = assign }
    class.__index = class
    class.__call = call
    class.__tostring = Module.__tostring
    setmetatable(class, { __index = parent, __call = new, __name = "class", __newindex = define,
        __tostring = function() return "class " .. name end })
    if parent.count_parts then
        parent.count_parts(class)
    end
    return class
end

nn._new, nn._define = new, define -- what classes of a script take along to another state goes by a name

nn.class = declare("class(str name, any parent=nil) -> class",
    'A class of modules: Net = nn.class("Net"); function Net:init(n) self.fc = nn.Linear(n, 2) end; '
        .. "function Net:forward(x) return self.fc(x) end; net = Net(3).",
    function(name, parent)
        if parent ~= nil and not (type(parent) == "table" and rawget(parent, "is_module_class")) then
            fail("class: argument 2 (parent): expected a class, got %s", tide._describe(parent))
        end
        return make_class(name, parent or Module)
    end)

Module.is_module_class = true
Module.__index = Module
setmetatable(Module, { __call = new, __name = "class", __tostring = function() return "class Module" end, __index = function(_, key)
    if math.type(key) and key < 1 then
        fail("a module has no part %s: parts count from 1, model[1] is the first and model[#model] the last", tide._number(key))
    elseif type(key) == "table" then
        fail("a module has no parts by a table: of a Sequential and a ModuleList, model[\"2:4\"] has those from one to another")
    end
end })
Module.__newindex, Module.__call = assign, call
local function describe(self) return rawget(self, "_names") and self:describe() or getmetatable(self).__name .. ", not made: call the class" end
Module.__tostring = describe

function Module:init(...)
    local class = getmetatable(self)
    if select("#", ...) > 0 and class == Module then
        fail('Module takes no arguments: a class of one\'s own is made by Net = nn.class("Net"), a module by Net(...)')
    elseif select("#", ...) > 0 then
        fail("%s takes no arguments: function %s:init(...) reads them", class.__name, class.__name)
    end
end

function Module:forward()
    fail("%s has no forward: write function %s:forward(...)", getmetatable(self).__name,
        getmetatable(self).__name)
end

nn.Parameter = declare("Parameter(Tensor x, bool requires_grad=true) -> Tensor", "A leaf of x's values that requires grad, or (false) is frozen: "
    .. "a field that it is assigned to is a parameter of the module.", function(x, requires_grad)
        local p = requires_grad and x:detach():requires_grad_(true) or x:detach()
        frozen[p] = not requires_grad or nil
        return p
    end)

-- ---- parts ----

local function register(self, name, value, kind)
    if type(name) ~= "string" and math.type(name) ~= "integer" then
        fail("register_%s: argument 2 (name): expected a name, got %s", kind, tide._describe(name))
    elseif name == "" or type(name) == "string" and string.find(name, ".", 1, true) then
        fail("register_%s: '%s' is no name of a part: it must not be empty nor contain a dot", kind, name)
    end
    if not self._kinds[name] then
        self._names[#self._names + 1] = name
    end
    self._kinds[name] = kind
    rawset(self, name, value)
    if value ~= nil then
        accepted[value] = true
    end
end

method("register_buffer", ", any name, Tensor? value=nil, bool persistent=true)",
    "A tensor that belongs to the module and is no parameter; nil makes room for one. What isn't persistent is in no "
    .. "state_dict.", function(self, name, value, persistent)
        register(self, name, value, "buffer")
        local passing = rawget(self, "_passing") or {}
        passing[name] = not persistent or nil
        rawset(self, "_passing", passing)
    end)
method("register_parameter", ", any name, Tensor? value=nil)", "A parameter by name; nil makes room for one.",
    function(self, name, value) register(self, name, value, "parameter") end)
method("add_module", ", any name, Module? module=nil)", "A child by name; nil makes room for one.",
    function(self, name, module) register(self, name, module, "module") end)
Module.register_module = Module.add_module

-- The module knows nothing of a name any more.
local function forget(self, name)
    self._kinds[name] = nil
    for k = #self._names, 1, -1 do
        if self._names[k] == name then
            table.remove(self._names, k)
        end
    end
end

local INSTEAD = {
    parameter = "write %s = nn.Parameter(x), %s.data:copy_(x) for its values, or %s = nil",
    buffer = "write %s = tensor, or %s = nil", module = "write %s = module, or %s = nil",
}

-- A plain value that was written over a part.
local function refuse(self, name, kind, value)
    local field = math.type(name) and string.format("model[%d]", name) or "model." .. tostring(name)
    local way = string.gsub(INSTEAD[kind], "%%s", function() return field end)
    fail("%s: %s is a %s, and %s can't take its place: %s", getmetatable(self).__name, tostring(name), kind,
        tide.is_tensor(value) and "a tensor that doesn't require grad" or tide._describe(value), way)
end

-- Fields that exist are assigned to without assign's knowledge: bring the kinds up to date. What became
-- a part only then comes after the others, by name; a part doesn't become a plain value.
local function refresh(self)
    local names, kinds, added = self._names, self._kinds, {}
    local known = looked_at[self]
    looked_at[self] = true
    for k = #names, 1, -1 do
        local name = names[k]
        local value, kind = rawget(self, name), kinds[name]
        if value ~= nil and not (kind == "module" and is_module(value) or kind ~= "module" and tide.is_tensor(value)) then
            kinds[name] = kind_of(value) or refuse(self, name, kind, value)
        elseif value ~= nil and kind == "parameter" and known and not accepted[value] and not kind_of(value) and value.is_leaf then
            refuse(self, name, kind, value)
        end
        if value ~= nil then
            accepted[value] = true
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

-- Before a call: is something new in a part's place?
function check_parts(self)
    local names = self._names
    for k = 1, #names do
        local value = self[names[k]]
        if value ~= nil and not accepted[value] then
            return refresh(self)
        end
    end
end

-- A module that is a part of itself would be walked for ever. `path`: the modules around, true.
local function enter(module, name, path)
    if path[module] then
        fail("%s is a part of itself, as '%s': take it out", getmetatable(module).__name, tostring(name))
    end
    path[module] = true
end

-- Calls visit(name, value, owner, field) for the module's own parts of a kind.
local function walk_own(self, kind, prefix, seen, visit)
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
end

-- The same for those of its children too, by full name ("fc1.weight"): once each, or (`seen` is nil) under
-- each of its names.
local function walk(self, kind, prefix, seen, visit, path)
    path = path or { [self] = true }
    walk_own(self, kind, prefix, seen, visit)
    for _, name in ipairs(self._names) do
        local child = rawget(self, name)
        if child ~= nil and self._kinds[name] == "module" then
            enter(child, name, path)
            walk(child, kind, prefix .. name .. ".", seen, visit, path)
            path[child] = nil
        end
    end
end

local function named(self, kind, prefix, recurse)
    local list, visit = {}, recurse == false and walk_own or walk
    prefix = (prefix or "") ~= "" and prefix .. "." or ""
    visit(self, kind, prefix, {}, function(name, value, owner)
        lazy.check_made(owner)
        list[#list + 1] = { name, value }
    end)
    return list
end

local function seconds(list)
    local values = {}
    for k, pair in ipairs(list) do
        values[k] = pair[2]
    end
    return values
end

-- Names and values, for a loop: `for name, x in named do` and `for name, x in pairs(named) do`.
local Named = { __name = "names and values" }

function Named:__len() return #rawget(self, "list") end

-- The pairs {name, x} by place, for ipairs.
function Named:__index(k) return rawget(self, "list")[k] end

-- Where a list of tensors belongs, they are the values.
function Named:__tensors()
    local values = {}
    for k, pair in ipairs(self.list) do
        values[k] = pair[2]
    end
    return values
end

function Named:__call()
    self.at = self.at + 1
    local pair = self.list[self.at]
    if pair then
        return pair[1], pair[2]
    end
end

function Named:__pairs()
    local from_start = setmetatable({ list = self.list, at = 0 }, Named)
    return function() return from_start() end
end

function Named:__tostring()
    local names = {}
    for k, pair in ipairs(self.list) do
        names[k] = tostring(pair[1])
    end
    return string.format("%d names and values, for name, x in ... do: %s", #names, table.concat(names, ", "))
end

local function each(list) return setmetatable({ list = list, at = 0 }, Named) end

for kind, doc in pairs { parameter = "parameters", buffer = "buffers" } do
    method(doc, ", bool recurse=true) -> list",
        string.format("All %s of the module and, unless recurse is false, its children.", doc),
        function(self, recurse) return seconds(named(self, kind, "", recurse)) end)
    method("named_" .. doc, ", str prefix=\"\", bool recurse=true) -> function",
        string.format("%s with their names: for name, x in model:named_%s() do ... end.", doc, doc),
        function(self, prefix, recurse) return each(named(self, kind, prefix, recurse)) end)
end

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

method("children", ") -> list", "The modules that are fields of this one.",
    function(self) return seconds(children(self)) end)

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

-- {name, module} of the module, whose name is `prefix`, and of all within it: once each, or each time.
local function named_modules(self, prefix, each_time)
    local list, seen = {}, {}
    local function add(module, name)
        if each_time or not seen[module] then
            seen[module] = true
            list[#list + 1] = { name, module }
            for _, child in ipairs(children(module)) do
                add(child[2], (name ~= "" and name .. "." or "") .. child[1])
            end
        end
    end
    add(self, prefix or "")
    return list
end

local function modules(self) return seconds(named_modules(self)) end
method("modules", ") -> list", "The module itself and all within it, once each.", modules)
method("named_modules", ", *, str prefix=\"\", bool remove_duplicate=true) -> function",
    "The module itself, called \"\", and all within it with their full names, for a loop.",
    function(self, prefix, once)
        return each(named_modules(once and self or check_tree(self), prefix, not once))
    end)

-- The module of a full name: numbers among its parts are places.
local function submodule(fname, self, path)
    local module, walked = self, {}
    for part in string.gmatch(path, "[^.]+") do
        refresh(module)
        local key = module._kinds[part] and part or math.tointeger(tonumber(part)) or part
        local child = module._kinds[key] == "module" and rawget(module, key)
        if not child then
            fail("%s: %s has no module '%s'", fname, #walked > 0 and "'" .. table.concat(walked, ".") .. "'"
                or getmetatable(self).__name, part)
        end
        module, walked[#walked + 1] = child, part
    end
    return module
end
method("get_submodule", ", str target) -> Module", "The module of a full name: model:get_submodule \"encoder.1\".",
    function(self, target) return submodule("get_submodule", self, target) end)

for _, kind in ipairs { "parameter", "buffer" } do
    local fname = "get_" .. kind
    method(fname, ", str target) -> Tensor", string.format("The %s of a full name: model:%s \"fc.weight\".", kind, fname),
        function(self, target)
            local path, name = string.match(target, "^(.*)%.([^.]+)$")
            local owner = submodule(fname, self, path or "")
            refresh(owner)
            name = name or target
            name = owner._kinds[name] and name or math.tointeger(tonumber(name)) or name
            if owner._kinds[name] ~= kind or rawget(owner, name) == nil then
                fail("%s: there is no %s '%s'", fname, kind, target)
            end
            return rawget(owner, name)
        end)
end

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

method("zero_grad", ", bool set_to_none=true)", "Forget the gradients of all parameters, or (false) make them zeros.",
    function(self, forget_them)
        for _, p in ipairs(self:parameters()) do
            local grad = not forget_them and p.grad
            p.grad = grad and grad:detach():zero_() or nil
        end
    end)

method("requires_grad_", ", bool requires_grad=true) -> Module", "Freeze all parameters (false), or let them learn.",
    function(self, flag)
        for _, p in ipairs(self:parameters()) do
            p:requires_grad_(flag)
        end
        return self
    end)

-- What the other files of modules know of a module's insides.
local base = { method = method, walk = walk, named = named, each = each, children = children, modules = modules,
    check_tree = check_tree, refresh = refresh, forget = forget, assign = assign, kind_of = kind_of, accept = function(x) accepted[x] = true end }
tide._require("nn.state")(nn, base)
tide._require("nn.print")(nn, base)
run_hooked = tide._require("nn.hooks")(nn, base)
tide._require("nn.containers")(nn, base)

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

nn.init = tide._require "nn.init"
nn.utils = tide._require "nn.clip"
tide._require("nn.layers")(nn)
tide._require("nn.spatial")(nn)
tide._require("nn.fractional")(nn)
tide._require("nn.functional")(nn)
tide._require("nn.losses")(nn)
tide._require("nn.activations")(nn)
tide._require("nn.norms")(nn)
lazy.open(nn)
tide._require("nn.tables")(nn)
tide._require("nn.adaptive")(nn)
tide._require("nn.attention")(nn)
tide._require("nn.transformer")(nn)
tide._require("nn.utils")(nn)
tide._require("nn.prune")(nn, base, tide._require("nn.reparam")(nn, base))
tide._require("nn.parametrize")(nn, base)
tide._require("nn.parametrizations")(nn)
tide._require("nn.recurrent").open(nn)
tide._require("nn.quantized")(nn)
tide._require("nn.qat").open(nn)
tide._require("nn.replicas")(nn, base)

-- A class's init writes fields as they are: into modules, and into no other table that it is given.
local function guard(name, class)
    local init = type(class) == "table" and rawget(class, "is_module_class") and rawget(class, "init")
    if not init then
        return
    end
    function class:init(...)
        if not is_module(self) then
            fail("%s.init: argument 1 (self): a module expected, got %s", name, tide._describe(self))
        end
        return init(self, ...)
    end
end
for name, class in pairs(nn) do
    guard(name, class)
end

tide._document(Module, "Module", "Module", "What every module is: parameters(), named_parameters(), children(), "
    .. "train(), eval(), zero_grad(), to(), clone(), state_dict(), apply(fn), summary(x), register_forward_hook(fn).")
tide._document(nn, "nn", "tide.nn",
    "Modules: layers, losses, containers; nn.class makes your own, nn.init fills parameters.")
tide._document(nn.functional, "functional", "tide.nn.functional", "PyTorch's names for what lies in tide itself.")
tide._document(nn.init, "init", "tide.nn.init", "Starting values, in place: uniform_, normal_, constant_, zeros_, "
    .. "ones_, eye_, dirac_, orthogonal_, sparse_, trunc_normal_, kaiming_uniform_, kaiming_normal_, xavier_uniform_, "
    .. "xavier_normal_, calculate_gain.")

return nn
