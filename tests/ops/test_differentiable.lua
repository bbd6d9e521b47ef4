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
    conv2d max_pool2d avg_pool2d adaptive_avg_pool2d interpolate
    view reshape view_as reshape_as flatten unflatten permute transpose t movedim squeeze unsqueeze
    expand expand_as broadcast_to select slice narrow as_strided tril triu
    unbind chunk split cat stack tile flip roll
    index_select index_add index_copy index_fill take embedding masked_fill masked_select
    gather scatter scatter_add
    dropout
    linalg_det det linalg_slogdet slogdet logdet linalg_inv linalg_inv_ex inverse linalg_solve linalg_solve_triangular
    linalg_cholesky linalg_cholesky_ex cholesky_inverse cholesky_solve linalg_qr linalg_svd linalg_svdvals
    linalg_eigh linalg_eigvalsh linalg_pinv pinverse]])

-- Those without: their results are whole numbers, truths or constants.
add(constant, [[
    empty zeros ones full empty_like zeros_like ones_like full_like arange linspace eye detach
    eq ne lt le gt ge logical_and logical_or logical_xor logical_not equal
    isnan isinf isfinite bitwise_and bitwise_or bitwise_xor bitwise_not
    argmax argmin any all count_nonzero nonzero one_hot
    rand randn rand_like randn_like randint randperm bernoulli uniform_ normal_ bernoulli_
    linalg_matrix_rank]])

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
