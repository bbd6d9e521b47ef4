-- Training with accumulation, unused parameters, compressed gradients, and inputs of different numbers.
local dist, nn = tide.distributed, tide.nn
dist.init()
for _, hook in ipairs { "none", "fp16", dist.powersgd { start = 1 } } do
    local model = dist.DistributedDataParallel(nn.Sequential(nn.Linear(40, 30), nn.ReLU(), nn.BatchNorm1d(30), nn.Linear(30, 2)),
        { hook = hook, bucket_cap_mb = 0.001, first_bucket_mb = 0.001, find_unused_parameters = true })
    local optimizer = tide.optim.SGD(model:parameters(), { lr = 0.1 })
    model:no_sync(function() model(tide.randn(4, 40)):sum():backward() end)
    model:join(function()
        for _ = 1, 2 + dist.rank() % 3 do
            optimizer:zero_grad()
            model(tide.randn(4, 40)):sum():backward()
            optimizer:step()
        end
    end)
end
