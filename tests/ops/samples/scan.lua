-- Samples of scans (see test_walk.lua for what `mk` makes).
local scans = {
    function(mk) return { mk(5), 1 } end,
    function(mk) return { mk(2, 3), 1 } end,
    function(mk) return { mk(2, 3, 4), -2 } end,
    function(mk) return { mk(2, 700), 2 } end,
    function(mk) return { mk(0, 3), 1 } end,
    function(mk) return { mk(), 1 } end,
}
local products = { table.unpack(scans) }
products[4] = function(mk) return { mk.ints(4), 1, { dtype = tide.float64 } } end
local sums = { table.unpack(products) }
local extremes = { table.unpack(scans) }
extremes[4] = function(mk) return { mk(3, 30), 2 } end
local log_sums = { table.unpack(extremes) }

return { cumsum = sums, cumprod = products, cummax = extremes, cummin = extremes, logcumsumexp = log_sums }
