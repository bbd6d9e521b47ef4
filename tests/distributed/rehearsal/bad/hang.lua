-- One rank never comes.
-- EXPECT nothing has happened for 2 s:(?=[\s\S]*\n  ranks 0, 2-3: waiting in barrier #2, \S+:10)(?=[\s\S]*\n  rank 1: computing since barrier #1, \S+:5)
local dist = tide.distributed
dist.init()
dist.barrier()
if dist.rank() == 1 then
    while true do
    end
end
dist.barrier()
