-- distributed.lua: all_reduce of three sizes and a step of DistributedDataParallel, for tests/bench/distributed.py, which runs the same
-- through PyTorch's gloo: tide-run -n 2 tests/bench/distributed.lua. Rank 0 prints a JSON object a line.
local dist = tide.distributed
dist.init { timeout = 60 }
local clock = tide.time

-- bytes: what one rank hands to the transport's collectives, or gets from them where that is more.
local function report(name, took, bytes)
    table.sort(took)
    if dist.rank() == 0 then
        print(string.format('{"case": "%s, %d ranks", "median_s": %.6g, "iqr_s": %.3g, "bytes": %d, "note": "%s"}', name, dist.size(),
            took[(#took + 1) // 2], took[(3 * #took + 3) // 4] - took[(#took + 3) // 4], bytes, dist.backend()))
    end
end

for _, case in ipairs { { "4 KB", 1024, 200 }, { "1 MB", 262144, 40 }, { "26 MB", 6815744, 12 } } do
    local name, n, times = table.unpack(case)
    local x, took = tide.ones(n), {}
    for k = 1, times + 3 do
        x:fill_(1)
        dist.barrier()
        local began = clock()
        dist.all_reduce(x)
        if k > 3 then
            took[#took + 1] = clock() - began
        end
    end
    assert(x[1]:item() == dist.size())
    report("all_reduce " .. name, took, 4 * n)
end

-- ---- a step of three layers, 12.6 MB of gradients, at 64 samples a rank ----

local nn, F = tide.nn, tide.nn.functional
local WHOLE <const> = 1000 -- MiB: one bucket, which is complete when backward ends
local x, y = tide.randn(64, 1024), tide.randint(1, 1024, { 64 })

local function bytes_of(step)
    local bytes = 0
    for _, e in ipairs(tide.profiler.profile(step):events()) do
        bytes = bytes + (e.kind == "collective" and e.name:find "bucket" and e.bytes or 0)
    end
    return bytes
end

tide.use_deterministic_algorithms(true)
for _, case in ipairs {
    { "overlapped", { bucket_cap_mb = 4 } }, { "not overlapped", { bucket_cap_mb = WHOLE, first_bucket_mb = WHOLE } },
    { "fp16", { bucket_cap_mb = 4, hook = "fp16" } }, { "bf16", { bucket_cap_mb = 4, hook = "bf16" } },
    { "PowerSGD", { bucket_cap_mb = 4, hook = dist.powersgd { start = 2 } } }, { "topk", { bucket_cap_mb = 4, hook = dist.topk { ratio = 0.01 } } },
    { "deterministic", { bucket_cap_mb = 4, deterministic = dist.size() } },
    { "deterministic, 4 micro-batches a rank", { bucket_cap_mb = 4, deterministic = 4 * dist.size() } },
} do
    local name, options = table.unpack(case)
    local net = dist.DistributedDataParallel(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)),
        options)
    local opt = tide.optim.SGD(net:parameters(), { lr = 0.01 })
    local parts = options.deterministic and options.deterministic // dist.size() or 1
    local function step()
        opt:zero_grad()
        local k = 0
        local function backward()
            local from, count = k * (64 // parts) + 1, 64 // parts
            F.cross_entropy(net(x:narrow(1, from, count)), y:narrow(1, from, count)):backward()
            k = k + 1
        end
        if options.deterministic then
            for _ in net:micro_batches() do
                backward()
            end
        else
            backward()
        end
        opt:step()
    end
    local took = {}
    for k = 1, 25 do
        dist.barrier()
        local began = clock()
        step()
        if k > 5 then
            took[#took + 1] = clock() - began
        end
    end
    report("DDP step, " .. name, took, bytes_of(step))
end
