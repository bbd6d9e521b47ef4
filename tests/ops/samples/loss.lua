-- Samples of softmax and the losses (see test_walk.lua for what `mk` makes).
local along = {
    function(mk) return { mk(2, 3), 2 } end,
    function(mk) return { mk(2, 3, 2), 1 } end,
    function(mk) return { mk(4), -1 } end,
    function(mk) return { mk(0, 3), 2 } end,
}
-- Losses of two tensors: the target is a constant, off x by more than a step of a difference.
local function pairs_of(options)
    local function target(mk, ...)
        return mk(...):detach() * 0.37 + 0.11
    end
    return {
        function(mk) return { mk(2, 3), target(mk, 2, 3) } end,
        function(mk) return { mk(4), target(mk, 4), { reduction = "sum" } } end,
        function(mk) return { mk(2, 3), target(mk, 2, 3), { reduction = "none" } } end,
        options and function(mk) return { mk(5) * 3, target(mk, 5), options } end or nil,
    }
end
local function chance(mk, ...)
    return mk.pos(...) * 0.45
end

return {
    softmax = along,
    log_softmax = along,
    cross_entropy = {
        function(mk) return { mk(4, 3), mk.index(3, 4) } end,
        function(mk) return { mk(2, 3, 2), mk.index(3, 2, 2), { reduction = "sum" } } end,
        function(mk) return { mk(4, 3), mk.index(3, 4), mk.pos(3):detach(), { label_smoothing = 0.1 } } end,
        function(mk) return { mk(3), mk.index(3), { reduction = "none" } } end,
        function(mk) return { mk(2, 3), tide.softmax(mk(2, 3):detach(), 2) } end,
        function(mk) return { mk(4, 3), tide.tensor { 1, 2, 3, 2 }, { ignore_index = 2 } } end,
    },
    nll_loss = {
        function(mk) return { mk(4, 3), mk.index(3, 4) } end,
        function(mk) return { mk(2, 3, 2), mk.index(3, 2, 2), { reduction = "none" } } end,
        function(mk) return { mk(4, 3), mk.index(3, 4), mk.pos(3):detach(), { reduction = "sum" } } end,
    },
    mse_loss = pairs_of(),
    l1_loss = pairs_of(),
    smooth_l1_loss = pairs_of { beta = 0.5 },
    huber_loss = pairs_of { delta = 0.5 },
    binary_cross_entropy = {
        function(mk) return { chance(mk, 2, 3), chance(mk, 2, 3):detach() } end,
        function(mk) return { chance(mk, 4), chance(mk, 4):detach(), mk.pos(4):detach(), { reduction = "sum" } } end,
        function(mk) return { chance(mk, 3), chance(mk, 3):detach(), { reduction = "none" } } end,
    },
    binary_cross_entropy_with_logits = {
        function(mk) return { mk(2, 3), chance(mk, 2, 3):detach() } end,
        function(mk) return { mk(4), chance(mk, 4):detach(), mk.pos(4):detach(), { reduction = "sum" } } end,
        function(mk) return { mk(2, 3), chance(mk, 2, 3):detach(), { pos_weight = mk.pos(3):detach() } } end,
    },
}
