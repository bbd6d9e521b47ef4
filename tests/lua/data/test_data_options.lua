-- test_data_options.lua: options of the DataLoader: samples without batches, rows that a dataset writes itself, memory that is
-- used again, what workers know of themselves, datasets that share themselves out, waiting with an end.
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

local function count_to(n, more)
    local set = { iter = function()
        local k = 0
        return function()
            k = k + 1
            if k <= n then
                return k
            end
        end
    end }
    for key, value in pairs(more or {}) do
        set[key] = value
    end
    return set
end

local function all(loader)
    local list = {}
    for x in loader do
        list[#list + 1] = tide.is_tensor(x) and x:tolist() or x
    end
    return list
end

t.test("without_batches_samples_come_as_they_are", function()
    for workers = 0, 2 do
        local samples <close> = data.DataLoader(data.map(numbers(5), function(k) return { k, name = "n" .. k }, k end),
            { batch_size = false, num_workers = workers })
        local got = {}
        for sample, k in samples do
            t.eq(sample.name, "n" .. k)
            got[#got + 1] = sample[1]
        end
        t.eq(got, numbers(5))
        t.eq(#samples, 5)
        local shuffled <close> = data.DataLoader(numbers(6), { batch_size = false, shuffle = true, seed = 3, num_workers = workers })
        local batched <close> = data.DataLoader(numbers(6), { shuffle = true, seed = 3, num_workers = workers })
        local flat = {}
        for x in batched do
            flat[#flat + 1] = x:item()
        end
        t.eq(all(shuffled), flat, "the same order as in batches")
        shuffled:load_state { seed = 3, epoch = 1, batch = 4 }
        t.eq(all(shuffled), { flat[5], flat[6] })
        local collated <close> = data.DataLoader(numbers(3), { batch_size = false, num_workers = workers, collate = function(k) return -k end })
        t.eq(all(collated), { -1, -2, -3 })
        local row <close> = data.DataLoader(count_to(4), { batch_size = false, num_workers = workers })
        t.eq(all(row), numbers(4))
        local sampled <close> = data.DataLoader({ get = function(_, key) return key .. "!" end },
            { batch_size = false, num_workers = workers, sampler = { "a", "c" } })
        t.eq(all(sampled), { "a!", "c!" })
        local keys <close> = data.DataLoader({ get = function(_, key) return { key = key, draw = tide.rand(1):item() } end },
            { batch_size = 2, num_workers = workers, sampler = { "a", "c" }, seed = 5 })
        for x in keys do
            t.eq(x.key, { "a", "c" })
            t.is_true(x.draw[1]:item() ~= x.draw[2]:item())
        end
    end
    t.eq(tostring(data.DataLoader(numbers(3), { batch_size = false })), "DataLoader(3 batches, batch_size = false)")
end)

t.test("options_exclude_each_other_as_pytorch_s_do", function()
    for _, row in ipairs {
        { { batch_size = false, drop_last = true }, "drop_last does not go with it" }, { { prefetch = 2 }, "prefetch is about workers" },
        { { persistent = true }, "persistent is about workers" }, { { batch_size = "x" }, "batch_size: expected an integer from 1" },
        { { batch_size = true }, "batch_size" }, { { batch_size = 1.5 }, "batch_size" },
        { { batch_size = false, batch_sampler = { { 1 } } }, "give it alone" },
    } do
        t.error_has(function() data.DataLoader(numbers(4), row[1]) end, row[2])
    end
    t.eq(#data.DataLoader(numbers(4), { persistent = false, pin_memory = true }), 4)
end)

-- Rows of three numbers, by get or by get_into.
local function written(n, calls)
    return { len = function() return n end, get = function(_, i)
        calls[1]:add_(1)
        return tide.ones(3) * i + tide.rand(3), i
    end, get_into = function(_, i, row)
        calls[2]:add_(1)
        row:copy_(tide.ones(3) * i + tide.rand(3))
        return i
    end }
end

t.test("a_dataset_writes_rows_of_the_batch_itself", function()
    local wanted
    for workers = 0, 2 do
        local calls = tide.zeros(2)
        local plain = written(20, tide.zeros(2))
        plain.get_into = nil
        wanted = wanted or { all(data.DataLoader(plain, { batch_size = 4, shuffle = true, seed = 1 })) }
        local loader <close> = data.DataLoader(written(20, calls), { batch_size = 4, shuffle = true, seed = 1, num_workers = workers })
        t.eq({ all(loader) }, wanted, "the same bits as by get")
        t.eq(calls[1]:item() + calls[2]:item(), 20)
        t.is_true(calls[2]:item() >= 20 - 4 * math.max(workers, 1), "but for the first batch of each state")
        loader:set_epoch(1)
        for _, label in loader do
            t.eq(label.dtype, tide.int64)
        end
        local subset <close> = data.DataLoader(data.Subset(written(20, calls), { 20, 3, 7 }), { batch_size = 1, num_workers = workers })
        local firsts = {}
        for x, label in subset do
            firsts[#firsts + 1] = label:item()
            t.eq(math.floor(x[1][1]:item()), label:item())
        end
        t.eq(firsts, { 20, 3, 7 })
    end
end)

t.test("memory_of_batches_that_were_dropped_is_used_again", function()
    local loader <close> = data.DataLoader(data.map(numbers(120), function(k) return tide.full({ 1000 }, k) end),
        { batch_size = 4, num_workers = 1 })
    local seen, n, held, texts = {}, 0, {}, {}
    for x in loader do
        if not seen[x:data_ptr()] then
            n, seen[x:data_ptr()] = n + 1, true
        end
        held[#held + 1], texts[#texts + 1] = x, x[{ {}, 1 }]:tolist()
        if #held > 3 then
            table.remove(held, 1)
        end
        if #texts % 5 == 0 then
            collectgarbage()
        end
    end
    t.eq(#texts, 30)
    for k, row in ipairs(texts) do
        t.eq(row, { 4 * k - 3, 4 * k - 2, 4 * k - 1, 4 * k })
    end
    t.is_true(n <= 16, ("30 batches in %d buffers"):format(n))
    local kept = {} -- what the script holds is never written again
    for x in loader do
        kept[#kept + 1] = x
    end
    for k, x in ipairs(kept) do
        t.eq(x[{ {}, 1000 }]:tolist(), texts[k])
    end
end)

t.test("views_of_a_batch_keep_its_memory", function()
    local loader <close> = data.DataLoader(data.map(numbers(60), function(k) return tide.full({ 500 }, k) end),
        { batch_size = 2, num_workers = 1 })
    local rows = {}
    for x in loader do
        rows[#rows + 1] = x[2]
        collectgarbage()
    end
    for k, row in ipairs(rows) do
        t.eq({ row:min():item(), row:max():item() }, { 2 * k, 2 * k })
    end
end)

t.test("a_worker_knows_which_it_is", function()
    t.eq(data.get_worker_info(), nil)
    local set = data.map(numbers(20), function(k)
        local info = tide.data.get_worker_info()
        tide.sleep(0.002)
        return { info.id, info.num_workers, info.seed, info.dataset ~= nil and k or 0 }
    end)
    local loader <close> = data.DataLoader(set, { num_workers = 2, seed = 1 })
    local seeds = {}
    for x in loader do
        local id = x[1]:item()
        t.is_true(id == 1 or id == 2)
        t.eq(x[2]:item(), 2)
        seeds[id] = seeds[id] or x[3]:item()
        t.eq(seeds[id], x[3]:item())
    end
    t.is_true(seeds[1] ~= seeds[2])
end)

t.test("an_iterable_dataset_may_share_itself_out", function()
    -- the numbers to 23, of which each worker counts its own
    local function shared(n)
        return { sharded = true, iter = function()
            local info = tide.data.get_worker_info() or { id = 1, num_workers = 1 }
            local k = info.id - info.num_workers
            return function()
                k = k + info.num_workers
                if k <= n then
                    return k
                end
            end
        end }
    end
    for _, n in ipairs { 0, 1, 5, 23 } do
        for workers = 0, 3 do
            local loader <close> = data.DataLoader(shared(n), { batch_size = 2, num_workers = workers })
            for _ = 1, 2 do
                local seen = {}
                for x in loader do
                    for _, k in ipairs(x:tolist()) do
                        seen[#seen + 1] = k
                    end
                end
                table.sort(seen)
                t.eq(seen, numbers(n), ("%d samples, %d workers"):format(n, workers))
            end
        end
    end
    local loader <close> = data.DataLoader(shared(8), { batch_size = 2, num_workers = 2 })
    t.eq(all(loader), { { 1, 3 }, { 2, 4 }, { 5, 7 }, { 6, 8 } }, "workers in turns")
    for _ in loader do
        break
    end
    local other <close> = data.DataLoader(shared(8), { batch_size = 2, num_workers = 2 })
    other:load_state(loader:state())
    t.eq(all(other), { { 2, 4 }, { 5, 7 }, { 6, 8 } })
end)

t.test("workers_that_are_not_persistent_begin_anew_each_epoch", function()
    local times = tide.zeros(1)
    local list = { 1, 2, 3 }
    for _, row in ipairs { { false, 2, { -1, 2, 3 } }, { true, 1, { 1, 2, 3 } } } do
        times:zero_()
        list[1] = 1
        local loader <close> = data.DataLoader(list, { num_workers = 1, persistent = row[1], worker_init = function() times:add_(1) end })
        all(loader)
        list[1] = -1
        local second = {}
        for x in loader do
            second[#second + 1] = x:item()
        end
        t.eq(second, row[3])
        t.eq(times:item(), row[2])
    end
end)

t.test("rows_are_taken_from_the_tensor_by_the_batch", function()
    local x, y = tide.arange(200):view(100, 2), tide.arange(100)
    local set = data.TensorDataset(x, y)
    for workers = 0, 2, 2 do
        for _, options in ipairs { {}, { shuffle = true }, { sampler = data.SubsetRandomSampler { 5, 9, 77 } }, { drop_last = true },
            { batch_sampler = data.BatchSampler(data.WeightedRandomSampler(y, 30), 4, true) } } do
            options.batch_size, options.num_workers, options.seed = not options.batch_sampler and 7 or nil, workers, 4
            local loader <close> = data.DataLoader(set, options)
            local n = 0
            for a, b in loader do
                t.is_true(tide.equal(a[{ {}, 1 }], b * 2))
                a:fill_(-1) -- a batch is a copy
                n = n + 1
            end
            t.eq(n, #loader)
        end
    end
    t.eq(x:sum():item(), 19900)
    local wide <close> = data.DataLoader(tide.zeros(8, 1 << 17), { batch_size = 4, num_workers = 1 }) -- by workers: more than is gathered here
    t.eq(#all(data.DataLoader(data.Subset(set, { -1, 1 }), { batch_size = 2 }))[1], 2)
    for rows in wide do
        t.eq(tostring(rows.shape), "(4, 131072)")
    end
end)

t.test("views_zip_batch_and_shuffle_what_they_look_at", function()
    local function flat(dataset, workers, options)
        local own, list = { batch_size = false, num_workers = workers, seed = 1 }, {}
        for key, value in pairs(options or {}) do
            own[key] = value
        end
        local loader <close> = data.DataLoader(dataset, own)
        for a, b in loader do
            list[#list + 1] = { tide.is_tensor(a) and a:tolist() or a, tide.is_tensor(b) and b:tolist() or b }
        end
        return list
    end
    for workers = 0, 2 do
        t.eq(flat(data.zip(numbers(3), { "a", "b", "c", "d" }), workers), { { 1, "a" }, { 2, "b" }, { 3, "c" } })
        t.eq(flat(data.zip(count_to(3), { "a", "b" }), workers), { { 1, "a" }, { 2, "b" } })
        t.eq(flat(data.batch(data.zip(numbers(5), numbers(5)), 2), workers), { { { 1, 2 }, { 1, 2 } }, { { 3, 4 }, { 3, 4 } }, { { 5 }, { 5 } } })
        t.eq(#flat(data.batch(numbers(5), 2, true), workers), 2)
        t.eq(flat(data.batch(count_to(3), 2), workers), { { { 1, 2 } }, { { 3 } } })
        t.eq(flat(data.batch(count_to(3), 2, { drop_last = true }), workers), { { { 1, 2 } } })
        local order, row = flat(data.shuffle(numbers(20), { seed = 3 }), workers), flat(data.shuffle(count_to(20), { buffer = 8 }), workers)
        t.eq(order, flat(data.shuffle(numbers(20), { seed = 3 }), 0))
        t.eq(row, flat(data.shuffle(count_to(20), { buffer = 8 }), 0), "whatever the number of workers")
        for _, list in ipairs { order, row } do
            local sorted, moved = {}, 0
            for k, sample in ipairs(list) do
                sorted[k], moved = sample[1], moved + (sample[1] ~= k and 1 or 0)
            end
            t.is_true(moved > 5)
            table.sort(sorted)
            t.eq(sorted, numbers(20))
        end
    end
    t.is_true(flat(data.shuffle(count_to(20)), 0)[1][1] <= 20)
    t.error_has(function() data.shuffle(count_to(3), { seed = 1 }) end, "seed does not go with it")
    t.error_has(function() data.zip(3) end, "expected a dataset")
    t.eq({ #data.zip(numbers(3), numbers(2)), #data.batch(numbers(5), 2), tostring(data.batch(numbers(5), 2)) }, { 2, 3, "Batched(3)" })
    t.eq(data.zip(numbers(3), numbers(2)):get(-1), 2)
end)

t.test("options_go_by_pytorch_s_names_too", function()
    local loader <close> = data.DataLoader(numbers(4), { batch_size = 2, collate_fn = function(samples) return #samples end, num_workers = 1,
        worker_init_fn = function() end, prefetch_factor = 1, persistent_workers = false })
    t.eq(all(loader), { 2, 2 })
    t.error_has(function() data.DataLoader(numbers(4), { batch_size = 2, collates = 1 }) end, "no option 'collates': did you mean 'collate'?")
    t.error_has(function() data.DataLoader(numbers(4), { multiprocessing_context = "spawn" }) end, "no option 'multiprocessing_context': PyTorch's")
end)

t.test("a_generator_says_the_order_and_moves_on_by_the_draw", function()
    local function order(make)
        local own = tide.Generator(5)
        local first, again, later = make(own), make(tide.Generator(5)), make(own)
        t.eq(again, first)
        t.ne(later, first)
        return first
    end
    order(function(own)
        local a, b = table.unpack(data.random_split(numbers(20), { 15, 5 }, { generator = own }))
        local got = {}
        for _, part in ipairs { a, b } do
            for k = 1, #part do
                got[#got + 1] = part:get(k)
            end
        end
        return got
    end)
    t.eq(data.random_split(numbers(9), { 9 }, tide.Generator(2))[1]:get(1), data.random_split(numbers(9), { 9 }, { seed = 2 })[1]:get(1))
    local function drawn(sampler)
        local got = {}
        for k in sampler do
            got[#got + 1] = k
        end
        return got
    end
    order(function(own) return drawn(data.RandomSampler(20, { generator = own })) end)
    order(function(own) return drawn(data.SubsetRandomSampler(numbers(20), own)) end)
    order(function(own) return drawn(data.WeightedRandomSampler({ 1, 2, 3, 4 }, 20, true, own)) end)
    for workers = 0, 2, 2 do
        order(function(own)
            local loader <close> = data.DataLoader(numbers(20), { batch_size = 3, shuffle = true, generator = own, num_workers = workers })
            return all(loader)
        end)
    end
    local before = tide.get_rng_state()
    data.DataLoader(numbers(4), { shuffle = true, generator = tide.Generator(1) })
    t.is_true(tide.equal(before, tide.get_rng_state()))
    for _, make in ipairs { data.DataLoader, data.RandomSampler, data.SubsetRandomSampler } do
        t.error_has(function() make(numbers(4), { generator = tide.Generator(1), seed = 1 }) end, "generator and seed both say")
    end
end)

t.test("samplers_and_numbered_batches_go_through_for_loops", function()
    local sampler = data.BatchSampler(data.SequentialSampler(5), 2)
    for _ = 1, 2 do
        local got = {}
        for batch in sampler do
            got[#got + 1] = batch
        end
        t.eq(got, { { 1, 2 }, { 3, 4 }, { 5 } })
    end
    t.error_has(function()
        for _ in sampler do
            for _ in sampler do
            end
        end
    end, "another loop over this sampler has begun since")
    local loader = data.DataLoader(data.zip(numbers(5), numbers(5)), { batch_size = 2 })
    local places, rows = {}, {}
    for k, x, y in loader:enumerate() do
        t.is_true(tide.equal(x, y))
        places[k], rows[k] = k, x:tolist()
    end
    t.eq(places, { 1, 2, 3 })
    t.eq(rows, { { 1, 2 }, { 3, 4 }, { 5 } })
    local first
    for k in loader:enumerate(0) do
        first = k
        break
    end
    t.eq(first, 0)
    t.error_has(function() return ipairs(loader)(loader, 0) end, "loader:enumerate()")
end)

t.test("a_table_of_other_names_is_no_table_of_options", function()
    t.error_has(function() data.DataLoader(numbers(4), { x = 1 }) end, "batch_size: expected an integer")
    t.error_has(function() data.ImageFolder("nowhere", { transform = function() end, loader = 1 }) end, "no option 'loader'")
end)

t.test("samples_and_batches_are_not_elements_of_what_gives_them", function()
    local set = data.TensorDataset(tide.arange(4))
    t.error_has(function() return set[2] end, "dataset:get(2)")
    t.error_has(function() for _ in ipairs(set) do end end, "dataset:get(1)")
    t.error_has(function() return data.Subset(set, { 1 })[1] end, "dataset:get(1)")
    t.eq(set.nothing, nil)
    local loader = data.DataLoader(set, { batch_size = 2 })
    t.error_has(function() for _ in ipairs(loader) do end end, "for x, y in loader do")
end)

t.test("a_loader_that_is_made_does_not_follow_its_fields_and_says_so", function()
    for name, value in pairs { batch_size = 3, shuffle = true, num_workers = 1, drop_last = true, dataset = numbers(9), collate = print } do
        local loader = data.DataLoader(numbers(4), { batch_size = 2 })
        local before = loader[name]
        loader[name] = value
        t.error_has(function() for _ in loader do end end, ("DataLoader: %s was changed"):format(name))
        t.error_has(function() loader:iter() end, ("DataLoader: %s was changed"):format(name))
        loader[name] = before
        local n = 0
        for _ in loader do
            n = n + 1
        end
        t.eq(n, 2)
    end
end)
