-- The receiver expects floats where integers are sent.
-- EXPECT ranks differ in what is sent: rank 0 gives rank 1 3 elements in send of 3 int64 \(rank 1\), \S+:6; rank 1 takes 3 in recv of 3 float32 \(rank 0\), \S+:8
local dist = tide.distributed
dist.init()
if dist.rank() == 0 then
    dist.send(tide.tensor { 1, 2, 3 }, 1)
elseif dist.rank() == 1 then
    dist.recv(tide.zeros(3), 0)
end
