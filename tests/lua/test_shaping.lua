-- test_shaping.lua: forms in which shapes, places and draws are asked for in Lua, what is a view and what a
-- copy, and what is refused. Values and gradients are the golden cases'.
local t = require "harness"

local function same(x, values)
    t.eq(x:tolist(), values)
end
local function shares(a, b)
    local ok = a:data_ptr() == b:data_ptr()
    return ok and a:numel() > 0
end

-- ---- forms ----

t.test("lists_of_tensors_may_be_the_rest_of_the_arguments", function()
    local a, b = tide.arange(2), tide.arange(3)
    t.eq(#tide.meshgrid(a, b), 2)
    same(tide.meshgrid(a, b)[1], { { 0, 0, 0 }, { 1, 1, 1 } })
    same(tide.meshgrid(a, b, { indexing = "xy" })[1], { { 0, 1 }, { 0, 1 }, { 0, 1 } })
    same(tide.meshgrid({ a, b }, { indexing = "xy" })[2], { { 0, 0 }, { 1, 1 }, { 2, 2 } })
    same(tide.einsum("i,j->ij", a, b), { { 0, 0, 0 }, { 0, 1, 2 } })
    same(tide.block_diag(a, 3 * tide.ones(1, 1):long()), { { 0, 1, 0 }, { 0, 0, 3 } })
    t.eq(tide.cartesian_prod(a, b).shape, tide.zeros(6, 2).shape)
    t.eq(tide.broadcast_tensors(a:view(2, 1), b)[2].shape, tide.zeros(2, 3).shape)
    same(tide.chain_matmul(tide.ones(1, 2), tide.ones(2, 1)), { { 2 } })
    t.error_has(function() tide.meshgrid(a, 3) end, "meshgrid: argument 1 (tensors): element 2: expected a tensor")
    t.error_has(function() tide.meshgrid({ a }, b) end, "meshgrid: argument 1")
end)

t.test("repeat_is_a_keyword_of_lua_and_rep_is_the_same", function()
    local x = tide.tensor { 1, 2 }
    same(x:rep(2, 2), { { 1, 2, 1, 2 }, { 1, 2, 1, 2 } })
    same(tide["repeat"](x, 3), { 1, 2, 1, 2, 1, 2 })
    t.is_false(shares(x:rep(1), x), "a copy even of one")
    t.error_has(function() tide.ones(2, 2):rep(3) end, "1 counts given for a tensor of 2 dims")
    t.error_has(function() x:rep(-1) end, "can't repeat -1 times")
    t.error_has(function() x:rep(1 << 62, 1 << 62) end, "rep")
end)

t.test("nonzero_and_where_give_a_list_of_places_by_dim", function()
    local x = tide.tensor { { 0, 3 }, { 4, 0 } }
    local rows, columns = table.unpack(x:nonzero { as_tuple = true })
    same(rows, { 1, 2 })
    same(columns, { 2, 1 })
    same(tide.where(x:gt(0))[2], { 2, 1 })
    same(x[x:nonzero { as_tuple = true }], { 3, 4 })
    t.eq(#tide.tensor(5):nonzero { as_tuple = true }, 1)
    same(tide.tensor(5):nonzero { as_tuple = true }[1], { 1 })
    same(x:nonzero { as_tuple = false }, { { 1, 2 }, { 2, 1 } })
    same(tide.argwhere(x), { { 1, 2 }, { 2, 1 } })
end)

t.test("randint_takes_a_bound_and_a_size", function()
    local x = tide.randint(5, { 200 })
    t.is_true(x:min():item() == 0 and x:max():item() == 4)
    t.eq(tide.randint(2, 3, { 2 }):tolist(), { 2, 2 })
    t.eq(tide.randint(1, { 2 }, { dtype = tide.int8 }).dtype, tide.int8)
end)

t.test("tensordot_takes_a_number_or_dims_of_both", function()
    local a, b = tide.randn(2, 3, 4), tide.randn(4, 3, 5)
    local want = a:permute(1, 3, 2):reshape(2, 12):mm(b:reshape(12, 5))
    t.is_true((tide.tensordot(a, b, { 3, 2 }, { 1, 2 }) - want):abs():max():item() < 1e-5)
    t.is_true((tide.tensordot(a, b, { { 3, 2 }, { 1, 2 } }) - want):abs():max():item() < 1e-5)
    t.is_true((tide.tensordot(a, b, { dims = { { 3, 2 }, { 1, 2 } } }) - want):abs():max():item() < 1e-5)
    t.eq(tide.tensordot(a, b, 0):dim(), 6)
    t.error_has(function() tide.tensordot(a, b, 4) end, "tensordot: 4 dims can't be contracted")
    t.error_has(function() tide.tensordot(a, b) end, "dim 2 has size 3, dim 1 of the other 4")
    t.error_has(function() tide.tensordot(a, b, { 0 }, { 1 }) end, "dims count from 1")
    t.error_has(function() tide.tensordot(a, b, { 3, 3 }, { 1, 1 }) end, "dim 3 is given twice")
end)

t.test("atleast_takes_several_tensors_and_gives_a_list", function()
    local x, y = tide.tensor(1), tide.ones(2)
    t.eq(x:atleast_2d().shape, tide.zeros(1, 1).shape)
    t.eq(tide.atleast_1d(x, y)[2].shape, y.shape)
    t.eq(tide.atleast_3d({ x, y })[2].shape, tide.zeros(1, 2, 1).shape)
    t.eq(#tide.atleast_2d {}, 0)
    t.error_has(function() tide.atleast_1d(x, 3) end, "atleast_1d: argument 1 (x)")
end)

t.test("one_number_cuts_into_parts_and_a_list_cuts_at_places", function()
    local x = tide.arange(5)
    t.eq(#x:tensor_split(2), 2)
    t.eq(#x:tensor_split { 2 }, 2)
    same(x:tensor_split(2)[1], { 0, 1, 2 })
    same(x:tensor_split { 2 }[1], { 0, 1 })
    same(x:tensor_split(tide.tensor { 1, 3 })[2], { 1, 2 })
    same(x:tensor_split(tide.tensor(2))[2], { 3, 4 })
    t.eq(#tide.zeros(2, 4):hsplit(4), 4)
    t.error_has(function() tide.zeros(2, 5):hsplit(2) end, "dim 2 of size 5 can't be cut into 2 equal parts")
    t.error_has(function() tide.zeros(2):vsplit(2) end, "at least 2 dims")
    t.error_has(function() tide.zeros(2, 2):dsplit(2) end, "at least 3 dims")
    t.error_has(function() x:tensor_split(0) end, "at least 1 part")
end)

t.test("a_tensor_of_one_integer_stands_for_it", function()
    local x = tide.arange(5)
    same(x:narrow(1, tide.tensor(2), 2), { 1, 2 })
    same(x:narrow(1, tide.tensor(-1), 1), { 4 })
    t.eq(tide.zeros(tide.tensor(2), 3).shape, tide.zeros(2, 3).shape)
    t.error_has(function() x:narrow(1, tide.tensor { 2 }, 1) end, "narrow: argument 3 (start)")
    t.error_has(function() x:narrow(1, tide.tensor(1.5), 1) end, "narrow: argument 3 (start)")
    t.error_has(function() x:narrow(1, tide.tensor(0), 1) end, "indices count from 1")
end)

t.test("index_put_takes_what_brackets_take", function()
    local x = tide.zeros(3, 4)
    x:index_put_({ tide.tensor { 1, 1 }, tide.tensor { 2, 2 } }, tide.ones(2), { accumulate = true })
    t.eq(x[{ 1, 2 }]:item(), 2)
    x:index_put_({ false, tide.tensor { 4 } }, tide.tensor(7.0))
    same(x[{ {}, 4 }], { 7, 7, 7 })
    x:index_put_({ x:gt(5) }, tide.tensor(-1.0))
    t.eq(x:min():item(), -1)
    t.error_has(function() x:index_put({ tide.tensor { 0 } }, tide.ones(1)) end, "indices count from 1")
    t.error_has(function() x:index_put({ tide.tensor { 4 } }, tide.ones(1)) end, "index 4 is out of range")
    t.error_has(function() x:index_put({ tide.tensor { 1 } }, tide.ones(1):long()) end, "values must have x's dtype")
    t.error_has(function() x:index_put({ tide.tensor { 1.5 } }, tide.ones(1)) end, "integers or bool")
end)

t.test("scatter_reduces", function()
    local x = tide.ones(3)
    local i, src = tide.tensor { 2, 2 }, tide.tensor { 3.0, 4.0 }
    same(x:scatter(1, i, src, { reduce = "add" }), { 1, 8, 1 })
    same(x:scatter(1, i, src, { reduce = "multiply" }), { 1, 12, 1 })
    same(x:scatter(1, i, 2, { reduce = "multiply" }), { 1, 4, 1 })
    same(x:scatter_reduce(1, i, src, "mean", { include_self = false }), { 1, 3.5, 1 })
    same(x:scatter_reduce_(1, i, src, "amax"), { 1, 4, 1 })
    t.error_has(function() x:scatter(1, i, src, { reduce = "mean" }) end, "option reduce")
    t.error_has(function() x:scatter_reduce(1, i, src, "median") end, "argument 5 (reduce)")
    t.error_has(function() x:scatter_reduce(1, i, src:double(), "sum") end, "src must have x's dtype")
end)

t.test("repeat_interleave_by_a_number_by_counts_and_of_counts", function()
    local x = tide.tensor { { 1, 2 }, { 3, 4 } }
    same(x:repeat_interleave(2), { 1, 1, 2, 2, 3, 3, 4, 4 })
    same(x:repeat_interleave(tide.tensor { 1, 2 }, 1), { { 1, 2 }, { 3, 4 }, { 3, 4 } })
    same(tide.repeat_interleave(tide.tensor { 2, 0, 1 }), { 1, 1, 3 })
    t.error_has(function() x:repeat_interleave(tide.tensor { 1, -2 }, 1) end, "must not be negative")
    t.error_has(function() x:repeat_interleave(tide.tensor { 1, 2, 3 }, 1) end, "repeats holds 3 numbers")
    t.error_has(function() x:repeat_interleave(tide.tensor { 1.5, 2 }, 1) end, "int32 or int64")
    t.error_has(function() x:repeat_interleave(tide.tensor { 1, 2 }, 1, { output_size = 4 }) end, "output_size is 4")
end)

t.test("new_tensors_take_dtype_and_device_of_another", function()
    local x = tide.ones(2, { dtype = tide.float64 })
    t.eq(x:new_tensor({ 1, 2 }).dtype, tide.float64)
    t.eq(x:new_tensor({ 1, 2 }, { dtype = tide.int8 }).dtype, tide.int8)
    t.is_true(x:new_zeros(2, { requires_grad = true }).requires_grad)
    same(x:new_full({ 2 }, 3), { 3, 3 })
    t.is_false(shares(x:new_tensor(x), x))
    t.is_true(rawequal(tide.as_tensor(x), x))
    t.eq(tide.as_tensor(x, { dtype = tide.int64 }).dtype, tide.int64)
    t.eq(tide.as_tensor({ 1, 2 }).dtype, tide.int64)
    t.is_true(tide.as_tensor(tide.ones(1, { requires_grad = true }), { dtype = tide.float64 }).requires_grad)
end)

t.test("empty_strided_lies_as_it_is_told", function()
    local x = tide.empty_strided({ 2, 3 }, { 1, 4 })
    t.eq(tostring(x:stride()), "(1, 4)")
    x:zero_()
    t.eq(x:sum():item(), 0)
    t.error_has(function() tide.empty_strided({ 2, 3 }, { 1 }) end, "2 sizes and 1 strides")
    t.error_has(function() tide.empty_strided({ 2 }, { -1 }) end, "strides must not be negative")
    t.error_has(function() tide.empty_strided({ 1 << 40 }, { 1 << 40 }) end, "out of memory")
    t.error_has(function() tide.empty_strided({ 2, 2 }, { 0, 1 }):zero_() end, "share one place")
end)

t.test("addbmm_in_place_takes_the_shape_of_the_result", function()
    local a, b = tide.rand(2, 3, 4), tide.rand(2, 4, 5)
    for _, sizes in ipairs { { 5 }, { 1, 5 }, {}, { 3, 1 } } do
        local x = tide.rand(sizes)
        local want, got = x:addbmm(a, b), x:addbmm_(a, b)
        t.is_true(rawequal(got, x) and tide.equal(x, want))
    end
    local turned = tide.rand(5, 3):t()
    local place, want = turned:data_ptr(), turned:addbmm(a, b)
    turned:addbmm_(a, b)
    t.is_true(tide.equal(turned, want) and turned:data_ptr() == place and turned:stride(1) == 1)
    t.error_has(function() tide.rand(4, 5):narrow(1, 1, 1):addbmm_(a, b) end, "shape (3, 5) is not that of the tensor written")
    t.error_has(function() tide.rand(4, 5):addbmm_(a, b) end, "addbmm_: ")
    local y = tide.ones(1, 5, { requires_grad = true }) * 2
    t.error_has(function() y:addbmm_(a, b) end, "shape (3, 5) is not that of the tensor written")
    local leaf, x = tide.ones(2, 3, 4, { requires_grad = true }), tide.zeros(5)
    x:addbmm_(leaf, b)
    x:sum():backward()
    t.is_true(leaf.grad:allclose(b:sum(3):unsqueeze(2):expand(2, 3, 4)))
end)

t.test("max_pooling_refuses_channels_and_planes_that_are_empty", function()
    local F = tide.nn.functional
    for n, name in ipairs { "max_pool1d", "max_pool2d", "max_pool3d" } do
        local sizes = { 2, 3, table.unpack({ 4, 4, 4 }, 1, n) }
        for d = 1, n + 2 do
            local some = { table.unpack(sizes) }
            some[d] = 0
            local ok, message = pcall(F[name], tide.zeros(some), 1)
            t.eq(ok, d == 1, ("%s, dim %d"):format(name, d))
            t.is_true(ok or tostring(message):find(name .. ": ", 1, true), tostring(message))
            t.eq(pcall(F[name], tide.zeros({ table.unpack(some, 2) }), 1), d == 1, ("%s without a batch, dim %d"):format(name, d))
        end
    end
end)

t.test("factors_of_integers_and_truths_are_integers_and_truths", function()
    local x, v = tide.ones(2, 2):long(), tide.tensor { 1, 2 }
    t.eq(x:addbmm(tide.ones(1, 2, 2):long(), tide.ones(1, 2, 2):long(), { beta = 0.6, alpha = 1.9 }):tolist(),
        { { 2, 2 }, { 2, 2 } })
    t.error_has(function() x:addr(v, v, { alpha = 0.5 }) end, "beta and alpha must be integers for int64")
    local yes = v:gt(1)
    t.eq(tide.zeros(2, 2, { dtype = tide.bool }):addr(yes, yes, { alpha = 3 }):tolist(),
        { { false, false }, { false, true } })
    t.error_has(function() tide.ones(3, 3):addr(tide.ones(2), tide.ones(2), { beta = 0 }) end, "can't be expanded")
end)

t.test("places_lie_column_by_column", function()
    local places = tide.ones(2, 3):nonzero()
    t.eq(tostring(places:stride()), "(1, 6)")
    t.eq(places:tolist()[6], { 2, 3 })
end)

t.test("broadcast_shapes_is_a_shape", function()
    t.eq(tide.broadcast_shapes({ 2, 1 }, { 3 }), tide.zeros(2, 3).shape)
    t.eq(tide.broadcast_shapes(tide.zeros(4, 1).shape, {}), tide.zeros(4, 1).shape)
    t.error_has(function() tide.broadcast_shapes({ 2 }, { 3 }) end, "broadcast_shapes: ")
    t.error_has(function() tide.broadcast_shapes("3") end, "broadcast_shapes: argument 1")
end)

-- ---- views and copies ----

t.test("views_share_memory_and_copies_do_not", function()
    local x = tide.randn(3, 4)
    local views = {
        diagonal = x:diagonal(), unfold = x:unfold(2, 2, 1),
        atleast_3d = x:atleast_3d(), tensor_split = x:tensor_split(2)[1], hsplit = x:hsplit(2)[1],
        broadcast_tensors = tide.broadcast_tensors(x, x)[1], meshgrid = tide.meshgrid(x[1], x[2])[1],
    }
    for name, y in pairs(views) do
        t.is_true(shares(y, x), name .. " is a view")
    end
    local copies = {
        diag = x:diag(), rot90 = x:rot90(0), fliplr = x:fliplr(), rep = x:rep(1, 1),
        repeat_interleave = x:repeat_interleave(1, 1), diagonal_scatter = x:diagonal_scatter(x:diagonal()),
        hstack = tide.hstack { x }, index_put = x:index_put({ tide.tensor { 1 } }, x[{ { 1 } }]),
    }
    for name, y in pairs(copies) do
        t.is_false(shares(y, x), name .. " is a copy")
    end
end)

t.test("writes_through_views_reach_the_tensor_and_its_history", function()
    local leaf = tide.ones(3, 3, { requires_grad = true })
    local x = leaf * 1
    x:diagonal():mul_(5)
    x:unfold(2, 1, 1)[{ 1, 2 }] = 7
    t.eq(x[{ 2, 2 }]:item(), 5)
    t.eq(x[{ 1, 2 }]:item(), 7)
    x:sum():backward()
    same(leaf.grad, { { 5, 0, 1 }, { 1, 5, 1 }, { 1, 1, 5 } })
end)

t.test("diagonals_far_outside_are_empty", function()
    for _, offset in ipairs { math.mininteger, math.maxinteger, -3, 3 } do
        t.eq(tide.ones(3, 3):diagonal(offset):numel(), 0, tostring(offset))
        t.eq(tide.ones(3, 3):diagonal_scatter(tide.ones(0), offset):sum():item(), 9)
    end
end)

t.test("windows_that_overlap_cannot_be_written", function()
    t.error_has(function() tide.zeros(4):unfold(1, 2, 1):zero_() end, "share one place")
end)

-- ---- refusals ----

t.test("equations_that_are_wrong_say_where", function()
    local a, b = tide.ones(2, 3), tide.ones(3, 2)
    for equation, text in pairs {
        ["ij,jk,kl"] = "more subscripts than there are operands, 2", ["ij"] = "1 subscripts for 2 operands",
        ["ijk,jk"] = "operand 1 has 2 dims, its subscript names 3", ["ij,j1"] = "got '1'",
        ["ij,jk->im"] = "names 'm', which no operand has", ["ij,jk->ii"] = "names 'i', which it names already",
        ["ij,ij->ij"] = "different sizes", ["i.j,jk"] = "'.'", ["......ij,jk"] = "twice",
        ["ij,jk->ik,"] = "one subscript",
    } do
        t.error_has(function() tide.einsum(equation, a, b) end, text)
    end
    t.error_has(function() tide.einsum("ii", a) end, "different sizes")
    t.error_has(function() tide.einsum("ij", {}) end, "at least one operand")
end)

t.test("shapes_that_do_not_fit_are_named", function()
    local x = tide.ones(2, 3)
    t.error_has(function() x:diagonal(0, 1, 1) end, "dim1 and dim2")
    t.error_has(function() x:diagonal(0, 1, 3) end, "dim 3 is out of range")
    t.error_has(function() x:diagonal_scatter(tide.ones(3)) end, "src of shape (3)")
    t.error_has(function() tide.ones(3):fill_diagonal_(1) end, "at least 2 dims")
    t.error_has(function() tide.ones(2, 3, 2):fill_diagonal_(1) end, "one size")
    t.error_has(function() x:unfold(1, 3, 1) end, "windows of 3 places don't fit into dim 1 of size 2")
    t.error_has(function() x:unfold(1, 1, 0) end, "step must be at least 1")
    t.error_has(function() tide.cross(x:t(), x:t(), 2) end, "must be of size 3")
    t.error_has(function() tide.cross(tide.ones(2), tide.ones(2)) end, "needs a dim of size 3")
    t.error_has(function() tide.linalg_multi_dot { x, x } end, "matrix 1 has 3 columns, matrix 2 has 2 rows")
    t.error_has(function() tide.linalg_multi_dot { x } end, "2 to 256 tensors")
    t.error_has(function() tide.matrix_power(x, 2) end, "square")
    t.error_has(function() tide.matrix_power(tide.ones(2, 2), -1) end, "singular")
    t.error_has(function() tide.cdist(x, tide.ones(2, 2)) end, "rows of one length")
    t.error_has(function() x:masked_scatter(x:gt(0), tide.ones(2)) end, "6 places, source has 2")
    t.error_has(function() x:take_along_dim(tide.tensor { 1 }, 1) end, "as many")
    t.error_has(function() tide.hstack {} end, "hstack: ")
    t.error_has(function() tide.meshgrid(x) end, "tensor 1 must have 1 dim")
end)

-- ---- draws ----

t.test("a_generator_goes_on_from_its_state", function()
    local g = tide.Generator(5)
    t.eq(g.device, "cpu")
    t.eq(g:initial_seed(), 5)
    tide.rand(3, { generator = g })
    local state = g:get_state()
    local want = tide.randn(5, { generator = g })
    t.is_true(rawequal(g:set_state(state), g))
    t.is_true(tide.equal(tide.randn(5, { generator = g }), want))
    local other = tide.Generator():set_state(state)
    t.is_true(tide.equal(tide.randn(5, { generator = other }), want))
    t.is_true(g:seed() ~= g:seed())
    t.error_has(function() g:set_state(tide.zeros(3)) end, "uint8 tensor of 16 elements")
end)

t.test("the_default_generator_has_a_state_too", function()
    tide.manual_seed(3)
    local state = tide.get_rng_state()
    local want = tide.rand(4)
    tide.rand(9)
    tide.set_rng_state(state)
    t.is_true(tide.equal(tide.rand(4), want))
    local seed = tide.seed()
    t.eq(tide.initial_seed(), seed)
    t.error_has(function() tide.set_rng_state(tide.zeros(16)) end, "get_rng_state")
end)

t.test("every_draw_takes_a_generator", function()
    local x, p = tide.empty(50), tide.full({ 50 }, 0.5)
    local draws = {
        rand = function(o) return tide.rand(50, o) end, randn = function(o) return tide.randn(50, o) end,
        randint = function(o) return tide.randint(0, 1000, { 50 }, o) end,
        randperm = function(o) return tide.randperm(50, o) end,
        rand_like = function(o) return tide.rand_like(x, o) end, randn_like = function(o) return tide.randn_like(x, o) end,
        randint_like = function(o) return tide.randint_like(x, 1000, o) end,
        normal = function(o) return tide.normal(0, 1, { 50 }, o) end, bernoulli = function(o) return p:bernoulli(o) end,
        poisson = function(o) return tide.poisson(p * 20, o) end,
        multinomial = function(o) return p:multinomial(20, o) end, dropout = function(o) return tide.dropout(p, o) end,
        uniform_ = function(o) return x:uniform_(o) end, normal_ = function(o) return x:normal_(o) end,
        log_normal_ = function(o) return x:log_normal_(o) end, exponential_ = function(o) return x:exponential_(o) end,
        cauchy_ = function(o) return x:cauchy_(o) end, geometric_ = function(o) return x:geometric_(0.01, o) end,
        rrelu = function(o) return (-p):rrelu(0.1, 0.9, true, o) end,
        feature_dropout = function(o) return tide.ones(50, 2):feature_dropout(0.5, true, o) end,
        alpha_dropout = function(o) return p:alpha_dropout(0.5, true, o) end,
        feature_alpha_dropout = function(o) return tide.ones(50, 2):feature_alpha_dropout(0.5, true, o) end,
        random_ = function(o) return x:random_(o) end, bernoulli_ = function(o) return x:bernoulli_(o) end,
    }
    for _, op in ipairs(tide._ops()) do
        t.is_true(not op.random or op.internal or draws[op.name], op.name)
    end
    for name, draw in pairs(draws) do
        local first = draw { generator = tide.Generator(1) }:clone()
        t.is_true(tide.equal(draw { generator = tide.Generator(1) }, first), name .. ": the same seed")
        t.is_false(tide.equal(draw { generator = tide.Generator(2) }, first), name .. ": another")
    end
end)

t.test("draws_refuse_what_is_no_parameter", function()
    local x = tide.zeros(3)
    t.error_has(function() x:exponential_(0) end, "exponential_: lambd must be more than 0")
    t.error_has(function() x:cauchy_(0, 0) end, "cauchy_: sigma must be more than 0")
    t.error_has(function() x:log_normal_(0, 0) end, "log_normal_: std must be more than 0")
    t.error_has(function() x:geometric_(1) end, "geometric_: p must lie between 0 and 1")
    t.error_has(function() x:long():exponential_() end, "exponential_: ")
    t.error_has(function() x:random_(3, 3) end, "random_: low must be less than high")
    t.error_has(function() x:byte():random_(0, 300) end, "uint8 doesn't hold")
    t.error_has(function() tide.normal(x, -1) end, "std must not be negative")
    t.error_has(function() tide.normal(x, tide.tensor { 1, -1, 1.0 }) end, "std must not be negative")
    t.error_has(function() tide.normal(0, 1) end, "a size is needed")
    t.error_has(function() tide.poisson(x - 1) end, "rates must not be negative")
    t.error_has(function() x:multinomial(1) end, "a sum above 0")
    t.error_has(function() (x - 1):multinomial(1) end, "finite and not negative")
    t.error_has(function() (x + 1):multinomial(4) end, "4 places can't be drawn from 3")
    t.error_has(function() (x + 1):multinomial(0) end, "at least 1")
    t.error_has(function() x:bernoulli_(tide.tensor { 2.0 }) end, "between 0 and 1")
    t.error_has(function() x:bernoulli_(tide.ones(2)) end, "bernoulli_: ")
    t.error_has(function() x:bernoulli(1.5) end, "p must lie between 0 and 1")
end)

-- Made piece by piece: around the ends of pieces, and in the last one.
t.test("long_windows_are_whole", function()
    for _, n in ipairs { 32768, 32769, 100003 } do
        for _, periodic in ipairs { true, false } do
            local turn = tide.arange(n, { dtype = tide.float64 }) * (2 * math.pi / (periodic and n or n - 1))
            local function near(window, exact)
                t.is_true((window - exact):abs():amax():item() < 1e-12)
            end
            local options = { dtype = tide.float64 }
            near(tide.hann_window(n, periodic, options), 0.5 - 0.5 * turn:cos())
            near(tide.blackman_window(n, periodic, options), 0.42 - 0.5 * turn:cos() + 0.08 * (2 * turn):cos())
            near(tide.bartlett_window(n, periodic, options), 1 - (turn / math.pi - 1):abs())
            local half = tide.kaiser_window(n, periodic, { dtype = tide.float16 })
            near(half:double(), tide.kaiser_window(n, periodic, options):half():double())
        end
    end
end)
