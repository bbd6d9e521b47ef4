-- deterministic.lua FIRST LAST [CHECKPOINT [BACKEND DEVICE]]: trains digits and a residual block, with dropout and running statistics, for epochs FIRST to
-- LAST in deterministic mode; begins with the checkpoint unless FIRST is 1, and leaves one. Rank 0 prints the bits of all that came of it.
local dist, nn, F = tide.distributed, tide.nn, tide.nn.functional
local FIRST <const>, LAST <const>, CHECKPOINT <const> = tonumber(arg[1]), tonumber(arg[2]), arg[3]
local MICRO_BATCHES <const>, SIZE <const> = 6, 4
package.path = string.match(arg[0], "^(.*/)tests/") .. "notebooks/?.lua;" .. package.path
local digits = require "data.digits" { seed = 0 }
dist.init { timeout = 60, backend = arg[4] }
local DEVICE <const> = arg[5] or "cpu"
tide.use_deterministic_algorithms(true)

local Block = nn.class "Block"
function Block:init(n)
    self.conv1, self.norm1 = nn.Conv2d(n, n, 3, { padding = 1, bias = false }), nn.BatchNorm2d(n)
    self.conv2, self.norm2 = nn.Conv2d(n, n, 3, { padding = 1, bias = false }), nn.BatchNorm2d(n, { momentum = 0.3 })
    self:register_buffer("mask", tide.tensor { 0, -math.huge })
end
function Block:forward(x)
    return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + x)
end

tide.manual_seed(1 + dist.rank())
local nets = {
    digits = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(6 * 15 * 15, 10)),
    resnet = nn.Sequential(nn.Conv2d(1, 8, 3, { stride = 2 }), Block(8), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 10)),
}

-- A number that any bit of the tensor changes.
local function digest(x)
    local sum = 0
    for _, value in ipairs(x:detach():flatten():tolist()) do
        sum = sum * 31 + string.unpack("<i8", string.pack("<d", value))
    end
    return sum
end

local function train(name)
    local net = nets[name]:to(DEVICE)
    local ddp = dist.DistributedDataParallel(net, { deterministic = MICRO_BATCHES, bucket_cap_mb = 0.005, first_bucket_mb = 0.0005 })
    local opt = tide.optim.SGD(net:parameters(), { lr = 0.05, momentum = 0.9 })
    if FIRST > 1 then
        local saved = tide.load(CHECKPOINT .. name)
        net:load_state_dict(saved.net)
        opt:load_state_dict(saved.opt)
    end
    local order = tide.data.RandomSampler(5 * MICRO_BATCHES * SIZE, { seed = 3 })
    local sampler = tide.data.MicroBatchSampler(order, SIZE,
        { micro_batches = MICRO_BATCHES, num_replicas = dist.size(), rank = dist.rank() })
    local loader = tide.data.DataLoader(tide.data.TensorDataset(digits.train_x, digits.train_y), { batch_sampler = sampler })
    local losses = {}
    for epoch = FIRST, LAST do
        loader:set_epoch(epoch)
        local batches = loader:iter()
        for step = 1, 5 do
            local own = {}
            for _ in ddp:micro_batches(10 * epoch + step) do
                local x, y = batches()
                local loss = F.cross_entropy(ddp(x:to(DEVICE)), y:to(DEVICE))
                loss:backward()
                own[#own + 1] = loss:item()
            end
            opt:step()
            for _, theirs in ipairs(dist.all_gather_object(own)) do
                table.move(theirs, 1, #theirs, #losses + 1, losses)
            end
        end
    end
    if dist.rank() == 0 then
        for key, x in net:named_parameters() do
            print(name, key, digest(x), digest(x.grad))
        end
        for key, x in net:named_buffers() do
            print(name, key, x:is_floating_point() and digest(x) or x:item())
        end
        print(name, "losses of the last epoch", digest(tide.tensor(table.move(losses, #losses - 5 * MICRO_BATCHES + 1, #losses, 1, {}))))
        tide.save({ net = net:state_dict(), opt = opt:state_dict() }, CHECKPOINT .. name)
    end
    for _, x in net:named_parameters() do
        for _, theirs in ipairs(dist.all_gather(x:detach())) do
            assert(theirs:equal(x), "ranks have different parameters")
        end
    end
end
train "digits"
train "resnet"
