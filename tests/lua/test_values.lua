-- test_values.lua: what single expressions of Lua give, to the last element: indexing in its forms beyond
-- test_indexing.lua's, comparisons that give a boolean, modes, errors, devices, fields of results.
local t = require "harness"

local function grid(...)
    local n = 1
    for _, size in ipairs { ... } do
        n = n * size
    end
    return tide.arange(n):reshape(...)
end

-- ---- index 0 ----

t.test("index_0_is_refused_in_every_form", function()
    local x = grid(3, 4)
    for _, key in ipairs {
        { 0 }, { 1, 0 }, { {}, 0 }, "0", "1, 0", ":, 0", "..., 0", { { 0, 2 } }, { { 1, 0 } }, "0:2",
    } do
        t.error_matches(function() return x[key] end, "count", tostring(key))
        t.error_matches(function() x[key] = 1 end, "count", tostring(key))
    end
    t.error_has(function() return x[tide.tensor { 1, 0 }] end, "count from 1")
    t.error_has(function() return x[0] end, "count from 1")
    t.error_has(function() x[0] = 1 end, "count from 1")
end)

-- ---- masks and what stands beside them ----

t.test("a_mask_of_two_dims_takes_two_dims", function()
    local x = grid(2, 3, 4)
    local mask = tide.tensor { { true, false, false }, { false, false, true } }
    t.eq(x[{ mask }]:tolist(), { { 0, 1, 2, 3 }, { 20, 21, 22, 23 } })
    t.eq(x[{ mask, 2 }]:tolist(), { 1, 21 })
    t.eq(x[{ mask, { 2, 3 } }]:tolist(), { { 1, 2 }, { 21, 22 } })
end)

t.test("a_mask_after_a_number_takes_the_dims_that_follow", function()
    local x = grid(2, 3, 2)
    local mask = tide.tensor { { true, false }, { false, false }, { true, true } }
    t.eq(x[{ 2, mask }]:tolist(), { 6, 10, 11 })
    t.eq(x[{ {}, mask }]:tolist(), { { 0, 4, 5 }, { 6, 10, 11 } })
end)

t.test("a_mask_of_too_many_dims_is_refused", function()
    local x = grid(2, 3)
    t.error_has(function() return x[{ 1, x:gt(2) }] end, "too many indices")
end)

t.test("two_index_tensors_go_together", function()
    local x = grid(3, 4)
    local i, j = tide.tensor { 3, 1 }, tide.tensor { 2, -1 }
    t.eq(x[{ i, j }]:tolist(), { 9, 3 })
    x[{ i, j }] = tide.tensor { -1, -2 }
    t.eq(x:tolist(), { { 0, 1, 2, -2 }, { 4, 5, 6, 7 }, { 8, -1, 10, 11 } })
end)

t.test("an_index_tensor_between_ranges_keeps_its_place", function()
    local x = grid(2, 3, 2)
    t.eq(x[{ {}, tide.tensor { 3, 1 }, 2 }]:tolist(), { { 5, 1 }, { 11, 7 } })
    t.eq(x[{ { 2, 2 }, tide.tensor { 3, 1 } }]:tolist(), { { { 10, 11 }, { 6, 7 } } })
end)

-- ---- assignment of a part of itself ----

t.test("a_row_becomes_another_row", function()
    local x = grid(2, 2)
    x[1] = x[2]
    t.eq(x:tolist(), { { 2, 3 }, { 2, 3 } })
end)

t.test("rows_change_places_through_an_index", function()
    local x = grid(3, 2)
    x[tide.tensor { 1, 3 }] = x[tide.tensor { 3, 1 }]
    t.eq(x:tolist(), { { 4, 5 }, { 2, 3 }, { 0, 1 } })
end)

t.test("a_shifted_part_is_copied_as_it_was", function()
    for _, n in ipairs { 6, 100, 100003 } do
        local x = tide.arange(n)
        x["2:"] = x[("1:%d"):format(n - 1)]
        local want = tide.arange(n) - 1
        want[1] = 0
        t.is_true(x == want, "forwards, " .. n)
        x = tide.arange(n)
        x[("1:%d"):format(n - 1)] = x["2:"]
        want = tide.arange(n) + 1
        want[-1] = n - 1
        t.is_true(x == want, "backwards, " .. n)
    end
end)

t.test("a_square_becomes_its_transpose", function()
    for _, n in ipairs { 2, 5, 67 } do
        local x = grid(n, n)
        local want = x:t():clone()
        x:copy_(x:t())
        t.is_true(x == want, "of " .. n)
    end
end)

t.test("a_part_of_x_assigned_to_x_keeps_gradients", function()
    local a = tide.tensor({ 1, 2, 3 }, { dtype = tide.float64, requires_grad = true })
    local x = a * 2
    x[1] = x[3]
    local loss = (x * tide.tensor { 1., 10., 100. }):sum()
    loss:backward()
    t.eq(a.grad:tolist(), { 0, 20, 202 })
end)

-- ---- comparisons that give one boolean ----

t.test("comparisons_of_single_elements_are_lua_booleans", function()
    local one, two = tide.tensor(1), tide.tensor(2.0)
    t.eq(one < two, true)
    t.eq(two < one, false)
    t.eq(one < one, false)
    t.eq(one <= one, true)
    t.eq(one <= 1, true)
    t.eq(1 <= one, true)
    t.eq(2 <= one, false)
    t.eq(one > 0, true)
    t.eq(one >= 1, true)
    t.eq(one >= two, false)
end)

t.test("equality_is_of_shape_and_elements", function()
    t.eq(grid(2, 3) == grid(2, 3), true)
    t.eq(grid(2, 3) == grid(3, 2), false)
    t.eq(grid(2) == grid(2) + 1, false)
    t.eq(grid(2) ~= grid(2) + 1, true)
end)

t.test("large_integers_keep_their_last_digits", function()
    local large = (1 << 53) + 1
    local x = tide.tensor { large, 7, (1 << 62) + 3, 9 }
    t.eq(x["::2"]:to(tide.int32):tolist(), { 1, 3 })
    t.eq(x["::2"]:clone():tolist(), { large, (1 << 62) + 3 })
    t.eq((x + 1):tolist(), { large + 1, 8, (1 << 62) + 4, 10 })
    t.eq((tide.ones(2, { dtype = tide.int32 }) + tide.tensor(large)):tolist(), { 2, 2 })
    t.eq((tide.tensor({ 7, 9 }, { dtype = tide.int32 }) * tide.tensor((1 << 32) + 3)):tolist(), { 21, 27 })
    t.eq(tide.tensor(large):item(), large)
end)

-- ---- modes ----

t.test("modes_nest_and_come_back_to_what_they_found", function()
    local on = tide.is_grad_enabled
    t.eq(on(), true)
    tide.no_grad(function()
        t.eq(on(), false)
        tide.no_grad(function() t.eq(on(), false) end)
        t.eq(on(), false, "after an inner no_grad")
        tide.enable_grad(function() t.eq(on(), true) end)
        t.eq(on(), false, "after an inner enable_grad")
        pcall(tide.enable_grad, function() error("left by an error") end)
        t.eq(on(), false, "after an inner enable_grad that failed")
        do
            local _ <close> = tide.set_grad_enabled(true)
            t.eq(on(), true)
        end
        t.eq(on(), false, "after a closed guard")
    end)
    t.eq(on(), true)
    tide.enable_grad(function()
        do
            local _ <close> = tide.no_grad()
            t.eq(on(), false)
        end
        t.eq(on(), true)
    end)
    t.eq(on(), true)
end)

-- ---- errors ----

t.test("errors_name_the_operator_that_was_called_and_no_other", function()
    local x, y = tide.ones(2, 3), tide.ones(2)
    for _, call in ipairs {
        { "clamp: shapes (2, 3) and (2) don't broadcast: 3 ≠ 2", function() tide.clamp(x, y) end },
        { "clamp: shapes (2, 3) and (2) don't broadcast: 3 ≠ 2", function() tide.clamp(x, tide.ones(3), y) end },
        { "narrow: dim 3 is out of range", function() x:narrow(3, 1, 1) end },
        { "matmul: shapes (2, 3) and (2) don't fit: 3 ≠ 2", function() x:matmul(y) end },
        { "max: dim 4 is out of range", function() x:max(4) end },
        { "cross_entropy: target 7 at position 2", function() tide.cross_entropy(x, tide.tensor { 1, 7 }) end },
        { "mse_loss: ", function() tide.mse_loss(x, tide.ones(4)) end },
        { "outer: ", function() x:outer(y) end },
    } do
        local message = t.error_has(call[2], call[1])
        t.is_true(message:match("^[^:]+:%d+: ([^:]+: )") == call[1]:match("^[^:]+: "), message)
    end
end)

-- ---- devices and their memory ----

t.test("devices_are_read_to_the_last_letter", function()
    t.eq(tide.zeros(1, { device = "cpu" }).device, "cpu")
    t.eq(tide.zeros(1, { device = "cpu:0" }).device, "cpu")
    for _, name in ipairs { "cpu:1", "cpu:x", "cpu:", "cpux", "cpu:-1", "", "gpu", "cpu:0 " } do
        t.error_has(function() tide.zeros(1, { device = name }) end, "'" .. name .. "'", name)
    end
end)

t.test("memory_in_use_and_its_peak_follow_tensors", function()
    collectgarbage()
    collectgarbage()
    local kept = tide.zeros(1000000)
    tide.reset_peak_memory_stats()
    local before = tide.memory_allocated()
    t.is_true(before >= 4000000)
    t.eq(tide.memory_stats().peak, before, "the peak starts from what is in use")
    local x = tide.zeros(500000)
    t.is_true(tide.memory_allocated() - before >= 2000000)
    x:free()
    t.eq(tide.memory_allocated(), before)
    t.is_true(tide.memory_stats().peak - before >= 2000000, "the peak stays")
    kept:free()
    t.is_true(tide.memory_allocated() <= before - 4000000)
end)

-- ---- fields ----

t.test("sizes_and_strides_of_each_dim", function()
    local x = tide.zeros(2, 3, 4)
    t.eq({ x:size(1), x:size(2), x:size(3), x:size(-1) }, { 2, 3, 4, 4 })
    t.eq({ x:stride(1), x:stride(2), x:stride(3), x:stride(-3) }, { 12, 4, 1, 12 })
    local y = x:transpose(1, 3)
    t.eq({ y:stride(1), y:stride(2), y:stride(3) }, { 1, 4, 12 })
    t.eq({ #x, x:dim(), x.ndim, x:numel(), x:element_size() }, { 2, 3, 3, 24, 4 })
    t.eq({ x:is_contiguous(), y:is_contiguous() }, { true, false })
    t.eq(x.T.shape, tide.zeros(4, 3, 2).shape)
end)

t.test("results_know_where_they_come_from", function()
    local x = tide.ones(2, { requires_grad = true })
    local y = x * 2
    t.eq({ x.is_leaf, y.is_leaf, x.requires_grad, y.requires_grad, y:detach().requires_grad },
        { true, false, true, true, false })
    t.eq(x.grad_fn, nil)
    t.is_true(y.grad_fn:name():find("Mul", 1, true))
end)

t.test("operators_of_lua_with_numbers_on_either_side", function()
    local x = tide.tensor { 7, -7 }
    t.eq((x + 1):tolist(), { 8, -6 })
    t.eq((1 - x):tolist(), { -6, 8 })
    t.eq((2 * x):tolist(), { 14, -14 })
    t.eq((x / 2):tolist(), { 3.5, -3.5 })
    t.eq((14 / x):tolist(), { 2, -2 })
    t.eq((x // 2):tolist(), { 3, -4 })
    t.eq((15 // x):tolist(), { 2, -3 })
    t.eq((x % 4):tolist(), { 3, 1 })
    t.eq((10 % x):tolist(), { 3, -4 })
    t.eq((x ^ 2):tolist(), { 49, 49 })
    t.eq((-x):tolist(), { -7, 7 })
    t.eq((x & 3):tolist(), { 3, 1 })
    t.eq((x | 8):tolist(), { 15, -7 })
    t.eq((x ~ 1):tolist(), { 6, -8 })
    t.eq((~x):tolist(), { -8, 6 })
    t.eq((~tide.tensor { true, false }):tolist(), { false, true })
end)

t.test("nansum_skips_what_is_no_number_wherever_it_lies", function()
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16 } do
        for n = 1, 37 do
            local x = tide.ones(n, n, { dtype = dtype })
            for k = 1, n do
                x[{ k, k }] = 0 / 0
            end
            for dim = 1, 2 do
                local sums = x:nansum(dim)
                t.eq({ sums:amin():item(), sums:amax():item() }, { n - 1, n - 1 }, n .. " along dim " .. dim)
            end
        end
    end
end)
