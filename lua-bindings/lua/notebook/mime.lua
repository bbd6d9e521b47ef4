-- notebook/mime.lua: what a representation of a MIME type may be, and how front ends are sent it: texts as they are, files as
-- base64, JSON as JSON. It says no more of data that is wrong than a problem in words.
local tide = ...
local json = tide._require "files.json"
local mime = {}

-- How the bytes of a file begin, by its type.
local beginnings = {
    ["image/png"] = { "\137PNG\r\n\26\n", "a PNG file" },
    ["image/jpeg"] = { "\255\216\255", "a JPEG file" },
    ["image/gif"] = { "GIF8", "a GIF file" },
    ["image/webp"] = { "RIFF", "a WebP file" },
    ["application/pdf"] = { "%PDF", "a PDF file" },
}

function mime.is_json(type_name)
    return type_name == "application/json" or string.find(type_name, "+json", 1, true) == #type_name - 4 and #type_name > 5
end

local function is_base64(text)
    local plain = string.gsub(text, "%s+", "")
    return #plain % 4 == 0 and string.find(plain, "^[%w+/]*=?=?$") and #plain > 0
end

local function read_file(type_name, data)
    local beginning = beginnings[type_name]
    if beginning and string.sub(data, 1, #beginning[1]) == beginning[1] then
        return tide._base64(data)
    elseif beginning and is_base64(data) then
        -- the first bytes of the file, as base64 writes whole groups of three
        local n = #beginning[1] // 3 * 3
        if n == 0 or string.sub(string.gsub(data, "%s+", ""), 1, n // 3 * 4) == tide._base64(string.sub(beginning[1], 1, n)) then
            return data
        end
    end
    if beginning then
        return nil, string.format("doesn't begin as %s does", beginning[2])
    end
    return is_base64(data) and data or tide._base64(data)
end

local function read_json(data)
    local text, problem
    if type(data) == "string" then
        local value
        value, problem = json.decode(data)
        text = value ~= nil and data or nil
    else
        text, problem = json.try(data)
    end
    return text, problem and "is no JSON: " .. problem
end

local function is_text(type_name)
    return string.find(type_name, "^text/") or string.find(type_name, "xml$") or string.find(type_name, "javascript$")
        or string.find(type_name, "^application/x%-tex")
end

--- data(type, value): what is sent, or nil and what is wrong with it.
function mime.data(type_name, value)
    if mime.is_json(type_name) then
        return read_json(value)
    elseif type_name == "image/png" and tide.is_tensor(value) then
        return tide._base64(tide._png(tide._require("plot.pixels").of(value, "png")))
    elseif type(value) ~= "string" then
        return nil, string.format("is %s, expected a string", tide._describe(value))
    elseif not is_text(type_name) then
        return read_file(type_name, value)
    elseif not utf8.len(value) then
        return nil, "is no UTF-8"
    elseif type_name == "image/svg+xml" and not string.find(value, "<svg", 1, true) then
        return nil, "has no <svg in it"
    end
    return value
end

-- The keys that are types, in order.
local function types_of(bundle)
    local types = {}
    for key in next, bundle do
        if type(key) == "string" and string.find(key, "^[%w!#$&^_.+-]+/[%w!#$&^_.+-]+$") then
            types[#types + 1] = key
        end
    end
    table.sort(types, tide._before)
    return types
end

local function metadata_text(metadata)
    if metadata == nil then
        return nil
    elseif type(metadata) ~= "table" then
        return nil, string.format("metadata is %s, expected a table", tide._describe(metadata))
    end
    local text, problem = json.try(metadata)
    return text, problem and "metadata: " .. problem
end

-- A text with U+FFFD for each byte that is no UTF-8.
local function mended(text)
    local parts, at = {}, 1
    local length, bad = utf8.len(text)
    while not length do
        parts[#parts + 1] = string.sub(text, at, bad - 1)
        parts[#parts + 1] = "\u{FFFD}"
        at = bad + 1
        length, bad = utf8.len(text, at)
    end
    return table.concat(parts) .. string.sub(text, at)
end

--- read(bundle): a list {type, data, type, data, ...} without text/plain, the metadata as JSON or nil, and a line
--- for each thing that was wrong and mended or left out, or nil.
function mime.read(bundle)
    local list, problems = {}, {}
    for _, type_name in ipairs(types_of(bundle)) do
        local value, data, problem = rawget(bundle, type_name), nil, nil
        if type_name ~= "text/plain" and type(value) == "string" and is_text(type_name) and not utf8.len(value) then
            value = mended(value)
            problems[#problems + 1] = string.format("display: %s has bytes that are no UTF-8: shown as \u{FFFD}", type_name)
        end
        if type_name ~= "text/plain" then
            data, problem = mime.data(type_name, value)
        end
        if data then
            list[#list + 1] = type_name
            list[#list + 1] = data
        elseif problem then
            problems[#problems + 1] = string.format("display: %s %s: left out", type_name, problem)
        end
    end
    local metadata, problem = metadata_text(rawget(bundle, "metadata"))
    problems[#problems + 1] = problem and string.format("display: %s: left out", problem)
    return list, metadata, #problems > 0 and table.concat(problems, "\n") or nil
end

return mime
