-- overlap.lua: `tide tests/device/overlap.lua`: does the copy of the next batch go on while kernels work on this one? Lines of
-- JSON: milliseconds a batch of copies alone, of kernels alone, of both, and the share of the copies that is hidden; by hand, and
-- by a DataLoader with workers. overlap.py says the same of PyTorch. TIDE_BENCH_TINY: small, for a device that is played.
local tiny = os.getenv "TIDE_BENCH_TINY"
local BATCHES, ROWS, WIDTH, SIDE, PRODUCTS = tiny and 6 or 40, tiny and 16 or 4096, tiny and 64 or 4096, tiny and 16 or 4096, tiny and 2 or 8

local weights = tide.randn(SIDE, SIDE, { device = "cuda" }):to(tide.bfloat16)
local out = tide.empty(SIDE, SIDE, { device = "cuda", dtype = tide.bfloat16 })

-- What a step has the device do, in which it reads the batch.
local function work(batch)
    for _ = 1, PRODUCTS do
        tide.mm(weights, weights, { out = out })
    end
    return batch and batch[1]:sum()
end

-- Milliseconds a batch of fn(k); the least of three rounds.
local function measure(fn)
    local best = math.huge
    for round = 0, 3 do
        tide.cuda.synchronize()
        local start = tide.time()
        fn()
        tide.cuda.synchronize()
        best = round > 0 and math.min(best, (tide.time() - start) / BATCHES * 1e3) or best
    end
    return best
end

local function tell(case, copy, kernels, both)
    print(('{"by": "tide", "case": "%s", "bytes": %d, "copy_ms": %.3f, "kernels_ms": %.3f, "both_ms": %.3f, "hidden": %.3f}'):format(case,
        ROWS * WIDTH * 4, copy, kernels, both, (copy + kernels - both) / math.min(copy, kernels)))
end

local there = { device = "cuda", non_blocking = true }
local source = { tide.randn(ROWS, WIDTH):pin_memory(), tide.randn(ROWS, WIDTH):pin_memory() }
local copy = measure(function()
    for k = 1, BATCHES do
        source[k % 2 + 1]:to(there)
    end
    source[1]:to(there)[1][1]:item() -- what is read was waited for
end)
local kernels = measure(function()
    for _ = 1, BATCHES do
        work()
    end
end)
tell("by hand", copy, kernels, measure(function()
    local batch = source[1]:to(there)
    for k = 1, BATCHES do
        local following = source[k % 2 + 1]:to(there)
        work(batch)
        batch = following
    end
end))
local pageable = tide.randn(ROWS, WIDTH)
tell("from memory that is not pinned", measure(function()
    for _ = 1, BATCHES do
        pageable:to("cuda")
    end
end), kernels, measure(function()
    for _ = 1, BATCHES do
        work(pageable:to("cuda"))
    end
end))

-- The same batch again and again: what is measured is the way to the device.
local loader <close> = tide.data.DataLoader({ len = function() return BATCHES end, get = function() return pageable end },
    { batch_size = false, num_workers = 2, prefetch = 4, device = "cuda" })
local function epoch(step)
    return measure(function()
        local last
        for batch in loader do
            step(batch)
            last = batch
        end
        last[1][1]:item()
    end)
end
tell("DataLoader, 2 workers", epoch(function() end), kernels, epoch(work))
