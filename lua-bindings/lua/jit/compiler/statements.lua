-- jit/compiler/statements.lua: statements, one function for each tag of the parser's.
local tide = ...
local Compiler = tide._require "jit.compiler.core"
local types = tide._require "jit.compiler.types"

local statements = {}
local TRUE, FALSE, NIL = Compiler.TRUE, Compiler.FALSE, Compiler.NIL

-- ---- blocks ----

-- Does a block end in return, break or an error on every way through it?
local function always_leaves(block)
    local last = block and block[#block]
    if not last then
        return false
    elseif last.tag == "Return" or last.tag == "Break" or last.tag == "Goto" then
        return true
    elseif last.tag == "Do" then
        return always_leaves(last.body)
    elseif last.tag == "If" then
        return always_leaves(last.body) and always_leaves(last.otherwise)
    end
    return last.tag == "CallStatement" and last.call.tag == "Call" and last.call.callee.tag == "Name" and last.call.callee.name == "error"
end

local if_with_rest, run_labelled, run_guarded

-- What follows a statement, unless that left the function, the loop or the block.
local function unless_left(self, node, follow)
    local leaving, flag = self:leaving()
    if leaving == true then
        return
    elseif leaving == false then
        return follow()
    end
    self:at(node, self.choose, leaving, function()
        if flag then
            self:put(flag, "v", TRUE)
        end
    end, function()
        if flag then
            self:put(flag, "v", FALSE)
        end
        follow()
    end)
end

-- The statements from a place on, and what follows the block, if anything does. What may have been left already is compiled
-- under that condition.
local function run(self, list, from, follow)
    for k = from, #list do
        local statement = list[k]
        if statement.tag == "Label" then
            return run_labelled(self, list, from, k, follow)
        end
    end
    for k = from, #list do
        local statement = list[k]
        local more = k < #list or follow ~= nil
        self.g:expect_few()
        if statement.tag == "If" and more and (always_leaves(statement.body) or always_leaves(statement.otherwise)) then
            return if_with_rest(self, statement, list, k + 1, follow)
        end
        if statement.tag == "Local" and statement.closes then
            return run_guarded(self, statement, list, k + 1, follow)
        end
        self:at(statement, statements[statement.tag], statement)
        if self:leaving() ~= false then
            if more then
                unless_left(self, list[k + 1] or statement, function() run(self, list, k + 1, follow) end)
            end
            return
        end
    end
    if follow then
        follow()
    end
end

-- Statements with a label at `at`: a goto before it leaves what stands between.
function run_labelled(self, list, from, at, follow)
    local labels, label = self.frame.labels or {}, self:flag(list[at].name)
    self.frame.labels = table.move(labels, 1, #labels, 1, {})
    table.insert(self.frame.labels, label)
    run(self, table.move(list, from, at - 1, 1, {}), 1)
    self.frame.labels = labels
    self:put(label, "v", FALSE)
    unless_left(self, list[at], function() run(self, list, at + 1, follow) end)
end

-- `local name <close> = tide.no_grad()`: what follows in the block runs in that mode.
function run_guarded(self, statement, list, from, follow)
    if #statement.names > 1 or #statement.values ~= 1 then
        self:at(statement, self.fail, "one variable and one value are expected where one is <close>")
    end
    local guard = self:at(statement, self.open_guard, statement.values[1])
    self:declare(statement.names[1], NIL)
    local function rest() run(self, list, from) end
    if guard and guard.attribute then
        self:at(statement, self.with, guard.attribute, rest, list.seen_behind and self.scope)
    else
        rest()
    end
    if follow then
        unless_left(self, statement, follow)
    end
end

--- block(list [, follow]): statements in a scope of their own, and what follows them where they did not leave.
function Compiler:block(list, follow)
    local outer = self.scope
    self:open_scope()
    run(self, list, 1, follow)
    self.scope = outer
end

-- ---- branches ----

-- An If of which one side always leaves: what follows belongs to the other one.
function if_with_rest(self, statement, list, from, follow)
    local first_leaves = always_leaves(statement.body)
    local scope = self.scope
    local function rest() -- in the scope around
        local inner = self.scope
        self.scope = scope
        run(self, list, from, follow)
        self.scope = inner
    end
    self:at(statement, self.branches, statement.condition, function() self:block(statement.body, not first_leaves and rest or nil) end,
        function() self:block(statement.otherwise or {}, first_leaves and rest or nil) end)
end

function statements.If(self, statement)
    self:branches(statement.condition, function() self:block(statement.body) end,
        function() self:block(statement.otherwise or {}) end)
end

--- branches(condition, first, second): choose() on an expression, with what its outcome says of optional values.
function Compiler:branches(condition, first, second)
    local c = self:condition(condition)
    return self:choose(c, function()
        self:suppose(condition, true)
        return first()
    end, function()
        self:suppose(condition, false)
        return second()
    end)
end

-- The variable that a condition asks about: `x`, `x ~= nil`, `x == nil`; and whether the outcome says that it is there.
local function asked(self, e, outcome)
    while e.tag == "Parens" do
        e = e.inner
    end
    if e.tag == "Unary" and e.op == "not" then
        return asked(self, e.operand, not outcome)
    elseif e.tag == "Binary" and (e.op == "==" or e.op == "~=") then
        local name = e.left.tag == "Name" and e.left or e.right
        local other = name == e.left and e.right or e.left
        if name.tag == "Name" and other.tag == "Constant" and other.value == nil then
            return self:lookup(name.name), (e.op == "~=") == outcome
        end
    elseif e.tag == "Name" then
        return self:lookup(e.name), outcome
    end
end

--- suppose(e, outcome): in a branch of this condition, what it says of variables that may be nil.
function Compiler:suppose(e, outcome)
    while e.tag == "Parens" do
        e = e.inner
    end
    if e.tag == (outcome and "And" or "Or") then
        self:suppose(e.left, outcome)
        self:suppose(e.right, outcome)
        return
    end
    local cell, there = asked(self, e, outcome)
    local v = cell and cell.v
    local inner = v and v.kind == "value" and types.inner(v.type)
    if inner and inner ~= "bool" then
        local known = there and self:unwrap(v) or { kind = "const" }
        known.refines = v
        self:put(cell, "v", known)
    end
end

--- unwrap(v): an optional value as what it is when it is there, which is checked as the graph runs.
function Compiler:unwrap(v)
    local value = self.g:node("prim::unchecked_cast", { v }, { types.inner(v.type) })
    value.hint = v.hint
    return value
end

-- ---- variables ----

-- The type that a comment behind an empty table gives it: `local list = {} --: Tensor[]`.
local function typed_table(self, e, t)
    local v = self:new_table {}
    local element = t and types.element(t) or t and types.dict_value(t)
    if not element then
        self:at(e, self.fail, "an empty table is a list, as in --: Tensor[], or has names, as in --: Dict(str, Tensor)")
    end
    self:list_here(v.data, element, types.dict_value(t) ~= nil)
    return v
end

-- The types in a comment on a statement's line, where it says some.
local function types_on_line(self, statement)
    for _, note in ipairs(self.where.notes) do
        if note.line == statement.line then
            return types.list(note.value)
        end
    end
end

function statements.Local(self, statement)
    local values = self:several(statement.values, #statement.names)
    local given
    for k, name in ipairs(statement.names) do
        local e = statement.values[k]
        if e and e.tag == "Table" and #e.entries == 0 then
            given = given or types_on_line(self, statement) or {}
            values[k] = #given > 0 and typed_table(self, e, given[k]) or values[k]
        end
        self:declare(name, values[k] or NIL)
    end
end

function statements.LocalFunction(self, statement)
    self:declare(statement.name, NIL)
    local cell = self.scope.cells[statement.name]
    self:put(cell, "v", self:expression(statement.fn))
end

-- Where an assignment goes: a variable, or a place in a value; worked out before what is assigned.
local function target_of(self, e)
    if e.tag == "Name" then
        local cell = self:lookup(e.name)
        if cell.outer then
            self:at(e, self.fail, cell.global and "'%s' is a global variable: a script can read it and not set it: return the value"
                or "'%s' is a variable outside of the script, which can read it and not set it: return the value", e.name)
        end
        return { node = e, cell = cell }
    elseif e.tag == "Index" then
        return { node = e, object = self:expression(e.object), key = self:expression(e.key), appends = self.appends(e) }
    end
    self:at(e, self.fail, "this can't be assigned to")
end

-- Is it `t[#t + 1]`?
function Compiler.appends(e)
    local key = e.key
    return e.object.tag == "Name" and key.tag == "Binary" and key.op == "+" and key.right.tag == "Constant" and key.right.value == 1
        and key.left.tag == "Unary" and key.left.op == "#" and key.left.operand.tag == "Name" and key.left.operand.name == e.object.name
end

function statements.Assign(self, statement)
    local targets = {}
    for k, target in ipairs(statement.targets) do
        targets[k] = target_of(self, target)
    end
    local values = self:several(statement.values, #targets)
    for k = #targets, 1, -1 do -- as Lua does: the last first
        local target, value = targets[k], values[k] or NIL
        if target.cell then
            if value.kind == "value" and not value.hint and not value.argument then
                value.hint = target.cell.name
            end
            self:put(target.cell, "v", value)
        else
            self:at(target.node, self.set_index, target.object, target.key, value, target.appends)
        end
    end
end

function statements.CallStatement(self, statement)
    self:several({ statement.call }, 0)
end

function statements.Do(self, statement) self:block(statement.body) end

-- ---- leaving ----

--- give(values): the current function's results, which are left in its frame.
function Compiler:give(values)
    local pack = self:new_table(values)
    pack.data.pack = true
    self:put(self.frame.value, "v", pack)
    self:put(self.frame.returned, "v", TRUE)
end

function statements.Return(self, statement) self:give(self:several(statement.values)) end

function statements.Break(self)
    self:put(self.frame.loop.broke, "v", TRUE)
end

-- Forward alone: the statements up to the label are left.
function statements.Goto(self, statement)
    local labels = self.frame.labels or {}
    for k = #labels, 1, -1 do
        if labels[k].name == statement.name then
            return self:put(labels[k], "v", TRUE)
        end
    end
    self:fail("goto %s: a graph has no jumps back: write while or repeat", statement.name)
end

-- ---- loops ----

-- Few trips are gone through one by one where all they do is known, and where they can't be compiled as a loop of the
-- graph: entries of tables of modules, values of other types at first, tables with names that would have to become dicts
-- (records_stay).
local MOST_UNROLLED, MOST_KNOWN = 64, 20000 -- trips; statements

local function all_is_known(self, unroll)
    self.g.known_only = MOST_KNOWN
    local ok, problem = self:try(unroll)
    self.g.known_only = nil
    if not ok and not problem.refused and not problem.list_wanted then
        error(problem, 0)
    end
    return ok
end

local function loop_or_unroll(self, trips, loop, unroll)
    if not trips or trips > MOST_UNROLLED then
        return loop()
    elseif self.g.known_only or trips <= 1 then
        return unroll()
    elseif all_is_known(self, unroll) then
        return
    end
    local around = self.records_stay
    self.records_stay = true
    local ok, problem = self:try(loop)
    self.records_stay = around
    if ok then
        return
    elseif not problem.refused then
        error(problem, 0)
    end
    local unrolled, other = self:try(unroll)
    if not unrolled then
        if other.refused and not around then
            return loop()
        end
        error(other.refused and problem or other, 0)
    end
end

-- A number that is known, as Lua's `for` takes it.
local function for_number(self, v, what)
    v = self:resolve(v)
    if v.kind == "const" and type(v.v) ~= "number" then
        self:fail("'for' %s must be a number, got %s", what, self:describe(v))
    elseif v.kind ~= "const" and not types.is_number(self:type_of(v) or "") then
        self:fail("'for' %s must be a number, got %s", what, self:describe(v))
    end
    return v
end

-- a // b of a number without sign and a positive one.
local function unsigned_quotient(a, b)
    if a >= 0 then
        return a // b
    end
    local q = ((a >> 1) // b) << 1
    return math.ult(a - q * b, b) and q or q + 1
end

-- The trips of a loop over integers that are known: as Lua counts them, without overflow.
local function count_trips(start, stop, step)
    if math.type(stop) == "float" then
        if stop ~= stop then
            return 0
        elseif stop >= 0x1p63 or stop < -0x1p63 then
            stop = stop > 0 and math.maxinteger or math.mininteger
            if stop > 0 and step < 0 and start < stop or stop < 0 and step > 0 then
                return 0
            end
        else
            stop = math.tointeger(step > 0 and math.floor(stop) or math.ceil(stop))
        end
    end
    if step > 0 and start > stop or step < 0 and start < stop then
        return 0
    end
    local trips = unsigned_quotient(step > 0 and stop - start or start - stop, math.abs(step))
    return (trips < 0 or trips == math.maxinteger) and math.maxinteger or trips + 1
end

-- The trips over a span that is a number without sign, of 2^63 or more.
local function trips_of_wide(self, span, step)
    if step == 1 then
        return self.const(math.maxinteger) -- nobody waits for the end of these
    end
    local function call(op, a, b) return self:binary(op, a, b) end
    local by = self.const(step)
    local q = call("<<", call("//", call(">>", span, self.const(1)), by), self.const(1))
    local rest = call("-", span, call("*", q, by))
    local less = self.g:node("aten::ult", { self:value(rest), self:value(by) }, { "bool" })
    return self:choose(less, function() return call("+", q, self.const(1)) end, function() return call("+", q, self.const(2)) end)
end

-- {trips, first} of a loop over integers of which some are known only when the graph runs. `first`: are there any?
local function graph_trips(self, start, stop, step)
    local up = step > 0
    local first = self:binary(up and "<=" or ">=", start, stop)
    if up and start.kind == "const" and start.v == 1 and step == 1 then
        return self:value(stop), first
    end
    local safe = up and start.kind == "const" and start.v >= 0 or not up and stop.kind == "const" and stop.v >= 0
    local span = up and self:binary("-", stop, start) or self:binary("-", start, stop)
    local trips = self:binary("+", self:binary("//", span, self.const(math.abs(step))), self.const(1))
    if not safe then -- the span may be more than an integer holds
        trips = self:choose(self:condition_of(self:binary("<", span, self.const(0))),
            function() return trips_of_wide(self, span, math.abs(step)) end, function() return trips end)
    end
    return self:value(trips), first
end

local function declare_loop_value(self, statement, value)
    local outer = self.scope
    self:open_scope()
    self:declare(statement.name, value)
    self:block(statement.body)
    self.scope = outer
end

-- The value of trip k, counted from 0: start + k step.
local function value_of_trip(self, start, step, trip)
    local scaled = step == 1 and trip or self:binary("*", trip, self.const(step))
    local value = self:binary("+", scaled, start)
    if value.kind == "value" then
        value.positive = start.kind == "const" and start.v >= 1 and step > 0
    end
    return value
end

local function integer_loop(self, statement, start, stop, step)
    local known = start.kind == "const" and stop.kind == "const"
    local count = known and count_trips(start.v, stop.v, step)
    local function loop()
        local trips, first
        if known then
            trips, first = self.g:constant("int", count), count > 0 and TRUE or FALSE
        else
            trips, first = graph_trips(self, start, stop, step)
        end
        self:loop { trips = trips, first = first, body = function(trip)
            declare_loop_value(self, statement, value_of_trip(self, start, step, trip))
        end }
    end
    loop_or_unroll(self, count, loop, function()
        self:unrolled(count, function(k) declare_loop_value(self, statement, self.const(start.v + (k - 1) * step)) end)
    end)
end

-- A loop over floats adds the step each time, as Lua does.
local function float_loop(self, statement, start, stop, step)
    local function float(v) return v.kind == "const" and self.const(v.v + 0.0) or self:type_of(v) == "float" and v or self:to_float(v) end
    stop = float(stop)
    local at = self:cell(float(start), statement.name)
    self:loop {
        condition = function() return self:condition_of(self:binary(step > 0 and "<=" or ">=", at.v, stop)) end,
        body = function()
            declare_loop_value(self, statement, at.v)
            self:put(at, "v", self:binary("+", at.v, self.const(step + 0.0)))
        end,
    }
end

function statements.For(self, statement)
    local start = for_number(self, self:expression(statement.start), "initial value")
    local stop = for_number(self, self:expression(statement.stop), "limit")
    local step = statement.step and for_number(self, self:expression(statement.step), "step") or self.const(1)
    if step.kind ~= "const" then
        self:at(statement.step, self.fail, "the step of a loop must be known when the script is compiled: write a while loop")
    elseif step.v == 0 then
        self:fail "'for' step is zero"
    end
    local from, to = self:type_of(start), self:type_of(stop)
    if from == "int" and math.type(step.v) == "integer" then
        if to ~= "int" and stop.kind ~= "const" then
            self:at(statement.stop, self.fail, "the limit of a loop over integers is %s here: annotate it as int, or take "
                .. "math.floor(limit)", types.words(to))
        elseif step.v == math.mininteger then
            self:fail "a step of this size: write a while loop"
        end
        return integer_loop(self, statement, start, stop, step.v)
    elseif from == "Scalar" or to == "Scalar" then
        self:fail "a loop over numbers of which nobody knows whether they are integers: annotate them as int or float"
    end
    float_loop(self, statement, start, stop, step.v)
end

function statements.While(self, statement)
    self:loop {
        condition = function() return self:condition(statement.condition) end,
        body = function()
            self:suppose(statement.condition, true)
            self:block(statement.body)
        end,
    }
end

-- The condition sees the body's locals: it is worked out in their scope, unless the loop was left before.
function statements.Repeat(self, statement)
    local ended
    self:loop {
        condition = nil,
        body = function()
            local outer = self.scope
            self:open_scope()
            statement.body.seen_behind = true
            run(self, statement.body, 1)
            local leaving = self:leaving()
            ended = self:cell(TRUE)
            if leaving ~= true then
                self:put(ended, "v", self:choose(leaving == false and FALSE or leaving, function() return TRUE end,
                    function() return self:condition(statement.condition) end))
                self:put(self.frame.loop.broke, "v", ended.v)
            end
            self.scope = outer
        end,
    }
end

-- ---- loops over tables ----

local function declare_names(self, statement, values)
    local outer = self.scope
    self:open_scope()
    for k, name in ipairs(statement.names) do
        self:declare(name, values[k] or NIL)
    end
    self:block(statement.body)
    self.scope = outer
end

-- Pairs of a table that is known: in the order in which they were written, of a table of the script in that of their
-- names.
local function known_pairs(self, v, all)
    local list = {}
    if v.kind == "table" then
        for k = 1, v.data.n do
            if not self.is_nil(v.data[k]) then
                list[#list + 1] = { self.const(k), v.data[k] }
            elseif not all then
                break
            end
        end
        for _, name in ipairs(all and v.data.order or {}) do
            local value = v.data["." .. name]
            list[#list + 1] = not self.is_nil(value) and { self.const(name), value } or nil
        end
        return list
    elseif v.kind ~= "host" or type(v.v) ~= "table" then
        return nil
    end
    local meta = all and getmetatable(v.v)
    if type(meta) == "table" and meta.__pairs then
        for key, value in pairs(v.v) do
            list[#list + 1] = { self:wrap(key), self:wrap(value) }
        end
        return list
    end
    local n = 0
    for k, value in ipairs(v.v) do
        n, list[k] = k, { self.const(k), self:wrap(value) }
        self:watch(v.v, k)
    end
    self:watch(v.v, n + 1)
    local names = {}
    for key in pairs(all and v.v or {}) do
        if not (math.type(key) == "integer" and key >= 1 and key <= n) then
            names[#names + 1] = key
        end
    end
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(names) do
        list[#list + 1] = { self:wrap(key), self:wrap(v.v[key]) }
    end
    return list
end

-- An entry of a table that is known: where it may be nil, pairs leaves it out, and ipairs ends there.
local function entry_of_table(self, statement, entry, all)
    local v = self:resolve(entry[2])
    local t = self:type_of(v)
    if not t or not types.inner(t) or v.kind ~= "value" then
        return declare_names(self, statement, entry)
    end
    self:choose(self:equals(v, NIL, true), function() declare_names(self, statement, { entry[1], self:unwrap(v) }) end, function()
        if not all then
            statements.Break(self)
        end
    end)
end

-- pairs of a dict of the graph, in the order in which its entries came: of those that are there when it begins, and still
-- are.
local function loop_over_dict(self, statement, v)
    local keys = self.g:node("aten::keys", { v }, { "str[]" })
    self:loop { trips = self.g:node("aten::len", { keys }, { "int" }), body = function(trip)
        local key = self.g:node("aten::__getitem__", { keys, trip }, { "str" })
        self:choose(self.g:node("aten::__contains__", { v, key }, { "bool" }), function()
            local entry = self.g:node("aten::__getitem__", { v, key }, { types.dict_value(v.type) })
            declare_names(self, statement, { key, entry })
        end, function() end)
    end }
end

-- ipairs of a list or a tensor of the graph.
local function loop_over(self, statement, v)
    local t = self:type_of(v)
    local trips = t == "Tensor" and self:tensor_size(v, 0) or self.g:node("aten::len", { v }, { "int" })
    self:loop { trips = trips, body = function(trip)
        local k = self:binary("+", trip, self.const(1))
        k.positive = true
        local entry = t == "Tensor" and self:index(v, k) or self.g:node("aten::__getitem__", { v, trip }, { types.element(t) })
        declare_names(self, statement, { k, entry })
    end }
end

function statements.ForIn(self, statement)
    local call = statement.values[1]
    local values = self:several(statement.values, 3)
    local iterated = values[1]
    if not iterated or iterated.kind ~= "iterator" then
        self:at(call, self.fail, "a loop over an iterator: scripts have ipairs and pairs, and for k = 1, n")
    end
    local v, all = self:resolve(iterated.over), iterated.all
    local t = self:type_of(v)
    if v.kind == "value" and (types.is_tuple(v.type) or types.fields(v.type)) then
        v = self:untuple(v)
    end
    local list = known_pairs(self, v, all)
    if list then
        return self:unrolled(#list, function(k) entry_of_table(self, statement, list[k], all) end)
    elseif all and types.dict_value(t or "") then
        return loop_over_dict(self, statement, self:value(v))
    elseif t == "Tensor" and not all or types.element(t or "") then
        return loop_over(self, statement, self:value(v))
    end
    self:at(call, self.fail, "%s of %s: a table or a list is expected", all and "pairs" or "ipairs", self:describe(v))
end

return Compiler
