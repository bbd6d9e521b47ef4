-- onnx/reductions.lua: ONNX's operators that make one number of many.
local tide = ...
local common, tensors = tide._require "onnx.common", tide._require "onnx.tensors"
local operators = {}

-- Axes are an attribute, later an input; none are all, unless noop_with_empty_axes says that nothing is done.
local function reduction(reduce)
    return function(call, x, axes)
        local list = common.list(axes) or call.attributes.axes
        if list and #list == 0 then
            list = nil
        end
        if not list and call.attributes.noop_with_empty_axes == 1 then
            return x
        end
        local dims = common.axes(list, x)
        if not dims then
            dims = {}
            for k = 1, x:dim() do
                dims[k] = k
            end
        end
        local keep = call.attributes.keepdims ~= 0
        if #dims == 0 then -- a number
            return reduce(x:view(1), { 1 }, false):to(x.dtype):view({})
        end
        return reduce(x, dims, keep):to(x.dtype)
    end
end

local function product(x, dims, keep)
    table.sort(dims)
    for k = #dims, 1, -1 do
        x = x:prod(dims[k], { keepdim = keep })
    end
    return x
end

local function sum(x, dims, keep) return x:sum(dims, { keepdim = keep }) end
operators.ReduceSum = reduction(sum)
operators.ReduceMean = reduction(function(x, dims, keep)
    if common.is_float(x) then
        return x:mean(dims, { keepdim = keep })
    end
    return x:double():mean(dims, { keepdim = keep }):trunc()
end)
operators.ReduceMax = reduction(function(x, dims, keep) return x:amax(dims, { keepdim = keep }) end)
operators.ReduceMin = reduction(function(x, dims, keep) return x:amin(dims, { keepdim = keep }) end)
operators.ReduceProd = reduction(product)
operators.ReduceL1 = reduction(function(x, dims, keep) return x:abs():sum(dims, { keepdim = keep }) end)
operators.ReduceL2 = reduction(function(x, dims, keep) return (x * x):sum(dims, { keepdim = keep }):double():sqrt() end)
operators.ReduceSumSquare = reduction(function(x, dims, keep) return (x * x):sum(dims, { keepdim = keep }) end)
operators.ReduceLogSum = reduction(function(x, dims, keep) return x:sum(dims, { keepdim = keep }):log() end)
operators.ReduceLogSumExp = reduction(function(x, dims, keep) return tide.logsumexp(x:double(), dims, { keepdim = keep }) end)

-- Places of the extreme, from 0.
local function place_of(own)
    return function(call, x)
        local dim, keep = common.dim(call.attributes.axis or 0, x), call.attributes.keepdims ~= 0
        if call.attributes.select_last_index == 1 then
            return x:size(dim) - tide[own](x:flip { dim }, dim, { keepdim = keep })
        end
        return tide[own](x, dim, { keepdim = keep }) - 1
    end
end
operators.ArgMax, operators.ArgMin = place_of "argmax", place_of "argmin"

function operators.CumSum(call, x, axis)
    local dim = common.dim(common.number(axis), x)
    local a = call.attributes
    if a.reverse == 1 then
        x = x:flip { dim }
    end
    local y = x:cumsum(dim):to(x.dtype)
    if a.exclusive == 1 then
        y = y - x
    end
    return a.reverse == 1 and y:flip { dim } or y
end

function operators.TopK(call, x, count)
    local a = call.attributes
    local dim = common.dim(a.axis or -1, x)
    local k = count and common.number(count) or a.k
    local order = x:argsort(dim, a.largest ~= 0, { stable = true }) -- of equal ones the first comes first
    local places = order:narrow(dim, 1, k)
    return x:gather(dim, places), places - 1
end

function operators.Unique(call, x)
    local axis = call.attributes.axis
    local dim = axis and common.dim(axis, x)
    local lines = dim and x:movedim(dim, 1):flatten(2) or x:flatten():unsqueeze(2)
    local n, rows, found, first, inverse, counts = lines:size(1), lines:tolist(), {}, {}, {}, {}
    local order = {}
    for k = 1, n do
        local key = table.concat(rows[k], " ")
        if not found[key] then
            order[#order + 1] = key
            found[key], first[key], counts[key] = rows[k], k - 1, 0
        end
        counts[key] = counts[key] + 1
    end
    if call.attributes.sorted ~= 0 then
        table.sort(order, function(a, b)
            for k, value in ipairs(found[a]) do
                if value ~= found[b][k] then
                    return value < found[b][k]
                end
            end
            return false
        end)
    end
    local rank, firsts, numbers = {}, {}, {}
    for k, key in ipairs(order) do
        rank[key], firsts[k], numbers[k] = k - 1, first[key], counts[key]
    end
    for k = 1, n do
        inverse[k] = rank[table.concat(rows[k], " ")]
    end
    local places = common.integers(firsts)
    local values = dim and x:index_select(dim, places + 1) or x:flatten()[places + 1]
    return values, places, common.integers(inverse), common.integers(numbers)
end

function operators.NonZero(_, x)
    local places = x:dim() == 0 and x:view(1):nonzero() or x:nonzero()
    return (places - 1):transpose(1, 2):contiguous()
end

function operators.Compress(call, x, condition)
    local axis = call.attributes.axis
    local y = axis and x or x:flatten()
    local dim = axis and common.dim(axis, x) or 1
    local places = condition:nonzero():flatten()
    return y:index_select(dim, places)
end

function operators.Det(_, x) return tide.linalg.det(x) end

function operators.Einsum(call, ...)
    return tide.einsum((string.gsub(call.attributes.equation, "%s", "")), { ... })
end

function operators.Trilu(call, x, k)
    local diagonal = k and common.number(k) or 0
    if x:numel() == 0 then
        return x
    end
    return call.attributes.upper == 0 and x:tril(diagonal) or x:triu(diagonal)
end

function operators.MatMul(_, a, b) return tide.matmul(a, b) end

function operators.Gemm(call, a, b, c)
    local at = call.attributes
    a, b = at.transA == 1 and a:transpose(1, 2) or a, at.transB == 1 and b:transpose(1, 2) or b
    local y = a:matmul(b)
    if (at.alpha or 1) ~= 1 then
        y = y * at.alpha
    end
    if c then
        y = y + ((at.beta or 1) ~= 1 and c * at.beta or c)
    end
    return y:to(a.dtype)
end

return operators
