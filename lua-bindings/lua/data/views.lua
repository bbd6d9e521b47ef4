-- data/views.lua: datasets that look at others: zipped, in batches, in another order. Nothing is worked out before it is asked for.
local tide = ...
local fail, declare = tide._fail, tide._function
local protocol, collate = tide._require "data.protocol", tide._require "data.collate"
local views = {}

-- A class by whose name its objects go to workers; what it has says what its objects are: get and len, or iter.
local function define(data, name, methods)
    local class = { __name = name, __len = methods.len, get = methods.get, len = methods.len, iter = methods.iter }
    class.__index = class
    class.__tostring = function(self) return methods.len and string.format("%s(%d)", name, methods.len(self)) or name end
    tide._class(name, class)
    data._classes[name] = class
    return class
end

-- The packed values of several samples behind one another.
local function joined(samples)
    local all, n = {}, 0
    for _, sample in ipairs(samples) do
        table.move(sample, 1, sample.n, n + 1, all)
        n = n + sample.n
    end
    return table.unpack(all, 1, n)
end

local function open_zip(data)
    local Zipped = define(data, "Zipped", {
        len = function(self) return self.n end,
        get = function(self, i)
            local samples = {}
            for k, dataset in ipairs(self.datasets) do
                samples[k] = table.pack(protocol.get(dataset, protocol.place("Zipped", i, self.n)))
            end
            return joined(samples)
        end,
    })
    local ZippedRow = define(data, "ZippedRow", {
        iter = function(self)
            local steps = {}
            for k, dataset in ipairs(self.datasets) do
                steps[k] = protocol.iterate(dataset)
            end
            return function()
                local samples = {}
                for k, step in ipairs(steps) do
                    samples[k] = table.pack(step())
                    if samples[k][1] == nil then
                        return nil
                    end
                end
                return joined(samples)
            end
        end,
    })
    data.zip = declare("zip(any dataset, ...) -> any", "The samples of datasets side by side: the values of the first one's, then of the second one's; as "
        .. "many as the shortest has. Iterable where one of them is.", function(...)
            local datasets, n, class = { ... }, math.huge, Zipped
            for _, dataset in ipairs(datasets) do
                protocol.check("zip", dataset)
                class = protocol.is_iterable(dataset) and ZippedRow or class
            end
            for _, dataset in ipairs(class == Zipped and datasets or {}) do
                n = math.min(n, protocol.length("zip", dataset))
            end
            return setmetatable({ datasets = datasets, n = class == Zipped and n or nil }, class)
        end)
end

local function open_batch(data)
    local Batched = define(data, "Batched", {
        len = function(self)
            local n = protocol.length("batch", self.dataset)
            return self.drop_last and n // self.size or (n + self.size - 1) // self.size
        end,
        get = function(self, i)
            local samples, first = {}, (protocol.place("Batched", i, #self) - 1) * self.size
            for k = 1, math.min(self.size, protocol.length("batch", self.dataset) - first) do
                samples[k] = table.pack(protocol.get(self.dataset, first + k))
            end
            return collate.samples(samples)
        end,
    })
    local BatchedRow = define(data, "BatchedRow", {
        iter = function(self)
            local step = protocol.iterate(self.dataset)
            return function()
                local samples = {}
                while step and #samples < self.size do
                    local sample = table.pack(step())
                    samples[#samples + 1] = sample[1] ~= nil and sample or nil
                    step = sample[1] ~= nil and step or nil
                end
                if #samples == self.size or #samples > 0 and not self.drop_last then
                    return collate.samples(samples)
                end
            end
        end,
    })
    data.batch = declare("batch(any dataset, int(1..) batch_size, bool drop_last=false) -> any", "Samples of a dataset in batches, each as a sample: "
        .. "for DataLoader(set, {batch_size = false}), or further views.", function(dataset, size, drop_last)
            protocol.check("batch", dataset)
            return setmetatable({ dataset = dataset, size = size, drop_last = drop_last }, protocol.is_iterable(dataset) and BatchedRow or Batched)
        end)
end

local function open_shuffle(data)
    -- A sample is drawn from a buffer that is kept full.
    local ShuffledRow = define(data, "ShuffledRow", {
        iter = function(self)
            local step, kept = protocol.iterate(self.dataset), {}
            return function()
                while step and #kept < self.buffer do
                    local sample = table.pack(step())
                    kept[#kept + 1] = sample[1] ~= nil and sample or nil
                    step = sample[1] ~= nil and step or nil
                end
                if #kept == 0 then
                    return nil
                end
                local k = tide.randint(1, #kept + 1, { 1 }):item()
                kept[k], kept[#kept] = kept[#kept], kept[k]
                local sample = table.remove(kept)
                return table.unpack(sample, 1, sample.n)
            end
        end,
    })
    data.shuffle = declare("shuffle(any dataset, *, int? seed=nil, int(1..) buffer=1000) -> any", "A dataset in a random order, which stays as it is; an "
        .. "iterable one through a buffer of so many samples, in another order each time.", function(dataset, seed, buffer)
            protocol.check("shuffle", dataset)
            if protocol.is_iterable(dataset) then
                if seed then
                    fail("shuffle: an iterable dataset is in another order each time, which the loader's seed decides: seed does not go with it")
                end
                return setmetatable({ dataset = dataset, buffer = buffer }, ShuffledRow)
            end
            local order = tide.randperm(protocol.length("shuffle", dataset), { generator = seed and tide.Generator(seed) })
            return data.Subset(dataset, order)
        end)
end

function views.open(data)
    open_zip(data)
    open_batch(data)
    open_shuffle(data)
end

return views
