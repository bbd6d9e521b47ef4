-- script.lua: a wave over some points, each operator a call.
local tide = require "tide"

tide.manual_seed(0)
local x, y = tide.rand(500), tide.rand(500)
local total = 0
for k = 1, 600 do
    local r = (x - k) * (x + k) + (y + k) * y
    local wave = (r * 0.5):sin() / (r * r + 1)
    total = total + k * wave:numel()
end
print(total)
