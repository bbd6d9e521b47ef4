-- onnx.lua: tide.onnx: models of ONNX, read and run. Nothing of a model is executed but operators that Tide knows; what it does not
-- know is listed when the model is loaded.
local tide = ...
local protobuf, messages = tide._require "onnx.protobuf", tide._require "onnx.messages"
local tensors, graph = tide._require "onnx.tensors", tide._require "onnx.graph"
local fail, declare = tide._fail, tide._function
local onnx = {}

local MOST_FIELDS <const> = 20000000

local Model = { __name = "OnnxModel" }
Model.__index = Model
tide._class("OnnxModel", Model)

-- "float32 (N, 3)" of a value's type.
local function type_text(kind)
    if kind and kind.tensor then
        local sizes = {}
        for k, dim in ipairs(kind.tensor.shape and kind.tensor.shape.dim or {}) do
            sizes[k] = dim.size and string.format("%d", dim.size) or dim.param and dim.param ~= "" and tensors.shown(dim.param) or "?"
        end
        return string.format("%s %s", tensors.dtype_name(kind.tensor.elem_type),
            kind.tensor.shape and "(" .. table.concat(sizes, ", ") .. ")" or "of any shape")
    elseif kind and kind.sequence then
        return "sequence"
    end
    return "value"
end

local function port_texts(list)
    local texts = {}
    for k, port in ipairs(list) do
        texts[k] = string.format("%s: %s", tensors.shown(port.name), port.type)
    end
    return table.concat(texts, ", ")
end

function Model:__tostring()
    return string.format("OnnxModel(%d nodes, opset %d; %s -> %s)", #self.block.nodes, self.opset, port_texts(self.inputs), port_texts(self.outputs))
end

-- Operators that are not there, with their counts, the most frequent first.
local function refuse(path, unknown)
    local names = {}
    for name in pairs(unknown) do
        names[#names + 1] = name
    end
    if #names == 0 then
        return
    end
    table.sort(names, function(a, b)
        if unknown[a] ~= unknown[b] then
            return unknown[a] > unknown[b]
        end
        return tide._before(a, b)
    end)
    for k, name in ipairs(names) do
        names[k] = string.format("%s (%d)", tensors.shown(name), unknown[name])
    end
    fail("onnx.load: '%s': operators that are not there: %s", path, table.concat(names, ", "))
end

local function opsets_of(list)
    local opsets = {}
    for _, one in ipairs(list) do
        local domain = (one.domain == nil or one.domain == "ai.onnx") and "" or one.domain
        opsets[domain] = one.version or 1
    end
    return opsets
end

-- Functions of the model as graphs, in an order in which each stands behind those that it calls.
local function read_functions(model, context)
    for _, fn in ipairs(model.functions) do
        local inner = setmetatable({ opsets = opsets_of(fn.opset_import) }, { __index = context })
        local inputs, outputs = {}, {}
        for k, name in ipairs(fn.input) do
            inputs[k] = { name = name }
        end
        for k, name in ipairs(fn.output) do
            outputs[k] = { name = name }
        end
        local block = graph.prepare({ node = fn.node, input = inputs, output = outputs, initializer = {}, sparse_initializer = {} }, inner)
        local domain = (fn.domain == nil or fn.domain == "ai.onnx" or fn.domain == "") and "" or fn.domain .. "."
        context.functions[domain .. tostring(fn.name)] = block
    end
end

local function ports(names, types)
    local list = {}
    for k, name in ipairs(names) do
        list[k] = { name = name, type = type_text(types[name]) }
    end
    return list
end

-- The message that a file is.
local function read_message(file, description)
    local size = file:size()
    local walk = protobuf.walk(function(at, n) return at < size and file:read(at, math.min(n, size - at)) or "" end, MOST_FIELDS)
    local message = protobuf.read(walk, description, 0, size)
    if walk.stopped then
        tensors.wrong("it has more than %d fields", MOST_FIELDS)
    end
    return message
end

local function read(path, file)
    local message = read_message(file, messages.model)
    if not message.graph then
        tensors.wrong("no model of ONNX: it has no graph")
    end
    local context = { file = file, folder = string.match(path, "^(.*/)") or "./", opsets = opsets_of(message.opset_import), functions = {}, unknown = {} }
    read_functions(message, context)
    local block = graph.prepare(message.graph, context)
    if #block.captures > 0 then
        tensors.wrong("'%s' is read, and nobody makes it", tensors.shown(block.captures[1]))
    end
    refuse(path, context.unknown)
    local inputs = {}
    for _, name in ipairs(block.inputs) do -- weights may be named among the inputs
        inputs[#inputs + 1] = block.constants[name] == nil and name or nil
    end
    return setmetatable({ block = block, opset = context.opsets[""] or 0, producer = message.producer, path = path,
        inputs = ports(inputs, block.types), outputs = ports(block.outputs, block.types) }, Model)
end

-- Calls read and tells what is wrong with a file by its path.
local function guarded(fname, path, fn, ...)
    local results = table.pack(pcall(fn, ...))
    if results[1] then
        return table.unpack(results, 2, results.n)
    end
    local problem = results[2]
    if problem == protobuf.Cut then
        fail("%s: '%s': cut off, or no protobuf", fname, path)
    elseif type(problem) == "table" and problem.onnx then
        fail("%s: '%s': %s", fname, path, problem.onnx)
    end
    error(problem, 0)
end

onnx.load = declare("load(str path) -> OnnxModel",
    "A model of ONNX (opsets 1 to 22), to be called with tensors in the order of its inputs, or with a table of them by name; its results are its outputs. Weights may lie in files beside it. model.inputs and model.outputs name them with dtypes and shapes; model:weights() are its tensors by name; tide.jit.trace(model, {x}) makes it a graph. Operators that are not there are listed with their counts.",
    function(path)
        local file <close> = tide._file_open(path, nil, "onnx.load")
        return guarded("onnx.load", path, read, path, file)
    end)

onnx.operators = declare("operators() -> list", "Names of ONNX's operators that models may have.", function()
    local names = {}
    for name in pairs(tide._require "onnx.operators") do
        names[#names + 1] = name
    end
    table.sort(names, tide._before)
    return names
end)

--- weights(): the tensors that the model holds, by name.
function Model:weights()
    local all = {}
    for name, x in pairs(self.block.constants) do
        all[name] = x
    end
    return all
end

-- A model's inputs by name, of a call's arguments.
local function inputs_of(self, ...)
    local values, first = {}, ...
    local given = select("#", ...)
    if given == 1 and type(first) == "table" and getmetatable(first) == nil and #self.inputs > 0 and first[1] == nil then
        for name, x in pairs(first) do
            local known = false
            for _, port in ipairs(self.inputs) do
                known = known or port.name == name
            end
            if not known and self.block.constants[name] == nil then
                fail("OnnxModel: no input '%s': there are %s", tensors.shown(tostring(name)), port_texts(self.inputs))
            end
            values[name] = x
        end
    else
        if given > #self.inputs then
            fail("OnnxModel: %d inputs, the model has %d: %s", given, #self.inputs, port_texts(self.inputs))
        end
        for k = 1, given do
            values[self.inputs[k].name] = (select(k, ...))
        end
    end
    return values
end

function Model:__call(...)
    local values = inputs_of(self, ...)
    for _, port in ipairs(self.inputs) do
        if values[port.name] == nil and port.type == "value" then -- one that may be missing
            values[port.name] = tide._require("onnx.common").NOTHING
        elseif values[port.name] == nil then
            fail("OnnxModel: input '%s' (%s) is missing", tensors.shown(port.name), port.type)
        end
    end
    local outputs = guarded("OnnxModel", self.path, graph.run, self.block, values)
    return table.unpack(outputs, 1, #self.outputs)
end

-- A tensor, a list of tensors, or nil of a message.
local function read_value(file, kind)
    local message = read_message(file, messages[kind])
    if kind == "optional" then
        message = message.sequence or message.tensor
    end
    if not message or not message.tensors then
        return message and tensors.read(message, file)
    end
    local list = {}
    for k, entry in ipairs(message.tensors) do
        list[k] = tensors.read(entry, file)
    end
    return list
end

--- _read_value(path, kind): the value of a file with one "tensor", "sequence" or "optional", as ONNX's test data have them.
function onnx._read_value(path, kind)
    local file <close> = tide._file_open(path, nil, "onnx")
    return guarded("onnx", path, read_value, file, kind)
end

-- ---- writing ----

-- Bit d of the k-th mask, and the names of dims: what `dynamic` says of the inputs, {x = {1}} or {x = {[1] = "batch"}}.
local function read_dynamic(dynamic, names, inputs)
    local masks, dims, known = {}, {}, {}
    for k, name in ipairs(names) do
        masks[k], dims[k], known[name] = 0, {}, k
    end
    for name, list in pairs(dynamic or {}) do
        local k = known[name]
        if not k or type(list) ~= "table" then
            fail("onnx.export: dynamic: %s", k and string.format("a list of dims of '%s' expected, got %s", name, tide._describe(list))
                or string.format("no input '%s': there are %s", tostring(name), table.concat(names, ", ")))
        end
        for at, what in pairs(list) do
            local dim = type(what) == "string" and at or what
            if math.type(dim) ~= "integer" or dim < 1 or dim > inputs[k]:dim() then
                fail("onnx.export: dynamic: dims of '%s' are 1 to %d, got %s", name, inputs[k]:dim(), tide._describe(dim))
            end
            masks[k] = masks[k] | 1 << dim - 1
            dims[k][dim] = type(what) == "string" and what or string.format("%s_%d", name, dim)
        end
    end
    return masks, dims
end

-- Inputs that lie twice along the dims that are dynamic.
local function doubled(inputs, dims)
    local given = {}
    for k, x in ipairs(inputs) do
        given[k] = x:detach()
        for dim in pairs(dims[k]) do
            given[k] = tide.cat({ given[k], given[k] }, dim)
        end
    end
    return given
end

-- The first output of the model that was written which is not the function's; nothing where all are. Lists among the results are not
-- looked at. Where the function rounds to bytes, sums that lie between two of them may be rounded to either.
local function first_difference(f, path, inputs, rounds)
    local _ <close> = tide.no_grad()
    local wanted, written = table.pack(f(table.unpack(inputs))), table.pack(onnx.load(path)(table.unpack(inputs)))
    for k = 1, written.n do
        local a, b = wanted[k], written[k]
        local near = tide.is_tensor(a) and a:is_floating_point() and { rtol = 1e-3, atol = 1e-4, equal_nan = true } or { rtol = 0, atol = 0 }
        if rounds and near.rtol > 0 and a:numel() > 0 then
            near.atol = 0.02 * a:abs():amax():item()
        end
        if tide.is_tensor(a) and (a:dim() ~= b:dim() or not tide.allclose(a:to(tide.float64), b:to(tide.float64), near)) then
            return k
        end
    end
end

local function check_written(f, path, inputs, dims, rounds)
    local k = first_difference(f, path, inputs, rounds)
    if k then
        fail("onnx.export: output %d of the model that was written is not the function's", k)
    end
    for _, list in ipairs(dims) do
        if next(list) then
            local ran, differs = pcall(first_difference, f, path, doubled(inputs, dims), rounds)
            if not ran or differs then
                fail("onnx.export: dynamic: the function holds for one size alone%s: compile it with tide.jit.script, or leave dynamic out",
                    ran and "" or " (" .. string.gsub(tostring(differs), "\n.*", "") .. ")")
            end
            return
        end
    end
end

local function check_names(option, names)
    for k, name in ipairs(names or {}) do
        if type(name) ~= "string" or name == "" then
            fail("onnx.export: %s: name %d: a text expected, got %s", option, k, tide._describe(name))
        end
    end
end

-- Input names as the graph has them, without what makes them unique, or those that are wanted.
local function input_names_of(f, names)
    local list = {}
    for k, input in ipairs(tide._script.describe(f).inputs) do
        list[k] = names and names[k] or (string.gsub(input.name, "%.%d+$", ""))
    end
    if names and #names ~= #list then
        fail("onnx.export: input_names: %d names for %d inputs", #names, #list)
    end
    return list
end

onnx.export = declare("export(any f, Tensor|Tensor[] inputs, str path, *, list? input_names=nil, list? output_names=nil, table? dynamic=nil, bool check=true)",
    "Writes a ScriptFunction, or a module or function, which is traced with these inputs, as a model of ONNX (opset 18). The inputs say dtypes and sizes; dynamic names dims that may have any size: {x = {1}} or {x = {[1] = \"batch\"}}. What ONNX has no form for is refused with its line; layers of bytes are written as layers of floats between QuantizeLinear and DequantizeLinear. check runs the model that was written beside the function. Indices count from 1 where the function counts so; what it prints and asserts is left out.",
    function(f, inputs, path, input_names, output_names, dynamic, check)
        local small
        inputs = tide.is_tensor(inputs) and { inputs } or inputs
        for k, x in ipairs(inputs) do
            if x.is_quantized then
                fail("onnx.export: '%s': input %d is %s: models take floats, and quantize them themselves", path, k,
                    string.match(tostring(x.dtype), "%w+$"))
            end
        end
        if tide.nn.is(f, tide.nn.Module) then
            guarded("onnx.export", path, function() small = tide._require("onnx.export_quantized").in_floats(f) end)
            f = small or f
        end
        if not tide._script.is(f) then
            f = tide.jit.trace(f, inputs, { check = false })
        end
        check_names("input_names", input_names)
        check_names("output_names", output_names)
        local names = input_names_of(f, input_names)
        local masks, dims = read_dynamic(dynamic, names, inputs)
        guarded("onnx.export", path, function()
            local description = tide._script.operators(f, masks, table.unpack(inputs))
            local pieces = tide._require("onnx.export").pieces(description, { name = tide._script.name(f), input_names = names,
                output_names = output_names or {}, dynamic = dims })
            tide._write(path, "onnx.export", table.unpack(pieces))
        end)
        if check then
            check_written(f, path, inputs, dims, small ~= nil)
        end
    end)

tide._document(onnx, "onnx", "tide.onnx", "Models of ONNX: tide.onnx.load(path) reads one, and calling it runs it, with gradients where they are wanted. "
    .. "tide --doctor FILE says what a model is and what of it is not there.")

return onnx
