-- busy.lua: each step of training a small network of convolutions by itself, in a row, as somebody waits for it: {"case", "threads",
-- "median_s", "mean_s", "p90_s"}, the last what nine of ten steps take at most. busy_table.py runs it beside processes that keep processors
-- busy; busy.py is the same in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "../bench.lua")
local models = loadfile(here .. "../models.lua")(bench)
local nn = tide.nn
local WARM <const>, STEPS <const> = bench.size(50, 1), bench.size(300, 3)

local width = bench.size(32, 4)
local net = models.fill(nn.Sequential(nn.Conv2d(1, width, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, { padding = 1 }),
    nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(98 * width, 128), nn.ReLU(), nn.Linear(128, 10)))
local step = models.step(net, bench.uniform { 8, 1, 28, 28 }, bench.ints({ 8 }, 1, 11))
for _ = 1, WARM do
    step()
end
local times, sum = {}, 0
for k = 1, STEPS do
    local start = tide.time()
    step()
    times[k] = tide.time() - start
    sum = sum + times[k]
end
table.sort(times)
print(('{"case": "conv_train_b8", "threads": %d, "median_s": %.4g, "mean_s": %.4g, "p90_s": %.4g}'):format(tide.get_num_threads(),
    times[(STEPS + 1) // 2], sum / STEPS, times[(9 * STEPS + 9) // 10]))
