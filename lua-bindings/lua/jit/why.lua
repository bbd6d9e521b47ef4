-- jit/why.lua: f:why(): what a ScriptFunction was made of and what that fixed, as lines.
local tide = ...
local script, trace = tide._script, tide._require "jit.trace"
local why = {}

-- A report prints as its lines; a list of {place, reason} can be read off it.
local Report = { __name = "tide.jit.Report" }
Report.__index = Report
function Report:__tostring() return table.concat(self.lines, "\n") end

local function plural(n, word) return string.format("%d %s%s", n, word, n == 1 and "" or "s") end

local function count_nodes(block)
    local n = 0
    for _, node in ipairs(block.nodes) do
        if node.kind ~= "prim::Constant" then
            n = n + 1
        end
        for _, inner in ipairs(node.blocks) do
            n = n + count_nodes(inner)
        end
    end
    return n
end

--- report(f): a value that prints as lines.
function why.report(f)
    local info = script.info(f)
    local lines = { string.format("%s: %s, %s", script.name(f), info.made or "made of a graph's text",
        plural(count_nodes(script.describe(f)), "node")) }
    local fixed = {}
    for _, note in ipairs(info.notes or {}) do
        fixed[#fixed + 1] = { place = note.place, reason = trace.reason(note) }
        lines[#lines + 1] = string.format("  %s: %s", note.place, trace.reason(note))
    end
    if info.compared then
        lines[#lines + 1] = info.compared == 0 and "  check: the function refused other numbers, so nothing was compared"
            or string.format("  check: equal to the function on %s of other numbers", plural(info.compared, "set"))
    elseif info.made == "traced" then
        lines[#lines + 1] = "  check: left out"
    end
    if info.breakpoint then
        lines[#lines + 1] = string.format("  %s: a breakpoint: calls run the Lua function and not the graph", info.breakpoint)
    elseif info.eager then
        lines[#lines + 1] = "  eager: calls run " .. (info.made and string.find(info.made, "^loaded") and "the graph as it was written, operator by operator"
            or "the Lua function and not the graph")
    end
    for line in string.gmatch(script.specialisations(f), "[^\n]+") do
        lines[#lines + 1] = "  " .. line
    end
    return setmetatable({ lines = lines, fixed = fixed }, Report)
end

return why
