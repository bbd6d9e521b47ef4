-- jit/code.lua: a graph as Lua that does the same: f.code. Dims and indices count from 1 there, as Lua's do; the tensors of the
-- graph are a list, `constants`, and functions of the host one called `host`.
local tide = ...
local code = {}

local KEYWORDS = {}
for word in string.gmatch("and break do else elseif end false for function goto if in local nil not or repeat return then true "
    .. "until while tide constants host table error print", "%a+") do
    KEYWORDS[word] = true
end

-- Operators of Lua that an operator of the engine is, where what it has besides is left at its default.
local SIGNS = { add = "+", sub = "-", mul = "*", div = "/", pow = "^", floordiv = "//", remainder = "%",
    __and__ = "and", __or__ = "or" }
-- Of numbers, strings and booleans alone: tensors are compared by methods.
local COMPARISONS = { eq = "==", ne = "~=", lt = "<", le = "<=", gt = ">", ge = ">=" }

-- ---- writing ----

local Writer = {}
Writer.__index = Writer

local function quoted(text) return (string.gsub(string.format("%q", text), "\\\n", "\\n")) end

--- number(value): digits that read back as the same number.
function code.number(value)
    if value ~= value then
        return "0/0"
    elseif value == math.huge or value == -math.huge then
        return value > 0 and "math.huge" or "-math.huge"
    elseif math.type(value) == "integer" then
        return string.format("%d", value)
    end
    for digits = 1, 17 do
        local text = tide._number(value, digits)
        if tonumber(text) == value then
            return string.find(text, "[.e]") and text or text .. ".0"
        end
    end
end

local function list_text(list, item)
    local parts = {}
    for k, value in ipairs(list) do
        parts[k] = item(value)
    end
    return "{" .. table.concat(parts, ", ") .. "}"
end

-- An integer that counts from 0, as Lua counts.
local function counted(value) return math.type(value) == "integer" and value >= 0 and value + 1 or value end

function Writer:line(text, place)
    self.lines[#self.lines + 1] = string.rep("    ", self.depth) .. text .. (place and " -- " .. place or "")
end

-- A name for a value of the graph: x.1 is x, or x_2 where there is one already, 5 is v5.
function Writer:new_name(name)
    local base = string.gsub(string.gsub(name, "%.%d+$", ""), "[^%w_]", "_")
    if string.find(base, "^%d") then
        base = "v" .. base
    elseif KEYWORDS[base] then
        base = base .. "_"
    end
    local unique, n = base, 1
    while self.taken[unique] do
        n = n + 1
        unique = base .. "_" .. n
    end
    self.taken[unique] = true
    return unique
end

function Writer:define(value)
    local name = self:new_name(value.name)
    self.names[value.name], self.types[value.name] = name, value.type
    return name
end

local function constant_text(writer, node)
    local value, what = node.constant, node.what
    if what == "tensor" then
        table.insert(writer.tensors, value)
        return string.format("constants[%d]", #writer.tensors)
    elseif what == "string" or what == "device" then
        return quoted(value)
    elseif what == "dtype" then
        return "tide." .. value
    elseif type(value) == "number" then
        return code.number(value)
    elseif type(value) == "table" then
        return list_text(value, code.number)
    end
    return tostring(value)
end

-- ---- operators ----

function Writer:argument(node, k)
    local name, param = node.inputs[k], node.params and node.params[k]
    local constant = self.constants[name]
    if param and param.counted and constant then
        local value = constant.constant
        if type(value) == "table" then
            return list_text(value, function(v) return code.number(counted(v)) end)
        elseif math.type(value) == "integer" then
            return code.number(counted(value))
        end
    end
    return self.names[name]
end

local function others_are_defaults(node, from)
    for k = from, #node.inputs do
        if not node.params[k].default then
            return false
        end
    end
    return true
end

-- The arguments from the `first` on, as a call has them.
function Writer:arguments(node, first)
    local parts, options, last = {}, {}, first - 1
    for k = first, #node.inputs do
        local param = node.params[k]
        if param.option and not param.default then
            options[#options + 1] = string.format("%s = %s", param.name, self:argument(node, k))
        elseif not param.option and not param.default then
            last = k
        end
    end
    for k = first, last do
        parts[#parts + 1] = self:argument(node, k)
    end
    if #options > 0 then
        parts[#parts + 1] = "{" .. table.concat(options, ", ") .. "}"
    end
    return table.concat(parts, ", ")
end

-- Is this what makes Lua's index of the engine's, which a call in Lua does by itself?
function Writer:is_counting(node)
    local one = self.constants[node.inputs[2]]
    return node.kind == "from_one_based"
        or node.kind == "add" and self.indices[node.inputs[1]] and one and one.constant == 1
end

function Writer:operator_text(node)
    local sign = SIGNS[node.kind]
    if node.inplace then
        local name = string.find(node.kind, "_$") and node.kind or node.kind .. "_"
        return string.format("%s:%s(%s)", self:argument(node, 1), name, self:arguments(node, 2))
    elseif sign and #node.inputs >= 2 and others_are_defaults(node, 3) then
        return string.format("%s %s %s", self:argument(node, 1), sign, self:argument(node, 2))
    elseif node.kind == "neg" then
        return "-" .. self:argument(node, 1)
    elseif node.method and not self.constants[node.inputs[1]] and node.inputs[1] then
        return string.format("%s:%s(%s)", self:argument(node, 1), node.kind, self:arguments(node, 2))
    end
    return string.format("tide.%s(%s)", node.kind, self:arguments(node, 1))
end

function Writer:operator(node)
    if self:is_counting(node) then
        self.names[node.outputs[1].name] = self.names[node.inputs[1]]
        return
    end
    local text = self:operator_text(node)
    if node.inplace or string.find(node.kind, "_$") then
        self:line(text, node.place)
        for _, output in ipairs(node.outputs) do
            self.names[output.name] = self:argument(node, 1)
        end
        return
    end
    local names = {}
    for k, output in ipairs(node.outputs) do
        names[k] = self:define(output)
        self.indices[output.name] = output.index
    end
    self:line(#names == 0 and text or string.format("local %s = %s", table.concat(names, ", "), text), node.place)
end

-- ---- other nodes ----

local kinds = {}

function Writer:inputs_text(node, first)
    local parts = {}
    for k = first or 1, #node.inputs do
        parts[#parts + 1] = self:argument(node, k)
    end
    return table.concat(parts, ", ")
end

-- What a node gives, as locals.
function Writer:locals(node, text)
    local names = {}
    for k, output in ipairs(node.outputs) do
        names[k] = self:define(output)
    end
    self:line(#names == 0 and text or string.format("local %s = %s", table.concat(names, ", "), text), node.place)
end

kinds["prim::Constant"] = function(writer, node)
    local name = node.outputs[1].name
    writer.constants[name] = node.what ~= "tensor" and node or nil
    writer.names[name] = constant_text(writer, node)
end
kinds["prim::TupleConstruct"] = function(writer, node)
    writer.names[node.outputs[1].name] = "{" .. writer:inputs_text(node) .. "}"
end
-- A list is one thing, whoever writes into it: only the argument of a single call stands where it is read.
kinds["prim::ListConstruct"] = function(writer, node)
    if writer.arguments_only[node.outputs[1].name] then
        kinds["prim::TupleConstruct"](writer, node)
    else
        writer:locals(node, "{" .. writer:inputs_text(node) .. "}")
    end
end
kinds["prim::ListUnpack"] = function(writer, node) writer:locals(node, string.format("table.unpack(%s)", writer:inputs_text(node))) end
kinds["prim::TupleUnpack"] = kinds["prim::ListUnpack"]
kinds["prim::TupleIndex"] = function(writer, node)
    local index = writer.constants[node.inputs[2]]
    writer:locals(node, string.format("(%s)[%s]", writer:argument(node, 1),
        index and code.number(counted(index.constant)) or writer:argument(node, 2) .. " + 1"))
end
kinds["prim::RaiseException"] = function(writer, node) writer:line(string.format("error(%s)", writer:inputs_text(node)), node.place) end
kinds["prim::Print"] = function(writer, node) writer:line(string.format("print(%s)", writer:inputs_text(node)), node.place) end
kinds["prim::FusionGroup"] = function(writer, node)
    writer:locals(node, string.format("group_%d(%s)", node.group, writer:inputs_text(node)))
end
kinds["prim::CallFunction"] = kinds["prim::FusionGroup"]
kinds["prim::HostCall"] = function(writer, node)
    writer:locals(node, string.format("host[%d](%s)", (node.id or 0) + 1, writer:inputs_text(node)))
end

-- Values that a block's nodes see are those around it, too.
function Writer:block(block, finish)
    self.depth = self.depth + 1
    self:nodes(block.nodes)
    finish()
    self.depth = self.depth - 1
end

local function assign(writer, names, values)
    if #names > 0 then
        writer:line(string.format("%s = %s", table.concat(names, ", "), table.concat(values, ", ")))
    end
end

function Writer:values(names)
    local list = {}
    for k, name in ipairs(names) do
        list[k] = self.names[name]
    end
    return list
end

-- Lua's variables of what a node gives, declared before it.
local function declare_outputs(writer, node)
    local names = {}
    for k, output in ipairs(node.outputs) do
        names[k] = writer:define(output)
    end
    if #names > 0 then
        writer:line("local " .. table.concat(names, ", "))
    end
    return names
end

kinds["prim::If"] = function(writer, node)
    local names = declare_outputs(writer, node)
    writer:line(string.format("if %s then", writer:argument(node, 1)), node.place)
    for k = 1, 2 do
        local block = node.blocks[k]
        if k == 2 and (#block.nodes > 0 or #names > 0) then
            writer:line("else")
        end
        writer:block(block, function() assign(writer, names, writer:values(block.outputs)) end)
    end
    writer:line("end")
end

local function guard_text(mode)
    if mode.name == "inference_mode" then
        return string.format("tide.inference_mode(%s)", mode.enabled)
    elseif mode.name ~= "autocast" then
        return string.format("tide.%s()", mode.name)
    end
    return string.format("tide.autocast{device = %q, dtype = tide.%s, enabled = %s, cache = %s}", mode.device, mode.dtype,
        mode.enabled, mode.cached)
end

kinds["prim::With"] = function(writer, node)
    local names = declare_outputs(writer, node)
    writer:line("do", node.place)
    writer:line("    local _ <close> = " .. guard_text(node.mode))
    local block = node.blocks[1]
    writer:block(block, function() assign(writer, names, writer:values(block.outputs)) end)
    writer:line("end")
end

kinds["prim::Loop"] = function(writer, node)
    local block, carried, starts = node.blocks[1], {}, {}
    for k, output in ipairs(node.outputs) do
        carried[k] = writer:define(output)
        writer.names[block.inputs[k + 1].name] = carried[k]
        starts[k] = writer:argument(node, k + 2)
    end
    if #carried > 0 then
        writer:line(string.format("local %s = %s", table.concat(carried, ", "), table.concat(starts, ", ")))
    end
    local trip, go = writer:define(block.inputs[1]), writer:new_name("go")
    writer:line(string.format("local %s = %s", go, writer:argument(node, 2)))
    writer:line(string.format("for %s = 0, %s - 1 do", trip, writer:argument(node, 1)), node.place)
    writer:line(string.format("    if not %s then break end", go))
    writer:block(block, function()
        local values = writer:values(block.outputs)
        assign(writer, { go, table.unpack(carried) }, values)
    end)
    writer:line("end")
end

kinds["prim::DictConstruct"] = function(writer, node)
    local parts = {}
    for k = 1, #node.inputs, 2 do
        parts[#parts + 1] = string.format("[%s] = %s", writer.names[node.inputs[k]], writer.names[node.inputs[k + 1]])
    end
    writer:locals(node, "{" .. table.concat(parts, ", ") .. "}")
end

-- Operators on strings, lists and dicts as Lua writes them: $1, $2 are the inputs. What writes one gives it as its result.
local VALUES = { get_entry = "$1[$2]", get = "$1[$2]", __contains__ = "$1[$2] ~= nil", remove = "table.remove($1, $2)",
    pop = "table.remove($1)", sub = "$1:sub($2, $3)", mul = "$1:rep($2)", lower = "$1:lower()", upper = "$1:upper()",
    reversed = "$1:reverse()", byte = "$1:byte($2)", find = "($1:find($2, $3, true))", concat = "table.concat($1, $2)" }
local WRITES = { append = "table.insert($1, $2)", insert = "table.insert($1, $2 + 1, $3)", sort = "table.sort($1)",
    set_entry = "$1[$2] = $3", Delete = "$1[$2] = nil" }

local function fill(writer, node, pattern)
    return (string.gsub(pattern, "%$(%d)", function(k) return writer.names[node.inputs[tonumber(k)]] end))
end

-- Operators on numbers, booleans, strings, lists and dicts.
local function scalar(writer, node)
    local name = string.match(node.kind, "^aten::(.*)$") or node.kind
    local a, b = writer.names[node.inputs[1]], writer.names[node.inputs[2]]
    local sign = SIGNS[name] or COMPARISONS[name]
    local dict = string.find(writer.types[node.inputs[1]] or "", "^Dict")
    local result = node.outputs[1] or {}
    local text = name == "add" and result.type == "str" and "$1 .. $2" or VALUES[name]
    local write = name == "_set_item" and (dict and "$1[$2] = $3" or "$1[$2 + 1] = $3") or WRITES[name]
    if text and (name ~= "mul" or result.type == "str") and (name ~= "pop" or not b) then
        writer:locals(node, fill(writer, node, text))
    elseif write then
        writer:line(fill(writer, node, write), node.place)
        writer.names[result.name or ""] = a
    elseif sign and b then
        writer:locals(node, string.format("%s %s %s", a, sign, b))
    elseif name == "neg" then
        writer:locals(node, "-" .. a)
    elseif name == "__not__" then
        writer:locals(node, "not " .. a)
    elseif name == "len" then
        writer:locals(node, "#" .. a)
    elseif name == "__getitem__" then
        writer:locals(node, string.format(dict and "%s[%s]" or "%s[%s + 1]", a, b))
    else
        writer:locals(node, string.format("scalar.%s(%s)", name, writer:inputs_text(node)))
    end
end

function Writer:nodes(nodes)
    for _, node in ipairs(nodes) do
        if node.operator then
            self:operator(node)
        else
            (kinds[node.kind] or scalar)(self, node)
        end
    end
end

-- ---- functions ----

-- Names of values that one call of an operator reads and nothing else: true; of all other values that are read: false.
local function find_arguments(block, found)
    for _, node in ipairs(block.nodes) do
        for _, name in ipairs(node.inputs) do
            found[name] = found[name] == nil and node.operator ~= nil and node.operator ~= false
        end
        for _, inner in ipairs(node.blocks or {}) do
            find_arguments(inner, found)
        end
    end
    for _, name in ipairs(block.outputs) do
        found[name] = false
    end
    return found
end

function Writer:fn(head, block)
    local parameters = {}
    for k, input in ipairs(block.inputs) do
        parameters[k] = self:define(input)
    end
    self.arguments_only = find_arguments(block, {})
    self:line(string.format("%s(%s)", head, table.concat(parameters, ", ")))
    self:block(block, function()
        local values = self:values(block.outputs)
        if #values > 0 then
            self:line("return " .. table.concat(values, ", "))
        end
    end)
    self:line("end")
end

--- text(description, name): Lua source that defines a function of that name, and the list of its constants.
function code.text(description, name)
    local writer = setmetatable({ lines = {}, depth = 0, taken = {}, names = {}, types = {}, constants = {}, indices = {}, tensors = {} }, Writer)
    for k, group in ipairs(description.groups) do
        writer:fn(string.format("local function group_%d", k), group)
        writer:line("")
    end
    writer:fn("function " .. writer:new_name(name), description)
    return table.concat(writer.lines, "\n") .. "\n", writer.tensors
end

return code
