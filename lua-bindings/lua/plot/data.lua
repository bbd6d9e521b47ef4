-- plot/data.lua: what plots are given, as series of numbers: tensors, lists of numbers or of 0-dim tensors, and lists
-- of such. Long series are thinned out to what an eye can see, so that a million points are a small picture too.
local tide = ...
local fail = tide._fail
local data = {}

local POINTS = 2000 -- of a series at most

local function describe(v) return tide._describe(v) end

-- Any real tensor on the host as float64 without history.
local function plain_tensor(x)
    x = x:detach()
    x = x.is_quantized and x:dequantize() or x.layout ~= "strided" and x:to_dense() or x
    return x:cpu():to(tide.float64)
end

-- A list of numbers, booleans and tensors of one element.
local function read_list(name, what, list)
    local numbers = {}
    for k = 1, #list do
        local v = rawget(list, k)
        if tide.is_tensor(v) and v:numel() == 1 then
            v = v:item()
        end
        if type(v) == "boolean" then
            v = v and 1 or 0
        elseif type(v) ~= "number" then
            fail("%s: %s[%d]: expected a number, got %s", name, what, k, describe(v))
        end
        numbers[k] = v
    end
    return tide.tensor(numbers, { dtype = tide.float64 })
end

--- values(name, what, v): one series as a float64 tensor of one dim.
function data.values(name, what, v)
    if not tide.is_tensor(v) then
        return read_list(name, what, type(v) == "table" and v or { v })
    elseif v:dim() > 1 then
        fail("%s: %s: expected one dim, got shape %s", name, what, tostring(v.shape))
    end
    return plain_tensor(v):reshape(-1)
end

local function is_series(v)
    return type(v) == "table" or tide.is_tensor(v) and (v:dim() > 1 or v:dim() == 1 and v:numel() ~= 1)
end

--- series(name, what, v): a list of them: the columns of a tensor of two dims, the parts of a list of lists or
--- tensors, else one.
function data.series(name, what, v)
    if tide.is_tensor(v) and v:dim() == 2 then
        local list, x = {}, plain_tensor(v)
        for k = 1, x.shape[2] do
            list[k] = x:select(2, k)
        end
        return list
    elseif type(v) == "table" and is_series(v[1]) then
        local list = {}
        for k = 1, #v do
            list[k] = data.values(name, string.format("%s[%d]", what, k), v[k])
        end
        return list
    end
    return { data.values(name, what, v) }
end

--- matrix(name, v): rows and columns as a float64 tensor of two dims.
function data.matrix(name, v)
    if not tide.is_tensor(v) then
        v = tide.tensor(v, { dtype = tide.float64 })
    end
    if v:dim() ~= 2 then
        fail("%s: expected two dims (rows, columns), got shape %s", name, tostring(v.shape))
    end
    return plain_tensor(v)
end

-- The lowest and the highest of each of `count` stretches, in the place of all: no peak is lost.
local function thin_line(x, y)
    local n = y:numel()
    local stretch = math.ceil(n / (POINTS / 2))
    local whole = n // stretch
    local part = y:narrow(1, 1, whole * stretch):reshape(whole, stretch)
    local finite = part:isfinite()
    local low = tide.where(finite, part, math.huge):amin(2)
    local high = tide.where(finite, part, -math.huge):amax(2)
    local none = low:gt(high)
    low, high = tide.where(none, 0 / 0, low), tide.where(none, 0 / 0, high)
    local places = x:narrow(1, 1, whole * stretch):reshape(whole, stretch)
    local xs = tide.stack({ places:select(2, 1), places:select(2, math.max(1, stretch // 2)) }, 2):reshape(-1)
    local ys = tide.stack({ low, high }, 2):reshape(-1)
    if whole * stretch < n then
        xs, ys = tide.cat { xs, x:narrow(1, n, 1) }, tide.cat { ys, y:narrow(1, n, 1) }
    end
    return xs, ys
end

--- pick(x): every so manieth of a long series, the same places in all series of one length.
function data.pick(x)
    local n = x:numel()
    return n > POINTS and x:index_select(1, tide.arange(1, n + 1, math.ceil(n / POINTS))) or x
end

--- points(name, xs, ys, scattered): {x, y, all} per series, where x and y are lists of numbers and `all` is how many points
--- there were. xs: one for all, one for each, or nil (1, 2, ...).
function data.points(name, xs, ys, scattered)
    local list = {}
    if xs and #xs ~= 1 and #xs ~= #ys then
        fail("%s: %d series of x for %d of y", name, #xs, #ys)
    end
    for k, y in ipairs(ys) do
        local x = xs and (xs[k] or xs[1]) or tide.arange(1, y:numel() + 1, { dtype = tide.float64 })
        if x:numel() ~= y:numel() then
            fail("%s: series %d: %d values of x for %d of y", name, k, x:numel(), y:numel())
        end
        local all = y:numel()
        if all > POINTS then
            if scattered then
                x, y = data.pick(x), data.pick(y)
            else
                x, y = thin_line(x, y)
            end
        end
        list[k] = { x = x:tolist(), y = y:tolist(), all = all }
    end
    return list
end

--- labels(name, list, n): names of n series, or nil.
function data.labels(name, option, list, n)
    if list == nil then
        return nil
    end
    for k, label in ipairs(list) do
        if type(label) ~= "string" or not utf8.len(label) then
            fail("%s: option %s[%d]: expected a text, got %s", name, option, k, describe(label))
        end
    end
    if #list ~= n then
        fail("%s: option %s: %d names for %d", name, option, #list, n)
    end
    return list
end

--- limits(name, option, pair, log): {low, high} or nil.
function data.limits(name, option, pair, log)
    if pair == nil then
        return nil
    end
    local low, high = pair[1], pair[2]
    if type(low) ~= "number" or type(high) ~= "number" or not (low < high) or #pair ~= 2
        or low == -math.huge or high == math.huge then
        fail("%s: option %s: expected {low, high} with low < high", name, option)
    elseif log and low <= 0 then
        fail("%s: option %s: a logarithmic scale begins above 0", name, option)
    end
    return pair
end

--- histogram(series, bins, limits): the counts of each series over the same bins, and the bins' edges.
function data.histogram(series, bins, limits)
    local finite, n = {}, 0
    for k, x in ipairs(series) do
        finite[k] = x[x:isfinite()]
        n = math.max(n, finite[k]:numel())
    end
    local low, high = math.huge, -math.huge
    for _, x in ipairs(finite) do
        if x:numel() > 0 then
            low, high = math.min(low, x:min():item()), math.max(high, x:max():item())
        end
    end
    if limits then
        low, high = limits[1], limits[2]
    elseif low > high then
        low, high = 0, 1
    elseif high / 2 - low / 2 <= math.max(math.abs(low) * 1e-14, 1e-300) then -- bins have a width
        local room = math.max(0.5, math.abs(low) * 0.1)
        low, high = low - room, high + room
    end
    bins = bins or math.max(5, math.min(50, math.ceil(math.sqrt(n))))
    local width = high / bins - low / bins
    local counts, edges = {}, {}
    for k = 1, bins + 1 do
        edges[k] = low * ((bins + 1 - k) / bins) + high * ((k - 1) / bins)
    end
    for k, x in ipairs(finite) do
        local inside = x[x:ge(low):logical_and(x:le(high))]
        local places = tide.nan_to_num((inside / width - low / width):floor(), 0):clamp(0, bins - 1):to(tide.int64) + 1
        local count = tide.zeros(bins, { dtype = tide.float64 })
        if inside:numel() > 0 then
            count = count:index_add(1, places, tide.ones(places:numel(), { dtype = tide.float64 }))
        end
        counts[k] = count:tolist()
    end
    return counts, edges
end

return data
