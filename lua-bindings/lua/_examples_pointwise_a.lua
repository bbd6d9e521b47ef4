-- _examples_pointwise_a.lua: examples of functions of one element at a time, a to h; _examples.lua says how they stand here.
return [==[
## abs
> tide.tensor{-1.5, 0, 2}:abs()
[1.5000, 0.0000, 2.0000]
float32 (3) cpu

## acos
> tide.tensor{-1.0, 0, 1}:acos()
[3.1416, 1.5708, 0.0000]
float32 (3) cpu

## acosh
> tide.tensor{1.0, 2}:acosh()
[0.0000, 1.3170]
float32 (2) cpu

## add
> tide.tensor{1, 2} + 10
[11, 12]
int64 (2) cpu
> tide.add(tide.tensor{1, 2}, tide.tensor{3, 4}, {alpha = 10})
[31, 42]
int64 (2) cpu

## addcdiv
> tide.addcdiv(tide.zeros(2), tide.tensor{1.0, 2}, tide.tensor{2.0, 8}, {value = 10})
[5.0000, 2.5000]
float32 (2) cpu

## addcmul
> tide.addcmul(tide.zeros(2), tide.tensor{1.0, 2}, tide.tensor{3.0, 4}, {value = 0.5})
[1.5000, 4.0000]
float32 (2) cpu

## allclose
> tide.allclose(tide.tensor{1.0, 2}, tide.tensor{1.000001, 2})
true

## asin
> tide.tensor{-1.0, 0, 1}:asin()
[-1.5708,  0.0000,  1.5708]
float32 (3) cpu

## asinh
> tide.tensor{0.0, 1}:asinh()
[0.0000, 0.8814]
float32 (2) cpu

## atan
> tide.tensor{-1.0, 0, 1}:atan()
[-0.7854,  0.0000,  0.7854]
float32 (3) cpu

## atan2
> tide.atan2(tide.tensor{1.0, -1}, tide.tensor{-1.0, -1})
[ 2.3562, -2.3562]
float32 (2) cpu

## atanh
> tide.tensor{0.0, 0.5}:atanh()
[0.0000, 0.5493]
float32 (2) cpu

## bitwise_and
> tide.bitwise_and(tide.tensor{12, 10}, 6)
[4, 2]
int64 (2) cpu

## bitwise_left_shift
> tide.tensor{1, 3}:bitwise_left_shift(2)
[ 4, 12]
int64 (2) cpu

## bitwise_not
> tide.tensor{0, 5}:bitwise_not()
[-1, -6]
int64 (2) cpu

## bitwise_or
> tide.bitwise_or(tide.tensor{12, 10}, 6)
[14, 14]
int64 (2) cpu

## bitwise_right_shift
> tide.tensor{8, -8}:bitwise_right_shift(2)
[ 2, -2]
int64 (2) cpu

## bitwise_xor
> tide.bitwise_xor(tide.tensor{12, 10}, 6)
[10, 12]
int64 (2) cpu

## ceil
> tide.tensor{-1.5, 1.2}:ceil()
[-1.,  2.]
float32 (2) cpu

## celu
> tide.tensor{-1.0, 0, 2}:celu(2)
[-0.7869,  0.0000,  2.0000]
float32 (3) cpu

## clamp
> tide.tensor{-3, 0, 5}:clamp(-1, 1)
[-1,  0,  1]
int64 (3) cpu
> tide.tensor{-3, 0, 5}:clamp{max = 1}
[-3,  0,  1]
int64 (3) cpu

## clamp_max
> tide.tensor{-3, 0, 5}:clamp_max(1)
[-3,  0,  1]
int64 (3) cpu

## clamp_min
> tide.tensor{-3, 0, 5}:clamp_min(-1)
[-1,  0,  5]
int64 (3) cpu

## copysign
> tide.copysign(tide.tensor{1.0, 2}, tide.tensor{-0.0, 3})
[-1.,  2.]
float32 (2) cpu

## cos
> tide.tensor{0, math.pi / 2, math.pi}:cos()
[ 1.0000e+00, -4.3711e-08, -1.0000e+00]
float32 (3) cpu

## cosh
> tide.tensor{0.0, 1}:cosh()
[1.0000, 1.5431]
float32 (2) cpu

## deg2rad
> tide.tensor{0.0, 90, 180}:deg2rad()
[0.0000, 1.5708, 3.1416]
float32 (3) cpu

## digamma
> tide.tensor{1.0, 2}:digamma()
[-0.5772,  0.4228]
float32 (2) cpu

## div
> tide.tensor{7, -7} / 2
[ 3.5000, -3.5000]
float32 (2) cpu
> tide.tensor{7, -7}:div(2, {rounding_mode = "trunc"})
[ 3, -3]
int64 (2) cpu

## elu
> tide.tensor{-1.0, 0, 2}:elu()
[-0.6321,  0.0000,  2.0000]
float32 (3) cpu

## entr
> tide.tensor{0, 0.5, 1}:entr()
[ 0.0000,  0.3466, -0.0000]
float32 (3) cpu

## eq
> tide.tensor{1, 2, 3}:eq(2)
[false,  true, false]
bool (3) cpu

## equal
> tide.tensor{1, 2}:equal(tide.tensor{1, 2})
true

## erf
> tide.tensor{-1.0, 0, 1}:erf()
[-0.8427,  0.0000,  0.8427]
float32 (3) cpu

## erfc
> tide.tensor{-1.0, 0, 1}:erfc()
[1.8427, 1.0000, 0.1573]
float32 (3) cpu

## erfcx
> tide.tensor{0.0, 10, 100}:erfcx()
[1.0000, 0.0561, 0.0056]
float32 (3) cpu

## erfinv
> tide.tensor{-0.5, 0, 0.5}:erfinv()
[-0.4769,  0.0000,  0.4769]
float32 (3) cpu

## exp
> tide.tensor{0.0, 1}:exp()
[1.0000, 2.7183]
float32 (2) cpu

## exp2
> tide.tensor{0, 3, 10}:exp2()
[   1.,    8., 1024.]
float32 (3) cpu

## expm1
> tide.tensor{0, 1e-10}:expm1()
[0.0000e+00, 1.0000e-10]
float32 (2) cpu

## float_power
> tide.tensor{2, 3}:float_power(-1)
[0.5000, 0.3333]
float64 (2) cpu

## floor
> tide.tensor{-1.5, 1.2}:floor()
[-2.,  1.]
float32 (2) cpu

## floor_divide
> tide.tensor{7, -7}:floor_divide(2)
[ 3, -4]
int64 (2) cpu

## fmax
> tide.fmax(tide.tensor{1, 0/0}, tide.tensor{0.5, 2})
[1., 2.]
float32 (2) cpu

## fmin
> tide.fmin(tide.tensor{1, 0/0}, tide.tensor{0.5, 2})
[0.5000, 2.0000]
float32 (2) cpu

## fmod
> tide.tensor{5, -5}:fmod(3)
[ 2, -2]
int64 (2) cpu

## frac
> tide.tensor{1.25, -1.25}:frac()
[ 0.2500, -0.2500]
float32 (2) cpu

## gcd
> tide.gcd(tide.tensor{12, 18}, 8)
[4, 2]
int64 (2) cpu

## ge
> tide.tensor{1, 2, 3}:ge(2)
[false,  true,  true]
bool (3) cpu

## gelu
> tide.tensor{-1.0, 0, 1}:gelu()
[-0.1587,  0.0000,  0.8413]
float32 (3) cpu

## glu
> tide.tensor{1.0, 2, 0, 100}:glu()
[0.5000, 2.0000]
float32 (2) cpu

## gt
> tide.tensor{1, 2, 3}:gt(2)
[false, false,  true]
bool (3) cpu

## hardshrink
> tide.tensor{-1.0, 0.2, 2}:hardshrink()
[-1.,  0.,  2.]
float32 (3) cpu

## hardsigmoid
> tide.tensor{-4.0, 0, 4}:hardsigmoid()
[0.0000, 0.5000, 1.0000]
float32 (3) cpu

## hardswish
> tide.tensor{-4.0, 1, 4}:hardswish()
[-0.0000,  0.6667,  4.0000]
float32 (3) cpu

## hardtanh
> tide.tensor{-3.0, 0.5, 3}:hardtanh()
[-1.0000,  0.5000,  1.0000]
float32 (3) cpu

## heaviside
> tide.tensor{-1.5, 0, 2}:heaviside(0.5)
[0.0000, 0.5000, 1.0000]
float32 (3) cpu

## hypot
> tide.hypot(tide.tensor{3.0, 5}, tide.tensor{4.0, 12})
[ 5., 13.]
float32 (2) cpu
]==]
