-- Samples of the shape operators (see test_walk.lua for what `mk` makes).
local makers = ...
local on = makers.on
local function each(...)
    return { ... }
end

return {
    -- view asks for strides that fit: its operand is row-major whatever the layout under test
    view = each(
        function(mk) return { mk(2, 6):contiguous(), 3, 4 } end,
        function(mk) return { mk(4):contiguous(), { 2, -1 } } end,
        function(mk) return { mk():contiguous(), 1, 1 } end,
        function(mk) return { mk(0, 3):contiguous(), 3, 0 } end),
    reshape = each(on({ 2, 6 }, 3, 4), on({ 2, 3, 4 }, -1), on({}, 1), on({ 0, 3 }, 0, 5)),
    view_as = each(
        function(mk) return { mk(2, 6):contiguous(), mk.mask(3, 4) } end,
        function(mk) return { mk():contiguous(), mk.mask(1) } end,
        function(mk) return { mk(4):contiguous(), mk.mask(2, 2) } end),
    reshape_as = each(
        function(mk) return { mk(2, 6), mk.mask(3, 4) } end,
        function(mk) return { mk(), mk.mask(1, 1) } end,
        function(mk) return { mk(2, 2), mk.mask(4) } end),
    flatten = each(on { 2, 3, 4 }, on({ 2, 3, 4 }, 2), on({ 2, 3, 4 }, 1, 2), on {}),
    unflatten = each(
        function(mk) return { mk(2, 6):contiguous(), 2, { 2, 3 } } end,
        function(mk) return { mk(6):contiguous(), -1, { -1, 2 } } end,
        function(mk) return { mk(2, 1):contiguous(), 2, { 1, 1, 1 } } end),
    permute = each(on({ 2, 3, 4 }, 3, 1, 2), on({ 2, 3 }, { -1, 1 }), on({ 5 }, 1)),
    transpose = each(on({ 2, 3, 4 }, 1, 3), on({ 2, 3 }, -1, -2), on({ 4 }, 1, 1)),
    t = each(on { 2, 3 }, on { 4 }, on {}),
    movedim = each(on({ 2, 3, 4 }, 1, 3), on({ 2, 3, 4 }, { 1, 2 }, { 3, 1 }), on({ 5 }, 1, -1)),
    squeeze = each(on { 1, 3, 1 }, on({ 1, 3, 1 }, 1), on({ 2, 3 }, 1), on {}),
    unsqueeze = each(on({ 2, 3 }, 1), on({ 2, 3 }, -1), on({}, 1)),
    expand = each(on({ 1, 3 }, 4, 3), on({ 3 }, 2, -1), on({}, 2, 2)),
    expand_as = each(
        function(mk) return { mk(1, 3), mk.mask(4, 3) } end,
        function(mk) return { mk(), mk.mask(2) } end,
        function(mk) return { mk(3), mk.mask(2, 3) } end),
    broadcast_to = each(on({ 1, 3 }, 4, 3), on({ 3 }, { 2, 3 }), on({}, 1, 1)),
    select = each(on({ 2, 3 }, 1, 2), on({ 2, 3 }, -1, -1), on({ 4 }, 1, 3)),
    slice = each(on({ 5, 3 }, 1, 2, 4), on({ 5 }, 1, nil, nil, 2), on({ 2, 4 }, -1, -3, -1), on({ 4 }, 1, 4, 2)),
    narrow = each(on({ 5, 3 }, 1, 2, 3), on({ 5 }, -1, -2, 2), on({ 4 }, 1, 1, 0)),
    as_strided = each(
        function(mk) local x = mk(12):contiguous() return { x, { 3, 2 }, { 4, 1 }, x:storage_offset() + 1 } end,
        function(mk) return { mk(6):contiguous(), { 4, 3 }, { 1, 1 } } end,
        function(mk) local x = mk(4):contiguous() return { x, { 3 }, { 0 }, x:storage_offset() + 2 } end),
    tril = each(on { 3, 3 }, on({ 2, 3, 4 }, 1), on({ 3, 2 }, -1), on({ 0, 3 }, 0)),
    triu = each(on { 3, 3 }, on({ 2, 3, 4 }, 1), on({ 3, 2 }, -5), on({ 2, 3 }, 7)),
    ravel = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk() } end,
        function(mk) return { mk(0, 3) } end,
    },
}
