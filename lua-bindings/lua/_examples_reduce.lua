-- _examples_reduce.lua: examples of sums, orders, counts and statistics; _examples.lua says how they stand here.
return [==[
## all
> tide.tensor{true, false}:all()
false  bool () cpu
> tide.tensor{{1, 0}, {1, 1}}:all(2)
[false,  true]
bool (2) cpu

## amax
> tide.tensor{{1, 5}, {7, 2}}:amax(2)
[5, 7]
int64 (2) cpu

## amin
> tide.tensor{{1, 5}, {7, 2}}:amin(1)
[1, 2]
int64 (2) cpu

## aminmax
> low, high = tide.tensor{3, 1, 2}:aminmax()
> high
3  int64 () cpu

## any
> tide.tensor{{0, 0}, {0, 1}}:any(2)
[false,  true]
bool (2) cpu

## argmax
> tide.tensor{{1, 5}, {7, 2}}:argmax(2)
[2, 1]
int64 (2) cpu

## argmin
> tide.tensor{3, 1, 2}:argmin()
2  int64 () cpu

## argsort
> tide.tensor{30, 10, 20}:argsort()
[2, 3, 1]
int64 (3) cpu

## bincount
> tide.tensor{1, 3, 3, 2}:bincount()
[1, 1, 2]
int64 (3) cpu

## bucketize
> tide.bucketize(tide.tensor{0.5, 2, 9}, tide.tensor{1.0, 2, 3})
[1, 2, 4]
int64 (3) cpu

## corrcoef
> tide.tensor{{1.0, 2, 3}, {6, 4, 2}}:corrcoef()
[[ 1., -1.],
 [-1.,  1.]]
float32 (2, 2) cpu

## count_nonzero
> tide.tensor{0, 3, 0, 4}:count_nonzero()
2  int64 () cpu

## cov
> tide.tensor{{1.0, 2, 3}, {6, 4, 2}}:cov()
[[ 1., -2.],
 [-2.,  4.]]
float32 (2, 2) cpu

## cummax
> values, places = tide.tensor{1, 3, 2, 5}:cummax(1)
> values
[1, 3, 3, 5]
int64 (4) cpu

## cummin
> values, places = tide.tensor{4, 3, 5, 1}:cummin(1)
> places
[1, 2, 2, 4]
int64 (4) cpu

## cumprod
> tide.tensor{1, 2, 3, 4}:cumprod(1)
[ 1,  2,  6, 24]
int64 (4) cpu

## cumsum
> tide.tensor{1, 2, 3, 4}:cumsum(1)
[ 1,  3,  6, 10]
int64 (4) cpu

## cumulative_trapezoid
> tide.tensor{1.0, 2, 3}:cumulative_trapezoid()
[1.5000, 4.0000]
float32 (2) cpu

## diff
> tide.tensor{1, 4, 9, 16}:diff()
[3, 5, 7]
int64 (3) cpu

## dist
> tide.dist(tide.tensor{0.0, 0}, tide.tensor{3.0, 4})
5  float32 () cpu

## histc
> tide.tensor{1.0, 2, 2, 3}:histc(3)
[1., 2., 1.]
float32 (3) cpu

## isin
> tide.isin(tide.tensor{1, 2, 3}, tide.tensor{2, 5})
[false,  true, false]
bool (3) cpu

## kthvalue
> tide.tensor{30, 10, 20}:kthvalue(2)
20  int64 () cpu
3  int64 () cpu

## logcumsumexp
> tide.tensor{0.0, 0, 0}:logcumsumexp(1)
[0.0000, 0.6931, 1.0986]
float32 (3) cpu

## logsumexp
> tide.tensor{1000.0, 1000}:logsumexp(1)
1000.693  float32 () cpu

## max
> tide.tensor{3, 7, 5}:max()
7  int64 () cpu
> values, places = tide.tensor{{1, 5}, {7, 2}}:max(2)
> places
[2, 1]
int64 (2) cpu

## mean
> tide.tensor{{1.0, 2}, {3, 4}}:mean()
2.5  float32 () cpu
> tide.tensor{{1.0, 2}, {3, 4}}:mean(1)
[2., 3.]
float32 (2) cpu

## median
> tide.tensor{30, 10, 20}:median()
20  int64 () cpu

## min
> values, places = tide.tensor{{1, 5}, {7, 2}}:min(2)
> values
[1, 2]
int64 (2) cpu

## mode
> tide.tensor{1, 2, 2, 3}:mode()
2  int64 () cpu
3  int64 () cpu

## msort
> tide.tensor{{3, 1}, {2, 5}}:msort()
[[2, 1],
 [3, 5]]
int64 (2, 2) cpu

## nanmean
> tide.tensor{1, 0/0, 3}:nanmean()
2  float32 () cpu

## nanmedian
> tide.tensor{1, 0/0, 3, 2}:nanmedian()
2  float32 () cpu

## nanquantile
> tide.tensor{1, 0/0, 3}:nanquantile(0.5)
2  float32 () cpu

## nansum
> tide.tensor{1, 0/0, 3}:nansum()
4  float32 () cpu

## norm
> tide.tensor{3.0, 4}:norm()
5  float32 () cpu
> tide.tensor{3.0, -4}:norm(1)
7  float32 () cpu

## prod
> tide.tensor{2, 3, 4}:prod()
24  int64 () cpu

## quantile
> tide.tensor{1.0, 2, 3, 4}:quantile(tide.tensor{0.25, 0.5})
[1.7500, 2.5000]
float32 (2) cpu

## renorm
> tide.tensor{{3.0, 4}, {0.3, 0.4}}:renorm(2, 1, 1)
[[0.6000, 0.8000],
 [0.3000, 0.4000]]
float32 (2, 2) cpu

## searchsorted
> tide.searchsorted(tide.tensor{10, 20, 30}, tide.tensor{5, 20, 99})
[1, 2, 4]
int64 (3) cpu

## sort
> values, places = tide.tensor{30, 10, 20}:sort()
> values
[10, 20, 30]
int64 (3) cpu
> tide.tensor{30, 10, 20}:sort{descending = true}
[30, 20, 10]
int64 (3) cpu
[1, 3, 2]
int64 (3) cpu

## std
> tide.tensor{1.0, 2, 3, 4}:std()
1.290994  float32 () cpu

## std_mean
> std, mean = tide.tensor{1.0, 2, 3}:std_mean()
> mean
2  float32 () cpu

## sum
> tide.tensor{{1, 2}, {3, 4}}:sum()
10  int64 () cpu
> tide.tensor{{1, 2}, {3, 4}}:sum(2, {keepdim = true})
[[3],
 [7]]
int64 (2, 1) cpu

## sum_to_size
> tide.ones(3, 2):sum_to_size(1, 2)
[[3., 3.]]
float32 (1, 2) cpu

## topk
> values, places = tide.tensor{30, 10, 20}:topk(2)
> values
[30, 20]
int64 (2) cpu
> places
[1, 3]
int64 (2) cpu

## trapezoid
> tide.trapezoid(tide.tensor{1.0, 2, 3})
4  float32 () cpu

## trapz
> tide.trapz(tide.tensor{1.0, 2, 3}, {dx = 2})
8  float32 () cpu

## unique
> tide.tensor{3, 1, 3, 2}:unique()
[1, 2, 3]
int64 (3) cpu

## unique_consecutive
> tide.tensor{1, 1, 2, 2, 1}:unique_consecutive()
[1, 2, 1]
int64 (3) cpu

## var
> tide.tensor{1.0, 2, 3, 4}:var()
1.666667  float32 () cpu
> tide.tensor{1.0, 2, 3, 4}:var{unbiased = false}
1.25  float32 () cpu

## var_mean
> var, mean = tide.tensor{1.0, 2, 3}:var_mean()
> var
1  float32 () cpu
]==]
