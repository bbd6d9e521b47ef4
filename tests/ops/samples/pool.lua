-- Samples of pooling of images (see test_walk.lua for what `mk` makes).
return {
    avg_pool2d = {
        function(mk) return { mk(2, 2, 4, 6), 2 } end,
        function(mk) return { mk(1, 5, 5), 3, 2, 1 } end,
        function(mk) return { mk(1, 1, 5, 6), { 2, 3 }, { 1, 2 }, { 1, 1 }, true, false } end,
        function(mk) return { mk(1, 1, 4, 4), 2, { divisor_override = 3 } } end,
    },
}
