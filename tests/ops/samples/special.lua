-- Samples of special functions and pairs of operands (see test_walk.lua for what `mk` makes).
local function shapes(make)
    return {
        function(mk) return { make(mk, 2, 3) } end,
        function(mk) return { make(mk, 4) } end,
        function(mk) return { make(mk) } end,
        function(mk) return { make(mk, 0, 3) } end,
    }
end
local function pairs_of(make)
    return {
        function(mk) return { make(mk, 2, 3), make(mk, 2, 3) } end,
        function(mk) return { make(mk, 2, 1, 3), make(mk, 4, 1) } end,
        function(mk) return { make(mk, 3), 1.75 } end,
        function(mk) return { make(mk, 2, 3), make(mk) } end,
        function(mk) return { make(mk, 0), make(mk, 1) } end,
    }
end
local function any(mk, ...) return mk(...) end
local function positive(mk, ...) return mk.pos(...) end
local function above_1(mk, ...) return mk.pos(...) + 1 end
local function between(mk, ...) return (mk.pos(...) + 0.1) / 2.3 end
local function whole(mk, ...) return mk.ints(...) end

local samples = {}
local function add(names, list)
    for name in names:gmatch("%S+") do
        samples[name] = list
    end
end
add("asinh erfinv atanh sinc i0 deg2rad rad2deg positive nan_to_num signbit isposinf isneginf isreal", shapes(any))
add("lgamma digamma entr", shapes(positive))
add("i0e i1 i1e erfcx ndtr log_ndtr", shapes(any))
add("ndtri", shapes(between))
add("zeta", {
    function(mk) return { 2.5, mk.pos(2, 3) } end,
    function(mk) return { 3, mk.pos(4) } end,
    function(mk) return { 2, mk.pos(0, 3) } end,
})
add("igamma igammac", {
    function(mk) return { 2.5, mk.pos(2, 3) } end,
    function(mk) return { mk.pos(3):detach(), mk.pos(2, 1) + 1 } end,
    function(mk) return { 0.25, mk.pos(0, 3) } end,
    function(mk) return { 30, mk.pos(3) * 10 } end,
})
add("acosh", shapes(above_1))
add("logit", shapes(between))
add("fmax fmin hypot logaddexp logaddexp2 copysign nextafter ldexp rsub", pairs_of(any))
add("xlogy xlog1py float_power", pairs_of(positive))
samples.digamma = {
    function(mk) return { mk.pos(2, 3) } end,
    function(mk) return { mk(3) } end,
    function(mk) return { mk.pos() } end,
}
samples.logit = {
    function(mk) return { between(mk, 2, 3) } end,
    function(mk) return { between(mk, 4), 0.05 } end,
    function(mk) return { between(mk, 0) } end,
}
samples.polygamma = {
    function(mk) return { mk.pos(2, 3), 0 } end,
    function(mk) return { mk.pos(2, 3), 1 } end,
    function(mk) return { mk.pos(3) + 0.5, 2 } end,
    function(mk) return { mk.pos(0), 3 } end,
}
samples.mvlgamma = {
    function(mk) return { mk.pos(2, 3) + 1, 2 } end,
    function(mk) return { mk.pos() + 2, 3 } end,
    function(mk) return { mk.pos(0), 1 } end,
}
samples.nan_to_num = {
    function(mk) return { mk(2, 3) } end,
    function(mk) return { mk(4) / 0, 0.5, 2, -3 } end,
    function(mk) return { mk(0), { posinf = 1 } } end,
}
samples.heaviside = {
    function(mk) return { mk(2, 3), mk(2, 3) } end,
    function(mk) return { mk(2, 3):round(), mk(3) } end,
    function(mk) return { mk(0), 0.5 } end,
}
add("bitwise_left_shift bitwise_right_shift gcd lcm", {
    function(mk) return { whole(mk, 2, 3), whole(mk, 2, 3) } end,
    function(mk) return { whole(mk, 2, 1, 3), whole(mk, 4, 1) } end,
    function(mk) return { whole(mk, 3), 2 } end,
    function(mk) return { whole(mk, 0), whole(mk, 1) } end,
})
add("isclose allclose", {
    function(mk) return { mk(2, 3), mk(2, 3) } end,
    function(mk) return { mk(3), mk(2, 1), 0.5, 0.25 } end,
    function(mk) return { mk(0), mk(1), { equal_nan = true } } end,
})
return samples
