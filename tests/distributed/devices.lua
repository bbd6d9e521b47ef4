-- devices.lua [BACKEND]: a job whose ranks have two CUDA devices each: DistributedDataParallel of a network whose halves are on both,
-- collectives of a device's tensors, states shared out.
local dist, nn, F = tide.distributed, tide.nn, tide.nn.functional
dist.init { timeout = 30, backend = arg[1] }
local rank, size = dist.rank(), dist.size()

local Halves = nn.class "Halves"
function Halves:init(first, second)
    self.first = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.Tanh()):to(first)
    self.second = nn.Linear(10, 3):to(second)
end
function Halves:forward(x) return self.second(self.first(x:to(self.first[1].weight.device)):to(self.second.weight.device)) end

local function make(first, second)
    tide.manual_seed(1)
    return Halves(first, second):eval() -- a norm over a share of the batch is not that over the whole
end

local function close(a, b, what)
    local off = (a:cpu() - b:cpu()):abs():max():item()
    assert(off <= 2e-5, string.format("%s: off by %g (rank %d)", what, off, rank))
end

local x, y = tide.randn(4 * size, 6, { generator = tide.Generator(2) }), tide.randn(4 * size, 3, { generator = tide.Generator(3) })
local function share(z) return z:narrow(1, 4 * rank + 1, 4) end

for _, options in ipairs { {}, { first_bucket_mb = 0.0001, bucket_cap_mb = 0.0001 }, { hook = "fp16", process_group = size > 1 and dist.new_group { 0, 1 } or nil } } do
    local net, alone = make("cuda:0", "cuda:1"), make("cpu", "cpu")
    local ddp = dist.DistributedDataParallel(net, options)
    local a = dist.optim.ZeroRedundancyOptimizer(net:parameters(), tide.optim.SGD, { lr = 0.1, momentum = 0.9 })
    local b = tide.optim.SGD(alone:parameters(), { lr = 0.1, momentum = 0.9 })
    for _ = 1, 4 do
        a:zero_grad()
        b:zero_grad()
        F.mse_loss(ddp(share(x)), share(y):to "cuda:1"):backward()
        F.mse_loss(alone(x), y):backward()
        a:step()
        b:step()
    end
    for k, p in ipairs(net:parameters()) do
        assert(p.grad.device == p.device and p.device == (k <= 4 and "cuda:0" or "cuda:1"))
        if not options.hook then
            close(p, alone:parameters()[k], "parameter " .. k)
        end
        for _, theirs in ipairs(dist.all_gather(p)) do
            assert(theirs.device == p.device and theirs:equal(p), "ranks have different parameters")
        end
    end
end

local z = tide.full({ 2, 2 }, rank + 1.0, { device = "cuda:1" })
assert(dist.all_reduce(z:t()):eq(size * (size + 1) / 2):all():item() and z.device == "cuda:1")
assert(dist.broadcast(tide.full({ 3 }, rank, { device = "cuda:0" }), size - 1):eq(size - 1):all():item())
local part = dist.reduce_scatter(tide.ones(2 * size, { device = "cuda:0" }))
assert(part.device == "cuda:0" and part:eq(size):all():item() and part:numel() == 2)
print("rank " .. rank .. ": ok")
