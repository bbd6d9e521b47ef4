-- bench.lua: runs cases and prints one JSON object a line: {"case", "median_s", "min_s", "iqr_s",
-- "threads", "note", "digest"}. bench.py is the same for PyTorch.
--
--     local bench = dofile(here .. "bench.lua")
--     bench.case("add 1", function() return a + b end)
--
-- A case runs in batches long enough for the clock; the median and the interquartile range are over
-- batches. Arguments of the script choose cases: the beginning of a name, or `=NAME` for just that one.
-- What a case returns is dropped as a script's loop drops it: nothing closes it, the collector does.
--
-- With TIDE_BENCH_TINY set sizes are tiny and batches few, to see that everything runs. With TIDE_BENCH_TURNS
-- set a case says {"ready": NAME} and measures once for each line "go" that it is given, until another comes.
warn("@off") -- what autocast gains on a machine is what a table shows
local bench = { tiny = os.getenv "TIDE_BENCH_TINY" ~= nil }

local TURNS = os.getenv "TIDE_BENCH_TURNS" ~= nil
local MIN_BATCH = bench.tiny and 0 or 0.02
local BATCHES = bench.tiny and 1 or TURNS and 5 or 15
local LONG, FEW = 0.1, 3 -- a call of so many seconds is repeated less

-- ---- which cases ----

-- Do the script's arguments choose this case?
function bench.chosen(name)
    if not arg or #arg == 0 then
        return true
    end
    for _, wanted in ipairs(arg) do
        if wanted == "=" .. name or name:sub(1, #wanted) == wanted then
            return true
        end
    end
    return false
end

-- A size, or no more than `little` of it where all is tiny.
function bench.size(n, little)
    return bench.tiny and math.min(n, little or 16) or n
end

-- ---- numbers that bench.py makes too ----

local seed = 0

local function numel(shape)
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    return n
end

-- Integers below 2^31 that look drawn: each is its place, multiplied and folded; another seed each time.
local function scattered(shape)
    seed = seed + 1
    local h = tide.arange(0, numel(shape)) + seed * 1000003
    h = (h * 1103515245 + 12345) % (1 << 31)
    h = h:bitwise_xor(h:bitwise_right_shift(15))
    h = (h * 1812433253) % (1 << 31)
    return h:bitwise_xor(h:bitwise_right_shift(13)):reshape(shape)
end

-- Operands of the next cases have the same numbers whatever was made before.
function bench.seed(n)
    seed = n
end

-- Numbers spread evenly from low to high (-1 to 1).
function bench.uniform(shape, low, high)
    low, high = low or -1, high or 1
    return (scattered(shape):to(tide.float64) / (1 << 31) * (high - low) + low):to(tide.float32)
end

-- Integers from low to below high.
function bench.ints(shape, low, high)
    return scattered(shape) % (high - low) + low
end

-- ---- what a result is ----

local function sums(x, place)
    x = x:detach():to(tide.float64):contiguous():reshape(-1)
    local weights = (tide.arange(0, x:numel()) * 7919 % 1009):to(tide.float64) / 1009
    return { x:sum():item(), x:abs():sum():item(), (x * x):sum():item(), place * (x * weights):sum():item() }
end

local function number(x)
    return math.abs(x) < math.huge and ("%.17g"):format(x) or "null"
end

-- Of a tensor or a list of them: dtype, number of elements, sum, sum of sizes and of squares, and a sum that knows places.
local function digest(result, tolerance)
    local list = tide.is_tensor(result) and { result } or result
    local total, count = { 0, 0, 0, 0 }, 0
    for place, x in ipairs(list) do
        count = count + x:numel()
        for k, sum in ipairs(sums(x, place)) do
            total[k] = total[k] + sum
        end
    end
    return (', "digest": {"dtype": "%s", "count": %d, "sum": %s, "sizes": %s, "squares": %s, "places": %s%s}'):format(
        tostring(list[1].dtype):gsub("^.*%.", ""), count, number(total[1]), number(total[2]), number(total[3]), number(total[4]),
        tolerance and (', "tolerance": %g'):format(tolerance) or "")
end

-- ---- time ----

local function time_batch(fn, loops)
    local start = tide.time()
    for _ = 1, loops do
        fn()
    end
    return tide.time() - start
end

local function count_loops(fn)
    local loops, seconds = 1, time_batch(fn, 1)
    while seconds < MIN_BATCH do
        loops = loops * 2
        seconds = time_batch(fn, loops)
    end
    return loops, bench.tiny and 1 or seconds / loops > LONG and TURNS and FEW or BATCHES
end

local function measure(name, fn, loops, batches, facts)
    local times = {}
    for k = 1, batches do
        times[k] = time_batch(fn, loops) / loops
    end
    table.sort(times)
    print(('{"case": "%s", "median_s": %.4g, "min_s": %.4g, "iqr_s": %.4g, "threads": %d%s}'):format(name,
        times[(batches + 1) // 2], times[1], times[(3 * batches + 3) // 4] - times[(batches + 3) // 4],
        tide.get_num_threads(), facts))
end

-- run() now, or once for each turn that the case is given.
function bench.turn(name, run)
    if not TURNS then
        run()
        io.stdout:flush()
        return
    end
    print(('{"ready": "%s"}'):format(name))
    io.stdout:flush()
    while io.read "l" == "go" do
        run()
        io.stdout:flush()
    end
end

-- A case whose operands are made where it is chosen alone: make(more) returns its function, and a function for what is
-- compared with PyTorch's where that is another than what the first call returns; integers that it puts into the table
-- `more` are told with the case. options.note: text;
-- options.threads: set for this case alone; options.tolerance: how far the results may be apart, of their size.
function bench.made(name, make, options)
    if not bench.chosen(name) then
        return
    end
    options = options or {}
    local before = tide.get_num_threads()
    tide.set_num_threads(options.threads or before)
    bench.seed(0)
    local more = {}
    local fn, result = make(more)
    result = (result or fn)()
    local facts = (', "note": "%s"%s'):format(options.note or "", result and digest(result, options.tolerance) or "")
    for key, value in pairs(more) do
        facts = facts .. (', "%s": %d'):format(key, value)
    end
    result = nil
    collectgarbage() -- what making left is not the case's
    local loops, batches
    bench.turn(name, function()
        if not loops then
            loops, batches = count_loops(fn)
        end
        measure(name, fn, loops, batches, facts)
    end)
    tide.set_num_threads(before)
end

-- A case whose operands are there already.
function bench.case(name, fn, options)
    bench.made(name, function() return fn, options and options.result end, options)
end

return bench
