-- test_forms.lua: forms of calls and methods as PyTorch has them: which argument comes first, what shares
-- memory, what is refused, and the fields of a tensor. Values by operator are golden.
local t = require "harness"

local function shares(a, b)
    return a:data_ptr() == b:data_ptr()
end

t.test("where_as_a_method_has_the_tensor_first", function()
    local x, condition = tide.tensor { 1, 2, 3 }, tide.tensor { true, false, true }
    t.eq(x:where(condition, 9):tolist(), { 1, 9, 3 })
    t.eq(x:where(condition, tide.tensor { 7, 8, 9 }):tolist(), { 1, 8, 3 })
    t.eq(tide.where(condition, x, 9):tolist(), { 1, 9, 3 }, "the function has the condition first")
    t.eq(x:where { condition = condition, other = 0 }:tolist(), { 1, 0, 3 })
    t.error_has(function() x:where(x, 9) end, "where: the condition must be bool, got int64")
    t.error_has(function() x:where(condition) end, "where: argument 3 (other): expected a tensor or a number, got nothing")
    local y = tide.ones(3, { requires_grad = true })
    y:where(condition, 0):sum():backward()
    t.eq(y.grad:tolist(), { 1, 0, 1 })
end)

t.test("tile_never_shares_memory", function()
    for _, given in ipairs { { 1, 3, { 2, 1 } }, { 1, 3, { 1 } }, { 2, 2, { 1, 1 } }, { 0, 2, { 1 } } } do
        local a = tide.ones(given[1], given[2])
        local b = a:tile(given[3])
        b:mul_(5)
        t.eq(a:sum():item(), a:numel() * 1.0)
    end
    local a = tide.ones(1, 3)
    t.eq(a:tile(2, 1):stride(), tide.ones(2, 3):stride(), "each row has memory of its own")
end)

-- Rows of more than 2 KB, whose copies begin anywhere in a line of the cache.
t.test("roll_moves_long_rows_by_any_number", function()
    for _, dtype in ipairs { tide.uint8, tide.int16, tide.float32, tide.float64 } do
        local x = (tide.arange(3 * 4111) % 251):view(3, 4111):to(dtype)
        for shift = -33, 33 do
            t.eq(x:roll(shift, 2):equal(x:index_select(2, (tide.arange(4111) - shift) % 4111 + 1)), true)
        end
    end
end)

t.test("roll_and_one_hot_refuse_what_is_not_there", function()
    t.error_has(function() tide.tensor(5.0):roll(1, 1) end, "roll: a 0-dim tensor has no dim to roll along")
    t.eq(tide.tensor(5.0):roll(1):item(), 5.0)
    t.error_has(function() tide.one_hot(tide.tensor { -1 }, 3) end, "one_hot: a class label must not be negative")
    t.error_has(function() tide.one_hot(tide.tensor { 1 }, -2) end, "one_hot: num_classes must be at least 1")
    t.error_has(function() tide.one_hot(tide.tensor { 1 }, 0) end, "one_hot: num_classes must be at least 1")
    t.eq(tide.one_hot(tide.tensor { 1, 2 }, -1):tolist(), { { 1, 0 }, { 0, 1 } })
end)

t.test("index_add_and_index_copy_do_not_broadcast_the_source", function()
    local x, index = tide.zeros(3, 4), tide.tensor { 1, 2 }
    for _, name in ipairs { "index_add", "index_copy" } do
        for _, source in ipairs { tide.ones(1, 4), tide.ones(2, 1), tide.ones(4), tide.tensor(1.0) } do
            t.error_has(function() tide[name](x, 1, index, source) end, name .. ": source of shape")
        end
        t.error_has(function() tide[name](x, 1, index, tide.ones(2, 4):double()) end,
            name .. ": source must have x's dtype float32, got float64")
    end
    t.error_has(function() tide.index_add(tide.tensor(1.0), 1, index["1:1"], tide.ones(1)) end, "source of shape (1)")
    t.error_has(function() tide.index_add(tide.ones(3), 1, index["1:1"], tide.tensor(1.0)) end, "source of shape ()")
    t.error_has(function() tide.index_select(tide.tensor(1.0), 1, index) end,
        "index_select: index must name one place of a 0-dim tensor, got 2")
    t.eq(x:sum():item(), 0, "nothing was written")
end)

t.test("a_0_dim_tensor_is_written_by_index", function()
    local one = tide.tensor { 1 }
    local x = tide.tensor(5.0)
    t.eq(x:index_fill_(1, one, 3):item(), 3)
    t.eq(x:index_copy_(1, one, tide.tensor { 2.0 }):item(), 2)
    t.eq(x:index_add_(1, tide.tensor(1), tide.tensor(4.0)):item(), 6)
    t.eq(x.shape, tide.ones(1)[1].shape)
    local y = tide.tensor(2.0, { requires_grad = true })
    local z = (y * 3):index_copy_(1, one, (y * 5):reshape(1))
    z:backward()
    t.eq(y.grad:item(), 5)
end)

t.test("assignment_drops_leading_dims_of_size_1", function()
    local s = tide.zeros(2, 4)
    s[1] = tide.ones(1, 4)
    s[tide.tensor { 2 }] = tide.full({ 1, 1, 4 }, 2.0)
    t.eq(s:tolist(), { { 1, 1, 1, 1 }, { 2, 2, 2, 2 } })
    t.error_has(function() s[1] = tide.ones(2, 4) end, "doesn't broadcast")
    local v = tide.ones(1, 4, { requires_grad = true })
    s = tide.zeros(2, 4)
    s[2] = v * 3
    s:sum():backward()
    t.eq(v.grad:tolist(), { { 3, 3, 3, 3 } })
end)

t.test("addmm_with_a_bias_is_a_layer_whose_sums_are_rounded_once", function()
    for dtype, large in pairs { bfloat16 = 256, float16 = 2048 } do
        local x, y = tide.tensor { { large, 1 } }:to(dtype), tide.ones(2, 1, { dtype = dtype })
        t.eq(tide.addmm(tide.tensor { -large }:to(dtype), x, y):item(), 1, dtype)
    end
end)

t.test("input_of_addmm_has_the_dtype_and_in_place_the_shape_of_the_product", function()
    local a = tide.ones(2, 2)
    t.error_has(function() tide.addmm(a:double(), a, a) end, "addmm: dtypes float64 and float32 differ")
    t.error_has(function() tide.ones(2):addmm_(a, a) end, "addmm_: input of shape (2), the product has (2, 2)")
    t.error_has(function() tide.addmm(tide.ones(3), a, a) end, "addmm: ")
    t.eq(tide.ones(2):addmv_(a, tide.ones(2), { beta = 2, alpha = 3 }):tolist(), { 8, 8 })
    t.eq(tide.ones(1, 2, 2):baddbmm_(a:unsqueeze(1), a:unsqueeze(1)):tolist(), { { { 3, 3 }, { 3, 3 } } })
    t.error_has(function() tide.linear(a, tide.ones(2), tide.ones(1)) end, "linear: a weight of one dim takes no bias")
end)

t.test("fields_and_methods_of_a_tensor", function()
    local x = tide.ones(2, 3, { requires_grad = true })
    t.eq(tostring(x.mT.shape), "(3, 2)")
    t.eq(tostring(tide.ones(4, 2, 3).mT.shape), "(4, 3, 2)")
    t.error_has(function() return tide.ones(3).mT end, "mT: needs a tensor of at least 2 dims, got shape (3)")
    t.is_false(x.data.requires_grad)
    t.is_true(shares(x.data, x))
    t.eq({ x.nbytes, x.itemsize, x:nelement(), x:ndimension() }, { 24, 4, 6, 2 })
    t.eq({ x:storage_offset(), x[2]:storage_offset() }, { 0, 3 })
    t.is_true(x:is_floating_point() and tide.is_floating_point(x))
    t.is_false(tide.is_floating_point(tide.tensor { 1 }))
    t.eq(x:type_as(tide.tensor { 1 }).dtype, tide.int64)
    t.is_true(rawequal(x:cpu(), x) or shares(x:cpu(), x))
    if not pcall(tide.ones, 1, { device = "cuda" }) then
        t.error_matches(function() return x:cuda() end, "cuda: device 'cuda' is not there[^\n]*$")
    end
end)

t.test("the_sign_of_nan_is_not_printed", function()
    t.eq(tostring(tide.zeros(0):mean():item()), "nan")
    t.eq(tostring((tide.zeros(1) / 0):tolist()[1]), "nan")
    t.eq(tostring((-(tide.zeros(1) / 0)):item()), "nan")
end)

t.test("a_rate_may_be_a_tensor_that_changes", function()
    local p = tide.ones(1, { requires_grad = true })
    local rate = tide.tensor(0.5)
    local optimizer = tide.optim.SGD({ p }, { lr = rate })
    p:sum():backward()
    optimizer:step()
    rate:fill_(0.25)
    optimizer:step()
    t.eq(p:item(), 0.25)
    t.error_has(function() tide.optim.SGD({ p }, { lr = tide.ones(2) }) end, "lr: a tensor of one element expected")
    t.error_has(function() tide.optim.SGD({ p }, { lr = tide.tensor(-1.0) }) end, "from 0 on")
end)

t.test("targets_of_minus_100_are_ignored", function()
    local x = tide.tensor { { 1.0, 2 }, { 3, 5 } }
    local one = tide.cross_entropy(x["1:1"], tide.tensor { 2 }):item()
    t.close(tide.cross_entropy(x, tide.tensor { 2, -100 }):item(), one, 1e-7)
    t.close(tide.nn.CrossEntropyLoss()(x, tide.tensor { 2, -100 }):item(), one, 1e-7)
    t.eq(tide.nll_loss(x, tide.tensor { 2, -100 }, { reduction = "none" }):tolist(), { -2, 0 })
    t.error_has(function() tide.cross_entropy(x, tide.tensor { 2, -99 }) end, "cross_entropy: ")
    t.error_has(function() tide.cross_entropy(x, x:softmax(2), { ignore_index = 1 }) end, "ignore_index is for class targets")
    t.is_true(tide.cross_entropy(x, x:softmax(2), { ignore_index = -1 }):item() > 0)
end)

t.test("smooth_l1_without_a_smooth_part_has_a_second_derivative", function()
    local x = tide.tensor({ 1.0, -2 }, { requires_grad = true, dtype = tide.float64 })
    local g = tide.autograd.grad(tide.smooth_l1_loss(x * x, tide.zeros_like(x), { beta = 0 }), { x }, { create_graph = true })[1]
    t.eq(g:tolist(), { 1, -2 })
    t.eq(tide.autograd.grad(g:sum(), { x })[1]:tolist(), { 1, 1 })
end)
