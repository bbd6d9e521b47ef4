-- data/fetch.lua: makes one batch, here or in a worker's state, where the dataset is held once for all batches.
--
-- A source: {dataset, collate, iterable, batch_size, drop_last, skips}. The default generator begins anew before each sample,
-- at a seed of the epoch and the sample alone, so that it does not matter who makes which.
local tide = ...
local protocol, collate, datasets = tide._require "data.protocol", tide._require "data.collate", tide._require "data.datasets"
local fetch = {}

local INTERRUPTED = "interrupted"

-- fn() whose error becomes a text with what was being done; in a worker with the lines it came by. `what`: a text, or {index}
-- of the sample that is asked for.
local function guarded(source, what, fn)
    return xpcall(fn, function(message)
        if type(message) ~= "string" then
            local meta = getmetatable(message)
            message = type(meta) == "table" and meta.__tostring and tostring(message) or tide._describe(message)
        end
        local doing = type(what) == "string" and what or string.format("sample %s of the dataset", tostring(what[1]))
        message = string.format("DataLoader: %s: %s", doing, message)
        return source.worker and debug.traceback(message, 2) or message
    end)
end

-- Random numbers of a sample; math.random's are a worker's own there, but the script's here.
local function seed(source, key, sample)
    local number = protocol.mix(key, sample)
    tide.manual_seed(number)
    if source.worker then
        math.randomseed(number)
    end
end

local function pack(...)
    if (...) == nil then
        error("it is nil", 0)
    end
    return table.pack(...)
end

local function finish(source, samples, what)
    local values
    local ok, message = guarded(source, what, function()
        local custom = source.collate
        if not custom then
            values = table.pack(collate.samples(samples))
            return
        end
        local plain = {}
        for k, sample in ipairs(samples) do -- several values of a sample are a list
            plain[k] = sample.n == 1 and sample[1] or { table.unpack(sample, 1, sample.n) }
        end
        values = pack(custom(plain))
    end)
    return ok, ok and values or message
end

local function text_of(indices)
    local parts = {}
    for k = 1, math.min(#indices, 8) do
        parts[k] = tostring(indices[k])
    end
    return string.format("the batch of samples %s%s", table.concat(parts, ", "), #indices > 8 and ", ..." or "")
end

-- The batch of the samples of a map-style dataset at a list of indices.
local function at_indices(source, key, indices)
    for _, index in ipairs(indices) do
        if math.type(index) ~= "integer" then
            return false, string.format("DataLoader: a sampler gives integers, got %s", tide._describe(index))
        end
    end
    if #indices == 0 then
        return false, "DataLoader: batch_sampler gave a batch without samples"
    end
    local whole = not source.collate and not source.skips and datasets.has_batches(source.dataset)
    if whole then
        local values
        seed(source, key, indices[1])
        local ok, message = guarded(source, text_of(indices), function()
            values = pack(datasets.batch(source.dataset, indices))
        end)
        return ok, ok and values or message, {}
    end
    local samples, left_out, at, what = {}, {}, 0, {}
    local function go_on()
        while at < #indices do
            at = at + 1
            what[1] = indices[at]
            seed(source, key, what[1])
            samples[#samples + 1] = pack(protocol.get(source.dataset, what[1]))
        end
    end
    while at < #indices do
        local ok, message = guarded(source, what, go_on)
        if not ok and (not source.skips or string.find(message, INTERRUPTED, 1, true)) then
            return false, message
        elseif not ok then
            left_out[#left_out + 1] = { index = what[1], message = message }
        end
    end
    if #samples == 0 then
        return true, { n = 0 }, left_out
    end
    local ok, values = finish(source, samples, text_of(indices))
    return ok, values, left_out
end

-- Where a state's pass over the iterable dataset stands: samples before the batch that is asked for are passed over.
local function advance(source, key, first)
    local pass = source.pass
    if not pass or pass.key ~= key or pass.at >= first then
        source.pass = nil
        seed(source, key, 0)
        pass = { key = key, at = 0, step = protocol.iterate(source.dataset) }
        source.pass = pass
    end
    return pass
end

-- Batch number k of an iterable dataset; no values where it has ended before.
local function in_a_row(source, key, k)
    local first, samples, what = (k - 1) * source.batch_size + 1, {}, { 1 }
    local ok, message = guarded(source, what, function()
        local pass = advance(source, key, first)
        while pass.step and pass.at < first + source.batch_size - 1 do
            what[1] = pass.at + 1
            seed(source, key, pass.at + 1)
            local sample = table.pack(pass.step())
            if sample[1] == nil then
                pass.step = nil
                break
            end
            pass.at = pass.at + 1
            if pass.at >= first then
                samples[#samples + 1] = sample
            end
        end
    end)
    if not ok then
        source.pass = nil
        return false, message
    elseif #samples == 0 or #samples < source.batch_size and source.drop_last then
        return true, { n = 0 }, {}
    end
    local collated, values = finish(source, samples, string.format("batch %d", k))
    return collated, values, {}
end

--- batch(source, key, job): ok, the packed values (none: no samples), {index, message} of the samples left out; or false and
--- the error's text. key: the epoch's seed; job: a list of indices, or a number of the batch.
function fetch.batch(source, key, job)
    return (source.iterable and in_a_row or at_indices)(source, key, job)
end

local held -- the source of a worker's state

function fetch.hold(source, init)
    local _ = tide.data -- opens what the parts stand on
    source.worker = true
    if init then
        init()
    end
    held = source
end

function fetch.work(key, job)
    return fetch.batch(held, key, job)
end

return fetch
