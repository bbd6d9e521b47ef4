-- Samples of sparse tensors (see test_walk.lua for what `mk` makes): with a place named twice, in order, with rows
-- for values, and without places.
local function loose(mk) return tide.sparse_coo_tensor({ { 1, 2, 2 }, { 3, 1, 1 } }, mk(3), { 2, 3 }) end
local function tidy(mk)
    return tide.sparse_coo_tensor({ { 1, 2 }, { 3, 1 } }, mk(2), { 2, 3 }, { is_coalesced = true })
end
local function rows(mk) return tide.sparse_coo_tensor({ { 4, 1, 4 } }, mk(3, 2), { 5, 2 }) end
local function row(mk) return tide.sparse_coo_tensor({ { 4, 5 } }, mk(2, 2), { 5, 2 }, { is_coalesced = true }) end
local function nothing(mk) return tide.sparse_coo_tensor(tide.zeros(2, 0, { dtype = tide.int64 }), mk(0), { 2, 3 }) end

local function of(...)
    local list = {}
    for k, make in ipairs { ... } do
        list[k] = function(mk) return { make(mk) } end
    end
    return list
end

return {
    sparse_coo_tensor = {
        function(mk) return { mk.index(3, 2, 4), mk(4), { 3, 3 } } end,
        function(mk) return { mk.index(5, 1, 3), mk(3, 2) } end,
        function(mk) return { tide.tensor { { 1, 1 }, { 2, 3 } }, mk(2), { is_coalesced = true } } end,
    },
    to_dense = of(loose, tidy, rows, nothing, function(mk) return mk(2, 3) end),
    to_sparse = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(2, 3), 1 } end,
        function(mk) return { tidy(mk) } end,
    },
    coalesce = of(loose, tidy, rows),
    sparse_mask = {
        function(mk) return { mk(2, 3), loose(mk) } end,
        function(mk) return { mk(5, 2), row(mk) } end,
        function(mk) return { loose(mk), tidy(mk) } end,
    },
    values = of(tidy, row, nothing),
    indices = of(tidy, row, nothing),
    _values = of(loose, rows, nothing),
    _indices = of(loose, rows, nothing),
    _nnz = of(loose, rows, nothing),
    is_coalesced = of(loose, tidy, nothing),
    sparse_dim = of(loose, rows, function(mk) return mk(2) end),
    dense_dim = of(loose, rows, function(mk) return mk(2) end),
}
