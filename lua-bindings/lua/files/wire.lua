-- files/wire.lua: the wire format of protocol buffers, written field by field.
local wire = {}

local VARINT <const>, DOUBLE <const>, BYTES <const>, FLOAT <const> = 0, 1, 2, 5

local function varint(n)
    local bytes = {}
    repeat
        local rest = n >> 7
        bytes[#bytes + 1] = string.char(n & 127 | (rest ~= 0 and 128 or 0))
        n = rest
    until n == 0
    return table.concat(bytes)
end

local function key(field, kind) return varint(field << 3 | kind) end

--- whole(field, n), double(field, x), bytes(field, s): a field of an integer, a double, a string or a message.
function wire.whole(field, n) return key(field, VARINT) .. varint(n) end
function wire.double(field, x) return key(field, DOUBLE) .. string.pack("<d", x) end
function wire.bytes(field, s) return wire.head(field, #s) .. s end
--- head(field, length): what stands before so many bytes of a field.
function wire.head(field, length) return key(field, BYTES) .. varint(length) end

--- float(field, x): a field of the nearest float: what is too large for one is infinite.
function wire.float(field, x)
    local bound = 3.4028235677973366e38
    local infinite = x >= bound and math.huge or x <= -bound and -math.huge
    return key(field, FLOAT) .. string.pack("<f", infinite or x)
end

return wire
