-- fuse.lua: a step towards a goal, written out: three passes over more memory than the cache holds.
local tide = require "tide"

tide.manual_seed(0)
local goal, x = tide.rand(2000, 1000), tide.rand(2000, 1000)
for _ = 1, 30 do
    x = x + (goal - x) * 0.1
end
print((x - goal):abs():amax():item() < 0.1)
