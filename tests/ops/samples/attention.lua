-- Samples of attention (see test_walk.lua for what `mk` makes).
return {
    scaled_dot_product_attention = {
        function(mk) return { mk(2, 3, 4), mk(2, 5, 4), mk(2, 5, 2) } end,
        function(mk) return { mk(3, 2), mk(3, 2), mk(3, 2), nil, 0, true, n = 6 } end,
        function(mk) return { mk(2, 2, 3), mk(2, 4, 3), mk(2, 4, 3), mk.mask(2, 4) } end,
        function(mk) return { mk(2, 3), mk(4, 3), mk(4, 3), mk(2, 4), { scale = 0.5 } } end,
        function(mk) return { mk(1, 4, 2, 3), mk(1, 2, 3, 3), mk(1, 2, 3, 3), { enable_gqa = true } } end,
    },
}
