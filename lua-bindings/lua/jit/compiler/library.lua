-- jit/compiler/library.lua: functions that scripts call and that are neither operators nor written in Lua: Lua's own (math,
-- ipairs, assert, string.format) and some of Tide's. What tensors have besides is in jit/compiler/methods.lua.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local NIL, TRUE, FALSE = Compiler.NIL, Compiler.TRUE, Compiler.FALSE
local library = {}
Compiler.library = library

local function all_known(arguments)
    for _, v in ipairs(arguments) do
        if v.kind ~= "const" then
            return false
        end
    end
    return true
end

local function plain(self, arguments)
    local list = {}
    for k, v in ipairs(arguments) do
        list[k] = self:resolve(v)
    end
    return list
end

-- A call of a function of Lua's whose arguments are known.
local function fold(self, fn, arguments)
    local values, results = {}, nil
    for k, v in ipairs(arguments) do
        values[k] = v.v
    end
    results = table.pack(pcall(fn, table.unpack(values, 1, #arguments)))
    if not results[1] then
        self:fail("%s", (string.gsub(tostring(results[2]), "^[^:]*:%d+: ", "")))
    end
    local list = {}
    for k = 2, results.n do
        list[k - 1] = self:wrap(results[k])
    end
    return list
end

-- ---- numbers ----

local function need_number(self, v, name)
    local t = v and self:type_of(v)
    if not t or not types.is_number(t) then
        self:fail("math.%s: a number expected, got %s", name, v and self:describe(v) or "nothing")
    end
    return t
end

-- math.NAME of numbers: the operator of graphs that does it, and what it gives.
local function on_numbers(name, op, result)
    local fn = math[name]
    library[fn] = function(self, arguments)
        arguments = plain(self, arguments)
        if all_known(arguments) then
            return fold(self, fn, arguments)
        end
        local values = {}
        local t
        for k, v in ipairs(arguments) do
            local own = need_number(self, v, name)
            t = t and (t == own and t or "Scalar") or own
            values[k] = self:value(v)
        end
        return { (self.g:node("aten::" .. op, values, { result or t })) }
    end
end

for name in string.gmatch("sqrt exp sin cos tan asin acos", "%S+") do
    on_numbers(name, name, "float")
end
on_numbers("log", "log", "float")
on_numbers("abs", "abs")
on_numbers("fmod", "fmod")
on_numbers("floor", "floor", "int")
on_numbers("ceil", "ceil", "int")
on_numbers("tointeger", "tointeger", "int?")
on_numbers("ult", "ult", "bool")

library[math.atan] = function(self, arguments)
    arguments = plain(self, arguments)
    if all_known(arguments) then
        return fold(self, math.atan, arguments)
    end
    local values = {}
    for k, v in ipairs(arguments) do
        need_number(self, v, "atan")
        values[k] = self:value(v)
    end
    return { (self.g:node(#values > 1 and "aten::atan2" or "aten::atan", values, { "float" })) }
end

-- math.max and min of any number of arguments.
for _, name in ipairs { "max", "min" } do
    library[math[name]] = function(self, arguments)
        arguments = plain(self, arguments)
        if all_known(arguments) then
            return fold(self, math[name], arguments)
        end
        local v = arguments[1]
        need_number(self, v, name)
        for k = 2, #arguments do
            local a, b = self:type_of(v), need_number(self, arguments[k], name)
            v = self.g:node("aten::" .. name, { self:value(v), self:value(arguments[k]) }, { a == b and a or "Scalar" })
        end
        return { v }
    end
end

library[math.type] = function(self, arguments)
    local v = self:resolve(arguments[1])
    local t = self:type_of(v)
    if t == "Scalar" then
        return { self:choose(self.g:node("aten::is_int", { v }, { "bool" }), function() return self.const "integer" end,
            function() return self.const "float" end) }
    end
    return { t == "int" and self.const "integer" or t == "float" and self.const "float" or NIL }
end

for _, fn in ipairs { math.random, math.randomseed } do
    library[fn] = function(self)
        self:fail "math.random: Lua's generator has no place in a graph: take tide.rand({})"
    end
end

-- ---- strings ----

-- "(2, 3)" and "(2,)", as shapes are shown.
local function text_of_shape(self, v)
    local text, size = self:cell(self.const "(", "text"), self.const(1)
    local length = self.g:node("aten::len", { v }, { "int" })
    self:loop { trips = length, body = function(trip)
        local before = self:choose(self:equals(trip, self.const(0)), function() return self.const "" end, function() return self.const ", " end)
        local entry = self.g:node("aten::__getitem__", { v, trip }, { "int" })
        self:put(text, "v", self:binary("..", self:binary("..", text.v, before), entry))
    end }
    return self:binary("..", text.v, self:choose(self:equals(length, size), function() return self.const ",)" end,
        function() return self.const ")" end))
end

local function text_of(self, v)
    v = self:resolve(v)
    local t = self:type_of(v)
    if v.kind == "const" then
        return self.const(tostring(v.v))
    elseif t == "str" then
        return v
    elseif v.kind == "host" and not tide.is_tensor(v.v) then
        return self.const(tostring(v.v))
    elseif v.kind == "value" and v.shape then
        return text_of_shape(self, v)
    elseif t == "dtype" then
        return self:binary("..", self.const "tide.", (self.g:node("aten::str", { self:value(v) }, { "str" })))
    elseif t and (types.is_number(t) or t == "Device" or t == "bool" or types.inner(t)) then
        return (self.g:node("aten::str", { self:value(v) }, { "str" }))
    end
    self:fail("tostring of %s: a number, a boolean or a string is expected", self:describe(v))
end

library[tostring] = function(self, arguments) return { text_of(self, arguments[1] or NIL) } end

library[tonumber] = function(self, arguments)
    arguments = plain(self, arguments)
    local t = self:type_of(arguments[1])
    if all_known(arguments) then
        return fold(self, tonumber, arguments)
    elseif types.is_number(t or "") then
        return { arguments[1] }
    end
    self:fail("tonumber of %s: no graph reads numbers from texts", self:describe(arguments[1]))
end

local function format(self, arguments)
    local parts = {}
    for k, v in ipairs(arguments) do
        v = self:resolve(v)
        local t = self:type_of(v)
        if v.kind == "const" or t == "str" or t and types.is_number(t) then
            parts[k] = v
        else
            parts[k] = text_of(self, v)
        end
    end
    if all_known(parts) then
        return fold(self, string.format, parts)[1]
    end
    local values = {}
    for k, v in ipairs(parts) do
        values[k] = self:value(v)
    end
    return (self.g:node("aten::format", values, { "str" }))
end
library[string.format] = function(self, arguments) return { format(self, arguments) } end

-- What a graph does of them where they are known only as it runs: from arguments as values of the graph.
local ON_TEXTS = {
    len = function(self, s) return { self:length(s) } end,
    lower = function(self, s) return { (self.g:node("aten::lower", { s }, { "str" })) } end,
    upper = function(self, s) return { (self.g:node("aten::upper", { s }, { "str" })) } end,
    reverse = function(self, s) return { (self.g:node("aten::reversed", { s }, { "str" })) } end,
    rep = function(self, s, n, between) return not between and { (self.g:node("aten::mul", { s, n }, { "str" })) } end,
    sub = function(self, s, first, last)
        return { (self.g:node("aten::sub", { s, first, last or self.g:constant("int", -1) }, { "str" })) }
    end,
    byte = function(self, s, at, last)
        return not last and { (self.g:node("aten::byte", { s, at or self.g:constant("int", 1) }, { "int?" })) }
    end,
    find = function(self, s, part, at, plainly)
        local known = self:known(part)
        if not (plainly and self:known(plainly) and self:known(plainly).v) and (not known or string.find(known.v, "[%^%$%*%+%?%.%(%)%[%]%%%-]")) then
            return nil -- a pattern
        end
        local found = self.g:node("aten::find", { s, part, at or self.g:constant("int", 1) }, { "int?" })
        local last = self:choose(self:equals(found, NIL, true), function()
            return self:binary("-", self:binary("+", self:unwrap(found), self:length(part)), self.const(1))
        end, function() return NIL end)
        return { found, last }
    end,
}
local TEXT_ARGUMENTS = { "str", "int", "int" }

-- Lua's functions of strings.
for _, name in ipairs { "rep", "sub", "upper", "lower", "len", "byte", "char", "find", "match", "gsub", "reverse" } do
    local fn = string[name]
    library[fn] = function(self, arguments)
        arguments = plain(self, arguments)
        if all_known(arguments) then
            return fold(self, fn, arguments)
        end
        local values = {}
        for k, v in ipairs(ON_TEXTS[name] and arguments or {}) do
            local wanted = name == "find" and (k == 2 and "str" or k == 4 and "bool") or TEXT_ARGUMENTS[k]
            if self:type_of(v) ~= wanted then
                self:fail("string.%s: argument %d is %s", name, k, self:describe(v))
            end
            values[k] = self:value(v)
        end
        return ON_TEXTS[name] and ON_TEXTS[name](self, table.unpack(values))
            or self:fail("string.%s of a text that is known only when the graph runs: a graph knows no patterns", name)
    end
end

-- ---- errors and prints ----

--- raise(text): the run ends here with this message.
function Compiler:raise(text)
    self.g:node("prim::RaiseException", { self:value(text) }, {})
    self.dead = true
end

local function message_of(self, v)
    if v == nil or self.is_nil(v) then
        return self.const "error: nil"
    end
    local t = self:type_of(v)
    if t ~= "str" and not (t and types.is_number(t)) then
        self:fail("an error in a script is a text, got %s", self:describe(v))
    end
    return text_of(self, v)
end

library[error] = function(self, arguments)
    self:raise(message_of(self, arguments[1]))
    return {}
end

library[assert] = function(self, arguments)
    local v = self:resolve(arguments[1] or NIL)
    self:choose(self:condition_of(v), function() end, function()
        self:raise(arguments[2] and message_of(self, arguments[2]) or self.const "assertion failed!")
    end)
    if v.kind == "value" and types.inner(v.type) then
        v = self:unwrap(v)
    end
    return table.move(arguments, 2, #arguments, 2, { v })
end

library[tide._fail] = function(self, arguments)
    self:raise(format(self, arguments))
    return {}
end

-- The session's tide.breakpoint: calls run the function's source, where it is one.
local function breakpoint(self)
    self.breakpoint = self.breakpoint or string.format("%s:%d", self.where.file, self.node.line)
    return {}
end
if rawget(tide, "breakpoint") then
    library[tide.breakpoint] = breakpoint
end

library[tide._describe] = function(self, arguments) return { self.const(self:describe(self:resolve(arguments[1]))) } end

library[print] = function(self, arguments)
    local values = {}
    for k, v in ipairs(arguments) do
        v = self:resolve(v)
        values[k] = self:type_of(v) and self:value(v) or self:value(self.const(self:describe(v)))
    end
    self.g:node("prim::Print", values, {})
    return {}
end

-- ---- tables ----

local function iterator(all)
    return function(_, arguments) return { { kind = "iterator", over = arguments[1] or NIL, all = all } } end
end
library[ipairs], library[pairs] = iterator(false), iterator(true)

library[next] = function(self) self:fail "next: scripts have ipairs and pairs" end

-- A list of the graph of what a function of Lua's is given.
local function as_list(self, v, name, element)
    v = self:resolve(v or NIL)
    if v.kind == "table" then
        self:make_list(v.data, element)
        v = self:resolve(v)
    end
    if v.kind ~= "value" or not types.element(v.type) then
        self:fail("%s: a list is expected, got %s", name, self:describe(v))
    end
    return v
end

library[table.insert] = function(self, arguments)
    local v = self:resolve(arguments[1] or NIL)
    if #arguments == 2 then
        if v.kind == "table" then
            self:set_index(v, self.const(v.data.n + 1), arguments[2], true)
        else
            self:set_index(v, self:length(v), arguments[2], true)
        end
        return {}
    end
    local x = self:resolve(arguments[3] or NIL)
    v = as_list(self, v, "table.insert", self:type_of(x))
    if types.join(types.element(v.type), self:type_of(x) or "") ~= types.element(v.type) then
        self:fail("a list of %s entries is given %s", types.element(v.type), self:describe(x))
    end
    self.g:node("aten::insert", { v, self:value(self:binary("-", arguments[2], self.const(1))), self:held(x) }, { v.type })
    return {}
end

library[table.remove] = function(self, arguments)
    local v = as_list(self, arguments[1], "table.remove")
    local place = arguments[2] and self:value(arguments[2])
    return { (self.g:node(place and "aten::remove" or "aten::pop", { v, place }, { types.element(v.type) })) }
end

-- table.sort with an order of one's own, which is compiled as any function is.
local function sort_by(list, before)
    for k = 2, #list do
        local x = list[k]
        local at = k - 1
        while at >= 1 and before(x, list[at]) do
            list[at + 1] = list[at]
            at = at - 1
        end
        list[at + 1] = x
    end
end

library[table.sort] = function(self, arguments, node)
    local v = as_list(self, arguments[1], "table.sort")
    local t = types.element(v.type)
    if not types.is_number(t) and t ~= "str" then
        self:fail("table.sort: a list of numbers or strings is expected, got %s: which of equal ones comes first is not said",
            self:describe(v))
    elseif arguments[2] then
        return self:call(self:wrap(sort_by), { v, arguments[2] }, node)
    end
    self.g:node("aten::sort", { v }, { v.type })
    return {}
end

library[table.unpack] = function(self, arguments, _, wanted)
    local v, first, last = self:resolve(arguments[1] or NIL), arguments[2], arguments[3]
    if v.kind == "value" and types.is_tuple(v.type) then
        v = self:untuple(v)
    end
    if first and first.kind ~= "const" or last and last.kind ~= "const" then
        self:fail "table.unpack: which entries is known only when the graph runs"
    end
    local from = first and first.v or 1
    local to = last and last.v
    if not to then
        local length = self:length(v)
        to = length.kind == "const" and length.v or wanted and from + wanted - 1
        if not to then
            self:fail "table.unpack: how many entries a list has is known only when the graph runs: write local a, b = table.unpack(list)"
        end
    end
    local list = {}
    for k = from, to do
        list[#list + 1] = self:index(v, self.const(k))
    end
    return list
end

library[table.pack] = function(self, arguments)
    local v = self:new_table(plain(self, arguments))
    self:set_index(v, self.const "n", self.const(#arguments))
    return { v }
end

library[table.concat] = function(self, arguments)
    local v = self:resolve(arguments[1] or NIL)
    local list = {}
    for k = 1, v.kind == "table" and v.data.n or 0 do
        list[k] = self:resolve(v.data[k])
    end
    if #arguments > 2 or v.kind ~= "table" or not all_known(list) or arguments[2] and not all_known(plain(self, { arguments[2] })) then
        local t = self:type_of(v)
        local element, between = t and types.element(t), self:resolve(arguments[2] or self.const "")
        if #arguments > 2 or not element or not types.is_number(element) and element ~= "str" or self:type_of(between) ~= "str" then
            self:fail("table.concat of %s: a list of strings or numbers, and a string, are expected", self:describe(v))
        end
        return { (self.g:node("aten::concat", { self:value(v), self:value(between) }, { "str" })) }
    end
    for k, entry in ipairs(list) do
        list[k] = entry.v
    end
    return { self.const(table.concat(list, arguments[2] and arguments[2].v)) }
end

library[select] = function(self, arguments)
    local k = self:resolve(arguments[1])
    if k.kind ~= "const" then
        self:fail "select: which argument is known only when the graph runs"
    elseif k.v == "#" then
        return { self.const(#arguments - 1) }
    end
    return table.move(arguments, k.v < 0 and #arguments + k.v + 1 or k.v + 1, #arguments, 1, {})
end

library[rawget] = function(self, arguments)
    local v, key = self:resolve(arguments[1]), self:resolve(arguments[2])
    if v.kind == "host" and type(v.v) == "table" and key.kind == "const" then
        self:watch(v.v, key.v)
        return { self:wrap(rawget(v.v, key.v)) }
    end
    return { self:index(v, key) }
end

library[rawset] = function(self, arguments)
    self:set_index(arguments[1], arguments[2], arguments[3])
    return { arguments[1] }
end

library[rawequal] = function(self, arguments) return { self:equals(self:resolve(arguments[1]), self:resolve(arguments[2])) } end

library[getmetatable] = function(self, arguments)
    local v = self:resolve(arguments[1])
    if v.kind == "host" then
        return { self:wrap(getmetatable(v.v)) }
    elseif v.kind == "table" then
        return { NIL }
    end
    self:fail("getmetatable of %s", self:describe(v))
end

for name, fn in pairs { setmetatable = setmetatable, pcall = pcall, xpcall = xpcall, require = require, load = load } do
    library[fn] = function(self)
        self:fail(name == "setmetatable" and "setmetatable: a table of a script has no metatable"
            or (name == "pcall" or name == "xpcall") and "pcall: an error ends the run of a graph: catch it around the call of the "
            .. "scripted function" or "%s: do this outside of the script", name)
    end
end

for _, fn in ipairs { tide.set_default_device, tide.autograd.detect_anomaly } do
    library[fn] = function(self, _, node)
        self:fail("%s: this mode has no place in a graph: put it around the call of the scripted function", self.name_of(node))
    end
end

-- ---- types ----

local LUA_TYPES = { int = "number", float = "number", Scalar = "number", bool = "boolean", str = "string", NoneType = "nil",
    Tensor = "userdata", dtype = "userdata", Device = "string" }

library[type] = function(self, arguments)
    local v = self:resolve(arguments[1] or NIL)
    if v.kind == "host" then
        return { self.const(type(v.v)) }
    elseif v.kind == "closure" or v.kind == "op" then
        return { self.const "function" }
    elseif v.kind == "table" then
        return { self.const "table" }
    end
    local t = self:type_of(v)
    local inner = types.inner(t)
    if inner then
        local function name(of) return self.const(LUA_TYPES[of] or "table") end
        return { self:choose(self:condition_of(v), function() return name(inner) end, function() return self.const "nil" end) }
    end
    return { self.const(LUA_TYPES[t] or "table") }
end

library[tide.is_tensor] = function(self, arguments)
    local v = self:resolve(arguments[1] or NIL)
    local t = self:type_of(v)
    if t == "Tensor?" then
        return { self:condition_of(v) }
    end
    return { t == "Tensor" and TRUE or FALSE }
end

library[tide.nn.is_module] = function(self, arguments)
    local v = self:resolve(arguments[1] or NIL)
    return { v.kind == "host" and tide.nn.is_module(v.v) and TRUE or FALSE }
end

return Compiler
