-- test_ranges.lua: elements whose squares no dtype holds, on CUDA (tests/ops/test_ranges.lua).
local c = require "compare"
local here = arg[0]:match("^(.*)/") or "."

if c.there() then
    RANGES_DEVICE = "cuda"
    dofile(here .. "/../../ops/test_ranges.lua")
end
