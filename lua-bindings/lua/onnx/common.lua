-- onnx/common.lua: what operators of several families ask: axes, numbers that stand in tensors, dtypes.
local tide = ...
local wrong = tide._require("onnx.tensors").wrong
local common = {}

--- dim(axis, x): Tide's dim of an axis that counts from 0, or from the end.
function common.dim(axis, x)
    local n = type(x) == "number" and x or x:dim()
    if axis < -n or axis >= n then
        wrong("axis %d of %d dims", axis, n)
    end
    return axis < 0 and axis + n + 1 or axis + 1
end

--- list(x): numbers of a tensor, of a list or nil.
function common.list(x)
    if x == nil or type(x) == "table" then
        return x
    end
    return x:flatten():tolist()
end

--- number(x): the one number of a tensor, or nil.
function common.number(x) return x and x:flatten()[1]:item() end

--- axes(list, x): Tide's dims of a list of axes, or nil.
function common.axes(list, x)
    if list == nil then
        return nil
    end
    local dims = {}
    for k, axis in ipairs(list) do
        dims[k] = common.dim(axis, x)
    end
    return dims
end

--- sizes(x): its sizes as a list.
function common.sizes(x) return { x.shape:unpack() } end

--- product(list): of its numbers.
function common.product(list)
    local n = 1
    for _, size in ipairs(list) do
        n = n * size
    end
    return n
end

--- integers(list): a tensor of int64.
function common.integers(list)
    return #list == 0 and tide.zeros(0, { dtype = tide.int64 }) or tide.tensor(list, { dtype = tide.int64 })
end

--- by_channel(line, x): a line of numbers along dim 2 of x.
function common.by_channel(line, x)
    local sizes = { 1, line:numel() }
    for k = 3, x:dim() do
        sizes[k] = 1
    end
    return line:view(sizes)
end

--- scalar(value, dtype): a tensor without dims.
function common.scalar(value, dtype) return tide.tensor(value, { dtype = dtype }) end

--- is_float(x): has it floating elements?
function common.is_float(x)
    local dtype = x.dtype
    return dtype == tide.float32 or dtype == tide.float64 or dtype == tide.float16 or dtype == tide.bfloat16
end

--- wide(x): one of 16 bits in float32, as ONNX's references compute it.
function common.wide(x)
    return (x.dtype == tide.float16 or x.dtype == tide.bfloat16) and x:float() or x
end

--- NOTHING: a value that may be missing, and is.
common.NOTHING = setmetatable({}, { __name = "nothing" })

return common
