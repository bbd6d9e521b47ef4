-- test_views_in_place.lua: a tensor that becomes a view of itself (squeeze_, t_, as_strided_, ...), views of
-- any strides, and writes through views of tensors that are not row-major. Numbers are PyTorch's.
local t = require "harness"

local turns = {
    squeeze_ = { shape = "(3)", call = function(x) return x:squeeze_() end },
    unsqueeze_ = { shape = "(1, 1, 3)", call = function(x) return x:unsqueeze_(1) end },
    t_ = { shape = "(3, 1)", call = function(x) return x:t_() end },
    transpose_ = { shape = "(3, 1)", call = function(x) return x:transpose_(1, 2) end },
    swapaxes_ = { shape = "(3, 1)", call = function(x) return x:swapaxes_(1, 2) end },
    swapdims_ = { shape = "(3, 1)", call = function(x) return x:swapdims_(-1, 1) end },
    as_strided_ = { shape = "(3)", call = function(x) return x:as_strided_({ 3 }, { 1 }) end },
}

local function leaf(...)
    local n = 1
    for _, size in ipairs { ... } do
        n = n * size
    end
    return tide.arange(n, { dtype = tide.float64 }):reshape(...):clone():requires_grad_()
end

for name, turn in pairs(turns) do
    t.test(name .. "_changes_the_tensor_itself", function()
        local x = tide.arange(3.0):reshape(1, 3):clone()
        local version, place = x._version, x:data_ptr()
        t.is_true(rawequal(turn.call(x), x))
        t.eq(tostring(x.shape), turn.shape)
        t.eq({ x:data_ptr(), x._version }, { place, version + 1 })
        t.eq(x:sum():item(), 3)
    end)

    t.test(name .. "_goes_on_with_the_history", function()
        local l = leaf(1, 3)
        local x = turn.call(l * 2)
        t.eq(tostring(x.shape), turn.shape)
        t.eq(tide.autograd.grad((x * x):sum(), { l })[1]:tolist(), { { 0, 8, 16 } })
        local y = l * 2
        tide.no_grad(function() turn.call(y) end)
        t.eq(tide.autograd.grad((y * y):sum(), { l })[1]:tolist(), { { 0, 8, 16 } }, "without recording too")
    end)

    t.test(name .. "_of_a_leaf_that_requires_grad_is_refused", function()
        t.error_has(function() turn.call(leaf(1, 3)) end, name .. ": a leaf that requires grad")
        t.error_has(function() turn.call(leaf(2, 1, 3)[1]) end, name .. ": a view of a leaf that requires grad")
    end)

    t.test(name .. "_of_a_view_leaves_the_base_as_it_is", function()
        local l = leaf(2, 1, 3)
        local b = l * 2
        local x = b[2]
        turn.call(x)
        t.eq({ tostring(b.shape), tostring(b.grad_fn), b._version }, { "(2, 1, 3)", "<MulBackward>", 1 })
        local grads = tide.autograd.grad((b * b):sum() + x:sum(), { l }, { retain_graph = true })
        t.eq(grads[1]:tolist(), { { { 0, 8, 16 } }, { { 26, 34, 42 } } })
        x:mul_(3)
        t.eq(tide.autograd.grad((b * b):sum(), { l })[1]:tolist(), { { { 0, 8, 16 } }, { { 216, 288, 360 } } })
    end)

    t.test(name .. "_of_a_base_leaves_its_views_as_they_are", function()
        local l = leaf(1, 3)
        local b = l * 2
        local x = b[1]
        turn.call(b)
        x:mul_(3)
        t.eq({ tostring(b.shape), tostring(x.shape) }, { turn.shape, "(3)" })
        t.eq(tide.autograd.grad((b * b):sum(), { l })[1]:tolist(), { { 0, 72, 144 } })
    end)

    t.test(name .. "_counts_as_a_write_of_what_was_saved", function()
        local l = leaf(1, 3)
        local x = l * 2
        local y = (x * x):sum()
        turn.call(x)
        t.error_has(function() tide.autograd.grad(y, { l }) end, "changed in place")
    end)
end

t.test("an_expanded_tensor_turns_too", function()
    local x = tide.ones(3):expand(1, 3)
    t.eq(tostring(x:squeeze_().shape), "(3)")
    t.error_has(function() tide.ones(2, 2):t_():as_strided_({ 5 }, { 1 }) end, "outside the storage")
end)

t.test("as_strided_counts_from_the_storage", function()
    local x = tide.arange(12):reshape(3, 4)
    t.eq(x[2]:as_strided({ 3 }, { 1 }, 0):tolist(), { 0, 1, 2 })
    t.eq(x[2]:as_strided({ 3 }, { 1 }):tolist(), { 4, 5, 6 }, "without an offset from the tensor's own")
    t.eq(x[2]:as_strided({ 2, 2 }, { 4, 1 }, { storage_offset = 1 }):tolist(), { { 1, 2 }, { 5, 6 } })
end)

t.test("as_strided_of_any_base_has_gradients", function()
    local l = leaf(2, 3)
    local x = (l * 1):t()
    local y = x:as_strided({ 2, 2 }, { 1, 2 })
    t.eq(tide.autograd.grad((y * y):sum(), { l })[1]:tolist(), { { 0, 2, 4 }, { 6, 0, 0 } })
    local e = leaf(3):expand(2, 3)
    y = e:as_strided({ 3 }, { 1 })
    t.eq(tide.autograd.grad(y:sum(), { e })[1]:tolist(), { { 0.5, 0.5, 0.5 }, { 0.5, 0.5, 0.5 } })
    local part = (l * 1)["2:"]
    y = part:as_strided({ 2 }, { 1 }, 2)
    t.eq(tide.autograd.grad(y:sum(), { part })[1]:tolist(), { { 1, 0, 0 } }, "what lies outside of it has none")
end)

t.test("as_strided_has_second_derivatives", function()
    local function check(fn, ...)
        local x = leaf(...)
        t.is_true(tide.autograd.gradcheck(fn, { x }))
        t.is_true(tide.autograd.gradgradcheck(fn, { x }))
    end
    check(function(x) local y = x:t():as_strided({ 2, 2 }, { 2, 1 }, 1) return (y * y * y):sum() end, 2, 3)
    check(function(x) local y = x:expand(2, 3):as_strided({ 2, 2 }, { 1, 1 }) return (y * y * y):sum() end, 3)
    check(function(x) local y = x:flip(1)["::2"]:as_strided({ 3 }, { 2 }) return (y * y * y):sum() end, 6)
end)

-- Writes through views of x, whatever x is; the gradient by l of the sum of squares.
local function through(make, write, ...)
    local l = leaf(...)
    local x = make(l * 1)
    write(x)
    return tide.autograd.grad((x * x):sum(), { l })[1]:tolist()
end

t.test("writes_through_views_of_bases_of_any_strides_are_followed", function()
    local function transposed(x) return x:t():clone() end -- a base of its own, which lies as the view did
    t.eq(tostring(transposed(leaf(2, 3)):stride()), "(1, 3)")
    t.eq(through(transposed, function(x) x[1]:mul_(3) end, 2, 3), { { 0, 2, 4 }, { 54, 8, 10 } })
    t.eq(through(transposed, function(x) x["2:, 2"]:zero_() end, 2, 3), { { 0, 2, 4 }, { 6, 0, 0 } })
    local function permuted(x) return x:permute(3, 1, 2):clone() end
    t.eq(through(permuted, function(x) x[2]:mul_(2) end, 1, 2, 2), { { { 0, 8 }, { 4, 24 } } })
end)

t.test("writes_through_views_of_such_bases_have_second_derivatives", function()
    local function fn(l)
        local x = (l * l):t():clone()
        x[1]:mul_(l[1]["1:2"])
        x["2, :"]:copy_(l[2]["2:"] * 2)
        return (x * x):sum()
    end
    local x = (leaf(2, 3):detach() * 0.3 + 0.2):requires_grad_()
    t.is_true(tide.autograd.gradcheck(fn, { x }))
    t.is_true(tide.autograd.gradgradcheck(fn, { x }))
end)

t.test("views_that_a_base_has_left_behind_are_refused", function()
    local b = leaf(6) * 1
    local v = b["1:3"]
    b:as_strided_({ 2 }, { 1 }, 4)
    t.error_has(function() return v * 2 end, "a view that reaches beyond the tensor it looks into")
    t.error_has(function() v:mul_(5) end, "a view that reaches beyond the tensor it looks into")
    local whole = tide.zeros(6)
    local seen = whole["1:2"]:detach():as_strided({ 3 }, { 1 }, 3)
    t.error_has(function() seen:add_(leaf(3):float()) end, "a view that reaches beyond")
    t.eq(whole:sum():item(), 0, "nothing was written")
end)

t.test("a_write_through_a_view_of_an_expanded_base_is_refused", function()
    local base = tide.zeros(3):expand(2, 3):detach()
    t.error_has(function() base[1]:add_(leaf(3):float()) end, "whose elements share memory")
end)
