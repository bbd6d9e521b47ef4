-- _examples_shapes.lua: examples of operators that change shapes, cut and join; _examples.lua says how they stand here.
return [==[
## as_strided
> tide.arange(6):as_strided({2, 2}, {1, 2})
[[0, 2],
 [1, 3]]
int64 (2, 2) cpu

## atleast_1d
> tide.atleast_1d(tide.tensor(5))
[5]
int64 (1) cpu

## atleast_2d
> tide.atleast_2d(tide.tensor{1, 2})
[[1, 2]]
int64 (1, 2) cpu

## atleast_3d
> tide.atleast_3d(tide.tensor{1, 2}).shape
(1, 2, 1)

## block_diag
> tide.block_diag(tide.tensor{{1, 2}}, tide.tensor{{3}, {4}})
[[1, 2, 0],
 [0, 0, 3],
 [0, 0, 4]]
int64 (3, 3) cpu

## broadcast_tensors
> tide.broadcast_tensors(tide.tensor{{1}, {2}}, tide.tensor{3, 4})[1]
[[1, 1],
 [2, 2]]
int64 (2, 2) cpu

## broadcast_to
> tide.tensor{1, 2}:broadcast_to(3, 2)
[[1, 2],
 [1, 2],
 [1, 2]]
int64 (3, 2) cpu

## cartesian_prod
> tide.cartesian_prod(tide.tensor{1, 2}, tide.tensor{5, 6})
[[1, 5],
 [1, 6],
 [2, 5],
 [2, 6]]
int64 (4, 2) cpu

## cat
> tide.cat{tide.tensor{1, 2}, tide.tensor{3}}
[1, 2, 3]
int64 (3) cpu
> tide.cat({tide.zeros(2, 1), tide.ones(2, 2)}, 2)
[[0., 1., 1.],
 [0., 1., 1.]]
float32 (2, 3) cpu

## channel_shuffle
> tide.arange(4):reshape(1, 4, 1, 1):channel_shuffle(2):flatten()
[0, 2, 1, 3]
int64 (4) cpu

## chunk
> tide.tensor{1, 2, 3, 4, 5}:chunk(2)[2]
[4, 5]
int64 (2) cpu

## clone
> x = tide.tensor{1, 2}
> y = x:clone():zero_()
> x
[1, 2]
int64 (2) cpu

## column_stack
> tide.column_stack{tide.tensor{1, 2}, tide.tensor{3, 4}}
[[1, 3],
 [2, 4]]
int64 (2, 2) cpu

## combinations
> tide.tensor{1, 2, 3}:combinations()
[[1, 2],
 [1, 3],
 [2, 3]]
int64 (3, 2) cpu

## contiguous
> x = tide.zeros(2, 3):t()
> x:is_contiguous()
false
> x:contiguous():is_contiguous()
true

## copy_
> x = tide.zeros(2)
> x:copy_(tide.tensor{1, 2})
[1., 2.]
float32 (2) cpu

## detach
> x = tide.ones(2, {requires_grad = true})
> (x * 2):detach().requires_grad
false

## diag
> tide.tensor{1, 2}:diag()
[[1, 0],
 [0, 2]]
int64 (2, 2) cpu
> tide.tensor{{1, 2}, {3, 4}}:diag()
[1, 4]
int64 (2) cpu

## diag_embed
> tide.tensor{{1, 2}, {3, 4}}:diag_embed().shape
(2, 2, 2)

## diagflat
> tide.tensor{1, 2}:diagflat(1)
[[0, 1, 0],
 [0, 0, 2],
 [0, 0, 0]]
int64 (3, 3) cpu

## diagonal
> tide.tensor{{1, 2}, {3, 4}}:diagonal()
[1, 4]
int64 (2) cpu

## diagonal_scatter
> tide.zeros(2, 2):diagonal_scatter(tide.tensor{5.0, 6})
[[5., 0.],
 [0., 6.]]
float32 (2, 2) cpu

## dsplit
> tide.zeros(2, 2, 4):dsplit(2)[1].shape
(2, 2, 2)

## dstack
> tide.dstack{tide.tensor{1, 2}, tide.tensor{3, 4}}
[[[1, 3],
  [2, 4]]]
int64 (1, 2, 2) cpu

## expand
> tide.tensor{{1}, {2}}:expand(2, 3)
[[1, 1, 1],
 [2, 2, 2]]
int64 (2, 3) cpu

## expand_as
> tide.tensor{{1}, {2}}:expand_as(tide.zeros(2, 3))
[[1, 1, 1],
 [2, 2, 2]]
int64 (2, 3) cpu

## fill_
> tide.zeros(2):fill_(3)
[3., 3.]
float32 (2) cpu

## fill_diagonal_
> tide.zeros(2, 3):fill_diagonal_(7)
[[7., 0., 0.],
 [0., 7., 0.]]
float32 (2, 3) cpu

## flatten
> tide.zeros(2, 3, 4):flatten(2).shape
(2, 12)

## flip
> tide.tensor{{1, 2}, {3, 4}}:flip(2)
[[2, 1],
 [4, 3]]
int64 (2, 2) cpu

## fliplr
> tide.tensor{{1, 2}, {3, 4}}:fliplr()
[[2, 1],
 [4, 3]]
int64 (2, 2) cpu

## flipud
> tide.tensor{{1, 2}, {3, 4}}:flipud()
[[3, 4],
 [1, 2]]
int64 (2, 2) cpu

## hsplit
> tide.tensor{{1, 2, 3, 4}}:hsplit(2)[2]
[[3, 4]]
int64 (1, 2) cpu

## hstack
> tide.hstack{tide.tensor{1, 2}, tide.tensor{3}}
[1, 2, 3]
int64 (3) cpu

## meshgrid
> gx, gy = table.unpack(tide.meshgrid(tide.tensor{1, 2}, tide.tensor{5, 6, 7}, {indexing = "ij"}))
> gy
[[5, 6, 7],
 [5, 6, 7]]
int64 (2, 3) cpu

## movedim
> tide.zeros(2, 3, 4):movedim(1, -1).shape
(3, 4, 2)

## narrow
> tide.tensor{10, 20, 30, 40}:narrow(1, 2, 2)
[20, 30]
int64 (2) cpu

## pad
> tide.tensor{1, 2}:pad{1, 2}
[0, 1, 2, 0, 0]
int64 (5) cpu
> tide.tensor{{1, 2, 3}}:float():pad({1, 1}, {mode = "reflect"})
[[2., 1., 2., 3., 2.]]
float32 (1, 5) cpu

## permute
> tide.zeros(2, 3, 4):permute(3, 1, 2).shape
(4, 2, 3)

## pixel_shuffle
> tide.zeros(1, 4, 2, 2):pixel_shuffle(2).shape
(1, 1, 4, 4)

## pixel_unshuffle
> tide.zeros(1, 1, 4, 4):pixel_unshuffle(2).shape
(1, 4, 2, 2)

## ravel
> tide.tensor{{1, 2}, {3, 4}}:ravel()
[1, 2, 3, 4]
int64 (4) cpu

## rep
> tide.tensor{1, 2}:rep(2, 2)
[[1, 2, 1, 2],
 [1, 2, 1, 2]]
int64 (2, 4) cpu

## repeat
> tide["repeat"](tide.tensor{1, 2}, {2, 2})
[[1, 2, 1, 2],
 [1, 2, 1, 2]]
int64 (2, 4) cpu

## repeat_interleave
> tide.tensor{1, 2}:repeat_interleave(3)
[1, 1, 1, 2, 2, 2]
int64 (6) cpu
> tide.tensor{7, 8}:repeat_interleave(tide.tensor{1, 3})
[7, 8, 8, 8]
int64 (4) cpu

## reshape
> tide.arange(6):reshape(2, -1)
[[0, 1, 2],
 [3, 4, 5]]
int64 (2, 3) cpu

## reshape_as
> tide.arange(4):reshape_as(tide.zeros(2, 2))
[[0, 1],
 [2, 3]]
int64 (2, 2) cpu

## roll
> tide.tensor{1, 2, 3, 4}:roll(1)
[4, 1, 2, 3]
int64 (4) cpu

## rot90
> tide.tensor{{1, 2}, {3, 4}}:rot90()
[[2, 4],
 [1, 3]]
int64 (2, 2) cpu

## row_stack
> tide.row_stack{tide.tensor{1, 2}, tide.tensor{3, 4}}
[[1, 2],
 [3, 4]]
int64 (2, 2) cpu

## select
> tide.tensor{{1, 2}, {3, 4}}:select(2, 1)
[1, 3]
int64 (2) cpu

## select_scatter
> tide.zeros(2, 2):select_scatter(tide.tensor{5.0, 6}, 1, 2)
[[0., 0.],
 [5., 6.]]
float32 (2, 2) cpu

## slice
> tide.tensor{10, 20, 30, 40, 50}:slice(1, 2, 4)
[20, 30, 40]
int64 (3) cpu
> tide.tensor{10, 20, 30, 40, 50}["2:4"]
[20, 30, 40]
int64 (3) cpu

## slice_scatter
> tide.zeros(4):slice_scatter(tide.tensor{5.0, 6}, 1, 2, 3)
[0., 5., 6., 0.]
float32 (4) cpu

## split
> a, b = table.unpack(tide.tensor{1, 2, 3, 4, 5}:split(3))
> b
[4, 5]
int64 (2) cpu

## split_with_sizes
> tide.tensor{1, 2, 3, 4}:split_with_sizes{1, 3}[2]
[2, 3, 4]
int64 (3) cpu

## squeeze
> tide.zeros(1, 3, 1):squeeze().shape
(3)
> tide.zeros(1, 3, 1):squeeze(1).shape
(3, 1)

## stack
> tide.stack{tide.tensor{1, 2}, tide.tensor{3, 4}}
[[1, 2],
 [3, 4]]
int64 (2, 2) cpu

## t
> tide.tensor{{1, 2, 3}, {4, 5, 6}}:t()
[[1, 4],
 [2, 5],
 [3, 6]]
int64 (3, 2) cpu

## tensor_split
> tide.tensor{1, 2, 3, 4, 5}:tensor_split(2)[1]
[1, 2, 3]
int64 (3) cpu

## tile
> tide.tensor{1, 2}:tile(2)
[1, 2, 1, 2]
int64 (4) cpu

## to
> tide.tensor{1, 2}:to(tide.float64)
[1., 2.]
float64 (2) cpu
> tide.tensor{1.9, -1.9}:to{dtype = tide.int32}
[ 1, -1]
int32 (2) cpu

## trace
> tide.tensor{{1, 2}, {3, 4}}:trace()
5  int64 () cpu

## transpose
> tide.zeros(2, 3, 4):transpose(2, 3).shape
(2, 4, 3)

## tril
> tide.ones(3, 3):tril()
[[1., 0., 0.],
 [1., 1., 0.],
 [1., 1., 1.]]
float32 (3, 3) cpu

## tril_indices
> tide.tril_indices(2, 2)
[[1, 2, 2],
 [1, 1, 2]]
int64 (2, 3) cpu

## triu
> tide.ones(3, 3):triu(1)
[[0., 1., 1.],
 [0., 0., 1.],
 [0., 0., 0.]]
float32 (3, 3) cpu

## triu_indices
> tide.triu_indices(2, 2)
[[1, 1, 2],
 [1, 2, 2]]
int64 (2, 3) cpu

## unbind
> tide.tensor{{1, 2}, {3, 4}}:unbind()[2]
[3, 4]
int64 (2) cpu

## unflatten
> tide.zeros(2, 6):unflatten(2, {2, 3}).shape
(2, 2, 3)

## unfold
> tide.tensor{1, 2, 3, 4, 5}:unfold(1, 3, 1)
[[1, 2, 3],
 [2, 3, 4],
 [3, 4, 5]]
int64 (3, 3) cpu

## unsqueeze
> tide.tensor{1, 2}:unsqueeze(2)
[[1],
 [2]]
int64 (2, 1) cpu

## view
> tide.arange(6):view(3, 2)
[[0, 1],
 [2, 3],
 [4, 5]]
int64 (3, 2) cpu

## view_as
> tide.arange(4):view_as(tide.zeros(2, 2))
[[0, 1],
 [2, 3]]
int64 (2, 2) cpu

## vsplit
> tide.tensor{{1, 2}, {3, 4}}:vsplit(2)[2]
[[3, 4]]
int64 (1, 2) cpu

## vstack
> tide.vstack{tide.tensor{1, 2}, tide.tensor{3, 4}}
[[1, 2],
 [3, 4]]
int64 (2, 2) cpu

## zero_
> tide.ones(2):zero_()
[0., 0.]
float32 (2) cpu
]==]
