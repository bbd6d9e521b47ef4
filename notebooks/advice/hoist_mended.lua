-- hoist_mended.lua: once in front of the loop.
local tide = require "tide"

tide.manual_seed(0)
local points, x = tide.randn(400, 3), tide.randn(400)
local kernel = (-tide.cdist(points, points)):exp()
for _ = 1, 60 do
    x = kernel:mv(x)
    x = x / x:norm()
end
print(x:norm():item() > 0)
