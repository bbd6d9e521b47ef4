-- jit/compiler/lexer.lua: Lua source as tokens with their places, and the comments that hold types (`--: int, Tensor?`).
-- Texts that reach the compiler were compiled by Lua before, so that what is malformed is not diagnosed here in detail.
local lexer = {}

local KEYWORDS = {}
for word in string.gmatch("and break do else elseif end false for function goto if in local nil not or repeat return then true "
    .. "until while", "%S+") do
    KEYWORDS[word] = true
end

-- Longest first.
local SYMBOLS = { "...", "<<", ">>", "//", "==", "~=", "<=", ">=", "::", "..", "+", "-", "*", "/", "%", "^", "#", "&", "~",
    "|", "<", ">", "=", "(", ")", "{", "}", "[", "]", ";", ":", ",", "." }

local ESCAPES = { a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v", ["\\"] = "\\", ["\""] = "\"",
    ["'"] = "'", ["\n"] = "\n" }

-- The text of a quoted string that begins at `at`, and where the source goes on.
local function read_quoted(text, at)
    local quote, parts = string.sub(text, at, at), {}
    local from = at + 1
    while true do
        local stop = string.find(text, "[\\\"'\n]", from)
        if not stop then
            return nil
        end
        local c = string.sub(text, stop, stop)
        parts[#parts + 1] = string.sub(text, from, stop - 1)
        from = stop + 1
        if c == quote then
            return table.concat(parts), from
        elseif c ~= "\\" then
            parts[#parts + 1] = c
        else
            local e = string.sub(text, from, from)
            local hex = string.match(text, "^x(%x%x)", from)
            local code = string.match(text, "^u{(%x+)}", from)
            local digits = string.match(text, "^%d%d?%d?", from)
            if hex then
                parts[#parts + 1], from = string.char(tonumber(hex, 16)), from + 3
            elseif code then
                parts[#parts + 1], from = utf8.char(tonumber(code, 16)), from + #code + 3
            elseif digits then
                parts[#parts + 1], from = string.char(tonumber(digits)), from + #digits
            elseif e == "z" then
                from = string.find(text, "%S", from + 1) or #text + 1
            else
                parts[#parts + 1], from = ESCAPES[e] or e, from + 1
            end
        end
    end
end

-- A long bracket that begins at `at`: its text and where the source goes on; nil: there is none.
local function read_long(text, at)
    local level = string.match(text, "^%[(=*)%[", at)
    if not level then
        return nil
    end
    local from = at + #level + 2
    local stop, last = string.find(text, "]" .. level .. "]", from, true)
    if not stop then
        return nil
    end
    local body = string.sub(text, from, stop - 1)
    return (string.gsub(body, "^\r?\n", "")), last + 1
end

local function read_number(text, at)
    local word = string.match(text, "^0[xX][%x%.]*[pP][+-]?%d+", at) or string.match(text, "^0[xX][%x%.]+", at)
        or string.match(text, "^[%d%.]+[eE][+-]?%d+", at) or string.match(text, "^[%d%.]+", at)
    return tonumber(word), at + #word
end

-- Where lines begin, to turn a position into line and column.
local function lines_of(text)
    local starts, at = { 1 }, 1
    while true do
        local stop = string.find(text, "\n", at, true)
        if not stop then
            return starts
        end
        at = stop + 1
        starts[#starts + 1] = at
    end
end

--- tokens(text): a list of {kind, value, line, column}: kind is "name", "number", "string", "end" or the keyword or symbol
--- itself. And a list of the comments that hold types, {line, column, text}. nil and where, for what is no Lua.
function lexer.tokens(text)
    local tokens, notes, starts, line, at = {}, {}, lines_of(text), 1, 1
    local function add(kind, value, from)
        while starts[line + 1] and starts[line + 1] <= from do
            line = line + 1
        end
        tokens[#tokens + 1] = { kind = kind, value = value, line = line, column = from - starts[line] + 1 }
    end
    if string.sub(text, 1, 1) == "#" then
        at = string.find(text, "\n", 1, true) or #text + 1
    end
    while true do
        at = string.find(text, "%S", at)
        if not at then
            break
        end
        local c = string.sub(text, at, at)
        if string.find(c, "[%a_]") then
            local word = string.match(text, "^[%w_]+", at)
            add(KEYWORDS[word] and word or "name", word, at)
            at = at + #word
        elseif string.find(c, "%d") or string.find(text, "^%.%d", at) then
            local value, next_at = read_number(text, at)
            add("number", value, at)
            at = next_at
        elseif c == "\"" or c == "'" then
            local value, next_at = read_quoted(text, at)
            if not value then
                return nil, at
            end
            add("string", value, at)
            at = next_at
        elseif string.sub(text, at, at + 1) == "--" then
            local _, next_at = read_long(text, at + 2)
            local stop = next_at or string.find(text, "\n", at, true) or #text + 1
            local types = string.match(text, "^%-%-:%s*([^\r\n]*)", at)
            if types then
                add("note", types, at)
                notes[#notes + 1] = table.remove(tokens)
            end
            at = stop
        else
            local value, next_at = read_long(text, at)
            local symbol
            if value then
                add("string", value, at)
                at = next_at
            else
                for _, s in ipairs(SYMBOLS) do
                    if string.sub(text, at, at + #s - 1) == s then
                        symbol = s
                        break
                    end
                end
                if not symbol then
                    return nil, at
                end
                add(symbol, symbol, at)
                at = at + #symbol
            end
        end
    end
    add("end of text", nil, #text + 1)
    return tokens, notes
end

return lexer
