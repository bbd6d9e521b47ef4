-- Samples of the dropouts of channels and of selu's (see test_walk.lua for what `mk` makes).
local list = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(2, 3, 4), 0.25 } end,
    function(mk) return { mk(2, 3), 0.5, false } end,
    function(mk) return { mk(0, 3), 0.5 } end,
}
return { feature_dropout = list, alpha_dropout = list, feature_alpha_dropout = list }
