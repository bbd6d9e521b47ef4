-- jit/compiler/source.lua: from a function to the tree of its source: the text of a file, of a chunk given as a string, of
-- an input of the session or of one of Tide's own modules. And the form that errors take.
local tide = ...
local parser = tide._require "jit.compiler.parser"
local source = {}

-- ---- texts ----

-- Trees by text: {functions, notes, lines}; of so many texts at most.
local MOST_PARSED = 24
local parsed, count = {}, 0

local function read_file(path)
    local file = io.open(path, "rb")
    local text = file and file:read "a"
    if file then
        file:close()
    end
    return text
end

-- The text of a chunk by the name that debug.getinfo gives; nil: nobody has it.
local function text_of(chunk)
    local first = string.sub(chunk, 1, 1)
    if first == "@" then
        return read_file(string.sub(chunk, 2))
    elseif first == "=" then
        return tide._source(chunk)
    end
    return chunk
end

local function lines_of(text)
    local lines = {}
    for line in string.gmatch(text .. "\n", "([^\n]*)\n") do
        lines[#lines + 1] = (string.gsub(line, "\r$", ""))
    end
    return lines
end

--- parse(text): {functions, notes, lines} of a text; nil and {line, column, what} where it is no Lua.
function source.parse(text)
    if not parsed[text] then
        local chunk, functions, notes = parser.parse(text)
        if not chunk then
            return nil, functions
        end
        if count == MOST_PARSED then
            parsed, count = {}, 0
        end
        count = count + 1
        parsed[text] = { functions = functions, notes = notes, lines = lines_of(text), chunk = chunk }
    end
    return parsed[text]
end

-- ---- functions ----

-- All names that a function's body reads or writes, its own locals among them.
local function names_in(tree, names)
    for key, value in pairs(tree) do
        if type(value) == "table" then
            names_in(value, names)
        elseif key == "name" and (tree.tag == "Name" or tree.tag == "LocalFunction") then
            names[value] = true
        end
    end
    return names
end

-- Does the function read all that the closure captured?
local function captures(fn, closure)
    local names = names_in(fn.body, {})
    for k = 1, 255 do
        local name = debug.getupvalue(closure, k)
        if not name then
            return true
        elseif name ~= "_ENV" and not names[name] then
            return false
        end
    end
    return true
end

-- The functions that stand where debug.getinfo says, and that a closure may have been made of.
local function candidates(tree, closure, info)
    local list = {}
    for _, fn in ipairs(tree.functions) do
        if fn.line <= info.linedefined and info.linedefined <= fn.header and fn.last == info.lastlinedefined
            and #fn.params == info.nparams and (fn.vararg or false) == info.isvararg and captures(fn, closure) then
            list[#list + 1] = fn
        end
    end
    return list
end

-- Is the closure what Lua makes of a function's text? The same code and constants; where its upvalues come from is told
-- otherwise here, in two bytes of each.
local function is_made_of(fn, closure, text)
    local names = {}
    for k = 1, 255 do
        local name = debug.getupvalue(closure, k)
        if not name then
            break
        end
        names[#names + 1] = name ~= "_ENV" and name or nil
    end
    local body = string.sub(text, fn.from, fn.to)
    if fn.method then
        body = string.gsub(body, "^%(%s*(%)?)", function(close) return close == ")" and "(self)" or "(self, " end)
    end
    local locals = #names > 0 and "local " .. table.concat(names, ", ") .. " " or ""
    local chunk = load(string.rep("\n", fn.line - 1) .. locals .. "return function" .. body)
    if not chunk then
        return false
    end
    local made, own, differ = string.dump(chunk(), true), string.dump(closure, true), 0
    for k = 1, #made == #own and #made or 0 do
        differ = differ + (string.byte(made, k) ~= string.byte(own, k) and 1 or 0)
    end
    return #made == #own and differ <= 2 * debug.getinfo(closure, "u").nups
end

-- Of several functions at one place those that the closure may be made of by their code.
local function told_apart(list, closure, text)
    local kept = {}
    for _, fn in ipairs(list) do
        kept[#kept + 1] = is_made_of(fn, closure, text) and fn or nil
    end
    return #kept > 0 and kept or list
end

--- of(closure): {fn = its tree, lines, file, notes} of a Lua function; nil and why there is none.
function source.of(closure)
    local info = debug.getinfo(closure, "Su")
    if info.what == "C" then
        return nil, "it is written in C"
    end
    local text = text_of(info.source)
    local where = string.format("%s:%d", info.short_src, info.linedefined)
    if not text then
        return nil, string.format("the text of %s is not to be had", where)
    end
    local tree, problem = source.parse(text)
    if not tree then
        return nil, string.format("%s:%d:%d: %s", info.short_src, problem.line, problem.column, problem.what)
    end
    local list = candidates(tree, closure, info)
    if #list > 1 then
        list = told_apart(list, closure, text)
    end
    if #list == 0 then
        return nil, string.format("there is no such function at %s any more: the text was changed", where)
    elseif #list > 1 then
        return nil, string.format("%d functions stand at %s: give each lines of its own", #list, where)
    end
    return { fn = list[1], lines = tree.lines, file = info.short_src, notes = tree.notes }
end

-- ---- errors ----

--- fail(where, node, format, ...): an error at a node of a source: file:line:column, why, the line and a caret. `again`
--- marks what other ways of compiling the same may do without.
function source.fail(where, node, format, ...)
    local what = select("#", ...) > 0 and string.format(format, ...) or format
    local line = where and where.lines[node.line] or ""
    local indent = string.gsub(string.sub(line, 1, (node.column or 1) - 1), "[^\t]", " ")
    local message = string.format("%s:%d:%d: %s\n    %s\n    %s^", where and where.file or "?", node.line or 0,
        node.column or 0, what, line, indent)
    error({ refused = true, message = message, what = what }, 0)
end

return source
