-- Samples of the reductions (see test_walk.lua for what `mk` makes).
local function over_dims(make, ...)
    local extra = { ... }
    local list = {
        function(mk) return { make(mk, 2, 3, 2) } end,
        function(mk) return { make(mk, 2, 3), 1 } end,
        function(mk) return { make(mk, 2, 3, 2), { 1, -1 }, { keepdim = true } } end,
        function(mk) return { make(mk) } end,
    }
    for _, sample in ipairs(extra) do
        list[#list + 1] = sample
    end
    return list
end
local function floats(mk, ...) return mk(...) end
local function masks(mk, ...) return mk.mask(...) end
local function empty(mk) return { mk(0, 3), 1 } end

local extremes = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(2, 3), 1 } end,
    function(mk) return { mk(2, 3, 2), -1, { keepdim = true } } end,
    function(mk) return { mk(), 1 } end,
}
local places = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(2, 3), 1 } end,
    function(mk) return { mk.ints(2, 3, 2), -1, { keepdim = true } } end,
}
local spread = over_dims(floats)
spread[4] = function(mk) return { mk(5), { correction = 0 } } end

return {
    sum = over_dims(floats, empty, function(mk) return { mk.ints(2, 3), { dtype = tide.float64 } } end),
    nansum = over_dims(floats, empty),
    nanmean = over_dims(floats),
    mean = over_dims(floats, function(mk) return { mk(3, 0, 2), 1 } end),
    prod = over_dims(floats, empty),
    var = spread,
    std = spread,
    amax = over_dims(floats),
    amin = over_dims(floats),
    max = extremes,
    min = extremes,
    argmax = places,
    argmin = places,
    any = over_dims(masks, empty),
    all = over_dims(masks, empty),
    count_nonzero = over_dims(masks, empty),
    norm = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(2, 3), 1, 2 } end,
        function(mk) return { mk(2, 3), math.huge, 1, { keepdim = true } } end,
        function(mk) return { mk(4), 3.5 } end,
        function(mk) return { mk(0, 2), 2, 1 } end,
    },
    logsumexp = over_dims(floats),
    sum_to_size = {
        function(mk) return { mk(2, 3), 1, 3 } end,
        function(mk) return { mk(2, 3, 2), { 3, 1 } } end,
        function(mk) return { mk(2, 3), 2, 3 } end,
    },
}
