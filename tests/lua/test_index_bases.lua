-- test_index_bases.lua: indices come to the kernels as scripts count them: what must not be taken for a count from 0.
local t = require "harness"

local function same(x, values)
    t.eq(tide.equal(x, tide.tensor(values):to(x.dtype)), true, tostring(x))
end
local function leaf(n) return tide.arange(1, n + 1):double():requires_grad_(true) end

-- Gradients by a weight for each result, so that a place that is off by one shows.
local function slope(x, y)
    (y * tide.arange(1, y:numel() + 1):double():view(y.shape)):sum():backward()
    return x.grad
end

t.test("gradients_go_where_elements_came_from", function()
    local i, x = tide.tensor { 2, -1, 2 }, leaf(4)
    same(slope(x, x:gather(1, i)), { 0, 4, 0, 2 })
    x = leaf(4)
    same(slope(x, x:take(i)), { 0, 4, 0, 2 })
    x = leaf(4)
    same(slope(x, x:index_select(1, i)), { 0, 4, 0, 2 })
    x = leaf(4)
    same(slope(x, x[i]), { 0, 4, 0, 2 })
    x = leaf(4)
    same(slope(x, tide.take_along_dim(x, i, 1)), { 0, 4, 0, 2 })
    x = leaf(4)
    same(slope(x, tide.gather(x, 1, i, { sparse_grad = true })):to_dense(), { 0, 4, 0, 2 })
    local src = leaf(2)
    same(slope(src, tide.zeros(4):double():scatter(1, tide.tensor { 4, -3 }, src)), { 4, 2 })
    src = leaf(2)
    same(slope(src, tide.zeros(4):double():index_add(1, tide.tensor { 4, -3 }, src)), { 4, 2 })
    src = leaf(2)
    same(slope(src, tide.zeros(4):double():put(tide.tensor { 4, -3 }, src)), { 4, 2 })
    src = leaf(2)
    local y = tide.zeros(4):double():scatter_reduce(1, tide.tensor { 4, -3 }, src, "amax")
    same(slope(src, y), { 4, 2 })
    src = leaf(2)
    y = tide.zeros(2, 4):double()
    y[{ tide.tensor { true, false }, tide.tensor { 4, -3 } }] = src
    same(slope(src, y), { 4, 2 })
end)

t.test("gradients_of_gradients_and_packed_indices", function()
    local i, x = tide.tensor { 3, 1, 3 }, leaf(3)
    local g = tide.autograd.grad((x:gather(1, i) ^ 3):sum(), x, { create_graph = true })[1]
    same(tide.autograd.grad(g:sum(), x)[1], { 6, 0, 36 })
    x = leaf(3)
    local y = tide.autograd.graph.saved_tensors_hooks(function(s) return s:clone() end, function(s) return s end,
        function() return x:gather(1, i) end)
    same(slope(x, y), { 2, 0, 4 })
end)

t.test("an_index_that_was_written_since_is_noticed", function()
    local i, x = tide.tensor { 1, 2 }, leaf(3)
    local y = x:gather(1, i):sum()
    i:fill_(3)
    t.error_has(function() y:backward() end, "in place")
end)

t.test("other_integers_empty_expanded_and_strided", function()
    local x = tide.arange(10, 16)
    for _, dtype in ipairs { tide.uint8, tide.int16, tide.int32 } do
        same(x:gather(1, tide.tensor({ 5, 1 }, { dtype = dtype })), { 14, 10 })
        same(x:take(tide.tensor({ 6 }, { dtype = dtype })), { 15 })
        t.error_has(function() x:take(tide.tensor({ 0 }, { dtype = dtype })) end, "take: index 0: indices count from 1")
    end
    t.eq(x:gather(1, tide.zeros(0, { dtype = tide.int64 })):numel(), 0)
    t.eq(x:take(tide.zeros(0, { dtype = tide.int64 })):numel(), 0)
    local m = tide.arange(12):view(3, 4)
    same(m:gather(1, tide.tensor { { 3 }, { -3 } }:expand(2, 4)), { { 8, 9, 10, 11 }, { 0, 1, 2, 3 } })
    same(m:gather(2, tide.tensor { { 1, 4 }, { 2, 3 } }:t()), { { 0, 1 }, { 7, 6 } })
    same(m:index_reduce(1, tide.tensor { 3 }, tide.full({ 1, 4 }, 9), "amax"),
        { { 0, 1, 2, 3 }, { 4, 5, 6, 7 }, { 9, 9, 10, 11 } })
    same(tide.zeros(3, 4):scatter_(1, tide.tensor { { 2, -1, 1, 3 } }, 7),
        { { 0, 0, 7, 0 }, { 7, 0, 0, 0 }, { 0, 7, 0, 7 } })
    same(m:index_put({ tide.tensor { 1, 3 }, tide.tensor { -1, 2 } }, tide.tensor { 50, 60 }),
        { { 0, 1, 2, 50 }, { 4, 5, 6, 7 }, { 8, 60, 10, 11 } })
    local self = tide.tensor { 3, 1, 2 }
    self:scatter_(1, self, tide.tensor { 7, 8, 9 })
    same(self, { 8, 9, 7 })
end)

-- Behind a first block, and in one with indices from the end.
t.test("a_bad_index_is_named_as_it_was_written_and_nothing_is", function()
    local n = 5000
    local x, values = tide.zeros(n), tide.ones(n)
    local function wrong(bad, text)
        local i = tide.arange(1, n + 1)
        i[3001], i[3002] = -1, bad
        local source = tide.arange(1, n + 1)
        t.error_has(function() return source:gather(1, i) end, "gather: " .. text)
        t.error_has(function() return source:take(i) end, "take: " .. text)
        t.error_has(function() return source:index_select(1, i) end, "index_select: " .. text)
        t.error_has(function() return source[i] end, text)
        t.error_has(function() x:scatter_(1, i, values) end, "scatter_: " .. text)
        t.error_has(function() x:scatter_add_(1, i, values) end, "scatter_add_: " .. text)
        t.error_has(function() x:put_(i, values) end, "put_: " .. text)
        t.error_has(function() x:index_add_(1, i, values) end, "index_add_: " .. text)
        t.error_has(function() x[i] = 1 end, text)
        t.eq(x:sum():item(), 0)
        i[3002] = -n
        local j = tide.where(i:lt(0), i + n, i - 1):double() -- from 0
        t.eq(tide.equal(source:gather(1, i):double(), j + 1), true)
        t.eq(tide.equal(source:take(i):double(), j + 1), true)
        t.eq(tide.zeros(n):scatter_add_(1, i, values):sum():item(), n)
    end
    wrong(0, "index 0: indices count from 1 (PyTorch's 0 is 1)")
    wrong(n + 1, "index 5001 is out of range for dim 1 of size 5000")
    wrong(-n - 1, "index -5001 is out of range for dim 1 of size 5000")
    wrong(math.mininteger, "index -9223372036854775808 is out of range for dim 1 of size 5000")
    wrong(math.maxinteger, "index 9223372036854775807 is out of range for dim 1 of size 5000")
end)

t.test("what_is_written_must_not_be_the_index", function()
    local i = tide.tensor { 2, 1 }
    t.error_has(function() tide.take(tide.tensor { 5, 6 }, i, { out = i }) end, "memory")
end)
