-- files/strided.lua: a tensor of a file as a view of its storage: sizes, strides and place by the file's own word, which may
-- lie.
local tide = ...
local strided = {}

local MAX_DIMS <const> = 16

--- sizes(list): the list if its items are integers from 0 on, and not too many; nil.
function strided.sizes(list)
    for k, size in ipairs(list) do
        if math.type(size) ~= "integer" or size < 0 or k > MAX_DIMS then
            return nil
        end
    end
    return list
end

-- How many elements of its storage a tensor reaches, and how many it has, as floats: no sum of them wraps.
local function extent(offset, shape, strides)
    local last, count = offset + 1.0, 1.0
    for k, size in ipairs(shape) do
        last, count = last + (size - 1.0) * strides[k], count * size
    end
    return count > 0 and last or 0.0, count
end

--- view(row, first, count, offset, shape, strides): of the `count` elements of a row from `first` on, counted from 0; nil and
--- what is wrong.
function strided.view(row, first, count, offset, shape, strides)
    shape, strides = strided.sizes(shape), strided.sizes(strides)
    if not shape or not strides or #shape ~= #strides or math.type(offset) ~= "integer" or offset < 0 then
        return nil, "its offset, sizes or strides are none"
    end
    local reach, numel = extent(offset, shape, strides)
    if reach > count then
        return nil, string.format("it reaches to element %.0f of a storage of %d", reach, count)
    elseif numel >= 2.0 ^ 60 then
        return nil, "its shape has more elements than can be counted"
    end
    return row:as_strided(shape, strides, reach == 0 and 0 or first + offset)
end

return strided
