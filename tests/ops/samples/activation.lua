-- Samples of activations (see test_walk.lua for what `mk` makes).
local shapes = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(4) } end,
    function(mk) return { mk() } end,
    function(mk) return { mk(0, 3) } end,
}
local samples = {}
for name in ([[relu6 hardtanh celu selu mish softsign hardsigmoid hardswish hardshrink tanhshrink
    logsigmoid]]):gmatch("%S+") do
    samples[name] = shapes
end
samples.hardtanh = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(4), -0.31, 0.57 } end,
    function(mk) return { mk(0), { max_val = 0.5 } } end,
}
samples.threshold = {
    function(mk) return { mk(2, 3), 0.123, 7 } end,
    function(mk) return { mk(), -0.5, 0.25 } end,
    function(mk) return { mk(0, 2), 0, 1 } end,
}
samples.celu = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(4), 0.7 } end,
    function(mk) return { mk(0) } end,
}
samples.prelu = {
    function(mk) return { mk(2, 3), mk(1) } end,
    function(mk) return { mk(2, 3, 4), mk(3) } end,
    function(mk) return { mk(0, 3), mk(3) } end,
}
samples.rrelu = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(2, 3), 0.25, 0.75, true } end,
    function(mk) return { mk(0) } end,
}
samples.glu = {
    function(mk) return { mk(2, 4) } end,
    function(mk) return { mk(4, 3), 1 } end,
    function(mk) return { mk(0, 2) } end,
}
return samples
