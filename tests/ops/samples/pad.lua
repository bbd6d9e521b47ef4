-- Samples of padding and shuffles (see test_walk.lua for what `mk` makes).
return {
    pad = {
        function(mk) return { mk(2, 3), { 1, 2, 0, 1 }, { value = 1.5 } } end,
        function(mk) return { mk(2, 4, 4), { -1, 2, 1, -2 } } end,
        function(mk) return { mk(2, 4), { 3, 1 }, "reflect" } end,
        function(mk) return { mk(1, 2, 3, 4), { 1, 2, -1, 2 }, "replicate" } end,
        function(mk) return { mk(1, 2, 3, 2), { 1, 2, 3, 0, 1, 1 }, "circular" } end,
    },
    pixel_shuffle = {
        function(mk) return { mk(1, 8, 2, 3), 2 } end,
        function(mk) return { mk(9, 1, 2), 3 } end,
        function(mk) return { mk(2, 1, 4, 2, 1), 2 } end,
    },
    pixel_unshuffle = {
        function(mk) return { mk(1, 2, 4, 2), 2 } end,
        function(mk) return { mk(1, 3, 6), 3 } end,
        function(mk) return { mk(2, 1, 1, 2, 2), 2 } end,
    },
    channel_shuffle = {
        function(mk) return { mk(1, 6, 2, 2), 2 } end,
        function(mk) return { mk(2, 6, 3), 3 } end,
        function(mk) return { mk(1, 4, 1, 1, 2), 4 } end,
    },
}
