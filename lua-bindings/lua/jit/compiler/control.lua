-- jit/compiler/control.lua: branches and loops of the graph, and the flags that `return` and `break` become in them.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local graph = tide._require "jit.compiler.graph"
local types = tide._require "jit.compiler.types"
tide._require "jit.compiler.merge"

Compiler.graph_value = graph.value

local MOST_TRIPS = math.maxinteger

-- ---- leaving ----

-- The flags that say whether this function, the loop around, or the statements before a label are being left.
local function flags(self)
    local list = { self.frame.returned }
    if self.frame.loop then
        list[2] = self.frame.loop.broke
    end
    return table.move(self.frame.labels or {}, 1, #(self.frame.labels or {}), #list + 1, list)
end

--- leaving(): true, false, or a boolean of the graph that says whether what follows is still to run. Then also the flag,
--- where there is but one.
function Compiler:leaving()
    local found, cell
    if self.dead then
        return true
    end
    for _, flag in ipairs(flags(self)) do
        if flag.v.kind == "const" then
            if flag.v.v then
                return true
            end
        elseif found then
            found, cell = self.g:node("aten::__or__", { found, flag.v }, { "bool" }), nil
        else
            found, cell = flag.v, flag
        end
    end
    return found or false, cell
end

-- ---- branches ----

local MOST_NESTED = 58 -- what the engine's parser takes, but for types

--- open_block(): a new block of the graph, which is the current one now; and the one before.
function Compiler:open_block()
    local block, outer = self.g:open()
    block.depth = (outer.depth or 0) + 1
    if block.depth > MOST_NESTED then
        self:fail("branches and loops are nested deeper than %d here (what follows an early return, an elseif or an 'or' is nested "
            .. "in it): a table or a loop may say the same", MOST_NESTED)
    end
    return block, outer
end

-- Run a branch; its block, what it changed, what it gave and whether it ended in an error. Its changes are undone.
local function branch(self, fn, serial)
    local mark = #self.trail
    local block, outer = self:open_block()
    self.dead = false
    local result = fn()
    self.g.block = outer
    local changed, dead = self:changes(mark, serial), self.dead
    self:rewind(mark, serial)
    self.dead = false
    return { block = block, changed = changed, result = result, dead = dead }
end

local function index_changes(list)
    local by = {}
    for _, change in ipairs(list) do
        by[change.object] = by[change.object] or {}
        by[change.object][change.key] = change
    end
    return by
end

-- A table has to be a list or a dict before what is compiled now; like one that it became in it.
local function want_list(object, list)
    local t = list and list.type
    error({ list_wanted = object, element = t and (types.element(t) or types.dict_value(t)), named = t and types.dict_value(t) ~= nil }, 0)
end

-- What both branches left in a variable. A branch that ended in an error leaves nothing.
local function left_in(self, first, second, node, object, key)
    local function of(side)
        local change = side.by[object] and side.by[object][key]
        return side.dead and Compiler.UNSET or change and change.now or object[key]
    end
    local a, b = of(first), of(second)
    if key == "frozen" then
        return a or b
    elseif key == "list" or key == "n" or key == "order" then
        if a == b then
            return a
        end
        want_list(object, key == "list" and (a or b))
    end
    local before = object[key]
    if before and (a == before or a.refines == before) and (b == before or b.refines == before) then
        return before -- each branch only knew more of it
    elseif a == nil or b == nil then -- a field that only one branch made
        a, b = a or Compiler.NIL, b or Compiler.NIL
    end
    return self:merge(a, b, node, type(key) == "string" and string.match(key, "^%.(.*)$") or object.name)
end

local function merge_branches(self, condition, first, second)
    self.g:expect_nodes "prim::If"
    local node = { op = "prim::If", inputs = { condition }, outputs = {}, blocks = { first.block, second.block }, place = self.g.place }
    first.by, second.by = index_changes(first.changed), index_changes(second.changed)
    local puts, seen = {}, {}
    for _, side in ipairs { first, second } do
        for _, change in ipairs(side.changed) do
            local object, key = change.object, change.key
            seen[object] = seen[object] or {}
            if not seen[object][key] then
                seen[object][key] = true
                puts[#puts + 1] = { object, key, left_in(self, first, second, node, object, key) }
            end
        end
    end
    local result
    if first.result or second.result then
        result = self:merge(first.dead and Compiler.UNSET or first.result, second.dead and Compiler.UNSET or second.result, node)
    end
    table.insert(self.g.block.nodes, node)
    for _, p in ipairs(puts) do
        self:put(p[1], p[2], p[3])
    end
    self.dead = first.dead and second.dead
    return result
end

--- choose(condition, first, second): a branch on a boolean that may be known. Each function may give a value; the value of
--- the whole comes back.
function Compiler:choose(condition, first, second)
    if condition.kind == "const" then
        return (condition.v and first or second)()
    end
    return self:region(function(serial)
        return merge_branches(self, condition, branch(self, first, serial), branch(self, second, serial))
    end)
end

-- ---- loops ----

-- What nobody can read is as if it were not there.
local function usable(v) return v.kind == "poison" and Compiler.UNSET or v end

local function is_table(v) return v.kind == "table" and not v.data.list and not v.data.pack end

-- A variable that changes in a loop: a place for each of the values that it consists of.
local function carry(self, list, change)
    local before, now = change.before, change.now
    if change.key == "frozen" then -- in the trips before, too
        error({ list_wanted = change.object, frozen = now }, 0)
    elseif change.key == "n" or change.key == "list" or change.key == "order" then
        want_list(change.object, change.key == "list" and now)
    end
    before = usable(before or Compiler.NIL)
    self:fill_in(before, self:resolve(now).kind == "value" and self:type_of(now))
    before = self:opened(before.kind == "table" and self:resolve(before) or before, now)
    if is_table(before) and self.is_nil(now) then
        before = Compiler.NIL
    end
    self:freeze(before, "this table may be the one that a loop has in its place: write into it before the loop")
    local entry = { object = change.object, key = change.key, like = before.kind == "unset" and now or before, types = {},
        name = change.object.name or type(change.key) == "string" and string.sub(change.key, 2) or nil }
    list[#list + 1] = entry
    list.by[change.object] = list.by[change.object] or {}
    list.by[change.object][change.key] = entry
end

local function type_words(self, v)
    local t = self:type_of(v)
    return t and types.words(t) or self:describe(v)
end

-- Do the types of an entry take what it was before the loop and is after a trip? They become wider where they must, which
-- returns true: the loop is to be compiled again.
local function widen(self, entry, v)
    if v.kind == "unset" then
        return false
    end
    local leaves, wider = self:leaves(self:opened(v, entry.like)), false
    if #leaves ~= #self:leaves(entry.like) then
        if entry.like.kind == "const" or v.kind == "const" then -- nil first, a table later
            self:fail("'%s' is nil at first and a table in the loop: begin with a table", entry.name or "a value")
        end
        self:fail("'%s' is a table of another shape after each trip of the loop", entry.name or "a value")
    end
    for k, leaf in ipairs(leaves) do
        if leaf.kind ~= "unset" then
            local t, known = self:type_of(leaf), entry.types[k]
            local joined = t and (known and types.join(known, t) or not known and t)
            if not joined then
                self:fail("'%s' is %s before the loop and %s in it: begin with a value of that type", entry.name or "a value",
                    known and types.words(known) or type_words(self, self:leaves(entry.like)[k]), type_words(self, leaf))
            end
            wider = wider or joined ~= known
            entry.types[k] = joined
        end
    end
    return wider
end

-- The values of the graph that an entry consists of, of its types.
local function parts_of(self, entry, v, into)
    local leaves = usable(v).kind == "unset" and {} or self:leaves(self:opened(v, entry.like))
    for k, t in ipairs(entry.types) do
        local leaf = leaves[k]
        if t ~= "NoneType" then -- which is known
            into[#into + 1] = (not leaf or leaf.kind == "unset") and self:default(t) or self:value(leaf)
        end
    end
end

-- Give the entry's variable fresh values, which are added to a list.
local function refill(self, entry, into)
    local k = 0
    self:put(entry.object, entry.key, self:rebuild(entry.like, function()
        k = k + 1
        if entry.types[k] == "NoneType" then
            return Compiler.NIL
        end
        local value = graph.value(entry.types[k], #entry.types == 1 and entry.name or nil)
        into[#into + 1] = value
        return value
    end))
end

-- The condition under which a loop goes on, behind its body.
local function goes_on(self, spec)
    local leaving = self:leaving()
    if leaving == true then
        return Compiler.FALSE
    elseif leaving == false then
        return spec.condition and spec.condition() or Compiler.TRUE
    elseif not spec.condition then
        return (self.g:node("aten::__not__", { leaving }, { "bool" }))
    end
    return self:choose(leaving, function() return Compiler.FALSE end, spec.condition)
end

-- One try at a loop with what is known to be carried; true: more is carried, or of wider types.
local function try_loop(self, spec, carried, serial, first)
    self.g:expect_nodes "prim::Loop"
    local mark, outer = #self.trail, self.g.block
    local inputs = { spec.trips or self.g:constant("int", MOST_TRIPS), self:value(first) }
    for _, entry in ipairs(carried) do
        parts_of(self, entry, entry.object[entry.key], inputs)
    end
    local node = { op = "prim::Loop", inputs = inputs, outputs = {}, blocks = {}, place = self.g.place }
    local body = self:open_block()
    local trip = graph.value "int"
    body.inputs[1] = trip
    for _, entry in ipairs(carried) do
        refill(self, entry, body.inputs)
        if entry.object.leaves then -- or this trip would not be
            self:put(entry.object, entry.key, Compiler.FALSE)
        end
    end
    self.dead = false
    spec.body(trip)
    body.outputs[1] = self:value(goes_on(self, spec))
    local again, changes = false, self:changes(mark, serial)
    for _, change in ipairs(changes) do
        local known = carried.by[change.object] and carried.by[change.object][change.key]
        if known or change.before and change.before.kind then
            self:fill_in(change.now, known and known.types[1] or self:type_of(usable(change.before)))
            change.now = change.now.kind == "table" and self:resolve(change.now) or change.now
        end
        if not known then
            carry(self, carried, change)
            widen(self, carried[#carried], usable(change.before or Compiler.NIL))
            widen(self, carried[#carried], change.now)
            again = true
        else
            again = widen(self, known, change.now) or again
        end
    end
    for _, entry in ipairs(carried) do
        if not again then
            parts_of(self, entry, self.dead and Compiler.UNSET or entry.object[entry.key], body.outputs)
        end
    end
    self.dead = false
    self:rewind(mark, serial)
    self.g.block = outer
    if again then
        return true
    end
    node.blocks[1] = body
    table.insert(outer.nodes, node)
    for _, entry in ipairs(carried) do
        refill(self, entry, node.outputs)
    end
end

--- loop{trips = a value of the graph, or nil: as many as the condition lets; condition = a function that gives a boolean
--- before each trip; first = the boolean before the first, where it is another; body = a function of the trip's number,
--- counted from 0}
function Compiler:loop(spec)
    local carried = { by = {} }
    for _ = 1, 50 do
        local done = self:region(function(serial)
            local block, count = self.g.block, #self.g.block.nodes
            local first = spec.first or spec.condition and spec.condition() or Compiler.TRUE
            if first.kind == "const" and not first.v then
                return true
            end
            local loop = self.frame.loop
            self.frame.loop = { broke = self:cell(Compiler.FALSE, "broke") }
            local again = try_loop(self, spec, carried, serial, first)
            self.frame.loop = loop
            if again then
                self.g:undo(block, count)
            end
            return not again
        end)
        if done then
            return
        end
    end
    self:fail "the types of what this loop changes don't settle"
end

--- unrolled(n, body): body(k) for each k from 1 on, as a loop whose trips are known: `break` and `return` end it.
function Compiler:unrolled(n, body)
    local loop = self.frame.loop
    self.frame.loop = { broke = self:cell(Compiler.FALSE, "broke") }
    local function from(k)
        if k > n then
            return
        end
        body(k)
        local leaving, flag = self:leaving()
        if leaving == false then
            return from(k + 1)
        elseif leaving ~= true and k < n then
            self:choose(leaving, function() end, function()
                if flag then
                    self:put(flag, "v", Compiler.FALSE)
                end
                from(k + 1)
            end)
        end
    end
    from(1)
    self.frame.loop = loop
end

return Compiler
