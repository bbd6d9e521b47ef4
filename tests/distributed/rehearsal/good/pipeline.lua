-- Four stages that pass micro-batches on, forward and back.
local dist = tide.distributed
dist.init()
local rank, size = dist.rank(), dist.size()
for batch = 1, 6 do
    local x = tide.full({ 8, 4 }, batch)
    if rank > 0 then
        dist.recv(x, rank - 1, { tag = batch })
    end
    x = x + 1
    if rank < size - 1 then
        dist.send(x, rank + 1, { tag = batch })
        dist.recv(x, rank + 1, { tag = batch })
    end
    if rank > 0 then
        dist.send(x, rank - 1, { tag = batch })
    else
        assert(x[1][1]:item() == batch + size)
    end
end
