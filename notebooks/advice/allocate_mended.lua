-- allocate_mended.lua: in place.
local tide = require "tide"

tide.manual_seed(0)
local x = tide.rand(4000, 1000)
for _ = 1, 30 do
    x:mul_(0.99)
end
print(x:amax():item() < 1)
