-- threads.lua: more threads than processors, for sums that are short.
local tide = require "tide"

tide.manual_seed(0)
tide.set_num_threads(64)
local x = tide.rand(60000)
for _ = 1, 400 do
    x = tide.sin(x) + 1
end
print(x:isfinite():all():item())
