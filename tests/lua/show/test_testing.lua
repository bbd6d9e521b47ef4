-- test_testing.lua: tide.testing.assert_close lets through what PyTorch's does, and says what differs where.
local t = require "harness"
local assert_close = tide.testing.assert_close

t.test("values_within_a_dtypes_tolerances_are_close", function()
    local x = tide.tensor { 1, 100, 0 } + 0.0
    assert_close(x, x + tide.tensor { 1.1e-5, 1.3e-4, 0.9e-5 })
    t.error_has(function() assert_close(x + tide.tensor { 0, 2e-4, 0 }, x) end, "1 of 3 elements differ (33.3 %)")
    assert_close(x:half(), (x * 1.0009):half())
    assert_close(x:bfloat16(), (x * 1.01):bfloat16())
    t.error_has(function() assert_close(x:double(), x:double() + 1e-6) end, "2 of 3 elements differ (66.7 %)")
    assert_close(tide.tensor { 1, 2 }, tide.tensor { 1, 2 })
    t.error_has(function() assert_close(tide.tensor { { 1, 2 }, { 3, 4 } }, tide.tensor { { 1, 2 }, { 7, 4 } }) end, "4 at [2, 1] (0 allowed)")
    assert_close(x, x + 1, { rtol = 0, atol = 1 })
    assert_close(tide.ones(0), tide.ones(0))
    assert_close(tide.tensor(2.0), tide.tensor(2.0))
    assert_close(tide.tensor { true, false }, tide.tensor { true, false })
end)

t.test("what_else_may_differ_is_said", function()
    local x = tide.ones(2, 3)
    t.error_has(function() assert_close(x, tide.ones(3, 2)) end, "the shapes are (2, 3) and (3, 2)")
    t.error_has(function() assert_close(x, x:double()) end, "the dtypes are")
    assert_close(x, x:double(), { check_dtype = false })
    t.error_has(function() assert_close(x, tide.ones(3, 2):t(), { check_stride = true }) end, "strides")
    local odd = tide.tensor { 0 / 0, math.huge }
    assert_close(odd, odd, { equal_nan = true })
    t.error_has(function() assert_close(odd, odd) end, "1 of 2")
    t.error_has(function() assert_close(x, x, { rtol = 1 }) end, "both, or neither")
    t.error_has(function() assert_close(x, x + 1, { msg = "layer 3" }) end, "assert_close: layer 3: 6 of 6")
end)

t.test("numbers_and_tables_are_compared_entry_by_entry", function()
    assert_close(1.0, 1 + 1e-8)
    assert_close({ a = tide.ones(2), { 1, 2 } }, { a = tide.ones(2), { 1, 2 } })
    t.error_has(function() assert_close(1, 2) end, "1 is not near 2")
    t.error_has(function() assert_close({ a = { 1, 2 } }, { a = { 1, 3 } }) end, '["a"][2]: 2 is not near 3')
    t.error_has(function() assert_close({ a = 1 }, { b = 1 }) end, '["b"]: it is missing')
    t.error_has(function() assert_close({ a = 1, b = 2 }, { b = 2 }) end, "a is not expected")
    t.error_has(function() assert_close("a", tide.ones(1)) end, "is not")
end)
