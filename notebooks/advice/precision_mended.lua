-- precision_mended.lua: under autocast.
local tide = require "tide"

tide.manual_seed(0)
local x, weight = tide.randn(1024, 1024), tide.randn(1024, 1024) / 32
do
    local _ <close> = tide.autocast { dtype = tide.bfloat16 }
    for _ = 1, 20 do
        x = tide.relu(x:mm(weight))
    end
end
print(x:isfinite():all():item())
