-- test_norm_scales.lua: norms of elements as large and as small as dtypes have them, on CUDA (tests/ops/test_norm_scales.lua).
local c = require "compare"
local here = arg[0]:match("^(.*)/") or "."

if c.there() then
    RANGES_DEVICE = "cuda"
    dofile(here .. "/../../ops/test_norm_scales.lua")
end
