-- Samples of diagonals, windows and turns (see test_walk.lua for what `mk` makes).
local makers = ...
local on = makers.on

return {
    diagonal = { on { 3, 4 }, on({ 2, 3, 4 }, 1, 3, 2), on({ 3, 3 }, -2), on({ 2, 2 }, 5) },
    diag = { on { 3 }, on({ 3, 4 }, 1), on({ 2 }, -1), on({ 0 }, 1) },
    diag_embed = { on { 3 }, on({ 2, 3 }, 1), on({ 2, 3 }, -1, 1, 3), on { 0 } },
    diagflat = { on { 3 }, on({ 2, 2 }, 1), on({}, -1) },
    trace = { on { 3, 3 }, on { 2, 4 }, on { 0, 3 } },
    diagonal_scatter = {
        function(mk) return { mk(3, 4), mk(3) } end,
        function(mk) return { mk(2, 3, 3), mk(2, 2), 1, 2, 3 } end,
        function(mk) return { mk(2, 2), mk(0), 4 } end,
    },
    select_scatter = {
        function(mk) return { mk(3, 4), mk(4), 1, 2 } end,
        function(mk) return { mk(2, 3), mk(2), -1, -1 } end,
        function(mk) return { mk(4), mk(), 1, 3 } end,
    },
    slice_scatter = {
        function(mk) return { mk(5, 3), mk(3, 3), 1, 2, 4 } end,
        function(mk) return { n = 6, mk(5), mk(3), 1, nil, nil, 2 } end,
        function(mk) return { mk(2, 4), mk(2, 0), 2, 3, 2 } end,
    },
    fill_diagonal_ = {
        on({ 3, 4 }, 2.5),
        on({ 7, 2 }, 1, true),
        on({ 2, 2, 2 }, 0),
    },
    unfold = { on({ 7 }, 1, 3, 2), on({ 2, 5 }, -1, 2, 1), on({ 4, 2 }, 1, 4, 3), on({}, 1, 1, 1) },
    tril_indices = {
        function() return { 3, 4 } end,
        function() return { 2, 3, 1 } end,
        function() return { 0, 2 } end,
    },
    triu_indices = {
        function() return { 3, 4 } end,
        function() return { 3, 2, -1 } end,
        function() return { 2, 2, 5 } end,
    },
    rot90 = { on { 2, 3 }, on({ 2, 3, 2 }, 3, { 1, 3 }), on({ 2, 2 }, 2), on({ 2, 2 }, 4) },
    fliplr = { on { 2, 3 }, on { 2, 2, 2 }, on { 0, 2 } },
    flipud = { on { 2, 3 }, on { 4 }, on { 0, 2 } },
}
