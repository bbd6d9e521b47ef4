-- plot.lua: tide.plot: curves, points, histograms, bars, heat maps and images. A plot is one bundle for all front ends:
-- Vega-Lite where it is drawn, SVG or PNG beside it, Braille in a terminal.
local tide = ...
local fail, declare = tide._fail, tide._function
local data, scale = tide._plot_data, tide._plot_scale
local plot = {}

local COLOURS = { "#4c78a8", "#f58518", "#e45756", "#54a24b", "#b279a2", "#eeca3b", "#72b7b2", "#ff9da6", "#9d755d", "#bab0ac" }

-- ---- plots as values ----

local Plot = { __name = "Plot" }
Plot.__index = Plot
tide._class("Plot", Plot)

function Plot:__tostring() return tide._plot_text.draw(self.figure) end

function Plot:__display()
    local figure, bundle = self.figure, { ["text/plain"] = tostring(self) }
    if figure.image then
        bundle["image/png"] = figure.image
        bundle.metadata = figure.scaled and { ["image/png"] = figure.scaled } or nil
    else
        bundle["image/svg+xml"] = tide._plot_svg.draw(figure)
    end
    bundle[tide._plot_vega.type] = tide._plot_vega.spec(figure)
    return bundle
end

local function method(name, parameters, doc, fn) Plot[name] = declare(("%s(Plot self%s"):format(name, parameters), doc, fn) end

method("show", ", *, str? id=nil, bool update=false)",
    "Show it now, within a loop too; with an id a later one takes its place. Example: tide.plot.line({1, 4, 9}):show()",
    function(self, id, update)
        if update and not id then
            fail("show: update needs the id of a display")
        end
        tide.display(self, { id = id, update = update })
    end)

method("svg", ") -> str", "The plot as a drawing in SVG. Example: #tide.plot.line({1, 4, 9}):svg()",
    function(self)
        if self.figure.image then
            fail("svg: an image has no drawing: save it as PNG")
        end
        return tide._plot_svg.draw(self.figure)
    end)

method("vega", ") -> table", "The plot as a specification of Vega-Lite. Example: tide.plot.line({1, 4, 9}):vega().mark.type",
    function(self)
        return tide._plot_vega.spec(self.figure) or fail("vega: an image and a large heat map have no specification")
    end)

local function write(path, bytes)
    local file, problem = io.open(path, "wb")
    local ok = file and file:write(bytes)
    if not (file and file:close() and ok) then
        fail("save: %s", problem or path .. ": it can't be written")
    end
end

method("save", ", str path)", "Write it to a file: .svg, .png (images alone), .json (Vega-Lite) or .txt. "
    .. "Example: tide.plot.line({1, 4, 9}):save(os.tmpname() .. '.svg')",
    function(self, path)
        local ending = path:match("%.(%w+)$")
        if ending == "svg" then
            write(path, Plot.svg(self))
        elseif ending == "png" and self.figure.image then
            write(path, self.figure.image)
        elseif ending == "json" then
            write(path, tide._json.encode(Plot.vega(self), "save"))
        elseif ending == "txt" then
            write(path, tostring(self) .. "\n")
        else
            fail("save: '%s': expected a name that ends in .svg, .json or .txt%s", path, self.figure.image and " or .png" or "")
        end
    end)

local function new(figure)
    for k, s in ipairs(figure.series) do
        s.colour = COLOURS[(k - 1) % #COLOURS + 1]
    end
    return setmetatable({ figure = figure }, Plot)
end

-- ---- options ----

local COMMON = 'list? labels=nil, str? title=nil, str? xlabel=nil, str? ylabel=nil, int(50..4000) width=600, '
    .. 'int(50..4000) height=300'
local SCALED = '"linear"|"log" xscale="linear", "linear"|"log" yscale="linear", list? xlim=nil, list? ylim=nil, '

-- A function of tide.plot: fn gets its arguments by name, and gives a figure.
local function kind(name, parameters, doc, fn)
    local names
    plot[name] = declare(("%s(%s) -> Plot"):format(name, parameters), doc, function(...)
        local o = { name = name }
        for k, parameter in ipairs(names) do
            o[parameter] = (select(k, ...))
        end
        for _, option in ipairs { "title", "xlabel", "ylabel" } do
            if o[option] and not utf8.len(o[option]) then
                fail("%s: option %s is no UTF-8", name, option)
            end
            o[option] = o[option] and o[option]:gsub("%c", " ")
        end
        return new(tide.no_grad(fn, o))
    end)
    names = tide._doc(plot[name]).params
end

-- What all figures have; `series` are {label, x, y}.
local function figure_of(o, series, x, y)
    local figure = { kind = o.name, title = o.title, xlabel = o.xlabel, ylabel = o.ylabel, width = o.width, height = o.height,
        series = series, x = x, y = y, grid = true, notes = {}, empty = x.empty or y.empty }
    figure.legend = #series > 1 or o.labels ~= nil
    for k, s in ipairs(series) do
        if s.all and s.all > #s.y then
            figure.notes[#figure.notes + 1] = ("%s: %d of %d points are drawn"):format(s.label or "series " .. k, #s.y, s.all)
        end
    end
    return figure
end

local function lists_of(series, field)
    local lists = {}
    for k, s in ipairs(series) do
        lists[k] = s[field]
    end
    return lists
end

-- Logarithms have no place for what isn't above 0: it is said, not hidden.
local function note_dropped(figure, series)
    local dropped, unreal = 0, 0
    for _, s in ipairs(series) do
        for k, v in ipairs(s.y) do
            local u = s.x and s.x[k] or 1
            if v ~= v or math.abs(v) == math.huge or u ~= u or math.abs(u) == math.huge then
                unreal = unreal + 1
            elseif figure.y.log and v <= 0 or figure.x.log and u <= 0 then
                dropped = dropped + 1
            end
        end
    end
    if unreal > 0 then
        figure.notes[#figure.notes + 1] = ("%d not drawn: nan or infinite"):format(unreal)
    end
    if dropped > 0 then
        figure.notes[#figure.notes + 1] = ("%d not drawn: not above 0 on a logarithmic scale"):format(dropped)
    end
end

-- x and y as series of points: y alone has 1, 2, ... for x.
local function curves(o, scattered)
    local ys = data.series(o.name, o.y ~= nil and "y" or "x", o.y == nil and o.x or o.y)
    local xs = o.y ~= nil and data.series(o.name, "x", o.x) or nil
    local series = data.points(o.name, xs, ys, data.labels(o.name, "labels", o.labels, #ys), scattered)
    local function axis(field, log, limits, pad)
        return scale.new(lists_of(series, field), { log = log == "log", pad = pad,
            limits = data.limits(o.name, field .. "lim", limits, log == "log") })
    end
    local figure = figure_of(o, series, axis("x", o.xscale, o.xlim, scattered and 0.03 or 0), axis("y", o.yscale, o.ylim, 0.05))
    note_dropped(figure, series)
    return figure
end

kind("line", "data x, data? y=nil, *, " .. SCALED .. COMMON,
    "Curves: line(y) or line(x, y); several are a list of tensors or tables, or the columns of a tensor of two dims. "
    .. "Example: tide.plot.line({{3, 2, 1}, {3, 2.5, 2}}, {labels = {'train', 'test'}, yscale = 'log', title = 'Loss'})",
    function(o) return curves(o, false) end)

kind("scatter", "data x, data? y=nil, *, " .. SCALED .. COMMON,
    "Points: scatter(x, y), with several series as in line. Example: tide.plot.scatter(tide.randn(50), tide.randn(50))",
    function(o) return curves(o, true) end)

kind("hist", 'data x, *, int(1..1000)? bins=nil, list? range=nil, bool density=false, "linear"|"log" yscale="linear", ' .. COMMON,
    "How often values fall into each of some bins; density makes the area 1. Example: tide.plot.hist(tide.randn(1000), {bins = 20})",
    function(o)
        local x = tide.is_tensor(o.x) and o.x:dim() > 1 and o.x:reshape(-1) or o.x
        local values = data.series("hist", "x", x)
        local labels = data.labels("hist", "labels", o.labels, #values)
        local counts, edges = data.histogram(values, o.bins, data.limits("hist", "range", o.range))
        local series, left_out, counted = {}, 0, 0
        for k, count in ipairs(counts) do
            local sum = 0
            for _, c in ipairs(count) do
                sum = sum + c
            end
            left_out, counted = left_out + values[k]:numel() - math.tointeger(sum), counted + sum
            if o.density and sum > 0 then
                for i, c in ipairs(count) do
                    count[i] = c / sum / (edges[2] - edges[1])
                end
            end
            series[k] = { label = labels and labels[k] or #values > 1 and tostring(k) or nil, y = count }
        end
        local y = scale.new(lists_of(series, "y"), { zero = true, pad = 0.05, log = o.yscale == "log" })
        local figure = figure_of(o, series, scale.new({ edges }, {}), y)
        figure.edges = edges
        figure.empty = counted == 0
        if left_out > 0 then
            figure.notes[1] = ("%d not counted: nan, infinite or out of range"):format(left_out)
        end
        return figure
    end)

local function bar_names(o, n)
    if not o.names then
        local names = {}
        for k = 1, n do
            names[k] = tostring(k)
        end
        return names
    end
    return data.labels("bar", "names", o.names, n)
end

kind("bar", "data heights, *, list? names=nil, list? ylim=nil, " .. COMMON,
    "A bar for each number, by name; several series stand side by side. "
    .. "Example: tide.plot.bar({3, 5, 2}, {names = {'add', 'mul', 'mm'}, title = 'Calls'})",
    function(o)
        local values = data.series("bar", "heights", o.heights)
        local labels, n = data.labels("bar", "labels", o.labels, #values), values[1]:numel()
        if n > 1000 then
            fail("bar: %d bars are more than 1000: use hist or line", n)
        end
        local series = {}
        for k, v in ipairs(values) do
            if v:numel() ~= n then
                fail("bar: series %d has %d bars, the first has %d", k, v:numel(), n)
            end
            series[k] = { label = labels and labels[k] or #values > 1 and tostring(k) or nil, y = v:tolist() }
        end
        local names = bar_names(o, n)
        local y = scale.new(lists_of(series, "y"), { zero = true, pad = 0.05, limits = data.limits("bar", "ylim", o.ylim) })
        local figure = figure_of(o, series, scale.names(names), y)
        figure.names = names
        figure.empty = n == 0 or y.empty
        note_dropped(figure, series)
        return figure
    end)

-- ---- matrices and images ----

local VIRIDIS = { { 68, 1, 84 }, { 71, 44, 122 }, { 59, 81, 139 }, { 44, 113, 142 }, { 33, 144, 141 }, { 39, 173, 129 },
    { 92, 200, 99 }, { 170, 220, 50 }, { 253, 231, 37 } }

-- 256 colours between those.
local function colour_table()
    local anchors = tide.tensor(VIRIDIS, { dtype = tide.float32 })
    return tide.nn.functional.interpolate(anchors:t():unsqueeze(1), { size = 256, mode = "linear", align_corners = true })
        :squeeze(1):t():round():to(tide.uint8)
end

-- A matrix as pixels (rows, columns, 3); what is no number is grey.
local function coloured(m, low, high)
    local half = math.max(high / 2 - low / 2, 5e-324)
    local share = ((m / 2 - low / 2) / half):clamp(0, 1)
    local index = (tide.nan_to_num(share, 0) * 255 + 0.5):floor():to(tide.int64) + 1
    local picture = colour_table():index_select(1, index:reshape(-1)):reshape(m.shape[1], m.shape[2], 3)
    return tide.where(m:isnan():unsqueeze(3), tide.tensor(160, { dtype = tide.uint8 }), picture):contiguous()
end

-- The range of the finite elements, or what was asked for.
local function range_of(o, m)
    local finite = m[m:isfinite()]
    local low = o.vmin or finite:numel() > 0 and finite:min():item() or 0
    local high = o.vmax or finite:numel() > 0 and finite:max():item() or 1
    if low > high or low ~= low or high ~= high then
        fail("%s: expected vmin <= vmax, got %s and %s", o.name, tide._number(low), tide._number(high))
    end
    return low, high
end

local SIDE = 512 -- of a picture within a drawing

-- As many pixels as are seen: means of what a pixel stands for.
local function shrink(m)
    local h, w = m.shape[1], m.shape[2]
    if h <= SIDE and w <= SIDE then
        return m
    end
    return tide.nn.functional.adaptive_avg_pool2d(m:unsqueeze(1), { math.min(h, SIDE), math.min(w, SIDE) }):squeeze(1)
end

local function ordinal(n)
    local axis = scale.new({ { 0.5, n + 0.5 } }, {})
    function axis:ticks(wanted)
        local ticks, step = { { value = 1, label = "1" } }, 1
        for _, factor in ipairs { 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2, 2, 2.5, 2 } do -- 1, 2, 5, 10, ...
            step = n / step > (wanted or 10) and math.floor(step * factor) or step
        end
        for k = step == 1 and 2 or step, n, step do
            ticks[#ticks + 1] = { value = k, label = tostring(k) }
        end
        return ticks
    end
    return axis
end

-- Rows are counted from the top.
local function downwards(n)
    local axis = ordinal(n)
    local at = axis.at
    function axis:at(v) return 1 - at(self, v) end
    return axis
end

local CELLS = 2500 -- of a heat map that Vega-Lite draws cell by cell

kind("heatmap", "data x, *, float? vmin=nil, float? vmax=nil, " .. COMMON,
    "A matrix as colours, its first row at the top. Example: tide.plot.heatmap(tide.eye(4), {title = 'Attention'})",
    function(o)
        local m = data.matrix("heatmap", o.x)
        data.labels("heatmap", "labels", o.labels, 0)
        local rows, columns = m.shape[1], m.shape[2]
        local figure = figure_of(o, {}, ordinal(math.max(columns, 1)), downwards(math.max(rows, 1)))
        figure.grid, figure.empty = false, m:numel() == 0
        figure.low, figure.high = range_of(o, m)
        if figure.empty then
            figure.picture, figure.matrix = function() return "no data" end, {}
            return figure
        end
        local pixels = coloured(shrink(m), figure.low, figure.high)
        local low, high = tide._number(figure.low, 4), tide._number(figure.high, 4)
        figure.png = tide._png(pixels)
        figure.bar = { low = low, high = high, colours = colour_table():index_select(1, tide.arange(1, 257, 5)):tolist() }
        figure.matrix = m:numel() <= CELLS and m:tolist() or nil
        figure.picture = function()
            return plot._heatmap_text(m, figure.low, figure.high) .. "\n" .. ("%s (dark) to %s (light)"):format(low, high)
        end
        return figure
    end)

--- _heatmap_text(m, low, high): a matrix in a terminal's cells; small ones have cells of two columns.
function plot._heatmap_text(x, low, high)
    return tide.no_grad(function()
        local m = data.matrix("heatmap", x)
        if not low then
            low, high = range_of({ name = "heatmap" }, m)
        end
        local f = tide._frontend and tide._frontend() or {}
        local picture = f.color and not f.notebook and coloured(shrink(m), low, high)
            or tide._pixels.of(shrink(m), "heatmap", low, high)
        if m.shape[2] <= 40 then
            picture = picture:repeat_interleave(2, 2):repeat_interleave(2, 1)
        end
        return tide._pixels.text(picture:contiguous())
    end)
end

kind("image", "Tensor x, *, float? vmin=nil, float? vmax=nil, str? title=nil, int(1..4000)? width=nil, int(1..4000)? height=nil",
    "A tensor as an image: (height, width), (channels, height, width) or a batch of them; bytes, or floats from vmin (0) to "
    .. "vmax (1). Example: tide.plot.image(tide.rand(3, 16, 16))",
    function(o)
        local pixels = tide._pixels.of(o.x, "image", o.vmin, o.vmax)
        local h, w = pixels.shape[1], pixels.shape[2]
        local zoom = math.max(1, math.floor(200 / math.max(h, w))) -- a thumbnail is looked at larger
        local figure = { kind = "image", title = o.title, series = {}, notes = {}, image = tide._png(tide._pixels.enlarge(pixels, zoom)),
            scaled = (o.width or o.height) and { width = o.width, height = o.height } or nil }
        figure.picture = function() return tide._pixels.text(pixels) end
        return figure
    end)

tide._document(plot, "plot", "tide.plot", "Plots: line, scatter, hist, bar, heatmap, image.")

return plot
