-- Samples of ways to make tensors (see test_walk.lua for what `mk` makes).
local function window(...)
    local more = { ... }
    return {
        function() return { 7 } end,
        function() return { 6, false, more[1] or { dtype = tide.float64 } } end,
        function() return { 1 } end,
        function() return { 0 } end,
    }
end
local function sized(...)
    local more = table.pack(...)
    return {
        function(mk) return { mk(2), { 2, 3 }, table.unpack(more, 1, more.n) } end,
        function(mk) return { mk.mask(2), { 0 }, table.unpack(more, 1, more.n) } end,
        function(mk) return { mk.ints(2), {}, table.unpack(more, 1, more.n) } end,
    }
end
local strided = {
    function() return { { 2, 3 }, { 1, 2 } } end,
    function() return { { 2, 2 }, { 0, 1 }, { dtype = tide.int32 } } end,
    function() return { {}, {} } end,
}

return {
    new_empty = sized(),
    new_zeros = sized(),
    scalar_tensor = {
        function() return { 2 } end,
        function() return { 1.5, { dtype = tide.float64 } } end,
        function() return { true } end,
    },
    fill = {
        function(mk) return { mk(2, 3), 1.5 } end,
        function(mk) return { mk(2), mk() } end,
        function(mk) return { mk(0), 1 } end,
    },
    new_ones = sized(),
    new_full = sized(3),
    empty_strided = strided,
    new_empty_strided = {
        function(mk) return { mk(2), { 2, 3 }, { 1, 2 } } end,
        function(mk) return { mk.mask(2), { 3 }, { 2 } } end,
        function(mk) return { mk(2), {}, {} } end,
    },
    logspace = {
        function() return { 0, 2, 5 } end,
        function() return { -1, 1, 3, 2, { dtype = tide.float64 } } end,
        function() return { 0, 1, 0 } end,
    },
    vander = {
        function(mk) return { mk(3) } end,
        function(mk) return { mk(2), 4, true } end,
        function(mk) return { mk(2), 0 } end,
    },
    hann_window = window(),
    hamming_window = window(0.6),
    blackman_window = window(),
    bartlett_window = window(),
    kaiser_window = window(5),
}
