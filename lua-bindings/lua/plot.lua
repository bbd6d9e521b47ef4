-- plot.lua: tide.plot: curves, points, bands, histograms, bars, heat maps and images, laid over each other with + and side
-- by side in a grid. A plot is one bundle for all front ends: Vega-Lite where it is drawn, SVG or PNG beside it, Braille in
-- a terminal. How it is drawn is not known here.
local tide = ...
local fail, declare = tide._fail, tide._function
local data, scene, matrix = tide._require "plot.data", tide._require "plot.scene", tide._require "plot.matrix"
local plot = {}

-- ---- plots as values ----

local Plot = setmetatable({ __name = "Plot" }, { __index = function(_, name)
    local told = tide._require("plot.matplotlib").name(name)
    if told then
        fail("a plot has no '%s': %s", name, told)
    end
end })
Plot.__index = Plot
tide._class("Plot", Plot)

local function new(figure) return setmetatable({ figure = figure }, Plot) end

-- Words of a plot that may be set when it is there; all else is said where it is made.
function Plot:__newindex(name, value)
    local figure = rawget(self, "figure")
    if name ~= "title" and name ~= "xlabel" and name ~= "ylabel" or figure.bare then
        fail("a plot's '%s' can't be set: options are given where it is made, tide.plot.line(y, {title = \"...\"})", tostring(name))
    elseif type(value) ~= "string" or not utf8.len(value) then
        fail("%s: expected a text in UTF-8, got %s", name, tide._describe(value))
    elseif figure.panels and name == "title" and not figure.title then
        figure.height = figure.height + 28
    end
    figure[name] = string.gsub(value, "%c", " ")
    if figure.options then
        figure.options[name] = figure[name]
    end
end

local function is_plot(value) return getmetatable(value) == Plot end

function Plot:__tostring() return tide._require("plot.text").draw(self.figure) end

function Plot.__add(a, b)
    if not (is_plot(a) and is_plot(b)) then
        fail("+: a plot is laid over a plot, not over %s", tide._describe(is_plot(a) and b or a))
    end
    return new(scene.add(a.figure, b.figure))
end

function Plot:__display()
    local figure, vega, bundle = self.figure, tide._require "plot.vega", { ["text/plain"] = tostring(self) }
    bundle[vega.type] = vega.spec(figure)
    if figure.image then
        bundle["image/png"] = figure.image
        bundle.metadata = figure.scaled and { ["image/png"] = figure.scaled } or nil
    else
        bundle["image/svg+xml"] = tide._require("plot.svg").draw(figure)
        if not bundle[vega.type] then -- JupyterLab shows no SVG of a notebook that came from elsewhere until it is trusted
            bundle["image/png"] = tide._png(tide._require("plot.raster").draw(figure))
        end
    end
    return bundle
end

local function method(name, parameters, doc, fn) Plot[name] = declare(string.format("%s(Plot self%s", name, parameters), doc, fn) end

method("show", ", *, str? id=nil, bool update=false)",
    "Show it now, within a loop too; with an id a later one takes its place. Example: tide.plot.line({1, 4, 9}):show()",
    function(self, id, update)
        if update and not id then
            fail("show: update needs the id of a display")
        end
        tide.display(self, { id = id, update = update })
    end)

method("svg", ") -> str", "The plot as a drawing in SVG. Example: #tide.plot.line({1, 4, 9}):svg()",
    function(self) return tide._require("plot.svg").draw(self.figure) end)

method("vega", ") -> table", "The plot as a specification of Vega-Lite. Example: tide.plot.line({1, 4, 9}):vega().layer[1].mark.type",
    function(self)
        return tide._require("plot.vega").spec(self.figure) or fail("vega: an image and a large heat map have no specification")
    end)

local WRITERS = {
    svg = function(self) return Plot.svg(self) end,
    png = function(self) return self.figure.image or tide._png(tide._require("plot.raster").draw(self.figure)) end,
    pdf = function(self) return tide._require("plot.pdf").draw(self.figure) end,
    json = function(self) return tide._require("files.json").encode(Plot.vega(self), "save") end,
    txt = function(self) return tostring(self) .. "\n" end,
}

method("save", ", str path)", "Write it to a file: .svg, .png, .pdf, .json (Vega-Lite) or .txt. "
    .. "Example: tide.plot.line({1, 4, 9}):save(os.tmpname() .. '.png')",
    function(self, path)
        local writer = WRITERS[string.match(path, "%.(%w+)$")]
        if not writer then
            fail("save: '%s': expected a name that ends in .svg, .png, .pdf, .json or .txt", path)
        end
        local bytes = tide.no_grad(writer, self)
        local file, problem = io.open(path, "wb")
        local ok = file and file:write(bytes)
        if not (file and file:close() and ok) then
            fail("save: %s", problem or path .. ": it can't be written")
        end
    end)

-- ---- options ----

-- Of any plot; of those with layers; of their axes.
local COMMON = 'str? title=nil, str? xlabel=nil, str? ylabel=nil, int(50..4000) width=600, int(50..4000) height=300'
local AXES = '"linear"|"log" xscale="linear", "linear"|"log" yscale="linear", list? xlim=nil, list? ylim=nil, '
local STYLED = 'str? label=nil, list? labels=nil, any? color=nil, float(0..1)? alpha=nil'
local MARKED = ', "o"|"."|"s"|"^"|"v"|"d"|"x"|"+"? marker=nil, float(0..100)? markersize=nil, data? yerr=nil'

local function check_texts(o)
    for _, option in ipairs { "title", "xlabel", "ylabel", "label" } do
        if o[option] and not utf8.len(o[option]) then
            fail("%s: option %s is no UTF-8", o.name, option)
        end
        o[option] = o[option] and string.gsub(o[option], "%c", " ")
    end
    return o
end

-- The arguments of a call whose options are read by two readers: those that `figure` knows are taken out of its table.
local function split_options(name, is_figures, is_known, read_figure, ...)
    local arguments = table.pack(...)
    local last, figure = arguments[arguments.n], {}
    if type(last) ~= "table" or getmetatable(last) ~= nil then
        return figure, ...
    end
    local rest = {}
    for key, value in next, last do
        if is_figures[key] then
            figure[key] = value
        else
            rest[key] = value
        end
    end
    for key, value in next, rest do -- a name that is nearly one of the figure's is told of as such
        local told = type(key) == "string" and not is_known[key] and tide._require("plot.matplotlib").option(key)
        if told then
            fail("%s: no option '%s': %s", name, key, told)
        elseif type(key) == "string" and not is_known[key] then
            local _, problem = pcall(read_figure, { [key] = value })
            if string.find(problem, "did you mean", 1, true) then
                error(problem, 0)
            end
        end
    end
    local nothing_left = next(figure) ~= nil and next(rest) == nil
    arguments[arguments.n] = next(figure) ~= nil and rest or last
    return figure, table.unpack(arguments, 1, nothing_left and arguments.n > 1 and arguments.n - 1 or arguments.n)
end

-- A function of tide.plot: fn gets its arguments by name, and gives a figure. `figure` are the options that it has beside
-- those of its data.
local function kind(name, parameters, figure, doc, fn)
    local read = declare(string.format("%s(%s)", name, parameters), doc)
    local read_figure = figure and declare(string.format("%s(*, %s)", name, figure), doc)
    local names, is_figures, is_known = tide._doc(read).params, {}, {}
    for _, option in ipairs(names) do
        is_known[option] = true
    end
    for _, option in ipairs(figure and tide._doc(read_figure).params or {}) do
        is_figures[option] = true
        names[#names + 1] = option
    end
    plot[name] = function(...)
        local o
        if figure then
            local options
            o = table.pack(split_options(name, is_figures, is_known, read_figure, ...))
            options = read_figure(o[1])
            o = read(table.unpack(o, 2, o.n))
            for option in pairs(is_figures) do
                o[option] = options[option]
            end
        else
            o = read(...)
        end
        o.name = name
        return new(tide.no_grad(fn, check_texts(o)))
    end
    local signature = tide._doc(read).signature
    if figure then -- one table has both
        local inner = string.match(tide._doc(read_figure).signature, "^[^{]*{(.*)}%)$")
        signature = string.gsub(string.gsub(signature, "}%)$", ""), "%)$", ", {") .. (string.find(signature, "{", 1, true) and ", " or "") .. inner .. "})"
    end
    tide._document(plot[name], name, signature .. " -> Plot", doc)
    tide._doc(plot[name]).params = names
end

-- What the figure says of itself, with the limits that are asked for.
local function figure_of(o, layers)
    local options = {}
    for _, name in ipairs { "title", "xlabel", "ylabel", "width", "height", "xscale", "yscale" } do
        options[name] = o[name]
    end
    options.xlim = data.limits(o.name, "xlim", o.xlim, o.xscale == "log")
    options.ylim = data.limits(o.name, "ylim", o.ylim, o.yscale == "log")
    return scene.new(layers, options)
end

-- The names of n series: those of option labels; option label for the first; numbers for several in colours of their own.
local function label_of(o, labels, k, n)
    return labels and labels[k] or k == 1 and o.label or n > 1 and not (o.color or o.label) and tostring(k) or nil
end

-- The colour of series k: option color is one for all, or a list of them.
local function styled(o, layer, k)
    local color = o.color
    if type(color) == "table" then
        color = color[k or 1] or fail("%s: option color: there is none for series %d", o.name, k or 1)
    end
    if color ~= nil and type(color) ~= "string" then
        fail("%s: option color: expected the name of a colour, a list of names, one for each series%s, got %s", o.name,
            (o.name == "points" or o.name == "scatter") and ", or the class or amount of each point" or "", tide._describe(o.color))
    end
    layer.own = color and scene.colour(o.name, color)
    layer.alpha = o.alpha
    return layer
end

-- Bars from y - yerr to y + yerr.
local function errors_of(o, layer)
    local errors = data.values(o.name, "yerr", o.yerr)
    if errors:numel() ~= 1 and errors:numel() ~= layer.all then
        fail("%s: option yerr: %d numbers for %d of y", o.name, errors:numel(), layer.all)
    end
    local low, high = {}, {}
    errors = data.pick(errors):tolist()
    for k, y in ipairs(layer.y) do
        local e = errors[k] or errors[1]
        low[k], high[k] = y - e, y + e
    end
    return styled(o, { mark = "errors", x = layer.x, low = low, high = high })
end

local MOST_CLASSES, LEVELS = 30, 12

-- Points of which option color says an amount each, as series of LEVELS colours of a scale, of which the lowest, a middle
-- and the highest bear their amounts: xs, ys, and labels by place.
local function by_amount(o, x, y, amounts)
    amounts = tide.tensor(amounts, { dtype = tide.float64 })
    local low, high = matrix.range(o.name, amounts)
    local share = high > low and (amounts - low) / (high - low) or tide.zeros(#amounts, { dtype = tide.float64 })
    local level = (share * LEVELS):floor():clamp(0, LEVELS - 1):to(tide.int64) + 1
    local colours, new_xs, new_ys, labels, color = matrix.colours(o.cmap, LEVELS), {}, {}, {}, {}
    for k = 1, LEVELS do
        local mask = level:eq(k):logical_and(amounts:isfinite())
        if mask:any():item() then
            new_xs[#new_xs + 1], new_ys[#new_ys + 1], color[#color + 1] = x[mask], y[mask], colours[k]
            local wanted = k == 1 or k == LEVELS or k == LEVELS // 2
            labels[#new_xs] = wanted and not o.label and tide._number(k == 1 and low or k == LEVELS and high or amounts[mask]:mean():item(), 3) or nil
        end
    end
    o.color = color
    return new_xs, new_ys, labels
end

local function are_amounts(values)
    for _, v in ipairs(values) do
        if type(v) ~= "number" then
            return false
        elseif not math.tointeger(v) then
            return true
        end
    end
    return false
end

-- Points of which option color says the class, a whole number or a text each, as a series for each class, or an amount:
-- xs, ys.
local function by_class(o, xs, ys)
    local classes = tide.is_tensor(o.color) and o.color:detach():reshape(-1):tolist() or o.color
    if #ys ~= 1 or xs and #xs ~= 1 or #classes ~= ys[1]:numel() then
        fail("%s: option color: %d classes for %d points", o.name, #classes, ys[1]:numel())
    end
    local x = xs and xs[1]:reshape(-1) or tide.arange(1, #classes + 1, { dtype = tide.float64 })
    if are_amounts(classes) then
        return by_amount(o, x, ys[1]:reshape(-1), classes)
    end
    local rows, order = {}, {}
    for k, class in ipairs(classes) do
        if not rows[class] then
            rows[class], order[#order + 1] = {}, class
        end
        table.insert(rows[class], k)
    end
    if #order > MOST_CLASSES and type(classes[1]) == "number" then
        return by_amount(o, x, ys[1]:reshape(-1), classes)
    elseif #order > MOST_CLASSES then
        fail("%s: option color: %d classes are more than %d", o.name, #order, MOST_CLASSES)
    end
    table.sort(order, function(a, b)
        if type(a) == type(b) then
            return type(a) == "number" and a < b or type(a) == "string" and tide._before(a, b)
        end
        return type(a) == "number"
    end)
    local new_xs, new_ys, names = {}, {}, {}
    for k, class in ipairs(order) do
        local places = tide.tensor(rows[class])
        new_xs[k], new_ys[k], names[k] = x[places], ys[1][places], type(class) == "number" and tide._number(class) or tostring(class)
    end
    o.color, o.labels = nil, o.labels or names
    return new_xs, new_ys
end

-- x and y as layers of points: y alone has 1, 2, ... for x.
local function curves(o, mark)
    local ys = data.series(o.name, o.y ~= nil and "y" or "x", o.y == nil and o.x or o.y)
    local xs = o.y ~= nil and data.series(o.name, "x", o.x) or nil
    if mark == "points" and o.color == nil then
        o.color = o.c
    end
    if o.s then -- square points: a radius in pixels of 3/4 point
        o.markersize = o.markersize or math.min(100, o.s ^ 0.5 / 2 / 0.75)
    end
    o.cmap = o.cmap == "tab10" and "viridis" or o.cmap
    local list, amounts = tide.is_tensor(o.color) or type(o.color) == "table" and #o.color ~= #ys, nil
    if mark == "points" and list then
        xs, ys, amounts = by_class(o, xs, ys)
    end
    local labels, layers = data.labels(o.name, "labels", o.labels, #ys), {}
    for k, points in ipairs(data.points(o.name, xs, ys, mark == "points" or o.yerr ~= nil)) do
        local layer = styled(o, { mark = mark, x = points.x, y = points.y, all = points.all, label = amounts and amounts[k] or label_of(o, labels, k, #ys),
            dash = o.linestyle, width = o.linewidth, marker = o.marker, size = o.markersize }, k)
        layers[#layers + 1] = o.yerr ~= nil and errors_of(o, layer) or nil
        layers[#layers + 1] = layer
    end
    return figure_of(o, layers)
end

kind("line", 'data x, data? y=nil, *, ' .. STYLED .. ', "solid"|"dashed"|"dotted"|"-"|"--"|":" linestyle="solid", float(0..100)? linewidth=nil'
    .. MARKED, AXES .. COMMON,
    "Curves: line(y) or line(x, y); several are a list of tensors or tables, or the columns of a tensor of two dims. Plots are "
    .. "laid over each other with +. Example: tide.plot.line({{3, 2, 1}, {3, 2.5, 2}}, {labels = {'train', 'test'}, yscale = 'log'}) "
    .. "+ tide.plot.points({3, 2, 1})",
    function(o) return curves(o, "line") end)

for _, name in ipairs { "points", "scatter" } do
    kind(name, "data x, data? y=nil, *, " .. STYLED .. MARKED .. ', any? c=nil, "viridis"|"gray"|"grey"|"tab10" cmap="viridis", float(0..)? s=nil', AXES .. COMMON,
        string.format("Points: %s(x, y), with several series as in line; color, or c, is that of all, a list of one for each series, the class of each point, or "
            .. "an amount, in the colours of cmap (classes have colours of their own, \"tab10\" in matplotlib); markersize is a marker's radius "
            .. "in pixels (3), s its area in square points, as matplotlib has it; yerr draws error bars. "
            .. "Example: tide.plot.%s(tide.randn(50), tide.randn(50), {marker = 's'})", name, name),
        function(o) return curves(o, "points") end)
end

kind("band", "data x, data low, data? high=nil, *, " .. STYLED, AXES .. COMMON,
    "The area between two curves: band(x, low, high), or band(low, high) over 1, 2, ... It takes the colour of the curve that it "
    .. "lies under. Example: tide.plot.band({1, 2, 3}, {0, 1, 2}, {2, 3, 3}, {label = '95 %'}) + tide.plot.line({1, 2, 2.5})",
    function(o)
        local low, high = o.high == nil and o.x or o.low, o.high == nil and o.low or o.high
        low, high = data.values("band", "low", low), data.values("band", "high", high)
        local x = o.high ~= nil and data.values("band", "x", o.x) or tide.arange(1, low:numel() + 1, { dtype = tide.float64 })
        if x:numel() ~= low:numel() or low:numel() ~= high:numel() then
            fail("band: %d values of x, %d of low and %d of high", x:numel(), low:numel(), high:numel())
        end
        local labels = data.labels("band", "labels", o.labels, 1)
        return figure_of(o, { styled(o, { mark = "band", x = data.pick(x):tolist(), low = data.pick(low):tolist(),
            high = data.pick(high):tolist(), all = x:numel(), label = label_of(o, labels, 1, 1) }) })
    end)

-- ---- bars ----

kind("hist", 'data x, *, int(1..1000)? bins=nil, list? range=nil, bool density=false, ' .. STYLED, AXES .. COMMON,
    "How often values fall into each of some bins; density makes the area 1. Example: tide.plot.hist(tide.randn(1000), {bins = 20})",
    function(o)
        local x = tide.is_tensor(o.x) and o.x:dim() > 1 and o.x:reshape(-1) or o.x
        local values = data.series("hist", "x", x)
        local labels = data.labels("hist", "labels", o.labels, #values)
        local counts, edges = data.histogram(values, o.bins, data.limits("hist", "range", o.range))
        local left, right, layers, left_out, counted = {}, {}, {}, 0, 0
        for k = 1, #edges - 1 do
            left[k], right[k] = edges[k], edges[k + 1]
        end
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
            layers[k] = styled(o, { mark = "rects", left = left, right = right, y = count, label = label_of(o, labels, k, #values),
                faint = #counts > 1 and (k > 1 and "outline" or "filled") or nil }, k)
        end
        layers[1].note = left_out > 0 and string.format("%d not counted: nan, infinite or out of range", left_out) or nil
        local figure = figure_of(o, layers)
        figure.empty = counted == 0
        return figure
    end)

local function bar_names(o, n)
    if o.names then
        return data.labels("bar", "names", o.names, n)
    end
    local names = {}
    for k = 1, n do
        names[k] = tostring(k)
    end
    return names
end

kind("bar", "data heights, *, list? names=nil, " .. STYLED, '"linear"|"log" yscale="linear", list? ylim=nil, ' .. COMMON,
    "A bar for each number, by name; several series stand side by side. "
    .. "Example: tide.plot.bar({3, 5, 2}, {names = {'add', 'mul', 'mm'}, title = 'Calls'})",
    function(o)
        local values = data.series("bar", "heights", o.heights)
        local labels, n = data.labels("bar", "labels", o.labels, #values), values[1]:numel()
        if n > 1000 then
            fail("bar: %d bars are more than 1000: use hist or line", n)
        end
        local names, layers, band = bar_names(o, n), {}, 0.8 / #values
        for k, v in ipairs(values) do
            if v:numel() ~= n then
                fail("bar: series %d has %d bars, the first has %d", k, v:numel(), n)
            end
            local left, right = {}, {}
            for i = 1, n do
                left[i], right[i] = i - 0.4 + (k - 1) * band, i - 0.4 + k * band
            end
            layers[k] = styled(o, { mark = "rects", left = left, right = right, y = v:tolist(), names = names,
                label = label_of(o, labels, k, #values) }, k)
        end
        return figure_of(o, layers)
    end)

-- ---- matrices and images ----

kind("heatmap", 'data x, *, float? vmin=nil, float? vmax=nil, bool numbers=false, bool? square=nil, list? names=nil, '
    .. '"viridis"|"gray"|"grey" cmap="viridis"', COMMON,
    "A matrix as colours, its first row at the top, with the number of each cell on demand; names are those of its rows and, where "
    .. "there are as many, columns; square makes cells square. Example: tide.plot.heatmap(tide.eye(4), {title = 'Attention', numbers = true})",
    function(o)
        local m = data.matrix("heatmap", o.x)
        o.ynames = data.labels("heatmap", "names", o.names, m.shape[1])
        o.xnames = m.shape[1] == m.shape[2] and o.ynames or nil
        return matrix.heatmap("heatmap", m, o)
    end)

-- Counts of (target, prediction), classes from 1 on.
local function count_pairs(targets, predictions, classes)
    local t, p = data.values("confusion", "targets", targets), data.values("confusion", "predictions", predictions)
    if t:numel() ~= p:numel() then
        fail("confusion: %d targets and %d predictions", t:numel(), p:numel())
    end
    local all = tide.cat { t, p }
    if not all:eq(all:floor()):all():item() or all:numel() > 0 and all:min():item() < 1 then
        fail("confusion: expected classes, whole numbers from 1 on")
    end
    local n = math.max(classes or 0, all:numel() > 0 and math.tointeger(all:max():item()) or 0)
    if n > 1000 then
        fail("confusion: %d classes are more than 1000", n)
    end
    local places = ((t - 1) * n + p):to(tide.int64)
    return tide.zeros(n * n, { dtype = tide.float64 }):index_add(1, places, tide.ones(t:numel(), { dtype = tide.float64 })):reshape(n, n)
end

kind("confusion", "data targets, data? predictions=nil, *, list? names=nil, str? title=nil, int(50..4000) width=480, int(50..4000) height=420", nil,
    "How often each class was taken for which: confusion(targets, predictions) counts, confusion(matrix) shows counts (rows are the "
    .. "targets). Example: tide.plot.confusion({1, 2, 2, 3}, {1, 2, 3, 3}, {names = {'cat', 'dog', 'owl'}})",
    function(o)
        local m = o.predictions == nil and data.matrix("confusion", o.targets)
            or count_pairs(o.targets, o.predictions, o.names and #o.names)
        if m.shape[1] ~= m.shape[2] then
            fail("confusion: expected as many rows as columns, got shape %s", tostring(m.shape))
        end
        o.ynames = data.labels("confusion", "names", o.names, m.shape[1])
        o.xnames, o.numbers, o.square, o.vmin, o.xlabel, o.ylabel = o.ynames, m:numel() <= 900, true, 0, "predicted", "target"
        return matrix.heatmap("confusion", m, o)
    end)

--- _heatmap_text(x): a matrix in a terminal's cells.
function plot._heatmap_text(x)
    return tide.no_grad(function()
        local m = data.matrix("heatmap", x)
        return matrix.text(m, matrix.range("heatmap", m))
    end)
end

kind("image", "Tensor x, *, int(1..1000)? scale=nil, float? vmin=nil, float? vmax=nil, str? title=nil, int(1..4000)? width=nil, "
    .. 'int(1..4000)? height=nil, int(1..)? nrow=nil, "viridis"|"gray"|"grey"? cmap=nil', nil,
    "A tensor as an image: (height, width), (channels, height, width) or a batch of them, nrow in a row; bytes, or floats from "
    .. "vmin (0) to vmax (1), those of one channel in the colours of cmap; each pixel is drawn scale by scale, without smoothing. Example: tide.plot.image(tide.rand(3, 16, 16), {scale = 8})",
    function(o) return matrix.image(o) end)

kind("imshow", 'data x, *, int(1..1000)? scale=nil, float? vmin=nil, float? vmax=nil, str? title=nil, int(1..4000)? width=nil, '
    .. 'int(1..4000)? height=nil, "viridis"|"gray"|"grey" cmap="viridis"', nil,
    "As matplotlib's: a matrix as pixels, from its least number (or vmin) to its largest (vmax) in the colours of cmap; what has channels "
    .. "as image shows it. Example: tide.plot.imshow(tide.eye(8), {cmap = 'gray', scale = 8})",
    function(o)
        local x = tide.is_tensor(o.x) and o.x or tide.tensor(o.x)
        if x:dim() == 3 and x.shape[3] <= 4 and x.shape[1] > 4 then
            x = x:permute(3, 1, 2) -- (height, width, channels), as matplotlib has them
        end
        local flat = x:dim() == 2
        local low, high = matrix.range("imshow", flat and x:to(tide.float64) or tide.zeros(1))
        o.x = flat and x:to(tide.float32) or x
        o.vmin, o.vmax, o.cmap = o.vmin or flat and low or nil, o.vmax or flat and high or nil, flat and o.cmap or nil
        return matrix.image(o)
    end)

-- ---- side by side ----

kind("grid", "list plots, *, int(1..100)? columns=nil, bool sharex=false, bool sharey=false, str? title=nil, int(50..8000)? width=nil, "
    .. "int(50..8000)? height=nil", nil,
    "Plots side by side, row by row; sharex and sharey give all of them the same axis. "
    .. "Example: tide.plot.grid{tide.plot.line({1, 4, 9}), tide.plot.hist(tide.randn(100)), columns = 2}",
    function(o)
        local panels, widest, highest = {}, 0, 0
        for k, p in ipairs(o.plots) do
            if not is_plot(p) then
                fail("grid: plots[%d]: expected a plot, got %s", k, tide._describe(p))
            end
            panels[k] = p.figure
            widest, highest = math.max(widest, p.figure.width), math.max(highest, p.figure.height)
        end
        if #panels == 0 then
            fail("grid: there are no plots in the list")
        end
        for _, direction in ipairs { "x", "y" } do
            if o["share" .. direction] then
                scene.share(panels, direction)
            end
        end
        local columns = math.min(o.columns or math.ceil(math.sqrt(#panels)), #panels)
        return { panels = panels, columns = columns, title = o.title, notes = {},
            width = o.width or math.min(widest * columns, math.max(widest, 960)),
            height = o.height or highest * math.ceil(#panels / columns) + (o.title and 28 or 0) }
    end)

tide._document(plot, "plot", "tide.plot", "Plots: line, points, band, hist, bar, heatmap, confusion, image; a + b lays one over the "
    .. "other, grid puts them side by side, p:save('p.pdf') writes SVG, PNG or PDF.")

return plot
