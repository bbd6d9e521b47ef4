-- elementwise_loop_mended.lua: one operator over all elements.
local tide = require "tide"

tide.manual_seed(0)
local x = tide.rand(20000)
print(tide.histc(x, 10, 0, 1))
