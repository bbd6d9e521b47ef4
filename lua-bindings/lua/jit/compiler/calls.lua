-- jit/compiler/calls.lua: calls: of functions of the source and of the script, which are compiled in place, of modules, of
-- operators, and of what jit/compiler/library.lua knows by name.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local schema = tide._require "jit.compiler.schema"
local source = tide._require "jit.compiler.source"
local types = tide._require "jit.compiler.types"
local marks = tide._require "jit.marks"

local FALSE, NIL, UNSET = Compiler.FALSE, Compiler.NIL, Compiler.UNSET
local MOST_DEPTH = 60

-- ---- functions of the source ----

-- The module that a method is called of; nil: no method of one.
local function module_of(arguments)
    local v = arguments[1]
    return v and v.kind == "host" and tide.nn.is_module(v.v) and v.v or nil
end

-- Methods of modules within others of their kind are no recursion.
local function check_depth(self, fn, name, module)
    for _, around in ipairs(self.calls) do
        if around.fn == fn and around.module == module then
            self:fail("'%s' calls itself: a graph holds each call once: write a loop, or leave the function to Lua "
                .. "(tide.jit.ignore)", name)
        end
    end
    if #self.calls >= MOST_DEPTH then
        self:fail("calls nested deeper than %d", MOST_DEPTH)
    end
end

-- The results that a frame was left with. Where only some ways led to a return, the others gave nothing.
local function results_of(self)
    local returned = self.frame.returned.v
    if returned.kind ~= "const" and not self.dead then
        local flag = self.frame.returned
        self:choose(returned, function() self:put(flag, "v", Compiler.TRUE) end, function() self:give {} end)
    end
    local v = self.frame.value.v
    local list = {}
    if v.kind == "table" then
        for k = 1, v.data.n do
            list[k] = v.data[k]
        end
    end
    return list
end

--- run(fn, scope, where, arguments): the body of a function of the source on these arguments; a list of its results.
function Compiler:run(fn, scope, where, arguments)
    local frame, outer_scope, outer_where, dead = self.frame, self.scope, self.where, self.dead
    self.calls[#self.calls + 1] = { fn = fn, module = module_of(arguments) }
    self.frame = { returned = self:flag "returned", value = self:cell(UNSET, "result") }
    self.where = where
    self:open_scope(scope)
    for k, name in ipairs(fn.params) do
        self:declare(name, arguments[k] or NIL)
    end
    if fn.vararg then
        self.frame.varargs = table.move(arguments, #fn.params + 1, #arguments, 1, {})
    end
    self:block(fn.body)
    local results = results_of(self)
    self.calls[#self.calls] = nil
    self.frame, self.scope, self.where = frame, outer_scope, outer_where
    self.dead = self.dead or dead
    return results
end

local function call_source(self, callee, arguments, name)
    check_depth(self, callee.fn, callee.fn.name or name, module_of(arguments))
    return self:run(callee.fn, callee.scope, callee.where, arguments)
end

-- ---- functions of the script ----

-- Trees and scopes of closures.
local function loaded(self, closure, name)
    self.loaded = self.loaded or {}
    if not self.loaded[closure] then
        local where, why = source.of(closure)
        if not where then
            self:fail("'%s' can't be compiled: %s", name, why)
        end
        self.loaded[closure] = { where = where, fn = where.fn,
            scope = { cells = {}, closure = closure, environment = self.environment_of(closure) } }
    end
    return self.loaded[closure]
end

-- What tide._doc says of functions, which it works out anew each time; false: nothing.
local docs = setmetatable({}, { __mode = "k" })
local function doc_of(fn)
    if docs[fn] == nil then
        docs[fn] = tide._doc(fn) or false
    end
    return docs[fn]
end

-- The function in Lua behind one that tide._function made.
local function declared_in_lua(fn)
    for k = 1, 8 do
        local name, value = debug.getupvalue(fn, k)
        if name == nil then
            return nil
        elseif type(value) == "function" and debug.getinfo(value, "S").what ~= "C" then
            return value
        end
    end
end

-- The value that a parameter of such a function has where none is given.
local function default_of(self, p)
    if type(p.default) == "table" then
        local list = {}
        for k, value in ipairs(p.default) do
            list[k] = self.const(value)
        end
        return self:new_table(list)
    end
    return self.const(p.default)
end

-- What a function that tide._function made to read arguments gives: a table of them by name.
local function read_arguments(self, doc, arguments)
    local s = schema.read(doc.signature)
    local given = schema.arrange(s, arguments, self:reader(doc.name))
    local v = self:new_table {}
    for k, p in ipairs(s.params) do
        local value = given[k] and (given[k].value or self:new_table(given[k].values)) or default_of(self, p)
        self:set_index(v, self.const(p.name), value)
    end
    return v
end

local function call_declared(self, fn, inner, arguments, node)
    local doc = doc_of(fn)
    local s = schema.read(doc.signature)
    s.called = doc.name
    local given = schema.arrange(s, arguments, self:reader(s.called))
    local values = {}
    for k, p in ipairs(s.params) do
        values[k] = given[k] and (given[k].value or self:new_table(given[k].values)) or default_of(self, p)
    end
    if string.find(self.where.file, "^tide%.") then
        return self:call(self:wrap(inner), values, node)
    end
    local results = table.pack(self:try(function() return self:call(self:wrap(inner), values, node) end))
    local problem = results[2]
    if not results[1] and problem.refused then -- within: it is told where the script calls it
        self:fail("%s: %s", s.called, problem.what)
    elseif not results[1] then
        error(problem, 0)
    end
    return table.unpack(results, 2, results.n)
end

-- Operators by the functions that are their methods; `x.add_` and `tide.nn.functional.relu_` are such.
local by_method
local function method_named(fn)
    if not by_method then
        by_method = setmetatable({}, { __mode = "k" })
        for name, method in pairs(tide._methods) do
            by_method[method] = name
        end
    end
    return by_method[fn]
end

-- What a function that is left to Lua gives: as a comment on its head says ("--: Tensor -> Tensor, int"), else a tensor.
local function types_given(fn)
    local where = source.of(fn)
    for _, note in ipairs(where and where.notes or {}) do
        local text = note.line >= where.fn.line and note.line <= where.fn.header and string.match(note.value, "%->%s*(.*)$")
        local list = text and types.list(text)
        if list then
            return list
        end
    end
    return { "Tensor" }
end

local function host_call(self, fn, arguments)
    self.host_functions = self.host_functions or {}
    local id = #self.host_functions
    for k, known in ipairs(self.host_functions) do
        id = known == fn and k - 1 or id
    end
    self.host_functions[id + 1] = fn
    local values = {}
    for k, v in ipairs(arguments) do
        values[k] = self:leaving_value(v)
    end
    return { self.g:node("prim::HostCall", values, types_given(fn), string.format("id=%d", id)) }
end

local function call_host(self, fn, arguments, node, wanted)
    local handler = self.library[fn] or fn == _G.print and self.library[print] -- a session has a print of its own
    if handler then
        return handler(self, arguments, node, wanted)
    elseif marks.ignored[fn] then
        return host_call(self, fn, arguments)
    end
    local method = method_named(fn)
    if method then
        return self:call_method(method, arguments, node)
    end
    local doc = doc_of(fn)
    if doc and doc.family then
        return self:operator(doc.name, arguments)
    end
    local info = debug.getinfo(fn, "S")
    if info.what == "C" then
        local inner = doc and declared_in_lua(fn)
        if doc and not inner and not string.find(doc.signature, "->", 1, true) and rawget(tide, doc.name) ~= fn then
            return { read_arguments(self, doc, arguments) }
        end
        if inner then
            return call_declared(self, fn, inner, arguments, node)
        end
        self:fail("'%s' has no place in a script: it is a function in C that no graph knows (tide.jit.ignore leaves it to Lua)",
            doc and doc.name or self.name_of(node))
    end
    local callee = loaded(self, fn, self.name_of(node))
    return call_source(self, callee, arguments, self.name_of(node))
end

-- ---- modules ----

local function call_module(self, module, arguments, node)
    local name = getmetatable(module).__name
    self:watch(module, "_hooks")
    self:watch(module, "parametrizations")
    if rawget(module, "_hooks") then
        self:fail("the module %s has hooks, which a graph can't call: remove them first", name)
    elseif rawget(module, "parametrizations") then
        self:fail("the module %s is parametrized: its tensors are worked out in Lua: remove the parametrization first", name)
    end
    local all = table.move(arguments, 1, #arguments, 2, { self:wrap(module) })
    return self:call(self:wrap(module.forward), all, node)
end

-- ---- all of them ----

--- name_of(node): what a call's callee is called in the source.
function Compiler.name_of(node)
    local callee = node.tag == "Invoke" and node or node.callee or node
    return callee.name or callee.key and tostring(callee.key.value) or "the function"
end

--- reader(name): what schema.arrange asks of the compiler.
function Compiler:reader(name)
    return {
        table = function(v)
            v = self:resolve(v)
            local items, fields = {}, {}
            if v.kind == "host" and type(v.v) == "table" and getmetatable(v.v) == nil then
                for key, value in pairs(v.v) do
                    local list = math.type(key) and items or fields
                    list[key] = self:wrap(value)
                end
                return items, fields
            elseif v.kind ~= "table" then
                return nil
            end
            for k = 1, v.data.n do
                items[k] = v.data[k]
            end
            for _, key in ipairs(v.data.order) do
                fields[key] = v.data["." .. key]
            end
            return items, fields
        end,
        is_nil = function(v) return self.is_nil(self:resolve(v)) end,
        fail = function(format, ...) self:fail("%s: " .. format, name, ...) end,
    }
end

--- call(callee, arguments, node [, wanted]): a list of results.
function Compiler:call(callee, arguments, node, wanted)
    callee = self:resolve(callee)
    if callee.kind == "closure" then
        return call_source(self, callee, arguments, self.name_of(node))
    elseif callee.kind == "op" then
        return self:call_method(callee.name, arguments, node)
    elseif callee.kind == "host" and type(callee.v) == "function" then
        return call_host(self, callee.v, arguments, node, wanted)
    elseif callee.kind == "host" and tide.nn.is_module(callee.v) then
        return call_module(self, callee.v, arguments, node)
    elseif callee.kind == "host" and marks.scripted[callee.v] then
        return self:call(self:wrap(marks.scripted[callee.v]), arguments, node)
    end
    self:fail("attempt to call %s ('%s')", self:describe(callee), self.name_of(node))
end

--- call_method(name, arguments, node): a method of tensors, by its name; the tensor is the first argument.
function Compiler:call_method(name, arguments, node)
    local own = self.methods[name]
    if own then
        return own(self, arguments, node, name)
    end
    local s = schema.operator(name)
    local stem = string.match(name, "^(.*)_$")
    if s and (not stem or s.name == name) then
        return self:operator(name, arguments)
    elseif s and s.doc.inplace then
        return self:operator(stem, arguments, true)
    end
    self:fail("the method '%s' of tensors has no place in a script", name)
end

--- invoke(object, name, arguments, node): `object:name(...)`
function Compiler:invoke(object, name, arguments, node, wanted)
    object = self:resolve(object)
    local t = self:type_of(object)
    local all = table.move(arguments, 1, #arguments, 2, { object })
    if t == "Tensor?" then
        object, t = self:must_be(object), "Tensor"
        all[1] = object
    end
    if t == "Tensor" then
        if not tide._methods[name] then
            self:fail("a tensor has no method '%s'", name)
        end
        return self:call_method(name, all, node)
    elseif object.shape and name == "unpack" then
        return self.library[table.unpack](self, { object }, node, wanted)
    elseif t and (types.element(t) or types.is_tuple(t)) and object.kind == "value" then
        self:fail("a list has no methods: write table.insert(list, x), #list, list[i]")
    end
    return self:call(self:index(object, self.const(name)), all, node, wanted)
end

return Compiler
