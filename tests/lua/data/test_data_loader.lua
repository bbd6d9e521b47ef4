-- test_data_loader.lua: tide.data.DataLoader: lengths that PyTorch gives, the same batches whatever the number of workers, loops
-- that go on in the middle or end early, errors.
local t = require "harness"
local tide = require "tide"
local data = tide.data

local function fails(fn, ...)
    local ok, message = pcall(fn)
    t.is_true(not ok, "an error was expected")
    for _, text in ipairs { ... } do
        t.is_true(tostring(message):find(text, 1, true), ("%q in %s"):format(text, message))
    end
end

local function numbers(n)
    local list = {}
    for k = 1, n do
        list[k] = k
    end
    return list
end

-- A text of everything in a value, tensors by their bits.
local function digest(value)
    if tide.is_tensor(value) then
        local exact = value:is_floating_point() and value:to(tide.float64) or value
        return ("%s%s%s"):format(value.dtype, value.shape, digest(exact:tolist()))
    elseif type(value) == "table" then
        local keys, parts = {}, {}
        for key in pairs(value) do
            keys[#keys + 1] = key
        end
        table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
        for k, key in ipairs(keys) do
            parts[k] = tostring(key) .. "=" .. digest(value[key])
        end
        return "{" .. table.concat(parts, ",") .. "}"
    end
    return math.type(value) == "float" and ("%a"):format(value) or tostring(value)
end

-- The batches of an epoch, each as a text; at most `most` of them.
local function batches(loader, most)
    local list = {}
    local step, state, control, closing = loader:iter()
    local _ <close> = closing
    for x, y in step, state, control do
        list[#list + 1] = digest { x, y }
        if #list == most then
            break
        end
    end
    return list
end

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

-- Samples of several values, tables and draws of their own.
local function set_of_everything(n)
    local rows = data.TensorDataset(tide.arange(2 * n):view(n, 2):to(tide.float32), tide.arange(n))
    return data.map(rows, function(x, y)
        local noise = tide.randn(2)
        return x + noise * tide.rand(1), { label = y, text = "no " .. y:item(), list = { y:item(), noise[1]:item() > 0 } }
    end)
end

t.test("lengths_are_pytorch_s", function()
    -- n, batch_size, batches, size of the last; then the same with drop_last: values of PyTorch 2
    for _, row in ipairs {
        { 0, 3, 0, 0, 0, 0 }, { 1, 1, 1, 1, 1, 1 }, { 1, 2, 1, 1, 0, 0 }, { 2, 2, 1, 2, 1, 2 }, { 5, 2, 3, 1, 2, 2 }, { 5, 3, 2, 2, 1, 3 },
        { 5, 11, 1, 5, 0, 0 }, { 6, 3, 2, 3, 2, 3 }, { 7, 3, 3, 1, 2, 3 }, { 7, 7, 1, 7, 1, 7 }, { 10, 3, 4, 1, 3, 3 }, { 10, 7, 2, 3, 1, 7 },
        { 10, 1, 10, 1, 10, 1 },
    } do
        for k, drop_last in ipairs { false, true } do
            local loader, n, last = data.DataLoader(numbers(row[1]), { batch_size = row[2], drop_last = drop_last }), 0, 0
            for x in loader do
                n, last = n + 1, #x
            end
            t.eq({ #loader, n, last }, { row[1 + 2 * k], row[1 + 2 * k], row[2 + 2 * k] })
        end
    end
    t.eq(#data.DataLoader(numbers(10), { batch_size = 4, sampler = { 1, 2, 3 } }), 1)
    t.eq(#data.DataLoader(numbers(10), { batch_sampler = { { 1 }, { 2, 3 } } }), 2)
    t.eq(#data.DataLoader(numbers(10), { batch_size = 4, sampler = data.RandomSampler(10, { num_samples = 25 }) }), 7)
end)

t.test("both_ways_of_calling_and_all_kinds_of_datasets", function()
    local x = tide.arange(6):view(3, 2)
    for _, loader in ipairs { data.DataLoader(x, { batch_size = 2 }), data.DataLoader { x, batch_size = 2 }, data.DataLoader { dataset = x, batch_size = 2 } } do
        t.eq(#loader, 2)
        for batch in loader do
            t.is_true(tide.equal(batch, x[{ { 1, 2 } }]))
            break
        end
    end
    t.eq(batches(data.DataLoader(data.TensorDataset(x, x + 1))), batches(data.DataLoader(data.map(data.TensorDataset(x, x + 1),
        function(a, b) return a, b end))), "whole batches of rows are those of single rows")
    t.eq(batches(data.DataLoader(x, { batch_size = 2, shuffle = true, seed = 1 })),
        batches(data.DataLoader(data.map(x, function(row) return row end), { batch_size = 2, shuffle = true, seed = 1 })))
    t.eq(batches(data.DataLoader(data.Subset(x, { 3, 1 }))), batches(data.DataLoader(x:index_select(1, tide.tensor { 3, 1 }))))
    t.eq(#data.DataLoader(setmetatable({ 5, 6, 7 }, { __name = "list" })), 3)
    t.eq(#data.DataLoader {}, 0)
    local object = { get = function(_, i) return "s" .. i end, len = function() return 3 end }
    local got = {}
    for batch in data.DataLoader(object, { batch_size = 2 }) do
        got[#got + 1] = batch
    end
    t.eq(got, { { "s1", "s2" }, { "s3" } })
    got = {}
    for batch in data.DataLoader(numbers(4), { batch_sampler = { { 4, 1 }, tide.tensor { 2 } } }) do
        got[#got + 1] = batch:tolist()
    end
    t.eq(got, { { 4, 1 }, { 2 } })
    for sum, n in data.DataLoader(data.map(numbers(4), function(k) return k, -k end), { batch_size = 4, collate = function(list)
        local sum = 0
        for _, sample in ipairs(list) do
            sum = sum + sample[1] - sample[2]
        end
        return sum, #list
    end }) do
        t.eq({ sum, n }, { 20, 4 })
    end
end)

t.test("batches_go_to_a_device", function()
    local set = data.map(data.TensorDataset(tide.ones(3, 2)), function(x) return x, { y = x, name = "n" } end)
    for workers = 0, 1 do
        local loader <close> = data.DataLoader(set, { batch_size = 3, device = "meta", num_workers = workers })
        for x, more in loader do
            t.eq({ tostring(x.device), tostring(more.y.device), more.name[3] }, { "meta", "meta", "n" })
            t.eq(tostring(x.shape), "(3, 2)")
        end
    end
end)

t.test("the_number_of_workers_changes_no_batch", function()
    local weighted = data.WeightedRandomSampler(tide.arange(23) + 1, 40)
    for name, options in pairs { plain = {}, shuffled = { shuffle = true }, short = { shuffle = true, drop_last = true }, sampled = { sampler = weighted } } do
        local wanted
        for workers = 0, 3 do
            local own = { batch_size = 4, num_workers = workers, seed = 11 }
            for key, value in pairs(options) do
                own[key] = value
            end
            local loader <close> = data.DataLoader(set_of_everything(23), own)
            local epochs = { batches(loader), batches(loader) }
            t.is_true(epochs[1][1] ~= epochs[2][1], "the draws are others in the next epoch")
            wanted = wanted or epochs
            t.eq(epochs, wanted, ("%s, %d workers"):format(name, workers))
            loader:set_epoch(1)
            t.eq(batches(loader), wanted[1])
        end
    end
end)

t.test("batches_as_they_come_are_the_same_batches", function()
    local wanted = batches(data.DataLoader(set_of_everything(30), { batch_size = 4, shuffle = true, seed = 2 }))
    local loader <close> = data.DataLoader(set_of_everything(30), { batch_size = 4, shuffle = true, seed = 2, num_workers = 3, in_order = false })
    local got = batches(loader)
    table.sort(wanted)
    table.sort(got)
    t.eq(got, wanted)
    for _ in loader do
        fails(function() loader:state() end, "in_order")
        break
    end
end)

t.test("iterable_datasets_give_each_element_once", function()
    local function noisy(n)
        return data.map(count_to(n), function(k) return { k, tide.rand(1) } end)
    end
    for _, drop_last in ipairs { false, true } do
        local wanted
        for workers = 0, 3 do
            local loader <close> = data.DataLoader(noisy(17), { batch_size = 3, num_workers = workers, seed = 1, drop_last = drop_last })
            for _ = 1, 2 do
                local seen = {}
                for batch in loader do
                    for _, k in ipairs(batch[1]:tolist()) do
                        seen[#seen + 1] = k
                    end
                end
                t.eq(seen, numbers(drop_last and 15 or 17))
            end
            loader:set_epoch(1)
            local got = batches(loader)
            wanted = wanted or got
            t.eq(got, wanted)
            loader:load_state { seed = 1, epoch = 1, batch = 2 }
            t.eq(batches(loader), { table.unpack(wanted, 3) })
        end
    end
    fails(function() return #data.DataLoader(count_to(3)) end, "no length")
end)

t.test("the_script_s_own_draws_go_on_as_without_a_loader", function()
    for workers = 0, 2, 2 do
        local loader <close> = data.DataLoader(set_of_everything(9), { batch_size = 2, shuffle = true, seed = 3, num_workers = workers })
        tide.manual_seed(5)
        local first, second = tide.rand(1):item(), tide.rand(1):item()
        tide.manual_seed(5)
        local got = {}
        for _ in loader do
            got[#got + 1] = tide.rand(1):item()
        end
        t.eq({ got[1], got[2] }, { first, second })
        t.eq(tide.initial_seed(), 5)
    end
    tide.manual_seed(4)
    local seed = data.DataLoader(numbers(3)).seed
    t.is_true(data.DataLoader(numbers(3)).seed ~= seed)
    tide.manual_seed(4)
    t.eq(data.DataLoader(numbers(3)).seed, seed, "a loader without a seed follows manual_seed")
end)

t.test("a_state_goes_on_in_the_middle_with_any_number_of_workers", function()
    local function make(workers)
        return data.DataLoader(set_of_everything(20), { batch_size = 3, shuffle = true, seed = 9, num_workers = workers })
    end
    local whole = make(0)
    local first, second = batches(whole), batches(whole)
    for _, pair in ipairs { { 0, 0 }, { 0, 2 }, { 2, 0 }, { 3, 1 } } do
        for at = 0, #second do
            local begun <close> = make(pair[1])
            batches(begun)
            if at > 0 then
                t.eq(batches(begun, at), { table.unpack(second, 1, at) })
            end
            local state = begun:state()
            t.is_true(state.batch == at and state.epoch == 2 or at == #second and state.epoch == 2)
            local other <close> = make(pair[2])
            other:load_state(state)
            t.eq(other:state(), state)
            t.eq(batches(other), { table.unpack(second, at + 1) })
        end
    end
    whole:load_state { seed = 9, epoch = 1, batch = 0 }
    t.eq(batches(whole), first)
    t.eq(whole:state(), { seed = 9, epoch = 2, batch = 0 })
    fails(function() whole:load_state { seed = 9, epoch = 1 } end, "'batch'")
    fails(function() whole:load_state { seed = 9, epoch = 1, batch = -1 } end, "'batch'")
end)

t.test("a_loop_that_breaks_and_loops_within_one_another", function()
    for workers = 0, 2, 2 do
        local loader <close> = data.DataLoader(numbers(10), { batch_size = 2, num_workers = workers })
        for x in loader do
            t.eq(x:tolist(), { 1, 2 })
            break
        end
        local n = 0
        for x in loader do
            n = n + #x
        end
        t.eq(n, 10)
        n = 0
        for _ in loader:iter() do
            for _ in loader:iter() do
                n = n + 1
            end
        end
        t.eq(n, 25)
        fails(function()
            for _ in loader do
                for _ in loader do end
            end
        end, "loader:iter()")
    end
end)

t.test("an_error_names_the_sample_and_comes_with_the_worker_s_lines", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local bad = data.map(numbers(9), function(k) return k == 7 and k.x.y or k end)
    for workers = 0, 2 do
        local loader <close> = data.DataLoader(bad, { batch_size = 2, num_workers = workers })
        local seen = 0
        fails(function()
            for _ in loader do
                seen = seen + 1
            end
        end, "DataLoader: sample 7 of the dataset", "test_data_loader.lua:" .. line, workers > 0 and "stack traceback" or "")
        t.eq(seen, 3)
        local uneven <close> = data.DataLoader({ tide.ones(2), tide.ones(3) }, { batch_size = 2, num_workers = workers })
        fails(function() batches(uneven) end, "the batch of samples 1, 2", "sample 2 of the batch has shape (3), the first (2)")
        local none <close> = data.DataLoader(data.map({ 1 }, function() end), { num_workers = workers })
        fails(function() batches(none) end, "sample 1 of the dataset", "nil")
        local far <close> = data.DataLoader(data.TensorDataset(tide.ones(3)), { sampler = { 9 }, num_workers = workers })
        fails(function() batches(far) end, "9")
        local row <close> = data.DataLoader(data.map(count_to(5), function(k) return k == 4 and error "fourth" or k end), { num_workers = workers })
        fails(function() batches(row) end, "sample 4 of the dataset", "fourth")
        local object <close> = data.DataLoader(data.map({ 1 }, function() error(setmetatable({}, { __tostring = function() return "mine" end })) end),
            { num_workers = workers })
        fails(function() batches(object) end, "mine")
    end
end)

t.test("samples_that_raise_are_left_out_and_listed", function()
    for workers = 0, 2 do
        local loader <close> = data.DataLoader(data.map(numbers(8), function(k)
            return k % 4 == 3 and error "broken" or (k == 5 or k == 6) and error "too" or k
        end), { batch_size = 2, num_workers = workers, on_error = "skip" })
        local got, places = {}, {}
        for x in loader do
            got[#got + 1] = x:tolist()
        end
        t.eq(got, { { 1, 2 }, { 4 }, { 8 } })
        for k, sample in ipairs(loader.skipped) do
            places[k] = sample.index
        end
        t.eq(places, { 3, 5, 6, 7 })
        t.is_true(loader.skipped[1].message:find "broken")
    end
end)

t.test("options_that_exclude_each_other_and_values_that_can_t_be", function()
    local set, iterable = numbers(4), count_to(4)
    for _, row in ipairs {
        { { set, batch_sampler = { { 1 } }, batch_size = 2 }, "batch_sampler" }, { { set, batch_sampler = { { 1 } }, shuffle = true }, "batch_sampler" },
        { { set, batch_sampler = { { 1 } }, drop_last = true }, "batch_sampler" }, { { set, batch_sampler = { { 1 } }, sampler = { 1 } }, "batch_sampler" },
        { { set, sampler = { 1 }, shuffle = true }, "sampler and shuffle" }, { { iterable, shuffle = true }, "shuffle" },
        { { iterable, sampler = { 1 } }, "sampler" }, { { iterable, batch_sampler = { { 1 } } }, "batch_sampler" }, { { iterable, on_error = "skip" }, "skip" },
        { { set, batch_size = 0 }, "batch_size" }, { { set, num_workers = -1 }, "num_workers" }, { { set, timeout = -1 }, "timeout" },
        { { set, prefetch = 0 }, "prefetch" }, { { {}, shuffle = true }, "no samples" }, { { set, sampler = 3 }, "sampler" }, { { 3, batch_size = 2 }, "dataset" },
        { { set, set, batch_size = 2 }, "batch_size" }, { { set, batchsize = 2 }, "batch_size" }, { { set, on_error = "x" }, "on_error" },
        { { set, collate = 3 }, "collate" }, { { { get = function() end }, batch_size = 2 }, "no length" },
    } do
        fails(function() data.DataLoader(row[1]) end, row[2])
    end
    fails(function() for _ in data.DataLoader(set, { batch_sampler = { 1 } }) do end end, "lists of indices")
    fails(function() for _ in data.DataLoader(set, { batch_sampler = { {} } }) do end end, "without samples")
    fails(function() for _ in data.DataLoader(set, { sampler = { 1.5 } }) do end end, "integers, or strings that the dataset knows, got number 1.5")
    fails(function() data.DataLoader(tide.nn.Linear(2, 2)) end, "expected a dataset")
    fails(function() data.DataLoader { name = "x", batch = 3 } end, "expected a dataset")
    local file <close> = io.tmpfile()
    local loader <close> = data.DataLoader(data.map(set, function() return file:read() end), { num_workers = 1 })
    fails(function() batches(loader) end, "upvalue 'file'")
end)

t.test("workers_begin_with_their_init_and_hold_the_dataset_once", function()
    local times = tide.zeros(4)
    local loader <close> = data.DataLoader(data.map(numbers(8), function(k) return k + of_the_worker end), { batch_size = 2, num_workers = 1,
        worker_init = function()
            times[1]:add_(1)
            of_the_worker = 100
        end })
    t.eq(batches(loader), batches(data.DataLoader(data.map(numbers(8), function(k) return k + 100 end), { batch_size = 2 })))
    batches(loader)
    t.eq(times[1]:item(), 1)
    local random <close> = data.DataLoader(data.map(numbers(6), function() return math.random() end), { num_workers = 1, seed = 1 })
    local more <close> = data.DataLoader(data.map(numbers(6), function() return math.random() end), { num_workers = 3, seed = 1 })
    t.eq(batches(random), batches(more))
end)

t.test("at_most_prefetch_batches_for_each_worker_are_ahead", function()
    local loader <close> = data.DataLoader(data.map(numbers(40), function() return tide.time() end), { num_workers = 2, prefetch = 3 })
    local begun, taken = {}, {}
    for x in loader do
        begun[#begun + 1] = x:item()
        taken[#taken + 1] = tide.time()
        tide.sleep(0.002)
    end
    t.eq(#begun, 40)
    for k = 7, 40 do -- which is asked for when the one six before it has been taken
        t.is_true(begun[k] >= taken[k - 6], k)
    end
end)

t.test("a_batch_that_does_not_come_ends_by_timeout", function()
    local loader <close> = data.DataLoader(data.map(numbers(3), function(k)
        while k == 2 do end
        return k
    end), { num_workers = 1, timeout = os.getenv "TIDE_SANITIZED" and 30 or 3 })
    local seen = 0
    fails(function()
        for _ in loader do
            seen = seen + 1
        end
    end, "timeout")
    t.eq(seen, 1)
    loader:set_epoch(1)
    for x in loader do
        t.eq(x:tolist(), { 1 })
        break
    end
end)

t.test("loaders_that_are_left_leave_no_thread", function()
    local function threads()
        local n = 0
        for line in io.lines "/proc/self/status" do
            n = tonumber(line:match "^Threads:%s*(%d+)") or n
        end
        return n
    end
    tide.ones(100000):sum()
    local before, at_most = threads(), 0
    for k = 1, os.getenv "TIDE_SANITIZED" and 60 or 500 do
        local loader = data.DataLoader(data.TensorDataset(tide.ones(40, 2)), { batch_size = 2, num_workers = 1 + k % 2 })
        for _ in loader do
            break
        end
        if k % 3 == 0 then
            loader:close()
        end
        at_most = math.max(at_most, threads())
    end
    t.is_true(at_most < before + 100, "threads pile up")
    collectgarbage()
    collectgarbage()
    local patience = tide.time() + 60
    while threads() > before and tide.time() < patience do
        tide.sleep(0.01)
    end
    t.is_true(threads() <= before, "threads are left")
end)

t.test("a_closed_loader_begins_anew", function()
    local loader = data.DataLoader(numbers(4), { num_workers = 1 })
    local first = batches(loader)
    loader:close()
    loader:close()
    t.eq(batches(loader), first)
    t.eq(tostring(loader), "DataLoader(4 batches, batch_size = 1, num_workers = 1)")
    loader:close()
end)
