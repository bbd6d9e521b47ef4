-- recording.lua: what recording costs: adds of one element without a profile and within one. The ratio of the two is
-- the price; recording.py has the same cases in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local ADDS = 100000

local a, b = tide.ones(1), tide.ones(1)
local function adds()
    for _ = 1, ADDS do
        local _ = a + b
    end
end

bench.case("recording_off_100k_adds", adds, { threads = 1 })
bench.case("recording_on_100k_adds", function() tide.profiler.profile(adds) end, { threads = 1 })
bench.case("recording_lines_100k_adds", function() tide.profiler.profile { adds, with_stack = true } end, { threads = 1 })
