-- Samples of the operators that make tensors (see test_walk.lua for what `mk` makes).
local function sizes(...)
    local first = { ... }
    return {
        function() return { table.unpack(first) } end,
        function() return { { 2, 0, 3 } } end,
        function() return { { 4 }, { dtype = tide.int32 } } end,
    }
end
local like = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk() } end,
    function(mk) return { mk(0, 2), { dtype = tide.int64 } } end,
}

return {
    empty = sizes(2, 3),
    zeros = sizes(2, 3),
    ones = sizes(2, 3),
    full = {
        function() return { { 2, 3 }, 7 } end,
        function() return { { 2 }, 0.5, { dtype = tide.float64 } } end,
        function() return { { 0, 3 }, -1 } end,
    },
    empty_like = like,
    zeros_like = like,
    ones_like = like,
    full_like = {
        function(mk) return { mk(2, 3), 7 } end,
        function(mk) return { mk(), 0.5 } end,
        function(mk) return { mk(3), 2, { dtype = tide.bool } } end,
    },
    arange = {
        function() return { 5 } end,
        function() return { 1, 2, 0.25 } end,
        function() return { 10, 0, -3 } end,
        function() return { 3, 3 } end,
    },
    linspace = {
        function() return { 0, 1, 5 } end,
        function() return { 3, -3, 4, { dtype = tide.float64 } } end,
        function() return { 2, 5, 1 } end,
        function() return { 2, 5, 0 } end,
    },
    eye = {
        function() return { 3 } end,
        function() return { 2, 4 } end,
        function() return { 0, { dtype = tide.int64 } } end,
    },
}
