-- script_mended.lua: the same function as a graph, in which they are one kernel.
local tide = require "tide"

tide.manual_seed(0)
local wave = tide.jit.script(function(x, y, k) --: Tensor, Tensor, int
    local r = (x - k) * (x + k) + (y + k) * y
    return (r * 0.5):sin() / (r * r + 1)
end)
local x, y = tide.rand(500), tide.rand(500)
local total = 0
for k = 1, 600 do
    total = total + k * wave(x, y, k):numel()
end
print(total)
