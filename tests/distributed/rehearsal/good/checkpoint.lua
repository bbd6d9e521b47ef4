-- What all have is written once, and read again.
local dist = tide.distributed
dist.init()
local folder = os.getenv("TMPDIR") .. "/checkpoint"
dist.checkpoint.save({ step = 3, weight = tide.ones(100), own = dist.rank() }, folder)
local state = dist.checkpoint.load(nil, folder)
assert(state.own == dist.rank() and state.weight[100]:item() == 1)
