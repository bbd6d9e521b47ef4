-- display: values as text for a person: tables with sorted keys, within a width, a depth and a
-- length; strings quoted; functions by signature or place. User code (__tostring) runs protected.

local names = import "names"

local display = {}

local DEEPEST = 6 -- levels of tables
local LONGEST = 100 -- entries of one table
local MOST = 2000 -- entries in all
local SORTED = 20000 -- keys that are sorted at most
local STRING = 500 -- bytes of a string inside a table

local escapes = {["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r", ["\a"] = "\\a",
                 ["\b"] = "\\b", ["\f"] = "\\f", ["\v"] = "\\v", ["\0"] = "\\0"}

local function escape_byte(c)
    return escapes[c] or string.format("\\x%02X", string.byte(c))
end

-- Bytes that are no UTF-8 as \xNN.
local function escape_invalid(s)
    local out, at = {}, 1
    while at <= #s do
        local ok, bad = utf8.len(s, at)
        if ok then
            out[#out + 1] = string.sub(s, at)
            break
        end
        out[#out + 1] = string.sub(s, at, bad - 1)
        out[#out + 1] = string.format("\\x%02X", string.byte(s, bad))
        at = bad + 1
    end
    return table.concat(out)
end

-- What a terminal obeys or draws in another order than it is written: U+0080 to U+009F, marks and overrides of
-- direction, separators of lines, the byte order mark.
local function is_unseen(code)
    return code >= 0x80 and code <= 0x9F or code == 0x61C or code == 0x200E or code == 0x200F
        or code >= 0x2028 and code <= 0x202E or code >= 0x2066 and code <= 0x2069 or code == 0xFEFF
end

local UNSEEN = "[\xC2\xD8\xE2\xEF][\x80-\xBF]+" -- how all of these begin

-- UTF-8 with those as \u{NN}.
local function escape_unseen(s)
    return (string.gsub(s, UNSEEN, function(c)
        local ok, code = pcall(utf8.codepoint, c)
        return ok and is_unseen(code) and string.format("\\u{%X}", code) or nil
    end))
end

-- Bytes without controls as what may be shown.
local function shown_text(s)
    return escape_unseen(utf8.len(s) and s or escape_invalid(s))
end

-- Any bytes as text on one line.
local function one_line_text(s)
    return shown_text((string.gsub(s, "[\0-\31\127]", escape_byte)))
end

-- A string as it may be written in Lua.
function display.quote(s)
    local quoted = string.gsub(s, "([\\\0-\31\127])([0-9]?)", function(c, digit)
        -- \0 before a digit would read as another byte
        return (c == "\0" and digit ~= "" and "\\x00" or escape_byte(c)) .. digit
    end)
    quoted = shown_text(quoted)
    if string.find(quoted, '"', 1, true) then
        if not string.find(quoted, "'", 1, true) then
            return "'" .. quoted .. "'"
        end
        quoted = string.gsub(quoted, '"', '\\"')
    end
    return '"' .. quoted .. '"'
end

local reserved = {}
for _, word in ipairs(keywords) do
    reserved[word] = true
end

local function is_identifier(s)
    return #s < 80 and string.find(s, "^[A-Za-z_][A-Za-z0-9_]*$") and not reserved[s]
end

-- tostring with the raw form where it fails. Stops (interrupts) pass through this pcall.
local function safe_tostring(value)
    if type(value) == "number" then
        return number(value)
    end
    local ok, text = pcall(tostring, value)
    if ok then
        return text
    end
    text = type(text) == "string" and text or type(text)
    return string.format("<%s: %p: error in __tostring: %s>", type(value), value, text)
end

local function place_of(f)
    local info = debug.getinfo(f, "S")
    if info.what == "C" then
        return nil
    end
    return info.short_src .. ":" .. info.linedefined
end

local function function_text(f, nested)
    local doc = names.doc(f)
    if doc and doc.signature then
        return nested and "<function " .. string.match(doc.signature, "^[^%(%s]*") .. ">" or doc.signature
    end
    local place = place_of(f)
    local name = names.global_name(f)
    if place then
        local text = "function " .. (name or "") .. names.parameters(f)
        if nested then
            return "<" .. (name and text or "function " .. place) .. ">"
        end
        return text .. "  -- " .. place
    end
    name = name and "function " .. name or string.format("function: %p", f)
    return nested and "<" .. name .. ">" or name .. "  -- built in"
end

local function has_meta(value, event)
    local mt = names.meta(value)
    return mt and rawget(mt, event) ~= nil
end

-- Text of something inside a table that takes several lines: its first line, shortened.
local function one_line(value)
    local text = safe_tostring(value)
    if not string.find(text, "\n", 1, true) then
        return text
    end
    if names.is_tensor(value) then
        local ok, shape = pcall(function()
            local sizes = {}
            for i, size in ipairs(value.shape) do
                sizes[i] = string.format("%d", size)
            end
            return table.concat(sizes, "x")
        end)
        if ok then
            return "<tensor " .. (shape == "" and "scalar" or shape) .. ">"
        end
    end
    return string.match(text, "^[^\n]*") .. " …"
end

-- Do texts stand in this order for a reader: numbers in them by their value?
local function reads_before(a, b)
    local at = 1
    while true do
        local text_a, digits_a, next_a = string.match(a, "^(%D*)(%d*)()", at)
        local text_b, digits_b = string.match(b, "^(%D*)(%d*)", at)
        if text_a ~= text_b or digits_a == digits_b and digits_a == "" then
            return before(a, b)
        elseif digits_a ~= digits_b then
            local short_a, short_b = string.gsub(digits_a, "^0+", ""), string.gsub(digits_b, "^0+", "")
            if #short_a ~= #short_b then
                return #short_a < #short_b
            end
            return before(a, b)
        end
        at = next_a
    end
end

local order = {number = 1, string = 2, boolean = 3}

local function key_less(a, b)
    local ta, tb = type(a), type(b)
    if ta ~= tb then
        return (order[ta] or 9) < (order[tb] or 9)
    end
    if ta == "number" then
        return a < b
    elseif ta == "string" then
        return reads_before(a, b)
    elseif ta == "boolean" then
        return a and not b
    end
    return false
end

-- Is the key a private name of a module?
local function is_hidden(key, module)
    return module and module ~= "_G" and type(key) == "string" and string.sub(key, 1, 1) == "_"
end

-- The keys beyond 1..n in order, and how many were left out. `module`: the name of a loaded one.
local function other_keys(t, n, module)
    local keys, left = {}, 0
    for key in next, t do
        if not (math.type(key) == "integer" and key >= 1 and key <= n) and not is_hidden(key, module) then
            if #keys < SORTED then
                keys[#keys + 1] = key
            else
                left = left + 1
            end
        end
    end
    table.sort(keys, key_less)
    return keys, left
end

local format, is_text

local function key_text(key, state)
    if type(key) == "string" then
        return is_identifier(key) and key or "[" .. display.quote(key) .. "]"
    end
    return "[" .. format(key, state, 0, DEEPEST) .. "]"
end

-- The entries of a table as texts; whether all of them are plain values of a list.
local function entries_of(t, state, indent, depth)
    local texts, compact = {}, true
    local n = rawlen(t)
    local left = 0
    local function add(prefix, value)
        if #texts >= LONGEST or state.count >= MOST then
            left = left + 1
            return
        end
        state.count = state.count + 1
        compact = compact and prefix == "" and type(value) ~= "table"
        texts[#texts + 1] = prefix .. format(value, state, indent + 2, depth + 1)
    end
    for i = 1, n do
        if #texts >= LONGEST or state.count >= MOST then
            left = n - i + 1
            break
        end
        add("", rawget(t, i))
    end
    local keys, unsorted = other_keys(t, n, state.modules[t])
    for _, key in ipairs(keys) do
        if #texts >= LONGEST or state.count >= MOST then
            left = left + 1
        else
            add(key_text(key, state) .. " = ", rawget(t, key))
        end
    end
    return texts, compact, left + unsorted
end

-- A list of short values: as many on a line as fit.
local function fill(texts, pad, width)
    local lines, line = {}, ""
    for i, text in ipairs(texts) do
        local piece = text .. (i < #texts and "," or "")
        if line ~= "" and #pad + #line + 1 + #piece > width then
            lines[#lines + 1] = pad .. line
            line = ""
        end
        line = line == "" and piece or line .. " " .. piece
    end
    lines[#lines + 1] = pad .. line
    return table.concat(lines, "\n")
end

local function table_text(t, state, indent, depth)
    if state.path[t] then
        return "<cycle>"
    elseif depth > 0 and state.modules[t] then
        return "<module " .. state.modules[t] .. ">"
    elseif depth >= DEEPEST then
        return next(t) == nil and "{}" or "{…}"
    end
    state.path[t] = true
    local texts, compact, left = entries_of(t, state, indent, depth)
    state.path[t] = nil
    if left > 0 then
        texts[#texts + 1] = "… " .. left .. " more"
    end
    local name = names.meta(t)
    name = name and rawget(name, "__name")
    name = type(name) == "string" and one_line_text(name) .. " " or ""
    local flat = name .. "{" .. table.concat(texts, ", ") .. "}"
    if utf8.len(flat) and utf8.len(flat) + indent <= state.width and not string.find(flat, "\n", 1, true) then
        return flat
    end
    local pad = string.rep(" ", indent + 2)
    local body
    if compact then
        body = fill(texts, pad, state.width)
    else
        body = pad .. table.concat(texts, ",\n" .. pad)
    end
    return name .. "{\n" .. body .. "\n" .. string.rep(" ", indent) .. "}"
end

function format(value, state, indent, depth)
    local kind = type(value)
    if kind == "string" then
        if depth == 0 and not state.raw and is_text(value) then
            return value
        elseif depth > 0 and #value > STRING then
            local cut = utf8.offset(value, 0, STRING) or STRING
            return display.quote(string.sub(value, 1, cut - 1)) .. "…"
        end
        return display.quote(value)
    elseif kind == "function" then
        return function_text(value, depth > 0)
    elseif kind == "table" and (state.raw or not has_meta(value, "__tostring")) then
        return table_text(value, state, indent, depth)
    elseif kind == "table" or kind == "userdata" then
        if state.raw and not names.is_tensor(value) then
            return string.format("<%s: %p>", kind, value)
        end
        return depth > 0 and one_line(value) or safe_tostring(value)
    end
    return safe_tostring(value)
end

-- Is the string a text that tide made for a person to read?
function is_text(value)
    local tide = names.tide()
    local texts = tide and tide._loaded["notebook.text"]
    return type(texts) == "table" and texts.is(value)
end

-- Text of a value within so many columns. `raw`: no user code (__tostring) is run.
function display.describe(value, width, raw)
    local modules = {}
    for name, module in next, package.loaded do
        if type(module) == "table" and type(name) == "string" then
            modules[module] = name
        end
    end
    local state = {width = width, raw = raw, count = 0, path = {}, modules = modules}
    return format(value, state, 0, 0)
end

return display
