-- Samples of the bilinear map (see test_walk.lua for what `mk` makes).
return {
    bilinear = {
        function(mk) return { mk(2, 3), mk(2, 2), mk(4, 3, 2), mk(4) } end,
        function(mk) return { mk(2, 2, 2), mk(2, 2, 3), mk(1, 2, 3) } end,
        function(mk) return { mk(3), mk(2), mk(4, 3, 2), mk(4) } end,
    },
}
