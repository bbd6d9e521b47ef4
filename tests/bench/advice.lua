-- advice.lua: the slow programs of notebooks/advice beside the mended ones: what advice promised and what came.
--
--     tide tests/bench/advice.lua [KIND ...]
--
-- A line for each kind: its share of the wall time, the gain that was promised for that share, what both together say
-- the whole program gains, and the gain that came: the time of the slow program over that of the mended one.
local folder = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/../../notebooks/advice/"
local wanted = #arg > 0 and { table.unpack(arg) } or tide._require("advice.collect").kinds

local function quietly(path)
    local print_as_it_was, script = print, arg[0]
    arg[0], print = path, function() end
    local ok, message = pcall(dofile, path)
    arg[0], print = script, print_as_it_was
    assert(ok, message)
end

-- The best of three runs, after one that warms up.
local function seconds(path)
    local threads, best = tide.get_num_threads(), math.huge
    for k = 0, 3 do
        collectgarbage()
        local start = tide.time()
        quietly(path)
        best = k > 0 and math.min(best, tide.time() - start) or best
        tide.set_num_threads(threads)
    end
    return best
end

local function advice_of(path, kind)
    local threads = tide.get_num_threads()
    local advice = tide.profiler.profile { quietly, path, with_stack = true }:advice()
    tide.set_num_threads(threads)
    for _, item in ipairs(advice) do
        if item.kind == kind then
            return item
        end
    end
end

print(("%-18s %7s %10s %10s %10s  %s"):format("kind", "share", "promised", "in all", "came", "how"))
for _, kind in ipairs(wanted) do
    local slow, mended = folder .. kind .. ".lua", folder .. kind .. "_mended.lua"
    local item, came = advice_of(slow, kind), seconds(slow) / seconds(mended)
    if item then
        print(("%-18s %5.0f %% %9.1f× %9.1f× %9.1f×  %s"):format(kind, 100 * item.share, item.gain,
            1 / (1 - item.share + item.share / item.gain), came, item.measured and "measured" or "estimated"))
    else
        print(("%-18s %7s %10s %10s %9.1f×  no advice"):format(kind, "-", "-", "-", came))
    end
end
