-- recording.lua: what recording costs: adds of one element without a profile and within one. The ratio of the two is
-- the price; recording.py has the same cases in PyTorch. The cases are timed in turns, in short stretches, so that what
-- else the machine does is in none of the least times; what reading a recording costs afterwards is not counted.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local ADDS, STRETCH, ROUNDS = 100000, 1000, 15

local a, b = tide.ones(1), tide.ones(1)
local function adds(n)
    for _ = 1, n do
        local _ = a + b
    end
end

-- The least time of a stretch, and all of them together.
local function stretches()
    local least, sum = math.huge, 0
    for _ = 1, ADDS // STRETCH do
        local start = tide.time()
        adds(STRETCH)
        local seconds = tide.time() - start
        least, sum = math.min(least, seconds), sum + seconds
    end
    return least * (ADDS // STRETCH), sum
end

local function recorded(options)
    return function()
        local _ <close> = tide.profiler.profile(options)
        return stretches()
    end
end

local cases = { { "recording_off", stretches }, { "recording_on", recorded {} }, { "recording_lines", recorded { with_stack = true } } }
local before = tide.get_num_threads()
tide.set_num_threads(1)
local seen = {}
for _ = 1, ROUNDS do
    for k, case in ipairs(cases) do
        if bench.chosen(case[1]) then
            local least, sum = case[2]()
            seen[k] = seen[k] or { least = math.huge, sums = {} }
            seen[k].least = math.min(seen[k].least, least)
            table.insert(seen[k].sums, sum)
            collectgarbage()
        end
    end
end
for k, case in ipairs(cases) do
    if seen[k] then
        table.sort(seen[k].sums)
        print(('{"case": "%s_100k_adds", "median_s": %.4g, "min_s": %.4g, "iqr_s": %.4g, "threads": 1, "note": ""}'):format(case[1],
            seen[k].sums[(ROUNDS + 1) // 2], seen[k].least, seen[k].sums[12] - seen[k].sums[4]))
    end
end
tide.set_num_threads(before)
