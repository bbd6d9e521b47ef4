-- devices/peak.lua: what `tide --peak` prints: the machine's peaks, measured anew and remembered.
local tide = ...

return function()
    local peak = tide.profiler.peak { measure = true }
    return { string.format("float32 products: %.1f GFLOP/s", peak.flops / 1e9), string.format("memory: %.1f GB/s", peak.bytes / 1e9),
        string.format("threads: %d", peak.threads) }
end
