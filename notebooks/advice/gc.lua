-- gc.lua: garbage is collected by hand in every step, with many tables alive.
local tide = require "tide"

local names = {}
for k = 1, 100000 do
    names[k] = { "row", k }
end
local x = tide.rand(1000)
for _ = 1, 50 do
    x = tide.tanh(x)
    collectgarbage()
end
print(#names, x:isfinite():all():item())
