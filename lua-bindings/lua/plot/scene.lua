-- plot/scene.lua: what a plot shows, said once for all renderers: layers of marks with their colours, two scales and a
-- legend. It knows no pixels and no cells. A layer has a mark and lists of numbers, all as long:
--   line    x, y          a curve, broken where a number has no place
--   points  x, y          one marker each
--   band    x, low, high  the area between two curves
--   errors  x, low, high  a bar from low to high at each x
--   rects   left, right, y  from the axis to y
local tide = ...
local fail = tide._fail
local scale = tide._require "plot.scale"
local scene = {}

local COLOURS = { "#4c78a8", "#f58518", "#e45756", "#54a24b", "#b279a2", "#eeca3b", "#72b7b2", "#ff9da6", "#9d755d", "#9a9590" }
local NAMES = { blue = 1, orange = 2, red = 3, green = 4, purple = 5, yellow = 6, teal = 7, pink = 8, brown = 9, grey = 10,
    gray = 10 }
local LETTERS = { b = 1, r = 3, g = 4, y = 6 }

-- Which lists of a layer lie along which axis.
local ALONG = {
    line = { x = { "x" }, y = { "y" } }, points = { x = { "x" }, y = { "y" } },
    band = { x = { "x" }, y = { "low", "high" } }, errors = { x = { "x" }, y = { "low", "high" } },
    rects = { x = { "left", "right" }, y = { "y" } },
}

--- colour(name, text): "#rrggbb" of the name of a colour, or of such a text.
function scene.colour(name, text)
    local place = tonumber(string.match(text, "^C(%d)$")) -- matplotlib's, from C0 on
    if place or LETTERS[text] then
        return COLOURS[place and place + 1 or LETTERS[text]]
    elseif NAMES[text] then
        return COLOURS[NAMES[text]]
    elseif text == "black" or text == "k" then
        return "#000000"
    elseif text == "white" or text == "w" then
        return "#ffffff"
    elseif string.find(text, "^#%x%x%x%x%x%x$") then
        return string.lower(text)
    elseif string.find(text, "^#%x%x%x$") then
        return (string.gsub(string.lower(text), "%x", "%0%0"))
    end
    fail("%s: option color: '%s' is no colour: expected \"#rrggbb\", black, white, blue, orange, red, green, purple, yellow, "
        .. "teal, pink, brown or grey", name, text)
end

-- Layers without a colour of their own take the next one; a band and error bars that of the curve or points they lie
-- under: the next after them, else the last before.
local function paint(layers)
    local n, last, waiting = 0, nil, {}
    for _, layer in ipairs(layers) do
        layer.colour = layer.own
        if not layer.own and (layer.mark == "band" or layer.mark == "errors") then
            waiting[#waiting + 1] = { layer, last }
        elseif not layer.own then
            n = n + 1
            last = COLOURS[(n - 1) % #COLOURS + 1]
            layer.colour = last
            for _, w in ipairs(waiting) do
                w[1].colour = last
            end
            waiting = {}
        end
    end
    for _, w in ipairs(waiting) do
        n = w[2] and n or n + 1
        w[1].colour = w[2] or COLOURS[(n - 1) % #COLOURS + 1]
    end
end

local function lists_along(layers, direction)
    local lists = {}
    for _, layer in ipairs(layers) do
        for _, field in ipairs(ALONG[layer.mark][direction]) do
            lists[#lists + 1] = layer[field]
        end
    end
    return lists
end

-- The scale along "x" or "y" that all of the layers fit.
local function axis(layers, direction, options)
    local names, zero, pad = nil, false, direction == "y" and 0.05 or 0
    for _, layer in ipairs(layers) do
        if direction == "x" and layer.names and #layer.names > (names and #names or -1) then
            names = layer.names
        end
        zero = zero or direction == "y" and layer.mark == "rects"
        pad = math.max(pad, direction == "x" and (layer.mark == "points" or layer.mark == "errors") and 0.03 or 0)
    end
    return names and scale.names(names) or scale.new(lists_along(layers, direction), { zero = zero, pad = pad,
        log = options[direction .. "scale"] == "log", limits = options[direction .. "lim"] })
end

-- Numbers that have no place are told of, not hidden.
local function count_dropped(figure)
    local unreal, low = 0, 0
    local function has_no_place(axis_of, v)
        local real = v == v and math.abs(v) ~= math.huge
        return not real, real and axis_of.log and v <= 0
    end
    for _, layer in ipairs(figure.layers) do
        local along = ALONG[layer.mark]
        local first_x, last_y = layer[along.x[1]], layer[along.y[#along.y]]
        local first_y = layer[along.y[1]]
        for k = 1, #first_x do
            local no1, low1 = has_no_place(figure.x, first_x[k])
            local no2, low2 = has_no_place(figure.y, first_y[k])
            local no3, low3 = has_no_place(figure.y, last_y[k])
            if no1 or no2 or no3 then
                unreal = unreal + 1
            elseif low1 or low2 or low3 then
                low = low + 1
            end
        end
    end
    return unreal, low
end

local function notes_of(figure)
    local notes = {}
    for _, layer in ipairs(figure.layers) do
        notes[#notes + 1] = layer.note
    end
    for k, layer in ipairs(figure.layers) do
        if layer.all and layer.all > #layer.x then
            notes[#notes + 1] = string.format("%s: %d of %d points are drawn", layer.label or "series " .. k, #layer.x, layer.all)
        end
    end
    local unreal, low = count_dropped(figure)
    if unreal > 0 then
        notes[#notes + 1] = string.format("%d not drawn: nan or infinite", unreal)
    end
    if low > 0 then
        notes[#notes + 1] = string.format("%d not drawn: not above 0 on a logarithmic scale", low)
    end
    return notes
end

-- One entry for each label: the layers that bear it.
local function legend_of(layers)
    local entries, known = {}, {}
    for _, layer in ipairs(layers) do
        if layer.label and not known[layer.label] then
            known[layer.label] = { label = layer.label, layers = {} }
            entries[#entries + 1] = known[layer.label]
        end
        if layer.label then
            table.insert(known[layer.label].layers, layer)
        end
    end
    return entries
end

local function finish(figure)
    figure.notes = notes_of(figure)
    figure.empty = figure.x.empty or figure.y.empty
    return figure
end

--- new(layers, options): a figure of layers. options: title, xlabel, ylabel, width, height, xscale, yscale, xlim, ylim.
function scene.new(layers, options)
    paint(layers)
    return finish { layers = layers, options = options, title = options.title, xlabel = options.xlabel, ylabel = options.ylabel,
        width = options.width, height = options.height, x = axis(layers, "x", options), y = axis(layers, "y", options),
        grid = true, legend = legend_of(layers) }
end

--- add(a, b): the layers of both on the same axes. What both say of a title or a scale, the first says.
function scene.add(a, b)
    for _, figure in ipairs { a, b } do
        if not figure.options then
            fail("+: %s can't be laid over another plot: put them side by side with tide.plot.grid{a, b}", figure.panels
                and "a grid" or "a picture")
        end
    end
    local layers, options = {}, {}
    for _, figure in ipairs { a, b } do
        for _, layer in ipairs(figure.layers) do
            layers[#layers + 1] = setmetatable({}, { __index = layer })
        end
        for name, value in pairs(figure.options) do
            if options[name] == nil or options[name] == "linear" then
                options[name] = value
            end
        end
    end
    for _, direction in ipairs { "x", "y" } do
        local limits = options[direction .. "lim"]
        if options[direction .. "scale"] == "log" and limits and limits[1] <= 0 then
            fail("+: option %slim: a logarithmic scale begins above 0", direction)
        end
    end
    return scene.new(layers, options)
end

--- share(figures, direction): one scale for all of them, which all of their layers fit.
function scene.share(figures, direction)
    local layers, options = {}, {}
    for _, figure in ipairs(figures) do
        local first = figures[1]
        if not figure.options or (figure[direction].log or false) ~= (first[direction].log or false)
            or (figure[direction].names == nil) ~= (first[direction].names == nil) then
            fail("grid: share%s: plots of one kind of %s axis share it", direction, direction)
        end
        table.move(figure.layers, 1, #figure.layers, #layers + 1, layers)
        for _, name in ipairs { direction .. "scale", direction .. "lim" } do
            options[name] = options[name] or figure.options[name]
        end
    end
    local shared = axis(layers, direction, options)
    for k, figure in ipairs(figures) do
        local copy = {}
        for key, value in pairs(figure) do
            copy[key] = value
        end
        copy[direction] = shared
        figures[k] = finish(copy)
    end
end

-- ---- room for the legend ----

local CORNERS = { { "top-right", 1, 1 }, { "top-left", 0, 1 }, { "bottom-right", 1, 0 }, { "bottom-left", 0, 0 } }

-- Calls see(x, y) for places that are drawn on, as shares of the frame.
local function walk(figure, see)
    local function between(x1, y1, x2, y2)
        local steps = math.min(200, math.ceil(math.max(math.abs(x2 - x1), math.abs(y2 - y1)) / 0.02))
        for k = 0, steps do
            local share = k / math.max(steps, 1)
            see(x1 + (x2 - x1) * share, y1 + (y2 - y1) * share)
        end
    end
    local x, y = figure.x, figure.y
    for _, layer in ipairs(figure.layers) do
        local px, py
        for k = 1, #(layer.x or layer.left) do
            local at = x:at((layer.x or layer.left)[k])
            local high = y:at((layer.y or layer.high)[k])
            if not (at and high and math.abs(at) < 1e3 and math.abs(high) < 1e3) then
                px, py = nil, nil
            elseif layer.mark == "rects" then
                between(at, high, x:at(layer.right[k]), high)
                between(x:at(layer.left[k] / 2 + layer.right[k] / 2), high, at, y.log and 0 or y:at(0) or 0)
            elseif layer.mark == "line" then
                between(px or at, py or high, at, high)
                px, py = at, high
            else
                local low = layer.low and y:at(layer.low[k]) or high
                between(at, math.max(-1, math.min(low, 2)), at, high)
            end
        end
    end
end

--- legend_place(figure, w, h): the corner where nothing is drawn behind a legend of w by h shares of the frame, or
--- "right": beside the frame.
function scene.legend_place(figure, w, h)
    local hit = {}
    if w > 0.6 or h > 0.6 then
        return "right"
    end
    walk(figure, function(x, y)
        for k, corner in ipairs(CORNERS) do
            local inside_x = corner[2] == 1 and x > 1 - w or corner[2] == 0 and x < w
            local inside_y = corner[3] == 1 and y > 1 - h or corner[3] == 0 and y < h
            hit[k] = hit[k] or inside_x and inside_y and x > -0.05 and x < 1.05 and y > -0.05 and y < 1.05
        end
    end)
    for k, corner in ipairs(CORNERS) do
        if not hit[k] then
            return corner[1]
        end
    end
    return "right"
end

return scene
