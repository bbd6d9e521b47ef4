-- test_autograd.lua: recording, backward, gradients of gradients, views and writes in place, modes.
local t = require "harness"
local grad = tide.autograd.grad

local function leaf(...)
    return tide.tensor({ ... }, { dtype = tide.float64, requires_grad = true })
end
local function same(x, values)
    t.eq(x == tide.tensor(values, { dtype = x.dtype }), true, tostring(x))
end

t.test("gradients_accumulate_until_they_are_cleared", function()
    local x = leaf(1, 2)
    for _ = 1, 2 do
        local y = (x * x):sum()
        y:backward()
    end
    same(x.grad, { 4, 8 })
    x.grad = nil
    t.eq(x.grad, nil)
    x.grad = tide.ones(2, { dtype = tide.float64 })
    same(x.grad, { 1, 1 })
    t.error_has(function() x.grad = tide.ones(3) end, "(3)")
end)

t.test("diamonds_and_reuse", function()
    local x = leaf(3)
    local a = x * 2
    local y = a * a + a
    y:backward()
    same(x.grad, { 26 })
end)

t.test("broadcast_gradients_come_back_in_shape", function()
    local x, b = tide.ones(2, 3, { requires_grad = true }), tide.ones(3, { requires_grad = true })
    local s = tide.tensor(2.0, { requires_grad = true })
    local y = ((x + b) * s):sum()
    y:backward()
    t.eq(tostring(b.grad.shape), "(3)")
    t.eq(b.grad == tide.full({ 3 }, 4.0), true)
    t.eq(s.grad:item(), 12)
end)

t.test("dtype_of_a_gradient_is_the_leaf_s", function()
    local x = tide.ones(2, { requires_grad = true })
    local y = (x:double() * 2):sum()
    y:backward()
    t.eq(x.grad.dtype, tide.float32)
end)

t.test("grad_gives_values_and_leaves_leaves_alone", function()
    local x, y = leaf(2), leaf(5)
    local g = grad(x * x * y, { x, y })
    same(g[1], { 20 })
    same(g[2], { 4 })
    t.eq(x.grad, nil)
    t.error_has(function() return grad(x * 2, { y }) end, "no part")
    t.eq(grad(x * 2, { y }, { allow_unused = true })[1], false)
end)

t.test("grad_by_an_intermediate_leaves_the_graph_below_it", function()
    local x = leaf(2)
    local h = x * x
    same(grad(h * 3, { h })[1], { 3 })
    h:backward()
    same(x.grad, { 4 })
end)

t.test("gradients_of_gradients", function()
    local x = leaf(2)
    local y = x ^ 4
    for _, want in ipairs { 32, 48, 48 } do
        y = grad(y, { x }, { create_graph = true })[1]
        t.close(y:item(), want, 1e-9)
    end
    local z = leaf(0.5)
    local g = grad(z:exp():sin(), { z }, { create_graph = true })[1]
    g:backward()
    local e = math.exp(0.5)
    t.close(z.grad:item(), math.cos(e) * e - math.sin(e) * e * e, 1e-12)
end)

t.test("backward_twice_needs_the_graph_to_be_kept", function()
    local x = leaf(1, 2)
    local y = (x * x):sum()
    y:backward({ retain_graph = true })
    y:backward()
    same(x.grad, { 4, 8 })
    t.error_has(function() y:backward() end, "retain_graph = true")
end)

t.test("non_scalars_need_a_gradient_to_start_from", function()
    local x = leaf(1, 2)
    t.error_has(function() (x * 2):backward() end, "needs a gradient")
    local y = x * 2
    y:backward(tide.tensor({ 1, 10 }, { dtype = tide.float64 }))
    same(x.grad, { 2, 20 })
    t.error_has(function() tide.ones(1):backward() end, "does not require grad")
end)

t.test("a_gradient_to_start_from_lies_where_the_output_does", function()
    local x, elsewhere = tide.ones(2, { requires_grad = true }), tide.ones(2, { device = "meta" })
    local y, h = x * 2, tide.nn.LSTM(2, 2)(tide.ones(2, 2))
    for _, start in ipairs { function() y:backward(elsewhere) end, function() h:backward(elsewhere:expand(2, 2)) end,
        function() tide.autograd.grad(y, x, { grad_outputs = elsewhere }) end } do
        t.error_has(start, "gradient on meta for an output on cpu: move it there")
    end
    t.eq(x.grad, nil)
    local m = tide.ones(2, { device = "meta", requires_grad = true })
    m:sum():backward(tide.tensor(2.0)) -- a number belongs to every device
    t.eq(tostring(m.grad.device), "meta")
end)

t.test("writes_in_place_are_noticed", function()
    local x = leaf(1, 2)
    local h = x * 1
    local y = h:exp() * h
    h:add_(1)
    t.error_has(function() y:sum():backward() end, "changed in place")
    t.error_has(function() x:add_(1) end, "leaf")
    local a = leaf(1, 2)
    local b = a * 2
    b:mul_(3)
    local s = b:sum()
    s:backward()
    same(a.grad, { 6, 6 })
end)

t.test("writes_through_views_reach_the_base", function()
    local x = leaf(1, 2, 3)
    local y = x * 1
    y[{ { 2, 3 } }]:mul_(10)
    local s = (y * y):sum()
    s:backward()
    same(x.grad, { 2, 400, 600 })
    local base = leaf(1, 2, 3, 4) * 1
    local view = base:view(2, 2)
    base:mul_(2) -- the view sees it, and its history is the base's
    local g = grad(view[1]:sum(), { base })
    same(g[1], { 1, 1, 0, 0 })
end)

t.test("writes_through_views_of_a_base_that_is_not_row_major_are_right_or_refused", function()
    local x = tide.arange(6, { dtype = tide.float64 }):reshape(2, 3):requires_grad_(true)
    local y = x:t() * 1
    t.eq(y:is_contiguous(), false)
    local ok, message = pcall(function() y[1]:mul_(10) end)
    if ok then
        t.eq(grad((y * y):sum(), { x })[1]:tolist(), { { 0, 2, 4 }, { 600, 8, 10 } })
    else
        t.is_true(tostring(message):find("not row-major", 1, true), message)
        same(grad(y:sum(), { x })[1], { { 1, 1, 1 }, { 1, 1, 1 } })
    end
end)

t.test("writes_into_parts_reach_the_whole", function()
    for _, cut in ipairs { "unbind", "chunk", "split" } do
        local x = leaf(1, 2, 3)
        local y = x * 1
        local parts = cut == "unbind" and y:unbind() or y[cut](y, cut == "chunk" and 3 or 1)
        parts[1]:mul_(10)
        parts[3]:mul_(100)
        same(grad(y:sum(), { x })[1], { 10, 1, 100 })
    end
end)

t.test("views_of_a_leaf_that_is_a_view_itself_are_read_and_not_written", function()
    local x = tide.arange(6, { dtype = tide.float64 }):reshape(2, 3):requires_grad_(true)
    for _, view in ipairs { x[1], x:t()[1], x[2][3], x:view(3, 2)[{ { 2, 3 } }], x:unbind()[2] } do
        t.error_has(function() view:sin_() end, "a view of a leaf that requires grad")
    end
    t.error_has(function() x[1] = 0 end, "a view of a leaf that requires grad")
    local y = x[1][2] * 3 + x:t()[1]:sum() * x:view(3, 2)[3]:sum()
    y:backward()
    t.eq(x.grad:tolist(), { { 9, 3, 0 }, { 9, 3, 3 } })
    tide.no_grad(function() x[1]:fill_(7) end)
    t.eq(x:tolist(), { { 7, 7, 7 }, { 3, 4, 5 } })
end)

t.test("a_stale_view_with_several_uses_gets_all_its_gradients", function()
    local x = leaf(1, 2)
    local base = x * 1
    local view = base:view(2)
    base:mul_(2)
    local first = view * 3
    local second = view * 5
    local sum = (first + second):sum()
    sum:backward()
    same(x.grad, { 16, 16 })
end)

t.test("modes", function()
    local x = leaf(1)
    t.eq(tide.no_grad(function() return (x * 2).requires_grad end), false)
    do
        local _ <close> = tide.no_grad()
        t.eq(tide.is_grad_enabled(), false)
        local _ <close> = tide.enable_grad()
        t.eq((x * 2).requires_grad, true)
    end
    t.eq(tide.is_grad_enabled(), true)
    t.error_has(function() tide.no_grad(function() error("inside") end) end, "inside")
    t.eq(tide.is_grad_enabled(), true, "an error restores the mode")
    t.eq(x:detach().requires_grad, false)
end)

t.test("leaves_and_functions_are_told_apart", function()
    local x = leaf(1)
    local y = x * 2
    t.eq(x.is_leaf, true)
    t.eq(y.is_leaf, false)
    t.is_true(tostring(y.grad_fn):find("MulBackward"))
    t.eq(x.grad_fn, nil)
    y:retain_grad()
    local z = y * 3
    z:backward()
    same(y.grad, { 3 })
    t.error_has(function() tide.ones(2):int():requires_grad_(true) end, "floating")
end)

t.test("a_tensor_that_is_gone_retains_nothing", function()
    local x = leaf(1, 2)
    local y = x * 2
    y:retain_grad()
    local z = (y * 3):sum()
    y:free()
    local others = {}
    for k = 1, 8 do
        others[k] = leaf(k) * 1
    end
    z:backward()
    same(x.grad, { 6, 6 })
    for k, other in ipairs(others) do
        t.eq(other.grad, nil, "result " .. k .. ", made in the memory that became free")
    end
end)

t.test("gradients_of_single_results_are_their_own", function()
    local x = leaf(1, 2, 3)
    local parts = (x * 1):unbind()
    local g = grad((parts[1] * 2 + parts[2] * 5 + parts[3]):sum(), { parts[2], parts[3], x })
    same(g[1], 5)
    same(g[2], 1)
    same(g[3], { 2, 5, 1 })
end)

t.test("results_that_are_no_floats_require_no_grad", function()
    local x = leaf(3, 1, 2)
    local values, places = x:max(1)
    t.eq(values.requires_grad, true)
    t.eq(places.requires_grad, false)
    t.eq(x:argmax().requires_grad, false)
    t.eq(x:gt(1).requires_grad, false)
    t.eq(x:to(tide.int64).requires_grad, false)
    t.eq(x:nonzero().requires_grad, false)
end)

t.test("a_random_fill_leaves_a_gradient_of_zero", function()
    local x = leaf(1, 2)
    local y = x * 2
    y:uniform_()
    t.eq(y.requires_grad, true)
    same(grad((y + x):sum(), { x })[1], { 1, 1 })
end)

t.test("deep_graphs_neither_overflow_nor_leak", function()
    local x = leaf(1)
    local y = x
    for _ = 1, 100000 do
        y = y + 1
    end
    y:backward()
    same(x.grad, { 1 })
    y = nil
    collectgarbage()
    local deep = x * 1
    for _ = 1, 100000 do
        deep = deep * 1
    end
    deep = nil
    collectgarbage() -- freed without a backward, and without recursion
end)

t.test("gradcheck_finds_wrong_gradients", function()
    local x = leaf(0.5, 1.5)
    t.eq(tide.autograd.gradcheck(function(a) return a:sin() end, { x }), true)
    t.error_has(function()
        tide.autograd.gradcheck(function(a) return a * a:detach() end, { x })
    end, "element 1")
    t.error_has(function() tide.autograd.gradcheck(function(a) return a end, { tide.ones(1, { requires_grad = true }) }) end,
        "float64")
end)

t.test("gradgradcheck_covers_the_gradients_that_come_in", function()
    local check, x = tide.autograd.gradgradcheck, leaf(0.5, 1.5)
    t.eq(check(function(a) return a:sin(), a * a end, { x }), true)
    t.eq(check(function(a) return a * 2 end, { x }), true)
    t.eq(check(function(a) return a:floor() end, { x }), true)
    -- at a tie the gradient jumps, though differences of the values agree with it
    t.eq(tide.autograd.gradcheck(tide.maximum, { leaf(1), leaf(1) }), true)
    t.error_has(function() check(tide.maximum, { leaf(1), leaf(1) }) end, "gradgradcheck: output 1 by input 1: element 1")
    t.error_has(function() check(function(a) return a end, { x }, { epz = 1 }) end, "did you mean 'eps'?")
    t.error_has(function() check(3, { x }) end, "expected a function")
end)

t.test("nodes_that_save_nothing_are_gone_through_again", function()
    local x = tide.ones(2, { requires_grad = true })
    local y = x:to(tide.bfloat16)
    local one, two = (y * 2):sum(), (y * 3):sum()
    one:backward()
    two:backward()
    t.eq(x.grad:tolist(), { 5, 5 })
end)

t.test("gradients_of_parts_meet_in_one_tensor", function()
    local x = tide.rand(40, 3, 200):double():requires_grad_()
    local function of_parts(v)
        local sum = tide.zeros(3, 200):double()
        for k = 1, 40 do
            sum = sum + v[k] * v[k] * k
        end
        return sum:sum() + v:narrow(2, 2, 2):exp():sum() + v:slice(3, 1, -1, 3):sum() + v:select(3, -1):square():sum()
    end
    local function whole(v)
        local n = tide.arange(1, 41):double():view(40, 1, 1)
        local first, third, last = tide.zeros(3, 1):double(), tide.zeros(200):double(), tide.zeros(200):double()
        first["2:3"], third["1:200:3"], last[200] = 1, 1, 1
        return (v * v * n + v:exp() * first + v * third + v:square() * last):sum()
    end
    local by_parts, by_whole = tide.autograd.grad(of_parts(x), x)[1], tide.autograd.grad(whole(x), x)[1]
    t.is_true(tide.allclose(by_parts, by_whole, { rtol = 1e-14, atol = 1e-14 }))

    -- One tensor of zeros for all parts, to which the others are added.
    local rows = {}
    for k = 1, 40 do
        rows[k] = x[k]
    end
    local y = tide.stack(rows)
    local ones = tide.ones_like(y)
    local recorded = tide.profiler.profile(function() tide.autograd.grad(y, x, { grad_outputs = ones }) end)
    local zeros = tostring(recorded):match "\nslice_backward +kernel[^\n]- (%d+) +[%d.]+ [^\n]+\n"
    t.eq(tonumber(zeros), 1)
end)

t.test("only_gradients_that_are_asked_for_are_computed", function()
    local x, w = tide.randn(2, 3, 8, 8, { requires_grad = true }), tide.randn(4, 3, 3, 3, { requires_grad = true })
    local function ran(fn)
        local names = {}
        for _, e in ipairs(tide.profiler.profile(fn):events()) do
            names[e.name] = true
        end
        return { input = names.conv_input or false, weight = names.conv_weight or false }
    end
    local y = tide.conv2d(x, w):sum()
    local both = grad(y, { x, w }, { retain_graph = true })
    local one
    t.eq(ran(function() one = grad(y, { x }, { retain_graph = true }) end), { input = true, weight = false })
    t.eq(tide.equal(one[1], both[1]), true)
    t.eq(ran(function() one = grad(y, { w }, { retain_graph = true }) end), { input = false, weight = true })
    t.eq(tide.equal(one[1], both[2]), true)
    t.eq(ran(function() y:backward { inputs = { w }, retain_graph = true } end), { input = false, weight = true })
    t.eq(ran(function() y:backward() end), { input = true, weight = true })
end)

t.test("the_gradient_of_a_base_comes_through_writes_into_its_views", function()
    local x, z = leaf(1, 2, 3), leaf(5, 7)
    local y = x * 1
    y[{ { 2, 3 } }]:mul_(z)
    local s = (y * y):sum()
    same(grad(s, { x }, { retain_graph = true })[1], { 2, 100, 294 })
    same(grad(s, { z })[1], { 40, 126 })
end)

t.test("what_only_the_gradient_of_a_constant_would_read_is_not_kept", function()
    local constants = { tide.ones(2, 2), tide.ones(2, 2):t(), tide.ones(1, 2):expand(2, 2), tide.ones(8):view(2, 2, 2)[2] }
    for k, w in ipairs(constants) do
        for _, product in ipairs { tide.mm, tide.mul, tide.matmul, function(x, y) return x:mv(y[1]) end, function(x, y) return x:div(y) end } do
            local x = tide.full({ 2, 2 }, 3.0, { requires_grad = true })
            local h = x * 1
            local y = product(h, w)
            h:fill_(0) -- read by w's gradient alone
            y:sum():backward()
            t.is_true(x.grad:gt(0):all():item(), "constant " .. k)
        end
    end
end)
