-- test_spatial.lua: pooling, interpolation and padding on the device against the CPU.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("spatial", "no CUDA device")
    return
end

tide.manual_seed(3)

local TOLERANCE = { float16 = 1e-3, bfloat16 = 8e-3, float32 = 1e-6, float64 = 1e-12 }

local function images(dtype, ...)
    return tide.randn(...):to(dtype)
end

-- Row-major and, where there is that, channels last.
local function layouts(x)
    local last = x:dim() == 4 and x:contiguous { memory_format = "channels_last" } or nil
    return { x, last }
end

-- fn and the gradient by its first argument, weighted so that no two places are alike.
local function with_gradient(fn)
    return function(x, ...)
        x = x:detach():requires_grad_()
        local y = fn(x, ...)
        local weight = tide.arange(y:numel(), { dtype = tide.float64 }):mul(0.7):cos():to(y.dtype):to(y.device)
        y:mul(weight:reshape(y.shape)):sum():backward()
        return y:detach(), x.grad
    end
end

local function check(fn, make)
    for _, dtype in ipairs(both.FLOATS) do
        for _, x in ipairs(layouts(make(dtype))) do
            both.close(TOLERANCE[dtype], with_gradient(fn), x)
        end
    end
end

local function planes(dtype)
    return images(dtype, 2, 3, 9, 11)
end

t.test("means_of_windows", function()
    both.reset()
    check(function(x) return tide.avg_pool2d(x, 3) end, planes)
    check(function(x) return tide.avg_pool2d(x, { 3, 2 }, { stride = { 2, 1 }, padding = { 1, 0 }, ceil_mode = true }) end,
        planes)
    check(function(x) return tide.avg_pool2d(x, 3, { padding = 1, count_include_pad = false }) end, planes)
    check(function(x) return tide.avg_pool2d(x, 2, { divisor_override = 3 }) end, planes)
    check(function(x) return tide.avg_pool1d(x, 5, { stride = 2 }) end, function(d) return images(d, 3, 70) end)
    check(function(x) return tide.avg_pool3d(x, 2) end, function(d) return images(d, 2, 5, 4, 6) end)
    check(function(x) return tide.adaptive_avg_pool2d(x, { 4, 5 }) end, planes)
    check(function(x) return tide.adaptive_avg_pool2d(x, 1) end, planes)
    if both.launches("") then
        t.is_true(both.launches("resample_kernel") > 0 and both.launches("spread_kernel") > 0, "kernels ran")
    end
end)

t.test("interpolation_in_every_mode", function()
    for _, size in ipairs { { 5, 6 }, { 9, 11 }, { 20, 22 }, { 1, 1 } } do
        for _, mode in ipairs { "nearest", "nearest-exact", "bilinear", "bicubic", "area" } do
            check(function(x) return tide.interpolate(x, { size = size, mode = mode }) end, planes)
        end
        for _, mode in ipairs { "bilinear", "bicubic" } do
            check(function(x) return tide.interpolate(x, { size = size, mode = mode, align_corners = true }) end, planes)
            check(function(x) return tide.interpolate(x, { size = size, mode = mode, antialias = true }) end, planes)
        end
    end
    check(function(x) return tide.interpolate(x, { scale_factor = { 2.5 }, mode = "linear" }) end,
        function(d) return images(d, 2, 3, 40) end)
    check(function(x) return tide.interpolate(x, { scale_factor = { 2, 1.5, 0.7 }, mode = "trilinear" }) end,
        function(d) return images(d, 2, 2, 4, 5, 6) end)
    both.same(function(x) return tide.interpolate(x, { size = { 7, 5 }, mode = "bilinear", antialias = true }) end,
        tide.randint(0, 256, { 1, 3, 13, 12 }):to("uint8"))
end)

t.test("padding_by_what_is_there", function()
    for _, mode in ipairs { "reflect", "replicate", "circular" } do
        check(function(x) return tide.pad(x, { 2, 1, 3, 2 }, mode) end, planes)
    end
end)

t.test("maxima_of_windows", function()
    for _, dtype in ipairs { "uint8", "int8", "int16", "int32", "int64" } do
        both.same(function(x) return tide.max_pool2d(x, 3, { return_indices = true }) end,
            both.elements(dtype, 2, 3, 9, 11))
    end
    for _, dtype in ipairs(both.FLOATS) do
        for _, x in ipairs(layouts(both.elements(dtype, 2, 3, 9, 11))) do
            both.same(function(x) return tide.max_pool2d(x, 2, { return_indices = true }) end, x)
            both.same(function(x)
                return tide.max_pool2d(x, 3, { stride = 2, padding = 1, dilation = 2, ceil_mode = true, return_indices = true })
            end, x)
            both.close(TOLERANCE[dtype], with_gradient(function(x) return tide.max_pool2d(x, 3, { stride = 1 }) end), x)
            both.close(TOLERANCE[dtype], with_gradient(function(x)
                local y, places = tide.max_pool2d(x, 3, { stride = 2, return_indices = true })
                return tide.max_unpool2d(y, places, 3, { stride = 2, output_size = { 9, 11 } })
            end), x)
        end
    end
    both.same(function(x) return tide.adaptive_max_pool2d(x, { 4, 5 }, { return_indices = true }) end,
        planes("float32"))
    both.same(function(x) return tide.max_pool1d(x, 7, { return_indices = true }) end, images("float32", 2, 70000))
    both.same(function(x) return tide.max_pool3d(x, 2, { return_indices = true }) end, images("float32", 2, 2, 4, 5, 6))
end)

-- Gradients of windows that overlap, are apart, reach over the ends and lie otherwise, asked place by place; nothing is
-- sorted.
t.test("gradients_of_sliding_maxima", function()
    local forms = { { 3, { stride = 1 } }, { 3, { stride = 2, padding = 1 } }, { 2, { stride = 3 } }, { { 3, 2 }, { stride = { 1, 2 },
        padding = { 1, 0 }, ceil_mode = true } }, { 3, { stride = 2, padding = 1, dilation = 2, ceil_mode = true } },
        { 2, { dilation = 3, stride = 1 } } }
    both.reset()
    for _, dtype in ipairs(both.FLOATS) do
        for _, form in ipairs(forms) do
            local pool = with_gradient(function(x) return tide.max_pool2d(x, form[1], form[2]) end)
            both.close(TOLERANCE[dtype], pool, images(dtype, 2, 3, 11, 9))
            both.close(TOLERANCE[dtype], pool, images(dtype, 2, 3, 11, 9):to { memory_format = tide.channels_last })
        end
        both.close(TOLERANCE[dtype], with_gradient(function(x) return tide.max_pool1d(x, 3, { stride = 2 }) end),
            images(dtype, 2, 3, 20))
        both.close(TOLERANCE[dtype], with_gradient(function(x) return tide.max_pool3d(x, 3, { stride = 2, padding = 1 }) end),
            images(dtype, 2, 2, 5, 6, 7))
    end
    if both.counts then
        t.is_true(both.launches "td_max_windows" > 0)
        t.eq(both.launches "digits", 0)
    end
end)

t.test("nan_is_the_largest", function()
    local nan, inf = 0 / 0, 1 / 0
    local x = tide.tensor { { { nan, 1, nan, -inf, inf, 2, nan, -0.0, 0.0 } } }
    for _, width in ipairs { 1, 2, 3, 4, 9 } do
        both.same(function(x) return tide.max_pool1d(x, width, { stride = 1, return_indices = true }) end, x)
        both.same(function(x) return tide.avg_pool1d(x, width, { stride = 1 }) end, x)
    end
end)

-- What is read and the gradients by image and grid.
local function sampled(...)
    local how = { ... }
    return function(x, grid)
        x, grid = x:detach():requires_grad_(), grid:detach():requires_grad_()
        local y = tide.grid_sample(x, grid, table.unpack(how))
        local weight = tide.arange(y:numel(), { dtype = tide.float64 }):mul(0.7):cos():to(y.dtype):to(y.device)
        y:mul(weight:reshape(y.shape)):sum():backward()
        return y:detach(), x.grad, grid.grad
    end
end

t.test("images_at_the_places_of_a_grid", function()
    both.reset()
    for _, mode in ipairs { "bilinear", "nearest", "bicubic" } do
        for _, edge in ipairs { "zeros", "border", "reflection" } do
            for _, aligned in ipairs { false, true } do
                for _, dtype in ipairs { "float32", "float64", "bfloat16" } do
                    both.close(TOLERANCE[dtype], sampled(mode, edge, aligned), images(dtype, 2, 3, 5, 7),
                        images(dtype, 2, 9, 11, 2))
                    if mode ~= "bicubic" then
                        both.close(TOLERANCE[dtype], sampled(mode, edge, aligned), images(dtype, 2, 3, 4, 5, 3),
                            images(dtype, 2, 3, 4, 5, 3))
                    end
                end
            end
        end
    end
    local far = tide.tensor { { { { 1e9, -1e12 }, { 3e20, 1e30 }, { 0 / 0, 0.3 }, { 1 / 0, 0 } } } }
    for _, edge in ipairs { "border", "reflection" } do
        both.same(function(x, grid) return tide.grid_sample(x, grid, "nearest", edge, true) end,
            images("float32", 1, 2, 3, 5), far)
    end
    both.same(function(x, grid) return tide.grid_sample(x, grid, { align_corners = true }) end, tide.zeros(0, 2, 3, 3),
        tide.zeros(0, 4, 4, 2))
    if both.launches("") then
        t.is_true(both.launches("grid_read_kernel") > 0 and both.launches("grid_give_kernel") > 0
            and both.launches("grid_slope_kernel") > 0, "kernels ran")
    end
end)

t.test("limits_of_blocks_and_nothing", function()
    for _, n in ipairs { 1, 31, 32, 33, 255, 256, 257, 1023, 1025 } do
        both.close(1e-6, with_gradient(function(x) return tide.avg_pool1d(x, 1) end), images("float32", 1, n))
        both.close(1e-6, with_gradient(function(x) return tide.max_pool1d(x, 1) end), images("float32", 1, n))
    end
    both.same(function(x) return tide.avg_pool2d(x, 2) end, tide.zeros(0, 3, 4, 4))
    both.same(function(x) return tide.max_pool2d(x, 2) end, tide.zeros(0, 3, 4, 4))
end)
