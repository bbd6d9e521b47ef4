-- data/protocol.lua: what datasets and samplers are asked for, and the random numbers of each.
--
-- A map-style dataset has get(self, i), which gives the values of sample i, counted from 1, and a length: len(self) or #.
-- Lists and tensors are such too. An iterable one has iter(self): a function that gives the next sample, nil at the end.
local tide = ...
local fail = tide._fail
local protocol = {}

local function method(object, name)
    local kind = type(object)
    if kind ~= "table" and (kind ~= "userdata" or tide.is_tensor(object)) then
        return nil
    end
    local value = object[name]
    return (type(value) == "function" or type(value) == "table" and getmetatable(value) ~= nil) and value or nil
end
protocol.method = method

--- is_iterable(dataset): has it samples in a row alone?
function protocol.is_iterable(dataset)
    return method(dataset, "iter") ~= nil and method(dataset, "get") == nil
end

--- check(name, value): fails where a value is no dataset.
function protocol.check(name, value)
    local speaks = method(value, "get") or method(value, "iter") or tide.is_tensor(value)
    local list = type(value) == "table" and (#value > 0 or next(value) == nil or getmetatable(value) ~= nil and protocol.has_length(value))
    if not speaks and not list then
        fail("%s: expected a dataset: a list, a tensor, an object with get(self, i) and a length, or with iter(self); got %s", name,
            tide._describe(value))
    elseif tide.is_tensor(value) and value:dim() == 0 then
        fail("%s: a tensor without dims has no rows", name)
    end
end

--- has_length(value): can its length be asked for?
function protocol.has_length(value)
    if method(value, "len") or tide.is_tensor(value) then
        return true
    end
    local meta = getmetatable(value)
    if meta ~= nil and (type(meta) ~= "table" or meta.__len ~= nil) then
        return true
    end
    local list = type(value) == "table" and not method(value, "get") and not method(value, "iter")
    return list and (meta == nil or #value > 0)
end

--- length(name, value): of a dataset or sampler.
function protocol.length(name, value)
    if not protocol.has_length(value) then
        fail("%s: %s has no length: give it len(self), or __len in its metatable", name, tide._describe(value))
    end
    local len = method(value, "len")
    local n = len and len(value) or not len and #value
    if math.type(n) ~= "integer" or n < 0 then
        fail("%s: a length is an integer from 0, got %s", name, tide._describe(n))
    end
    return n
end

--- get(dataset, i): the values of a sample.
function protocol.get(dataset, i)
    local get = method(dataset, "get")
    if get then
        return get(dataset, i)
    end
    return dataset[i]
end

--- place(name, i, n): an index from 1 to n, of which -1 is the last.
function protocol.place(name, i, n)
    if math.type(i) ~= "integer" or i == 0 or i > n or i < -n then
        fail("%s: index %s: there are %d samples, counted from 1", name, math.type(i) == "integer" and tostring(i) or tide._describe(i), n)
    end
    return i < 0 and n + 1 + i or i
end

--- iterate(dataset): a function that gives the samples in a row.
function protocol.iterate(dataset)
    if protocol.is_iterable(dataset) then
        local iter = method(dataset, "iter")
        local step, state, control = iter(dataset)
        if type(step) ~= "function" then
            fail("iter of a dataset gives a function, got %s", tide._describe(step))
        end
        local function keep(...) -- the first value is what Lua's iterators go on from
            control = (...)
            return ...
        end
        return function() return keep(step(state, control)) end
    end
    local k, n = 0, protocol.length("iterate", dataset)
    return function()
        if k < n then
            k = k + 1
            return protocol.get(dataset, k)
        end
    end
end

--- indices(name, value): a list or tensor of integers as an int64 tensor, which workers share.
function protocol.indices(name, value)
    if not tide.is_tensor(value) and type(value) ~= "table" then
        fail("%s: expected a list or tensor of indices, got %s", name, tide._describe(value))
    elseif #value == 0 then
        return tide.empty(0, { dtype = tide.int64 })
    end
    local x = tide.is_tensor(value) and value or tide.tensor(value)
    if x:dim() ~= 1 or x:is_floating_point() or x.dtype == tide.bool then
        fail("%s: indices are integers in a row, got %s of shape %s", name, tostring(x.dtype), tostring(x.shape))
    end
    return x:detach():to(tide.int64):cpu()
end

local CHUNK = 1024 -- indices that become Lua's at a time

--- each(indices): a function that gives the integers of a tensor one after the other.
function protocol.each(indices)
    local n, at, list, k = #indices, 0, {}, 0
    return function()
        if k == #list then
            if at == n then
                return nil
            end
            local size = math.min(CHUNK, n - at)
            list, k, at = indices:narrow(1, at + 1, size):tolist(), 0, at + size
        end
        k = k + 1
        return list[k]
    end
end

-- A step of splitmix64: neighbours become numbers that have nothing to do with each other.
local function scatter(x)
    x = x + 0x9E3779B97F4A7C15
    x = (x ~ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ~ (x >> 27)) * 0x94D049BB133111EB
    return x ~ (x >> 31)
end

-- A text as an integer: FNV-1a.
local function number_of(text)
    local x = 0xCBF29CE484222325
    for k = 1, #text do
        x = (x ~ string.byte(text, k)) * 0x100000001B3
    end
    return x
end

--- mix(a, b): a seed made of an integer and another, or a text.
function protocol.mix(a, b)
    b = type(b) == "string" and number_of(b) or b
    return scatter(scatter(a) ~ b)
end

--- one_source(name, generator, seed): fails where both are given.
function protocol.one_source(name, generator, seed)
    if generator and seed then
        fail("%s: generator and seed both say where the draws come from: give one of them", name)
    end
end

--- aside(fn, ...): fn(...), after which the default generator is where it was before, also behind an error.
function protocol.aside(fn, ...)
    local before = tide.get_rng_state()
    local results = table.pack(pcall(fn, ...))
    tide.set_rng_state(before)
    if not results[1] then
        error(results[2], 0)
    end
    return table.unpack(results, 2, results.n)
end

return protocol
