-- profile_step.lua: one training step of the digits network under the profiler.
--
--     tide notebooks/profile_step.lua step.json
--
-- Prints what the step spent its time on and writes it as a Chrome trace, which https://ui.perfetto.dev
-- and chrome://tracing open.
local tide = require "tide"
local nn, optim = tide.nn, tide.optim

local here = (arg and arg[0] or "notebooks/profile_step.lua"):match("^(.*)/[^/]*$") or "."
local path = arg and arg[1]
if not path then
    io.stderr:write("usage: tide notebooks/profile_step.lua TRACE.json\n")
    os.exit(2)
end

tide.manual_seed(0)
local model = nn.Sequential(
    nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(576, 120), nn.ReLU(),
    nn.Linear(120, 84), nn.ReLU(),
    nn.Linear(84, 10))
local criterion = nn.CrossEntropyLoss()
local optimizer = optim.SGD(model:parameters(), { lr = 0.05, momentum = 0.9 })
local rows = tide.io.read_csv(here .. "/data/digits.csv")[{ { 1, 32 } }]
local images = tide.interpolate(rows[":, 1:64"]:reshape(-1, 1, 8, 8) / 16, { scale_factor = 4 })
local labels = rows[":, 65"]:long() + 1

local function step()
    optimizer:zero_grad()
    local loss
    tide.profiler.record("forward", function() loss = criterion(model(images), labels) end)
    tide.profiler.record("backward", function() loss:backward() end)
    tide.profiler.record("optimizer", function() optimizer:step() end)
end

step() -- the first step makes kernels and momentum buffers
local profile = tide.profiler.profile(step)
print(profile)
profile:export_chrome_trace(path)
print(("wrote %s"):format(path))
