-- nn/parametrize.lua: nn.utils.parametrize: a tensor of a module that is worked out from others whenever it is asked
-- for. What is worked out from what is a module of its own with `forward` and, so that the tensor can be set,
-- `right_inverse`.
local tide = ...
local fail, declare = tide._fail, tide._function

local cache -- of values while `cached` holds: by list

local Cached = { __name = "cached", __index = {} }
Cached.__index.close = function(self)
    if self.open then
        self.open, cache = false, self.before
    end
end
Cached.__close = Cached.__index.close

return function(nn, base)
    -- ---- what a tensor is worked out from ----

    local List = nn.class("ParametrizationList", nn.ModuleList)

    local function modules_of(list) return list:children() end

    local function originals_of(list)
        local tensors = {}
        for k, name in ipairs(list.originals) do
            tensors[k] = list[name]
        end
        return tensors
    end

    -- Called without arguments: the value.
    function List:forward()
        local parts = modules_of(self)
        local x = parts[1](table.unpack(originals_of(self)))
        for k = 2, #parts do
            x = parts[k](x)
        end
        return x
    end

    -- From a value back to the originals. A right_inverse may give nothing: there is none. `strict`: then the value
    -- can't be set; else it is its own original.
    local function invert(fname, parts, value, strict)
        local tensors = { value, n = 1 }
        for k = #parts, 1, -1 do
            local inverse = parts[k].right_inverse
            local given = inverse and table.pack(inverse(parts[k], tensors[1])) or { n = 0 }
            if given.n > 1 and k > 1 then
                fail("%s: right_inverse of %s gives %d tensors: only that of the first one may", fname,
                    getmetatable(parts[k]).__name, given.n)
            elseif given[1] ~= nil then
                tensors = given
            elseif strict then
                fail("%s: %s has no right_inverse, so its value can't be set", fname, getmetatable(parts[k]).__name)
            end
        end
        for k = 1, tensors.n do
            if not tide.is_tensor(tensors[k]) then
                fail("%s: right_inverse must give tensors, got %s", fname, tide._describe(tensors[k]))
            end
        end
        return tensors
    end

    local function check_same(fname, name, what, x, y)
        if not tide.is_tensor(y) then
            fail("%s: %s: a tensor expected, got %s", fname, what, tide._describe(y))
        elseif x.dtype ~= y.dtype or x.shape ~= y.shape then
            fail("%s: %s of %s is %s %s, it was %s %s: give unsafe = true where that is meant", fname, what, name,
                tostring(y.dtype), tostring(y.shape), tostring(x.dtype), tostring(x.shape))
        end
    end

    local function register_as(owner, name, value, kind)
        if kind == "buffer" then
            owner:register_buffer(name, value)
        else
            owner:register_parameter(name, value)
        end
    end

    -- A single original stays the tensor that it was, so that an optimizer goes on with it.
    local function take_originals(list, original, kind, tensors)
        if tensors.n == 1 then
            local given = tensors[1]
            if given.dtype ~= original.dtype then
                fail("register_parametrization: right_inverse may not change the dtype: %s became %s",
                    tostring(original.dtype), tostring(given.dtype))
            elseif given.shape == original.shape then
                original:copy_(given)
            else
                original = kind == "parameter" and nn.Parameter(given) or given
            end
            rawset(list, "originals", { "original" })
            return register_as(list, "original", original, kind)
        end
        local names = {}
        for k = 1, tensors.n do
            names[k] = "original" .. k - 1
            local own = tensors[k]:detach():clone()
            register_as(list, names[k], kind == "parameter" and own:requires_grad_(original.requires_grad) or own, kind)
        end
        rawset(list, "originals", names)
    end

    local function new_list(module, name, part, unsafe)
        local list, kind, original = List(), module._kinds[name], rawget(module, name)
        local before = original:detach():clone()
        list:add_module(1, part)
        rawset(list, "unsafe", unsafe)
        do
            local _ <close> = tide.no_grad()
            take_originals(list, original, kind, invert("register_parametrization", { part }, original, false))
        end
        if not unsafe then
            local made, value = pcall(list.forward, list)
            if not made then
                original:detach():copy_(before)
                error(value, 0)
            end
            check_same("register_parametrization", name, "the value", before, value)
        end
        return list
    end

    local function set_value(list, name, value)
        local _ <close> = tide.no_grad()
        if not tide.is_tensor(value) then
            fail("%s: a tensor expected, got %s", name, tide._describe(value))
        end
        local tensors, own = invert(name, modules_of(list), value, true), originals_of(list)
        for k, x in ipairs(own) do
            check_same(name, name, "what right_inverse gives", x, tensors[k])
        end
        for k, x in ipairs(own) do
            x:copy_(tensors[k])
        end
    end

    -- ---- modules with such tensors ----

    local function list_of(module, name)
        local dict = rawget(module, "parametrizations")
        return dict and rawget(dict, name) or nil
    end

    local function value_of(list)
        if not cache then
            return list()
        end
        cache[list] = cache[list] or list()
        return cache[list]
    end

    -- The module gets a class of its own, which works out what is asked for.
    local function change_class(module)
        local parent = getmetatable(module)
        local class = nn.class("Parametrized" .. parent.__name, parent)
        for key, value in pairs(parent) do
            if type(key) == "string" and string.find(key, "^__") and rawget(class, key) == nil then
                class[key] = value
            end
        end
        rawset(class, "unparametrized", parent)
        class.__index = function(self, key)
            local list = list_of(self, key)
            if list then
                return value_of(list)
            end
            return class[key]
        end
        class.__newindex = function(self, key, value)
            local list = list_of(self, key)
            if list then
                return set_value(list, key, value)
            end
            return parent.__newindex(self, key, value)
        end
        setmetatable(module, class)
        module.parametrizations = nn.ModuleDict {}
    end

    local function is_parametrized(module, name)
        local dict = rawget(module, "parametrizations")
        if not dict or not rawget(getmetatable(module), "unparametrized") then
            return false
        end
        return name == nil or rawget(dict, name) ~= nil
    end

    -- One more behind those that there are.
    local function add(module, name, part, unsafe)
        local list = list_of(module, name)
        if not unsafe then
            local x = module[name]
            local y = part(x)
            check_same("register_parametrization", name, "the value", x, y)
            if part.right_inverse then
                check_same("register_parametrization", name, "what right_inverse gives", x, (part:right_inverse(y)))
            end
        end
        list:add_module(#modules_of(list) + 1, part)
        rawset(list, "unsafe", list.unsafe or unsafe)
    end

    local function register(module, name, part, unsafe)
        part:train(module.training)
        base.refresh(module)
        if is_parametrized(module, name) then
            add(module, name, part, unsafe)
            return module
        end
        local kind = module._kinds[name]
        if kind ~= "parameter" and kind ~= "buffer" or rawget(module, name) == nil then
            fail("register_parametrization: %s has no parameter or buffer '%s'", getmetatable(module).__name, name)
        end
        local list = new_list(module, name, part, unsafe)
        base.forget(module, name)
        rawset(module, name, nil)
        if not is_parametrized(module) then
            change_class(module)
        end
        module.parametrizations[name] = list
        return module
    end

    -- What the tensor is from now on.
    local function left_over(list, module, name, as_it_is)
        if #list.originals > 1 and not as_it_is then
            fail("remove_parametrizations: '%s' is made of %d tensors: without its value (leave_parametrized = false) "
                .. "there is none that could stay", name, #list.originals)
        end
        local value = module[name]
        local kind = list._kinds[list.originals[1]]
        if #list.originals > 1 then
            return kind == "parameter" and nn.Parameter(value) or value:detach(), kind
        end
        local original, _ <close> = list.original, tide.no_grad()
        if as_it_is and original.shape == value.shape then
            original:copy_(value)
        elseif as_it_is then
            original = kind == "parameter" and nn.Parameter(value) or value:detach()
        end
        return original, kind
    end

    local function remove(module, name, as_it_is)
        if not is_parametrized(module, name) then
            fail("remove_parametrizations: %s has no parametrization of '%s'", getmetatable(module).__name, name)
        end
        local value, kind = left_over(list_of(module, name), module, name, as_it_is)
        local dict = rawget(module, "parametrizations")
        base.forget(dict, name)
        rawset(dict, name, nil)
        if #dict:children() == 0 then
            base.forget(module, "parametrizations")
            rawset(module, "parametrizations", nil)
            setmetatable(module, getmetatable(module).unparametrized)
        end
        register_as(module, name, value, kind)
        return module
    end

    -- ---- tide.nn.utils.parametrize ----

    local parametrize = {}
    tide._document(List, "ParametrizationList", "ParametrizationList",
        "The parametrizations of one parameter, in order, and the original that they are given: model.parametrizations.weight.")
    parametrize.ParametrizationList = List
    parametrize.register_parametrization = declare("register_parametrization(Module module, str tensor_name, "
        .. "Module parametrization, *, bool unsafe=false) -> Module",
        "Let a parameter or buffer be parametrization(original) whenever it is asked for; more of them go one behind "
        .. "the other. Setting it goes through right_inverse.", register)
    parametrize.remove_parametrizations = declare("remove_parametrizations(Module module, str tensor_name, "
        .. "bool leave_parametrized=true) -> Module",
        "End it: the tensor stays with the value that it has, or (false) with its original's.", remove)
    parametrize.is_parametrized = declare("is_parametrized(Module module, str? tensor_name=nil) -> bool",
        "Is any of the module's tensors, or this one, worked out from others?", is_parametrized)
    parametrize.type_before_parametrizations = declare("type_before_parametrizations(Module module) -> class",
        "The module's class but for its parametrizations.", function(module)
            return rawget(getmetatable(module), "unparametrized") or getmetatable(module)
        end)
    parametrize.cached = declare("cached(function? fn=nil, ...) -> any",
        "local _ <close> = parametrize.cached(): what is worked out is kept until the block ends; cached(fn, ...): while fn runs.",
        function(fn, ...)
            local guard = setmetatable({ open = true, before = cache }, Cached)
            cache = cache or {}
            if not fn then
                return guard
            end
            local _ <close> = guard
            return fn(...)
        end)
    tide._document(parametrize, "parametrize", "tide.nn.utils.parametrize", "Tensors of modules that are worked out from "
        .. "others: register_parametrization, remove_parametrizations, is_parametrized, cached.")
    nn.utils.parametrize = parametrize
    return parametrize
end
