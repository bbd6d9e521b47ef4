-- Samples of bags of rows (see test_walk.lua for what `mk` makes); those of single rows stand in index.lua.
local function offsets() return tide.tensor { 1, 3, 3 } end
return {
    embedding_bag = {
        function(mk) return { mk(5, 3), mk.index(5, 4), offsets() } end,
        function(mk) return { mk(5, 3), mk.index(5, 2, 3), { mode = "max" } } end,
        function(mk) return { mk(5, 3), mk.index(5, 4), offsets(), { mode = "sum", per_sample_weights = mk(4) } } end,
        function(mk) return { mk(5, 3), tide.tensor { 1, 2, 2, 5 }, offsets(), { mode = "max", padding_idx = 2 } } end,
    },
}
