-- test_bounds.lua: indices are refused one past either end, and taken at both: every argument that is an index, or a
-- tensor of them. The first two of each row are the least and the largest that are taken.
local t = require "harness"

local F = tide.nn.functional

local function i(...) return tide.tensor({ ... }, { dtype = tide.int64 }) end
local function x() return tide.arange(1, 13, { dtype = tide.float32 }):reshape(3, 4) end
local function row() return tide.arange(1, 6, { dtype = tide.float32 }) end

-- Tensors of indices: from 1 to n, or from -n to -1 where those count from the end.
local tensors = {
    gather = { 4, function(k) return x():gather(2, i(k):reshape(1, 1)) end },
    scatter = { 4, function(k) return x():scatter(2, i(k):reshape(1, 1), 0) end },
    scatter_ = { 3, function(k) return x():scatter_(1, i(k):reshape(1, 1), 0) end },
    scatter_add = { 4, function(k) return x():scatter_add(2, i(k):reshape(1, 1), tide.ones(1, 1)) end },
    scatter_reduce = { 4, function(k) return x():scatter_reduce(2, i(k):reshape(1, 1), tide.ones(1, 1), "amax") end },
    index_select = { 4, function(k) return x():index_select(2, i(k)) end },
    index_add = { 3, function(k) return x():index_add(1, i(k), tide.ones(1, 4)) end },
    index_add_of_halves = { 3, function(k) return x():half():index_add_(1, i(k, k), tide.ones(2, 4):half()) end },
    index_copy = { 4, function(k) return x():index_copy(2, i(k), tide.ones(3, 1)) end },
    index_fill = { 4, function(k) return x():index_fill(2, i(k), 1) end },
    index_reduce = { 3, function(k) return x():index_reduce(1, i(k), tide.ones(1, 4), "prod") end },
    index_put = { 3, function(k) return x():index_put({ i(k) }, tide.ones(4)) end },
    index_put_of_two = { 4, function(k) return x():index_put({ i(1), i(k) }, tide.ones(1), true) end },
    indexing = { 3, function(k) return x()[i(k)] end },
    indexing_of_two = { 4, function(k) return x()[{ i(1, 2), i(1, k) }] end },
    assigning = { 3, function(k) x()[i(k)] = 1 end },
    take = { 12, function(k) return x():take(i(k)) end },
    put = { 12, function(k) return x():put(i(k), tide.ones(1)) end },
    take_along_dim = { 4, function(k) return x():take_along_dim(i(k):reshape(1, 1), 2) end },
    embedding = { 3, function(k) return F.embedding(i(k), x()) end, alone = true },
    embedding_bag = { 3, function(k) return F.embedding_bag(i(k):reshape(1, 1), x()) end, alone = true },
    nll_loss = { 4, function(k) return F.nll_loss(x(), i(1, k, 2)) end, alone = true },
    cross_entropy = { 4, function(k) return F.cross_entropy(x(), i(1, k, 2)) end, alone = true },
    multi_margin_loss = { 4, function(k) return F.multi_margin_loss(x(), i(1, k, 2)) end, alone = true },
    one_hot = { 5, function(k) return F.one_hot(i(k), 5) end, alone = true },
    sorter = { 5, function(k) return tide.searchsorted(row(), tide.tensor { 2.5 }, { sorter = i(1, 2, 3, 4, k) }) end, alone = true },
    sorter_of_lines = { 5, function(k)
        return tide.searchsorted(tide.stack { row(), row() }, tide.ones(2, 1),
            { sorter = tide.stack { i(1, 2, 3, 4, 5), i(1, 2, 3, 4, k) } })
    end, alone = true },
}

-- Numbers: from -n to n, 0 left out; `ends`: the largest may be one further, where it says where something ends.
local numbers = {
    select = { 4, function(k) return x():select(2, k) end },
    indexing_by_a_number = { 3, function(k) return x()[k] end },
    indexing_by_numbers = { 4, function(k) return x()[{ 1, k }] end },
    indexing_by_text = { 4, function(k) return x()[": , " .. k] end },
    assigning_by_a_number = { 3, function(k) x()[k] = 1 end },
    select_scatter = { 4, function(k) return x():select_scatter(tide.ones(3), 2, k) end },
    kthvalue = { 4, function(k) return x():kthvalue(k) end, alone = true },
    unbind_of_a_dim = { 2, function(k) return x():unbind(k) end },
    sum_of_a_dim = { 2, function(k) return x():sum(k) end },
    size_of_a_dim = { 2, function(k) return x():size(k) end },
    sort_of_a_dim = { 2, function(k) return x():sort(k) end },
    softmax_of_a_dim = { 2, function(k) return x():softmax(k) end },
    cumsum_of_a_dim = { 2, function(k) return x():cumsum(k) end },
    flip_of_a_dim = { 2, function(k) return x():flip { k } end },
    transpose_of_dims = { 2, function(k) return x():transpose(1, k) end },
    permute_of_dims = { 2, function(k) return x():permute(k < 0 and (k == -1 and 1 or 2) or 3 - k, k) end },
    unsqueeze = { 3, function(k) return x():unsqueeze(k) end },
    stack = { 3, function(k) return tide.stack({ x(), x() }, k) end },
    cat = { 2, function(k) return tide.cat({ x(), x() }, k) end },
    narrow = { 4, function(k) return x():narrow(2, k, 1) end },
    padding_idx = { 3, function(k) return F.embedding(i(1), x(), k) end },
}

local function taken(name, f, k)
    local ok, why = pcall(f, k)
    t.is_true(ok, ("%s takes %d: %s"):format(name, k, tostring(why)))
end
local function refused(name, f, k)
    local ok, why = pcall(f, k)
    t.is_false(ok, ("%s refuses %d"):format(name, k))
    t.is_true(#tostring(why) < 300 and not tostring(why):find("\n.*\n"), name .. " says so in a line")
end

for name, c in pairs(tensors) do
    t.test("tensors_of_indices_" .. name, function()
        local n, f = c[1], c[2]
        taken(name, f, 1)
        taken(name, f, n)
        refused(name, f, n + 1)
        refused(name, f, 0)
        refused(name, f, -n - 1)
        if not c.alone then
            taken(name, f, -1)
            taken(name, f, -n)
        end
    end)
end
for name, c in pairs(numbers) do
    t.test("numbers_" .. name, function()
        local n, f = c[1], c[2]
        taken(name, f, 1)
        taken(name, f, n)
        refused(name, f, n + 1)
        refused(name, f, 0)
        refused(name, f, -n - 1)
        if not c.alone then
            taken(name, f, -1)
            taken(name, f, -n)
        end
    end)
end

-- What is refused leaves what would be written as it was.
t.test("nothing_is_written_where_an_index_is_refused", function()
    for _, write in ipairs {
        function(y) y:scatter_(2, i(1, 2, 5):reshape(1, 3), 0) end,
        function(y) y:scatter_add_(2, i(1, 2, 5):reshape(1, 3), tide.ones(1, 3, { dtype = y.dtype })) end,
        function(y) y:index_add_(1, i(1, 4), tide.ones(2, 4, { dtype = y.dtype })) end,
        function(y) y:index_copy_(1, i(1, 4), tide.ones(2, 4, { dtype = y.dtype })) end,
        function(y) y:index_put_({ i(1, 4) }, tide.ones(4, { dtype = y.dtype }), true) end,
        function(y) y:put_(i(1, 13), tide.ones(2, { dtype = y.dtype })) end,
    } do
        for _, dtype in ipairs { tide.float32, tide.bfloat16, tide.int64 } do
            local y = x():to(dtype)
            refused("a write", function() write(y) end, 0)
            t.is_true(tide.equal(y, x():to(dtype)))
        end
    end
end)

-- ---- masks, and gradients' dtypes ----

t.test("masks_take_values_with_leading_ones", function()
    for _, lead in ipairs { {}, { 1 }, { 1, 1 } } do
        local y = tide.zeros(4)
        local sizes = { table.unpack(lead) }
        sizes[#sizes + 1] = 2
        y[tide.tensor { true, false, true, false }] = tide.tensor { 7.0, 8 }:reshape(sizes)
        t.eq(y:tolist(), { 7.0, 0.0, 8.0, 0.0 })
        local z = tide.zeros(2, 3)
        z[tide.tensor { { true, false, false }, { false, false, true } }] = tide.tensor { 7.0, 8 }:reshape(sizes)
        t.eq(z:tolist(), { { 7.0, 0.0, 0.0 }, { 0.0, 0.0, 8.0 } })
        local r = tide.zeros(3, 2)
        r[tide.tensor { true, false, true }] = tide.tensor { 7.0, 8 }:reshape(sizes)
        t.eq(r:tolist(), { { 7.0, 8.0 }, { 0.0, 0.0 }, { 7.0, 8.0 } })
    end
    t.error_has(function() tide.zeros(4)[tide.tensor { true, true, true, false }] = tide.ones(2) end, "broadcast")
end)

t.test("a_leafs_gradient_has_the_leafs_dtype", function()
    local F32 = tide.float32
    for _, dtype in ipairs { tide.float64, tide.float32, tide.float16, tide.bfloat16 } do
        local function leaf() return tide.ones(2, 3, { dtype = dtype, requires_grad = true }) end
        local ways = {
            plain = function(a) return a * 2 end,
            wide = function(a) return a.to(a, tide.float64) * 2 end,
            narrow = function(a) return a:to(tide.bfloat16) * 2 end,
            mixed = function(a) return a * tide.ones(2, 3, { dtype = tide.float64 }) end,
            mixed_narrow = function(a) return a + tide.ones(2, 3, { dtype = tide.float16 }) end,
            sum_in_another = function(a) return a:sum(1, { dtype = tide.float64 }) end,
            softmax_in_another = function(a) return a:softmax(2, { dtype = F32 }) end,
            copied = function(a) return tide.zeros(2, 3, { dtype = tide.float64 }):copy_(a) end,
            indexed = function(a) return a[tide.tensor { 1, 1, 1 }]:double() end,
        }
        for name, f in pairs(ways) do
            local a = leaf()
            f(a):sum():backward()
            t.eq(a.grad.dtype, dtype, name)
            f(a):sum():backward() -- and where it is added to
            t.eq(a.grad.dtype, dtype, name)
            f(a):sum():backward { inputs = { a } }
            t.eq(a.grad.dtype, dtype, name)
            t.eq(tide.autograd.grad(f(a):sum(), { a })[1].dtype, dtype, name)
        end
    end
end)
