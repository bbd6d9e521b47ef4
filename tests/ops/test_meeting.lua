-- test_meeting.lua: sums at places that are named often, in every dtype whose own sums stop growing: whatever adds where
-- indices, strides or windows say, and the gradients of whatever reads there.
local t = require "harness"

local N = 5000
local F = tide.nn.functional

-- Each adds N elements of a dtype at one place; with their value and what comes of them, in units of it.
local function sums(dtype)
    local index, ones = tide.ones(N, { dtype = tide.int64 }), tide.ones(N, { dtype = dtype })
    local function zeros(...) return tide.zeros({ ... }, { dtype = dtype }) end
    local function leaf(...)
        local sizes = { ... }
        return tide.ones(sizes, { dtype = dtype, requires_grad = true })
    end
    -- The gradient of one element that f reads N times.
    local function read(x, f)
        f(x):sum():backward()
        return x.grad:flatten()[1]
    end
    local bag = index:reshape(1, N)
    return {
        scatter_add = function() return zeros(2):scatter_add(1, index, ones)[1] end,
        scatter_add_ = function() return zeros(2):scatter_add_(1, index, ones)[1] end,
        scatter = function() return zeros(2):scatter(1, index, ones, { reduce = "add" })[1] end,
        scatter_of_rows = function()
            return zeros(2, 3):scatter_add(1, index:reshape(N, 1):expand(N, 3), ones:reshape(N, 1):expand(N, 3))[1][2]
        end,
        scatter_along_the_last = function()
            return zeros(3, 2):scatter_add(2, index:expand(3, N), ones:expand(3, N))[2][1]
        end,
        scatter_reduce = function() return zeros(2):scatter_reduce(1, index, ones, "sum")[1] end,
        index_add = function() return zeros(2):index_add(1, index, ones)[1] end,
        index_add_of_rows = function() return zeros(2, 3):index_add_(1, index, ones:reshape(N, 1):expand(N, 3))[1][2] end,
        index_put = function() return zeros(2):index_put({ index }, ones, true)[1] end,
        index_put_ = function() return zeros(2, 2):index_put_({ index, index }, ones, true)[1][1] end,
        put = function() return zeros(2):put(index, ones, true)[1] end,
        embedding_bag = function() return tide.embedding_bag(leaf(2, 3), bag, { mode = "sum" })[1][1] end,
        coalesce = function() return tide.sparse_coo_tensor(bag, ones, { 2 }):coalesce():_values()[1] end,
        gather = function() return read(leaf(2), function(x) return x:gather(1, index) end) end,
        index_select = function() return read(leaf(2), function(x) return x:index_select(1, index) end) end,
        take = function() return read(leaf(2), function(x) return x:take(index) end) end,
        take_along_dim = function() return read(leaf(2), function(x) return x:take_along_dim(index, 1) end) end,
        indexing = function() return read(leaf(2, 3), function(x) return x[index] end) end,
        embedding = function() return read(leaf(2, 3), function(x) return F.embedding(index, x) end) end,
        rows_of_a_bag = function()
            return read(leaf(2, 3), function(x) return tide.embedding_bag(x, bag, { mode = "sum" }) end)
        end,
        sparse_embedding = function()
            local x = leaf(2, 3)
            tide.embedding(x, index, nil, false, true):sum():backward()
            return x.grad:to_dense()[1][1]
        end,
        as_strided = function() return read(leaf(1), function(x) return x:as_strided({ N }, { 0 }) end) end,
        expand = function() return read(leaf(1), function(x) return x:expand(N) end) end,
        repeat_interleave = function() return read(leaf(1), function(x) return x:repeat_interleave(N) end) end,
        interpolate = function() return read(leaf(1, 1, 1), function(x) return F.interpolate(x, { size = { N } }) end) end,
        pad = function() return read(leaf(1, 1, 1), function(x) return F.pad(x, { N - 1, 0 }, "replicate") end) end,
        grid_sample = function()
            local grid = tide.zeros(1, 1, N, 2, { dtype = dtype })
            return read(leaf(1, 1, 1, 1), function(x) return F.grid_sample(x, grid, { align_corners = true }) end)
        end,
        cumsum = function() return ones:cumsum(1)[-1] end,
    }
end

for _, name in ipairs { "bfloat16", "float16", "float32" } do
    local dtype = tide[name]
    local want = tide.tensor(N * 1.0, { dtype = tide.float64 }):to(dtype):item()
    for what, f in pairs(sums(dtype)) do
        t.test(("%s_in_%s"):format(what, name), function() t.eq(f():item(), want) end)
    end
end

-- Means neither overflow nor lose count on the way.
t.test("means", function()
    local index = tide.ones(N, { dtype = tide.int64 })
    for _, dtype in ipairs { tide.bfloat16, tide.float16 } do
        local values = tide.full({ N }, 40, { dtype = dtype })
        for _, self in ipairs { false, true } do
            local want = tide.tensor(self and 40 * N / (N + 1) or 40, { dtype = dtype }):item()
            local zeros = tide.zeros(2, { dtype = dtype })
            t.eq(zeros:scatter_reduce(1, index, values, "mean", { include_self = self })[1]:item(), want)
            t.eq(zeros:index_reduce(1, index, values, "mean", { include_self = self })[1]:item(), want)
        end
        local weight = tide.full({ 2, 3 }, 40, { dtype = dtype, requires_grad = true })
        local y = tide.embedding_bag(weight, index:reshape(1, N), { mode = "mean" })
        t.eq(y[1][1]:item(), 40.0)
        y:sum():backward()
        t.eq(weight.grad.dtype, dtype)
        t.close(weight.grad[1][1]:item(), 1, 0.01)
    end
end)

t.test("products_are_rounded_once", function()
    local factors = tide.full({ 300 }, 1.0078125, { dtype = tide.bfloat16 })
    local y = tide.ones(2, { dtype = tide.bfloat16 }):scatter_reduce(1, tide.ones(300, { dtype = tide.int64 }), factors, "prod")
    t.close(y[1]:item(), 1.0078125 ^ 300, 2 ^ -8 * 1.0078125 ^ 300)
end)

-- float32 stops at 2^24: 64 bits take over long before.
t.test("many_ones_in_float32", function()
    local n = 2 ^ 24 + 1000
    local index = tide.ones(1, { dtype = tide.int64 }):expand(math.tointeger(n))
    local y = tide.zeros(1):index_add_(1, index, tide.ones(1):expand(math.tointeger(n)))
    t.eq(y:item(), n)
end)

-- What is written in place stays where it was, in gaps and among elements that nobody named.
t.test("what_is_not_named_stays", function()
    local wide = tide.arange(1, 21):reshape(4, 5):to(tide.bfloat16)
    local x = wide:t()
    local before = x:clone()
    x:index_add_(1, tide.tensor { 2, 2, 5 }, tide.ones(3, 4, { dtype = tide.bfloat16 }))
    before[2] = before[2] + 2
    before[5] = before[5] + 1
    t.is_true(tide.equal(x, before))
    t.is_true(tide.equal(wide, before:t()))
    local few = tide.zeros(100000, { dtype = tide.bfloat16 }):index_add_(1, tide.tensor { 7, 7, 9 },
        tide.ones(3, { dtype = tide.bfloat16 }))
    t.eq({ few[7]:item(), few[9]:item(), few:sum():item() }, { 2.0, 1.0, 3.0 })
    t.error_has(function() wide:scatter_add_(1, tide.tensor { { 9 } }, tide.ones(1, 1, { dtype = tide.bfloat16 })) end,
        "out of range")
    t.is_true(tide.equal(wide, before:t()))
end)
