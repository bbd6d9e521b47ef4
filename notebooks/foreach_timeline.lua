-- foreach_timeline.lua: why a loop over tensors starves the machine and tide.foreach does not: the two timelines.
--
--     tide notebooks/foreach_timeline.lua [TRACE.json]
--
-- Adds 512 tensors of 1,000 floats to 512 others, one call each and in one call, prints both pictures and the share of
-- the time that kernels work; where there is a CUDA device on it as well, with its own time. Writes all as a Chrome
-- trace where a path is given.
local tide = require "tide"
local profiler = tide.profiler

local COUNT, SIZE = 512, 1000
local params, grads = {}, {}

local function fill(device)
    for k = 1, COUNT do
        params[k], grads[k] = tide.zeros(SIZE, { device = device }), tide.ones(SIZE, { device = device })
    end
end

local function loop()
    for k = 1, COUNT do
        params[k]:add_(grads[k])
    end
end

local function foreach()
    tide.foreach.add_(params, grads)
end

-- The share of its time that kernels take, the host's or a device's.
local function busy(profile, kind)
    local sum, first, last = 0, math.huge, 0
    for _, e in ipairs(profile:events()) do
        first, last = math.min(first, e.start_us), math.max(last, e.start_us + e.duration_us)
        sum = sum + (e.kind == kind and e.duration_us or 0)
    end
    return sum / (last - first), last - first
end

local cases = { { "a loop", loop }, { "foreach", foreach } }
local devices = { { "cpu", "kernel", "" } }
if tide.cuda.is_available() then
    devices[2] = { "cuda", "device", " on " .. tide.cuda.get_device_name() }
end
for _, device in ipairs(devices) do
    fill(device[1])
    for _, case in ipairs(cases) do
        case[2]() -- memory and kernels are warm
        local profile = profiler.profile { case[2], kernels = true }
        local share, us = busy(profile, device[2])
        print(("%s%s: %.0f µs, kernels at work %.0f %% of it"):format(case[1], device[3], us, 100 * share))
        print(profile:timeline { width = 80 })
        print()
    end
end

local path = arg and arg[1]
if path then
    profiler.profile { function()
        for _, case in ipairs(cases) do
            profiler.record(case[1], case[2])
        end
    end, kernels = true }:export_chrome_trace(path)
    print("wrote " .. path)
end
