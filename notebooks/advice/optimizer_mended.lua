-- optimizer_mended.lua: one step over all of them.
local tide = require "tide"

tide.manual_seed(0)
local params, goal = {}, tide.randn(60 * 32)
for k = 1, 60 do
    params[k] = tide.zeros(32, { requires_grad = true })
end
local optimizer = tide.optim.SGD(params, { lr = 0.1 })
for _ = 1, 100 do
    local loss = (tide.cat(params) - goal):square():sum()
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
end
print((tide.cat(params) - goal):abs():amax():item() < 1e-3)
