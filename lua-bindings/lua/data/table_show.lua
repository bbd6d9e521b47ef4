-- data/table_show.lua: a table's rows as aligned text, shortened to the terminal, and as HTML.
local tide = ...
local show = {}

local ROWS <const>, HTML_ROWS <const>, HTML_COLUMNS <const> = 20, 40, 30
local WIDTH <const>, WIDEST <const>, GAP <const> = 100, 32, 2
local LEFT_OUT <const> = "..."

-- Which of n places are shown: all, or both ends with false between them.
local function places(n, most)
    local list = {}
    for k = 1, math.min(n, most) do
        list[k] = k <= (most + 1) // 2 and k or n - math.min(n, most) + k
    end
    if n > most then
        table.insert(list, (most + 1) // 2 + 1, false)
    end
    return list
end

local function type_of(c)
    return tide.is_tensor(c) and string.match(tostring(c.dtype), "[%w]+$") or "text"
end

-- One line without letters that move the cursor.
local function plain(text)
    text = utf8.len(text) and text or string.gsub(text, "[\128-\255]", "?")
    return (string.gsub(string.gsub(text, "\n", "\\n"), "%c", "?"))
end

local function shorten(text, most)
    local n = utf8.len(text)
    if n <= most then
        return text
    end
    return string.sub(text, 1, utf8.offset(text, most) - 1) .. "…"
end

local function cell(value)
    if value == nil or value ~= value then
        return "-"
    elseif type(value) == "number" then
        return math.type(value) == "integer" and tostring(value) or tide._number(value, 6)
    end
    return type(value) == "boolean" and tostring(value) or plain(value)
end

-- The texts of a column's cells at these rows.
local function cells_of(c, rows)
    local list = {}
    for k, row in ipairs(rows) do
        local value = row and c[row]
        if tide.is_tensor(value) then
            value = value:item()
        end
        list[k] = not row and LEFT_OUT or cell(value)
    end
    return list
end

local function pad(text, width, right)
    local blanks = string.rep(" ", width - utf8.len(text))
    return right and blanks .. text or text .. blanks
end

-- A column as lines of one width: name, type, cells.
local function lines_of(name, c, rows)
    local lines, width = { shorten(plain(name), WIDEST), type_of(c) }, 0
    for k, text in ipairs(cells_of(c, rows)) do
        lines[k + 2] = shorten(text, WIDEST)
    end
    for _, text in ipairs(lines) do
        width = math.max(width, utf8.len(text))
    end
    for k, text in ipairs(lines) do
        lines[k] = pad(text, width, tide.is_tensor(c))
    end
    return lines, width
end

local function row_numbers(rows)
    local lines, width = { "", "" }, 0
    for k, row in ipairs(rows) do
        lines[k + 2] = row and tostring(row) or LEFT_OUT
        width = math.max(width, #lines[k + 2])
    end
    for k, text in ipairs(lines) do
        lines[k] = pad(text, width, true)
    end
    return lines, width
end

local function size_text(names, columns)
    local n = columns[1] and #columns[1] or 0
    return string.format("%d row%s, %d column%s", n, n == 1 and "" or "s", #names, #names == 1 and "" or "s")
end

--- text(names, columns, width): lines of at most `width` letters; columns that have no room are counted.
function show.text(names, columns, width)
    local n, blocks, left = columns[1] and #columns[1] or 0, {}, width or WIDTH
    local rows = places(n, ROWS)
    local numbers, used = row_numbers(rows)
    blocks[1] = numbers
    for k, name in ipairs(names) do
        local lines, wide = lines_of(name, columns[k], rows)
        if used + GAP + wide > left - (k < #names and GAP + #LEFT_OUT or 0) and k > 1 then
            local dots = {}
            for at in ipairs(lines) do
                dots[at] = at == 1 and LEFT_OUT or "   "
            end
            blocks[#blocks + 1] = dots
            break
        end
        blocks[#blocks + 1], used = lines, used + GAP + wide
    end
    local text = {}
    for at = 1, #rows + 2 do
        local parts = {}
        for k, lines in ipairs(blocks) do
            parts[k] = lines[at]
        end
        text[at] = string.gsub(table.concat(parts, string.rep(" ", GAP)), "%s+$", "")
    end
    text[#text + 1] = size_text(names, columns)
    return table.concat(#names > 0 and text or { size_text(names, columns) }, "\n")
end

-- A row of HTML: a heading and cells.
local function html_line(heading, cells, style)
    local parts = {}
    for k, text in ipairs(cells) do
        parts[k] = string.format("<td style=\"white-space:nowrap;%s\">%s</td>", style or "", text)
    end
    return string.format("<tr><th>%s</th>%s</tr>", heading, table.concat(parts))
end

--- html(names, columns): a table that scrolls.
function show.html(names, columns)
    local html = tide._require "notebook.html"
    local n = columns[1] and #columns[1] or 0
    local rows, across = places(n, HTML_ROWS), places(#names, HTML_COLUMNS)
    local by_column, head, types = {}, {}, {}
    for k, place in ipairs(across) do
        by_column[k] = place and cells_of(columns[place], rows)
        head[k] = place and "<b>" .. html.escape(plain(names[place])) .. "</b>" or "…"
        types[k] = place and type_of(columns[place]) or ""
    end
    local lines = { html_line("", head), html_line("", types, "opacity:0.6") }
    for at, row in ipairs(rows) do
        local cells = {}
        for k, place in ipairs(across) do
            cells[k] = place and row and html.escape(by_column[k][at]) or "…"
        end
        lines[#lines + 1] = html_line(row and tostring(row) or "⋮", cells)
    end
    return html.scrolling(table.concat(lines)) .. html.caption(size_text(names, columns))
end

return show
