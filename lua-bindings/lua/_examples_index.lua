-- _examples_index.lua: examples of reading and writing by index; _examples.lua says how they stand here.
return [==[
## argwhere
> tide.tensor{0, 7, 0, 8}:argwhere()
[[2],
 [4]]
int64 (2, 1) cpu

## embedding
> table_of_3 = tide.tensor{{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.6}}
> tide.embedding(table_of_3, tide.tensor{3, 1})
[[0.5000, 0.6000],
 [0.1000, 0.2000]]
float32 (2, 2) cpu

## embedding_bag
> weight = tide.tensor{{1.0, 2}, {3, 4}, {5, 6}}
> tide.embedding_bag(weight, tide.tensor{{1, 3}, {2, 2}})
[[3., 4.],
 [3., 4.]]
float32 (2, 2) cpu

## gather
> tide.tensor{{10, 20}, {30, 40}}:gather(2, tide.tensor{{2}, {1}})
[[20],
 [30]]
int64 (2, 1) cpu

## index_add
> tide.zeros(3):index_add(1, tide.tensor{1, 1}, tide.tensor{2.0, 3})
[5., 0., 0.]
float32 (3) cpu

## index_copy
> tide.zeros(3):index_copy(1, tide.tensor{3, 1}, tide.tensor{7.0, 8})
[8., 0., 7.]
float32 (3) cpu

## index_fill
> tide.zeros(3):index_fill(1, tide.tensor{1, 3}, 9)
[9., 0., 9.]
float32 (3) cpu

## index_put
> tide.zeros(2, 2):index_put({tide.tensor{1, 2}, tide.tensor{2, 1}}, tide.tensor{5.0, 6})
[[0., 5.],
 [6., 0.]]
float32 (2, 2) cpu

## index_reduce
> tide.ones(2):index_reduce(1, tide.tensor{1, 1}, tide.tensor{3.0, 4}, "prod")
[12.,  1.]
float32 (2) cpu

## index_select
> tide.tensor{{1, 2}, {3, 4}}:index_select(2, tide.tensor{2, 1})
[[2, 1],
 [4, 3]]
int64 (2, 2) cpu

## masked_fill
> x = tide.tensor{-1, 2, -3}
> x:masked_fill(x:lt(0), 0)
[0, 2, 0]
int64 (3) cpu

## masked_scatter
> tide.zeros(3):masked_scatter(tide.tensor{true, false, true}, tide.tensor{5.0, 6})
[5., 0., 6.]
float32 (3) cpu

## masked_select
> x = tide.tensor{-1, 2, -3}
> x:masked_select(x:lt(0))
[-1, -3]
int64 (2) cpu

## nonzero
> tide.tensor{{0, 1}, {2, 0}}:nonzero()
[[1, 2],
 [2, 1]]
int64 (2, 2) cpu

## one_hot
> tide.tensor{1, 3}:one_hot()
[[1, 0, 0],
 [0, 0, 1]]
int64 (2, 3) cpu

## put
> tide.zeros(2, 2):put(tide.tensor{1, 4}, tide.tensor{5.0, 6})
[[5., 0.],
 [0., 6.]]
float32 (2, 2) cpu

## scatter
> tide.zeros(2, 3):scatter(2, tide.tensor{{1}, {3}}, 5)
[[5., 0., 0.],
 [0., 0., 5.]]
float32 (2, 3) cpu

## scatter_add
> tide.zeros(3):scatter_add(1, tide.tensor{1, 1, 3}, tide.ones(3))
[2., 0., 1.]
float32 (3) cpu

## scatter_reduce
> tide.zeros(2):scatter_reduce(1, tide.tensor{1, 1, 2}, tide.tensor{3.0, 7, 5}, "amax")
[7., 5.]
float32 (2) cpu

## take
> tide.tensor{{10, 20}, {30, 40}}:take(tide.tensor{1, 4})
[10, 40]
int64 (2) cpu

## take_along_dim
> x = tide.tensor{{3, 1, 2}}
> x:take_along_dim(x:argsort(2), 2)
[[1, 2, 3]]
int64 (1, 3) cpu
]==]
