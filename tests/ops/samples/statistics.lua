-- Samples of quantiles, moments, differences and covariances (see test_walk.lua for what `mk` makes).
local quantiles = {
    function(mk) return { mk(7), 0.3 } end,
    function(mk) return { mk(3, 4), 0.6, 1, { interpolation = "nearest" } } end,
    function(mk) return { mk(3, 4, 2), mk.pos(3):detach() / 2, -2, true, { interpolation = "midpoint" } } end,
    function(mk) return { mk(3, 4), mk.pos(2):detach() / 2, { keepdim = true, interpolation = "lower" } } end,
    function(mk) return { mk(3, 4), 1, 2, { interpolation = "higher" } } end,
}
local moments = {
    function(mk) return { mk(2, 3, 2) } end,
    function(mk) return { mk(2, 3), 1, { correction = 0 } } end,
    function(mk) return { mk(2, 3, 2), { 1, -1 }, { keepdim = true } } end,
    function(mk) return { mk(4), 1, { unbiased = false } } end,
}
local areas = {
    function(mk) return { mk(5) } end,
    function(mk) return { mk(3, 4), mk(3), { dim = 1 } } end,
    function(mk) return { mk(3, 4), mk(3, 4) } end,
    function(mk) return { mk(3, 4), { dx = 0.5, dim = 1 } } end,
}

return {
    quantile = quantiles,
    nanquantile = quantiles,
    aminmax = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(2, 3), { dim = 1 } } end,
        function(mk) return { mk(2, 3), { dim = -1, keepdim = true } } end,
    },
    var_mean = moments,
    std_mean = moments,
    renorm = {
        function(mk) return { mk(3, 4), 2, 1, 0.5 } end,
        function(mk) return { mk(3, 4, 2), 1, 2, 0.75 } end,
        function(mk) return { mk(3, 4), math.huge, -1, 0.3 } end,
    },
    dist = {
        function(mk) return { mk(2, 3), mk(2, 3) } end,
        function(mk) return { mk(2, 3), mk(3), 1 } end,
        function(mk) return { mk(4), mk(4), 3 } end,
    },
    diff = {
        function(mk) return { mk(5) } end,
        function(mk) return { mk(3, 4), 2, 1 } end,
        function(mk) return { mk(3, 4), { prepend = mk(3, 1), append = mk(3, 2) } } end,
        function(mk) return { mk(2), 3 } end,
    },
    trapezoid = areas,
    trapz = areas,
    cumulative_trapezoid = areas,
    cov = {
        function(mk) return { mk(3, 5) } end,
        function(mk) return { mk(5), { correction = 0 } } end,
        function(mk) return { mk(3, 4), { fweights = mk.ints(4), aweights = mk.pos(4):detach() } } end,
    },
    corrcoef = {
        function(mk) return { mk(3, 5) } end,
        function(mk) return { mk(2, 7) } end,
        function(mk) return { mk(5) } end,
    },
}
