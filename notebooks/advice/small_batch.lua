-- small_batch.lua: a matrix times one row at a time.
local tide = require "tide"

tide.manual_seed(0)
local weight = tide.randn(512, 512)
local rows, results = {}, {}
for k = 1, 500 do
    rows[k] = tide.randn(512)
end
for k = 1, #rows do
    results[k] = weight:mv(rows[k])
end
print(#results)
