-- test_sparse.lua: sparse tensors: what they are made of, what is refused, how they print, the sparse gradients
-- of embedding and gather, and what optimizers do with those.
local t = require "harness"
local F, nn = tide.nn.functional, tide.nn

local function loose(options)
    return tide.sparse_coo_tensor({ { 1, 2, 2 }, { 3, 1, 1 } }, { 3.0, 4.0, 5.0 }, { 2, 3 }, options)
end
local function table_of(rows, width) return tide.arange(rows * width + 0.0):reshape(rows, width):requires_grad_(true) end
local function lists(x) return x:tolist() end
local i64 = { dtype = tide.int64 }

-- ---- what they are ----

t.test("a_sparse_tensor_says_what_it_is", function()
    local s = loose()
    t.is_true(s.is_sparse)
    t.eq(s.layout, tide.sparse_coo)
    t.eq(tide.ones(2).layout, tide.strided)
    t.is_false(tide.ones(2).is_sparse)
    t.eq({ s:_nnz(), s:sparse_dim(), s:dense_dim(), s:numel(), #s }, { 3, 2, 0, 6, 2 })
    t.is_false(s:is_coalesced())
    t.is_false(s:is_contiguous())
    t.eq(lists(s:_indices()), { { 1, 2, 2 }, { 3, 1, 1 } })
    t.eq(lists(s:_values()), { 3.0, 4.0, 5.0 })
end)

t.test("coalesce_adds_what_stands_at_one_place_in_order", function()
    local c = loose():coalesce()
    t.is_true(c:is_coalesced())
    t.eq(lists(c:indices()), { { 1, 2 }, { 3, 1 } })
    t.eq(lists(c:values()), { 3.0, 9.0 })
    t.eq(lists(c:coalesce():values()), { 3.0, 9.0 })
    local one = tide.sparse_coo_tensor({ { 2 } }, { 1.0 }, { 3 })
    t.is_true(one:is_coalesced(), "one place is in order")
end)

t.test("truths_at_one_place_stay_truths", function()
    local places, yes = {}, {}
    for k = 1, 512 do
        places[k], yes[k] = 2, true
    end
    local s = tide.sparse_coo_tensor({ places }, yes, { 3 })
    t.eq(lists(s:to_dense()), { false, true, false })
    t.eq(lists(s:coalesce():values()), { true })
end)

t.test("a_size_left_out_is_that_of_the_largest_places", function()
    t.eq({ table.unpack(tide.sparse_coo_tensor({ { 1, 4 }, { 2, 1 } }, { 1.0, 2.0 }).shape) }, { 4, 2 })
    t.eq({ table.unpack(tide.sparse_coo_tensor({ { 5 } }, tide.ones(1, 3)).shape) }, { 5, 3 })
    t.eq({ table.unpack(tide.sparse_coo_tensor(tide.zeros(2, 0, i64), tide.zeros(0, 3)).shape) }, { 0, 0, 3 })
end)

t.test("a_size_alone_makes_a_tensor_without_places", function()
    local s = tide.sparse_coo_tensor { 2, 3 }
    t.eq({ s:_nnz(), s:sparse_dim(), s.shape[1], s.shape[2] }, { 0, 2, 2, 3 })
    local d = tide.sparse_coo_tensor({ 4 }, { dtype = tide.float64, requires_grad = true })
    t.eq(d.dtype, tide.float64)
    t.is_true(d.requires_grad)
    t.error_has(function() tide.sparse_coo_tensor { 2, -3 } end, "size -3 of dimension 2 is negative")
    t.error_has(function() tide.sparse_coo_tensor { 1 << 40, 1 << 40 } end, "too many elements")
    t.error_has(function() tide.sparse_coo_tensor() end, "sparse_coo_tensor")
    t.error_has(function() tide.sparse_coo_tensor { 1, "x" } end, "sparse_coo_tensor")
end)

t.test("tensors_without_sparse_dims_add_all_values", function()
    local s = tide.sparse_coo_tensor(tide.zeros(0, 3, i64), tide.tensor { 1.0, 2.0, 4.0 })
    t.eq(s:to_dense():item(), 7.0)
    t.eq(s:coalesce():_nnz(), 1)
    t.eq(tide.tensor(0.0):to_sparse():_nnz(), 0)
    t.eq(tide.tensor(2.0):to_sparse():to_dense():item(), 2.0)
end)

t.test("the_tensor_shares_its_values_with_nobody_that_changes_a_history", function()
    local v = tide.ones(2):requires_grad_(true)
    local s = tide.sparse_coo_tensor({ { 1, 2 } }, v, { 3 }, { is_coalesced = true })
    local w = s:values()
    tide.no_grad(function() w:mul_(5) end)
    t.eq(lists(s:to_dense():detach()), { 1.0, 1.0, 0.0 })
end)

t.test("detached_and_aliased_ones_see_writes_in_place", function()
    local s = loose()
    local d = s:detach()
    d:zero_()
    t.eq(s:_nnz(), 0)
    t.eq(s:to_dense():sum():item(), 0.0)
    s:copy_(loose())
    t.eq(d:_nnz(), 3)
end)

-- ---- printing ----

t.test("printing_shows_places_values_and_how_many", function()
    t.eq(tostring(loose()), "indices=[[1, 2, 2],\n         [3, 1, 1]]\nvalues=[3., 4., 5.]\n"
        .. "float32 (2, 3) cpu sparse_coo nnz=3")
    t.eq(tostring(tide.sparse_coo_tensor({ { 2 } }, { { 1.5, 2 } }, { 4, 2 }, { requires_grad = true })),
        "indices=[[2]]\nvalues=[[1.5000, 2.0000]]\nfloat32 (4, 2) cpu sparse_coo nnz=1 requires_grad")
    t.eq(tostring(loose():zero_()), "indices=[]\nvalues=[]\nfloat32 (2, 3) cpu sparse_coo nnz=0")
end)

t.test("printing_many_places_shows_the_edges", function()
    local n = 5000
    local s = tide.sparse_coo_tensor(tide.arange(1, n + 1):reshape(1, n):to(tide.int64), tide.ones(n), { n })
    t.is_true(#tostring(s) < 300)
    t.is_true(tostring(s):find("4999, 5000", 1, true))
end)

-- ---- refusals ----

t.test("parts_that_do_not_fit_are_refused_in_one_line", function()
    local make = tide.sparse_coo_tensor
    local places, values = tide.tensor { { 1, 2 }, { 1, 3 } }, tide.ones(2)
    for text, args in pairs {
        ["indices has 3 in row 2, but size 2 is 2"] = { places, values, { 2, 2 } },
        ["indices names 2 places, but there are 3 values"] = { places, tide.ones(3), { 2, 3 } },
        ["size has 3 dims, but the parts have 2 sparse and 0 dense"] = { places, values, { 2, 3, 4 } },
        ["values of shape (2, 5) don't fit size (2, 3, 4) of 2 sparse dims"] = { places, tide.ones(2, 5), { 2, 3, 4 } },
        ["indices has a row for each sparse dim and a column for each value, got shape (2)"] =
            { tide.tensor { 1, 2 }, values, { 3 } },
        ["size -3 of dimension 2 is negative"] = { places, values, { 2, -3 } },
        ["too many elements"] = { places, values, { 1 << 40, 1 << 40 } },
        ["index 0: indices count from 1"] = { tide.tensor { { 0 } }, tide.ones(1), { 2 } },
        ["indices has -1 in row 1: places count from 1"] = { tide.tensor { { -1 } }, tide.ones(1), { 2 } },
        ["must hold integers, got float32"] = { places:float(), values, { 2, 3 } },
        ["indices are not in order, or name a place twice"] =
            { tide.tensor { { 2, 1 } }, values, { 3 }, { is_coalesced = true } },
        ["no option 'coalesced'"] = { places, values, { 2, 3 }, { coalesced = true } },
    } do
        local ok, message = pcall(make, table.unpack(args))
        t.is_false(ok, text)
        t.is_true(message:find(text, 1, true), message .. " lacks " .. text)
        t.is_false(message:find("\n"), "one line")
        t.is_true(message:find("sparse_coo_tensor", 1, true), message)
    end
    t.error_has(function() return make(tide.tensor { { math.maxinteger } }, tide.ones(1)):to_dense() end, "to_dense: ")
    t.error_has(function() make(tide.tensor { { math.maxinteger }, { 3 } }, tide.ones(1)) end, "too many elements")
    t.error_has(function() make({ { 1.5 } }, { 1 }, { 2 }) end, "must hold integers, got float32")
    t.eq(make({ {}, {} }, {}, { 2, 3 }):_nnz(), 0)
    t.error_has(function() make({ { 1 } }, { 1 }, { 2 }, { requires_grad = true }) end, "only floating tensors")
end)

t.test("other_operators_refuse_a_sparse_operand_before_anything_is_written", function()
    local s, d = loose(), tide.ones(2, 3)
    for name, call in pairs {
        exp = function() return s:exp() end,
        exp_ = function() return s:exp_() end,
        reshape = function() return s:reshape(6) end,
        cat = function() return tide.cat { d, s } end,
        ["maximum"] = function() return tide.maximum(d, s) end,
        equal = function() return s == loose() end,
        ones_like = function() return tide.ones_like(s) end,
        clamp_ = function() return s:clamp_(0, 1) end,
        softmax = function() return s:softmax(1) end,
        floor_divide = function() return s // 2 end,
    } do
        local ok, message = pcall(call)
        t.is_false(ok, name)
        t.is_true(message:find(name, 1, true), message)
        t.is_true(message:find("to_dense()", 1, true), message)
        t.is_false(message:find("\n"))
    end
    t.error_has(function() tide.cat { d, s } end, "cat: not for sparse tensors: give tensors:to_dense() instead")
    t.eq(lists(s:to_dense()), { { 0.0, 0.0, 3.0 }, { 9.0, 0.0, 0.0 } })
end)

t.test("what_reads_memory_refuses_sparse_tensors", function()
    local s = loose()
    for name, read in pairs {
        tolist = function() return s:tolist() end,
        stride = function() return s:stride() end,
        data_ptr = function() return s:data_ptr() end,
        nbytes = function() return s.nbytes end,
        storage_offset = function() return s:storage_offset() end,
    } do
        t.error_has(read, name .. ": not for sparse tensors")
    end
    local one = tide.sparse_coo_tensor({ { 1 } }, { 2.0 }, { 1 })
    t.error_has(function() one:item() end, "a sparse tensor's elements can't be read one by one")
    t.error_has(function() return one < 3 end, "a sparse tensor's elements can't be read one by one")
    t.error_has(function() return s[1] end, "not for sparse tensors")
    t.error_has(function() s[1] = 2 end, "not for sparse tensors")
end)

t.test("sums_are_of_equal_shapes_and_the_dense_one_first", function()
    local s, d = loose(), tide.ones(2, 3)
    t.error_has(function() return s + d end, "add(sparse, dense) would be dense")
    t.error_has(function() s:add_(d) end, "add(sparse, dense) would be dense")
    t.error_has(function() return s + 1 end, "add(sparse, dense) would be dense")
    t.error_has(function() return s - d end, "sub(sparse, dense) would be dense")
    t.error_has(function() return tide.ones(3) + s end, "shapes (3) and (2, 3) must be the same")
    t.error_has(function() return s + tide.sparse_coo_tensor({ { 1 } }, tide.ones(1, 3), { 2, 3 }) end,
        "a is sparse in 2 dims, b in 1")
    t.error_has(function() return d:int():add_(s) end, "a float32 result can't be written into a int32 tensor")
    t.error_has(function() return d:int():add_(s:int(), { alpha = 0.5 }) end, "must be an integer")
    t.error_has(function() s:sum(1) end, "over all elements")
    t.error_has(function() return d:matmul(s) end, "in this order")
    t.error_has(function() return s:matmul(tide.ones(2, 2)) end, "shapes (2, 3) and (2, 2) don't fit a product")
    t.error_has(function() return s:matmul(tide.ones(3, 2):double()) end, "dtypes float32 and float64 differ")
end)

-- ---- arithmetic in place ----

t.test("writes_in_place_keep_the_tensor_and_its_dtype", function()
    local s = loose()
    local version = s._version
    t.is_true(rawequal(s:mul_(2), s))
    t.eq(lists(s:to_dense()), { { 0.0, 0.0, 6.0 }, { 18.0, 0.0, 0.0 } })
    t.is_true(s._version > version)
    s:div_(4):neg_():add_(loose()):sub_(loose(), { alpha = 0.5 })
    t.eq(lists(s:to_dense()), { { 0.0, 0.0, 0.0 }, { 0.0, 0.0, 0.0 } })
    t.error_has(function() loose():int():div_(2) end, "can't be written into a int32 tensor")
    local half = loose():half()
    t.eq(half:add_(loose()).dtype, tide.float16)
end)

t.test("a_dense_tensor_takes_in_a_sparse_one", function()
    local d = tide.zeros(3, 2):t()
    d:add_(loose(), { alpha = -2 })
    t.eq(lists(d), { { 0.0, 0.0, -6.0 }, { -18.0, 0.0, 0.0 } })
    d:mul_(loose())
    t.eq(lists(d), { { 0.0, 0.0, -18.0 }, { -162.0, 0.0, 0.0 } })
    local leaf = tide.zeros(2, 3):requires_grad_(true)
    t.error_has(function() leaf:add_(loose()) end, "a leaf that requires grad is written in place")
    t.error_has(function() tide.zeros(1, 3):expand(2, 3):add_(loose()) end, "share one place in memory")
end)

t.test("results_that_are_dense_go_into_out", function()
    local out = tide.zeros(2)
    t.is_true(rawequal(tide.mv(loose(), tide.ones(3), { out = out }), out))
    t.eq(lists(out), { 3.0, 9.0 })
    t.error_has(function() tide.neg(loose(), { out = out }) end, "the result is sparse")
    t.error_has(function() tide.neg(tide.ones(2), { out = loose() }) end, "out= is a sparse tensor")
    t.error_has(function() tide.mv(loose({ requires_grad = true }), tide.ones(3), { out = out }) end,
        "out= can't take part in autograd")
end)

-- ---- gradients ----

t.test("embedding_gives_a_sparse_gradient_of_the_rows_used", function()
    local w = table_of(4, 3)
    F.embedding(tide.tensor { { 2, 4 }, { 2, 1 } }, w, { sparse = true }):sum():backward()
    t.is_true(w.grad.is_sparse)
    t.eq(w.grad:_nnz(), 4)
    t.is_false(w.grad:is_coalesced())
    t.eq(lists(w.grad:_indices()), { { 2, 4, 2, 1 } })
    t.eq(lists(w.grad:to_dense()), { { 1.0, 1.0, 1.0 }, { 2.0, 2.0, 2.0 }, { 0.0, 0.0, 0.0 }, { 1.0, 1.0, 1.0 } })
end)

t.test("indices_from_the_end_name_the_same_rows_or_are_refused", function()
    local w = table_of(4, 3)
    local ok, y = pcall(F.embedding, tide.tensor { -1, 4, -3 }, w, { sparse = true })
    if ok then
        y:sum():backward()
        t.eq(lists(w.grad:_indices()), { { 4, 4, 2 } })
        t.eq(lists(w.grad:coalesce():indices()), { { 2, 4 } })
    else
        t.is_true(y:find("must not be negative", 1, true), y)
    end
    local x = table_of(2, 3)
    x:gather(2, tide.tensor { { -1 }, { 2 } }, { sparse_grad = true }):sum():backward()
    t.eq(lists(x.grad:_indices()), { { 1, 2 }, { 3, 2 } })
end)

t.test("a_history_that_is_overwritten_is_gone", function()
    local v = tide.ones(2):requires_grad_(true)
    local s = tide.sparse_coo_tensor({ { 1, 2 } }, v, { 3 }, { is_coalesced = true }) * 2
    t.is_true(s.requires_grad)
    s:zero_()
    t.is_false(s.requires_grad)
    local r = tide.sparse_coo_tensor({ { 1, 2 } }, v, { 3 }, { is_coalesced = true }) * 2
    tide.no_grad(function() r:zero_() end)
    t.is_true(r.requires_grad, "unrecorded writes keep it")
end)

t.test("the_factor_of_a_sum_has_the_precision_of_the_result", function()
    local d = tide.zeros(2, 3, { dtype = tide.float64 })
    d:add_(loose():int(), { alpha = 0.1 })
    t.eq(d[{ 1, 3 }]:item(), 3 * 0.1)
end)

t.test("padding_has_no_place_in_a_sparse_gradient", function()
    local w = table_of(4, 3)
    F.embedding(tide.tensor { { 2, 4 }, { 2, 1 } }, w, 2, { sparse = true }):sum():backward()
    t.eq(lists(w.grad:_indices()), { { 4, 1 } })
    w.grad = nil
    F.embedding_bag(tide.tensor { { 2, 4 }, { 2, 1 } }, w, { sparse = true, padding_idx = 2 }):sum():backward()
    t.eq(lists(w.grad:_indices()), { { 4, 1 } })
end)

t.test("a_sparse_gradient_goes_on_through_operators_of_one_element", function()
    local w, index = table_of(4, 3), tide.tensor { 2, 2 }
    for name, fn in pairs {
        mul = { function(x) return x * 2 end, true, 4.0 },
        neg = { function(x) return -x end, true, -2.0 },
        sub = { function(x) return 1 - x end, true, -2.0 },
        by_tensor = { function(x) return x * tide.full({ 4, 3 }, 3.0) end, true, 6.0 },
        by_row = { function(x) return x * tide.full({ 3 }, 3.0) end, false, 6.0 },
        div = { function(x) return x / 4 end, false, 0.5 },
        exp = { function(x) return (x * 0):exp() end, true, 0.0 },
        sin = { function(x) return (x - x:detach()):sin() end, false, 2.0 },
        relu = { function(x) return x:relu() end, false, 2.0 },
        sign = { function(x) return x:sign() end, false, 0.0 },
        double = { function(x) return x:double() end, true, 2.0 },
        clone = { function(x) return x:clone() end, true, 2.0 },
    } do
        w.grad = nil
        F.embedding(index, fn[1](w), { sparse = true }):sum():backward()
        t.eq(w.grad.is_sparse, fn[2], name)
        t.eq(w.grad:to_dense()[{ 2, 1 }]:item(), fn[3], name)
    end
end)

t.test("what_has_no_sparse_gradient_is_refused", function()
    local w, index = table_of(4, 3), tide.tensor { { 2, 4 }, { 2, 1 } }
    local y = F.embedding(index, w, { sparse = true, scale_grad_by_freq = true })
    t.error_has(function() y:sum():backward() end, "scale_grad_by_freq is not for sparse gradients")
    t.error_has(function() F.embedding_bag(index, w, { sparse = true, mode = "max" }) end,
        "mode max has no sparse gradients")
end)

t.test("gradients_accumulate_sparse_or_become_dense", function()
    local w = table_of(4, 3)
    local function sparse() F.embedding(tide.tensor { 2, 2 }, w, { sparse = true }):sum():backward() end
    local function dense() (w * 2):sum():backward() end
    for order, want in pairs { ss = { 4, true }, sd = { 4, false }, ds = { 4, false }, sds = { 6, false } } do
        w.grad = nil
        for step in order:gmatch(".") do
            (step == "s" and sparse or dense)()
        end
        t.eq(w.grad.is_sparse, want[2], order)
        t.eq(w.grad:to_dense()[{ 2, 1 }]:item(), want[1] + 0.0, order)
    end
    w.grad = nil
    local index = tide.tensor { 2, 2 };
    (F.embedding(index, w, { sparse = true }):sum() + (w * 2):sum()):backward()
    t.is_false(w.grad.is_sparse, "in one backward")
    t.eq(lists(w.grad:sum(2)), { 6.0, 12.0, 6.0, 6.0 })
    w.grad = nil;
    (F.embedding(index, w, { sparse = true }):sum() + F.embedding(index, w, { sparse = true }):sum()):backward()
    t.is_true(w.grad.is_sparse)
    t.eq(w.grad:to_dense()[{ 2, 1 }]:item(), 4.0)
end)

t.test("a_gradient_owns_its_values", function()
    local w = table_of(4, 3)
    local y = F.embedding(tide.tensor { 2, 3 }, w, { sparse = true })
    local g = tide.ones(2, 3)
    y:backward(g)
    w.grad:mul_(5)
    t.eq(g:sum():item(), 6.0)
    local z = F.embedding(tide.tensor { 2, 3 }, w, { sparse = true })
    z:retain_grad()
    w.grad = nil
    z:sum():backward()
    w.grad:_values():mul_(7)
    t.eq(z.grad:sum():item(), 6.0)
end)

t.test("zero_grad_clears_sparse_gradients", function()
    local m = nn.Embedding(4, 3, { sparse = true })
    local o = tide.optim.SGD(m:parameters(), { lr = 0.1 })
    m(tide.tensor { 1, 2 }):sum():backward()
    local g = m.weight.grad
    o:zero_grad { set_to_none = false }
    t.eq(g:_nnz(), 0)
    t.is_true(m.weight.grad.is_sparse)
    m(tide.tensor { 1, 2 }):sum():backward()
    t.eq(m.weight.grad:_nnz(), 2)
    o:zero_grad()
    t.eq(m.weight.grad, nil)
end)

t.test("hooks_see_sparse_gradients_and_may_change_them", function()
    local w = table_of(4, 3)
    local seen
    w:register_hook(function(g)
        seen = g.is_sparse
        return g * 2
    end)
    F.embedding(tide.tensor { 2 }, w, { sparse = true }):sum():backward()
    t.is_true(seen)
    t.eq(lists(w.grad:to_dense()[2]), { 2.0, 2.0, 2.0 })
end)

t.test("anomaly_mode_looks_into_sparse_gradients", function()
    local w = table_of(4, 3)
    tide.autograd.detect_anomaly(function()
        F.embedding(tide.tensor { 2 }, w, { sparse = true }):sum():backward()
        t.is_true(w.grad.is_sparse)
        local y = F.embedding(tide.tensor { 2 }, w, { sparse = true }) * (0 / 0)
        t.error_has(function() y:sum():backward() end, "gave nan")
    end)
end)

t.test("gather_gives_a_sparse_gradient_where_it_is_asked_to", function()
    local x = table_of(2, 3)
    local y = x:gather(2, tide.tensor { { 1, 1 }, { 3, 2 } }, { sparse_grad = true })
    y:backward(tide.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } })
    t.is_true(x.grad.is_sparse)
    t.eq(lists(x.grad:_indices()), { { 1, 1, 2, 2 }, { 1, 1, 3, 2 } })
    t.eq(lists(x.grad:to_dense()), { { 3.0, 0.0, 0.0 }, { 0.0, 4.0, 3.0 } })
    local one = tide.tensor(2.0):requires_grad_(true)
    one:gather(1, tide.tensor(1), { sparse_grad = true }):backward()
    t.eq(one.grad:to_dense():item(), 1.0)
end)

t.test("a_sparse_leaf_gets_a_sparse_gradient_of_its_places", function()
    local s = loose { requires_grad = true }
    local weight = tide.arange(6.0):reshape(2, 3);
    (s:to_dense() * weight):sum():backward()
    t.is_true(s.grad.is_sparse)
    t.eq(lists(s.grad:coalesce():indices()), { { 1, 2 }, { 3, 1 } })
    t.eq(lists(s.grad:coalesce():values()), { 2.0, 3.0 })
    s.grad = nil
    s:matmul(tide.arange(6.0):reshape(3, 2)):sum():backward()
    t.eq(lists(s.grad:coalesce():values()), { 9.0, 1.0 })
    s.grad = nil
    s:coalesce():values():sum():backward()
    t.eq(lists(s.grad:coalesce():values()), { 1.0, 1.0 })
end)

t.test("gradients_and_their_gradients_agree_with_differences", function()
    local d = { dtype = tide.float64 }
    local v, x = tide.randn(3, d):requires_grad_(true), tide.randn(2, 3, d):requires_grad_(true)
    local function of(values) return tide.sparse_coo_tensor({ { 1, 2, 2 }, { 3, 1, 1 } }, values, { 2, 3 }) end
    local m = tide.randn(3, 2, d):requires_grad_(true)
    for name, fn in pairs {
        to_dense = function(a) return of(a * a):to_dense() end,
        coalesce = function(a) return of(a * a):coalesce():values() end,
        sum = function(a) return (of(a) * 3):sum() end,
        add = function(a, b) return (b * b + of(a * a)):square() end,
        add_sparse = function(a) return (of(a) + of(a * a):coalesce()):to_dense() end,
        mul = function(a, b) return (of(a) * b):to_dense() end,
        mul_sparse = function(a) return (of(a):coalesce() * of(a * a)):to_dense() end,
        norm = function(a) return of(a + 3):norm() end,
        square = function(a) return of(a):square():to_dense() end,
        mask = function(_, b) return (b * b):sparse_mask(loose():double()):to_dense() end,
        to_sparse = function(_, b) return (b * b):to_sparse():values() end,
        to_sparse_1 = function(_, b) return (b * b):to_sparse(1):to_dense() end,
        gather = function(_, b)
            return (b * b):gather(2, tide.tensor { { 1, 1 }, { 3, 2 } }, { sparse_grad = true })
        end,
        embedding = function(_, b) return F.embedding(tide.tensor { 2, 1, 2 }, b * b, { sparse = true }):square() end,
        in_place = function(a, b) return (b * 1):add_(of(a * a), { alpha = 2 }):square() end,
        clone = function(a) return of(a * a):clone():to(tide.float64):to_dense() end,
    } do
        t.is_true(tide.autograd.gradcheck(fn, { v, x }), name)
        t.is_true(tide.autograd.gradgradcheck(fn, { v, x }), name .. " twice")
    end
    t.is_true(tide.autograd.gradcheck(function(a, b) return of(a):matmul(b) end, { v, m }))
    t.is_true(tide.autograd.gradgradcheck(function(a, b) return of(a):matmul(b) end, { v, m }))
end)

t.test("a_recorded_sparse_gradient_has_a_gradient", function()
    local w = table_of(4, 3)
    local y = F.embedding(tide.tensor { 2, 4 }, w, { sparse = true })
    local g = tide.autograd.grad(y:square():sum(), w, { create_graph = true })[1]
    t.is_true(g.is_sparse and g.requires_grad)
    local gg = tide.autograd.grad(g:to_dense():square():sum(), w)[1]
    t.is_true(gg.is_sparse)
    t.eq(lists(gg:coalesce():values()), { { 24.0, 32.0, 40.0 }, { 72.0, 80.0, 88.0 } })
end)

t.test("what_was_saved_of_a_sparse_tensor_notices_writes", function()
    local v = tide.ones(2):requires_grad_(true)
    local s = tide.sparse_coo_tensor({ { 1, 2 } }, v * 1, { 3 }, { is_coalesced = true })
    local y = s * 3
    s:mul_(2)
    t.eq(lists(tide.autograd.grad(s:sum(), v, { retain_graph = true })[1]), { 2.0, 2.0 })
    t.eq(lists(tide.autograd.grad(y:sum(), v)[1]), { 3.0, 3.0 })
end)

t.test("checkpointed_and_packed_graphs_keep_sparse_tensors", function()
    local w = table_of(4, 3)
    local function loss(x) return F.embedding(tide.tensor { 2, 2 }, x, { sparse = true }):square():sum() end
    tide.utils.checkpoint(loss, w):backward()
    t.is_true(w.grad.is_sparse)
    t.eq(lists(w.grad:to_dense()[2]), { 12.0, 16.0, 20.0 })
end)

-- ---- memory ----

t.test("a_large_table_gets_a_gradient_of_its_used_rows_alone", function()
    local rows, width = 1000000, 64
    local w = tide.zeros(rows, width):requires_grad_(true)
    local index = tide.arange(1, 33):to(tide.int64) * 31000
    collectgarbage()
    tide.reset_peak_memory_stats()
    local before = tide.memory_allocated()
    F.embedding(index, w, { sparse = true }):sum():backward()
    local o = tide.optim.SGD({ w }, { lr = 0.5 })
    tide.no_grad(function() w:add_(w.grad, { alpha = -0.5 }) end)
    t.is_true(tide.memory_stats().peak - before < 1 << 20, "less than a megabyte, not 256 of them")
    t.eq(w.grad:_nnz(), 32)
    t.eq(w:sum():item(), -0.5 * 32 * width)
    o:zero_grad()
end)
