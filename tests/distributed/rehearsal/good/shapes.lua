-- Tensors without elements: shapes alone are held against each other.
local dist = tide.distributed
dist.init()
local rank, size = dist.rank(), dist.size()
local meta = { device = "meta" }
local x = tide.empty(1 << 20, 1000, meta) -- four gigabytes, were they there
dist.broadcast(x, 0)
dist.all_reduce(x, "mean")
local list = dist.all_gather(tide.empty(1000, 1000, meta))
assert(#list == size and list[1].device == x.device and list[1]:size(2) == 1000)
assert(dist.reduce_scatter(x):size(1) == (1 << 20) // size)
local parts = dist.gather(tide.empty(5, meta), 0)
dist.scatter(tide.empty(5, meta), parts, 0)
if rank == 0 then
    dist.send(x, 1)
elseif rank == 1 then
    dist.recv(x, 0)
end
