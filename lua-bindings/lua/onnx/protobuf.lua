-- onnx/protobuf.lua: messages of protobuf, read from a file in pieces. No length is believed that the file has not, fields and depth
-- are bounded, and what is not asked for is passed over.
local protobuf = {}

local PIECE <const>, MOST_DEPTH <const> = 1 << 16, 64

--- Cut: what is raised where a message ends too early or is none.
protobuf.Cut = setmetatable({}, { __name = "cut" })
local Cut = protobuf.Cut

--- walk(read, most): a walk over fields of a file; read(at, n) gives bytes from a place (from 0) on. After `most` fields it stops
--- and says so in `stopped`.
function protobuf.walk(read, most)
    local walk = { left = most, held = "", from = 0 }
    local function byte(at)
        local k = at - walk.from + 1
        if k < 1 or k > #walk.held then
            walk.held, walk.from, k = read(at, PIECE), at, 1
        end
        return string.byte(walk.held, k) or error(Cut, 0)
    end

    --- varint(at, stop): the number there, and the place behind it.
    function walk.varint(at, stop)
        local value = 0
        for k = 0, 9 do
            if at >= stop then
                error(Cut, 0)
            end
            local b = byte(at)
            value, at = value | (b & 127) << 7 * k, at + 1
            if b < 128 then
                return value, at
            end
        end
        error(Cut, 0)
    end

    --- fields(at, stop, visit): visit(number, kind, value, at, stop) of each field: varints by value, all else by its place.
    function walk.fields(at, stop, visit)
        while at < stop do
            walk.left = walk.left - 1
            if walk.left < 0 then
                walk.stopped = true
                return
            end
            local key
            key, at = walk.varint(at, stop)
            local kind, value = key & 7, nil
            local last = at
            if kind == 0 then
                value, last = walk.varint(at, stop)
            elseif kind == 1 or kind == 5 then
                last = at + (kind == 1 and 8 or 4)
            elseif kind == 2 then
                value, at = walk.varint(at, stop)
                last = at + value
            end
            if kind > 5 or kind == 3 or kind == 4 or key >> 3 == 0 or last < at or last > stop then
                error(Cut, 0)
            end
            visit(key >> 3, kind, value, at, last)
            at = last
        end
    end

    --- text(at, stop, most): the bytes there.
    function walk.text(at, stop, longest) return (read(at, math.min(stop - at, longest))) end
    return walk
end

-- ---- messages by description ----

-- Of a packed list of numbers of so many bytes each.
local function unpack_all(walk, format, bytes, at, stop, list)
    if (stop - at) % bytes ~= 0 then
        error(Cut, 0)
    end
    for place = at, stop - bytes, bytes do
        list[#list + 1] = string.unpack(format, walk.text(place, place + bytes, bytes))
    end
end

local function read_numbers(walk, list, kind, value, at, stop)
    if kind == 0 then
        list[#list + 1] = value
        return
    end
    while at < stop do
        list[#list + 1], at = walk.varint(at, stop)
    end
end

local FLOATS <const> = { float = { "<f", 4 }, double = { "<d", 8 } }

--- read(walk, description, at, stop): a table of a message's fields. A description has for each field's number {name, type, many}:
--- "int", "float", "double", "text", "place" ({at, stop}), or another description; of many the table has a list.
function protobuf.read(walk, description, at, stop, depth)
    local message, longest = {}, 1 << 24
    if (depth or 0) > MOST_DEPTH then
        error({ onnx = string.format("messages nested more than %d deep", MOST_DEPTH) }, 0)
    end
    for _, field in pairs(description) do
        if field.many then
            message[field[1]] = {}
        end
    end
    walk.fields(at, stop, function(number, kind, value, first, last)
        local field = description[number]
        if not field then
            return
        end
        local name, type_of, list = field[1], field[2], message[field[1]]
        if type_of == "int" then
            if field.many then
                read_numbers(walk, list, kind, value, first, last)
            elseif kind == 0 then
                message[name] = value
            end
            return
        elseif FLOATS[type_of] then
            local format, bytes = FLOATS[type_of][1], FLOATS[type_of][2]
            if field.many then
                unpack_all(walk, format, bytes, first, last, list)
            elseif last - first == bytes then
                message[name] = string.unpack(format, walk.text(first, last, bytes))
            end
            return
        elseif kind ~= 2 then
            error(Cut, 0)
        end
        local one
        if type_of == "text" then
            one = walk.text(first, last, longest)
        elseif type_of == "place" then
            one = { at = first, stop = last }
        else
            one = protobuf.read(walk, type_of, first, last, (depth or 0) + 1)
        end
        if field.many then
            list[#list + 1] = one
        else
            message[name] = one
        end
    end)
    return message
end

return protobuf
