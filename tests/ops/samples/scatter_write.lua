-- Samples of what puts and reduces elements in places (see test_walk.lua for what `mk` makes).
local function reduced(how, include)
    return function(mk)
        return { mk(3, 4), 2, tide.tensor { { 1, 3, 1 }, { 2, 4, 2 } }, mk(2, 3), how, { include_self = include } }
    end
end
local function rows(how, include)
    return function(mk)
        return { mk(3, 4), 1, tide.tensor { 1, 3, 1 }, mk(3, 4), how, { include_self = include } }
    end
end

return {
    scatter_reduce = {
        reduced("sum", true), reduced("sum", false), reduced("prod", true), reduced("prod", false),
        reduced("mean", true), reduced("mean", false), reduced("amax", true), reduced("amin", false),
        function(mk) return { mk(), 1, tide.tensor { 1, 1 }, mk(2), "sum" } end,
        function(mk) return { mk(4), -1, mk.index(4, 0), mk(0), "prod" } end,
    },
    index_reduce = {
        rows("prod", true), rows("mean", false), rows("amax", true), rows("amin", true),
    },
    index_put = {
        function(mk) return { mk(4, 3), { mk.index(4, 2) }, mk(2, 3), true } end,
        function(mk) return { mk(4, 3), { tide.tensor { 1, 3 }, tide.tensor { 2, -1 } }, mk(2) } end,
        function(mk) return { mk(4, 3), { false, tide.tensor { 3, 1 } }, mk(1, 2) } end,
        function(mk) return { mk(3), { tide.tensor { true, false, true } }, mk() } end,
    },
    put = {
        function(mk) return { mk(2, 3), tide.tensor { 1, 6 }, mk(2) } end,
        function(mk) return { mk(2, 3), tide.tensor { { 2, 2 }, { -1, 1 } }, mk(2, 2), true } end,
        function(mk) return { mk(4), mk.index(4, 0), mk(0) } end,
    },
    masked_scatter = {
        function(mk) return { mk(2, 3), tide.tensor { { true, false, true }, { false, true, true } }, mk(5) } end,
        function(mk) return { mk(2, 2), tide.tensor { true, false }, mk(2, 2) } end,
        function(mk) return { mk(), tide.tensor(true), mk(1) } end,
    },
    take_along_dim = {
        function(mk) return { mk(3, 4), mk.index(4, 3, 2), 2 } end,
        function(mk) return { mk(3, 1), mk.index(3, 1, 4), 1 } end,
        function(mk) return { mk(2, 3), mk.index(6, 4) } end,
    },
    argwhere = {
        function(mk) return { mk.mask(2, 3) } end,
        function(mk) return { mk(2, 2) } end,
        function() return { tide.zeros(3) } end,
    },
}
