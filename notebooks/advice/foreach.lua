-- foreach.lua: a list of tensors, an operator on each by itself. tide --advise notebooks/advice/foreach.lua
local tide = require "tide"

local params, grads = {}, {}
for k = 1, 500 do
    params[k], grads[k] = tide.zeros(64), tide.ones(64)
end

for _ = 1, 100 do
    for k = 1, #params do
        params[k]:add_(grads[k], { alpha = -0.1 })
    end
end
print(params[1]:sum():item())
