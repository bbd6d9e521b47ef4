-- nccl_digits.lua: digits on a device of each rank by DistributedDataParallel over NCCL: the losses of one process, with and without
-- compressed gradients, and in deterministic mode the same bits for every number of ranks, which rank 0 prints.
package.path = string.match(arg[0], "^(.*)tests/distributed/") .. "notebooks/?.lua;" .. package.path
local dist, nn, F = tide.distributed, tide.nn, tide.nn.functional
dist.init { backend = "nccl", timeout = 60 }
local rank, size = dist.rank(), dist.size()
local DEVICE <const>, BATCH <const>, STEPS <const> = "cuda:" .. rank % tide.cuda.device_count(), 24, 6
local digits = require "data.digits" { seed = 0 }
local xs = digits.train_x:narrow(1, 1, BATCH * STEPS):flatten(2):to(DEVICE)
local ys = digits.train_y:narrow(1, 1, BATCH * STEPS):to(DEVICE)

local function batch(step, first, count) return xs:narrow(1, step * BATCH + first, count), ys:narrow(1, step * BATCH + first, count) end

local function make()
    tide.manual_seed(1 + rank) -- rank 0's parameters are everybody's
    return nn.Sequential(nn.Linear(xs:size(2), 24), nn.Tanh(), nn.Linear(24, 10)):to(DEVICE)
end

local function optimizer(net) return tide.optim.SGD(net:parameters(), { lr = 0.05, momentum = 0.9 }) end

-- Losses of one process, which begins with the same parameters.
local function alone(parameters)
    local net, losses = make(), {}
    for k, p in ipairs(net:parameters()) do
        p:detach():copy_(parameters[k])
    end
    local opt = optimizer(net)
    for step = 0, STEPS - 1 do
        local x, y = batch(step, 1, BATCH)
        opt:zero_grad()
        local loss = F.cross_entropy(net(x), y)
        loss:backward()
        opt:step()
        losses[#losses + 1] = loss:item()
    end
    return losses
end

local share = BATCH // size
for _, case in ipairs { { "none", 1e-4 }, { "fp16", 5e-3 }, { dist.powersgd { start = 3 }, 0.5 } } do
    local ddp = dist.DistributedDataParallel(make(), { hook = case[1], bucket_cap_mb = 0.02, first_bucket_mb = 0.01 })
    local first = {}
    for k, p in ipairs(ddp:parameters()) do
        first[k] = p:detach():clone()
    end
    local opt, losses = optimizer(ddp), alone(first)
    for step = 0, STEPS - 1 do
        local x, y = batch(step, rank * share + 1, share)
        opt:zero_grad()
        local loss = F.cross_entropy(ddp(x), y)
        loss:backward()
        opt:step()
        local mean = dist.all_reduce(loss:detach(), "mean"):item()
        assert(math.abs(mean - losses[step + 1]) <= case[2],
            string.format("%s: the loss of step %d is %g, not %g (rank %d)", tostring(case[1]), step, mean, losses[step + 1], rank))
    end
    assert(losses[STEPS] < losses[1], "nothing is learned")
end

tide.use_deterministic_algorithms(true)
local MICRO_BATCHES <const> = 6
local ddp = dist.DistributedDataParallel(make(), { deterministic = MICRO_BATCHES, bucket_cap_mb = 0.01, first_bucket_mb = 0.001 })
local opt = optimizer(ddp)
for step = 0, 2 do
    for k in ddp:micro_batches() do
        local x, y = batch(step, (k - 1) * 4 + 1, 4)
        F.cross_entropy(ddp(x), y):backward()
    end
    opt:step()
end
for k, p in ipairs(ddp:parameters()) do
    local sum = 0
    for _, value in ipairs(p:detach():cpu():flatten():tolist()) do
        sum = sum * 31 + string.unpack("<i8", string.pack("<d", value))
    end
    if rank == 0 then
        print(string.format("bits %d %x", k, sum))
    end
end
print("rank " .. rank .. ": ok")
