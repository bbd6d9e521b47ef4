-- devices/work_lists.lua: which functions of a device (engine/core/backend.h) each operator asks for: a line
-- "FUNCTIONS: OPERATORS" for all that ask for the same. tests/ops/test_device.lua compares it with what operators do,
-- and writes it anew with TIDE_WORK_WRITE=FILE.
local text = [[
: _nnz _values as_strided atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to chunk contiguous dense_dim
    detach diagonal dsplit empty empty_like empty_strided expand expand_as flatten hsplit is_coalesced linalg_diagonal
    meshgrid movedim narrow new_empty new_empty_strided permute positive ravel reshape reshape_as select slice
    sparse_dim split split_with_sizes squeeze t tensor_split transpose unbind unflatten unfold unsqueeze values view
    view_as vsplit
add_strided pointwise: col2im
band: tril triu
band nonzero pointwise: tril_indices triu_indices
band pointwise product reduce softmax: scaled_dot_product_attention
channel_map channel_sums pointwise: batch_norm
channel_map norm pointwise: instance_norm
check class_weights cross_entropy gather pointwise reduce softmax: cross_entropy
check class_weights gather pointwise reduce scatter: multi_margin_loss
check class_weights nll pointwise: nll_loss
check ctc pointwise reduce: ctc_loss
check draw pointwise: bernoulli normal
check find index_read index_write pointwise reduce scan: embedding_bag
check gather pointwise: gather take_along_dim
check gather pointwise reduce scan scatter: multilabel_margin_loss
check gather pointwise reduce sort: nanquantile quantile
check index_read index_write pointwise reduce scan: repeat_interleave
check index_read pointwise: embedding index_select take
check index_write nonzero pointwise: index_put
check index_write pointwise: index_add index_copy index_fill put
check pointwise poisson: poisson
check pointwise product reduce: cov
check pointwise reduce: binary_cross_entropy gaussian_nll_loss sparse_coo_tensor
check pointwise reduce scatter: bincount one_hot
check pointwise scatter: index_reduce max_unpool1d max_unpool2d max_unpool3d scatter scatter_add scatter_reduce
check pointwise search: searchsorted
convolution: conv1d conv2d conv3d
convolution pointwise: conv_transpose1d conv_transpose2d conv_transpose3d
draw: bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ rand rand_like randint randint_like randn
    randn_like random_ uniform_
draw pointwise: alpha_dropout dropout feature_alpha_dropout feature_dropout rrelu
factor: cholesky_solve det inverse linalg_cholesky linalg_cholesky_ex linalg_det linalg_eigh linalg_eigvalsh
    linalg_inv linalg_inv_ex linalg_qr linalg_slogdet linalg_solve linalg_svd linalg_svdvals slogdet
factor pointwise: linalg_solve_triangular logdet
factor pointwise product: cholesky_inverse
factor pointwise product reduce: linalg_matrix_exp linalg_pinv matrix_exp pinverse
factor pointwise reduce: linalg_matrix_rank
find pointwise: argmax argmin
find pointwise reduce: max min
grid: grid_sample
index_read index_write nonzero pointwise scan scatter search sort: sparse_mask
index_read index_write nonzero pointwise scan scatter sort: coalesce
index_read nonzero: masked_select
index_read nonzero order_rows pointwise reduce scan scatter sort: unique
index_read nonzero pointwise progression reduce: combinations
index_read nonzero pointwise reduce: to_sparse
index_read nonzero pointwise reduce scan: unique_consecutive
index_read pointwise product progression reduce: corrcoef
index_read pointwise search sort: isin
index_write nonzero pointwise reduce: masked_scatter
index_write pointwise: to_dense
max_pool pointwise: adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_pool1d max_pool2d max_pool3d
multinomial pointwise: multinomial
nonzero pointwise: argwhere nonzero
norm: group_norm layer_norm rms_norm
permutation pointwise: randperm
pointwise: _indices abs acos acosh add addcdiv addcmul addr asin asinh atan atan2 atanh bitwise_and bitwise_left_shift
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor block_diag cartesian_prod cat ceil celu channel_shuffle
    clamp clamp_max clamp_min clone column_stack copy_ copysign cos cosh cross deg2rad dequantize diag diag_embed
    diagflat diagonal_scatter diff digamma div dstack elu entr eq erf erfc erfcx erfinv exp exp2 expm1 eye fill fill_
    fill_diagonal_ flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac full full_like gcd ge gelu
    glu gt hardshrink hardsigmoid hardswish hardtanh heaviside hstack hypot i0 i0e i1 i1e igamma igammac im2col
    indices int_repr isclose isfinite isinf isnan isneginf isposinf isreal kron lcm ldexp le leaky_relu lerp lgamma
    linalg_cross log log10 log1p log2 log_ndtr logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    logit logsigmoid lt masked_fill maximum minimum mish mul nan_to_num ndtr ndtri ne neg new_full new_ones new_zeros
    nextafter ones ones_like outer pixel_shuffle pixel_unshuffle polygamma pow prelu rad2deg reciprocal relu relu6
    remainder rep repeat roll rot90 round row_stack rsqrt rsub scalar_tensor select_scatter selu sigmoid sign signbit
    silu sin sinc sinh slice_scatter softplus softshrink softsign sqrt square stack sub tan tanh tanhshrink threshold
    tile to trunc trunc_divide vstack where xlog1py xlogy zero_ zeros zeros_like zeta
pointwise product: addmm addmv baddbmm bilinear gru gru_cell inner linalg_matrix_power lstm lstm_cell matmul
    matrix_power rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell tensordot
pointwise product reduce: addbmm cdist einsum
pointwise progression: affine_grid bartlett_window blackman_window hamming_window hann_window kaiser_window logspace
pointwise progression reduce: mvlgamma
pointwise quantize: quantize_per_channel quantize_per_tensor
pointwise reduce: allclose binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity dist equal
    hinge_embedding_loss huber_loss kl_div l1_loss linalg_vecdot local_response_norm logsumexp margin_ranking_loss
    mse_loss multilabel_soft_margin_loss nanmean normalize pairwise_distance poisson_nll_loss renorm smooth_l1_loss
    soft_margin_loss trapezoid trapz triplet_margin_loss
pointwise reduce resample: lp_pool1d lp_pool2d lp_pool3d
pointwise reduce scatter: histc
pointwise resample: pad
pointwise scan: cummax cummin cumulative_trapezoid linalg_vander vander
pointwise search: bucketize
pointwise select: kthvalue median mode nanmedian
pointwise sort: argsort sort topk
product: bmm chain_matmul dot int_mm linalg_multi_dot linear mm mv vdot
progression: arange linspace
reduce: all amax amin aminmax any count_nonzero mean nansum norm prod std std_mean sum sum_to_size trace var var_mean
resample: adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d interpolate
scan: cumprod cumsum logcumsumexp
softmax: log_softmax softmax
sort: msort
]]
local lists, functions = {}, ""
for line in string.gmatch(text, "[^\n]+") do
    local head, names = string.match(line, "^([^:]*):(.*)")
    functions = head or functions
    for name in string.gmatch(names or line, "%S+") do
        lists[name] = functions
    end
end
return lists
