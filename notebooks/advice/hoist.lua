-- hoist.lua: a kernel matrix that never changes is made anew in every step.
local tide = require "tide"

tide.manual_seed(0)
local points, x = tide.randn(400, 3), tide.randn(400)
for _ = 1, 60 do
    local kernel = (-tide.cdist(points, points)):exp()
    x = kernel:mv(x)
    x = x / x:norm()
end
print(x:norm():item() > 0)
