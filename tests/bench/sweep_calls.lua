-- sweep_calls.lua: how each operator of the table is called by sweep.lua: for an operator a list of calls, each a
-- function of `o` that returns the arguments. `o` describes operands of about o.n elements, in the dtype and layout of
-- the case; nothing is made here, so that PyTorch can be told of the same call:
--
--   o:x() o:pos() o:unit()   elements in (-1, 1), (0.1, 2), (0, 1); any shape does
--   o:mask(), o:whole()      bools, integers of 1 to 9, of the same shape
--   o:m([fill]), o.r, o.c    rows: a matrix of r times c
--   o:image([fill]), o:signal(), o:volume()   (N, C, H, W), (N, C, L), (N, C, D, H, W)
--   o:square(most), o:side(most)   a matrix whose sides are at most so long
--   o:of(shape, [fill])      a shape of one's own
--   o:index(high, shape)     places that count up to `high`
--   at(k), NIL, list{...}, options{...}, dtype(name)
--
-- An operator that isn't named here and takes nothing but tensors, then defaults, is called with elements of the fill
-- that `fills` has for it ("whole" goes with int64 alone). Those in `left` are not called, each for its reason.
local calls = {}

local function at(k) return { kind = "at", value = k } end
local NIL = { kind = "nil" }
local function list(items) return { kind = "list", items = items } end
local function options(names) return { kind = "options", names = names } end

local fills, left = {}, {}

local function all(target, names, value)
    for name in names:gmatch("%S+") do
        target[name] = value
    end
end

all(fills, "sqrt rsqrt log log2 log10 log1p reciprocal div pow fmod remainder floor_divide trunc_divide float_power lgamma "
    .. "digamma xlogy xlog1py igamma igammac rsub atan2 ldexp poisson entr", "pos")
all(fills, "acosh zeta", "over")
all(fills, "asin acos atanh erfinv logit ndtri binary_cross_entropy bernoulli", "unit")
all(fills, "logical_and logical_or logical_xor logical_not all any", "mask")
all(fills, "bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift gcd lcm", "whole")

all(left, "sparse_coo_tensor to_sparse to_dense coalesce sparse_mask values indices _values _indices _nnz is_coalesced sparse_dim "
    .. "dense_dim", "sparse")
all(left, "ctc_loss embedding_bag multilabel_margin_loss max_unpool1d max_unpool2d max_unpool3d col2im im2col", "has operands of its own")
all(left, "int_mm", "takes int8 alone")
all(left, "quantize_per_tensor quantize_per_channel dequantize int_repr", "quantized: quantized.lua")
all(left, "as_strided empty_strided new_empty_strided scalar_tensor", "does not depend on a size")

local function def(names, ...)
    all(calls, names, { ... })
end

-- ---- elements ----

def("threshold", function(o) return { o:x(), 0.1, 0.5 } end)
def("prelu", function(o) return { o:x(), o:of { 1 } } end)
def("clamp", function(o) return { o:x(), -0.5, 0.5 } end)
def("clamp_min clamp_max", function(o) return { o:x(), 0.1 } end)
def("where", function(o) return { o:mask(), o:x(), o:x() } end)
def("lerp", function(o) return { o:x(), o:x(), 0.3 } end)
def("mvlgamma", function(o) return { o:over(), 1 } end)
def("polygamma", function(o) return { 1, o:pos() } end)
def("glu", function(o) return { o:m() } end)
def("add sub mul", function(o) return { o:x(), o:x() } end, function(o) return { o:m(), o:of { o.c } } end,
    function(o) return { o:x(), 2.5 } end)
def("masked_fill", function(o) return { o:x(), o:mask(), 0.5 } end)
def("hinge_embedding_loss soft_margin_loss", function(o) return { o:x(), o:x "signs" } end)
def("margin_ranking_loss", function(o) return { o:x(), o:x(), o:x "signs" } end)
def("binary_cross_entropy_with_logits", function(o) return { o:x(), o:unit() } end)
def("kl_div", function(o) return { o:x(), o:unit() } end)
def("gaussian_nll_loss", function(o) return { o:x(), o:x(), o:pos() } end)

-- Equal ones: where elements differ, PyTorch looks no further.
def("equal", function(o) return { o:of({ o.n }, "ordered"), o:of({ o.n }, "ordered") } end)
def("alpha_dropout", function(o) return { o:x(), 0.5, true } end)

-- ---- rows ----

def("sum mean nansum nanmean prod amax amin", function(o) return { o:x() } end, function(o) return { o:m(), at(1) } end,
    function(o) return { o:m(), at(2) } end)
def("all any count_nonzero", function(o) return { o:m "mask" } end, function(o) return { o:m "mask", at(2) } end)
def("var std max min argmax argmin std_mean var_mean", function(o) return { o:x() } end, function(o) return { o:m(), at(1) } end,
    function(o) return { o:m(), at(2) } end)
def("std_mean var_mean", function(o) return { o:x() } end, function(o) return { o:m(), at(2) } end)
def("logsumexp softmax log_softmax", function(o) return { o:m(), at(2) } end, function(o) return { o:m(), at(1) } end)
def("norm", function(o) return { o:x() } end, function(o) return { o:m(), 2, at(2) } end)
def("sum_to_size", function(o) return { o:m(), 1, o.c } end)
def("cumsum cumprod cummax cummin logcumsumexp", function(o) return { o:m(), at(2) } end, function(o) return { o:m(), at(1) } end)
def("layer_norm rms_norm", function(o) return { o:m(), list { o.c } } end)
def("cross_entropy nll_loss multi_margin_loss", function(o) return { o:m(), o:index(o.c, { o.r }) } end)
def("cosine_embedding_loss", function(o) return { o:m(), o:m(), o:of({ o.r }, "signs") } end)
def("multilabel_soft_margin_loss", function(o) return { o:m(), o:m "unit" } end)
def("triplet_margin_loss", function(o) return { o:m(), o:m(), o:m() } end)
def("pairwise_distance cosine_similarity", function(o) return { o:m(), o:m() } end)
def("normalize corrcoef cov trapezoid trapz cumulative_trapezoid diff msort argsort median nanmedian sort mode",
    function(o) return { o:m() } end)
def("corrcoef cov", function(o) return { o:of { 20, math.max(o.n // 20, 1) } } end)
def("median nanmedian", function(o) return { o:x() } end, function(o) return { o:m(), at(2) } end)
def("sort", function(o) return { o:m() } end, function(o) return { o:vector() } end)
def("kthvalue", function(o) return { o:m(), 1 + o.c // 2 } end)
def("topk", function(o) return { o:m(), math.min(o.c, 10) } end)
def("quantile nanquantile", function(o) return { o:m(), 0.5, at(2) } end)
def("renorm", function(o) return { o:m(), 2, at(1), 1 } end)

-- ---- products and matrices ----

local function squares(count, most)
    return function(o)
        local args = {}
        for k = 1, count do
            args[k] = o:square(most)
        end
        return args
    end
end
def("matmul mm linear", squares(2))
def("addmm chain_matmul", squares(3))
def("linalg_multi_dot", function(o) return { list(squares(3)(o)) } end)
def("matrix_power linalg_matrix_power", function(o) return { o:square(), 3 } end)
def("bmm", function(o) return { o:batch(), o:batch() } end)
def("baddbmm", function(o) return { o:batch(), o:batch(), o:batch() } end)
def("addbmm", function(o) return { o:square(300), o:batch(), o:batch() } end)
def("mv", function(o) return { o:m(), o:of { o.c } } end)
def("addmv", function(o) return { o:of { o.r }, o:m(), o:of { o.c } } end)
def("addr", function(o) return { o:m(), o:of { o.r }, o:of { o.c } } end)
def("outer", function(o) return { o:of { o.r }, o:of { o.c } } end)
def("dot vdot inner", function(o) return { o:vector(), o:vector() } end)
def("linalg_vecdot", function(o) return { o:m(), o:m() } end)
def("cross linalg_cross", function(o) return { o:of { math.max(o.n // 3, 1), 3 }, o:of { math.max(o.n // 3, 1), 3 } } end)
def("kron", function(o)
    local side = math.max(math.floor(o.n ^ 0.25), 1)
    return { o:of { side, side }, o:of { side, side } }
end)
def("einsum", function(o) return { "ij,jk->ik", o:square(), o:square() } end)
def("tensordot", function(o) return { o:square(), o:square(), 1 } end)
def("cdist", function(o) return { o:of { o:side(), 16 }, o:of { o:side(), 16 } } end)
def("bilinear", function(o)
    local rows = math.max(o.n // 16, 1)
    return { o:of { rows, 16 }, o:of { rows, 16 }, o:of { 16, 16, 16 } }
end)
def("scaled_dot_product_attention", function(o)
    local shape = { 1, 4, math.max(math.min(o.n // 256, 512), 1), 64 }
    return { o:of(shape), o:of(shape), o:of(shape) }
end)
def("det linalg_det logdet slogdet linalg_slogdet inverse linalg_inv linalg_inv_ex linalg_cholesky linalg_cholesky_ex linalg_eigh "
    .. "linalg_eigvalsh linalg_qr linalg_svd linalg_svdvals linalg_matrix_rank linalg_pinv pinverse matrix_exp linalg_matrix_exp "
    .. "cholesky_inverse", function(o) return { o:definite() } end)
def("linalg_solve cholesky_solve", function(o) return { o:definite(), o:definite() } end)
def("linalg_solve_triangular", function(o) return { o:definite(), o:definite(), options { upper = true } } end)
def("trace linalg_diagonal diagonal", function(o) return { o:square(4000) } end)
def("vander linalg_vander", function(o) return { o:of { o:side() } } end)

-- ---- windows over images ----

def("conv1d", function(o) return { o:signal(), o:of { o.channels, o.channels, 3 }, NIL, 1, 1 } end)
def("conv2d", function(o) return { o:image(), o:of { o.channels, o.channels, 3, 3 }, NIL, 1, 1 } end)
def("conv_transpose1d", function(o) return { o:signal(), o:of { o.channels, o.channels, 3 }, NIL, 1, 1 } end)
def("conv_transpose2d", function(o) return { o:image(), o:of { o.channels, o.channels, 3, 3 }, NIL, 1, 1 } end)
def("conv3d conv_transpose3d", function(o)
    local volume = o:volume()
    return { volume, o:of { volume.shape[2], volume.shape[2], 3, 3, 3 }, NIL, 1, 1 }
end)
def("avg_pool1d max_pool1d", function(o) return { o:signal(), 2 } end)
def("avg_pool2d max_pool2d", function(o) return { o:image(), 2 } end)
def("avg_pool3d max_pool3d", function(o) return { o:volume(), 2 } end)
def("lp_pool1d", function(o) return { o:signal(), 2, 2 } end)
def("lp_pool2d", function(o) return { o:image(), 2, 2 } end)
def("lp_pool3d", function(o) return { o:volume(), 2, 2 } end)
def("adaptive_avg_pool1d adaptive_max_pool1d", function(o) return { o:signal(), 4 } end)
def("adaptive_avg_pool2d adaptive_max_pool2d", function(o) return { o:image(), 4 } end)
def("adaptive_avg_pool3d adaptive_max_pool3d", function(o) return { o:volume(), 4 } end)
def("interpolate", function(o) return { o:image(), NIL, list { 2, 2 }, "nearest" } end,
    function(o) return { o:image(), NIL, list { 2, 2 }, "bilinear" } end)
def("batch_norm", function(o) return { o:image(), NIL, NIL, NIL, NIL, true } end)
def("instance_norm", function(o) return { o:image() } end)
def("group_norm", function(o) return { o:image(), o.channels > 1 and 2 or 1 } end)
def("local_response_norm", function(o) return { o:image(), 3 } end)
def("channel_shuffle pixel_shuffle pixel_unshuffle", function(o) return { o:image(), 2 } end)
def("pad", function(o) return { o:m(), list { 1, 1 } } end, function(o) return { o:image(), list { 1, 1, 1, 1 }, "reflect" } end)
def("grid_sample", function(o)
    local image = o:image()
    return { image, o:of { image.shape[1], image.shape[3], image.shape[4], 2 }, options { align_corners = false } }
end)
def("affine_grid", function(o)
    local side = o:side(2000)
    return { o:of { 1, 2, 3 }, list { 1, 1, side, side }, options { align_corners = false } }
end)
def("feature_dropout feature_alpha_dropout", function(o) return { o:image(), 0.5, true } end)

-- ---- cells ----

local function cell(gates, states)
    return function(o)
        local rows = math.max(math.min(o.n // 64, 4096), 1)
        local hx = { o:of { rows, 64 }, states == 2 and o:of { rows, 64 } or nil }
        return { o:of { rows, 64 }, states == 2 and list(hx) or hx[1], o:of { gates * 64, 64 }, o:of { gates * 64, 64 } }
    end
end
local function layer(gates, states)
    return function(o)
        local rows = math.max(math.min(o.n // 2048, 256), 1)
        local hx = { o:of { 1, rows, 64 }, states == 2 and o:of { 1, rows, 64 } or nil }
        local params = list { o:of { gates * 64, 64 }, o:of { gates * 64, 64 } }
        return { o:of { 32, rows, 64 }, states == 2 and list(hx) or hx[1], params, false, 1, 0, false, false, false }
    end
end
def("gru_cell", cell(3, 1))
def("lstm_cell", cell(4, 2))
def("rnn_tanh_cell rnn_relu_cell", cell(1, 1))
def("gru", layer(3, 1))
def("lstm", layer(4, 2))
def("rnn_tanh rnn_relu", layer(1, 1))

-- ---- places ----

def("gather take_along_dim", function(o) return { o:m(), at(2), o:index(o.c, { o.r, o.c }) } end)
def("take_along_dim", function(o) return { o:m(), o:index(o.c, { o.r, o.c }), at(2) } end)
def("scatter scatter_add", function(o) return { o:m(), at(2), o:index(o.c, { o.r, o.c }), o:m() } end)
def("scatter_reduce", function(o) return { o:m(), at(2), o:index(o.c, { o.r, o.c }), o:m(), "sum" } end)
def("index_select", function(o) return { o:m(), at(1), o:index(o.r, { o.r }) } end,
    function(o) return { o:m(), at(2), o:index(o.c, { o.c }) } end)
def("index_add index_copy", function(o) return { o:m(), at(1), o:index(o.r, { o.r }), o:m() } end)
def("index_fill", function(o) return { o:m(), at(1), o:index(o.r, { o.r }), 0.5 } end)
def("index_reduce", function(o) return { o:m(), at(1), o:index(o.r, { o.r }), o:m(), "amax" } end)
def("index_put", function(o) return { o:vector(), list { o:index(o.n, { o.n }) }, o:vector() } end)
def("put", function(o) return { o:vector(), o:index(o.n, { o.n }), o:vector() } end)
def("take", function(o) return { o:vector(), o:index(o.n, { o.n }) } end)
def("masked_select", function(o) return { o:x(), o:mask() } end)
def("masked_scatter", function(o) return { o:x(), o:mask(), o:x() } end)
def("nonzero argwhere", function(o) return { o:m "mask" } end)
def("one_hot", function(o) return { o:index(10, { math.max(o.n // 10, 1) }), 10 } end)
def("embedding", function(o) return { o:of { 1000, 64 }, o:index(1000, { math.max(o.n // 64, 1) }) } end)
def("bincount", function(o) return { o:index(100, { o.n }) } end)
def("bucketize", function(o) return { o:x(), o:of({ 100 }, "ordered") } end)
def("searchsorted", function(o) return { o:of({ 1000 }, "ordered"), o:x() } end)
def("histc", function(o) return { o:x(), 100, -1, 1 } end)
def("isin", function(o) return { o:whole(), o:of({ 20 }, "whole") } end)
def("unique unique_consecutive", function(o) return { o:vector "whole" } end)

-- ---- copies and shapes ----

def("to", function(o) return { o:x(), options { dtype = { kind = "dtype", name = "float64" } } } end,
    function(o) return { o:x(), options { dtype = { kind = "dtype", name = "bfloat16" } } } end)
def("contiguous clone detach t ravel flatten flipud fliplr rot90 triu tril", function(o) return { o:m() } end)
def("zero_ bernoulli_ random_ cauchy_ exponential_ log_normal_ normal_ uniform_", function(o) return { o:x "scratch" } end)
def("geometric_", function(o) return { o:x "scratch", 0.5 } end)
def("fill_", function(o) return { o:x "scratch", 0.5 } end)
def("fill_diagonal_", function(o) return { o:m "scratch", 0.5 } end)
def("copy_", function(o) return { o:x "scratch", o:x() } end)
def("fill", function(o) return { o:x(), 0.5 } end)
def("cat stack hstack vstack dstack column_stack row_stack", function(o) return { list { o:m(), o:m() } } end)
def("cat", function(o) return { list { o:m(), o:m() }, at(1) } end, function(o) return { list { o:m(), o:m() }, at(2) } end)
def("block_diag", function(o) return { o:square(), o:square() } end)
def("chunk tensor_split vsplit hsplit", function(o) return { o:m(), 2 } end)
def("dsplit", function(o) return { o:of { 2, o.r, o.c }, 2 } end)
def("split", function(o) return { o:m(), 1 + o.r // 2 } end)
def("split_with_sizes", function(o) return { o:m(), list { o.r } } end)
def("unbind", function(o) return { o:of { 10, math.max(o.n // 10, 1) } } end)
def("flip", function(o) return { o:m(), list { at(1) } } end, function(o) return { o:m(), list { at(2) } } end)
def("roll", function(o) return { o:x(), 1 } end)
def("tile rep repeat", function(o) return { o:m(), list { 2, 1 } } end)
def("repeat_interleave", function(o) return { o:vector(), 2 } end)
def("slice_scatter", function(o) return { o:m(), o:m() } end)
def("select_scatter", function(o) return { o:m(), o:of { o.c }, at(1), at(1) } end)
def("diagonal_scatter", function(o) return { o:square(4000), o:of { o:side(4000) } } end)
def("diag", function(o) return { o:square(4000) } end)
def("diagflat", function(o) return { o:of { o:side(4000) } } end)
def("diag_embed", function(o) return { o:of { 10, o:side() } } end)
def("meshgrid cartesian_prod", function(o) return { o:of { o:side(4000) }, o:of { o:side(4000) } } end)
def("combinations", function(o) return { o:of { o:side() } } end)
def("broadcast_tensors", function(o) return { o:of { o:side(4000), 1 }, o:of { 1, o:side(4000) } } end)
def("unfold", function(o) return { o:m(), at(1), 1, 1 } end)
def("permute", function(o) return { o:m(), list { at(2), at(1) } } end)
def("movedim transpose", function(o) return { o:m(), at(1), at(2) } end)
def("reshape", function(o) return { o:m(), list { o.c, o.r } } end)
def("view", function(o) return { o:m(), list { o.r, o.c } } end)
def("view_as reshape_as expand_as", function(o) return { o:m(), o:m() } end)
def("expand broadcast_to", function(o) return { o:of { 1, o.c }, list { o.r, o.c } } end)
def("narrow", function(o) return { o:m(), at(1), at(1), 1 } end)
def("select", function(o) return { o:m(), at(1), at(1) } end)
def("unsqueeze", function(o) return { o:m(), at(1) } end)
def("unflatten", function(o) return { o:m(), at(1), list { 1, o.r } } end)

-- ---- fresh tensors ----

local function fresh(o) return options { dtype = { kind = "dtype", name = o.dtype } } end
def("zeros ones empty rand randn", function(o) return { list { o.n }, fresh(o) } end)
def("full", function(o) return { list { o.n }, 1, fresh(o) } end)
def("full_like", function(o) return { o:x(), 1 } end)
def("arange", function(o) return { 0, o.n, 1, fresh(o) } end)
def("linspace logspace", function(o) return { 0, 1, o.n, fresh(o) } end)
def("linspace", function(o) return { 0, 1, o.n, fresh(o) } end)
def("logspace", function(o) return { 0, 1, o.n, 10, fresh(o) } end)
def("eye", function(o) return { o:side(4000), o:side(4000), fresh(o) } end)
def("tril_indices triu_indices", function(o) return { o:side(4000), o:side(4000) } end)
def("hann_window hamming_window blackman_window bartlett_window kaiser_window", function(o) return { o.n } end)
def("new_zeros new_ones new_empty", function(o) return { o:of { 1 }, list { o.n } } end)
def("new_full", function(o) return { o:of { 1 }, list { o.n }, 1 } end)
def("randint", function(o) return { 0, 10, list { o.n } } end)
def("randint_like", function(o) return { o:x(), 0, 10 } end)
def("randperm", function(o) return { o.n } end)
def("normal", function(o) return { o:x(), o:pos() } end)
def("multinomial", function(o) return { o:m "unit", 5, true } end)

return { calls = calls, fills = fills, left = left }
