-- jit/compiler/merge.lua: what two branches left in a variable, as one value.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local FROZEN = "this table is one of two that branches left: write into each where it is made"

-- ---- tables taken apart ----

-- Is it a table of the source that is still known part by part?
local function is_open(v) return v.kind == "table" and not v.data.list end

local function keys_of(data)
    local keys = {}
    for k = 1, data.n do
        keys[k] = k
    end
    for _, name in ipairs(data.order) do
        keys[#keys + 1] = "." .. name
    end
    return keys
end

local function same_keys(a, b)
    if a.n ~= b.n or #a.order ~= #b.order then
        return false
    end
    for _, name in ipairs(a.order) do
        if b["." .. name] == nil then
            return false
        end
    end
    return true
end

--- leaves(v): the values that a value consists of, tables taken apart, in order.
function Compiler:leaves(v, list)
    list = list or {}
    if is_open(v) then
        for _, key in ipairs(keys_of(v.data)) do
            self:leaves(v.data[key], list)
        end
    else
        list[#list + 1] = self:resolve(v)
    end
    return list
end

--- rebuild(v, next_leaf): a value like v of other leaves. What it is made of is no table that can be changed: nobody
--- could say which one was meant.
function Compiler:rebuild(v, next_leaf)
    if not is_open(v) then
        return next_leaf()
    end
    local copy = self:new_table {}
    local data = copy.data
    data.n, data.order, data.pack = v.data.n, v.data.order, v.data.pack
    data.frozen = not v.data.pack and FROZEN or nil
    for _, key in ipairs(keys_of(v.data)) do
        data[key] = self:rebuild(v.data[key], next_leaf)
    end
    return copy
end

-- ---- one value of two ----

local function poison(format, ...) return { kind = "poison", why = string.format(format, ...) } end

-- A value of the graph, in one branch, of the type that both have.
local function in_branch(self, block, v, t)
    return self.g:within(block, function()
        return v.kind == "unset" and self:default(t) or self:held(v)
    end)
end

local function merge_values(self, a, b, node, name)
    local ta, tb = a.kind ~= "unset" and self:type_of(a), b.kind ~= "unset" and self:type_of(b)
    local what = name and string.format("'%s'", name) or "the value"
    if ta == nil or tb == nil then
        return poison("%s is %s or %s, which is known only when the graph runs", what, self:describe(a), self:describe(b))
    end
    local t = ta and tb and types.join(ta, tb) or not (ta and tb) and (ta or tb)
    if not t then
        return poison("%s is %s in one branch and %s in the other: give it one type", what, types.words(ta), types.words(tb))
    end
    if t == "NoneType" then
        return Compiler.NIL
    end
    local va, vb = in_branch(self, node.blocks[1], a, t), in_branch(self, node.blocks[2], b, t)
    if va == vb then
        return va
    end
    local output = self.graph_value(t, name)
    table.insert(node.outputs, output)
    table.insert(node.blocks[1].outputs, va)
    table.insert(node.blocks[2].outputs, vb)
    return output
end

-- Results of a function are as many as the longer of two lists, with nil for what is missing.
local function pad(self, v, n)
    local copy = self:new_table {}
    for k = 1, n do
        copy.data[k] = v.data[k] or Compiler.NIL
    end
    copy.data.n, copy.data.pack = n, true
    return copy
end

-- A table that became a list is that; what is poison stays so.
local function open_or_resolved(self, v) return v.kind == "table" and self:resolve(v) or v end

--- opened(v, like): a value of a table with names is known part by part where `like` is, and a table is a value where `like`
--- is one, or nil.
function Compiler:opened(v, like)
    if v.kind == "value" and types.fields(v.type) and is_open(like) then
        return self:untuple(v)
    elseif is_open(v) and not v.data.pack and (like.kind == "value" or self.is_nil(like)) and self:type_of(v) then
        return self:held(v)
    end
    return v
end

--- merge(a, b, node, name): the value that the node (prim::If with its two blocks) gives a variable.
function Compiler:merge(a, b, node, name)
    if a == b or self.same_constants(a, b) then
        return a
    end
    a, b = open_or_resolved(self, a), open_or_resolved(self, b)
    local first, second = a, b
    self.g:within(node.blocks[1], function()
        self:fill_in(a, b.kind == "value" and b.type)
        first = self:opened(a, b)
    end)
    self.g:within(node.blocks[2], function()
        self:fill_in(b, a.kind == "value" and a.type)
        second = self:opened(b, a)
    end)
    a, b = first, second
    a, b = open_or_resolved(self, a), open_or_resolved(self, b)
    if a.kind == "poison" or b.kind == "poison" then
        return a.kind == "poison" and a or b
    elseif a.kind == "unset" and (b.kind == "const" or b.kind == "host") then
        return b
    elseif b.kind == "unset" and (a.kind == "const" or a.kind == "host") then
        return a
    elseif is_open(a) and is_open(b) and a.data.pack and b.data.pack then
        local n = math.max(a.data.n, b.data.n)
        a, b = pad(self, a, n), pad(self, b, n)
    end
    if is_open(a) and (b.kind == "unset" or is_open(b) and same_keys(a.data, b.data)) or is_open(b) and a.kind == "unset" then
        local function part(v, key) return v.kind == "unset" and v or v.data[key] end
        local like = is_open(a) and a or b
        local copy = self:new_table {}
        copy.data.n, copy.data.order, copy.data.pack = like.data.n, like.data.order, like.data.pack
        copy.data.frozen = not like.data.pack and FROZEN or nil
        self:freeze(a, FROZEN)
        self:freeze(b, FROZEN)
        for _, key in ipairs(keys_of(like.data)) do
            copy.data[key] = self:merge(part(a, key), part(b, key), node, type(key) == "string" and string.sub(key, 2) or name)
        end
        return copy
    elseif a.kind == "host" and b.kind == "host" and a.v == b.v then
        return a
    elseif is_open(a) and #a.data.order > 0 and b.kind == "table" or is_open(b) and #b.data.order > 0 and a.kind == "table" then
        return poison("'%s' is a table of other names in each branch", name or "the value")
    end
    return merge_values(self, self:resolve(a), self:resolve(b), node, name)
end

return Compiler
