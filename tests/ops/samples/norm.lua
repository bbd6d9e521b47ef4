-- Samples of the normalisations (see test_walk.lua for what `mk` makes).
return {
    layer_norm = {
        function(mk) return { mk(2, 3), { 3 } } end,
        function(mk) return { mk(2, 3, 2), { 3, 2 }, mk(3, 2), mk(3, 2) } end,
        function(mk) return { mk(4, 3), { 3 }, mk(3), nil, 0.1, n = 5 } end,
    },
    rms_norm = {
        function(mk) return { mk(2, 3), { 3 } } end,
        function(mk) return { mk(2, 3, 2), { 3, 2 }, mk(3, 2) } end,
        function(mk) return { mk(2, 4), { 4 }, mk(4), 0.1 } end,
    },
    group_norm = {
        function(mk) return { mk(2, 4, 3), 2 } end,
        function(mk) return { mk(2, 4, 2, 2), 2, mk(4), mk(4) } end,
        function(mk) return { mk(3, 4), 2, mk(4), mk(4), 0.1 } end,
    },
    batch_norm = {
        function(mk) return { mk(3, 2), nil, nil, mk(2), mk(2), true, n = 6 } end,
        function(mk) return { mk(2, 3, 2), mk(3):detach(), mk.pos(3):detach(), mk(3), mk(3), false } end,
        function(mk) return { mk(2, 2, 3, 2), nil, nil, nil, nil, true, n = 6 } end,
        function(mk) return { mk(2, 2, 2), mk(2), mk.pos(2), mk(2), nil, false, n = 6 } end,
    },
    instance_norm = {
        function(mk) return { mk(2, 2, 4) } end,
        function(mk) return { mk(2, 3, 2, 3), nil, nil, mk(3), mk(3), n = 5 } end,
        function(mk) return { mk(2, 3, 2), mk(3):detach(), mk.pos(3):detach(), mk(3), mk(3), false } end,
    },
    local_response_norm = {
        function(mk) return { mk(2, 4, 3), 2 } end,
        function(mk) return { mk(1, 3, 2, 2), 3, 0.5, 0.6, 2 } end,
        function(mk) return { mk(2, 2, 2), 7, 0.3 } end,
    },
    normalize = {
        function(mk) return { mk(2, 3) } end,
        function(mk) return { mk(2, 3, 2), 3, -1 } end,
        function(mk) return { mk(4), 1, 1 } end,
    },
}
