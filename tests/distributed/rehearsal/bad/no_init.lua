-- One rank thinks that it is alone.
-- EXPECT no rank can go on:(?=[\s\S]*\n  rank 0: ended without tide.distributed.init)(?=[\s\S]*\n  ranks 1-3: waiting in barrier #1, \S+:6)
local dist = tide.distributed
if os.getenv("TIDE_REHEARSAL_RANK") ~= "0" then
    dist.init()
    dist.barrier()
end
