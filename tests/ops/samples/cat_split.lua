-- Samples of cutting, joining, repeating and turning (see test_walk.lua for what `mk` makes).
local makers = ...
local on = makers.on
local function each(...)
    return { ... }
end

return {
    unbind = each(on { 2, 3 }, on({ 2, 3 }, 2), on { 4 }),
    chunk = each(on({ 5, 2 }, 2), on({ 2, 6 }, 3, 2), on({ 3 }, 5)),
    split = each(on({ 5, 2 }, 2), on({ 2, 6 }, { 1, 2, 3 }, 2), on({ 3 }, { 0, 3 })),
    cat = each(
        function(mk) return { { mk(2, 3), mk(1, 3) } } end,
        function(mk) return { { mk(2, 3), mk(2, 1), mk(2, 2) }, 2 } end,
        function(mk) return { { mk(0), mk(3), mk(2) }, -1 } end),
    split_with_sizes = each(on({ 5 }, { 2, 3 }), on({ 2, 3 }, { 1, 0, 2 }, 2), on({ 3 }, { 3 }), on({ 0 }, { 0 })),
    stack = each(
        function(mk) return { { mk(2, 3), mk(2, 3) } } end,
        function(mk) return { { mk(2, 3), mk(2, 3), mk(2, 3) }, 2 } end,
        function(mk) return { { mk(), mk() }, -1 } end),
    tile = each(on({ 2, 3 }, 2, 2), on({ 3 }, 2, 1, 2), on({ 2, 2 }, 0), on({}, 3)),
    flip = each(on({ 2, 3 }, 1), on({ 2, 3, 2 }, { 1, -1 }), on({ 4 }, 1), on({ 0, 2 }, 1)),
    roll = each(on({ 5 }, 2), on({ 2, 3 }, 1), on({ 2, 3 }, { 1, -1 }, { 1, 2 }), on({ 0 }, 1)),
}
