-- Samples of what counts and finds values (see test_walk.lua for what `mk` makes).
local function sorted(mk, ...) return (mk(...):detach():sort()) end

return {
    unique = {
        function(mk) return { mk.ints(9) } end,
        function(mk) return { mk.ints(3, 5), { return_inverse = true, return_counts = true } } end,
        function(mk) return { mk.mask(7, 2), true, true, true, 1 } end,
        function(mk) return { mk(0), { return_inverse = true } } end,
    },
    unique_consecutive = {
        function(mk) return { mk.mask(9) } end,
        function(mk) return { mk.ints(3, 5), true, true } end,
        function(mk) return { mk.mask(2, 7), { return_counts = true, dim = 2 } } end,
    },
    bincount = {
        function(mk) return { mk.index(4, 9) } end,
        function(mk) return { mk.index(4, 9), mk.ints(9) } end,
        function(mk) return { mk.index(4, 9), { minlength = 7 } } end,
    },
    histc = {
        function(mk) return { mk(30), 5 } end,
        function(mk) return { mk(3, 10), 4, -0.5, 0.5 } end,
        function(mk) return { mk(0), { bins = 3 } } end,
    },
    searchsorted = {
        function(mk) return { sorted(mk, 9), mk(2, 3) } end,
        function(mk) return { sorted(mk, 3, 6), mk(3, 2), { right = true } } end,
        function(mk) return { mk(4), mk(3), { sorter = tide.tensor { 1, 2, 3, 4 } } } end,
        function(mk) return { sorted(mk, 9), 0.25, { side = "right", out_int32 = true } } end,
    },
    bucketize = {
        function(mk) return { mk(2, 3), sorted(mk, 4) } end,
        function(mk) return { mk(5), sorted(mk, 4), { right = true } } end,
        function(mk) return { 0.5, sorted(mk, 4) } end,
    },
    isin = {
        function(mk) return { mk.ints(3, 4), mk.ints(5) } end,
        function(mk) return { mk.ints(7), 3, { invert = true } } end,
        function(mk) return { mk.ints(7), mk.ints(0) } end,
    },
}
