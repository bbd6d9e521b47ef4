-- Samples of functions of matrices (see test_walk.lua for what `mk` makes).
local squares = {
    function(mk) return { mk(2, 2) } end,
    function(mk) return { mk(2, 3, 3) * 3 } end,
    function(mk) return { mk(1, 1) } end,
    function(mk) return { mk(0, 2, 2) } end,
}
return {
    matrix_exp = squares,
    linalg_matrix_exp = squares,
    linalg_diagonal = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(2, 3, 2), { offset = 1, dim1 = 1, dim2 = 2 } } end,
        function(mk) return { mk(2, 2), { offset = -1 } } end,
    },
    linalg_vander = {
        function(mk) return { mk(3) } end,
        function(mk) return { mk(2, 2), { N = 3 } } end,
        function(mk) return { mk(4), { N = 2 } } end,
        function(mk) return { mk(0, 2) } end,
    },
}
