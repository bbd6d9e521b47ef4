-- Samples of small products and distances (see test_walk.lua for what `mk` makes).
local makers = ...
local list = makers.list
local function two(...)
    local arguments = table.pack(...)
    return function(mk)
        return { mk(table.unpack(arguments[1])), mk(table.unpack(arguments[2])),
            table.unpack(arguments, 3, arguments.n) }
    end
end
local vectors = { two({ 3 }, { 3 }), two({ 1 }, { 1 }), two({ 0 }, { 0 }) }
local powers = {
    function(mk) return { mk(3, 3), 3 } end,
    function(mk) return { mk(2, 2, 2), 6 } end,
    function(mk) return { mk(2, 2), 0 } end,
    function(mk) return { mk(2, 2), 1 } end,
}

return {
    inner = { two({ 2, 3 }, { 4, 3 }), two({ 3 }, { 3 }), two({ 2 }, {}) },
    vdot = vectors,
    linalg_vecdot = { two({ 2, 3 }, { 3 }), two({ 3, 2 }, { 3, 1 }, { dim = 1 }), two({ 2 }, { 2 }) },
    addr = {
        function(mk) return { mk(2, 3), mk(2), mk(3) } end,
        function(mk) return { mk(3), mk(2), mk(3), { beta = 0.5, alpha = 2 } } end,
        function(mk) return { mk(2, 2), mk(2), mk(2), { beta = 0 } } end,
    },
    addbmm = {
        function(mk) return { mk(2, 3), mk(2, 2, 4), mk(2, 4, 3) } end,
        function(mk) return { mk(3), mk(2, 2, 4), mk(2, 4, 3), { beta = 0.5, alpha = 2 } } end,
        function(mk) return { mk(2, 2), mk(1, 2, 2), mk(1, 2, 2), { beta = 0 } } end,
    },
    kron = { two({ 2, 3 }, { 2, 1 }), two({ 2 }, { 2, 2 }), two({}, { 3 }), two({ 0, 2 }, { 2, 2 }) },
    linalg_cross = { two({ 2, 3 }, { 2, 3 }), two({ 3, 1 }, { 3, 4 }, { dim = 1 }), two({ 3 }, { 3 }) },
    cross = { two({ 2, 3 }, { 2, 3 }), two({ 3, 2 }, { 3, 2 }), two({ 3, 3 }, { 3, 3 }, 2) },
    linalg_multi_dot = {
        list({ 2, 3 }, { 3, 4 }, { 4, 2 }), list({ 3 }, { 3, 2 }, { 2 }), list({ 2, 3 }, { 3 }),
        list({ 2, 5 }, { 5, 1 }, { 1, 4 }, { 4, 3 }),
    },
    chain_matmul = { list({ 2, 3 }, { 3, 4 }), list({ 2, 3 }, { 3, 1 }, { 1, 2 }), list { 2, 2 } },
    matrix_power = powers,
    linalg_matrix_power = powers,
    cdist = {
        two({ 2, 3 }, { 4, 3 }), two({ 2, 3, 2 }, { 2, 2, 2 }, 1), two({ 3, 2 }, { 2, 2 }, 3.5),
        two({ 3, 2 }, { 2, 2 }, math.huge), two({ 2, 2 }, { 3, 2 }, 0),
        two({ 3, 2 }, { 27, 2 }), two({ 2, 0 }, { 3, 0 }), two({ 0, 2 }, { 3, 2 }),
    },
}
