-- Samples of means over windows and of interpolation (see test_walk.lua for what `mk` makes).
local samples = {
    avg_pool1d = {
        function(mk) return { mk(2, 2, 7), 2 } end,
        function(mk) return { mk(2, 7), 3, 2, 1 } end,
        function(mk) return { mk(1, 2, 7), 4, 3, 2, true, false } end,
    },
    avg_pool2d = {
        function(mk) return { mk(2, 2, 4, 6), 2 } end,
        function(mk) return { mk(1, 5, 5), 3, 2, 1 } end,
        function(mk) return { mk(1, 1, 5, 6), { 2, 3 }, { 1, 2 }, { 1, 1 }, true, false } end,
        function(mk) return { mk(1, 1, 4, 4), 2, { divisor_override = 3 } } end,
    },
    avg_pool3d = {
        function(mk) return { mk(1, 2, 4, 4, 2), 2 } end,
        function(mk) return { mk(1, 3, 4, 5), { 1, 2, 3 }, { 1, 2, 1 }, { 0, 1, 1 } } end,
        function(mk) return { mk(1, 1, 3, 3, 3), 2, 2, 1, true, false } end,
        function(mk) return { mk(1, 1, 2, 3, 3), 2, 1, { divisor_override = 3 } } end,
    },
    adaptive_avg_pool1d = {
        function(mk) return { mk(2, 2, 7), 3 } end,
        function(mk) return { mk(2, 3), 5 } end,
        function(mk) return { mk(1, 2, 4), 1 } end,
    },
    adaptive_avg_pool2d = {
        function(mk) return { mk(2, 2, 4, 6), 2 } end,
        function(mk) return { mk(1, 5, 7), { 3, 2 } } end,
        function(mk) return { mk(1, 1, 2, 2), { 3, false } } end,
    },
    adaptive_avg_pool3d = {
        function(mk) return { mk(1, 2, 3, 4, 2), 2 } end,
        function(mk) return { mk(1, 2, 3, 3), { 2, false, 2 } } end,
        function(mk) return { mk(1, 1, 2, 2, 2), 1 } end,
    },
    interpolate = {
        function(mk) return { mk(2, 2, 2, 3), { scale_factor = 2 } } end,
        function(mk) return { mk(1, 2, 5), 7, { mode = "linear" } } end,
        function(mk) return { mk(1, 1, 3, 4), { scale_factor = 1.5, mode = "nearest-exact" } } end,
        function(mk) return { mk(1, 2, 3, 3), { 4, 2 }, { mode = "bilinear", align_corners = true } } end,
        function(mk) return { mk(1, 1, 4, 3), { scale_factor = { 0.6, 1.7 }, mode = "bicubic" } } end,
        function(mk) return { mk(1, 1, 2, 3, 2), 3, { mode = "trilinear" } } end,
        function(mk) return { mk(1, 1, 5, 4), { 3, 2 }, { mode = "bilinear", antialias = true } } end,
        function(mk) return { mk(1, 2, 5), 2, { mode = "area" } } end,
    },
}

local shapes = { { 1, 2, 6 }, { 1, 2, 4, 5 }, { 1, 1, 3, 4, 3 } }
for n, shape in ipairs(shapes) do
    samples[("lp_pool%dd"):format(n)] = {
        function(mk) return { mk.pos(table.unpack(shape)), 2, 2 } end,
        function(mk) return { mk.pos(table.unpack(shape)), 3, 2, 1 } end,
        function(mk) return { mk.pos(table.unpack(shape, 2)), 1, 3, 2, true } end,
    }
end

return samples
