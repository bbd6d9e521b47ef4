-- small_batch_mended.lua: all rows in one product.
local tide = require "tide"

tide.manual_seed(0)
local weight = tide.randn(512, 512)
local rows = tide.randn(500, 512)
local results = rows:mm(weight:t())
print(#results)
