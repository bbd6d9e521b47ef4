-- onnx/places.lua: ONNX's operators that read and write at places, which count from 0 and from the end.
local tide = ...
local common = tide._require "onnx.common"
local dim_of = common.dim
local operators = {}

-- Tide's places, from 1, of places along so many elements.
local function places_of(indices, size)
    indices = indices:to(tide.int64)
    return tide.where(indices:lt(0), indices + size, indices) + 1
end

function operators.Gather(call, x, indices)
    local dim = dim_of(call.attributes.axis or 0, x)
    local sizes, own = common.sizes(indices), common.sizes(x)
    local y = x:index_select(dim, places_of(indices, x:size(dim)):flatten())
    local shape = table.move(own, 1, dim - 1, 1, {})
    table.move(sizes, 1, #sizes, #shape + 1, shape)
    table.move(own, dim + 1, #own, #shape + 1, shape)
    return y:reshape(shape)
end

function operators.GatherElements(call, x, indices)
    local dim = dim_of(call.attributes.axis or 0, x)
    return x:gather(dim, places_of(indices, x:size(dim)))
end

-- Places in a flat tensor, from 1, of rows of places (..., k) in dims first .. first + k - 1.
local function flat_places(indices, sizes, first)
    local flat, k = 0, indices:size(-1)
    for d = 1, k do
        flat = flat * sizes[first + d - 1] + (places_of(indices:select(indices:dim(), d), sizes[first + d - 1]) - 1)
    end
    return flat + 1
end

function operators.GatherND(call, x, indices)
    local batch, own, sizes = call.attributes.batch_dims or 0, common.sizes(x), common.sizes(indices)
    local k = sizes[#sizes]
    local lots = common.product(table.move(own, 1, batch, 1, {}))
    local inner = common.product(table.move(own, batch + 1, batch + k, 1, {}))
    local rest = table.move(own, batch + k + 1, #own, 1, {})
    local each = common.product(rest)
    local flat = flat_places(indices, own, batch + 1):reshape(lots, -1) + tide.arange(lots):unsqueeze(2) * inner
    local y = x:reshape(lots * inner, each):index_select(1, flat:flatten())
    local shape = table.move(sizes, 1, #sizes - 1, 1, {})
    table.move(rest, 1, #rest, #shape + 1, shape)
    return y:reshape(shape)
end

-- What is at the places and what comes, as one.
local REDUCTIONS <const> = { add = "sum", mul = "prod", max = "amax", min = "amin" }

function operators.ScatterElements(call, x, indices, updates)
    local dim = dim_of(call.attributes.axis or 0, x)
    local places, reduce = places_of(indices, x:size(dim)), REDUCTIONS[call.attributes.reduction]
    return reduce and x:scatter_reduce(dim, places, updates, reduce) or x:scatter(dim, places, updates)
end
operators.Scatter = operators.ScatterElements

function operators.ScatterND(call, x, indices, updates)
    local own, k = common.sizes(x), indices:size(-1)
    local inner = common.product(table.move(own, 1, k, 1, {}))
    local each = common.product(table.move(own, k + 1, #own, 1, {}))
    local places = flat_places(indices, own, 1):flatten():unsqueeze(2):expand(-1, each)
    local rows, reduce = updates:reshape(-1, each), REDUCTIONS[call.attributes.reduction]
    local y = x:reshape(inner, each)
    y = reduce and y:scatter_reduce(1, places, rows, reduce) or y:scatter(1, places, rows)
    return y:view(own)
end

function operators.OneHot(call, indices, depth, values)
    local n, axis = math.floor(common.number(depth)), call.attributes.axis or -1
    local dim = axis < 0 and axis + indices:dim() + 2 or axis + 1
    local off, on = table.unpack(common.list(values))
    local places = indices:to(tide.int64)
    places = tide.where(places:lt(0), places + n, places):unsqueeze(dim)
    local sizes = {}
    for k = 1, places:dim() do
        sizes[k] = k == dim and n or 1
    end
    local hit = places:eq(tide.arange(n):view(sizes))
    return tide.where(hit, common.scalar(on, values.dtype), common.scalar(off, values.dtype))
end

function operators.ReverseSequence(call, x, lengths)
    local batch, time = (call.attributes.batch_axis or 1) + 1, (call.attributes.time_axis or 0) + 1
    local y = x:movedim({ batch, time }, { 1, 2 })
    local n = y:size(2)
    local t, long = tide.arange(n):unsqueeze(1), lengths:to(tide.int64):unsqueeze(2)
    local places = tide.where(t:lt(long), long - 1 - t, t) + 1
    local sizes = common.sizes(y)
    for k = 3, #sizes do
        places = places:unsqueeze(k)
    end
    return y:gather(2, places:expand(sizes)):movedim({ 1, 2 }, { batch, time })
end

-- ---- boxes ----

-- Corners {top, left, bottom, right} of a box, in either notation.
local function corners(box, by_center)
    local a, b, c, d = table.unpack(box)
    if by_center then
        return { b - d / 2, a - c / 2, b + d / 2, a + c / 2 }
    end
    return { math.min(a, c), math.min(b, d), math.max(a, c), math.max(b, d) }
end

local function overlap(a, b)
    local h = math.max(0, math.min(a[3], b[3]) - math.max(a[1], b[1]))
    local w = math.max(0, math.min(a[4], b[4]) - math.max(a[2], b[2]))
    local both = h * w
    local all = (a[3] - a[1]) * (a[4] - a[2]) + (b[3] - b[1]) * (b[4] - b[2]) - both
    return all > 0 and both / all or 0
end

function operators.NonMaxSuppression(call, boxes, scores, most, threshold, least)
    most = most and math.floor(common.number(most)) or 0
    threshold, least = threshold and common.number(threshold) or 0, least and common.number(least)
    local by_center, found = call.attributes.center_point_box == 1, {}
    local all, score = boxes:tolist(), scores:tolist()
    for n, per_class in ipairs(score) do
        for class, values in ipairs(per_class) do
            local order, kept = {}, {}
            for k, value in ipairs(values) do
                if not least or value > least then
                    order[#order + 1] = k
                end
            end
            table.sort(order, function(a, b) return values[a] > values[b] or values[a] == values[b] and a < b end)
            for _, k in ipairs(order) do
                local box, free = corners(all[n][k], by_center), #kept < most
                for _, other in ipairs(free and kept or {}) do
                    free = free and overlap(box, other) <= threshold
                end
                if free then
                    kept[#kept + 1] = box
                    found[#found + 1] = { n - 1, class - 1, k - 1 }
                end
            end
        end
    end
    return #found == 0 and tide.zeros(0, 3, { dtype = tide.int64 }) or tide.tensor(found, { dtype = tide.int64 })
end

return operators
