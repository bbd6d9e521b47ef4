-- test_composites.lua: values and gradients, from PyTorch, of operators that are formulas over others.
local t = require "harness"
local nan, inf = 0 / 0, math.huge

local function leaf(values)
    return tide.tensor(values, { dtype = tide.float64, requires_grad = true })
end
local function same(x, values)
    local want = tide.tensor(values, { dtype = x.dtype })
    t.eq(tostring(x.shape), tostring(want.shape))
    local equal = ((x - want):abs():lt(1e-12) | x:eq(want) | (x:isnan() & want:isnan())):all():item()
    t.is_true(equal, tostring(x))
end

t.test("softshrink_draws_towards_zero", function()
    local x = leaf { -2, -0.5, -0.25, 0, 0.5, 0.75, 3, nan, inf }
    local y = tide.softshrink(x)
    y:sum():backward()
    same(y:detach(), { -1.5, 0, 0, 0, 0, 0.25, 2.5, nan, inf })
    same(x.grad, { 1, 0, 0, 0, 0, 1, 1, 1, 1 })
    x.grad = nil
    y = x:softshrink(0.2)
    y:sum():backward()
    same(y:detach(), { -1.8, -0.3, -0.05, 0, 0.3, 0.55, 2.8, nan, inf })
    same(x.grad, { 1, 1, 1, 0, 1, 1, 1, 1, 1 })
end)

t.test("nanmean_is_the_mean_of_what_is_a_number", function()
    local x = leaf { { 1, nan, 3 }, { nan, nan, nan }, { 4, 5, 9 } }
    x:nanmean():backward()
    same(x.grad, { { 0.2, 0, 0.2 }, { 0, 0, 0 }, { 0.2, 0.2, 0.2 } })
    same(tide.nanmean(x):detach(), 4.4)
    same(tide.nanmean(x, 2):detach(), { 2, nan, 6 })
    x.grad = nil
    local y = tide.nanmean(x, 1, { keepdim = true })
    same(y:detach(), { { 2.5, 5, 6 } })
    y:sum():backward()
    same(x.grad, { { 0.5, 0, 0.5 }, { 0, 0, 0 }, { 0.5, 1, 0.5 } })
    same(tide.nanmean(x, { 1, 2 }, { keepdim = true }):detach(), { { 4.4 } })
    t.eq(tide.nanmean(tide.ones(2)).dtype, tide.float32)
    t.is_true(tide.nanmean(tide.zeros(0)):isnan():item())
end)

t.test("errors_name_the_operator_that_was_called", function()
    t.error_has(function() tide.nanmean(tide.ones(2), 3) end, "nanmean: ")
    t.error_has(function() tide.ones(2):view_as(tide.ones(3)) end, "view_as: ")
    t.error_has(function() tide.ones(2):broadcast_to(3) end, "broadcast_to: ")
end)

t.test("triangles_of_views_are_written_in_place", function()
    local x = tide.arange(16):reshape(4, 4):to(tide.float32)
    x:t():tril_()
    same(x, { { 0, 1, 2, 3 }, { 0, 5, 6, 7 }, { 0, 0, 10, 11 }, { 0, 0, 0, 15 } })
    local y = tide.ones(4, 6):slice(2, 1, 6, 2)
    y:triu_(1)
    same(y, { { 0, 1, 1 }, { 0, 0, 1 }, { 0, 0, 0 }, { 0, 0, 0 } })
    same(tide.ones(2, 3):tril(-9), { { 0, 0, 0 }, { 0, 0, 0 } })
    same(tide.ones(2, 3):triu(9), { { 0, 0, 0 }, { 0, 0, 0 } })
end)

t.test("gradients_of_places_from_the_end", function()
    local x = leaf { { 1, 2, 3 }, { 4, 5, 6 } }
    for index, want in pairs { [-1] = { 0, 0, 1 }, [-2] = { 0, 1, 0 }, [-3] = { 1, 0, 0 }, [2] = { 0, 1, 0 } } do
        x.grad = nil
        x:select(2, index):sum():backward()
        same(x.grad, { want, want })
    end
    x.grad = nil
    x:slice(2, -2, -1):sum():backward()
    same(x.grad, { { 0, 1, 1 }, { 0, 1, 1 } })
end)
