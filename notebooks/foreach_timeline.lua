-- foreach_timeline.lua: why a loop over tensors starves the machine and tide.foreach does not: the two timelines.
--
--     tide notebooks/foreach_timeline.lua [TRACE.json]
--
-- Adds 512 tensors of 1,000 floats to 512 others, one call each and in one call, prints both pictures and the share of
-- the time that kernels work; writes both as a Chrome trace where a path is given.
local tide = require "tide"
local profiler = tide.profiler

local COUNT, SIZE = 512, 1000
local params, grads = {}, {}
for k = 1, COUNT do
    params[k], grads[k] = tide.zeros(SIZE), tide.ones(SIZE)
end

local function loop()
    for k = 1, COUNT do
        params[k]:add_(grads[k])
    end
end

local function foreach()
    tide.foreach.add_(params, grads)
end

-- The share of its time that kernels take.
local function busy(profile)
    local sum, first, last = 0, math.huge, 0
    for _, e in ipairs(profile:events()) do
        first, last = math.min(first, e.start_us), math.max(last, e.start_us + e.duration_us)
        sum = sum + (e.kind == "kernel" and e.duration_us or 0)
    end
    return sum / (last - first), last - first
end

for _, case in ipairs { { "a loop", loop }, { "foreach", foreach } } do
    case[2]() -- memory and kernels are warm
    local profile = profiler.profile { case[2], kernels = true }
    local share, us = busy(profile)
    print(("%s: %.0f µs, kernels at work %.0f %% of it"):format(case[1], us, 100 * share))
    print(profile:timeline { width = 80 })
    print()
end

local path = arg and arg[1]
if path then
    profiler.profile { function()
        profiler.record("a loop", loop)
        profiler.record("foreach", foreach)
    end, kernels = true }:export_chrome_trace(path)
    print("wrote " .. path)
end
