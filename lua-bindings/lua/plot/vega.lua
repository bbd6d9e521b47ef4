-- plot/vega.lua: a figure as a specification of Vega-Lite, for front ends that draw it and let one look closer. Each layer
-- of the figure is one of the specification; ticks, colours and the legend's place are those of the drawing.
local tide = ...
local vega = {}
local json = tide._require "files.json"
local list, null = json.list, json.null

vega.type = "application/vnd.vegalite.v5+json"

local SHAPES = { o = "circle", ["."] = "circle", s = "square", d = "diamond", ["^"] = "triangle-up", v = "triangle-down", ["+"] = "cross",
    x = "M-1,-1L1,1M-1,1L1,-1" }

local function finite(v) return v == v and v ~= math.huge and v ~= -math.huge end

-- What a scale has no place for is a gap.
local function value_on(axis, v) return axis:at(v) and v or null end

-- The ticks are the drawing's, with its labels.
local function axis_of(fig, direction, wanted, title)
    local axis, values, labels = fig[direction], {}, {}
    for k, tick in ipairs(axis:ticks(wanted)) do
        values[k], labels[k] = tick.value, tick.label
    end
    return {
        title = title or null,
        scale = { type = axis.log and "log" or "linear", domain = list { axis.low, axis.high }, nice = false, zero = false },
        axis = { values = list(values), labelAngle = 0, grid = fig.grid and not axis.names,
            labelExpr = string.format("%s[indexof(%s, datum.value)]", json.encode(list(labels), "vega"), json.encode(list(values), "vega")) },
    }
end

local function channel(axis, field)
    local copy = { field = field, type = "quantitative" }
    for key, value in pairs(axis) do
        copy[key] = value
    end
    return copy
end

local function mark_of(layer, kind, more)
    local mark = { type = kind, color = layer.colour, opacity = layer.alpha, clip = true, tooltip = true }
    for key, value in pairs(more) do
        mark[key] = mark[key] == nil and value or mark[key]
    end
    return mark
end

local function point_mark(layer)
    local r, stroked = layer.size or layer.marker == "." and 1.5 or 3, layer.marker == "x" or layer.marker == "+"
    return { shape = SHAPES[layer.marker or "o"], size = (2 * r) ^ 2 * 0.8, filled = not stroked, strokeWidth = stroked and 1.5 or 0 }
end

-- For each mark: the fields of a row beside x, and the marks that draw it.
local makers = {}

function makers.line(layer)
    local dash = tide._require("plot.page").dashes[layer.dash]
    return { "x" }, { "y" }, mark_of(layer, "line", { strokeWidth = layer.width or 1.6, strokeDash = dash and list(dash),
        invalid = "break-paths-show-domains", point = layer.marker and point_mark(layer) or nil })
end

function makers.points(layer)
    local more = point_mark(layer)
    more.opacity = 0.7
    return { "x" }, { "y" }, mark_of(layer, "point", more)
end

function makers.band(layer) return { "x" }, { "low", "high" }, mark_of(layer, "area", { opacity = 0.25, line = false }) end

function makers.errors(layer) return { "x" }, { "low", "high" }, mark_of(layer, "errorbar", { ticks = true }) end

function makers.rects(layer)
    return { "left", "right" }, { "base", "y" }, mark_of(layer, "bar", { opacity = layer.faint and 0.55 or 0.9 })
end

local function rows_of(fig, layer, xs, ys)
    local rows = {}
    local base = fig.y.log and fig.y.low or math.max(fig.y.low, math.min(0, fig.y.high))
    for k = 1, #layer[xs[1]] do
        if finite(layer[xs[1]][k]) then
            local row = { i = layer.mark == "line" and k or nil, name = layer.names and layer.names[k] or nil }
            for _, name in ipairs(xs) do
                row[name] = value_on(fig.x, layer[name][k])
            end
            for _, name in ipairs(ys) do
                row[name] = name == "base" and base or value_on(fig.y, layer[name][k])
            end
            rows[#rows + 1] = row
        end
    end
    return list(rows)
end

-- The labels with their colours, when there are any; keys are squares where areas are named alone.
local function legend_of(fig, place)
    local labels, colours, areas = {}, {}, true
    for k, entry in ipairs(fig.legend) do
        labels[k], colours[k] = entry.label, entry.layers[1].colour
        areas = areas and entry.layers[1].mark == "rects"
    end
    return { type = "nominal", scale = { domain = list(labels), range = list(colours) }, legend = { title = null, orient = place,
        symbolType = areas and "square" or "stroke", symbolStrokeWidth = areas and 0 or 3, symbolOpacity = 1 } }
end

local function layer_of(fig, layer, x, y, legend)
    local xs, ys, mark = makers[layer.mark](layer)
    local encoding = { x = channel(x, xs[1]), y = channel(y, ys[1]) }
    encoding.x2 = xs[2] and { field = xs[2] } or nil
    encoding.y2 = ys[2] and { field = ys[2] } or nil
    encoding.order = layer.mark == "line" and { field = "i", type = "quantitative" } or nil
    if layer.label then
        encoding.color = { datum = layer.label, type = legend.type, scale = legend.scale, legend = legend.legend }
        mark.color = nil
    end
    return { data = { values = rows_of(fig, layer, xs, ys) }, mark = mark, encoding = encoding }
end

-- One with many cells is a picture alone, and has no matrix.
local function matrix_layers(fig, height)
    local cells, rows = fig.cells, {}
    local function names(axis, n)
        local all = {}
        for k = 1, n do
            all[k] = axis.names and axis.names[k] or tostring(k)
        end
        return all
    end
    local xnames, ynames = names(fig.x, #(cells.matrix[1] or {})), names(fig.y, #cells.matrix)
    for i, row in ipairs(cells.matrix) do
        for j, v in ipairs(row) do
            rows[#rows + 1] = { x = xnames[j], y = ynames[i], v = finite(v) and v or null, text = cells.numbers and cells.numbers[i][j],
                light = cells.light and cells.light[i][j] }
        end
    end
    local function place(field, title, all)
        return { field = field, type = "ordinal", title = title or null, sort = list(all), axis = { labelAngle = 0, labelOverlap = true } }
    end
    local x, y = place("x", fig.xlabel, xnames), place("y", fig.ylabel, ynames)
    local layers = { {
        mark = { type = "rect", tooltip = true },
        encoding = { x = x, y = y, color = { field = "v", type = "quantitative", legend = { title = null, gradientLength = height },
            scale = { scheme = cells.scheme, reverse = cells.scheme == "greys" or nil, domain = list { cells.low, cells.high } } } },
    } }
    layers[2] = cells.numbers and {
        mark = { type = "text" },
        encoding = { x = x, y = y, text = { field = "text" }, color = { condition = { test = "datum.light", value = "#222222" },
            value = "#ffffff" } },
    } or nil
    return layers, { values = list(rows) }
end

local function single(fig, w, h)
    if fig.bare or fig.cells and not fig.cells.matrix then
        return nil
    end
    local box = tide._require("plot.page").lay_out(fig, w, h)
    local spec = { title = fig.title, width = math.floor(box.right - box.left), height = math.floor(box.bottom - box.top) }
    if fig.cells then
        spec.layer, spec.data = matrix_layers(fig, spec.height)
        return spec
    end
    local x = axis_of(fig, "x", tide._require("plot.page").ticks_across(spec.width), fig.xlabel)
    local y = axis_of(fig, "y", tide._require("plot.page").ticks_up(spec.height), fig.ylabel)
    local legend, layers = legend_of(fig, box.legend), {}
    for k, layer in ipairs(fig.layers) do
        layers[k] = layer_of(fig, layer, x, y, legend)
    end
    spec.layer = list(layers)
    return spec
end

local APART = { scale = { color = "independent" }, legend = { color = "independent" } } -- each plot has its own colours

local function any(fig, w, h)
    if not fig.panels then
        return single(fig, w, h)
    end
    local rows, row = {}, nil
    local cw, ch = w / fig.columns, (h - (fig.title and 28 or 0)) / math.ceil(#fig.panels / fig.columns)
    for k, panel in ipairs(fig.panels) do
        if (k - 1) % fig.columns == 0 then
            row = {}
            rows[#rows + 1] = { hconcat = row, resolve = APART }
        end
        row[#row + 1] = any(panel, cw, ch)
        if not row[(k - 1) % fig.columns + 1] then
            return nil
        end
    end
    return { title = fig.title and { text = fig.title, anchor = "middle" }, vconcat = list(rows), resolve = APART }
end

-- The looks of the drawing.
local function config()
    local page = tide._require "plot.page"
    local grey = "#888888"
    return {
        font = "sans-serif", view = { stroke = null },
        title = { fontSize = page.title, color = page.ink },
        axis = { labelColor = page.ink, titleColor = page.ink, labelFontSize = page.font, titleFontSize = page.font, titleFontWeight = "normal",
            gridColor = grey, gridOpacity = 0.22, domainColor = grey, ticks = false, labelPadding = 6 },
        -- upright, above the axis
        axisY = { titleAngle = 0, titleAlign = "left", titleAnchor = "end", titleX = -30, titleY = -10 },
        legend = { labelColor = page.ink, titleColor = page.ink, labelFontSize = page.font },
    }
end

--- spec(fig): the specification as a table; nil where a picture says more.
function vega.spec(fig)
    local spec = any(fig, fig.width, fig.height)
    if spec then
        spec["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json"
        spec.background, spec.config = null, config()
    end
    return spec
end

return vega
