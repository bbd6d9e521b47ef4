-- _examples_foreach.lua: examples of operators over lists of tensors; _examples.lua says how they stand here.
return [==[
## foreach.abs
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.abs(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.absolute
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.absolute(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.acos
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.acos(xs)[1]
[1.3181, 1.0472]
float32 (2) cpu

## foreach.acosh
> xs = {tide.tensor{1.5, 2}, tide.tensor{3.0}}
> tide.foreach.acosh(xs)[1]
[0.9624, 1.3170]
float32 (2) cpu

## foreach.add
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.add(xs, 2)[1]
[2.2500, 2.5000]
float32 (2) cpu

## foreach.addcdiv
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.addcdiv(xs, xs, xs, {value = 2})[1]
[2.2500, 2.5000]
float32 (2) cpu

## foreach.addcmul
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.addcmul(xs, xs, xs, {value = 2})[1]
[0.3750, 1.0000]
float32 (2) cpu

## foreach.arccos
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.arccos(xs)[1]
[1.3181, 1.0472]
float32 (2) cpu

## foreach.arccosh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.arccosh(xs)[1]
[nan, nan]
float32 (2) cpu

## foreach.arcsin
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.arcsin(xs)[1]
[0.2527, 0.5236]
float32 (2) cpu

## foreach.arcsinh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.arcsinh(xs)[1]
[0.2475, 0.4812]
float32 (2) cpu

## foreach.arctan
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.arctan(xs)[1]
[0.2450, 0.4636]
float32 (2) cpu

## foreach.arctan2
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.arctan2(xs, 2)[1]
[0.1244, 0.2450]
float32 (2) cpu

## foreach.arctanh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.arctanh(xs)[1]
[0.2554, 0.5493]
float32 (2) cpu

## foreach.asin
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.asin(xs)[1]
[0.2527, 0.5236]
float32 (2) cpu

## foreach.asinh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.asinh(xs)[1]
[0.2475, 0.4812]
float32 (2) cpu

## foreach.atan
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.atan(xs)[1]
[0.2450, 0.4636]
float32 (2) cpu

## foreach.atan2
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.atan2(xs, 2)[1]
[0.1244, 0.2450]
float32 (2) cpu

## foreach.atanh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.atanh(xs)[1]
[0.2554, 0.5493]
float32 (2) cpu

## foreach.bitwise_and
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.bitwise_and(xs, 2)[1]
[0, 2]
int64 (2) cpu

## foreach.bitwise_left_shift
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.bitwise_left_shift(xs, 2)[1]
[48, 40]
int64 (2) cpu

## foreach.bitwise_not
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.bitwise_not(xs)[1]
[-13, -11]
int64 (2) cpu

## foreach.bitwise_or
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.bitwise_or(xs, 2)[1]
[14, 10]
int64 (2) cpu

## foreach.bitwise_right_shift
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.bitwise_right_shift(xs, 2)[1]
[3, 2]
int64 (2) cpu

## foreach.bitwise_xor
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.bitwise_xor(xs, 2)[1]
[14,  8]
int64 (2) cpu

## foreach.ceil
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.ceil(xs)[1]
[1., 1.]
float32 (2) cpu

## foreach.celu
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.celu(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.clamp
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.clamp(xs, 0.3, 0.6)[1]
[0.3000, 0.5000]
float32 (2) cpu

## foreach.clamp_max
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.clamp_max(xs, 2)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.clamp_min
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.clamp_min(xs, 2)[1]
[2., 2.]
float32 (2) cpu

## foreach.copy
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.copy(xs, {tide.zeros(2), tide.ones(1)})[2]
[1.]
float32 (1) cpu

## foreach.copysign
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.copysign(xs, 2)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.cos
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.cos(xs)[1]
[0.9689, 0.8776]
float32 (2) cpu

## foreach.cosh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.cosh(xs)[1]
[1.0314, 1.1276]
float32 (2) cpu

## foreach.deg2rad
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.deg2rad(xs)[1]
[0.0044, 0.0087]
float32 (2) cpu

## foreach.digamma
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.digamma(xs)[1]
[-4.2275, -1.9635]
float32 (2) cpu

## foreach.div
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.div(xs, 2)[1]
[0.1250, 0.2500]
float32 (2) cpu

## foreach.divide
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.divide(xs, 2)[1]
[0.1250, 0.2500]
float32 (2) cpu

## foreach.elu
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.elu(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.entr
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.entr(xs)[1]
[0.3466, 0.3466]
float32 (2) cpu

## foreach.eq
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.eq(xs, 2)[1]
[false, false]
bool (2) cpu

## foreach.erf
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.erf(xs)[1]
[0.2763, 0.5205]
float32 (2) cpu

## foreach.erfc
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.erfc(xs)[1]
[0.7237, 0.4795]
float32 (2) cpu

## foreach.erfcx
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.erfcx(xs)[1]
[0.7703, 0.6157]
float32 (2) cpu

## foreach.erfinv
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.erfinv(xs)[1]
[0.2253, 0.4769]
float32 (2) cpu

## foreach.exp
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.exp(xs)[1]
[1.2840, 1.6487]
float32 (2) cpu

## foreach.exp2
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.exp2(xs)[1]
[1.1892, 1.4142]
float32 (2) cpu

## foreach.expm1
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.expm1(xs)[1]
[0.2840, 0.6487]
float32 (2) cpu

## foreach.fill_
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.fill_(xs, 2)[1]
[2., 2.]
float32 (2) cpu

## foreach.fix
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.fix(xs)[1]
[0., 0.]
float32 (2) cpu

## foreach.float_power
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.float_power(xs, 2)[1]
[0.0625, 0.2500]
float64 (2) cpu

## foreach.floor
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.floor(xs)[1]
[0., 0.]
float32 (2) cpu

## foreach.floor_divide
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.floor_divide(xs, 2)[1]
[0., 0.]
float32 (2) cpu

## foreach.fmax
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.fmax(xs, 2)[1]
[2., 2.]
float32 (2) cpu

## foreach.fmin
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.fmin(xs, 2)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.fmod
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.fmod(xs, 2)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.frac
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.frac(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.gcd
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.gcd(xs, 2)[1]
[2, 2]
int64 (2) cpu

## foreach.ge
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.ge(xs, 2)[1]
[false, false]
bool (2) cpu

## foreach.gelu
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.gelu(xs)[1]
[0.1497, 0.3457]
float32 (2) cpu

## foreach.greater
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.greater(xs, 2)[1]
[false, false]
bool (2) cpu

## foreach.greater_equal
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.greater_equal(xs, 2)[1]
[false, false]
bool (2) cpu

## foreach.gt
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.gt(xs, 2)[1]
[false, false]
bool (2) cpu

## foreach.hardshrink
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.hardshrink(xs)[1]
[0., 0.]
float32 (2) cpu

## foreach.hardsigmoid
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.hardsigmoid(xs)[1]
[0.5417, 0.5833]
float32 (2) cpu

## foreach.hardswish
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.hardswish(xs)[1]
[0.1354, 0.2917]
float32 (2) cpu

## foreach.hardtanh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.hardtanh(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.heaviside
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.heaviside(xs, 2)[1]
[1., 1.]
float32 (2) cpu

## foreach.hypot
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.hypot(xs, 2)[1]
[2.0156, 2.0616]
float32 (2) cpu

## foreach.i0
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.i0(xs)[1]
[1.0157, 1.0635]
float32 (2) cpu

## foreach.i0e
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.i0e(xs)[1]
[0.7910, 0.6450]
float32 (2) cpu

## foreach.i1
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.i1(xs)[1]
[0.1260, 0.2579]
float32 (2) cpu

## foreach.i1e
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.i1e(xs)[1]
[0.0981, 0.1564]
float32 (2) cpu

## foreach.igamma
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.igamma(xs, 2)[1]
[0.9827, 0.9545]
float32 (2) cpu

## foreach.igammac
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.igammac(xs, 2)[1]
[0.0173, 0.0455]
float32 (2) cpu

## foreach.isfinite
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.isfinite(xs)[1]
[true, true]
bool (2) cpu

## foreach.isinf
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.isinf(xs)[1]
[false, false]
bool (2) cpu

## foreach.isnan
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.isnan(xs)[1]
[false, false]
bool (2) cpu

## foreach.isneginf
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.isneginf(xs)[1]
[false, false]
bool (2) cpu

## foreach.isposinf
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.isposinf(xs)[1]
[false, false]
bool (2) cpu

## foreach.isreal
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.isreal(xs)[1]
[true, true]
bool (2) cpu

## foreach.lcm
> xs = {tide.tensor{12, 10}, tide.tensor{7}}
> tide.foreach.lcm(xs, 2)[1]
[12, 10]
int64 (2) cpu

## foreach.ldexp
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.ldexp(xs, 2)[1]
[1., 2.]
float32 (2) cpu

## foreach.le
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.le(xs, 2)[1]
[true, true]
bool (2) cpu

## foreach.leaky_relu
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.leaky_relu(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.lerp
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.lerp(xs, {tide.zeros(2), tide.ones(1)}, 0.5)[1]
[0.1250, 0.2500]
float32 (2) cpu

## foreach.less
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.less(xs, 2)[1]
[true, true]
bool (2) cpu

## foreach.less_equal
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.less_equal(xs, 2)[1]
[true, true]
bool (2) cpu

## foreach.lgamma
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.lgamma(xs)[1]
[1.2880, 0.5724]
float32 (2) cpu

## foreach.log
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.log(xs)[1]
[-1.3863, -0.6931]
float32 (2) cpu

## foreach.log10
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.log10(xs)[1]
[-0.6021, -0.3010]
float32 (2) cpu

## foreach.log1p
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.log1p(xs)[1]
[0.2231, 0.4055]
float32 (2) cpu

## foreach.log2
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.log2(xs)[1]
[-2., -1.]
float32 (2) cpu

## foreach.log_ndtr
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.log_ndtr(xs)[1]
[-0.5130, -0.3689]
float32 (2) cpu

## foreach.logaddexp
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.logaddexp(xs, 2)[1]
[2.1602, 2.2014]
float32 (2) cpu

## foreach.logaddexp2
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.logaddexp2(xs, 2)[1]
[2.3755, 2.4368]
float32 (2) cpu

## foreach.logical_and
> xs = {tide.tensor{true, false}, tide.tensor{true}}
> tide.foreach.logical_and(xs, {tide.tensor{true, true}, tide.tensor{false}})[1]
[ true, false]
bool (2) cpu

## foreach.logical_not
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.logical_not(xs)[1]
[false, false]
bool (2) cpu

## foreach.logical_or
> xs = {tide.tensor{true, false}, tide.tensor{true}}
> tide.foreach.logical_or(xs, {tide.tensor{true, true}, tide.tensor{false}})[1]
[true, true]
bool (2) cpu

## foreach.logical_xor
> xs = {tide.tensor{true, false}, tide.tensor{true}}
> tide.foreach.logical_xor(xs, {tide.tensor{true, true}, tide.tensor{false}})[1]
[false,  true]
bool (2) cpu

## foreach.logit
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.logit(xs)[1]
[-1.0986,  0.0000]
float32 (2) cpu

## foreach.logsigmoid
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.logsigmoid(xs)[1]
[-0.5759, -0.4741]
float32 (2) cpu

## foreach.lt
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.lt(xs, 2)[1]
[true, true]
bool (2) cpu

## foreach.maximum
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.maximum(xs, 2)[1]
[2., 2.]
float32 (2) cpu

## foreach.minimum
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.minimum(xs, 2)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.mish
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.mish(xs)[1]
[0.1696, 0.3752]
float32 (2) cpu

## foreach.mul
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.mul(xs, 2)[1]
[0.5000, 1.0000]
float32 (2) cpu

## foreach.multiply
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.multiply(xs, 2)[1]
[0.5000, 1.0000]
float32 (2) cpu

## foreach.ndtr
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.ndtr(xs)[1]
[0.5987, 0.6915]
float32 (2) cpu

## foreach.ndtri
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.ndtri(xs)[1]
[-0.6745,  0.0000]
float32 (2) cpu

## foreach.ne
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.ne(xs, 2)[1]
[true, true]
bool (2) cpu

## foreach.neg
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.neg(xs)[1]
[-0.2500, -0.5000]
float32 (2) cpu

## foreach.negative
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.negative(xs)[1]
[-0.2500, -0.5000]
float32 (2) cpu

## foreach.nextafter
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.nextafter(xs, 2)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.norm
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.norm(xs)[1]
0.559017  float32 () cpu

## foreach.not_equal
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.not_equal(xs, 2)[1]
[true, true]
bool (2) cpu

## foreach.polygamma
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.polygamma(xs, 1)[1]
[17.1973,  4.9348]
float32 (2) cpu

## foreach.pow
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.pow(xs, 2)[1]
[0.0625, 0.2500]
float32 (2) cpu

## foreach.rad2deg
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.rad2deg(xs)[1]
[14.3239, 28.6479]
float32 (2) cpu

## foreach.reciprocal
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.reciprocal(xs)[1]
[4., 2.]
float32 (2) cpu

## foreach.relu
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.relu(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.relu6
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.relu6(xs)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.remainder
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.remainder(xs, 2)[1]
[0.2500, 0.5000]
float32 (2) cpu

## foreach.round
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.round(xs)[1]
[0., 0.]
float32 (2) cpu

## foreach.rsqrt
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.rsqrt(xs)[1]
[2.0000, 1.4142]
float32 (2) cpu

## foreach.rsub
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.rsub(xs, 2)[1]
[1.7500, 1.5000]
float32 (2) cpu

## foreach.selu
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.selu(xs)[1]
[0.2627, 0.5254]
float32 (2) cpu

## foreach.sgn
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sgn(xs)[1]
[1., 1.]
float32 (2) cpu

## foreach.sigmoid
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sigmoid(xs)[1]
[0.5622, 0.6225]
float32 (2) cpu

## foreach.sign
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sign(xs)[1]
[1., 1.]
float32 (2) cpu

## foreach.signbit
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.signbit(xs)[1]
[false, false]
bool (2) cpu

## foreach.silu
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.silu(xs)[1]
[0.1405, 0.3112]
float32 (2) cpu

## foreach.sin
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sin(xs)[1]
[0.2474, 0.4794]
float32 (2) cpu

## foreach.sinc
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sinc(xs)[1]
[0.9003, 0.6366]
float32 (2) cpu

## foreach.sinh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sinh(xs)[1]
[0.2526, 0.5211]
float32 (2) cpu

## foreach.softplus
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.softplus(xs)[1]
[0.8259, 0.9741]
float32 (2) cpu

## foreach.softshrink
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.softshrink(xs)[1]
[0., 0.]
float32 (2) cpu

## foreach.softsign
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.softsign(xs)[1]
[0.2000, 0.3333]
float32 (2) cpu

## foreach.sqrt
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sqrt(xs)[1]
[0.5000, 0.7071]
float32 (2) cpu

## foreach.square
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.square(xs)[1]
[0.0625, 0.2500]
float32 (2) cpu

## foreach.sub
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.sub(xs, 2)[1]
[-1.7500, -1.5000]
float32 (2) cpu

## foreach.subtract
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.subtract(xs, 2)[1]
[-1.7500, -1.5000]
float32 (2) cpu

## foreach.tan
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.tan(xs)[1]
[0.2553, 0.5463]
float32 (2) cpu

## foreach.tanh
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.tanh(xs)[1]
[0.2449, 0.4621]
float32 (2) cpu

## foreach.tanhshrink
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.tanhshrink(xs)[1]
[0.0051, 0.0379]
float32 (2) cpu

## foreach.threshold
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.threshold(xs, 0.3, 0)[1]
[0.0000, 0.5000]
float32 (2) cpu

## foreach.true_divide
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.true_divide(xs, 2)[1]
[0.1250, 0.2500]
float32 (2) cpu

## foreach.trunc
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.trunc(xs)[1]
[0., 0.]
float32 (2) cpu

## foreach.trunc_divide
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.trunc_divide(xs, 2)[1]
[0., 0.]
float32 (2) cpu

## foreach.where
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.where({tide.tensor{true, false}, tide.tensor{true}}, xs, 0)[1]
[0.2500, 0.0000]
float32 (2) cpu

## foreach.xlog1py
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.xlog1py(xs, 2)[1]
[0.2747, 0.5493]
float32 (2) cpu

## foreach.xlogy
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.xlogy(xs, 2)[1]
[0.1733, 0.3466]
float32 (2) cpu

## foreach.zero
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.zero(xs)[1]
[0., 0.]
float32 (2) cpu

## foreach.zeta
> xs = {tide.tensor{0.25, 0.5}, tide.tensor{0.75}}
> tide.foreach.zeta(xs, 2)[1]
[nan, nan]
float32 (2) cpu
]==]
