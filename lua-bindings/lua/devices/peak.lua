-- devices/peak.lua: what `tide --peak` prints: the machine's peaks, measured anew and remembered.
local tide = ...

return function()
    local peak = tide.profiler.peak { measure = true }
    return { ("float32 products: %.1f GFLOP/s"):format(peak.flops / 1e9), ("memory: %.1f GB/s"):format(peak.bytes / 1e9),
        ("threads: %d"):format(peak.threads) }
end
