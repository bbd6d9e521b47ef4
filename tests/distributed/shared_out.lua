-- shared_out.lua [BACKEND DEVICE]: a job that shares out optimizer states (ZeRO), the weights of Linears (tensor parallel) and the stages of a
-- network (pipelines), beside one process that has all of them.
local dist, nn, F = tide.distributed, tide.nn, tide.nn.functional
dist.init { timeout = 30, backend = arg[1] }
local rank, size = dist.rank(), dist.size()
local DEVICE <const> = arg[2] or "cpu"

local function close(a, b, tolerance, what)
    assert(tostring(a.shape) == tostring(b.shape), what .. ": shapes")
    local off = a:numel() > 0 and (a - b):abs():max():item() or 0
    assert(off <= tolerance, string.format("%s: off by %g (rank %d)", what, off, rank))
end

local function same(a, b, what) assert(tide.equal(a, b), string.format("%s: not the same bits (rank %d)", what, rank)) end

local function refuses(text, fn, ...)
    local ok, message = pcall(fn, ...)
    assert(not ok and string.find(message, text, 1, true), "expected an error with '" .. text .. "', got " .. tostring(message))
end

-- ---- ZeRO ----

local function net_of(seed)
    tide.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 11), nn.Tanh(), nn.Linear(11, 7), nn.Tanh(), nn.Linear(7, 3)):to(DEVICE)
end

local function train(net, opt, first, last)
    for k = first, last do
        tide.manual_seed(k)
        local x, y = tide.randn(8, 6):to(DEVICE), tide.randint(1, 3, { 8 }):to(DEVICE)
        opt:zero_grad()
        F.cross_entropy(net(x), y):backward()
        opt:step()
    end
end

local Zero = dist.optim.ZeroRedundancyOptimizer
for _, case in ipairs { { tide.optim.AdamW, { lr = 0.01 } }, { tide.optim.SGD, { lr = 0.1, momentum = 0.9 } }, { tide.optim.Adagrad, { lr = 0.05 } } } do
    local a, b, c = net_of(1), net_of(1), net_of(1)
    local plain, shared = case[1](a:parameters(), case[2]), Zero(b:parameters(), case[1], case[2])
    local plan = { tide.optim.lr_scheduler.StepLR(plain, 2), tide.optim.lr_scheduler.StepLR(shared, 2) }
    for k = 1, 5 do
        train(a, plain, k, k)
        train(b, shared, k, k)
        plan[1]:step()
        plan[2]:step()
    end
    for k, p in ipairs(a:parameters()) do
        same(p, b:parameters()[k], tostring(shared.__name))
    end
    local held, total, largest = 0, 0, 0
    for _, p in ipairs(b:parameters()) do
        held = held + (shared.state[p] and p:numel() or 0)
        total, largest = total + p:numel(), math.max(largest, p:numel())
    end
    assert(held > 0 and held <= (total - largest) / size + largest, "a rank's share of the states: " .. held)
    assert(dist.all_reduce(tide.tensor { held }):item() == total, "each state is one rank's")

    -- The states of all come to one rank, go into a plain optimizer, and back into shards.
    refuses("consolidate_state_dict", shared.state_dict, shared)
    shared:consolidate_state_dict(size - 1)
    local dict = rank == size - 1 and shared:state_dict() or nil
    dict = dist.broadcast_object(dict, size - 1)
    local resumed, again = case[1](a:parameters(), case[2]), Zero(c:parameters(), case[1], case[2])
    c:load_state_dict(b:state_dict())
    resumed:load_state_dict(dict)
    again:load_state_dict(dict)
    train(a, resumed, 6, 8)
    train(b, shared, 6, 8)
    train(c, again, 6, 8)
    for k, p in ipairs(a:parameters()) do
        same(p, b:parameters()[k], "after consolidation")
        same(p, c:parameters()[k], "after loading")
    end
end
refuses("can't be shared out", Zero, net_of(1):parameters(), tide.optim.LBFGS)
refuses("a class such as tide.optim.AdamW expected", Zero, net_of(1):parameters(), "AdamW")
local groups = net_of(2)
local opt = Zero({ { params = groups[1]:parameters(), lr = 0.5 } }, tide.optim.SGD, { lr = 0.1 })
opt:add_param_group { params = groups[3]:parameters() }
assert(opt.param_groups[1].lr == 0.5 and opt.param_groups[2].lr == 0.1)
train(groups, opt, 1, 2)

-- ---- tensor parallel ----

local parallel = dist.tensor.parallel

local function pair(seed)
    tide.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 12), nn.GELU(), nn.Linear(12, 4)):to(DEVICE)
end

for _, plan in ipairs {
    { ["1"] = parallel.ColwiseParallel(), ["3"] = parallel.RowwiseParallel() },
    { ["1"] = parallel.ColwiseParallel { output_layouts = "replicate" } },
    { ["3"] = parallel.RowwiseParallel { input_layouts = "replicate" } },
} do
    local whole, split = pair(3), pair(rank == 0 and 3 or 30 + rank) -- rank 0's weights are everybody's
    for _, p in ipairs(split[2].training and split:parameters() or {}) do
        dist.broadcast(p:detach(), 0)
    end
    assert(parallel.parallelize_module(split, plan) == split)
    local x = tide.randn(7, 5, { generator = tide.Generator(4) }):to(DEVICE):requires_grad_()
    local x2 = x:detach():requires_grad_()
    local a, b = whole(x), split(x2)
    close(a, b, 1e-5, "split Linears")
    a:pow(2):sum():backward()
    b:pow(2):sum():backward()
    close(x.grad, x2.grad, 1e-4, "the input's gradient")
    for _, at in ipairs { 1, 3 } do
        local full, part = whole[at], split[at]
        local name = tostring(part.__name)
        local dim = name == "ColwiseLinear" and 1 or name == "RowwiseLinear" and 2 or nil
        local want = full.weight.grad
        if dim then
            local most = (want:size(dim) + size - 1) // size
            want = want:narrow(dim, rank * most + 1, math.min(most, want:size(dim) - rank * most))
            assert(size == 1 or part.weight:numel() < full.weight:numel())
        end
        close(want, part.weight.grad, 1e-4, name .. "'s gradient")
        assert(full.bias.grad:numel() == part.bias.grad:numel() or name == "ColwiseLinear")
        if name ~= "ColwiseLinear" then
            close(full.bias.grad, part.bias.grad, 1e-4, name .. "'s bias")
        end
    end
end
refuses("there is no module 'nine'", parallel.parallelize_module, pair(1), { nine = parallel.ColwiseParallel() })
refuses("'2' is GELU: a Linear expected", parallel.parallelize_module, pair(1), { ["2"] = parallel.ColwiseParallel() })
refuses("ColwiseParallel{} or RowwiseParallel{} expected", parallel.parallelize_module, pair(1), { ["1"] = 3 })
if size > 1 then
    refuses("leave nothing for some of", parallel.parallelize_module, nn.Linear(1, 8), parallel.RowwiseParallel())
end
local stack = nn.ModuleList { pair(1), pair(2) }
parallel.parallelize_module(stack, { ["*.1"] = parallel.ColwiseParallel() })
assert(stack[2][1].__name == "ColwiseLinear" and nn.is(stack[1][3], nn.Linear))

-- ---- pipelines over the ranks ----

local pipelining = dist.pipelining
local WIDTH <const>, MICRO <const> = 6, 5

local function layer(s)
    tide.manual_seed(100 + s)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()):to(DEVICE)
end

local function mse(y, target) return F.mse_loss(y, target) end

for _, name in ipairs { "ScheduleGPipe", "Schedule1F1B" } do
    local mine = layer(rank + 1)
    local stage = pipelining.PipelineStage(mine, rank + 1, size)
    local schedule = pipelining[name](stage, MICRO, { loss_fn = mse })
    local all = {}
    for s = 1, size do
        all[s] = layer(s)
    end
    for step = 1, 3 do
        tide.manual_seed(step)
        local rows = step == 2 and 14 or 10 -- 14: the last has fewer rows
        local x, target = tide.randn(rows, WIDTH):to(DEVICE), tide.randn(rows, WIDTH):to(DEVICE)
        local losses, y = {}, nil
        if rank == 0 then
            y = schedule:step(x, { target = target, losses = losses })
        else
            y = schedule:step { target = target, losses = losses }
        end
        local expected, parts = {}, {}
        for m, part in ipairs(x:chunk(MICRO)) do
            for s = 1, size do
                part = all[s](part)
            end
            parts[m] = part:detach()
            expected[m] = mse(part, target:chunk(MICRO)[m])
            local loss = expected[m] / MICRO
            loss:backward()
        end
        for k, p in ipairs(mine:parameters()) do
            same(p.grad, all[rank + 1]:parameters()[k].grad, name .. "'s gradient")
        end
        if rank == size - 1 then
            same(y, tide.cat(parts), name .. "'s output")
            for m, loss in ipairs(expected) do
                same(losses[m], loss:detach(), name .. "'s loss")
            end
        else
            assert(y == nil and #losses == 0)
        end
        local z
        if rank == 0 then
            z = schedule:eval(x)
        else
            z = schedule:eval()
        end
        assert((z ~= nil) == (rank == size - 1) and (z == nil or tide.equal(z, tide.cat(parts))))
    end
end
if size > 1 then
    refuses("is rank 0's of as many", pipelining.ScheduleGPipe, pipelining.PipelineStage(layer(1), 1, size + 1), 2)
end

-- Several tensors between stages, of which one has no gradient, and a result that nobody uses.
local Two = nn.class "Two"
function Two:init() self.layer = nn.Linear(WIDTH, WIDTH) end
function Two:forward(x, count, _) return self.layer(x), (count or tide.zeros(x:size(1), { dtype = tide.int64, device = x.device })) + 1, x * 2 end
tide.manual_seed(7)
local two = Two():to(DEVICE)
local schedule = pipelining.Schedule1F1B(pipelining.PipelineStage(two, rank + 1, size), 2, { loss_fn = function(y) return y:pow(2):mean() end })
local y, count
if rank == 0 then
    y, count = schedule:step(tide.ones(4, WIDTH, { device = DEVICE }))
else
    y, count = schedule:step()
end
assert(two.layer.weight.grad:abs():sum():item() > 0)
if rank == size - 1 then
    assert(tostring(y.shape) == "(4, 6)" and count:eq(size):all():item())
end

-- Two pipelines beside one another, whose stages exchange gradients: DistributedDataParallel over groups.
if size == 4 then
    local function group_of(lists)
        local mine
        for _, ranks in ipairs(lists) do
            local group = dist.new_group(ranks)
            for _, r in ipairs(ranks) do
                mine = r == rank and group or mine
            end
        end
        return mine
    end
    local pipe, peers = group_of { { 0, 1 }, { 2, 3 } }, group_of { { 0, 2 }, { 1, 3 } }
    local mine = layer(rank % 2 + 1)
    local ddp = dist.DistributedDataParallel(mine, { process_group = peers })
    local grid = pipelining.Schedule1F1B(pipelining.PipelineStage(ddp, rank % 2 + 1, 2, { group = pipe }), 2, { loss_fn = mse })
    tide.manual_seed(9)
    local x, target = tide.randn(8, WIDTH):to(DEVICE), tide.randn(8, WIDTH):to(DEVICE)
    local share = rank // 2
    for _ = 1, 2 do
        mine:zero_grad()
        local part, goal = x:narrow(1, 4 * share + 1, 4), target:narrow(1, 4 * share + 1, 4)
        if rank % 2 == 0 then
            grid:step(part)
        else
            grid:step { target = goal }
        end
        local a, b = layer(1), layer(2)
        mse(b(a(x)), target):backward()
        local whole = rank % 2 == 0 and a or b
        for k, p in ipairs(mine:parameters()) do
            close(p.grad, whole:parameters()[k].grad, 1e-6, "pipelines beside one another")
        end
    end
end

print("rank " .. rank .. ": ok")
