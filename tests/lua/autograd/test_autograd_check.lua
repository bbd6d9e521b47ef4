-- test_autograd_check.lua: gradcheck, gradgradcheck, and what tide.autograd.functional derives from gradients.
local t = require "harness"
local check, check2 = tide.autograd.gradcheck, tide.autograd.gradgradcheck
local f = tide.autograd.functional
local f64 = { dtype = tide.float64, requires_grad = true }

local function leaf(...)
    return tide.tensor({ ... }, f64)
end
local function plain(values)
    return tide.tensor(values, { dtype = tide.float64 })
end

t.test("gradcheck_of_a_right_gradient_is_true", function()
    t.eq(check(function(x) return (x:tanh() * x):sum() end, { tide.randn(3, f64) }), true)
    t.eq(check(function(x, y) return x:matmul(y), (x * 2):t() end, { tide.randn(2, 3, f64), tide.randn(3, 2, f64) }), true)
    t.eq(check(tide.sin, leaf(1, 2)), true)
    t.eq(check(tide.sin, tide.tensor(0.5, f64)), true)
    t.eq(check(tide.sin, tide.zeros(0, f64)), true)
    t.eq(check(function(x, n) return x * n end, { leaf(1), tide.ones(1, { dtype = tide.float64 }) }), true)
    t.eq(check(function(x) return x * 2, x:gt(1) end, { leaf(1, 2) }), true)
    t.eq(check(function(x) return x:detach() * 0 + 1 end, { leaf(1, 2) }), true)
    t.eq(check(tide.sin, { leaf(1, 2) }, { fast_mode = true }), true)
    t.eq(check2(tide.sin, { leaf(1, 2) }, { fast_mode = true }), true)
end)

t.test("messages_say_which_and_show_numbers", function()
    local function half(x, y) return x * 3, x * y:detach() + y * 0 end
    t.error_has(function() check(half, { leaf(1, 2), leaf(5, 6) }) end,
        "gradcheck: output 2 by input 2: element 1 of the output by element 1 of the input: the gradient is 0, differences give ")
    t.error_has(function() check(half, { leaf(1, 2), leaf(5, 6) }) end, ", and 2 of 4 such pairs differ")
    t.error_has(function() check(half, { leaf(1, 2), leaf(5, 6) }, { fast_mode = true }) end,
        "output 2 by input 2: a weighted sum of the gradient is 0, differences give ")
    t.eq(check(half, { leaf(1, 2), leaf(5, 6) }, { raise_exception = false }), false)
    t.eq(check(half, { leaf(1, 2), leaf(5, 6) }, { atol = 10 }), true)
    t.error_has(function() check(function(x) return x:detach() end, { leaf(1, 2) }) end,
        "gradcheck: output 1 does not require grad, and differences by input 1 give 1")
    t.error_has(function() check(tide.sin, { tide.ones(1) }) end, "gradcheck: no input requires grad")
    t.error_has(function() check(tide.sin, { tide.ones(1, { requires_grad = true }) }) end,
        "gradcheck: input 1 is tide.float32: differences need float64")
    t.error_has(function() check(function() error("own") end, { leaf(1) }, { raise_exception = false }) end, "own")
    t.error_has(function() check2(tide.maximum, { leaf(1), leaf(1) }) end, "gradgradcheck: output 1 by input 1")
    t.error_has(function() check2(tide.sin, { leaf(1) }, { grad_outputs = {} }) end, "0 grad_outputs for 1 outputs")
    t.eq(check2(tide.sin, { leaf(1) }, { grad_outputs = plain { 3 } }), true)
end)

t.test("a_backward_that_is_not_the_same_twice_is_found", function()
    local noise = 0
    local F = tide.autograd.Function { forward = function(_, x) return x * 2 end, backward = function(_, g)
        noise = noise + 1e-7
        return g * (2 + noise)
    end }
    t.error_has(function() check(F, { leaf(1, 2) }) end, "backward is not the same twice: gradients of input 1 differ by")
    noise = 0
    t.eq(check(F, { leaf(1, 2) }, { nondet_tol = 1e-3 }), true)
end)

-- ---- functional ----

local function near(x, want)
    t.close(x:tolist(), want, 1e-12)
    t.eq(x.requires_grad, false)
end

t.test("jacobians_are_shaped_as_outputs_then_inputs", function()
    near(f.jacobian(function(x) return x * x end, plain { 1, 2 }), { { 2, 0 }, { 0, 4 } })
    local both = f.jacobian(function(x, y) return x * y end, { plain { 1, 2 }, plain { 3, 4 } })
    near(both[1], { { 3, 0 }, { 0, 4 } })
    near(both[2], { { 1, 0 }, { 0, 2 } })
    local outputs = f.jacobian(function(x) return x:sum(), x * 2 end, plain { 1, 2 })
    near(outputs[1], { 1, 1 })
    near(outputs[2], { { 2, 0 }, { 0, 2 } })
    t.eq(tostring(f.jacobian(function(x) return x:reshape(3, 2) end, tide.ones(2, 3)).shape), "(3, 2, 2, 3)")
    near(f.jacobian(function(x) return plain { 1 } + 0 * x:detach() end, plain { 1 }), { { 0 } })
    t.error_has(function() f.jacobian(function(x) return x:detach() end, plain { 1 }, { strict = true }) end,
        "jacobian: the outputs don't depend on input 1 (strict)")
    local x = leaf(2)
    local j = f.jacobian(function(v) return v * v * v end, x, { create_graph = true })
    t.eq(tide.autograd.grad(j:sum(), { x })[1]:tolist(), { 12 })
    t.eq(x.grad, nil)
    t.error_has(function() f.jacobian(function() return 3 end, x) end, "the function's result 1 is number 3")
    t.error_has(function() f.jacobian(tide.sin, 3) end, "inputs: a tensor or a list of tensors expected")
end)

t.test("hessians", function()
    near(f.hessian(function(x) return (x * x * x):sum() end, plain { 1, 2 }), { { 6, 0 }, { 0, 12 } })
    local h = f.hessian(function(x, y) return (x * x * y):sum() end, { plain { 1, 2 }, plain { 3, 4 } })
    near(h[1][1], { { 6, 0 }, { 0, 8 } })
    near(h[1][2], { { 2, 0 }, { 0, 4 } })
    near(h[2][1], { { 2, 0 }, { 0, 4 } })
    near(h[2][2], { { 0, 0 }, { 0, 0 } })
    near(f.hessian(function(x) return x:sum() end, plain { 1, 2 }), { { 0, 0 }, { 0, 0 } })
    near(f.hessian(function(x) return (x * x):sum() end, { plain { 1 } })[1][1], { { 2 } })
    t.error_has(function() f.hessian(tide.sin, plain { 1, 2 }) end, "fn must return one tensor of one element")
end)

t.test("products_with_jacobians_and_hessians", function()
    local function fn(x) return x * x end
    local y, g = f.vjp(fn, plain { 1, 2 }, plain { 10, 100 })
    near(y, { 1, 4 })
    near(g, { 20, 400 })
    y, g = f.jvp(fn, plain { 1, 2 }, plain { 10, 100 })
    near(y, { 1, 4 })
    near(g, { 20, 400 })
    local function matrix(x) return plain { { 1, 2 }, { 3, 4 }, { 5, 6 } }:matmul(x) end
    local _, v = f.vjp(matrix, plain { 1, 1 }, plain { 1, 0, 1 })
    near(v, { 6, 8 })
    _, v = f.jvp(matrix, plain { 1, 1 }, plain { 1, 0 })
    near(v, { 1, 3, 5 })
    local function cube(x) return (x * x * x):sum() + x[1] * x[2] end
    _, v = f.hvp(cube, plain { 1, 2 }, plain { 1, 10 })
    near(v, { 16, 121 })
    _, v = f.vhp(cube, plain { 1, 2 }, plain { 1, 10 })
    near(v, { 16, 121 })
    _, v = f.vjp(function(a, b) return (a * b):sum() end, { plain { 1, 2 }, plain { 3, 4 } })
    near(v[1], { 3, 4 })
    near(v[2], { 1, 2 })
    t.error_has(function() f.vjp(fn, plain { 1, 2 }) end, "vjp: v is missing")
    t.error_has(function() f.jvp(fn, plain { 1, 2 }, 7) end, "jvp: v: a tensor or a list of tensors expected, got number 7")
    t.error_has(function() f.vjp(fn, plain { 1, 2 }, { 7 }) end, "vjp: v 1: a tensor expected, got number 7")
    t.error_has(function() f.jvp(fn, plain { 1, 2 }, plain { 1 }) end, "v 1 has shape (1), the input (2)")
    t.error_has(function() f.hvp(fn, plain { 1, 2 }, plain { 1, 2 }) end, "one element")
    t.eq(tide.no_grad(function() return select(2, f.vjp(fn, plain { 3 })):item() end), 6)
end)
