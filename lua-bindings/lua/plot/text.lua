-- plot/text.lua: a figure as lines of text: Braille patterns for curves and points, two columns and four rows of dots
-- to a cell, and blocks for bars. Colours where the terminal has them; without, later series are dotted.
local tide = ...
local text = {}

local HEIGHT = 16 -- cells
local LEVELS = { 0, 95, 135, 175, 215, 255 } -- of a colour in the cube of 256 colours

-- The code of a colour that is near "#rrggbb".
local function ansi(colour)
    local code = 16
    for at, weight in pairs { [2] = 36, [4] = 6, [6] = 1 } do
        local v, best = tonumber(string.sub(colour, at, at + 1), 16), 1
        for k, level in ipairs(LEVELS) do
            best = math.abs(level - v) < math.abs(LEVELS[best] - v) and k or best
        end
        code = code + weight * (best - 1)
    end
    return code
end

-- The bit of a dot: columns from the left, rows from the top.
local BITS = { { 0x01, 0x02, 0x04, 0x40 }, { 0x08, 0x10, 0x20, 0x80 } }

local function frontend() return tide._frontend and tide._frontend() or {} end

local function paint(colour, cell) return colour and string.format("\27[38;5;%dm%s\27[0m", colour, cell) or cell end

-- Characters, not bytes.
local function width_of(s) return utf8.len(s) or #s end

local function cut(s, n)
    if width_of(s) <= n then
        return s
    end
    local at = utf8.len(s) and utf8.offset(s, math.max(n, 1)) or n
    return string.sub(s, 1, at - 1) .. "…"
end

local function pad_left(s, n) return string.rep(" ", n - width_of(s)) .. s end

-- ---- dots ----

local Canvas = {}
Canvas.__index = Canvas

local function new_canvas(columns, rows)
    return setmetatable({ columns = columns, rows = rows, bits = {}, colours = {}, signs = {} }, Canvas)
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

-- A character in the place of a cell's dots.
function Canvas:sign(x, y, sign, colour)
    x, y = math.floor(x + 0.5), math.floor(y + 0.5)
    if x >= 0 and y >= 0 and x < 2 * self.columns and y < 4 * self.rows then
        local cell = (4 * self.rows - 1 - y) // 4 * self.columns + x // 2
        self.signs[cell], self.bits[cell], self.colours[cell] = sign, self.bits[cell] or 0, colour
    end
end

-- Dots of what lies behind: in cells alone that have none yet.
function Canvas:lay_behind(behind)
    for cell, bits in next, behind.bits do
        if not self.bits[cell] then
            self.bits[cell], self.colours[cell] = bits, behind.colours[cell]
        end
    end
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
            cells[column + 1] = bits and paint(self.colours[cell], self.signs[cell] or utf8.char(0x2800 + bits)) or " "
            last = bits and column + 1 or last
        end
        lines[row + 1] = table.concat(cells, "", 1, last)
    end
    return lines
end

-- ---- marks ----

local function across(fig, canvas, v)
    local p = fig.x:at(v)
    return p and p * (2 * canvas.columns - 1)
end

local function up(fig, canvas, v)
    local p = fig.y:at(v)
    return p and p * (4 * canvas.rows - 1)
end

local function far(v) return math.abs(v) >= 1e7 end

local drawers = {}

function drawers.line(fig, canvas, layer, colour, every)
    local px, py
    for k, v in ipairs(layer.y) do
        local x, y = across(fig, canvas, layer.x[k]), up(fig, canvas, v)
        if not (x and y) or far(x) or far(y) then
            x, y = nil, nil
        elseif px then
            canvas:segment(px, py, x, y, colour, every)
        else
            canvas:dot(x, y, colour)
        end
        px, py = x, y
    end
end

function drawers.points(fig, canvas, layer, colour, _, sign)
    for k, v in ipairs(layer.y) do
        if fig.x:holds(layer.x[k]) and fig.y:holds(v) then
            local x, y = across(fig, canvas, layer.x[k]), up(fig, canvas, v)
            if sign then
                canvas:sign(x, y, sign, colour)
            else
                canvas:dot(x, y, colour)
            end
        end
    end
end

function drawers.errors(fig, canvas, layer, colour)
    for k, v in ipairs(layer.x) do
        local x, low, high = across(fig, canvas, v), up(fig, canvas, layer.low[k]), up(fig, canvas, layer.high[k])
        if x and low and high then
            canvas:segment(x, low, x, high, colour, 1)
        end
    end
end

-- Few dots, so that curves are seen within.
function drawers.band(fig, canvas, layer, colour)
    local px, plow, phigh
    for k, v in ipairs(layer.x) do
        local x, low, high = across(fig, canvas, v), up(fig, canvas, layer.low[k]), up(fig, canvas, layer.high[k])
        if x and low and high and not far(x) then
            local from = px or x
            for column = math.max(0, math.ceil(math.min(from, x))), math.min(2 * canvas.columns, math.floor(math.max(from, x))) do
                local share = x == from and 1 or (column - from) / (x - from)
                local bottom, top = (plow or low) * (1 - share) + low * share, (phigh or high) * (1 - share) + high * share
                canvas:segment(column, bottom, column, top, colour, 4)
            end
            px, plow, phigh = x, low, high
        else
            px, plow, phigh = nil, nil, nil
        end
    end
end

-- Filled from the axis on; what lies over other bars is an outline, so that both are seen.
function drawers.rects(fig, canvas, layer, colour)
    local base = fig.y.log and 0 or up(fig, canvas, math.max(fig.y.low, math.min(0, fig.y.high))) or 0
    for k, v in ipairs(layer.y) do
        local top, from, to = up(fig, canvas, v), across(fig, canvas, layer.left[k]), across(fig, canvas, layer.right[k])
        if top and from and to and v ~= 0 and not far(from) and not far(to) then
            local left = math.floor(from + 0.5)
            for x = left, math.max(left, math.floor(to - 0.5)) do
                if layer.faint == "outline" then
                    canvas:dot(x, top, colour)
                else
                    canvas:segment(x, base, x, top, colour, 1)
                end
            end
        end
    end
end

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
            out = out .. string.rep(" ", at - width_of(out)) .. tick.label
            free = at + w + 1
        end
    end
    return out
end

local function centre(s, width)
    return string.rep(" ", math.max(0, (width - width_of(s)) // 2)) .. s
end

local function dots_of(every) return every == 1 and "⠒⠒" or every == 2 and "⠂⠂" or "⠂ " end

local KEYS = { points = "⠶", band = "⢕", errors = "⡇", rects = "⣿" }

-- What a marker looks like, and what series have one after the other where there are no colours.
local MARKERS = { o = "o", ["."] = "·", s = "■", ["^"] = "▲", v = "▼", d = "◆", x = "×", ["+"] = "+" }
local SIGNS = { "o", "×", "+", "▲", "■", "◆", "*", "#", "%", "@" }

local LETTERS = {}
for k = 1, 26 do
    LETTERS[k] = string.char(96 + k)
end

-- Signs by layer: of points that ask for a marker, of all others too where there are several series and no colours; those
-- take the next one of a list that none asks for.
local function signs_of(fig, color)
    local signs, asked, named, n = {}, {}, 0, 0
    for _, layer in ipairs(fig.layers) do
        named = named + ((layer.mark == "points" or layer.mark == "line") and 1 or 0)
        asked[MARKERS[layer.marker] or ""] = true
    end
    for _, layer in ipairs(fig.layers) do
        local list = layer.mark == "points" and SIGNS or LETTERS
        if layer.mark == "points" or layer.mark == "line" and named > 1 and not color then
            signs[layer] = MARKERS[layer.marker]
            for _ = 1, signs[layer] and 0 or not color and named > 1 and #list or 0 do
                n = n + 1
                signs[layer] = list[(n - 1) % #list + 1]
                if not asked[signs[layer]] then
                    break
                end
            end
        end
    end
    return signs
end

-- The sign of a curve, at places so far apart that the curve is seen.
local function sign_curve(fig, canvas, layer, sign, colour, n)
    local free = 6 * (n % 5)
    for k, v in ipairs(layer.y) do
        local x, y = across(fig, canvas, layer.x[k]), up(fig, canvas, v)
        if x and y and not far(x) and not far(y) and x >= free then
            canvas:sign(x, y, sign, colour)
            free = x + 30
        end
    end
end

-- What names the layers, as long as there is room.
local function legend(fig, columns, color, everies, signs)
    local parts, used = {}, 0
    for _, entry in ipairs(fig.legend) do
        local layer = entry.layers[#entry.layers]
        local sign = signs and signs[layer]
        local key = sign and (layer.mark == "line" and sign .. dots_of(everies[layer]) or sign) or KEYS[layer.mark] or dots_of(everies[layer])
        local label = cut(entry.label, 24)
        used = used + width_of(key) + width_of(label) + 4
        if used > columns + 3 and #parts > 0 then
            parts[#parts + 1] = "…"
            break
        end
        parts[#parts + 1] = paint(color and ansi(layer.colour), key) .. " " .. label
    end
    return table.concat(parts, "   ")
end

local function draw_dots(fig, columns, color)
    local labels, widest = y_labels(fig, HEIGHT)
    local canvas = new_canvas(math.max(10, columns - widest - 2), HEIGHT)
    local behind = new_canvas(canvas.columns, HEIGHT)
    local everies, lines_so_far, signs = {}, 0, signs_of(fig, color)
    for _, mark in ipairs { "others", "points" } do -- which stand out
        for _, layer in ipairs(fig.layers) do
            local colour = color and ansi(layer.colour)
            if (layer.mark == "points") == (mark == "points") then
                lines_so_far = lines_so_far + (layer.mark == "line" and 1 or 0)
                everies[layer] = color and 1 or math.min(lines_so_far, 3)
                drawers[layer.mark](fig, layer.mark == "band" and behind or canvas, layer, colour, everies[layer], signs[layer])
                if layer.mark == "line" and signs[layer] then
                    sign_curve(fig, canvas, layer, signs[layer], colour, lines_so_far)
                end
            end
        end
    end
    canvas:lay_behind(behind)
    local lines = canvas:lines()
    if fig.empty then
        lines[HEIGHT // 2] = centre("no data", canvas.columns)
    end
    for row, line in ipairs(lines) do
        lines[row] = (pad_left(labels[row] or "", widest) .. (labels[row] and " ┤" or " │") .. line)
    end
    lines[#lines + 1] = string.rep(" ", widest + 1) .. "└" .. string.rep("─", canvas.columns)
    lines[#lines + 1] = string.rep(" ", widest + 2) .. x_labels(fig, canvas.columns)
    if fig.xlabel then
        lines[#lines + 1] = string.rep(" ", widest + 2) .. centre(fig.xlabel, canvas.columns)
    end
    if #fig.legend > 0 then
        lines[#lines + 1] = string.rep(" ", widest + 2) .. legend(fig, canvas.columns, color, everies, signs)
    end
    return lines, widest + 2
end

-- ---- bars by name ----

local EIGHTHS = { "▏", "▎", "▍", "▌", "▋", "▊", "▉" }

local function bar_text(length)
    local whole = math.floor(length)
    local rest = math.floor((length - whole) * 8 + 0.5)
    if rest == 8 then
        return string.rep("█", whole + 1)
    end
    return string.rep("█", whole) .. (rest > 0 and EIGHTHS[rest] or "")
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
        return string.rep(" ", from) .. string.rep("█", to - from)
    end
    return string.rep(" ", math.floor(from)) .. bar_text(to - math.floor(from))
end

local function draw_bars(fig, columns, color)
    local widest, values = 0, 0
    for k, name in ipairs(fig.x.names) do
        widest = math.max(widest, math.min(width_of(name), 24))
        for _, layer in ipairs(fig.layers) do
            values = math.max(values, #tide._number(layer.y[k], 5))
        end
    end
    local room = math.max(5, columns - widest - values - 4)
    local lines = {}
    for k, name in ipairs(fig.x.names) do
        for index, layer in ipairs(fig.layers) do
            local bar = horizontal_bar(fig, layer.y[k], room)
            lines[#lines + 1] = pad_left(index == 1 and cut(name, 24) or "", widest) .. " │"
                .. paint(color and ansi(layer.colour), bar) .. " " .. tide._number(layer.y[k], 5)
        end
    end
    if #lines == 0 then
        lines[1] = "no data"
    end
    if #fig.legend > 0 then
        lines[#lines + 1] = string.rep(" ", widest + 2) .. legend(fig, columns - widest - 2, color, {})
    end
    return lines, widest + 2
end

local function only_bars(fig)
    for _, layer in ipairs(fig.layers) do
        if layer.mark ~= "rects" or not layer.names or #layer.y ~= #fig.x.names then
            return false
        end
    end
    return fig.x.names ~= nil
end

-- ---- all of it ----

local draw

-- Characters that are seen.
local function seen_width(line) return width_of((string.gsub(line, "\27%[[%d;]*m", ""))) end

-- Plots side by side, as many as have room.
local function draw_grid(fig, columns, color)
    local across_page = math.max(1, math.min(fig.columns, columns // 24))
    local width = (columns - 2 * (across_page - 1)) // across_page
    local lines = {}
    for first = 1, #fig.panels, across_page do
        local blocks, tallest = {}, 0
        for k = first, math.min(first + across_page - 1, #fig.panels) do
            blocks[#blocks + 1] = draw(fig.panels[k], width, color, true)
            tallest = math.max(tallest, #blocks[#blocks])
        end
        for row = 1, tallest do
            local parts = {}
            for k, block in ipairs(blocks) do
                local line = block[row] or ""
                parts[k] = line .. (k < #blocks and string.rep(" ", math.max(0, width + 2 - seen_width(line))) or "")
            end
            lines[#lines + 1] = (string.gsub(table.concat(parts), "%s+$", ""))
        end
    end
    return lines, 0
end

-- The figure as lines within so many columns; inside: beside others.
function draw(fig, columns, color, inside)
    local lines, left = nil, 0
    if fig.panels then
        lines, left = draw_grid(fig, columns, color)
    elseif fig.picture then
        lines = {}
        for line in string.gmatch(fig.picture(inside and columns or nil) .. "\n", "([^\n]*)\n") do
            lines[#lines + 1] = line
        end
    elseif only_bars(fig) then
        lines, left = draw_bars(fig, columns, color)
    else
        lines, left = draw_dots(fig, columns, color)
    end
    if fig.ylabel and not fig.picture then
        table.insert(lines, 1, cut(fig.ylabel, columns))
    end
    if fig.title then
        local width = columns - left
        if fig.picture then -- which may be narrower
            width = 0
            for _, line in ipairs(lines) do
                width = math.max(width, seen_width(line))
            end
        end
        table.insert(lines, 1, string.rep(" ", left) .. centre(cut(fig.title, columns - left), math.min(width, columns - left)))
    end
    for _, note in ipairs(fig.notes or {}) do
        lines[#lines + 1] = note
    end
    return lines
end

--- draw(fig): the figure as text, within the terminal's width.
function text.draw(fig)
    local f = frontend()
    return table.concat(draw(fig, math.max(20, math.min(f.width or 80, 100) - 1), f.color and not f.notebook), "\n")
end

return text
