-- test_edges.lua: what operators take and refuse at their edges, gradients of what forgets its operand, roundings
-- of 16 bits. Values by operator are golden.
local t = require "harness"
local F = tide.nn.functional

t.test("adjoints_of_real_matrices_are_their_transposes", function()
    local x = tide.arange(24):view(2, 3, 4)
    t.eq(x[1].H:tolist(), x[1].T:tolist())
    t.eq(x.mH:tolist(), x.mT:tolist())
    t.eq(x[1].H:data_ptr(), x:data_ptr(), "a view")
    t.eq({ tide.tensor(2).H:item(), tide.tensor(2).mH:item(), tide.tensor(2).mT:item() }, { 2, 2, 2 })
    t.error_has(function() return x.H end, "H: needs a tensor of 2 dims, got shape (2, 3, 4)")
    t.error_has(function() return x[1][1].H end, "H: needs a tensor of 2 dims, got shape (4)")
    t.error_has(function() return x[1][1].mH end, "mH: needs a tensor of at least 2 dims, got shape (4)")
end)

t.test("norms_by_words_are_refused_where_they_have_no_meaning", function()
    local x = tide.ones(2, 3, 4)
    t.error_has(function() x:norm("nuc") end, 'norm: p "nuc" takes two dims, got 3')
    t.error_has(function() x:norm("nuc", 1) end, 'norm: p "nuc" takes two dims, got 1')
    t.error_has(function() x:norm("fro", { 1, 2, 3 }) end, 'norm: p "fro" takes at most two dims, got 3')
    t.error_has(function() x:norm("max") end, 'expected a number, or "fro" or "nuc", got string "max"')
    local out = tide.empty(4)
    t.is_true(rawequal(tide.norm(x, "fro", { 1, 2 }, { out = out }), out))
    t.is_true(tide.allclose(out, tide.full({ 4 }, math.sqrt(6))))
end)

t.test("linalg_norm_takes_options_without_ord", function()
    local x = tide.ones(2, 3)
    t.eq(tide.linalg.norm(x, { keepdim = true }).shape, { 1, 1 })
    t.eq(tide.linalg.norm(x, { dim = 2 }).shape, { 2 })
    t.close(tide.linalg.norm(x, { ord = "nuc" }):item(), math.sqrt(6))
    t.eq(tide.linalg.matrix_norm(x, { keepdim = true }).shape, { 1, 1 })
    t.error_has(function() tide.linalg.norm(x, nil, {}) end, "norm: dim must be one dim or two, got 0")
    t.error_has(function() tide.linalg.norm(tide.ones(1, 2, 3), nil, { 1, 2, 3 }) end, "norm: dim must be one dim or two, got 3")
end)

t.test("draws_have_gradients_of_zero", function()
    for _, draw in ipairs { tide.bernoulli, tide.normal, tide.poisson } do
        local p = tide.full({ 2, 3 }, 0.5, { requires_grad = true })
        local x = draw(p)
        t.is_true(x.requires_grad)
        x:sum():backward()
        t.eq(p.grad:tolist(), tide.zeros(2, 3):tolist())
    end
    local std = tide.full({ 3 }, 0.5, { requires_grad = true })
    tide.normal(1, std):sum():backward()
    t.eq(std.grad:tolist(), { 0, 0, 0 })
    t.is_true(not tide.bernoulli(tide.full({ 2 }, 0.5)).requires_grad)
    t.is_true(tide.normal(0, 1, { 2 }, { requires_grad = true }).requires_grad, "a leaf that is made")
end)

t.test("what_is_overwritten_by_constants_has_a_gradient_of_zero", function()
    local fillers = {
        function(x) return x:eq_(1) end, function(x) return x:gt_(x) end, function(x) return x:normal_() end,
        function(x) return x:random_(1, 3) end, function(x) return x:logical_not_() end,
        function(x) return x:bernoulli_(0.5) end,
    }
    for _, fill in ipairs(fillers) do
        local a = tide.ones(3, { requires_grad = true })
        local b = a * 2
        local data = b:data_ptr()
        t.is_true(rawequal(fill(b), b))
        t.eq(b:data_ptr(), data)
        t.is_true(b.requires_grad)
        b:sum():backward()
        t.eq(a.grad:tolist(), { 0, 0, 0 })
    end
    local a = tide.ones(3, { requires_grad = true })
    local b = a * 2
    local c = b * b
    b:ge_(tide.tensor { 1, 2, 3 })
    t.eq(b:tolist(), { 1, 1, 0 })
    t.error_has(function() c:sum():backward() end, "changed in place")
    t.error_has(function() a:eq_(1) end, "leaf")
    t.is_true(not tide.no_grad(function() return (a * 2):eq_(1) end).requires_grad)
end)

t.test("clamp_by_numbers_has_no_gradient_on_the_bound", function()
    local x = tide.tensor({ 0, 1, 2, 0 / 0 }, { requires_grad = true, dtype = tide.float32 })
    x:clamp(1, 2):sum():backward()
    t.eq(x.grad:tolist(), { 0, 0, 0, 0 })
    x.grad = nil
    x:clamp_min(1):sum():backward()
    t.eq(x.grad:tolist(), { 0, 0, 1, 0 })
    x.grad = nil
    (x * 1):clamp_(nil, 1):sum():backward()
    t.eq(x.grad:tolist(), { 1, 0, 0, 0 })
end)

t.test("gradients_summed_over_broadcast_dims_are_rounded_once", function()
    tide.manual_seed(1)
    for _, dtype in ipairs { tide.float16, tide.bfloat16 } do
        local a, g = tide.rand(16, 200):to(dtype), tide.rand(16, 200):to(dtype)
        local b = tide.rand(1, 200):to(dtype):requires_grad_(true)
        tide.mul(a, b):backward(g)
        local exact = (a:double() * g:double()):sum(1, { keepdim = true })
        t.eq(b.grad:double():tolist(), exact:to(dtype):double():tolist())
    end
end)

t.test("attention_of_16_bits_keeps_its_scores_in_float32", function()
    tide.manual_seed(1)
    for _, dtype in ipairs { tide.float16, tide.bfloat16 } do
        local function draw() return (tide.randn(1, 2, 8, 16) * 5):to(dtype) end
        local q, k, v = draw(), draw(), draw()
        local exact = F.scaled_dot_product_attention(q:double(), k:double(), v:double())
        local y = F.scaled_dot_product_attention(q, k, v)
        t.eq(y.dtype, dtype)
        local unit = tide.finfo(dtype).eps
        t.is_true((y:double() - exact):abs():max():item() <= unit * v:double():abs():max():item())
    end
end)

t.test("logcumsumexp_of_16_bits_has_gradients_of_unrounded_logarithms", function()
    local x = tide.full({ 4 }, 10000, { dtype = tide.float16, requires_grad = true })
    x:logcumsumexp(1):backward(tide.tensor({ 0, 0, 0, 1 }, { dtype = tide.float16 }))
    t.is_true(tide.allclose(x.grad:double(), tide.full({ 4 }, 0.25, { dtype = tide.float64 }), { rtol = 1e-3 }))
end)

t.test("cummin_of_16_bits_adds_its_gradients_in_float32", function()
    local x = tide.full({ 4096 }, -1, { dtype = tide.float16 })
    x[1] = -3
    x:requires_grad_(true)
    x:cummin(1):sum():backward()
    t.eq(x.grad[1]:item(), 4096.0)
end)

t.test("solutions_lie_as_columns", function()
    local a, b = tide.randn(4, 3), tide.randn(4, 2)
    t.eq((tide.linalg.lstsq(a, b)):stride(), { 1, 3 })
    t.eq(tide.cholesky_inverse(tide.eye(3)):stride(), { 1, 3 })
end)

t.test("max_unpool2d_lies_as_its_input", function()
    local x = tide.randn(1, 2, 4, 4):contiguous { memory_format = "channels_last" }
    local y, places = F.max_pool2d(x, 2, { return_indices = true })
    local back = F.max_unpool2d(y, places, 2)
    t.is_true(back:is_contiguous { memory_format = "channels_last" })
    t.eq(back:sum():item(), y:sum():item())
end)

t.test("rows_of_embeddings_count_from_one_only", function()
    local weight = tide.ones(3, 2)
    for _, name in ipairs { "embedding", "embedding_bag" } do
        t.error_has(function() F[name](tide.tensor { { -1 } }, weight) end, name .. ": rows count from 1: an index must not be negative")
        t.error_has(function() F[name](tide.tensor { { 0 } }, weight) end, name .. ": index 0")
    end
    t.eq(F.embedding(tide.empty(0, { dtype = tide.int64 }), weight).shape, { 0, 2 })
end)

t.test("progressions_are_no_truths", function()
    t.error_has(function() tide.arange(3, { dtype = tide.bool }) end, "arange: truths are no progression")
    t.error_has(function() tide.linspace(0, 1, 3, { dtype = tide.bool }) end, "linspace: truths are no progression")
    t.error_has(function() tide.ones(3):cumsum(1, { dtype = tide.bool }) end, "cumsum: no bool result")
end)

t.test("broadcast_shapes_takes_sizes_and_refuses_options", function()
    t.eq(tide.broadcast_shapes(5, { 3, 1 }), { 3, 5 })
    t.eq(tide.broadcast_shapes(1), { 1 })
    t.error_has(function() tide.broadcast_shapes { shapes = { 1 } } end, "broadcast_shapes: a list has no options")
    t.error_has(function() tide.broadcast_shapes(2, 3) end, "broadcast_shapes:")
    t.error_has(function() tide.broadcast_shapes(-1) end, "broadcast_shapes: argument 1")
end)

t.test("biases_that_do_not_fit_are_refused", function()
    local x, weight = tide.ones(2, 3), tide.ones(4, 3)
    t.error_has(function() F.linear(x, weight, tide.ones(3)) end, "linear: bias must have shape (4), got (3)")
    t.error_has(function() F.linear(x, weight, tide.ones(3, 4)) end, "linear: bias must have shape (4), got (3, 4)")
end)

t.test("powers_of_matrices_below_zero_need_an_inverse", function()
    t.error_has(function() tide.matrix_power(tide.ones(2, 2), -1) end, "singular")
    t.error_has(function() tide.matrix_power(tide.ones(2, 2, { dtype = tide.int64 }), -1) end, "int64")
end)

t.test("new_full_takes_truths", function()
    t.eq(tide.ones(2, { dtype = tide.bool }):new_full({ 2 }, true):tolist(), { true, true })
    t.eq(tide.ones(2):new_full({}, true):item(), 1.0)
end)

t.test("pools_need_channels", function()
    t.error_has(function() F.max_pool1d(tide.zeros(0, 10), 2) end, "max_pool1d: input of shape (0, 10) has no channels")
    t.error_has(function() F.max_pool2d(tide.zeros(2, 0, 4, 4), 2) end, "has no channels")
    t.eq(F.max_pool3d(tide.zeros(0, 2, 4, 4, 4), 2).shape, { 0, 2, 2, 2, 2 })
end)

t.test("residuals_of_least_squares_require_grad", function()
    local a = tide.randn(3, 3):requires_grad_(true)
    local x, residuals = tide.linalg.lstsq(a, tide.ones(3, 2), { driver = "gels" })
    t.eq({ residuals.requires_grad, residuals:numel() }, { true, 0 })
    t.eq(x.requires_grad, true)
end)

t.test("special_functions_have_pytorchs_names", function()
    local x = tide.tensor { 0.5, 2.0 }
    for name, fn in pairs { expit = "sigmoid", gammaln = "lgamma", psi = "digamma", i0 = "i0", erfcx = "erfcx" } do
        t.eq(tide.special[name](x):tolist(), tide[fn](x):tolist())
    end
    t.is_true(tide.allclose(tide.special.gammainc(x, x) + tide.special.gammaincc(x, x), tide.ones(2)))
    t.eq(tide.special.multigammaln(x + 3, 2):tolist(), tide.mvlgamma(x + 3, 2):tolist())
    t.close(tide.special.log_ndtr(tide.tensor(-40, { dtype = tide.float64 })):item(), -804.6084420137538)
    t.close(tide.special.erfcx(tide.tensor(1e8, { dtype = tide.float64 })):item(), 5.641895835477562e-09)
    t.is_true(tide.special.ndtri(tide.tensor(0.5)):item() == 0)
    local a = tide.tensor({ 2.0 }, { requires_grad = true })
    tide.igamma(a, tide.tensor { 1.0 }):sum():backward()
    t.is_true(a.grad:isnan():item(), "what is not known is NaN")
end)

t.test("channels_are_dropped_under_the_names_of_their_dims", function()
    tide.manual_seed(3)
    for n = 1, 3 do
        local name = ("dropout%dd"):format(n)
        local x = tide.ones { 4, 32, table.unpack({ 3, 3, 3 }, 1, n) }
        local y = F[name](x, 0.5):flatten(3)
        t.is_true(tide.equal(y:amax(-1), y:amin(-1)), "a channel is dropped or none of it")
        t.is_true(y:eq(0):any():item() and y:eq(2):any():item(), name)
        t.is_true(tide.equal(F[name](x, 0.5, false), x), "not in training")
    end
    local y = F.dropout3d(tide.ones(32, 2, 2, 2), 0.5):flatten(2)
    t.is_true(tide.equal(y:amax(-1), y:amin(-1)), "channels of what is no batch")
    t.error_has(function() F.dropout1d(tide.ones(2), 0.5) end, "dropout1d: input must have 2 or 3 dims, got shape (2)")
end)

t.test("tensors_are_inverted_as_matrices", function()
    tide.manual_seed(5)
    local A = tide.randn(2, 3, 6, { dtype = tide.float64 })
    local inverse = tide.linalg.tensorinv(A, 2)
    t.eq(inverse.shape, { 6, 2, 3 })
    t.is_true(tide.allclose(tide.tensordot(inverse, A, 2), tide.eye(6, { dtype = tide.float64 })))
    local B = tide.randn(2, 3, { dtype = tide.float64 })
    t.is_true(tide.allclose(tide.linalg.tensorsolve(A, B), tide.tensordot(inverse, B, 2)))
    local moved = A:movedim(3, 1)
    t.is_true(tide.allclose(tide.linalg.tensorsolve(moved, B, 1), tide.linalg.tensorsolve(A, B)))
    t.error_has(function() tide.linalg.tensorinv(A, 1) end, "tensorinv: A of shape (2, 3, 6) is no square matrix behind 1 dims")
    t.error_has(function() tide.linalg.tensorsolve(A, tide.ones(2)) end, "tensorsolve: shapes (2, 3, 6) and (2) don't fit")
end)

t.test("sizes_that_split_must_sum_to_the_dim", function()
    t.error_has(function() tide.ones(5):split_with_sizes { 2, 2 } end, "split_with_sizes: the parts sum to 4, dim 1 has size 5")
    t.error_has(function() tide.ones(5):split_with_sizes { 5, 0, -1 } end, "split_with_sizes:")
    t.error_has(function() tide.ones(5):split_with_sizes { 4 } end, "split_with_sizes: the parts sum to 4, dim 1 has size 5")
    local x = tide.ones(2, 3)
    t.eq(x:sum_to_size(2, 3):data_ptr(), x:data_ptr())
    t.eq(tide.ones(2, 3, { dtype = tide.int32 }):sum_to_size(3).dtype, tide.int64)
    t.error_has(function() x:sum_to_size(2) end, "sum_to_size: shape (2) does not broadcast to (2, 3)")
end)

t.test("exponentials_of_matrices_are_finite_or_nan", function()
    t.error_has(function() tide.matrix_exp(tide.ones(2, 3)) end, "matrix_exp: needs square matrices, got shape (2, 3)")
    t.is_true(tide.matrix_exp(tide.full({ 2, 2 }, math.huge)):isnan():all():item())
    t.close(tide.matrix_exp(tide.tensor { { 0, -math.pi }, { math.pi, 0 } }):sum():item(), -2, 1e-5)
end)

t.test("a_part_that_does_not_fit_leaves_out_alone", function()
    local out = tide.full({ 1 }, 7.0)
    t.error_has(function() tide.slice_scatter(tide.ones(5), tide.ones(3), 1, { step = 3, out = out }) end, "part of shape (2)")
    t.eq(out:tolist(), { 7.0 })
end)

t.test("batches_of_nothing_leave_running_statistics_alone", function()
    local norm = tide.nn.BatchNorm2d(3)
    norm(tide.ones(0, 3, 2, 2))
    t.eq(norm.running_mean:tolist(), { 0.0, 0.0, 0.0 })
    t.eq(norm.running_var:tolist(), { 1.0, 1.0, 1.0 })
end)

t.test("inverses_of_tensors_take_out", function()
    local a, out = tide.eye(6):reshape(2, 3, 6), tide.empty(0)
    t.is_true(rawequal(tide.linalg.tensorinv(a, { out = out }), out))
    t.eq(out.shape, { 6, 2, 3 })
    t.is_true(rawequal(tide.linalg.tensorsolve(a, tide.ones(2, 3), { out = out }), out))
    t.eq(out.shape, { 6 })
end)

t.test("powers_next_to_the_largest_number_are_finite", function()
    for dtype, case in pairs {
        float64 = { 0x1.fffffffffffffp1023, 0x1.fffffffffffffp-1, 0x1.ffffffffffd39p1023, 1024 },
        float32 = { 0x1.fffffep127, 0x1.fffffep-1, 0x1.ffff4cp127, 128 },
    } do
        local largest, exponent, want, too_far = table.unpack(case)
        local x = tide.full({ 37 }, largest, { dtype = tide[dtype] })
        local y = tide.pow(x, tide.full({ 37 }, exponent, { dtype = tide[dtype] }))
        t.is_true((y / want - 1):abs():max():item() <= (dtype == "float64" and 0x1p-51 or 0x1p-22), dtype)
        t.eq(tide.pow(tide.tensor({ 2, -2, largest, 0, 1.5 }, { dtype = tide[dtype] }),
            tide.tensor({ too_far, too_far + 1, 1.001, -1, 1e6 }, { dtype = tide[dtype] })):tolist(),
            { math.huge, -math.huge, math.huge, math.huge, math.huge })
    end
end)

t.test("bessel_functions_keep_their_digits_at_both_ends", function()
    for name, cases in pairs {
        i1 = { { -7.5382305797164791e-06, -3.7691152898850121e-06 } },
        i1e = { { -0.14244196797015679, -0.061922318313230307 }, { 1.706266858877565e+308, 3.0541234534556095e-155 } },
    } do
        for _, case in ipairs(cases) do
            local y = tide[name](tide.full({ 9 }, case[1], { dtype = tide.float64 }))
            t.is_true((y / case[2] - 1):abs():max():item() < 5 * 0x1p-53, name .. " of " .. case[1])
        end
    end
end)

t.test("tests_for_floats_answer_for_integers", function()
    local x = tide.tensor { { -3, 0 }, { 7, math.mininteger } }
    for name, want in pairs { isfinite = true, isreal = true, isnan = false, isinf = false, isposinf = false, isneginf = false } do
        local y, out = tide[name](x), tide.empty(0, { dtype = tide.bool })
        t.eq(y:tolist(), { { want, want }, { want, want } }, name)
        t.eq(y.dtype, tide.bool)
        tide[name](x, { out = out })
        t.eq(out:tolist(), { { want, want }, { want, want } }, name)
        t.eq(tide[name](tide.tensor { true, false }):tolist(), { want, want }, name)
    end
    t.eq(tide.signbit(x):tolist(), { { true, false }, { false, true } })
    t.eq(tide.signbit(tide.tensor { true, false }):tolist(), { false, false })
    t.eq(tide.isreal(tide.tensor { 0 / 0, 1.5 }):tolist(), { true, true })
end)

t.test("shapes_without_elements_are_the_same_for_all_dtypes", function()
    for _, dtype in ipairs { tide.uint8, tide.int16, tide.float32, tide.float64 } do
        t.error_has(function() tide.zeros({ 2000000000000000000, 0 }, { dtype = dtype }) end, "has too many elements")
        t.eq(tide.zeros({ 1000000000000000000, 0 }, { dtype = dtype }):to(tide.float64).shape, { 1000000000000000000, 0 })
    end
end)

t.test("filled_whole_and_in_part", function()
    for _, dtype in ipairs { "bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" } do
        for _, n in ipairs { 1, 2, 7, 63, 64, 65, 1000, 70001 } do
            local x = tide.zeros(n + 2, { dtype = tide[dtype] })
            x["2:-2"]:fill_(1)
            t.eq({ x:double():sum():item(), x[1]:item() == x[-1]:item() }, { n + 0.0, true }, dtype .. " " .. n)
            t.eq(tide.fill(x, 0):double():sum():item(), 0.0)
            t.eq(tide.full({ n }, 1, { dtype = tide[dtype] }):double():sum():item(), n + 0.0)
        end
    end
    local x = tide.ones(3, 4, { requires_grad = true })
    tide.fill(x, 2):sum():backward()
    t.eq(x.grad:sum():item(), 0.0)
end)

t.test("differences_do_not_share_memory", function()
    local x = tide.tensor { { 1.0, 4.0, 9.0 } }
    local y = tide.diff(x)
    y:zero_()
    t.eq({ x:tolist(), tide.diff(x, 1, 1).shape }, { { { 1.0, 4.0, 9.0 } }, { 0, 3 } })
    local none = tide.zeros(2, 0)
    t.is_true(tide.diff(none).shape[2] == 0 and not rawequal(tide.diff(none), none))
end)
