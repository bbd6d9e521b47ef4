-- test_loader.lua: pinned memory, copies that nobody waits for, and a DataLoader whose batches go to a CUDA device beside its
-- work: the same values in whatever order the device takes its streams, nothing waited for, memory used again.
local t = require "harness"

if not tide.cuda.is_available() then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end
local opened = package.loadlib(os.getenv "TIDE_CUDA_MODULE" or "", "luaopen_played")
local played = opened and opened()
local ROUNDS = played and 12 or 3

-- What fn makes the device do; an empty table where nobody counts.
local function counted(fn)
    tide.cuda.synchronize()
    if played then
        played.reset()
    end
    fn()
    return played and played.counts() or {}
end

local function each_order(fn)
    for round = 1, ROUNDS do
        if played then
            played.seed(round)
        end
        fn(round)
    end
end

t.test("pinned_memory_by_method", function()
    local x = tide.arange(12):view(3, 4)
    local pinned = x:pin_memory()
    t.is_true(pinned:is_pinned() and not x:is_pinned())
    t.is_true(tide.equal(x, pinned))
    t.eq(pinned:pin_memory():data_ptr(), pinned:data_ptr())
    t.is_true(not tide.zeros(0):pin_memory():is_pinned())
    t.error_has(function() x:to("cuda"):pin_memory() end, "a dense tensor on the CPU expected")
end)

t.test("copies_from_pinned_memory_are_waited_for_where_they_are_needed_alone", function()
    each_order(function(round)
        local x = tide.full({ 3000 }, round):pin_memory()
        local other = tide.ones(3000, { device = "cuda" })
        local y
        local c = counted(function()
            y = x:to("cuda", { non_blocking = true })
            other = other + 1
        end)
        if played then
            t.eq({ c.synchronisations, c.to_device, c.bytes_to_device }, { 0, 1, 24000 })
        end
        t.eq((y + other):sum():item(), 3000 * (round + 2))
        local again = x:to("cuda", { non_blocking = true })
        t.eq(again:cpu():sum():item(), 3000 * round, "a copy to the host waits too")
        again = x:to("cuda", { non_blocking = true })
        t.eq(again[{ { 1001, 2000 } }]:cpu():sum():item(), 1000 * round, "and one of a part")
        again = x:to("cuda", { non_blocking = true })
        local side <close> = tide.cuda.stream(tide.cuda.Stream())
        t.eq((again * 2):sum():item(), 6000 * round, "and another stream")
    end)
end)

t.test("memory_is_given_to_nobody_before_it_was_read_or_written", function()
    each_order(function(round)
        local kept = {}
        for k = 1, 6 do
            local x = tide.full({ 2000 }, k):pin_memory()
            kept[k] = x:to("cuda", { non_blocking = true })
            if k % 3 == 0 then
                x:to("cuda", { non_blocking = true }) -- whose block goes back while it is written
                tide.full({ 2000 }, -1, { device = "cuda" })
            end
            x = nil
            collectgarbage()
        end
        local blocks = {}
        for k = 1, 4 do
            blocks[k] = tide.full({ 2000 }, 10 * k, { device = "cuda" })
        end
        for k = 1, 6 do
            t.eq(kept[k]:sum():item(), 2000 * k, round)
        end
        for k = 1, 4 do
            t.eq(blocks[k]:sum():item(), 20000 * k, round)
        end
    end)
end)

t.test("what_can_t_go_on_beside_is_copied_as_ever", function()
    local options = { non_blocking = true }
    local x = tide.arange(24, { dtype = tide.float32 }):view(2, 3, 2, 2)
    t.is_true(tide.equal(x:to("cuda", options):cpu(), x))
    local pinned = x:pin_memory()
    t.is_true(tide.equal(pinned:to({ device = "cuda", dtype = tide.float64, non_blocking = true }):cpu(), x:to(tide.float64)))
    t.is_true(tide.equal(pinned[{ {}, 2 }]:to("cuda", options):cpu(), x[{ {}, 2 }]), "with gaps")
    local turned = pinned:permute(1, 4, 2, 3):to("cuda", options)
    t.is_true(tide.equal(turned:cpu(), x:permute(1, 4, 2, 3)), "dense in another order")
    local w = x:pin_memory():requires_grad_()
    w:to("cuda", options):mul(2):sum():backward()
    t.eq(w.grad:sum():item(), 48)
    local zero = tide.zeros(0, 3):pin_memory():to("cuda", options)
    t.eq(tostring(zero.shape), "(0, 3)")
    t.eq(pinned:to("cpu", options):data_ptr(), pinned:data_ptr())
end)

t.test("copies_and_kernels_wait_for_each_other_only_where_one_reads_the_other", function()
    if not played then
        return
    end
    local kernels_first, copy_first = 0, 0
    for round = 1, 40 do
        played.seed(round)
        local x = tide.ones(5000):pin_memory()
        local z = tide.ones(100, { device = "cuda" })
        tide.cuda.synchronize()
        local y = x:to("cuda", { non_blocking = true })
        for _ = 1, 5 do
            z = z + 1
        end
        if round % 2 == 0 then
            tide.cuda.synchronize()
            kernels_first = kernels_first + (tide._is_sole(x) and 0 or 1) -- the copy has not read it
        else
            while not tide._is_sole(x) do end
            copy_first = copy_first + (tide.cuda.current_stream():query() and 0 or 1)
        end
        t.eq((y:sum() + z:sum()):item(), 5600)
    end
    t.is_true(kernels_first > 0 and copy_first > 0, ("kernels first %d times, the copy %d times"):format(kernels_first, copy_first))
end)

local function numbers(n)
    local list = {}
    for k = 1, n do
        list[k] = k
    end
    return list
end

-- Sums of the batches; nothing is waited for before the end.
local function sums(loader)
    local list = {}
    for x, more in loader do
        list[#list + 1] = (x + more.y:view(-1, 1)):sum()
    end
    return list
end

local function items(list)
    for k, x in ipairs(list) do
        list[k] = x:item()
    end
    return list
end

local set = tide.data.map(numbers(90), function(k) return tide.full({ 50 }, k), { y = k, text = "no " .. k } end)

t.test("batches_go_to_the_device_beside_its_work", function()
    local wanted = items(sums(tide.data.DataLoader(set, { batch_size = 4, shuffle = true, seed = 1 })))
    for workers = 0, 2 do
        each_order(function(round)
            if round > 4 then
                return
            end
            local loader <close> = tide.data.DataLoader(set, { batch_size = 4, shuffle = true, seed = 1, num_workers = workers, device = "cuda" })
            local got
            local c = counted(function() got = sums(loader) end)
            if played then
                t.eq(c.synchronisations, 0, "nothing is waited for")
                t.eq(c.to_device, 46)
                t.is_true(c.host_mallocs <= c.to_device, "a block of pinned memory for each tensor at most") -- until the collector has run
            end
            t.eq(items(got), wanted)
            collectgarbage()
            local again = counted(function() got = sums(loader) end)
            if played then
                t.is_true(again.host_mallocs <= 24, ("pinned memory is used again: %d blocks more"):format(again.host_mallocs))
            end
        end)
    end
end)

t.test("the_next_batch_is_on_its_way_while_the_script_works", function()
    if not played then
        return
    end
    local begun = tide.zeros(1)
    local loader <close> = tide.data.DataLoader(tide.data.map(numbers(12), function(k)
        begun:fill_(k)
        return tide.full({ 50 }, k)
    end), { num_workers = 1, device = "cuda", prefetch = 4 })
    local given, made = 0, false
    tide.cuda.synchronize()
    played.reset()
    for x in loader do
        given = given + 1
        t.is_true(not made or played.counts().to_device > given, given)
        t.eq(x:max():item(), given) -- a script that waits for each batch
        -- The worker is at the third from here: the second, of which the next step begins the copy, is made.
        local patience = tide.time() + 60
        made = given <= 9
        while made and begun[1]:item() < given + 3 do
            t.is_true(tide.time() < patience, "a worker makes batches ahead")
            tide.sleep(0.001)
        end
    end
    t.eq(given, 12)
    local half <close> = tide.data.DataLoader(tide.data.map(numbers(12), function(k) return tide.full({ 50 }, k) end),
        { num_workers = 1, device = "cuda" })
    for x in half do
        if x:max():item() == 3 then
            break
        end
        tide.sleep(0.005)
    end
    t.eq(half:state().batch, 3, "what is on its way was not given")
end)

t.test("pinned_batches_stay_with_the_host_where_no_device_is_named", function()
    for workers = 0, 1 do
        local loader <close> = tide.data.DataLoader(set, { batch_size = 30, num_workers = workers, pin_memory = true })
        for x, more in loader do
            t.is_true(x:is_pinned() and more.y:is_pinned())
            t.eq(more.text[1]:sub(1, 3), "no ")
        end
        local kept = {}
        local rows <close> = tide.data.DataLoader(tide.arange(40):view(20, 2), { batch_size = 3, num_workers = workers, pin_memory = true })
        for x in rows do
            kept[#kept + 1] = x
        end
        t.is_true(kept[1]:is_pinned() and tide.equal(tide.cat(kept), tide.arange(40):view(20, 2)))
    end
end)
