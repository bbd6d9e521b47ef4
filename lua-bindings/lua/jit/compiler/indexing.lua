-- jit/compiler/indexing.lua: `v[key]` and `v[key] = x` of tables, lists and tensors, and the fields of tensors. Keys of
-- tensors are read as lua-bindings/tensor/index.c reads them: numbers, ranges and new axes make views one after the other,
-- index tensors and masks are gathered and applied last.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local NIL = Compiler.NIL

-- ---- lists and tables ----

local function need_integer(self, key)
    local t = self:type_of(key)
    if t ~= "int" and not (key.kind == "const" and math.type(key.v) == "float" and math.tointeger(key.v)) then
        self:fail("the place in a list is %s: an integer is expected", self:describe(key))
    end
    return key.kind == "const" and self.const(math.tointeger(key.v)) or key
end

-- The entry of a list of the graph at a place counted from 1. What is known to be a place needs no look.
local function list_entry(self, list, key)
    key = need_integer(self, key)
    local t = types.element(list.type)
    if list.shape and key.kind == "const" then
        return (self.g:node("aten::size", { list.shape, self.g:constant("int", key.v > 0 and key.v - 1 or key.v) }, { "int" }))
    end
    return (self.g:node("aten::get_entry", { list, self:value(key) }, { t }))
end

--- untuple(v): the parts of a tuple of the graph as a table.
function Compiler:untuple(v)
    local names, parts = types.fields(v.type)
    local copy = self:new_table { self.g:node("prim::TupleUnpack", { v }, parts or types.parts(v.type)) }
    local data = copy.data
    for k, name in ipairs(names or {}) do
        data["." .. name], data.order[k], data[k], data.n = data[k], name, nil, 0
    end
    copy.data.frozen = "this table is an entry that holds values of several types: put another one in its place"
    return copy
end

-- Has a table of the source names, all of which are nil?
local function holds_nothing(self, data)
    for _, name in ipairs(data.order) do
        if not self.is_nil(self:resolve(data["." .. name])) then
            return false
        end
    end
    return true
end

local function without_nil(t) return t and (types.inner(t) or t) end

local function table_entry(self, v, key)
    local data = v.data
    if key.kind ~= "const" then
        local t, named = self:table_type(v), self:type_of(key) == "str"
        if named and data.n == 0 and holds_nothing(self, data) then
            return NIL
        elseif t and (named and types.dict_value(t) or not named and types.element(t) and not (self.records_stay
            and types.dict_value(types.element(t)))) then
            self:make_list(data, types.dict_value(t) or types.element(t), named)
            return self:index(v, key)
        end
        self:fail("which entry of this table is meant is known only when the graph runs, and they are of several kinds")
    elseif type(key.v) == "string" then
        return data["." .. key.v] or NIL
    end
    local place = math.tointeger(key.v)
    return place and place >= 1 and place <= data.n and data[place] or NIL
end

local function host_entry(self, v, key)
    if key.kind ~= "const" and key.kind ~= "host" then
        self:fail("which entry of a table of the script is meant is known only when the graph runs: give the table as an argument")
    end
    self:watch(v.v, key.v)
    local ok, value = pcall(function() return v.v[key.v] end)
    if not ok then
        self:fail("%s", (string.gsub(tostring(value), "^[^:]*:%d+: ", "")))
    end
    return self:wrap(value)
end

local function need_name(self, t, key)
    if self:type_of(key) ~= "str" then
        self:fail("a key of %s is a string, got %s", types.words(t), self:describe(key))
    end
    return self:value(key)
end

-- What a dict of the graph has under a string, or nil.
local function dict_entry(self, dict, key)
    local t = types.optional(types.dict_value(dict.type))
    return (self.g:node("aten::get", { dict, need_name(self, dict.type, key) }, { t }))
end

--- index(v, key): `v[key]`
function Compiler:index(v, key)
    v, key = self:there(self:resolve(v)), self:resolve(key)
    local t = self:type_of(v)
    if v.kind == "table" then
        return self:resolve(table_entry(self, v, key))
    elseif t == "Tensor" then
        return self:tensor_entry(v, key)
    elseif v.kind == "value" and types.element(t) then
        return list_entry(self, v, key)
    elseif v.kind == "value" and types.dict_value(t) then
        return dict_entry(self, v, key)
    elseif v.kind == "value" and (types.is_tuple(t) or types.fields(t)) then
        return self:index(self:untuple(v), key)
    elseif t == "str" and key.kind == "const" and type(key.v) == "string" then
        return self:wrap(string[key.v])
    elseif v.kind == "host" and type(v.v) == "table" then
        return host_entry(self, v, key)
    end
    self:fail("attempt to index %s", self:describe(v))
end

-- Into a table of the source. What is written in a branch or loop that the table comes from outside of is merged as
-- variables are; one that grows there, or whose place is not known, becomes a list.
local function set_table(self, v, key, value, appends)
    local data = v.data
    if data.frozen then
        self:fail("%s", data.frozen)
    elseif key.kind == "const" and type(key.v) == "string" then
        local name = "." .. key.v
        if data[name] == nil then
            local order = table.move(data.order, 1, #data.order, 1, {})
            order[#order + 1] = key.v
            local region, t = self.regions[#self.regions], self:type_of(value)
            if region and self.born[data] <= region then
                local entry = types.dict_value(self:table_type(v) or "")
                if data.n > 0 or not self.is_nil(value) and not holds_nothing(self, data) and (not entry or entry ~= without_nil(t)) then
                    self:fail("'%s' is made in a branch or loop, in a table from outside: give it a value before", key.v)
                end
                if self.is_nil(value) and holds_nothing(self, data) then
                    return
                end
                self:make_list(data, not self.is_nil(value) and without_nil(t) or nil, true)
            end
            self:put(data, "order", order)
        end
        return self:put(data, name, value)
    end
    if self:type_of(key) == "str" then
        if self.is_nil(value) and data.n == 0 and holds_nothing(self, data) then
            return
        end
        self:make_list(data, not self.is_nil(value) and without_nil(self:type_of(value)) or nil, true)
        return self:set_index(v, key, value)
    end
    local place = key.kind == "const" and math.tointeger(key.v)
    if key.kind == "const" and not place then
        self:fail("%s is no key of a table in a script", self:describe(key))
    elseif place and place >= 1 and place <= data.n then
        return self:put(data, place, value)
    end
    local region = self.regions[#self.regions]
    if place == data.n + 1 and not (region and self.born[data] <= region) then
        if not self.is_nil(value) then
            self:put(data, place, value)
            self:put(data, "n", place)
        end
        return
    elseif place and place ~= data.n + 1 then
        self:fail("entry %d of a table of %d: a list has no holes", place, data.n)
    end
    self:make_list(data, self:type_of(value))
    return self:set_index(v, key, value, appends)
end

local function set_list(self, list, key, value, appends)
    local element = types.element(list.type)
    self:fill_in(value, element)
    local t = self:type_of(value)
    local joined = t and types.join(element, t)
    if joined ~= element then
        self:fail("a list of %s entries is given %s", element, self:describe(value))
    elseif appends then
        return self.g:node("aten::append", { list, self:held(value) }, { list.type })
    end
    self.g:node("aten::set_entry", { list, self:value(need_integer(self, key)), self:held(value) }, { list.type })
end

-- Into a dict of the graph; nil takes out what is there.
local function set_dict(self, dict, key, value)
    local t = types.dict_value(dict.type)
    self:fill_in(value, t)
    local own = self:type_of(value)
    local name = need_name(self, dict.type, key)
    local function delete() self.g:node("aten::Delete", { dict, name }, { dict.type }) end
    local function set(v) self.g:node("aten::_set_item", { dict, name, self:held(v) }, { dict.type }) end
    if own == "NoneType" then
        return delete()
    elseif own and types.inner(own) and types.join(t, own) == types.optional(t) then
        return self:choose(self:equals(value, NIL, true), function() set(self:unwrap(value)) end, delete)
    elseif not own or types.join(t, own) ~= t then
        self:fail("%s is given %s", types.words(dict.type), self:describe(value))
    end
    set(value)
end

--- set_index(v, key, value, appends): `v[key] = value`; `appends`: it was written as v[#v + 1].
function Compiler:set_index(v, key, value, appends)
    v, key, value = self:there(self:resolve(v)), self:resolve(key), self:resolve(value)
    local t = self:type_of(v)
    if v.kind == "table" then
        return set_table(self, v, key, value, appends)
    elseif t == "Tensor" then
        return self:write_tensor(v, key, value)
    elseif v.kind == "value" and types.element(t) then
        return set_list(self, v, key, value, appends)
    elseif v.kind == "value" and types.dict_value(t) then
        return set_dict(self, v, key, value)
    elseif v.kind == "value" and (types.is_tuple(t) or types.fields(t)) then
        return set_table(self, self:untuple(v), key, value) -- which says why not
    elseif v.kind == "host" and type(v.v) == "table" and key.kind == "const" then
        local held = rawget(v.v, key.v)
        if (value.kind == "const" or value.kind == "host") and rawequal(held, value.v) then
            return -- it is there already
        end
        self:fail("a table or module of the script ('%s') can be read and not set: return the value", tostring(key.v))
    end
    self:fail("attempt to index %s", self:describe(v))
end

-- ---- tensors ----

--- tensor_size(v, dim): of a dim counted from 0, negative from the end.
function Compiler:tensor_size(v, dim)
    return (self.g:node("aten::size", { self:value(v), self.g:constant("int", dim) }, { "int" }))
end

local FIELDS = {
    shape = function(self, x)
        local list = self.g:node("aten::size", { x }, { "int[]" })
        list.shape = x
        return list
    end,
    dtype = function(self, x) return (self.g:node("aten::dtype", { x }, { "dtype" })) end,
    device = function(self, x) return (self.g:node("aten::device", { x }, { "Device" })) end,
    is_quantized = function(self, x) return (self.g:node("aten::is_quantized", { x }, { "bool" })) end,
    requires_grad = function(self, x) return (self.g:node("aten::requires_grad", { x }, { "bool" })) end,
    ndim = function(self, x) return (self.g:node("aten::dim", { x }, { "int" })) end,
    T = function(self, x) return self:operator("t", { x })[1] end,
    mT = function(self, x) return self:operator("transpose", { x, self.const(-2), self.const(-1) })[1] end,
    data = function(self, x) return self:operator("detach", { x })[1] end,
}

local function is_index_text(text)
    return string.find(text, "^%s*[:%-%.%d]") or string.find(text, "^%s*nil") or string.find(text, "^%s*None")
        or string.find(text, "^%s*newaxis")
end

--- tensor_entry(v, key): a field or method by name, else elements.
function Compiler:tensor_entry(v, key)
    local name = key.kind == "const" and type(key.v) == "string" and key.v
    if not name or is_index_text(name) then
        return self:read_tensor(v, key)
    elseif FIELDS[name] then
        return FIELDS[name](self, self:value(v))
    elseif tide._methods[name] then
        return { kind = "op", name = name }
    end
    self:fail("a tensor in a script has no field '%s'", name)
end

-- ---- keys ----

local function step(self, c, name, arguments)
    c.x = self:engine(name, arguments)
end

-- A place counted from 1 as the engine counts; negative from the end.
local function from_zero(self, key)
    if key.kind == "const" then
        if key.v == 0 then
            self:fail "index 0: indices count from 1 (PyTorch's 0 is 1)"
        end
        return self.const(key.v > 0 and key.v - 1 or key.v)
    elseif key.positive then
        return self:binary("-", key, self.const(1))
    end
    return self:choose(self:binary(">", key, self.const(0)), function() return self:binary("-", key, self.const(1)) end, function()
        return self:choose(self:binary("==", key, self.const(0)), function()
            self:raise(self.const "index 0: indices count from 1 (PyTorch's 0 is 1)")
            return key
        end, function() return key end)
    end)
end
Compiler.from_zero = from_zero

-- The dim that the next element of a key is about: behind "...", which stands for as many dims as there are, it counts from the end.
local function next_dim(self, c) return self.const(c.from_end and -c.left or c.dim) end

local function pass_dim(c)
    c.dim = c.dim + 1
    c.list[#c.list + 1] = false
    c.left = c.left - 1
end

local function step_number(self, c, key)
    step(self, c, "select", { c.x, next_dim(self, c), from_zero(self, key) })
    c.left = c.left - 1
end

-- The end that a range of Lua's has as the engine's: what is behind it. -1 is the last, which has nothing behind it.
local function stop_of(self, last)
    if last == nil then
        return NIL
    elseif last.kind == "const" then
        if last.v == 0 then
            self:fail "index: a range counts from 1: 0 is not in it (negative counts from the end)"
        end
        return last.v == -1 and NIL or self.const(last.v > 0 and last.v or last.v + 1)
    elseif last.positive then
        return last
    end
    return self:choose(self:binary(">", last, self.const(0)), function() return last end, function()
        return self:choose(self:binary("==", last, self.const(-1)), function() return self.const(math.maxinteger) end,
            function() return self:binary("+", last, self.const(1)) end)
    end)
end

local function step_range(self, c, first, last, by)
    by = by or self.const(1)
    if by.kind == "const" and by.v < 1 then
        self:fail("index: the step of a range must be at least 1, got %d; x:flip(dim) reverses", by.v)
    end
    if first or last or by.kind ~= "const" or by.v ~= 1 then
        step(self, c, "slice", { c.x, next_dim(self, c), first and from_zero(self, first) or NIL, stop_of(self, last), by })
    end
    pass_dim(c)
end

local function step_new_axis(self, c)
    c.left = c.left + 1
    step(self, c, "unsqueeze", { c.x, next_dim(self, c) })
    pass_dim(c)
end

-- A second "..." stands for no dims.
local function step_ellipsis(c) c.from_end = true end

local function read_text(self, c, text)
    for element in string.gmatch(text .. ",", "%s*([^,]-)%s*,") do
        local first, last, by = string.match(element, "^(%-?%d*)%s*:%s*(%-?%d*)%s*:?%s*(%-?%d*)$")
        local function number(t) return t and t ~= "" and self.const(math.tointeger(tonumber(t))) or nil end
        if element == "..." then
            step_ellipsis(c)
        elseif element == "nil" or element == "None" or element == "newaxis" then
            step_new_axis(self, c)
        elseif first then
            step_range(self, c, number(first), number(last), number(by))
        elseif string.find(element, "^%-?%d+$") then
            step_number(self, c, number(element))
        else
            self:fail("index %q: a number, a range such as 1:3, nil or ... expected", text)
        end
    end
end

local function is_new_axis(v) return v.kind == "host" and v.v == tide.newaxis end

local function step_key(self, c, key)
    key = self:resolve(key)
    local t = self:type_of(key)
    if key.kind == "const" and type(key.v) == "string" then
        read_text(self, c, key.v)
    elseif is_new_axis(key) then
        step_new_axis(self, c)
    elseif t == "int" or key.kind == "const" and math.type(key.v) == "float" and math.tointeger(key.v) then
        step_number(self, c, key.kind == "const" and self.const(math.tointeger(key.v)) or key)
    elseif key.kind == "table" and key.data.n <= 3 and #key.data.order == 0 then
        local parts = {}
        for k = 1, key.data.n do
            parts[k] = need_integer(self, self:resolve(key.data[k]))
        end
        step_range(self, c, parts[1], parts[2] or parts[1], parts[3])
    elseif t == "Tensor" then
        if c.from_end then
            self:fail "index: an index tensor behind '...': write the dims out"
        end
        c.list[#c.list + 1] = key
        c.advanced = true
        c.dim, c.left = c.dim + 1, c.left - 1
    else
        self:fail("index: a number, a range {first, last}, a string, a mask or an index tensor expected, got %s", self:describe(key))
    end
end

-- Elements of a key that take a dim of their own.
local function count(self, key)
    key = self:resolve(key)
    if key.kind == "const" and type(key.v) == "string" then
        local n = 0
        for element in string.gmatch(key.v .. ",", "%s*([^,]-)%s*,") do
            n = n + (element ~= "..." and element ~= "nil" and element ~= "None" and element ~= "newaxis" and 1 or 0)
        end
        return n
    end
    return is_new_axis(key) and 0 or 1
end

local function read_key(self, v, key)
    local c = { x = v, dim = 0, list = {}, left = 0 }
    if key.kind == "table" then
        for k = 1, key.data.n do
            c.left = c.left + count(self, key.data[k])
        end
        for k = 1, key.data.n do
            step_key(self, c, key.data[k])
        end
    else
        c.left = count(self, key)
        step_key(self, c, key)
    end
    return c
end

-- The list of index tensors: integers count from 1 in Lua and from 0 in the graph; masks stay as they are.
local function index_list(self, c)
    local parts, t = {}, "Tensor"
    while c.list[#c.list] == false do
        table.remove(c.list)
    end
    for k, part in ipairs(c.list) do
        parts[k] = part and self:value(self:from_one(part, "any")) or self.g:constant "NoneType"
        t = part and t or "Tensor?"
    end
    return (self.g:node("prim::ListConstruct", parts, { t .. "[]" }))
end

--- read_tensor(v, key): `x[key]`
function Compiler:read_tensor(v, key)
    local c = read_key(self, v, key)
    if c.advanced then
        return self:engine("advanced_index", { c.x, index_list(self, c) })
    elseif c.x == v then
        step(self, c, "slice", { v, self.const(0), NIL, NIL, self.const(1) })
    end
    return c.x
end

local function dtype_of(self, x) return (self.g:node("aten::dtype", { self:value(x) }, { "dtype" })) end

-- What is assigned, as a tensor of x's dtype.
local function written(self, x, value)
    local t = self:type_of(value)
    if t == "Tensor" then
        return self:engine("to", { value, dtype_of(self, x), NIL, Compiler.FALSE, self.const "preserve", Compiler.FALSE })
    elseif t and (types.is_number(t) or t == "bool") then
        return self:engine("scalar_tensor", { value, dtype_of(self, x),
            self.g:node("aten::device", { self:value(x) }, { "Device" }) })
    end
    self:fail("index: a tensor or a number can be assigned, got %s", self:describe(value))
end

--- write_tensor(v, key, value): `x[key] = value`, in place.
function Compiler:write_tensor(v, key, value)
    if key.kind == "const" and type(key.v) == "string" and not is_index_text(key.v) then
        self:fail("the field '%s' of a tensor can't be set in a script", key.v)
    end
    local c = read_key(self, v, key)
    if c.advanced then
        self:engine("index_put_", { c.x, index_list(self, c), written(self, c.x, value), Compiler.FALSE })
    elseif self:type_of(value) == "Tensor" then
        self:engine("copy_", { c.x, value })
    else
        self:engine("fill_", { c.x, value })
    end
end

return Compiler
