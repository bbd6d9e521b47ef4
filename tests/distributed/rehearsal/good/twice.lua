-- A job that is left and entered again, and a process that goes on by itself.
local dist = tide.distributed
for k = 1, 2 do
    dist.init()
    assert(dist.all_reduce(tide.ones(1)):item() == dist.size())
    assert(k == 2 or dist.backend():find "rehearsal")
    dist.shutdown()
end
assert(tide.ones(3):sum():item() == 3)
