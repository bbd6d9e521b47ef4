-- onnx/export_layers.lua: products, reductions and layers of networks, as nodes of ONNX (onnx/export.lua).
local tide = ...
local wrong = tide._require("onnx.tensors").wrong
local layers = {}

-- ---- products ----

for name, names in pairs { matmul = { "x", "y" }, mm = { "x", "y" }, bmm = { "x", "y" }, mv = { "x", "y" }, dot = { "x", "y" } } do
    layers[name] = function(call, w) return w:node("MatMul", { call:tensor(names[1]), call:tensor(names[2]) }) end
end

layers.linear = function(call, w)
    local rank = #call:sizes("weight")
    local weight, x = call:tensor("weight"), call:tensor("input")
    if #call:sizes("input") == 2 and rank == 2 then
        return w:node("Gemm", { x, weight, call:tensor("bias") }, { transB = 1 })
    end
    local product = w:node("MatMul", { x, rank == 2 and w:node("Transpose", { weight }, { perm = { 1, 0 } }) or weight })
    return call:has("bias") and w:node("Add", { product, call:tensor("bias") }) or product
end

for name, names in pairs { addmm = { "mat1", "mat2" }, baddbmm = { "batch1", "batch2" }, addmv = { "mat", "vec" } } do
    layers[name] = function(call, w)
        local dtype = call:result_dtype()
        local function scaled(value, factor) return factor == 1 and value or w:node("Mul", { value, w:number(factor, dtype) }) end
        local product = w:node("MatMul", { call:tensor(names[1]), call:tensor(names[2]) })
        return w:node("Add", { scaled(call:tensor("input"), call:get("beta", 1)), scaled(product, call:get("alpha", 1)) })
    end
end

layers.einsum = function(call, w)
    local values = {}
    for k, name in ipairs(w:value(call:name_of("operands")).names) do
        values[k] = w:value(name)
    end
    return w:node("Einsum", values, { equation = call:get("equation") })
end

for _, name in ipairs { "outer", "ger" } do
    layers[name] = function(call, w)
        return w:node("Mul", { w:node("Unsqueeze", { call:tensor("x"), w:ints { 1 } }), w:node("Unsqueeze", { call:tensor("y"), w:ints { 0 } }) })
    end
end

layers.scaled_dot_product_attention = function(call, w)
    local q, k, v = call:tensor("query"), call:tensor("key"), call:tensor("value")
    local sizes, dtype = call:sizes("query"), call:result_dtype()
    local width = sizes[#sizes] or wrong("scaled_dot_product_attention: the width of heads may be of any size")
    if call:get("dropout_p", 0) ~= 0 or call:get("enable_gqa", false) then
        wrong("scaled_dot_product_attention with dropout or grouped heads")
    end
    local order = {}
    for d = 1, #sizes do
        order[d] = d - 1
    end
    order[#order], order[#order - 1] = order[#order - 1], order[#order]
    local scores = w:node("MatMul", { w:node("Mul", { q, w:number(call:get("scale") or 1 / math.sqrt(width), dtype) }),
        w:node("Transpose", { k }, { perm = order }) })
    local function masked(mask) return w:node("Where", { mask, scores, w:number(-math.huge, dtype) }) end
    if call:get("is_causal", false) then
        local shape = w:node("Shape", { scores })
        local square = w:node("Slice", { shape, w:ints { -2 }, w:ints { math.maxinteger } })
        local ones = w:node("Expand", { w:number(1, "int32"), square })
        scores = masked(w:node("Cast", { w:node("Trilu", { ones }, { upper = 0 }) }, { to = 9 }))
    elseif call:has("attn_mask") then
        local mask = call:tensor("attn_mask")
        scores = call:dtype("attn_mask") == "bool" and masked(mask) or w:node("Add", { scores, mask })
    end
    local weights = w:node("Softmax", { scores }, { axis = -1 })
    return w:node("MatMul", { weights, v })
end

-- ---- reductions ----

local function axes_of(call, w) return call:has("dim") and w:ints(call:list("dim")) or nil end

local function reduced(call, w, op, x)
    return w:node(op, { x, axes_of(call, w) }, { keepdims = call:get("keepdim", false) and 1 or 0 })
end

for name, op in pairs { sum = "ReduceSum", mean = "ReduceMean", prod = "ReduceProd", amax = "ReduceMax", amin = "ReduceMin", logsumexp = "ReduceLogSumExp" } do
    layers[name] = function(call, w) return reduced(call, w, op, call:operand("x", call:result_dtype())) end
end
for name, op in pairs { any = "ReduceMax", all = "ReduceMin" } do
    layers[name] = function(call, w)
        return w:cast(reduced(call, w, op, w:cast(call:operand("x", "bool"), "bool", "int32")), "int32", "bool")
    end
end

local function variance(call, w, root)
    local x, sizes = call:operand("x", call:result_dtype()), call:sizes("x")
    local correction = call:has("unbiased") and (call:get("unbiased") and 1 or 0) or call:get("correction", 1)
    local axes = axes_of(call, w)
    local off = w:node("Sub", { x, w:node("ReduceMean", { x, axes }, { keepdims = 1 }) })
    local squares = reduced(call, w, "ReduceSum", w:node("Mul", { off, off }))
    local n = 1
    for _, d in ipairs(call:has("dim") and call:list("dim") or {}) do
        n = n * (sizes[(d < 0 and d + #sizes or d) + 1] or wrong("%s over a dim of any size", call.node.kind))
    end
    if not call:has("dim") then
        for _, size in ipairs(call:known_sizes("x")) do
            n = n * size
        end
    end
    local var = w:node("Div", { squares, w:number(n - correction, call:result_dtype()) })
    return root and w:node("Sqrt", { var }) or var
end
layers.var = function(call, w) return variance(call, w, false) end
layers.std = function(call, w) return variance(call, w, true) end

layers.norm = function(call, w)
    local p, x = call:get("p", 2), call:operand("x", call:result_dtype())
    if p ~= 1 and p ~= 2 and p ~= "fro" then
        wrong("norm of order %s", p)
    end
    return reduced(call, w, p == 1 and "ReduceL1" or "ReduceL2", x)
end

layers.normalize = function(call, w)
    local x, dtype, p = call:tensor("input"), call:result_dtype(), call:get("p", 2)
    if p ~= 1 and p ~= 2 then
        wrong("normalize of order %g", p)
    end
    local size = w:node(p == 1 and "ReduceL1" or "ReduceL2", { x, w:ints { call:get("dim", 1) } }, { keepdims = 1 })
    return w:node("Div", { x, w:node("Max", { size, w:number(call:get("eps", 1e-12), dtype) }) })
end

for name, op in pairs { argmax = "ArgMax", argmin = "ArgMin" } do
    layers[name] = function(call, w)
        local x = call:tensor("x")
        if not call:has("dim") then
            x = w:node("Reshape", { x, w:ints { -1 } })
        end
        return w:node(op, { x }, { axis = call:get("dim", 0), keepdims = call:has("dim") and call:get("keepdim", false) and 1 or 0 })
    end
end
for name, ops in pairs { max = { "ReduceMax", "ArgMax" }, min = { "ReduceMin", "ArgMin" } } do
    layers[name] = function(call, w)
        if not call:has("dim") then
            return w:node(ops[1], { call:tensor("x") }, { keepdims = 0 })
        end
        local keep = call:get("keepdim", false) and 1 or 0
        return w:node(ops[1], { call:tensor("x"), w:ints { call:get("dim") } }, { keepdims = keep }),
            w:node(ops[2], { call:tensor("x") }, { axis = call:get("dim"), keepdims = keep })
    end
end

layers.topk = function(call, w)
    return w:node("TopK", { call:tensor("x"), w:size_list(call:name_of("k")) },
        { axis = call:get("dim", -1), largest = call:get("largest", true) and 1 or 0, sorted = call:get("sorted", true) and 1 or 0 }, 2)
end
local function sorted(call, w)
    local sizes = call:sizes("x")
    local dim = call:get("dim", -1)
    local size = sizes[(dim < 0 and dim + #sizes or dim) + 1] or wrong("%s along a dim of any size", call.node.kind)
    return w:node("TopK", { call:tensor("x"), w:ints { size } }, { axis = dim, largest = call:get("descending", false) and 1 or 0 }, 2)
end
layers.sort = sorted
layers.argsort = function(call, w) return (select(2, sorted(call, w))) end

layers.cumsum = function(call, w)
    return w:node("CumSum", { call:operand("x", call:result_dtype()), w:number(call:get("dim"), "int64") })
end

for name, op in pairs { softmax = "Softmax", log_softmax = "LogSoftmax" } do
    layers[name] = function(call, w) return w:node(op, { call:operand("x", call:result_dtype()) }, { axis = call:get("dim") }) end
end
layers.softmin = function(call, w) return w:node("Softmax", { w:node("Neg", { call:tensor("x") }) }, { axis = call:get("dim") }) end

layers.glu = function(call, w)
    local a, b = w:node("Split", { call:tensor("x") }, { axis = call:get("dim", -1), num_outputs = 2 }, 2)
    return w:node("Mul", { a, w:node("Sigmoid", { b }) })
end

-- ---- windows ----

local function twice(list)
    local both = {}
    for k, value in ipairs(list) do
        both[k], both[k + #list] = value, value
    end
    return both
end

-- A number, or a list of them, as so many ints.
local function ints(value, n)
    local list = {}
    for k = 1, n do
        list[k] = type(value) == "table" and (value[k] or value[1]) or value
    end
    return list
end

-- Runs fn with an image that has a dim of batches, which is taken off again.
local function batched(call, w, n, fn)
    local x = call:tensor("input")
    if #call:sizes("input") == n + 2 then
        return fn(x)
    end
    local results = table.pack(fn(w:node("Unsqueeze", { x, w:ints { 0 } })))
    for k = 1, results.n do
        results[k] = w:node("Squeeze", { results[k], w:ints { 0 } })
    end
    return table.unpack(results, 1, results.n)
end

for n = 1, 3 do
    layers["conv" .. n .. "d"] = function(call, w)
        local a = { strides = ints(call:get("stride", 1), n), dilations = ints(call:get("dilation", 1), n), group = call:get("groups", 1) }
        local padding = call:get("padding", 0)
        if padding == "same" then
            a.auto_pad = "SAME_UPPER"
        else
            a.pads = twice(ints(padding == "valid" and 0 or padding, n))
        end
        return batched(call, w, n, function(x) return w:node("Conv", { x, call:tensor("weight"), call:tensor("bias") }, a) end)
    end
    layers["conv_transpose" .. n .. "d"] = function(call, w)
        local a = { strides = ints(call:get("stride", 1), n), dilations = ints(call:get("dilation", 1), n), group = call:get("groups", 1),
            pads = twice(ints(call:get("padding", 0), n)), output_padding = ints(call:get("output_padding", 0), n) }
        return batched(call, w, n, function(x) return w:node("ConvTranspose", { x, call:tensor("weight"), call:tensor("bias") }, a) end)
    end
    local function window(call)
        local kernel = ints(call:get("kernel_size"), n)
        return { kernel_shape = kernel, strides = call:has("stride") and ints(call:get("stride"), n) or kernel,
            pads = twice(ints(call:get("padding", 0), n)), ceil_mode = call:get("ceil_mode", false) and 1 or 0 }
    end
    layers["max_pool" .. n .. "d"] = function(call, w)
        local a = window(call)
        a.dilations = ints(call:get("dilation", 1), n)
        if call:get("return_indices", false) then
            wrong("max_pool%dd with return_indices", n)
        end
        return batched(call, w, n, function(x) return (w:node("MaxPool", { x }, a)) end)
    end
    layers["avg_pool" .. n .. "d"] = function(call, w)
        local a = window(call)
        a.count_include_pad = call:get("count_include_pad", true) and 1 or 0
        if call:has("divisor_override") then
            wrong("avg_pool%dd with divisor_override", n)
        end
        return batched(call, w, n, function(x) return w:node("AveragePool", { x }, a) end)
    end
    for kind, ops in pairs { avg = { "GlobalAveragePool", "AveragePool" }, max = { "GlobalMaxPool", "MaxPool" } } do
        layers[string.format("adaptive_%s_pool%dd", kind, n)] = function(call, w)
            local sizes, wanted, kernel, all = call:sizes("input"), call:list("output_size"), {}, true
            for d = 1, n do
                local size, out = sizes[#sizes - n + d], wanted[d] or wanted[1]
                out = out == math.mininteger and size or out
                all = all and out == 1
                if not all and (not size or size % out ~= 0) then
                    wrong("adaptive_%s_pool%dd of %s elements to %d: windows of several sizes", kind, n, size or "any number of", out)
                end
                kernel[d] = size and out and size // out
            end
            return batched(call, w, n, function(x)
                return all and w:node(ops[1], { x }) or w:node(ops[2], { x }, { kernel_shape = kernel, strides = kernel })
            end)
        end
    end
end

layers.pad = function(call, w)
    local rank, list, mode = #call:sizes("input"), call:list("pad"), call:get("mode", "constant")
    local before, after = {}, {}
    for d = 1, rank do
        before[d], after[d] = 0, 0
    end
    for k = 1, #list // 2 do
        before[rank - k + 1], after[rank - k + 1] = list[2 * k - 1], list[2 * k]
    end
    table.move(after, 1, rank, rank + 1, before)
    local modes = { constant = "constant", reflect = "reflect", replicate = "edge" }
    return w:node("Pad", { call:tensor("input"), w:ints(before), mode == "constant" and w:number(call:get("value") or 0, call:result_dtype()) or nil },
        { mode = modes[mode] or wrong("pad of mode %s", mode) })
end

layers.interpolate = function(call, w)
    local mode, sizes = call:get("mode", "nearest"), call:sizes("input")
    local corners, out = call:get("align_corners"), call:result().sizes
    local known = { nearest = "nearest", linear = "linear", bilinear = "linear", trilinear = "linear", bicubic = "cubic", ["nearest-exact"] = "nearest" }
    if not known[mode] or call:get("antialias", false) then
        wrong("interpolate of mode %s%s", mode, call:get("antialias", false) and " with antialias" or "")
    end
    local wanted = {}
    for d = 3, #sizes do
        wanted[d - 2] = out and out[d] or wrong("interpolate: the size of dim %d is not known", d)
    end
    local shape = w:node("Concat", { w:node("Slice", { w:node("Shape", { call:tensor("input") }), w:ints { 0 }, w:ints { 2 } }), w:ints(wanted) }, { axis = 0 })
    local a = { mode = known[mode], coordinate_transformation_mode = corners and "align_corners" or "half_pixel" }
    if mode == "nearest" then
        a.coordinate_transformation_mode, a.nearest_mode = "asymmetric", "floor"
    elseif mode == "nearest-exact" then
        a.nearest_mode = "round_prefer_ceil"
    elseif mode == "bicubic" then
        a.cubic_coeff_a = -0.75
    end
    return w:node("Resize", { call:tensor("input"), nil, nil, shape, n = 4 }, a)
end

layers.pixel_shuffle = function(call, w)
    return w:node("DepthToSpace", { call:tensor("input") }, { blocksize = call:get("upscale_factor"), mode = "CRD" })
end

-- ---- norms ----

-- A weight of one number a channel for tensors of so many dims.
local function along_channels(w, value, rank)
    local sizes = { -1 }
    for d = 2, rank - 1 do
        sizes[d] = 1
    end
    return w:node("Reshape", { value, w:ints(sizes) })
end

-- x times weight plus bias, where they are there.
local function affine(w, x, weight, bias)
    x = weight and w:node("Mul", { x, weight }) or x
    return bias and w:node("Add", { x, bias }) or x
end

layers.batch_norm = function(call, w)
    local dtype = call:result_dtype()
    if call:get("training", false) or not call:has("running_mean") then
        wrong("batch_norm in training mode: call eval() before")
    end
    local function of_channels(parameter, value)
        if call:has(parameter) then
            return call:tensor(parameter)
        end
        local channels = call:sizes("running_mean")[1]
        return w:tensor(tide.full({ channels }, value, { dtype = tide[dtype] }))
    end
    return w:node("BatchNormalization", { call:tensor("input"), of_channels("weight", 1), of_channels("bias", 0),
        call:tensor("running_mean"), call:tensor("running_var") }, { epsilon = call:get("eps", 1e-5) })
end

layers.layer_norm = function(call, w)
    local n, dtype = #call:list("normalized_shape"), call:result_dtype()
    local weight = call:tensor("weight") or w:tensor(tide.ones(call:list("normalized_shape"), { dtype = tide[dtype] }))
    return (w:node("LayerNormalization", { call:tensor("input"), weight, call:tensor("bias") }, { axis = -n, epsilon = call:get("eps", 1e-5) }))
end

layers.rms_norm = function(call, w)
    local n, dtype, x = #call:list("normalized_shape"), call:result_dtype(), call:tensor("input")
    local axes = {}
    for k = 1, n do
        axes[k] = -k
    end
    local eps = call:get("eps") or tide.finfo(tide[dtype]).eps
    local square = w:node("ReduceMean", { w:node("Mul", { x, x }), w:ints(axes) }, { keepdims = 1 })
    local scaled = w:node("Div", { x, w:node("Sqrt", { w:node("Add", { square, w:number(eps, dtype) }) }) })
    return affine(w, scaled, call:tensor("weight"))
end

-- Of groups: the channels of each normed as one, then scaled by channel.
local function group_norm(call, w, groups)
    local rank, dtype, x = #call:sizes("input"), call:result_dtype(), call:tensor("input")
    local flat = w:node("Reshape", { x, w:ints { 0, groups, -1 } })
    local normed = w:node("InstanceNormalization", { flat, w:tensor(tide.ones(groups, { dtype = tide[dtype] })),
        w:tensor(tide.zeros(groups, { dtype = tide[dtype] })) }, { epsilon = call:get("eps", 1e-5) })
    local back = w:node("Reshape", { normed, w:node("Shape", { x }) })
    local function of_channels(parameter) return call:has(parameter) and along_channels(w, call:tensor(parameter), rank) or nil end
    return affine(w, back, of_channels("weight"), of_channels("bias"))
end
layers.group_norm = function(call, w) return group_norm(call, w, call:get("num_groups")) end
layers.instance_norm = function(call, w)
    if not call:get("use_input_stats", true) then
        wrong("instance_norm with running statistics")
    end
    return group_norm(call, w, call:sizes("input")[2] or wrong("instance_norm of any number of channels"))
end
layers.local_response_norm = function(call, w)
    return w:node("LRN", { call:tensor("input") }, { size = call:get("size"), alpha = call:get("alpha", 1e-4), beta = call:get("beta", 0.75), bias = call:get("k", 1) + 0.0 })
end

layers.dropout = function(call)
    if call:get("training", true) and call:get("p", 0.5) ~= 0 then
        wrong("dropout in training mode: call eval() before")
    end
    return call:tensor("x")
end

-- ---- recurrent layers ----

-- Rows of a weight in the order in which ONNX has the gates; `order` says where each is in Tide's.
local function gates(x, order)
    local parts, sorted_parts = x:chunk(#order, 1), {}
    for k, from in ipairs(order) do
        sorted_parts[k] = parts[from]
    end
    return tide.cat(sorted_parts, 1)
end

local RECURRENT <const> = { lstm = { "LSTM", { 1, 4, 2, 3 } }, gru = { "GRU", { 2, 1, 3 } }, rnn_tanh = { "RNN", { 1 }, "Tanh" }, rnn_relu = { "RNN", { 1 }, "Relu" } }

-- Constant weights of a layer: W, R and B of ONNX, both directions one behind the other.
local function weights_of(w, names, first, per, directions, order)
    local function constant(k)
        local node = w.constants[names[k]]
        return node and node.constant or wrong("a recurrent layer whose weights are worked out")
    end
    local inputs, states, biases = {}, {}, {}
    for d = 1, directions do
        local at = first + (d - 1) * per
        inputs[d], states[d] = gates(constant(at):detach(), order), gates(constant(at + 1):detach(), order)
        biases[d] = per >= 4 and tide.cat({ gates(constant(at + 2):detach(), order), gates(constant(at + 3):detach(), order) }, 1) or nil
    end
    return w:tensor(tide.stack(inputs, 1)), w:tensor(tide.stack(states, 1)), #biases > 0 and w:tensor(tide.stack(biases, 1)) or nil
end

for name, row in pairs(RECURRENT) do
    layers[name] = function(call, w)
        local op, order, activation = row[1], row[2], row[3]
        local count, directions, per = call:get("num_layers", 1), call:get("bidirectional", false) and 2 or 1, call:get("has_biases", true) and 4 or 2
        local names = w:value(call:name_of("params")).names
        if call:get("train", false) and call:get("dropout", 0) ~= 0 then
            wrong("%s with dropout in training mode", name)
        elseif #call:sizes("input") ~= 3 or #names ~= count * directions * per then
            wrong("%s without batches or with projections", name)
        end
        local swap = { perm = { 1, 0, 2 } }
        local x = call:get("batch_first", false) and w:node("Transpose", { call:tensor("input") }, swap) or call:tensor("input")
        local start = w:value(call:name_of("hx"))
        local starts = start.names and { w:value(start.names[1]), w:value(start.names[2]) } or { start }
        local last = {}
        for layer = 1, count do
            local states = {}
            for k, value in ipairs(starts) do
                states[k] = w:node("Slice", { value, w:ints { (layer - 1) * directions }, w:ints { layer * directions }, w:ints { 0 } })
            end
            local weight, state, bias = weights_of(w, names, (layer - 1) * directions * per + 1, per, directions, order)
            local width = call:sizes("input") and w.constants[names[(layer - 1) * directions * per + 2]].constant:size(2)
            local a = { hidden_size = width, direction = directions == 2 and "bidirectional" or "forward" }
            if op == "GRU" then
                a.linear_before_reset = 1
            end
            if activation == "Relu" then
                wrong("rnn_relu: activations other than tanh")
            end
            local results = table.pack(w:node(op, { x, weight, state, bias, nil, states[1], states[2], n = 7 }, a, #starts + 1))
            -- (steps, directions, batch, width) to (steps, batch, directions * width)
            local turned = w:node("Transpose", { results[1] }, { perm = { 0, 2, 1, 3 } })
            x = w:node("Reshape", { turned, w:ints { 0, 0, -1 } })
            for k = 1, #starts do
                last[k] = last[k] or {}
                last[k][layer] = results[k + 1]
            end
        end
        local function joined(list) return #list == 1 and list[1] or w:node("Concat", list, { axis = 0 }) end
        local output = call:get("batch_first", false) and w:node("Transpose", { x }, swap) or x
        return output, joined(last[1]), last[2] and joined(last[2])
    end
end

return layers
