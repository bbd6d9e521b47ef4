-- foreach_mended.lua: the whole list in one call.
local tide = require "tide"

local params, grads = {}, {}
for k = 1, 500 do
    params[k], grads[k] = tide.zeros(64), tide.ones(64)
end

for _ = 1, 100 do
    tide.foreach.add_(params, grads, { alpha = -0.1 })
end
print(params[1]:sum():item())
