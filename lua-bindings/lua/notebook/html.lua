-- notebook/html.lua: values as HTML for notebooks: tensors as aligned tables that scroll, with statistics and a heat map where
-- they are asked for, modules and tables as trees that fold. No scripts and no classes: what it writes looks the same
-- in any page, and every text is escaped.
local tide = ...
local html = {}

local ROWS, COLUMNS, SLICES = 40, 20, 6 -- shown of a tensor
local ENTRIES, MOST, DEEPEST, SORTED = 100, 1000, 6, 20000 -- shown of a table; of all; how deep; in order
local LONGEST = 300 -- bytes of a text in a tree

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

--- escape(text): any bytes as text of HTML.
function html.escape(text)
    if not utf8.len(text) then
        text = string.gsub(text, "[\128-\255]", function(c) return string.format("\\x%02X", string.byte(c)) end)
    end
    return (string.gsub(string.gsub(text, "[&<>\"']", entities), "[%z\1-\8\11-\31\127]", "\u{FFFD}"))
end
local escape = html.escape

-- A point in every locale.
local function fixed(format, x)
    local text = string.format(format, x)
    return string.find(text, ",", 1, true) and string.gsub(text, ",", ".") or text
end

-- ---- numbers, as tensors are printed ----

local function number_text(v, format)
    if type(v) ~= "number" or math.type(v) == "integer" then
        return tostring(v)
    elseif v ~= v then
        return "nan"
    elseif v == math.huge or v == -math.huge then
        return v > 0 and "inf" or "-inf"
    end
    return fixed(format, v)
end

-- ---- tensors ----

-- Which of n places are shown: all, or both ends with a gap, which is nil.
local function shown_places(n, most)
    local places = {}
    for k = 1, math.min(n, most) do
        places[k] = k <= most // 2 and k or n - math.min(n, most) + k
    end
    if n > most then
        table.insert(places, most // 2 + 1, false)
    end
    return places
end

-- The shown rows and columns of a tensor of two dims, on the host; nothing else leaves its device.
local function read_rows(x, rows, columns)
    for dim, most in ipairs { rows, columns } do
        local n, half = x.shape[dim], most // 2
        if n > most then
            x = tide.cat({ x:narrow(dim, 1, half), x:narrow(dim, n - (most - half) + 1, most - half) }, dim)
        end
    end
    return x:cpu()
end

-- A cell's background: blue below zero and red above where there are both, else from nothing to blue.
local function shade_of(v, low, high)
    if type(v) == "boolean" then
        v = v and 1 or 0
    end
    if v ~= v or low >= high and low == 0 then
        return v ~= v and "background:repeating-linear-gradient(45deg,#8884,#8884 3px,transparent 3px,transparent 6px)" or ""
    end
    local colour, strength = "33,113,181", 1
    if low < 0 and high > 0 then
        colour = v < 0 and "33,113,181" or "203,24,29"
        strength = math.abs(v) / math.max(-low, high)
    elseif high > low then
        strength = (v - low) / (high - low)
    end
    strength = math.min(1, math.max(0, strength))
    return string.format("background:rgba(%s,%s)", colour, fixed("%.2f", 0.75 * strength))
end

-- JupyterLab lets cells of tables break, whatever the table says: each of them says it.
local function row_html(label, places, row, paint, format)
    local cells, at = { string.format("<tr><th>%s</th>", label) }, 0
    for k, place in ipairs(places) do
        local style = ""
        if place then
            at = at + 1
            style = paint and ";" .. paint(row[at]) or ""
        end
        cells[k + 1] = string.format("<td style=\"white-space:nowrap%s\">%s</td>", style, place and number_text(row[at], format) or "⋯")
    end
    return table.concat(cells) .. "</tr>"
end

local function header_html(places)
    local cells = {}
    for k, place in ipairs(places) do
        cells[k] = string.format("<th>%s</th>", place or "⋯")
    end
    return string.format(("<thead style=\"position:sticky;top:0;background:var(--jp-layout-color0,canvas)\"><tr><th></th>%s</tr></thead>")
        , table.concat(cells))
end

-- The range of the finite numbers.
local function range_of(numbers)
    local low, high = math.huge, -math.huge
    for _, v in ipairs(numbers) do
        if v == v and math.abs(v) < math.huge then
            low, high = math.min(low, v), math.max(high, v)
        end
    end
    return low, high
end

local function numbers_of(rows)
    local numbers = {}
    for _, row in ipairs(rows) do
        for _, v in ipairs(row) do
            numbers[#numbers + 1] = type(v) == "boolean" and (v and 1 or 0) or v
        end
    end
    return numbers
end

local TABLE = "border-collapse:collapse;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;"
    .. "font-family:var(--jp-code-font-family,monospace);font-size:90%;margin:0"

--- scrolling(rows): a table of such rows, which scrolls where it is large.
function html.scrolling(rows)
    return string.format("<div style=\"max-height:28em;max-width:100%%;overflow:auto\"><table cellpadding=\"3\" style=\"%s\">%s</table></div>",
        TABLE, rows)
end

--- caption(text): what stands under a table; text is no HTML.
function html.caption(text)
    return string.format("<div style=\"opacity:0.6;font-size:90%%;font-family:var(--jp-code-font-family,monospace)\">%s</div>", escape(text))
end

-- A table of a tensor with two dims, or one.
local function grid(x, options)
    local line = x:dim() == 1
    local y = line and x:unsqueeze(1) or x
    local shown = read_rows(y, ROWS, COLUMNS)
    local rows, format = shown:tolist(), tide._print_format(shown)
    local numbers = numbers_of(rows)
    local low, high = range_of(numbers)
    local paint = options.heatmap and low <= high and function(v) return shade_of(v, low, high) end or nil
    local down, across = shown_places(y.shape[1], ROWS), shown_places(y.shape[2], COLUMNS)
    local lines, at = {}, 0
    for k, place in ipairs(down) do
        if place then
            at = at + 1
            lines[k] = row_html(line and "" or place, across, rows[at], paint, format)
        else
            lines[k] = "<tr><th>⋮</th></tr>"
        end
    end
    return html.scrolling(string.format("%s<tbody>%s</tbody>", header_html(across), table.concat(lines)))
end

-- "float32 (2, 3) cpu", with what autograd says of it.
local function describe(x)
    local parts = { string.match(tostring(x.dtype), "[%w]+$"), tostring(x.shape), tostring(x.device) }
    if x.grad_fn then
        parts[#parts + 1] = "grad_fn=" .. tostring(x.grad_fn)
    elseif x.requires_grad then
        parts[#parts + 1] = "requires_grad"
    end
    return table.concat(parts, " ")
end

-- All slices of two dims, or the first of them, each of which folds.
local function slices(x, options)
    local leading, parts, place = x:dim() - 2, {}, {}
    local shown, all = 0, 1
    for dim = 1, leading do
        place[dim], all = 1, all * x.shape[dim]
    end
    while shown < math.min(all, SLICES) do
        local slice = x
        for dim = 1, leading do
            slice = slice[place[dim]]
        end
        shown = shown + 1
        parts[shown] = string.format("<details%s><summary>[%s, :, :]</summary>%s</details>", shown <= 2 and " open" or "",
            table.concat(place, ", "), grid(slice, options))
        local dim = leading
        while dim > 0 do
            place[dim] = place[dim] + 1
            if place[dim] <= x.shape[dim] then
                break
            end
            place[dim], dim = 1, dim - 1
        end
    end
    if shown < all then
        parts[shown + 1] = string.format("<div style=\"opacity:0.6\">… %d more slices</div>", all - shown)
    end
    return table.concat(parts)
end

-- {name, text} of what all elements are like.
local function statistics(x)
    local y = (x:is_floating_point() and x:float() or x:to(tide.float64)):reshape(-1)
    local finite = y[y:isfinite()]
    local list = { { "elements", string.format("%d", x:numel()) } }
    local function add(name, value) list[#list + 1] = { name, tide._number(value, 6) } end
    if finite:numel() > 0 then
        add("min", finite:min():item())
        add("max", finite:max():item())
        add("mean", finite:mean():item())
        add("std", finite:numel() > 1 and finite:std():item() or 0.0)
        add("zeros", (finite:eq(0)):sum():item())
    end
    local nan = y:isnan():sum():item()
    local infinite = y:numel() - finite:numel() - nan
    if nan > 0 then
        add("nan", nan)
    end
    if infinite > 0 then
        add("infinite", infinite)
    end
    return list
end

local function statistics_html(x)
    local parts = {}
    for k, row in ipairs(statistics(x)) do
        parts[k] = string.format("%s <b>%s</b>", row[1], row[2])
    end
    return string.format("<div style=\"padding:2px 0\">%s</div>", table.concat(parts, " · "))
end

--- tensor(x, options): options.stats, options.heatmap.
function html.tensor(x, options)
    local function make()
        local caption = html.caption(describe(x))
        local y = x:detach()
        y = y.layout ~= "strided" and y:to_dense() or y
        if y:numel() == 0 then
            return caption
        end
        local statistics_line = options.stats and statistics_html(y) or ""
        if y:dim() == 0 then
            return string.format("<code>%s</code>", escape(tide._number(y:item()))) .. statistics_line .. caption
        end
        return (y:dim() > 2 and slices(y, options) or grid(y, options)) .. statistics_line .. caption
    end
    return tide.no_grad(make)
end

--- statistics(x): the same as one line of text.
function html.statistics(x)
    local parts = {}
    tide.no_grad(function()
        local y = x:detach()
        for k, row in ipairs(statistics(y.layout ~= "strided" and y:to_dense() or y)) do
            parts[k] = row[1] .. " " .. row[2]
        end
    end)
    return table.concat(parts, "  ")
end

-- ---- modules ----

local function count_text(n)
    local text = string.reverse((string.gsub(string.reverse((tostring(n))), "(%d%d%d)", "%1,")))
    return (string.gsub(text, "^,", ""))
end

local function parameters_of(module)
    local n, learn = 0, 0
    for _, p in ipairs(module:parameters()) do
        n = n + p:numel()
        learn = learn + (p.requires_grad and p:numel() or 0)
    end
    if n == 0 then
        return ""
    end
    return string.format(" <span style=\"opacity:0.6\">%s parameters%s</span>", count_text(n),
        learn < n and string.format(", %s to learn", count_text(learn)) or "")
end

local function fold(summary, body, open)
    return string.format("<details%s style=\"margin-left:1em\"><summary>%s</summary>%s</details>", open and " open" or "", summary, body)
end

local function module_html(module, label, depth)
    local parts = {}
    for name, child in module:named_children() do
        parts[#parts + 1] = module_html(child, string.format("<b>%s</b>: ", escape(tostring(name))), depth + 1)
    end
    local title = getmetatable(module).__name
    local extra = #parts == 0 and module:describe() or title
    local text = label .. "<code>" .. escape(extra) .. "</code>" .. parameters_of(module)
    if #parts == 0 then
        return string.format("<div style=\"margin-left:2em\">%s</div>", text)
    end
    return fold(text, table.concat(parts), depth < 2)
end

-- ---- tables ----

local function is_plain(value) return type(value) == "table" and debug.getmetatable(value) == nil end

local function is_module(value)
    local nn = rawget(tide, "nn")
    return nn and nn.is_module(value) or false
end

local function short(text)
    if #text > LONGEST then
        text = string.sub(text, 1, (utf8.offset(text, 0, LONGEST) or LONGEST) - 1) .. "…"
    end
    return text
end

local function leaf_html(value)
    local kind = type(value)
    if kind == "string" then
        return string.format("<code>%s</code>", escape(string.gsub(string.format("%q", short(value)), "\\\n", "\\n")))
    elseif kind == "number" then
        return string.format("<code>%s</code>", tide._number(value))
    end
    local ok, text = pcall(tostring, value)
    text = ok and type(text) == "string" and text or kind
    return string.format("<code>%s</code>", escape(short(string.match(text, "^[^\n]*")) .. (string.find(text, "\n", 1, true) and " …" or "")))
end

local order = { number = 1, string = 2, boolean = 3 }

local function before(a, b)
    local ta, tb = type(a), type(b)
    if ta ~= tb then
        return (order[ta] or 9) < (order[tb] or 9)
    elseif ta == "number" then
        return a < b
    end
    return ta == "string" and tide._before(a, b)
end

local function sorted_keys(t)
    local keys, n = {}, 0
    for key in next, t do
        n = n + 1
        keys[n <= SORTED and n or 1] = key -- beyond that, any
    end
    table.sort(keys, before)
    return keys, n
end

local entry_html

local function entries_html(t, state, depth)
    local parts, keys, n = {}, sorted_keys(t)
    for k, key in ipairs(keys) do
        if k > ENTRIES or state.count >= MOST then
            parts[#parts + 1] = string.format("<div style=\"margin-left:2em;opacity:0.6\">… %d more</div>", n - k + 1)
            break
        end
        state.count = state.count + 1
        local name = type(key) == "string" and escape(short(key)) or "[" .. string.gsub(leaf_html(key), "</?code>", "") .. "]"
        parts[#parts + 1] = entry_html(rawget(t, key), string.format("<b>%s</b>: ", name), state, depth)
    end
    return table.concat(parts), n
end

function entry_html(value, label, state, depth)
    if tide.is_tensor(value) and value:dim() > 0 and value.layout == "strided" then
        return fold(label .. string.format("<code>%s</code>", escape(describe(value))), html.tensor(value, {}), false)
    elseif is_module(value) then
        return module_html(value, label, depth)
    elseif is_plain(value) and next(value) ~= nil then
        if state.open[value] then
            return string.format("<div style=\"margin-left:2em\">%s<i>itself</i></div>", label)
        elseif depth < DEEPEST then
            state.open[value] = true
            local body, n = entries_html(value, state, depth + 1)
            state.open[value] = nil
            return fold(string.format("%s<span style=\"opacity:0.6\">table of %d</span>", label, n), body, depth < 1)
        end
    end
    return string.format("<div style=\"margin-left:2em\">%s%s</div>", label, leaf_html(value))
end

-- A tree is worth its place where something folds.
local function is_tree(t)
    for _, value in next, t do
        if tide.is_tensor(value) and value:dim() > 0 or is_module(value)
            or is_plain(value) and next(value) ~= nil then
            return true
        end
    end
    return false
end

--- value(v): HTML that says more of the value than its text; nil: nothing does.
function html.value(v)
    if tide.is_tensor(v) then
        return v:dim() > 0 and v:numel() > 0 and v.layout == "strided" and html.tensor(v, {}) or nil
    elseif is_module(v) then
        return module_html(v, "", 0)
    elseif is_plain(v) and is_tree(v) then
        for _, loaded in next, package.loaded do
            if rawequal(loaded, v) then
                return nil
            end
        end
        return entry_html(v, "", { open = {}, count = 0 }, 0)
    end
    return nil
end

return html
