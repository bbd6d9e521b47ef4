-- Samples of the random operators (see test_walk.lua for what `mk` makes).
local sizes = {
    function() return { 2, 3 } end,
    function() return { { 0, 4 } } end,
    function() return { { 1001 }, { dtype = tide.float64 } } end,
}
local like = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk() } end,
    function(mk) return { mk(0, 2) } end,
}

return {
    rand = sizes,
    randn = sizes,
    rand_like = like,
    randn_like = like,
    randint = {
        function() return { 0, 10, { 2, 3 } } end,
        function() return { -3, 3, { 7 }, { dtype = tide.int32 } } end,
        function() return { 0, 1 << 40, { 0 } } end,
    },
    randint_like = {
        function(mk) return { mk(2, 3), 5 } end,
        function(mk) return { mk.ints(4), -2, 2 } end,
        function(mk) return { mk(0), 3, { dtype = tide.int8 } } end,
    },
    log_normal_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(5), 0, 0.5 } end,
        function(mk) return { mk(0) } end,
    },
    exponential_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(5), 2.5 } end,
        function(mk) return { mk() } end,
    },
    cauchy_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(5), 1, 0.5 } end,
        function(mk) return { mk(0) } end,
    },
    geometric_ = {
        function(mk) return { mk(2, 3), 0.5 } end,
        function(mk) return { mk.ints(5), 0.1 } end,
        function(mk) return { mk(0), 0.9 } end,
    },
    random_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk.ints(5), 10 } end,
        function(mk) return { mk(3), -4, 4 } end,
    },
    randperm = {
        function() return { 10 } end,
        function() return { 1 } end,
        function() return { 0 } end,
    },
    uniform_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(5), -1, 1 } end,
        function(mk) return { mk(0), 2, 3 } end,
    },
    normal_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(5), 10, 0.5 } end,
        function(mk) return { mk(), 0, 0 } end,
    },
    bernoulli_ = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(5), 0.1 } end,
        function(mk) return { mk(0), 1 } end,
    },
    bernoulli = {
        function(mk) return { mk(2, 3):abs() } end,
        function() return { tide.ones(4) } end,
        function() return { tide.zeros(0) } end,
    },
    dropout = {
        function(mk) return { mk(4, 5) } end,
        function(mk) return { mk(3), 0.9 } end,
        function(mk) return { mk(3, 2), 0.5, false } end,
        function(mk) return { mk(0), 1 } end,
    },
}
