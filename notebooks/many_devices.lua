-- many_devices.lua: trains on handwritten digits, each rank on its share of every batch, for the notebook beside it.
--
--     tide-run -n 2 notebooks/many_devices.lua train trace.json
--     tide-run -n 2 notebooks/many_devices.lua compress none    (or fp16, bf16, powersgd)
--     tide-run -n 2 notebooks/many_devices.lua kill
--     tide-run -n 2 notebooks/many_devices.lua hello            (enters the job and leaves it)
--
-- Rank 0 prints what all ranks have to say, in their order.
local tide = require "tide"
local dist, nn = tide.distributed, tide.nn
local folder = arg[0]:match "^(.*/)" or ""
local what, option = arg[1] or "train", arg[2]

dist.init { timeout = 20 }
local rank, size = dist.rank(), dist.size()
local digits = dofile(folder .. "data/digits.lua") { seed = 0 }
local BATCH <const> = 64

-- All ranks draw the same order, and take every size-th image of it.
local function share(epoch)
    local order = tide.randperm(#digits.train_y, { generator = tide.Generator(epoch) })
    local count = #digits.train_y // size
    return order[{ { 1, count * size } }]:view(count, size):select(2, rank + 1)
end

local hooks = { none = nil, fp16 = "fp16", bf16 = "bf16", powersgd = what == "compress" and dist.powersgd { rank = 2, start = 2 } or nil }
tide.manual_seed(rank) -- ranks begin with weights of their own: rank 0's become everybody's
local net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 256),
    nn.ReLU(), nn.Linear(256, 10))
local model = dist.DistributedDataParallel(net, { bucket_cap_mb = 1, first_bucket_mb = 0.1, hook = hooks[what == "compress" and option or "none"] })
local optimizer = tide.optim.Adam(net:parameters(), { lr = 1e-3 })

local function step(pictures, classes)
    optimizer:zero_grad()
    nn.functional.cross_entropy(model(pictures), classes):backward()
    optimizer:step()
end

local function train(epoch, most)
    local mine, each = share(epoch), BATCH // size
    for k = 1, math.min(most or math.huge, mine:numel() // each) do
        local at = mine[{ { (k - 1) * each + 1, k * each } }]
        step(digits.train_x[at], digits.train_y[at])
        if what == "kill" and k == 3 and rank == size - 1 then
            os.execute "kill -9 $PPID" -- this process, as the system does when memory is out
        end
    end
end

local function accuracy()
    return tide.no_grad(function() return net(digits.test_x):argmax(2):eq(digits.test_y):float():mean():item() end)
end

-- Rank 0 prints a line of each rank.
local function say(line)
    for _, text in ipairs(dist.gather_object(line, 0) or {}) do
        print(text)
    end
end

if what == "train" then
    for epoch = 1, 3 do
        train(epoch)
    end
    local sum = 0
    for _, p in net:named_parameters() do
        sum = sum + p:double():abs():sum():item()
    end
    say(("rank %d: test accuracy %.4f, sum of |weights| %.12f"):format(rank, accuracy(), sum))
    local profile = tide.profiler.profile { function()
        for k = 1, 4 do
            tide.profiler.record("step", function() train(k, 1) end)
        end
    end, kernels = true }
    dist.export_chrome_trace(profile, option or "trace.json")
    local report = dist.communication(profile)
    if rank == 0 then
        print(report)
    end
elseif what == "compress" then
    train(1)
    local profile = tide.profiler.profile(function() train(2, 4) end)
    local bytes = 0
    for _, row in ipairs(dist.communication(profile)) do
        bytes = bytes + row.bytes * row.calls / 4
    end
    if rank == 0 then
        print(("%-8s  %8.0f kB a step, test accuracy %.4f"):format(option, bytes / 1000, accuracy()))
    end
elseif what == "kill" then
    train(1)
end
