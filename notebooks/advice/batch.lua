-- batch.lua: distances between all pairs of points, a pair at a time.
local tide = require "tide"

tide.manual_seed(0)
local points = tide.randn(100, 16)
local n, total = #points, 0
for i = 1, n do
    local point = points[i]
    for j = 1, n do
        total = total + (point - points[j]):pow(2):sum():sqrt():item()
    end
end
print(("%.2f"):format(total))
