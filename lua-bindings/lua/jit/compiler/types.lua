-- jit/compiler/types.lua: types as graphs print them, "Tensor", "int[]", "(int, Tensor)", "Tensor?". A type is its text,
-- so that types are compared by ==. Besides there are tables with names that are known, "{id: int, x: Tensor}", which are
-- tuples in the graph.
local types = {}

local SIMPLE = { Tensor = "Tensor", int = "int", integer = "int", float = "float", bool = "bool", boolean = "bool",
    number = "Scalar", Scalar = "Scalar", str = "str", string = "str", dtype = "dtype", device = "Device", Device = "Device",
    Generator = "Generator", None = "NoneType", NoneType = "NoneType", ["nil"] = "NoneType" }

-- ---- reading ----

local read

local function read_tuple(text, at)
    local parts = {}
    while true do
        local part
        part, at = read(text, at)
        if not part then
            return nil
        end
        parts[#parts + 1] = part
        local separator = string.match(text, "^%s*([,)])", at)
        at = separator and string.find(text, separator, at, true) + 1
        if separator == ")" then
            return "(" .. table.concat(parts, ", ") .. ")", at
        elseif not separator then
            return nil
        end
    end
end

-- "(str, T)" behind "Dict".
local function read_dict(text, at)
    local open = string.match(text, "^%s*%(%s*str%s*,()", at) or string.match(text, "^%s*%(%s*string%s*,()", at)
    local t, close
    if open then
        t, at = read(text, open)
        close = t and string.match(text, "^%s*%)()", at)
    end
    return close and types.dict(t), close
end

-- "id: int, x: Tensor}" behind "{": names, types, and where the text goes on.
local function read_fields(text, at)
    local names, parts = {}, {}
    while true do
        local name, open = string.match(text, "^%s*([%a_][%w_]*)%s*:()", at)
        local t, close, separator
        if name then
            t, close = read(text, open)
            separator = t and string.match(text, "^%s*([,}])", close)
        end
        if not separator then
            return nil
        end
        names[#names + 1], parts[#parts + 1] = name, t
        at = string.find(text, separator, close, true) + 1
        if separator == "}" then
            return names, parts, at
        end
    end
end

-- A type at a place of a text, and where the text goes on; nil: there is none.
function read(text, at)
    at = string.find(text, "%S", at)
    if not at then
        return nil
    end
    local t
    local word = string.match(text, "^[%a_]+", at)
    if word then
        t, at = SIMPLE[word], at + #word
        if word == "Dict" then
            t, at = read_dict(text, at)
        end
    elseif string.sub(text, at, at) == "(" then
        t, at = read_tuple(text, at + 1)
    elseif string.sub(text, at, at) == "{" then
        local names, parts, behind = read_fields(text, at + 1)
        t, at = names and types.record(names, parts), behind
    end
    while t do
        if string.find(text, "^%[%]", at) then
            t, at = t .. "[]", at + 2
        elseif string.find(text, "^%?", at) then
            t, at = types.optional(t), at + 1
        else
            return t, at
        end
    end
end

--- list(text): the types of a comment "Tensor, int, float[], Tensor?", which ends where they do; nil where none is there.
function types.list(text)
    local list, at = {}, 1
    while true do
        local t, next_at = read(text, at)
        if not t then
            return nil, string.sub(text, at)
        end
        list[#list + 1] = t
        local comma = string.match(text, "^%s*,()", next_at)
        if not comma then
            return list, string.match(text, "^%s*(.*)", next_at)
        end
        at = comma
    end
end

-- ---- asking ----

--- optional(t): t or nothing.
function types.optional(t)
    return (t == "NoneType" or types.inner(t)) and t or t .. "?"
end

--- inner(t): what an optional type is when it is there; nil for other types.
function types.inner(t) return string.match(t, "^(.*)%?$") end

--- element(t): of a list type; nil for other types.
function types.element(t) return string.match(t, "^(.*)%[%]$") end

--- dict(t), dict_value(t): the type of dicts of such values; and theirs, nil for other types.
function types.dict(t) return string.format("Dict(str, %s)", t) end
function types.dict_value(t) return string.match(t, "^Dict%(str, (.*)%)$") end

--- record(names, parts): the type of a table with these names; fields(t): both of one, nil for other types.
function types.record(names, parts)
    local texts = {}
    for k, name in ipairs(names) do
        texts[k] = name .. ": " .. parts[k]
    end
    return "{" .. table.concat(texts, ", ") .. "}"
end

function types.fields(t)
    if string.sub(t, 1, 1) == "{" then
        local names, parts, behind = read_fields(t, 2)
        if behind == #t + 1 then
            return names, parts
        end
    end
end

--- lower(t): the type as the graph has it, tables with names as tuples.
function types.lower(t)
    while string.find(t, "{", 1, true) do
        t = string.gsub(t, "{([^{}]*)}", function(fields) return "(" .. string.gsub(fields, "[%a_][%w_]*: ", "") .. ")" end)
    end
    return t
end

--- is_tuple(t), parts(t): the types that stand in a tuple.
function types.is_tuple(t) return string.sub(t, 1, 1) == "(" and string.sub(t, -1) == ")" end

function types.parts(t)
    return string.find(t, "^%(%s*%)$") and {} or types.list(string.sub(t, 2, -2))
end

local NUMBERS = { int = true, float = true, Scalar = true }

--- is_number(t): an int, a float, or one of these.
function types.is_number(t) return NUMBERS[t] or false end

--- join(a, b): the narrowest type that values of both have; nil: there is none.
function types.join(a, b)
    if a == b then
        return a
    elseif a == "NoneType" then
        return types.optional(b)
    elseif b == "NoneType" then
        return types.optional(a)
    elseif types.is_number(a) and types.is_number(b) then
        return "Scalar"
    end
    local names, parts = types.fields(a)
    local others, their = types.fields(b)
    if names and others and table.concat(names, ",") == table.concat(others, ",") then
        for k, t in ipairs(parts) do
            parts[k] = types.join(t, their[k])
            if not parts[k] then
                return nil
            end
        end
        return types.record(names, parts)
    end
    local x, y = types.inner(a), types.inner(b)
    if x or y then
        local joined = types.join(x or a, y or b)
        return joined and types.optional(joined)
    end
end

--- words(t): the type in words, for messages.
function types.words(t)
    local names = { Tensor = "a tensor", int = "an integer", float = "a float", Scalar = "a number", bool = "a boolean",
        str = "a string", NoneType = "nil", dtype = "a dtype", Device = "a device" }
    if types.inner(t) then
        return types.words(types.inner(t)) .. " or nil"
    elseif types.element(t) then
        return string.format("a list (%s)", t)
    elseif types.dict_value(t) then
        return string.format("a table by names (%s)", t)
    elseif types.fields(t) then
        return string.format("a table with names (%s)", t)
    end
    return names[t] or t
end

return types
