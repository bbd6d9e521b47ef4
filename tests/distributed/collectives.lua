-- collectives.lua: what every rank of a job checks: each collective, every dtype and operation, uneven sizes, async, groups,
-- objects. Expected values are worked out here in plain arithmetic of Lua's numbers, not by what is tested.
local dist = tide.distributed
dist.init { timeout = 30 }
local rank, size = dist.rank(), dist.size()
assert(size == tonumber(arg[1]), "the launcher's number of ranks")

local function same(x, expected, what)
    local got = x:reshape(-1):tolist()
    assert(#got == #expected, what .. ": " .. #got .. " elements for " .. #expected)
    for k = 1, #got do
        assert(got[k] == expected[k], string.format("%s: element %d is %s, not %s (rank %d)", what, k, tostring(got[k]),
            tostring(expected[k]), rank))
    end
end

local function over_ranks(fn, value)
    local result = value(0)
    for r = 1, size - 1 do
        result = fn(result, value(r))
    end
    return result
end

-- Lists, since all ranks must take them in the same order.
local NUMBERS = {
    { "sum", function(a, b) return a + b end }, { "product", function(a, b) return a * b end }, { "min", math.min }, { "max", math.max },
}
local BITS = {
    { "band", function(a, b) return a & b end }, { "bor", function(a, b) return a | b end }, { "bxor", function(a, b) return a ~ b end },
}

-- all_reduce: small whole numbers, which each dtype holds exactly.
for _, name in ipairs { "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" } do
    local dtype, whole = tide[name], not string.find(name, "float")
    for _, entry in ipairs(NUMBERS) do
        local op, fn = table.unpack(entry)
        local values, expected = {}, {}
        for k = 1, 7 do
            values[k] = (rank + k) % 3 + 1
            expected[k] = over_ranks(fn, function(r) return (r + k) % 3 + 1 end)
        end
        same(dist.all_reduce(tide.tensor(values, { dtype = dtype }), op), expected, name .. " " .. op)
    end
    for _, entry in ipairs(whole and BITS or {}) do
        local op, fn = table.unpack(entry)
        local expected = { over_ranks(fn, function(r) return 5 * r + 3 end) }
        same(dist.all_reduce(tide.tensor({ 5 * rank + 3 }, { dtype = dtype }), op), expected, name .. " " .. op)
    end
    if not whole then
        same(dist.all_reduce(tide.full({ 3 }, 2 * rank, { dtype = dtype }), "mean"), { size - 1.0, size - 1.0, size - 1.0 }, name .. " mean")
    end
end
same(dist.all_reduce(tide.tensor({ rank == 0, true, false })), { true, true, false }, "bool sum")
same(dist.all_reduce(tide.tensor({ rank == 0, true, false }), "product"), { size == 1, true, false }, "bool product")

-- What is not contiguous, and what is large enough to be cut by the library.
local x = tide.full({ 3, 2 }, rank, { dtype = tide.float32 }):t()
same(dist.all_reduce(x), { 3 * 0 + size * (size - 1) / 2, size * (size - 1) / 2, size * (size - 1) / 2, size * (size - 1) / 2, size * (size - 1) / 2,
    size * (size - 1) / 2 }, "transposed")
local large = tide.full({ 300001 }, rank + 1.0)
assert(dist.all_reduce(large):eq(size * (size + 1) / 2):all():item(), "large")

-- A result's bits depend neither on the size of the message nor on the place in it: they are those of a sum in the order of ranks.
for _, dtype in ipairs { tide.float32, tide.float16, tide.float64 } do
    local function mine(r) return tide.randn(1009, { generator = tide.Generator(70 + r) }):to(dtype) end
    local expected = over_ranks(function(a, b) return a + b end, mine)
    for _, copies in ipairs { 1, 30, 2000 } do
        local sums = dist.all_reduce(mine(rank):unsqueeze(1):expand(copies, 1009):contiguous())
        assert(sums:eq(expected):all():item(), string.format("%d copies of %s", copies, tostring(dtype)))
    end
    local signs = dist.all_reduce(tide.tensor({ rank % 2 == 0 and 0.0 or -0.0 }, { dtype = dtype }), "max")
    local bits = string.pack("<d", signs:item())
    for _, theirs in ipairs(dist.all_gather_object(bits)) do
        assert(theirs == bits, "ranks have zeros of different signs")
    end
end

for src = 0, size - 1 do
    local y = tide.tensor(rank == src and { 1, src, 3 } or { 0, 0, 0 }, { dtype = tide.int32 })
    same(dist.broadcast(y, src), { 1, src, 3 }, "broadcast")
end

for r, part in ipairs(dist.all_gather(tide.full({ 2, 2 }, rank))) do
    assert(part.shape[1] == 2 and part.shape[2] == 2)
    same(part, { r - 1, r - 1, r - 1, r - 1 }, "all_gather")
end
for r, part in ipairs(dist.all_gather(tide.full({ rank, 3 }, rank), { uneven = true })) do
    assert(part:size(1) == r - 1 and part:size(2) == 3, "all_gather: uneven sizes")
    assert(part:eq(r - 1):all():item(), "all_gather: uneven")
end

local mine = dist.reduce_scatter(tide.arange(2 * size):to(tide.float32))
same(mine, { size * 2.0 * rank, size * (2.0 * rank + 1) }, "reduce_scatter")
local sizes, before = {}, 0
for r = 0, size - 1 do
    sizes[r + 1] = r + 1
    before = before + (r < rank and r + 1 or 0)
end
mine = dist.reduce_scatter(tide.arange(size * (size + 1) // 2):to(tide.float64), "mean", { sizes = sizes })
assert(mine:size(1) == rank + 1)
assert(mine[1]:item() == before, "reduce_scatter: uneven")

for root = 0, size - 1 do
    local list = dist.gather(tide.full({ rank + 1 }, rank), root, { uneven = true })
    assert((list ~= nil) == (rank == root), "gather: where the list is")
    for r, part in ipairs(list or {}) do
        assert(part:numel() == r and part:eq(r - 1):all():item(), "gather")
    end
    local parts
    if rank == root then
        parts = {}
        for r = 1, size do
            parts[r] = tide.full({ 2 }, 10 * root + r)
        end
    end
    same(dist.scatter(tide.zeros(2, { dtype = tide.int64 }), parts, root), { 10 * root + rank + 1, 10 * root + rank + 1 }, "scatter")
end

local parts = {}
for r = 0, size - 1 do
    parts[r + 1] = tide.full({ rank + r }, 100 * rank + r)
end
for r, part in ipairs(dist.all_to_all(parts)) do
    assert(part:numel() == r - 1 + rank and part:eq(100 * (r - 1) + rank):all():item(), "all_to_all")
end

-- send and recv around the ring, with tags out of order.
local to, from = (rank + 1) % size, (rank - 1) % size
local first = dist.send(tide.tensor { rank, 1 }, to, { tag = 1, async = true })
local second = dist.send(tide.tensor { rank, 2 }, to, { tag = 2, async = true })
same(dist.recv(tide.zeros(2, { dtype = tide.int64 }), from, { tag = 2 }), { from, 2 }, "recv")
same(dist.recv(tide.zeros(2, { dtype = tide.int64 }), from, { tag = 1 }), { from, 1 }, "recv")
first:wait()
second:wait()

-- Async: many at once, waited for in another order.
local works, tensors = {}, {}
for k = 1, 20 do
    tensors[k] = tide.full({ 100 * k }, rank + k)
    works[k] = dist.all_reduce(tensors[k], { async = true })
end
for k = 20, 1, -1 do
    assert(works[k]:wait() == tensors[k])
    assert(works[k]:done() and tensors[k]:eq(size * (size - 1) // 2 + size * k):all():item(), "async")
end

-- Groups: even and odd ranks; the groups work at the same time.
local even, odd = {}, {}
for r = 0, size - 1 do
    local list = r % 2 == 0 and even or odd
    list[#list + 1] = r
end
local evens, odds = dist.new_group(even), #odd > 0 and dist.new_group(odd)
local group, ranks = rank % 2 == 0 and evens or odds, rank % 2 == 0 and even or odd
assert(dist.size(group) == #ranks and ranks[dist.rank(group) + 1] == rank)
local expected = 0
for _, r in ipairs(ranks) do
    expected = expected + r
end
same(dist.all_reduce(tide.tensor { rank }, { group = group }), { expected }, "group")
if rank % 2 == 1 then
    local ok, message = pcall(dist.barrier, { group = evens })
    assert(not ok and string.find(message, "is not in Group", 1, true), message)
end

-- Objects.
local object = dist.broadcast_object({ name = "rank " .. rank, x = tide.full({ 2 }, rank), list = { 1, 2.5, true } }, size - 1)
assert(object.name == "rank " .. size - 1 and object.list[2] == 2.5 and object.list[3] == true)
same(object.x, { size - 1, size - 1 }, "broadcast_object")
for r, value in ipairs(dist.all_gather_object({ rank = rank, text = string.rep("x", rank) })) do
    assert(value.rank == r - 1 and #value.text == r - 1, "all_gather_object")
end
local gathered = dist.gather_object("from " .. rank, 0)
assert((gathered ~= nil) == (rank == 0) and (not gathered or gathered[size] == "from " .. size - 1), "gather_object")
local objects
if rank == 0 then
    objects = {}
    for r = 1, size do
        objects[r] = { r }
    end
end
assert(dist.scatter_object(objects)[1] == rank + 1, "scatter_object")
if size > 1 and rank == 0 then
    dist.send_object({ "hello" }, 1)
elseif rank == 1 then
    assert(dist.recv_object(0)[1] == "hello", "send_object")
end

-- Wrong calls are refused where they are made, and nothing is lost.
for _, call in ipairs {
    { "rank 99 is not in", function() dist.broadcast(tide.zeros(2), 99) end },
    { "op 'band' is not for float32", function() dist.all_reduce(tide.zeros(2), "band") end },
    { "op 'mean' is not for int64", function() dist.all_reduce(tide.zeros(2, { dtype = tide.int64 }), "mean") end },
    { "sizes that add up to", function() dist.reduce_scatter(tide.zeros(size * 2 + 1), { sizes = { 1 } }) end },
    { "a list of %d+ tensors expected", function() dist.all_to_all {} end },
} do
    local ok, message = pcall(call[2])
    assert(not ok and string.find(message, call[1]), message)
end
same(dist.all_reduce(tide.ones(1, { dtype = tide.int32 })), { size }, "after wrong calls")
dist.barrier()
print(string.format("rank %d of %d: ok, %s", rank, size, dist.backend()))
