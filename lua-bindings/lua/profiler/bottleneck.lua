-- profiler/bottleneck.lua: what `tide --bottleneck` runs around a script, once for each of three ways to watch it, and the page
-- that is made of what they saw. A part hands over to the page through a file of JSON.
local tide = ...
local bottleneck = {}

local MOST_EVENTS, ROWS = 1000000, 8
local WORTH = 0.05 -- of the time: less is not worth a line

-- ---- a part: around the script ----

local OPTIONS = {
    operators = { with_stack = true, max_events = MOST_EVENTS },
    functions = { functions = true, record_shapes = false, max_events = MOST_EVENTS },
    memory = { with_stack = true, profile_memory = true, record_shapes = false, max_events = MOST_EVENTS },
}

local running

function bottleneck.begin(part)
    running = tide.profiler.profile(OPTIONS[part] or error(string.format("no part is called '%s'", part), 0))
end

-- The lines of the adviser.
local function advice_of(profile)
    local lines = {}
    for k, item in ipairs(profile:advice()) do
        lines[k] = tostring(item)
    end
    return lines
end

function bottleneck.finish(part, path)
    local profile = running
    running = nil
    profile:stop()
    local seen = { totals = profile:_totals() }
    if part == "functions" then
        seen.rows = tide._require("files.json").list(profile:_rows(1000))
    else
        seen.places = tide._require("files.json").list(profile:_places(200))
        seen.rows = tide._require("files.json").list(profile:_rows(1000))
    end
    if part == "operators" then
        seen.advice = tide._require("files.json").list(advice_of(profile))
    end
    local file = assert(io.open(path, "w"))
    assert(file:write(tide._require("files.json").encode(seen, part, true)))
    assert(file:close())
end

-- ---- the page ----

local function time_text(ns)
    for _, unit in ipairs { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "µs" } } do
        if ns >= unit[1] then
            return string.format("%.3g %s", ns / unit[1], unit[2])
        end
    end
    return string.format("%.0f ns", ns)
end

local function bytes_text(n)
    for _, unit in ipairs { { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" } } do
        if n >= unit[1] then
            return string.format("%.1f %s", n / unit[1], unit[2])
        end
    end
    return string.format("%d bytes", n)
end

local function width_of(text) return utf8.len(text) or #text end

local function pad(text, width) return text .. string.rep(" ", width - width_of(text)) end

-- Rows of texts as columns, the first to the left.
local function columns(out, rows)
    local widths = {}
    for _, row in ipairs(rows) do
        for k, text in ipairs(row) do
            widths[k] = math.max(widths[k] or 0, width_of(text))
        end
    end
    for _, row in ipairs(rows) do
        local parts = {}
        for k, text in ipairs(row) do
            parts[k] = k == 1 and pad(text, widths[k]) or string.rep(" ", widths[k] - width_of(text)) .. text
        end
        out[#out + 1] = "  " .. table.concat(parts, "  ")
    end
end

local function share_text(part, whole) return string.format("%.0f %%", 100 * part / math.max(whole, 1)) end

local function rows_of_kind(seen, wanted)
    local list = {}
    for _, row in ipairs(seen.rows) do
        if wanted[row.kind] then
            list[#list + 1] = row
        end
    end
    return list
end

local function sum_of(list, field)
    local sum = 0
    for _, entry in ipairs(list) do
        sum = sum + entry[field]
    end
    return sum
end

local function functions_section(out, seen)
    local rows = rows_of_kind(seen, { ["function"] = true })
    local wall, lines = seen.totals.wall_ns, { { "Functions of the script", "calls", "own", "total", "own share" } }
    for k = 1, math.min(ROWS, #rows) do
        local row = rows[k]
        lines[#lines + 1] = { row.name, string.format("%d", row.calls), time_text(row.self_ns), time_text(row.total_ns), share_text(row.self_ns, wall) }
    end
    if #rows == 0 then
        lines[2] = { "(none was called)", "", "", "", "" }
    end
    columns(out, lines)
end

local function operators_section(out, seen)
    local wall, lines = seen.totals.wall_ns, { { "Operators by line", "calls", "time", "share" } }
    for k = 1, math.min(ROWS, #seen.places) do
        local place = seen.places[k]
        lines[#lines + 1] = { (place.line or "?") .. " " .. place.name, string.format("%d", place.calls), time_text(place.ns), share_text(place.ns, wall) }
    end
    if #seen.places == 0 then
        lines[2] = { "(none was called)", "", "", "" }
    end
    columns(out, lines)
end

local function by_bytes(places)
    local list = table.move(places, 1, #places, 1, {})
    table.sort(list, function(a, b) return a.bytes > b.bytes or a.bytes == b.bytes and a.ns > b.ns end)
    return list
end

local function memory_section(out, seen)
    local totals = seen.totals
    if totals.peak_bytes == 0 then
        out[#out + 1] = "  Memory: no tensor took more than 64 bytes"
        return
    end
    out[#out + 1] = string.format("  Memory: at most %s, reached at %s; taken in all (and mostly given back):", bytes_text(totals.peak_bytes),
        totals.peak_line and totals.peak_line .. " " .. totals.peak_name or "no operator of a line")
    local lines, list = {}, by_bytes(seen.places)
    for k = 1, math.min(ROWS // 2, #list) do
        if list[k].bytes > 0 then
            lines[#lines + 1] = { "  " .. (list[k].line or "?") .. " " .. list[k].name, bytes_text(list[k].bytes) }
        end
    end
    columns(out, lines)
end

-- ---- what to change first ----

local SMALL_NS = 5000 -- a call that takes less is dispatch rather than work

local function add_places(found, seen)
    for k = 1, math.min(3, #seen.places) do
        local place = seen.places[k]
        local each = place.ns / math.max(place.calls, 1)
        local what = place.calls > 100 and each < SMALL_NS
            and "calls so small that they are mostly dispatch: one call over all of them (a batch, tide.foreach)"
            or "kernels: fewer elements, a smaller dtype, or the same not computed twice"
        found[#found + 1] = { share = place.ns / seen.totals.wall_ns, text = string.format("%s: %d × %s, %s each: %s", place.line or "?",
            place.calls, place.name, time_text(each), what) }
    end
end

local function add_functions(found, seen)
    local row = rows_of_kind(seen, { ["function"] = true })[1]
    if row then
        found[#found + 1] = { share = row.self_ns / seen.totals.wall_ns,
            text = string.format("%s: %s in Lua itself, outside operators: what it does element by element belongs into operators", row.name,
                time_text(row.self_ns)) }
    end
end

local KINDS = { collector = "collecting garbage: make fewer tensors in the loop (in-place forms, out=)",
    data = "loading data: load once, before the loop" }

local function add_kinds(found, seen)
    for kind, what in pairs(KINDS) do
        local spent = sum_of(rows_of_kind(seen, { [kind] = true }), "self_ns")
        found[#found + 1] = { share = spent / seen.totals.wall_ns, text = string.format("%s in %s", time_text(spent), what) }
    end
end

local function own_findings(seen)
    local found, worth = {}, {}
    add_places(found, seen.operators)
    add_functions(found, seen.functions)
    add_kinds(found, seen.operators)
    table.sort(found, function(a, b) return a.share > b.share or a.share == b.share and a.text < b.text end)
    for _, entry in ipairs(found) do
        if entry.share >= WORTH then
            worth[#worth + 1] = string.format("%.0f %% of the time: %s", 100 * math.min(entry.share, 1), entry.text)
        end
    end
    return worth
end

local function memory_finding(totals)
    return totals.peak_bytes >= 1 << 20 and string.format("memory is at its peak of %s at %s%s: what is alive there?",
        bytes_text(totals.peak_bytes), totals.peak_line or "a place without a line", totals.peak_name and " (" .. totals.peak_name .. ")" or "")
end

-- What the adviser found, then what was found here; memory never behind the third place, the last that is shown.
local function advice_section(out, seen)
    local list = table.move(seen.operators.advice or {}, 1, #(seen.operators.advice or {}), 1, {})
    for _, text in ipairs(own_findings(seen)) do
        list[#list + 1] = text
    end
    local memory = memory_finding(seen.memory.totals)
    if memory then
        table.insert(list, math.min(#list + 1, 3), memory)
    end
    out[#out + 1] = #list > 0 and "To change first:" or "Nothing takes enough of the time to be worth a change."
    for k = 1, math.min(3, #list) do
        out[#out + 1] = string.format("  %d. %s", k, list[k])
    end
end

local function read_part(path)
    local file = io.open(path)
    local text = file and file:read("a")
    if file then
        file:close()
    end
    local ok, seen = pcall(tide._require("files.json").decode, text or "")
    return ok and type(seen) == "table" and seen or nil
end

-- What a line says of a part that was too long to be kept whole; nil: it was not.
local function loss_of(part, totals)
    return totals.evicted > 0 and string.format(("with %s recorded, the last %d of %d events are kept, of the last %s: calls, times and shares are theirs")
        , part, totals.events, totals.events + totals.evicted, time_text(totals.wall_ns + totals.loading_ns))
end

-- The page; nil where nothing was recorded. `codes` are the runs' exit codes, `paths` their files.
function bottleneck.page(script, paths, codes)
    local seen, out, walls = {}, {}, {}
    for _, part in ipairs { "operators", "functions", "memory" } do
        seen[part] = read_part(paths[part])
        if not seen[part] then
            return nil
        end
        walls[#walls + 1] = string.format("%s with %s recorded", time_text(seen[part].totals.all_ns), part)
    end
    if codes.operators ~= 0 and seen.operators.totals.events + seen.functions.totals.events == 0 then
        return nil
    end
    out[1] = string.format("---- %s: %s", script, table.concat(walls, ", "))
    for _, part in ipairs { "operators", "functions", "memory" } do
        out[#out + 1] = loss_of(part, seen[part].totals) or nil
    end
    if seen.operators.totals.loading_ns > 1e6 then
        out[#out + 1] = string.format("loading of libraries and modules, and first touches of memory, took %s more, which is left out",
            time_text(seen.operators.totals.loading_ns))
    end
    for _, part in ipairs { "operators", "functions", "memory" } do
        if codes[part] ~= codes.operators then
            out[#out + 1] = string.format("the run with %s recorded ended with code %d, the first with %d", part, codes[part], codes.operators)
        end
    end
    if codes.operators ~= 0 then
        out[#out + 1] = string.format("the script ended with code %d: this is what it did until then", codes.operators)
    end
    for _, section in ipairs { { functions_section, "functions" }, { operators_section, "operators" }, { memory_section, "memory" } } do
        out[#out + 1] = ""
        section[1](out, seen[section[2]])
    end
    out[#out + 1] = ""
    advice_section(out, seen)
    return table.concat(out, "\n") .. "\n"
end

return bottleneck
