-- Lua values, from one to all, from all to one, from one to the next.
local dist = tide.distributed
dist.init()
local rank, size = dist.rank(), dist.size()
local plan = dist.broadcast_object({ epochs = 3, weights = tide.arange(0, 4) }, 0)
assert(plan.epochs == 3 and plan.weights[4]:item() == 3)
local all = dist.all_gather_object({ name = ("rank %d"):format(rank) })
assert(all[size].name == ("rank %d"):format(size - 1))
assert(dist.scatter_object(rank == 0 and all or nil, 0).name == ("rank %d"):format(rank))
if rank == 0 then
    dist.send_object({ 1, 2 }, 1)
elseif rank == 1 then
    assert(dist.recv_object(0)[2] == 2)
end
