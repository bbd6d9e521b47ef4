-- One rank hands out work to the others, who take unequal times.
local dist = tide.distributed
dist.init()
local rank, size = dist.rank(), dist.size()
if rank == 0 then
    for task = 1, 3 do
        for r = 1, size - 1 do
            dist.send(tide.tensor { task * r }, r)
        end
        for r = size - 1, 1, -1 do
            assert(dist.recv(tide.zeros(1, { dtype = tide.int64 }), r):item() == 2 * task * r)
        end
    end
else
    for _ = 1, 3 do
        local task = dist.recv(tide.zeros(1, { dtype = tide.int64 }), 0)
        tide.sleep(rank % 3 * 0.01)
        dist.send(task * 2, 0)
    end
end
