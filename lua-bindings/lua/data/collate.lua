-- data/collate.lua: samples into batches: tensors are stacked, numbers become a tensor, strings stay a list, tables are
-- collated by key or by position.
local tide = ...
local fail, declare = tide._fail, tide._function
local collate = {}

local function kind_of(value)
    return tide.is_tensor(value) and "tensor" or type(value)
end

-- "field 'label' of sample 3 of the batch": `way` is how the value is reached in its sample.
local function where(k, way)
    return string.format("%ssample %d of the batch", way, k)
end

local gather

-- Memory for tensors of one shape and dtype, on the CPU and without history, from `memory` where there is such.
local function into(list, memory)
    local first = list[1]
    if not memory or tostring(first.device) ~= "cpu" then
        return nil
    end
    for k = 1, #list do
        local x = list[k]
        if x.dtype ~= first.dtype or x.shape ~= first.shape or x.requires_grad then
            return nil
        end
    end
    return { out = memory:take({ #list, table.unpack(first.shape) }, first.dtype) }
end

local function stack(list, way, memory)
    local ok, batch = pcall(tide.stack, list, into(list, memory))
    for k = 1, ok and 0 or #list do
        if list[k].shape ~= list[1].shape then
            fail("collate: %s has shape %s, the first %s", where(k, way), tostring(list[k].shape), tostring(list[1].shape))
        end
    end
    return ok and batch or error(batch, 0)
end

local function numbers(list)
    for _, x in ipairs(list) do
        if math.type(x) == "float" then
            return tide.tensor(list, { dtype = tide.float64 })
        end
    end
    return tide.tensor(list, { dtype = tide.int64 })
end

local function is_list(value)
    return #value > 0 or next(value) == nil
end

local function column(list, key, way, memory)
    local values = {}
    for k, sample in ipairs(list) do
        values[k] = sample[key]
        if values[k] == nil then
            fail("collate: %s has no field '%s', which the first has", where(k, way), tostring(key))
        end
    end
    return gather(values, string.format("field '%s' of %s", tostring(key), way), memory)
end

local function tables(list, way, memory)
    local first, batch = list[1], {}
    for k, sample in ipairs(list) do
        if is_list(first) and #sample ~= #first then
            fail("collate: %s has %d values, the first %d", where(k, way), #sample, #first)
        end
        for key in next, sample do
            if first[key] == nil then
                fail("collate: %s has a field '%s', which the first has not", where(k, way), tostring(key))
            end
        end
    end
    for key in next, first do
        batch[key] = column(list, key, way, memory)
    end
    return batch
end

local KINDS = {
    tensor = stack, number = numbers, table = tables,
    boolean = function(list) return tide.tensor(list) end,
    string = function(list) return list end,
}

function gather(list, way, memory)
    local kind = kind_of(list[1])
    for k = 1, #list do
        if kind_of(list[k]) ~= kind then
            fail("collate: %s is %s, the first %s", where(k, way), tide._describe(list[k]), tide._describe(list[1]))
        end
    end
    if not KINDS[kind] then
        fail("collate: %s is %s: samples are made of tensors, numbers, booleans, strings and tables of them; option collate takes others",
            where(1, way), tide._describe(list[1]))
    end
    return KINDS[kind](list, way, memory)
end

--- samples(list, memory): the batch's values of samples, each packed values {n = ...}; memory: buffers for tensors (buffers.lua).
function collate.samples(list, memory)
    local n, batch = list[1].n, {}
    for k, sample in ipairs(list) do
        if sample.n ~= n then
            fail("collate: %s has %d values, the first %d", where(k, ""), sample.n, n)
        end
    end
    for v = 1, n do
        local values, way = {}, n > 1 and string.format("value %d of ", v) or ""
        for k, sample in ipairs(list) do
            values[k] = sample[v]
            if values[k] == nil then
                fail("collate: %s is nil", where(k, way))
            end
        end
        batch[v] = gather(values, way, memory)
    end
    return table.unpack(batch, 1, n)
end

function collate.open(data)
    data.default_collate = declare("default_collate(list samples) -> any", "One batch of a list of samples: tensors stacked, integers as int64, "
        .. "numbers as float64, booleans as bool, strings as a list, tables by key or by position.", function(list)
            if #list == 0 then
                fail("collate: there are no samples")
            end
            return gather(list, "")
        end)
end

return collate
