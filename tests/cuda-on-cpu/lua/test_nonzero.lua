-- test_nonzero.lua: places of what is not 0 on the device against the CPU.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("nonzero", "no CUDA device")
    return
end

tide.manual_seed(2)

t.test("places_of_every_dtype_and_form", function()
    both.reset()
    for _, dtype in ipairs(both.ALL) do
        for _, x in ipairs(both.forms((both.elements(dtype, 4, 5, 6):to("float32") * tide.rand(4, 5, 6):gt(0.5)):to(dtype))) do
            both.same(function(x) return x:nonzero() end, x)
        end
    end
    if both.launches("") then
        t.is_true(both.launches("nonzero_places") > 0, "its kernel ran")
    end
end)

t.test("limits_of_tiles", function()
    for _, n in ipairs { 0, 1, 31, 32, 33, 255, 256, 257, 1023, 1025, 4095, 4096, 4097, 70000 } do
        both.same(function(x) return x:nonzero() end, tide.rand(n):gt(0.7))
    end
    both.same(function(x) return x:nonzero() end, tide.ones(8200))
    both.same(function(x) return x:nonzero() end, tide.zeros(8200))
end)

t.test("odd_shapes_and_numbers", function()
    both.same(function(x) return x:nonzero() end, tide.tensor(3))
    both.same(function(x) return x:nonzero() end, tide.tensor(0))
    both.same(function(x) return x:nonzero() end, tide.zeros(3, 0, 2))
    both.same(function(x) return x:nonzero() end, tide.tensor { 0.0, -0.0, 0 / 0, 1 / 0, 1e-45 })
    both.same(function(x) return x:nonzero() end, tide.rand(3, 1):gt(0.5):expand(3, 40))
end)
