-- Samples of what repeats, joins and cuts tensors (see test_walk.lua for what `mk` makes).
local makers = ...
local on, list = makers.on, makers.list

return {
    ["repeat"] = { on({ 2, 3 }, 2, 2), on({ 3 }, 2, 1, 2), on({}, 3), on({ 2, 1 }, 0, 2) },
    rep = { on({ 2, 3 }, 2, 2), on({ 3 }, 4), on({ 2 }, 1, 1) },
    repeat_interleave = {
        on({ 2, 3 }, 2),
        on({ 2, 3 }, 3, 1),
        function(mk) return { mk(3, 2), tide.tensor { 2, 0, 1 }, 1 } end,
        function(mk) return { mk(2, 2), tide.tensor { 2 }, -1 } end,
    },
    atleast_1d = { on {}, on { 3 }, on { 2, 2 } },
    atleast_2d = { on {}, on { 3 }, on { 2, 2 } },
    atleast_3d = { on {}, on { 3 }, on { 2, 2 }, on { 1, 2, 1 } },
    hstack = { list({ 2, 3 }, { 2, 1 }), list({ 2 }, { 3 }), list({}, { 2 }) },
    vstack = { list({ 2, 3 }, { 1, 3 }), list({ 2 }, { 2 }), list({}, {}) },
    row_stack = { list({ 2, 3 }, { 1, 3 }), list({ 2 }, { 2 }), list({ 0 }, { 0 }) },
    dstack = { list({ 2, 3 }, { 2, 3 }), list({ 2 }, { 2 }), list({}, {}) },
    column_stack = { list({ 2 }, { 2, 3 }), list({ 3 }, { 3 }), list({}, {}) },
    block_diag = { list({ 2, 3 }, { 1, 2 }), list({ 2 }, {}, { 2, 0 }), list({ 1, 1 }) },
    tensor_split = { on({ 7 }, 3), on({ 7, 2 }, { 1, 4 }), on({ 2, 5 }, 2, -1) },
    hsplit = { on({ 4 }, 2), on({ 2, 4 }, 2), on({ 2, 5 }, { 1, 3 }) },
    vsplit = { on({ 4, 2 }, 2), on({ 3, 2 }, { 1 }), on({ 2, 0 }, 1) },
    dsplit = { on({ 2, 2, 4 }, 2), on({ 2, 1, 3 }, { 2 }), on({ 1, 1, 2 }, 1) },
}
