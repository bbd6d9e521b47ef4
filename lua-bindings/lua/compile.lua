-- compile.lua: tide.compile: a function whose calls of operators gather and run as graphs (lua-bindings/script/compiled_function.c).
local tide = ...
local script, declare, fail = tide._script, tide._function, tide._fail
local methods = {}

-- A report prints as its lines; the numbers behind them can be read off it.
local Report = { __name = "tide.CompileReport" }
Report.__index = Report
function Report:__tostring() return table.concat(self.lines, "\n") end

local function plural(n, word) return string.format("%d %s%s", n, word, n == 1 and "" or "s") end
local function ms(ns) return string.format("%.3f ms", ns / 1e6) end
local function us(ns) return string.format("%.1f µs", ns / 1e3) end

local function add_kinds(lines, kinds)
    for _, kind in ipairs(kinds) do
        if kind.at_once > 0 and kind.deferred > 0 then
            lines[#lines + 1] = string.format("  arguments of one kind, %s: %s at once, %s gathered (the fewest of a few calls each): %s",
                plural(kind.calls, "call"), us(kind.at_once), us(kind.deferred),
                kind.eager and "they run at once, which is faster" or "they gather")
        end
    end
end

local function add_limits(lines, c)
    if c.failed > 0 then
        lines[#lines + 1] = string.format("  %s that no graph can do ran call by call: %s", plural(c.failed, "path"), c.reason)
    end
    if c.under_modes > 0 then
        lines[#lines + 1] = string.format("  %s at once, as under autocast, anomaly mode, a trace or hooks of saved tensors nothing gathers",
            plural(c.under_modes, "call") .. " ran")
    end
    if c.forgotten > 0 then
        lines[#lines + 1] = string.format("  all that was known was forgotten %s, as it came to 10000 different calls (sizes that change?)",
            c.forgotten == 1 and "once" or c.forgotten .. " times")
    end
    if c.full then
        lines[#lines + 1] = "  there are as many graphs as are kept, 64: other paths run call by call"
    end
    if c.lost then
        lines[#lines + 1] = "  more lines than these had to wait for their calls"
    end
end

methods.why = declare("why(CompiledFunction self) -> any",
    "What became of the function's calls, as lines: how many gathered and how many graphs they are, each line at which they had to run "
    .. "before the end, why, how often and how long that took, what the graphs cost and, against calls that were run at once and timed, "
    .. "saved. Its fields have the same as numbers: calls, graphs, breaks, kinds, made and saved (nanoseconds).",
    function(f)
        local c = script.compiled_counts(f)
        local lines = { string.format("%s: %s, %d of them run at once; %s gathered, %d ran alone; %s",
            (string.gsub(tostring(f), "^CompiledFunction ", "")), plural(c.calls, "call"), c.eager_calls, plural(c.deferred, "operator call"),
            c.ran, plural(c.graphs, "graph")) }
        for _, b in ipairs(c.breaks) do
            lines[#lines + 1] = string.format("  %s: what had gathered ran %s, %s, in %s", b.place,
                b.refuses and "with " .. b.what .. ", which may refuse elements" or "before " .. b.what,
                b.count == 1 and "once" or b.count .. " times", ms(b.ns))
        end
        add_kinds(lines, c.kinds)
        lines[#lines + 1] = string.format("  graphs took %s to make, with their first runs; %s saved so far, as calls run at once would have taken",
            ms(c.made), ms(c.saved))
        add_limits(lines, c)
        c.lines = lines
        return setmetatable(c, Report)
    end)

methods.graphs = declare("graphs(CompiledFunction self) -> list",
    "The graphs that its calls became, in the order in which they were made, as ScriptFunctions: print(f:graphs()[1].graph).",
    function(f)
        local _ = tide.jit -- whose methods graphs have
        return script.compiled_graphs(f)
    end)

script.compiled_class(methods)

local function name_of(fn)
    local info = type(fn) == "function" and debug.getinfo(fn, "S")
    return info and string.format("%s:%d", info.short_src, info.linedefined) or tide._describe(fn)
end

return declare("compile(any fn, *, str? name=nil, bool measure=true) -> CompiledFunction",
    "A function, or a module, that is called as fn is and gives what fn gives, to the bit: while it runs, calls of operators gather, and "
    .. "run as one graph when something needs their elements (item, print, a comparison, backward, a write in place) or the function "
    .. "returns. Lua runs each time, so nothing it decides is ever stale. A call that is made for the first time, with tensors of this kind and "
    .. "size, runs at once. For arguments of each kind it is measured whether gathering is faster, unless `measure` is false: then calls gather "
    .. "always. f:why() tells what became of them.",
    function(fn, name, measure)
        local meta = debug.getmetatable(fn)
        if type(fn) ~= "function" and not (type(meta) == "table" and rawget(meta, "__call")) then
            fail("compile: argument 1 (fn): expected a function or a module, got %s", tide._describe(fn))
        end
        local f = script.compile(fn, name or name_of(fn), measure)
        tide._document(f, name or "f", "(...)", "A function whose calls gather and run as graphs: f:why(), f:graphs().")
        return f
    end)
