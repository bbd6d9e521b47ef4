-- plot/page.lua: a figure laid out in pixels and drawn with a pen: SVG, PDF and pictures have one each. Colours are
-- legible on white and on black, since the ground is the page's. A pen has
--   path(points, style)          points {x1, y1, x2, y2, ...}; style: stroke, width, dash, fill, opacity, closed
--   circle(x, y, r, style)       rect(x, y, w, h, style)
--   text(x, y, text, style)      from the base line; style: anchor ("start", "middle", "end"), size, fill, bold
--   image(x, y, w, h, pixels)    uint8 (height, width, channels), no smoothing
--   clip(x, y, w, h)             what lies beyond isn't drawn, until pop()
--   move(x, y)                   coordinates count from there, until pop()
local tide = ...
local page = {}

local FONT, TITLE = 11, 13
local INK, GRID = "#7a7a7a", { stroke = "#888888", opacity = 0.22 }
local AXIS = { stroke = "#888888" }
local DASHES = { dashed = { 6, 4 }, dotted = { 1.5, 3 } }
DASHES["--"], DASHES[":"] = DASHES.dashed, DASHES.dotted

page.ink, page.font, page.title, page.dashes = INK, FONT, TITLE, DASHES

local function characters(text) return utf8.len(text) or #text end
-- Signs are wider than digits.
local function text_width(text, size)
    local _, minus = string.gsub(text, "−", "")
    local _, signs = string.gsub(text, "[-+]", "")
    return (characters(text) + 1.2 * (minus + signs)) * (size or FONT) * 0.58
end

local function cut(text, width, size)
    local most = math.max(1, math.floor(width / ((size or FONT) * 0.58)))
    return characters(text) > most and string.sub(text, 1, utf8.offset(text, most) - 1) .. "…" or text
end

--- ticks_across(w), ticks_up(h): about how many there is room for.
function page.ticks_across(w) return math.max(3, math.min(8, w // 60)) end
function page.ticks_up(h) return math.max(3, math.min(6, h // 30)) end

-- ---- where things lie ----

local LEGEND_LINE, KEY = 16, 26

local function legend_size(fig)
    local widest = 0
    for _, entry in ipairs(fig.legend or {}) do
        widest = math.max(widest, math.min(text_width(entry.label), 170))
    end
    return widest + KEY + 14, #(fig.legend or {}) * LEGEND_LINE + 8
end

local function widest_tick(fig)
    local widest = 0
    for _, tick in ipairs(fig.y:ticks()) do
        widest = math.max(widest, text_width(tick.label))
    end
    return math.min(widest, 120)
end

-- The frame keeps the shape of its cells.
local function keep_shape(box, shape)
    local w, h = box.right - box.left, box.bottom - box.top
    if w > h * shape then
        box.left = box.left + (w - h * shape) / 2
        box.right = box.left + h * shape
    else
        box.bottom = box.top + w / shape
    end
end

--- lay_out(fig, w, h): the frame of the data in a picture of w by h, and the place of the legend.
function page.lay_out(fig, w, h)
    local box = { top = 8 + (fig.title and 24 or 0) + (fig.ylabel and 16 or 0), right = w - 16, legend = "right" }
    if fig.bare then -- no axes
        box.left, box.right, box.bottom, box.top = 10, w - 10, h - 4, 4 + (fig.title and 24 or 0)
    else
        box.left, box.bottom = widest_tick(fig) + 16, h - 24 - (fig.xlabel and 18 or 0)
        box.right = box.right - (fig.bar and math.max(46, 30 + math.max(text_width(fig.bar.low), text_width(fig.bar.high))) or 0)
    end
    if fig.legend and #fig.legend > 0 then
        local lw, lh = legend_size(fig)
        local fw, fh = box.right - box.left, box.bottom - box.top
        box.legend = tide._require("plot.scene").legend_place(fig, (lw + 8) / fw, (lh + 8) / fh)
        if box.legend == "right" then
            box.right = box.right - math.min(lw, fw / 2)
        end
    end
    box.right, box.bottom = math.max(box.right, box.left + 1), math.max(box.bottom, box.top + 1)
    if fig.shape then
        keep_shape(box, fig.shape)
    end
    return box
end

local function across(fig, box, v)
    local p = fig.x:at(v)
    return p and box.left + p * (box.right - box.left)
end

local function up(fig, box, v)
    local p = fig.y:at(v)
    return p and box.bottom - p * (box.bottom - box.top)
end

-- ---- the frame ----

-- Labels that would touch their neighbours are left out.
local function draw_x_ticks(pen, fig, box)
    local free = -math.huge
    local ticks = fig.x:ticks(page.ticks_across(box.right - box.left))
    for _, tick in ipairs(ticks) do
        local x, label = across(fig, box, tick.value), tick.label
        if fig.grid and not fig.x.names then
            pen:path({ x, box.top, x, box.bottom }, GRID)
        end
        if fig.x.names then
            label = cut(label, math.max((box.right - box.left) / #ticks - 2, 12))
        end
        local w = text_width(label)
        if x - w / 2 > free then
            pen:text(x, box.bottom + 15, label, { fill = INK, size = FONT })
            free = x + w / 2 + 3
        end
    end
end

local function draw_frame(pen, fig, box)
    local free = math.huge
    for _, tick in ipairs(fig.y:ticks(page.ticks_up(box.bottom - box.top))) do
        local y = up(fig, box, tick.value)
        if fig.grid then
            pen:path({ box.left, y, box.right, y }, GRID)
        end
        if math.abs(y - free) > FONT then
            pen:text(box.left - 6, y + 4, cut(tick.label, 120), { anchor = "end", fill = INK, size = FONT })
            free = y
        end
    end
    draw_x_ticks(pen, fig, box)
    pen:path({ box.left, box.top, box.left, box.bottom, box.right, box.bottom }, AXIS)
end

local function draw_words(pen, fig, box, w, h)
    local middle = (box.left + box.right) / 2
    if fig.title then
        pen:text(fig.bare and middle or math.max(middle, text_width(fig.title, TITLE) / 2), 20, cut(fig.title, w, TITLE),
            { size = TITLE, fill = INK, bold = true })
    end
    if fig.xlabel then
        pen:text(middle, math.min(h - 6, box.bottom + 34), cut(fig.xlabel, w), { fill = INK, size = FONT })
    end
    if fig.ylabel then -- upright, above its axis
        pen:text(math.max(2, box.left - widest_tick(fig) - 6), box.top - 8, cut(fig.ylabel, w), { anchor = "start", fill = INK, size = FONT })
    end
    if fig.empty then
        pen:text(middle, (box.top + box.bottom) / 2, "no data", { size = TITLE, fill = INK })
    end
end

-- ---- marks ----

local function stroke_of(layer)
    return { stroke = layer.colour, width = layer.width or 1.6, dash = DASHES[layer.dash], opacity = layer.alpha }
end

local function fill_of(layer, opacity)
    return { fill = layer.colour, opacity = layer.alpha or opacity, closed = true }
end

-- Corners of markers around (0, 0) for a radius of 1.
local MARKERS = { s = { -0.9, -0.9, 0.9, -0.9, 0.9, 0.9, -0.9, 0.9 }, ["^"] = { 0, -1.2, 1.1, 0.9, -1.1, 0.9 },
    v = { 0, 1.2, 1.1, -0.9, -1.1, -0.9 }, d = { 0, -1.3, 1.1, 0, 0, 1.3, -1.1, 0 } }
local CROSSES = { x = { { -1, -1, 1, 1 }, { -1, 1, 1, -1 } }, ["+"] = { { -1.3, 0, 1.3, 0 }, { 0, -1.3, 0, 1.3 } } }

local function placed(shape, x, y, r)
    local points = {}
    for k = 1, #shape, 2 do
        points[k], points[k + 1] = x + shape[k] * r, y + shape[k + 1] * r
    end
    return points
end

local function draw_marker(pen, layer, x, y, opacity, most)
    local r, crosses = math.min(layer.size or layer.marker == "." and 1.5 or 3, most or 100), CROSSES[layer.marker]
    if crosses then
        for _, cross in ipairs(crosses) do
            pen:path(placed(cross, x, y, r), { stroke = layer.colour, width = 1.5, opacity = layer.alpha })
        end
    elseif MARKERS[layer.marker] then
        pen:path(placed(MARKERS[layer.marker], x, y, r), fill_of(layer, opacity))
    else
        pen:circle(x, y, r, fill_of(layer, opacity))
    end
end

local FAR = 1e5 -- pixels from the frame: what lies farther away is drawn as if it lay there

local function near(v) return math.max(-FAR, math.min(v, FAR)) end

-- Pieces of lists between places that don't exist: calls draw(points, n) with points {x, y, ...} for each list.
local function pieces(fig, box, xs, lists, draw)
    local runs, n = {}, 0
    local function finish()
        if n > 0 then
            draw(runs, n)
        end
        runs, n = {}, 0
    end
    for k = 1, #xs do
        local x, ys = across(fig, box, xs[k]), {}
        for j, list in ipairs(lists) do
            ys[j] = up(fig, box, list[k])
        end
        if x and #ys == #lists then
            n = n + 1
            for j, y in ipairs(ys) do
                runs[j] = runs[j] or {}
                runs[j][2 * n - 1], runs[j][2 * n] = near(x), near(y)
            end
        else
            finish()
        end
    end
    finish()
end

local draw_mark = {}

-- A piece of one point is a dot.
function draw_mark.line(pen, fig, box, layer)
    pieces(fig, box, layer.x, { layer.y }, function(runs, n)
        if n == 1 and not layer.marker then
            pen:circle(runs[1][1], runs[1][2], 2, fill_of(layer))
        elseif n > 1 then
            pen:path(runs[1], stroke_of(layer))
        end
    end)
    if layer.marker then
        draw_mark.points(pen, fig, box, layer, 1)
    end
end

function draw_mark.points(pen, fig, box, layer, opacity)
    for k, v in ipairs(layer.y) do
        if fig.x:holds(layer.x[k]) and fig.y:holds(v) then
            draw_marker(pen, layer, across(fig, box, layer.x[k]), up(fig, box, v), opacity or 0.7)
        end
    end
end

function draw_mark.band(pen, fig, box, layer)
    pieces(fig, box, layer.x, { layer.low, layer.high }, function(runs, n)
        local points = runs[1]
        for k = n, 1, -1 do
            points[#points + 1], points[#points + 2] = runs[2][2 * k - 1], runs[2][2 * k]
        end
        pen:path(points, fill_of(layer, 0.25))
    end)
end

function draw_mark.errors(pen, fig, box, layer)
    local style = { stroke = layer.colour, width = 1.2, opacity = layer.alpha }
    for k, v in ipairs(layer.x) do
        local x, low, high = across(fig, box, v), up(fig, box, layer.low[k]), up(fig, box, layer.high[k])
        if x and low and high then
            low, high = near(low), near(high)
            pen:path({ x, low, x, high }, style)
            pen:path({ x - 3, low, x + 3, low }, style)
            pen:path({ x - 3, high, x + 3, high }, style)
        end
    end
end

function draw_mark.rects(pen, fig, box, layer)
    -- from the axis or, on a logarithmic scale, from the bottom
    local base = fig.y.log and box.bottom or up(fig, box, math.max(fig.y.low, math.min(0, fig.y.high)))
    for k, v in ipairs(layer.y) do
        local y, left, right = up(fig, box, v), across(fig, box, layer.left[k]), across(fig, box, layer.right[k])
        if y and left and right then
            y = near(y)
            pen:rect(left, math.min(y, base), math.max(right - left - 0.5, 0.5), math.abs(base - y), fill_of(layer, layer.faint and 0.55 or 0.9))
        end
    end
end

-- ---- matrices ----

local function draw_numbers(pen, fig, box)
    local cells = fig.cells
    local rows, columns = #cells.numbers, #cells.numbers[1]
    local w, h = (box.right - box.left) / columns, (box.bottom - box.top) / rows
    for i, row in ipairs(cells.numbers) do
        for j, number in ipairs(row) do
            local size = math.min(13, h * 0.6, w / (0.6 * math.max(characters(number), 2)))
            if size >= 4 then
                pen:text(box.left + (j - 0.5) * w, box.top + (i - 0.5) * h + size * 0.35, number,
                    { size = size, fill = cells.light[i][j] and "#222222" or "#ffffff" })
            end
        end
    end
end

-- The colours of a heat map with the numbers that they stand for.
local function draw_bar(pen, fig, box)
    local bar, x = fig.bar, box.right + 12
    pen:image(x, box.top, 10, box.bottom - box.top, bar.pixels)
    pen:text(x + 14, box.bottom, bar.low, { anchor = "start", fill = INK, size = FONT })
    pen:text(x + 14, box.top + 8, bar.high, { anchor = "start", fill = INK, size = FONT })
end

-- ---- the legend ----

local function draw_key(pen, layer, x, y)
    if layer.mark == "line" then
        pen:path({ x, y, x + 20, y }, stroke_of(layer))
    elseif layer.mark == "errors" then
        pen:path({ x + 10, y - 5, x + 10, y + 5 }, stroke_of(layer))
    elseif layer.mark ~= "points" then
        pen:rect(x, y - 4, 20, 8, fill_of(layer, layer.mark == "band" and 0.25 or 0.9))
    end
    if layer.mark == "points" or layer.marker then
        draw_marker(pen, layer, x + 10, y, nil, 5)
    end
end

local function draw_legend(pen, fig, box)
    local w, h = legend_size(fig)
    local x, y = box.right + 8, box.top
    if box.legend ~= "right" then
        x = string.find(box.legend, "right", 1, true) and box.right - w - 2 or box.left + 8
        y = string.find(box.legend, "top", 1, true) and box.top + 4 or box.bottom - h - 2
    end
    for k, entry in ipairs(fig.legend) do
        local middle = y + LEGEND_LINE * k - 8
        for _, layer in ipairs(entry.layers) do
            draw_key(pen, layer, x, middle)
        end
        pen:text(x + KEY, middle + 4, cut(entry.label, 170), { anchor = "start", fill = INK, size = FONT })
    end
end

-- ---- all of it ----

local function draw_single(pen, fig, w, h)
    local box = page.lay_out(fig, w, h)
    local bw, bh = box.right - box.left, box.bottom - box.top
    if fig.cells and fig.cells.pixels then
        pen:image(box.left, box.top, bw, bh, fig.cells.pixels)
    end
    if not fig.bare then
        draw_frame(pen, fig, box)
    end
    pen:clip(box.left - 2, box.top - 2, bw + 4, bh + 4)
    for _, layer in ipairs(fig.layers) do
        draw_mark[layer.mark](pen, fig, box, layer)
    end
    pen:pop()
    if fig.cells and fig.cells.numbers then
        draw_numbers(pen, fig, box)
    end
    if fig.bar then
        draw_bar(pen, fig, box)
    end
    if fig.legend then
        draw_legend(pen, fig, box)
    end
    draw_words(pen, fig, box, w, h)
end

--- draw(pen, fig): the figure, or a grid of them, in its own width and height.
function page.draw(pen, fig, w, h)
    w, h = w or fig.width, h or fig.height
    if not fig.panels then
        return draw_single(pen, fig, w, h)
    end
    local top = fig.title and 28 or 0
    if fig.title then
        pen:text(w / 2, 20, cut(fig.title, w, TITLE), { size = TITLE, fill = INK, bold = true })
    end
    local cw, ch = w / fig.columns, (h - top) / math.ceil(#fig.panels / fig.columns)
    for k, panel in ipairs(fig.panels) do
        pen:move((k - 1) % fig.columns * cw, top + (k - 1) // fig.columns * ch)
        page.draw(pen, panel, cw, ch)
        pen:pop()
    end
end

return page
