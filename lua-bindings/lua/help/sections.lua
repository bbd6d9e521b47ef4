-- help/sections.lua: how what a function's description says besides its signature and doc is set: shapes, dtypes and
-- notes as lines for a terminal, and all of a help text as HTML for notebooks and the reference.
local tide = ...
local escape = tide._require("notebook.html").escape
local sections = {}

local WIDTH = 76

-- A text in lines of so many columns, broken at spaces; the first begins with `head`, the others with `indent`.
local function wrap(text, head, indent, lines)
    local line
    for word in string.gmatch(text, "%S+") do
        if line and utf8.len(line) + 1 + utf8.len(word) > WIDTH then
            lines[#lines + 1] = line
            line = indent .. word
        else
            line = line and line .. " " .. word or head .. word
        end
    end
    lines[#lines + 1] = line
end

-- The parts of a text around a separator.
local function split(text, separator)
    local parts, first = {}, 1
    while true do
        local at, last = string.find(text, separator, first, true)
        parts[#parts + 1] = string.sub(text, first, (at or 0) - 1)
        if not at then
            return parts
        end
        first = last + 1
    end
end

--- wrap(text): what is too long for one line as several.
function sections.wrap(text)
    local lines = {}
    wrap(text, "", "", lines)
    return table.concat(lines, "\n")
end

-- A case "operands -> results", its results in a line of their own where it is long, or has the operands of the one before.
local function add_case(case, lines)
    local operands, results = string.match(case, "^(.-) ?(%->.+)$")
    if operands ~= "" and utf8.len(case) <= WIDTH then
        lines[#lines + 1] = case
        return
    end
    if operands ~= "" then
        wrap(operands, "", "  ", lines)
    end
    wrap(results, "  ", "    ", lines)
end

--- shapes(text): a text of shapes (engine/ops/help.h), a line for each case and for each name that it explains.
function sections.shapes(text)
    local lines = {}
    for k, part in ipairs(split(text, "; ")) do
        for _, case in ipairs(k == 1 and split(part, " | ") or {}) do
            add_case(case, lines)
        end
        if k > 1 then
            wrap(part, "", "  ", lines)
        end
    end
    return table.concat(lines, "\n")
end

--- of(doc): {label, text} of what a description says besides, in order.
function sections.of(doc)
    local list = {}
    local function add(label, text)
        if text then
            list[#list + 1] = { label, text }
        end
    end
    add("Shapes", doc.shapes and sections.shapes(doc.shapes))
    add("Dtypes", doc.dtypes and sections.wrap(doc.dtypes))
    add("Notes", doc.notes and sections.wrap(doc.notes))
    return list
end

-- ---- HTML ----

-- Texts that are read as prose; others are set as they are.
local PROSE = { Doc = true, Notes = true, Dtypes = true, Type = true }

--- row(label, text): a part of help as a row of a table.
function sections.row(label, text)
    local open, close = "<pre style=\"margin:0;text-align:left\">", "</pre>"
    if PROSE[label] then
        open, close = "", ""
    end
    return string.format("<tr><th style=\"text-align:left;vertical-align:top\">%s</th><td style=\"text-align:left\">%s%s%s</td></tr>",
        escape(label), open, escape(text), close)
end

--- html(text): a help text, "Label: text" and "Label:\n  text" one under the other, as a table; nil where it is none.
function sections.html(text)
    local rows, label, lines = {}, nil, nil
    local function close()
        if label then
            rows[#rows + 1] = sections.row(label, table.concat(lines, PROSE[label] and " " or "\n"))
        end
    end
    for line in string.gmatch(text .. "\n", "(.-)\n") do
        local name, rest = string.match(line, "^(%u%l[%l ]*): +(.*)$")
        name = name or string.match(line, "^(%u%l[%l ]*):$")
        if name then
            close()
            label, lines = name, { rest }
        elseif label and string.find(line, "^  ") then
            lines[#lines + 1] = string.sub(line, 3)
        else
            return nil
        end
    end
    close()
    return #rows > 0 and "<table>" .. table.concat(rows) .. "</table>" or nil
end

return sections
