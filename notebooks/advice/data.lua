-- data.lua: the file is read again for every step.
local tide = require "tide"

local here = (arg and arg[0] or "notebooks/advice/data.lua"):match("^(.*)/[^/]*$") or "."
local path = here .. "/../data/digits.csv"
local weight = tide.zeros(65)
for k = 1, 10 do
    local rows = tide.io.read_csv(path)
    weight = weight * 0.9 + rows[{ { k, k + 99 } }]:mean(1) * 0.1
end
print(weight:isfinite():all():item())
