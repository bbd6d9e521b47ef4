-- scalar_mended.lua: numbers are numbers.
local tide = require "tide"

local rate, factor, total = 0.1, 0.999, 0.0
for _ = 1, 5000 do
    rate = rate * factor
    total = total + rate * rate
end
print(("%.4f"):format(total), tide.version ~= nil)
