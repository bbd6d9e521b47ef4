-- Samples of pooling and interpolation (see test_walk.lua for what `mk` makes).
return {
    max_pool2d = {
        function(mk) return { mk(2, 2, 4, 6), 2 } end,
        function(mk) return { mk(1, 5, 5), 3, 2, 1 } end,
        function(mk) return { mk(1, 1, 5, 7), { 2, 3 }, { 1, 2 }, { 1, 0 }, { 2, 1 }, true } end,
        function(mk) return { mk(1, 2, 5, 5), 2 } end,
    },
    avg_pool2d = {
        function(mk) return { mk(2, 2, 4, 6), 2 } end,
        function(mk) return { mk(1, 5, 5), 3, 2, 1 } end,
        function(mk) return { mk(1, 1, 5, 6), { 2, 3 }, { 1, 2 }, { 1, 1 }, true, false } end,
        function(mk) return { mk(1, 1, 4, 4), 2, { divisor_override = 3 } } end,
    },
    adaptive_avg_pool2d = {
        function(mk) return { mk(2, 2, 4, 6), 2 } end,
        function(mk) return { mk(1, 5, 7), { 3, 2 } } end,
        function(mk) return { mk(1, 1, 2, 2), { 3, 4 } } end,
    },
    interpolate = {
        function(mk) return { mk(2, 2, 2, 3), { scale_factor = 2 } } end,
        function(mk) return { mk(1, 5, 5), { 3, 4 } } end,
        function(mk) return { mk(1, 1, 3, 4), { scale_factor = 1.5, mode = "nearest" } } end,
        function(mk) return { mk(1, 1, 3, 3), { size = 3 } } end,
    },
}
