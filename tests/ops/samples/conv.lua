-- Samples of convolution (see test_walk.lua for what `mk` makes).
return {
    conv2d = {
        function(mk) return { mk(2, 2, 5, 4), mk(3, 2, 3, 2), mk(3) } end,
        function(mk) return { mk(1, 3, 3), mk(2, 1, 2, 2) } end,
        function(mk) return { mk(1, 2, 5, 5), mk(4, 1, 3, 3), mk(4), { padding = 1, groups = 2 } } end,
        function(mk) return { mk(1, 1, 6, 7), mk(2, 1, 2, 3), nil, { 2, 1 }, { 1, 2 }, { 1, 2 }, n = 6 } end,
        function(mk) return { mk(2, 3, 1, 1), mk(2, 3, 1, 1), mk(2) } end,
    },
}
