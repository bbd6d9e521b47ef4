-- Many collectives under way, which ranks wait for in orders of their own.
local dist = tide.distributed
dist.init()
local rank = dist.rank()
local works = {}
for k = 1, 20 do
    works[k] = dist.all_reduce(tide.full({ 100 }, k), { async = true })
end
for k = 1, 20 do
    local at = rank % 2 == 0 and k or 21 - k
    assert(works[at]:wait()[1]:item() == at * dist.size())
end
dist.barrier { async = true }:wait()
