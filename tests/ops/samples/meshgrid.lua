-- Samples of grids (see test_walk.lua for what `mk` makes).
local makers = ...
local on, list = makers.on, makers.list
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
