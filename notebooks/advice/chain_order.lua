-- chain_order.lua: (A B) v, though A (B v) needs no product of matrices.
local tide = require "tide"

tide.manual_seed(0)
local a, b, v = tide.randn(400, 400), tide.randn(400, 400), tide.randn(400)
for _ = 1, 20 do
    v = a:mm(b):mv(v)
    v = v / v:norm()
end
print(v:norm():item() > 0)
