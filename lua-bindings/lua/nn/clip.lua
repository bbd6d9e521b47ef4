-- nn/clip.lua: tide.nn.utils: norms of all gradients together, and gradients that are kept within bounds.
local tide = ...
local fail, declare = tide._fail, tide._function
local utils = {}

local function gradients_of(params)
    local grads = {}
    for _, p in ipairs(params) do
        grads[#grads + 1] = p.grad
    end
    return grads
end

-- Of whatever dtype and device they are, one number.
local function total_norm(fname, tensors, norm_type, error_if_nonfinite)
    local full = {} -- no element has no largest
    for _, x in ipairs(tensors) do
        full[#full + 1] = x:numel() > 0 and x or nil
    end
    if #full == 0 then
        return tide.tensor(0.0)
    end
    local norms = tide.foreach.norm(full, norm_type)
    for k, norm in ipairs(norms) do
        norms[k] = norm:to(norms[1].dtype, norms[1].device)
    end
    local total = tide.linalg.vector_norm(tide.stack(norms), norm_type)
    if error_if_nonfinite and not tide.isfinite(total):item() then
        fail("%s: the total norm of order %s is %s: a gradient holds inf or NaN", fname, tide._number(norm_type),
            tide._number(total:item()))
    end
    return total
end

utils.get_total_norm = declare(
    "get_total_norm(Tensor|Tensor[] tensors, number norm_type=2, bool error_if_nonfinite=false) -> Tensor",
    "The norm of all tensors together, as if they were one vector.", function(tensors, norm_type, error_if_nonfinite)
        return total_norm("get_total_norm", tensors, norm_type, error_if_nonfinite)
    end)

local function clip_with_norm(params, max_norm, total)
    local _ <close> = tide.no_grad()
    local factor = (max_norm / (total + 1e-6)):clamp_max(1)
    tide.foreach.mul_(gradients_of(params), factor)
end

utils.clip_grads_with_norm_ = declare(
    "clip_grads_with_norm_(Tensor|Tensor[] parameters, number max_norm, Tensor total_norm) -> nothing",
    "Scale the gradients of the parameters, whose total norm is this, so that it is max_norm at most.", clip_with_norm)

utils.clip_grad_norm_ = declare(
    "clip_grad_norm_(Tensor|Tensor[] parameters, number max_norm, number norm_type=2, bool error_if_nonfinite=false) "
    .. "-> Tensor",
    "Scale the gradients of the parameters so that their norm together is max_norm at most; returns what it was.",
    function(params, max_norm, norm_type, error_if_nonfinite)
        local total
        do
            local _ <close> = tide.no_grad()
            total = total_norm("clip_grad_norm_", gradients_of(params), norm_type, error_if_nonfinite)
        end
        clip_with_norm(params, max_norm, total)
        return total
    end)

utils.clip_grad_value_ = declare("clip_grad_value_(Tensor|Tensor[] parameters, number clip_value) -> nothing",
    "Keep every element of the gradients between -clip_value and clip_value.", function(params, clip_value)
        local _ <close> = tide.no_grad()
        tide.foreach.clamp_(gradients_of(params), -clip_value, clip_value)
    end)

tide._document(utils, "utils", "tide.nn.utils",
    "Gradients kept within bounds: clip_grad_norm_, clip_grad_value_, get_total_norm.")

return utils
