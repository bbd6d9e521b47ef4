-- Samples of sorts, the first few and single ranks (see test_walk.lua for what `mk` makes).
local function ranks()
    return {
        function(mk) return { mk(5) } end,
        function(mk) return { mk(3, 4, 2), 2 } end,
        function(mk) return { mk(3, 4), 1, { keepdim = true } } end,
        function(mk) return { mk(3, 4), -1, true } end,
        function(mk) return { mk(), 1 } end,
    }
end
local orders = {
    function(mk) return { mk(5) } end,
    function(mk) return { mk(3, 4), 1, true } end,
    function(mk) return { mk(3, 4, 2), 2, { descending = true, stable = true } } end,
    function(mk) return { mk(70, 3), 1 } end,
    function(mk) return { mk(0, 3), -1 } end,
    function(mk) return { mk() } end,
}
local medians = ranks()
medians[6] = function(mk) return { mk(3, 4) } end

return {
    sort = orders,
    argsort = orders,
    msort = {
        function(mk) return { mk(5) } end,
        function(mk) return { mk(3, 4, 2) } end,
        function(mk) return { mk(2, 0) } end,
    },
    topk = {
        function(mk) return { mk(5), 2 } end,
        function(mk) return { mk(3, 4), 3, 1, false } end,
        function(mk) return { mk(3, 40), 2, { sorted = false } } end,
        function(mk) return { mk(3, 4), 0 } end,
        function(mk) return { mk(), 1 } end,
    },
    kthvalue = {
        function(mk) return { mk(5), 2 } end,
        function(mk) return { mk(3, 4, 2), 3, 2 } end,
        function(mk) return { mk(3, 40), 17, -1, { keepdim = true } } end,
        function(mk) return { mk(), 1 } end,
    },
    median = medians,
    nanmedian = medians,
    mode = ranks(),
}
