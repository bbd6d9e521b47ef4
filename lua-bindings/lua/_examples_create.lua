-- _examples_create.lua: examples of tensors that are made of nothing, and random numbers; _examples.lua says how they stand here.
return [==[
## alpha_dropout
> tide.alpha_dropout(tide.ones(3), 0.5, false)
[1., 1., 1.]
float32 (3) cpu

## arange
> tide.arange(4)
[0, 1, 2, 3]
int64 (4) cpu
> tide.arange(1, 2, 0.25)
[1.0000, 1.2500, 1.5000, 1.7500]
float32 (4) cpu

## bartlett_window
> tide.bartlett_window(4)
[0.0000, 0.5000, 1.0000, 0.5000]
float32 (4) cpu

## bernoulli
> tide.bernoulli(tide.tensor{0.0, 1, 1})
[0., 1., 1.]
float32 (3) cpu

## bernoulli_
> tide.manual_seed(1)
> tide.zeros(1000):bernoulli_(0.25):mean()
0.246  float32 () cpu

## blackman_window
> tide.blackman_window(4)
[-1.4901e-08,  3.4000e-01,  1.0000e+00,  3.4000e-01]
float32 (4) cpu

## cauchy_
> tide.manual_seed(1)
> tide.zeros(1001):cauchy_(3):median()
3.023964  float32 () cpu

## dropout
> tide.manual_seed(2)
> tide.ones(6):dropout(0.5)
[2., 2., 0., 2., 2., 2.]
float32 (6) cpu
> tide.ones(3):dropout{p = 0.5, training = false}
[1., 1., 1.]
float32 (3) cpu

## empty
> tide.empty(2, 3).shape
(2, 3)

## empty_like
> tide.empty_like(tide.tensor{1, 2}).dtype
tide.int64

## empty_strided
> tide.empty_strided({2, 2}, {1, 2}):stride()
(1, 2)

## exponential_
> tide.manual_seed(1)
> tide.zeros(1000):exponential_(2):mean()
0.4921121  float32 () cpu

## eye
> tide.eye(2)
[[1., 0.],
 [0., 1.]]
float32 (2, 2) cpu

## feature_alpha_dropout
> tide.feature_alpha_dropout(tide.ones(1, 2), 0.5, false)
[[1., 1.]]
float32 (1, 2) cpu

## feature_dropout
> tide.manual_seed(2)
> tide.feature_dropout(tide.ones(1, 3, 2), 0.5)
[[[2., 2.],
  [2., 2.],
  [0., 0.]]]
float32 (1, 3, 2) cpu

## fill
> tide.fill(tide.tensor{1, 2}, 5)
[5, 5]
int64 (2) cpu

## full
> tide.full({2, 3}, 7)
[[7, 7, 7],
 [7, 7, 7]]
int64 (2, 3) cpu

## full_like
> tide.full_like(tide.tensor{1.0, 2}, 9)
[9., 9.]
float32 (2) cpu

## geometric_
> tide.manual_seed(1)
> tide.zeros(1000):geometric_(0.25):mean()
3.929  float32 () cpu

## hamming_window
> tide.hamming_window(4)
[0.0800, 0.5400, 1.0000, 0.5400]
float32 (4) cpu

## hann_window
> tide.hann_window(4)
[0.0000, 0.5000, 1.0000, 0.5000]
float32 (4) cpu

## kaiser_window
> tide.kaiser_window(4)
[5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01]
float32 (4) cpu

## linspace
> tide.linspace(0, 1, 5)
[0.0000, 0.2500, 0.5000, 0.7500, 1.0000]
float32 (5) cpu

## log_normal_
> tide.manual_seed(1)
> tide.zeros(1000):log_normal_(0, 0.5):log():std()
0.5012382  float32 () cpu

## logspace
> tide.logspace(0, 3, 4)
[   1.,   10.,  100., 1000.]
float32 (4) cpu

## multinomial
> tide.manual_seed(2)
> tide.tensor{0.3, 0, 0.7}:multinomial(5, {replacement = true})
[3, 3, 1, 3, 3]
int64 (5) cpu

## new_empty
> tide.tensor{1.5}:new_empty(2, 2).shape
(2, 2)

## new_empty_strided
> tide.tensor{1.5}:new_empty_strided({2, 2}, {1, 2}):stride()
(1, 2)

## new_full
> tide.tensor{1.5}:new_full({2}, 3)
[3., 3.]
float32 (2) cpu

## new_ones
> tide.tensor{1, 2}:new_ones(2)
[1, 1]
int64 (2) cpu

## new_zeros
> tide.tensor{1, 2}:new_zeros(2)
[0, 0]
int64 (2) cpu

## normal
> tide.manual_seed(1)
> tide.normal(tide.tensor{0.0, 100}, 1)
[ 1.6585, 98.7083]
float32 (2) cpu

## normal_
> tide.manual_seed(1)
> tide.zeros(1000):normal_(5, 2):mean()
5.003065  float32 () cpu

## ones
> tide.ones(2, 3)
[[1., 1., 1.],
 [1., 1., 1.]]
float32 (2, 3) cpu

## ones_like
> tide.ones_like(tide.tensor{{1, 2}})
[[1, 1]]
int64 (1, 2) cpu

## poisson
> tide.manual_seed(1)
> tide.poisson(tide.full({1000}, 4.0)):mean()
4.139  float32 () cpu

## rand
> tide.manual_seed(1)
> tide.rand(3)
[0.8903, 0.8947, 0.5857]
float32 (3) cpu

## rand_like
> tide.manual_seed(1)
> tide.rand_like(tide.zeros(2)):le(1)
[true, true]
bool (2) cpu

## randint
> tide.manual_seed(1)
> tide.randint(1, 7, {5})
[6, 6, 4, 5, 5]
int64 (5) cpu

## randint_like
> tide.manual_seed(1)
> tide.randint_like(tide.tensor{0, 0, 0}, 10)
[8, 8, 5]
int64 (3) cpu

## randn
> tide.manual_seed(1)
> tide.randn(2, 2)
[[ 1.6585, -1.2917],
 [-0.3199, -1.2885]]
float32 (2, 2) cpu

## randn_like
> tide.manual_seed(1)
> tide.randn_like(tide.zeros(2)).shape
(2)

## random_
> tide.manual_seed(1)
> tide.zeros(1000):random_(1, 7):amax()
6  float32 () cpu

## randperm
> tide.manual_seed(1)
> tide.randperm(5)
[5, 4, 2, 3, 1]
int64 (5) cpu

## scalar_tensor
> tide.scalar_tensor(3.5)
3.5  float32 () cpu

## uniform_
> tide.manual_seed(1)
> tide.zeros(3):uniform_(-1, 1)
[0.7805, 0.7894, 0.1715]
float32 (3) cpu

## vander
> tide.tensor{1, 2, 3}:vander()
[[1, 1, 1],
 [4, 2, 1],
 [9, 3, 1]]
int64 (3, 3) cpu

## zeros
> tide.zeros(2, 3)
[[0., 0., 0.],
 [0., 0., 0.]]
float32 (2, 3) cpu
> tide.zeros(2, {dtype = tide.int64})
[0, 0]
int64 (2) cpu

## zeros_like
> tide.zeros_like(tide.tensor{{1, 2}})
[[0, 0]]
int64 (1, 2) cpu
]==]
