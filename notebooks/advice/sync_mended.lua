-- sync_mended.lua: where() keeps the shape, so that nothing has to be counted.
local tide = require "tide"

tide.manual_seed(0)
local x = tide.randn(100000)
local total = tide.zeros({})
for k = 1, 200 do
    local mask = x:gt(k / 200)
    total = total + tide.where(mask, x, 0):sum()
end
print(("%.1f"):format(total:item()))
