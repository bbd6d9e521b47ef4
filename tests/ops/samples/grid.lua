-- Samples of grids (see test_walk.lua for what `mk` makes).
return {
    grid_sample = {
        function(mk) return { mk(1, 2, 3, 4), mk(1, 2, 2, 2) } end,
        function(mk) return { mk(2, 1, 3, 3), mk(2, 1, 3, 2), "bilinear", "reflection", true } end,
        function(mk) return { mk(1, 1, 4, 3), mk(1, 2, 2, 2), "bicubic", "border" } end,
        function(mk) return { mk(1, 2, 3, 3), mk(1, 2, 2, 2), { mode = "nearest" } } end,
        function(mk) return { mk(1, 1, 2, 3, 2), mk(1, 1, 2, 1, 3), { align_corners = true } } end,
    },
    affine_grid = {
        function(mk) return { mk(2, 2, 3), { 2, 1, 2, 3 } } end,
        function(mk) return { mk(1, 2, 3), { 1, 1, 3, 2 }, true } end,
        function(mk) return { mk(1, 3, 4), { 1, 1, 2, 1, 2 } } end,
    },
}
