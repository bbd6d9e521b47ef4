-- _examples_linalg.lua: examples of products and decompositions of matrices; _examples.lua says how they stand here.
return [==[
## addbmm
> tide.addbmm(tide.zeros(2, 2), tide.ones(3, 2, 4), tide.ones(3, 4, 2))
[[12., 12.],
 [12., 12.]]
float32 (2, 2) cpu

## addmm
> tide.addmm(tide.tensor{1.0, 2}, tide.ones(2, 3), tide.ones(3, 2))
[[4., 5.],
 [4., 5.]]
float32 (2, 2) cpu

## addmv
> tide.addmv(tide.tensor{1.0, 2}, tide.ones(2, 3), tide.tensor{1.0, 2, 3})
[7., 8.]
float32 (2) cpu

## addr
> tide.addr(tide.zeros(2, 2), tide.tensor{1.0, 2}, tide.tensor{3.0, 4})
[[3., 4.],
 [6., 8.]]
float32 (2, 2) cpu

## baddbmm
> tide.baddbmm(tide.ones(1, 2, 2), tide.ones(1, 2, 3), tide.ones(1, 3, 2))
[[[4., 4.],
  [4., 4.]]]
float32 (1, 2, 2) cpu

## bilinear
> tide.bilinear(tide.tensor{{1.0, 2}}, tide.tensor{{3.0}}, tide.ones(1, 2, 1))
[[9.]]
float32 (1, 1) cpu

## bmm
> tide.bmm(tide.ones(5, 2, 3), tide.ones(5, 3, 4)).shape
(5, 2, 4)

## cdist
> tide.cdist(tide.tensor{{0.0, 0}}, tide.tensor{{3.0, 4}, {6, 8}})
[[ 5., 10.]]
float32 (1, 2) cpu

## chain_matmul
> tide.chain_matmul(tide.ones(2, 3), tide.ones(3, 4), tide.ones(4, 1))
[[12.],
 [12.]]
float32 (2, 1) cpu

## cholesky_inverse
> L = tide.linalg.cholesky(tide.tensor{{4.0, 2}, {2, 3}})
> tide.cholesky_inverse(L)
[[ 0.3750, -0.2500],
 [-0.2500,  0.5000]]
float32 (2, 2) cpu

## cholesky_solve
> L = tide.linalg.cholesky(tide.tensor{{4.0, 2}, {2, 3}})
> tide.cholesky_solve(tide.tensor{{8.0}, {7}}, L)
[[1.2500],
 [1.5000]]
float32 (2, 1) cpu

## cross
> tide.cross(tide.tensor{1, 0, 0}, tide.tensor{0, 1, 0})
[0, 0, 1]
int64 (3) cpu

## det
> tide.tensor{{1.0, 2}, {3, 4}}:det()
-2  float32 () cpu

## dot
> tide.dot(tide.tensor{1, 2, 3}, tide.tensor{4, 5, 6})
32  int64 () cpu

## einsum
> a, b = tide.ones(2, 3), tide.ones(3, 4)
> tide.einsum("ij,jk->ik", a, b)
[[3., 3., 3., 3.],
 [3., 3., 3., 3.]]
float32 (2, 4) cpu
> tide.einsum("ij->j", a)
[2., 2., 2.]
float32 (3) cpu

## inner
> tide.inner(tide.tensor{1, 2}, tide.tensor{3, 4})
11  int64 () cpu

## int_mm
> tide.int_mm(tide.tensor({{100, 100}}, {dtype = tide.int8}), tide.tensor({{100}, {-3}}, {dtype = tide.int8}))
[[9700]]
int32 (1, 1) cpu

## inverse
> tide.tensor{{2.0, 0}, {0, 4}}:inverse()
[[0.5000, 0.0000],
 [0.0000, 0.2500]]
float32 (2, 2) cpu

## kron
> tide.kron(tide.eye(2), tide.tensor{{1.0, 2}})
[[1., 2., 0., 0.],
 [0., 0., 1., 2.]]
float32 (2, 4) cpu

## linalg_cholesky
> tide.linalg.cholesky(tide.tensor{{4.0, 2}, {2, 5}})
[[2., 0.],
 [1., 2.]]
float32 (2, 2) cpu

## linalg_cholesky_ex
> L, info = tide.linalg.cholesky_ex(tide.tensor{{1.0, 2}, {2, 1}})
> info
2  int32 () cpu

## linalg_cross
> tide.linalg.cross(tide.tensor{1.0, 0, 0}, tide.tensor{0.0, 1, 0})
[0., 0., 1.]
float32 (3) cpu

## linalg_det
> tide.linalg.det(tide.tensor{{1.0, 2}, {3, 4}})
-2  float32 () cpu

## linalg_diagonal
> tide.linalg.diagonal(tide.tensor{{1.0, 2}, {3, 4}})
[1., 4.]
float32 (2) cpu

## linalg_eigh
> values, vectors = tide.linalg.eigh(tide.tensor{{2.0, 1}, {1, 2}})
> values
[1., 3.]
float32 (2) cpu

## linalg_eigvalsh
> tide.linalg.eigvalsh(tide.tensor{{2.0, 1}, {1, 2}})
[1., 3.]
float32 (2) cpu

## linalg_inv
> tide.linalg.inv(tide.tensor{{2.0, 0}, {0, 4}})
[[0.5000, 0.0000],
 [0.0000, 0.2500]]
float32 (2, 2) cpu

## linalg_inv_ex
> inverse, info = tide.linalg.inv_ex(tide.tensor{{1.0, 2}, {2, 4}})
> info
2  int32 () cpu

## linalg_matrix_exp
> tide.linalg.matrix_exp(tide.zeros(2, 2))
[[1., 0.],
 [0., 1.]]
float32 (2, 2) cpu

## linalg_matrix_power
> tide.linalg.matrix_power(tide.tensor{{2.0, 0}, {0, 4}}, -1)
[[0.5000, 0.0000],
 [0.0000, 0.2500]]
float32 (2, 2) cpu

## linalg_matrix_rank
> tide.linalg.matrix_rank(tide.tensor{{1.0, 2}, {2, 4}})
1  int64 () cpu

## linalg_multi_dot
> tide.linalg.multi_dot{tide.ones(2, 3), tide.ones(3, 4), tide.ones(4, 1)}
[[12.],
 [12.]]
float32 (2, 1) cpu

## linalg_pinv
> tide.linalg.pinv(tide.tensor{{1.0}, {2}})
[[0.2000, 0.4000]]
float32 (1, 2) cpu

## linalg_qr
> Q, R = tide.linalg.qr(tide.tensor{{3.0, 1}, {4, 2}})
> (Q:matmul(R) - tide.tensor{{3.0, 1}, {4, 2}}):abs():amax():lt(1e-5)
true  bool () cpu

## linalg_slogdet
> sign, logdet = tide.linalg.slogdet(tide.tensor{{0.0, 1}, {2, 0}})
> sign
-1  float32 () cpu

## linalg_solve
> tide.linalg.solve(tide.tensor{{2.0, 0}, {0, 4}}, tide.tensor{2.0, 2})
[1.0000, 0.5000]
float32 (2) cpu

## linalg_solve_triangular
> tide.linalg.solve_triangular(tide.tensor{{2.0, 0}, {1, 1}}, tide.tensor{{2.0}, {3}}, {upper = false})
[[1.],
 [2.]]
float32 (2, 1) cpu

## linalg_svd
> U, S, Vh = tide.linalg.svd(tide.tensor{{3.0, 0}, {0, 4}})
> S
[4., 3.]
float32 (2) cpu

## linalg_svdvals
> tide.linalg.svdvals(tide.tensor{{3.0, 0}, {0, 4}})
[4., 3.]
float32 (2) cpu

## linalg_vander
> tide.linalg.vander(tide.tensor{2.0, 3}, {N = 3})
[[1., 2., 4.],
 [1., 3., 9.]]
float32 (2, 3) cpu

## linalg_vecdot
> tide.linalg.vecdot(tide.tensor{{1.0, 2}, {3, 4}}, tide.tensor{1.0, 1})
[3., 7.]
float32 (2) cpu

## linear
> tide.linear(tide.tensor{1.0, 2}, tide.tensor{{1.0, 0}, {0, 1}, {1, 1}}, tide.tensor{0.5, 0.5, 0.5})
[1.5000, 2.5000, 3.5000]
float32 (3) cpu

## logdet
> tide.tensor{{2.0, 0}, {0, 4}}:logdet()
2.079442  float32 () cpu

## matmul
> tide.matmul(tide.tensor{{1, 2}, {3, 4}}, tide.tensor{5, 6})
[17, 39]
int64 (2) cpu

## matrix_exp
> tide.matrix_exp(tide.tensor{{0.0, 1}, {0, 0}})
[[1., 1.],
 [0., 1.]]
float32 (2, 2) cpu

## matrix_power
> tide.tensor{{1, 1}, {1, 0}}:matrix_power(10)
[[89, 55],
 [55, 34]]
int64 (2, 2) cpu

## mm
> tide.tensor{{1, 2}, {3, 4}}:mm(tide.tensor{{0, 1}, {1, 0}})
[[2, 1],
 [4, 3]]
int64 (2, 2) cpu

## mv
> tide.tensor{{1, 2}, {3, 4}}:mv(tide.tensor{5, 6})
[17, 39]
int64 (2) cpu

## outer
> tide.outer(tide.tensor{1, 2}, tide.tensor{3, 4, 5})
[[ 3,  4,  5],
 [ 6,  8, 10]]
int64 (2, 3) cpu

## pinverse
> tide.pinverse(tide.tensor{{1.0}, {2}})
[[0.2000, 0.4000]]
float32 (1, 2) cpu

## slogdet
> sign, logdet = tide.tensor{{2.0, 0}, {0, 4}}:slogdet()
> logdet
2.079442  float32 () cpu

## tensordot
> tide.tensordot(tide.ones(2, 3, 4), tide.ones(3, 4, 5), 2).shape
(2, 5)

## vdot
> tide.vdot(tide.tensor{1, 2}, tide.tensor{3, 4})
11  int64 () cpu
]==]
