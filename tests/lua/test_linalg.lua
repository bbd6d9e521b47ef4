-- test_linalg.lua: tide.linalg: what values in tests/golden can't say: that factors make up their matrices,
-- where they are unique up to signs alone, what is refused, and gradients of singular matrices.
local t = require "harness"

local function random(...)
    tide.manual_seed(7)
    return tide.randn({ ... }, { dtype = tide.float64 })
end

local function near(a, b, what)
    t.is_true((a - b):abs():amax():item() < 1e-10, what)
end

local function positive(n)
    local x = random(2, n, n)
    return x:matmul(x:transpose(-2, -1)) + tide.eye(n, { dtype = tide.float64 })
end

t.test("matrices_with_inf_or_nan_are_refused_where_values_are_looked_for", function()
    for _, bad in ipairs { 0 / 0, math.huge } do
        local a = tide.tensor({ { 1, bad }, { 0, 1 } }, { dtype = tide.float64 })
        t.error_has(function() tide.linalg.svdvals(a) end, "the matrix holds inf or NaN")
        t.error_has(function() tide.linalg.eigvalsh(a + a:t()) end, "the matrix holds inf or NaN")
        t.error_has(function() tide.linalg.pinv(tide.stack { tide.eye(2, { dtype = tide.float64 }), a }) end,
            "matrix 2 of the batch holds inf or NaN")
    end
end)

t.test("svd_makes_up_its_matrix", function()
    for _, sizes in ipairs { { 4, 4 }, { 6, 3 }, { 3, 6 }, { 2, 5, 3 } } do
        local a = random(table.unpack(sizes))
        local u, s, vh = tide.linalg.svd(a, { full_matrices = false })
        near((u * s:unsqueeze(-2)):matmul(vh), a, "u diag(s) vh")
        near(u:transpose(-2, -1):matmul(u), tide.eye(s.shape[-1], { dtype = tide.float64 }), "u is orthogonal")
        local full_u, _, full_vh = tide.linalg.svd(a)
        t.eq(full_u.shape[-1], sizes[#sizes - 1])
        t.eq(full_vh.shape[-2], sizes[#sizes])
    end
end)

t.test("matrices_that_lie_in_any_way_are_read_and_written", function()
    local x = random(2, 6, 8)
    for _, dtype in ipairs { tide.float32, tide.float64 } do
        local y = x:to(dtype)
        for _, view in ipairs { y:transpose(1, 3), y:slice(2, 1, nil, 2), y:slice(3, 2, nil, 3), y:flip(2),
            y:narrow(1, 1, 1):expand(3, 6, 8) } do
            local copy = view:contiguous()
            for _, name in ipairs { "svdvals", "qr", "svd" } do
                local a, b = { tide.linalg[name](view) }, { tide.linalg[name](copy) }
                for k = 1, #a do
                    t.is_true(a[k]:equal(b[k]), name)
                end
            end
        end
    end
end)

t.test("values_alone_are_those_beside_vectors", function()
    local x, s = random(3, 7, 5), positive(6)
    for _, a in ipairs { x, x:transpose(2, 3), x:unsqueeze(1) } do
        local _, values = tide.linalg.svd(a, false)
        near(tide.cat { tide.linalg.svdvals(a):flatten(), tide.zeros(1) },
            tide.cat { values:flatten(), tide.zeros(1) }, "svd")
        near(tide.linalg.svdvals(a:clone():requires_grad_()):sum(), values:sum(), "recorded")
    end
    for _, side in ipairs { "L", "U" } do
        near(tide.linalg.eigvalsh(s, side), (tide.linalg.eigh(s, side)), side)
        near(tide.linalg.eigvalsh(s:clone():requires_grad_(), side), tide.linalg.eigvalsh(s, side), "recorded")
    end
    t.error_has(function() tide.linalg.eigvalsh(s, "X") end, "UPLO")
end)

t.test("qr_makes_up_its_matrix", function()
    for _, mode in ipairs { "reduced", "complete" } do
        for _, sizes in ipairs { { 4, 4 }, { 6, 3 }, { 3, 6 } } do
            local a = random(table.unpack(sizes))
            local q, r = tide.linalg.qr(a, mode)
            near(q:matmul(r), a, "q r")
            near(r, r:triu(), "r is a triangle")
        end
    end
end)

t.test("eigh_and_cholesky_make_up_their_matrix", function()
    local a = positive(5)
    local l, v = tide.linalg.eigh(a)
    near((v * l:unsqueeze(-2)):matmul(v:transpose(-2, -1)), a, "v diag(l) v^T")
    local c = tide.linalg.cholesky(a)
    near(c:matmul(c:transpose(-2, -1)), a, "c c^T")
    local upper = tide.linalg.cholesky(a, { upper = true })
    near(upper, c:transpose(-2, -1), "the upper one is its transpose")
end)

-- Matrices of up to eight rows are done side by side, larger ones by blocks: the same matrix as a corner of one
-- with nine rows more, whose diagonal is 1.
local function corner(a, n)
    local large = tide.eye(n + 9, { dtype = a.dtype }):expand({ a:size(1), n + 9, n + 9 }):contiguous()
    large:narrow(2, 1, n):narrow(3, 1, n):copy_(a)
    return large
end

t.test("few_rows_in_batches_are_as_they_are_in_larger_matrices", function()
    for n = 1, 8 do
        for _, batch in ipairs { 1, 3, 8, 21 } do
            local a = random(batch, n, n)
            local s = a:matmul(a:transpose(-2, -1)) + tide.eye(n, { dtype = tide.float64 })
            local b = random(batch, 2, n):transpose(-2, -1)
            local large = corner(a, n)
            a = n % 2 == 0 and a:transpose(-2, -1):contiguous():transpose(-2, -1) or a
            near(tide.linalg.det(a) / tide.linalg.det(large), tide.ones(batch, { dtype = tide.float64 }), "det")
            local c = tide.linalg.inv(large):narrow(2, 1, n):narrow(3, 1, n)
            local most = c:abs():amax():item()
            near(tide.linalg.inv(a) / most, c / most, "inv")
            near(tide.linalg.solve(a, b) / most, c:matmul(b) / most, "solve")
            local l = tide.linalg.cholesky(corner(s, n)):narrow(2, 1, n):narrow(3, 1, n)
            near(tide.linalg.cholesky(s), l, "cholesky")
            near(tide.linalg.cholesky(s:triu(), { upper = true }), l:transpose(-2, -1), "its transpose")
        end
    end
    local singular = tide.stack { tide.eye(3), tide.zeros(3, 3), 2 * tide.eye(3) }
    local x, info = tide.linalg.inv_ex(singular)
    t.eq(info, tide.tensor({ 0, 1, 0 }, { dtype = tide.int32 }))
    t.eq(x, tide.stack { tide.eye(3), tide.eye(3), 0.5 * tide.eye(3) })
    t.eq(tide.linalg.det(singular), tide.tensor { 1.0, 0, 8 })
    t.error_has(function() tide.linalg.inv(singular) end, "matrix 2 of the batch is singular: its pivot 1 is 0")
end)

t.test("one_triangle_of_a_symmetric_matrix_counts", function()
    local a = positive(4)
    near(tide.linalg.eigvalsh(a:tril()), tide.linalg.eigvalsh(a), "the lower")
    near(tide.linalg.eigvalsh(a:triu(), "U"), tide.linalg.eigvalsh(a), "the upper")
    near(tide.linalg.cholesky(a:tril()), tide.linalg.cholesky(a), "the lower")
end)

t.test("large_matrices_and_large_batches", function()
    local a = random(150, 150)
    near(a:matmul(tide.linalg.inv(a)), tide.eye(150, { dtype = tide.float64 }), "an inverse of 150")
    local many = random(300, 4, 4)
    local b = random(300, 4, 2)
    near(many:matmul(tide.linalg.solve(many, b)), b, "300 solutions")
end)

t.test("solve_broadcasts_batches_and_takes_vectors", function()
    local a, b = random(3, 3), random(5, 3, 2)
    near(a:matmul(tide.linalg.solve(a, b)), b, "one matrix, five right sides")
    local v = random(3)
    near(a:matmul(tide.linalg.solve(a, v)), v, "a vector")
    local x = tide.linalg.solve(a, random(2, 3), { left = false })
    near(x:matmul(a), random(2, 3), "from the right")
end)

t.test("the_gradient_of_a_singular_determinant_is_there", function()
    local a = tide.tensor({ { 1, 2 }, { 2, 4 } }, { dtype = tide.float64, requires_grad = true })
    tide.linalg.det(a):backward()
    near(a.grad, tide.tensor({ { 4, -2 }, { -2, 1 } }, { dtype = tide.float64 }), "the cofactors")
end)

-- Logarithms of determinants have no gradient where these are 0, as in PyTorch, and say so in their own name; of det
-- what needs the inverse is its third derivative. Beside a singular matrix none of the batch has one.
t.test("gradients_of_singular_matrices_are_refused_by_name", function()
    local function matrix(rows) return tide.tensor(rows, { dtype = tide.float64 }) end
    local singular = matrix { { 1, 2 }, { 2, 4 } }
    local functions = {
        logdet = function(a) return a:logdet() end,
        slogdet = function(a) return (select(2, a:slogdet())) end,
        linalg_slogdet = function(a) return (select(2, tide.linalg.slogdet(a))) end,
    }
    for name, f in pairs(functions) do
        for order = 1, 2 do
            local a = singular:clone():requires_grad_(true)
            t.error_has(function()
                local y = f(a)
                for _ = 1, order do y = tide.autograd.grad({ y:sum() }, { a }, { create_graph = true })[1] end
            end, name .. "'s gradient: the matrix is singular: its pivot 2 is 0")
        end
        local batch = tide.stack { matrix { { 1, 0 }, { 0, 1 } }, singular }:requires_grad_(true)
        t.error_has(function() f(batch):sum():backward() end,
            name .. "'s gradient: matrix 2 of the batch is singular: its pivot 2 is 0")
        local whole = matrix { { 1.0, 2 }, { 3, 4 } }:requires_grad_(true)
        f(whole):backward()
        near(whole.grad, matrix { { -2, 1.5 }, { 1, -0.5 } }, name)
    end
    local a = singular:clone():requires_grad_(true)
    local y = tide.linalg.det(a)
    for _ = 1, 2 do y = tide.autograd.grad({ y:sum() }, { a }, { create_graph = true })[1] end
    near(y, matrix { { 1.0, -1 }, { -1, 1 } }, "the second derivative of det")
end)

-- PyTorch: inf, by whichever norm.
t.test("condition_numbers_of_singular_matrices", function()
    local a = tide.stack { tide.tensor { { 1.0, 2 }, { 2, 4 } }, tide.eye(2) }
    for _, p in ipairs { 1, -1, math.huge, -math.huge, "fro" } do
        t.close(tide.linalg.cond(a, p)[1]:item(), math.huge, 0)
        t.close(tide.linalg.cond(a, p)[2]:item(), p == "fro" and 2 or 1, 1e-6)
    end
end)

t.test("matrices_without_elements", function()
    local empty = tide.zeros(2, 0, 0, { dtype = tide.float64 })
    near(tide.linalg.det(empty), tide.ones(2, { dtype = tide.float64 }), "the empty product")
    t.eq(tostring(tide.linalg.svdvals(tide.zeros(3, 0)).shape), "(0)")
    near(tide.linalg.qr(tide.zeros(2, 0, { dtype = tide.float64 }), "complete"), tide.eye(2, { dtype = tide.float64 }), "q")
    t.eq(tide.linalg.matrix_rank(tide.zeros(0, 3)):item(), 0)
end)

t.test("what_can_not_be_done_says_why", function()
    local singular = tide.tensor({ { 1.0, 2 }, { 2, 4 } })
    t.error_has(function() tide.linalg.inv(singular) end, "linalg_inv: the matrix is singular: its pivot 2 is 0")
    t.error_has(function() tide.linalg.inv(tide.stack { tide.eye(2), singular }) end,
        "linalg_inv: matrix 2 of the batch is singular: its pivot 2 is 0")
    t.error_has(function() tide.linalg.cholesky(-tide.eye(2)) end,
        "linalg_cholesky: the matrix is not positive-definite: its leading minor 1 is not")
    t.error_has(function() tide.linalg.svdvals(tide.full({ 2, 2 }, 0 / 0)) end,
        "linalg_svdvals: the matrix holds inf or NaN")
    t.error_has(function() tide.linalg.det(tide.zeros(2, 3)) end,
        "linalg_det: A must hold square matrices, got shape (2, 3)")
    t.error_has(function() tide.linalg.qr(tide.zeros(3)) end, "linalg_qr: A must have at least 2 dims, got shape (3)")
    t.error_has(function() tide.linalg.qr(tide.zeros(3, 3), "full") end,
        'linalg_qr: mode must be "reduced" or "complete", got "full"')
end)

t.test("info_says_where_it_failed", function()
    local singular = tide.tensor({ { 1.0, 2 }, { 2, 4 } })
    local _, info = tide.linalg.inv_ex(tide.stack { tide.eye(2), singular })
    t.eq(info[1]:item(), 0)
    t.eq(info[2]:item(), 2)
    local _, minor = tide.linalg.cholesky_ex(tide.tensor({ { 1.0, 2 }, { 2, 1 } }))
    t.eq(minor:item(), 2)
end)

t.test("norms_of_matrices", function()
    local a = tide.tensor({ { 3, 0 }, { 4, 5 } }, { dtype = tide.float64 })
    local function norm(ord) return tide.linalg.matrix_norm(a, ord):item() end
    t.close(norm(), 50 ^ 0.5, 1e-12)
    t.close(norm "nuc", 4 * 5 ^ 0.5, 1e-12)
    t.close(norm(2), 45 ^ 0.5, 1e-12)
    t.close(norm(-2), 5 ^ 0.5, 1e-12)
    t.close(norm(1), 7, 1e-12)
    t.close(norm(-1), 5, 1e-12)
    t.close(norm(math.huge), 9, 1e-12)
    t.close(norm(-math.huge), 3, 1e-12)
    t.close(tide.linalg.norm(a):item(), 50 ^ 0.5, 1e-12)
    t.close(tide.linalg.norm(a, 1):item(), 7, 1e-12)
    t.close(tide.linalg.norm(a, 1, 2):tolist()[2], 9, 1e-12)
    t.close(tide.linalg.cond(a):item(), 3, 1e-12)
    t.close(tide.linalg.cond(a, 1):item(), 7 * 0.6, 1e-12)
    local many = tide.ones(3, 2, 4, { dtype = tide.float64 })
    t.eq(tostring(tide.linalg.matrix_norm(many, 2, { 1, 3 }).shape), "(2)")
    t.eq(tostring(tide.linalg.matrix_norm(many, "nuc", { 1, 3 }, true).shape), "(1, 2, 1)")
    t.eq(tostring(tide.linalg.matrix_norm(many, 1, { 3, 1 }, true).shape), "(1, 2, 1)")
    t.error_has(function() tide.linalg.matrix_norm(a, 3) end, "matrix_norm: ord must be")
    t.error_has(function() tide.linalg.matrix_norm(a, 2, { 1, 1 }) end, "matrix_norm: dim must be two dims, got 1 twice")
    t.error_has(function() tide.linalg.matrix_norm(a, 2, { 1, 3 }) end, "matrix_norm: dim 3 is out of range")
    t.error_has(function() tide.linalg.norm(many, 2) end, "norm: with ord and without dim")
end)

t.test("norms_have_gradients", function()
    local a = random(3, 2):requires_grad_(true)
    for _, ord in ipairs { "fro", "nuc", 1, 2, -2, math.huge } do
        t.is_true(tide.autograd.gradcheck(function(x) return tide.linalg.matrix_norm(x, ord) end, { a }), tostring(ord))
    end
end)

t.test("lstsq_is_least", function()
    local a, b = random(5, 2), random(5, 3)
    local x, residuals, rank, values = tide.linalg.lstsq(a, b, { driver = "gelsd" })
    near(a:transpose(1, 2):matmul(a:matmul(x) - b), tide.zeros(2, 3, { dtype = tide.float64 }), "the normal equations")
    near(residuals, (a:matmul(x) - b):square():sum(1), "what is left over")
    t.eq(rank:item(), 2)
    near(values, tide.linalg.svdvals(a), "singular values")
    local vector = tide.linalg.lstsq(a, b:select(2, 1))
    near(vector, x:select(2, 1), "a vector")
    t.error_has(function() tide.linalg.lstsq(a, b, { driver = "qr" }) end, 'lstsq: driver must be')
    a:requires_grad_(true)
    t.is_true(tide.autograd.gradcheck(function(y) return (tide.linalg.lstsq(y, b)) end, { a }))
end)

t.test("names_are_those_of_pytorch", function()
    for name in ("det slogdet inv solve cholesky qr svd eigh pinv matrix_rank"):gmatch("%S+") do
        t.eq(tide.linalg[name], tide["linalg_" .. name])
    end
end)

t.test("norms_of_matrices_without_elements", function()
    for _, size in ipairs { { 0, 3 }, { 3, 0 }, { 0, 0 }, { 2, 0, 3 } } do
        for _, ord in ipairs { 1, 2, math.huge, "fro", "nuc" } do
            local y = tide.linalg.matrix_norm(tide.zeros(size), ord)
            t.eq(y:sum():item(), 0.0, tostring(ord))
            t.eq(y.ndim, #size - 2)
            t.eq(tide.linalg.matrix_norm(tide.zeros(size), ord, { keepdim = true }).ndim, #size)
        end
        t.error_has(function() tide.linalg.matrix_norm(tide.zeros(size), -2) end, "matrix_norm: a matrix of shape")
    end
    for _, ord in ipairs { 1, 2, math.huge } do
        t.eq(tide.linalg.norm(tide.zeros(0, 3), ord):item(), 0.0)
    end
    t.error_has(function() tide.linalg.norm(tide.zeros(0, 3), -math.huge) end, "norm: a matrix of shape (0, 3) has no least")
    t.eq(tide.linalg.norm(tide.zeros(0, 3), -1):item(), 0.0)
    t.error_has(function() tide.linalg.norm(tide.zeros(3, 0), -1) end, "norm: a matrix of shape (3, 0) has no least")
end)
