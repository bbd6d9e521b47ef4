-- jit/emit_body.lua: the C of one graph: a function that does what the graph's nodes do, in their order.
--
-- A value whose type is int, float or bool is a variable of C's own; any other is a td_value. A td_value belongs to the function
-- from where it is made, and is let go of behind the last node that reads it; what there is at `done:` is let go of there, after
-- a failure as after a run. A variable holds nothing before its node and behind its last reader, so a loop's body finds it empty.
local tide = ...
local words = tide._require "jit.emit_words"
local body = {}

local PLAIN = { int = { "int64_t", "TD_I", "i", "0" }, float = { "double", "TD_F", "f", "0" }, bool = { "bool", "TD_B", "b", "false" } }

local Writer = {}
Writer.__index = Writer

-- ---- which node reads a value last ----

local function read(self, name, node, block)
    local made_in = self.made_in[name]
    self.is_read[name] = true
    if not node then
        if block == made_in then
            self.leaves[name] = true
            return
        end
        node, block = self.owner[block], self.parent[block]
    end
    while block ~= made_in do
        node, block = self.owner[block], self.parent[block]
    end
    self.last[name] = node
end

local function find_lives(self, block, owner, parent)
    self.owner[block], self.parent[block] = owner, parent
    for _, input in ipairs(block.inputs) do
        self.made_in[input.name] = block
    end
    for _, node in ipairs(block.nodes) do
        for _, name in ipairs(node.inputs) do
            read(self, name, node, block)
        end
        for _, inner in ipairs(node.blocks) do
            find_lives(self, inner, node, block)
        end
        for _, output in ipairs(node.outputs) do
            self.made_in[output.name] = block
        end
    end
    for _, name in ipairs(block.outputs) do
        read(self, name, nil, block)
    end
end

-- ---- lines ----

function Writer:line(format, ...)
    self.lines[#self.lines + 1] = string.rep("    ", self.depth) .. (select("#", ...) == 0 and format or string.format(format, ...))
end

function Writer:open(format, ...)
    self:line(format, ...)
    self.depth = self.depth + 1
end

function Writer:close(text)
    self.depth = self.depth - 1
    self:line(text or "}")
end

-- A step that may fail, where the node is from.
function Writer:try(format, ...)
    self.fails = true
    self:set_place(self.at)
    self:line("TD_TRY(" .. format .. ");", ...)
end

function Writer:refuse(node, why)
    local place = node.place and node.place .. ": " or ""
    error({ refused = string.format("%s%s %s", place, node.kind, why) }, 0)
end

-- Where the next lines are from, for messages.
function Writer:set_place(place)
    if place ~= self.place then
        self.place, self.places, self.file.places = place, true, true
        self:line("place = %s;", place and words.string(place) or "NULL")
    end
end

-- ---- values ----

-- A variable for a value of the graph.
function Writer:define(value)
    local ref = { text = words.new_name(self.taken, value.name), plain = PLAIN[value.kind], kind = value.kind, owned = not PLAIN[value.kind] }
    self.refs[value.name] = ref
    self.variables[#self.variables + 1] = ref
    if ref.owned then
        self.owned[#self.owned + 1] = value.name
    end
    return ref
end

-- As a td_value, borrowed.
local function as_value(ref) return ref.plain and string.format("%s(%s)", ref.plain[2], ref.text) or ref.text end

function Writer:value(name) return as_value(self.refs[name]) end

function Writer:values(names)
    local parts = {}
    for k, name in ipairs(names) do
        parts[k] = self:value(name)
    end
    return #parts == 0 and "NULL" or "(td_value[]){" .. table.concat(parts, ", ") .. "}"
end

-- Room for n td_values that are being made.
function Writer:room(n) self.most = math.max(self.most, n) end

-- Into a variable: a value that is borrowed (`moves`: taken). `value` says its type.
function Writer:assign(ref, value, from, moves)
    if ref.plain and ref.plain == from.plain then
        self:line("%s = %s;", ref.text, from.text)
    elseif ref.plain then
        self:room(1)
        self:line("r[0] = td_value_retain(%s);", as_value(from))
        self:check("value", value, "r[0]")
        self:line("%s = r[0].%s;", ref.text, ref.plain[3])
    elseif from.plain then
        self:line("%s = %s;", ref.text, as_value(from))
    elseif moves then
        self:line("%s = %s, %s = TD_NIL;", ref.text, from.text, from.text)
    else
        self:line("%s = td_value_retain(%s);", ref.text, from.text)
    end
end

function Writer:check(what, value, text)
    self:try('td_value_check("%s", %s, &%s, &%s)', what, words.string(value.name), self.file:type(value), text)
end

-- Where a node's results go to, and a function that brings them into their variables from there. certain: they are of the types
-- that the graph says, whatever the arguments were.
function Writer:results(node, certain)
    local outputs = node.outputs
    local first = outputs[1] and self.is_read[outputs[1].name] and self:define(outputs[1])
    if #outputs == 0 then
        return "NULL", function() end
    elseif #outputs == 1 and first and not first.plain then
        return "&" .. first.text, function() end
    end
    self:room(#outputs)
    return "r", function()
        local later = {}
        for k, output in ipairs(outputs) do
            local ref = k == 1 and first or k > 1 and self.is_read[output.name] and self:define(output)
            local at = string.format("r[%d]", k - 1)
            if not ref then
                self:line("td_value_drop(&%s);", at)
            elseif ref.plain then
                later[#later + 1] = function()
                    if not certain then
                        self:check("value", output, at)
                    end
                    self:line("%s = %s.%s;", ref.text, at, ref.plain[3])
                end
            else
                self:line("%s = %s, %s = TD_NIL;", ref.text, at, at)
            end
        end
        for _, take in ipairs(later) do
            take()
        end
    end
end

-- A call that leaves what it makes behind its last argument.
function Writer:call(node, certain, format, ...)
    local place, take = self:results(node, certain)
    self:try("%s, %s)", string.format(format, ...), place)
    take()
end

-- ---- nodes ----

local kinds = {}

kinds["prim::Constant"] = function(self, node)
    local output, what = node.outputs[1], node.what
    local ref = { kind = output.kind }
    if PLAIN[what] then
        ref.plain, ref.kind = PLAIN[what], what
        ref.text = words[what](node.constant)
    elseif what == "string" and not string.find(node.constant, "\0", 1, true) then
        ref.text = string.format("TD_STRING(%s)", words.string(node.constant))
        ref.string = node.constant
    elseif what == "dtype" and words.dtype(node.constant) then
        ref.text = string.format("TD_DTYPE(%s)", words.dtype(node.constant))
    elseif what == "device" and words.device(node.constant) then
        ref.text = string.format("TD_DEVICE(%s)", words.device(node.constant))
    elseif what == "tensor" then
        ref.text = string.format("TD_T(constants[%d])", self.file:tensor(node, node.constant, node.address))
    elseif what == "ints" or what == "floats" then
        ref.text = self.file:array(what, node.constant)
    elseif what == "nil" then
        ref.text = "TD_NIL"
    else
        self:refuse(node, string.format("of %s has no form in C", what == "dtype" and "dtype " .. node.constant or "a " .. what))
    end
    self.refs[output.name] = ref
end

local function operator(self, node)
    self:call(node, false, "td_value_call(TD_OP(%s), %s, %d, %s", node.kind, words.bool(node.inplace), #node.inputs, self:values(node.inputs))
end

local function contains(list, wanted)
    for _, value in ipairs(list) do
        if value == wanted then
            return true
        end
    end
    return false
end

local function scalar(self, node)
    local name, operands, texts = string.match(node.kind, "^aten::(.*)$"), {}, {}
    for k, input in ipairs(node.inputs) do
        local ref = self.refs[input]
        operands[k], texts[k] = ref.plain and ref.kind or "", ref.text
    end
    local expression, output = words.expression(name, operands), node.outputs[1]
    local itself = output.kind == "bool" and texts[1] == texts[2] -- of which compilers warn
    if not expression or not PLAIN[output.kind] or itself then
        local fixed = string.find("ifb", node.result, 1, true) or string.find("nm", node.result, 1, true) and not contains(operands, "")
        self:call(node, fixed, "td_scalar_call(rows[%s], %d, %s", self.file:row(name, node.parameters), #node.inputs, self:values(node.inputs))
    elseif self.is_read[output.name] then
        self:line("%s = %s;", self:define(output).text, string.format(expression, table.unpack(texts)))
    end
end

local ENTRIES = { int = "TD_ENTRIES_INTS", float = "TD_ENTRIES_FLOATS", Tensor = "TD_ENTRIES_TENSORS" }

kinds["prim::ListConstruct"] = function(self, node)
    local entry = node.outputs[1].parts[1]
    local of = entry.kind == "?" and entry.parts[1].kind == "Tensor" and "Tensor" or entry.kind
    self:call(node, false, "td_value_list_of(%s, %d, %s", ENTRIES[of] or "TD_ENTRIES_VALUES", #node.inputs, self:values(node.inputs))
end
kinds["prim::TupleConstruct"] = function(self, node)
    self:call(node, false, "td_value_tuple_of(%d, %s", #node.inputs, self:values(node.inputs))
end
kinds["prim::ListUnpack"] = function(self, node)
    self:call(node, false, "td_value_entries(%s, %d", self:value(node.inputs[1]), #node.outputs)
end
kinds["prim::TupleUnpack"] = function(self, node)
    self:call(node, false, "td_value_parts(%s, 0, %d", self:value(node.inputs[1]), #node.outputs)
end
kinds["prim::TupleIndex"] = function(self, node)
    self:call(node, false, "td_value_parts(%s, (int)%s, 1", self:value(node.inputs[1]), self.refs[node.inputs[2]].text)
end

-- The same value of another type, which it must be of.
kinds["prim::unchecked_cast"] = function(self, node)
    local output = node.outputs[1]
    self:room(1)
    self:line("r[0] = td_value_retain(%s);", self:value(node.inputs[1]))
    self:try('td_value_check("value", %s, &%s, &r[0])', words.string(node.inputs[1]), self.file:type(output))
    local ref = self.is_read[output.name] and self:define(output)
    if not ref then
        self:line("td_value_drop(&r[0]);")
    elseif ref.plain then
        self:line("%s = r[0].%s;", ref.text, ref.plain[3])
    else
        self:line("%s = r[0], r[0] = TD_NIL;", ref.text)
    end
end

kinds["prim::RaiseException"] = function(self, node)
    local ref = self.refs[node.inputs[1]]
    self:try('td_fail(TD_ESCRIPT, "%%s", %s)', ref.string and words.string(ref.string)
        or string.format("td_value_text(%s, NULL)", as_value(ref)))
end

kinds["prim::Print"] = function(self, node)
    for _, name in ipairs(node.inputs) do
        local kind = self.refs[name].kind
        if kind == "Tensor" or kind == "[]" or kind == "()" then
            self:refuse(node, "of a tensor, list or tuple has no form in C")
        end
    end
    self.file.prints = true
    self.file:row("str", "a")
    self:try("print(%d, %s)", #node.inputs, self:values(node.inputs))
end

kinds["prim::CallFunction"] = function(self, node)
    local inputs = self:values(node.inputs)
    local place, take = self:results(node)
    self.calls = true
    self:try("%s(%s, %s, placed)", self.file:group_name(node.group), inputs, place)
    take()
end
kinds["prim::FusionGroup"] = kinds["prim::CallFunction"]

-- ---- blocks ----

-- The nodes of a block within another; `ends` hands its outputs over. A loop comes back to where it begins from where it ends,
-- so no place is known there.
function Writer:block(block, ends)
    local outer, at = self.around, self.at
    self.around, self.place = at, self.unknown
    self:nodes(block)
    self.at = at
    ends()
    self.around, self.place = outer, self.unknown
end

-- A block's outputs from the `first` on into variables (nil: nobody reads it), and what stays of them let go of.
function Writer:hand_over(block, first, targets, types)
    local times = {}
    for k = first, #block.outputs do
        local name = block.outputs[k]
        times[name] = (times[name] or 0) + (targets[k - first + 1] and 1 or 0)
    end
    for k = first, #block.outputs do
        local name, target = block.outputs[k], targets[k - first + 1]
        local from = self.refs[name]
        if target then
            times[name] = times[name] - 1
            local moves = from.owned and times[name] == 0 and self.made_in[name] == block
            self:assign(target, types[k - first + 1], from, moves)
            times[name] = moves and -1 or times[name]
        end
    end
    for k = first, #block.outputs do
        local name = block.outputs[k]
        if times[name] == 0 and self.refs[name].owned and self.made_in[name] == block then
            self:line("td_value_drop(&%s);", self.refs[name].text)
            times[name] = -1
        end
    end
end

function Writer:truth(name)
    local ref = self.refs[name]
    if ref.kind == "bool" and ref.plain then
        return ref.text
    end
    local test = { text = words.new_name(self.taken, "test"), plain = PLAIN.bool }
    self.variables[#self.variables + 1] = test
    self:try("td_value_truth(%s, &%s)", as_value(ref), test.text)
    return test.text
end

kinds["prim::If"] = function(self, node)
    local targets = {}
    for k, output in ipairs(node.outputs) do
        targets[k] = self.is_read[output.name] and self:define(output)
    end
    self:open("if (%s) {", self:truth(node.inputs[1]))
    for k, block in ipairs(node.blocks) do
        if k == 2 and #block.nodes + #block.outputs > 0 then
            self.depth = self.depth - 1
            self:open("} else {")
        end
        self:block(block, function() self:hand_over(block, 1, targets, node.outputs) end)
    end
    self:close()
end

local function is_true(ref) return ref.text == "true" end

-- What is carried lies in the node's results between the trips, and moves into the block's inputs as one begins.
kinds["prim::Loop"] = function(self, node)
    local block, carried, inner = node.blocks[1], {}, {}
    for k, output in ipairs(node.outputs) do
        local input = block.inputs[k + 1]
        local needed = self.is_read[output.name] or self.is_read[input.name]
        carried[k] = needed and self:define(output)
        inner[k] = self.is_read[input.name] and self:define(input)
        if needed then
            self:assign(carried[k], output, self.refs[node.inputs[k + 2]])
        end
    end
    local most, ends = self.refs[node.inputs[1]], {}
    local trip = words.new_name(self.taken, block.inputs[1].name)
    self.refs[block.inputs[1].name] = { text = trip, plain = PLAIN.int, kind = "int" }
    local go = { text = words.new_name(self.taken, "go"), plain = PLAIN.bool, kind = "bool" }
    local tested = not (is_true(self.refs[node.inputs[2]]) and is_true(self.refs[block.outputs[1]] or {}))
    if tested then
        self.variables[#self.variables + 1] = go
        self:line("%s = %s;", go.text, self:truth(node.inputs[2]))
        ends[1] = go.text
    end
    ends[#ends + 1] = string.format("%s < %s", trip, most.plain and most.text or most.text .. ".i")
    self:open("for (int64_t %s = 0; %s; %s++) {", trip, table.concat(ends, " && "), trip)
    for k = 1, #node.outputs do
        if inner[k] then
            self:assign(inner[k], block.inputs[k + 1], carried[k], true)
        elseif carried[k] and not carried[k].plain then
            self:line("td_value_drop(&%s);", carried[k].text)
        end
    end
    self:block(block, function()
        if tested then
            self:line("%s = %s;", go.text, self:truth(block.outputs[1]))
        end
        self:hand_over(block, 2, carried, node.outputs)
        self.fails = true
        self:line("if (td_interrupt_requested())")
        self:line("    TD_TRY(td_interrupted());")
    end)
    self:close()
    for k, output in ipairs(node.outputs) do
        if carried[k] and carried[k].owned and not self.is_read[output.name] then
            self:line("td_value_drop(&%s);", carried[k].text)
        end
    end
end

function Writer:node(node)
    local write = node.operator and operator or kinds[node.kind] or node.parameters and scalar
    if not write then
        self:refuse(node, "has no form in C")
    end
    self.at = node.place or self.around
    write(self, node)
end

-- Values that die behind a node, among those of its inputs, of what its blocks read, and of its results.
local function drop_dead(self, node, dead)
    for _, name in ipairs(dead) do
        if self.refs[name].owned then
            self:line("td_value_drop(&%s);", self.refs[name].text)
        end
    end
end

function Writer:nodes(block)
    local dead = {}
    for _, name in ipairs(self.order) do
        local node = self.last[name]
        if node and self.made_in[name] == block and not self.leaves[name] then
            dead[node] = dead[node] or {}
            table.insert(dead[node], name)
        end
    end
    for _, node in ipairs(block.nodes) do
        self:node(node)
        drop_dead(self, node, dead[node] or {})
    end
end

-- ---- the function ----

function Writer:inputs(block)
    for k, input in ipairs(block.inputs) do
        local plain, read_at_all = PLAIN[input.kind], self.is_read[input.name]
        if not plain and read_at_all then
            local ref = self:define(input)
            table.remove(self.owned)
            ref.owned = false
            self:line("%s = inputs[%d];", ref.text, k - 1)
            self:check("input", input, ref.text)
        else
            self.gives = true
            self:line("given = inputs[%d];", k - 1)
            self:check("input", input, "given")
            if read_at_all then
                self:line("%s = given.%s;", self:define(input).text, plain[3])
            end
        end
    end
end

function Writer:outputs(block)
    for k, name in ipairs(block.outputs) do
        self:try("td_value_keep(%s, &outputs[%d])", self:value(name), k - 1)
    end
end

local function all_names(block, list)
    for _, input in ipairs(block.inputs) do
        list[#list + 1] = input.name
    end
    for _, node in ipairs(block.nodes) do
        for _, inner in ipairs(node.blocks) do
            all_names(inner, list)
        end
        for _, output in ipairs(node.outputs) do
            list[#list + 1] = output.name
        end
    end
    return list
end

local function declarations(self, block, nests)
    local head = {}
    local function add(format, ...) head[#head + 1] = "    " .. string.format(format, ...) end
    if self.places then
        add("const char *place = NULL;")
    end
    add("td_status status = TD_OK;")
    if self.gives then
        add("td_value given;")
    end
    for _, ref in ipairs(self.variables) do
        add("%s %s = %s;", ref.plain and ref.plain[1] or "td_value", ref.text, ref.plain and ref.plain[4] or "TD_NIL")
    end
    if self.most > 0 then
        add("td_value r[%d] = {TD_NIL};", self.most)
    end
    if #block.outputs > 0 then
        add("for (int k = 0; k < %d; k++)", #block.outputs)
        add("    outputs[k] = TD_NIL;")
    end
    for _, name in ipairs { #block.inputs == 0 and "inputs" or "", #block.outputs == 0 and "outputs" or "",
        not (self.places or self.calls) and "placed" or "" } do
        if name ~= "" then
            add("(void)%s;", name)
        end
    end
    if nests then
        add("if (depth == 200)")
        add('    return td_fail(TD_EVALUE, "calls nest deeper than 200: a function calls itself without end?");')
        add("depth++;")
    end
    return head
end

-- What is only ever written: results of branches and loops that nothing reads, of which compilers warn.
local function only_written(self)
    local reads, list = {}, {}
    for _, line in ipairs(self.lines) do
        local read_there = string.gsub(string.gsub(line, '"[^"]*"', ""), "^%s*[%a_][%w_]* = ", "")
        for before, word in string.gmatch(" " .. read_there, "([^%w_])([%a_][%w_]*)") do
            reads[word] = reads[word] or before ~= "." -- no field of that name
        end
    end
    for _, ref in ipairs(self.variables) do
        if ref.plain and not reads[ref.text] then
            list[#list + 1] = ref.text
        end
    end
    return list
end

local function ending(self, block, nests)
    local tail = {}
    local function add(format, ...) tail[#tail + 1] = string.format(format, ...) end
    if self.fails then
        add("done:")
    end
    if self.places then
        add("    if (status)")
        add("        status = fail_at(place, status, placed);")
    end
    for _, name in ipairs(only_written(self)) do
        add("    (void)%s;", name)
    end
    for _, name in ipairs(self.owned) do
        add("    td_value_drop(&%s);", self.refs[name].text)
    end
    if self.most > 0 then
        add("    for (int k = 0; k < %d; k++)", self.most)
        add("        td_value_drop(&r[k]);")
    end
    if #block.outputs > 0 then
        add("    for (int k = 0; status && k < %d; k++)", #block.outputs)
        add("        td_value_drop(&outputs[k]);")
    end
    if nests then
        add("    depth--;")
    end
    add("    return status;")
    return tail
end

--- write(file, name, block, nests): the lines of a static function of that name; the file gathers what it needs besides. nests:
--- it counts how deep calls are in one another. Raises {refused = why} where a node has no form in C.
function body.write(file, name, block, nests)
    local self = setmetatable({ file = file, lines = {}, depth = 1, refs = {}, variables = {}, owned = {}, taken = {}, most = 0, unknown = {},
        made_in = {}, is_read = {}, leaves = {}, last = {}, owner = {}, parent = {}, order = all_names(block, {}) }, Writer)
    for word in pairs(file.taken) do
        self.taken[word] = true
    end
    find_lives(self, block)
    self:inputs(block)
    self:nodes(block)
    self:outputs(block)
    local lines = { string.format("static td_status %s(const td_value *inputs, td_value *outputs, bool *placed) {", name) }
    for _, list in ipairs { declarations(self, block, nests), self.lines, ending(self, block, nests) } do
        table.move(list, 1, #list, #lines + 1, lines)
    end
    lines[#lines + 1] = "}"
    return lines
end

return body
