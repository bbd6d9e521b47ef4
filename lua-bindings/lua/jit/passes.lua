-- jit/passes.lua: f:passes(...): what rewriting does to a graph, step by step: lines that were taken out and put in.
local tide = ...
local script = tide._script
local passes = {}

-- ---- what differs ----

local function lines_of(text)
    local lines = {}
    for line in string.gmatch(text, "[^\n]+") do
        lines[#lines + 1] = line
    end
    return lines
end

local MOST = 400 -- lines that are compared one by one

-- The lines of both texts in order, each with "  ", "- " or "+ " before it (longest common subsequence).
local function difference(before, after)
    local a, b = lines_of(before), lines_of(after)
    if #a > MOST or #b > MOST then
        return b
    end
    local length = {}
    for i = #a + 1, 1, -1 do
        length[i] = {}
        for j = #b + 1, 1, -1 do
            length[i][j] = (i > #a or j > #b) and 0 or a[i] == b[j] and length[i + 1][j + 1] + 1
                or math.max(length[i + 1][j], length[i][j + 1])
        end
    end
    local out, i, j = {}, 1, 1
    while i <= #a or j <= #b do
        if i <= #a and j <= #b and a[i] == b[j] then
            out[#out + 1], i, j = "  " .. a[i], i + 1, j + 1
        elseif j > #b or i <= #a and length[i + 1][j] >= length[i][j + 1] then
            out[#out + 1], i = "- " .. a[i], i + 1
        else
            out[#out + 1], j = "+ " .. b[j], j + 1
        end
    end
    return out
end

-- ---- the list ----

local Steps = { __name = "tide.jit.Steps" }
Steps.__index = Steps

local function title(step) return string.format("%s: %d rewrite%s. %s", step.pass, step.changes, step.changes == 1 and "" or "s", step.doc) end

function Steps:__tostring()
    local parts = {}
    for k, step in ipairs(self) do
        parts[k] = title(step) .. "\n" .. table.concat(difference(step.before, step.after), "\n")
    end
    return #parts == 0 and "no pass changes this graph" or table.concat(parts, "\n\n")
end

local escape = tide._require("notebook.html").escape

local COLOURS = { ["-"] = "#c62828", ["+"] = "#2e7d32" }

-- A part that opens for each pass.
function Steps:__display()
    local parts = {}
    for k, step in ipairs(self) do
        local lines = {}
        for n, line in ipairs(difference(step.before, step.after)) do
            local colour = COLOURS[string.sub(line, 1, 1)]
            lines[n] = colour and string.format('<span style="color:%s">%s</span>', colour, escape(line)) or escape(line)
        end
        parts[k] = string.format("<details><summary>%s</summary><pre>%s</pre></details>", escape(title(step)), table.concat(lines, "\n"))
    end
    return { ["text/plain"] = tostring(self), ["text/html"] = table.concat(parts) }
end

--- steps(f, ...): the steps for these inputs.
function passes.steps(f, ...) return setmetatable(script.passes(f, ...), Steps) end

return passes
