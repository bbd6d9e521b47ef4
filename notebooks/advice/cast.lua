-- cast.lua: the same table of integers becomes floats in every step.
local tide = require "tide"

tide.manual_seed(0)
local pixels = tide.randint(0, 256, { 500, 784 }, { dtype = tide.uint8 })
local weight = tide.randn(784)
for _ = 1, 50 do
    local x = pixels:to(tide.float32)
    weight = weight * 0.99 + x:mean(1) * 1e-3
end
print(weight:isfinite():all():item())
