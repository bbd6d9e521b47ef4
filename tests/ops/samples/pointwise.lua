-- Samples of the pointwise operators (see test_walk.lua for what `mk` makes).
local function unary(mk)
    return { mk(2, 3) }
end
local function unary_positive(mk)
    return { mk.pos(2, 3) }
end
local shapes1 = {
    unary,
    function(mk) return { mk(4) } end,
    function(mk) return { mk() } end,
    function(mk) return { mk(0, 3) } end,
}
local shapes1_positive = {
    unary_positive,
    function(mk) return { mk.pos(5) } end,
    function(mk) return { mk.pos() } end,
    function(mk) return { mk.pos(3, 0) } end,
}
local shapes2 = {
    function(mk) return { mk(2, 3), mk(2, 3) } end,
    function(mk) return { mk(2, 1, 3), mk(4, 1) } end,
    function(mk) return { mk(3), 2.5 } end,
    function(mk) return { mk(2, 3), mk() } end,
    function(mk) return { mk(0), mk(1) } end,
}
local shapes2_positive = {
    function(mk) return { mk.pos(2, 3), mk.pos(2, 3) } end,
    function(mk) return { mk.pos(2, 1, 3), mk.pos(4, 1) } end,
    function(mk) return { mk.pos(3), 1.75 } end,
    function(mk) return { mk.pos(2, 3), mk.pos() } end,
    function(mk) return { mk.pos(0), mk.pos(1) } end,
}
local logical2 = {
    function(mk) return { mk.mask(2, 3), mk.mask(2, 3) } end,
    function(mk) return { mk.mask(3), mk.mask(2, 1) } end,
    function(mk) return { mk.ints(4), mk.ints(4) } end,
}
local bits2 = {
    function(mk) return { mk.ints(2, 3), mk.ints(2, 3) } end,
    function(mk) return { mk.mask(3), mk.mask(2, 1) } end,
    function(mk) return { mk.ints(4), 3 } end,
}

local samples = {}
for name in ([[neg abs sign square exp exp2 expm1 sin cos tan asin acos atan sinh cosh tanh floor ceil
    round trunc frac relu sigmoid erf erfc silu gelu softshrink isnan isinf isfinite]]):gmatch("%S+") do
    samples[name] = shapes1
end
for name in ("reciprocal sqrt rsqrt log log2 log10 log1p"):gmatch("%S+") do
    samples[name] = shapes1_positive
end
for name in ("add sub mul maximum minimum eq ne lt le gt ge"):gmatch("%S+") do
    samples[name] = shapes2
end
for name in ("div pow atan2 remainder fmod floor_divide trunc_divide"):gmatch("%S+") do
    samples[name] = shapes2_positive
end
for name in ("logical_and logical_or logical_xor"):gmatch("%S+") do
    samples[name] = logical2
end
for name in ("bitwise_and bitwise_or bitwise_xor"):gmatch("%S+") do
    samples[name] = bits2
end
samples.logical_not = {
    function(mk) return { mk.mask(2, 3) } end,
    function(mk) return { mk.ints(3) } end,
    function(mk) return { mk.mask() } end,
}
samples.bitwise_not = {
    function(mk) return { mk.ints(2, 3) } end,
    function(mk) return { mk.mask(3) } end,
    function(mk) return { mk.ints() } end,
}
-- Options beyond the common shapes.
samples.add = { table.unpack(shapes2) }
table.insert(samples.add, function(mk) return { mk(3), mk(3), { alpha = 2.5 } } end)
samples.sub = { table.unpack(samples.add) }
samples.lerp = {
    function(mk) return { mk(2, 3), mk(2, 3), 0.3 } end,
    function(mk) return { mk(2, 3), mk(3), mk(2, 1) } end,
    function(mk) return { mk(0), mk(0), 0.5 } end,
}
samples.addcmul = {
    function(mk) return { mk(2, 3), mk(2, 3), mk(2, 3) } end,
    function(mk) return { mk(3), mk(2, 1), mk(1, 3), { value = 0.5 } } end,
    function(mk) return { mk(0), mk(0), mk(0) } end,
}
samples.addcdiv = {
    function(mk) return { mk(2, 3), mk(2, 3), mk.pos(2, 3) } end,
    function(mk) return { mk(3), mk(2, 1), mk.pos(1, 3), { value = 0.5 } } end,
    function(mk) return { mk(0), mk(0), mk.pos(0) } end,
}
samples.softplus = {
    unary,
    function(mk) return { mk(3), 2, 0.5 } end,
    function(mk) return { mk(0) } end,
}
samples.leaky_relu = {
    unary,
    function(mk) return { mk(3), 0.2 } end,
    function(mk) return { mk() } end,
}
samples.elu = {
    unary,
    function(mk) return { mk(3), 0.7 } end,
    function(mk) return { mk(0, 2) } end,
}
samples.clamp = {
    function(mk) return { mk(2, 3), -0.5, 0.5 } end,
    function(mk) return { mk(4), { min = 0.1 } } end,
    function(mk) return { mk(4), { max = mk(4) * 0.37 + 0.11 } } end,
}
samples.clamp_min = {
    function(mk) return { mk(2, 3), 0.1 } end,
    function(mk) return { mk(2, 3), mk(3) } end,
    function(mk) return { mk(0), 0.1 } end,
}
samples.clamp_max = samples.clamp_min
samples.where = {
    function(mk) return { mk.mask(2, 3), mk(2, 3), mk(2, 3) } end,
    function(mk) return { mk.mask(3), mk(2, 1), 0.5 } end,
    function(mk) return { mk.mask(0), mk(0), mk(0) } end,
}
samples.equal = {
    function(mk) return { mk(2, 3), mk(2, 3) } end,
    function(mk) return { mk(3), mk(4) } end,
    function(mk) return { mk(0), mk(0) } end,
}
-- Options that make another operator of one.
samples.gelu = { table.unpack(shapes1) }
table.insert(samples.gelu, function(mk) return { mk(2, 3), { approximate = "tanh" } } end)
samples.round = { table.unpack(shapes1) }
table.insert(samples.round, function(mk) return { mk(2, 3), { decimals = 1 } } end)
samples.div = { table.unpack(shapes2_positive) }
table.insert(samples.div, function(mk) return { mk(2, 3), mk.pos(2, 3), { rounding_mode = "trunc" } } end)
return samples
