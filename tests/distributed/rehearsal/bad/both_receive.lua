-- Two ranks wait for each other's answer; the others wait for them.
-- EXPECT no rank can go on:\n  rank 0: waiting in recv from rank 1, \S+:6\n  rank 1: waiting in recv from rank 0, \S+:6\n  ranks 2-3: at the end of the script
local dist = tide.distributed
dist.init()
if dist.rank() < 2 then
    dist.recv(tide.zeros(2), 1 - dist.rank())
    dist.send(tide.ones(2), 1 - dist.rank())
end
