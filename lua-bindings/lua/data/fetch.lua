-- data/fetch.lua: makes one batch, here or in a worker's state, where the dataset is held once for all batches.
--
-- A source: {dataset, collate, iterable, single, shared, batch_size, drop_last, skips, pin, seed, prefetch, num_workers,
-- row_bytes}. The default generator begins anew before each sample, at a seed of the epoch and the sample alone, so that it does
-- not matter who makes which.
local tide = ...
local protocol, collate, datasets, buffers = tide._require "data.protocol", tide._require "data.collate", tide._require "data.datasets",
    tide._require "data.buffers"
local fetch = {}

local INTERRUPTED = "interrupted"

-- What was being done, for an error: `what` is a text, a function that gives one, or {index} of the sample that is asked for.
local function doing(what)
    local text = type(what) == "function" and what() or type(what) == "string" and what
        or string.format("sample %s of the dataset", tostring(what[1]))
    local stage, file = tide._stage_where()
    return string.format("DataLoader: %s%s%s", text, file and string.format(" (%s)", file) or "",
        stage and string.format(", stage \"%s\"", stage) or "")
end

-- fn() whose error becomes a text with what was being done; in a worker with the lines it came by. Lua hands an error for want
-- of memory to no handler.
local function guarded(source, what, fn)
    local heard = false
    local ok, text = xpcall(fn, function(message)
        heard = true
        if type(message) ~= "string" then
            local meta = getmetatable(message)
            message = type(meta) == "table" and meta.__tostring and tostring(message) or tide._describe(message)
        end
        message = string.format("%s: %s", doing(what), message)
        return source.worker and debug.traceback(message, 2) or message
    end)
    return ok, ok and text or heard and text or string.format("%s: %s", doing(what), tostring(text))
end

-- Random numbers of a sample; math.random's are a worker's own there, but the script's here.
local function seed(source, key, sample)
    local number = protocol.mix(key, sample)
    tide._stage_sample()
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

-- The values of the samples together; `rows`: the first values are rows of this tensor already.
local function finish(source, samples, what, rows)
    local values
    local ok, message = guarded(source, what, function()
        local _ <close> = tide._stage_enter "collate"
        local custom = source.collate
        if rows then
            values = samples[1].n == 0 and { n = 0 } or table.pack(collate.samples(samples, source.buffers))
            table.insert(values, 1, rows)
            values.n = values.n + 1
        elseif not custom then
            values = table.pack(collate.samples(samples, source.buffers))
        else
            local plain = {}
            for k, sample in ipairs(samples) do -- several values of a sample are a list
                plain[k] = sample.n == 1 and sample[1] or { table.unpack(sample, 1, sample.n) }
            end
            values = pack(custom(plain))
        end
    end)
    return ok, ok and values or message
end

-- A sample as it is, which collate may change.
local function alone(source, sample, what)
    local values = sample
    local ok, message = guarded(source, what, function()
        if source.collate then
            values = pack(source.collate(table.unpack(sample, 1, sample.n)))
        end
    end)
    return ok, ok and values or message
end

local function text_of(indices)
    local parts = {}
    for k = 1, math.min(#indices, 8) do
        parts[k] = tostring(tide.is_tensor(indices) and indices[k]:item() or indices[k])
    end
    return string.format("the batch of samples %s%s", table.concat(parts, ", "), #indices > 8 and ", ..." or "")
end

-- Why indices can't be a batch's; nil: they can.
local function problem(indices)
    if #indices == 0 then
        return "DataLoader: batch_sampler gave a batch without samples"
    end
    for _, index in ipairs(indices) do
        if math.type(index) ~= "integer" and type(index) ~= "string" then
            return string.format("DataLoader: a sampler gives integers, or strings that the dataset knows, got %s", tide._describe(index))
        end
    end
end

local function whole(source, key, indices)
    local values
    if not source.row_bytes then
        seed(source, key, tide.is_tensor(indices) and indices[1]:item() or indices[1])
    end
    local ok, message = guarded(source, function() return text_of(indices) end, function()
        values = pack(datasets.batch(source.dataset, indices))
    end)
    return ok, ok and values or message, nil
end

-- The batch's buffer for the first values of samples, which the dataset writes itself: those of its first sample ever say what
-- a row is.
local function make_rows(source, n)
    local row = source.row
    local shape = { n, table.unpack(row.shape) }
    return source.buffers and source.buffers:take(shape, row.dtype) or tide.empty(shape, { dtype = row.dtype })
end

-- The samples at indices, from the first on, as far as none fails; one that does is left out where the source says so.
local function gather(source, key, indices)
    local samples, left_out, at, what, rows = {}, nil, 0, {}, nil
    local writer = not source.collate and not source.skips and not source.single and datasets.writer(source.dataset)
    if writer and source.row then
        rows = make_rows(source, #indices)
    end
    local function go_on()
        while at < #indices do
            at = at + 1
            what[1] = indices[at]
            seed(source, key, what[1])
            if rows then
                local row <close> = rows[at]
                samples[at] = table.pack(writer(what[1], row))
            else
                samples[#samples + 1] = pack(protocol.get(source.dataset, what[1]))
            end
        end
    end
    while at < #indices do
        local ok, message = guarded(source, what, go_on)
        if not ok and (not source.skips or string.find(message, INTERRUPTED, 1, true)) then
            return false, message
        elseif not ok then
            left_out = left_out or {}
            left_out[#left_out + 1] = { index = what[1], message = message }
        end
    end
    if writer and not source.row and tide.is_tensor(samples[1][1]) then
        source.row = { shape = samples[1][1].shape, dtype = samples[1][1].dtype }
    end
    return true, samples, left_out, rows
end

-- The batch of the samples of a map-style dataset at a list or tensor of indices, or at one index alone.
local function at_indices(source, key, indices)
    if source.single then
        indices = { indices }
    end
    local wrong = not tide.is_tensor(indices) and problem(indices)
    if wrong then
        return false, wrong
    elseif not source.single and not source.collate and not source.skips and datasets.has_batches(source.dataset) then
        return whole(source, key, indices)
    end
    indices = tide.is_tensor(indices) and indices:tolist() or indices
    local ok, samples, left_out, rows = gather(source, key, indices)
    if not ok then
        return false, samples
    elseif #samples == 0 then
        return true, { n = 0 }, left_out
    end
    local values
    if source.single then
        ok, values = alone(source, samples[1], { indices[1] })
    else
        ok, values = finish(source, samples, function() return text_of(indices) end, rows)
    end
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

-- Batch number k of an iterable dataset, of a worker's share where it is shared out; no values where it has ended before.
local function in_a_row(source, key, k)
    local size = source.batch_size
    if source.shared and source.worker then
        k = (k - 1) // source.num_workers + 1
    end
    local first, samples, what = (k - 1) * size + 1, {}, { 1 }
    local ok, message = guarded(source, what, function()
        local pass = advance(source, key, first)
        while pass.step and pass.at < first + size - 1 do
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
    elseif #samples == 0 or #samples < size and source.drop_last then
        return true, { n = 0 }
    end
    local made, values
    if source.single then
        made, values = alone(source, samples[1], what)
    else
        made, values = finish(source, samples, string.format("batch %d", k))
    end
    return made, values
end

local function pinned(source, values)
    local there
    local ok, message = guarded(source, "the batch in pinned memory", function()
        local _ <close> = tide._stage_enter "pin"
        there = source.buffers:pinned(values)
    end)
    return ok, ok and there or message
end

--- work_on(source, key, task): ok, {index, message} of the samples left out (nil: none), the time of stages as
--- tide._stages_add takes it, the values (none: no samples); or false and the error's text. key: the epoch's seed.
function fetch.work_on(source, key, task)
    local counting = not source.row_bytes and tide._stages_begin()
    local ok, values, left_out = (source.iterable and in_a_row or at_indices)(source, key, task)
    if ok and source.buffers and source.pin then
        ok, values = pinned(source, values)
    end
    local stages = counting and tide._stages_end() or nil
    if not ok then
        return false, values
    end
    return true, left_out, stages, table.unpack(values, 1, values.n)
end

local info -- of a worker's state

--- hold(source, init): a worker's state begins; what it returns makes a batch of a task.
function fetch.hold(source, init)
    local _ = tide.data -- opens what the parts stand on
    source.worker = tide._worker
    source.buffers = buffers.new(source.pin, true)
    info = { id = tide._worker, num_workers = source.num_workers, seed = protocol.mix(source.seed, -tide._worker), dataset = source.dataset }
    if init then
        init(tide._worker)
    end
    return function(key, task) return fetch.work_on(source, key, task) end
end

function fetch.worker_info() return info end

return fetch
