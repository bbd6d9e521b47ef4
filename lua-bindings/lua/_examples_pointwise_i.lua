-- _examples_pointwise_i.lua: examples of functions of one element at a time, i to z; _examples.lua says how they stand here.
return [==[
## i0
> tide.tensor{0.0, 1}:i0()
[1.0000, 1.2661]
float32 (2) cpu

## i0e
> tide.tensor{0.0, 1, 100}:i0e()
[1.0000, 0.4658, 0.0399]
float32 (3) cpu

## i1
> tide.tensor{0.0, 1}:i1()
[0.0000, 0.5652]
float32 (2) cpu

## i1e
> tide.tensor{0.0, 1, 100}:i1e()
[0.0000, 0.2079, 0.0397]
float32 (3) cpu

## igamma
> tide.igamma(tide.tensor{1.0, 2}, tide.tensor{1.0, 1})
[0.6321, 0.2642]
float32 (2) cpu

## igammac
> tide.igammac(tide.tensor{1.0, 2}, tide.tensor{1.0, 1})
[0.3679, 0.7358]
float32 (2) cpu

## isclose
> tide.isclose(tide.tensor{1.0, 2}, tide.tensor{1.000001, 2.1})
[ true, false]
bool (2) cpu

## isfinite
> tide.tensor{1, 1/0, 0/0}:isfinite()
[ true, false, false]
bool (3) cpu

## isinf
> tide.tensor{1, 1/0, 0/0}:isinf()
[false,  true, false]
bool (3) cpu

## isnan
> tide.tensor{1, 1/0, 0/0}:isnan()
[false, false,  true]
bool (3) cpu

## isneginf
> tide.tensor{-1/0, 1/0, 0}:isneginf()
[ true, false, false]
bool (3) cpu

## isposinf
> tide.tensor{-1/0, 1/0, 0}:isposinf()
[false,  true, false]
bool (3) cpu

## isreal
> tide.tensor{1, 0/0}:isreal()
[true, true]
bool (2) cpu

## lcm
> tide.lcm(tide.tensor{4, 6}, 10)
[20, 30]
int64 (2) cpu

## ldexp
> tide.ldexp(tide.tensor{1.0, 3}, tide.tensor{4, -1})
[16.0000,  1.5000]
float32 (2) cpu

## le
> tide.tensor{1, 2, 3}:le(2)
[ true,  true, false]
bool (3) cpu

## leaky_relu
> tide.tensor{-2.0, 3}:leaky_relu(0.1)
[-0.2000,  3.0000]
float32 (2) cpu

## lerp
> tide.lerp(tide.tensor{0.0, 10}, tide.tensor{10.0, 20}, 0.25)
[ 2.5000, 12.5000]
float32 (2) cpu

## lgamma
> tide.tensor{1.0, 5}:lgamma()
[0.0000, 3.1781]
float32 (2) cpu

## log
> tide.tensor{1, math.exp(2)}:log()
[0., 2.]
float32 (2) cpu

## log10
> tide.tensor{1, 1000}:log10()
[0., 3.]
float32 (2) cpu

## log1p
> tide.tensor{0, 1e-10}:log1p()
[0.0000e+00, 1.0000e-10]
float32 (2) cpu

## log2
> tide.tensor{1, 8}:log2()
[0., 3.]
float32 (2) cpu

## log_ndtr
> tide.tensor{-20.0, 0}:log_ndtr()
[-203.9172,   -0.6931]
float32 (2) cpu

## logaddexp
> tide.logaddexp(tide.tensor{-1000.0, 0}, tide.tensor{-1000.0, 0})
[-9.9931e+02,  6.9315e-01]
float32 (2) cpu

## logaddexp2
> tide.logaddexp2(tide.tensor{3.0, 0}, tide.tensor{3.0, 0})
[4., 1.]
float32 (2) cpu

## logical_and
> tide.logical_and(tide.tensor{true, true}, tide.tensor{true, false})
[ true, false]
bool (2) cpu

## logical_not
> tide.tensor{0, 1, 2}:logical_not()
[ true, false, false]
bool (3) cpu

## logical_or
> tide.logical_or(tide.tensor{false, true}, tide.tensor{false, false})
[false,  true]
bool (2) cpu

## logical_xor
> tide.logical_xor(tide.tensor{true, true}, tide.tensor{true, false})
[false,  true]
bool (2) cpu

## logit
> tide.tensor{0.5, 0.9}:logit()
[0.0000, 2.1972]
float32 (2) cpu
> tide.tensor{0, 1}:logit{eps = 0.01}
[-4.5951,  4.5951]
float32 (2) cpu

## logsigmoid
> tide.tensor{-100.0, 0}:logsigmoid()
[-100.0000,   -0.6931]
float32 (2) cpu

## lt
> tide.tensor{1, 2, 3}:lt(2)
[ true, false, false]
bool (3) cpu

## maximum
> tide.maximum(tide.tensor{1, 5}, tide.tensor{3, 2})
[3, 5]
int64 (2) cpu

## minimum
> tide.minimum(tide.tensor{1, 5}, tide.tensor{3, 2})
[1, 2]
int64 (2) cpu

## mish
> tide.tensor{-1.0, 0, 1}:mish()
[-0.3034,  0.0000,  0.8651]
float32 (3) cpu

## mul
> tide.tensor{1, 2} * tide.tensor{10, 20}
[10, 40]
int64 (2) cpu

## mvlgamma
> tide.tensor{3.0, 4}:mvlgamma(2)
[1.5502, 3.5651]
float32 (2) cpu

## nan_to_num
> tide.tensor{1, 0/0, 1/0}:nan_to_num{nan = -1, posinf = 100}
[  1.,  -1., 100.]
float32 (3) cpu

## ndtr
> tide.tensor{-1.96, 0, 1.96}:ndtr()
[0.0250, 0.5000, 0.9750]
float32 (3) cpu

## ndtri
> tide.tensor{0.025, 0.5}:ndtri()
[-1.9600,  0.0000]
float32 (2) cpu

## ne
> tide.tensor{1, 2, 3}:ne(2)
[ true, false,  true]
bool (3) cpu

## neg
> -tide.tensor{1, -2}
[-1,  2]
int64 (2) cpu

## nextafter
> tide.nextafter(tide.tensor{1.0}, tide.tensor{2.0}) - 1
[1.1921e-07]
float32 (1) cpu

## polygamma
> tide.tensor{1.0, 2}:polygamma(1)
[1.6449, 0.6449]
float32 (2) cpu

## positive
> tide.tensor{-1, 2}:positive()
[-1,  2]
int64 (2) cpu

## pow
> tide.tensor{1, 2, 3} ^ 2
[1, 4, 9]
int64 (3) cpu
> tide.pow(2, tide.tensor{1, 2, 3})
[2, 4, 8]
int64 (3) cpu

## prelu
> tide.tensor{-2.0, 3}:prelu(tide.tensor{0.25})
[-0.5000,  3.0000]
float32 (2) cpu

## rad2deg
> tide.tensor{0, math.pi}:rad2deg()
[  0., 180.]
float32 (2) cpu

## reciprocal
> tide.tensor{2.0, 4}:reciprocal()
[0.5000, 0.2500]
float32 (2) cpu

## relu
> tide.tensor{-2, 3}:relu()
[0, 3]
int64 (2) cpu

## relu6
> tide.tensor{-1.0, 3, 9}:relu6()
[0., 3., 6.]
float32 (3) cpu

## remainder
> tide.tensor{5, -5} % 3
[2, 1]
int64 (2) cpu

## round
> tide.tensor{0.5, 1.5, -2.7}:round()
[ 0.,  2., -3.]
float32 (3) cpu
> tide.tensor{3.14159}:round{decimals = 2}
[3.1400]
float32 (1) cpu

## rrelu
> tide.tensor{-3.0, 2}:rrelu()
[-0.6875,  2.0000]
float32 (2) cpu

## rsqrt
> tide.tensor{4.0, 16}:rsqrt()
[0.5000, 0.2500]
float32 (2) cpu

## rsub
> tide.tensor{1, 2}:rsub(10)
[9, 8]
int64 (2) cpu

## selu
> tide.tensor{-1.0, 0, 1}:selu()
[-1.1113,  0.0000,  1.0507]
float32 (3) cpu

## sigmoid
> tide.tensor{-2.0, 0, 2}:sigmoid()
[0.1192, 0.5000, 0.8808]
float32 (3) cpu

## sign
> tide.tensor{-2.5, 0, 3}:sign()
[-1.,  0.,  1.]
float32 (3) cpu

## signbit
> tide.tensor{-1, -0.0, 0.0}:signbit()
[ true,  true, false]
bool (3) cpu

## silu
> tide.tensor{-1.0, 0, 1}:silu()
[-0.2689,  0.0000,  0.7311]
float32 (3) cpu

## sin
> tide.tensor{0, math.pi / 2}:sin()
[0., 1.]
float32 (2) cpu

## sinc
> tide.tensor{0.0, 0.5, 1}:sinc()
[ 1.0000e+00,  6.3662e-01, -2.7828e-08]
float32 (3) cpu

## sinh
> tide.tensor{0.0, 1}:sinh()
[0.0000, 1.1752]
float32 (2) cpu

## softplus
> tide.tensor{-1.0, 0, 30}:softplus()
[ 0.3133,  0.6931, 30.0000]
float32 (3) cpu

## softshrink
> tide.tensor{-1.0, 0.2, 2}:softshrink()
[-0.5000,  0.0000,  1.5000]
float32 (3) cpu

## softsign
> tide.tensor{-1.0, 0, 3}:softsign()
[-0.5000,  0.0000,  0.7500]
float32 (3) cpu

## sqrt
> tide.tensor{4.0, 9}:sqrt()
[2., 3.]
float32 (2) cpu

## square
> tide.tensor{-2, 3}:square()
[4, 9]
int64 (2) cpu

## sub
> tide.tensor{5, 6} - tide.tensor{1, 2}
[4, 4]
int64 (2) cpu

## tan
> tide.tensor{0, math.pi / 4}:tan()
[0.0000, 1.0000]
float32 (2) cpu

## tanh
> tide.tensor{-1.0, 0, 1}:tanh()
[-0.7616,  0.0000,  0.7616]
float32 (3) cpu

## tanhshrink
> tide.tensor{0.0, 2}:tanhshrink()
[0.0000, 1.0360]
float32 (2) cpu

## threshold
> tide.tensor{0.5, 2}:threshold(1, 0)
[0., 2.]
float32 (2) cpu

## trunc
> tide.tensor{-1.5, 1.7}:trunc()
[-1.,  1.]
float32 (2) cpu

## trunc_divide
> tide.tensor{7, -7}:trunc_divide(2)
[ 3, -3]
int64 (2) cpu

## where
> x = tide.tensor{-1, 2, -3}
> tide.where(x:gt(0), x, 0)
[0, 2, 0]
int64 (3) cpu

## xlog1py
> tide.xlog1py(tide.tensor{0.0, 2}, tide.tensor{-1.0, 1})
[0.0000, 1.3863]
float32 (2) cpu

## xlogy
> tide.xlogy(tide.tensor{0.0, 2}, tide.tensor{0.0, 3})
[0.0000, 2.1972]
float32 (2) cpu

## zeta
> tide.zeta(tide.tensor{2.0}, tide.tensor{1.0})
[1.6449]
float32 (1) cpu
]==]
