-- optimizer.lua: gradient descent by hand, a parameter at a time.
local tide = require "tide"

tide.manual_seed(0)
local params, goal = {}, tide.randn(60 * 32)
for k = 1, 60 do
    params[k] = tide.zeros(32, { requires_grad = true })
end
for _ = 1, 100 do
    local loss = (tide.cat(params) - goal):square():sum()
    loss:backward()
    local _ <close> = tide.no_grad()
    for _, p in ipairs(params) do
        p:sub_(p.grad * 0.1)
        p.grad = nil
    end
end
print((tide.cat(params) - goal):abs():amax():item() < 1e-3)
