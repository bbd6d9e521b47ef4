-- test_data_datasets.lua: tide.data's datasets, samplers and collation: values and lengths that PyTorch gives, and what is refused.
local t = require "harness"
local tide = require "tide"
local data = tide.data

local function numbers(n)
    local list = {}
    for k = 1, n do
        list[k] = k
    end
    return list
end

-- What an object's iter gives, as a list.
local function all(object)
    local list = {}
    for value in object:iter() do
        list[#list + 1] = value
    end
    return list
end

-- All samples by number.
local function samples(dataset)
    local list = {}
    for k = 1, #dataset do
        list[k] = dataset:get(k)
    end
    return list
end

local function sorted(list)
    table.sort(list)
    return list
end

t.test("rows_of_tensors_and_parts_of_datasets", function()
    local x, y = tide.arange(12):view(6, 2), tide.arange(6) + 10
    local set = data.TensorDataset(x, y)
    t.eq(#set, 6)
    t.eq(set:len(), 6)
    for _, k in ipairs { 1, 6, -1, -6 } do
        local a, b = set:get(k)
        t.is_true(tide.equal(a, x[k]))
        t.eq(b:item(), y[k]:item())
    end
    t.eq(samples(data.Subset(numbers(10), { 3, 3, -1 })), { 3, 3, 10 })
    t.eq(samples(data.Subset(data.Subset(numbers(10), { 5, 6, 7 }), tide.tensor { 3, 1 })), { 7, 5 })
    t.eq(#data.Subset({ 1 }, {}), 0)
    local joined = data.ConcatDataset { { "a", "b" }, {}, { "c" }, data.Subset({ "x", "d" }, { 2 }) }
    t.eq(samples(joined), { "a", "b", "c", "d" })
    t.eq(joined:get(-1), "d")
    t.eq(data.StackDataset { { 1, 2 }, { "a", "b" } }:get(2), { 2, "b" })
    t.eq(data.StackDataset { n = { 1, 2 }, s = { "a", "b" } }:get(1), { n = 1, s = "a" })
    t.eq(samples(data.map({ 1, 2, 3 }, function(v) return v * v end)), { 1, 4, 9 })
    local sum, product = data.map(data.TensorDataset(tide.tensor { 3, 4 }, tide.tensor { 5, 6 }), function(a, b)
        return (a + b):item(), (a * b):item()
    end):get(2)
    t.eq({ sum, product }, { 10, 24 })
end)

t.test("samples_in_a_row", function()
    local function count_to(n)
        return { iter = function()
            local k = 0
            return function()
                k = k + 1
                if k <= n then
                    return k
                end
            end
        end }
    end
    t.eq(all(data.ChainDataset { count_to(2), count_to(0), { "x" }, count_to(1) }), { 1, 2, "x", 1 })
    t.eq(all(data.filter(count_to(7), function(k) return k % 3 == 0 end)), { 3, 6 })
    t.eq(all(data.filter({ 5, 6, 7 }, function(k) return k ~= 6 end)), { 5, 7 })
    t.eq(all(data.map(count_to(3), function(k) return k * 10 end)), { 10, 20, 30 })
    local pairs_of = { iter = function() return ipairs { "a", "b" } end } -- Lua's own iterators have a state
    local got = {}
    for k, v in data.filter(pairs_of, function(_, v) return v == "b" end):iter() do
        got[#got + 1] = k .. v
    end
    t.eq(got, { "2b" })
end)

t.test("random_split_makes_the_parts_that_pytorch_makes", function()
    for _, row in ipairs { -- n, lengths, sizes
        { 10, { 0.5, 0.5 }, { 5, 5 } }, { 11, { 0.5, 0.5 }, { 6, 5 } }, { 10, { 0.3, 0.3, 0.4 }, { 3, 3, 4 } },
        { 7, { 0.25, 0.25, 0.25, 0.25 }, { 2, 2, 2, 1 } }, { 29, { 1 / 3, 1 / 3, 1 / 3 }, { 10, 10, 9 } }, { 5, { 0.9, 0.1 }, { 5, 0 } },
        { 1, { 0.5, 0.5 }, { 1, 0 } }, { 100, { 0.8, 0.1, 0.1 }, { 80, 10, 10 } }, { 10, { 5, 5 }, { 5, 5 } }, { 10, { 1.0 }, { 10 } },
        { 10, { 0, 10 }, { 0, 10 } }, { 1, { 1 }, { 1 } },
    } do
        local sizes, together = {}, {}
        for k, part in ipairs(data.random_split(numbers(row[1]), row[2], { seed = 1 })) do
            sizes[k] = #part
            for _, sample in ipairs(samples(part)) do
                together[#together + 1] = sample
            end
        end
        t.eq(sizes, row[3])
        t.eq(sorted(together), numbers(row[1]))
    end
    local function first(seed) return samples(data.random_split(numbers(100), { 50, 50 }, { seed = seed })[1]) end
    t.eq(first(1), first(1))
    t.is_true(tostring(tide.tensor(first(1))) ~= tostring(tide.tensor(first(2))))
end)

t.test("samplers_give_what_pytorch_s_give", function()
    t.eq(all(data.SequentialSampler(3)), { 1, 2, 3 })
    t.eq(all(data.SequentialSampler { "a", "b" }), { 1, 2 })
    t.eq(sorted(all(data.RandomSampler(5000))), numbers(5000))
    local many = data.RandomSampler(10, { num_samples = 25 })
    local drawn, times = all(many), {}
    t.eq(#many, 25)
    t.eq(#drawn, 25)
    t.eq(sorted { table.unpack(drawn, 1, 10) }, numbers(10))
    t.eq(sorted { table.unpack(drawn, 11, 20) }, numbers(10))
    for _, k in ipairs(all(data.RandomSampler(4, { replacement = true, num_samples = 4000, seed = 2 }))) do
        times[k] = (times[k] or 0) + 1
    end
    for k = 1, 4 do
        t.is_true(times[k] > 850 and times[k] < 1150)
    end
    t.eq(sorted(all(data.SubsetRandomSampler { 4, 9, 2 })), { 2, 4, 9 })
    times = {}
    for _, k in ipairs(all(data.WeightedRandomSampler({ 1, 0, 3 }, 4000, { seed = 3 }))) do
        times[k] = (times[k] or 0) + 1
    end
    t.is_true(times[2] == nil and times[1] > 850 and times[1] < 1150)
    t.eq(sorted(all(data.WeightedRandomSampler({ 1, 2, 3 }, 3, { replacement = false }))), { 1, 2, 3 })
    t.eq(all(data.BatchSampler({ 7, 8, 9 }, 2)), { { 7, 8 }, { 9 } })
    t.eq(all(data.BatchSampler(data.SequentialSampler(5), 2, { drop_last = true })), { { 1, 2 }, { 3, 4 } })
end)

t.test("a_seed_and_an_epoch_decide_an_order", function()
    for _, make in ipairs { function(seed) return data.RandomSampler(50, { seed = seed }) end,
        function(seed) return data.SubsetRandomSampler(numbers(50), { seed = seed }) end,
        function(seed) return data.WeightedRandomSampler(tide.ones(50), 50, { seed = seed }) end } do
        local a, b = make(4), make(4)
        local first, second = all(a), all(a)
        t.eq(all(b), first)
        t.eq(all(b), second)
        b:set_epoch(1)
        t.eq(all(b), first)
        t.is_true(table.concat(first, " ") ~= table.concat(second, " "))
        tide.manual_seed(8)
        local free = all(make(nil))
        tide.manual_seed(8)
        t.eq(all(make(nil)), free)
    end
end)

-- DistributedSampler without shuffle: {n, replicas, drop_last, shares...}, counted from 0 as PyTorch 2 prints them.
t.test("shares_of_processes_are_pytorch_s", function()
    for _, row in ipairs {
        { 1, 2, false, { 0 }, { 0 } }, { 1, 3, true, {}, {}, {} }, { 2, 3, false, { 0 }, { 1 }, { 0 } }, { 2, 2, true, { 0 }, { 1 } },
        { 2, 4, false, { 0 }, { 1 }, { 0 }, { 1 } }, { 5, 1, false, { 0, 1, 2, 3, 4 } }, { 5, 2, false, { 0, 2, 4 }, { 1, 3, 0 } },
        { 5, 2, true, { 0, 2 }, { 1, 3 } }, { 5, 4, false, { 0, 4 }, { 1, 0 }, { 2, 1 }, { 3, 2 } }, { 8, 3, true, { 0, 3 }, { 1, 4 }, { 2, 5 } },
        { 10, 4, false, { 0, 4, 8 }, { 1, 5, 9 }, { 2, 6, 0 }, { 3, 7, 1 } }, { 11, 3, false, { 0, 3, 6, 9 }, { 1, 4, 7, 10 }, { 2, 5, 8, 0 } },
        { 11, 4, true, { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } }, { 1, 4, false, { 0 }, { 0 }, { 0 }, { 0 } },
    } do
        for rank = 0, row[2] - 1 do
            local sampler = data.DistributedSampler(numbers(row[1]), { num_replicas = row[2], rank = rank, shuffle = false, drop_last = row[3] })
            local got = all(sampler)
            t.eq(#sampler, #got)
            for k, index in ipairs(got) do
                got[k] = index - 1
            end
            t.eq(got, row[4 + rank])
        end
    end
    local function shares(epoch)
        local together = {}
        for rank = 0, 2 do
            local sampler = data.DistributedSampler(numbers(12), { num_replicas = 3, rank = rank, seed = 5 })
            sampler:set_epoch(epoch)
            for _, k in ipairs(all(sampler)) do
                together[#together + 1] = k
            end
        end
        return together
    end
    t.is_true(table.concat(shares(1), " ") ~= table.concat(shares(2), " "))
    t.eq(sorted(shares(2)), numbers(12))
end)

t.test("positions_are_pytorch_s", function()
    local set = data.TensorDataset(tide.arange(1, 11))
    t.eq(all(data.DistributedSampler(set, 2, 1, false, 0, true)), { 2, 4, 6, 8, 10 })
    t.eq(#all(data.RandomSampler(set, true, 25)), 25)
    t.eq(sorted(all(data.WeightedRandomSampler({ 1, 1, 1 }, 3, false))), { 1, 2, 3 })
    local loader = data.DataLoader(set, 4, false, nil, nil, 0, nil, false, true, { seed = 1 })
    t.eq(#loader, 2)
    t.eq(#data.DataLoader(set, 3, true), 4)
    t.error_has(function() data.DataLoader(set, 4, 5) end, "argument 3 (shuffle)")
    t.error_has(function() data.DistributedSampler(set, 2) end, "num_replicas and rank are wanted")
    t.error_has(function() data.RandomSampler(set, true, 25, 4) end, "argument 4 (generator): expected a tide.Generator")
end)

t.test("micro_batches_of_processes_are_those_of_one", function()
    local function batches(replicas, rank)
        local order = data.RandomSampler(47, { seed = 2 })
        local sampler = data.MicroBatchSampler(order, 3, { micro_batches = 5, num_replicas = replicas, rank = rank })
        sampler:set_epoch(4)
        local list = {}
        for batch in sampler:iter() do
            list[#list + 1] = table.concat(batch, " ")
        end
        t.eq(#sampler, #list)
        return list
    end
    local whole = batches(1, 0)
    t.eq(#whole, 15)
    for replicas = 2, 5 do
        local together = {}
        for rank = 0, replicas - 1 do
            local mine = batches(replicas, rank)
            local own = #mine // 3
            for step = 1, 3 do
                local first = rank * 5 // replicas
                table.move(mine, (step - 1) * own + 1, step * own, (step - 1) * 5 + first + 1, together)
            end
        end
        t.eq(together, whole)
    end
end)

t.test("collation_follows_pytorch", function()
    local collate = data.default_collate
    for _, row in ipairs { -- samples, dtype, values
        { { 1, 2 }, "int64", { 1, 2 } }, { { 1.0, 2.5 }, "float64", { 1, 2.5 } }, { { 1, 2.5 }, "float64", { 1, 2.5 } },
        { { true, false }, "bool", { true, false } },
    } do
        local batch = collate(row[1])
        t.eq(batch.dtype, tide[row[2]])
        t.eq(batch:tolist(), row[3])
    end
    t.eq(collate { "a", "b" }, { "a", "b" })
    local named = collate { { a = 1, b = "x" }, { a = 2, b = "y" } }
    t.eq(named.a:tolist(), { 1, 2 })
    t.eq(named.b, { "x", "y" })
    local nested = collate { { 1, { 2, 3 } }, { 4, { 5, 6 } } }
    t.eq(nested[1]:tolist(), { 1, 4 })
    t.eq(nested[2][2]:tolist(), { 3, 6 })
    local stacked = collate { tide.ones(2, 3), tide.zeros(2, 3) }
    t.eq(tostring(stacked.shape), "(2, 2, 3)")
    t.eq(collate { tide.ones(2), tide.ones(2, { dtype = tide.int64 }) }.dtype, tide.float32)
end)

t.test("what_differs_in_a_batch_is_named", function()
    local collate = data.default_collate
    for _, row in ipairs {
        { { tide.ones(2, 4), tide.ones(2, 4), tide.ones(2, 3) }, "sample 3 of the batch has shape (2, 3), the first (2, 4)" },
        { { { x = tide.ones(1) }, { x = tide.ones(2) } }, "field 'x' of sample 2 of the batch has shape (2), the first (1)" },
        { { { a = 1 }, { b = 1 } }, "field 'b', which the first has not" },
        { { { a = 1, b = 2 }, { a = 1 } }, "sample 2 of the batch has no field 'b'" },
        { { { 1, 2 }, { 1 } }, "sample 2 of the batch has 1 values, the first 2" },
        { { 1, "a" }, "sample 2 of the batch is" }, { { true, 2 }, "sample 2 of the batch is" }, { { tide.ones(1), 2 }, "sample 2 of the batch is" },
        { { print, print }, "sample 1 of the batch is" }, { {}, "no samples" },
    } do
        t.error_has(function() collate(row[1]) end, row[2])
    end
end)

t.test("bad_datasets_and_samplers_are_refused_in_words", function()
    local iterable, set = { iter = function() end }, { 1, 2, 3 }
    for _, row in ipairs {
        { function() data.TensorDataset(tide.ones(2), tide.ones(3)) end, "tensor 2 has 3 rows, the first 2" },
        { function() data.TensorDataset(tide.tensor(1)) end, "no dims" }, { function() data.TensorDataset(tide.ones(2), 3) end, "argument 2" },
        { function() data.TensorDataset(tide.ones(2)):get(3) end, "counted from 1" }, { function() data.TensorDataset(tide.ones(2)):get(0) end, "index 0" },
        { function() data.Subset(set, { 0 }) end, "index 0" }, { function() data.Subset(set, { 4 }) end, "3 samples" },
        { function() data.Subset(set, { 1.5 }) end, "integers" }, { function() data.Subset(set, "x") end, "indices" },
        { function() data.Subset(iterable, { 1 }) end, "no length" }, { function() data.ConcatDataset {} end, "at least one" },
        { function() data.ConcatDataset { iterable } end, "ChainDataset" }, { function() data.ConcatDataset { 3 } end, "dataset" },
        { function() data.StackDataset { { 1 }, { 1, 2 } } end, "samples" }, { function() data.map(3, print) end, "dataset" },
        { function() data.Subset({ get = function() end }, { 1 }) end, "no length" }, { function() data.random_split(set, { 0.6, 0.3 }) end, "add up to" },
        { function() data.random_split(set, { 1, 1 }) end, "the lengths add up to 2, the dataset has 3" }, { function() data.random_split(set, { -1, 4 }) end, "negative" },
        { function() data.RandomSampler({}) end, "no samples" }, { function() data.RandomSampler(3, { num_samples = 0 }) end, "num_samples" },
        { function() data.WeightedRandomSampler({ 1, 2 }, 5, { replacement = false }) end, "without replacement" },
        { function() data.WeightedRandomSampler({ 1, -2 }, 5) end, "from 0" }, { function() data.WeightedRandomSampler({ 0, 0 }, 5) end, "not all" },
        { function() data.WeightedRandomSampler({}, 5) end, "in a row" }, { function() data.WeightedRandomSampler({ { 1, 2 } }, 1) end, "in a row" },
        { function() data.BatchSampler({ 1 }, 0) end, "batch_size" }, { function() data.BatchSampler(3, 1) end, "sampler" },
        { function() data.DistributedSampler(set, { num_replicas = 2, rank = 2 }) end, "rank" },
        { function() data.MicroBatchSampler(set, 1, { micro_batches = 2, num_replicas = 2, rank = 2 }) end, "rank" },
        { function() data.MicroBatchSampler(set, 1, { micro_batches = 2, num_replicas = 3 }) end, "one for each of 3 processes" },
        { function() data.SequentialSampler(-1) end, "dataset" }, { function() data.SubsetRandomSampler { "a" } end, "" },
    } do
        t.error_has(row[1], row[2])
    end
end)
