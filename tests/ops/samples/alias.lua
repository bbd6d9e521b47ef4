-- Samples of operators' second names (see test_walk.lua for what `mk` makes).
return {
    moveaxis = {
        function(mk) return { mk(2, 3, 4), 1, 3 } end,
        function(mk) return { mk(2, 3, 4), { 1, 2 }, { 3, 1 } } end,
        function(mk) return { mk(5), 1, -1 } end,
    },
    swapdims = {
        function(mk) return { mk(2, 3, 4), 1, 3 } end,
        function(mk) return { mk(2, 3), -1, -2 } end,
        function(mk) return { mk(4), 1, 1 } end,
    },
    swapaxes = {
        function(mk) return { mk(2, 3, 4), 2, 3 } end,
        function(mk) return { mk(2, 0), 1, 2 } end,
        function(mk) return { mk(), 1, 1 } end,
    },
    concat = {
        function(mk) return { { mk(2, 3), mk(1, 3) } } end,
        function(mk) return { { mk(2, 3), mk(2, 2) }, 2 } end,
        function(mk) return { { mk(0), mk(2, 2) }, -1 } end,
    },
    concatenate = {
        function(mk) return { { mk(2, 3), mk(1, 3) } } end,
        function(mk) return { { mk(2, 3), mk(2, 2) }, { axis = 2 } } end,
        function(mk) return { { mk(3) }, 1 } end,
    },
    ger = {
        function(mk) return { mk(3), mk(2) } end,
        function(mk) return { mk(1), mk(4) } end,
        function(mk) return { mk(0), mk(2) } end,
    },
    ravel = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk() } end,
        function(mk) return { mk(0, 3) } end,
    },
}
