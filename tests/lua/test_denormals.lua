-- test_denormals.lua: numbers too small for a float's usual form, kept or taken for zero.
local t = require "harness"

-- Which of the results are zero: by elements, by sums, by products, in every thread.
local function zeros()
    local small, tiny = tide.full({ 300, 1000 }, 1e-40), tide.full({ 300, 1000 }, 1e-310, { dtype = tide.float64 })
    local least, ones = tide.full({ 300000 }, 1e-30), tide.ones(1000, 64)
    local function none(x) return x:count_nonzero():item() == 0 end
    local lua = tiny[{ 1, 1 }]:item()
    return {
        none(small * 2), none(tiny * 2), none(least * 1e-10), small:sum():item() == 0, none(small:matmul(ones)),
        none(small:matmul(ones[{ ":", 1 }])), none(tiny:matmul(ones:double())), lua + lua == 0,
    }
end

local function all(value)
    return { value, value, value, value, value, value, value, value }
end

local able = tide.set_flush_denormal(false)

t.test("they_are_kept_at_first", function()
    t.eq(zeros(), all(false))
end)

t.test("they_are_zero_where_that_is_asked_for_in_all_threads", function()
    local threads = tide.get_num_threads()
    for _, n in ipairs { 1, 4, 2 } do
        tide.set_num_threads(n)
        t.eq(tide.set_flush_denormal(true), able)
        t.eq(zeros(), all(able))
        t.eq(tide.set_flush_denormal(false), able)
        t.eq(zeros(), all(false))
    end
    tide.set_num_threads(threads)
end)

t.test("numbers_of_the_usual_form_are_as_they_were", function()
    local x = tide.tensor { 1.17549435e-38, -1.5, 3e38, 0 / 0, 1 / 0 }
    tide.set_flush_denormal(true)
    local y = x * 1
    tide.set_flush_denormal(false)
    t.is_true(y[{ { 1, 3 } }]:equal(x[{ { 1, 3 } }]))
    t.is_true(y[4]:isnan():item() and y[5]:isinf():item())
end)
