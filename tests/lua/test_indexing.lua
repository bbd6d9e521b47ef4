-- test_indexing.lua: every form of an index, reading and writing, against values worked out by hand.
local t = require "harness"

local function matrix()
    return tide.arange(12):view(3, 4) -- 0 1 2 3 / 4 5 6 7 / 8 9 10 11
end
local function same(x, values)
    t.eq(x == tide.tensor(values), true, tostring(x))
end

t.test("new_axes_in_strings_and_what_a_hole_is", function()
    local x = tide.ones(2, 3)
    for key, shape in pairs { ["nil, :"] = { 1, 2, 3 }, ["None, :"] = { 1, 2, 3 }, [":, newaxis"] = { 2, 1, 3 }, ["..., None"] = { 2, 3, 1 },
        ["None"] = { 1, 2, 3 }, ["None, 1, nil"] = { 1, 1, 3 } } do
        t.eq({ table.unpack(x[key].shape) }, shape, key)
    end
    t.eq({ table.unpack(x[{ {}, "None", 1 }].shape) }, { 2, 1 })
    for _, key in ipairs { "Nonesuch", "nilly", "newaxis_" } do
        t.error_has(function() return x[key] end, "a tensor has no field or method '" .. key .. "'")
    end
    t.error_has(function() return x[{ {}, nil, {} }] end, "index: the list has a hole, its element 2 is nil: a new axis is tide.newaxis")
    t.error_has(function() x[{ {}, nil, {} }] = 5 end, "tide.newaxis")
end)

t.test("numbers_count_from_1_and_from_the_end", function()
    local x = matrix()
    same(x[1], { 0, 1, 2, 3 })
    same(x[-1], { 8, 9, 10, 11 })
    t.eq(x[2][3]:item(), 6)
    t.eq(x[{ 2, 3 }]:item(), 6)
    t.eq(x["2, -1"]:item(), 7)
end)

t.test("ipairs_visits_the_rows", function()
    local rows = {}
    for k, row in ipairs(matrix()) do
        rows[k] = row:sum():item()
    end
    t.eq(rows, { 6, 22, 38 })
    t.error_has(function() return matrix()[4] end, "out of range") -- nobody else gets nil there
    t.error_has(function() for _ in ipairs(tide.tensor(1)) do end end, "0 dims")
end)

t.test("ranges_include_both_ends", function()
    local x = matrix()
    same(x[{ { 1, 2 } }], { { 0, 1, 2, 3 }, { 4, 5, 6, 7 } })
    same(x[{ {}, { 2, 3 } }], { { 1, 2 }, { 5, 6 }, { 9, 10 } })
    same(x[{ {}, { 1, 4, 2 } }], { { 0, 2 }, { 4, 6 }, { 8, 10 } })
    same(x[{ { 2 } }], { { 4, 5, 6, 7 } })
    same(x[{ { -2, -1 }, 1 }], { 4, 8 })
    same(x["2:, :2"], { { 4, 5 }, { 8, 9 } })
    same(x["::2, 1"], { 0, 8 })
    same(x[":, -2:"], { { 2, 3 }, { 6, 7 }, { 10, 11 } })
    same(x["-2:-1, 1"], { 4, 8 })
    t.eq(tostring(x["3:2"].shape), "(0, 4)")
    t.eq(tostring(x["1:100"].shape), "(3, 4)")
end)

t.test("dots_and_new_dims", function()
    local x = tide.arange(24):view(2, 3, 4)
    same(x["..., -1"], { { 3, 7, 11 }, { 15, 19, 23 } })
    t.eq(tostring(x["1, ..., 2:3"].shape), "(3, 2)")
    t.eq(tostring(x[":, nil"].shape), "(2, 1, 3, 4)")
    t.eq(tostring(x["nil, 1, nil, ..."].shape), "(1, 1, 3, 4)")
    t.eq(tostring(x[{ 1, tide.newaxis, { 1, 2 } }].shape), "(1, 2, 4)")
    t.eq(tostring(x["..."].shape), "(2, 3, 4)")
end)

t.test("masks_and_index_tensors", function()
    local x = matrix()
    same(x[x:gt(8)], { 9, 10, 11 })
    same(x[tide.tensor { true, false, true }], { { 0, 1, 2, 3 }, { 8, 9, 10, 11 } })
    same(x[tide.tensor { 3, 1, -1 }], { { 8, 9, 10, 11 }, { 0, 1, 2, 3 }, { 8, 9, 10, 11 } })
    same(x[{ {}, tide.tensor { 4, 1 } }], { { 3, 0 }, { 7, 4 }, { 11, 8 } })
    same(x[{ tide.tensor { 1, 3 }, tide.tensor { 2, 4 } }], { 1, 11 })
    same(x[{ tide.tensor { { 1 }, { 3 } }, tide.tensor { 2, 4 } }], { { 1, 3 }, { 9, 11 } })
    same(x[{ 2, tide.tensor { 1, 1 } }], { 4, 4 })
    same(x[{ { 2, 3 }, tide.tensor { true, false, false, true } }], { { 4, 7 }, { 8, 11 } })
    t.eq(tostring(x[x:gt(100)].shape), "(0)")
    local y = tide.arange(24):view(2, 3, 4)
    t.eq(tostring(y[{ tide.tensor { 1, 2, 1 }, {}, tide.tensor { 1, 2, 3 } }].shape), "(3, 3)",
        "indexed dims that do not follow one another come first")
    same(y[{ tide.tensor { 1, 2, 1 }, {}, tide.tensor { 1, 2, 3 } }][2], { 13, 17, 21 })
end)

t.test("writing", function()
    local x = matrix()
    x[1] = 0
    x[{ 2, { 1, 2 } }] = tide.tensor { 40, 50 }
    x["3, -1"] = 7.9
    same(x, { { 0, 0, 0, 0 }, { 40, 50, 6, 7 }, { 8, 9, 10, 7 } })
    x[x:gt(9)] = -1
    x[{ tide.tensor { 1, 1 }, tide.tensor { 2, 3 } }] = tide.tensor { 5, 6 }
    same(x, { { 0, 5, 6, 0 }, { -1, -1, 6, 7 }, { 8, 9, -1, 7 } })
    x[{ {}, 1 }] = x[{ {}, 2 }]
    same(x[{ {}, 1 }], { 5, -1, 9 })
    local y = tide.zeros(2, 3)
    y[tide.tensor { true, false }] = tide.ones(3)
    y[2] = true
    same(y, { { 1.0, 1.0, 1.0 }, { 1.0, 1.0, 1.0 } })
end)

t.test("parts_are_views", function()
    local x = matrix()
    x[{ {}, { 2, 3 } }]:zero_()
    same(x, { { 0, 0, 0, 3 }, { 4, 0, 0, 7 }, { 8, 0, 0, 11 } })
    x[tide.tensor { 1 }]:fill_(9)
    t.eq(x[1][1]:item(), 0, "what an index tensor picks is a copy")
end)

t.test("gradients_flow_through_reading_and_writing", function()
    local x = tide.arange(6, { dtype = tide.float64 }):view(2, 3):requires_grad_(true)
    local picked = x[{ {}, tide.tensor { 1, 1, 3 } }]:sum() + x[1][2] * 10 + x[x:detach():gt(4)]:sum()
    picked:backward()
    same(x.grad, { { 2.0, 10.0, 1.0 }, { 2.0, 0.0, 2.0 } })
    local a, b = tide.ones(3, { requires_grad = true }), tide.ones(2, { requires_grad = true })
    local y = a * 2
    y[{ { 1, 2 } }] = b * 3
    y:sum():backward()
    same(a.grad, { 0.0, 0.0, 2.0 })
    same(b.grad, { 3.0, 3.0 })
    local c = tide.ones(3, { requires_grad = true })
    local z = c * 1
    z[tide.tensor { 1, 3 }] = 0
    local total = (z * z):sum()
    total:backward()
    same(c.grad, { 0.0, 2.0, 0.0 })
end)

t.test("wrong_indices_say_what_is_wrong", function()
    local x = matrix()
    local function wrong(key, text)
        t.error_has(function() return x[key] end, text)
    end
    wrong(0, "count from 1")
    wrong(4, "index 4 is out of range for dim 1 of size 3")
    wrong(-4, "index -4 is out of range")
    wrong(1.5, "no integer")
    wrong({ 1, 2, 3 }, "too many indices")
    wrong({ { 0, 2 } }, "counts from 1")
    wrong({ { 1, 2, 0 } }, "step")
    wrong({ { 1, 2, 3, 4 } }, "first, last, step")
    wrong("1:2, x", "position")
    wrong("1:2; 3", "position")
    wrong({ "1:2, x" }, "position")
    wrong(true, "got true")
    wrong({ true }, "got true")
    wrong(tide.tensor { 1, 4 }, "index 4 is out of range for dim 1 of size 3")
    wrong(tide.tensor { 0 }, "count from 1")
    wrong(tide.tensor { 1.0 }, "integers or bool")
    wrong(tide.tensor { true, false }, "mask of shape (2)")
    t.error_has(function() x[1] = tide.ones(3) end, "(3)")
    t.error_has(function() x[1] = "a" end, "assigned")
    t.error_has(function() x[9] = 1 end, "out of range")
    t.error_has(function() x.foo = 1 end, "foo")
end)

t.test("a_write_that_fails_changes_nothing", function()
    local x = tide.zeros(2, 3)
    local bad = tide.tensor { { 1, 2, 4 }, { 1, 1, 1 } }
    t.error_has(function() x:scatter_(2, bad, 5.0) end, "index 4 is out of range for dim 2 of size 3")
    t.error_has(function() x:scatter_add_(2, bad, tide.ones(2, 3)) end, "index 4 is out of range")
    t.error_has(function() x[tide.tensor { 1, 3 }] = 1 end, "index 3 is out of range for dim 1 of size 2")
    t.error_has(function() x[tide.tensor { 1, 2 }] = tide.ones(4) end, "values of shape (4)")
    same(x, { { 0, 0, 0 }, { 0, 0, 0 } })
end)

t.test("a_tensor_takes_parts_of_itself", function()
    local x = matrix()
    x[tide.tensor { 1, 2 }] = x[{ { 2, 3 } }]
    same(x, { { 4, 5, 6, 7 }, { 8, 9, 10, 11 }, { 8, 9, 10, 11 } })
    local row = tide.tensor { 2, 3, 1 }
    same(row:clone():scatter_(1, row, row), { 1, 2, 3 })
    same(row:scatter_(1, tide.tensor { 2, 3, 1 }, row), { 1, 2, 3 })
    local order = tide.tensor { 2, 3, 1 }
    same(order:scatter_(1, order, tide.tensor { 7, 8, 9 }), { 9, 7, 8 })
    order = tide.tensor { 2, 3, 1 }
    order[order] = order
    same(order, { 1, 2, 3 })
end)

t.test("one_hot_refuses_negative_labels", function()
    same(tide.one_hot(tide.tensor { 2, 1 }), { { 0, 1 }, { 1, 0 } })
    t.error_has(function() tide.one_hot(tide.tensor { 1, -1 }) end, "one_hot: a class label must not be negative")
    t.error_has(function() tide.one_hot(tide.tensor { 1, -1 }, 3) end, "must not be negative")
    t.error_has(function() tide.one_hot(tide.tensor { 4 }, 3) end, "index 4 is out of range")
end)

t.test("every_float_but_zero_is_nonzero", function()
    for _, dtype in ipairs { tide.float32, tide.float64 } do
        local x = tide.tensor({ 0, -0.0, 1, 0 / 0, -1e-40 }, { dtype = dtype })
        same(x:nonzero():view(-1), { 3, 4, 5 })
    end
    same(tide.tensor({ 0, 5, 256 }, { dtype = tide.int32 }):nonzero():view(-1), { 2, 3 })
end)

t.test("a_mask_of_no_dims_is_a_dim_of_its_own", function()
    local yes, no = tide.tensor(true), tide.tensor(false)
    local x = tide.tensor(5)
    same(x[yes], { 5 })
    same(x[no], {})
    t.eq({ table.unpack(tide.ones(3)[yes].shape) }, { 1, 3 })
    t.eq({ table.unpack(tide.ones(3)[no].shape) }, { 0, 3 })
    t.eq({ table.unpack(tide.ones(2, 3)[{ ":", yes }].shape) }, { 2, 1, 3 })
    same(tide.tensor { 7, 8 }[{ yes, tide.tensor { 2, 1 } }], { 8, 7 })
    x[yes] = 7
    t.eq(x:item(), 7)
    x[no] = 9
    t.eq(x:item(), 7)
    local w = tide.ones(3, { requires_grad = true })
    local y = w * 2
    y[yes] = tide.full({ 1, 3 }, 4.0)
    same(y, { 4, 4, 4 })
    y:sum():backward()
    same(w.grad, { 0, 0, 0 })
    w.grad = nil;
    (w * 2)[yes]:sum():backward()
    same(w.grad, { 2, 2, 2 })
    t.error_has(function() return x[{ tide.tensor(1), yes }] end, "too many indices")
    local deep = tide.ones(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
    t.error_has(function() return deep[yes] end, "at most 16 dims")
end)

-- Longer than the blocks in which indices are looked at.
t.test("many_indices_are_checked_wherever_the_wrong_one_stands", function()
    local n = 5000
    local x, order = tide.arange(1, n + 1), tide.randperm(n)
    for _, dtype in ipairs { tide.uint8, tide.int16, tide.float32, tide.int64, tide.float64 } do
        local v = (x % 100):to(dtype)
        t.is_true(v:take(order):equal(v:gather(1, order)))
        t.is_true(v:take(order - n - 1):equal(v:take(order)), "from the end")
        t.is_true(v:put(order, v):take(order):equal(v))
        t.is_true(v:view(1, n):index_select(2, order):view(-1):equal(v[order]))
        t.is_true(v:view(50, 100):gather(2, order:view(50, 100) % 100 + 1):view(-1):equal(
            v:take((x - 1) // 100 * 100 + order % 100 + 1)))
    end
    for _, place in ipairs { 1, 1024, 1025, n } do
        for _, wrong in ipairs { n + 1, -n - 1 } do
            local index, y = order:clone(), x:clone()
            index[place] = wrong
            local message = ("index %d is out of range for dim 1 of size %d"):format(wrong, n)
            t.error_has(function() return x:take(index) end, message)
            t.error_has(function() return x:gather(1, index) end, message)
            t.error_has(function() y:put_(index, x + 1) end, message)
            t.error_has(function() y:scatter_(1, index, x + 1) end, message)
            t.is_true(y:equal(x), "nothing is written")
        end
        local index = order:clone()
        index[place] = 0
        t.error_has(function() return x:take(index) end, "index 0: indices count from 1")
    end
end)

t.test("places_named_twice_are_written_in_order", function()
    local n = 3000
    local index, values = tide.arange(0, n) % 7 + 1, tide.arange(0, n)
    same(tide.zeros(7, { dtype = tide.int64 }):put(index, values), { 2996, 2997, 2998, 2999, 2993, 2994, 2995 })
    same(tide.zeros(7, { dtype = tide.int64 }):put(index, tide.ones(n, { dtype = tide.int64 }), true),
        { 429, 429, 429, 429, 428, 428, 428 })
end)

-- One index for each row, which scatter and gather see as the same along it.
t.test("rows_are_combined_as_their_elements_are", function()
    local index, wide = tide.tensor { 3, 1, 3, -4 }, { 4, 70 }
    for _, dtype in ipairs { tide.uint8, tide.int16, tide.float32, tide.float64, tide.bfloat16, tide.int64 } do
        local x, src = tide.randint(1, 4, { 5, 70 }):to(dtype), tide.randint(1, 4, wide):to(dtype)
        local expanded = index:view(4, 1):expand(wide)
        for _, how in ipairs { "sum", "prod", "amax", "amin" } do
            local want = x:scatter_reduce(1, expanded:contiguous(), src, how)
            t.is_true(x:scatter_reduce(1, expanded, src, how):equal(want), how)
            if how ~= "sum" then t.is_true(x:index_reduce(1, index, src, how):equal(want), how) end
        end
        t.is_true(x:scatter(1, expanded, src):equal(x:scatter(1, expanded:contiguous(), src)))
        t.is_true(x:gather(1, expanded):equal(x:index_select(1, index)))
        t.error_has(function() return x:gather(1, expanded + 3) end, "index 6 is out of range for dim 1 of size 5")
        t.error_has(function() return x:index_reduce(1, index + 3, src, "amax") end,
            "index 6 is out of range for dim 1 of size 5")
    end
end)

t.test("a_list_of_numbers_is_assigned_as_the_tensor_that_it_makes", function()
    for _, dtype in ipairs { tide.float32, tide.float64, tide.int64, tide.uint8 } do
        local x = tide.zeros(3, 4, { dtype = dtype })
        x[1] = { 1, 2, 3, 4 }
        x[{ 2, { 1, 2 } }] = { 7, 8 }
        x["2:3, 3:4"] = { { 1, 2 }, { 3, 4 } }
        t.eq(x:tolist(), { { 1, 2, 3, 4 }, { 7, 8, 1, 2 }, { 0, 0, 3, 4 } })
        x[x:gt(3)] = { 9, 9, 9, 9 }
        t.eq(x[1]:tolist(), { 1, 2, 3, 9 })
    end
    t.error_has(function() tide.zeros(3)[{ { 1, 2 } }] = { 1, 2, 3 } end, "3")
    t.error_has(function() tide.zeros(3)[1] = { "a" } end, "not a number")
    t.error_has(function() tide.zeros(3)[1] = "a" end, "a list of numbers")
end)

t.test("an_integer_without_dims_is_a_number", function()
    for _, dtype in ipairs { tide.int64, tide.int32, tide.uint8 } do
        local x = tide.zeros(3, 2)
        local i, last = tide.tensor(2, { dtype = dtype }), tide.tensor(3, { dtype = dtype })
        x[i]:add_(1)
        x[i][1] = 5
        x[{ {}, i }][last] = 7
        t.eq(x:tolist(), { { 0, 0 }, { 5, 1 }, { 0, 7 } })
        for _, row in ipairs(tide.tensor({ 1, 3 }, { dtype = dtype })) do
            x[row]["2"] = 4
        end
        t.eq(x[{ {}, 2 }]:tolist(), { 4, 1, 4 })
    end
    local x = tide.arange(24):view(2, 3, 4)
    t.eq(x[tide.tensor(-1)]:tolist(), x[2]:tolist())
    t.eq(x[{ tide.tensor(2), tide.newaxis, tide.tensor { 1, 3 } }]:tolist(), x[{ 2, tide.newaxis, tide.tensor { 1, 3 } }]:tolist())
    t.error_has(function() return x[tide.tensor(0)] end, "indices count from 1")
    t.error_has(function() return x[tide.tensor(3)] end, "3")
    local leaf = tide.ones(3, { requires_grad = true })
    local y = leaf * 2
    y[tide.tensor(2)]:mul_(3)
    y:sum():backward()
    t.eq(leaf.grad:tolist(), { 2, 6, 2 })
end)

t.test("a_trace_keeps_an_index_that_is_its_input", function()
    local row = tide.jit.trace(function(x, i) return x[i] + 1 end, { tide.zeros(3), tide.tensor(1) })
    t.eq(row(tide.tensor { 1, 2, 3 }, tide.tensor(3)):item(), 4)
    local constant = tide.jit.trace(function(x) x[tide.tensor(2)]:fill_(7) return x + 0 end, { tide.zeros(3) })
    t.eq(constant(tide.zeros(3)):tolist(), { 0, 7, 0 })
end)
