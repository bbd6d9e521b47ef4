-- Samples of grids (see test_walk.lua for what `mk` makes).
local function on(...)
    local arguments = table.pack(...)
    return function(mk)
        local shape = arguments[1]
        return { n = arguments.n, mk(table.unpack(shape)), table.unpack(arguments, 2, arguments.n) }
    end
end
local function list(...)
    local shapes = { ... }
    return function(mk)
        local tensors = {}
        for k, shape in ipairs(shapes) do
            tensors[k] = mk(table.unpack(shape))
        end
        return { tensors }
    end
end
local function with(sample, options)
    return function(mk)
        local arguments = sample(mk)
        arguments[2] = options
        return arguments
    end
end

return {
    broadcast_tensors = { list({ 2, 1 }, { 3 }), list({}, { 2 }), list { 2, 2 } },
    meshgrid = { list({ 2 }, { 3 }), with(list({ 2 }, { 3 }, { 2 }), { indexing = "xy" }), list({}, { 2 }) },
    cartesian_prod = { list({ 2 }, { 3 }), list({ 2 }, { 1 }, { 2 }), list { 3 } },
    combinations = { on { 4 }, on({ 3 }, 2, true), on({ 4 }, 3), on({ 2 }, 0) },
}
