-- A model of eight gigabytes, were its elements there, trained on shapes alone.
local dist, nn = tide.distributed, tide.nn
dist.init()
local net = tide.set_default_device("meta", function()
    return nn.Sequential(nn.Linear(32768, 32768), nn.ReLU(), nn.Linear(32768, 32768), nn.ReLU(), nn.Linear(32768, 10))
end)
local model = dist.DistributedDataParallel(net)
local optimizer = tide.optim.AdamW(model:parameters())
for _ = 1, 2 do
    optimizer:zero_grad()
    model(tide.empty(16, 32768, { device = "meta" })):sum():backward()
    optimizer:step()
end
