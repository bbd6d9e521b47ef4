-- no_grad_mended.lua: within no_grad nothing is recorded.
local tide = require "tide"
local nn = tide.nn

tide.manual_seed(0)
local model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
local right = 0
do
    local _ <close> = tide.no_grad()
    for _ = 1, 500 do
        local x = tide.randn(128, 32)
        right = right + model(x):argmax(2):eq(1):sum():item()
    end
end
print(right)
