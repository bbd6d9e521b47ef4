-- data/datasets.lua: tide.data's datasets, which are made of tensors and of other datasets.
local tide = ...
local fail, declare = tide._fail, tide._function
local protocol = tide._require "data.protocol"
local length, get, place = protocol.length, protocol.get, protocol.place
local datasets = {}

-- What a dataset with samples has not: a number asks for one of them.
local LAST = {
    __index = function(_, key)
        if math.type(key) == "integer" then
            fail("a dataset has its samples by get, which gives each value of one: dataset:get(%d)", key)
        end
    end,
}

function datasets.open(data)
    -- A class with get and a length, or with iter; `doc` is what help says of its constructor.
    local function define(schema, doc, methods, fn)
        local name = string.match(schema, "^%w+")
        local class = { __name = name }
        class.__index = class
        setmetatable(class, methods.get and LAST)
        tide._class(name, class)
        data._classes[name] = class
        if methods.len then
            class.__len = methods.len
            class.len = declare("len(" .. name .. " self) -> int", "How many samples there are.", methods.len)
        end
        if methods.get then
            class.get = declare("get(" .. name .. " self, int i) -> any", "The values of a sample, counted from 1.", function(self, i)
                return methods.get(self, place(name, i, methods.len(self)))
            end)
        end
        if methods.iter then
            class.iter = declare("iter(" .. name .. " self) -> function", "A function that gives the next sample.", methods.iter)
        end
        class.get_batch, class.get_into = methods.get_batch, methods.get_into
        class.__tostring = function(self)
            return methods.len and string.format("%s(%d)", name, methods.len(self)) or name
        end
        local make = fn and declare(schema .. " -> " .. name, doc, function(...) return setmetatable(fn(...), class) end)
        if make then
            data[name] = make
            tide._document(class, name, schema, doc)
        end
        return class
    end
    datasets.define = define

    -- Each entry of a list is a dataset.
    local function check_all(name, list, most)
        for k, dataset in pairs(list) do
            protocol.check(name, dataset)
            if most == "map" and protocol.is_iterable(dataset) then
                fail("%s: dataset %s is iterable and has no samples by number: ChainDataset takes such", name, tostring(k))
            end
        end
        if next(list) == nil then
            fail("%s: at least one dataset expected", name)
        end
    end

    local TensorDataset = define("TensorDataset(Tensor x, ...)", "A dataset whose sample i is row i of each tensor: TensorDataset(x, y):get(1) gives x[1], y[1].", {
        len = function(self) return #self.tensors[1] end,
        get = function(self, i)
            local rows = {}
            for k, x in ipairs(self.tensors) do
                rows[k] = x[i]
            end
            return table.unpack(rows)
        end,
        get_batch = function(self, indices)
            local batch, rows = {}, tide.is_tensor(indices) and indices or tide.tensor(indices)
            for k, x in ipairs(self.tensors) do
                batch[k] = x:index_select(1, rows:to(x.device))
            end
            return table.unpack(batch)
        end,
    }, function(...)
        local tensors = { ... }
        for k = 1, select("#", ...) do
            local x = tensors[k]
            if not tide.is_tensor(x) then
                fail("TensorDataset: argument %d: expected a tensor, got %s", k, tide._describe(x))
            elseif x:dim() == 0 then
                fail("TensorDataset: tensor %d has no dims, and so no rows", k)
            elseif #x ~= #tensors[1] then
                fail("TensorDataset: tensor %d has %d rows, the first %d", k, #x, #tensors[1])
            end
        end
        return { tensors = tensors }
    end)

    local Subset = define("Subset(any dataset, any indices)", "The samples of a dataset at these indices, in their order.", {
        len = function(self) return #self.indices end,
        get = function(self, i) return get(self.dataset, self.indices[i]:item()) end,
    }, function(dataset, indices)
        protocol.check("Subset", dataset)
        local n, rows = length("Subset", dataset), protocol.indices("Subset", indices)
        if #rows > 0 then
            place("Subset", rows:min():item(), n)
            place("Subset", rows:max():item(), n)
            if rows:eq(0):any():item() then
                place("Subset", 0, n)
            end
        end
        return { dataset = dataset, indices = tide.where(rows:lt(0), rows + (n + 1), rows) }
    end)

    -- The dataset that a Subset of a Subset of ... takes its samples from.
    local function innermost(dataset)
        while getmetatable(dataset) == Subset do
            dataset = dataset.dataset
        end
        return dataset
    end

    -- Indices, a list or a tensor, of that one.
    local function inner_indices(dataset, indices)
        while getmetatable(dataset) == Subset do
            indices = dataset.indices:index_select(1, tide.is_tensor(indices) and indices or tide.tensor(indices))
            dataset = dataset.dataset
        end
        return indices
    end

    --- batch(dataset, indices): whole batches: the rows of tensors, and what a dataset's own get_batch(self, indices) gives.
    function datasets.batch(dataset, indices)
        indices, dataset = inner_indices(dataset, indices), innermost(dataset)
        if tide.is_tensor(dataset) then
            return dataset:index_select(1, (tide.is_tensor(indices) and indices or tide.tensor(indices)):to(dataset.device))
        elseif tide.is_tensor(indices) and getmetatable(dataset) ~= TensorDataset then
            indices = indices:tolist()
        end
        return dataset.get_batch(dataset, indices)
    end

    function datasets.has_batches(dataset)
        dataset = innermost(dataset)
        return tide.is_tensor(dataset) or protocol.method(dataset, "get_batch") ~= nil
    end

    --- row_bytes(dataset): bytes of a sample of a dataset that is nothing but rows of tensors of the CPU; nil of others.
    function datasets.row_bytes(dataset)
        dataset = innermost(dataset)
        local tensors, sum = tide.is_tensor(dataset) and { dataset } or getmetatable(dataset) == TensorDataset and dataset.tensors, 0
        for _, x in ipairs(tensors or {}) do
            if tostring(x.device) ~= "cpu" then
                return nil
            end
            sum = sum + x.nbytes // math.max(#x, 1)
        end
        return tensors and sum
    end

    --- writer(dataset): fn(i, row) that writes sample i into a row of a batch and gives its other values; nil where the dataset
    --- has no get_into(self, i, row).
    function datasets.writer(dataset)
        local inner = innermost(dataset)
        local get_into = protocol.method(inner, "get_into")
        return get_into and function(i, row)
            return get_into(inner, inner ~= dataset and inner_indices(dataset, { i }):item() or i, row)
        end
    end

    define("ConcatDataset(list datasets)", "The samples of several datasets, one after the other: ConcatDataset{a, b}.", {
        len = function(self) return self.ends[#self.ends] end,
        get = function(self, i)
            local ends, first, last = self.ends, 1, #self.ends
            while first < last do -- the first dataset that ends at i or behind it
                local middle = (first + last) // 2
                if ends[middle] < i then
                    first = middle + 1
                else
                    last = middle
                end
            end
            return get(self.datasets[first], i - (ends[first - 1] or 0))
        end,
    }, function(list)
        local ends, n = {}, 0
        check_all("ConcatDataset", list, "map")
        for k, dataset in ipairs(list) do
            n = n + length("ConcatDataset", dataset)
            ends[k] = n
        end
        return { datasets = list, ends = ends }
    end)

    define("StackDataset(table datasets)", "Datasets of one length side by side: a sample is a table of theirs, by position or by name: "
        .. "StackDataset{image = a, label = b}.", {
        len = function(self) return self.n end,
        get = function(self, i)
            local sample = {}
            for key, dataset in pairs(self.datasets) do
                sample[key] = get(dataset, i)
            end
            return sample
        end,
    }, function(list)
        local n, of
        check_all("StackDataset", list, "map")
        for key, dataset in pairs(list) do
            local own = length("StackDataset", dataset)
            n, of = n or own, of or key
            if own ~= n then
                fail("StackDataset: dataset %s has %d samples, dataset %s %d", tostring(key), own, tostring(of), n)
            end
        end
        return { datasets = list, n = n }
    end)

    -- ---- samples in a row ----

    define("ChainDataset(list datasets)", "The samples of several datasets, iterable ones among them, one after the other: an iterable dataset.", {
        iter = function(self)
            local k, step = 0, nil
            local function pass(...)
                return select("#", ...) > 0 and (...) ~= nil, ...
            end
            return function()
                while true do
                    if step then
                        local values = table.pack(pass(step()))
                        if values[1] then
                            return table.unpack(values, 2, values.n)
                        end
                    end
                    k = k + 1
                    if not self.datasets[k] then
                        return nil
                    end
                    step = protocol.iterate(self.datasets[k])
                end
            end
        end,
    }, function(list)
        check_all("ChainDataset", list)
        return { datasets = list }
    end)

    local Filtered = define("Filtered()", "", {
        iter = function(self)
            local step, keep = protocol.iterate(self.dataset), self.fn
            return function()
                while true do
                    local values = table.pack(step())
                    if values[1] == nil or keep(table.unpack(values, 1, values.n)) then
                        return table.unpack(values, 1, values.n)
                    end
                end
            end
        end,
    })
    data.filter = declare("filter(any dataset, function fn) -> any",
        "The samples for which fn(values of the sample) is true: an iterable dataset, whose length nobody knows.", function(dataset, fn)
            protocol.check("filter", dataset)
            return setmetatable({ dataset = dataset, fn = fn }, Filtered)
        end)

    local Mapped = define("Mapped()", "", {
        len = function(self) return length("map", self.dataset) end,
        get = function(self, i) return self.fn(get(self.dataset, i)) end,
    })
    local MappedRow = define("MappedRow()", "", {
        iter = function(self)
            local step, fn = protocol.iterate(self.dataset), self.fn
            local function apply(...)
                if (...) ~= nil then
                    return fn(...)
                end
            end
            return function() return apply(step()) end
        end,
    })
    data.map = declare("map(any dataset, function fn) -> any",
        "The dataset whose samples are fn(values of a sample), worked out when they are asked for: augmentation, decoding.", function(dataset, fn)
            protocol.check("map", dataset)
            return setmetatable({ dataset = dataset, fn = fn }, protocol.is_iterable(dataset) and MappedRow or Mapped)
        end)

    -- ---- parts ----

    -- How many samples each part has: fractions are rounded down, and what remains goes round.
    local function parts_of(n, lengths)
        local sum, parts = 0, {}
        for k, share in ipairs(lengths) do
            if share < 0 then
                fail("random_split: lengths[%d]: expected no negative number, got %s", k, tide._number(share))
            end
            sum = sum + share
        end
        if math.abs(sum - 1) <= 1e-9 and (math.type(sum) == "float" or n ~= 1) then
            local rest = n
            for k, share in ipairs(lengths) do
                parts[k] = math.floor(n * share)
                rest = rest - parts[k]
            end
            for k = 0, rest - 1 do
                parts[k % #parts + 1] = parts[k % #parts + 1] + 1
            end
            return parts
        end
        for k, share in ipairs(lengths) do
            parts[k] = math.tointeger(share)
            if not parts[k] then
                fail("random_split: lengths are integers, or fractions that add up to 1: these add up to %s", tide._number(sum, 6))
            end
        end
        if sum ~= n then
            fail("random_split: the lengths add up to %d, the dataset has %d samples", sum, n)
        end
        return parts
    end

    data.random_split = declare("random_split(any dataset, number[] lengths, generator? generator=nil, *, int? seed=nil) -> list",
        "Subsets of a dataset at random: train, test = table.unpack(random_split(dataset, {0.8, 0.2}, {seed = 1})); lengths are integers "
            .. "or fractions. The order is drawn from a generator, from one of the seed, or from the default one.",
            function(dataset, lengths, generator, seed)
            protocol.check("random_split", dataset)
            protocol.one_source("random_split", generator, seed)
            local n, subsets, first = length("random_split", dataset), {}, 1
            local parts = parts_of(n, lengths)
            local order = tide.randperm(n, { generator = generator or seed and tide.Generator(seed) })
            for k, size in ipairs(parts) do
                subsets[k] = setmetatable({ dataset = dataset, indices = order:narrow(1, first, size) }, Subset)
                first = first + size
            end
            return subsets
        end)
end

return datasets
