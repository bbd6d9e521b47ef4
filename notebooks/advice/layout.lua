-- layout.lua: a transposed matrix is copied before every product.
local tide = require "tide"

tide.manual_seed(0)
local weight, x = tide.randn(1500, 1500), tide.randn(1500)
for _ = 1, 20 do
    x = weight:t():contiguous():mv(x)
    x = x / x:norm()
end
print(x:norm():item() > 0)
