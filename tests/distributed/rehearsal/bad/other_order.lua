-- The last rank reduces and gathers in the other order.
-- EXPECT ranks differ in collective #1: (?=.*is in all_reduce of 4 float32 \(sum\), \S+:5)(?=.*rank 3 is in all_gather of 4 float32)
local dist = tide.distributed
dist.init()
local function reduce() dist.all_reduce(tide.ones(4)) end
local function gather() dist.all_gather(tide.ones(1)) end
if dist.rank() == dist.size() - 1 then
    gather()
    reduce()
else
    reduce()
    gather()
end
