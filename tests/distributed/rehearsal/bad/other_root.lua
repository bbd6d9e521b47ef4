-- Each rank broadcasts what it has itself.
-- EXPECT ranks differ in collective #1: rank \d is in broadcast of 4 float32 \(rank \d\), \S+:5; rank \d is in broadcast of 4 float32 \(rank \d\), \S+:5
local dist = tide.distributed
dist.init()
dist.broadcast(tide.ones(4), dist.rank())
