-- precision.lua: large products in float32, where the machine multiplies bfloat16 several times as fast.
local tide = require "tide"

tide.manual_seed(0)
local x, weight = tide.randn(1024, 1024), tide.randn(1024, 1024) / 32
for _ = 1, 20 do
    x = tide.relu(x:mm(weight))
end
print(x:isfinite():all():item())
