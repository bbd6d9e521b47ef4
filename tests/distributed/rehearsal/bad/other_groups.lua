-- Each pair of ranks makes the group that it needs itself, and not that of the others.
-- EXPECT ranks differ in new_group #1: rank \d made it of ranks (0, 1, rank \d of ranks 2, 3|2, 3, rank \d of ranks 0, 1)
local dist = tide.distributed
dist.init()
local group = dist.new_group(dist.rank() < 2 and { 0, 1 } or { 2, 3 })
dist.all_reduce(tide.ones(1), { group = group })
