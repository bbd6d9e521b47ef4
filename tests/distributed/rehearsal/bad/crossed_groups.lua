-- Two groups share two ranks, which take them in different orders.
-- EXPECT no rank can go on:\n  ranks 0-1: waiting in all_reduce #1 of group 1, \S+:9\n  ranks 2-3: waiting in all_reduce #1 of group 2, \S+:9\n  group 1 is ranks 0, 1, 2\n  group 2 is ranks 1, 2, 3
local dist = tide.distributed
dist.init()
local rank = dist.rank()
local groups = { dist.new_group { 0, 1, 2 }, dist.new_group { 1, 2, 3 } }
for _, k in ipairs(rank == 2 and { 2, 1 } or { 1, 2 }) do
    if rank >= k - 1 and rank <= k + 1 then
        dist.all_reduce(tide.ones(2), { group = groups[k] })
    end
end
