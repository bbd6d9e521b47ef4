-- jit/compiler/lexer.lua: Lua source as tokens with their places, and the comments that hold types (`--: int, Tensor?`).
-- Texts that reach the compiler were compiled by Lua before, so that what is malformed is not diagnosed here in detail.
local lexer = {}

local KEYWORDS = {}
for word in string.gmatch("and break do else elseif end false for function goto if in local nil not or repeat return then true "
    .. "until while", "%S+") do
    KEYWORDS[word] = true
end

local SYMBOLS = {}
for symbol in string.gmatch("... << >> // == ~= <= >= :: .. + - * / % ^ # & ~ | < > = ( ) { } [ ] ; : , .", "%S+") do
    SYMBOLS[symbol] = true
end

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

local Lexer = {}
Lexer.__index = Lexer

function Lexer:add(kind, value, from)
    while self.starts[self.line + 1] and self.starts[self.line + 1] <= from do
        self.line = self.line + 1
    end
    local token = { kind = kind, value = value, line = self.line, column = from - self.starts[self.line] + 1, at = from }
    self.tokens[#self.tokens + 1] = token
end

-- A comment that begins at `at`; where the source goes on.
function Lexer:comment(at)
    local text = self.text
    local _, next_at = read_long(text, at + 2)
    local types = string.match(text, "^%-%-:%s*([^\r\n]*)", at)
    if types then
        self:add("note", types, at)
        self.notes[#self.notes + 1] = table.remove(self.tokens)
    end
    return next_at or string.find(text, "\n", at, true) or #text + 1
end

function Lexer:symbol(at)
    for length = 3, 1, -1 do
        local s = string.sub(self.text, at, at + length - 1)
        if SYMBOLS[s] then
            self:add(s, s, at)
            return at + #s
        end
    end
end

-- The token that begins at `at`; where the source goes on, or nil.
function Lexer:token(at)
    local text = self.text
    local c, value, next_at = string.sub(text, at, at), nil, nil
    if string.find(c, "[%a_]") then
        local word = string.match(text, "^[%w_]+", at)
        self:add(KEYWORDS[word] and word or "name", word, at)
        return at + #word
    elseif string.find(c, "%d") or string.find(text, "^%.%d", at) then
        value, next_at = read_number(text, at)
        self:add("number", value, at)
        return next_at
    elseif string.find(text, "^%-%-", at) then
        return self:comment(at)
    elseif c == "\"" or c == "'" then
        value, next_at = read_quoted(text, at)
    else
        value, next_at = read_long(text, at)
        if not value then
            return self:symbol(at)
        end
    end
    if value then
        self:add("string", value, at)
    end
    return next_at
end

--- tokens(text): a list of {kind, value, line, column, at}: kind is "name", "number", "string", "end" or the keyword or symbol
--- itself. And a list of the comments that hold types, {line, column, text}. nil and where, for what is no Lua.
function lexer.tokens(text)
    local self = setmetatable({ text = text, tokens = {}, notes = {}, starts = lines_of(text), line = 1 }, Lexer)
    local at = string.sub(text, 1, 1) == "#" and (string.find(text, "\n", 1, true) or #text + 1) or 1
    while true do
        local from = string.find(text, "%S", at)
        if not from then
            break
        end
        at = self:token(from)
        if not at then
            return nil, from
        end
    end
    self:add("end of text", nil, #text + 1)
    return self.tokens, self.notes
end

return lexer
