-- no_grad.lua: a network is tried on many batches, and each call records a graph that nobody wants.
local tide = require "tide"
local nn = tide.nn

tide.manual_seed(0)
local model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
local right = 0
for _ = 1, 500 do
    local x = tide.randn(128, 32)
    right = right + model(x):argmax(2):eq(1):sum():item()
end
print(right)
