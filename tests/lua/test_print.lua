-- test_print.lua: the text of tensors: PyTorch's alignment and rounding, a last line of facts.
local t = require "harness"

local function text(x, lines)
    t.eq(tostring(x), table.concat(lines, "\n"))
end

t.test("floats_are_aligned_to_four_digits", function()
    text(tide.tensor { { 1.5, -2.25, 1000 }, { 3, 4, 5 } }, {
        "[[   1.5000,   -2.2500, 1000.0000],",
        " [   3.0000,    4.0000,    5.0000]]", "float32 (2, 3) cpu" })
end)

t.test("whole_floats_end_in_a_point_and_integers_have_none", function()
    text(tide.tensor { 1.0, 2, 300 }, { "[  1.,   2., 300.]", "float32 (3) cpu" })
    text(tide.tensor { 1, 20, -3 }, { "[ 1, 20, -3]", "int64 (3) cpu" })
    text(tide.tensor { true, false }, { "[ true, false]", "bool (2) cpu" })
end)

t.test("wide_ranges_are_scientific", function()
    text(tide.tensor { 1e-5, 1, 3 }, { "[1.0000e-05, 1.0000e+00, 3.0000e+00]", "float32 (3) cpu" })
end)

t.test("numbers_that_are_none", function()
    text(tide.tensor { 0 / 0 * -1, math.huge, 1.5 }, { "[   nan,    inf, 1.5000]", "float32 (3) cpu" })
end)

t.test("a_tensor_of_no_dims_is_its_number", function()
    t.eq(tostring(tide.ones(2, 3):sum()), "6")
    t.eq(tostring(tide.tensor(2.5)), "2.5")
    t.eq(tostring(tide.tensor(true)), "true")
end)

t.test("no_elements", function()
    text(tide.zeros(0, 3), { "[]", "float32 (0, 3) cpu" })
end)

t.test("edges_alone_beyond_a_thousand_elements", function()
    t.eq(select(2, tostring(tide.arange(1000)):gsub("%.%.%.", "")), 0)
    text(tide.arange(1001), { "[   0,    1,    2, ...,  998,  999, 1000]", "int64 (1001) cpu" })
    local lines = select(2, tostring(tide.zeros(100, 100, 100)):gsub("\n", ""))
    t.is_true(lines < 60)
end)

t.test("history_is_named", function()
    local x = tide.ones(2, { requires_grad = true })
    t.is_true(tostring(x):find("requires_grad", 1, true))
    t.is_true(tostring(x * 2):find("grad_fn=<MulBackward>", 1, true))
end)

t.test("dims_are_set_apart_by_blank_lines", function()
    text(tide.zeros(2, 1, 2, { dtype = tide.int32 }), { "[[[0, 0]],", "", " [[0, 0]]]", "int32 (2, 1, 2) cpu" })
end)
