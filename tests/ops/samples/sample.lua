-- Samples of draws whose parameters are tensors (see test_walk.lua for what `mk` makes).
return {
    normal = {
        function(mk) return { mk(2, 3), 0.5 } end,
        function(mk) return { mk(2, 1), mk.pos(3) } end,
        function() return { 1, 2, { 4 } } end,
    },
    poisson = {
        function(mk) return { mk.pos(2, 3) } end,
        function(mk) return { mk.pos(4) * 40 } end,
        function(mk) return { mk(0) } end,
    },
    multinomial = {
        function(mk) return { mk.pos(4), 3 } end,
        function(mk) return { mk.pos(2, 3), 7, true } end,
        function(mk) return { mk.pos(1), 1 } end,
    },
}
