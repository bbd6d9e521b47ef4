-- elementwise_loop.lua: a histogram, element by element.
local tide = require "tide"

tide.manual_seed(0)
local x = tide.rand(20000)
local bins = tide.zeros(10)
for i = 1, #x do
    local k = math.floor(x[i]:item() * 10) + 1
    bins[k] = bins[k] + 1
end
print(bins)
