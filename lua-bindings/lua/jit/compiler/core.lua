-- jit/compiler/core.lua: what the compiler knows while it walks a function.
--
-- The function is run on values of which some are known while compiling (constants, tables that are written in the
-- source, functions, modules) and some only when the graph runs. What is known is worked out at once; the rest becomes
-- nodes. Kinds of values:
--
--     const   v            nil, a boolean, a number or a string
--     value   type         of the graph (graph.lua)
--     host    v            what the script has: a module, a table, a tensor, a dtype, a function
--     table   data         made in the source: data[1 .. data.n], data["." .. name], data.order = names; data.list: it
--                          became a list or a dict of the graph; data.frozen: why it is not written any more
--     closure fn, scope    a function of the source
--     op      name         an operator as a value
--     unset                nothing has been put here
--     poison  why          branches left what no graph can hold; an error where it is read
--
-- All that changes (variables are cells {v}, tables have data) is changed by put(), which notes what was there, so that
-- a branch can be compiled, looked at, and undone.
local tide = ...
local graph = tide._require "jit.compiler.graph"
local source = tide._require "jit.compiler.source"
local types = tide._require "jit.compiler.types"

local Compiler = {}
Compiler.__index = Compiler

--- new(): a compiler of one function.
function Compiler.new()
    return setmetatable({ g = graph.new(), trail = {}, born = setmetatable({}, { __mode = "k" }), serial = 0, regions = {},
        calls = {}, cells = {}, hosts = {}, watched = { owners = {} } }, Compiler)
end

-- ---- errors ----

--- fail(format, ...): an error at the node that is being compiled.
function Compiler:fail(format, ...)
    return source.fail(self.where, self.node or { line = 0 }, format, ...)
end

--- at(node, fn, ...): run fn with errors and nodes placed at a node of the source.
function Compiler:at(node, fn, ...)
    local outer, place = self.node, self.g.place
    self.node = node
    self.g.place = { file = self.where.file, line = node.line, column = node.column }
    local results = table.pack(fn(self, ...))
    self.node, self.g.place = outer, place
    return table.unpack(results, 1, results.n)
end

-- ---- changes ----

local function new_born(self, object)
    self.serial = self.serial + 1
    self.born[object] = self.serial
    return object
end

--- put(object, key, value): change a cell or a table's data.
function Compiler:put(object, key, value)
    self.trail[#self.trail + 1] = { object, key, object[key] }
    object[key] = value
end

--- rewind(mark, serial): undo all changes since the trail was so long, of what existed then. What was made since is left as
--- it is, for what a branch gives may hold it.
function Compiler:rewind(mark, serial)
    for k = #self.trail, mark + 1, -1 do
        local object, key, before = table.unpack(self.trail[k], 1, 3)
        if self.born[object] <= serial then
            object[key] = before
        end
        self.trail[k] = nil
    end
end

--- same_constants(a, b): do both stand for the same known value, to the bit?
function Compiler.same_constants(a, b)
    if type(a) ~= "table" or type(b) ~= "table" or a.kind ~= "const" or b.kind ~= "const" or math.type(a.v) ~= math.type(b.v) then
        return false
    end
    return a.v == b.v and not (a.v == 0 and 1 / a.v ~= 1 / b.v) or a.v ~= a.v and b.v ~= b.v
end

--- changes(mark, serial): what was changed since then of what existed before: {object, key, before, now}.
function Compiler:changes(mark, serial)
    local list, seen = {}, {}
    for k = mark + 1, #self.trail do
        local object, key, before = table.unpack(self.trail[k], 1, 3)
        seen[object] = seen[object] or {}
        if self.born[object] <= serial and not seen[object][key] then
            seen[object][key] = true
            if object[key] ~= before and not self.same_constants(before, object[key]) then
                list[#list + 1] = { object = object, key = key, before = before, now = object[key] }
            end
        end
    end
    return list
end

--- cell(value, name): a variable.
function Compiler:cell(value, name) return new_born(self, { v = value, name = name }) end

--- flag(name): a variable that says whether statements are being left: false where they begin, and in each trip of a loop.
function Compiler:flag(name)
    local cell = self:cell(Compiler.FALSE, name)
    cell.leaves = true
    return cell
end

-- ---- values ----

local function const(v) return { kind = "const", v = v } end
Compiler.const = const
Compiler.NIL, Compiler.TRUE, Compiler.FALSE, Compiler.UNSET = const(nil), const(true), const(false), { kind = "unset" }

--- wrap(v): a value of the script as one of the compiler's.
function Compiler:wrap(v)
    local t = type(v)
    if t == "nil" or t == "boolean" or t == "number" or t == "string" then
        return const(v)
    end
    self.hosts[v] = self.hosts[v] or { kind = "host", v = v }
    return self.hosts[v]
end

--- new_table(items): a table with these in its list part.
function Compiler:new_table(items)
    local data = { n = #items, order = {} }
    for k, item in ipairs(items) do
        data[k] = item
    end
    return { kind = "table", data = new_born(self, data) }
end

--- resolve(v): a table that became a list or a dict is that.
function Compiler:resolve(v)
    if v.kind == "table" and v.data.list then
        return v.data.list
    elseif v.kind == "poison" then
        self:fail("%s", v.why)
    end
    return v
end

function Compiler.is_const(v) return v.kind == "const" end
function Compiler.is_nil(v) return v.kind == "const" and v.v == nil end

local CONSTANTS = { boolean = "bool", string = "str", ["nil"] = "NoneType" }

--- type_of(v): its type in the graph; nil: it can't be there (functions, modules, tables).
function Compiler:type_of(v)
    if v.kind == "const" then
        return CONSTANTS[type(v.v)] or (math.type(v.v) == "integer" and "int" or "float")
    elseif v.kind == "value" then
        return v.type
    elseif v.kind == "host" then
        return tide.is_tensor(v.v) and "Tensor" or self.is_dtype(v.v) and "dtype" or nil
    elseif v.kind == "table" then
        return v.data.list and v.data.list.type or self:table_type(v)
    end
end

function Compiler.is_dtype(v) return type(v) == "userdata" and getmetatable(v) == getmetatable(tide.float32) and not tide.is_tensor(v) end

--- is_tensor(v)
function Compiler:is_tensor(v) return self:type_of(v) == "Tensor" end

-- What a table written in the source is in the graph: a list or a dict where all are of one type, else a tuple, of which
-- the names are known.
function Compiler:table_type(v)
    local data = v.data
    local named = #data.order > 0
    if named == (data.n > 0) then
        return nil
    end
    local parts, same, one = {}, true, nil
    for k = 1, named and #data.order or data.n do
        local entry = self:resolve(data[named and "." .. data.order[k] or k])
        local t = self:type_of(entry)
        if not t then
            return nil
        end
        parts[k] = t
        if t ~= "NoneType" or not named then
            t = named and types.inner(t) or t
            one = one or t
            same = same and t == one
        end
    end
    if named then
        return same and one and types.dict(one) or types.record(data.order, parts)
    end
    return same and parts[1] ~= "NoneType" and parts[1] .. "[]" or "(" .. table.concat(parts, ", ") .. ")"
end

--- describe(v): for messages.
function Compiler:describe(v)
    if v.kind == "const" then
        return v.v == nil and "nil" or type(v.v) == "string" and string.format("the string %q", v.v)
            or type(v.v) == "boolean" and tostring(v.v) or "the number " .. tostring(v.v)
    elseif v.kind == "closure" or v.kind == "op" then
        return "a function"
    elseif v.kind == "table" then
        return "a table"
    end
    local t = self:type_of(v)
    return t and types.words(t) or v.kind == "host" and tide._describe(v.v) or v.kind
end

-- The dict of a table's entries by names. Those that are nil are not there.
local function dict_value(self, data, t)
    local parts, later = {}, {}
    for _, name in ipairs(data.order) do
        local entry = self:resolve(data["." .. name])
        if (#later > 0 or types.inner(self:type_of(entry) or "")) and types.dict_value(t) ~= "Any" then -- in the order of all
            later[#later + 1] = { self.const(name), entry }
        elseif not self.is_nil(entry) then
            parts[#parts + 1] = self:value(self.const(name))
            parts[#parts + 1] = self:held(entry)
        end
    end
    local dict = self.g:node("prim::DictConstruct", parts, { t })
    for _, entry in ipairs(later) do
        self:set_index(dict, entry[1], entry[2])
    end
    return dict
end

local function table_value(self, v)
    local t = self:table_type(v)
    if not t then
        self:fail(#v.data.order > 0 and "a table with names that holds functions or modules, or a list part, is no value of a graph"
            or "%s is no value of a graph", v.data.n == 0 and "an empty table, of which nobody knows what it is a list of, "
            .. "(write local t = {} --: Tensor[])" or "this table")
    elseif types.dict_value(t) then
        return dict_value(self, v.data, t)
    end
    local parts = {}
    for k = 1, math.max(v.data.n, #v.data.order) do
        parts[k] = self:held(v.data[v.data.n > 0 and k or "." .. v.data.order[k]])
    end
    return (self.g:node(types.element(t) and "prim::ListConstruct" or "prim::TupleConstruct", parts, { t }))
end

--- leaving_value(v): a result of the whole as a value of the graph.
function Compiler:leaving_value(v)
    v = self:resolve(v)
    local own = self:type_of(v)
    if own and types.fields(own) and v.kind == "value" then
        v = self:untuple(v)
    elseif own and v.kind ~= "table" and string.find(own, "{", 1, true) then
        self:fail("%s is no result: give tables with names by themselves", types.words(own))
    end
    if v.kind ~= "table" or #v.data.order == 0 or v.data.n > 0 or own and types.dict_value(own) then
        return self:value(v)
    end
    for _, name in ipairs(v.data.order) do
        local t = self:type_of(self:resolve(v.data["." .. name]))
        if not t or types.element(t) or types.dict_value(t) or types.is_tuple(types.inner(t) or t)
            or types.fields(types.inner(t) or t) then
            self:fail("a table with names is a result whose entries are tensors, numbers, booleans and strings: '%s' is %s", name,
                self:describe(v.data["." .. name]))
        end
    end
    return dict_value(self, v.data, types.dict "Any")
end

--- held(v): a value as another value holds it. In Lua that would be the same table, so what becomes a list or a dict is
--- that from here on; of others the graph has a copy, and they are not written any more.
function Compiler:held(v)
    v = self:resolve(v)
    if v.kind ~= "table" or v.data.frozen then
        return self:value(v)
    end
    local t = self:table_type(v)
    local entry = t and (types.element(t) or types.dict_value(t))
    if entry then
        self:make_list(v.data, entry)
        return self:value(v)
    end
    local value = self:value(v)
    self:freeze(v, "this table was put into another one, which holds a copy of it: write into it before")
    return value
end

--- freeze(v, why): a table that is still known part by part is not written any more.
function Compiler:freeze(v, why)
    if v.kind == "table" and not v.data.list and not v.data.pack and not v.data.frozen then
        self:put(v.data, "frozen", why)
    end
end

--- value(v): a value of the graph; fails where none can be made of it.
function Compiler:value(v)
    v = self:resolve(v)
    local t = self:type_of(v)
    if v.kind == "value" then
        return v
    elseif v.kind == "table" then
        return table_value(self, v)
    elseif not t then
        self:fail("%s is no value of a graph", self:describe(v))
    elseif t == "dtype" then
        return self.g:constant("dtype", self.dtype_name(v.v))
    elseif v.kind == "host" then
        return self.g:tensor(v.v)
    end
    return self.g:constant(t, v.v)
end

function Compiler.dtype_name(dtype) return (string.gsub(tostring(dtype), "^tide%.", "")) end

--- default(t): some value of a type, where none is ever read.
function Compiler:default(t)
    local element = types.element(t)
    if t == "Tensor" then
        return (self.g:node("prim::Constant", {}, { t }, "value={0.}"))
    elseif types.inner(t) or t == "NoneType" then
        return self.g:constant "NoneType"
    elseif element then
        return (self.g:node("prim::ListConstruct", {}, { t }))
    elseif types.is_tuple(t) or types.fields(t) then
        local parts = {}
        for k, part in ipairs(types.is_tuple(t) and types.parts(t) or select(2, types.fields(t))) do
            parts[k] = self:default(part)
        end
        return (self.g:node("prim::TupleConstruct", parts, { t }))
    end
    local texts = { int = 0, Scalar = 0, float = 0.0, bool = false, str = "", dtype = "float32", Device = "cpu" }
    if texts[t] == nil then
        self:fail("a value of type %s can't be left unset", t)
    end
    return self.g:constant(t == "Scalar" and "int" or t, texts[t])
end

-- ---- tables that become lists ----

--- make_list(data, element [, named]): a table of the source is a list of the graph from here on, or a dict where it has
--- names. Inside a branch or loop that the table comes from outside of, this is asked of what is around it, which begins
--- again.
function Compiler:make_list(data, element, named)
    local region = self.regions[#self.regions]
    if region and self.born[data] <= region then
        error({ list_wanted = data, element = element, named = named }, 0)
    end
    self:list_here(data, element, named)
end

local function dict_here(self, data, element)
    local t = element
    for _, name in ipairs(data.order) do
        local own = self:type_of(self:resolve(data["." .. name]))
        if own ~= "NoneType" then
            own = own and (types.inner(own) or own)
            t = own and (t and types.join(t, own) or not t and own)
            if not t then
                self:fail("a table whose names are known only when the graph runs has entries of one type: '%s' is %s", name,
                    self:describe(self:resolve(data["." .. name])))
            end
        end
    end
    if not t then
        self:fail "an empty table, of which nobody knows what it holds: write local t = {} --: Dict(str, Tensor)"
    end
    self:put(data, "list", dict_value(self, data, types.dict(t)))
end

--- fill_in(v, t): a table that stands where others are lists or dicts of this type, and may be one, is one.
function Compiler:fill_in(v, t)
    local entry = t and (types.element(t) or types.dict_value(t))
    if entry and v.kind == "table" and not v.data.list and not v.data.pack
        and (v.data.n == 0 and #v.data.order == 0 or self:table_type(v) == t) then
        self:make_list(v.data, entry, types.dict_value(t) ~= nil)
    end
end

--- list_here(data, element, named): the same, here.
function Compiler:list_here(data, element, named)
    named = named or #data.order > 0
    if named and data.n == 0 then
        return dict_here(self, data, element)
    elseif named then
        self:fail "a table with names and a list part can't grow or be read at a place that is worked out"
    end
    local parts, t = {}, element
    for k = 1, data.n do
        parts[k] = self:held(data[k])
        t = t and types.join(t, parts[k].type) or not t and k == 1 and parts[k].type
        if not t then
            self:fail("a list has entries of one type: entry %d is %s, another %s", k, types.words(parts[k].type),
                types.words(element or parts[1].type))
        end
    end
    if not t then
        self:fail "an empty table, of which nobody knows what it is a list of: write local t = {} --: Tensor[]"
    end
    local list = self.g:node("prim::ListConstruct", parts, { t .. "[]" })
    self:put(data, "list", list)
end

-- ---- regions: what may run or not, or several times ----

--- try(fn, ...): true and what fn gives; or false and the error, with all as it was before.
function Compiler:try(fn, ...)
    local mark, block, count, node, place = #self.trail, self.g.block, #self.g.block.nodes, self.node, self.g.place
    local frame, where, scope, dead, loop = self.frame, self.where, self.scope, self.dead, self.frame.loop
    local nregions, ncalls, serial = #self.regions, #self.calls, self.serial
    local results = table.pack(pcall(fn, ...))
    if not results[1] then
        for k = #self.regions, nregions + 1, -1 do
            self.regions[k] = nil
        end
        for k = #self.calls, ncalls + 1, -1 do
            self.calls[k] = nil
        end
        self:rewind(mark, serial)
        self.g:undo(block, count)
        self.node, self.g.place, self.frame, self.where, self.scope, self.dead = node, place, frame, where, scope, dead
        frame.loop = loop
        if type(results[2]) ~= "table" then -- of the compiler itself
            error(results[2], 0)
        end
    end
    return table.unpack(results, 1, results.n)
end

--- region(attempt): run attempt(serial) in a branch or loop; what was born later than `serial` is its own. Begins again
--- where a table from outside has to become a list before.
function Compiler:region(attempt)
    while true do
        local serial, n = self.serial, #self.regions
        self.regions[n + 1] = serial
        local results = table.pack(self:try(attempt, serial))
        self.regions[n + 1] = nil
        if results[1] then
            return table.unpack(results, 2, results.n)
        end
        local problem, around = results[2], self.regions[n]
        local wanted = problem.list_wanted
        if not wanted or around and self.born[wanted] <= around or self.born[wanted] > serial then
            error(problem, 0)
        end
        if problem.frozen then
            self:put(wanted, "frozen", problem.frozen)
        else
            self:list_here(wanted, problem.element, problem.named)
        end
    end
end

-- ---- names ----

--- lookup(name): the cell of a variable in sight.
function Compiler:lookup(name)
    local scope = self.scope
    while scope do
        local cell = scope.cells[name]
        if cell then
            return cell
        elseif scope.closure then
            return self:outer_cell(scope, name)
        end
        scope = scope.parent
    end
end

-- A variable of the script around a function: an upvalue, or a field of its _ENV.
function Compiler:outer_cell(scope, name)
    for k = 1, 255 do
        local found, value = debug.getupvalue(scope.closure, k)
        if found == nil then
            break
        elseif found == name then
            local id = debug.upvalueid(scope.closure, k)
            self.cells[id] = self.cells[id] or new_born(self, { name = name, outer = true })
            self.cells[id].v = self.cells[id].v or self:wrap(value)
            return self.cells[id]
        end
    end
    local environment = scope.environment
    local ok, value = pcall(function() return environment[name] end)
    return { name = name, outer = true, global = true, v = self:wrap(ok and value or nil) }
end

--- environment_of(closure): the table of its global variables.
function Compiler.environment_of(closure)
    for k = 1, 255 do
        local name, value = debug.getupvalue(closure, k)
        if name == nil then
            return _G
        elseif name == "_ENV" then
            return value
        end
    end
end

--- open_scope(), declare(name, value): a scope within the current one, and a variable in it.
function Compiler:open_scope(parent)
    self.scope = { cells = {}, parent = parent or self.scope }
    return self.scope
end

function Compiler:declare(name, value)
    if value.kind == "value" and not value.hint and not value.argument then
        value.hint = name
    end
    self.scope.cells[name] = self:cell(value, name)
end

return Compiler
