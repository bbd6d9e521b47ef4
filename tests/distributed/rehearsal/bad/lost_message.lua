-- What is sent without waiting is never received.
-- EXPECT nobody answered its send to rank 1, \S+:6
local dist = tide.distributed
dist.init()
if dist.rank() == 0 then
    dist.send(tide.ones(3), 1, { async = true })
end
