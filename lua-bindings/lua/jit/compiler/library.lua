-- jit/compiler/library.lua: functions that scripts call and that are neither operators nor written in Lua: Lua's own
-- (math, ipairs, assert, string.format), methods of tensors that are no operators (size, item, float), tide.jit's.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local NIL, TRUE, FALSE = Compiler.NIL, Compiler.TRUE, Compiler.FALSE
local library, methods = {}, {}
Compiler.library, Compiler.methods = library, methods

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
        return (self.g:node("aten::str", { v }, { "str" }))
    elseif t and (types.is_number(t) or t == "bool" or types.inner(t)) then
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

-- Functions that are worked out where all they take is known.
for _, name in ipairs { "rep", "sub", "upper", "lower", "len", "byte", "char", "find", "match", "gsub", "reverse" } do
    local fn = string[name]
    library[fn] = function(self, arguments)
        arguments = plain(self, arguments)
        if name == "len" and arguments[1].kind == "value" then
            return { self:length(arguments[1]) }
        elseif not all_known(arguments) then
            self:fail("string.%s of a text that is known only when the graph runs", name)
        end
        return fold(self, fn, arguments)
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
    self:fail "table.insert(list, place, x): a list of a script grows at its end: table.insert(list, x)"
end

library[table.remove] = function(self, arguments)
    local v = self:resolve(arguments[1] or NIL)
    if #arguments > 1 or v.kind == "host" then
        self:fail "table.remove(list, place): a list of a script shrinks at its end: table.remove(list)"
    elseif v.kind == "table" then
        self:make_list(v.data)
        v = self:resolve(v)
    end
    return { (self.g:node("aten::pop", { v }, { types.element(v.type) })) }
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
    if v.kind ~= "table" or not all_known(list) then
        self:fail "table.concat of what is known only when the graph runs"
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

-- ---- methods of tensors that are no operators ----

-- A name of graphs that takes a tensor and gives this.
local function asks(op, t)
    return function(self, arguments) return { (self.g:node("aten::" .. op, { self:value(arguments[1]) }, { t })) } end
end
methods.dim, methods.ndimension = asks("dim", "int"), asks("dim", "int")
methods.numel, methods.nelement = asks("numel", "int"), asks("numel", "int")
methods.is_floating_point, methods.is_contiguous = asks("is_floating_point", "bool"), asks("is_contiguous", "bool")
library[tide.is_floating_point] = methods.is_floating_point

function methods.item(self, arguments)
    local value = self.g:node("aten::item", { self:value(arguments[1]) }, { "Scalar" })
    value.from_item = true
    return { value }
end

function methods.size(self, arguments)
    local x, dim = self:value(arguments[1]), self:resolve(arguments[2] or NIL)
    if self.is_nil(dim) then
        return { self:tensor_entry(x, self.const "shape") }
    elseif dim.kind == "const" and dim.v == 0 then
        self:fail "size: dim 0: dims count from 1 (PyTorch's dim=0 is 1)"
    end
    return { (self.g:node("aten::size", { x, self:value(self:from_zero(dim)) }, { "int" })) }
end

function methods.stride(self, arguments)
    local x, dim = self:value(arguments[1]), self:resolve(arguments[2] or NIL)
    if self.is_nil(dim) then
        self:fail "stride: a dim is expected: x:stride(dim)"
    end
    return { (self.g:node("aten::stride", { x, self:value(self:from_zero(dim)) }, { "int" })) }
end

-- x:float() and the like
local function converts(dtype)
    return function(self, arguments)
        return { self:engine("to", { arguments[1], self.g:constant("dtype", dtype), NIL, FALSE, self.const "preserve", FALSE }) }
    end
end
for name, dtype in pairs { bool = "bool", byte = "uint8", char = "int8", short = "int16", int = "int32", long = "int64",
    half = "float16", bfloat16 = "bfloat16", float = "float32", double = "float64" } do
    methods[name] = converts(dtype)
end

function methods.type_as(self, arguments)
    local other = self:value(arguments[2])
    return { self:engine("to", { arguments[1], self.g:node("aten::dtype", { other }, { "dtype" }),
        self.g:node("aten::device", { other }, { "Device" }), FALSE, self.const "preserve", FALSE }) }
end

function methods.cpu(self, arguments)
    return { self:engine("to", { arguments[1], NIL, self.g:constant("Device", "cpu"), FALSE, self.const "preserve", FALSE }) }
end

function methods.where(self, arguments) return self:operator("where", { arguments[2], arguments[1], arguments[3] }) end

for name, why in pairs { tolist = "a table of numbers", backward = "a backward pass", requires_grad_ = "a change of a leaf",
    retain_grad = "a change of a leaf", detach_ = "a change of a leaf", free = "a change of memory", data_ptr = "an address" } do
    methods[name] = function(self) self:fail("x:%s() is %s, which has no place in a graph: do it outside of the script", name, why) end
end

-- ---- tide.jit ----

-- The nodes of a block read values from outside of it: they become its inputs.
local function close_over(block)
    local made, inputs, given, within = {}, {}, {}, {}
    local function define(list)
        for _, value in ipairs(list) do
            made[value] = true
        end
    end
    local function replace(list)
        for k, value in ipairs(list) do
            if not made[value] then
                if not within[value] then
                    within[value] = Compiler.graph_value(value.type, value.hint)
                    inputs[#inputs + 1], given[#given + 1] = within[value], value
                end
                list[k] = within[value]
            end
        end
    end
    local function walk(b)
        define(b.inputs)
        for _, n in ipairs(b.nodes) do
            replace(n.inputs)
            for _, inner in ipairs(n.blocks) do
                walk(inner)
            end
            define(n.outputs)
        end
        replace(b.outputs)
    end
    walk(block)
    block.inputs = inputs
    return given
end

-- tide.jit.fork(fn, ...): the call as a graph of its own, which runs beside what follows.
local function fork(self, arguments, node)
    local callee = arguments[1]
    if not callee then
        self:fail "fork: a function is expected"
    end
    return { self:region(function()
        local block, outer = self.g:open()
        block.parent = nil -- constants are its own
        local results = self:call(callee, table.move(arguments, 2, #arguments, 1, {}), node)
        if #results == 0 then
            self:fail "fork: the function gives nothing"
        end
        for k, v in ipairs(results) do
            block.outputs[k] = self:value(v)
        end
        self.g.block = outer
        local parts = {}
        for k, value in ipairs(block.outputs) do
            parts[k] = value.type
        end
        local t = #parts == 1 and parts[1] or "(" .. table.concat(parts, ", ") .. ")"
        local future = self.g:node("prim::fork", close_over(block), { "Future(" .. t .. ")" })
        future.made.subgraph = block
        future.several = #parts > 1
        return future
    end) }
end

local function wait(self, arguments)
    local future = self:resolve(arguments[1] or NIL)
    local t = string.match(self:type_of(future) or "", "^Future%((.*)%)$")
    if not t then
        self:fail("wait: what tide.jit.fork gave is expected, got %s", self:describe(future))
    end
    local value = self.g:node("aten::wait", { future }, { t })
    if not future.several then
        return { value }
    end
    return table.pack(self.g:node("prim::TupleUnpack", { value }, types.parts(t)))
end

--- open_jit(): tide.jit's own functions, when there are any.
function Compiler.open_jit()
    local jit = rawget(tide, "jit") or {}
    for name, handler in pairs { fork = fork, wait = wait } do
        local fn = rawget(jit, name)
        if fn then
            library[fn] = handler
        end
    end
end

return Compiler
