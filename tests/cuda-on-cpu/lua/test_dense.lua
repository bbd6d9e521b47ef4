-- test_dense.lua: programs of one step over dense tensors: kernels compiled ahead of time give the
-- bits of the interpreter of programs, which the same numbers lying apart go to.
local t = require "harness"
local both = require "both"
local c = require "compare"

if not both.there then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end

local UNARY = { "neg", "abs", "sign", "square", "relu", "sqrt", "rsqrt", "floor", "ceil", "round", "trunc", "exp",
    "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "erf", "erfc", "sigmoid", "silu", "gelu", "asinh", "acosh", "atanh", "lgamma", "reciprocal" }
local BINARY = { "add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "copysign", "nextafter", "atan2",
    "hypot", "pow", "fmod", "remainder", "floor_divide", "eq", "ne", "lt", "le", "gt", "ge" }
local INTEGERS = { "add", "sub", "mul", "maximum", "minimum", "pow", "fmod", "remainder", "floor_divide",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm", "eq", "lt" }
local SIZES = { 0, 1, 31, 255, 256, 257, 1023, 2048, 2049, 4099, 70000 }

-- The same elements, every second one of a longer tensor.
local function apart(x)
    if not tide.is_tensor(x) or x:numel() < 2 then
        return x
    end
    local y = tide.stack({ x, x }, 2)
    return y:select(2, 1)
end

local function same_bits(dense, slow, what)
    t.eq(tostring(dense.dtype), tostring(slow.dtype), what)
    t.eq(tide.allclose(dense:cpu():double(), slow:cpu():double(), { rtol = 0, atol = 0, equal_nan = true }), true, what)
    if tostring(dense.dtype):find("float") then -- and of zeros the sign
        local a, b = dense:cpu():double(), slow:cpu():double()
        t.eq(tide.equal(a:signbit():logical_or(a:isnan()), b:signbit():logical_or(b:isnan())), true, what)
    end
end

-- What fn gives of dense tensors, by the kernel of this test; and of those that lie apart, without it.
local function check(what, fn, ...)
    local here, far = table.pack(...), {}
    for k = 1, here.n do
        here[k] = tide.is_tensor(here[k]) and here[k]:to("cuda") or here[k] -- as it is, where it is there
        far[k] = apart(here[k])
    end
    both.reset()
    local dense = fn(table.unpack(here, 1, here.n))
    local launched = both.launches("td_dense_kernel")
    local slow = fn(table.unpack(far, 1, here.n))
    if dense:numel() > 1 and launched then
        t.eq(launched, 1, what .. ": the kernel compiled ahead of time")
        t.eq(both.launches("td_dense_kernel"), 1, what .. ": what lies apart has none")
    end
    same_bits(dense, slow, what)
end

-- Two operands of n elements of a dtype, 0 not among the second.
local function pair(n, dtype)
    local x = c.numbers({ n }, dtype, true)
    local y = c.numbers({ n }, dtype, true):roll(3)
    return x, y:where(y:ne(0), 1):to(dtype)
end

t.test("functions_of_floats_give_the_interpreters_bits", function()
    for _, dtype in ipairs(c.floats) do
        for _, name in ipairs(UNARY) do
            check(name .. " of " .. tostring(dtype), tide[name], c.numbers({ 2500 }, dtype, true))
        end
    end
end)

t.test("functions_of_two_floats_give_the_interpreters_bits", function()
    for _, dtype in ipairs(c.floats) do
        local x, y = pair(2500, dtype)
        for _, name in ipairs(BINARY) do -- float32's next is no 16-bit float
            if name ~= "nextafter" or dtype == tide.float32 or dtype == tide.float64 then
                check(name .. " of " .. tostring(dtype), tide[name], x, y)
            end
        end
    end
end)

t.test("functions_of_integers_give_the_interpreters_bits", function()
    for _, dtype in ipairs(c.integers) do
        local x, y = pair(2500, dtype)
        for _, name in ipairs(INTEGERS) do
            local wide = dtype == tide.int32 or dtype == tide.int64
            local long = name:find("shift") or ({ pow = 1, fmod = 1, remainder = 1, floor_divide = 1, gcd = 1, lcm = 1 })[name]
            if wide or not long then
                check(name .. " of " .. tostring(dtype), tide[name], x, name == "pow" and y:abs():remainder(5) or y)
            end
        end
    end
    local x, y = c.numbers({ 2500 }, tide.bool), c.numbers({ 2500 }, tide.bool):roll(1)
    for _, name in ipairs { "logical_and", "logical_or", "logical_xor", "bitwise_and", "eq", "add", "mul" } do
        check(name .. " of bools", tide[name], x, y)
    end
    check("logical_not", tide.logical_not, x)
end)

t.test("numbers_and_single_elements_stand_for_all", function()
    for _, dtype in ipairs(c.all) do
        local x = c.numbers({ 3001 }, dtype, true)
        local single = dtype == tide.bool and tide.tensor(true) or tide.tensor(3, { dtype = dtype })
        for _, name in ipairs { "mul", "maximum", "lt", "eq" } do
            check(name .. " with one element of " .. tostring(dtype), tide[name], x, single)
            check(name .. " of one element with " .. tostring(dtype), tide[name], single, x)
        end
        if dtype ~= tide.bool then
            check("add of a number to " .. tostring(dtype), tide.add, x, 2)
            check("lt of a number to " .. tostring(dtype), tide.lt, x, 2)
            check("mul of a number to " .. tostring(dtype), function(y) return 3 * y end, x)
        end
    end
end)

t.test("every_size_and_offset_is_computed", function()
    for _, dtype in ipairs { tide.uint8, tide.bfloat16, tide.float32, tide.float64 } do
        for _, n in ipairs(SIZES) do
            local x, y = pair(n, dtype)
            check("add of " .. n .. " of " .. tostring(dtype), tide.add, x, y)
            check("square of " .. n .. " of " .. tostring(dtype), tide.square, x)
        end
        for _, n in ipairs { 1, 255, 2048, 5000 } do -- vectors don't begin where these do
            local x, y = pair(n + 3, dtype)
            local far, near = x:to("cuda"), y:to("cuda")
            for from = 2, 4 do
                check("add from element " .. from, tide.add, far:narrow(1, from, n), near:narrow(1, 1, n))
                check("square from element " .. from, tide.square, far:narrow(1, from, n))
                c.both("add in place from element " .. from, function(a, b)
                    a:narrow(1, from, n):add_(b:narrow(1, 2, n))
                    return a
                end, x, y)
            end
        end
    end
end)

t.test("elements_are_chosen_moved_and_converted", function()
    for _, from in ipairs(c.all) do
        local x, y = c.numbers({ 2500 }, from, true), c.numbers({ 2500 }, from, true):flip(1)
        local mask = c.numbers({ 2500 }, tide.bool)
        check("where of " .. tostring(from), tide.where, mask, x, y)
        local moved = tide.zeros(2503, { dtype = from, device = "cuda" }) -- to where no vector begins
        moved:narrow(1, 2, 2500):copy_(x)
        c.same(x, moved:narrow(1, 2, 2500), "copy of " .. tostring(from))
        c.both("clone of " .. tostring(from), function(a) return a:clone(), a:narrow(1, 2, 77):clone() end, x)
        c.both("fill of " .. tostring(from), function(a)
            return a:clone():fill_(1), a:zero_()
        end, x)
        for _, to in ipairs(c.all) do
            if from ~= to then
                check(tostring(from) .. " to " .. tostring(to), function(a) return a:to(to) end, x)
            end
        end
    end
end)

t.test("powers_of_numbers_are_the_cpus_whatever_the_list", function()
    for _, dtype in ipairs(c.floats) do
        local x = c.numbers({ 2500 }, dtype, true)
        for _, e in ipairs { 2, 1, 0.5, -0.5, -1, 3, 1.5 } do
            check("pow " .. e .. " of " .. tostring(dtype), function(a) return a:pow(e) end, x)
            c.both("pow " .. e .. " of " .. tostring(dtype), function(a) return a:pow(e) end, x)
        end
    end
    local x = c.numbers({ 300 }, tide.float32):abs()
    local there = x:to("cuda")
    local here = tide.foreach.pow({ x, x, x, x }, { 2, 3, 0.5, 1 })
    for k, y in ipairs(tide.foreach.pow({ there, there, there, there }, { 2, 3, 0.5, 1 })) do
        c.same(here[k], y, "pow of list " .. k)
    end
end)
