-- test_differentiable.lua: which operators have gradients, kept by hand: the walk asks the table of
-- operators, and one that lost its derivative would pass there. The gradients themselves are
-- test_golden.lua's and test_walk.lua's.
local t = require "harness"
local golden = require "golden"

local differentiable, constant = {}, {}
local function add(set, names)
    for name in names:gmatch("%S+") do
        set[name] = true
    end
end

add(differentiable, [[
    copy_ fill_ zero_ clone contiguous to
    add sub mul div remainder fmod pow maximum minimum atan2 lerp addcmul addcdiv
    neg abs sign square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p
    sin cos tan asin acos atan sinh cosh tanh floor ceil round trunc frac
    relu sigmoid erf erfc silu gelu softplus leaky_relu elu softshrink clamp_min clamp_max clamp where
    floor_divide trunc_divide
    sum nansum mean nanmean prod var std amax amin max min norm logsumexp cumsum
    softmax log_softmax cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss
    binary_cross_entropy binary_cross_entropy_with_logits
    matmul mm bmm mv dot outer addmm addmv baddbmm linear
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d avg_pool2d interpolate pad pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im grid_sample affine_grid
    max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
    max_unpool1d max_unpool2d max_unpool3d avg_pool1d avg_pool3d lp_pool1d lp_pool2d lp_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
    view reshape view_as reshape_as flatten unflatten permute transpose t movedim squeeze unsqueeze
    expand expand_as broadcast_to select slice narrow as_strided tril triu
    unbind chunk split cat stack tile flip roll
    index_select index_add index_copy index_fill take embedding masked_fill masked_select
    gather scatter scatter_add
    dropout
    ravel
    sort msort topk kthvalue median nanmedian mode cumprod cummax cummin logcumsumexp quantile nanquantile
    aminmax var_mean std_mean renorm dist diff trapezoid cumulative_trapezoid cov corrcoef
    layer_norm rms_norm group_norm batch_norm instance_norm local_response_norm normalize
    scaled_dot_product_attention embedding_bag ctc_loss bilinear
    cosine_similarity pairwise_distance kl_div poisson_nll_loss gaussian_nll_loss soft_margin_loss
    hinge_embedding_loss margin_ranking_loss cosine_embedding_loss triplet_margin_loss multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss
    rnn_tanh_cell rnn_relu_cell lstm_cell gru_cell rnn_tanh rnn_relu lstm gru
    asinh acosh atanh lgamma digamma polygamma mvlgamma erfinv logit sinc i0 deg2rad rad2deg positive nan_to_num
    fmax fmin hypot logaddexp logaddexp2 xlogy copysign nextafter ldexp float_power rsub
    relu6 hardtanh threshold celu selu mish softsign hardsigmoid hardswish hardshrink tanhshrink logsigmoid
    prelu rrelu glu feature_dropout alpha_dropout feature_alpha_dropout
    diagonal diag diag_embed diagflat trace diagonal_scatter select_scatter slice_scatter fill_diagonal_ unfold
    rot90 fliplr flipud repeat rep repeat_interleave atleast_1d atleast_2d atleast_3d hstack vstack row_stack
    dstack column_stack block_diag broadcast_tensors meshgrid cartesian_prod combinations tensor_split hsplit
    vsplit dsplit scatter_reduce index_reduce index_put put masked_scatter take_along_dim vander
    einsum tensordot inner vdot linalg_vecdot addr addbmm kron linalg_cross cross linalg_multi_dot
    chain_matmul matrix_power linalg_matrix_power cdist
    linalg_det det linalg_slogdet slogdet logdet linalg_inv linalg_inv_ex inverse linalg_solve linalg_solve_triangular
    linalg_cholesky linalg_cholesky_ex cholesky_inverse cholesky_solve linalg_qr linalg_svd linalg_svdvals
    linalg_eigh linalg_eigvalsh linalg_pinv pinverse
    normal bernoulli poisson trapz split_with_sizes sum_to_size fill linalg_diagonal linalg_vander matrix_exp linalg_matrix_exp
    i0e i1 i1e erfcx ndtr ndtri log_ndtr entr xlog1py zeta igamma igammac
    sparse_coo_tensor to_dense to_sparse coalesce sparse_mask values]])

-- Those without: their results are whole numbers, truths or constants.
add(constant, [[
    empty zeros ones full empty_like zeros_like ones_like full_like arange linspace eye detach
    eq ne lt le gt ge logical_and logical_or logical_xor logical_not equal
    isnan isinf isfinite bitwise_and bitwise_or bitwise_xor bitwise_not
    signbit isposinf isneginf isreal isclose allclose heaviside bitwise_left_shift bitwise_right_shift gcd lcm
    argmax argmin any all count_nonzero nonzero one_hot
    rand randn rand_like randn_like randint randperm scalar_tensor uniform_ normal_ bernoulli_
    argsort unique unique_consecutive bincount histc searchsorted bucketize isin int_mm
    randint_like log_normal_ exponential_ cauchy_ geometric_ random_ multinomial argwhere
    tril_indices triu_indices new_empty new_zeros new_ones new_full empty_strided new_empty_strided logspace
    hann_window hamming_window blackman_window bartlett_window kaiser_window
    linalg_matrix_rank
    indices _indices _values _nnz is_coalesced sparse_dim dense_dim
    quantize_per_tensor quantize_per_channel dequantize int_repr]])

local cases = golden.cases()

local function has_golden_gradient(name)
    for _, case in ipairs(cases[name] or {}) do
        if case.g and #case.g > 0 then
            return true
        end
    end
    return false
end

-- A leaf that requires grad and is written in place is refused, so the results of golden cases are asked.
local function a_result_requires_grad(op)
    for _, case in ipairs(cases[op.name] or {}) do
        local inputs = {}
        local args = golden.arguments(case, inputs)
        if #inputs > 0 then
            if op.inplace_only then
                args[1] = args[1] * 1
            end
            for _, r in ipairs(golden.call(op, args)) do
                if tide.is_tensor(r) and r.requires_grad then
                    return true
                end
            end
        end
    end
    return false
end

local known = {}
for _, op in ipairs(tide._ops()) do
    known[op.name] = not op.internal
    if not op.internal then
        t.test(op.name .. "_is_known_to_have_gradients_or_none", function()
            t.is_true(differentiable[op.name] or constant[op.name], "named in one of the lists")
            t.is_false(differentiable[op.name] and constant[op.name], "named in both lists")
        end)
        t.test(op.name .. (differentiable[op.name] and "_has_gradients" or "_has_none"), function()
            t.eq(a_result_requires_grad(op), differentiable[op.name] or false, "a result requires grad")
            t.eq(has_golden_gradient(op.name), differentiable[op.name] or false, "golden gradients")
        end)
    end
end

t.test("every_name_in_the_lists_is_an_operator", function()
    for _, set in ipairs { differentiable, constant } do
        for _, name in ipairs(golden.sorted_keys(set)) do
            t.is_true(known[name], name)
        end
    end
end)
