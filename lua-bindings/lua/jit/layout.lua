-- jit/layout.lua: where the boxes of a graph stand: layers from the inputs down to the results, in which those that are
-- joined stand near one another (Sugiyama's way: layers by longest path, joints for edges that pass layers, order by the
-- middle of the neighbours). It knows no pictures: sizes are the caller's units.
local tide = ...
local code = tide._require "jit.code"
local layout = {}

local SWEEPS = 8

-- ---- boxes ----

local function short_type(text)
    local name, inner = string.match(text, "^(%a+)(%b())$")
    if not name then
        return text
    end
    local sizes = {}
    for part in string.gmatch(string.sub(inner, 2, -2), "[^,]+") do
        part = string.gsub(part, "^%s+", "")
        if not string.find(part, "^%d+$") and part ~= "*" then
            break
        end
        sizes[#sizes + 1] = part
    end
    return name .. "(" .. table.concat(sizes, ", ") .. ")"
end

local function constant_text(node)
    local value = node.constant
    if node.what == "tensor" then
        return string.format("%s %s", value.dtype, value.shape)
    elseif type(value) == "table" then
        local parts = {}
        for k, number in ipairs(value) do
            parts[k] = code.number(number)
        end
        return "{" .. table.concat(parts, ", ") .. "}"
    end
    return type(value) == "number" and code.number(value) or tostring(value)
end

-- What stands in a box beside the operator's name: the constants that are no defaults.
local function details(node, constants)
    local parts = {}
    for k, name in ipairs(node.inputs) do
        local constant, param = constants[name], node.params and node.params[k]
        if constant and not (param and param.default) then
            local text = constant_text(constant)
            parts[#parts + 1] = param and constant.what ~= "tensor" and k > 1 and param.name .. " " .. text or text
        end
    end
    return table.concat(parts, ", ")
end

local function short_kind(node)
    local kind = string.gsub(node.kind, "^%a+::", "")
    if node.inplace then
        kind = kind .. "_"
    end
    return node.group and string.format("%s %d", kind, node.group) or kind
end

local function add_box(graph, kind, lines)
    local box = { kind = kind, lines = lines, from = {}, to = {} }
    graph.boxes[#graph.boxes + 1] = box
    return box
end

local function join(from, to)
    if from and not from.to[to] then
        from.to[to], to.from[from] = true, true
        from.to[#from.to + 1], to.from[#to.from + 1] = to, from
    end
end

-- Everything that a node and the blocks in it read.
local function reads(node, list)
    list = list or {}
    for _, name in ipairs(node.inputs) do
        list[#list + 1] = name
    end
    for _, block in ipairs(node.blocks) do
        for _, inner in ipairs(block.nodes) do
            reads(inner, list)
        end
        for _, name in ipairs(block.outputs) do
            list[#list + 1] = name
        end
    end
    return list
end

local function boxes_of(block)
    local graph, makers, constants = { boxes = {} }, {}, {}
    for _, input in ipairs(block.inputs) do
        makers[input.name] = add_box(graph, "input", { input.name, short_type(input.type) })
    end
    for _, node in ipairs(block.nodes) do
        if node.kind == "prim::Constant" then
            constants[node.outputs[1].name] = node
        else
            local types = {}
            for k, output in ipairs(node.outputs) do
                types[k] = short_type(output.type)
            end
            local detail = details(node, constants)
            local box = add_box(graph, node.operator and "operator" or "other",
                { short_kind(node) .. (detail == "" and "" or "  " .. detail), table.concat(types, ", ") })
            box.place = node.place
            for _, name in ipairs(reads(node)) do
                join(makers[name], box)
            end
            for _, output in ipairs(node.outputs) do
                makers[output.name] = box
            end
        end
    end
    local results = add_box(graph, "output", { "return" })
    for _, name in ipairs(block.outputs) do
        join(makers[name], results)
    end
    return graph, results
end

-- ---- layers ----

-- Boxes are in the order in which they run, so that those before one are placed already.
local function find_layers(graph, results)
    local last = 1
    for _, box in ipairs(graph.boxes) do
        box.layer = 1
        for _, before in ipairs(box.from) do
            box.layer = math.max(box.layer, before.layer + 1)
        end
        last = math.max(last, box.layer)
    end
    results.layer = math.max(results.layer, last)
    graph.layers = {}
    for k = 1, results.layer do
        graph.layers[k] = {}
    end
    for _, box in ipairs(graph.boxes) do
        table.insert(graph.layers[box.layer], box)
    end
end

-- An edge that passes layers goes through a joint in each: all edges are then between neighbours.
local function add_joints(graph)
    for _, box in ipairs(graph.boxes) do
        box.down, box.up = box.down or {}, box.up or {}
        local chains = {} -- joints of this box by layer: its edges share them
        for _, to in ipairs(box.to) do
            local at = box
            for layer = box.layer + 1, to.layer - 1 do
                local joint = chains[layer]
                if not joint then
                    joint = { kind = "joint", lines = {}, layer = layer, down = {}, up = { at } }
                    chains[layer] = joint
                    table.insert(at.down, joint)
                    table.insert(graph.layers[layer], joint)
                end
                at = joint
            end
            to.up = to.up or {}
            table.insert(at.down, to)
            table.insert(to.up, at)
        end
    end
end

local function middle(box, neighbours)
    local sum = 0
    for _, other in ipairs(neighbours) do
        sum = sum + other.order
    end
    return #neighbours > 0 and sum / #neighbours or box.order
end

local function number_layer(layer)
    for k, box in ipairs(layer) do
        box.order = k
    end
end

local function order_layers(graph)
    for _, layer in ipairs(graph.layers) do
        number_layer(layer)
    end
    for sweep = 1, SWEEPS do
        local down = sweep % 2 == 1
        for k = down and 2 or #graph.layers - 1, down and #graph.layers or 1, down and 1 or -1 do
            local layer, wanted = graph.layers[k], {}
            for _, box in ipairs(layer) do
                wanted[box] = middle(box, down and box.up or box.down)
            end
            table.sort(layer, function(a, b)
                if wanted[a] ~= wanted[b] then
                    return wanted[a] < wanted[b]
                end
                return a.order < b.order
            end)
            number_layer(layer)
        end
    end
end

-- ---- places ----

-- Each box as near to the middle of those above as those to its left let it.
local function place_boxes(graph, size, gap)
    graph.width = 0
    for _, layer in ipairs(graph.layers) do
        local free = 0
        for _, box in ipairs(layer) do
            box.width, box.height = size(box)
            local centre, n = 0, 0
            for _, above in ipairs(box.up) do
                centre, n = centre + above.x + above.width // 2, n + 1
            end
            box.x = math.max(free, n > 0 and centre // n - box.width // 2 or free)
            free = box.x + box.width + gap
            graph.width = math.max(graph.width, box.x + box.width)
        end
    end
end

-- Rows between two layers for the level parts of edges: those of one box share a row, and no two rows' parts that overlap
-- are one.
local function route(layer)
    local rows = {}
    for _, box in ipairs(layer) do
        local left, right = math.huge, -math.huge
        for _, to in ipairs(box.down) do
            for _, x in ipairs { box.x + box.width // 2, to.x + to.width // 2 } do
                left, right = math.min(left, x), math.max(right, x)
            end
        end
        local row = 1
        local function is_taken()
            for _, span in ipairs(rows[row] or {}) do
                if left <= span[2] and right >= span[1] then
                    return true
                end
            end
        end
        while left < right and is_taken() do
            row = row + 1
        end
        if left < right then
            rows[row] = rows[row] or {}
            table.insert(rows[row], { left, right })
        end
        box.row = row
    end
    return math.max(#rows, 1)
end

--- graph(block, size, gap): boxes with x, width, height, layer and row, in layers that have `rows` of edges below them.
--- size(box) gives a box's width and height.
function layout.graph(block, size, gap)
    local graph, results = boxes_of(block)
    find_layers(graph, results)
    add_joints(graph)
    order_layers(graph)
    place_boxes(graph, size, gap)
    for _, layer in ipairs(graph.layers) do
        layer.rows = route(layer)
    end
    return graph
end

return layout
