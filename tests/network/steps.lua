-- steps.lua: a job of steps of DistributedDataParallel whose backward takes a known time: square layers, each of which sleeps.
-- Rank 0 prints what a step took (µs, the median), then what it is predicted to take elsewhere.
-- Arguments: layers, their width, ms of backward of each, MiB of a bucket, steps, then what to predict, each "ranks:MiB of a
-- bucket", with ":latency in µs:bytes a second" where other links are meant than those of this job.
local dist, nn = tide.distributed, tide.nn
dist.init { timeout = 120 }

local function numbers_in(text)
    local numbers = {}
    for number in text:gmatch "[^:]+" do
        numbers[#numbers + 1] = tonumber(number)
    end
    return table.unpack(numbers)
end
local layers, width, ms, cap, steps = numbers_in(table.concat(arg, ":", 1, 5))

local Net = nn.class "Net"
function Net:init()
    self.layers = nn.ModuleList {}
    for _ = 1, layers do
        self.layers:append(nn.Linear(width, width, { bias = false }))
    end
end
function Net:forward(x)
    for _, layer in ipairs(self.layers) do
        x = layer(x)
        x:register_hook(function() tide.sleep(ms / 1e3) end)
    end
    return x
end

local net = dist.DistributedDataParallel(Net(), { bucket_cap_mb = cap, first_bucket_mb = math.min(cap, 1) })
local optimizer = tide.optim.SGD(net:parameters(), { lr = 1e-3 })
local x, took = tide.randn(1, width), {}
local function step()
    local before = tide.time()
    optimizer:zero_grad()
    net(x):mean():backward()
    optimizer:step()
    return (tide.time() - before) * 1e6
end
for _ = 1, 2 do -- connections are made, buckets follow the first backward
    step()
end
local profile = tide.profiler.profile(function()
    for k = 1, steps do
        took[k] = step()
    end
end)
table.sort(took)
if dist.rank() == 0 then
    print(("measured\t%.0f"):format(took[(steps + 1) // 2]))
    local found = dist.simulate(profile, { model = net })
    for k = 6, #arg do
        local ranks, most, latency, bandwidth = numbers_in(arg[k])
        local row = dist.simulate({ ranks = ranks, rest_us = found.step.rest_us, buckets = found.step.buckets }, {
            links = latency and { latency_us = latency, bandwidth = bandwidth } or found.links,
            model = net, bucket_cap_mb = { most }, first_bucket_mb = math.min(most, 1) }).caps[1]
        print(("predicted\t%s\t%.0f"):format(arg[k], row.step_us))
    end
end
