-- test_softmax.lua: softmax, its logarithm and both gradients on CUDA, compared with the CPU's.
local t = require "harness"
local c = require "compare"

local function forms(what, x, dim)
    local g = c.numbers(x.shape, x.dtype)
    for _, name in ipairs { "softmax", "log_softmax" } do
        c.both(what .. ", " .. name, function(v, w)
            local leaf = v:detach():clone():requires_grad_()
            local y = tide[name](leaf, dim)
            y:backward(w)
            return y:detach(), leaf.grad
        end, x, g)
    end
end

c.test("forms_and_layouts", function()
    for _, dtype in ipairs(c.floats) do
        for k, x in ipairs(c.views(5, 34, dtype)) do
            forms(tostring(dtype) .. " " .. k .. ", rows", x, 2)
            forms(tostring(dtype) .. " " .. k .. ", columns", x, 1)
        end
    end
end)

c.test("views_as_they_lie", function()
    for k, x in ipairs(c.views(6, 40, tide.float32)) do
        c.both("view " .. k, function(v) return v:softmax(1), v:log_softmax(2) end, x)
    end
end)

c.test("long_and_short_lines", function()
    for _, n in ipairs { 1, 2, 31, 33, 255, 257, 1023, 1025, 9000 } do
        forms("rows of " .. n, c.numbers({ 3, n }, tide.float32), 2)
        forms("columns of " .. n, c.numbers({ n, 2 }, tide.float32), 1)
    end
    for _, dtype in ipairs(c.floats) do -- few and many elements for a thread, packed or not, and more than threads hold
        for _, n in ipairs { 8, 248, 264, 1032, 9001, 33000, 66000 } do
            forms(tostring(dtype) .. " rows of " .. n, c.numbers({ 2, n }, dtype), 2)
        end
    end
    forms("in the middle", c.numbers({ 3, 7, 40 }, tide.float64), 2)
    c.both("0-dim", function(v) return v:softmax(1), v:log_softmax(1) end, tide.tensor(3.0))
    c.both("nothing", function(v) return v:softmax(1), v:softmax(2) end, tide.zeros(0, 3))
end)

c.test("infinities_and_nan", function()
    local inf, nan = math.huge, 0 / 0
    for _, row in ipairs { { 1, inf, 2 }, { -inf, 1, 2 }, { -inf, -inf, -inf }, { nan, 1, 2 }, { 1, 2, nan },
        { inf, inf, 0 }, { inf, nan, 1 }, { 1e30, -1e30, 1e30 }, { 700, 710, -700 } } do
        for _, dtype in ipairs { tide.float32, tide.float64 } do
            local x = tide.tensor(row, { dtype = dtype })
            c.both(table.concat(row, " "), function(v) return v:softmax(1), v:log_softmax(1) end, x)
            c.both("down " .. table.concat(row, " "), function(v) return v:softmax(1), v:log_softmax(1) end,
                x:reshape(3, 1):expand(3, 2))
        end
    end
end)
