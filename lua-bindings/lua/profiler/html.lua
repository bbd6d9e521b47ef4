-- profiler/html.lua: a profile as HTML for notebooks: what took longest with bars, where an operator, its kernels and its
-- backward are one row that unfolds. Colours are legible on light and on dark pages; no scripts and no classes.
local tide = ...
local profile_html = {}
local escape = tide._require("notebook.html").escape

local TOP, ROWS = 10, 1000 -- shown at once; of all
local COLOURS = { operator = "#4c78a8", kernel = "#f58518", backward = "#54a24b", loading = "#9a9590" }
local OTHER = "#b279a2"

local function colour_of(kind) return COLOURS[kind] or OTHER end

local function time_text(ns)
    for _, unit in ipairs { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "µs" } } do
        if ns >= unit[1] then
            return tide._number(ns / unit[1], 3) .. " " .. unit[2]
        end
    end
    return string.format("%d ns", ns)
end

-- What an operator, its kernels ("mm") and its backward ("MmBackward") have in common.
local function family_of(row)
    if row.kind ~= "operator" and row.kind ~= "kernel" and row.kind ~= "backward" then
        return row.kind .. " " .. row.name
    end
    return "operator " .. string.lower((string.gsub(string.gsub(row.name, "Backward%d*$", ""), "_", "")))
end

local RANK = { operator = 1, backward = 2, kernel = 3 }

-- Rows of one family as one: its parts, their own time, calls and name of the operator, else of the first part.
local function gather(rows)
    local families, by_name, loads, all = {}, {}, {}, 0
    for _, row in ipairs(rows) do
        if row.kind == "loading" then
            loads[#loads + 1] = row
        elseif row.kind ~= "memory" then
            local name = family_of(row)
            local family = by_name[name]
            if not family then
                family = { parts = {}, self_ns = 0 }
                by_name[name] = family
                families[#families + 1] = family
            end
            table.insert(family.parts, row)
            family.self_ns = family.self_ns + row.self_ns
            all = all + row.self_ns
        end
    end
    for _, family in ipairs(families) do
        table.sort(family.parts, function(a, b)
            local x, y = RANK[a.kind] or 4, RANK[b.kind] or 4
            return x < y or x == y and a.self_ns > b.self_ns
        end)
        family.name, family.kind, family.calls = family.parts[1].name, family.parts[1].kind, family.parts[1].calls
    end
    table.sort(families, function(a, b) return a.self_ns > b.self_ns or a.self_ns == b.self_ns and tide._before(a.name, b.name) end)
    return families, loads, all
end

-- ---- the page ----

local GRID = "display:grid;grid-template-columns:minmax(9em,16em) minmax(6em,18em) 4.5em 6em 5.5em 6em;gap:0 1em;align-items:center"
local RIGHT = 'style="text-align:right"'

local function cells(name, bar, share, own, calls, mean)
    return string.format("<span style=\"overflow-wrap:anywhere\">%s</span><span>%s</span><span %s>%s</span><span %s>%s</span><span %s>%s</span>"
        .. "<span %s>%s</span>", name, bar, RIGHT, share, RIGHT, own, RIGHT, calls, RIGHT, mean)
end

local function bar_of(parts, most)
    local out = {}
    for k, part in ipairs(parts) do
        out[k] = string.gsub(string.format("<span title=\"%s %s\" style=\"display:inline-block;height:0.8em;width:%.2f%%;background:%s\"></span>", part.kind,
            time_text(part.self_ns), 100 * part.self_ns / math.max(most, 1), colour_of(part.kind)), ",(%d+%%;)", ".%1")
    end
    return "<span style=\"display:block;white-space:nowrap;line-height:0.8em\">" .. table.concat(out) .. "</span>"
end

local function share_text(ns, all) return tide._number(math.floor(1000 * ns / math.max(all, 1) + 0.5) / 10, 4) .. " %" end

local function family_html(family, most, all)
    local name = string.format("<code>%s</code>%s", escape(family.name), RANK[family.kind] and ""
        or string.format(" <span style=\"opacity:0.6\">%s</span>", escape(family.kind)))
    local line = cells(name, bar_of(family.parts, most), share_text(family.self_ns, all), time_text(family.self_ns),
        tostring(family.calls), time_text(family.self_ns // math.max(family.calls, 1)))
    if #family.parts == 1 then
        return string.format("<div style=\"%s;padding-left:1.1em\">%s</div>", GRID, line)
    end
    local parts = {}
    for k, part in ipairs(family.parts) do
        parts[k] = string.format("<div style=\"%s;padding-left:1.1em;opacity:0.8\">%s</div>", GRID, cells(
            string.format("<span style=\"padding-left:1em\">%s <code>%s</code></span>", part.kind, escape(part.name)), bar_of({ part }, most),
            share_text(part.self_ns, all), time_text(part.self_ns), tostring(part.calls), time_text(part.self_ns // math.max(part.calls, 1))))
    end
    -- the mark of what unfolds has room of its own, so that columns stay in line
    return string.format("<details><summary style=\"padding-left:1.1em;text-indent:0;list-style:none;cursor:pointer\"><span style=\"float:left;"
        .. "margin-left:-1.1em;opacity:0.6\">▸</span><span style=\"%s\">%s</span></summary>%s</details>", GRID, line,
        table.concat(parts))
end

local function key_html(kinds)
    local out = {}
    for k, kind in ipairs(kinds) do
        out[k] = string.format("<span style=\"display:inline-block;width:0.8em;height:0.8em;background:%s\"></span> %s", colour_of(kind), kind)
    end
    return table.concat(out, " &nbsp; ")
end

local function loads_html(loads)
    if #loads == 0 then
        return ""
    end
    local parts = {}
    for k, load in ipairs(loads) do
        parts[k] = string.format("%s %s", escape(load.name), time_text(load.self_ns))
    end
    return string.format("<div><span style=\"display:inline-block;width:0.8em;height:0.8em;background:%s\"></span> loading, once in a process and in "
        .. "no share: %s</div>", COLOURS.loading, table.concat(parts, ", "))
end

--- page(profile): its rows as HTML.
function profile_html.page(profile)
    local families, loads, all = gather(profile:_rows(ROWS))
    local totals = profile:_totals()
    if #families == 0 and #loads == 0 then
        return "<div>nothing was recorded</div>"
    end
    local lines, most = {}, families[1] and families[1].self_ns or 1
    for k, family in ipairs(families) do
        lines[k] = family_html(family, most, all)
    end
    local rest = #lines > TOP and string.format("<details><summary style=\"cursor:pointer;opacity:0.7\">%d more</summary>%s</details>", #lines - TOP,
        table.concat(lines, "", TOP + 1)) or ""
    local head = string.format("<div style=\"%s;padding-left:1.1em;border-bottom:1px solid #8888;opacity:0.7\">%s</div>", GRID,
        cells("name", key_html { "operator", "kernel", "backward" }, "share", "own time", "calls", "a call"))
    return string.format("<div style=\"font-size:0.9em;font-variant-numeric:tabular-nums;max-width:64em\">%s%s%s%s<div style=\"opacity:0.7\">%d events, "
        .. "%s of %s in what is listed%s; p:timeline() draws them, p:table{sort = \"total\"} prints them</div></div>", head,
        table.concat(lines, "", 1, math.min(TOP, #lines)), rest, loads_html(loads), totals.events, time_text(all), time_text(totals.wall_ns),
        totals.evicted > 0 and string.format(", the last %d of %d", totals.events, totals.events + totals.evicted) or "")
end

return profile_html
