-- collector.lua: what Lua's collector costs a program that makes tensors, against letting go by hand.
--
-- Each program comes twice: as one writes it, leaving results to the collector, and with `<close>` or
-- `free`, which is the limit. Besides the time of a step a line has "pause_s" (the longest step of a
-- batch, the median over batches) and "peak_bytes" (of tensors, above what was there when it began).
local here = arg[0]:match("^(.*/)") or "./"
local tide = require "tide"
local bench = dofile(here .. "bench.lua")
tide.manual_seed(0)
tide.set_num_threads(1)

local MIN_BATCH, BATCHES = 0.05, 11

local function median(values)
    table.sort(values)
    return values[(#values + 1) // 2]
end

local function time_batch(step, loops)
    local start = tide.time()
    for _ = 1, loops do
        step()
    end
    return tide.time() - start
end

local function longest_step(step, loops)
    local longest = 0
    for _ = 1, loops do
        longest = math.max(longest, time_batch(step, 1))
    end
    return longest
end

local function program(name, step)
    if not bench.chosen(name) then
        return
    end
    collectgarbage()
    local before, loops, times, pauses = tide.memory_allocated(), 1, {}, {}
    tide.reset_peak_memory_stats()
    while time_batch(step, loops) < MIN_BATCH do
        loops = loops * 2
    end
    for k = 1, BATCHES do
        times[k] = time_batch(step, loops) / loops
        pauses[k] = longest_step(step, loops)
    end
    local middle = median(times)
    print(('{"case": "%s", "median_s": %.4g, "iqr_s": %.4g, "threads": 1, "note": "", "pause_s": %.4g, "peak_bytes": %d}')
        :format(name, middle, times[9] - times[3], median(pauses), tide.memory_stats().peak - before))
    io.stdout:flush()
end

local function temporaries(name, n)
    local a, b = tide.ones(n), tide.ones(n)
    program(name, function() local _ = a + b end)
    program(name .. " close", function() local _ <close> = a + b end)
end

-- A step that keeps 200 results and drops them all.
local function tape(name, n)
    local a, b = tide.ones(n), tide.ones(n)
    local function record()
        local kept = {}
        for k = 1, 200 do
            kept[k] = a + b
        end
        return kept
    end
    program(name, record)
    program(name .. " close", function()
        for _, x in ipairs(record()) do
            x:free()
        end
    end)
end

-- A step of training: twenty layers, backward, an update in place.
local function training(name)
    local x, weights = tide.randn(256, 256), {}
    for k = 1, 20 do
        weights[k] = (tide.randn(256, 256) / 16):requires_grad_()
    end
    local function update()
        local _ <close> = tide.no_grad()
        for _, w in ipairs(weights) do
            w:sub_(w.grad, { alpha = 1e-6 })
            w.grad = nil
        end
    end
    program(name, function()
        local h = x
        for _, w in ipairs(weights) do
            h = h:mm(w):relu()
        end
        h:mean():backward()
        update()
    end)
    program(name .. " close", function()
        local h = x
        for _, w in ipairs(weights) do
            local product <close> = h:mm(w)
            local before = h
            h = product:relu()
            if before ~= x then
                before:free()
            end
        end
        local last <close> = h
        local loss <close> = last:mean()
        loss:backward()
        update()
    end)
end

temporaries("small", 1)
temporaries("medium", 100000)
temporaries("large", 10000000)
tape("tape", 100000)
training("training")

if bench.chosen("live") then
    local live = {}
    for k = 1, 256 do
        live[k] = tide.zeros(1 << 20)
    end
    temporaries("live held medium", 100000)
    tape("live held tape", 100000)
    live = nil
    temporaries("live gone large", 25000000)
end

if bench.chosen("heap") then
    local heap = {}
    for k = 1, 1000000 do
        heap[k] = { k }
    end
    temporaries("heap medium", 100000)
    tape("heap tape", 100000)
    training("heap training")
    heap[1] = nil -- alive until here
end
