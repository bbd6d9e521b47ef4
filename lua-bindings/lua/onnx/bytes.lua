-- onnx/bytes.lua: products of bytes in ONNX's models by Tide's operators of bytes: QLinearConv and QLinearMatMul where these have
-- the same rule, and layers of floats between DequantizeLinear and QuantizeLinear, which are joined when a graph is made ready.
local tide = ...
local bytes = {}

-- ---- weights ----

-- What was packed of a weight, by the weight: constants of a graph stay the same tensors.
local packs = setmetatable({}, { __mode = "k" })

local function number(x) return x:flatten()[1]:item() end

-- A line of n numbers of one or of n, or nothing.
local function line(x, n, dtype)
    x = x:flatten():to(dtype)
    return x:numel() == n and x or x:numel() == 1 and x:expand(n):contiguous() or nil
end

-- The packed weight of `w`, int8, whose output channels are its rows or, turned, its columns; nothing where it can't be packed.
local function pack_of(w, scale, zero, groups, turned)
    local entry = packs[w]
    if entry and entry.version == w._version and entry.scale == scale and entry.zero == zero and entry.groups == groups then
        return entry.packed
    end
    local rows = turned and w:t():contiguous() or w
    local scales = line(scale, rows:size(1), tide.float64)
    local zeros = zero and line(zero, rows:size(1), tide.int64) or tide.zeros(rows:size(1), { dtype = tide.int64 })
    if not scales or not zeros or rows:numel() == 0 or rows:numel() // rows:size(1) > 33024 then
        return nil
    end
    local ok, packed = pcall(tide._quantized_pack, tide._make_per_channel_quantized_tensor(rows, scales, zeros, 1), groups)
    packs[w] = { version = w._version, scale = scale, zero = zero, groups = groups, packed = ok and packed or nil }
    return packs[w].packed
end

-- Strides, padding and dilation of a convolution of n dims, or nothing where its padding is not the same on both sides.
local function geometry(attributes, n)
    local strides, dilations, pads = attributes.strides or {}, attributes.dilations or {}, attributes.pads or {}
    local auto = attributes.auto_pad
    if auto and auto ~= "NOTSET" and auto ~= "VALID" then
        return nil
    end
    local g = { strides = {}, dilations = {}, padding = {} }
    for d = 1, n do
        g.strides[d], g.dilations[d], g.padding[d] = strides[d] or 1, dilations[d] or 1, pads[d] or 0
        if g.padding[d] ~= (pads[n + d] or 0) then
            return nil
        end
    end
    return g
end

-- ---- products ----

-- x as quint8: bytes, or floats that are on the scale's steps.
local function opened(x, scale, zero)
    if x.dtype == tide.uint8 then
        return tide._make_per_tensor_quantized_tensor(x, number(scale), number(zero))
    end
    return tide.quantize_per_tensor(x, number(scale), number(zero), tide.quint8)
end

local function is_byte(x, dtype) return x ~= nil and x.dtype == dtype end

--- product(how, x, x_scale, x_zero, w, w_scale, w_zero, bias, y_scale, y_zero): the bytes of a linear layer, or of a convolution (how.conv:
--- its attributes), or nothing where the operators of bytes are not for it. bias: float32 or nil. how.turned: w is (in, out); how.relu.
function bytes.product(how, x, x_scale, x_zero, w, w_scale, w_zero, bias, y_scale, y_zero)
    local conv = how.conv
    local one = x_scale:numel() == 1 and y_scale:numel() == 1
    if not one or not is_byte(x_zero, tide.uint8) or not is_byte(y_zero, tide.uint8) or not is_byte(w, tide.int8)
        or w:dim() ~= (conv and x:dim() or 2) or x:dim() < 2 then
        return nil
    end
    local packed = pack_of(w, w_scale, w_zero, conv and conv.group or 1, how.turned)
    local g = conv and geometry(conv, w:dim() - 2)
    if not packed or conv and not g then
        return nil
    end
    x = opened(x, x_scale, x_zero)
    if conv then
        return tide._quantized_conv(x, packed, bias, number(y_scale), number(y_zero), table.move(w.shape, 3, w:dim(), 1, {}), g.strides,
            g.padding, g.dilations, how.relu or false):int_repr():contiguous()
    end
    return tide._quantized_linear(x, packed, bias, number(y_scale), number(y_zero), how.relu or false):int_repr()
end

--- float_bias(bias, x_scale, w_scale): a bias of int32 as the float32 of which the operators make it again; the second result is
--- false where they would not.
function bytes.float_bias(bias, x_scale, w_scale)
    if not bias then
        return nil, true
    end
    local both = x_scale:float():flatten() * w_scale:float():flatten()
    local whole = bias:float()
    local floats = whole * both
    return floats, ((floats / both):eq(whole):all():item() and bias:abs():amax():item() < 1 << 24)
end

-- ---- graphs ----

-- What computes a joined node; where the operators of bytes are not for it, in floats.
local function run_joined(call, ...)
    local how, plain = call.attributes.how, call.attributes.plain
    return bytes.product(how, ...) or plain(how, ...)
end

-- The same in floats, as the nodes that were joined do it.
local function in_floats(how, x, x_scale, x_zero, w, w_scale, w_zero, bias, y_scale, y_zero)
    local operators = tide._require "onnx.operators"
    local function call(attributes) return { attributes = attributes, opset = 18, outputs = 1, inputs = 3 } end
    x = is_byte(x, tide.uint8) and operators.DequantizeLinear(call {}, x, x_scale, x_zero) or x
    local rows = operators.DequantizeLinear(call { axis = how.axis }, w, w_scale, w_zero)
    local y
    if how.conv then
        y = operators.Conv(call(how.conv), x, rows, bias)
    else
        y = tide.linear(x, how.turned and rows:t() or rows, bias)
    end
    return operators.QuantizeLinear(call {}, how.relu and y:relu() or y, y_scale, y_zero)
end

-- What moves elements or picks the largest: what stood on a scale's steps stays there.
local HANDS_ON <const> = { MaxPool = true, Reshape = true, Flatten = true, Squeeze = true, Unsqueeze = true, Transpose = true, Identity = true }

-- The DequantizeLinear whose steps the value stands on, and whether it is that itself.
local function source(makers, name)
    local node, direct = makers[name], true
    while node and HANDS_ON[node.name] and #node.outputs == 1 do
        node, direct = makers[node.inputs[1]], false
    end
    if node and node.name == "DequantizeLinear" and node.inputs[3] and node.inputs[3] ~= "" then
        return node, direct
    end
end

-- The weight of a product: {DequantizeLinear of a constant, turned}.
local function weight(makers, constants, product)
    local turned = product.name == "MatMul" or product.name == "Gemm" and product.attributes.transB ~= 1
    local node = makers[product.inputs[2]]
    if node and node.name == "Transpose" and product.name ~= "Conv" and node.attributes.perm and node.attributes.perm[1] == 1 and #node.attributes.perm == 2 then
        node, turned = makers[node.inputs[1]], not turned
    end
    local w = node and node.name == "DequantizeLinear" and constants[node.inputs[1]]
    local axis = node and node.attributes.axis or 1
    local fits = w and constants[node.inputs[2]] and (constants[node.inputs[2]]:numel() == 1 or axis % w:dim() == (turned and 1 or 0))
    if fits then
        return node, turned
    end
end

-- The product behind a value, with its bias and ReLU, if nobody else reads what lies between.
local function find_product(makers, readers, constants, name)
    local relu, bias
    local node = makers[name]
    local function step(into)
        return #readers[into] == 1 and makers[into] or nil
    end
    if node and node.name == "Relu" and #readers[name] == 1 then
        relu, node = true, step(node.inputs[1])
    elseif node and #readers[name] ~= 1 then
        node = nil
    end
    if node and node.name == "Add" and constants[node.inputs[2]] then
        bias, node = node.inputs[2], step(node.inputs[1])
        node = node and node.name == "MatMul" and node or nil
    end
    local a = node and node.attributes
    if node and node.name == "Gemm" and (a.transA == 1 or (a.alpha or 1.0) ~= 1.0 or (a.beta or 1.0) ~= 1.0) then
        return nil
    elseif node and (node.name == "Conv" or node.name == "Gemm" or node.name == "MatMul") then
        bias = bias or node.inputs[3] ~= "" and node.inputs[3] or nil
        if not bias or constants[bias] and constants[bias].dtype == tide.float32 and constants[bias]:dim() == 1 then
            return node, bias, relu
        end
    end
end

-- A node that computes what a QuantizeLinear gives of a product; nothing where it is none.
local function joined(makers, readers, constants, last)
    local product, bias, relu = find_product(makers, readers, constants, last.inputs[1])
    local x, direct = nil, nil
    local w, turned
    if product then
        x, direct = source(makers, product.inputs[1])
        w, turned = weight(makers, constants, product)
    end
    if not x or not w or not last.inputs[3] or last.inputs[3] == "" then
        return nil
    end
    local how = { conv = product.name == "Conv" and product.attributes or nil, turned = turned, relu = relu, axis = w.attributes.axis or 1 }
    local inputs = { direct and x.inputs[1] or product.inputs[1], x.inputs[2], x.inputs[3], w.inputs[1], w.inputs[2], w.inputs[3] or "",
        bias or "", last.inputs[2], last.inputs[3] }
    return { name = last.name, what = product.what, inputs = inputs, outputs = last.outputs, opset = last.opset, dead = {},
        attributes = { how = how, plain = in_floats }, run = run_joined }
end

local function add_readers(readers, list)
    for _, name in ipairs(list) do
        readers[name] = readers[name] or {}
        table.insert(readers[name], true)
    end
end

--- join(block): layers of floats between roundings become one node each, before the graph's order is found (onnx/graph.lua).
function bytes.join(block)
    local makers, readers = {}, setmetatable({}, { __index = function() return {} end })
    add_readers(readers, block.outputs)
    for _, node in ipairs(block.nodes) do
        for _, name in ipairs(node.outputs) do
            makers[name] = node
        end
        add_readers(readers, node.inputs)
        for _, value in pairs(node.attributes) do
            if type(value) == "table" and value.captures then
                add_readers(readers, value.captures)
            end
        end
    end
    local changed = false
    for k, node in ipairs(block.nodes) do
        local one = node.name == "QuantizeLinear" and joined(makers, readers, block.constants, node)
        block.nodes[k] = one or node
        changed = changed or one ~= nil and one ~= false
    end
    return changed
end

--- prune(block): nodes that nobody reads are taken out, from the last on.
function bytes.prune(block)
    local read = {}
    for _, name in ipairs(block.outputs) do
        read[name] = true
    end
    for k = #block.nodes, 1, -1 do
        local node, wanted = block.nodes[k], false
        for _, name in ipairs(node.outputs) do
            wanted = wanted or read[name]
        end
        if not wanted then
            table.remove(block.nodes, k)
        else
            for _, name in ipairs(node.reads) do
                read[name] = true
            end
        end
    end
end

return bytes
