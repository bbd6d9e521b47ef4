-- Samples of the decompositions (see test_walk.lua for what `mk` makes). Matrices are far from singular:
-- mk.spd(...) has eigenvalues from about 1 on.
local function square(mk) return { mk.spd(3, 3) } end
local function one(mk) return { mk.spd(1, 1) } end
local function batch(mk) return { mk.spd(2, 2, 3, 3) } end
local function empty(mk) return { mk(2, 0, 0) } end
local squares = { square, one, batch, empty }

local function upper(mk) return { mk.spd(3, 3), { upper = true } } end

return {
    linalg_det = squares,
    det = squares,
    linalg_slogdet = squares,
    slogdet = squares,
    logdet = squares,
    linalg_inv = squares,
    linalg_inv_ex = squares,
    inverse = squares,
    linalg_solve = {
        function(mk) return { mk.spd(3, 3), mk(3, 2) } end,
        function(mk) return { mk.spd(3, 3), mk(3) } end,
        function(mk) return { mk.spd(2, 3, 3), mk(2, 3) } end,
        function(mk) return { mk.spd(3, 3), mk(2, 3, 2) } end,
        function(mk) return { mk.spd(2, 3, 3), mk(4, 3), { left = false } } end,
        function(mk) return { mk.spd(2, 0, 0), mk(2, 0, 3) } end,
    },
    linalg_solve_triangular = {
        function(mk) return { mk.spd(3, 3), mk(3, 2), { upper = true } } end,
        function(mk) return { mk.spd(2, 3, 3), mk(3, 2), { upper = false } } end,
        function(mk) return { mk.spd(3, 3), mk(2, 3), { upper = true, left = false } } end,
        function(mk) return { mk.spd(3, 3), mk(3, 1), { upper = false, unitriangular = true } } end,
    },
    linalg_cholesky = { square, one, batch, upper },
    linalg_cholesky_ex = { square, one, batch, upper },
    cholesky_inverse = { square, one, batch, upper },
    cholesky_solve = {
        function(mk) return { mk(3, 2), mk.spd(3, 3) } end,
        function(mk) return { mk(2, 3, 1), mk.spd(3, 3) } end,
        function(mk) return { mk(3, 2), mk.spd(3, 3), { upper = true } } end,
    },
    linalg_qr = {
        function(mk) return { mk.spd(3, 3) } end,
        function(mk) return { mk.tall(4, 2) } end,
        function(mk) return { mk.tall(2, 4) } end,
        function(mk) return { mk.tall(2, 2, 4), { mode = "complete" } } end,
    },
    linalg_svd = {
        function(mk) return { mk.tall(3, 3) } end,
        function(mk) return { mk.tall(4, 2), false } end,
        function(mk) return { mk.tall(2, 4), { full_matrices = false } } end,
        function(mk) return { mk.tall(2, 2, 3), false } end,
    },
    linalg_svdvals = {
        function(mk) return { mk.tall(3, 3) } end,
        function(mk) return { mk.tall(4, 2) } end,
        function(mk) return { mk.tall(2, 2, 4) } end,
    },
    linalg_eigh = {
        function(mk) return { mk.tall(3, 3) } end,
        function(mk) return { mk.tall(2, 2, 2), "U" } end,
        function(mk) return { mk.tall(1, 1) } end,
    },
    linalg_eigvalsh = {
        function(mk) return { mk.tall(3, 3) } end,
        function(mk) return { mk.tall(2, 2, 2), "U" } end,
        function(mk) return { mk.tall(1, 1) } end,
    },
    linalg_pinv = {
        function(mk) return { mk.tall(4, 2) } end,
        function(mk) return { mk.tall(2, 4) } end,
        function(mk) return { mk.tall(2, 3, 3), { rtol = 1e-6 } } end,
        function(mk) return { mk(0, 3) } end,
    },
    pinverse = {
        function(mk) return { mk.tall(4, 2) } end,
        function(mk) return { mk.tall(2, 4) } end,
        function(mk) return { mk.tall(2, 3, 3), 1e-6 } end,
    },
    linalg_matrix_rank = {
        function(mk) return { mk.tall(4, 2) } end,
        function(mk) return { mk.tall(2, 3, 3) } end,
        function(mk) return { mk.tall(3, 3), { atol = 0.1 } } end,
    },
}
