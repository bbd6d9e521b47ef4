-- onnx/export_numbers.lua: arithmetic of single numbers, as nodes of ONNX on tensors without dims (onnx/export.lua): writer(w, node) gives
-- the value, by the node's kind.
local tide = ...
local wrong = tide._require("onnx.tensors").wrong
local numbers = {}

-- Both inputs in the dtype in which they meet.
local function pair(w, node)
    local a, b = w:type(node.inputs[1]).dtype, w:type(node.inputs[2]).dtype
    local dtype = (a == "float64" or b == "float64") and "float64" or a
    return { w:cast(w:value(node.inputs[1]), a, dtype), w:cast(w:value(node.inputs[2]), b, dtype) }, dtype
end

for name, op in pairs { add = "Add", sub = "Sub", mul = "Mul", max = "Max", min = "Min", eq = "Equal", lt = "Less", le = "LessOrEqual",
    gt = "Greater", ge = "GreaterOrEqual", __and__ = "And", __or__ = "Or", __xor__ = "Xor" } do
    numbers["aten::" .. name] = function(w, node)
        local both, dtype = pair(w, node)
        if (op == "And" or op == "Or" or op == "Xor") and dtype ~= "bool" then
            op = "Bitwise" .. op
        elseif dtype == "bool" and op == "Equal" then
            both = { w:cast(both[1], "bool", "int32"), w:cast(both[2], "bool", "int32") }
        end
        return w:node(op, both)
    end
end
numbers["aten::ne"] = function(w, node) return w:node("Not", { numbers["aten::eq"](w, node) }) end
numbers["aten::__not__"] = function(w, node) return w:node("Not", { w:value(node.inputs[1]) }) end
numbers["aten::neg"] = function(w, node) return w:node("Neg", { w:value(node.inputs[1]) }) end
numbers["aten::div"] = function(w, node)
    local both, dtype = pair(w, node)
    return w:node("Div", { w:cast(both[1], dtype, "float64"), w:cast(both[2], dtype, "float64") })
end
numbers["aten::remainder"] = function(w, node)
    local both, dtype = pair(w, node)
    return dtype == "float64" and w:node("Sub", { both[1], w:node("Mul", { w:node("Floor", { w:node("Div", both) }), both[2] }) }) or w:node("Mod", both)
end
numbers["aten::floordiv"] = function(w, node)
    local both, dtype = pair(w, node)
    if dtype == "float64" then
        return w:node("Floor", { w:node("Div", both) })
    end
    return w:node("Div", { w:node("Sub", { both[1], w:node("Mod", both) }), both[2] })
end
for name, to in pairs { Int = "int64", Float = "float64", Bool = "bool" } do
    numbers["aten::" .. name] = function(w, node)
        local value, kind = w:value(node.inputs[1]), w:type(node.inputs[1])
        if not kind.number then
            value = w:node("Reshape", { value, w:ints {} })
        end
        return w:cast(value, kind.dtype or wrong("the dtype of a number is not known"), to)
    end
end
numbers["aten::item"] = function(w, node)
    local kind, out = w:type(node.inputs[1]), w:type(node.outputs[1].name)
    local value = w:node("Reshape", { w:value(node.inputs[1]), w:ints {} })
    local wide = string.find(kind.dtype or wrong("the dtype of a number is not known"), "float") and "float64" or "int64"
    out.dtype, out.number, out.sizes = wide, true, {}
    return w:cast(value, kind.dtype, wide)
end
numbers["aten::ScalarImplicit"] = numbers["aten::item"]

-- ---- sizes ----

local function size_at(w, x, dim) return w:node("Gather", { w:node("Shape", { x }), dim }, { axis = 0 }) end

numbers["aten::size"] = function(w, node)
    local x = w:value(node.inputs[1])
    return node.inputs[2] and size_at(w, x, w:value(node.inputs[2])) or w:node("Shape", { x })
end
numbers["aten::len"] = function(w, node)
    local value = w:value(node.inputs[1])
    if value.names or value.list then
        return w:number(#(value.names or value.list), "int64")
    end
    return size_at(w, value, w:number(0, "int64"))
end
numbers["aten::numel"] = function(w, node) return w:node("Size", { w:value(node.inputs[1]) }) end
numbers["aten::dim"] = function(w, node) return w:node("Size", { w:node("Shape", { w:value(node.inputs[1]) }) }) end

-- ---- entries of lists ----

for name, base in pairs { __getitem__ = 0, get_entry = 1 } do
    numbers["aten::" .. name] = function(w, node)
        local list, index = w:value(node.inputs[1]), w.constants[node.inputs[2]]
        if not list.names and not list.list then -- ints as one tensor
            return w:node("Gather", { list, base == 0 and w:value(node.inputs[2]) or w:node("Sub", { w:value(node.inputs[2]), w:number(1, "int64") }) }, { axis = 0 })
        elseif not index then
            wrong("an entry of a list whose place is worked out")
        end
        local k = index.constant - base
        local count = #(list.names or list.list)
        k = k < 0 and k + count or k
        local entry = (list.names or list.list)[k + 1] or wrong("entry %d of %d", k, count)
        return list.names and w:value(entry) or entry
    end
end

return numbers
