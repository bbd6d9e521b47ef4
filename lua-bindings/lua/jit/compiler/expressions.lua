-- jit/compiler/expressions.lua: expressions, one function for each tag of the parser's. What is known is worked out by Lua
-- itself, so that it means what it means there.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local expressions = {}
local TRUE, FALSE, NIL = Compiler.TRUE, Compiler.FALSE, Compiler.NIL

-- ---- lists of expressions ----

local function is_several(e) return e.tag == "Call" or e.tag == "Invoke" or e.tag == "Vararg" end

--- expression(e): its value, the first one of several.
function Compiler:expression(e)
    if is_several(e) then
        return self:at(e, expressions[e.tag], e, 1)[1] or NIL
    end
    return self:resolve(self:at(e, expressions[e.tag], e))
end

--- several(list [, wanted]): the values of expressions, of which the last may be several. `wanted`: how many are taken.
function Compiler:several(list, wanted)
    local values = {}
    for k, e in ipairs(list) do
        if k == #list and is_several(e) then
            for j, v in ipairs(self:at(e, expressions[e.tag], e, wanted and wanted - k + 1)) do
                values[k + j - 1] = v
            end
        else
            values[k] = self:expression(e)
        end
    end
    return values
end

-- ---- the simple ones ----

function expressions.Constant(self, e) return self.const(e.value) end
function expressions.Parens(self, e) return self:expression(e.inner) end
function expressions.Function(self, e) return { kind = "closure", fn = e, scope = self.scope, where = self.where } end

function expressions.Name(self, e)
    local cell = self:lookup(e.name)
    local v = self:resolve(cell.v)
    if v.kind == "unset" then
        self:fail("'%s' has no value here", e.name)
    end
    return v
end

function expressions.Vararg(self)
    if not self.frame.varargs then
        self:fail "'...' stands outside of the function that takes it"
    end
    return self.frame.varargs
end

function expressions.Table(self, e)
    local v = self:new_table {}
    local data = v.data
    for k, entry in ipairs(e.entries) do
        if entry.key then
            local key = self:expression(entry.key)
            if key.kind ~= "const" or type(key.v) ~= "string" and math.type(key.v) ~= "integer" then
                self:at(entry.key, self.fail, "a name or a number that is known is expected between the brackets")
            end
            self:set_index(v, key, self:expression(entry.value))
        elseif k == #e.entries and is_several(entry.value) then
            for _, value in ipairs(self:several { entry.value }) do
                data.n = data.n + 1
                data[data.n] = value
            end
        else
            data.n = data.n + 1
            data[data.n] = self:expression(entry.value)
        end
    end
    return v
end

function expressions.Index(self, e)
    local object = self:expression(e.object)
    if object.kind == "const" and object.v == nil then
        self:fail("attempt to index nil%s", e.object.tag == "Name" and " ('" .. e.object.name .. "')" or "")
    end
    return self:index(object, self:expression(e.key))
end

function expressions.Call(self, e, wanted)
    local callee = self:expression(e.callee)
    local arguments = self:several(e.arguments)
    return self:call(callee, arguments, e, wanted)
end

function expressions.Invoke(self, e, wanted)
    local object = self:expression(e.object)
    local arguments = self:several(e.arguments)
    return self:invoke(object, e.name, arguments, e, wanted)
end

-- ---- arithmetic ----

local ON_NUMBERS = {
    ["+"] = function(a, b) return a + b end,
    ["-"] = function(a, b) return a - b end,
    ["*"] = function(a, b) return a * b end,
    ["/"] = function(a, b) return a / b end,
    ["//"] = function(a, b) return a // b end,
    ["%"] = function(a, b) return a % b end,
    ["^"] = function(a, b) return a ^ b end,
    ["&"] = function(a, b) return a & b end,
    ["|"] = function(a, b) return a | b end,
    ["~"] = function(a, b) return a ~ b end,
    ["<<"] = function(a, b) return a << b end,
    [">>"] = function(a, b) return a >> b end,
    [".."] = function(a, b) return a .. b end,
    ["<"] = function(a, b) return a < b end,
    ["<="] = function(a, b) return a <= b end,
    [">"] = function(a, b) return a > b end,
    [">="] = function(a, b) return a >= b end,
}
local SCALAR = { ["+"] = "add", ["-"] = "sub", ["*"] = "mul", ["/"] = "div", ["//"] = "floordiv", ["%"] = "remainder",
    ["^"] = "pow", ["<"] = "lt", ["<="] = "le", [">"] = "gt", [">="] = "ge", ["&"] = "__and__", ["|"] = "__or__",
    ["~"] = "__xor__", ["<<"] = "__lshift__", [">>"] = "__rshift__" }
local TENSOR = { ["+"] = "add", ["-"] = "sub", ["*"] = "mul", ["/"] = "div", ["//"] = "floor_divide", ["%"] = "remainder",
    ["^"] = "pow", ["&"] = "bitwise_and", ["|"] = "bitwise_or", ["~"] = "bitwise_xor", ["<<"] = "bitwise_left_shift",
    [">>"] = "bitwise_right_shift" }
local ORDER = { ["<"] = "lt", ["<="] = "le", [">"] = "gt", [">="] = "ge" }
local BITS = { ["&"] = true, ["|"] = true, ["~"] = true, ["<<"] = true, [">>"] = true }

-- What Lua gives of two numbers of these types.
local function result_type(op, a, b)
    if ORDER[op] then
        return "bool"
    elseif op == "/" or op == "^" then
        return "float"
    elseif a == "int" and b == "int" then
        return "int"
    elseif a == "float" or b == "float" then
        return "float"
    end
    return "Scalar"
end

local function fold(self, op, a, b)
    local ok, result = pcall(ON_NUMBERS[op], a.v, b.v)
    if not ok then
        self:fail("%s", (string.gsub(result, "^[^:]*:%d+: ", "")))
    end
    return self.const(result)
end

--- there(v): an optional value that is used is there, or it is an error as the graph runs.
function Compiler:there(v)
    local t = self:type_of(v)
    return t and types.inner(t) and self:must_be(v) or v
end

local function fail_operands(self, op, a, b)
    local wrong = a
    if types.is_number(self:type_of(a) or "") or self:is_tensor(a) then
        wrong = b
    end
    local t = self:type_of(wrong)
    if t and types.element(t) or wrong.kind == "table" then
        self:fail("arithmetic on a list ('%s'): tensors, numbers and booleans have operators", op)
    end
    self:fail("attempt to perform arithmetic ('%s') on %s", op, self:describe(wrong))
end

-- Strings that were joined with what is known only as the graph runs.
local function concat(self, a, b)
    local function text(v)
        local t = self:type_of(v)
        if v.kind == "const" and (type(v.v) == "string" or type(v.v) == "number") then
            return self.const(tostring(v.v))
        elseif t == "str" then
            return v
        elseif t and (types.is_number(t) or t == "Device") then
            return self.g:node("aten::str", { self:value(v) }, { "str" })
        end
        self:fail("attempt to concatenate %s", self:describe(v))
    end
    return self.g:node("aten::add", { self:value(text(a)), self:value(text(b)) }, { "str" })
end

--- binary(op, a, b): what Lua's operator gives of two values.
function Compiler:binary(op, a, b)
    a, b = self:resolve(a), self:resolve(b)
    if op == "==" or op == "~=" then
        return self:equals(a, b, op == "~=")
    end
    a, b = self:there(a), self:there(b)
    if a.kind == "const" and b.kind == "const" and ON_NUMBERS[op] then
        return fold(self, op, a, b)
    end
    local ta, tb = self:type_of(a), self:type_of(b)
    if ta == "Tensor" or tb == "Tensor" then
        if ORDER[op] then
            self:fail("'%s' on tensors gives no boolean: write x:%s(y), which compares their elements", op, ORDER[op])
        elseif not TENSOR[op] then
            self:fail("attempt to use '%s' on a tensor", op)
        end
        for _, t in ipairs { ta or "nothing", tb or "nothing" } do
            if t ~= "Tensor" and t ~= "bool" and not types.is_number(t) then
                fail_operands(self, op, a, b)
            end
        end
        return self:operator(TENSOR[op], { a, b })[1]
    elseif op == ".." then
        return concat(self, a, b)
    elseif ta == "str" and tb == "str" and ORDER[op] then
        return self.g:node("aten::" .. SCALAR[op], { self:value(a), self:value(b) }, { "bool" })
    elseif not types.is_number(ta or "") or not types.is_number(tb or "") then
        if ORDER[op] then
            self:fail("attempt to compare %s with %s", self:describe(a), self:describe(b))
        end
        fail_operands(self, op, a, b)
    elseif BITS[op] and (ta ~= "int" or tb ~= "int") then
        self:fail("'%s' is for integers, got %s and %s", op, self:describe(a), self:describe(b))
    end
    return self.g:node("aten::" .. SCALAR[op], { self:value(a), self:value(b) }, { result_type(op, ta, tb) })
end

-- ---- equality ----

local function negated(self, v, negate)
    if not negate then
        return v
    elseif v.kind == "const" then
        return v.v and FALSE or TRUE
    end
    return self.g:node("aten::__not__", { v }, { "bool" })
end

local function same_object(a, b)
    if a.kind == "host" and b.kind == "host" then
        return rawequal(a.v, b.v) or a.v == b.v
    elseif a.kind == "table" and b.kind == "table" then
        return a.data == b.data
    end
    return a == b
end

--- same_sizes(a, b): are two shapes equal?
function Compiler:same_sizes(a, b)
    local length = self.g:node("aten::len", { a }, { "int" })
    local same = self:cell(self:equals(length, self.g:node("aten::len", { b }, { "int" })), "same")
    self:loop {
        trips = length,
        condition = function() return same.v end,
        body = function(trip)
            local function size(list) return (self.g:node("aten::__getitem__", { list, trip }, { "int" })) end
            self:put(same, "v", self:equals(size(a), size(b)))
        end,
    }
    return same.v
end

-- A device is its name in Lua.
local function named_device(self, v)
    return self:type_of(v) == "Device" and self.g:node("aten::str", { self:value(v) }, { "str" }) or v
end

--- equals(a, b, negate): `==`, or `~=`. Values of types that are never equal in Lua are not.
function Compiler:equals(a, b, negate)
    if a.kind == "const" and b.kind == "const" then
        return negated(self, a.v == b.v and TRUE or FALSE, negate)
    end
    a, b = named_device(self, a), named_device(self, b)
    local ta, tb = self:type_of(a), self:type_of(b)
    local none = self.is_nil(a) or self.is_nil(b)
    local optional = ta and types.inner(ta) and a or tb and types.inner(tb) and b
    if none and optional then
        return self.g:node(negate and "aten::__isnot__" or "aten::__is__", { optional, self.g:constant "NoneType" }, { "bool" })
    elseif none then
        return negated(self, FALSE, negate)
    elseif ta == "Tensor" and tb == "Tensor" then
        return negated(self, self:operator("equal", { a, b })[1], negate)
    elseif ta and tb and (ta == tb and ta ~= "Tensor" or types.is_number(ta) and types.is_number(tb)) and a.kind ~= "table" then
        if a == b and types.element(ta) then
            return negated(self, TRUE, negate)
        elseif types.element(ta) and not (a.shape and b.shape) then
            self:fail "lists are equal in Lua where they are the same one: compare their entries"
        end
        local by_value = types.is_number(ta) or ta == "str" or ta == "bool"
        if types.element(ta) then
            return negated(self, self:same_sizes(self:value(a), self:value(b)), negate)
        elseif not by_value then
            return self.g:node(negate and "aten::__isnot__" or "aten::__is__", { self:value(a), self:value(b) }, { "bool" })
        end
        return self.g:node(negate and "aten::ne" or "aten::eq", { self:value(a), self:value(b) }, { "bool" })
    elseif optional or ta == "Scalar" or tb == "Scalar" then
        self:fail("%s and %s can't be compared here: ask for nil before", self:describe(a), self:describe(b))
    end
    return negated(self, same_object(a, b) and TRUE or FALSE, negate)
end

function expressions.Binary(self, e)
    return self:binary(e.op, self:expression(e.left), self:expression(e.right))
end

-- ---- unary operators ----

--- length(v): `#v`
function Compiler:length(v)
    v = self:there(self:resolve(v))
    local t = self:type_of(v)
    if v.kind == "table" or types.dict_value(t or "") then
        return self.const(v.kind == "table" and v.data.n or 0) -- names are not counted
    elseif v.kind == "const" and type(v.v) == "string" then
        return self.const(#v.v)
    elseif t == "Tensor" then
        return self:tensor_size(v, 0)
    elseif t and (types.element(t) or t == "str") then
        return self.g:node("aten::len", { self:value(v) }, { "int" })
    elseif v.kind == "value" and types.is_tuple(t) then
        return self.const(#types.parts(t))
    elseif v.kind == "host" and type(v.v) == "table" then
        self:watch(v.v, #v.v + 1)
        return self.const(#v.v)
    end
    self:fail("attempt to get the length of %s", self:describe(v))
end

function expressions.Unary(self, e)
    if e.op == "not" then
        return negated(self, self:condition(e.operand), true)
    end
    local v = self:expression(e.operand)
    if e.op == "#" then
        return self:length(v)
    end
    v = self:there(v)
    local t = self:type_of(v)
    if v.kind == "const" then
        local ok, result = pcall(function() return e.op == "-" and -v.v or ~v.v end)
        return ok and self.const(result) or self:fail("%s", (string.gsub(result, "^[^:]*:%d+: ", "")))
    elseif t == "Tensor" then
        return self:operator(e.op == "-" and "neg" or "bitwise_not", { v })[1]
    elseif not t or not types.is_number(t) or e.op == "~" and t ~= "int" then
        self:fail("attempt to perform arithmetic ('%s') on %s", e.op, self:describe(v))
    elseif e.op == "~" then
        return self:binary("~", v, self.const(-1))
    end
    return self.g:node("aten::neg", { self:value(v) }, { t })
end

--- must_be(v): an optional value as what it is when it is there; nothing there is an error as the graph runs.
function Compiler:must_be(v)
    self.unwraps = (self.unwraps or 0) + 1
    return (self.g:node("aten::unwrap", { v }, { types.inner(v.type) }))
end

--- to_float(v)
function Compiler:to_float(v) return self.g:node("aten::Float", { self:value(v) }, { "float" }) end

-- ---- truth, and, or ----

--- condition_of(v): a value's truth: known, or a boolean of the graph. In Lua all is true but nil and false.
function Compiler:condition_of(v)
    v = self:resolve(v)
    if v.kind == "const" then
        return v.v and TRUE or FALSE
    elseif v.kind ~= "value" then
        return TRUE
    elseif v.type == "bool" then
        return v
    elseif v.type == "Scalar" and v.from_item then
        self:fail "the element of a tensor is a number, which is true in Lua, or a boolean: compare it, x:item() ~= 0"
    elseif v.type == "bool?" then
        return self:choose(self:equals(v, NIL, true), function() return self:unwrap(v) end, function() return FALSE end)
    elseif types.inner(v.type) then
        return self.g:node("aten::__isnot__", { v, self.g:constant "NoneType" }, { "bool" })
    end
    return TRUE
end

-- Does compiling this make nothing but values: may it stand where it is not needed?
local function is_simple(e)
    if e.tag == "Parens" then
        return is_simple(e.inner)
    elseif e.tag == "Binary" then
        return e.op ~= "//" and e.op ~= "%" and is_simple(e.left) and is_simple(e.right)
    elseif e.tag == "Unary" then
        return e.op == "not" and is_simple(e.operand)
    end
    return e.tag == "Name" or e.tag == "Constant"
end

local function both(self, a, b, op) -- of booleans
    if a.kind == "const" or b.kind == "const" then
        local known, other = a.kind == "const" and a or b, a.kind == "const" and b or a
        return (known.v and op == "__and__" or not known.v and op == "__or__") and other or known
    end
    return self.g:node("aten::" .. op, { a, b }, { "bool" })
end

--- condition(e): the truth of an expression; only as much of it is worked out as Lua would.
function Compiler:condition(e)
    if e.tag == "Parens" then
        return self:condition(e.inner)
    elseif e.tag == "Unary" and e.op == "not" then
        return negated(self, self:condition(e.operand), true)
    elseif e.tag ~= "And" and e.tag ~= "Or" then
        return self:condition_of(self:expression(e))
    end
    local is_and = e.tag == "And"
    local left = self:at(e, self.condition, e.left)
    if left.kind == "const" then
        return left.v == is_and and self:condition(e.right) or left
    end
    if is_simple(e.right) then
        local unwraps = self.unwraps
        local ok, right = self:try(function()
            local right = self:condition(e.right)
            if self.unwraps ~= unwraps then -- which may fail where Lua does not look
                error({ refused = true }, 0)
            end
            return right
        end)
        if ok then
            return both(self, left, right, is_and and "__and__" or "__or__")
        end
    end
    return self:choose(left, function()
        self:suppose(e.left, true)
        return is_and and self:condition(e.right) or TRUE
    end, function()
        self:suppose(e.left, false)
        return is_and and FALSE or self:condition(e.right)
    end)
end

function expressions.And(self, e)
    local left = self:expression(e.left)
    local truth = self:condition_of(left)
    if truth.kind == "const" then
        return truth.v and self:expression(e.right) or left
    end
    return self:choose(truth, function()
        self:suppose(e.left, true)
        return self:expression(e.right)
    end, function()
        self:suppose(e.left, false)
        return left.type == "bool" and FALSE or left.type == "bool?" and left or NIL
    end)
end

local function strip(e)
    while e.tag == "Parens" do
        e = e.inner
    end
    return e
end

-- The alternatives of `a or b or c`.
local function alternatives(e, list)
    if strip(e).tag == "Or" then
        alternatives(strip(e).left, list)
        alternatives(strip(e).right, list)
    else
        list[#list + 1] = e
    end
    return list
end

local first_of

-- `c and v`, and what else there is: where c holds, v is given, or what follows where that is false or nil.
local function first_of_guarded(self, e, list, k)
    local c = self:condition(e.left)
    if c.kind == "const" and not c.v then
        return first_of(self, list, k + 1)
    end
    return self:choose(c, function()
        self:suppose(e.left, true)
        local v = self:expression(e.right)
        local truth = self:condition_of(v)
        return self:choose(truth, function() return v.kind == "value" and (v.type == "bool" and TRUE or types.inner(v.type)
            and self:unwrap(v)) or v end, function() return first_of(self, list, k + 1) end)
    end, function()
        self:suppose(e.left, false)
        return first_of(self, list, k + 1)
    end)
end

-- The first alternative from k on that is true, else the last.
function first_of(self, list, k)
    local e = list[k]
    if k == #list then
        return self:expression(e)
    elseif strip(e).tag == "And" then
        return first_of_guarded(self, strip(e), list, k)
    end
    local v = self:expression(e)
    return self:choose(self:condition_of(v), function()
        self:suppose(e, true)
        return v.kind == "value" and (v.type == "bool" and TRUE or types.inner(v.type) and self:unwrap(v)) or v
    end, function()
        self:suppose(e, false)
        return first_of(self, list, k + 1)
    end)
end

function expressions.Or(self, e) return first_of(self, alternatives(e, {}), 1) end

return Compiler
