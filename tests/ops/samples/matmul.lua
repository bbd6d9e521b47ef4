-- Samples of the products (see test_walk.lua for what `mk` makes).
return {
    matmul = {
        function(mk) return { mk(2, 3), mk(3, 4) } end,
        function(mk) return { mk(3), mk(3) } end,
        function(mk) return { mk(2, 3), mk(3) } end,
        function(mk) return { mk(3), mk(3, 2) } end,
        function(mk) return { mk(2, 1, 3, 2), mk(4, 2, 3) } end,
        function(mk) return { mk(2, 3, 4), mk(4, 2) } end,
        function(mk) return { mk(2, 3, 4), mk(4) } end,
        function(mk) return { mk(3), mk(2, 3, 2) } end,
        function(mk) return { mk(2, 0), mk(0, 3) } end,
    },
    mm = {
        function(mk) return { mk(2, 3), mk(3, 4) } end,
        function(mk) return { mk(1, 3), mk(3, 1) } end,
        function(mk) return { mk(0, 3), mk(3, 2) } end,
        function(mk) return { mk(17, 9), mk(9, 11) } end,
    },
    int_mm = {
        function(mk) return { mk.ints(2, 3):to "int8", mk.ints(3, 4):to "int8" } end,
        function(mk) return { mk.ints(0, 3):to "int8", mk.ints(3, 2):to "int8" } end,
        function(mk) return { mk.ints(2, 0):to "int8", mk.ints(0, 2):to "int8" } end,
        function(mk) return { mk.ints(20, 36):to "int8", mk.ints(36, 24):to "int8" } end,
    },
    bmm = {
        function(mk) return { mk(2, 2, 3), mk(2, 3, 4) } end,
        function(mk) return { mk(1, 3, 1), mk(1, 1, 2) } end,
        function(mk) return { mk(0, 3, 2), mk(0, 2, 2) } end,
    },
    mv = {
        function(mk) return { mk(2, 3), mk(3) } end,
        function(mk) return { mk(3, 1), mk(1) } end,
        function(mk) return { mk(2, 0), mk(0) } end,
    },
    dot = {
        function(mk) return { mk(4), mk(4) } end,
        function(mk) return { mk(1), mk(1) } end,
        function(mk) return { mk(0), mk(0) } end,
    },
    outer = {
        function(mk) return { mk(2), mk(3) } end,
        function(mk) return { mk(1), mk(1) } end,
        function(mk) return { mk(0), mk(3) } end,
    },
    addmm = {
        function(mk) return { mk(2, 4), mk(2, 3), mk(3, 4) } end,
        function(mk) return { mk(4), mk(2, 3), mk(3, 4) } end,
        function(mk) return { mk(4), mk(2, 3), mk(3, 4), { beta = 0.5, alpha = 2 } } end,
        function(mk) return { mk(2, 2), mk(2, 3), mk(3, 2), { beta = 0 } } end,
    },
    addmv = {
        function(mk) return { mk(2), mk(2, 3), mk(3) } end,
        function(mk) return { mk(1), mk(2, 3), mk(3), { beta = 0.5, alpha = -1 } } end,
        function(mk) return { mk(), mk(2, 3), mk(3) } end,
    },
    baddbmm = {
        function(mk) return { mk(2, 2, 4), mk(2, 2, 3), mk(2, 3, 4) } end,
        function(mk) return { mk(2, 4), mk(2, 2, 3), mk(2, 3, 4), { beta = 2, alpha = 0.5 } } end,
        function(mk) return { mk(1), mk(1, 2, 2), mk(1, 2, 1) } end,
    },
    linear = {
        function(mk) return { mk(4, 3), mk(2, 3), mk(2) } end,
        function(mk) return { mk(3), mk(2, 3) } end,
        function(mk) return { mk(2, 2, 3), mk(4, 3), mk(4) } end,
        function(mk) return { mk(0, 3), mk(2, 3), mk(2) } end,
        function(mk) return { mk(2, 0), mk(3, 0), mk(3) } end,
    },
}
