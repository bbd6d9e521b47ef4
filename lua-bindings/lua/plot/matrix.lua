-- plot/matrix.lua: matrices and images as figures: cells of colour, with numbers on demand, and the axes that count them.
local tide = ...
local fail, scale = tide._fail, tide._require "plot.scale"
local matrix = {}

local VIRIDIS = { { 68, 1, 84 }, { 71, 44, 122 }, { 59, 81, 139 }, { 44, 113, 142 }, { 33, 144, 141 }, { 39, 173, 129 },
    { 92, 200, 99 }, { 170, 220, 50 }, { 253, 231, 37 } }
local SIDE = 512 -- of a picture within a drawing
local CELLS = 2500 -- of a heat map that Vega-Lite draws cell by cell
local NUMBERS = 900 -- cells with numbers in them
local LONGEST = 8 -- times as long as wide: a matrix with cells that are squares

local GRAYS = { { 0, 0, 0 }, { 255, 255, 255 } }

-- 256 colours between those of a scale.
local function colour_table(cmap)
    local anchors = tide.tensor(cmap == "viridis" and VIRIDIS or GRAYS, { dtype = tide.float32 })
    return tide.nn.functional.interpolate(anchors:t():unsqueeze(1), { size = 256, mode = "linear", align_corners = true })
        :squeeze(1):t():round():to(tide.uint8)
end

-- A matrix as pixels (rows, columns, 3); what is no number is grey.
local function coloured(m, low, high, cmap)
    local half = math.max(high / 2 - low / 2, 5e-324)
    local share = ((m / 2 - low / 2) / half):clamp(0, 1)
    local index = (tide.nan_to_num(share, 0) * 255 + 0.5):floor():to(tide.int64) + 1
    local picture = colour_table(cmap):index_select(1, index:reshape(-1)):reshape(m.shape[1], m.shape[2], 3)
    return tide.where(m:isnan():unsqueeze(3), tide.tensor(160, { dtype = tide.uint8 }), picture):contiguous()
end

--- range(name, m, low, high): that of the finite elements, or what was asked for.
function matrix.range(name, m, low, high)
    local finite = m[m:isfinite()]
    low = low or finite:numel() > 0 and finite:min():item() or 0
    high = high or finite:numel() > 0 and finite:max():item() or 1
    if low > high or low ~= low or high ~= high then
        fail("%s: expected vmin <= vmax, got %s and %s", name, tide._number(low), tide._number(high))
    end
    return low, high
end

-- As many pixels as are seen: means of what a pixel stands for.
local function shrink(m)
    local h, w = m.shape[1], m.shape[2]
    if h <= SIDE and w <= SIDE then
        return m
    end
    return tide.nn.functional.adaptive_avg_pool2d(m:unsqueeze(1), { math.min(h, SIDE), math.min(w, SIDE) }):squeeze(1)
end

local function ordinal(n, names)
    local axis = names and scale.names(names) or scale.new({ { 0.5, n + 0.5 } }, {})
    function axis:ticks(wanted)
        local ticks, step = { { value = 1, label = names and names[1] or "1" } }, 1
        for _, factor in ipairs { 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2 } do -- 1, 2, 5, 10, ...
            step = not names and n / step > math.max(wanted or 0, 10) and math.floor(step * factor) or step
        end
        for k = step == 1 and 2 or step, n, step do
            ticks[#ticks + 1] = { value = k, label = names and names[k] or tostring(k) }
        end
        return ticks
    end
    return axis
end

-- Rows are counted from the top.
local function downwards(n, names)
    local axis = ordinal(n, names)
    local at = axis.at
    function axis:at(v) return 1 - at(self, v) end
    return axis
end

-- Counts as they are, else four digits that say where the matrix's numbers differ.
local function number_texts(m)
    local whole = m:eq(m:floor()):all():item()
    local texts = m:tolist()
    for _, row in ipairs(texts) do
        for j, v in ipairs(row) do
            row[j] = whole and math.abs(v) < 1e9 and string.format("%d", v) or tide._number(v, 3)
        end
    end
    return texts
end

-- Where a cell is so light that its number is dark.
local function light_cells(pixels)
    local weights = tide.tensor({ 0.299, 0.587, 0.114 })
    return (pixels:to(tide.float32) * weights):sum(3):gt(140):tolist()
end

--- heatmap(name, m, o): a figure of a matrix. o: vmin, vmax, numbers, square, xnames, ynames and the words of all plots.
function matrix.heatmap(name, m, o)
    local rows, columns = m.shape[1], m.shape[2]
    local fig = { layers = {}, legend = {}, notes = {}, title = o.title, xlabel = o.xlabel, ylabel = o.ylabel, width = o.width,
        height = o.height, x = ordinal(math.max(columns, 1), o.xnames), y = downwards(math.max(rows, 1), o.ynames), grid = false,
        empty = m:numel() == 0 }
    if o.numbers and m:numel() > NUMBERS then
        fail("%s: option numbers: %d cells are more than %d", name, m:numel(), NUMBERS)
    end
    local low, high = matrix.range(name, m, o.vmin, o.vmax)
    local cmap = o.cmap or "viridis"
    fig.cells = { low = low, high = high, matrix = {}, scheme = cmap == "viridis" and cmap or "greys" }
    if fig.empty then
        fig.picture = function() return "no data" end
        return fig
    end
    local square = o.square
    if square == nil then
        square = math.max(rows / columns, columns / rows) <= LONGEST
    end
    fig.shape = square and columns / rows or nil
    local cells = fig.cells
    cells.pixels = coloured(shrink(m), low, high, cmap)
    cells.matrix = m:numel() <= CELLS and m:tolist() or nil
    if o.numbers then
        cells.numbers, cells.light = number_texts(m), light_cells(cells.pixels)
    end
    local low_text, high_text = tide._number(low, 4), tide._number(high, 4)
    fig.bar = { low = low_text, high = high_text, pixels = colour_table(cmap):flip(1):unsqueeze(2):contiguous() }
    fig.picture = function(columns)
        if cells.numbers then
            return matrix.numbers_text(fig, o.xnames, o.ynames)
        end
        return matrix.text(m, low, high, columns, cmap) .. "\n" .. string.format("%s (dark) to %s (light)", low_text, high_text)
    end
    return fig
end

local function colours_wanted()
    local f = tide._frontend and tide._frontend() or {}
    return f.color and not f.notebook
end

--- text(m, low, high, columns, cmap): a matrix in a terminal's cells; small ones have cells of two columns.
function matrix.text(m, low, high, columns, cmap)
    local picture = colours_wanted() and coloured(shrink(m), low, high, cmap or "viridis") or tide._require("plot.pixels").of(shrink(m), "heatmap", low, high)
    if m.shape[2] <= 40 then
        picture = picture:repeat_interleave(2, 2):repeat_interleave(2, 1)
    end
    return tide._require("plot.pixels").text(picture:contiguous(), columns)
end

--- numbers_text(fig, xnames, ynames): a matrix as a table of its numbers, on the colours of its cells where there are any.
function matrix.numbers_text(fig, xnames, ynames)
    local cells, width, left = fig.cells, 3, 0
    local function widen(text, least) return math.max(least, utf8.len(text)) end
    for i, row in ipairs(cells.numbers) do
        left = widen(ynames and ynames[i] or tostring(i), left)
        for j, number in ipairs(row) do
            width = widen(xnames and xnames[j] or tostring(j), widen(number, width))
        end
    end
    local function centred(text, room)
        local before = (room - utf8.len(text) + 1) // 2
        return string.rep(" ", before) .. text .. string.rep(" ", room - before - utf8.len(text))
    end
    local pixels, lines, head = colours_wanted() and cells.pixels:tolist(), {}, {}
    for i, row in ipairs(cells.numbers) do
        local parts = {}
        for j, number in ipairs(row) do
            head[j] = centred(xnames and xnames[j] or tostring(j), width + 2)
            parts[j] = centred(number, width + 2)
            if pixels then
                parts[j] = string.format("\27[48;2;%d;%d;%d;38;5;%dm%s\27[0m", pixels[i][j][1], pixels[i][j][2], pixels[i][j][3],
                    cells.light[i][j] and 16 or 231, parts[j])
            end
        end
        local name = ynames and ynames[i] or tostring(i)
        lines[i] = string.gsub(string.rep(" ", left - utf8.len(name)) .. name .. " │" .. table.concat(parts), " +$", "")
    end
    table.insert(lines, 1, string.rep(" ", left + 2) .. (string.gsub(table.concat(head), "%s+$", "")))
    if fig.ylabel then
        table.insert(lines, 1, fig.ylabel)
    end
    if fig.xlabel then
        lines[#lines + 1] = string.rep(" ", left + 2) .. fig.xlabel
    end
    return table.concat(lines, "\n")
end

--- colours(cmap, n): n colours of a scale, "#rrggbb" each.
function matrix.colours(cmap, n)
    local list = {}
    for k, c in ipairs(colour_table(cmap):index_select(1, tide.linspace(1, 256, n):round():to(tide.int64)):tolist()) do
        list[k] = string.format("#%02x%02x%02x", c[1], c[2], c[3])
    end
    return list
end

-- Pixels of one channel in the colours of a scale.
local function recoloured(pixels, cmap)
    local h, w, channels = table.unpack(pixels.shape)
    if channels ~= 1 then
        fail("image: option cmap: for images of one channel, got %d", channels)
    end
    return colour_table(cmap):index_select(1, pixels:reshape(-1):to(tide.int64) + 1):reshape(h, w, 3):contiguous()
end

--- image(o): a figure of a tensor's pixels, each of them `scale` by `scale` on the screen.
function matrix.image(o)
    local pixels = tide._require("plot.pixels").of(o.x, "image", o.vmin, o.vmax, o.nrow)
    pixels = o.cmap and recoloured(pixels, o.cmap) or pixels
    local h, w = pixels.shape[1], pixels.shape[2]
    local zoom = o.scale or math.max(1, math.floor(200 / math.max(h, w))) -- a thumbnail is looked at larger
    if h * zoom > 8000 or w * zoom > 8000 then
        fail("image: option scale: %d x %d pixels are more than 8000 on a side", w * zoom, h * zoom)
    end
    local fig = { layers = {}, legend = {}, notes = {}, title = o.title, bare = true, shape = w / h, cells = { pixels = pixels },
        width = o.title and o.width or w * zoom + 20, height = o.title and o.height or h * zoom + 8 + (o.title and 24 or 0) }
    if not o.title then -- the pixels themselves
        fig.image = tide._png(tide._require("plot.pixels").enlarge(pixels, zoom))
        fig.scaled = (o.width or o.height) and { width = o.width, height = o.height } or nil
    end
    fig.picture = function(columns)
        return tide._require("plot.pixels").text(o.scale and tide._require("plot.pixels").enlarge(pixels, o.scale) or pixels, columns)
    end
    return fig
end

return matrix
