-- doctor/onnx.lua: models of ONNX for `tide --doctor FILE`: the fields of protobuf that say what a model is; elements
-- are passed over, so that a model of any size is told in little memory.
local tide = ...
local onnx = {}

local MAX_FIELDS, MAX_TEXT, SHOWN = 500000, 200, 8
local protobuf = tide._require "onnx.protobuf"
local Cut = protobuf.Cut

local dtypes = { "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64",
    "uint32", "uint64", "complex64", "complex128", "bfloat16" }
local foreign = { uint16 = true, string = true, uint32 = true, uint64 = true, complex64 = true, complex128 = true }

local function read_sizes(walk, at, stop)
    local sizes = {}
    walk.fields(at, stop, function(number, _, _, a, b)
        if number == 1 and #sizes < 64 then
            local size = "?"
            walk.fields(a, b, function(field, kind, value, c, d)
                size = field == 1 and kind == 0 and value or field == 2 and walk.text(c, d, MAX_TEXT) or size
            end)
            sizes[#sizes + 1] = size
        end
    end)
    return sizes
end

-- "'x' float32 (N, 3)" of an input or output.
local function read_value(walk, at, stop)
    local name, dtype, sizes = "?", "?", {}
    walk.fields(at, stop, function(number, _, _, a, b)
        if number == 1 then
            name = walk.text(a, b, MAX_TEXT)
        elseif number == 2 then
            walk.fields(a, b, function(field, kind, _, c, d)
                if field == 1 and kind == 2 then
                    walk.fields(c, d, function(inner, _, value, e, f)
                        dtype = inner == 1 and (dtypes[value] or "type " .. tostring(value)) or dtype
                        sizes = inner == 2 and read_sizes(walk, e, f) or sizes
                    end)
                end
            end)
        end
    end)
    return string.format("'%s' %s %s", name, dtype, tide._require("doctor.arrays").shape_text(sizes))
end

local function read_weight(walk, model, at, stop)
    local name, dtype, sizes, outside = "?", "?", {}, false
    walk.fields(at, stop, function(number, kind, value, a, b)
        if number == 1 and kind == 0 then
            sizes[#sizes + 1] = #sizes < 64 and value or nil
        elseif number == 1 then -- packed
            while a < b and #sizes < 64 do
                sizes[#sizes + 1], a = walk.varint(a, b)
            end
        elseif number == 2 and kind == 0 then
            dtype = dtypes[value] or "type " .. value
        elseif number == 8 then
            name = walk.text(a, b, MAX_TEXT)
        elseif number == 14 then
            outside = value == 1
        end
    end)
    tide._require("doctor.arrays").add(model.weights, name, dtype, sizes)
    model.outside = model.outside + (outside and 1 or 0)
    if (foreign[dtype] or string.find(dtype, "^type")) and #model.foreign < SHOWN then
        model.foreign[#model.foreign + 1] = string.format("'%s' is %s", name, dtype)
    end
end

-- Nodes whose operators tide.onnx has not.
local function count_operator(walk, model, at, stop)
    local name, domain = "?", ""
    walk.fields(at, stop, function(number, kind, _, a, b)
        if number == 4 and kind == 2 then
            name = walk.text(a, b, MAX_TEXT)
        elseif number == 7 and kind == 2 then
            domain = walk.text(a, b, MAX_TEXT)
        end
    end)
    name = (domain == "" or domain == "ai.onnx") and name or domain .. "." .. name
    if not tide._require("onnx.operators")[name] then
        model.unknown[name] = (model.unknown[name] or 0) + 1
    end
end

local function read_graph(walk, model, at, stop)
    walk.fields(at, stop, function(number, kind, _, a, b)
        if number == 2 and kind == 2 then
            model.name = walk.text(a, b, MAX_TEXT)
        elseif number == 1 then
            model.nodes = model.nodes + 1
            count_operator(walk, model, a, b)
        elseif number == 5 then
            read_weight(walk, model, a, b)
        elseif (number == 11 or number == 12) and kind == 2 then
            local list = number == 11 and model.inputs or model.outputs
            list[#list + 1] = #list < SHOWN and read_value(walk, a, b) or nil
        end
    end)
end

local function read_model(walk, model, size)
    walk.fields(0, size, function(number, kind, value, a, b)
        if number == 1 and kind == 0 then
            model.version = value
        elseif number == 2 and kind == 2 then
            model.producer = walk.text(a, b, MAX_TEXT)
        elseif number == 7 and kind == 2 then
            model.graph = true
            read_graph(walk, model, a, b)
        elseif number == 8 and kind == 2 then
            walk.fields(a, b, function(field, what, opset)
                model.opset = field == 2 and what == 0 and opset or model.opset
            end)
        end
    end)
end

-- The model, and whether it ends too early.
local function look_at(file)
    local walk = protobuf.walk(file.read, MAX_FIELDS)
    local model = { weights = tide._require("doctor.arrays").new_list(), inputs = {}, outputs = {}, foreign = {}, unknown = {}, nodes = 0, outside = 0 }
    local ok, problem = pcall(read_model, walk, model, file.size)
    if not ok and problem ~= Cut then
        error(problem, 0)
    end
    model.stopped = walk.stopped
    return model, not ok
end

--- is_model(file): do its fields say so? Its name does not count.
function onnx.is_model(file)
    if not string.find(file.read(0, 2), "^\x08[\1-\x20]") then
        return false
    end
    local walk, fields, told = protobuf.walk(file.read, MAX_FIELDS), 0, nil
    pcall(walk.fields, 0, file.size, function(number, kind, _, at, stop)
        fields = fields + 1
        if number > 1 and not told then
            told = (number <= 8 or number == 14 or number == 20 or number == 25) and (kind == 2 or number == 5)
                and (kind == 0 or number == 6 or number == 7 or number == 8 or string.find(walk.text(at, stop, MAX_TEXT), "^[%g ]*$") ~= nil)
        end
        if told == false or fields > 20 then
            error(Cut, 0)
        end
    end)
    -- One whose graph is cut off has said its version, and that a graph follows.
    return told or told == nil and string.find(file.read(2, 1), "[\x12\x3a]") ~= nil
end

--- tell(file, out)
function onnx.tell(file, out)
    out.kind("a model of ONNX")
    local model, cut = look_at(file)
    out.ok("format", "IR version %s, opset %s%s", model.version or "?", model.opset or "?",
        model.producer and model.producer ~= "" and ", by " .. model.producer or "")
    out.ok("graph", "%d nodes%s", model.nodes, model.name and model.name ~= "" and ", '" .. model.name .. "'" or "")
    for _, which in ipairs { "inputs", "outputs" } do
        for k, text in ipairs(model[which]) do
            out.ok(k == 1 and which or "", "%s", text)
        end
    end
    tide._require("doctor.arrays").tell(model.weights, out, "weights")
    for _, which in ipairs(model.foreign) do
        out.problem("dtype", which .. ", which Tide has not")
    end
    if model.outside > 0 then
        out.note("weights", "%d lie in files beside it", model.outside)
    end
    if cut then
        out.problem("length", "cut off, or damaged: a field ends beyond the file", "fetch or write the file again")
    elseif not model.graph then
        out.problem("graph", "it holds no graph")
    elseif model.stopped then
        out.note("fields", "more than %d: no more were looked at", MAX_FIELDS)
    end
    local names = {}
    for name, count in pairs(model.unknown) do
        names[#names + 1] = string.format("%s (%d)", name, count)
    end
    table.sort(names, tide._before)
    if #names > 0 then
        out.problem("operators", "not there, unless they are functions of the model: " .. table.concat(names, ", ", 1, math.min(#names, SHOWN)))
    elseif model.graph and not cut then
        out.ok("reading", "tide.onnx.load runs it")
    end
end

return onnx
