-- Samples of distances and margin losses (see test_walk.lua for what `mk` makes).
local function signs() return tide.tensor { 1.0, -1.0, -1.0, 1.0 } end
local function chance(mk, ...) return mk.pos(...):detach() * 0.45 end
local function with(make, options)
    return {
        function(mk) return { make(mk) } end,
        function(mk)
            local args = { make(mk) }
            args[#args + 1] = { reduction = "sum" }
            return args
        end,
        function(mk)
            local args, given = { make(mk) }, { reduction = "none" }
            for key, value in pairs(options or {}) do
                given[key] = value
            end
            args[#args + 1] = given
            return args
        end,
    }
end

return {
    cosine_similarity = {
        function(mk) return { mk(2, 3), mk(2, 3) } end,
        function(mk) return { mk(2, 3), mk(3), -1 } end,
        function(mk) return { mk(3), mk(3), 1, 0.1 } end,
    },
    pairwise_distance = {
        function(mk) return { mk(2, 3), mk(2, 3) } end,
        function(mk) return { mk(2, 3), mk(3), 3, 1e-6, true } end,
        function(mk) return { mk(3), mk(3), 1 } end,
    },
    kl_div = with(function(mk) return mk(2, 3), chance(mk, 2, 3) end, { log_target = true }),
    poisson_nll_loss = with(function(mk) return mk(2, 3), mk.pos(2, 3):detach() end),
    gaussian_nll_loss = with(function(mk) return mk(2, 3), mk(2, 3), mk.pos(2, 3) end),
    soft_margin_loss = with(function(mk) return mk(2, 4), signs() :expand(2, 4) end),
    hinge_embedding_loss = with(function(mk) return mk(4), signs() end, { margin = 2.07 }),
    margin_ranking_loss = with(function(mk) return mk(4), mk(4) * 2, signs() end, { margin = 0.331 }),
    cosine_embedding_loss = with(function(mk) return mk(4, 3), mk(4, 3) * 2, signs() end, { margin = 0.1 }),
    triplet_margin_loss = with(function(mk) return mk(3, 2), mk(3, 2) * 2, mk(3, 2) * 3 end, { swap = true }),
    multi_margin_loss = with(function(mk) return mk(3, 4), mk.index(4, 3) end, { p = 2, margin = 0.777 }),
    multilabel_margin_loss = with(function(mk) return mk(2, 3), tide.tensor { { 3, 1, -1 }, { -1, 1, 2 } } end),
    multilabel_soft_margin_loss = with(function(mk) return mk(2, 3), chance(mk, 2, 3) end),
}
