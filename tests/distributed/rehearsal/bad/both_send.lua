-- Neighbours send to each other before they receive: MPI takes small messages ahead, and waits with large ones.
-- EXPECT no rank can go on:\n  rank 0: waiting in send to rank 1, \S+:6\n  rank 1: waiting in send to rank 2, \S+:6\n  rank 2: waiting in send to rank 3, \S+:6\n  rank 3: waiting in send to rank 0, \S+:6
local dist = tide.distributed
dist.init()
local rank, size = dist.rank(), dist.size()
dist.send(tide.ones(4), (rank + 1) % size)
dist.recv(tide.zeros(4), (rank - 1) % size)
