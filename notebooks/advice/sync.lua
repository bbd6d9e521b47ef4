-- sync.lua: the elements that a mask names are taken out, only to be added up.
local tide = require "tide"

tide.manual_seed(0)
local x = tide.randn(100000)
local total = tide.zeros({})
for k = 1, 200 do
    local mask = x:gt(k / 200)
    total = total + x[mask]:sum()
end
print(("%.1f"):format(total:item()))
