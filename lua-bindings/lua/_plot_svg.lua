-- _plot_svg.lua: a figure as a drawing in SVG, which looks the same in any page, light or dark.
local tide = ...
local svg = {}

local FONT = 11
local GREY, GRID = "#666", "#e5e5e5"

local function escape(text) return tide._html.escape(text) end

-- Coordinates to a hundredth of a pixel, with a point in every locale.
local function number(v) return (("%.2f"):format(v):gsub(",", "."):gsub("%.?0+$", "")) end

local function text_at(x, y, text, options)
    options = options or {}
    return ('<text x="%s" y="%s" text-anchor="%s" font-size="%d" fill="%s"%s%s>%s</text>'):format(number(x), number(y),
        options.anchor or "middle", options.size or FONT, options.fill or GREY, options.bold and ' font-weight="bold"' or "",
        options.turn and (' transform="rotate(-90 %s %s)"'):format(number(x), number(y)) or "", escape(text))
end

local function line(x1, y1, x2, y2, colour)
    return ('<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="%s"/>'):format(number(x1), number(y1), number(x2), number(y2), colour)
end

-- ---- the frame ----

local function text_width(text) return (utf8.len(text) or #text) * FONT * 0.6 end

-- Where the data lies within the picture.
local function lay_out(fig)
    local widest = 0
    for _, tick in ipairs(fig.y:ticks()) do
        widest = math.max(widest, text_width(tick.label))
    end
    local legend = 0
    for _, s in ipairs(fig.legend and fig.series or {}) do
        legend = math.max(legend, math.min(text_width(s.label), 160) + 30)
    end
    local box = { left = math.min(widest, 120) + 14 + (fig.ylabel and 18 or 0), top = fig.title and 30 or 12 }
    box.right = fig.width - 14 - legend - (fig.bar and 60 or 0)
    box.bottom = fig.height - 24 - (fig.xlabel and 18 or 0)
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

-- Names that would touch their neighbours are left out.
local function add_x_ticks(out, fig, box)
    local free = -math.huge
    for _, tick in ipairs(fig.x:ticks()) do
        local x, w = across(fig, box, tick.value), text_width(tick.label)
        if fig.grid and not fig.x.names then
            out[#out + 1] = line(x, box.top, x, box.bottom, GRID)
        end
        if x - w / 2 > free then
            out[#out + 1] = text_at(x, box.bottom + 15, tick.label)
            free = x + w / 2 + 4
        end
    end
end

local function add_frame(out, fig, box)
    for _, tick in ipairs(fig.y:ticks()) do
        local y = up(fig, box, tick.value)
        if fig.grid then
            out[#out + 1] = line(box.left, y, box.right, y, GRID)
        end
        out[#out + 1] = text_at(box.left - 6, y + 4, tick.label, { anchor = "end" })
    end
    add_x_ticks(out, fig, box)
    out[#out + 1] = line(box.left, box.bottom, box.right, box.bottom, "#888")
    out[#out + 1] = line(box.left, box.top, box.left, box.bottom, "#888")
    local middle = (box.left + box.right) / 2
    if fig.title then
        out[#out + 1] = text_at(middle, 19, fig.title, { size = 13, fill = "#222", bold = true })
    end
    if fig.xlabel then
        out[#out + 1] = text_at(middle, fig.height - 6, fig.xlabel, { fill = "#333" })
    end
    if fig.ylabel then
        out[#out + 1] = text_at(14, (box.top + box.bottom) / 2, fig.ylabel, { fill = "#333", turn = true })
    end
    if fig.empty then
        out[#out + 1] = text_at(middle, (box.top + box.bottom) / 2, "no data", { size = 13 })
    end
end

local function add_legend(out, fig, box)
    for k, s in ipairs(fig.legend and fig.series or {}) do
        local y = box.top + 16 * k - 8
        out[#out + 1] = ('<rect x="%s" y="%s" width="12" height="8" fill="%s"/>'):format(number(box.right + 10), number(y - 8), s.colour)
        out[#out + 1] = text_at(box.right + 26, y, s.label, { anchor = "start", fill = "#333" })
    end
end

-- ---- the data ----

-- Pieces of a line between gaps; a piece of one point is a dot.
local function add_line(out, fig, box, s)
    local piece, length = {}, 0
    local function finish()
        if length == 1 then
            local x, y = piece[1]:match("^M(%S+) (%S+)")
            out[#out + 1] = ('<circle cx="%s" cy="%s" r="2" fill="%s"/>'):format(x, y, s.colour)
        elseif length > 1 then
            out[#out + 1] = ('<path d="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-linejoin="round"/>')
                :format(table.concat(piece), s.colour)
        end
        piece, length = {}, 0
    end
    for k, v in ipairs(s.y) do
        local x, y = across(fig, box, s.x[k]), up(fig, box, v)
        if x and y and math.abs(x) < 1e6 and math.abs(y) < 1e6 then
            length = length + 1
            piece[length] = ("%s%s %s"):format(length == 1 and "M" or "L", number(x), number(y))
        else
            finish()
        end
    end
    finish()
end

local function add_points(out, fig, box, s)
    for k, v in ipairs(s.y) do
        if fig.x:holds(s.x[k]) and fig.y:holds(v) then
            out[#out + 1] = ('<circle cx="%s" cy="%s" r="2.5" fill="%s" fill-opacity="0.6"/>')
                :format(number(across(fig, box, s.x[k])), number(up(fig, box, v)), s.colour)
        end
    end
end

local function add_rect(out, x1, x2, y1, y2, colour, opacity)
    out[#out + 1] = ('<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity="%s"/>'):format(number(math.min(x1, x2)),
        number(math.min(y1, y2)), number(math.abs(x2 - x1)), number(math.abs(y2 - y1)), colour, opacity)
end

-- From the axis or, on a logarithmic scale, from the bottom.
local function base_of(fig, box) return fig.y.log and box.bottom or up(fig, box, math.max(fig.y.low, math.min(0, fig.y.high))) end

local function add_bars(out, fig, box, s, index)
    local base, n = base_of(fig, box), #fig.series
    for k, v in ipairs(s.y) do
        local y = up(fig, box, v)
        if y then
            local left, right
            if fig.edges then
                left, right = across(fig, box, fig.edges[k]), across(fig, box, fig.edges[k + 1])
            else
                local band = 0.8 / n
                left = across(fig, box, k - 0.4 + (index - 1) * band)
                right = across(fig, box, k - 0.4 + index * band)
            end
            add_rect(out, left, math.max(right - 0.5, left), y, base, s.colour, fig.edges and n > 1 and 0.55 or 0.9)
        end
    end
end

local function add_picture(out, fig, box)
    out[#out + 1] = ('<image x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" '
        .. 'style="image-rendering:pixelated" href="data:image/png;base64,%s"/>'):format(number(box.left), number(box.top),
        number(box.right - box.left), number(box.bottom - box.top), tide._base64(fig.png))
end

-- The colours of a heat map with the numbers that they stand for.
local function add_bar(out, fig, box)
    local bar = fig.bar
    local x, h = box.right + 14, (box.bottom - box.top) / #bar.colours
    for k, colour in ipairs(bar.colours) do
        out[#out + 1] = ('<rect x="%s" y="%s" width="12" height="%s" fill="rgb(%d,%d,%d)"/>'):format(number(x),
            number(box.bottom - k * h), number(h + 0.5), table.unpack(colour))
    end
    out[#out + 1] = text_at(x + 16, box.bottom, bar.low, { anchor = "start" })
    out[#out + 1] = text_at(x + 16, box.top + 8, bar.high, { anchor = "start" })
end

local drawers = { line = add_line, scatter = add_points, hist = add_bars, bar = add_bars }

--- draw(fig): the text of the drawing.
function svg.draw(fig)
    local out, box = {}, lay_out(fig)
    out[1] = ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">'
        .. '<rect width="100%%" height="100%%" fill="white"/>'):format(fig.width, fig.height, fig.width, fig.height)
    if fig.png then
        add_picture(out, fig, box)
    end
    add_frame(out, fig, box)
    -- what lies beyond the limits is cut off
    out[#out + 1] = ('<svg x="%s" y="%s" width="%s" height="%s" viewBox="%s %s %s %s">'):format(number(box.left - 2),
        number(box.top - 2), number(box.right - box.left + 4), number(box.bottom - box.top + 4), number(box.left - 2),
        number(box.top - 2), number(box.right - box.left + 4), number(box.bottom - box.top + 4))
    for k, s in ipairs(fig.series) do
        drawers[fig.kind](out, fig, box, s, k)
    end
    out[#out + 1] = "</svg>"
    add_legend(out, fig, box)
    if fig.bar then
        add_bar(out, fig, box)
    end
    out[#out + 1] = "</svg>"
    return table.concat(out, "\n")
end

return svg
