-- distributed/rows.lua: tensors of one dtype one behind the other in a row of elements, as a transfer takes them.
local tide = ...
local rows = {}

--- numels(shapes): how many elements tensors of these shapes have.
function rows.numels(shapes)
    local counts = {}
    for k, shape in ipairs(shapes) do
        local n = 1
        for _, size in ipairs(shape) do
            n = n * size
        end
        counts[k] = n
    end
    return counts
end

--- join(tensors): a row with their elements, without history.
function rows.join(tensors)
    local parts = {}
    for k, x in ipairs(tensors) do
        parts[k] = x:detach():flatten()
    end
    return tide.cat(parts)
end

--- cut(row, shapes): views of the parts of a row.
function rows.cut(row, shapes)
    local parts, at = {}, 1
    for k, n in ipairs(rows.numels(shapes)) do
        parts[k] = row:narrow(1, at, n):view(shapes[k])
        at = at + n
    end
    return parts
end

--- sizes(tensors): their shapes.
function rows.sizes(tensors)
    local shapes = {}
    for k, x in ipairs(tensors) do
        shapes[k] = x:size()
    end
    return shapes
end

return rows
