-- Samples of the index operators (see test_walk.lua for what `mk` makes).
return {
    index_select = {
        function(mk) return { mk(4, 3), 1, mk.index(4, 5) } end,
        function(mk) return { mk(2, 3), -1, mk.index(3, 2) } end,
        function(mk) return { mk(3), 1, mk.index(3, 0) } end,
        function(mk) return { mk(3, 2), 1, tide.tensor { -1, 1, -1 } } end,
    },
    index_add = {
        function(mk) return { mk(4, 3), 1, mk.index(4, 5), mk(5, 3) } end,
        function(mk) return { mk(2, 3), 2, mk.index(3, 4), mk(2, 4), { alpha = 2.5 } } end,
        function(mk) return { mk(3), 1, mk.index(3, 0), mk(0) } end,
    },
    index_copy = {
        function(mk) return { mk(4, 3), 1, tide.tensor { 3, 1 }, mk(2, 3) } end,
        function(mk) return { mk(2, 3), -1, tide.tensor { 2 }, mk(2, 1) } end,
        function(mk) return { mk(3), 1, mk.index(3, 0), mk(0) } end,
    },
    index_fill = {
        function(mk) return { mk(4, 3), 1, tide.tensor { 3, 1 }, 0.5 } end,
        function(mk) return { mk(2, 3), -1, mk.index(3, 2), 2 } end,
        function(mk) return { mk(3), 1, mk.index(3, 0), 1 } end,
    },
    take = {
        function(mk) return { mk(4, 3), mk.index(12, 5) } end,
        function(mk) return { mk(2, 3), mk.index(6, 2, 2) } end,
        function(mk) return { mk(3), mk.index(3, 0) } end,
    },
    embedding = {
        function(mk) return { mk(5, 3), mk.index(5, 4) } end,
        function(mk) return { mk(5, 2), mk.index(5, 2, 3) } end,
        function(mk) return { mk(2, 2), mk.index(2) } end,
    },
    masked_fill = {
        function(mk) return { mk(2, 3), mk.mask(2, 3), 0.5 } end,
        function(mk) return { mk(2, 3), mk.mask(3), -1 } end,
        function(mk) return { mk(2, 3), mk.mask(2, 3), mk() } end,
    },
    masked_select = {
        function(mk) return { mk(2, 3), mk.mask(2, 3) } end,
        function(mk) return { mk(2, 3), mk.mask(2, 1) } end,
        function(mk) return { mk(), mk.mask() } end,
    },
    nonzero = {
        function(mk) return { mk.mask(3, 4) } end,
        function(mk) return { mk(3) } end,
        function(mk) return { mk.mask() } end,
        function() return { tide.zeros(2, 0) } end,
    },
}
