-- files/cursor.lua: a file read one thing behind the other, in pieces. Nothing is taken that the file has not.
local FIRST_PIECE <const> = 1 << 16

--- (read, size, cut): {at, left(), take(n), number(format)} over what read(at, n) reads of a file of `size` bytes; at counts
--- from 0. Where n bytes are not there, cut() raises.
return function(read, size, cut)
    local c = { at = 0 }
    local piece, from = "", 0
    function c.left() return size - c.at end
    function c.take(n)
        if n < 0 or n > size - c.at then
            cut()
        elseif c.at < from or c.at + n > from + #piece then
            piece, from = read(c.at, math.max(n, FIRST_PIECE)), c.at
        end
        c.at = c.at + n
        return string.sub(piece, c.at - n - from + 1, c.at - from)
    end
    function c.number(format) return (string.unpack(format, c.take(string.packsize(format)))) end
    return c
end
