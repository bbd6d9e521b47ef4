-- files/tar.lua: archives of tar (ustar, with long names as GNU's and POSIX's pax write them), packed by gzip or not. Members come in a
-- row; nothing that a header claims is believed before it is there.
local tide = ...
local tar = { name = "tar" }

local BLOCK <const>, LONGEST <const> = 512, 1 << 20 -- of a name or of pax records
local ZEROS <const> = string.rep("\0", BLOCK)

-- A number of a header: octal digits, or GNU's binary form for what does not fit; nil where it is none.
local function number(field)
    local first = string.byte(field)
    if first == 0x80 then
        local value = 0
        for k = 2, #field do
            if value >= 1 << 55 then
                return nil
            end
            value = value << 8 | string.byte(field, k)
        end
        return value
    end
    local digits = string.match(field, "^ *([0-7]*)[ %z]*$")
    return digits and tonumber(digits == "" and "0" or digits, 8) or nil
end

local function text(field) return string.match(field, "^[^%z]*") end

-- The sum of a header's bytes, its own field taken for blanks; some old programs took them with a sign.
local function sum_fits(block)
    local sum, signed = 0, 0
    for k = 1, BLOCK do
        local byte = (k >= 149 and k <= 156) and 32 or string.byte(block, k)
        sum, signed = sum + byte, signed + (byte < 128 and byte or byte - 256)
    end
    local said = number(string.sub(block, 149, 156))
    return said == sum or said == signed
end

local function read_header(block)
    local header = { name = text(string.sub(block, 1, 100)), size = number(string.sub(block, 125, 136)), kind = string.sub(block, 157, 157) }
    if string.sub(block, 258, 262) == "ustar" and string.sub(block, 258, 263) ~= "ustar " then
        local prefix = text(string.sub(block, 346, 500))
        header.name = prefix ~= "" and prefix .. "/" .. header.name or header.name
    end
    return header
end

-- The records "LENGTH KEY=VALUE\n" of pax; nil where they are wrong.
local function read_records(bytes)
    local records, at = {}, 1
    while at <= #bytes do
        local digits = string.match(bytes, "^(%d+) ", at)
        local length = digits and #digits < 10 and tonumber(digits) or 0
        local record = string.sub(bytes, at, at + length - 1)
        local key, value = string.match(record, "^%d+ ([^=]+)=(.*)\n$")
        if not key or #record ~= length then
            return nil
        end
        records[key], at = value, at + length
    end
    return records
end

--- members(source, fail): a function that gives {name, size, at} of the next file, nil at the end. source: read(n) and skip(n), as
--- a stream has them; the file's bytes are what is read next, and what is not read is passed over. fail(what) raises.
function tar.members(source, fail)
    local at, left, rest = 0, 0, 0

    local function take(n, what)
        local bytes = source:read(n)
        at = at + #bytes
        if #bytes < n then
            fail(string.format("cut off within %s at byte %d", what, at))
        end
        return bytes
    end

    local function pass(n)
        if n > 0 and source:skip(n) < n then
            fail(string.format("cut off behind byte %d", at))
        end
        at = at + n
    end

    local function padded(size) return (BLOCK - size % BLOCK) % BLOCK end

    -- The bytes of an entry that says something of the next.
    local function note(header)
        if header.size > LONGEST then
            fail(string.format("a name of %d bytes at byte %d", header.size, at))
        end
        local bytes = take(header.size, "a header")
        pass(padded(header.size))
        return bytes
    end

    local function next_member()
        local name, size
        pass(left + rest)
        left, rest = 0, 0
        while true do
            local block = source:read(BLOCK)
            if block == "" or block == ZEROS then
                return nil
            elseif #block < BLOCK or not sum_fits(block) then
                fail(string.format(#block < BLOCK and "cut off within a header at byte %d" or "no header of tar at byte %d", at))
            end
            at = at + BLOCK
            local header = read_header(block)
            if not header.size then
                fail(string.format("the header at byte %d has no size", at - BLOCK))
            end
            if header.kind == "L" then
                name = text(note(header))
            elseif header.kind == "x" then
                local records = read_records(note(header)) or fail(string.format("damaged records of pax before byte %d", at))
                name = records.path or name
                size = records.size and (math.tointeger(tonumber(records.size)) or -1) or size
                if size and size < 0 or records["GNU.sparse.major"] then
                    fail(string.format("records of pax before byte %d that are not read", at))
                end
            elseif header.kind == "K" or header.kind == "g" then
                note(header)
            elseif header.kind == "0" or header.kind == "\0" or header.kind == "7" then
                size = size or header.size
                name = name or header.name
                if string.sub(name, -1) ~= "/" then -- else a folder, as the oldest archives have them
                    left, rest = size, padded(size)
                    return { name = name, size = size, at = at }
                end
                pass(size + padded(size))
                name, size = nil, nil
            elseif header.kind == "S" then
                fail(string.format("'%s' is sparse, which is not read", (string.gsub(name or header.name, "%c", "?"))))
            else -- folders, links, devices
                pass(string.find(header.kind, "^[1-6]$") and 0 or header.size + padded(header.size))
                name, size = nil, nil
            end
        end
    end

    return next_member, function(member) -- the bytes of the member that was given last
        local bytes = take(member.size, "'" .. string.gsub(member.name, "%c", "?") .. "'")
        left = 0
        return bytes
    end
end

-- ---- writing ----

local function octal(n, digits) return string.format("%0" .. digits .. "o\0", n) end

local function header_of(name, size, kind)
    local head = name .. string.rep("\0", 100 - #name) .. octal(420, 7) .. octal(0, 7) .. octal(0, 7) .. octal(size, 11) .. octal(0, 11)
    local tail = kind .. string.rep("\0", 100) .. "ustar\00000" .. string.rep("\0", BLOCK - 265)
    local sum = 8 * 32
    for _, part in ipairs { head, tail } do
        for k = 1, #part do
            sum = sum + string.byte(part, k)
        end
    end
    return head .. string.format("%06o\0 ", sum) .. tail
end

local function padding(size) return string.rep("\0", (BLOCK - size % BLOCK) % BLOCK) end

-- "LENGTH KEY=VALUE\n", whose length counts its own digits.
local function record(key, value)
    local length = #key + #value + 3
    local all = length + #tostring(length)
    all = length + #tostring(all)
    return string.format("%d %s=%s\n", all, key, value)
end

--- entry(name, bytes): a file as an archive has it, with nothing of the time or of who wrote it.
function tar.entry(name, bytes)
    local front = ""
    if #name > 100 then
        local records = record("path", name)
        front = header_of("PaxHeaders/" .. string.sub(name, -80), #records, "x") .. records .. padding(#records)
        name = string.sub(name, -100)
    end
    return front .. header_of(name, #bytes, "0") .. bytes .. padding(#bytes)
end

tar.END = string.rep(ZEROS, 2)

-- ---- an archive on disk ----

--- opened(path, fname): next_member, read, and the stream, which is to be closed.
function tar.opened(path, fname)
    local stream = tide._stream_open(path, fname)
    local step, read = tar.members(stream, function(what) tide._fail("%s: '%s': %s", fname, path, what) end)
    return step, read, stream
end

local Archive = { __name = "Archive" }
Archive.__index = Archive
tide._class("Archive", Archive)

--- archive(path, fname): what lies in an archive and where.
function tar.archive(path, fname)
    local handle, why = io.open(path, "rb")
    if not handle then
        tide._fail("%s: cannot read '%s': %s", fname, path, (string.gsub(why, "^.*: ", "")))
    end
    local _handle <close> = handle
    local first = handle:read(2)
    if first == "\31\139" then
        tide._fail("%s: '%s' is packed by gzip: what lies in it can only be read in a row, by tide.data.tar", fname, path)
    end
    local size = handle:seek("end") or 0
    handle:seek("set", 0)
    local source = {}
    function source:read(n) return handle:read(n) or "" end
    function source:skip(n)
        local at = handle:seek()
        handle:seek("set", math.min(size, at + n))
        return math.min(size, at + n) - at
    end
    local step = tar.members(source, function(what) tide._fail("%s: '%s': %s", fname, path, what) end)
    local names, places = {}, {}
    for member in step do
        names[#names + 1] = not places[member.name] and member.name or nil
        places[member.name] = { member.at, member.size } -- the later one counts
        if member.size > size - member.at then
            tide._fail("%s: '%s': cut off within '%s'", fname, path, member.name)
        end
    end
    return setmetatable({ path = path, list = names, places = places }, Archive)
end

Archive.names = tide._function("names(Archive self) -> list", "The names of its files, in their order.", function(self)
    return table.move(self.list, 1, #self.list, 1, {})
end)

Archive.read = tide._function("read(Archive self, str name) -> str", "The bytes of a file in it.", function(self, name)
    local place = self.places[name] or tide._fail("read: '%s': no file '%s'", self.path, name)
    local handle <close> = io.open(self.path, "rb") or tide._fail("read: cannot read '%s'", self.path)
    handle:seek("set", place[1])
    local bytes = place[2] == 0 and "" or handle:read(place[2])
    return #(bytes or "") == place[2] and bytes or tide._fail("read: '%s': cut off within '%s'", self.path, name)
end)

function Archive.__len(self) return #self.list end
function Archive.__tostring(self) return string.format("Archive('%s', %d files)", self.path, #self.list) end
tide._document(Archive, "Archive", "Archive", "An archive of tar: #a files, a:names(), a:read(name).")

--- match(head): the checksum of its first header, packed or not.
function tar.match(head, path)
    if string.sub(head, 1, 2) == "\31\139" then
        return string.find(path, "%.tar%.gz$") ~= nil or string.find(path, "%.tgz$") ~= nil
    end
    return #head >= BLOCK and string.sub(head, 1, BLOCK) ~= ZEROS and sum_fits(string.sub(head, 1, BLOCK))
end

--- load(path): {name = bytes}.
function tar.load(path)
    local files = {}
    local step, read, stream = tar.opened(path, "load")
    local _stream <close> = stream
    for member in step do
        files[member.name] = read(member)
    end
    return files
end

return tar
