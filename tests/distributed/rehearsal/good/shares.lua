-- Shares of different sizes, to and from all.
local dist = tide.distributed
dist.init()
local rank, size = dist.rank(), dist.size()
local list = dist.all_gather(tide.full({ rank + 1, 2 }, rank), { uneven = true })
assert(#list == size and list[size]:size(1) == size and list[size][1][1]:item() == size - 1)
local parts = {}
for r = 1, size do
    parts[r] = tide.full({ r }, rank)
end
local taken = dist.all_to_all(parts)
for r = 1, size do
    assert(taken[r]:numel() == rank + 1 and taken[r][1]:item() == r - 1)
end
local gathered = dist.gather(tide.full({ 2 }, rank), 1)
assert((gathered ~= nil) == (rank == 1))
assert(dist.scatter(tide.full({ 2 }, 0), gathered, 1)[1]:item() == rank)
local sizes, total = {}, 0
for r = 1, size do
    sizes[r] = r
    total = total + r
end
assert(tide.equal(dist.reduce_scatter(tide.ones(total, 2), "sum", { sizes = sizes }), tide.full({ rank + 1, 2 }, size, { dtype = tide.float32 })))
