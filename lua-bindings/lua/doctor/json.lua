-- doctor/json.lua: texts of JSON for `tide --doctor FILE`: one pass over a file of any length in little memory, which
-- finds where it is broken, by line and column; and what notebooks, traces and other texts hold.
local json = {}

local MAX_DEPTH, MAX_KEY, MAX_NUMBER, MAX_KINDS = 256, 200, 400, 200
local byte = string.byte
local WINDOW <const> = 1 << 12 -- a token but a string lies in so many bytes

-- Where a scan stands: `text` from `at` on is not read yet; `lines` before it end at `line_start` bytes
-- of the file; of the bytes of its line that are behind it `wide` begin no character.
local Scanner = {}
Scanner.__index = Scanner

-- read(): the next piece of the file, nil at its end.
local function new_scanner(read)
    return setmetatable({ read = read, text = "", at = 1, before = 0, lines = 0, line_start = 0, wide = 0, kinds = {}, keys = {},
        counts = {}, depth = 0 }, Scanner)
end

-- Lines are counted in text that is left behind.
function Scanner:forget()
    local from, text = 1, self.text
    while true do
        local found = string.find(text, "\n", from, true)
        if not found or found >= self.at then
            break
        end
        self.lines, self.line_start, self.wide, from = self.lines + 1, self.before + found, 0, found + 1
    end
    local _, wide = string.gsub(string.sub(text, from, self.at - 1), "[\x80-\xBF]", "")
    self.wide = self.wide + wide
    self.before = self.before + self.at - 1
    self.text, self.at = string.sub(text, self.at), 1
end

function Scanner:fill()
    while not self.done and #self.text - self.at < WINDOW do
        local piece = self.read()
        if not piece then
            self.done = true
        else
            self:forget()
            self.text = self.text .. piece
        end
    end
end

function Scanner:fail(what)
    self:forget()
    local column = self.before - self.line_start - self.wide + 1
    local cut = self.done and self.text == ""
    error({ json = string.format("%s at line %d, column %d", cut and "the text ends early: " .. what or what,
        self.lines + 1, column) }, 0)
end

-- The byte of the next token, which is read whole; nil at the end.
function Scanner:next_byte()
    if #self.text - self.at < WINDOW and not self.done then
        self:fill()
    end
    local c = byte(self.text, self.at)
    while c and c <= 32 or not c and not self.done do
        self.at = string.find(self.text, "[^ \t\r\n]", self.at) or #self.text + 1
        self:fill()
        c = byte(self.text, self.at)
        if c and c < 32 and c ~= 10 and c ~= 9 and c ~= 13 then
            break
        end
    end
    return c
end

local escapes = { ['"'] = true, ["\\"] = true, ["/"] = true, b = true, f = true, n = true, r = true, t = true }

-- The text of a string, its beginning where it is long; escapes stay as they stand.
function Scanner:string()
    local short, behind = string.match(self.text, '^"([^%c"\\]*)"()', self.at)
    if short then
        self.at = behind
        return #short <= MAX_KEY and short or string.sub(short, 1, MAX_KEY)
    end
    local kept, held = {}, 0
    self.at = self.at + 1
    while true do
        self:fill()
        local stop = string.find(self.text, '[%c"\\]', self.at)
        local piece = string.sub(self.text, self.at, (stop or #self.text + 1) - 1)
        if held < MAX_KEY then
            kept[#kept + 1], held = string.sub(piece, 1, MAX_KEY), held + #piece
        end
        self.at = self.at + #piece
        self:fill()
        local c = stop and string.sub(self.text, self.at, self.at)
        if c == '"' then
            self.at = self.at + 1
            return string.sub(table.concat(kept), 1, MAX_KEY)
        elseif c == "\\" then
            local next = string.sub(self.text, self.at + 1, self.at + 1)
            if not (escapes[next] or string.find(self.text, "^u%x%x%x%x", self.at + 1)) then
                self:fail("an escape that JSON has not")
            end
            self.at = self.at + (next == "u" and 6 or 2)
        elseif c == "\127" then
            self.at = self.at + 1
        elseif c then
            self:fail("a control character within a string")
        elseif self.done and self.at > #self.text then
            self:fail("a string has no end")
        end
    end
end

local function is_number(text)
    local rest = string.match(text, "^%-?0(.*)$") or string.match(text, "^%-?[1-9]%d*(.*)$")
    rest = rest and (string.match(rest, "^%.%d+(.*)$") or rest)
    rest = rest and (string.match(rest, "^[eE][+-]?%d+(.*)$") or rest)
    return rest == ""
end

function Scanner:scalar()
    local word = string.match(self.text, "^%a+", self.at)
    if word then
        if word ~= "true" and word ~= "false" and word ~= "null" then
            self:fail(word == "NaN" and "NaN, which JSON has not," or "a value expected")
        end
        self.at = self.at + #word
        return word
    end
    local digits, behind = string.match(self.text, "^(-?[1-9]%d*)()[,%]}%s]", self.at)
    if digits and #digits <= MAX_NUMBER then
        self.at = behind
        return digits
    end
    local number = string.match(self.text, "^[-+%.%deE]+", self.at)
    if not number or #number > MAX_NUMBER or not is_number(number) then
        self:fail(number and string.find(number, "%d") and "no number of JSON" or "a value expected")
    end
    self.at = self.at + #number
    return number
end

function Scanner:open(kind)
    if self.depth == MAX_DEPTH then
        self:fail("nested more than 256 deep")
    end
    self.depth = self.depth + 1
    self.kinds[self.depth], self.keys[self.depth], self.counts[self.depth] = kind, nil, 0
    self.at = self.at + 1
end

local QUOTE <const>, COMMA <const>, COLON <const>, BRACE <const>, BRACKET <const> = 34, 44, 58, 123, 91
local CLOSING <const> = { object = 125, array = 93 }

-- The comma, the key and the colon before an entry; false where the list has ended.
function Scanner:begin_entry()
    local depth = self.depth
    local kind, count = self.kinds[depth], self.counts[depth]
    local c = self:next_byte()
    if c == CLOSING[kind] then
        self.at, self.depth = self.at + 1, depth - 1
        return false
    elseif count > 0 then
        if c ~= COMMA then
            self:fail(kind == "object" and "',' or '}' expected" or "',' or ']' expected")
        end
        self.at = self.at + 1
        c = self:next_byte()
    end
    self.counts[depth] = count + 1
    if kind == "array" then
        self.keys[depth] = count + 1
        return true
    elseif c ~= QUOTE then
        self:fail("a key in quotes expected")
    end
    local key, behind = string.match(self.text, '^"([^%c"\\]*)":()', self.at)
    if key and #key <= MAX_KEY then
        self.keys[depth], self.at = key, behind
        return true
    end
    self.keys[depth] = self:string()
    if self:next_byte() ~= COLON then
        self:fail("':' expected")
    end
    self.at = self.at + 1
    return true
end

-- One value, told to visit(scanner, kind, text); lists are told when they open.
function Scanner:value(visit)
    local c = self:next_byte()
    if c == BRACE or c == BRACKET then
        local kind = c == BRACE and "object" or "array"
        visit(self, kind)
        self:open(kind)
    elseif c == QUOTE then
        visit(self, "string", self:string())
    else
        visit(self, "scalar", self:scalar())
    end
end

--- scan(read, visit): goes through a whole text; visit(scanner, kind, text) at each value, where scanner.keys[1] to
--- keys[depth] say what it belongs to. nil, or where the text is broken.
function json.scan(read, visit)
    local s = new_scanner(read)
    local ok, problem = pcall(function()
        s:next_byte()
        if string.find(s.text, "^\xEF\xBB\xBF", s.at) then
            s:fail("a byte order mark, which JSON has not,")
        end
        s:value(visit)
        while s.depth > 0 do
            if s:begin_entry() then
                s:value(visit)
            end
        end
        if s:next_byte() then
            s:fail("more behind the value")
        end
    end)
    if ok then
        return nil
    elseif type(problem) == "table" and problem.json then
        return problem.json
    end
    error(problem, 0)
end

-- ---- what a text holds ----

local function count(into, name)
    if into[name] or (into.n or 0) < MAX_KINDS then
        into.n = (into.n or 0) + (into[name] and 0 or 1)
        into[name] = (into[name] or 0) + 1
    end
end

local function told(counts)
    local names = {}
    for name in pairs(counts) do
        if name ~= "n" then
            names[#names + 1] = name
        end
    end
    table.sort(names, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b end)
    local parts = {}
    for k = 1, math.min(#names, 8) do
        parts[k] = string.format("%d %s", counts[names[k]], names[k])
    end
    return table.concat(parts, ", ") .. (#names > 8 and ", …" or "")
end

-- What is gathered while a text is scanned, by the path of a value.
local function new_survey()
    local survey = { top = {}, ntop = 0, cells = {}, phases = {}, nevents = 0, noutputs = 0, values = {} }
    local function event_value(keys, depth, base, kind, text)
        if depth == base and kind == "object" then
            survey.nevents = survey.nevents + 1
        elseif depth == base + 1 and keys[base + 1] == "ph" and kind == "string" then
            count(survey.phases, text)
        end
    end
    function survey.visit(s, kind, text)
        local keys, depth = s.keys, s.depth
        if depth == 0 then
            survey.kind = kind
        elseif survey.kind == "array" then
            survey.ntop = keys[1]
            event_value(keys, depth, 1, kind, text)
        elseif depth == 1 then
            survey.ntop = survey.ntop + 1
            if survey.ntop <= 12 or keys[1] == "traceEvents" or keys[1] == "cells" or keys[1] == "nbformat" then
                survey.top[keys[1]] = kind
                survey.values[keys[1]] = text
            end
        elseif keys[1] == "traceEvents" then
            event_value(keys, depth, 2, kind, text)
        elseif keys[1] == "cells" and depth == 3 and keys[3] == "cell_type" then
            count(survey.cells, text or kind)
        elseif keys[1] == "cells" and depth == 4 and keys[3] == "outputs" and kind == "object" then
            survey.noutputs = survey.noutputs + 1
        elseif keys[1] == "metadata" and depth == 3 and text and not survey.values[keys[2] .. "." .. keys[3]]
            and (keys[2] == "kernelspec" or keys[2] == "language_info") then
            survey.values[keys[2] .. "." .. keys[3]] = text
        end
    end
    return survey
end

local function tell_notebook(s, out)
    out.kind("a Jupyter notebook")
    local v, cells = s.values, s.cells
    out.ok("format", "nbformat %s.%s", v.nbformat or "?", v.nbformat_minor or "?")
    out.ok("cells", "%s; %d outputs", next(cells) and told(cells) or "none", s.noutputs)
    local name = v["kernelspec.name"]
    if not name then
        out.note("kernel", "names none: Jupyter will ask for one")
    elseif name == "tide" then
        out.ok("kernel", "%s", name)
    else
        local language = v["kernelspec.language"] or v["language_info.name"]
        out.note("kernel", "%s%s, not Tide's: choose Tide in Jupyter to run it so", name, language and " (" .. language .. ")" or "")
    end
    if tonumber(v.nbformat) and tonumber(v.nbformat) < 4 then
        out.problem("format", "nbformat " .. v.nbformat .. " is older than 4, the oldest that Jupyter opens as it is",
            "jupyter nbconvert --to notebook --nbformat 4 " .. out.quoted)
    end
    if s.top.cells ~= "array" then
        out.problem("cells", "it has no list of cells")
    end
end

local function tell_trace(s, out)
    out.kind("a Chrome trace")
    out.ok("events", "%d (by phase: %s)", s.nevents, next(s.phases) and told(s.phases) or "none")
    if s.nevents == 0 then
        out.note("events", "none: whatever wrote it recorded nothing")
    elseif not next(s.phases) then
        out.problem("events", "none has a phase ('ph'): no trace event format")
    end
end

local function tell_text(s, out)
    out.kind("a text of JSON")
    local names = {}
    for name in pairs(s.top) do
        names[#names + 1] = name
    end
    table.sort(names)
    if s.kind == "object" then
        out.ok("object", "%d entries%s", s.ntop, #names > 0 and ": " .. table.concat(names, ", ", 1, math.min(#names, 12))
            .. (s.ntop > #names and ", …" or "") or "")
    elseif s.kind then
        out.ok(s.kind, "%s", s.kind == "array" and s.ntop .. " entries" or "a single value")
    end
    if s.top.weight_map == "object" then
        out.note("weights", "an index of weights: the files that it names hold them, tide.load reads each")
    end
end

--- tell(read, out, stopped): what a text of JSON is, as lines; stopped(): was its end not read, which is then no fault?
function json.tell(read, out, stopped)
    local survey = new_survey()
    local problem = json.scan(read, survey.visit)
    local top = survey.top
    if top.nbformat or top.cells then
        tell_notebook(survey, out)
    elseif top.traceEvents or survey.kind == "array" and next(survey.phases) then
        tell_trace(survey, out)
    else
        tell_text(survey, out)
    end
    if problem and not (string.find(problem, "ends early", 1, true) and stopped()) then
        out.problem("JSON", "broken: " .. problem)
    end
end

return json
