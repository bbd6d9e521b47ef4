-- plot/raster.lua: a figure as pixels on white, with smooth edges: a pixel takes as much of a colour as the shape covers
-- of it. What the edges of a shape change of that is gathered row by row, and summed from the left.
local tide = ...
local raster = {}

local ZOOM = 2 -- pixels to a unit of the page

local Pen = {}
Pen.__index = Pen

-- ---- shapes ----

-- The area of columns up to `at` that lies right of an edge that runs from left to right.
local function area_right_of(left, right, at)
    if at <= left then
        return 0
    elseif at >= right then
        return at - (left + right) / 2
    end
    return (at - left) ^ 2 / 2 / (right - left)
end

-- Adds one row's part of an edge, `height` high.
local function add_to_row(row, left, right, height)
    local before, total = 0, 0
    for column = math.floor(left), math.floor(right) + 1 do
        local up_to = area_right_of(left, right, column + 1)
        local share = up_to - total -- of this column
        row[column] = (row[column] or 0) + height * (share - before)
        before, total = share, up_to
    end
end

local function add_edge(rows, clip, x1, y1, x2, y2)
    local sign = 1
    if y1 > y2 then
        x1, y1, x2, y2, sign = x2, y2, x1, y1, -1
    end
    local top, bottom = math.max(y1, clip.top), math.min(y2, clip.bottom)
    if top >= bottom then
        return
    end
    local slope = (x2 - x1) / (y2 - y1)
    local function within(x) return math.max(clip.left, math.min(x, clip.right)) end
    for y = math.floor(top), math.ceil(bottom) - 1 do
        local from, to = math.max(y, top), math.min(y + 1, bottom)
        local a, b = within(x1 + (from - y1) * slope), within(x1 + (to - y1) * slope)
        rows[y] = rows[y] or {}
        add_to_row(rows[y], math.min(a, b), math.max(a, b), sign * (to - from))
    end
end

-- Adds a polygon; points are those of the picture.
local function add_polygon(rows, clip, points)
    local px, py = points[#points - 1], points[#points]
    for k = 1, #points, 2 do
        add_edge(rows, clip, px, py, points[k], points[k + 1])
        px, py = points[k], points[k + 1]
    end
end

local function blend(under, r, g, b, share)
    local ur, ug, ub = under >> 16, under >> 8 & 255, under & 255
    return math.floor(ur + (r - ur) * share + 0.5) << 16 | math.floor(ug + (g - ug) * share + 0.5) << 8
        | math.floor(ub + (b - ub) * share + 0.5)
end

local function rgb(colour)
    local code = tonumber(string.sub(colour, 2), 16)
    return code >> 16, code >> 8 & 255, code & 255
end

-- Paints what the rows cover.
function Pen:fill(rows, colour, opacity)
    local r, g, b = rgb(colour)
    local clip = self.clips[#self.clips]
    for y, row in pairs(rows) do
        local first, last = math.huge, -math.huge
        for column in pairs(row) do
            first, last = math.min(first, column), math.max(last, column)
        end
        local sum, at = 0, y * self.width + 1
        for column = first, math.min(last, clip.right - 1) do
            sum = sum + (row[column] or 0)
            local share = math.min(math.abs(sum), 1) * opacity
            if share > 0.002 then
                self[at + column] = blend(self[at + column], r, g, b, share)
            end
        end
    end
end

-- ---- strokes ----

local function round_shape(x, y, r)
    local points, n = {}, math.max(8, math.ceil(r * 4))
    for k = 0, n - 1 do
        points[2 * k + 1], points[2 * k + 2] = x + r * math.cos(2 * math.pi * k / n), y + r * math.sin(2 * math.pi * k / n)
    end
    return points
end

-- A segment as wide as it is drawn, with round ends where others join it; all shapes turn the same way.
local function add_segment(rows, clip, x1, y1, x2, y2, width, joined)
    local length = math.sqrt((x2 - x1) ^ 2 + (y2 - y1) ^ 2)
    if length > 0 then
        local nx, ny = (y2 - y1) / length * width / 2, (x1 - x2) / length * width / 2
        add_polygon(rows, clip, { x1 - nx, y1 - ny, x1 + nx, y1 + ny, x2 + nx, y2 + ny, x2 - nx, y2 - ny })
    end
    if joined and width > 2 then
        add_polygon(rows, clip, round_shape(x2, y2, width / 2))
    end
end

-- Calls draw for the segments that a dash has ink on.
local function dashes(x1, y1, x2, y2, dash, at, draw)
    local length = math.sqrt((x2 - x1) ^ 2 + (y2 - y1) ^ 2)
    local from = 0
    while from < length do
        local within = at % (dash[1] + dash[2])
        local to = math.min(length, from + (within < dash[1] and dash[1] or dash[1] + dash[2]) - within)
        if within < dash[1] then
            local a, b = from / length, to / length
            draw(x1 + (x2 - x1) * a, y1 + (y2 - y1) * a, x1 + (x2 - x1) * b, y1 + (y2 - y1) * b)
        end
        at, from = at + math.max(to - from, 1e-6), math.max(to, from + 1e-6)
    end
    return at
end

function Pen:scaled(points)
    local out = {}
    for k = 1, #points, 2 do
        out[k], out[k + 1] = (points[k] + self.x) * ZOOM, (points[k + 1] + self.y) * ZOOM
    end
    return out
end

local function add_stroke(rows, clip, points, style)
    local width, at = (style.width or 1) * ZOOM, 0
    local dash = style.dash and { style.dash[1] * ZOOM, style.dash[2] * ZOOM }
    for k = 3, #points, 2 do
        local x1, y1, x2, y2 = points[k - 2], points[k - 1], points[k], points[k + 1]
        if dash then
            at = dashes(x1, y1, x2, y2, dash, at, function(...)
                local a, b, c, d = ...
                add_segment(rows, clip, a, b, c, d, width)
            end)
        else
            add_segment(rows, clip, x1, y1, x2, y2, width, k + 1 < #points)
        end
    end
end

function Pen:path(points, style)
    local rows, clip = {}, self.clips[#self.clips]
    points = self:scaled(points)
    if style.fill then
        add_polygon(rows, clip, points)
    else
        add_stroke(rows, clip, points, style)
    end
    self:fill(rows, style.fill or style.stroke, style.opacity or 1)
end

function Pen:rect(x, y, w, h, style) self:path({ x, y, x + w, y, x + w, y + h, x, y + h }, style) end

function Pen:circle(x, y, r, style) self:path(round_shape(x, y, r), style) end

function Pen:text(x, y, text, style)
    local strokes, width = tide._require("plot.letters").strokes(text, style.size * 0.72)
    local rows, clip = {}, self.clips[#self.clips]
    x = style.anchor == "start" and x or style.anchor == "end" and x - width or x - width / 2
    for _, stroke in ipairs(strokes) do
        for k = 1, #stroke, 2 do
            stroke[k], stroke[k + 1] = stroke[k] + x, stroke[k + 1] + y
        end
        add_stroke(rows, clip, self:scaled(stroke), { width = style.size * (style.bold and 0.13 or 0.095) })
    end
    self:fill(rows, style.fill, 1)
end

-- ---- pictures and the ground ----

function Pen:image(x, y, w, h, pixels)
    local rows, channels, clip = pixels:tolist(), pixels.shape[3], self.clips[#self.clips]
    local left, top = (x + self.x) * ZOOM, (y + self.y) * ZOOM
    local function round(v, most) return math.max(0, math.min(math.floor(v + 0.5), most)) end
    for py = round(top, clip.bottom), round(top + h * ZOOM, clip.bottom) - 1 do
        local row = rows[math.min(math.floor((py + 0.5 - top) / (h * ZOOM) * #rows) + 1, #rows)]
        for px = round(left, clip.right), round(left + w * ZOOM, clip.right) - 1 do
            local pixel = row[math.max(1, math.min(math.floor((px + 0.5 - left) / (w * ZOOM) * #row) + 1, #row))]
            local grey, alpha = channels < 3, channels % 2 == 0 and pixel[channels] / 255 or 1
            local at = py * self.width + px + 1
            self[at] = blend(self[at], pixel[1], pixel[grey and 1 or 2], pixel[grey and 1 or 3], alpha)
        end
    end
end

function Pen:clip(x, y, w, h)
    local now = self.clips[#self.clips]
    local function round(v, least, most) return math.max(least, math.min(math.floor(v * ZOOM + 0.5), most)) end
    table.insert(self.clips, { left = round(x + self.x, now.left, now.right), right = round(x + w + self.x, now.left, now.right),
        top = round(y + self.y, now.top, now.bottom), bottom = round(y + h + self.y, now.top, now.bottom) })
    table.insert(self.moves, { self.x, self.y })
end

function Pen:move(x, y)
    table.insert(self.moves, { self.x, self.y })
    table.insert(self.clips, self.clips[#self.clips])
    self.x, self.y = self.x + x, self.y + y
end

function Pen:pop()
    table.remove(self.clips)
    self.x, self.y = table.unpack(table.remove(self.moves))
end

--- draw(fig): pixels (height, width, 3) of uint8.
function raster.draw(fig)
    local w, h = math.floor(fig.width * ZOOM), math.floor(fig.height * ZOOM)
    local pen = setmetatable({ width = w, x = 0, y = 0, moves = {}, clips = { { left = 0, top = 0, right = w, bottom = h } } }, Pen)
    for k = 1, w * h do
        pen[k] = 0xffffff
    end
    tide._require("plot.page").draw(pen, fig)
    local codes = tide.tensor(table.move(pen, 1, w * h, 1, {}), { dtype = tide.int64 })
    return tide.stack({ codes:floor_divide(65536), codes:floor_divide(256):remainder(256), codes:remainder(256) }, 2)
        :to(tide.uint8):reshape(h, w, 3):contiguous()
end

return raster
