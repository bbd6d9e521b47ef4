-- What is sent bears another tag than what is waited for.
-- EXPECT no rank can go on:\n  rank 0: waiting in send to rank 1, \S+:6, tag 7\n  rank 1: waiting in recv from rank 0, \S+:8, tag 8\n  ranks 2-3: at the end of the script
local dist = tide.distributed
dist.init()
if dist.rank() == 0 then
    dist.send(tide.ones(2), 1, { tag = 7 })
elseif dist.rank() == 1 then
    dist.recv(tide.zeros(2), 0, { tag = 8 })
end
