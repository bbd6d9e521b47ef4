-- onnx/graph.lua: graphs of ONNX made ready and run: nodes in their order, values by name, each let go of after its last use.
-- What a node computes is told by onnx/operators.lua.
local tide = ...
local tensors = tide._require "onnx.tensors"
local wrong, shown = tensors.wrong, tensors.shown
local graph = {}

local MOST_DEPTH <const> = 16 -- of graphs in graphs

-- ---- making ready ----

-- Values of an attribute as Lua's: a number, a text, a list, a tensor, a graph that is ready.
local function value_of(a, context, what)
    local kind = a.type
    if a.ref then
        return { ref = a.ref }
    elseif a.t or kind == 4 then
        return a.t and tensors.read(a.t, context.file, context.folder) or wrong("%s has no tensor", what)
    elseif a.g or kind == 5 then
        return a.g and graph.prepare(a.g, context) or wrong("%s has no graph", what)
    elseif a.sparse then
        return { sparse = a.sparse, context = context }
    elseif kind == 1 then
        return a.f or 0.0
    elseif kind == 2 then
        return a.i or 0
    elseif kind == 3 then
        return a.s or ""
    elseif kind == 6 then
        return a.floats
    elseif kind == 7 then
        return a.ints
    elseif kind == 8 then
        return a.strings
    elseif kind == 13 or kind == 14 then -- types
        return true
    elseif kind == nil then -- before opset 2 nobody said it
        return a.f or a.i or a.s or #a.floats > 0 and a.floats or #a.strings > 0 and a.strings or a.ints
    end
    wrong("%s is of a kind that is not read (%s)", what, tostring(kind))
end

local function prepare_node(entry, context)
    local domain = (entry.domain == "ai.onnx" or entry.domain == nil) and "" or entry.domain
    local name = domain == "" and entry.op_type or domain .. "." .. tostring(entry.op_type)
    local node = { name = name, inputs = entry.input, outputs = entry.output, opset = context.opsets[domain] or 0, dead = {},
        what = string.format("%s%s", shown(name), entry.name and entry.name ~= "" and string.format(" '%s'", shown(entry.name)) or "") }
    local attributes = {}
    for _, a in ipairs(entry.attribute) do
        attributes[a.name or ""] = value_of(a, context, string.format("%s's attribute '%s'", node.what, shown(a.name)))
    end
    node.attributes = attributes
    local fn = context.functions[name]
    if fn then
        node.call = fn
    else
        node.run = tide._require("onnx.operators")[name]
        if not node.run then
            context.unknown[name] = (context.unknown[name] or 0) + 1
        end
    end
    return node
end

-- Nodes in an order in which each comes after those that make what it reads; as they stand where that holds.
local function in_order(nodes, known)
    local left, order = nodes, {}
    while #left > 0 do
        local later, made = {}, {}
        for _, node in ipairs(left) do
            for _, name in ipairs(node.outputs) do
                made[name] = true
            end
        end
        for _, node in ipairs(left) do
            local ready = true
            for _, name in ipairs(node.reads) do
                ready = ready and (known[name] or not made[name])
            end
            if ready then
                order[#order + 1] = node
                for _, name in ipairs(node.outputs) do
                    known[name], made[name] = true, nil
                end
            else
                later[#later + 1] = node
            end
        end
        if #later == #left then
            wrong("its nodes wait for one another in a circle: %s among them", later[1].what)
        end
        left = later
    end
    return order
end

-- What a node reads: its inputs, and what graphs in it read from outside.
local function find_reads(node, block)
    local reads = {}
    for _, name in ipairs(node.inputs) do
        if name ~= "" then
            reads[#reads + 1] = name
        end
    end
    for _, value in pairs(node.attributes) do
        if type(value) == "table" and value.captures then
            table.move(value.captures, 1, #value.captures, #reads + 1, reads)
        end
    end
    node.reads = reads
    for _, name in ipairs(reads) do
        if not block.makes[name] then
            block.captures[#block.captures + 1] = name
        end
    end
end

-- Behind each node the names that nobody reads any more.
local function find_last_reads(block)
    local last, keep = {}, {}
    for _, name in ipairs(block.outputs) do
        keep[name] = true
    end
    for k, node in ipairs(block.nodes) do
        for _, name in ipairs(node.reads) do
            last[name] = k
        end
        for _, name in ipairs(node.outputs) do
            last[name] = last[name] or k
        end
    end
    for name, k in pairs(last) do
        if block.makes[name] and not keep[name] and not block.constants[name] then
            local dead = block.nodes[k].dead
            dead[#dead + 1] = name
        end
    end
end

--- prepare(entry, context): a graph {inputs, outputs (names), nodes, constants, captures} of a message; context has file, folder,
--- opsets by domain, functions by name, and `unknown`, where operators that are not there are counted.
function graph.prepare(entry, context)
    context.depth = (context.depth or 0) + 1
    if context.depth > MOST_DEPTH then
        wrong("its graphs are nested more than %d deep", MOST_DEPTH)
    end
    local block = { inputs = {}, outputs = {}, nodes = {}, constants = {}, captures = {}, makes = {}, types = {} }
    for _, one in ipairs(entry.initializer) do
        block.constants[one.name or ""] = tensors.read(one, context.file, context.folder)
    end
    for _, one in ipairs(entry.sparse_initializer) do
        block.constants[one.values and one.values.name or ""] = graph.dense(one, context)
    end
    for name in pairs(block.constants) do
        block.makes[name] = true
    end
    for _, value in ipairs(entry.input) do
        block.makes[value.name or ""] = true
        block.inputs[#block.inputs + 1] = value.name or ""
        block.types[value.name or ""] = value.type
    end
    for _, value in ipairs(entry.output) do
        block.outputs[#block.outputs + 1] = value.name or ""
        block.types[value.name or ""] = block.types[value.name or ""] or value.type
    end
    local made = {}
    for k, one in ipairs(entry.node) do
        local node = prepare_node(one, context)
        block.nodes[k] = node
        for _, name in ipairs(node.outputs) do
            if name ~= "" and made[name] then
                wrong("'%s' is made twice", shown(name))
            end
            made[name] = true
            block.makes[name] = name ~= ""
        end
    end
    local bytes = tide._require "onnx.bytes"
    local joined = bytes.join(block)
    for _, node in ipairs(block.nodes) do
        find_reads(node, block)
    end
    local known = {}
    for name in pairs(block.constants) do
        known[name] = true
    end
    for _, name in ipairs(block.inputs) do
        known[name] = true
    end
    block.nodes = in_order(block.nodes, known)
    if joined then
        bytes.prune(block)
    end
    for _, name in ipairs(block.outputs) do
        if not block.makes[name] then
            block.captures[#block.captures + 1] = name
        end
    end
    find_last_reads(block)
    context.depth = context.depth - 1
    return block
end

--- dense(sparse, context): a sparse tensor with all its elements.
function graph.dense(sparse, context)
    local values = tensors.read(sparse.values or wrong("a sparse tensor without values"), context.file, context.folder)
    local places = tensors.read(sparse.indices or wrong("a sparse tensor without indices"), context.file, context.folder)
    local count = 1
    for _, size in ipairs(sparse.dims) do
        count = count * size
    end
    if #sparse.dims == 0 or count < 0 or count > 1 << 31 or places:size(1) ~= values:numel() then
        wrong("a sparse tensor whose sizes do not fit its indices")
    end
    local flat = places
    if places:dim() == 2 then
        flat = tide.zeros(places:size(1), { dtype = tide.int64 })
        for d, size in ipairs(sparse.dims) do
            flat = flat * size + places[{ {}, d }]
        end
    end
    return tide.zeros(count, { dtype = values.dtype }):scatter(1, flat + 1, values):view(sparse.dims)
end

-- ---- running ----

local run_block

-- An attribute of a function's node that names one of the function's own.
local function resolved(attributes, given)
    local all = {}
    for name, value in pairs(attributes) do
        if type(value) == "table" and value.ref then
            value = given and given[value.ref]
        end
        all[name] = value
    end
    return all
end

local function run_node(node, values, given)
    local inputs, count = {}, #node.inputs
    for k, name in ipairs(node.inputs) do
        if name ~= "" then
            inputs[k] = values[name]
            if inputs[k] == nil then
                wrong("%s reads '%s', which nobody makes", node.what, shown(name))
            end
        end
    end
    local attributes = given and resolved(node.attributes, given) or node.attributes
    local outputs
    if node.call then
        local inner, block = {}, node.call
        for k, name in ipairs(block.inputs) do
            inner[name] = inputs[k]
        end
        local all = setmetatable(attributes, { __index = block.defaults })
        outputs = run_block(block, inner, all)
    else
        local call = { attributes = attributes, opset = node.opset, outputs = #node.outputs, inputs = count, what = node.what,
            block = function(block, list) -- runs a graph of an attribute
                local inner = setmetatable({}, { __index = values })
                for k, name in ipairs(block.inputs) do
                    inner[name] = list[k]
                end
                return run_block(block, inner, given)
            end }
        outputs = table.pack(node.run(call, table.unpack(inputs, 1, count)))
    end
    for k, name in ipairs(node.outputs) do
        if name ~= "" then
            values[name] = outputs[k]
        end
    end
end

function run_block(block, values, given)
    for name, x in pairs(block.constants) do
        if rawget(values, name) == nil then
            values[name] = x
        end
    end
    for _, node in ipairs(block.nodes) do
        local ok, problem = pcall(run_node, node, values, given)
        if not ok then
            if type(problem) == "table" and problem.onnx and not problem.placed then
                problem = { onnx = string.find(problem.onnx, node.what, 1, true) and problem.onnx or node.what .. ": " .. problem.onnx, placed = true }
            elseif type(problem) == "string" and string.find(problem, "attempt to ", 1, true) then -- it lacks an attribute, or has another kind of one
                problem = { onnx = node.what .. ": its attributes or inputs are not such as the operator takes", placed = true }
            elseif type(problem) == "string" then
                problem = { onnx = node.what .. ": " .. problem, placed = true }
            end
            error(problem, 0)
        end
        for _, name in ipairs(node.dead) do
            values[name] = nil
        end
    end
    local outputs = {}
    for k, name in ipairs(block.outputs) do
        outputs[k] = values[name]
    end
    return outputs
end

--- run(block, values): its outputs, in their order, of its inputs by name.
function graph.run(block, values) return run_block(block, values, nil) end

return graph
