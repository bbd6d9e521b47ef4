-- sample_makers.lua: what files of samples make their samples with; each is given this table.
local makers = {}

-- An operand of a shape, and the other arguments: on({ 2, 3 }, 1).
function makers.on(...)
    local arguments = table.pack(...)
    return function(mk)
        local shape = arguments[1]
        return { n = arguments.n, mk(table.unpack(shape)), table.unpack(arguments, 2, arguments.n) }
    end
end

-- A list of operands of these shapes: list({ 2 }, { 3 }).
function makers.list(...)
    local shapes = { ... }
    return function(mk)
        local tensors = {}
        for k, shape in ipairs(shapes) do
            tensors[k] = mk(table.unpack(shape))
        end
        return { tensors }
    end
end

return makers
