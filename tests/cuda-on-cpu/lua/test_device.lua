-- test_device.lua: tide.cuda: devices, memory, streams, events, pinned memory, recorded work; and what the
-- device is asked to do, counted where the CPU plays the device.
local t = require "harness"

if not tide.cuda.is_available() then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end
local opened = package.loadlib(os.getenv "TIDE_CUDA_MODULE" or "", "luaopen_played")
local played = opened and opened()

local function there(x) return x:to("cuda") end

-- What fn makes the device do.
local function counted(fn)
    tide.cuda.synchronize()
    played.reset()
    fn()
    return played.counts()
end

t.test("devices_say_what_they_are", function()
    t.is_true(tide.cuda.is_available())
    t.eq(tide.cuda.unavailable_reason(), nil)
    local n = tide.cuda.device_count()
    t.is_true(n >= 1)
    t.eq(type(tide.cuda.get_device_name()), "string")
    local p = tide.cuda.get_device_properties("cuda:0")
    t.is_true(p.major >= 7 and p.total_memory > 0 and p.multi_processor_count > 0 and p.warp_size == 32)
    local major, minor = tide.cuda.get_device_capability()
    t.eq({ major, minor }, { p.major, p.minor })
    t.error_has(function() tide.zeros(1, { device = "cuda:" .. n }) end, ("this machine has %d of its kind"):format(n))
    t.error_has(function() tide.cuda.get_device_name("cpu") end, "'cpu' has no streams: a CUDA device expected")
end)

t.test("a_device_without_a_number_is_the_current_one", function()
    if tide.cuda.device_count() < 2 then
        return
    end
    t.eq(tide.cuda.current_device(), 0)
    tide.cuda.set_device("cuda:1")
    t.eq(tide.cuda.current_device(), 1)
    t.eq(tide.ones(2, { device = "cuda" }).device, "cuda:1")
    tide.cuda.set_device("cuda:0")
    local x, y = tide.ones(2, { device = "cuda" }), tide.ones(2, { device = "cuda:1" })
    t.eq(x.device, "cuda:0")
    t.error_has(function() return x + y end, "add: ")
    t.eq((x:to("cuda:1") + y):tolist(), { 2, 2 })
end)

t.test("memory_is_counted_kept_and_given_back", function()
    collectgarbage()
    tide.cuda.synchronize()
    tide.cuda.empty_cache()
    local before = tide.cuda.memory_allocated()
    tide.cuda.reset_peak_memory_stats()
    local x = tide.zeros(1000000, { device = "cuda" })
    t.is_true(tide.cuda.memory_allocated() - before >= 4000000)
    t.is_true(tide.cuda.max_memory_allocated() >= tide.cuda.memory_allocated())
    x = nil
    collectgarbage()
    t.eq(tide.cuda.memory_allocated(), before)
    t.is_true(tide.cuda.memory_stats().cached >= 4000000)
    t.is_true(tide.cuda.memory_reserved() >= before + 4000000)
    local requests = tide.cuda.memory_stats().system_allocations
    x = tide.zeros(1000000, { device = "cuda" })
    t.eq(tide.cuda.memory_stats().system_allocations, requests, "the cache served it")
    x = nil
    collectgarbage()
    tide.cuda.empty_cache()
    t.is_true(tide.cuda.memory_stats().cached < 4000000)
    local free, total = tide.cuda.mem_get_info()
    t.is_true(free > 0 and free <= total)
    t.is_true(tide.cuda.memory_summary():find("in use by tensors", 1, true))
end)

t.test("out_of_memory_is_an_error_and_nothing_is_lost", function()
    local x = there(tide.ones(10))
    local _, total = tide.cuda.mem_get_info()
    t.error_has(function() tide.zeros(total // 4 + 1, { device = "cuda" }) end, "out of memory")
    t.eq(x:sum():item(), 10)
    if played then -- a request that fails once is made again, when the cache has been given back
        tide.cuda.empty_cache()
        played.fail(1)
        t.eq(tide.ones(3000000, { device = "cuda" }):sum():item(), 3000000)
    end
end)

t.test("streams_order_what_they_share", function()
    local side = tide.cuda.Stream()
    local main = tide.cuda.current_stream()
    t.eq(main, tide.cuda.default_stream())
    for round = 1, 20 do
        if played then
            played.seed(round)
        end
        local x = tide.full({ 5000 }, round, { device = "cuda" })
        local y
        do
            local s <close> = tide.cuda.stream(side)
            t.eq(tide.cuda.current_stream(), side)
            y = x * 2 -- of the other stream
        end
        t.eq(tide.cuda.current_stream(), main)
        local z = y + x -- which the first one reads
        x = nil -- while the side's work may still read it
        collectgarbage()
        local other = tide.full({ 5000 }, -1, { device = "cuda" })
        t.eq(z:sum():item(), 15000 * round)
        t.eq(other:sum():item(), -5000)
    end
    side:synchronize()
    t.is_true(side:query())
    t.eq(tostring(main), "Stream 0 of cuda:0")
end)

t.test("events_mark_a_place_in_the_work", function()
    local from, to = tide.cuda.Event(nil, { enable_timing = true }), tide.cuda.Event(nil, { enable_timing = true })
    t.error_has(function() from:elapsed_time(to) end, "event 1 has not been recorded")
    from:record()
    local x = tide.ones(1000, { device = "cuda" }) + 1
    to:record()
    t.is_true(from:elapsed_time(to) >= 0)
    t.is_true(to:query())
    t.error_has(function() tide.cuda.Event():elapsed_time(to) end, "event 1 was made without enable_timing")
    local stream = tide.cuda.Stream()
    stream:wait_event(to)
    stream:wait_stream(tide.cuda.current_stream())
    stream:record_event():synchronize()
    t.eq(x:sum():item(), 2000)
end)

t.test("pinned_memory_is_copied_from_and_to", function()
    local x = tide.cuda.pin_memory(tide.arange(1000, nil, 1, { dtype = tide.float32 }))
    t.is_true(tide.cuda.is_pinned(x))
    t.is_false(tide.cuda.is_pinned(tide.ones(3)))
    local y = there(x)
    x:zero_() -- after the copy
    t.eq(y:sum():item(), 499500)
    t.error_has(function() tide.cuda.pin_memory(y) end, "a dense tensor on the CPU expected, got one on cuda:0")
end)

t.test("recorded_work_is_done_again_at_once", function()
    local x = there(tide.ones(1000))
    local graph, y = tide.cuda.graph(function() return (x * 2 + 1):sqrt() end)
    x:fill_(4)
    if played then
        local c = counted(function() graph:replay() end)
        t.eq({ c.graph_launches, c.launches, c.synchronisations }, { 1, 3, 0 })
    else
        graph:replay()
    end
    t.eq(y:sum():item(), 3000)
    x:fill_(40)
    graph:replay()
    t.eq(y:sum():item(), 9000)
    t.error_has(function() tide.cuda.graph(function() error("of its own", 0) end, { warmup = 0 }) end, "of its own")
    t.eq((x + 1):sum():item(), 41000)
end)

t.test("a_training_step_is_recorded_and_done_again", function()
    local function losses(record)
        tide.manual_seed(2)
        local net = tide.nn.Sequential(tide.nn.Linear(20, 30), tide.nn.ReLU(), tide.nn.Linear(30, 5)):to("cuda")
        local x, y = there(tide.randn(16, 20)), there(tide.randint(1, 6, { 16 }))
        local opt, last = tide.optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 }), nil
        local function step()
            opt:zero_grad()
            last = tide.cross_entropy(net(x), y)
            last:backward()
            opt:step()
        end
        local list = {}
        step() -- which makes the optimizer's state
        local graph = record and tide.cuda.graph(step, { warmup = 0 })
        for k = 1, 4 do
            if graph then
                graph:replay()
            else
                step()
            end
            list[k] = last:item()
        end
        return list
    end
    local replayed = losses(true)
    t.close(replayed, losses(false), 1e-6)
    t.is_true(replayed[4] < replayed[1])
end)

-- ---- what only the played device tells ----

-- A test that needs its counts or its failures on demand.
local function played_test(name, fn)
    if played then
        t.test(name, fn)
    else
        t.skip(name, "the played device alone counts, and fails on demand")
    end
end

played_test("nothing_waits_but_what_must", function()
    local x, y = there(tide.randn(100)), there(tide.randn(100))
    local c = counted(function()
        local z = (x + y) * 2
        z:add_(1)
        x:copy_(z)
    end)
    t.eq(c.synchronisations, 0)
    t.eq(c.launches, 4)
    t.eq(c.to_host + c.to_device, 0)
    c = counted(function() x:to("cpu") end)
    t.eq({ c.synchronisations, c.to_host }, { 1, 1 })
end)

played_test("lists_go_to_the_device_in_few_launches", function()
    local params = {}
    for k = 1, 161 do
        params[k] = there(tide.randn(10 + 37 * (k % 9))):requires_grad_(true)
        params[k].grad = there(tide.randn(params[k].shape[1]))
    end
    local adam = tide.optim.Adam(params, { lr = 0.1 })
    adam:step() -- which makes its state
    local c = counted(function() adam:step() end)
    t.eq(c.synchronisations, 0, "an Adam step waits for nothing")
    t.is_true(c.launches <= 3, ("an Adam step over 161 tensors: %d launches"):format(c.launches))
end)

played_test("an_error_of_the_device_is_said_and_the_cpu_goes_on", function()
    -- the last test: the device can't be used after it
    local x = there(tide.ones(5))
    played.fail_next("IllegalAddress")
    t.error_has(function()
        local y = x + 1
        tide.cuda.synchronize()
        return y
    end, "the device can't be used again in this process")
    t.error_has(function() return (x + 1):item() end, "CUDA: ")
    t.eq((tide.ones(3) + 1):sum():item(), 6)
end)
