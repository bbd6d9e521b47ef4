-- data/samplers.lua: tide.data's samplers: objects with iter(), which gives a function that gives the next index (or list of
-- them), and a length.
local tide = ...
local fail, declare = tide._fail, tide._function
local protocol = tide._require "data.protocol"
local samplers = {}

-- How many samples a number or a dataset means.
local function count(name, source)
    if math.type(source) == "integer" and source >= 0 then
        return source
    end
    protocol.check(name, source)
    return protocol.length(name, source)
end

-- The generator of a pass: the one given; with a seed that of (seed, epoch), and the next pass is of the next epoch.
local function generator(self)
    if self.generator then
        return self.generator
    elseif self.seed then
        local own = tide.Generator(protocol.mix(self.seed, self.epoch))
        self.epoch = self.epoch + 1
        return own
    end
end

local function randperm(n, self) return tide.randperm(n, { generator = generator(self) }) end

-- `for index in sampler do`, as the loops of each sampler run: {step, the index before}.
local loops = setmetatable({}, { __mode = "k" })

local function loop(self, _, before)
    local now = before == nil and { step = self:iter() } or loops[self]
    if before ~= nil and not (now and rawequal(now.before, before)) then
        fail("%s: another loop over this sampler has begun since: for index in sampler:iter() do gives each a pass of its own",
            getmetatable(self).__name)
    end
    loops[self], now.before = now, now.step()
    return now.before
end

function samplers.open(data)
    local function define(schema, doc, methods, fn)
        local name = string.match(schema, "^%w+")
        local class = { __name = name, __len = methods.len, __call = loop }
        class.__index = class
        tide._class(name, class)
        data._classes[name] = class
        local iter = methods.iter or function(self) return protocol.each(methods.order(self)) end
        class._order = methods.order
        class.iter = declare("iter(" .. name .. " self) -> function", "A function that gives the next index, nil at the end.", iter)
        class.len = declare("len(" .. name .. " self) -> int", "How many indices, or batches of them, a pass gives.", methods.len)
        if methods.seeded then
            class.set_epoch = declare("set_epoch(" .. name .. " self, int epoch)", "The next pass is that of this epoch.",
                function(self, epoch) self.epoch = epoch end)
        end
        class.__tostring = function(self) return string.format("%s(%d)", name, methods.len(self)) end
        data[name] = declare(schema .. " -> " .. name, doc, function(...) return setmetatable(fn(...), class) end)
        tide._document(class, name, schema, doc)
    end

    define("SequentialSampler(any source)", "The indices 1 to n of a dataset, or of a number, in order.", {
        len = function(self) return count("SequentialSampler", self.source) end,
        iter = function(self)
            local k, n = 0, count("SequentialSampler", self.source)
            return function()
                k = k + 1
                return k <= n and k or nil
            end
        end,
    }, function(source)
        count("SequentialSampler", source)
        return { source = source }
    end)

    samplers.Sequential = data._classes.SequentialSampler

    define("RandomSampler(any source, bool replacement=false, int? num_samples=nil, generator? generator=nil, *, int? seed=nil)",
        "The indices of a dataset, or of a number, in a random order, or num_samples of them drawn, by a generator, one of a seed, or the default one: "
            .. "for k in sampler do is a pass.", {
            seeded = true,
            len = function(self) return self.num_samples or count("RandomSampler", self.source) end,
            order = function(self)
                local n, wanted = count("RandomSampler", self.source), self.num_samples
                if self.replacement then
                    return tide.randint(1, n + 1, { wanted or n }, { generator = generator(self) })
                elseif not wanted or wanted == n then
                    return randperm(n, self)
                end
                local own, passes, left = generator(self), {}, wanted
                while left > 0 do -- more than there are: one pass behind the other
                    passes[#passes + 1] = tide.randperm(n, { generator = own }):narrow(1, 1, math.min(left, n))
                    left = left - n
                end
                return tide.cat(passes)
            end,
        }, function(source, replacement, wanted, own, seed)
            local n = count("RandomSampler", source)
            protocol.one_source("RandomSampler", own, seed)
            if n == 0 then
                fail("RandomSampler: there are no samples to draw from")
            elseif wanted and wanted < 1 then
                fail("RandomSampler: num_samples: expected a positive integer, got %d", wanted)
            end
            return { source = source, replacement = replacement, num_samples = wanted, generator = own, seed = seed, epoch = 1 }
        end)

    define("SubsetRandomSampler(any indices, generator? generator=nil, *, int? seed=nil)", "These indices in a random order.", {
        seeded = true,
        len = function(self) return #self.indices end,
        order = function(self) return self.indices[randperm(#self.indices, self)] end,
    }, function(indices, own, seed)
        protocol.one_source("SubsetRandomSampler", own, seed)
        return { indices = protocol.indices("SubsetRandomSampler", indices), generator = own, seed = seed, epoch = 1 }
    end)

    define("WeightedRandomSampler(any weights, int(1..) num_samples, bool replacement=true, generator? generator=nil, *, int? seed=nil)",
        "num_samples indices, drawn with probabilities that are as the weights, which need not add up to 1.", {
            seeded = true,
            len = function(self) return self.num_samples end,
            order = function(self)
                return tide.multinomial(self.weights, self.num_samples, self.replacement, { generator = generator(self) })
            end,
        }, function(weights, wanted, replacement, own, seed)
            protocol.one_source("WeightedRandomSampler", own, seed)
            if not tide.is_tensor(weights) and type(weights) ~= "table" then
                fail("WeightedRandomSampler: weights: expected a list or tensor of numbers, got %s", tide._describe(weights))
            end
            local x = tide.is_tensor(weights) and weights:detach():to(tide.float64):cpu() or tide.tensor(weights, { dtype = tide.float64 })
            if x:dim() ~= 1 or #x == 0 then
                fail("WeightedRandomSampler: weights: expected numbers in a row, got shape %s", tostring(x.shape))
            elseif not (x:ge(0):all():item() and x:isfinite():all():item() and x:sum():item() > 0) then
                fail("WeightedRandomSampler: weights: expected finite numbers from 0, not all of them 0")
            elseif not replacement and wanted > x:gt(0):sum():item() then
                fail("WeightedRandomSampler: %d draws without replacement from %d weights above 0", wanted, x:gt(0):sum():item())
            end
            return { weights = x, num_samples = wanted, replacement = replacement, generator = own, seed = seed, epoch = 1 }
        end)

    define("BatchSampler(any sampler, int(1..) batch_size, bool drop_last=false)",
        "Lists of batch_size indices of a sampler, or of a list; the last may be shorter, unless drop_last is true.", {
            len = function(self)
                local n = protocol.length("BatchSampler", self.sampler)
                return self.drop_last and n // self.batch_size or (n + self.batch_size - 1) // self.batch_size
            end,
            iter = function(self)
                local step, size = samplers.iterate("BatchSampler", self.sampler), self.batch_size
                return function()
                    local batch = {}
                    while step and #batch < size do
                        local index = step()
                        batch[#batch + 1] = index
                        step = index ~= nil and step or nil
                    end
                    return (#batch == size or #batch > 0 and not self.drop_last) and batch or nil
                end
            end,
        }, function(sampler, size, drop_last)
            samplers.check("BatchSampler", sampler)
            return { sampler = sampler, batch_size = size, drop_last = drop_last }
        end)
    define("MicroBatchSampler(any sampler, int(1..) batch_size, *, int(1..) micro_batches, int(1..) num_replicas=1, int(0..) rank=0)",
        "What DistributedDataParallel's micro_batches() trains on, as a batch_sampler: of a sampler, or a list, which is the same in all "
            .. "num_replicas processes, every micro_batches lists of batch_size indices are a step; rank (from 0) gets its own of them. What does "
            .. "not fill a step is left out.", {
            len = function(self)
                local n = protocol.length("MicroBatchSampler", self.sampler)
                return n // (self.batch_size * self.micro_batches) * (self.behind - self.first)
            end,
            iter = function(self)
                local next_batch, mine, at = data.BatchSampler(self.sampler, self.batch_size, true):iter(), {}, 0
                return function()
                    at = at + 1
                    if at > #mine then
                        mine, at = {}, 1
                        for k = 1, self.micro_batches do
                            local batch = next_batch()
                            if not batch then
                                return nil
                            end
                            mine[k - self.first] = k > self.first and k <= self.behind and batch or nil
                        end
                    end
                    return mine[at]
                end
            end,
        }, function(sampler, size, micro_batches, replicas, rank)
            samplers.check("MicroBatchSampler", sampler)
            if rank >= replicas then
                fail("MicroBatchSampler: rank: expected 0 to %d, got %d", replicas - 1, rank)
            elseif micro_batches < replicas then
                fail("MicroBatchSampler: micro_batches: expected one for each of %d processes at least, got %d", replicas, micro_batches)
            end
            local first, behind = tide._require "distributed.tree".share(micro_batches, replicas, rank)
            return { sampler = sampler, batch_size = size, micro_batches = micro_batches, first = first, behind = behind }
        end)
    for _, name in ipairs { "BatchSampler", "MicroBatchSampler" } do
        data._classes[name].set_epoch = declare("set_epoch(" .. name .. " self, int epoch)", "Likewise of its sampler.", function(self, epoch)
            local set_epoch = protocol.method(self.sampler, "set_epoch")
            if set_epoch then
                set_epoch(self.sampler, epoch)
            end
        end)
    end

    define("DistributedSampler(any dataset, int(1..)? num_replicas=nil, int(0..)? rank=nil, bool shuffle=true, int seed=0, bool drop_last=false)",
        "The share of one of num_replicas processes (ranks count from 0): every num_replicas-th index of an order that all have. So that shares "
            .. "are equal the first indices come again at the end; drop_last leaves the last out instead. After tide.distributed.init they "
            .. "are this job's number of ranks and rank where nothing is said.", {
            seeded = true,
            len = function(self) return self.share end,
            iter = function(self)
                local n, k = count("DistributedSampler", self.dataset), -1
                local order = self.shuffle and tide.randperm(n, { generator = tide.Generator(protocol.mix(self.seed, self.epoch)) })
                return function()
                    k = k + 1
                    if k < self.share then
                        local at = (self.rank + k * self.num_replicas) % n + 1
                        return order and order[at]:item() or at
                    end
                end
            end,
        }, function(dataset, replicas, rank, shuffle, seed, drop_last)
            local n = count("DistributedSampler", dataset)
            if not (replicas and rank) and not tide.distributed.is_initialized() then
                fail("DistributedSampler: num_replicas and rank are wanted: both, or tide.distributed.init() before")
            end
            replicas, rank = replicas or tide.distributed.size(), rank or tide.distributed.rank()
            if rank >= replicas then
                fail("DistributedSampler: rank: expected 0 to %d, got %d", replicas - 1, rank)
            end
            return { dataset = dataset, num_replicas = replicas, rank = rank, shuffle = shuffle, seed = seed, epoch = 1,
                share = drop_last and n // replicas or (n + replicas - 1) // replicas }
        end)
end

--- check(name, sampler): fails where a value is neither an object with iter() nor a list or tensor.
function samplers.check(name, sampler)
    if not protocol.method(sampler, "iter") and type(sampler) ~= "table" and not tide.is_tensor(sampler) then
        fail("%s: expected a sampler: an object with iter(self), or a list; got %s", name, tide._describe(sampler))
    end
end

--- slices(sampler, size, drop_last): two functions: step() gives the indices of the next batch as a tensor, nil at the end,
--- skip(n) passes over n batches at once; nil of a sampler that does not know its whole pass.
function samplers.slices(sampler, size, drop_last)
    local own = getmetatable(sampler)
    local sequential = own == samplers.Sequential
    local order = not sequential and type(own) == "table" and rawget(own, "_order")
    if not sequential and not order then
        return nil
    end
    local at, all = 0, order and order(sampler)
    local n = all and #all or count("DataLoader", sampler.source)
    return function()
        local first, last = at + 1, math.min(at + size, n)
        at = last
        if last - first + 1 == size or last >= first and not drop_last then
            return all and all:narrow(1, first, last - first + 1) or tide.arange(first, last + 1)
        end
    end, function(batches) at = math.min(at + batches * size, n) end
end

--- iterate(name, sampler): a function that gives what the sampler gives.
function samplers.iterate(name, sampler)
    if protocol.method(sampler, "iter") then
        return protocol.iterate(sampler)
    elseif tide.is_tensor(sampler) then
        return protocol.each(protocol.indices(name, sampler))
    end
    local k = 0
    return function()
        k = k + 1
        return sampler[k]
    end
end

return samplers
