-- grow.lua: results are joined to what is there, which is copied each time.
local tide = require "tide"

tide.manual_seed(0)
local all = tide.zeros(0, 256)
for _ = 1, 400 do
    all = tide.cat { all, tide.rand(4, 256) }
end
print(#all)
