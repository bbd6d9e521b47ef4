-- The first rank leaves out a barrier.
-- EXPECT ranks differ in collective #2: (?=.*rank 0 is in all_reduce of 4 float32 \(sum\), \S+:9)(?=.*rank \d+ is in barrier, \S+:7)
local dist = tide.distributed
dist.init()
dist.all_reduce(tide.ones(4))
if dist.rank() > 0 then
    dist.barrier()
end
dist.all_reduce(tide.ones(4))
