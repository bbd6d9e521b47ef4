-- A group is made by those alone that are in it.
-- EXPECT ranks differ in collective #1: (?=.*is in barrier, \S+:6)(?=.*is in all_reduce of 1 float32)
local dist = tide.distributed
dist.init()
if dist.rank() < 2 then
    dist.new_group { 0, 1 }
end
dist.all_reduce(tide.ones(1))
