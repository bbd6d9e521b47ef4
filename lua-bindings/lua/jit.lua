-- jit.lua: tide.jit: functions as graphs. trace and script make one object, a ScriptFunction (lua-bindings/script/), which is
-- called as the function was; this file gives it its methods. How graphs are made and shown is in jit/NAME.lua.
local tide = ...
local fail, declare, script = tide._fail, tide._function, tide._script
local trace, marks = tide._require "jit.trace", tide._require "jit.marks"
local jit, methods, properties = {}, {}, {}

local function is_callable(value)
    if type(value) == "function" then
        return true
    end
    local meta = debug.getmetatable(value)
    return type(meta) == "table" and rawget(meta, "__call") ~= nil
end

local function check_callable(name, value)
    if not is_callable(value) then
        fail("%s: argument 1 (fn): expected a function or a module, got %s", name, tide._describe(value))
    elseif tide.nn.is_module(value) then
        value:parameters() -- refuses a lazy layer that waits for its first call
    end
    return value
end

-- What help and `?f` say of one.
local function document(f)
    local name = script.name(f)
    tide._document(f, name, (string.gsub(tostring(f), "^ScriptFunction ", "")),
        "A function that is a graph: f.graph, f.code, f:draw(), f:why(), f:save(path).")
    return f
end

local function make_fast(f, fast)
    if fast then
        script.set_fast(f)
    end
    return f
end

-- ---- making them ----

local FAST = " fast allows groups of pointwise operators other last bits than theirs: sums and products are joined and reordered, 16-bit "
    .. "floats go on in float32 from one operator to the next; f:why() tells the difference in ulp that was measured."

jit.trace = declare("trace(any fn, Tensor|Tensor[] inputs, *, bool check=true, str? name=nil, bool fast=false, bool eager=false) -> ScriptFunction",
    "Runs a function, or a module, with these tensors and records what it calls: a ScriptFunction of the graph. Tensors that the "
    .. "function has otherwise are constants of it, by reference. What Lua works out of a tensor (item, a comparison, a size) is fixed, "
    .. "with a warning that names the line; check calls the function three times more with other numbers and compares. eager: see script." .. FAST,
    function(fn, inputs, check, name, fast, eager)
        local f = trace.run(check_callable("trace", fn), inputs, { check = check, name = name, eager = eager })
        script.info(f).eager = eager
        return document(make_fast(f, fast))
    end)

jit.script = declare("script(any fn, *, str? types=nil, str? name=nil, bool fast=false, bool eager=false) -> ScriptFunction",
    "Compiles the Lua source of a function, or of a module's forward, with its branches and loops: a ScriptFunction of the graph. "
    .. "Parameters are tensors, or of the types that a comment on the function's head or `types` says: --: Tensor, int, float[], "
    .. "Tensor?, Dict(str, Tensor), (Tensor, Tensor), nil; one of nil is never given; the type of an empty table stands behind it: "
    .. "local list = {} --: Tensor[]. What the function reads and is no tensor (numbers, tables, a module's training) is fixed; tensors are "
    .. "there by reference. Where a module has changed since, a call says so. "
    .. "eager: calls run fn itself and not the graph, so that prints, breakpoints and debuggers work in it, as they do where "
    .. "tide.breakpoint() stands in it or debug.sethook stops at lines." .. FAST,
    function(fn, types, name, fast, eager)
        check_callable("script", fn)
        local f = tide._require("jit.compiler.compile").compile(fn, { types = types, name = name, eager = eager })
        local info = script.info(f)
        info.made, info.eager = "compiled", eager
        return document(make_fast(f, fast))
    end)

jit.ignore = declare("ignore(function fn) -> function",
    "The function itself, which tide.jit.script leaves to Lua: the graph calls it and does not look inside.",
    function(fn)
        marks.ignored[fn] = true
        return fn
    end)

jit.is_script_function = declare("is_script_function(any value=nil) -> bool", "Is the value a ScriptFunction?", script.is)

-- Schemas of emit_c, the function and the method, say the same.
local EMIT_OPTIONS = "str? path=nil, *, str? name=nil, any main=nil) -> str?"

local function emit_c(f, path, name, main)
    local several = type(f) == "table"
    return tide._require("jit.emit").write(several and f or { f }, path, { name = name, main = main, several = several })
end

jit.emit_c = declare("emit_c(any f, " .. EMIT_OPTIONS,
    "C that does what a ScriptFunction's graph does, or those of a list, and needs libtide alone: no Lua, no file of a graph. With a path "
    .. "it is written there, and constants of more than 4 KiB into a safetensors file beside it; without one all are in the text. Each "
    .. "function is `td_status NAME(const td_value *inputs, td_value *outputs)`, whose contract is at the head; `main`, a list of inputs "
    .. "(of several functions one list for each; true: made up, where the graph knows their shapes), adds a main that calls it and prints "
    .. "a digest of each result. Refused in one line, "
    .. "with the place: calls of Lua functions, forks, modes, dicts, prints of tensors, constants that are sparse or quantized.",
    function(f, path, name, main)
        local list = type(f) == "table" and f or { f }
        for k, one in ipairs(list) do
            if not script.is(one) then
                fail("emit_c: argument 1 (f): a ScriptFunction, or a list of them, expected, got %s", tide._describe(one))
            end
        end
        return emit_c(f, path, name, main)
    end)

jit.load = declare("load(str path, *, bool fast=false, bool eager=false) -> ScriptFunction",
    "The function of a file that f:save wrote. No Lua of it runs: a file holds a graph and its tensors, and not whether it was fast. "
    .. "eager: the graph runs as it was written, operator by operator." .. FAST,
    function(path, fast, eager)
        local f = script.load(path)
        local info = script.info(f)
        info.made, info.eager = "loaded from " .. path, eager
        script.set_source(f, nil, eager)
        return document(make_fast(f, fast))
    end)

jit.cache = declare("cache(*, bool clear=false) -> any",
    "Machine code of fused kernels: a table of path (the folder that keeps it from process to process), entries, bytes, bound (bytes "
    .. "that are kept at most) and of this process compiled, loaded (hits: read from the folder), refused, runs (calls that code "
    .. "answered) and ms (of compiling and reading, on a thread of its own). clear removes the files; what is in use stays.",
    function(clear) return tide._require("jit.cache").look(clear) end)

-- ---- on other threads ----

jit.fork = declare("fork(ScriptFunction f, ...) -> Future",
    "Begins a call of a ScriptFunction on another thread and returns at once; tide.jit.wait gives its results.",
    function(f, ...) return script.fork(f, ...) end)

jit.wait = declare("wait(Future future) -> any",
    "What a call that tide.jit.fork began gives: waits for it. An error of the call is raised here.", script.wait)

-- ---- what they have ----

-- A method of every ScriptFunction: "name(PARAMETERS) -> RESULT" behind self.
local function method(name, parameters, doc, fn)
    methods[name] = declare(string.format("%s(ScriptFunction self%s", name, parameters), doc, fn)
end

function properties.graph(f) return script.graph(f) end
function properties.name(f) return script.name(f) end
function properties.code(f) return (tide._require("jit.code").text(script.describe(f), script.name(f))) end
function properties.constants(f) return (select(2, tide._require("jit.code").text(script.describe(f), script.name(f)))) end

method("draw", ") -> any",
    "The graph as a picture: boxes and arrows in a terminal, SVG in a notebook. tostring gives the text, .svg the drawing.",
    function(f) return tide._require("jit.draw").picture(script.describe(f), script.name(f)) end)

method("graph_for", ", ...) -> str",
    "The graph that runs for inputs like these: with their types, rewritten and fused.",
    function(f, ...) return script.graph_for(f, false, ...) end)

method("passes", ", ...) -> list",
    "What each pass makes of the graph for inputs like these: a list of {pass, doc, changes, before, after}, shown one after the other.",
    function(f, ...) return tide._require("jit.passes").steps(f, ...) end)

method("memory", ", ...) -> int? before, int? after, int? made_before, int? made_after",
    "The most bytes that tensors made within the function hold at one time for inputs like these, as it was written and as it is "
    .. "rewritten, and how many pieces of memory its nodes make; nil where a size is not known before it runs. What an operator needs "
    .. "within is not counted.",
    function(f, ...) return script.memory(f, ...) end)

method("bisect", ", ...) -> table?",
    "Looks for the pass from which values differ from the function as it was written, and for the first node: {pass, step, why, node, "
    .. "place, before, after}, or nil where no pass changes a bit, which is as it should be.",
    function(f, ...) return script.bisect(f, ...) end)

method("save", ", str path)",
    "Writes the function to a file: its graph and its constant tensors. tide.jit.load reads it, and td_script_load from C.",
    function(f, path) script.save(f, path) end)

method("emit_c", ", " .. EMIT_OPTIONS, "tide.jit.emit_c of this function.", emit_c)

method("why", ") -> any",
    "How the function was made, which values were fixed and on which lines, what the check found.",
    function(f) return tide._require("jit.why").report(f) end)

script.class(methods, properties)

tide._document(jit, "jit", "tide.jit", "Functions as graphs: trace, script, load, fork. See ?tide.jit.trace.")
return jit
