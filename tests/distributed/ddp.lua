-- ddp.lua [BACKEND DEVICE]: a job that trains by DistributedDataParallel, each rank on its share of a batch, beside the same training on the
-- whole batch by one process alone.
local dist, nn, F = tide.distributed, tide.nn, tide.nn.functional
dist.init { timeout = 30, backend = arg[1] }
local rank, size = dist.rank(), dist.size()
local DEVICE <const> = arg[2] or "cpu"
local SHARE <const> = 4

local function make(seed)
    tide.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 30), nn.ReLU(), nn.Linear(30, 3)):to(DEVICE)
end

tide.manual_seed(7)
local STEPS <const> = 12
local xs, ys = tide.randn(STEPS, SHARE * size, 12):to(DEVICE), tide.randint(1, 3, { STEPS, SHARE * size }):to(DEVICE)

local function share(x) return x:narrow(1, rank * SHARE + 1, SHARE) end

local function close(a, b, tolerance, what)
    for k, p in ipairs(a) do
        local off = (p - b[k]):abs():max():item()
        assert(off <= tolerance, string.format("%s: parameter %d is off by %g (rank %d)", what, k, off, rank))
    end
end

local function list(module)
    local params = {}
    for _, p in module:named_parameters() do
        params[#params + 1] = p:detach()
    end
    return params
end

-- Train alone on whole batches: what the job must come to.
local function alone(optimizer)
    local net = make(1)
    local opt = optimizer(net:parameters())
    local losses = {}
    for k = 1, STEPS do
        opt:zero_grad()
        local loss = F.cross_entropy(net(xs[k]), ys[k])
        loss:backward()
        opt:step()
        losses[k] = loss:item()
    end
    return net, losses
end

local function together(optimizer, options, step)
    local net = make(rank == 0 and 1 or 100 + rank) -- rank 0's parameters are everybody's
    local ddp = dist.DistributedDataParallel(net, options)
    local opt = optimizer(net:parameters())
    local losses = {}
    for k = 1, STEPS do
        opt:zero_grad()
        if step then
            step(ddp, opt, share(xs[k]), share(ys[k]))
        else
            local loss = F.cross_entropy(ddp(share(xs[k])), share(ys[k]))
            loss:backward()
            opt:step()
            losses[k] = dist.all_reduce(loss:detach():clone(), "mean"):item()
        end
    end
    return net, losses, ddp
end

local function sgd(params) return tide.optim.SGD(params, { lr = 0.1, momentum = 0.9 }) end
local function adam(params) return tide.optim.AdamW(params, { lr = 0.01 }) end

local reference, curve = alone(sgd)
-- One bucket; many (the smallest hold one parameter each, and the first two are ready long before the last).
for _, mb in ipairs { 25, 0.001 } do
    local net, losses = together(sgd, { bucket_cap_mb = mb, first_bucket_mb = math.min(mb, 1) })
    close(list(net), list(reference), 2e-5, "sgd, buckets of " .. mb .. " MiB")
    for k = 1, STEPS do
        assert(math.abs(losses[k] - curve[k]) < 1e-4, "the curve")
    end
end
assert(curve[STEPS] < curve[1])
close(list((together(adam))), list((alone(adam))), 2e-4, "adamw")

-- Compressed gradients are near, and the same on all ranks.
local half = together(sgd, { hook = "fp16" })
close(list(half), list(reference), 5e-3, "fp16")
for _, p in ipairs(list(half)) do
    for _, theirs in ipairs(dist.all_gather(p)) do
        assert(theirs:equal(p), "fp16: ranks have different parameters")
    end
end
close(list((together(sgd, { hook = "bf16" }))), list(reference), 4e-2, "bf16")

-- PowerSGD of gradients that are of rank 1 and multiples of each other is exact; what it leaves out comes later.
local hook = dist.powersgd { rank = 1, start = 1 }
local row = tide.zeros(20 * 30, { device = DEVICE })
local power = { row = row, views = { row:view(20, 30) }, params = { tide.zeros(20, 30, { device = DEVICE }) }, index = 1 }
local outer = tide.linspace(-1, 2, 20):view(20, 1):matmul(tide.linspace(1, 3, 30):view(1, 30)):to(DEVICE)
for _ = 1, 3 do
    row:copy_((outer * (rank + 1)):flatten())
    hook(power)()
    close({ row:view(20, 30) }, { outer * (size + 1) / 2 }, 1e-4, "powersgd")
    row:zero_()
end
local total, sum = tide.randn(20, 30, { generator = tide.Generator(5) }):to(DEVICE), tide.zeros(20, 30, { device = DEVICE })
hook = dist.powersgd { rank = 2, start = 0 }
for _ = 1, 150 do
    row:copy_(total:flatten())
    hook(power)()
    sum:add_(row:view(20, 30))
end
close({ sum / 150 }, { total }, 0.25, "powersgd's error feedback")
local _, powered = together(sgd, { hook = dist.powersgd { start = 2 } })
assert(powered[STEPS] < powered[1], "powersgd trains")

-- The largest elements alone: all of them are the mean; of a tenth what is left out comes later.
local mean, scale = tide.linspace(-1, 1, 600):to(DEVICE), (size + 1) / 2
hook = dist.topk { ratio = 1 }
row:copy_(mean * (rank + 1))
hook(power)()
close({ row }, { mean * scale }, 1e-6, "topk of all")
hook, sum = dist.topk { ratio = 0.1, start = 1 }, tide.zeros(600, { device = DEVICE })
for k = 1, 200 do
    row:copy_(mean * (rank + 1))
    hook(power)()
    assert(k == 1 or row:ne(0):sum():item() <= 60 * size, "topk sends a tenth")
    sum:add_(row)
end
close({ sum / 200 }, { mean * scale }, 0.1, "topk's error feedback")
local _, sparse = together(sgd, { hook = dist.topk { ratio = 0.2, start = 1 }, bucket_cap_mb = 0.001, first_bucket_mb = 0.001 })
assert(sparse[STEPS] < sparse[1], "topk trains")

-- Bytes that the last step's buckets take, by hook.
local function bytes_of(options)
    local profile
    together(sgd, options, function(ddp, opt, x, y)
        profile = tide.profiler.profile(function() F.cross_entropy(ddp(x), y):backward() end)
        opt:step()
    end)
    local bytes = 0
    for _, e in ipairs(profile:events()) do
        bytes = bytes + (e.kind == "collective" and e.name:find "bucket" and e.bytes or 0)
    end
    return bytes
end
local elements = 12 * 40 + 40 + 40 * 30 + 30 + 30 * 3 + 3
assert(bytes_of {} == 4 * elements and bytes_of { hook = "fp16" } == 2 * elements)
assert(bytes_of { hook = dist.topk { ratio = 0.01 } } == 2 * 4 * math.ceil(elements / 100) * size, "topk: values and places of all ranks")

-- Accumulation: halves of the share, the first without exchange.
local net = together(sgd, {}, function(ddp, opt, x, y)
    ddp:no_sync(function() (F.cross_entropy(ddp(x[{ { 1, 2 } }]), y[{ { 1, 2 } }]) / 2):backward() end)
    local loss = F.cross_entropy(ddp(x[{ { 3, 4 } }]), y[{ { 3, 4 } }]) / 2
    loss:backward()
    opt:step()
end)
close(list(net), list(reference), 2e-5, "no_sync")

-- GradScaler and autocast.
local scaler = tide.amp.GradScaler { init_scale = 1024 }
net = together(sgd, {}, function(ddp, opt, x, y)
    local loss = tide.autocast(function() return F.cross_entropy(ddp(x), y) end)
    scaler:scale(loss):backward()
    scaler:step(opt)
    scaler:update()
end)
close(list(net), list(reference), 0.1, "autocast and GradScaler")

-- Gradients lie in the buckets; zero_grad may leave them there.
local _, _, ddp = together(sgd)
local bucket = ddp.buckets[1]
assert(bucket.params[1].grad:data_ptr() == bucket.row:data_ptr(), "gradients are views of the bucket")
assert(#ddp.order == 6 and ddp.rebuilt, "buckets follow the first backward")

-- Unused parameters are named, or left out.
local Two = nn.class "Two"
function Two:init()
    self.used, self.never = nn.Linear(12, 3):to(DEVICE), nn.Linear(12, 3):to(DEVICE)
end
function Two:forward(x) return self.used(x) end
local two = dist.DistributedDataParallel(Two())
F.cross_entropy(two(share(xs[1])), share(ys[1])):backward()
local ok, message = pcall(function() two(share(xs[1])) end)
assert(not ok and message:find("no gradient for never.weight, never.bias", 1, true), message)
tide.manual_seed(3)
two = dist.DistributedDataParallel(Two(), { find_unused_parameters = true })
for k = 1, 3 do
    two:zero_grad()
    F.cross_entropy(two(share(xs[k])), share(ys[k])):backward()
end
local whole = F.cross_entropy(two.module(xs[3]), ys[3])
local expected = tide.autograd.grad(whole, { two.module.used.weight })[1]
close({ two.module.used.weight.grad }, { expected }, 1e-5, "find_unused_parameters")

-- Deterministic mode (deterministic.lua trains in it): the mean over micro-batches, of buckets with fewer elements than ranks as well;
-- what takes no part has a gradient of zero.
local function refused(text, fn, ...)
    local fine, why = pcall(fn, ...)
    assert(not fine and why:find(text, 1, true), why)
end
refused("tide.use_deterministic_algorithms(true) comes first", dist.DistributedDataParallel, Two(), { deterministic = size })
tide.use_deterministic_algorithms(true)
tide.manual_seed(3)
two = dist.DistributedDataParallel(Two(), { deterministic = 2 * size, bucket_cap_mb = 1e-6, first_bucket_mb = 1e-6 })
for step = 1, 2 do
    for k in two:micro_batches() do
        F.cross_entropy(two(xs[step]:narrow(1, 2 * k - 1, 2)), ys[step]:narrow(1, 2 * k - 1, 2)):backward()
    end
end
whole = F.cross_entropy(two.module(xs[2]), ys[2])
expected = tide.autograd.grad(whole, { two.module.used.weight })[1]
close({ two.module.used.weight.grad, two.module.never.weight.grad }, { expected, tide.zeros(3, 12, { device = DEVICE }) }, 1e-6, "deterministic")
refused("training belongs into a loop over ddp:micro_batches()", two, xs[1])
refused("no_sync: not with option deterministic", two.no_sync, two)
refused("join: not with option deterministic", two.join, two, print)
refused("exclude each other", dist.DistributedDataParallel, Two(), { deterministic = size, hook = "fp16" })
refused("one for each of " .. size .. " ranks at least, got 0", dist.DistributedDataParallel, Two(), { deterministic = 0 })
refused("micro_batches: DistributedDataParallel(module, {deterministic = N}) expected", function() dist.DistributedDataParallel(Two()):micro_batches() end)
if size == 1 then
    refused("no backward in micro-batch 1", function() for _ in two:micro_batches() do two(xs[1]) end end)
    refused("a second backward in one micro-batch", function()
        for _ in two:micro_batches() do
            two(xs[1]):sum():backward()
            two.module.never(xs[1]):sum():backward()
            two(xs[1]):sum():backward()
        end
    end)
    refused("topk: option ratio: a number above 0 and up to 1", dist.topk, { ratio = 1.5 })
end

-- Buffers are rank 0's before each forward.
local norm = dist.DistributedDataParallel(nn.Sequential(nn.Linear(12, 3), nn.BatchNorm1d(3)):to(DEVICE))
for k = 1, 3 do
    norm(share(xs[k])):sum():backward()
end
norm(share(xs[4]))
local Mean = norm.module[2].running_mean
local before = dist.all_gather(Mean)
assert(size == 1 or not before[1]:equal(before[size]), "each rank's statistics are its own until the next forward")
norm(share(xs[5])):sum():backward()

-- Different numbers of inputs: rank r has 2 + r of them.
local uneven = dist.DistributedDataParallel(make(1))
local opt = sgd(uneven:parameters())
local steps = 0
uneven:join(function()
    for k = 1, 2 + rank do
        opt:zero_grad()
        F.cross_entropy(uneven(share(xs[k])), share(ys[k])):backward()
        opt:step()
        steps = steps + 1
    end
end)
assert(steps == 2 + rank)
for _, p in ipairs(list(uneven)) do
    for _, theirs in ipairs(dist.all_gather(p)) do
        assert(theirs:equal(p), "join: ranks end with different parameters")
    end
end

-- Parameters that differ in shape are named, on all ranks.
if size > 1 then
    ok, message = pcall(dist.DistributedDataParallel, nn.Linear(4, rank == size - 1 and 3 or 2))
    assert((not ok) and message:find("parameter 1 is weight (", 1, true), message)
end
print("rank " .. rank .. ": ok")
