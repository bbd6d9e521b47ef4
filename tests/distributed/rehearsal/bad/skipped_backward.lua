-- One rank leaves its backward out, since its loss is no number: its buckets are never reduced.
-- EXPECT ranks differ in collective #\d+: (?=.*is in all_reduce of 12 float32 \(mean\), \S+:\d+)(?=.*rank 1 is at the end of its script)
local dist, nn = tide.distributed, tide.nn
dist.init()
local model = dist.DistributedDataParallel(nn.Linear(3, 3))
local loss = model(tide.full({ 2, 3 }, dist.rank() == 1 and 0 / 0 or 1.0)):sum()
if loss:item() == loss:item() then
    loss:backward()
end
