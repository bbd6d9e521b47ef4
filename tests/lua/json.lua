-- json.lua: a strict reader of JSON, for tests of what Tide writes. Knows nothing of tide.
--
--     local value = json.read(text)   -- tables, strings, numbers, booleans, json.null
--
-- Anything that RFC 8259 doesn't allow, bytes that aren't UTF-8, or a key given twice is an error that says
-- at which byte.
local json = { null = setmetatable({}, { __tostring = function() return "null" end }) }

local text, at -- of the reading that goes on

local function fail(what)
    error(("JSON: %s at byte %d: %q"):format(what, at, text:sub(at, at + 20)), 0)
end

local function space()
    at = text:find("[^ \t\r\n]", at) or #text + 1
end

-- The match of an anchored pattern, which is passed over; nil when there is none.
local function take(pattern)
    local found = text:match("^" .. pattern, at)
    at = found and at + #found or at
    return found
end

local escapes = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function read_unit()
    local digits = take("%x%x%x%x")
    return digits and tonumber(digits, 16) or fail("four hex digits expected")
end

local function read_escape()
    local letter = take(".")
    if letter ~= "u" then
        return escapes[letter] or fail("unknown escape")
    end
    local code = read_unit()
    if code >= 0xD800 and code < 0xDC00 then
        local low = take("\\u") and read_unit() or fail("half a pair of surrogates")
        code = low >= 0xDC00 and low < 0xE000 and 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
            or fail("half a pair of surrogates")
    elseif code >= 0xDC00 and code < 0xE000 then
        fail("half a pair of surrogates")
    end
    return utf8.char(code)
end

local function read_string()
    local parts = {}
    at = at + 1
    while not take('"') do
        local plain = take('[^"\\\0-\31]+')
        if plain then
            parts[#parts + 1] = utf8.len(plain) and plain or fail("bytes that aren't UTF-8")
        elseif take("\\") then
            parts[#parts + 1] = read_escape()
        else
            fail("a string without end or with a control character")
        end
    end
    return table.concat(parts)
end

local function read_number()
    local number = (take("-?0") or take("-?[1-9]%d*") or fail("a value expected"))
    number = number .. (take("%.%d+") or "")
    number = number .. (take("[eE][+-]?%d+") or "")
    return tonumber(number)
end

local read_value

local function read_array()
    local list = {}
    at = at + 1
    space()
    if take("%]") then
        return list
    end
    repeat
        list[#list + 1] = read_value()
    until not take(",")
    return take("%]") and list or fail("',' or ']' expected")
end

local function read_object()
    local object = {}
    at = at + 1
    space()
    if take("}") then
        return object
    end
    repeat
        space()
        local key = text:sub(at, at) == '"' and read_string() or fail("a key expected")
        if object[key] ~= nil then
            fail("a key given twice")
        end
        space()
        if not take(":") then
            fail("':' expected")
        end
        object[key] = read_value()
    until not take(",")
    return take("}") and object or fail("',' or '}' expected")
end

local words = { ["true"] = true, ["false"] = false, null = json.null }

function read_value()
    space()
    local first, value = text:sub(at, at), nil
    if first == "{" then
        value = read_object()
    elseif first == "[" then
        value = read_array()
    elseif first == '"' then
        value = read_string()
    else
        local word = take("%l+")
        if word then
            value = words[word]
            if value == nil then
                fail("unknown word " .. word)
            end
        else
            value = read_number()
        end
    end
    space()
    return value
end

function json.read(given)
    text, at = given, 1
    local value = read_value()
    if at <= #text then
        fail("more after the value")
    end
    return value
end

return json
