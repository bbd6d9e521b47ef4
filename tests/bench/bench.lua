-- bench.lua: runs cases and prints one JSON object a line: {"case", "median_s", "iqr_s", "threads", "note"}.
--
--     local bench = dofile(here .. "bench.lua")
--     bench.case("add 1", function() local c = a + b end)
--
-- A case runs in batches long enough for the clock; the median and the interquartile range are over
-- batches. Arguments of the script that names a case's beginning choose cases.
local bench = {}

local MIN_BATCH, BATCHES = 0.02, 15

-- Do the script's arguments choose this case?
function bench.chosen(name)
    if not arg or #arg == 0 then
        return true
    end
    for _, prefix in ipairs(arg) do
        if name:sub(1, #prefix) == prefix then
            return true
        end
    end
    return false
end

local function time_batch(fn, loops)
    local start = tide.time()
    for _ = 1, loops do
        fn()
    end
    return tide.time() - start
end

-- options.note: text; options.threads: set for this case alone.
function bench.case(name, fn, options)
    if not bench.chosen(name) then
        return
    end
    options = options or {}
    local before = tide.get_num_threads()
    if options.threads then
        tide.set_num_threads(options.threads)
    end
    local loops = 1
    while time_batch(fn, loops) < MIN_BATCH do
        loops = loops * 2
    end
    local times = {}
    for k = 1, BATCHES do
        times[k] = time_batch(fn, loops) / loops
    end
    table.sort(times)
    print(('{"case": "%s", "median_s": %.4g, "iqr_s": %.4g, "threads": %d, "note": "%s"}'):format(name,
        times[(BATCHES + 1) // 2], times[12] - times[4], tide.get_num_threads(), options.note or ""))
    io.stdout:flush()
    tide.set_num_threads(before)
end

return bench
