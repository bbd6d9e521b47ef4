-- layout_mended.lua: products take any strides.
local tide = require "tide"

tide.manual_seed(0)
local weight, x = tide.randn(1500, 1500), tide.randn(1500)
local turned = weight:t()
for _ = 1, 20 do
    x = turned:mv(x)
    x = x / x:norm()
end
print(x:norm():item() > 0)
