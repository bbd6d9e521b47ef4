-- test_factor.lua: decompositions and what they solve on the device against the CPU.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("factor", "no CUDA device")
    return
end

tide.manual_seed(5)
local la = tide.linalg

-- Batches of matrices as they may lie.
local function forms(x)
    local wide = tide.zeros(x:size(1), x:size(2) + 2, 2 * x:size(3) + 1, { dtype = x.dtype })
    local part = wide:as_strided(x.shape, { wide:stride(1), wide:stride(2), 2 }, 1)
    part:copy_(x)
    return { x, x.mT:contiguous().mT, part, x:select(1, 1), x:select(1, 1):expand(3, x:size(2), x:size(3)) }
end

local function tolerance(dtype)
    return dtype == "float64" and 1e-11 or 2e-5
end

local function each(sizes, fn)
    both.reset()
    for _, dtype in ipairs { "float32", "float64" } do
        for _, n in ipairs(sizes) do
            fn(dtype, n, tolerance(dtype))
        end
    end
    if both.launches("") then
        t.is_true(both.launches("td_factor") > 0, "kernels ran")
    end
end

local function definite(x)
    return x:matmul(x.mT) + tide.eye(x:size(-2), { dtype = x.dtype })
end

t.test("cholesky", function()
    each({ 1, 2, 5, 33 }, function(dtype, n, tol)
        for _, x in ipairs(forms(definite(tide.randn(3, n, n, { dtype = dtype })))) do
            both.close(tol, function(x) return la.cholesky(x) end, x)
            both.close(tol, function(x) return la.cholesky(x, { upper = true }) end, x)
        end
    end)
end)

t.test("solutions_inverses_and_determinants", function()
    each({ 1, 2, 5, 33 }, function(dtype, n, tol)
        local b = tide.randn(3, n, 4, { dtype = dtype })
        for _, x in ipairs(forms(tide.randn(3, n, n, { dtype = dtype }) + 3 * tide.eye(n, { dtype = dtype }))) do
            both.close(tol, function(x) return la.inv(x) end, x)
            both.close(tol, function(x) return la.det(x) end, x)
            both.close(tol, function(x) return la.slogdet(x) end, x)
            both.close(tol, function(x, b) return la.solve(x, b) end, x, x:dim() == 2 and b:select(1, 2) or b)
        end
    end)
    both.close(1e-5, function(x) return la.det(x) end, tide.ones(3, 3))
end)

t.test("triangles", function()
    each({ 1, 9 }, function(dtype, n, tol)
        local b = tide.randn(3, n, 4, { dtype = dtype })
        for _, x in ipairs(forms(tide.randn(3, n, n, { dtype = dtype }) / n + 3 * tide.eye(n, { dtype = dtype }))) do
            for _, upper in ipairs { true, false } do
                for _, unit in ipairs { true, false } do
                    both.close(tol, function(x, b)
                        return la.solve_triangular(x, b, { upper = upper, unitriangular = unit })
                    end, x, x:dim() == 2 and b:select(1, 2) or b)
                end
            end
        end
    end)
end)

t.test("a_triangle_beyond_a_block", function()
    local x = tide.randn(300, 300, { dtype = "float64" }) / 300 + 3 * tide.eye(300, { dtype = "float64" })
    both.close(1e-11, function(x, b) return la.solve_triangular(x, b, { upper = true }) end, x, tide.randn(300, 2, { dtype = "float64" }))
end)

t.test("many_small_ones_need_no_library", function()
    both.reset()
    local x = definite(tide.randn(20, 40, 40, { dtype = "float64" }))
    both.close(1e-11, function(x) return la.cholesky(x), la.inv(x), la.det(x) end, x)
    if both.launches("") then
        t.eq(both.launches("cusolverDn"), 0)
    end
    both.close(1e-11, function(x) return la.cholesky(x), la.inv(x), la.det(x) end, x:narrow(1, 1, 2))
    if both.launches("") then
        t.is_true(both.launches("cusolverDn") > 0, "the library did few larger ones")
    end
    local exchanged = tide.tensor({ { 0.0, 2, 0 }, { 0, 0, 3 }, { 4, 0, 0 } })
    both.close(1e-6, function(x) return la.inv(x), la.det(x) end, exchanged)
end)

-- Factors are unique up to signs: what they come to, and whether they are orthogonal, is compared.
local function near(a, b, tol, what)
    local most = math.max(1, b:numel() > 0 and b:abs():max():item() or 0)
    t.is_true(tide.allclose(a, b, { rtol = tol, atol = tol * most }), what)
end

t.test("qr", function()
    each({ 1, 4, 9 }, function(dtype, n, tol)
        for _, m in ipairs { 1, 4, 9 } do
            for _, x in ipairs(forms(tide.randn(2, m, n, { dtype = dtype }))) do
                for _, mode in ipairs { "reduced", "complete" } do
                    both.close(tol, function(x)
                        local _, r = la.qr(x, { mode = mode })
                        return r:abs()
                    end, x)
                end
                for _, mode in ipairs { "reduced", "complete" } do
                    local q, r = la.qr(x:to("cuda"), { mode = mode })
                    near(q:matmul(r):cpu(), x:contiguous(), tol, "q r")
                    near(q.mT:matmul(q):cpu(), tide.eye(q:size(-1), { dtype = dtype }):expand(q.mT:matmul(q).shape), tol, "q")
                end
            end
        end
    end)
end)

t.test("singular_values", function()
    each({ 1, 4, 9 }, function(dtype, n, tol)
        for _, m in ipairs { 1, 4, 9 } do
            for _, x in ipairs(forms(tide.randn(2, m, n, { dtype = dtype }))) do
                both.close(tol, function(x) return la.svdvals(x) end, x)
                for _, full in ipairs { true, false } do
                    both.close(tol, function(x)
                        local _, s = la.svd(x, { full_matrices = full })
                        return s
                    end, x)
                    local u, s, vh = la.svd(x:to("cuda"), { full_matrices = full })
                    t.eq(u.shape, la.svd(x, { full_matrices = full }).shape)
                    local k = math.min(m, n)
                    near((u:narrow(-1, 1, k) * s:unsqueeze(-2)):matmul(vh:narrow(-2, 1, k)):cpu(), x:contiguous(), tol, "u s vh")
                    near(u.mT:matmul(u):cpu(), tide.eye(u:size(-1), { dtype = dtype }):expand(u.mT:matmul(u).shape), tol, "u")
                    near(vh:matmul(vh.mT):cpu(), tide.eye(vh:size(-2), { dtype = dtype }):expand(vh:matmul(vh.mT).shape), tol, "vh")
                end
            end
        end
    end)
end)

t.test("eigenvalues", function()
    each({ 1, 2, 9 }, function(dtype, n, tol)
        local x = tide.randn(3, n, n, { dtype = dtype })
        for _, x in ipairs(forms(x + x.mT)) do
            for _, uplo in ipairs { "L", "U" } do
                both.close(tol, function(x) return la.eigvalsh(x, { UPLO = uplo }) end, x)
                local values, vectors = la.eigh(x:to("cuda"), { UPLO = uplo })
                near((vectors * values:unsqueeze(-2)):matmul(vectors.mT):cpu(), x:contiguous(), tol, "v d v'")
            end
        end
    end)
end)

t.test("gradients_of_determinants", function()
    for _, x in ipairs { tide.randn(3, 4, 4, { dtype = "float64" }), tide.ones(2, 2, { dtype = "float64" }),
        tide.zeros(1, 1, { dtype = "float64" }) } do
        both.close(1e-10, function(x)
            local leaf = x:detach():clone():requires_grad_()
            la.det(leaf):sum():backward()
            return leaf.grad
        end, x)
    end
end)

t.test("nothing_to_decompose", function()
    both.close(0, function(x) return la.det(x), la.inv(x) end, tide.zeros(2, 0, 0))
    both.close(0, function(x) return la.cholesky(x) end, tide.zeros(0, 3, 3))
    both.close(0, function(x) return la.svd(x) end, tide.zeros(2, 3, 0))
end)

local function message(fn, x)
    local fine, what = pcall(function() return fn(x):cpu() end)
    t.eq(fine, false)
    return tostring(what):gsub("^.-: ", "")
end

t.test("refusals_are_the_cpus", function()
    local singular, indefinite = tide.ones(2, 2), -tide.eye(3)
    local some = tide.stack { tide.eye(2), singular, singular }
    for _, case in ipairs {
        { la.inv, singular }, { la.inv, some }, { la.cholesky, indefinite },
        { la.cholesky, tide.stack { tide.eye(3), indefinite } },
        { la.svdvals, tide.tensor { { 1.0, 0 / 0 }, { 2, 3 } } },
        { la.eigvalsh, tide.stack { tide.eye(2), tide.full({ 2, 2 }, 1 / 0) } },
    } do
        local fn, x = case[1], case[2]
        local here, there = message(fn, x), message(fn, x:to("cuda"))
        local tail = here:match("[^:]*matri.*")
        t.is_true(tail ~= nil and there:find(tail, 1, true) ~= nil, there .. " for " .. here)
    end
end)

t.test("what_failed_is_told_by_number", function()
    local singular = tide.ones(2, 2)
    both.close(0, function(x)
        local _, info = la.inv_ex(x)
        return info
    end, tide.stack { tide.eye(2), singular })
    both.close(0, function(x)
        local _, info = la.cholesky_ex(x)
        return info
    end, tide.stack { tide.eye(2), -tide.eye(2) })
end)
