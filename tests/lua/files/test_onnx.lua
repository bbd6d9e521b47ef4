-- test_onnx.lua: models of ONNX that are written here byte by byte: what runs, and what is wrong with a model in one line. What
-- operators compute is held against ONNX's own data by tests/onnx.
local t = require "harness"

-- ---- a writer of protobuf ----

local function varint(n)
    local out = {}
    repeat
        local b = n & 127
        n = n >> 7
        out[#out + 1] = string.char(n ~= 0 and b | 128 or b)
    until n == 0
    return table.concat(out)
end
local function int(field, value) return varint(field << 3) .. varint(value) end
local function bytes(field, text) return varint(field << 3 | 2) .. varint(#text) .. text end

local function tensor(name, kind, dims, raw, more)
    local sizes = {}
    for k, size in ipairs(dims) do
        sizes[k] = int(1, size)
    end
    return table.concat(sizes) .. int(2, kind) .. bytes(8, name) .. (raw and bytes(9, raw) or "") .. (more or "")
end
local function float(field, value) return varint(field << 3 | 5) .. string.pack("<f", value) end
local function attribute(name, kind, text) return bytes(5, bytes(1, name) .. text .. int(20, kind)) end
local function node(kind, inputs, outputs, more)
    local out = {}
    for _, name in ipairs(inputs) do
        out[#out + 1] = bytes(1, name)
    end
    for _, name in ipairs(outputs) do
        out[#out + 1] = bytes(2, name)
    end
    return bytes(1, table.concat(out) .. bytes(4, kind) .. (more or ""))
end
local function port(field, name, kind)
    return bytes(field, bytes(1, name) .. bytes(2, bytes(1, int(1, kind or 1) .. bytes(2, bytes(1, bytes(2, "N"))))))
end
local function model(graph, more) return int(1, 8) .. bytes(2, "tests") .. bytes(8, int(2, 13)) .. bytes(7, graph) .. (more or "") end

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local path = folder .. "/m.onnx"

local function put(text, name)
    local f <close> = assert(io.open(name or path, "wb"))
    f:write(text)
end
local function load(text)
    put(text)
    return tide.onnx.load(path)
end

local two = string.pack("<ff", 2, 3)
local scaled = node("Mul", { "x", "w" }, { "p" }) .. node("Relu", { "p" }, { "y" }) .. bytes(5, tensor("w", 1, { 2 }, two)) ..
    port(11, "x") .. port(12, "y")

-- ---- what runs ----

t.test("a_model_runs_with_inputs_in_order_or_by_name", function()
    local m = load(model(scaled))
    t.eq(m(tide.tensor { 1.0, -1 }):tolist(), { 2, 0 })
    t.eq(m { x = tide.tensor { 1.0, 1 } }:tolist(), { 2, 3 })
    t.eq(m { x = tide.tensor { 1.0, 1 }, w = tide.tensor { 5.0, 5 } }:tolist(), { 5, 5 }) -- a weight may be given
    t.eq(tostring(m), "OnnxModel(2 nodes, opset 13; x: float32 (N) -> y: float32 (N))")
    t.eq(m:weights().w:tolist(), { 2, 3 })
    t.is_true(#tide.onnx.operators() > 170)
end)

t.test("gradients_go_through_a_model", function()
    local x = tide.tensor({ 1.0, -1 }, { requires_grad = true })
    load(model(scaled))(x):sum():backward()
    t.eq(x.grad:tolist(), { 2, 0 })
end)

t.test("nodes_may_stand_in_any_order_and_graphs_read_what_is_around_them", function()
    local m = load(model(node("Relu", { "p" }, { "y" }) .. node("Add", { "x", "x" }, { "p" }) .. port(11, "x") .. port(12, "y")))
    t.eq(m(tide.tensor { 3.0 }):item(), 6)
    local function branch(kind) return node(kind, { "x" }, { "b" }) .. port(12, "b") end
    m = load(model(node("If", { "c" }, { "y" }, attribute("then_branch", 5, bytes(6, branch "Neg")) .. attribute("else_branch", 5,
        bytes(6, branch "Abs"))) .. port(11, "c", 9) .. port(11, "x") .. port(12, "y")))
    t.eq(m(tide.tensor(true), tide.tensor { 3.0 }):item(), -3)
    t.eq(m(tide.tensor(false), tide.tensor { -3.0 }):item(), 3)
end)

t.test("functions_of_the_model_are_operators", function()
    local double = bytes(25, bytes(1, "Times") .. bytes(4, "a") .. bytes(5, "b") .. bytes(6, "by") ..
        bytes(7, bytes(2, "f") .. bytes(4, "Constant") .. bytes(5, bytes(1, "value_float") .. bytes(21, "by") .. int(20, 1))) ..
        bytes(7, bytes(1, "a") .. bytes(1, "f") .. bytes(2, "b") .. bytes(4, "Mul")) .. bytes(9, int(2, 13)) .. bytes(10, "own"))
    local m = load(model(node("Times", { "x" }, { "y" }, bytes(7, "own") .. attribute("by", 1, float(2, 4))) .. port(11, "x") .. port(12, "y"),
        double))
    t.eq(m(tide.tensor { 3.0 }):item(), 12)
end)

t.test("elements_lie_in_lists_in_bytes_and_beside_the_model", function()
    local identity = node("Identity", { "w" }, { "y" }) .. port(12, "y")
    local function value(entry) return load(model(identity .. bytes(5, entry)))() end
    t.eq(value(tensor("w", 7, { 3 }, nil, bytes(7, varint(5) .. varint(0) .. varint(-2)))):tolist(), { 5, 0, -2 })
    t.eq(value(tensor("w", 3, { 2 }, nil, bytes(5, varint(-1) .. varint(7)))):tolist(), { -1, 7 })
    t.eq(value(tensor("w", 10, { 3 }, nil, bytes(5, varint(0x3C00) .. varint(0xC000) .. varint(1)))):double():tolist(), { 1, -2, 2.0 ^ -24 })
    t.eq(value(tensor("w", 16, { 1 }, nil, bytes(5, varint(0x3FC0)))):item(), 1.5)
    t.eq(value(tensor("w", 9, { 2 }, nil, bytes(5, varint(1) .. varint(0)))):tolist(), { true, false })
    put("....." .. two, folder .. "/w.bin")
    local function outside(where, at)
        return tensor("w", 1, { 2 }, nil, bytes(13, bytes(1, "location") .. bytes(2, where)) .. bytes(13, bytes(1, "offset") .. bytes(2, at)) .. int(14, 1))
    end
    t.eq(value(outside("w.bin", "5")):tolist(), { 2, 3 })
    t.error_has(function() value(outside("w.bin", "6")) end, "takes 8 bytes from 6 on, 'w.bin' has 13")
    for _, where in ipairs { "../w.bin", "/etc/passwd", "a/../../w.bin", "" } do
        t.error_has(function() value(outside(where, "0")) end, "which is not beside the model")
    end
end)

-- ---- what is wrong ----

t.test("what_is_wrong_is_told_in_a_line", function()
    local ends = port(11, "x") .. port(12, "y")
    for text, why in pairs {
        [node("Abs", { "b" }, { "a" }) .. node("Abs", { "a" }, { "b" }) .. node("Abs", { "x" }, { "y" }) .. ends] = "wait for one another in a circle",
        [node("Foo", { "x" }, { "p" }) .. node("Foo", { "p" }, { "q" }) .. node("Bar", { "q" }, { "y" }) .. ends] =
            "operators that are not there: Foo (2), Bar (1)",
        [node("Abs", { "z" }, { "y" }) .. ends] = "'z' is read, and nobody makes it",
        [node("Abs", { "x" }, { "y" }) .. node("Neg", { "x" }, { "y" }) .. ends] = "'y' is made twice",
        [node("Identity", { "w" }, { "y" }) .. bytes(5, tensor("w", 1, { 3 }, two)) .. ends] = "tensor 'w' has 8 bytes, its sizes say 12",
        [node("Identity", { "w" }, { "y" }) .. bytes(5, tensor("w", 1, { -1 }, two)) .. ends] = "tensor 'w' has a size of -1",
        [node("Identity", { "w" }, { "y" }) .. bytes(5, tensor("w", 1, { 1 << 40, 1 << 40 }, two)) .. ends] = "elements",
        [node("Identity", { "w" }, { "y" }) .. bytes(5, tensor("w", 14, { 1 }, two)) .. ends] = "is complex64, a dtype that Tide has not",
    } do
        t.error_has(function() load(model(text)) end, why)
    end
    t.error_has(function() load(int(1, 8)) end, "it has no graph")
    t.error_has(function() load "" end, "no graph")
    t.error_has(function() load "hello" end, "no protobuf")
    t.error_has(function() tide.onnx.load(folder .. "/none.onnx") end, "none.onnx")
    local m = load(model(scaled))
    t.error_has(function() m() end, "input 'x' (float32 (N)) is missing")
    t.error_has(function() m { z = tide.ones(2) } end, "no input 'z': there are x: float32 (N)")
    t.error_has(function() m(tide.ones(2), tide.ones(2)) end, "2 inputs, the model has 1")
    t.error_has(function() m(tide.ones(3)) end, "Mul: ")
    local loop = load(model(node("Loop", { "", "", "x" }, { "y" }) .. ends)) -- without a body
    t.error_has(function() loop(tide.ones(2)) end, "Loop: its attributes or inputs are not such as the operator takes")
    t.error_has(function() m(3 .. "") end, "Mul: ")
    local deep = node("Abs", { "x" }, { "b" })
    for _ = 1, 20 do
        deep = node("If", { "x" }, { "b" }, attribute("then_branch", 5, bytes(6, deep)))
    end
    t.error_has(function() load(model(deep .. ends)) end, "nested more than 16 deep")
end)

t.test("a_model_cut_or_changed_anywhere_is_an_error_or_runs", function()
    local whole = model(scaled)
    local function survives(text)
        local ok, m = pcall(load, text)
        if ok then
            ok, m = pcall(m, tide.tensor { 1.0, -1 })
        end
        t.is_true(ok or type(m) == "string" and not m:find "attempt to" and not m:find "\n%s+%[C%]", m)
    end
    for n = 0, #whole - 1 do
        survives(whole:sub(1, n))
        for _, bit in ipairs { 1, 8, 128 } do
            survives(whole:sub(1, n) .. string.char(whole:byte(n + 1) ~ bit) .. whole:sub(n + 2))
        end
    end
end)

os.execute("rm -r " .. folder)
t.finish()
