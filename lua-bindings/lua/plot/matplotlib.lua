-- plot/matplotlib.lua: what matplotlib calls otherwise than tide.plot, for the errors of names and options that are not there.
local matplotlib = {}

local TITLE = 'the option title, tide.plot.line(y, {title = "..."}), or p.title = "..."'

-- Functions of pyplot, torchvision's for images, and methods of figures and axes.
local NAMES = {
    plot = "tide.plot.line", errorbar = "the option yerr of tide.plot.line and points", fill_between = "tide.plot.band(x, low, high)",
    imshow = "tide.plot.image of pixels, tide.plot.heatmap of numbers", matshow = "tide.plot.heatmap", pcolormesh = "tide.plot.heatmap",
    pcolor = "tide.plot.heatmap", colorbar = "in every tide.plot.heatmap", barh = "tide.plot.bar", hist2d = "tide.plot.heatmap of counts",
    semilogy = 'tide.plot.line(x, y, {yscale = "log"})', semilogx = 'tide.plot.line(x, y, {xscale = "log"})',
    loglog = 'tide.plot.line(x, y, {xscale = "log", yscale = "log"})', subplots = "tide.plot.grid{a, b, columns = 2}",
    subplot = "tide.plot.grid{a, b, columns = 2}", figure = "a plot, which is a value: p = tide.plot.line(y)", axes = "a plot, which is a value",
    gca = "a plot, which is a value", gcf = "a plot, which is a value", legend = "drawn where there are labels: {label = \"a\"}",
    title = TITLE, suptitle = "the option title of tide.plot.grid", set_title = TITLE, xlabel = 'the option xlabel, or p.xlabel = "..."',
    ylabel = 'the option ylabel, or p.ylabel = "..."', set_xlabel = 'the option xlabel, or p.xlabel = "..."',
    set_ylabel = 'the option ylabel, or p.ylabel = "..."', xlim = "the option xlim",
    ylim = "the option ylim", set_xlim = "the option xlim", set_ylim = "the option ylim", xscale = "the option xscale", yscale = "the option yscale",
    set_xscale = "the option xscale", set_yscale = "the option yscale", xticks = "the option names of tide.plot.bar and heatmap",
    yticks = "the option names of tide.plot.heatmap", show = "p:show(), or the last value of a cell", savefig = 'p:save("p.png")',
    tight_layout = "not needed", close = "not needed", clf = "not needed", ion = "not needed", draw = "p:show()", axhline =
        "tide.plot.line({x1, x2}, {y, y})", axvline = "tide.plot.line({x, x}, {y1, y2})", stem = "tide.plot.bar", step = "tide.plot.line",
    make_grid = "tide.plot.image(batch, {nrow = 8})", save_image = 'tide.plot.image(x):save("p.png")', imsave = 'tide.plot.image(x):save("p.png")',
    text = "the option title", annotate = "the option label", stackplot = "tide.plot.band of sums",
}

local OPTIONS = { c = "color: a name, a list of one for each series, or the class of each point", aspect = "square = true", origin = "none: the first row is at the top",
    ax = "a layer: plots are added with +", density = "density of tide.plot.hist", colors = "color", norm = "vmin and vmax", lw = "linewidth", ls = "linestyle", ms = "markersize", figsize = "width and height, in pixels", ec = "color", fc = "color",
    edgecolor = "color", facecolor = "color", s = "markersize", ncols = "columns", fmt = "color, marker and linestyle", capsize = "yerr",
    xerr = "yerr", tick_label = "names", cmap = "that of tide.plot.heatmap, \"viridis\" or \"gray\"", annot = "numbers = true", interpolation =
        "none: pixels are never smoothed", dpi = "width and height, in pixels", opacity = "alpha" }

local OF_TORCHVISION = { make_grid = "torchvision", save_image = "torchvision" }

--- name(name), option(name): what to say of it, or nil.
function matplotlib.name(name) return NAMES[name] and string.format("%s's %s is %s", OF_TORCHVISION[name] or "matplotlib", name, NAMES[name]) end
function matplotlib.option(name) return OPTIONS[name] and string.format("matplotlib's %s is %s", name, OPTIONS[name]) end

return matplotlib
