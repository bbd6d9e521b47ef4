-- jit/compiler/compile.lua: from a function, or a module's forward, to a ScriptFunction: types of parameters from comments,
-- the walk over the function (jit/compiler/core.lua says how), and the graph's text, which the engine reads.
local tide = ...
local source = tide._require "jit.compiler.source"
local types = tide._require "jit.compiler.types"
local graph = tide._require "jit.compiler.graph"
local Compiler = tide._require "jit.compiler.core"
local marks = tide._require "jit.marks"
local watch = tide._require "jit.compiler.watch"
tide._require "jit.compiler.control"
tide._require "jit.compiler.statements"
tide._require "jit.compiler.expressions"
tide._require "jit.compiler.indexing"
tide._require "jit.compiler.operators"
tide._require "jit.compiler.forms"
tide._require "jit.compiler.calls"
tide._require "jit.compiler.library"
tide._require "jit.compiler.methods"
tide._require "jit.compiler.forks"
tide._require "jit.compiler.contexts"

local compile = {}

-- ---- parameters ----

-- The comment with types that belongs to a function: on the lines of its head, or alone on the line before.
local function note_of(where)
    local fn = where.fn
    for _, note in ipairs(where.notes) do
        local alone = note.line == fn.line - 1 and string.find(where.lines[note.line] or "", "^%s*%-%-:")
        if note.line >= fn.line and note.line <= fn.header or alone then
            return note
        end
    end
end

-- The types of parameters behind `self`: as `given` or a comment says them, else tensors.
local function parameter_types(c, where, count, skip, given)
    local note, list = note_of(where), {}
    if given or note then
        local rest
        list, rest = types.list(given or note.value)
        c.node = not given and note or where.fn
        if not list or rest ~= "" and not string.find(rest, "^%->") and not string.find(rest, "^%-%-") then
            c:fail("a list of types is expected, such as '--: Tensor, int, float[], Tensor?', got '%s'", rest)
        elseif string.find(table.concat(list), "{", 1, true) then
            c:fail "a table with names as an input: its type is Dict(str, T)"
        elseif #list > count then
            c:fail("%d types for %d parameters", #list, math.tointeger(count))
        end
    end
    for k = 1, count < math.huge and count or 0 do
        list[k] = list[k] or "Tensor"
    end
    for _ = 1, skip do
        table.insert(list, 1, false)
    end
    return list
end

-- ---- results ----

-- What the graph gives. A table with names comes out as a dict, of anything where its entries are of several types.
local function set_outputs(c, results)
    for k, v in ipairs(results) do
        c.g.root.outputs[k] = c:leaving_value(v)
    end
end

-- ---- the whole ----

local function check(fn, name)
    if type(fn) == "function" then
        return fn, {}
    elseif tide.nn.is_module(fn) then
        return fn.forward, { fn }
    end
    tide._fail("%s: expected a function or a module, got %s", name, tide._describe(fn))
end

-- Runs the walk; errors of the source become their message.
local function protected(fn, ...)
    local results = table.pack(pcall(fn, ...))
    if results[1] then
        return table.unpack(results, 2, results.n)
    end
    local problem = results[2]
    if type(problem) == "table" and problem.message then
        error("script: " .. problem.message, 0) -- of several lines, and with a place of its own
    elseif type(problem) == "table" and problem.list_wanted then
        tide._fail "script: a table is changed in a branch or loop in a way that no list of a graph can follow"
    end
    error(problem, 0)
end

local function walk(c, closure, bound, given)
    if rawget(bound[1] or {}, "_hooks") then
        tide._fail("script: the module %s has hooks, which a graph can't call: remove them first", getmetatable(bound[1]).__name)
    end
    local where, why = source.of(closure)
    if not where then
        tide._fail("script: %s", why)
    end
    local fn = where.fn
    c.where, c.node = where, fn
    if fn.vararg and not given then
        c:fail "'...' takes any number of parameters: say how many by their types: tide.jit.script(fn, {types = \"Tensor, Tensor\"})"
    end
    local arguments = {}
    for k, value in ipairs(bound) do
        arguments[k] = c:wrap(value)
        c:watch(value, "_hooks")
    end
    local count = math.max(#fn.params - #bound, 0)
    local kinds = parameter_types(c, where, fn.vararg and math.huge or count, #bound, given)
    for k = #bound + 1, fn.vararg and #kinds or #fn.params do
        if kinds[k] == "NoneType" then -- never given
            arguments[k] = Compiler.NIL
        else
            arguments[k] = graph.value(kinds[k], fn.params[k])
            arguments[k].argument = true
            table.insert(c.g.root.inputs, arguments[k])
        end
    end
    c.node = fn
    c.frame = { returned = c:flag(), value = c:cell(Compiler.UNSET) }
    local scope = { cells = {}, closure = closure, environment = c.environment_of(closure) }
    c.g.place = { file = where.file, line = fn.line, column = fn.column }
    set_outputs(c, c:run(fn, scope, where, arguments))
    return fn.name
end

--- compile(fn, options): a ScriptFunction of a function or module; options.name names it, options.types are its parameters',
--- in the place of a comment's; options.eager: its calls run fn itself, as they do where a breakpoint stands in it.
function compile.compile(fn, options)
    local closure, bound = check(fn, "script")
    Compiler.open_jit()
    local c = Compiler.new()
    local name = protected(walk, c, closure, bound, options.types)
    name = options.name or bound[1] and getmetatable(bound[1]).__name or name or "function"
    local f = tide._script.parse(c.g:text(), c.g.tensors, name, c.host_functions or {})
    tide._script.info(f).breakpoint = c.breakpoint
    tide._script.set_source(f, fn, options.eager or c.breakpoint ~= nil)
    watch.set(f, c.watched)
    marks.scripted[f] = fn
    return f
end

return compile
