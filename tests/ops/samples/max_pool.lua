-- Samples of maxima over windows (see test_walk.lua for what `mk` makes).
local samples = {
    max_pool2d = {
        function(mk) return { mk(2, 2, 4, 6), 2 } end,
        function(mk) return { mk(1, 5, 5), 3, 2, 1 } end,
        function(mk) return { mk(1, 1, 5, 7), { 2, 3 }, { 1, 2 }, { 1, 0 }, { 2, 1 }, true } end,
        function(mk) return { mk(1, 2, 5, 5), 2 } end,
    },
    max_unpool1d = {
        function(mk) return { mk(1, 2, 3), tide.tensor({ { { 1, 3, 6 }, { 2, 4, 5 } } }), 2 } end,
        function(mk) return { mk(2, 2), tide.tensor({ { 1, 4 }, { 2, 3 } }), 2, 2 } end,
        function(mk) return { mk(1, 1, 2), tide.tensor({ { { 1, 5 } } }), 2, 2, { output_size = { 5 } } } end,
    },
    max_unpool2d = {
        function(mk) return { mk(1, 1, 1, 2), tide.tensor({ { { { 1, 8 } } } }), 2 } end,
        function(mk) return { mk(2, 1, 1), tide.tensor({ { { 4 } }, { { 1 } } }), 2, 2 } end,
        function(mk) return { mk(1, 1, 1), tide.tensor({ { { 9 } } }), 2, 2, { output_size = { 3, 3 } } } end,
    },
    max_unpool3d = {
        function(mk) return { mk(1, 1, 1, 1, 2), tide.tensor({ { { { { 1, 16 } } } } }), 2 } end,
        function(mk) return { mk(2, 1, 1, 1), tide.tensor({ { { { 4 } } }, { { { 8 } } } }), 2, 2 } end,
        function(mk) return { mk(1, 1, 1, 1), tide.tensor({ { { { 27 } } } }), 3 } end,
    },
}

local shapes = { { 2, 2, 7 }, { 2, 2, 4, 6 }, { 1, 2, 4, 3, 4 } }
for n, shape in ipairs(shapes) do
    samples[("max_pool%dd"):format(n)] = samples[("max_pool%dd"):format(n)] or {}
    local list = samples[("max_pool%dd"):format(n)]
    list[#list + 1] = function(mk) return { mk(table.unpack(shape)), 2 } end
    list[#list + 1] = function(mk) return { mk(table.unpack(shape)), 3, 2, 1, { return_indices = true } } end
    list[#list + 1] = function(mk)
        return { mk(table.unpack(shape, 2)), 2, 1, 1, 2, { ceil_mode = true, return_indices = true } }
    end
    samples[("adaptive_max_pool%dd"):format(n)] = {
        function(mk) return { mk(table.unpack(shape)), 2 } end,
        function(mk) return { mk(table.unpack(shape, 2)), 3, { return_indices = true } } end,
        function(mk) return { mk(table.unpack(shape)), 1 } end,
    }
end

return samples
