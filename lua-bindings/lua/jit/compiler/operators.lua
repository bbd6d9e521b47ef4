-- jit/compiler/operators.lua: calls of operators on tensors: arguments as Lua gives them become the node's, counted from
-- 0, with defaults filled in, as lua-bindings/call/values.c does it; results that are indices count from 1 again.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local schema = tide._require "jit.compiler.schema"
local types = tide._require "jit.compiler.types"

local NIL = Compiler.NIL

-- What a value of the graph is for a message: "sum: argument 2 (dim)".
local function place(s, k)
    local p = s.params[k]
    return p.option and string.format("%s: option %s", s.called, p.name) or string.format("%s: argument %d (%s)", s.called, k, p.name)
end

local function refuse(self, s, k, expected, v)
    self:fail("%s: expected %s, got %s", place(s, k), expected, self:describe(v))
end

-- ---- single values ----

local function check_range(self, s, k, v)
    local p = s.params[k]
    if v.kind == "const" and (p.low and v.v < p.low or p.high and v.v > p.high) then
        refuse(self, s, k, p.high and string.format("a number from %d to %d", p.low, p.high) or string.format("a number from %d on",
            p.low), v)
    end
end

local function number(self, s, k, v)
    local t, p = self:type_of(v), s.params[k]
    if p.words and t == "str" then
        return self:value(v)
    elseif t == "bool" and (p.truth or s.doc.family == "pointwise") then
        return self:value(v)
    elseif t == "Tensor" then
        return (self.g:node("aten::item", { self:value(v) }, { "Scalar" }))
    elseif not t or not types.is_number(t) then
        refuse(self, s, k, "a number", v)
    end
    check_range(self, s, k, v)
    return self:value(v)
end

local function float(self, s, k, v)
    if v.kind == "const" and math.type(v.v) == "integer" then
        v = self.const(v.v + 0.0)
    end
    local value = number(self, s, k, v)
    return value.type == "float" and value or self:to_float(value)
end

local function integer(self, s, k, v)
    local t = self:type_of(v)
    if v.kind == "const" and math.type(v.v) == "float" and math.tointeger(v.v) then
        v, t = self.const(math.tointeger(v.v)), "int"
    elseif t == "Tensor" or t == "Scalar" then
        v, t = self.g:node("aten::Int", { self:value(v) }, { "int" }), "int"
    end
    if t ~= "int" then
        refuse(self, s, k, "an integer", v)
    end
    check_range(self, s, k, v)
    return v
end

-- A dim or an index, counted from 1.
local function counted(self, s, k, v, what)
    v = integer(self, s, k, v)
    if v.kind == "const" and v.v == 0 then
        self:fail("%s: %s 0: %s count from 1 (PyTorch's %s=0 is 1)", s.called, what, what == "dim" and "dims" or "indices", what)
    end
    return self:from_zero(v)
end

-- Operators whose results are masks.
local MASKS = {}
for name in string.gmatch("gt ge lt le eq ne logical_and logical_or logical_not logical_xor isnan isinf isfinite isclose isin", "%S+") do
    MASKS["aten::" .. name] = true
end

--- is_mask(v): is it known that a tensor's elements are booleans?
function Compiler:is_mask(v)
    if v.kind == "host" then
        return v.v.dtype == tide.bool
    end
    local n = v.made
    return n ~= nil and (MASKS[n.op] or (n.op == "aten::any" or n.op == "aten::all" or n.op == "aten::select" or n.op == "aten::slice"
        or n.op == "aten::bitwise_not") and self:is_mask(n.inputs[1])) or false
end

--- from_one(v, what): a tensor of indices or classes, which count from 1 in Lua, as it counts from 0. What is none stays
--- as it is: masks among indices ("any"), probabilities in the place of classes ("class"). An "index" is one.
function Compiler:from_one(v, what)
    if v.kind == "host" then
        local dtype = v.v.dtype
        if dtype == tide.bool or v.v:is_floating_point() then
            return v
        end
        what = "index"
    elseif self:is_mask(v) then
        return v
    end
    v = self:value(v)
    local function counted() return self:engine("from_one_based", { v }) end
    if what == "index" or v.made and v.made.op == "aten::add" and v.made.counts_from_one then
        return counted()
    end
    local other
    if what == "class" then
        other = self.g:node("aten::is_floating_point", { v }, { "bool" })
    else
        other = self.g:node("aten::__is__", { self.g:node("aten::dtype", { v }, { "dtype" }), self.g:constant("dtype", "bool") }, { "bool" })
    end
    return self:choose(other, function() return v end, counted)
end

local function tensor(self, s, k, v)
    local p, t = s.params[k], self:type_of(v)
    if t == "Tensor" then
        return self:value(p.base and self:from_one(v, p.base == "index" and not p.holes and "index" or p.base) or v)
    elseif p.kind == "TensorOrNumber" and t and (types.is_number(t) or t == "bool") then
        return self:value(v)
    elseif t == "Tensor?" then
        return self:must_be(v)
    end
    refuse(self, s, k, p.kind == "TensorOrNumber" and "a tensor or a number" or "a tensor", v)
end

-- ---- lists ----

-- The entries of what stands for a list: a table of the source or of the script, or the values by themselves; and, where
-- it is a list of the graph, that.
local function entries(self, given)
    if given.values and not (#given.values == 1 and self:is_list(given.values[1])) then
        return given.values
    end
    local v = self:resolve(given.value or given.values[1])
    if v.kind == "table" then
        local list = {}
        for k = 1, v.data.n do
            list[k] = self:resolve(v.data[k])
        end
        return list
    elseif v.kind == "host" and type(v.v) == "table" then
        local list = {}
        for k, entry in ipairs(v.v) do
            list[k] = self:wrap(entry)
        end
        return list
    elseif v.kind == "value" and types.element(v.type) then
        return nil, v
    elseif v.kind == "value" and types.is_tuple(v.type) then
        return entries(self, { value = self:untuple(v) })
    end
    return { v }
end

--- is_list(v): may it stand for a list of values?
function Compiler:is_list(v)
    v = self:resolve(v)
    local t = self:type_of(v)
    return v.kind == "table" or v.kind == "host" and type(v.v) == "table" or t and types.element(t) or v.kind == "value"
        and types.is_tuple(t)
end

local LEFT_OUT = math.mininteger

local function integers(self, s, k, given)
    local p = s.params[k]
    local alone = given.value and self:resolve(given.value) or #given.values == 1 and self:resolve(given.values[1])
    if p.words and alone and alone.kind == "const" and type(alone.v) == "string" then
        return self:value(alone)
    end
    local dims = p.kind == "dims"
    if p.alone and alone and self:type_of(alone) == "int" then
        return self:value(alone)
    end
    local list, whole = entries(self, given)
    if whole then
        if dims or whole.type ~= "int[]" then
            self:fail("%s: expected integers that are written out, got %s", place(s, k), self:describe(whole))
        end
        return whole
    end
    local parts, known = {}, true
    for j, v in ipairs(list) do
        if p.holes and v.kind == "const" and v.v == false then
            parts[j] = self.const(LEFT_OUT)
        else
            parts[j] = dims and counted(self, s, k, v, "dim") or integer(self, s, k, v)
        end
        known = known and parts[j].kind == "const"
    end
    for j = #parts + 1, p.length and #parts == 1 and p.length or 0 do
        parts[j] = parts[1]
    end
    if p.length and #parts ~= p.length then
        self:fail("%s: %d integers expected, got %d", place(s, k), p.length, #parts)
    end
    local values = {}
    for j, v in ipairs(parts) do
        values[j] = known and v.v or self:value(v)
    end
    return known and self.g:constant("int[]", values) or (self.g:node("prim::ListConstruct", values, { "int[]" }))
end

local function numbers(self, s, k, given)
    local list, whole = entries(self, given)
    if whole then
        return whole
    end
    local values, known = {}, true
    for j, v in ipairs(list) do
        values[j] = v.kind == "const" and type(v.v) == "number" and v.v + 0.0 or float(self, s, k, v)
        known = known and type(values[j]) == "number"
    end
    for j, v in ipairs(values) do
        values[j] = not known and type(v) == "number" and self.g:constant("float", v) or v
    end
    return known and self.g:constant("float[]", values) or (self.g:node("prim::ListConstruct", values, { "float[]" }))
end

local function tensors(self, s, k, given)
    if given.value and self:type_of(self:resolve(given.value)) == "Tensor" then
        self:fail("%s: expected a list of tensors, got a tensor: put it in a table, {a, b}", place(s, k))
    end
    local list, whole = entries(self, given)
    local p = s.params[k]
    if whole then
        if whole.type ~= "Tensor[]" then
            refuse(self, s, k, "a list of tensors", whole)
        end
        return whole
    end
    local values, t = {}, "Tensor"
    for j, v in ipairs(list) do
        if p.holes and v.kind == "const" and not v.v then
            values[j], t = self.g:constant "NoneType", "Tensor?"
        elseif self:type_of(v) ~= "Tensor" and self:type_of(v) ~= "Tensor?" then
            refuse(self, s, k, "a list of tensors", v)
        else
            v = self:type_of(v) == "Tensor?" and self:must_be(v) or v
            values[j] = self:value(p.base and self:from_one(v, "any") or v)
        end
    end
    return (self.g:node("prim::ListConstruct", values, { t .. "[]" }))
end

-- ---- one argument ----

local function text(self, s, k, v)
    local p = s.params[k]
    if p.words and v.kind == "host" and self.is_dtype(v.v) then
        v = self.const(self.dtype_name(v.v))
    end
    if self:type_of(v) ~= "str" then
        refuse(self, s, k, "a string", v)
    elseif p.words and v.kind == "const" and not p.words[v.v] then
        local names = {}
        for word in pairs(p.words) do
            names[#names + 1] = string.format("%q", word)
        end
        table.sort(names)
        refuse(self, s, k, table.concat(names, " or "), v)
    end
    return self:value(v)
end

local function device(self, s, k, v)
    local t = self:type_of(v)
    if v.kind == "const" and t == "str" then
        return self.g:constant("Device", v.v)
    elseif t == "Device" then
        return v
    end
    refuse(self, s, k, 'a device such as "cpu"', v)
end

local function dtype(self, s, k, v)
    local t = self:type_of(v)
    if v.kind == "const" and t == "str" then
        return self.g:constant("dtype", v.v)
    elseif t == "dtype" then
        return self:value(v)
    end
    refuse(self, s, k, "a dtype such as tide.float32", v)
end

local function boolean(self, s, k, v)
    if self:type_of(v) ~= "bool" then
        refuse(self, s, k, "true or false", v)
    end
    return self:value(v)
end

local function generator(self, s, k, v)
    if self:type_of(v) ~= "Generator" then
        self:fail("%s: a generator is an input of a script: write it as a parameter, --: Tensor, Generator", place(s, k))
    end
    return v
end

local SINGLE = {
    generator = generator, Tensor = tensor, TensorOrNumber = tensor, number = number, float = float, str = text, dtype = dtype, device = device, bool = boolean,
    int = function(self, s, k, v) return self:value(integer(self, s, k, v)) end,
    dim = function(self, s, k, v) return self:value(counted(self, s, k, v, "dim")) end,
    index = function(self, s, k, v) return self:value(counted(self, s, k, v, "index")) end,
}
local LISTED = { Tensors = tensors, ints = integers, dims = integers, numbers = numbers }

local function argument(self, s, k, given)
    local p = s.params[k]
    if given and given.values and #given.values == 1 and self.is_nil(self:resolve(given.values[1])) then
        given = { value = NIL }
    end
    local v = given and given.value and self:resolve(given.value)
    if not given or v and self.is_nil(v) then
        if not p.has_default and not (p.optional and given) then
            self:fail("%s: nothing is given", place(s, k))
        elseif p.default == nil then
            return self.g:constant "NoneType"
        end
        given = { value = type(p.default) == "table" and self:wrap(p.default) or self.const(p.default) }
        v = given.value
    end
    if LISTED[p.kind] then
        return LISTED[p.kind](self, s, k, given)
    end
    v = v or self:resolve(given.values[1])
    local t = self:type_of(v)
    if t and types.inner(t) and p.optional and p.kind ~= "dim" and p.kind ~= "index" then
        return v
    elseif not SINGLE[p.kind] then
        self:fail("%s: this kind of argument can't be given in a script", place(s, k))
    end
    return SINGLE[p.kind](self, s, k, v)
end

-- ---- results ----

-- Which results there are is told by arguments.
local function result_types(self, s, values)
    local list = {}
    for k = 1, #s.results do
        list[k] = "Tensor"
    end
    local function is_false(name)
        for k, p in ipairs(s.params) do
            if p.name == name then
                local known = self:known(values[k])
                if known == nil then
                    self:fail("%s: %s must be known when the script is compiled", s.called, name)
                end
                return known.v == nil or known.v == false
            end
        end
        return false
    end
    local name = s.name
    if (name == "max" or name == "min" or name == "median" or name == "nanmedian") and is_false "dim" then
        list[2] = "NoneType"
    elseif string.find(name, "max_pool%dd$") and is_false "return_indices" then
        list[2] = "NoneType"
    elseif name == "unique" or name == "unique_consecutive" then
        list[2] = is_false "return_inverse" and "NoneType" or "Tensor"
        list[3] = is_false "return_counts" and "NoneType" or "Tensor"
    end
    return list
end

--- known(value): {v = what} a constant of the graph is; nil for other values.
function Compiler:known(value)
    local n = value.made
    if not n or n.op ~= "prim::Constant" then
        return nil
    elseif value.type == "NoneType" then
        return { v = nil }
    elseif value.type == "bool" then
        return { v = n.attribute == "value=1" }
    end
    return { v = n.attribute }
end

local function node_of(self, s, values, inplace)
    local name = inplace and not string.find(s.name, "_$") and s.name .. "_" or s.name
    local results = { ["Tensor[]"] = { "Tensor[]" }, number = { "Scalar" }, bool = { "bool" }, nothing = {} }
    return table.pack(self.g:node("aten::" .. name, values, results[s.result] or result_types(self, s, values)))
end

--- engine(name, arguments): an operator with arguments as the engine counts them, all of them; its first result.
function Compiler:engine(name, arguments)
    local s = schema.operator(name)
    local values = {}
    for k = 1, #s.params do
        local v = arguments[k] or (s.params[k].default == nil and NIL or self.const(s.params[k].default))
        values[k] = self:value(v)
    end
    s.called = s.name
    return node_of(self, s, values, string.find(name, "_$"))[1]
end

-- Index results count from 1.
local function given_back(self, s, results)
    local list = {}
    for k = 1, results.n do
        local value = results[k]
        if value.type ~= "NoneType" then
            if s.results[k] and s.results[k].base then
                value = self:engine("add", { value, self.const(1) })
                value.made.counts_from_one = true
            end
            list[#list + 1] = value
        end
    end
    return list
end

--- operator(name, arguments [, inplace]): a call of an operator as Lua writes it; a list of its results.
function Compiler:operator(name, arguments, inplace)
    local s = schema.operator(name)
    local form = self.forms[s.name]
    if form then
        local results, other
        arguments, other, results = form(self, arguments)
        if results then
            return results
        end
        s = other and schema.operator(other) or s
    end
    s.called = inplace and name .. "_" or name
    local given, common = schema.arrange(s, arguments, self:reader(s.called))
    for option, v in pairs(common) do
        v = self:resolve(v)
        if option == "out" and not self.is_nil(v) then
            self:fail("%s: out= has no place in a graph: use the result", s.called)
        elseif v.kind ~= "const" then
            self:fail("%s: %s must be known when the script is compiled", s.called, option)
        elseif option == "inplace" then
            inplace = v.v
        elseif v.v then
            self:fail("%s: requires_grad: leaves are made outside of scripts and given to them", s.called)
        end
    end
    local values = {}
    for k = 1, #s.params do
        values[k] = argument(self, s, k, given[k])
    end
    local results = given_back(self, s, node_of(self, s, values, inplace))
    return inplace and { self:resolve(arguments[1]) } or results
end

return Compiler
