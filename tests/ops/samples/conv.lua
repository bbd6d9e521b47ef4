-- Samples of convolution (see test_walk.lua for what `mk` makes).
return {
    conv2d = {
        function(mk) return { mk(2, 2, 5, 4), mk(3, 2, 3, 2), mk(3) } end,
        function(mk) return { mk(1, 3, 3), mk(2, 1, 2, 2) } end,
        function(mk) return { mk(1, 2, 5, 5), mk(4, 1, 3, 3), mk(4), { padding = 1, groups = 2 } } end,
        function(mk) return { mk(1, 1, 6, 7), mk(2, 1, 2, 3), nil, { 2, 1 }, { 1, 2 }, { 1, 2 }, n = 6 } end,
        function(mk) return { mk(2, 3, 1, 1), mk(2, 3, 1, 1), mk(2) } end,
    },
    conv1d = {
        function(mk) return { mk(2, 2, 7), mk(3, 2, 3), mk(3) } end,
        function(mk) return { mk(2, 6), mk(4, 1, 2), nil, 2, 1, 2, 2, n = 7 } end,
        function(mk) return { mk(1, 2, 5), mk(1, 2, 4), mk(1), { padding = "same" } } end,
    },
    conv3d = {
        function(mk) return { mk(1, 2, 3, 4, 3), mk(2, 2, 2, 3, 2), mk(2) } end,
        function(mk) return { mk(2, 3, 3, 2), mk(2, 1, 2, 1, 2), nil, { 1, 2, 1 }, { 1, 0, 1 }, 1, 2, n = 7 } end,
        function(mk) return { mk(1, 1, 2, 3, 3), mk(2, 1, 1, 2, 3), mk(2), { padding = "same" } } end,
    },
    conv_transpose1d = {
        function(mk) return { mk(2, 2, 4), mk(2, 3, 3), mk(3) } end,
        function(mk) return { mk(4, 3), mk(4, 1, 2), nil, 2, 1, 1, 2, n = 7 } end,
        function(mk) return { mk(1, 2, 3), mk(2, 1, 3), mk(1), 1, 1, 1, { dilation = 2 } } end,
    },
    conv_transpose2d = {
        function(mk) return { mk(1, 2, 3, 2), mk(2, 2, 2, 3), mk(2) } end,
        function(mk) return { mk(2, 2, 3), mk(2, 1, 2, 2), nil, { 2, 3 }, 0, { 1, 2 }, n = 6 } end,
        function(mk) return { mk(1, 4, 2, 2), mk(4, 1, 3, 2), mk(2), 2, 1, { groups = 2 } } end,
    },
    conv_transpose3d = {
        function(mk) return { mk(1, 2, 2, 2, 2), mk(2, 1, 2, 1, 2), mk(1) } end,
        function(mk) return { mk(1, 2, 1, 2), mk(1, 2, 1, 2, 2), nil, 2, n = 4 } end,
        function(mk) return { mk(1, 2, 2, 1, 2), mk(2, 1, 1, 2, 1), mk(2), 2, 0, { 0, 1, 1 }, 2 } end,
    },
}
