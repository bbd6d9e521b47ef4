-- test_plot.lua: tide.plot: what is drawn of which data, in text, SVG and Vega-Lite, and what is refused.
local t = require "harness"
local plot = tide.plot
local json = tide._require "files.json"

local function count(text, what)
    local n, at = 0, 1
    while true do
        at = text:find(what, at, true)
        if not at then
            return n
        end
        n, at = n + 1, at + 1
    end
end

-- The braille cells' dots of a plot as a set of "x,y", counted from the bottom left of its frame.
local function dots(p)
    local set, row = {}, 0
    for line in (tostring(p) .. "\n"):gmatch("([^\n]*)\n") do
        local _, last = line:find("┤", 1, true)
        if not last then
            _, last = line:find("│", 1, true)
        end
        if last then
            local column = 0
            for _, c in utf8.codes(line:sub(last + 1)) do
                for bit, place in pairs { [0x01] = { 0, 0 }, [0x02] = { 0, 1 }, [0x04] = { 0, 2 }, [0x40] = { 0, 3 },
                    [0x08] = { 1, 0 }, [0x10] = { 1, 1 }, [0x20] = { 1, 2 }, [0x80] = { 1, 3 } } do
                    if c >= 0x2800 and c < 0x2900 and (c - 0x2800) & bit ~= 0 then
                        set[("%d,%d"):format(2 * column + place[1], 63 - 4 * row - place[2])] = true
                    end
                end
                column = column + 1
            end
            row = row + 1
        end
    end
    return set
end

local function size(set)
    local n = 0
    for _ in pairs(set) do n = n + 1 end
    return n
end

t.test("points_are_where_they_belong", function()
    local p = plot.scatter({ 0, 1 }, { 0, 1 }, { xlim = { 0, 1 }, ylim = { 0, 1 } })
    local set = dots(p)
    t.eq(size(set), 2)
    t.is_true(set["0,0"])
    local far
    for key in pairs(set) do
        far = key ~= "0,0" and key or far
    end
    t.eq(far:match(",(%d+)$"), "63")
end)

t.test("a_rising_line_has_a_dot_in_every_column", function()
    local set = dots(plot.line({ 0, 1 }))
    local columns = {}
    for key in pairs(set) do
        columns[key:match("^%d+")] = true
    end
    t.is_true(size(columns) >= 120, size(columns))
end)

t.test("gaps_are_where_nothing_is", function()
    local whole, gap = plot.line({ 1, 2, 3, 4, 5 }), plot.line({ 1, 2, 0 / 0, 4, 5 })
    t.eq(count(whole:svg(), 'stroke-width="1.6"'), 1)
    t.eq(count(gap:svg(), 'stroke-width="1.6"'), 2)
    t.is_true(size(dots(gap)) < size(dots(whole)))
    t.is_true(tostring(gap):find("1 not drawn: nan or infinite", 1, true))
    t.eq(gap:vega().layer[1].data.values[3].y, json.null)
end)

t.test("empty_data_is_a_frame_that_says_so", function()
    for _, p in ipairs { plot.line({}), plot.line({ 0 / 0, 1 / 0 }), plot.scatter({}, {}), plot.hist({}), plot.bar({}),
        plot.line(tide.zeros(0)), plot.heatmap(tide.zeros(0, 3)), plot.hist({ 0 / 0 }), plot.line({ -1 }, { yscale = "log" }) } do
        t.is_true(tostring(p):find("no data", 1, true), tostring(p))
        t.is_true(p:svg():find("</svg>", 1, true))
        t.is_true(p:svg():find("no data", 1, true))
        t.is_true(json.encode(p:vega(), "vega"))
    end
end)

t.test("data_comes_in_every_form", function()
    local function ys(...)
        local all = {}
        for k, s in ipairs(plot.line(...).figure.layers) do
            all[k] = s.y
        end
        return all
    end
    t.eq(ys { 1, 2 }, { { 1, 2 } })
    t.eq(ys(tide.tensor { 1, 2 }), { { 1, 2 } })
    t.eq(ys(tide.tensor { { 1, 2 }, { 3, 4 } }), { { 1, 3 }, { 2, 4 } })
    t.eq(ys { { 1, 2 }, tide.tensor { 3, 4, 5 } }, { { 1, 2 }, { 3, 4, 5 } })
    t.eq(ys { tide.tensor(1), tide.tensor(2.5, { requires_grad = true }), true }, { { 1, 2.5, 1 } })
    t.eq(ys({ 5, 6 }, { 1, 2 }), { { 1, 2 } })
    t.eq(ys(tide.tensor({ 1, 2 }, { dtype = tide.float16, requires_grad = true })), { { 1, 2 } })
    t.eq(ys(tide.tensor({ true, false })), { { 1, 0 } })
    t.eq(ys(tide.arange(6):reshape(2, 3):t():select(2, 1)), { { 0, 1, 2 } })
    t.eq(plot.line({ 5, 6 }, { { 1, 2 }, { 3, 4 } }).figure.layers[2].x, { 5, 6 })
    t.eq(plot.line({ 1, 2, title = "T" }).figure.title, "T")
end)

t.test("long_series_keep_their_peaks", function()
    local x = tide.zeros(100001)
    x[77777] = 9
    local s = plot.line(x).figure.layers[1]
    t.is_true(#s.y <= 2001, #s.y)
    t.eq(math.max(table.unpack(s.y)), 9.0)
    t.eq(s.x[#s.x], 100001)
    t.is_true(tostring(plot.line(x)):find("of 100001 points are drawn", 1, true))
    t.is_true(#plot.scatter(x, x).figure.layers[1].y <= 2000)
end)

t.test("logarithmic_scales_have_powers_for_ticks_and_no_place_for_zero", function()
    local p = plot.line({ 0.001, 0.1, 10, 0, -1 }, { yscale = "log" })
    local labels = {}
    for k, tick in ipairs(p.figure.y:ticks()) do
        labels[k] = tick.label
    end
    t.eq(labels, { "0.001", "0.01", "0.1", "1", "10" })
    t.is_true(tostring(p):find("2 not drawn: not above 0 on a logarithmic scale", 1, true))
    t.close(p.figure.y:at(0.1), 0.5)
    t.eq(p.figure.y:at(0), nil)
    t.eq(plot.line({ 2, 9 }, { yscale = "log" }).figure.y:ticks()[1].label, "2")
end)

t.test("ticks_are_round_numbers_within_the_range", function()
    for _, case in ipairs { { 0, 10 }, { -1e-7, 3e-7 }, { 1e300, 1.5e308 }, { -1.7e308, 1.7e308 }, { 5e-324, 1e-323 }, { 1e15, 1e15 + 1 },
        { 0.999999, 1.000001 }, { -3, -2 }, { 7, 7 }, { 0, 0 } } do
        local scale = tide._require("plot.scale").new({ case }, { pad = 0.05 })
        local ticks = scale:ticks()
        t.is_true(#ticks <= 15, tostring(case[1]))
        for _, tick in ipairs(ticks) do
            local p = scale:at(tick.value)
            t.is_true(p and p > -0.01 and p < 1.01, tick.label)
        end
        t.is_true(scale:at(case[1]) >= 0 and scale:at(case[2]) <= 1, tostring(case[1]))
    end
    local labels = {}
    for k, tick in ipairs(tide._require("plot.scale").new({ { 0, 1 } }, {}):ticks()) do
        labels[k] = tick.label
    end
    t.eq(labels, { "0", "1" })
end)

-- The labels of an axis of plots.
local function labels_of(scale)
    local labels = {}
    for k, tick in ipairs(scale:ticks()) do
        labels[k] = tick.label
    end
    return labels
end

t.test("whole_numbers_have_whole_ticks", function()
    local new = tide._require("plot.scale").new
    t.eq(labels_of(new({ { 0, 0.5, 1 } }, {})), { "0.0", "0.2", "0.4", "0.6", "0.8", "1.0" })
    for _, list in ipairs { { 1, 2 }, { 1, 2, 3 }, { 0, 7 }, { -2, 2 }, { 1, 30 }, { 3 }, { 0, 1 }, { 998, 1003 } } do
        for _, label in ipairs(labels_of(new({ list }, { pad = 0.05 }))) do
            t.is_true(label:find("^%-?%d+$"), label)
        end
    end
    for _, list in ipairs { { -4.2, 4.2 }, { 0.1, 0.9 }, { -1.1, 1.3 }, { 1e5, 3.3e5 } } do
        for wanted = 2, 8 do
            t.is_true(#new({ list }, {}):ticks(wanted) >= 2, wanted)
        end
    end
end)

t.test("histograms_count_every_value_once", function()
    local p = plot.hist({ 0, 0.5, 1, 1, 2, 4, 0 / 0, 1 / 0 }, { bins = 4 })
    t.eq(p.figure.layers[1].left, { 0.0, 1.0, 2.0, 3.0 })
    t.eq(p.figure.layers[1].right, { 1.0, 2.0, 3.0, 4.0 })
    t.eq(p.figure.layers[1].y, { 2.0, 2.0, 1.0, 1.0 })
    t.is_true(tostring(p):find("2 not counted: nan, infinite or out of range", 1, true))
    local density = plot.hist(tide.randn(1000), { density = true, bins = 10 }).figure.layers[1]
    local area = 0
    for _, v in ipairs(density.y) do
        area = area + v * (density.right[1] - density.left[1])
    end
    t.close(area, 1, 1e-9)
    t.eq(plot.hist({ 1, 2, 9 }, { range = { 0, 4 }, bins = 2 }).figure.layers[1].y, { 1.0, 1.0 })
    t.eq(plot.hist({ 3, 3, 3 }, { bins = 1 }).figure.layers[1].y, { 3.0 })
    t.eq(#plot.hist({ tide.randn(10), tide.randn(20) }, { bins = 3 }).figure.layers, 2)
    t.eq(plot.hist(tide.ones(3, 4), { bins = 1 }).figure.layers[1].y, { 12.0 })
end)

t.test("bars_bear_their_names_and_numbers", function()
    local text = tostring(plot.bar({ 3, -5 }, { names = { "add", "mul" }, title = "Calls" }))
    t.is_true(text:find("Calls", 1, true) and text:find("add │", 1, true) and text:find("█ -5", 1, true), text)
    local add, mul = text:match("add │([^\n]*)"), text:match("mul │([^\n]*)")
    t.is_true(add:find("^ +█"), add)
    t.is_true(mul:find("^ *█") and mul:find("█ -5", 1, true), mul)
    t.is_true(#add:match("^ *") > #mul:match("^ *"), "the bar below zero lies left of it")
    t.eq(count(plot.bar({ { 1, 2 }, { 3, 4 } }):svg(), 'fill-opacity="0.9"'), 4 + 2) -- and the legend's
end)

t.test("legends_name_the_series", function()
    local p = plot.line({ { 1, 2 }, { 2, 1 } }, { labels = { "train", "test <1>" } })
    t.is_true(tostring(p):find("train", 1, true) and p:svg():find("test &lt;1&gt;", 1, true))
    t.eq(p:vega().layer[2].encoding.color.scale.domain, { "train", "test <1>" })
    t.eq(plot.line({ 1, 2 }):vega().layer[1].encoding.color, nil)
end)

t.test("titles_and_axes_are_in_all_forms", function()
    local p = plot.line({ 1, 2 }, { title = "Title", xlabel = "epoch", ylabel = "loss" })
    for _, word in ipairs { "Title", "epoch", "loss" } do
        t.is_true(tostring(p):find(word, 1, true) and p:svg():find(word, 1, true), word)
    end
    local encoding = p:vega().layer[1].encoding
    t.eq({ p:vega().title, encoding.x.title, encoding.y.title }, { "Title", "epoch", "loss" })
    t.eq(p:vega()["$schema"], "https://vega.github.io/schema/vega-lite/v5.json")
end)

t.test("heat_maps_and_images_are_pictures", function()
    local p = plot.heatmap(tide.tensor { { 0, 1 }, { 2, 3 } }, { vmin = 0, vmax = 3 })
    t.is_true(p:svg():find("data:image/png;base64,", 1, true))
    t.eq(#p:vega().data.values, 4)
    for _, n in ipairs { 51, 100, 101, 400 } do -- large ones are pictures alone
        local bundle = plot.heatmap(tide.randn(n, n)):__display()
        t.eq(bundle["application/vnd.vegalite.v5+json"], nil)
        t.eq(bundle["image/png"]:sub(1, 4), "\137PNG") -- for front ends that do not trust SVG
        t.is_true(bundle["image/svg+xml"]:find("data:image/png;base64,", 1, true))
    end
    t.is_true(plot.heatmap(tide.randn(50, 50)):__display()["application/vnd.vegalite.v5+json"])
    t.is_true(tostring(p):find("0 (dark) to 3 (light)", 1, true))
    local image = plot.image(tide.rand(3, 4, 4))
    t.eq(image:__display()["image/png"]:sub(1, 4), "\137PNG")
    t.is_true(image:svg():find("image-rendering:pixelated", 1, true))
    t.error_has(function() image:vega() end, "vega: an image and a large heat map have no specification")
end)

t.test("plots_are_saved_by_the_ending_of_the_name", function()
    local p, base = plot.line({ 1, 2 }), os.tmpname()
    for _, ending in ipairs { "svg", "json", "txt", "png", "pdf" } do
        p:save(base .. "." .. ending)
        local file = assert(io.open(base .. "." .. ending))
        t.is_true(#file:read("a") > 50, ending)
        file:close()
        os.remove(base .. "." .. ending)
    end
    plot.image(tide.rand(4, 4)):save(base .. ".png")
    os.remove(base .. ".png")
    os.remove(base)
    t.error_has(function() p:save("x.jpg") end, "expected a name that ends in .svg, .png, .pdf, .json or .txt")
    t.error_has(function() p:save("/nonexistent/x.svg") end, "save: /nonexistent/x.svg")
end)

t.test("wrong_data_is_refused_in_a_line", function()
    for _, case in ipairs {
        { function() plot.line() end, "line: argument 1 (x)" },
        { function() plot.line("abc") end, "line: argument 1 (x): expected a number, a table of numbers or a tensor" },
        { function() plot.line({ 1, "x" }) end, "line: x[2]: expected a number, got string" },
        { function() plot.line({ 1, 2 }, { 1, 2, 3 }) end, "line: series 1: 2 values of x for 3 of y" },
        { function() plot.line({ { 1 }, { 2 } }, { { 1 }, { 2 }, { 3 } }) end, "2 series of x for 3 of y" },
        { function() plot.line(tide.ones(2, 2, 2)) end, "expected one dim, got shape (2, 2, 2)" },
        { function() plot.line({ 1 }, { titel = "x" }) end, "did you mean 'title'?" },
        { function() plot.line({ 1 }, { title = "\xff" }) end, "option title is no UTF-8" },
        { function() plot.line({ 1 }, { xscale = "cubic" }) end, '"linear" or "log"' },
        { function() plot.line({ 1 }, { xlim = { 2, 1 } }) end, "option xlim: expected {low, high}" },
        { function() plot.line({ 1 }, { ylim = { 0, 1 }, yscale = "log" }) end, "begins above 0" },
        { function() plot.line({ { 1 }, { 2 } }, { labels = { "a" } }) end, "option labels: 1 names for 2" },
        { function() plot.line({ 1 }, { labels = { 3 } }) end, "labels[1]: expected a text" },
        { function() plot.hist({ 1 }, { bins = 0 }) end, "option bins" },
        { function() plot.bar({ 1, 2 }, { names = { "a" } }) end, "option names: 1 names for 2" },
        { function() plot.bar({ { 1, 2 }, { 1 } }) end, "series 2 has 1 bars, the first has 2" },
        { function() plot.bar(tide.ones(2000)) end, "more than 1000" },
        { function() plot.heatmap({ 1, 2 }) end, "expected two dims (rows, columns), got shape (2)" },
        { function() plot.heatmap(tide.eye(2), { vmin = 3, vmax = 1 }) end, "expected vmin <= vmax" },
        { function() plot.image({ 1 }) end, "image: argument 1 (x): expected a tensor" },
        { function() plot.image(tide.ones(3)) end, "is no image" },
        { function() plot.line({ 1 }):show { update = true } end, "update needs the id" },
        { function() plot.line({ 1 }, { colour = "red" }) end, "no option 'colour': did you mean 'color'?" },
        { function() plot.line({ 1 }, { color = "bleu" }) end, "option color: 'bleu' is no colour" },
        { function() plot.line({ 1 }, { marker = "q" }) end, "option marker" },
        { function() plot.line({ 1, 2 }, { yerr = { 1, 2, 3 } }) end, "option yerr: 3 numbers for 2 of y" },
        { function() plot.band({ 1, 2 }, { 1, 2 }, { 1 }) end, "band: 2 values of x, 2 of low and 1 of high" },
        { function() return plot.line({ 1 }) + 1 end, "+: a plot is laid over a plot, not over" },
        { function() return plot.line({ 1 }) + plot.image(tide.rand(2, 2)) end, "put them side by side with tide.plot.grid" },
        { function() return plot.grid { plot.line({ 1 }) } + plot.line({ 1 }) end, "a grid can't be laid over" },
        { function() return plot.line({ 1 }, { ylim = { -1, 1 } }) + plot.line({ 1 }, { yscale = "log" }) end, "begins above 0" },
        { function() plot.grid {} end, "there are no plots" },
        { function() plot.grid { plot.line({ 1 }), 3 } end, "grid: plots[2]: expected a plot, got" },
        { function() plot.grid { plot.line({ 1 }), plot.bar({ 1 }), sharex = true } end, "plots of one kind of x axis" },
        { function() plot.grid { plot.line({ 1 }), plot.heatmap(tide.eye(2)), sharey = true } end, "plots of one kind of y axis" },
        { function() plot.confusion({ 1, 2 }, { 1 }) end, "2 targets and 1 predictions" },
        { function() plot.confusion({ 0, 2 }, { 1, 1 }) end, "whole numbers from 1 on" },
        { function() plot.confusion(tide.ones(2, 3)) end, "as many rows as columns" },
        { function() plot.heatmap(tide.ones(40, 40), { numbers = true }) end, "1600 cells are more than 900" },
        { function() plot.image(tide.ones(100, 100), { scale = 100 }) end, "more than 8000 on a side" },
        { function() plot.line({ 1 }, { width = 1e9 // 1 | 0 }) end, "option width" },
    } do
        t.error_has(case[1], case[2])
    end
end)

t.test("extreme_numbers_are_drawn", function()
    for _, data in ipairs { { -1.7e308, 1.7e308 }, { 5e-324, 1e-323 }, { 1e-300, 1e300 }, { 1e16, 1e16 + 2 } } do
        for _, option in ipairs { "linear", "log" } do
            local p = plot.line(data, { yscale = option })
            t.is_true(#tostring(p) > 0 and p:svg():find("</svg>", 1, true))
            t.is_true(json.encode(p:vega(), "vega"))
            t.is_false(p:svg():find("nan", 1, true) or p:svg():find("inf", 1, true), p:svg())
        end
        t.is_true(#tostring(plot.hist(data)) > 0 and #tostring(plot.bar(data)) > 0 and #tostring(plot.heatmap({ data })) > 0)
    end
end)

t.test("layers_lie_on_the_same_axes", function()
    local p = plot.line({ 0, 10 }, { label = "a", title = "T" }) + plot.points({ 1, 4 }, { -5, 20 }, { label = "b", title = "no" })
        + plot.band({ 1, 2 }, { -7, 1 }, { 0, 30 })
    t.eq(#p.figure.layers, 3)
    t.eq(p.figure.title, "T")
    t.is_true(p.figure.y.low <= -7 and p.figure.y.high >= 30)
    t.is_true(p.figure.x.high >= 4)
    local all = { p:svg(), tide._require("files.json").encode(p:vega(), "vega"), tostring(p) }
    for _, text in ipairs(all) do
        t.is_true(text:find("a", 1, true) and text:find("b", 1, true))
    end
    t.eq(#p:vega().layer, 3)
    t.eq((plot.line({ 1 }) + plot.line({ 1 }, { yscale = "log" })).figure.y.log, true)
end)

t.test("bars_of_other_lengths_lie_over_each_other", function()
    for _, p in ipairs { plot.bar({ 1, 2, 3 }) + plot.bar({ 4 }), plot.bar({ 4 }) + plot.bar({ 1, 2, 3 }), plot.bar({}) + plot.bar({ 1 }),
        plot.bar({ 1, 2, 3 }) + plot.line({ 3, 2, 1 }), plot.hist({ 1, 2 }) + plot.bar({ 1, 2, 3 }) } do
        t.is_true(#tostring(p) > 0 and p:svg():find("</svg>", 1, true) and json.encode(p:vega(), "vega"))
        t.is_true(#p.figure.x.names >= 1 and p.figure.x.high >= 1.5)
    end
end)

t.test("colours_differ_and_bands_take_that_of_their_curve", function()
    local function colours(p)
        local list = {}
        for k, layer in ipairs(p.figure.layers) do
            list[k] = layer.colour
        end
        return list
    end
    local a, b = "#4c78a8", "#f58518"
    local band, line = plot.band({ 1 }, { 0 }, { 1 }), plot.line({ 1, 2 })
    t.eq(colours(line + line), { a, b })
    t.eq(colours(band + line), { a, a })
    t.eq(colours(line + band), { a, a })
    t.eq(colours(band), { a })
    t.eq(colours(band + plot.line({ 1 }, { color = "red" }) + line), { a, "#e45756", a })
    t.eq(colours(line + band + line), { a, b, b })
    t.eq(colours(plot.points({ 1 }, { yerr = 1 })), { a, a })
    t.eq(colours(plot.line({ 1 }, { color = "#FA0" })), { "#ffaa00" })
    t.eq(colours(line), { a }) -- being laid over others changed nothing of it
end)

t.test("error_bars_reach_from_below_to_above", function()
    local p = plot.points({ 1, 2, 3 }, { yerr = { 0.5, 1, 2 } })
    t.eq({ p.figure.layers[1].low, p.figure.layers[1].high }, { { 0.5, 1.0, 1.0 }, { 1.5, 3.0, 5.0 } })
    t.eq(plot.line({ 1, 2 }, { yerr = 1 }).figure.layers[1].high, { 2.0, 3.0 })
    local long = plot.line(tide.zeros(5000), { yerr = tide.arange(1, 5001) }).figure.layers[1]
    t.eq(#long.low, #long.x)
    t.eq(long.high[7], long.x[7])
end)

t.test("legends_are_where_nothing_is_drawn", function()
    local function place(...) return tide._require("plot.page").lay_out(plot.line(...).figure, 600, 300).legend end
    t.eq(place({ 1, 2, 3, 4 }, { label = "a" }), "top-left")
    t.eq(place({ 4, 3, 2, 1 }, { label = "a" }), "top-right")
    t.eq(place({ { 1, 2, 3, 4 }, { 4, 3, 2, 1 } }), "right")
    t.eq(place({ { 9, 9, 5, 9, 9 } }, { label = "a", ylim = { 0, 10 } }), "bottom-right")
end)

t.test("grids_hold_plots_of_every_kind", function()
    local panels = { plot.line({ 1, 2 }, { title = "one" }), plot.bar({ 1, 2 }), plot.heatmap(tide.eye(3)), plot.image(tide.rand(4, 4)),
        plot.line({ 5, 60 }) + plot.points({ 1, 2 }), plot.confusion({ 1, 2 }, { 1, 2 }), plot.hist({ 1, 2 }),
        plot.grid { plot.line({ 1 }), plot.line({ 2 }) } }
    local g = plot.grid { columns = 3, title = "all", table.unpack(panels) }
    t.eq(count(g:svg(), "<g transform"), #panels + 2)
    t.eq(count(g:svg(), "<g "), count(g:svg(), "</g>"))
    t.eq(count(g:svg(), "<svg"), count(g:svg(), "</svg>"))
    t.is_true(tostring(g):find("all", 1, true) and tostring(g):find("one", 1, true))
    local without = plot.grid { panels[1], panels[2], panels[5] }
    t.eq(#without:vega().vconcat, 2)
    t.eq(#without:vega().vconcat[1].hconcat, 2)
    local shared = plot.grid { plot.line({ 0, 1 }), plot.line({ 5, 9, 3 }), sharex = true, sharey = true }
    for _, direction in ipairs { "x", "y" } do
        t.eq(shared.figure.panels[1][direction], shared.figure.panels[2][direction])
    end
    t.is_true(shared.figure.panels[1].y.low <= 0 and shared.figure.panels[1].y.high >= 9)
end)

t.test("confusions_are_counted_and_square", function()
    local p = plot.confusion(tide.tensor { 1, 2, 2, 3 }, { 1, 2, 3, 3 }, { names = { "cat", "dog", "owl" } })
    t.eq(p.figure.cells.numbers, { { "1", "0", "0" }, { "0", "1", "1" }, { "0", "0", "1" } })
    local box = tide._require("plot.page").lay_out(p.figure, p.figure.width, p.figure.height)
    t.close(box.right - box.left, box.bottom - box.top, 1e-6)
    t.is_true(tostring(p):find("dog │  0    1    1", 1, true), tostring(p))
    t.eq(#p:vega().layer, 2)
    t.eq(p:vega().width, p:vega().height)
    t.eq(plot.confusion({ 1 }, { 1 }, { names = { "a", "b" } }).figure.cells.matrix, { { 1.0, 0.0 }, { 0.0, 0.0 } })
end)

-- The pixels of a drawing: {red, green, blue} at a place in units of the page.
local function pixel_at(pixels, x, y) return pixels[{ math.floor(2 * y) + 1, math.floor(2 * x) + 1 }]:tolist() end

t.test("pictures_have_the_colours_that_shapes_cover", function()
    local p = plot.bar({ 1 }, { ylim = { 0, 1 }, color = "#204060", alpha = 1 })
    local box = tide._require("plot.page").lay_out(p.figure, 600, 300)
    local pixels = tide._require("plot.raster").draw(p.figure)
    t.eq(pixels.shape, { 600, 1200, 3 })
    t.eq(pixel_at(pixels, (box.left + box.right) / 2, (box.top + box.bottom) / 2), { 0x20, 0x40, 0x60 })
    t.eq(pixel_at(pixels, 599, 1), { 255, 255, 255 })
    local half = tide._require("plot.raster").draw(plot.bar({ 1 }, { ylim = { 0, 1 }, color = "black", alpha = 0.5 }).figure)
    t.close(pixel_at(half, (box.left + box.right) / 2, (box.top + box.bottom) / 2)[1], 128, 1)
    local image = plot.image(tide.tensor({ { { 255, 0 } }, { { 0, 255 } }, { { 0, 0 } } }, { dtype = tide.uint8 }), { scale = 20 })
    local drawn = tide._require("plot.raster").draw(image.figure)
    t.eq({ pixel_at(drawn, 10 + 19, 14), pixel_at(drawn, 10 + 21, 14) }, { { 255, 0, 0 }, { 0, 255, 0 } })
end)

t.test("images_are_enlarged_by_nearest", function()
    local image = plot.image(tide.rand(3, 5, 7), { scale = 6 })
    local w, h = string.unpack(">I4I4", image:__display()["image/png"], 17)
    t.eq({ w, h }, { 42, 30 })
end)

-- A PDF's table of places says where its objects begin, and streams are as long as they say.
t.test("pdfs_are_whole", function()
    local grid = plot.grid { plot.line({ 1, 2 }, { title = "σ (µ) \\ é — (x", label = "a" }) + plot.points({ 1 }), plot.heatmap(tide.eye(2)),
        plot.image(tide.rand(4, 3, 3)) }
    local bytes = tide._require("plot.pdf").draw(grid.figure)
    local start = tonumber(bytes:match("startxref\n(%d+)\n%%%%EOF\n$"))
    t.eq(bytes:sub(start + 1, start + 4), "xref")
    local n = 0
    for place in bytes:sub(start):gmatch("(%d+) 00000 n") do
        n = n + 1
        t.eq(bytes:match("^(%d+ 0 obj)", tonumber(place) + 1), n .. " 0 obj")
    end
    t.is_true(n >= 9, n)
    for length, at in bytes:gmatch("/Length (%d+) >>\nstream\n()") do
        t.eq(bytes:sub(at + length, at + length + 9), "\nendstream")
    end
    local opened, closed = count(bytes, "q "), count(bytes, " Q") + count(bytes, "\nQ")
    t.eq(opened, closed)
end)

t.test("names_of_matplotlib_are_answered", function()
    for _, name in ipairs { "plot", "matshow", "errorbar", "fill_between", "subplots", "savefig", "semilogy", "show", "legend", "colorbar" } do
        local told = t.error_has(function() return plot[name] end, "matplotlib's " .. name .. " is ")
        t.is_false(told:find("\n", 1, true) ~= nil)
        for path in told:gmatch("tide%.plot%.(%a+)") do
            t.is_true(rawget(plot, path), path)
        end
    end
    t.error_has(function() plot.line({ 1 }):savefig("x") end, "a plot has no 'savefig': matplotlib's savefig is p:save")
    for option, here in pairs { c = "color", lw = "linewidth", ls = "linestyle", ms = "markersize", figsize = "width", cmap = "tide.plot.heatmap" } do
        t.error_has(function() plot.line({ 1, 2 }, { [option] = 1 }) end, "no option '" .. option .. "': matplotlib's " .. option .. " is ")
        t.error_has(function() plot.line({ 1, 2 }, { [option] = 1 }) end, here)
    end
    local function colour(c) return plot.line({ 1 }, { color = c }).figure.layers[1].colour end
    t.eq({ colour "C0", colour "b", colour "r", colour "k" }, { colour "blue", colour "blue", colour "red", colour "black" })
    t.eq(colour "C1", colour "orange")
    for short, long in pairs { ["--"] = "dashed", [":"] = "dotted", ["-"] = "solid" } do
        t.eq(plot.line({ 1, 2 }, { linestyle = short, title = "t" }):svg(), plot.line({ 1, 2 }, { linestyle = long, title = "t" }):svg())
    end
end)

t.test("points_have_the_colours_of_their_classes", function()
    local x, y = { 1, 2, 3, 4 }, { 5, 6, 7, 8 }
    for _, labels in ipairs { { 2, 1, 2, 1 }, tide.tensor { 2, 1, 2, 1 }, { "b", "a", "b", "a" } } do
        local layers = plot.points(x, y, { color = labels }).figure.layers
        t.eq({ layers[1].x, layers[1].y, layers[2].x, layers[2].y }, { { 2, 4 }, { 6, 8 }, { 1, 3 }, { 5, 7 } })
        t.eq({ layers[1].label, layers[2].label }, type(labels) == "table" and labels[1] == "b" and { "a", "b" } or { "1", "2" })
        t.is_true(layers[1].colour ~= layers[2].colour)
    end
    local named = plot.scatter({ 1, 2 }, { { 1, 2 }, { 3, 4 } }, { color = { "red", "blue" } }).figure.layers
    t.eq({ named[1].colour, named[2].colour }, { plot.line({ 1 }, { color = "red" }).figure.layers[1].colour,
        plot.line({ 1 }, { color = "blue" }).figure.layers[1].colour })
    t.eq(plot.points(x, y, { color = { 1, 2, 1, 2 }, labels = { "cat", "dog" } }).figure.layers[2].label, "dog")
    t.error_has(function() plot.points(x, y, { color = { 1, 2 } }) end, "2 classes for 4 points")
    t.error_has(function() plot.points(x, y, { color = 3 }) end, "the class or amount of each point")
    t.error_has(function() plot.line(x, { color = 3 }) end, "a list of names")
    local words = {}
    for k = 1, 40 do
        words[k] = "w" .. k
    end
    t.error_has(function() plot.points(tide.rand(40), tide.rand(40), { color = words }) end, "40 classes are more than 30")
end)

t.test("points_have_the_colours_of_their_amounts", function()
    local x = tide.linspace(0, 1, 50)
    for name, given in pairs { color = x, c = x:tolist() } do
        local figure = plot.scatter(x, x * 2, { [name] = given }).figure
        local n, last = 0, -1
        for _, layer in ipairs(figure.layers) do
            for k, v in ipairs(layer.x) do
                t.is_true(v > last and layer.y[k] == 2 * v, "in the order of their amounts")
                n, last = n + 1, v
            end
        end
        t.eq({ n, #figure.layers, figure.layers[1].colour, figure.layers[12].colour }, { 50, 12, "#440154", "#fde725" })
        t.eq({ figure.legend[1].label, figure.legend[#figure.legend].label }, { "0", "1" })
    end
    t.eq(plot.points(x, x, { c = x, cmap = "gray" }).figure.layers[1].colour, "#000000")
    t.eq(#plot.points(x, { c = tide.full({ 50 }, 0.5) }).figure.layers, 1, "all alike")
    t.eq(#plot.points(x, x, { c = tide.arange(1, 51) }).figure.layers, 12, "whole numbers, too many for classes")
    t.eq(plot.points({ 1, 2 }, { c = "red" }).figure.layers[1].colour, plot.points({ 1, 2 }, { color = "red" }).figure.layers[1].colour)
    local odd = plot.points({ 1, 2, 3, 4 }, { c = { 0.5, 0 / 0, math.huge, 1.5 } }).figure.layers
    t.eq({ odd[1].x, odd[2].x, #odd }, { { 1 }, { 4 }, 2 }, "what is no amount has no colour")
    for _, write in ipairs { "svg", "vega" } do
        t.is_true(plot.scatter(x, x, { c = x })[write](plot.scatter(x, x, { c = x })) ~= nil)
    end
end)

t.test("words_of_a_plot_may_be_set_later", function()
    for _, make in ipairs { function() return plot.line { 1, 2 } end, function() return plot.heatmap(tide.eye(3)) end,
        function() return plot.bar { 1, 2 } + plot.line { 1, 2 } end, function() return plot.grid { plot.line { 1, 2 }, plot.line { 1, 2 } } end } do
        local p = make()
        p.title = "Loss of all"
        t.is_true(tostring(p):find("Loss of all", 1, true) ~= nil, tostring(p))
        t.is_true(p:svg():find("Loss of all", 1, true) ~= nil)
    end
    local p = plot.line { 1, 2 }
    p.xlabel, p.ylabel = "step", "loss"
    t.is_true(p:svg():find("step", 1, true) and p:svg():find("loss", 1, true) ~= nil)
    t.eq((p + plot.line { 3 }).figure.xlabel, "step")
    t.error_has(function() p.title = 5 end, "title: expected a text in UTF-8, got number 5")
    t.error_has(function() p.xlim = { 1, 2 } end, "a plot's 'xlim' can't be set: options are given where it is made")
    t.error_has(function() plot.image(tide.rand(4, 4)).title = "x" end, "given where it is made")
    t.error_has(function() p:title "x" end, 'p.title = "..."')
    t.error_has(function() p:set_xlabel "x" end, 'p.xlabel = "..."')
end)

t.test("batches_of_images_have_rows_and_colours_that_are_asked_for", function()
    local batch = tide.rand(6, 1, 4, 4)
    for nrow, shape in pairs { [2] = { 16, 10 }, [3] = { 10, 16 }, [6] = { 4, 34 }, [8] = { 4, 34 } } do
        local pixels = plot.image(batch, { nrow = nrow }).figure.cells.pixels
        t.eq({ pixels.shape[1], pixels.shape[2] }, shape)
    end
    local two = tide.tensor { { 0.0, 1.0 } }
    t.eq(plot.image(two, { cmap = "viridis" }).figure.cells.pixels:tolist(), { { { 68, 1, 84 }, { 253, 231, 37 } } })
    t.eq(plot.image(two, { cmap = "gray" }).figure.cells.pixels:tolist(), { { { 0, 0, 0 }, { 255, 255, 255 } } })
    t.error_has(function() plot.image(tide.rand(3, 4, 4), { cmap = "viridis" }) end, "for images of one channel, got 3")
    t.error_has(function() plot.image(two, { cmap = "hot" }) end, "viridis")
    for _, name in ipairs { "make_grid", "save_image" } do
        t.error_has(function() return plot[name] end, "torchvision's " .. name .. " is tide.plot.image")
        t.error_has(function() return tide[name] end, "tide.plot.image")
    end
    t.error_has(function() return tide.imshow end, "tide.plot.image")
end)

t.test("markers_of_a_text_avoid_those_that_are_asked_for", function()
    for marker, sign in pairs { o = "o", s = "■", ["^"] = "▲", d = "◆", x = "×", ["+"] = "+" } do
        for at = 1, 3 do
            local p
            for k = 1, 3 do
                local one = plot.points({ k, k + 1 }, { 1, 5 }, { label = "series" .. k, marker = k == at and marker or nil })
                p = p and p + one or one
            end
            local text, seen = tostring(p), {}
            for k = 1, 3 do
                local key = text:match("(%S+) series" .. k)
                t.is_true(not seen[key], marker .. " at " .. at .. ": " .. text)
                seen[key] = true
                t.eq(k == at, key == sign)
            end
        end
    end
end)

t.test("series_are_told_apart_in_text_without_colours", function()
    local text = tostring(plot.points({ 1, 2 }, { 1, 5 }, { label = "one" }) + plot.points({ 1, 2 }, { 3, 4 }, { label = "two" })
        + plot.points({ 1, 2 }, { 2, 2 }, { label = "three", marker = "+" }))
    for _, key in ipairs { "o one", "× two", "+ three" } do
        t.is_true(text:find(key, 1, true), text)
    end
    local curves = tostring(plot.line({ 1, 2, 3 }, { label = "mean" }) + plot.line({ 3, 2, 1 }, { label = "sample" }))
    t.is_true(curves:find("a⠒⠒ mean", 1, true) and curves:find("b⠂⠂ sample", 1, true), curves)
    t.is_true(select(2, curves:gsub("b", "")) > 1, curves)
    local alone = tostring(plot.points({ 1, 2 }, { 1, 2 }, { marker = "x" }))
    t.eq(select(2, alone:gsub("×", "")), 2, alone)
    local band = tostring(plot.band({ 1, 2, 3 }, { 0, 0, 0 }, { 4, 4, 4 }, { label = "b" }) + plot.points({ 2 }, { 2 }, { label = "p" })
        + plot.line({ 1, 2, 3 }, { 2, 2, 2 }, { label = "m" }))
    t.is_true(band:find("[^%a]o[^%a]"), band)
end)

t.test("images_have_their_titles_and_bars_their_numbers_within_the_picture", function()
    local x = tide.rand(3, 8, 8)
    local function height(p) return (select(2, string.unpack(">I4I4", tide._png(tide._require("plot.raster").draw(p.figure)), 17))) end
    t.is_true(height(plot.image(x, { title = "t" })) > height(plot.image(x)))
    t.eq(plot.image(x, { title = "t" }).figure.image, nil)
    for _, high in ipairs { 1, 12345.678, -1e-7, 1e20 } do
        local figure = plot.heatmap(tide.linspace(0, high, 80):view(4, 20)).figure
        local pixels = tide._require("plot.raster").draw(figure)
        t.eq(pixels[":, -8:"]:eq(255):all():item(), true, "nothing stands at the right edge: " .. high)
        local line = tide._require("plot.raster").draw(plot.line { -high, 0, high }.figure)
        t.eq(line[":, 1:2"]:eq(255):all():item(), true, "nor at the left one: " .. high)
    end
end)

t.test("heat_maps_may_be_grey", function()
    for _, name in ipairs { "gray", "grey" } do
        local pixels = plot.heatmap({ { 0, 1 } }, { cmap = name }).figure.cells.pixels
        t.eq(pixels:tolist(), { { { 0, 0, 0 }, { 255, 255, 255 } } })
    end
    t.error_has(function() plot.heatmap({ { 0, 1 } }, { cmap = "hot" }) end, "viridis")
    t.error_has(function() plot.heatmap({ { 0, 1 } }, { aspect = "equal" }) end, "square = true")
end)
