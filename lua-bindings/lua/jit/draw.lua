-- jit/draw.lua: f:draw(): graphs as boxes and lines, in characters for a terminal and as SVG for a notebook. Blocks of branches
-- and loops, and groups, are drawn below the graph that has them.
local tide = ...
local layout = tide._require "jit.layout"
local draw = {}

-- ---- parts ----

-- The graph, the blocks in it and its groups: a list of {title, block}.
local function parts_of(description, name)
    local parts = { { title = name, block = description } }
    local function walk(block)
        for _, node in ipairs(block.nodes) do
            for k, inner in ipairs(node.blocks) do
                local kind = string.gsub(node.kind, "^prim::", "")
                local which = kind == "If" and (k == 1 and "then" or "else") or "body"
                parts[#parts + 1] = { title = string.format("%s, %s%s", kind, which, node.place and " at " .. node.place or ""), block = inner }
                walk(inner)
            end
        end
    end
    walk(description)
    for k, group in ipairs(description.groups) do
        parts[#parts + 1] = { title = string.format("FusionGroup %d", k), block = group }
        walk(group)
    end
    return parts
end

-- ---- characters ----

local UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
local LINES = { [0] = " ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼" }

local Canvas = {}
Canvas.__index = Canvas

local function new_canvas() return setmetatable({ rows = {}, height = 0 }, Canvas) end

function Canvas:cell(x, y)
    self.height = math.max(self.height, y)
    self.rows[y] = self.rows[y] or {}
    return self.rows[y], x
end

function Canvas:join(x, y, ways)
    local row = self:cell(x, y)
    local now = row[x]
    if now == nil or math.type(now) == "integer" then
        row[x] = (now or 0) | ways
    end
end

function Canvas:write(x, y, text)
    local row = self:cell(x, y)
    for _, point in utf8.codes(text, true) do
        row[x] = utf8.char(point)
        x = x + 1
    end
end

function Canvas:level(x1, x2, y)
    if x1 > x2 then
        x1, x2 = x2, x1
    end
    for x = x1, x2 do
        self:join(x, y, (x > x1 and LEFT or 0) | (x < x2 and RIGHT or 0))
    end
end

function Canvas:upright(x, y1, y2)
    for y = y1, y2 do
        self:join(x, y, (y > y1 and UP or 0) | (y < y2 and DOWN or 0))
    end
end

function Canvas:text()
    local lines = {}
    for y = 1, self.height do
        local row, parts, last = self.rows[y] or {}, {}, 0
        for x in pairs(row) do
            last = math.max(last, x)
        end
        for x = 1, last do
            local cell = row[x] or 0
            parts[x] = math.type(cell) == "integer" and LINES[cell] or cell
        end
        lines[y] = string.gsub(table.concat(parts), "%s+$", "")
    end
    return table.concat(lines, "\n")
end

local function width_of(text) return utf8.len(text) or #text end

local function widest(lines)
    local width = 0
    for _, line in ipairs(lines) do
        width = math.max(width, width_of(line))
    end
    return width
end

local function text_size(box)
    if box.kind == "joint" then
        return 1, 0
    end
    return widest(box.lines) + 4, #box.lines + 2
end

local function text_box(canvas, box, y)
    local x, right, bottom = box.x + 1, box.x + box.width, y + box.height - 1
    canvas:level(x, right, y)
    canvas:level(x, right, bottom)
    canvas:upright(x, y, bottom)
    canvas:upright(right, y, bottom)
    for k, line in ipairs(box.lines) do
        canvas:write(x + 2, y + k, line)
    end
end

local function text_of(block)
    local graph, canvas, y = layout.graph(block, text_size, 2), new_canvas(), 1
    for k, layer in ipairs(graph.layers) do
        local height = 0
        for _, box in ipairs(layer) do
            height = math.max(height, box.height)
        end
        local below = y + height
        for _, box in ipairs(layer) do
            local middle = box.x + 1 + box.width // 2
            if box.kind == "joint" then
                canvas:upright(middle, y, below)
            else
                text_box(canvas, box, y)
            end
            local row = below + box.row - 1
            for _, to in ipairs(box.down) do
                local target = to.x + 1 + to.width // 2
                canvas:upright(middle, box.kind == "joint" and y or y + box.height - 1, row)
                canvas:level(middle, target, row)
                canvas:upright(target, row, below + layer.rows)
            end
        end
        y = k < #graph.layers and below + layer.rows or below
    end
    return canvas:text()
end

-- ---- SVG ----

local LETTER, LINE, ROW, MARGIN = 7.2, 16, 12, 8
local COLOURS = { input = "#e3f2fd", output = "#e8f5e9", operator = "#ffffff", other = "#fff8e1" }

local escape = tide._require("notebook.html").escape

local function svg_size(box)
    if box.kind == "joint" then
        return 2, 0
    end
    return math.ceil(widest(box.lines) * LETTER) + 16, #box.lines * LINE + 10
end

local function svg_box(parts, box, y)
    parts[#parts + 1] = string.format('<g><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="4" fill="%s" stroke="#607d8b"/>',
        escape(box.place or box.lines[1]), box.x + MARGIN, y, box.width, box.height, COLOURS[box.kind])
    for k, line in ipairs(box.lines) do
        parts[#parts + 1] = string.format('<text x="%d" y="%d" fill="%s">%s</text>', box.x + MARGIN + 8, y + k * LINE,
            k == 1 and "#102027" or "#607d8b", escape(line))
    end
    parts[#parts + 1] = "</g>"
end

-- The elements of a block's drawing from y on; its width, and where it ends.
local function svg_block(parts, block, y)
    local graph = layout.graph(block, svg_size, 24)
    for k, layer in ipairs(graph.layers) do
        local height = 0
        for _, box in ipairs(layer) do
            height = math.max(height, box.height)
        end
        local below = y + height
        local next_y = below + (layer.rows + 1) * ROW
        for _, box in ipairs(layer) do
            local x = box.x + MARGIN + box.width // 2
            local from = box.kind == "joint" and y or y + box.height
            for _, to in ipairs(box.down) do
                parts[#parts + 1] = string.format('<path d="M%d %dV%dH%dV%d" fill="none" stroke="#90a4ae"%s/>', x, from,
                    below + box.row * ROW, to.x + MARGIN + to.width // 2, next_y, to.kind ~= "joint" and ' marker-end="url(#tip)"' or "")
            end
            if box.kind ~= "joint" then
                svg_box(parts, box, y)
            end
        end
        y = k < #graph.layers and next_y or below
    end
    return graph.width + 2 * MARGIN, y
end

local function svg_of(parts_list)
    local parts, width, y = {}, 0, MARGIN
    for _, part in ipairs(parts_list) do
        parts[#parts + 1] = string.format('<text x="%d" y="%d" font-weight="bold" fill="#607d8b">%s</text>', MARGIN, y + LINE, escape(part.title))
        local wide, bottom = svg_block(parts, part.block, y + 2 * LINE)
        width, y = math.max(width, wide, math.ceil(width_of(part.title) * LETTER) + 2 * MARGIN), bottom + 2 * LINE
    end
    return string.format('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" '
        .. 'font-size="12"><defs><marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        .. '<path d="M0 0L6 3L0 6z" fill="#90a4ae"/></marker></defs>%s</svg>', width, y, width, y, table.concat(parts))
end

-- ---- pictures ----

-- What f:draw() gives: shown, it is the drawing where the front end can show one.
local Picture = { __name = "tide.jit.Picture" }
Picture.__index = Picture
function Picture:__tostring() return self.text end
function Picture:__display() return { ["text/plain"] = self.text, ["image/svg+xml"] = self.svg } end

--- picture(description, name): {text, svg} of a graph.
function draw.picture(description, name)
    local parts, texts = parts_of(description, name), {}
    for k, part in ipairs(parts) do
        texts[k] = (k > 1 and part.title .. "\n" or "") .. text_of(part.block)
    end
    return setmetatable({ text = table.concat(texts, "\n\n"), svg = svg_of(parts) }, Picture)
end

return draw
