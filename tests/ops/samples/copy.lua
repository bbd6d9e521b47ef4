-- Samples of copying and converting (see test_walk.lua for what `mk` makes).
local tide = tide
return {
    copy_ = {
        function(mk) return { mk(2, 3), mk(2, 3) } end,
        function(mk) return { mk(2, 3), mk(3) } end,
        function(mk) return { mk(0), mk(0) } end,
    },
    fill_ = {
        function(mk) return { mk(2, 3), 1.5 } end,
        function(mk) return { mk(2, 3), mk() } end,
        function(mk) return { mk(), 2 } end,
    },
    zero_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk() } end,
        function(mk) return { mk(3, 0) } end,
    },
    clone = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(2, 3), { memory_format = "contiguous" } } end,
        function(mk) return { mk() } end,
    },
    contiguous = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk() } end,
        function(mk) return { mk(0, 2) } end,
    },
    to = {
        function(mk) return { mk(2, 3), tide.float64 } end,
        function(mk) return { mk(2, 3), { copy = true } } end,
        function(mk) return { mk(), { device = "cpu" } } end,
    },
    detach = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk() } end,
        function(mk) return { mk(0) } end,
    },
}
