-- _examples_sparse.lua: examples of sparse tensors; _examples.lua says how they stand here.
return [==[
## _indices
> x = tide.sparse_coo_tensor(tide.tensor{{1, 1}}, tide.tensor{2.0, 3}, {2})
> x:_indices()
[[1, 1]]
int64 (1, 2) cpu

## _nnz
> tide.tensor{{0, 7}, {8, 0}}:to_sparse():_nnz()
2

## _values
> x = tide.sparse_coo_tensor(tide.tensor{{1, 1}}, tide.tensor{2.0, 3}, {2})
> x:_values()
[2., 3.]
float32 (2) cpu

## coalesce
> x = tide.sparse_coo_tensor(tide.tensor{{1, 1}}, tide.tensor{2.0, 3}, {2})
> x:coalesce():values()
[5.]
float32 (1) cpu

## dense_dim
> tide.tensor{{0, 7}, {8, 0}}:to_sparse(1):dense_dim()
1

## indices
> tide.tensor{{0, 7}, {8, 0}}:to_sparse():indices()
[[1, 2],
 [2, 1]]
int64 (2, 2) cpu

## is_coalesced
> x = tide.sparse_coo_tensor(tide.tensor{{1, 1}}, tide.tensor{2.0, 3}, {2})
> x:is_coalesced()
false

## sparse_coo_tensor
> places, values = tide.tensor{{1, 2}, {3, 1}}, tide.tensor{5.0, 6}
> x = tide.sparse_coo_tensor(places, values, {2, 3})
> x:to_dense()
[[0., 0., 5.],
 [6., 0., 0.]]
float32 (2, 3) cpu

## sparse_dim
> tide.tensor{{0, 7}, {8, 0}}:to_sparse():sparse_dim()
2

## sparse_mask
> mask = tide.tensor{{0.0, 1}, {1, 0}}:to_sparse()
> tide.tensor{{1.0, 2}, {3, 4}}:sparse_mask(mask):values()
[2., 3.]
float32 (2) cpu

## to_dense
> tide.tensor{{0, 7}, {8, 0}}:to_sparse():to_dense()
[[0, 7],
 [8, 0]]
int64 (2, 2) cpu

## to_sparse
> x = tide.tensor{{0, 7}, {8, 0}}:to_sparse()
> x:values()
[7, 8]
int64 (2) cpu

## values
> tide.tensor{{0, 7}, {8, 0}}:to_sparse():values()
[7, 8]
int64 (2) cpu
]==]
