-- plot/svg.lua: a figure as a drawing in SVG.
local tide = ...
local svg = {}

local function escape(text) return tide._require("notebook.html").escape(text) end

-- Coordinates to a hundredth of a pixel, with a point in every locale.
local function number(v) return (string.gsub(string.gsub(string.gsub(string.format("%.2f", v), ",", "."), "%.?0+$", ""), "^%-0$", "0")) end

local Pen = {}
Pen.__index = Pen

local function paint(style)
    local out = { string.format(' fill="%s"', style.fill or "none") }
    if style.stroke then
        out[2] = string.format(' stroke="%s"', style.stroke)
        out[3] = style.width and string.format(' stroke-width="%s" stroke-linejoin="round"', number(style.width)) or ""
        out[4] = style.dash and string.format(' stroke-dasharray="%s,%s"', number(style.dash[1]), number(style.dash[2])) or ""
    end
    out[#out + 1] = style.opacity and string.format(' %s-opacity="%s"', style.stroke and "stroke" or "fill", number(style.opacity)) or ""
    return table.concat(out)
end

function Pen:add(form, ...) self[#self + 1] = string.format(form, ...) end

function Pen:path(points, style)
    local parts = {}
    for k = 1, #points, 2 do
        parts[#parts + 1] = string.format("%s%s %s", k == 1 and "M" or "L", number(points[k]), number(points[k + 1]))
    end
    self:add('<path d="%s%s"%s/>', table.concat(parts), style.closed and "Z" or "", paint(style))
end

function Pen:circle(x, y, r, style) self:add('<circle cx="%s" cy="%s" r="%s"%s/>', number(x), number(y), number(r), paint(style)) end

function Pen:rect(x, y, w, h, style)
    self:add('<rect x="%s" y="%s" width="%s" height="%s"%s/>', number(x), number(y), number(w), number(h), paint(style))
end

function Pen:text(x, y, text, style)
    self:add('<text x="%s" y="%s" text-anchor="%s" font-size="%s" fill="%s"%s>%s</text>', number(x), number(y), style.anchor or "middle",
        number(style.size), style.fill, style.bold and ' font-weight="bold"' or "", escape(text))
end

function Pen:image(x, y, w, h, pixels)
    self:add('<image x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" style="image-rendering:pixelated" '
        .. 'href="data:image/png;base64,%s"/>', number(x), number(y), number(w), number(h), tide._base64(tide._png(pixels)))
end

function Pen:open(tag, form, ...)
    self:add("<" .. tag .. form .. ">", ...)
    table.insert(self.tags, tag)
end

function Pen:pop() self:add("</%s>", table.remove(self.tags)) end

function Pen:move(x, y) self:open("g", ' transform="translate(%s %s)"', number(x), number(y)) end

-- A drawing within the drawing is cut off at its edges.
function Pen:clip(x, y, w, h)
    x, y, w, h = number(x), number(y), number(w), number(h)
    self:open("svg", ' x="%s" y="%s" width="%s" height="%s" viewBox="%s %s %s %s"', x, y, w, h, x, y, w, h)
end

--- draw(fig): the text of the drawing.
function svg.draw(fig)
    local pen = setmetatable({ tags = {} }, Pen)
    pen:add('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">', fig.width,
        fig.height, fig.width, fig.height)
    tide._require("plot.page").draw(pen, fig)
    pen:add("</svg>")
    return table.concat(pen, "\n")
end

return svg
