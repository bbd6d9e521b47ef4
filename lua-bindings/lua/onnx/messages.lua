-- onnx/messages.lua: the messages of ONNX that are read, as onnx/protobuf.lua wants them: by each field's number its name and type.
-- https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
local function many(name, kind) return { name, kind, many = true } end

local entry = { [1] = { "key", "text" }, [2] = { "value", "text" } }
local tensor = {
    [1] = many("dims", "int"), [2] = { "data_type", "int" }, [4] = many("float_data", "float"), [5] = many("int32_data", "int"),
    [6] = many("string_data", "text"), [7] = many("int64_data", "int"), [8] = { "name", "text" }, [9] = { "raw_data", "place" },
    [10] = many("double_data", "double"), [11] = many("uint64_data", "int"), [13] = many("external_data", entry),
    [14] = { "data_location", "int" },
}
local sparse = { [1] = { "values", tensor }, [2] = { "indices", tensor }, [3] = many("dims", "int") }

local dim = { [1] = { "size", "int" }, [2] = { "param", "text" } }
local shape = { [1] = many("dim", dim) }
local kind = { [1] = { "tensor", { [1] = { "elem_type", "int" }, [2] = { "shape", shape } } } }
kind[8] = kind[1]
kind[4] = { "sequence", { [1] = { "elem_type", kind } } }
kind[9] = { "optional", { [1] = { "elem_type", kind } } }
local value = { [1] = { "name", "text" }, [2] = { "type", kind } }

local graph, node = {}, {}
local attribute = {
    [1] = { "name", "text" }, [2] = { "f", "float" }, [3] = { "i", "int" }, [4] = { "s", "text" }, [5] = { "t", tensor }, [6] = { "g", graph },
    [7] = many("floats", "float"), [8] = many("ints", "int"), [9] = many("strings", "text"), [10] = many("tensors", tensor),
    [11] = many("graphs", graph), [20] = { "type", "int" }, [21] = { "ref", "text" }, [22] = { "sparse", sparse },
}
node[1], node[2], node[3] = many("input", "text"), many("output", "text"), { "name", "text" }
node[4], node[5], node[7] = { "op_type", "text" }, many("attribute", attribute), { "domain", "text" }
graph[1], graph[2], graph[5] = many("node", node), { "name", "text" }, many("initializer", tensor)
graph[11], graph[12], graph[15] = many("input", value), many("output", value), many("sparse_initializer", sparse)

local opset = { [1] = { "domain", "text" }, [2] = { "version", "int" } }
local fn = {
    [1] = { "name", "text" }, [4] = many("input", "text"), [5] = many("output", "text"), [6] = many("attribute", "text"),
    [7] = many("node", node), [9] = many("opset_import", opset), [10] = { "domain", "text" },
}
local model = {
    [1] = { "ir_version", "int" }, [2] = { "producer", "text" }, [7] = { "graph", graph }, [8] = many("opset_import", opset),
    [14] = many("metadata", entry), [25] = many("functions", fn),
}
return { model = model, graph = graph, tensor = tensor, sequence = {
    [1] = { "name", "text" }, [2] = { "elem_type", "int" }, [3] = many("tensors", tensor), [5] = many("sequences", { [3] = many("tensors", tensor) }) },
    optional = { [1] = { "name", "text" }, [2] = { "elem_type", "int" }, [3] = { "tensor", tensor }, [5] = { "sequence", { [3] = many("tensors", tensor) } } } }
