-- nccl.lua: what every rank of a job with backend = "nccl" checks: each collective, dtype and operation gives what MPI gives for the
-- same tensors on the CPU; streams, groups, several devices, refusals. On devices that the CPU plays, or, one process, on a real one.
local dist = tide.distributed
local found, why = pcall(dist.init, { backend = "nccl", timeout = 30 })
if not found and string.find(why, "no NCCL is there", 1, true) and not os.getenv "TIDE_NCCL" then
    print("skipped: " .. why)
    os.exit(77)
end
assert(found, why)
local rank, size = dist.rank(), dist.size()
local played = package.loadlib(os.getenv "TIDE_NCCL" or "", "luaopen_played")
played = played and played()

local function count(name)
    local counts = played and played.counts() or { kernels = {} }
    return counts[name] or counts.kernels[name] or 0
end

-- The device of this rank, another on each.
local mine = "cuda:" .. rank % tide.cuda.device_count()

local function same(x, y, what)
    assert(x.device == mine and y.device == "cpu" and x.dtype == y.dtype, what)
    assert(x:cpu():equal(y), string.format("%s: %s, not %s (rank %d)", what, tostring(x:cpu()), tostring(y), rank))
end

-- fn of a tensor on the CPU and on the device; what it returns is the same.
local function both(what, x, fn)
    local expected, got = fn(x:clone()), fn(x:to(mine, { copy = true }))
    if type(expected) ~= "table" then
        expected, got = { expected }, { got }
    end
    assert(#expected == #got, what)
    for k, y in ipairs(expected) do
        same(got[k], y, what)
    end
end

local DTYPES <const> = { "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool" }

local function values(name, n)
    local x = tide.arange(n) * (rank + 2) % 5
    return name == "bool" and x:gt(2) or x:to(tide[name])
end

for _, name in ipairs(DTYPES) do
    local whole = not string.find(name, "float")
    for _, op in ipairs { "sum", "product", "min", "max", not whole and "mean" or name == "bool" and "bor" or nil } do
        if name ~= "int16" then
            both("all_reduce " .. name .. " " .. op, values(name, 301), function(x) return dist.all_reduce(x, op) end)
            both("reduce_scatter " .. name .. " " .. op, values(name, 4 * size):view(2 * size, 2), function(x) return dist.reduce_scatter(x, op) end)
            local sizes = {}
            for r = 1, size do
                sizes[r] = r - 1 -- none for rank 0
            end
            both("uneven reduce_scatter", values(name, size * (size - 1) // 2),
                function(x) return dist.reduce_scatter(x, op, { sizes = sizes }) end)
        end
    end
    for root = 0, size - 1 do
        both("broadcast " .. name, values(name, 7), function(x) return dist.broadcast(x, root) end)
        both("gather " .. name, values(name, rank + 1), function(x) return dist.gather(x, root, { uneven = true }) or {} end)
        both("scatter " .. name, values(name, 3), function(x)
            local parts = {}
            for r = 1, size do
                parts[r] = x:roll(r)
            end
            return dist.scatter(x, rank == root and parts or nil, root)
        end)
    end
    both("all_gather " .. name, values(name, 6):view(2, 3), function(x) return dist.all_gather(x) end)
    both("uneven all_gather " .. name, values(name, 3 * rank):view(rank, 3), function(x) return dist.all_gather(x, { uneven = true }) end)
    both("all_to_all " .. name, values(name, 10), function(x)
        local parts = {}
        for r = 1, size do
            parts[r] = x:narrow(1, 1, (rank + r) % 3) -- some have nothing
        end
        return dist.all_to_all(parts)
    end)
end
assert(not played or count "ncclAllReduce" > 0 and count "ncclReduceScatter" > 0 and count "ncclSend" > 0, "tensors went another way")

-- What is not contiguous, and what has no elements.
both("transposed", values("float32", 6):view(2, 3), function(x) return dist.all_reduce(x:t()) end)
both("nothing", tide.zeros(0), function(x) return dist.all_reduce(x) end)
both("a part of a tensor", values("float64", 9), function(x)
    dist.all_reduce(x:narrow(1, 3, 4))
    return x
end)

-- Messages in both directions before anybody waits, and what is sent is made on the stream meanwhile.
if size > 1 then
    local to, from = (rank + 1) % size, (rank - 1) % size
    local works, got = {}, {}
    for k = 1, 5 do
        works[#works + 1] = dist.send(tide.full({ 100 }, 10 * rank + k, { device = mine }):add_(1), to, { async = true })
        got[k] = tide.zeros(100, { dtype = tide.int64, device = mine })
        works[#works + 1] = dist.recv(got[k], from, { async = true })
    end
    for _, work in ipairs(works) do
        work:wait()
    end
    for k = 1, 5 do
        assert(got[k]:eq(10 * from + k + 1):all():item(), "messages")
    end
end

-- The script does not wait for the device, which waits for the other ranks; results may be used at once, on whatever stream.
local before = count "synchronisations"
local side, x = tide.cuda.Stream(mine), tide.full({ 1000 }, rank + 1.0, { device = mine })
for _ = 1, 3 do
    dist.all_reduce(x)
    x:div_(size)
end
do
    local _ <close> = tide.cuda.stream(side)
    dist.all_reduce(x)
end
local y = x * 2
assert(count "synchronisations" == before, "the host waited for a device")
assert((y - (size + 1) * size):abs():max():item() < 1e-3, "streams")

local works = {}
for k = 1, 20 do
    works[k] = dist.all_reduce(tide.full({ 100 * k }, rank + k, { device = mine }), { async = true })
end
for k = 20, 1, -1 do
    assert(works[k]:wait():eq(size * (size - 1) // 2 + size * k):all():item(), "async")
    while not works[k]:done() do
    end
end

-- A tensor that nobody holds any more is kept until its transfer is done, and what is never waited for ends before the job does.
for k = 1, 10 do
    dist.all_reduce(tide.full({ 5000 }, k, { device = mine }), { async = true })
    collectgarbage()
end

-- Groups, each with a communicator of its own; two devices of a rank.
local list = {}
for r = rank % 2, size - 1, 2 do
    list[#list + 1] = r
end
local groups = {}
for first = 0, math.min(size, 2) - 1 do
    local ranks = {}
    for r = first, size - 1, 2 do
        ranks[#ranks + 1] = r
    end
    groups[first] = dist.new_group(ranks)
end
local expected = 0
for _, r in ipairs(list) do
    expected = expected + r
end
assert(dist.all_reduce(tide.tensor({ rank }, { device = mine }), { group = groups[rank % 2] }):item() == expected, "group")
local other = "cuda:" .. (rank + 1) % tide.cuda.device_count()
for _ = 1, 2 do
    assert(dist.all_reduce(tide.ones(3, { device = other })):eq(size):all():item() and dist.all_reduce(tide.ones(3, { device = mine })):eq(size):all():item())
end

-- What NCCL can't do is said where it is asked for, on all ranks alike.
for _, call in ipairs {
    { "nccl has no 'bxor' of int64: x:cpu%(%) goes over MPI", function() dist.all_reduce(tide.ones(2, { dtype = tide.int64, device = mine }), "bxor") end },
    { "nccl has no 'bxor' of bool", function() dist.all_reduce(tide.ones(2, { dtype = tide.bool, device = mine }), "bxor") end },
    { "nccl has no 'sum' of int16", function() dist.all_reduce(tide.ones(2, { dtype = tide.int16, device = mine })) end },
    { "nccl: a rank has nothing to send to itself", function() dist.send(tide.ones(2, { device = mine }), rank) end },
    { "op 'band' is not for float32", function() dist.all_reduce(tide.ones(2, { device = mine }), "band") end },
    size > 1 and { "nccl has no tags", function() dist.send(tide.ones(2, { device = mine }), (rank + 1) % size, { tag = 3 }) end } or nil,
} do
    local ok, message = pcall(call[2])
    assert(not ok and string.find(message, call[1]), tostring(message))
end
local z = tide.ones(2, { device = mine })
local ok, message = pcall(tide.cuda.graph, function() dist.all_reduce(z) end, mine)
assert(not ok and string.find(message, "can't be recorded in a graph", 1, true), tostring(message))

-- Tensors on the CPU, and objects, go over the other engine.
assert(dist.all_reduce(tide.ones(2, { dtype = tide.int16 }), "bxor"):eq(size % 2):all():item())
for r, object in ipairs(dist.all_gather_object({ x = tide.full({ 2 }, rank, { device = mine }) })) do
    assert(object.x:eq(r - 1):all():item(), "object")
end
dist.barrier()
print(string.format("rank %d of %d: ok, %s", rank, size, dist.backend()))
