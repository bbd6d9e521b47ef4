-- _plot_vega.lua: a figure as a specification of Vega-Lite, for front ends that draw it and let one look closer.
local tide = ...
local vega = {}
local list, null = tide._json.list, tide._json.null

vega.type = "application/vnd.vegalite.v5+json"

local function finite(v) return v == v and v ~= math.huge and v ~= -math.huge end

-- What a scale has no place for is a gap.
local function value_on(axis, v) return axis:at(v) and v or null end

local function scale_of(axis)
    return { type = axis.log and "log" or "linear", domain = list { axis.low, axis.high }, nice = false, zero = false }
end

local function axis_of(name, title, axis)
    return { field = name, type = "quantitative", title = title or null, scale = scale_of(axis) }
end

local function labels_of(fig)
    local labels, colours = {}, {}
    for k, s in ipairs(fig.series) do
        labels[k], colours[k] = s.label or tostring(k), s.colour
    end
    return labels, colours
end

local function colour_of(fig)
    local labels, colours = labels_of(fig)
    return { field = "s", type = "nominal", title = null, sort = list(labels),
        scale = { domain = list(labels), range = list(colours) }, legend = not fig.legend and null or nil }
end

-- A row for every point.
local function point_rows(fig)
    local rows = {}
    for k, s in ipairs(fig.series) do
        for i, v in ipairs(s.y) do
            if finite(s.x[i]) then
                rows[#rows + 1] = { x = value_on(fig.x, s.x[i]), y = value_on(fig.y, v), s = s.label or tostring(k), i = i }
            end
        end
    end
    return rows
end

local function points(fig, mark)
    return {
        data = { values = list(point_rows(fig)) },
        mark = mark,
        encoding = { x = axis_of("x", fig.xlabel, fig.x), y = axis_of("y", fig.ylabel, fig.y), color = colour_of(fig),
            order = mark.type == "line" and { field = "i", type = "quantitative" } or nil },
    }
end

local function hist(fig)
    local rows = {}
    for k, s in ipairs(fig.series) do
        for i, v in ipairs(s.y) do
            rows[#rows + 1] = { a = fig.edges[i], b = fig.edges[i + 1], y = value_on(fig.y, v), z = math.max(fig.y.low, 0),
                s = s.label or tostring(k) }
        end
    end
    return {
        data = { values = list(rows) },
        mark = { type = "bar", opacity = #fig.series > 1 and 0.55 or 0.9, tooltip = true },
        encoding = { x = axis_of("a", fig.xlabel, fig.x), x2 = { field = "b" }, y = axis_of("y", fig.ylabel, fig.y),
            y2 = { field = "z" }, color = colour_of(fig) },
    }
end

local function bar(fig)
    local rows = {}
    for k, s in ipairs(fig.series) do
        for i, v in ipairs(s.y) do
            rows[#rows + 1] = { x = fig.names[i], y = value_on(fig.y, v), z = math.max(fig.y.low, 0), s = s.label or tostring(k) }
        end
    end
    return {
        data = { values = list(rows) },
        mark = { type = "bar", tooltip = true },
        encoding = { x = { field = "x", type = "nominal", sort = null, title = fig.xlabel or null, axis = { labelAngle = 0 } },
            xOffset = #fig.series > 1 and { field = "s", sort = list((labels_of(fig))) } or nil,
            y = axis_of("y", fig.ylabel, fig.y), y2 = { field = "z" }, color = colour_of(fig) },
    }
end

-- One with many cells is a picture alone, and has no matrix.
local function heatmap(fig)
    if not fig.matrix then
        return nil
    end
    local rows = {}
    for i, row in ipairs(fig.matrix) do
        for j, v in ipairs(row) do
            rows[#rows + 1] = { x = j, y = i, v = finite(v) and v or null }
        end
    end
    return {
        data = { values = list(rows) },
        mark = { type = "rect", tooltip = true },
        encoding = { x = { field = "x", type = "ordinal", title = fig.xlabel or null },
            y = { field = "y", type = "ordinal", title = fig.ylabel or null },
            color = { field = "v", type = "quantitative", title = null,
                scale = { scheme = "viridis", domain = list { fig.low, fig.high } } } },
    }
end

local makers = {
    line = function(fig) return points(fig, { type = "line", tooltip = true, invalid = "break-paths-show-domains" }) end,
    scatter = function(fig) return points(fig, { type = "point", filled = true, opacity = 0.6, tooltip = true }) end,
    hist = hist, bar = bar, heatmap = heatmap,
}

--- spec(fig): the specification as a table; nil where a picture says more.
function vega.spec(fig)
    local maker = makers[fig.kind]
    local spec = maker and maker(fig)
    if spec then
        spec["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json"
        spec.title, spec.width, spec.height = fig.title, fig.width - 120, fig.height - 60
    end
    return spec
end

return vega
