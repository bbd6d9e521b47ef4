-- test_spatial.lua: operators over spatial dims: layouts that are handed on, sums of 16-bit floats, pixels, and
-- what is refused. Their values and gradients are test_golden.lua's and test_walk.lua's.
local t = require "harness"

-- ---- channels last ----

-- The same elements, channels innermost.
local function last(x)
    local n = #x.shape
    local there, back = { 1 }, { 1, n }
    for d = 3, n do
        there[#there + 1] = d
        back[#back + 1] = d - 1
    end
    there[#there + 1] = 2
    return x:permute(there):contiguous():permute(back), there
end

local function is_last(x)
    local _, order = last(x)
    return x:permute(order):is_contiguous()
end

local image, volume = { 2, 3, 4, 6 }, { 2, 3, 4, 5, 6 }
local forms = {
    adaptive_avg_pool2d = { image, { 3, 2 } },
    adaptive_avg_pool3d = { volume, { 3, 2, 4 } },
    adaptive_max_pool2d = { image, { 3, 2 } },
    avg_pool3d = { volume, 2, 1, 1 },
    max_pool3d = { volume, 3, 2, 1 },
    lp_pool2d = { image, 2, 2 },
    pixel_shuffle = { { 2, 8, 4, 3 }, 2 },
    pixel_unshuffle = { image, 2 },
    channel_shuffle = { { 2, 6, 3, 4 }, 3 },
    pad = { image, { 1, 2, 0, 1 }, "reflect" },
}
local more = {
    pad_constant = { "pad", volume, { 1, 2, 0, 1 }, { value = 2 } },
    pad_circular = { "pad", volume, { 1, 2, 0, 1, 2, 2 }, "circular" },
    interpolate_nearest = { "interpolate", image, { scale_factor = 1.5 } },
    interpolate_bilinear = { "interpolate", image, { size = { 7, 5 }, mode = "bilinear" } },
    interpolate_bicubic = { "interpolate", image, { size = { 7, 5 }, mode = "bicubic" } },
    interpolate_trilinear = { "interpolate", volume, { size = 5, mode = "trilinear" } },
    max_pool2d_with_places = { "max_pool2d", image, 2, 1, 1, { return_indices = true } },
}
for name, form in pairs(forms) do
    more[name] = { name, table.unpack(form) }
end

for name, form in pairs(more) do
    t.test(name .. "_takes_channels_last_as_it_lies_and_hands_it_on", function()
        local plain = tide.randn(form[2], { dtype = tide.float64 }):abs():requires_grad_(true)
        local turned = last(plain:detach()):requires_grad_(true)
        local want, places = tide[form[1]](plain, table.unpack(form, 3))
        local got, got_places = tide[form[1]](turned, table.unpack(form, 3))
        t.is_true(want:is_contiguous(), "row-major stays so")
        t.is_true(is_last(got), "the result")
        t.is_true((got - want):abs():max():item() < 1e-12, "values")
        t.eq(got_places == places, true, "places")
        local weight = tide.randn(want.shape, { dtype = tide.float64 })
        want:backward(weight)
        got:backward((last(weight)))
        t.is_true((turned.grad - plain.grad):abs():max():item() < 1e-12, "gradients")
    end)
end

-- Channels side by side are walked eight and thirty-two at a time, and what is left over once more.
local side_by_side = {
    { "avg_pool1d", { 40 }, 2 },
    { "avg_pool1d", { 40 }, 5, 1, 2 },
    { "max_pool1d", { 40 }, 3, 2, 1 },
    { "adaptive_avg_pool1d", { 40 }, 3 },
    { "adaptive_max_pool1d", { 67 }, 3 },
    { "avg_pool2d", { 6, 10 }, 2 },
    { "avg_pool2d", { 6, 10 }, 3, 1, 1, false, false },
    { "max_pool2d", { 6, 10 }, 3, 2, 1 },
    { "adaptive_avg_pool2d", { 6, 10 }, { 2, 4 } },
    { "adaptive_max_pool2d", { 6, 30 }, { 2, 2 } },
    { "avg_pool3d", { 4, 4, 6 }, 2 },
    { "interpolate", { 6, 10 }, { size = { 12, 20 }, mode = "bilinear" } },
    { "interpolate", { 6, 10 }, { size = { 3, 5 }, mode = "bilinear" } },
    { "interpolate", { 6, 10 }, { size = { 9, 11 }, mode = "bicubic" } },
    { "interpolate", { 6, 10 }, { size = { 4, 4 }, mode = "bilinear", antialias = true } },
}
local tolerances = { float64 = 1e-14, float32 = 1e-6, bfloat16 = 0, float16 = 0, int32 = 0, uint8 = 0 }

for _, case in ipairs(side_by_side) do
    local what = case[1] .. "_of_" .. #case[2] .. "_dims_" .. tostring(type(case[3]) == "table" and case[3].mode or #case)
    t.test(what .. "_gives_the_same_for_any_number_of_channels_side_by_side", function()
        for name, tolerance in pairs(tolerances) do
            local takes = tide[name].is_floating_point or case[1]:find "max" or name == "uint8" and case[1] == "interpolate"
            for _, channels in ipairs(takes and { 1, 3, 7, 8, 9, 16, 31, 32, 45, 72 } or {}) do
                local x = (tide.randn { 2, channels, table.unpack(case[2]) } * 50):abs():to(tide[name])
                local want = tide[case[1]](x, table.unpack(case, 3))
                local got = tide[case[1]](last(x), table.unpack(case, 3))
                t.is_true(channels == 1 or is_last(got), "the result's layout")
                local apart = ((got:double() - want:double()):abs() / (want:double():abs() + 1e-3)):max():item()
                t.is_true(apart <= tolerance, name .. " of " .. channels .. " channels: " .. apart)
            end
        end
    end)
end

t.test("maxima_side_by_side_are_at_the_same_places_for_any_number_of_channels", function()
    local windows = { { 2 }, { 3, 2, 1 }, { { 2, 3 }, { 2, 1 }, { 1, 0 }, { 2, 1 } } }
    for _, name in ipairs { "float32", "float64", "bfloat16", "float16", "int32", "int64", "uint8" } do
        for _, channels in ipairs { 2, 3, 5, 6, 7, 8, 11, 16, 19, 40 } do
            local x = tide.randint(0, 4, { 2, channels, 7, 9 }):to(tide[name]) -- several are the largest
            if tide[name].is_floating_point then
                x[x:eq(2) & tide.rand(x.shape):lt(0.3)] = 0 / 0
            end
            for _, window in ipairs(windows) do
                local want, places = tide.max_pool2d(x, window[1], window[2], window[3], window[4], { return_indices = true })
                local got, there = tide.max_pool2d(last(x), window[1], window[2], window[3], window[4], { return_indices = true })
                local what = name .. " of " .. channels .. " channels"
                t.is_true(tide.equal(there, places), what)
                t.is_true(is_last(got) and tide.allclose(got:double(), want:double(), 0, 0, { equal_nan = true }), what)
            end
        end
    end
end)

t.test("maxima_of_many_hold_on_to_what_is_no_number", function()
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16 } do
        for _, length in ipairs { 8, 31, 40, 100 } do
            for place = 1, length, 7 do
                local x = tide.rand(1, 9, length):to(dtype)
                x[{ 1, 4, place }] = 0 / 0
                for _, laid in ipairs { x, (last(x)) } do
                    local y = tide.adaptive_max_pool1d(laid, 1)
                    t.is_true(y[{ 1, 4, 1 }]:isnan():item(), tostring(dtype) .. " " .. place)
                    t.eq(y:isnan():sum():item(), 1)
                    t.is_true(tide.equal(y[":, 5:"], x[":, 5:"]:amax { 3, keepdim = true }))
                end
            end
        end
    end
end)

for _, name in ipairs { "group_norm", "instance_norm", "batch_norm" } do
    t.test(name .. "_takes_channels_last_as_it_lies_whatever_the_number_of_channels", function()
        for dtype, tolerance in pairs { float64 = 1e-12, float32 = 2e-6, bfloat16 = 1e-2, float16 = 2e-3 } do
            for _, shape in ipairs { { 3, 2, 5, 7 }, { 2, 8, 40, 40 }, { 1, 12, 3, 3 }, { 3, 66, 9, 4 }, { 2, 6, 50 }, { 2, 4, 3, 4, 5 } } do
                local x = (tide.randn(shape, { dtype = tide.float64 }) * 3 + 5):to(tide[dtype])
                local w, b = tide.rand(shape[2]):to(tide[dtype]), tide.rand(shape[2]):to(tide[dtype])
                local function run(input)
                    if name == "group_norm" then
                        return tide.group_norm(input, 2, w, b)
                    elseif name == "instance_norm" then
                        return tide.instance_norm(input, nil, nil, w, b)
                    end
                    return tide.batch_norm(input, nil, nil, w, b, true)
                end
                local got, want = run((last(x))), run(x)
                t.is_true(is_last(got), "the result's layout")
                t.is_true((got:double() - want:double()):abs():max():item() <= tolerance * 4, dtype .. " " .. tostring(x.shape))
            end
        end
    end)
end

t.test("volumes_without_a_batch_have_no_channels_last", function()
    local x = tide.randn(2, 4, 5, 6)
    for _, name in ipairs { "avg_pool3d", "max_pool3d", "adaptive_avg_pool3d" } do
        t.eq(tide[name]((last(x)), 2) == tide[name](x, 2), true, name)
    end
    local w = tide.randn(3, 2, 2, 2, 2)
    t.is_true((tide.conv3d((last(x)), w) - tide.conv3d(x, w)):abs():max():item() < 1e-5)
end)

t.test("pooling_of_pairs_takes_the_first_of_the_largest_in_rows_of_any_length", function()
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16, tide.int32 } do
        for width = 1, 40 do
            local x = tide.randint(-3, 3, { 2, 3, 6, 2 * width }):to(dtype)
            if dtype.is_floating_point then
                x["1, 2, 1::2, " .. width] = 0 / 0
            end
            local y, places = tide.max_pool2d(x, 2, { return_indices = true })
            local windows = tide.stack({ x[":, :, 1::2, 1::2"], x[":, :, 1::2, 2::2"], x[":, :, 2::2, 1::2"],
                x[":, :, 2::2, 2::2"] }, 4)
            local want, which = windows:double():nan_to_num(100):max(4)
            t.is_true(tide.equal(y:double():nan_to_num(100), want), ("%s %d"):format(dtype, width))
            local row = (which - 1) // 2 + tide.arange(0, 6, 2):view(3, 1)
            local column = (which - 1) % 2 + tide.arange(0, 2 * width, 2)
            t.is_true(tide.equal(places, row * (2 * width) + column + 1), "places " .. width)
        end
    end
end)

t.test("pooling_of_pairs_and_of_long_windows_is_exact_at_any_length", function()
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16 } do
        for width = 1, 40 do
            local x = tide.randint(-8, 8, { 2, 3, 5, 2 * width + width % 2 }):to(dtype)
            local even, odd = x[":, :, :, 1:" .. 2 * width .. ":2"], x[":, :, :, 2:" .. 2 * width .. ":2"]
            local lines = even + odd
            t.is_true(tide.equal(tide.avg_pool2d(x, 2), (lines[":, :, 1:4:2"] + lines[":, :, 2:4:2"]) / 4), "planes")
            t.is_true(tide.equal(tide.avg_pool2d(x, { 1, 2 }), lines / 2), "lines of planes")
            t.is_true(tide.equal(tide.avg_pool1d(x:flatten(1, 2), 2), lines:flatten(1, 2) / 2), "lines")
            local largest, places = tide.max_pool1d(x:flatten(1, 2), 2, { return_indices = true })
            t.is_true(tide.equal(largest, tide.maximum(even, odd):flatten(1, 2)), "maxima")
            t.is_true(tide.equal(places, (tide.arange(1, 2 * width, 2) + (odd:gt(even)):long()):flatten(1, 2)), "places")
            local long = tide.randint(-8, 8, { 2, 3, 5 * width }):to(dtype)
            t.is_true(tide.equal(tide.adaptive_avg_pool1d(long, 5),
                (long:reshape(2, 3, 5, width):double():sum(-1) / width):to(dtype)), "parts")
        end
    end
end)

t.test("largest_of_windows_are_the_same_with_few_channels_last", function()
    local _ <close> = tide.no_grad()
    tide.manual_seed(1)
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.int32 } do
        for _, channels in ipairs { 2, 3, 6, 7, 8 } do
            for _, window in ipairs { { 2, 2, 0, 1 }, { 3, 1, 1, 2 }, { 5, 3, 2, 1 } } do
                for _, width in ipairs { 9, 700 } do
                    local x = (tide.randn(2, channels, 6, width) * 100):to(dtype)
                    if dtype.is_floating_point then
                        x[{ 1, 1, 2, 3 }] = 0 / 0
                    end
                    local options = { stride = window[2], padding = window[3], dilation = window[4] }
                    local wanted = tide.max_pool2d(x, window[1], options):double():nan_to_num(-1e9)
                    local got = tide.max_pool2d(x:to { memory_format = "channels_last" }, window[1], options)
                    t.is_true(got:is_contiguous { memory_format = "channels_last" })
                    t.is_true(tide.equal(got:double():nan_to_num(-1e9), wanted), ("%s %d %d"):format(dtype, channels, width))
                end
            end
        end
    end
end)

t.test("max_pooling_of_a_line_gives_the_last_of_several_nan", function()
    local x = tide.tensor { { { 0 / 0, 1, 0 / 0, 0 / 0, 2, 0 / 0, 3, 3, -math.huge, -math.huge } } }
    local y, places = tide.max_pool1d(x, 2, { return_indices = true })
    t.eq(places:tolist(), { { { 1, 4, 6, 7, 9 } } })
    t.eq(y:isnan():tolist(), { { { true, true, true, false, false } } })
end)

t.test("maxima_are_the_same_whether_places_are_asked_for_or_not", function()
    local windows = { { 2 }, { 3, 1, 1 }, { 3, 2, 1, 2 }, { { 2, 3 }, { 3, 2 } } }
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16, tide.uint8, tide.int32, tide.int64 } do
        for _, width in ipairs { 6, 9, 18, 41 } do
            local x = tide.randint(0, 9, { 2, 3, 7, width }):to(dtype)
            if dtype.is_floating_point then
                x["1, 2, 1::2, 3"] = 0 / 0
            end
            local function check(what, fn, ...)
                local args = { ... }
                args[#args + 1] = { return_indices = true }
                for _, form in ipairs { x, (last(x)) } do
                    local want = fn(form, table.unpack(args))
                    local got = fn(form, ...)
                    t.is_true(tide.equal(got:double():nan_to_num(100), want:double():nan_to_num(100)),
                        ("%s of %s, %d wide"):format(what, dtype, width))
                end
            end
            for _, window in ipairs(windows) do
                check("max_pool2d", tide.max_pool2d, table.unpack(window))
            end
            check("adaptive_max_pool2d", tide.adaptive_max_pool2d, { 3, 4 })
        end
    end
end)

t.test("views_of_what_requires_grad_pool_with_places", function()
    local x = tide.tensor({ { { 1.0, 5, 2, 3 } } }):requires_grad_()
    tide.max_pool1d(x:detach(), 2)
    tide.max_pool1d(x:view(1, 1, 4), 2):sum():backward()
    tide.adaptive_max_pool1d(x:narrow(3, 1, 2), 1):sum():backward()
    t.eq(x.grad:tolist(), { { { 0, 2, 0, 1 } } })
end)

t.test("interpolation_sees_no_places_but_its_own", function()
    local x = tide.full({ 1, 1, 4, 5 }, math.huge)
    x["1, 1, 1:3, 1:4"] = tide.arange(12, { dtype = tide.float32 }):view(3, 4)
    for _, mode in ipairs { "nearest", "bilinear", "bicubic" } do
        local reach = ({ nearest = 6, bilinear = 5, bicubic = 3 })[mode]
        local y = tide.interpolate(x, nil, { 2, 2 }, mode)
        t.is_true(y["1, 1, 1:" .. reach .. ", 1:" .. reach]:isfinite():all():item(), mode)
        local last = tide.interpolate(x:flip { 3, 4 }, nil, { 2, 2 }, mode):flip { 3, 4 }
        t.is_true((last - y)["1, 1, 1:" .. reach .. ", 1:" .. reach]:abs():max():item() < 1e-5, mode .. ", flipped")
    end
end)

t.test("repeated_rows_are_the_same_whatever_their_size", function()
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.uint8 } do
        for _, size in ipairs { { 1, 1 }, { 3, 7 }, { 14, 10 }, { 15, 33 } } do
            local x = tide.randint(0, 100, { 2, 3, 7, 5 }):to(dtype)
            local row = tide.arange(size[1]) * 7 // size[1] + 1
            local column = tide.arange(size[2]) * 5 // size[2] + 1
            local want = x:index_select(3, row):index_select(4, column)
            t.is_true(tide.equal(tide.interpolate(x, size), want), tostring(dtype))
            t.is_true(tide.equal(tide.interpolate((last(x)), size), want), "channels last")
        end
    end
end)

-- ---- grids ----

local modes, edges = { "bilinear", "nearest", "bicubic" }, { "zeros", "border", "reflection" }

local function each_grid(fn)
    for _, mode in ipairs(modes) do
        for _, edge in ipairs(edges) do
            for _, aligned in ipairs { false, true } do
                fn(mode, edge, aligned)
                if mode ~= "bicubic" then
                    fn(mode, edge, aligned, true)
                end
            end
        end
    end
end

t.test("a_place_of_a_grid_is_read_alike_wherever_it_lies", function()
    each_grid(function(mode, edge, aligned, deep)
        for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16 } do
            local x = tide.randn(deep and { 2, 3, 4, 5, 6 } or { 2, 3, 5, 7 }):to(dtype)
            local grid = tide.randn(deep and { 2, 1, 1, 150, 3 } or { 2, 1, 150, 2 }):to(dtype)
            local d, whole = grid:dim() - 1, tide.grid_sample(x, grid, mode, edge, aligned)
            local parts, from = {}, 1
            for _, n in ipairs { 1, 16, 67, 64, 2 } do
                parts[#parts + 1] = tide.grid_sample(x, grid:narrow(d, from, n), mode, edge, aligned)
                from = from + n
            end
            t.is_true(tide.equal(tide.cat(parts, d + 1), whole), table.concat({ mode, edge, tostring(dtype) }, " "))
        end
    end)
end)

t.test("gradients_of_a_long_grid_are_those_of_its_parts", function()
    each_grid(function(mode, edge, aligned, deep)
        local x = tide.randn(deep and { 2, 3, 3, 4, 5 } or { 2, 3, 5, 7 }, { dtype = tide.float64 }):requires_grad_()
        local grid = tide.randn(deep and { 2, 1, 1, 150, 3 } or { 2, 1, 150, 2 }, { dtype = tide.float64 }):requires_grad_()
        local d = grid:dim() - 1
        local y = tide.grid_sample(x, grid, mode, edge, aligned)
        local g = tide.randn(y.shape, { dtype = tide.float64 })
        y:backward(g)
        local sum, parts = tide.zeros_like(x), {}
        for from = 1, 150, 50 do
            local lone = x:detach():requires_grad_()
            local part = grid:detach():narrow(d, from, 50):clone():requires_grad_()
            tide.grid_sample(lone, part, mode, edge, aligned):backward(g:narrow(d + 1, from, 50))
            sum = sum + lone.grad
            parts[#parts + 1] = part.grad
        end
        t.is_true((sum - x.grad):abs():max():item() < 1e-12, "input " .. mode .. " " .. edge)
        t.is_true((tide.cat(parts, d) - grid.grad):abs():max():item() < 1e-12, "grid " .. mode .. " " .. edge)
    end)
end)

t.test("a_grid_without_channels_has_a_gradient_of_zeros", function()
    local grid = tide.rand(2, 3, 4, 2):requires_grad_()
    tide.grid_sample(tide.zeros(2, 0, 5, 5), grid, { align_corners = false }):sum():backward()
    t.eq(grid.grad:abs():max():item(), 0)
end)

t.test("a_grid_leads_to_the_first_place_by_nan_and_far_out_to_some_place", function()
    local x, nan = tide.tensor { { { { 1.0, 2 }, { 3, 4 } } } }, 0 / 0
    local grid = tide.tensor { { { { nan, nan }, { nan, 0.5 }, { math.huge, 0.0 } } } }
    t.eq(tide.grid_sample(x, grid, "bilinear", "border", false):flatten():tolist(), { 1, 3, 3 })
    t.eq(tide.grid_sample(x, grid, "bilinear", "border", true):flatten():tolist(), { 1, 2.5, 3 })
    t.eq(tide.grid_sample(x, grid, "nearest", "reflection", false):flatten():tolist(), { 1, 3, 1 })
    t.eq(tide.grid_sample(x, grid, "nearest", "zeros", false):flatten():tolist(), { 0, 0, 0 })
    local far = tide.tensor { { { { 1e9, -1e12 }, { 3e20, 1e30 }, { -1e38, 2e38 } } } }
    for _, mode in ipairs(modes) do
        local y = tide.grid_sample(x, far, mode, "reflection", true)
        t.is_true(y:ge(1):logical_and(y:le(4)):all():item(), mode)
        t.eq(tide.grid_sample(x, far, mode, "zeros", true):flatten():tolist(), { 0, 0, 0 }, mode)
    end
end)

t.test("reflection_repeats_itself_after_two_sizes", function()
    local x = tide.randn(1, 2, 3, 5, { dtype = tide.float64 })
    local grid = tide.rand(1, 4, 40, 2, { dtype = tide.float64 }) * 1.9 - 0.95
    local want = tide.grid_sample(x, grid, "bilinear", "reflection", false)
    for _, far in ipairs { 4, -4, 40, -400 } do
        local y = tide.grid_sample(x, grid + far, "bilinear", "reflection", false)
        t.is_true((y - want):abs():max():item() < 1e-11, tostring(far))
        local turned = tide.grid_sample(x, far + 2 - grid, "bilinear", "reflection", false)
        t.is_true((turned - want):abs():max():item() < 1e-11, "turned, " .. far)
    end
end)

t.test("outside_of_an_image_infinite_elements_are_not_seen", function()
    local x = tide.full({ 1, 1, 2, 2 }, math.huge)
    local grid = tide.tensor { { { { -5.0, 0.0 }, { 5, 5 }, { 0, -9 } } } }
    for _, mode in ipairs(modes) do
        t.eq(tide.grid_sample(x, grid, mode, "zeros", false):flatten():tolist(), { 0, 0, 0 }, mode)
    end
end)

-- Behind the last place of a row the next row begins: half a step beyond it half of 2 and nothing is seen.
t.test("many_places_at_an_edge_do_not_see_the_next_row", function()
    for _, dtype in ipairs { "float32", "float64" } do
        local x = tide.tensor({ { { { math.huge, 2.0, 2 }, { math.huge, 2, 2 } } } }, { dtype = tide[dtype] })
        local beyond = tide.tensor({ 1.25, 0.0 }, { dtype = tide[dtype] }):expand(1, 1, 40, 2):clone()
        local y = tide.grid_sample(x, beyond, "bilinear", "zeros", true)
        t.eq(y:unique():tolist(), { 1.5 }, dtype)
        beyond[{ {}, {}, 5, 1 }] = 0.5
        t.eq(tide.grid_sample(x, beyond, "bilinear", "zeros", true)[{ 1, 1, 1, 5 }]:item(), 2, dtype)
        local volume = x:view(1, 1, 1, 2, 3)
        local places = tide.tensor({ 1.25, 0.0, 0.0 }, { dtype = tide[dtype] }):expand(1, 1, 1, 40, 3)
        t.eq(tide.grid_sample(volume, places, "bilinear", "zeros", true):unique():tolist(), { 1.5 }, dtype .. ", volume")
    end
end)

t.test("a_cubic_grid_has_derivatives_of_the_third_order", function()
    local x = tide.randn(1, 2, 5, 5, { dtype = tide.float64 })
    local function third(step)
        local grid = tide.full({ 1, 1, 1, 2 }, 0.23 + step, { dtype = tide.float64 }):requires_grad_()
        local y = tide.grid_sample(x, grid, "bicubic", "border", false):sum()
        for _ = 1, 2 do
            y = tide.autograd.grad(y, { grid }, { create_graph = true })[1]:select(-1, 1):sum()
        end
        return y, grid
    end
    local y, grid = third(0)
    local slope = tide.autograd.grad(y, { grid })[1]:sum():item()
    local high, low = third(1e-4), third(-1e-4)
    t.is_true(math.abs(slope - (high - low):item() / 2e-4) < 1e-5 * (1 + math.abs(slope)))
end)

-- ---- dtypes ----

-- Every one that the machine may have a way of its own for: the same as in float64, rounded once.
local convolutions = { -- dims, images, channels in and out, size, kernel, options
    { 2, 4, 1, 6, 20, 3, {} }, { 2, 3, 6, 16, 15, 3, {} }, { 2, 2, 64, 32, 9, 3, { padding = 1 } },
    { 2, 2, 32, 32, 9, 3, { groups = 32 } }, { 2, 2, 6, 10, 9, 3, { groups = 2, stride = 2 } },
    { 2, 1, 33, 17, 11, 3, { dilation = 2, padding = 3 } }, { 1, 3, 8, 16, 50, 5, { stride = 3 } },
    { 3, 2, 4, 8, 6, 3, { padding = 1 } }, { 2, 5, 128, 64, 8, 1, { stride = 2 } }, { 2, 0, 3, 4, 5, 3, {} },
}

local function close_in_bfloat(got, want, what)
    t.eq(got.dtype, tide.bfloat16, what)
    if want:numel() > 0 then
        local far = ((got:double() - want):abs() - want:abs() / 256):max():item()
        t.is_true(far <= 1e-5 * want:abs():max():item(), what .. (" is off by %g"):format(far))
    end
end

local function check_convolution(turn, dims, n, from, to, size, kernel, options)
    local shape, weight_shape = { n, from }, { to, from // (options.groups or 1) }
    for _ = 1, dims do
        shape[#shape + 1] = size
        weight_shape[#weight_shape + 1] = kernel
    end
    local conv = tide["conv" .. dims .. "d"]
    local x = tide.randn(shape):bfloat16():double():requires_grad_(true)
    local w = tide.randn(weight_shape):bfloat16():double():requires_grad_(true)
    local b = tide.randn(to):bfloat16():double():requires_grad_(true)
    local leaves = {}
    for k, leaf in ipairs { x, w, b } do
        local low = leaf:detach():bfloat16()
        leaves[k] = (leaf:dim() > 2 and turn(low) or low):requires_grad_(true)
    end
    local want = conv(x, w, b, options)
    local got = conv(leaves[1], leaves[2], leaves[3], options)
    close_in_bfloat(got:detach(), want:detach(), "result")
    local g = tide.randn(want.shape):bfloat16()
    want:backward(g:double())
    got:backward(turn(g))
    for k, name in ipairs { "input", "weight", "bias" } do
        close_in_bfloat(leaves[k].grad, ({ x, w, b })[k].grad, "gradient of the " .. name)
    end
end

for k, c in ipairs(convolutions) do
    t.test(("convolution_of_bfloat16_is_rounded_once.%d"):format(k), function()
        tide.manual_seed(k)
        check_convolution(function(x) return x end, table.unpack(c))
        check_convolution(function(x) return (last(x)) end, table.unpack(c))
    end)
end

t.test("gradients_of_few_channels_are_those_of_float64_in_both_layouts", function()
    for _, channels in ipairs { { 3, 6 }, { 1, 8 }, { 12, 12 }, { 32, 1 }, { 5, 20 }, { 7, 17 } } do
        local x = tide.randn(3, channels[1], 9, 11):double():requires_grad_(true)
        local w = tide.randn(channels[2], channels[1], 3, 5):double():requires_grad_(true)
        local y = tide.conv2d(x, w, nil, { 2, 1 }, 1)
        local g = tide.randn(y.shape):double()
        y:backward(g)
        for _, turn in ipairs { function(z) return z end, function(z) return (last(z)) end } do
            local narrow = { turn(x:detach():float()):requires_grad_(true), turn(w:detach():float()):requires_grad_(true) }
            tide.conv2d(narrow[1], narrow[2], nil, { 2, 1 }, 1):backward(turn(g:float()))
            t.is_true(tide.allclose(narrow[1].grad:double(), x.grad, 1e-4, 1e-4))
            t.is_true(tide.allclose(narrow[2].grad:double(), w.grad, 1e-4, 1e-4))
        end
    end
end)

t.test("sums_of_16_bit_floats_are_rounded_once", function()
    for _, dtype in ipairs { tide.bfloat16, tide.float16 } do
        local x = (tide.rand(1, 1, 16, 16, 16) + 1):to(dtype)
        local want = tide.avg_pool3d(x:float(), 16):to(dtype)
        t.eq(tide.avg_pool3d(x, 16) == want, true, tostring(dtype))
        local y = (tide.rand(1, 1, 3000) + 1):to(dtype):requires_grad_(true)
        tide.avg_pool1d(y, 1000, 1):backward(tide.ones(1, 1, 2001, { dtype = dtype }))
        local wide = y:detach():float():requires_grad_(true)
        tide.avg_pool1d(wide, 1000, 1):backward(tide.ones(1, 1, 2001))
        t.eq(y.grad == wide.grad:to(dtype), true, "gradient, " .. tostring(dtype))
        local z = tide.zeros(1, 1, 600, { dtype = dtype })
        z[1][1][300] = 1
        z:requires_grad_(true)
        tide.max_pool1d(z, 299, 1):backward(tide.ones(1, 1, 302, { dtype = dtype }))
        t.eq(z.grad:max():item(), tide.tensor({ 299 }, { dtype = dtype }):item(), "the greatest takes all")
    end
end)

t.test("convolution_takes_channels_last_as_it_lies_and_hands_it_on", function()
    local weights = { conv2d = { 4, 3, 3, 2 }, conv3d = { 4, 3, 2, 3, 2 }, conv_transpose2d = { 3, 4, 2, 3 },
        conv_transpose3d = { 3, 4, 2, 1, 2 } }
    for name, shape in pairs(weights) do
        for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16 } do
            local tolerance = dtype == tide.bfloat16 and 0.2 or 1e-4
            local x = tide.randn(name:find("2d") and image or volume, { dtype = dtype })
            local w = tide.randn(shape, { dtype = dtype })
            local b = tide.randn(4, { dtype = dtype })
            local function run(x, w)
                x, w = x:detach():requires_grad_(true), w:detach():requires_grad_(true)
                local y = tide[name](x, w, b, 2, 1)
                y:backward((tide.arange(y:numel(), { dtype = tide.float32 }):sin():to(dtype):reshape(y.shape)))
                return y, x.grad, w.grad
            end
            local want = { run(x, w) }
            for k, got in ipairs { { run(last(x), w) }, { run((last(x)), (last(w))) }, { run(x, (last(w))) } } do
                local what = ("%s of %s, %d"):format(name, tostring(dtype), k)
                t.is_true(is_last(got[1]), what)
                for part = 1, 3 do
                    t.is_true((got[part] - want[part]):abs():max():item() <= tolerance, what .. ", part " .. part)
                end
            end
            t.is_true(want[1]:is_contiguous(), name)
        end
    end
end)

t.test("convolution_of_narrow_lines_and_wide_ones_agrees_in_all_dims", function()
    for _, shape in ipairs { { 1, 1, 300 }, { 2, 8, 40 } } do
        local x, w = tide.randn(shape), tide.randn(4, shape[2], 21)
        local want = tide.conv1d(x:double(), w:double(), nil, 2, 5)
        t.is_true((tide.conv1d(x, w, nil, 2, 5) - want):abs():max():item() < 1e-3)
        t.is_true((tide.conv2d(x:unsqueeze(3), w:unsqueeze(3), nil, { 1, 2 }, { 0, 5 }):squeeze(3) - want):abs():max():item() < 1e-3)
        t.is_true((tide.conv2d(x:unsqueeze(4), w:unsqueeze(4), nil, { 2, 1 }, { 5, 0 }):squeeze(4) - want):abs():max():item() < 1e-3)
        t.is_true((tide.conv3d(x:unsqueeze(3):unsqueeze(3), w:unsqueeze(3):unsqueeze(3), nil, { 1, 1, 2 }, { 0, 0, 5 })
            :squeeze(3):squeeze(3) - want):abs():max():item() < 1e-3)
    end
end)

t.test("pixels_are_rounded_to_the_nearest", function()
    local x = tide.tensor({ { { { 0, 10 }, { 255, 3 } } } }, { dtype = tide.uint8 })
    t.eq(tide.interpolate(x, { size = { 1, 4 }, mode = "bilinear" }):tolist(), { { { { 128, 98, 37, 7 } } } })
    local y = tide.interpolate(x, { scale_factor = 4, mode = "bicubic" })
    t.eq(y.dtype, tide.uint8)
    t.eq({ y:max():item(), y:min():item() }, { 255, 0 }) -- it overshoots: nothing wraps around
end)

t.test("windows_that_reach_beyond_the_input_in_ceil_mode_count_what_is_there", function()
    local x = tide.ones(1, 1, 1)
    t.eq(tide.avg_pool1d(x, 2, { ceil_mode = true }):tolist(), { { { 1 } } })
    t.eq(tide.max_pool1d(x, 2, { ceil_mode = true }):tolist(), { { { 1 } } })
    t.error_has(function() tide.avg_pool1d(x, 2) end, "avg_pool1d: a window of (2) doesn't fit an input of (1)")
end)

t.test("a_view_that_repeats_or_skips_elements_is_pooled_by_what_it_shows", function()
    local x = tide.arange(1, 13, { dtype = tide.float32 }):reshape(1, 2, 6)
    t.eq(tide.avg_pool1d(x:slice(3, 1, 6, 2), 2, 1):tolist(), { { { 2, 4 }, { 8, 10 } } })
    t.eq(tide.max_pool1d(x:narrow(2, 1, 1):expand(3, 1, 6), 3):tolist(), { { { 3, 6 } }, { { 3, 6 } }, { { 3, 6 } } })
end)

-- ---- refusals ----

local x3, x4, x5 = tide.ones(1, 2, 6), tide.ones(1, 2, 6, 6), tide.ones(1, 2, 4, 4, 4)
local refusals = {
    { function() tide.max_pool1d(tide.ones(3), 2) end, "max_pool1d: input must have shape (N, C, L) or (C, L), got (3)" },
    { function() tide.avg_pool3d(tide.ones(2, 2), 2) end, "avg_pool3d: input must have shape (N, C, D, H, W) or (C, D, H, W), got (2, 2)" },
    { function() tide.max_pool3d(x5, 2, 2, 2) end, "max_pool3d: padding must be at most half of the window, got 2 and 2" },
    { function() tide.max_pool2d(tide.ones(1, 1, 1, 1), 2, 1, 2, 3) end,
      "max_pool2d: a window of 2 elements 3 apart with a padding of 2 sees nothing of a dim of 1" },
    { function() tide.max_pool1d(tide.ones(1, 1, 1), 2, 1, 2, 3, false, true) end, "max_pool1d: a window of 2 elements 3 apart" },
    { function() tide.max_pool1d(x3, 0) end, "max_pool1d: kernel_size must be from 1 to 2^31 - 1, got (0)" },
    { function() tide.avg_pool3d(x5, 2, { divisor_override = 0 }) end, "avg_pool3d: divisor_override must not be 0" },
    { function() tide.adaptive_avg_pool2d(x4, { -1, 2 }) end, "adaptive_avg_pool2d: output_size must be from 0" },
    { function() tide.adaptive_max_pool1d(tide.ones(1, 2, 0), 1) end, "the input's spatial dims must not be empty" },
    { function() tide.interpolate(tide.ones(2, 2), 3) end, "interpolate: input must have shape (N, C, H, W), got (2, 2)" },
    { function() tide.interpolate(x4) end, "interpolate: either size or scale_factor must be given" },
    { function() tide.interpolate(x4, 3, 2) end, "interpolate: either size or scale_factor must be given" },
    { function() tide.interpolate(x4, { 3, 3, 3 }) end, "size must be a number or have 2 of them, got 3" },
    { function() tide.interpolate(x4, { scale_factor = { 1, 2, 3 } }) end, "scale_factor must be a number or have 2 of them, got 3" },
    { function() tide.interpolate(x4, { scale_factor = 0 }) end, "scale_factor must be positive" },
    { function() tide.interpolate(x4, 3, { mode = "linear" }) end, 'mode "linear" is for an input (N, C, L), got one (N, C, H, W)' },
    { function() tide.interpolate(x4, 3, { mode = "cubic" }) end, 'interpolate: argument 4 (mode): expected "nearest", ' },
    { function() tide.interpolate(x4, 3, { align_corners = true }) end, 'align_corners is for the linear and cubic modes, got "nearest"' },
    { function() tide.interpolate(x4, 3, { antialias = true }) end, 'antialias is for bilinear and bicubic, got "nearest"' },
    { function() tide.interpolate(x4, 3, { recompute_scale_factor = true }) end, "recompute_scale_factor is for scale_factor" },
    { function() tide.pad(x4, { 1 }) end, "pad: pad must have pairs of numbers, got (1)" },
    { function() tide.pad(x3, { 1, 1, 1, 1, 1, 1, 1, 1 }) end, "more pairs than the input of shape (1, 2, 6) has dims" },
    { function() tide.pad(x3, { -4, -3 }) end, "pad: an input of shape (1, 2, 6) can't be padded by (-4, -3)" },
    { function() tide.pad(x3, { 6, 0 }, "reflect") end, 'pad: a dim of 6 can\'t be padded by 6 and 0 in mode "reflect"' },
    { function() tide.pad(x3, { 7, 0 }, "circular") end, 'pad: a dim of 6 can\'t be padded by 7 and 0 in mode "circular"' },
    { function() tide.pad(x3, { 1, 0, 1, 1, 1, 1 }, "replicate") end, 'pad: mode "replicate" pads the last dim of 2 or 3' },
    { function() tide.pad(x3, { 1, 0 }, "reflect", 2) end, 'pad: mode "reflect" takes no value' },
    { function() tide.pad(x3, { math.maxinteger, 1 }) end, "can't be padded" },
    { function() tide.pixel_shuffle(x4, 2) end, "pixel_shuffle: 2 channels can't be divided by the square of upscale_factor, 4" },
    { function() tide.pixel_unshuffle(x4, 4) end, "pixel_unshuffle: planes of 6 x 6 can't be divided by downscale_factor 4" },
    { function() tide.pixel_shuffle(tide.ones(2, 2), 1) end, "pixel_shuffle: input must have shape (..., C, H, W), got (2, 2)" },
    { function() tide.channel_shuffle(x4, 3) end, "channel_shuffle: 2 channels can't be divided into 3 groups" },
    { function() tide.im2col(x4, 7) end, "im2col: a kernel of (7, 7) doesn't fit a padded image of (6, 6)" },
    { function() tide.col2im(tide.ones(1, 7, 4), 3, 2) end, "col2im: 7 rows can't be divided by a kernel of 2 x 2" },
    { function() tide.col2im(tide.ones(1, 8, 5), 3, 2) end, "col2im: an image of 3 x 3 has 2 x 2 windows, input (1, 8, 5) has 5" },
    { function() tide.max_unpool1d(x3, tide.ones(1, 2, 5, { dtype = tide.int64 }), 2) end,
        "max_unpool1d: input of shape (1, 2, 6) and indices of shape (1, 2, 5) must have the same shape" },
    { function() tide.max_unpool1d(x3, tide.ones(1, 2, 6, { dtype = tide.int64 }), 2, { output_size = { 20 } }) end,
        "max_unpool1d: an output_size of (20) doesn't go with an input of (1, 2, 6)" },
    { function() tide.max_unpool1d(x3, tide.full({ 1, 2, 6 }, 99), 2) end, "max_unpool1d: index 99 is out of range" },
    { function() tide.grid_sample(x4, tide.ones(1, 2, 2, 3)) end,
        "grid_sample: grid for an input of shape (1, 2, 6, 6) must have shape (1, H, W, 2), got (1, 2, 2, 3)" },
    { function() tide.grid_sample(x5, tide.ones(1, 2, 2, 2, 3), "bicubic") end, 'grid_sample: mode "bicubic" is for an input (N, C, H, W)' },
    { function() tide.grid_sample(x4, tide.ones(1, 2, 2, 2):double()) end, "grid_sample: dtypes float32 and float64 differ" },
    { function() tide.conv1d(x4, tide.ones(2, 2, 3)) end, "conv1d: input must have shape (N, C, L) or (C, L), got (1, 2, 6, 6)" },
    { function() tide.conv3d(x5, tide.ones(2, 2, 3)) end, "conv3d: weight must have shape (out, in / groups, D, H, W), got (2, 2, 3)" },
    { function() tide.conv1d(x3, tide.ones(2, 3, 3)) end, "conv1d: weight of shape (2, 3, 3) with groups = 1 takes 3 channels, input has 2" },
    { function() tide.conv3d(x5, tide.ones(2, 2, 5, 1, 1)) end, "conv3d: a kernel of 5 x 1 x 1 doesn't fit the padded input of 4 x 4 x 4" },
    { function() tide.conv1d(x3, tide.ones(2, 2, 3), nil, 2, "same") end, 'conv1d: padding "same" needs a stride of 1, got 2' },
    { function() tide.conv1d(x3, tide.ones(2, 2, 3), nil, 1, "full") end, 'expected an integer or a list of integers, or "same" or "valid"' },
    { function() tide.conv1d(x3, tide.ones(2, 2, 3), tide.ones(3)) end, "conv1d: bias must have shape (2), got (3)" },
    { function() tide.conv_transpose1d(x3, tide.ones(3, 2, 3)) end,
        "conv_transpose1d: weight of shape (3, 2, 3) with groups = 1 doesn't take the 2 channels of an input of shape (1, 2, 6)" },
    { function() tide.conv_transpose1d(x3, tide.ones(2, 2, 3), nil, 2, 0, 2) end,
        "conv_transpose1d: output_padding must be smaller than stride or dilation, got 2, 2 and 1" },
    { function() tide.conv_transpose2d(x4, tide.ones(2, 2, 1, 1), nil, 1, 4) end, "conv_transpose2d: the result would have a size of -2" },
    { function() tide.conv_transpose3d(x4, tide.ones(2, 2, 1, 1)) end, "conv_transpose3d: weight must have 5 dims" },
    { function() tide.affine_grid(tide.ones(1, 2, 2), { 1, 1, 2, 2 }) end, "affine_grid: theta must have shape (1, 2, 3), got (1, 2, 2)" },
    { function() tide.affine_grid(tide.ones(1, 2, 3), { 1, 1, 0, 2 }) end, "affine_grid: sizes must be at least 1, got (1, 1, 0, 2)" },
}
for k, row in ipairs(refusals) do
    t.test("refusal_" .. k, function() t.error_has(row[1], row[2]) end)
end
