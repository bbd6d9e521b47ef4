-- Samples of gather and scatter (see test_walk.lua for what `mk` makes).
return {
    gather = {
        function(mk) return { mk(3, 4), 2, mk.index(4, 3, 2) } end,
        function(mk) return { mk(3, 4), 1, mk.index(3, 5, 4) } end,
        function(mk) return { mk(2, 3, 2), 2, mk.index(3, 1, 4, 2) } end,
        function(mk) return { mk(4), -1, mk.index(4, 0) } end,
    },
    scatter = {
        function(mk) return { mk(3, 4), 2, tide.tensor { { 1, 3 }, { 2, 4 }, { 4, 1 } }, mk(3, 2) } end,
        function(mk) return { mk(3, 4), 1, tide.tensor { { 1, 2, 3, 1 } }, 0.5 } end,
        function(mk) return { mk(4), -1, tide.tensor { 2, -1 }, mk(3) } end,
    },
    scatter_add = {
        function(mk) return { mk(3, 4), 2, mk.index(4, 3, 5), mk(3, 5) } end,
        function(mk) return { mk(3, 4), 1, mk.index(3, 2, 4), mk(2, 4) } end,
        function(mk) return { mk(4), -1, mk.index(4, 0), mk(0) } end,
    },
    one_hot = {
        function(mk) return { mk.index(4, 5), 4 } end,
        function() return { tide.tensor { 1, 3, 2 } } end,
        function(mk) return { mk.index(3, 2, 2), 5 } end,
    },
}
