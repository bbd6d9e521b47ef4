-- onnx/export.lua: a graph of script mode as a model of ONNX (opset 18). The graph is rewritten for the inputs that are given until it is
-- of single operators of known dtypes; then each node becomes nodes of ONNX, as the files export_*.lua say by the operator's name.
local tide = ...
local tensors, encode, messages = tide._require "onnx.tensors", tide._require "onnx.encode", tide._require "onnx.messages"
local wrong = tensors.wrong
local export = {}

local OPSET <const>, IR_VERSION <const> = 18, 8

-- ---- types ----

local DTYPES <const> = { Float = "float32", Double = "float64", Half = "float16", BFloat16 = "bfloat16", Long = "int64", Int = "int32",
    Short = "int16", Char = "int8", Byte = "uint8", Bool = "bool" }
local SCALARS <const> = { int = "int64", float = "float64", bool = "bool" }

-- {dtype = "float32", sizes = {2, false, 3}} of "Float(2, *, 3, device=cpu)"; a size that is not known is false, and without a number
-- of dims there are no sizes. Numbers are tensors without dims.
local function read_type(text)
    if SCALARS[text] then
        return { dtype = SCALARS[text], sizes = {}, number = true }
    end
    local name, rest = string.match(text, "^(%w+)%((.*)%)$")
    if string.find(text, "[%]?)]$") and not name then
        return {}
    end
    local kind = { dtype = DTYPES[name or text] }
    if rest and not string.find(rest, "^%.%.%.") then
        kind.sizes = {}
        for word in string.gmatch(rest, "[^,]+") do
            word = string.gsub(word, "%s", "")
            if not string.find(word, "^[%d*]+$") then
                break
            end
            kind.sizes[#kind.sizes + 1] = math.tointeger(tonumber(word)) or false
        end
    end
    return kind
end

-- ---- writing nodes ----

-- A value of the model: {name}; `made`: by a node, which may give it another name.
local Writer = {}
Writer.__index = Writer

local ATTRIBUTES <const> = { FLOAT = 1, INT = 2, STRING = 3, TENSOR = 4, GRAPH = 5, FLOATS = 6, INTS = 7 }

local function attribute(name, value)
    if math.type(value) == "integer" then
        return { name = name, i = value, type = ATTRIBUTES.INT }
    elseif type(value) == "number" then
        return { name = name, f = value, type = ATTRIBUTES.FLOAT }
    elseif type(value) == "string" then
        return { name = name, s = value, type = ATTRIBUTES.STRING }
    elseif value.node then
        return { name = name, g = value, type = ATTRIBUTES.GRAPH }
    elseif value.data_type then
        return { name = name, t = value, type = ATTRIBUTES.TENSOR }
    elseif math.type(value[1]) == "float" then
        return { name = name, floats = value, type = ATTRIBUTES.FLOATS }
    end
    return { name = name, ints = value, type = ATTRIBUTES.INTS }
end

-- What all blocks of a model share: names that are taken, weights, and where they came from.
local function new_shared() return { taken = {}, count = 0, initializers = {}, by_key = {} } end

local function new_writer(shared, outer)
    return setmetatable({ shared = shared, nodes = {}, values = setmetatable({}, { __index = outer and outer.values }),
        types = setmetatable({}, { __index = outer and outer.types }), constants = setmetatable({}, { __index = outer and outer.constants }) }, Writer)
end

function Writer:fresh(base)
    local name
    repeat
        self.shared.count = self.shared.count + 1
        name = string.format("%s_%d", base, self.shared.count)
    until not self.shared.taken[name]
    self.shared.taken[name] = true
    return { name = name }
end

--- Writer:node(op, inputs, attributes, outputs): the outputs of another node, one unless said. Inputs may have holes; `inputs.n` is their
--- number then.
function Writer:node(op, inputs, attributes, outputs)
    local node = { op_type = op, input = {}, output = {}, attribute = {} }
    for k = 1, inputs.n or #inputs do
        node.input[k] = inputs[k] or { name = "" }
    end
    while #node.input > 0 and node.input[#node.input].name == "" do
        table.remove(node.input)
    end
    local names = {}
    for name in pairs(attributes or {}) do
        names[#names + 1] = name
    end
    table.sort(names)
    for k, name in ipairs(names) do
        node.attribute[k] = attribute(name, attributes[name])
    end
    for k = 1, outputs or 1 do
        node.output[k] = self:fresh(op)
        node.output[k].made = true
    end
    self.nodes[#self.nodes + 1] = node
    return table.unpack(node.output)
end

--- Writer:tensor(x): a weight, by value; the same tensor is written once.
function Writer:tensor(x)
    local shared = self.shared
    local key = string.format("%d %s %s %s", x:data_ptr(), x.dtype, table.concat(x.shape, ","), table.concat(x:stride(), ","))
    if not shared.by_key[key] or x:numel() == 0 then
        shared.by_key[key] = self:fresh("weight")
        table.insert(shared.initializers, { value = shared.by_key[key], tensor = x:detach():cpu():contiguous() })
    end
    return shared.by_key[key]
end

local function key_of(list, dtype)
    local words = { dtype }
    for k, number in ipairs(list) do
        words[k + 1] = string.format(math.type(number) == "integer" and "%d" or "%a", number)
    end
    return table.concat(words, " ")
end

-- A small tensor of numbers, kept once for each content. `dims`: 1, or 0 for one number.
function Writer:numbers(list, dtype, dims)
    local key = key_of(list, dtype) .. ":" .. dims
    local value = self.shared.by_key[key]
    if not value then
        value = self:tensor(tide.tensor(dims == 0 and list[1] or list, { dtype = tide[dtype] }))
        self.shared.by_key[key] = value
    end
    return value
end

--- Writer:ints(list): int64 of one dim. Writer:number(value, dtype): one number without dims.
function Writer:ints(list) return self:numbers(list, "int64", 1) end
function Writer:number(value, dtype)
    if value == true or value == false then
        value = value and 1 or 0
    end
    return self:numbers({ value }, dtype, 0)
end

function Writer:cast(value, from, to)
    return from == to and value or self:node("Cast", { value }, { to = tensors.dtype_number(to) })
end

-- ---- values of the graph ----

--- Writer:value(name): the model's value of a tensor or number of the graph; of a list of tensors a list of them.
function Writer:value(name)
    local value = self.values[name]
    if value then
        return value
    end
    local constant = self.constants[name]
    if not constant then
        wrong("a value of type %s has no form in ONNX", self.types[name] and self.types[name].text or "?")
    end
    local what = constant.what
    if what == "tensor" then
        value = self:tensor(constant.constant)
    elseif what == "int" or what == "float" or what == "bool" then
        value = self:number(constant.constant, SCALARS[what])
    elseif what == "ints" then
        value = self:ints(constant.constant)
    else
        wrong("a constant of kind %s stands where a tensor is wanted", what)
    end
    self.values[name] = value
    return value
end

--- Writer:type(name): {dtype, sizes} of a value of the graph.
function Writer:type(name) return self.types[name] or {} end

--- Writer:size_list(name): ints as a tensor of one dim, be they constant or worked out.
function Writer:size_list(name)
    local constant, list = self.constants[name], self.values[name]
    if constant then
        return self:ints(type(constant.constant) == "table" and constant.constant or { constant.constant })
    elseif list and list.names then
        local parts = {}
        for k, entry in ipairs(list.names) do
            local known = self.constants[entry]
            parts[k] = known and self:ints { known.constant } or self:node("Reshape", { self:value(entry), self:ints { 1 } })
        end
        return #parts == 1 and parts[1] or #parts == 0 and self:ints {} or self:node("Concat", parts, { axis = 0 })
    end
    return self:value(name)
end

-- ---- arguments of an operator ----

-- What a file export_*.lua sees of a node: arguments by the parameters' names.
local Call = {}
Call.__index = Call

function Call:name_of(parameter) return self.places[parameter] and self.node.inputs[self.places[parameter]] end

--- Call:has(parameter): is it there, and not nil?
function Call:has(parameter)
    local name = self:name_of(parameter)
    local constant = name and self.writer.constants[name]
    return name ~= nil and not (constant and constant.what == "nil")
end

--- Call:get(parameter, default): the constant that it is; raises where it is worked out.
function Call:get(parameter, default)
    if not self:has(parameter) then
        return default
    end
    local name = self:name_of(parameter)
    local constant = self.writer.constants[name]
    if constant then
        return constant.constant
    end
    local list = self.writer.values[name]
    local out = {}
    for k, entry in ipairs(list and list.names or { false }) do
        local known = entry and self.writer.constants[entry]
        if not known then
            wrong("%s: '%s' is worked out while the model runs, ONNX wants it fixed", self.node.kind, parameter)
        end
        out[k] = known.constant
    end
    return out
end

--- Call:list(parameter, default): the same as a list: one number is a list of one.
function Call:list(parameter, default)
    local value = self:get(parameter, default)
    return type(value) == "table" and value or { value }
end

--- Call:tensor(parameter): its value, nil where it is not there. Call:type(parameter): {dtype, sizes}.
function Call:tensor(parameter) return self:has(parameter) and self.writer:value(self:name_of(parameter)) or nil end
function Call:type(parameter) return self.writer:type(self:name_of(parameter)) end

--- Call:dtype(parameter): "float32"; raises where it is not known.
function Call:dtype(parameter)
    return self:type(parameter).dtype or wrong("%s: the dtype of '%s' is not known: give inputs of other types", self.node.kind, parameter)
end

--- Call:sizes(parameter): its sizes, false where one is not known; raises where the number of dims is not known.
function Call:sizes(parameter)
    return self:type(parameter).sizes or wrong("%s: the number of dims of '%s' is not known", self.node.kind, parameter)
end

--- Call:known_sizes(parameter): the same, raising where one of them is not known.
function Call:known_sizes(parameter)
    local sizes = self:sizes(parameter)
    for d, size in ipairs(sizes) do
        if not size then
            wrong("%s: dim %d of '%s' may be of any size, ONNX wants it fixed", self.node.kind, d, parameter)
        end
    end
    return sizes
end

--- Call:result(k): {dtype, sizes} of an output.
function Call:result(k) return self.writer:type(self.node.outputs[k or 1].name) end
function Call:result_dtype(k) return self:result(k).dtype or wrong("%s: the dtype of its result is not known", self.node.kind) end

--- Call:operand(parameter, dtype): a tensor or number as a value of this dtype.
function Call:operand(parameter, dtype)
    local name = self:name_of(parameter)
    local constant = self.writer.constants[name]
    if constant and constant.what ~= "tensor" then
        return self.writer:number(constant.constant, dtype)
    end
    return self.writer:cast(self.writer:value(name), self:dtype(parameter), dtype)
end

-- ---- nodes ----

local families = {}
for _, family in ipairs { "elements", "shapes", "layers" } do
    families[#families + 1] = tide._require("onnx.export_" .. family)
end
families[#families + 1] = tide._require("onnx.export_quantized").writers
local numbers = tide._require "onnx.export_numbers"

local function writer_of(node)
    for _, family in ipairs(families) do
        local fn = family[node.kind]
        if fn then
            return fn
        end
    end
end

-- A call in place makes another value of its first argument, which holds as long as nobody sees the old one through a view.
local function check_in_place(self, node)
    local name = node.inputs[1]
    if self.viewed[name] or not self.made[name] then
        wrong("%s_ writes in place into %s", node.kind,
            self.made[name] and "what others see" or "an input or a constant (a module's buffer: call eval() before)")
    end
end

function Writer:write_operator(node)
    local places, fn = {}, writer_of(node)
    if not fn then
        wrong("no form in ONNX for it")
    end
    for k, parameter in ipairs(node.params) do
        places[parameter.name] = k
    end
    if node.inplace then
        check_in_place(self, node)
    end
    local results = table.pack(fn(setmetatable({ writer = self, node = node, places = places }, Call), self))
    for k, output in ipairs(node.outputs) do
        self.values[output.name] = results[k]
        self.made[output.name] = true
    end
    if node.view then
        self.viewed[node.inputs[1]], self.viewed[node.outputs[1].name] = true, true
    end
    if node.inplace then
        self.values[node.inputs[1]] = results[1]
    end
end

-- A block of a branch or a loop as a graph of its own; `inputs`: names of the graph's values that are the block's.
function Writer:inner_graph(block, prepare)
    local inner = new_writer(self.shared, self)
    inner.made, inner.viewed = setmetatable({}, { __index = self.made }), setmetatable({}, { __index = self.viewed })
    local inputs = prepare and prepare(inner) or {}
    inner:write_block(block)
    local outputs = {}
    for k, name in ipairs(block.outputs) do -- each of a name of its own, made within
        outputs[k] = { value = inner:node("Identity", { inner:value(name) }), type = inner:type(name) }
    end
    return { node = inner.nodes, name = self:fresh("graph").name, inputs = inputs, outputs = outputs }
end

local CONTROL = {}

CONTROL["prim::Constant"] = function(self, node)
    self.constants[node.outputs[1].name] = node
end

CONTROL["prim::ListConstruct"] = function(self, node)
    self.values[node.outputs[1].name] = { names = { table.unpack(node.inputs) }, block = self }
end

CONTROL["prim::TupleConstruct"] = CONTROL["prim::ListConstruct"]

CONTROL["prim::ListUnpack"] = function(self, node)
    local list = self:value(node.inputs[1])
    for k, output in ipairs(node.outputs) do
        self.values[output.name] = list.names and self:value(list.names[k]) or list.list and list.list[k] or wrong("a list that ONNX has not")
        self.made[output.name], self.viewed[output.name] = true, true
    end
end

CONTROL["prim::TupleUnpack"] = CONTROL["prim::ListUnpack"]

CONTROL["prim::TupleIndex"] = function(self, node)
    local list, index = self:value(node.inputs[1]), self.constants[node.inputs[2]]
    self.values[node.outputs[1].name] = self:value(list.names[index.constant + 1])
end

CONTROL["prim::unchecked_cast"] = function(self, node)
    self.values[node.outputs[1].name] = self:value(node.inputs[1])
end

-- Writes an entry of a list that this block made: with the names of its entries the list is another.
local function write_entry(place_of)
    return function(self, node)
        local list = self:value(node.inputs[1])
        local place = place_of(self, node, #(list.names or {}))
        if list.block ~= self or not place then
            wrong("a list that grows in a branch or a loop, or whose place is worked out")
        end
        list.names[place] = node.inputs[#node.inputs]
        self.values[node.outputs[1].name] = list
    end
end

CONTROL["aten::append"] = write_entry(function(_, _, n) return n + 1 end)
CONTROL["aten::set_entry"] = write_entry(function(self, node)
    local index = self.constants[node.inputs[2]]
    return index and index.constant
end)

-- A model says nothing and refuses nothing of what it is given.
CONTROL["prim::Print"] = function() end

-- Does a block nothing but say or refuse something?
local function only_refuses(block)
    for _, node in ipairs(block.nodes) do
        if node.operator or node.kind ~= "prim::RaiseException" and node.kind ~= "prim::Print" and node.kind ~= "prim::Constant" and
            node.kind ~= "aten::str" and node.kind ~= "aten::add" and node.kind ~= "aten::format" then
            return false
        end
    end
    return #block.outputs == 0
end

CONTROL["prim::If"] = function(self, node)
    if only_refuses(node.blocks[1]) and only_refuses(node.blocks[2]) then
        return
    end
    local outputs = table.pack(self:node("If", { self:value(node.inputs[1]) },
        { then_branch = self:inner_graph(node.blocks[1]), else_branch = self:inner_graph(node.blocks[2]) }, #node.outputs))
    for k, output in ipairs(node.outputs) do
        self.values[output.name] = outputs[k]
    end
end

-- What a model runs is not recorded, so modes of recording change nothing.
CONTROL["prim::With"] = function(self, node)
    if node.mode.name == "autocast" then
        wrong("autocast within a function: trace it, so that its casts are calls")
    end
    self:write_block(node.blocks[1])
    for k, output in ipairs(node.outputs) do
        self.values[output.name] = self:value(node.blocks[1].outputs[k])
        self.made[output.name] = self.made[node.blocks[1].outputs[k]]
    end
end

CONTROL["prim::Loop"] = function(self, node)
    local inputs, block = {}, node.blocks[1]
    for k, name in ipairs(node.inputs) do
        inputs[k] = self:value(name)
    end
    local body = self:inner_graph(block, function(inner)
        local list = { { value = inner:fresh("trip"), type = { dtype = "int64", sizes = {} } }, { value = inner:fresh("condition"), type = { dtype = "bool", sizes = {} } } }
        inner.values[block.inputs[1].name] = list[1].value
        for k = 2, #block.inputs do
            local input = block.inputs[k]
            inner.types[input.name] = read_type(input.type)
            list[k + 1] = { value = inner:fresh("carried"), type = inner.types[input.name] }
            inner.values[input.name] = list[k + 1].value
        end
        inner.types[block.inputs[1].name] = list[1].type
        return list
    end)
    local outputs = table.pack(self:node("Loop", inputs, { body = body }, #node.outputs))
    for k, output in ipairs(node.outputs) do
        self.values[output.name] = outputs[k]
    end
end

-- Writes the nodes of a block; what can't be written raises its kind and place.
function Writer:write_block(block)
    for _, node in ipairs(block.nodes) do
        for _, output in ipairs(node.outputs) do
            self.types[output.name] = read_type(output.type)
            self.types[output.name].text = output.type
        end
        local fn = node.operator and Writer.write_operator or CONTROL[node.kind]
        local ok, problem
        if fn then
            ok, problem = pcall(fn, self, node)
        elseif numbers[node.kind] then
            ok, problem = pcall(function() self.values[node.outputs[1].name] = numbers[node.kind](self, node) end)
        else
            ok, problem = false, { onnx = "no form in ONNX for it" }
        end
        if not ok then
            if type(problem) == "table" and problem.onnx and not problem.placed then
                local kind = node.operator and node.kind or string.gsub(node.kind, "^%w+::", "")
                problem = { onnx = string.format("%s%s%s", node.place and node.place .. ": " or "",
                    string.find(problem.onnx, kind, 1, true) == 1 and "" or kind .. ": ", problem.onnx), placed = true }
            end
            error(problem, 0)
        end
    end
end

-- ---- the model ----

local function value_message(value, kind, dims)
    local shape = kind.sizes and { dim = {} }
    for d, size in ipairs(kind.sizes or {}) do
        local named = dims and dims[d]
        shape.dim[d] = (named or not size) and { param = named or value.name .. "_" .. d } or { size = size }
    end
    return { name = value.name, type = { tensor = { elem_type = tensors.dtype_number(kind.dtype or wrong("the dtype of '%s' is not known", value.name)),
        shape = shape } } }
end

-- Values by their names, in all nodes and the graphs in them.
local function settle(nodes)
    for _, node in ipairs(nodes) do
        for _, list in ipairs { node.input, node.output } do
            for k, value in ipairs(list) do
                list[k] = value.name
            end
        end
        for _, one in ipairs(node.attribute) do
            local inner = one.g
            if inner then
                settle(inner.node)
                inner.input, inner.output = {}, {}
                for k, port in ipairs(inner.inputs) do
                    inner.input[k] = value_message(port.value, port.type)
                end
                for k, port in ipairs(inner.outputs) do
                    inner.output[k] = value_message(port.value, port.type)
                end
            end
        end
    end
end

-- The graph's inputs as the model's, under the names that are wanted.
local function add_inputs(self, description, names, dynamic)
    local messages_of = {}
    for k, input in ipairs(description.inputs) do
        local name = names[k]
        if self.shared.taken[name] then
            wrong("two inputs of the name '%s'", name)
        end
        self.shared.taken[name] = true
        self.values[input.name] = { name = name }
        self.types[input.name] = read_type(input.type)
        messages_of[k] = value_message(self.values[input.name], self.types[input.name], dynamic[k])
    end
    return messages_of
end

-- The graph's results as the model's outputs: values of their own names, made by a node each.
local function add_outputs(self, description, names)
    local wanted, list = {}, {}
    for _, name in ipairs(description.outputs) do
        local value = rawget(self.values, name)
        if value and value.names then -- a list or tuple: its parts are outputs
            table.move(value.names, 1, #value.names, #wanted + 1, wanted)
        else
            wanted[#wanted + 1] = name
        end
    end
    if #names > #wanted then
        wrong("%d names for %d outputs", #names, #wanted)
    end
    for k, name in ipairs(wanted) do
        local value = self:value(name)
        if value.list then
            wrong("output %d is a list, whose tensors have to be outputs of their own", k)
        end
        local out = { name = names[k] or "output" .. k }
        if self.shared.taken[out.name] then
            wrong("two values of the name '%s'", out.name)
        end
        self.shared.taken[out.name] = true
        if value.made then -- by a node of this graph, whose output has no other name yet
            value.name, value.made = out.name, nil
        else
            self.nodes[#self.nodes + 1] = { op_type = "Identity", input = { value }, output = { out }, attribute = {} }
        end
        list[k] = value_message(out, self:type(name))
    end
    return list
end

local function initializer_messages(shared)
    local list = {}
    for k, one in ipairs(shared.initializers) do
        local x = one.tensor
        list[k] = { name = one.value.name, dims = { table.unpack(x.shape) }, data_type = tensors.dtype_number(tensors.dtype_of(x)), raw_data = x }
    end
    return list
end

--- pieces(description, options): the model of a graph (lua-bindings/script/script_describe.c) as pieces of a file. Options: name,
--- input_names, output_names, and dynamic: for each input, names of dims by their number.
function export.pieces(description, options)
    local self = new_writer(new_shared())
    self.made, self.viewed = {}, {}
    local inputs = add_inputs(self, description, options.input_names, options.dynamic)
    self:write_block(description)
    local outputs = add_outputs(self, description, options.output_names)
    settle(self.nodes)
    return encode.pieces({ ir_version = IR_VERSION, producer = "tide", opset_import = { { domain = "", version = OPSET } },
        graph = { name = options.name, node = self.nodes, input = inputs, output = outputs, initializer = initializer_messages(self.shared) } },
        messages.model)
end

return export
