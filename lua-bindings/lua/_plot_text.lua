-- _plot_text.lua: a figure as lines of text: Braille patterns for curves and points, two columns and four rows of dots
-- to a cell, and blocks for bars. Colours where the terminal has them; without, later series are dotted.
local tide = ...
local text = {}

local HEIGHT = 16 -- cells
local ANSI = { 33, 208, 203, 73, 71, 220, 139, 217, 137, 250 } -- near the colours of the drawing

-- The bit of a dot: columns from the left, rows from the top.
local BITS = { { 0x01, 0x02, 0x04, 0x40 }, { 0x08, 0x10, 0x20, 0x80 } }

local function frontend() return tide._frontend and tide._frontend() or {} end

local function paint(colour, cell) return colour and ("\27[38;5;%dm%s\27[0m"):format(colour, cell) or cell end

-- Characters, not bytes.
local function width_of(s) return utf8.len(s) or #s end

local function cut(s, n)
    if width_of(s) <= n then
        return s
    end
    local at = utf8.len(s) and utf8.offset(s, math.max(n, 1)) or n
    return s:sub(1, at - 1) .. "…"
end

local function pad_left(s, n) return (" "):rep(n - width_of(s)) .. s end

-- ---- dots ----

local Canvas = {}
Canvas.__index = Canvas

local function new_canvas(columns, rows)
    return setmetatable({ columns = columns, rows = rows, bits = {}, colours = {} }, Canvas)
end

-- A dot at (x, y), counted from 0 at the bottom left.
function Canvas:dot(x, y, colour)
    x, y = math.floor(x + 0.5), math.floor(y + 0.5)
    if x < 0 or y < 0 or x >= 2 * self.columns or y >= 4 * self.rows then
        return
    end
    local top = 4 * self.rows - 1 - y
    local cell = top // 4 * self.columns + x // 2
    self.bits[cell] = (self.bits[cell] or 0) | BITS[x % 2 + 1][top % 4 + 1]
    self.colours[cell] = colour
end

-- The part of a segment that is on the canvas, as shares of it; nil: none of it is.
local function clip(x1, y1, x2, y2, w, h)
    local from, to = 0, 1
    for _, edge in ipairs { { x1 - x2, x1 + 0.5 }, { x2 - x1, w - 0.5 - x1 }, { y1 - y2, y1 + 0.5 }, { y2 - y1, h - 0.5 - y1 } } do
        local direction, room = edge[1], edge[2]
        if direction == 0 then
            if room < 0 then
                return nil
            end
        elseif direction < 0 then
            from = math.max(from, room / direction)
        else
            to = math.min(to, room / direction)
        end
    end
    if from <= to then
        return from, to
    end
    return nil
end

function Canvas:segment(x1, y1, x2, y2, colour, every)
    local from, to = clip(x1, y1, x2, y2, 2 * self.columns, 4 * self.rows)
    if not from then
        return
    end
    local ax, ay = x1 + from * (x2 - x1), y1 + from * (y2 - y1)
    local bx, by = x1 + to * (x2 - x1), y1 + to * (y2 - y1)
    local steps = math.max(1, math.ceil(math.max(math.abs(bx - ax), math.abs(by - ay))))
    for k = 0, steps do
        local x, y = ax + (bx - ax) * k / steps, ay + (by - ay) * k / steps
        if every == 1 or (math.floor(x + 0.5) + math.floor(y + 0.5)) % every == 0 then
            self:dot(x, y, colour)
        end
    end
end

function Canvas:lines()
    local lines = {}
    for row = 0, self.rows - 1 do
        local cells, last = {}, 0
        for column = 0, self.columns - 1 do
            local cell = row * self.columns + column
            local bits = self.bits[cell]
            cells[column + 1] = bits and paint(self.colours[cell], utf8.char(0x2800 + bits)) or " "
            last = bits and column + 1 or last
        end
        lines[row + 1] = table.concat(cells, "", 1, last)
    end
    return lines
end

-- ---- curves, points, histograms ----

local function across(fig, canvas, v)
    local p = fig.x:at(v)
    return p and p * (2 * canvas.columns - 1)
end

local function up(fig, canvas, v)
    local p = fig.y:at(v)
    return p and p * (4 * canvas.rows - 1)
end

local function draw_line(fig, canvas, s, colour, every)
    local px, py
    for k, v in ipairs(s.y) do
        local x, y = across(fig, canvas, s.x[k]), up(fig, canvas, v)
        if not (x and y and math.abs(x) < 1e7 and math.abs(y) < 1e7) then
            x, y = nil, nil
        elseif px then
            canvas:segment(px, py, x, y, colour, every)
        else
            canvas:dot(x, y, colour)
        end
        px, py = x, y
    end
end

local function draw_points(fig, canvas, s, colour)
    for k, v in ipairs(s.y) do
        if fig.x:holds(s.x[k]) and fig.y:holds(v) then
            canvas:dot(across(fig, canvas, s.x[k]), up(fig, canvas, v), colour)
        end
    end
end

-- Filled from the axis up; a later series is its outline, so that both are seen.
local function draw_histogram(fig, canvas, s, colour, every, index)
    local base = fig.y.log and 0 or math.max(0, up(fig, canvas, math.max(fig.y.low, 0)) or 0)
    for k, v in ipairs(s.y) do
        local top = v > 0 and up(fig, canvas, v)
        if top then
            local left = math.floor(across(fig, canvas, fig.edges[k]) + 0.5)
            local right = math.max(left, math.floor(across(fig, canvas, fig.edges[k + 1]) - 0.5))
            for x = left, right do
                if index == 1 then
                    canvas:segment(x, base, x, top, colour, 1)
                else
                    canvas:dot(x, top, colour)
                end
            end
        end
    end
end

local drawers = { line = draw_line, scatter = draw_points, hist = draw_histogram }

-- The labels of the y axis by line, counted from the top.
local function y_labels(fig, rows)
    local labels, widest = {}, 0
    for _, tick in ipairs(fig.y:ticks()) do
        local row = rows - math.floor(fig.y:at(tick.value) * (rows - 1) + 0.5)
        if not labels[row] and row >= 1 and row <= rows then
            labels[row] = cut(tick.label, 12)
            widest = math.max(widest, width_of(labels[row]))
        end
    end
    return labels, widest
end

-- The labels of the x axis on one line, each under its place, where there is room.
local function x_labels(fig, columns)
    local out, free = "", 0
    for _, tick in ipairs(fig.x:ticks(math.max(2, columns // 12))) do
        local w = width_of(tick.label)
        local at = math.floor(fig.x:at(tick.value) * (columns - 1) + 0.5) - w // 2
        at = math.max(0, math.min(at, columns - w))
        if at >= free then
            out = out .. (" "):rep(at - width_of(out)) .. tick.label
            free = at + w + 1
        end
    end
    return out
end

local function centre(s, width)
    return (" "):rep(math.max(0, (width - width_of(s)) // 2)) .. s
end

local function dots_of(every) return every == 1 and "⠒⠒" or every == 2 and "⠂⠂" or "⠂ " end

local function legend(fig, colours, everies)
    local parts = {}
    for k, s in ipairs(fig.series) do
        parts[k] = paint(colours[k], fig.kind == "line" and dots_of(everies[k]) or "⣿") .. " " .. cut(s.label, 24)
    end
    return table.concat(parts, "   ")
end

local function draw_dots(fig, columns, color)
    local labels, widest = y_labels(fig, HEIGHT)
    local canvas = new_canvas(math.max(10, columns - widest - 2), HEIGHT)
    local colours, everies = {}, {}
    for k, s in ipairs(fig.series) do
        colours[k] = color and ANSI[(k - 1) % #ANSI + 1] or nil
        everies[k] = color and 1 or math.min(k, 3)
        drawers[fig.kind](fig, canvas, s, colours[k], everies[k], k)
    end
    local lines = canvas:lines()
    if fig.empty then
        lines[HEIGHT // 2] = centre("no data", canvas.columns)
    end
    for row, line in ipairs(lines) do
        lines[row] = (pad_left(labels[row] or "", widest) .. (labels[row] and " ┤" or " │") .. line)
    end
    lines[#lines + 1] = (" "):rep(widest + 1) .. "└" .. ("─"):rep(canvas.columns)
    lines[#lines + 1] = (" "):rep(widest + 2) .. x_labels(fig, canvas.columns)
    if fig.xlabel then
        lines[#lines + 1] = (" "):rep(widest + 2) .. centre(fig.xlabel, canvas.columns)
    end
    if fig.legend then
        lines[#lines + 1] = (" "):rep(widest + 2) .. legend(fig, colours, everies)
    end
    return lines, widest + 2
end

-- ---- bars by name ----

local EIGHTHS = { "▏", "▎", "▍", "▌", "▋", "▊", "▉" }

local function bar_text(length)
    local whole = math.floor(length)
    local rest = math.floor((length - whole) * 8 + 0.5)
    if rest == 8 then
        return ("█"):rep(whole + 1)
    end
    return ("█"):rep(whole) .. (rest > 0 and EIGHTHS[rest] or "")
end

-- From zero to the right, or up to zero from the left; what goes beyond the limits is cut off.
local function horizontal_bar(fig, v, room)
    local p, zero = fig.y:at(v), fig.y:at(math.max(fig.y.low, math.min(0, fig.y.high)))
    if not p then
        return ""
    end
    p = math.max(0, math.min(1, p))
    local from, to = math.min(p, zero) * room, math.max(p, zero) * room
    if p < zero then
        from, to = math.floor(from + 0.5), math.floor(zero * room)
        return (" "):rep(from) .. ("█"):rep(to - from)
    end
    return (" "):rep(math.floor(from)) .. bar_text(to - math.floor(from))
end

local function draw_bars(fig, columns, color)
    local widest, values = 0, 0
    for k, name in ipairs(fig.names) do
        widest = math.max(widest, math.min(width_of(name), 24))
        for _, s in ipairs(fig.series) do
            values = math.max(values, #tide._number(s.y[k], 5))
        end
    end
    local room = math.max(5, columns - widest - values - 4)
    local lines = {}
    for k, name in ipairs(fig.names) do
        for index, s in ipairs(fig.series) do
            local bar = horizontal_bar(fig, s.y[k], room)
            lines[#lines + 1] = pad_left(index == 1 and cut(name, 24) or "", widest) .. " │"
                .. paint(color and ANSI[(index - 1) % #ANSI + 1], bar) .. " " .. tide._number(s.y[k], 5)
        end
    end
    if #lines == 0 then
        lines[1] = "no data"
    end
    if fig.legend then
        local parts = {}
        for k, s in ipairs(fig.series) do
            parts[k] = paint(color and ANSI[(k - 1) % #ANSI + 1], "█") .. " " .. cut(s.label, 24)
        end
        lines[#lines + 1] = (" "):rep(widest + 2) .. table.concat(parts, "   ")
    end
    return lines, widest + 2
end

--- draw(fig): the figure as text, within the terminal's width.
function text.draw(fig)
    local f = frontend()
    local color = f.color and not f.notebook
    local columns = math.max(20, math.min(f.width or 80, 100) - 1)
    local lines, left = nil, 0
    if fig.picture then
        lines = { fig.picture() }
    elseif fig.names then
        lines, left = draw_bars(fig, columns, color)
    else
        lines, left = draw_dots(fig, columns, color)
    end
    if fig.ylabel and not fig.picture then
        table.insert(lines, 1, cut(fig.ylabel, columns))
    end
    if fig.title then
        table.insert(lines, 1, (" "):rep(left) .. centre(cut(fig.title, columns - left), columns - left))
    end
    for _, note in ipairs(fig.notes) do
        lines[#lines + 1] = note
    end
    return table.concat(lines, "\n")
end

return text
