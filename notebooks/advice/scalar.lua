-- scalar.lua: a rate that falls, kept as a tensor of one element.
local tide = require "tide"

local rate, factor, total = tide.tensor(0.1), tide.tensor(0.999), tide.tensor(0.0)
for _ = 1, 5000 do
    rate = rate * factor
    total = total + rate * rate
end
print(("%.4f"):format(total:item()))
