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

-- Whether a tensor's elements print by powers of ten.
local function is_scientific(x) return tostring(x):find("%de[-+]%d") ~= nil end

t.test("powers_of_ten_may_be_asked_for_or_never", function()
    local x, whole = tide.tensor { 1e-6, 2.5, 300 }, tide.tensor { 1.0, 2e9 }
    local function lines() return { tostring(x):match("[^\n]*"), tostring(whole):match("[^\n]*"), tostring(tide.tensor { 1, 2 }):match("[^\n]*") } end
    local before = lines()
    tide.set_printoptions { sci_mode = true }
    local always = lines()
    tide.set_printoptions { sci_mode = false }
    local never = lines()
    tide.set_printoptions { precision = 4 } -- what is not named fits the elements again
    t.eq(lines(), before)
    tide.set_printoptions("default")
    t.eq(always, { "[1.0000e-06, 2.5000e+00, 3.0000e+02]", "[1.0000e+00, 2.0000e+09]", "[1, 2]" })
    t.eq(never, { "[  0.0000,   2.5000, 300.0000]", "[         1., 2000000000.]", "[1, 2]" })
end)

t.test("numbers_near_one_are_fixed_though_some_of_many_are_small", function()
    for seed = 1, 40 do
        tide.manual_seed(seed)
        for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16 } do
            for _, name in ipairs { "rand", "randn" } do
                local x = tide[name](25, 40, { dtype = dtype })
                t.is_true(not is_scientific(x), name .. " of seed " .. seed)
                t.is_true(not is_scientific(tide[name](1000, 1000, { dtype = dtype })), name .. " by its edges")
            end
        end
    end
    text(tide.tensor { 0.0005, 0.9, -3 }, { "[ 0.0005,  0.9000, -3.0000]", "float32 (3) cpu" })
end)

t.test("where_the_largest_is_not_near_one_or_much_is_small_pytorch_s_rule_holds", function()
    for _, x in ipairs { tide.tensor { 1e-5, 1, 0.5 }, tide.tensor { 10.5, 0.01 }, tide.tensor { 2000, 1.5 }, tide.tensor { 1e9, 0.5 },
        tide.rand(100) * 1e-5, tide.rand(100):pow(20) } do
        t.is_true(is_scientific(x), tostring(x))
    end
    for _, x in ipairs { tide.tensor { 999, 1.5 }, tide.tensor { 0.05, 0.001 }, tide.tensor { 1000, 1.5 }, tide.tensor { 12.5, 0.02 } } do
        t.is_true(not is_scientific(x), tostring(x))
    end
end)

t.test("numbers_that_are_none", function()
    text(tide.tensor { 0 / 0 * -1, math.huge, 1.5 }, { "[   nan,    inf, 1.5000]", "float32 (3) cpu" })
end)

-- The number that a tensor without dims begins with.
local function number_of(x)
    return (tostring(x):match("^%S+"))
end

t.test("a_tensor_of_no_dims_is_told_from_a_number", function()
    t.eq(tostring(tide.ones(2, 3):sum()), "6  float32 () cpu")
    t.eq(tostring(tide.tensor(2.5)), "2.5  float32 () cpu")
    t.eq(tostring(tide.tensor(true)), "true  bool () cpu")
    local x = tide.tensor(2.5, { requires_grad = true })
    t.eq(tostring(x), "2.5  float32 () cpu requires_grad")
    t.eq(tostring(x * 2), "5  float32 () cpu grad_fn=<MulBackward>")
end)

t.test("set_printoptions_is_what_prints", function()
    local function reset() tide.set_printoptions("default") end
    local _ <close> = setmetatable({}, { __close = reset })
    tide.set_printoptions { precision = 2 }
    text(tide.tensor { 0.5, 1.25 }, { "[0.50, 1.25]", "float32 (2) cpu" })
    reset()
    tide.set_printoptions { threshold = 3, edgeitems = 1 }
    text(tide.arange(4), { "[0, ..., 3]", "int64 (4) cpu" })
    reset()
    tide.set_printoptions { linewidth = 12 }
    text(tide.arange(6), { "[0, 1, 2,", " 3, 4, 5]", "int64 (6) cpu" })
    tide.set_printoptions("full")
    t.is_true(not tostring(tide.arange(1001)):find("...", 1, true))
    tide.set_printoptions { precision = 17 }
    t.is_true(#tostring(tide.tensor({ 1e308, 0.5 }, { dtype = tide.float64 })) > 40)
    t.error_has(function() tide.set_printoptions { precision = 18 } end, "precision")
    t.error_has(function() tide.set_printoptions { edgeitems = 0 } end, "edgeitems")
    t.error_has(function() tide.set_printoptions("long") end, "profile")
end)

t.test("a_tensor_is_no_part_of_a_text", function()
    t.error_has(function() return "loss " .. tide.tensor(2.5) end, "concatenate a tensor: x:item() is the number")
    t.error_has(function() return tide.ones(2) .. "a" end, "tostring(x) the text of all")
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

t.test("numbers_beyond_a_hundred_million_are_scientific", function()
    local wide = { dtype = tide.float64 }
    text(tide.tensor({ 1e300 }, wide), { "[1.0000e+300]", "float64 (1) cpu" })
    text(tide.tensor({ -1.7976931348623157e308, 1 }, wide), { "[-1.7977e+308,   1.0000e+00]", "float64 (2) cpu" })
    text(tide.tensor({ 5e-324 }, wide), { "[4.9407e-324]", "float64 (1) cpu" })
    text(tide.tensor { 123456789.0 }, { "[1.2346e+08]", "float32 (1) cpu" })
    text(tide.tensor { 1, 100000000.0 }, { "[        1., 100000000.]", "float32 (2) cpu" })
    text(tide.tensor({ 65504 }, { dtype = tide.float16 }), { "[65504.]", "float16 (1) cpu" })
    text(tide.tensor({ 5.96e-8 }, { dtype = tide.float16 }), { "[5.9605e-08]", "float16 (1) cpu" })
    text(tide.tensor({ 3.3e38 }, { dtype = tide.bfloat16 }), { "[3.2965e+38]", "bfloat16 (1) cpu" })
    text(tide.tensor { math.huge, 2e9, -1.5 }, { "[        inf,  2.0000e+09, -1.5000e+00]", "float32 (3) cpu" })
    text(tide.tensor { math.mininteger }, { "[-9223372036854775808]", "int64 (1) cpu" })
end)

t.test("a_single_number_is_whole_as_long_as_it_is_read_at_a_glance", function()
    t.eq(number_of(tide.tensor(33554432.0)), "33554432")
    t.eq(number_of(tide.tensor(99614720, { dtype = tide.bfloat16 })), "99614720")
    t.eq(number_of(tide.tensor(1e300, { dtype = tide.float64 })), "1e+300")
    t.eq(number_of(tide.tensor(3e9)), "3e+09")
    t.eq(number_of(tide.tensor(-0.0)), "-0")
    t.eq(number_of(tide.tensor(0 / 0)), "nan")
    t.eq(number_of(tide.tensor(-(0 / 0))), "nan")
end)
