-- Samples of windows as columns (see test_walk.lua for what `mk` makes).
return {
    im2col = {
        function(mk) return { mk(2, 2, 3, 4), 2 } end,
        function(mk) return { mk(1, 1, 5, 5), { 2, 3 }, 1, { 1, 0 }, { 2, 1 } } end,
        function(mk) return { mk(2, 5, 6), { 2, 2 }, { 2, 1 }, 1, 3 } end,
    },
    col2im = {
        function(mk) return { mk(1, 8, 6), { 3, 4 }, 2 } end,
        function(mk) return { mk(1, 6, 9), 5, { 2, 3 }, 1, { 1, 0 }, { 2, 1 } } end,
        function(mk) return { mk(8, 6), { 5, 6 }, { 2, 2 }, { 2, 1 }, 1, 3 } end,
    },
}
