-- Parameters that take no part in a step are told apart without elements; each rank leaves out another.
local dist, nn = tide.distributed, tide.nn
dist.init()
local net = nn.class "Net"
function net:init()
    self.parts = nn.ModuleList { nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8) }
end
function net:forward(x, left_out)
    for k, part in ipairs(self.parts) do
        x = k == left_out and x or part(x)
    end
    return x
end
local model = dist.DistributedDataParallel(tide.set_default_device("meta", function() return net() end), { find_unused_parameters = true })
for k = 1, 4 do
    model(tide.empty(2, 8, { device = "meta" }), (k + dist.rank()) % 3 + 1):sum():backward()
end
