-- threads_mended.lua: as many as Tide takes by itself.
local tide = require "tide"

tide.manual_seed(0)
local x = tide.rand(60000)
for _ = 1, 400 do
    x = tide.sin(x) + 1
end
print(x:isfinite():all():item())
