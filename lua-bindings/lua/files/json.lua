-- files/json.lua: Lua values as JSON, for what front ends are sent. A table with keys 1 to n is an array, any other
-- an object; tensors are arrays of numbers.
local tide = ...
local json = {}

--- null: what stands for JSON's null in tables, which can't hold nil.
json.null = setmetatable({}, { __name = "json.null", __tostring = function() return "null" end })

local MAX_DEPTH = 100
local lists = setmetatable({}, { __mode = "k" })

--- list(t): t is an array, empty or not.
function json.list(t)
    lists[t] = true
    return t
end

--- is_list(t): was it made by list, or read as an array?
function json.is_list(t)
    return lists[t] ~= nil
end

local Problem = { __name = "problem" } -- what is raised within, with its text

local function raise(text) error(setmetatable({ text = text }, Problem), 0) end

local function refuse(state, what)
    local place = #state.path == 0 and "the value" or "value" .. table.concat(state.path)
    raise(string.format("%s is %s, which JSON can't hold", place, what))
end

-- The shortest text that reads as the same number.
local function shortest(x)
    for digits = 15, 16 do
        local text = tide._number(x, digits)
        if tonumber(text) == x then
            return text
        end
    end
    return tide._number(x, 17)
end

local function number_text(state, x)
    if math.type(x) == "integer" then
        return string.format("%d", x)
    elseif x ~= x or x == math.huge or x == -math.huge then
        if not state.lenient then
            refuse(state, x ~= x and "nan" or tide._number(x))
        end
        return "null"
    end
    return shortest(x)
end

local function key_text(state, key)
    if type(key) == "string" then
        if not utf8.len(key) then
            refuse(state, "a table with a key that is no UTF-8")
        end
        return key
    elseif math.type(key) == "integer" then
        return tostring(key)
    end
    refuse(state, "a table with a key that is " .. tide._describe(key))
end

local write

local function write_list(state, t, n)
    local parts, path = {}, state.path
    for k = 1, n do
        path[#path + 1] = string.format("[%d]", k)
        parts[k] = write(state, rawget(t, k))
        path[#path] = nil
    end
    return "[" .. table.concat(parts, ",") .. "]"
end

local function write_object(state, t)
    local keys, values, path = {}, {}, state.path
    for key, value in next, t do
        local text = key_text(state, key)
        path[#path + 1] = "." .. text
        keys[#keys + 1] = text
        values[text] = write(state, value)
        path[#path] = nil
    end
    table.sort(keys, tide._before)
    for k, key in ipairs(keys) do
        keys[k] = tide._json_quote(key) .. ":" .. values[key]
    end
    return "{" .. table.concat(keys, ",") .. "}"
end

local function count(t)
    local n = 0
    for _ in next, t do
        n = n + 1
    end
    return n
end

local function write_table(state, t)
    if state.open[t] then
        refuse(state, "a table within itself")
    elseif #state.path >= MAX_DEPTH then
        raise(string.format("the value is nested more than %d tables deep", MAX_DEPTH))
    end
    state.open[t] = true
    local n = #t
    local text = (lists[t] or n > 0 and count(t) == n) and write_list(state, t, n) or write_object(state, t)
    state.open[t] = nil
    return text
end

function write(state, value)
    local kind = type(value)
    if rawequal(value, json.null) or value == nil then
        return "null"
    elseif kind == "string" then
        if not utf8.len(value) then
            refuse(state, "a string that is no UTF-8")
        end
        return tide._json_quote(value)
    elseif kind == "number" then
        return number_text(state, value)
    elseif kind == "boolean" then
        return tostring(value)
    elseif tide.is_tensor(value) then
        local list = value:tolist()
        return write(state, type(list) == "table" and json.list(list) or list)
    elseif kind == "table" then
        return write_table(state, value)
    end
    refuse(state, "a " .. kind)
end

-- fn(...) or nil and what is wrong; what is no problem of ours goes on.
local function attempt(fn, ...)
    local ok, result = pcall(fn, ...)
    if ok then
        return result
    elseif getmetatable(result) == Problem then
        return nil, result.text
    end
    error(result, 0)
end

--- try(value [, lenient]): its text, or nil and what is wrong with it; lenient: nan and infinities are null.
function json.try(value, lenient)
    return attempt(write, { lenient = lenient, path = {}, open = {} }, value)
end

--- encode(value, name [, lenient]): the same, with an error; `name` is who asks.
function json.encode(value, name, lenient)
    local text, problem = json.try(value, lenient)
    return text or tide._fail("%s: %s", name, problem)
end

--- decode(text): the value, with json.null for null, whose arrays are lists for encode; or nil and what is wrong.
function json.decode(text)
    local ok, value = pcall(tide._json_read, text, "text", json.null, lists)
    if ok then
        return value
    elseif type(value) == "string" and string.find(value, "load: 'text': ", 1, true) then
        return nil, string.match(value, "load: 'text': (.*)")
    end
    error(value, 0)
end

return json
