-- linalg.lua: tide.linalg: the operators whose names begin with linalg_, under PyTorch's names, and what is
-- made of them: norms by words and numbers, condition numbers, least squares.
local tide = ...
local fail, declare = tide._fail, tide._function
local linalg = {}

for name, value in pairs(tide) do
    local short = type(name) == "string" and string.match(name, "^linalg_(.+)$")
    if short then
        linalg[short] = value
    end
end

-- A result, or where out= is given that tensor with the result in it: of the result's dtype alone where that is
-- `exact`, else of any that takes it.
local function deliver(fname, exact, out, result)
    return out and tide._deliver(fname, exact, out, result) or result
end

-- ---- norms ----

-- A dim counted from the front.
local function place(fname, x, dim)
    local d = dim < 0 and dim + x.ndim + 1 or dim
    if math.type(d) ~= "integer" or d < 1 or d > x.ndim then
        fail("%s: dim %s is out of range for shape %s: it has %d dims", fname, tide._number(dim), tostring(x.shape), x.ndim)
    end
    return d
end

local function two_places(fname, A, dim)
    if A.ndim < 2 then
        fail("%s: A must have at least 2 dims, got shape %s", fname, tostring(A.shape))
    elseif type(dim) ~= "table" or #dim ~= 2 then
        fail("%s: dim must be two dims, got %s", fname, tide._describe(dim))
    end
    local rows, columns = place(fname, A, dim[1]), place(fname, A, dim[2])
    if rows == columns then
        fail("%s: dim must be two dims, got %d twice", fname, rows)
    end
    return rows, columns
end

-- Singular values of the matrices in two dims, along the last dim.
local function values_of(A, rows, columns)
    return linalg.svdvals(A:movedim({ rows, columns }, { -2, -1 }))
end

local function with_dims(y, rows, columns)
    return y:unsqueeze(math.min(rows, columns)):unsqueeze(math.max(rows, columns))
end

local by_values = {
    nuc = function(s) return s:sum(-1) end,
    [2] = function(s) return s:size(-1) == 0 and s:sum(-1) or s:amax(-1) end,
    [-2] = function(s) return s:amin(-1) end,
}
-- The sums of magnitudes over one dim, of which the largest or the smallest counts.
local by_sums = {
    [1] = { "amax", true }, [-1] = { "amin", true }, [math.huge] = { "amax", false }, [-math.huge] = { "amin", false },
}

local function norm_of_matrices(fname, A, ord, dim, keepdim)
    local rows, columns = two_places(fname, A, dim or { -2, -1 })
    local empty = A:size(ord == 1 and columns or rows) == 0
    if ord == -2 and (empty or A:size(columns) == 0) or ord == -1 and A:size(columns) == 0
        or ord == -math.huge and A:size(rows) == 0 then
        fail("%s: a matrix of shape %s has no least of ord %s", fname, tostring(A.shape), tide._number(ord))
    elseif ord == "fro" then
        return A:norm(2, { rows, columns }, { keepdim = keepdim })
    elseif by_values[ord] then
        local y = by_values[ord](values_of(A, rows, columns))
        return keepdim and with_dims(y, rows, columns) or y
    elseif by_sums[ord] then
        local extreme, over_rows = table.unpack(by_sums[ord])
        local first, second = columns, rows
        if over_rows then
            first, second = rows, columns
        end
        local y = A:abs():sum(first, { keepdim = true })
        y = y[empty and "sum" or extreme](y, second, { keepdim = true }) -- the largest of nothing is 0
        return keepdim and y or y:squeeze { rows, columns }
    end
    fail('%s: ord must be "fro", "nuc", 1, 2, math.huge or one of these with a minus, got %s', fname, tide._describe(ord))
end

linalg.matrix_norm = declare("matrix_norm(Tensor A, number|\"fro\"|\"nuc\" ord=\"fro\", dim[]? dim=nil, bool keepdim=false, *, "
    .. "dtype? dtype=nil, Tensor? out=nil) -> Tensor",
    "Norm of matrices: \"fro\", \"nuc\", 1, 2, math.huge, -1, -2, -math.huge; dim: the two dims (the last).",
    function(A, ord, dim, keepdim, dtype, out)
        local y = norm_of_matrices("matrix_norm", dtype and A:to(dtype) or A, ord, dim, keepdim)
        return deliver("matrix_norm", true, out, y)
    end, "A (...) -> (...) without dims; dims = {-2, -1} if dim == nil else dim")

linalg.vector_norm = declare("vector_norm(Tensor x, number ord=2, dim[]? dim=nil, bool keepdim=false, *, "
    .. "dtype? dtype=nil, Tensor? out=nil) -> Tensor",
    "p-norm of all elements, or over the given dims.",
    function(x, ord, dim, keepdim, dtype, out)
        local y = tide.norm(dtype and x:to(dtype) or x, ord, dim, { keepdim = keepdim })
        return deliver("vector_norm", true, out, y)
    end, "x (...) -> (...) without dim")

local function norm_of(A, ord, dim, keepdim)
    local matrix = type(ord) == "string" or ord ~= nil and (dim == nil and A.ndim == 2 or type(dim) == "table" and #dim == 2)
    if matrix then
        return norm_of_matrices("norm", A, ord, dim or { 1, 2 }, keepdim)
    elseif ord ~= nil and dim == nil and A.ndim ~= 1 then
        fail("norm: with ord and without dim A must have 1 or 2 dims, got shape %s", tostring(A.shape))
    elseif type(dim) == "table" and (#dim < 1 or #dim > 2) then
        fail("norm: dim must be one dim or two, got %d", #dim)
    end
    return tide.norm(A, ord or 2, dim, { keepdim = keepdim })
end

linalg.norm = declare("norm(Tensor A, number|\"fro\"|\"nuc\"? ord=nil, dim[]? dim=nil, bool keepdim=false, *, "
    .. "dtype? dtype=nil, Tensor? out=nil) -> Tensor",
    "Norm of vectors (one dim, or no ord) or of matrices (two dims, or a matrix with an ord).",
    function(A, ord, dim, keepdim, dtype, out)
        return deliver("norm", true, out, norm_of(dtype and A:to(dtype) or A, ord, dim, keepdim))
    end, "A (...) -> (...) without dim")

local function cond_of(A, p)
    if p == nil or p == 2 or p == -2 then
        local s = values_of(A, two_places("cond", A, { -2, -1 }))
        local large, small = s:select(-1, 1), s:select(-1, -1)
        return p == -2 and small / large or large / small
    end
    local inverse, info = linalg.inv_ex(A)
    local y = norm_of_matrices("cond", A, p, nil, false) * norm_of_matrices("cond", inverse, p, nil, false)
    return y:masked_fill(info:ne(0), math.huge)
end

linalg.cond = declare("cond(Tensor A, number|\"fro\"|\"nuc\"? p=nil, *, Tensor? out=nil) -> Tensor",
    "Condition number: the product of the norms (2 by default) of a matrix and its inverse.",
    function(A, p, out)
        return deliver("cond", false, out, cond_of(A, p))
    end, "A (..., n, m) -> (...)")

-- ---- least squares ----

local DRIVERS = { gels = true, gelsy = true, gelsd = true, gelss = true }

-- Sums of squares of what is left over, where that has a meaning: more equations than unknowns, of full rank.
local function residuals_of(A, B, solution, rank, driver)
    local m, n = A.shape[-2], A.shape[-1]
    if driver == "gelsy" or m <= n or rank:numel() > 0 and not rank:eq(n):all():item() then
        return solution:flatten():narrow(1, 1, 0):clone()
    end
    return (A:matmul(solution) - B):square():sum(-2)
end

linalg.lstsq = declare("lstsq(Tensor A, Tensor B, number? rcond=nil, *, str? driver=nil, table? out=nil) -> "
    .. "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    "x that makes A x - B least, by the pseudoinverse; driver as LAPACK calls them: \"gelsy\", \"gels\", \"gelsd\", \"gelss\".",
    function(A, B, rcond, driver, out)
        driver = driver or "gelsy"
        if not DRIVERS[driver] then
            fail('lstsq: driver must be "gels", "gelsy", "gelsd" or "gelss", got "%s"', driver)
        end
        local vectors = B.ndim == 1 or B.ndim == A.ndim - 1
        local b = vectors and B:unsqueeze(-1) or B
        local solution = b.mT:matmul(linalg.pinv(A, { rtol = rcond }).mT).mT -- it lies as columns
        local rank = linalg.matrix_rank(A:detach(), { rtol = rcond })
        local residuals = residuals_of(A, b, solution, rank, driver)
        local values = (driver == "gelsd" or driver == "gelss") and linalg.svdvals(A:detach())
            or tide.empty(0, { dtype = A.dtype })
        rank = driver ~= "gels" and rank or tide.empty(0, { dtype = tide.int64 })
        solution = vectors and solution:squeeze(-1) or solution
        if out then
            return tide._deliver("lstsq", false, out, solution, residuals, rank, values)
        end
        return solution, residuals, rank, values
    end, "A (..., n, m), B (..., n) -> (..., m), (left...), (rank...), (values...) | A (*, n, m), B (*, n, k) -> (*, m, k), "
    .. "(left...), (rank...), (values...); left: one for each column of B, where n > m, A has full rank and the driver is not "
    .. "gelsy, else (0); rank: one for each A, with gels (0); values: min(n, m) for each A with gelsd and gelss, else (0)")

-- ---- tensors as matrices ----

local function product(sizes, first, last)
    local n = 1
    for k = first, last do
        n = n * sizes[k]
    end
    return n
end

local function joined(a, b)
    local all = {}
    for _, list in ipairs { a, b } do
        table.move(list, 1, #list, #all + 1, all)
    end
    return all
end

linalg.tensorinv = declare("tensorinv(Tensor A, int(1..) ind=2, *, Tensor? out=nil) -> Tensor",
    "The inverse of A as a matrix, whose rows are its first `ind` dims: tensordot(inverse, A, ind) changes nothing.",
    function(A, ind, out)
        local shape = A:size()
        local rows, columns = product(shape, 1, math.min(ind, #shape)), product(shape, ind + 1, #shape)
        if ind >= #shape or rows ~= columns then
            fail("tensorinv: A of shape %s is no square matrix behind %d dims", tostring(A.shape), ind)
        end
        local sizes = joined({ table.unpack(shape, ind + 1) }, { table.unpack(shape, 1, ind) })
        return deliver("tensorinv", true, out, linalg.inv(A:reshape(rows, columns)):reshape(sizes))
    end, "A (sizes...) -> (inverse...); sizes: as many elements in the first ind dims as behind; inverse: sizes behind ind, "
    .. "then the first")

linalg.tensorsolve = declare("tensorsolve(Tensor A, Tensor B, dim[]? dims=nil, *, Tensor? out=nil) -> Tensor",
    "X with tensordot(A, X, X.ndim) = B; dims of A that are moved to its end first.",
    function(A, B, dims, out)
        if dims then
            dims = type(dims) == "table" and dims or { dims }
            local ends = {}
            for k = 1, #dims do
                ends[k] = k - #dims - 1
            end
            A = A:movedim(dims, ends)
        end
        local shape = A:size()
        local sizes = { table.unpack(shape, B.ndim + 1) }
        if product(sizes, 1, #sizes) ~= B:numel() or product(shape, 1, #shape) ~= B:numel() ^ 2 then
            fail("tensorsolve: shapes %s and %s don't fit", tostring(A.shape), tostring(B.shape))
        end
        return deliver("tensorsolve", true, out, linalg.solve(A:reshape(B:numel(), B:numel()), B:flatten()):reshape(sizes))
    end, "A (sizes...), B (rows...) -> (columns...); rows: the first dims of A; columns: the others")

tide._document(linalg, "linalg", "tide.linalg", "Matrices: decompositions, systems of equations, norms, powers.")

return linalg
