-- test_groups.lua: groups of a scripted function on the device, of every dtype and of several: the bits of their operators.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end

local function on_device(dtype, ...)
    return both.elements(dtype, ...):to("cuda")
end

-- What the script gives is what the function gives; it is called often enough to be specialised.
local function same(what, fn, ...)
    local inputs = { ... }
    t.test(what, function()
        local f = tide.jit.script(fn)
        f(table.unpack(inputs))
        local got, want = f(table.unpack(inputs)), fn(table.unpack(inputs))
        t.eq(tostring(got.dtype), tostring(want.dtype))
        t.eq(tide.allclose(got:cpu():double(), want:cpu():double(), { rtol = 0, atol = 0, equal_nan = true }), true)
        local _, groups = tostring(f:graph_for(table.unpack(inputs))):gsub("= prim::FusionGroup", "")
        t.eq(groups, 1, "groups")
    end)
end

local function arithmetic(x, y) return (x * y + x) * y - x * 3 end
local function chosen(x, y) return tide.where(x:gt(y), x + 1, y * y):maximum(x) end

for _, dtype in ipairs(both.ALL) do
    if dtype ~= "bool" then
        local x, y = on_device(dtype, 7, 33), on_device(dtype, 7, 33)
        same("arithmetic of " .. dtype, arithmetic, x, y)
        same("a choice of " .. dtype, chosen, x, y)
        same("a row of " .. dtype, arithmetic, x, on_device(dtype, 33))
        same("with a single int64: " .. dtype, arithmetic, x, on_device("int64"))
    end
end

local half, whole, wide = on_device("bfloat16", 2000), on_device("int32", 2000), on_device("float32", 2000)
same("three dtypes", function(x, y, z) return ((x * z + y):to(tide.bfloat16) * x):float() - z end, half, whole, wide)
same("masks", function(x, y) return x:gt(1):logical_and(y:ne(0)):logical_or(x:lt(y)) end, half, whole)
same("bits", function(x, y) return (x & 7 | y):bitwise_xor(x) end, whole, on_device("int16", 2000))
same("float to whole", function(x, y) return (x * 2.5):to(tide.int16) + y end, wide, whole)

t.finish()
