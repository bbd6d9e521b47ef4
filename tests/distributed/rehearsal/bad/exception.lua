-- One rank fails while the others wait for it.
-- EXPECT rank 2 left: \S+:6: no such sample
local dist = tide.distributed
dist.init()
if dist.rank() == 2 then
    error("no such sample")
end
dist.barrier()
