-- onnx/shapes.lua: ONNX's operators that move elements and change none.
local tide = ...
local common, tensors = tide._require "onnx.common", tide._require "onnx.tensors"
local wrong, list_of, dim_of = tensors.wrong, common.list, common.dim
local operators = {}

function operators.Shape(call, x)
    local sizes, a = common.sizes(x), call.attributes
    local n = #sizes
    local function place(k, none)
        k = k or none
        return math.max(0, math.min(n, k < 0 and k + n or k))
    end
    local first, last = place(a.start, 0), place(a["end"], n)
    return common.integers(table.move(sizes, first + 1, last, 1, {}))
end
function operators.Size(_, x) return common.scalar(x:numel(), tide.int64) end

function operators.Reshape(call, x, shape)
    local sizes = list_of(shape) or call.attributes.shape
    local new, own = {}, common.sizes(x)
    for k, size in ipairs(sizes) do
        if size == 0 and call.attributes.allowzero ~= 1 then
            size = own[k] or wrong("the shape keeps size %d of %d", k, #own)
        end
        new[k] = size
    end
    return x:reshape(new)
end

function operators.Flatten(call, x)
    local axis = call.attributes.axis or 1
    local before = axis < 0 and axis + x:dim() or axis
    local sizes = common.sizes(x)
    local rows = common.product(table.move(sizes, 1, before, 1, {}))
    return x:reshape(rows, common.product(table.move(sizes, before + 1, #sizes, 1, {})))
end

function operators.Squeeze(call, x, axes)
    local list = list_of(axes) or call.attributes.axes
    local sizes, gone = {}, {}
    for _, axis in ipairs(list or {}) do
        gone[dim_of(axis, x)] = true
    end
    for k, size in ipairs(common.sizes(x)) do
        if list and not gone[k] or not list and size ~= 1 then
            sizes[#sizes + 1] = size
        elseif size ~= 1 then
            wrong("axis %d has size %d", k - 1, size)
        end
    end
    return x:reshape(sizes)
end

function operators.Unsqueeze(call, x, axes)
    local list = list_of(axes) or call.attributes.axes
    local n, new, own, sizes = x:dim() + #list, {}, common.sizes(x), {}
    for _, axis in ipairs(list) do
        new[dim_of(axis, n)] = true
    end
    for k = 1, n do
        sizes[k] = new[k] and 1 or table.remove(own, 1)
    end
    return x:reshape(sizes)
end

function operators.Transpose(call, x)
    local dims = common.axes(call.attributes.perm, x)
    if not dims then
        dims = {}
        for k = 1, x:dim() do
            dims[k] = x:dim() - k + 1
        end
    end
    return x:dim() < 2 and x or x:permute(dims)
end

function operators.Concat(call, ...)
    local list = { ... }
    return tide.cat(list, dim_of(call.attributes.axis or 1, list[1]))
end

function operators.Split(call, x, sizes)
    local dim = dim_of(call.attributes.axis or 0, x)
    local list = list_of(sizes) or call.attributes.split
    if not list then
        local n = call.attributes.num_outputs or call.outputs
        local each, left = -(-x:size(dim) // n), x:size(dim)
        list = {}
        for k = 1, n do
            list[k] = math.max(0, math.min(each, left))
            left = left - list[k]
        end
    end
    return table.unpack(x:split(list, dim))
end

function operators.Slice(call, x, starts, ends, axes, steps)
    local a = call.attributes
    starts, ends = list_of(starts) or a.starts, list_of(ends) or a.ends
    axes, steps = list_of(axes) or a.axes, list_of(steps)
    for k, first in ipairs(starts) do
        local dim, step, last = dim_of(axes and axes[k] or k - 1, x), steps and steps[k] or 1, ends[k]
        local size = x:size(dim)
        local low, high = step < 0 and -1 or 0, step < 0 and size - 1 or size
        local function inside(place, lowest)
            place = place < 0 and place + size or place
            return math.max(lowest, math.min(high, place))
        end
        first, last = inside(first, 0), (last < -size and low or inside(last, low))
        if step > 0 then
            x = last > first and x:narrow(dim, first + 1, last - first) or x:narrow(dim, 1, 0)
            x = (step > 1 and x:size(dim) > 0) and x:index_select(dim, tide.arange(1, x:size(dim) + 1, step)) or x
        else
            local places = {}
            for place = first, last + 1, step do
                places[#places + 1] = place + 1
            end
            x = x:index_select(dim, common.integers(places))
        end
    end
    return x
end

function operators.Expand(_, x, shape)
    local sizes, own = list_of(shape), common.sizes(x)
    local more = #sizes - #own
    for k = 1, -more do
        table.insert(sizes, k, 1)
    end
    for k = 1, more do
        table.insert(own, k, 1)
    end
    for k, size in ipairs(own) do
        sizes[k] = size == 1 and sizes[k] or size
    end
    return x:expand(sizes)
end

function operators.Tile(call, x, counts, axis)
    if call.opset < 6 and axis then
        local list = {}
        for k = 1, x:dim() do
            list[k] = k == common.number(axis) + 1 and common.number(counts) or 1
        end
        return x:tile(list)
    end
    return x:tile(list_of(counts))
end

-- Before and behind each dim: {before all dims..., behind all dims...}, of some axes or of all.
local function margins(x, pads, axes)
    local n = x:dim()
    local before, behind = {}, {}
    for k = 1, n do
        before[k], behind[k] = 0, 0
    end
    local count = axes and #axes or n
    for k = 1, count do
        local dim = axes and dim_of(axes[k], x) or k
        before[dim], behind[dim] = pads[k], pads[count + k]
    end
    return before, behind
end

-- Places of a line that is made longer by its own elements.
local function reflected(size, before, behind, mode)
    local places = {}
    for k = -before, size + behind - 1 do
        local place = k
        if mode == "edge" then
            place = math.max(0, math.min(size - 1, k))
        elseif mode == "wrap" then
            place = k % size
        elseif size > 1 then
            local period = 2 * (size - 1)
            place = k % period
            place = place < size and place or period - place
        else
            place = 0
        end
        places[#places + 1] = place + 1
    end
    return common.integers(places)
end

function operators.Pad(call, x, pads, value, axes)
    local a = call.attributes
    local before, behind = margins(x, list_of(pads) or a.pads or a.paddings, list_of(axes))
    local mode = a.mode or "constant"
    if mode == "constant" then
        local fill, list = value and common.number(value) or a.value or 0, {}
        for k = x:dim(), 1, -1 do
            list[#list + 1], list[#list + 2] = before[k], behind[k]
        end
        return tide.nn.functional.pad(x, list, "constant", fill)
    end
    for k = 1, x:dim() do
        local first, last = math.max(0, -before[k]), math.max(0, -behind[k])
        local y = first + last > 0 and x:narrow(k, first + 1, x:size(k) - first - last) or x
        if before[k] > 0 or behind[k] > 0 then
            y = y:index_select(k, reflected(y:size(k), math.max(0, before[k]), math.max(0, behind[k]), mode))
        end
        x = y
    end
    return x
end

function operators.DepthToSpace(call, x)
    local n, c, h, w = x.shape:unpack()
    local b = call.attributes.blocksize
    if call.attributes.mode == "CRD" then
        return x:reshape(n, c // (b * b), b, b, h, w):permute(1, 2, 5, 3, 6, 4):reshape(n, c // (b * b), h * b, w * b)
    end
    return x:reshape(n, b, b, c // (b * b), h, w):permute(1, 4, 5, 2, 6, 3):reshape(n, c // (b * b), h * b, w * b)
end

function operators.SpaceToDepth(call, x)
    local n, c, h, w = x.shape:unpack()
    local b = call.attributes.blocksize
    return x:reshape(n, c, h // b, b, w // b, b):permute(1, 4, 6, 2, 3, 5):reshape(n, c * b * b, h // b, w // b)
end

function operators.CenterCropPad(call, x, shape)
    local sizes = list_of(shape)
    for k, size in ipairs(sizes) do
        local dim = dim_of(call.attributes.axes and call.attributes.axes[k] or k - 1, x)
        local own = x:size(dim)
        if own > size then
            x = x:narrow(dim, (own - size) // 2 + 1, size)
        elseif own < size then
            local padding = {}
            for j = 1, 2 * (x:dim() - dim) do
                padding[j] = 0
            end
            local before = (size - own) // 2
            padding[#padding + 1], padding[#padding + 2] = before, size - own - before
            x = tide.nn.functional.pad(x, padding)
        end
    end
    return x
end

return operators
