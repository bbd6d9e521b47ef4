-- files/zip.lua: archives of zip: what lies in them, by the directory at their end, and where. Nothing of an archive is
-- believed before it is checked against the file's length; what is packed is unpacked elsewhere.
local zip = {}

local MAX_DIRECTORY, MAX_ENTRIES, TAIL = 32 << 20, 100000, 65557

-- Number of entries, place and length of the directory; nil and what is wrong.
local function find_directory(file)
    local tail_at = math.max(0, file.size - TAIL)
    local tail = file.read(tail_at, TAIL)
    local found, from = nil, 1
    while true do
        local at = string.find(tail, "PK\5\6", from, true)
        if not at then
            break
        end
        found, from = at, at + 1
    end
    if not found or #tail < found + 21 then
        return nil, "cut off: the directory at its end is missing"
    end
    local n, length, at = string.unpack("<I2I4I4", tail, found + 10)
    local behind = tail_at + found - 1
    if (n == 0xFFFF or length == 0xFFFFFFFF or at == 0xFFFFFFFF) and behind >= 76 then -- zip64 says it elsewhere
        local locator = file.read(behind - 20, 20)
        local wide_at = string.sub(locator, 1, 4) == "PK\6\7" and string.unpack("<i8", locator, 9)
        local wide = wide_at and wide_at >= 0 and wide_at <= file.size - 56 and file.read(wide_at, 56)
        if wide and string.sub(wide, 1, 4) == "PK\6\6" then
            n, length, at = string.unpack("<i8i8i8", wide, 33)
        end
    end
    if at < 0 or length < 0 or at > file.size or length > file.size - at then
        return nil, "cut off, or damaged: its directory lies beyond its end"
    end
    return { n = n, at = at, length = length }
end

-- Sizes and place that did not fit 32 bits stand in a field behind the name.
local function widen(entry, extra)
    local at = 1
    while at + 3 <= #extra do
        local id, length = string.unpack("<I2I2", extra, at)
        local field, k = string.sub(extra, at + 4, at + 3 + length), 1
        if id == 1 then
            for _, name in ipairs { "size", "packed", "place" } do
                if entry[name] == 0xFFFFFFFF and k + 7 <= #field then
                    entry[name], k = string.unpack("<i8", field, k)
                end
            end
        end
        at = at + 4 + length
    end
end

local function read_entries(directory, bytes)
    local entries, at = {}, 1
    while #entries < MAX_ENTRIES and at + 45 <= #bytes and string.sub(bytes, at, at + 3) == "PK\1\2" do
        local method = string.unpack("<I2", bytes, at + 10)
        local packed, size, nname, nextra, ncomment = string.unpack("<I4I4I2I2I2", bytes, at + 20)
        local entry = { method = method, packed = packed, size = size, place = string.unpack("<I4", bytes, at + 42),
            name = string.sub(bytes, at + 46, at + 45 + nname), sum = string.unpack("<I4", bytes, at + 16),
            secret = string.byte(bytes, at + 8) & 1 ~= 0 }
        widen(entry, string.sub(bytes, at + 46 + nname, at + 45 + nname + nextra))
        entries[#entries + 1] = entry
        at = at + 46 + nname + nextra + ncomment
    end
    return entries, (#entries < math.min(directory.n, MAX_ENTRIES)
        and string.format("its directory names %d entries and holds %d", directory.n, #entries) or nil)
end

--- file(handle, size): {size, read(at, n)} over an open file; at counts from 0, and what lies beyond its end is not read.
function zip.file(handle, size)
    local file = { size = size }
    function file.read(at, n)
        if n <= 0 or at < 0 or at >= size then
            return ""
        end
        handle:seek("set", at)
        return handle:read(math.min(n, size - at)) or ""
    end
    return file
end

--- open(file): {entries, data_at(entry), wrong}; nil and what is wrong.
function zip.open(file)
    local directory, wrong = find_directory(file)
    if not directory then
        return nil, wrong
    end
    local bytes = file.read(directory.at, math.min(directory.length, MAX_DIRECTORY))
    local archive = {}
    archive.entries, archive.wrong = read_entries(directory, bytes)

    -- Where its bytes begin, all of which the file has; nil and why where they can't be had.
    function archive.data_at(entry)
        local head = entry.place >= 0 and entry.place <= file.size - 30 and file.read(entry.place, 30) or ""
        if string.sub(head, 1, 4) ~= "PK\3\4" then
            return nil, "no entry stands where the directory says"
        end
        local nname, nextra = string.unpack("<I2I2", head, 27)
        local at = entry.place + 30 + nname + nextra
        if entry.packed < 0 or entry.packed > file.size - at then
            return nil, "cut off: it ends beyond the file"
        elseif entry.secret then
            return nil, "encrypted"
        elseif entry.method ~= 0 and entry.method ~= 8 then
            return nil, string.format("packed by method %d, which is neither store nor deflate", entry.method)
        end
        return at
    end
    return archive
end

return zip
