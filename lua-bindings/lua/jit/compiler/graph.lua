-- jit/compiler/graph.lua: graphs while they are compiled: nodes in blocks, which are undone where a way of compiling does
-- not go on, and their text at the end (engine/script/ir.h has the form).
--
-- A value is {kind = "value", type, hint}; what nobody named is a number. A node is {op, inputs, outputs, blocks, place}; a
-- block is {nodes, inputs, outputs}.
local tide = ...
local types = tide._require "jit.compiler.types"
local graph = {}

local Graph = {}
Graph.__index = Graph

--- new(): an empty graph. Constant tensors are gathered in `tensors`, to go with the text.
function graph.new()
    local g = setmetatable({ tensors = {}, tensor_numbers = {}, count = 0 }, Graph)
    g.block = { nodes = {}, inputs = {}, outputs = {} }
    g.root = g.block
    return g
end

--- value(type [, hint]): a value that nothing makes yet.
function graph.value(t, hint) return { kind = "value", type = t, hint = hint } end

--- node(op, inputs, types [, attribute [, place]]): a node at the end of the current block; returns its values.
function Graph:node(op, inputs, types, attribute, place)
    local n = { op = op, inputs = inputs, outputs = {}, attribute = attribute, place = place or self.place, blocks = {} }
    for k, t in ipairs(types) do
        n.outputs[k] = graph.value(t)
        n.outputs[k].made = n
    end
    self:expect_nodes(op)
    self.count = self.count + 1
    if self.count > 200000 then
        error({ refused = true, message = "the graph grows beyond 200000 nodes", what = "too large" }, 0)
    end
    table.insert(self.block.nodes, n)
    return table.unpack(n.outputs)
end

-- Ends a stretch that is compiled in the hope that all of it is known, `known_only` statements at most.
local function give_up()
    error({ refused = true, message = "not all is known", what = "not all is known" }, 0)
end

--- expect_nodes(op): in such a stretch an error, as a node is to be made.
function Graph:expect_nodes(op)
    if self.known_only and op ~= "prim::Constant" then
        give_up()
    end
end

--- expect_few(): in such a stretch an error where there have been too many statements.
function Graph:expect_few()
    if self.known_only then
        self.known_only = self.known_only - 1
        if self.known_only < 0 then
            give_up()
        end
    end
end

--- within(block, fn, ...): run fn with what it makes at the end of another block.
function Graph:within(block, fn, ...)
    local outer = self.block
    self.block = block
    local results = table.pack(fn(...))
    self.block = outer
    return table.unpack(results, 1, results.n)
end

--- open(): a new block, which is the current one until close(outer).
function Graph:open()
    local outer, block = self.block, { nodes = {}, inputs = {}, outputs = {}, parent = self.block }
    self.block = block
    return block, outer
end

--- undo(block, count): the block is the current one again, with its first nodes alone.
function Graph:undo(block, count)
    self.block = block
    for k = #block.nodes, count + 1, -1 do
        block.nodes[k] = nil
    end
end

-- ---- constants ----

local function quoted(text)
    return '"' .. string.gsub(text, '[%c"\\]', function(c)
        if c == '"' or c == "\\" then
            return "\\" .. c
        end
        return c == "\n" and "\\n" or string.format("\\%03o", string.byte(c))
    end) .. '"'
end

local function float_text(value)
    if value ~= value then
        return "nan"
    elseif value == math.huge or value == -math.huge then
        return value > 0 and "inf" or "-inf"
    end
    local text
    for digits = 15, 17 do
        text = string.format("%." .. digits .. "g", value)
        if tonumber(text) == value then
            break
        end
    end
    return string.find(text, "[.e]") and text or text .. "."
end

local TEXTS = {
    int = function(value) return tostring(value) end,
    float = float_text,
    bool = function(value) return value and "1" or "0" end,
    str = quoted,
    dtype = quoted,
    Device = quoted,
    ["int[]"] = function(list) return "[" .. table.concat(list, ", ") .. "]" end,
    ["float[]"] = function(list)
        local texts = {}
        for k, value in ipairs(list) do
            texts[k] = float_text(value)
        end
        return "[" .. table.concat(texts, ", ") .. "]"
    end,
}

-- A constant that this block, or one around it, has already.
local function find_constant(block, key)
    while block do
        local n = block.constants and block.constants[key]
        if n and block.nodes[n.index] == n then
            return n.outputs[1]
        end
        block = block.parent
    end
end

local function constant(self, t, attribute)
    local key = t .. (attribute or "")
    local found = find_constant(self.block, key)
    if found then
        return found
    end
    local block = self.block
    local value = self:node("prim::Constant", {}, { t }, attribute)
    local n = block.nodes[#block.nodes]
    n.index = #block.nodes
    block.constants = block.constants or {}
    block.constants[key] = n
    return value
end

--- constant(type, value): a number, a bool, a string, a dtype or device by name, a list of numbers; of NoneType nothing.
function Graph:constant(t, value)
    return constant(self, t, TEXTS[t] and string.format("value=%s", TEXTS[t](value)))
end

--- tensor(x): a tensor that goes with the graph by reference.
function Graph:tensor(x)
    local number = self.tensor_numbers[x]
    if not number then
        self.tensors[#self.tensors + 1] = x
        number = #self.tensors - 1
        self.tensor_numbers[x] = number
    end
    return constant(self, "Tensor", string.format("tensor=%d", number))
end

-- ---- texts ----

local Printer = {}
Printer.__index = Printer

function Printer:name(value)
    local name = self.names[value]
    if not name then
        local hint = value.hint and string.match(value.hint, "^[%a_][%w_]*$")
        if hint then
            self.taken[hint] = (self.taken[hint] or 0) + 1
            name = string.format("%s.%d", hint, self.taken[hint])
        else
            self.numbers = self.numbers + 1
            name = tostring(self.numbers)
        end
        self.names[value] = name
    end
    return "%" .. name
end

function Printer:list(values, typed)
    local texts = {}
    for k, value in ipairs(values) do
        texts[k] = typed and string.format("%s : %s", self:name(value), types.lower(value.type)) or self:name(value)
    end
    return table.concat(texts, ", ")
end

function Printer:nodes(block, indent)
    local pad = string.rep("  ", indent)
    for _, n in ipairs(block.nodes) do
        local made = #n.outputs > 0 and self:list(n.outputs, true) .. " = " or ""
        local op = n.subgraph and string.format("%s_%d", n.op, self:subgraph(n)) or n.op
        local attribute = n.attribute and "[" .. n.attribute .. "]" or ""
        local place = n.place and string.format(" # %s:%d:%d", n.place.file, n.place.line, n.place.column) or ""
        self:add("%s%s%s%s(%s)%s", pad, made, op, attribute, self:list(n.inputs), place)
        for k, inner in ipairs(n.blocks) do
            self:add("%s  block%d(%s):", pad, k - 1, self:list(inner.inputs, true))
            self:nodes(inner, indent + 2)
            self:add("%s    -> (%s)", pad, self:list(inner.outputs))
        end
    end
end

function Printer:add(format, ...)
    self.lines[#self.lines + 1] = string.format(format, ...)
end

-- The number of a node's own graph among all of the text.
function Printer:subgraph(n)
    self.order[#self.order + 1] = { op = n.op, number = #self.order, block = n.subgraph }
    return #self.order - 1
end

function Printer:graph(block, head)
    local texts = {}
    for k, value in ipairs(block.inputs) do
        texts[k] = string.format("%s : %s", self:name(value), types.lower(value.type))
    end
    self:add("%sgraph(%s):", head, table.concat(texts, ",\n" .. string.rep(" ", #head + 6)))
    self:nodes(block, 1)
    self:add("  return (%s)", self:list(block.outputs))
end

--- text(): the graph as td_ir_parse reads it.
function Graph:text()
    local p = setmetatable({ lines = {}, names = {}, taken = {}, numbers = 0, order = {} }, Printer)
    p:graph(self.root, "")
    local k = 1
    while p.order[k] do
        local entry = p.order[k]
        p.names, p.taken, p.numbers = {}, {}, 0
        p:graph(entry.block, string.format("with %s_%d = ", entry.op, entry.number))
        k = k + 1
    end
    return table.concat(p.lines, "\n") .. "\n"
end

return graph
