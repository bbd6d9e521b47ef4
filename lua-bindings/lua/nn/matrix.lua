-- nn/matrix.lua: what parametrizations of weights have in common: norms over all dims but one, weights as matrices,
-- and steps towards the largest singular value.
local tide = ...
local matrix = {}

-- Norms over all dims but one, or (nil) over all.
function matrix.norms(v, dim)
    if not dim then
        return tide.linalg.vector_norm(v)
    end
    local dims = {}
    for d = 1, v:dim() do
        dims[#dims + 1] = d ~= dim and d or nil
    end
    return #dims > 0 and tide.linalg.vector_norm(v, 2, dims, { keepdim = true }) or v:abs()
end

-- As a matrix whose rows are `dim`.
function matrix.rows_of(weight, dim)
    return weight:movedim(dim, 1):reshape(weight.shape[dim], -1)
end

function matrix.unit(x, eps) return tide.normalize(x, { dim = 1, eps = eps }) end

-- The dim of a layer's outputs.
function matrix.output_dim(module)
    return string.find(string.gsub(getmetatable(module).__name, "^Parametrized", ""), "^ConvTranspose") and 2 or 1
end

return matrix
