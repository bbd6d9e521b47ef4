-- onnx/export_shapes.lua: operators that move elements, choose among them or make tensors, as nodes of ONNX (onnx/export.lua).
local tide = ...
local wrong = tide._require("onnx.tensors").wrong
local shapes = {}

local END <const> = math.maxinteger

-- A dim from 0.
local function dim_of(call, parameter, rank, default)
    local d = call:get(parameter, default)
    return d < 0 and d + rank or d
end

-- ---- sizes ----

for _, name in ipairs { "view", "reshape", "_unsafe_view" } do
    shapes[name] = function(call, w) return w:node("Reshape", { call:tensor("x"), w:size_list(call:name_of("size")) }, { allowzero = 0 }) end
end
for _, name in ipairs { "view_as", "reshape_as" } do
    shapes[name] = function(call, w) return w:node("Reshape", { call:tensor("x"), w:node("Shape", { call:tensor("other") }) }) end
end

shapes.flatten = function(call, w)
    local sizes = call:sizes("x")
    local first, last = dim_of(call, "start_dim", #sizes, 0), dim_of(call, "end_dim", #sizes, -1)
    if #sizes == 0 then
        return w:node("Reshape", { call:tensor("x"), w:ints { 1 } })
    elseif first == 1 and last == #sizes - 1 then
        return w:node("Flatten", { call:tensor("x") }, { axis = 1 })
    end
    local wanted = {}
    for d = 0, first - 1 do
        wanted[#wanted + 1] = 0 -- as it is
    end
    wanted[#wanted + 1] = -1
    for d = last + 1, #sizes - 1 do
        wanted[#wanted + 1] = sizes[d + 1] or wrong("flatten: dim %d may be of any size", d + 1)
    end
    return w:node("Reshape", { call:tensor("x"), w:ints(wanted) })
end

shapes.unflatten = function(call, w)
    local rank, wanted = #call:sizes("x"), {}
    local dim = dim_of(call, "dim", rank)
    local shape = w:node("Shape", { call:tensor("x") })
    local function part(from, to) return w:node("Slice", { shape, w:ints { from }, w:ints { to } }) end
    wanted = { part(0, dim), w:size_list(call:name_of("sizes")), part(dim + 1, rank) }
    return w:node("Reshape", { call:tensor("x"), w:node("Concat", wanted, { axis = 0 }) })
end

shapes.squeeze = function(call, w)
    local sizes, axes = call:sizes("x"), {}
    local dims = call:has("dim") and call:list("dim") or nil
    for d = 0, #sizes - 1 do
        local wanted = not dims
        for _, one in ipairs(dims or {}) do
            wanted = wanted or one == d or one + #sizes == d
        end
        if wanted and not sizes[d + 1] then
            wrong("squeeze: dim %d may be of any size", d + 1)
        end
        axes[#axes + 1] = wanted and sizes[d + 1] == 1 and d or nil
    end
    return #axes == 0 and call:tensor("x") or w:node("Squeeze", { call:tensor("x"), w:ints(axes) })
end
shapes.unsqueeze = function(call, w)
    return w:node("Unsqueeze", { call:tensor("x"), w:ints { dim_of(call, "dim", #call:sizes("x") + 1) } })
end

-- ---- order of dims ----

local function permuted(w, x, order) return w:node("Transpose", { x }, { perm = order }) end

local function straight(rank)
    local order = {}
    for d = 1, rank do
        order[d] = d - 1
    end
    return order
end

shapes.permute = function(call, w)
    local order = {}
    for k, d in ipairs(call:list("dims")) do
        order[k] = d < 0 and d + #call:sizes("x") or d
    end
    return #order == 0 and call:tensor("x") or permuted(w, call:tensor("x"), order)
end
for _, name in ipairs { "transpose", "swapdims", "swapaxes" } do
    shapes[name] = function(call, w)
        local rank = #call:sizes("x")
        local a, b, order = dim_of(call, "dim0", rank), dim_of(call, "dim1", rank), straight(rank)
        if rank == 0 then
            return call:tensor("x")
        end
        order[a + 1], order[b + 1] = b, a
        return permuted(w, call:tensor("x"), order)
    end
end
for _, name in ipairs { "t", "mT" } do
    shapes[name] = function(call, w)
        local rank = #call:sizes("x")
        local order = straight(rank)
        if rank < 2 then
            return call:tensor("x")
        end
        order[rank], order[rank - 1] = order[rank - 1], order[rank]
        return permuted(w, call:tensor("x"), order)
    end
end
shapes.movedim = function(call, w)
    local rank, order, taken = #call:sizes("x"), {}, {}
    local from, to = call:list("source"), call:list("destination")
    for k = 1, #from do
        local source = from[k] < 0 and from[k] + rank or from[k]
        order[(to[k] < 0 and to[k] + rank or to[k]) + 1] = source
        taken[source] = true
    end
    local next_dim = 0
    for d = 1, rank do
        if not order[d] then
            while taken[next_dim] do
                next_dim = next_dim + 1
            end
            order[d] = next_dim
            taken[next_dim] = true
        end
    end
    return permuted(w, call:tensor("x"), order)
end
shapes.moveaxis = shapes.movedim

-- ---- parts ----

local function sliced(w, x, dim, from, to, step)
    return w:node("Slice", { x, w:ints { from }, w:ints { to }, w:ints { dim }, w:ints { step } })
end

shapes.slice = function(call, w)
    local dim = dim_of(call, "dim", #call:sizes("x"), 0)
    local function bound(parameter, default)
        return call:has(parameter) and w:size_list(call:name_of(parameter)) or w:ints { default }
    end
    return w:node("Slice", { call:tensor("x"), bound("start", 0), bound("stop", END), w:ints { dim }, bound("step", 1) })
end
shapes.narrow = function(call, w)
    local dim = dim_of(call, "dim", #call:sizes("x"))
    local start, length = w:size_list(call:name_of("start")), w:size_list(call:name_of("length"))
    return w:node("Slice", { call:tensor("x"), start, w:node("Add", { start, length }), w:ints { dim } })
end
shapes.select = function(call, w)
    return w:node("Gather", { call:tensor("x"), call:tensor("index") }, { axis = dim_of(call, "dim", #call:sizes("x")) })
end

local function split_at(w, x, dim, lengths)
    return { list = { w:node("Split", { x, w:ints(lengths) }, { axis = dim }, #lengths) } }
end

-- Parts of these lengths; of one length, the last what is left; without one so many parts as the call says.
local function split_by(call, w, lengths_given)
    local sizes = call:sizes("x")
    local dim, lengths = dim_of(call, "dim", #sizes, 0), {}
    local whole = sizes[dim + 1] or wrong("dim %d may be of any size, ONNX wants it fixed", dim + 1)
    if lengths_given and #lengths_given > 1 then
        return split_at(w, call:tensor("x"), dim, lengths_given)
    end
    local length = math.max(1, lengths_given and lengths_given[1] or -(-whole // call:get("chunks")))
    for at = 0, math.max(whole - 1, 0), length do
        lengths[#lengths + 1] = math.min(length, whole - at)
    end
    return split_at(w, call:tensor("x"), dim, lengths)
end
shapes.split = function(call, w) return split_by(call, w, call:list("split_size")) end
shapes.split_with_sizes = shapes.split
shapes.chunk = function(call, w) return split_by(call, w) end

shapes.unbind = function(call, w)
    local sizes, list = call:sizes("x"), {}
    local dim = dim_of(call, "dim", #sizes, 0)
    for k = 1, sizes[dim + 1] or wrong("unbind: dim %d may be of any size", dim + 1) do
        list[k] = w:node("Gather", { call:tensor("x"), w:number(k - 1, "int64") }, { axis = dim })
    end
    return { list = list }
end

-- ---- together ----

-- What is known of a result beyond the graph's type: its dtype, and that it has so many dims.
local function settle_result(call, dtype, rank)
    local kind = call:result()
    kind.dtype = kind.dtype or dtype
    if not kind.sizes then
        kind.sizes = {}
        for d = 1, rank do
            kind.sizes[d] = false
        end
    end
end

-- Tensors of a list, as one dtype, and their number of dims; results have `more` dims.
local function tensors_of(call, w, parameter, more)
    local list = w:value(call:name_of(parameter))
    if list.list then
        return list.list, #(call:result().sizes or wrong("%s: the number of dims is not known", call.node.kind)) - more
    end
    local values, dtype, rank = {}, call:result().dtype, nil
    for k, name in ipairs(list.names) do
        local kind = w:type(name)
        dtype = dtype or kind.dtype
        rank = rank or kind.sizes and #kind.sizes
        values[k] = w:cast(w:value(name), kind.dtype or dtype, dtype)
    end
    settle_result(call, dtype, (rank or wrong("%s: the number of dims is not known", call.node.kind)) + more)
    return values, rank
end

for _, name in ipairs { "cat", "concat" } do
    shapes[name] = function(call, w)
        local list, rank = tensors_of(call, w, "tensors", 0)
        return w:node("Concat", list, { axis = dim_of(call, "dim", rank, 0) })
    end
end
shapes.stack = function(call, w)
    local list, rank = tensors_of(call, w, "tensors", 1)
    local dim = dim_of(call, "dim", rank + 1, 0)
    for k, value in ipairs(list) do
        list[k] = w:node("Unsqueeze", { value, w:ints { dim } })
    end
    return w:node("Concat", list, { axis = dim })
end

-- ---- again and again ----

-- A size of -1 stays as it is, which for ONNX is 1.
local function expand_to(call, w, parameter)
    local name = call:name_of(parameter)
    local constant, list = w.constants[name], w.values[name]
    local sizes = w:size_list(name)
    local kept = constant and tide.tensor(call:list(parameter)):lt(0):any():item() or not constant and list and list.names
    if kept then
        sizes = w:node("Where", { w:node("Less", { sizes, w:ints { 0 } }), w:ints { 1 }, sizes })
    end
    return w:node("Expand", { call:tensor("x"), sizes })
end
shapes.expand = function(call, w) return expand_to(call, w, "size") end
shapes.broadcast_to = shapes.expand
for _, name in ipairs { "expand_as", "broadcast_as" } do
    shapes[name] = function(call, w) return w:node("Expand", { call:tensor("x"), w:node("Shape", { call:tensor("other") }) }) end
end

-- Copies along dims; dims in front are added where there are more counts than dims.
local function tiled(call, w, counts)
    local rank, x = #call:sizes("x"), call:tensor("x")
    if #counts > rank then
        local axes = {}
        for k = 1, #counts - rank do
            axes[k] = k - 1
        end
        x = w:node("Unsqueeze", { x, w:ints(axes) })
    end
    while #counts < rank do
        table.insert(counts, 1, 1)
    end
    return w:node("Tile", { x, w:ints(counts) })
end
shapes["repeat"] = function(call, w) return tiled(call, w, { table.unpack(call:list("sizes")) }) end
shapes.tile = function(call, w) return tiled(call, w, { table.unpack(call:list("dims")) }) end

shapes.flip = function(call, w)
    local dims = call:list("dims")
    local from, to, steps = {}, {}, {}
    for k = 1, #dims do
        from[k], to[k], steps[k] = -1, math.mininteger, -1
    end
    return #dims == 0 and call:tensor("x") or w:node("Slice", { call:tensor("x"), w:ints(from), w:ints(to), w:ints(dims), w:ints(steps) })
end
shapes.roll = function(call, w)
    local shifts, x, sizes = call:list("shifts"), call:tensor("x"), call:sizes("x")
    if not call:has("dims") then
        wrong("roll without dims")
    end
    for k, dim in ipairs(call:list("dims")) do
        dim = dim < 0 and dim + #sizes or dim
        local size = sizes[dim + 1] or wrong("roll: dim %d may be of any size", dim + 1)
        local shift = size > 0 and shifts[k] % size or 0
        if shift ~= 0 then
            x = w:node("Concat", { sliced(w, x, dim, size - shift, END, 1), sliced(w, x, dim, 0, size - shift, 1) }, { axis = dim })
        end
    end
    return x
end

for name, upper in pairs { tril = 0, triu = 1 } do
    shapes[name] = function(call, w)
        return w:node("Trilu", { call:tensor("x"), w:number(call:get("diagonal", 0), "int64") }, { upper = upper })
    end
end

-- ---- at indices ----

shapes.index_select = function(call, w)
    return w:node("Gather", { call:tensor("x"), call:operand("index", "int64") }, { axis = dim_of(call, "dim", #call:sizes("x")) })
end
shapes.embedding = function(call, w)
    if call:has("max_norm") then
        wrong("embedding with max_norm")
    end
    return w:node("Gather", { call:tensor("weight"), call:operand("index", "int64") }, { axis = 0 })
end
shapes.gather = function(call, w)
    return w:node("GatherElements", { call:tensor("x"), call:operand("index", "int64") }, { axis = dim_of(call, "dim", #call:sizes("x")) })
end
shapes.take_along_dim = function(call, w)
    return w:node("GatherElements", { call:tensor("x"), call:operand("indices", "int64") }, { axis = dim_of(call, "dim", #call:sizes("x")) })
end
for _, name in ipairs { "scatter", "scatter_add" } do
    shapes[name] = function(call, w)
        local source = call:type("src")
        if source.number then
            wrong("scatter of a number")
        end
        local reduce = call:get("reduce") or name == "scatter_add" and "add"
        return w:node("ScatterElements", { call:tensor("x"), call:operand("index", "int64"), call:tensor("src") },
            { axis = dim_of(call, "dim", #call:sizes("x")), reduction = reduce and (reduce == "multiply" and "mul" or reduce) or nil })
    end
end
-- x at one tensor of indices, the other dims whole.
shapes.advanced_index = function(call, w)
    local names, at = w:value(call.node.inputs[2]).names, nil
    for k, name in ipairs(names) do
        local constant = w.constants[name]
        if not (constant and constant.what == "nil") then
            if at or w:type(name).dtype == "bool" then
                wrong("an index of masks or of several tensors")
            end
            at = k
        end
    end
    local index = w:cast(w:value(names[at]), w:type(names[at]).dtype or "int64", "int64")
    return w:node("Gather", { w:value(call.node.inputs[1]), index }, { axis = at - 1 })
end

shapes.one_hot = function(call, w)
    local count = call:get("num_classes", -1)
    if count < 0 then
        wrong("one_hot without num_classes")
    end
    return w:node("OneHot", { call:tensor("x"), w:number(count, "int64"), w:ints { 0, 1 } })
end

-- ---- made ----

-- A tensor of one number; `sizes`: a value of int64.
local function filled(w, sizes, value, dtype) return w:node("Expand", { w:number(value, dtype), sizes }) end

for name, value in pairs { zeros = 0, ones = 1 } do
    shapes[name] = function(call, w) return filled(w, w:size_list(call:name_of("size")), value, call:result_dtype()) end
    shapes[name .. "_like"] = function(call, w) return filled(w, w:node("Shape", { call:tensor("x") }), value, call:result_dtype()) end
end
shapes.full = function(call, w) return w:node("Expand", { call:operand("value", call:result_dtype()), w:size_list(call:name_of("size")) }) end
shapes.full_like = function(call, w)
    return w:node("Expand", { call:operand("value", call:result_dtype()), w:node("Shape", { call:tensor("x") }) })
end
shapes.arange = function(call, w)
    local dtype = call:result_dtype()
    if not call:has("end") then
        return w:node("Range", { w:number(0, dtype), call:operand("start", dtype), call:has("step") and call:operand("step", dtype) or w:number(1, dtype) })
    end
    return w:node("Range", { call:operand("start", dtype), call:operand("end", dtype), call:operand("step", dtype) })
end

return shapes
