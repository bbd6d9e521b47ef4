-- test_autograd_function.lua: tide.autograd.Function: operators whose gradient is written in Lua.
local t = require "harness"
local grad, Function = tide.autograd.grad, tide.autograd.Function
local f64 = { dtype = tide.float64, requires_grad = true }

local function leaf(...)
    return tide.tensor({ ... }, f64)
end

local Exp = Function("Exp")
function Exp.forward(ctx, x)
    local y = x:exp()
    ctx:save_for_backward(y)
    return y
end
function Exp.backward(ctx, g)
    return g * ctx.saved_tensors[1]
end

local Scale = Function { name = "Scale", forward = function(ctx, x, factor)
    ctx.factor = factor
    return x * factor
end, backward = function(ctx, g) return g * ctx.factor, nil end }

local function with(backward, forward)
    return Function("F", { backward = backward, forward = forward or function(_, x) return x * 2 end })
end

t.test("a_function_s_gradient_is_its_backward_s", function()
    local x = leaf(0.5, 1)
    local y = Exp(x)
    t.eq(tostring(y.grad_fn), "<ExpBackward>")
    t.eq(y == x:exp(), true)
    local s = y:sum()
    s:backward()
    t.eq(x.grad == x:exp(), true)
    t.eq(grad(Scale.apply(x, 3):sum(), { x })[1]:tolist(), { 3, 3 })
    t.eq(grad(Scale:apply(x, 3):sum(), { x })[1]:tolist(), { 3, 3 })
    t.eq(tide.autograd.gradcheck(Exp, { x }), true)
    t.eq(tide.autograd.gradgradcheck(Exp, { x }), true)
    t.eq(tostring(Exp), 'tide.autograd.Function("Exp")')
end)

t.test("gradients_of_gradients_go_through_a_lua_backward", function()
    local x = leaf(0.5)
    local y = Exp(x)
    for _ = 1, 3 do
        y = grad(y, { x }, { create_graph = true })[1]
        t.close(y:item(), math.exp(0.5), 1e-12)
        t.eq(y.requires_grad, true)
    end
end)

t.test("contexts_know_what_is_needed", function()
    local seen
    local F = with(function(_, g) return g end, function(ctx, ...)
        seen = ctx.needs_input_grad
        t.eq(tide.is_grad_enabled(), false)
        t.eq(ctx.saved_tensors, {})
        return (...) * 2
    end)
    local x = leaf(1)
    F(x, 3, tide.ones(1), nil)
    t.eq(seen, { true, false, false, false })
    tide.no_grad(F, x)
    t.eq(seen, { false })
    t.eq(tide.no_grad(F, x).requires_grad, false)
    t.eq(F(tide.ones(1)).requires_grad, false)
end)

t.test("outputs_may_be_several_and_of_any_kind", function()
    local Split = Function("Split")
    function Split.forward(ctx, x)
        local places = x:argmax()
        ctx.n = x:numel()
        return x * 2, "text", places, nil, x * 3
    end
    function Split.backward(ctx, a, text, places, none, b)
        t.eq({ text, places, none }, {})
        t.eq(ctx.n, 2)
        return a * 2 + b * 3
    end
    local x = leaf(1, 2)
    local a, text, places, none, b = Split(x)
    t.eq({ text, none, places.requires_grad, a.requires_grad, b.requires_grad }, { "text", nil, false, true, true })
    t.eq(grad((b * 10):sum(), { x }, { retain_graph = true })[1]:tolist(), { 30, 30 })
    t.eq(grad({ a:sum(), b:sum() }, { x })[1]:tolist(), { 5, 5 })
end)

t.test("missing_gradients_are_zeros_or_nil", function()
    local seen
    local function make(materialize)
        return with(function(_, a, b)
            seen = { a and a:tolist() or "none", b and b:tolist() or "none" }
            return b
        end, function(ctx, x)
            if not materialize then
                ctx:set_materialize_grads(false)
            end
            return x * 2, x * 3
        end)
    end
    local x = leaf(1, 2)
    local _, b = make(true)(x)
    b:sum():backward()
    t.eq(seen, { { 0, 0 }, { 1, 1 } })
    _, b = make(false)(x)
    b:sum():backward()
    t.eq(seen, { "none", { 1, 1 } })
end)

t.test("outputs_may_be_no_part_of_the_graph", function()
    local F = with(function(_, a, b)
        t.eq(a, nil)
        return b
    end, function(ctx, x)
        local a = x * 2
        ctx:mark_non_differentiable(a)
        return a, x * 3
    end)
    local x = leaf(1)
    local a, b = F(x)
    t.eq({ a.requires_grad, b.requires_grad }, { false, true })
    t.eq(grad(b, { x })[1]:tolist(), { 1 })
end)

t.test("an_input_given_back_is_another_tensor", function()
    local F = with(function(_, g) return g * 5 end, function(_, x) return x end)
    local x = leaf(1, 2)
    local y = F(x)
    t.eq(rawequal(y, x), false)
    t.eq({ x.is_leaf, y.is_leaf }, { true, false })
    t.eq(y:data_ptr(), x:data_ptr())
    t.eq(grad(y:sum(), { x })[1]:tolist(), { 5, 5 })
    local h = x * 1
    local z = F(h)
    t.error_has(function() z:add_(1) end, "a view that a function (FBackward) returned")
    t.error_has(function() y:add_(1) end, "a view of a leaf")
    local V = with(function(_, g) return g:view(2) end, function(_, v) return v:view(2, 1) end)
    t.eq(grad(V(h):sum(), { x })[1]:tolist(), { 1, 1 })
    t.error_has(function() V(h):add_(1) end, "a view that a function")
end)

t.test("inputs_written_in_place_are_marked", function()
    local Add = with(function(_, g) return g * 7 end, function(ctx, x)
        x:add_(1)
        ctx:mark_dirty(x)
        return x
    end)
    local x = leaf(1, 2)
    local h = x * 3
    local y = Add(h)
    t.eq(rawequal(y, h), true)
    t.eq(tostring(h.grad_fn), "<FBackward>")
    t.eq(grad(h:sum(), { x })[1]:tolist(), { 21, 21 })
    local base = x * 3
    local part = base[1]
    Add(part)
    t.eq(base:tolist(), { 4, 6 })
    t.eq(grad(base:sum(), { x })[1]:tolist(), { 21, 3 })
    t.error_has(function() Add(x) end, "input 1, a leaf that requires grad, is written in place")
    t.eq(x:tolist(), { 2, 3 }) -- what forward did is done
    local Lost = with(nil, function(ctx, v)
        ctx:mark_dirty(v)
        return v * 1
    end)
    t.error_has(function() Lost(leaf(1) * 1) end, "input 1 was marked dirty and is no output")
    local Odd = with(nil, function(ctx, v)
        ctx:mark_dirty(tide.ones(1))
        return v
    end)
    t.error_has(function() Odd(leaf(1)) end, "mark_dirty: the tensor is no input of the function")
end)

t.test("saved_tensors_are_inputs_outputs_and_others", function()
    local other = leaf(3)
    local histories
    local F = with(function(ctx, g)
        local x, y, none, w = table.unpack(ctx.saved_tensors, 1, 4)
        histories = { tostring(x.grad_fn), tostring(y.grad_fn), none, tostring(w.grad_fn), w == other }
        return g * w * y
    end, function(ctx, x)
        local y = x * other
        ctx:save_for_backward(x, y, nil, other)
        return y
    end)
    local x = leaf(2)
    local h = x * 1
    local g = grad(F(h), { x }, { create_graph = true })[1]
    t.eq(histories, { "<MulBackward>", "<FBackward>", false, "nil", true })
    t.eq(g:item(), 18)
    -- d (w y(x)) / dx = w * dy/dx, by F's own backward: w * (w y)
    t.eq(grad(g, { x })[1]:item(), 3 * 18)
    local F2 = with(nil, function(ctx, v)
        ctx:save_for_backward(v, 3)
        return v
    end)
    t.error_has(function() F2(x) end, "save_for_backward: argument 2: a tensor or nil expected, got number 3")
end)

t.test("saved_tensors_that_changed_are_refused", function()
    local x = leaf(1)
    local y = Exp(x)
    y:add_(1)
    t.error_has(function() y:backward() end, "ExpBackward needs was changed in place after it was saved")
    y = Exp(x)
    y:backward()
    t.error_has(function() y:backward() end, "backward a second time")
    local kept
    local F = with(function(_, g) return g end, function(ctx, v)
        kept = ctx
        ctx:save_for_backward(v)
        return v * 1
    end)
    F(x):backward()
    t.error_has(function() return kept.saved_tensors end, "this context's call is over")
    t.error_has(function() kept:save_for_backward(x) end, "call it as ctx:save_for_backward(...) in forward")
end)

t.test("what_backward_returns_must_fit", function()
    local x = leaf(1, 2)
    local function run(backward, ...)
        local s = with(backward)(x, ...):sum()
        s:backward()
    end
    t.error_has(function() run(function(_, g) return g, g end) end, "FBackward: backward returned 2 gradients for 1 inputs")
    t.error_has(function() run(function(_, g) return g end, leaf(1)) end, "FBackward: backward returned 1 gradients for 2 inputs")
    t.error_has(function() run(function(_, g) return g, g end, 3) end, "a gradient for input 2, which is no tensor")
    t.error_has(function() run(function() return 3 end) end, "returned number 3 as the gradient of input 1")
    t.error_has(function() run(function() return tide.ones(3, { dtype = tide.float64 }) end) end, "(3)")
    t.eq(x.grad, nil)
    run(function() return nil, nil end, 3)
    t.eq(x.grad, nil)
    run(function(_, g) return g, nil, nil end, 3)
    t.eq(x.grad:tolist(), { 1, 1 })
    run(function() return tide.ones(1) end) -- brought to the input's shape and dtype
    t.eq({ x.grad:tolist(), x.grad.dtype }, { { 2, 2 }, tide.float64 })
    t.error_has(function() Function("None")(x) end, "None: the function has no forward")
    t.error_has(function() Function("Half", { forward = function(_, v) return v * 1 end })(x):sum():backward() end,
        "HalfBackward: the function has no backward")
    t.error_has(function() Function(3) end, "a name expected, got number 3")
end)

t.test("errors_have_the_line_of_the_function", function()
    local x = leaf(1)
    local F = with(function() error("in backward") end)
    t.error_matches(function() F(x):backward() end, "^[^:]*test_autograd_function.lua:%d+: in backward$")
    local G = with(nil, function(_, v) return v + nil end)
    t.error_matches(function() G(x) end, "^[^:]*test_autograd_function.lua:%d+: ")
    t.eq(tide.is_grad_enabled(), true)
    local s = Exp(x)
    s:backward()
    t.close(x.grad:item(), math.exp(1), 1e-12)
end)

t.test("once_differentiable_says_so", function()
    local once = tide.autograd.once_differentiable
    local F = with(once(function(ctx, g)
        t.eq(tide.is_grad_enabled(), false)
        return g * ctx.saved_tensors[1]
    end), function(ctx, x)
        ctx:save_for_backward(x)
        return x * x
    end)
    local x = leaf(3)
    t.eq(grad(F(x), { x })[1]:item(), 3)
    local y = F(x)
    local g = grad(y * y, { x }, { create_graph = true })[1]
    t.error_has(function() grad(g, { x }, { retain_graph = true }) end, "once_differentiable")
    t.error_has(function() g:backward() end, "once_differentiable")
    t.error_has(function() once(3) end, "expected a function")
end)

t.test("functions_nest_and_run_backward_within", function()
    local Inner = with(function(ctx, g)
        local x = ctx.saved_tensors[1]:detach():requires_grad_(true)
        local y = tide.enable_grad(function() return (Exp(x) * 2):sum() end)
        return g * grad(y, { x })[1]
    end, function(ctx, x)
        ctx:save_for_backward(x)
        return Exp(x) * 2
    end)
    local x = leaf(0.5, 1)
    t.eq(tide.autograd.gradcheck(Inner, { x }), true)
end)

t.test("backward_of_its_own_graph_within_backward_is_no_crash", function()
    local y
    local F = with(function(_, g)
        y:backward()
        return g
    end)
    local x = leaf(1)
    y = F(x)
    t.error_has(function() y:backward() end, "")
end)

t.test("coroutines_may_run_functions", function()
    local x = leaf(1)
    local co = coroutine.wrap(function()
        local y = Exp(x)
        coroutine.yield()
        y:backward()
        return x.grad:item()
    end)
    co()
    t.close(co(), math.exp(1), 1e-12)
end)

t.test("contexts_go_with_their_graph", function()
    local alive = setmetatable({}, { __mode = "k" })
    local F = with(function(_, g) return g end, function(ctx, x)
        alive[ctx] = true
        ctx.own = x -- an input leads nowhere back
        return x * 2
    end)
    local function count()
        collectgarbage()
        local _ = tide.ones(100) + 1
        collectgarbage()
        collectgarbage()
        local n = 0
        for _ in pairs(alive) do
            n = n + 1
        end
        return n
    end
    local x = leaf(1)
    local y = F(x)
    t.eq(count(), 1)
    y = nil
    t.eq(count(), 0)
    y = F(x)
    y:backward()
    t.eq(count(), 0, "backward lets go of what it need not keep")
end)

t.test("a_step_of_training_through_a_function_leaks_nothing", function()
    local x = leaf(1, 2)
    local function step()
        local s = Exp(x):sum()
        s:backward()
        x.grad = nil
    end
    for _ = 1, 50 do
        step()
    end
    collectgarbage()
    collectgarbage()
    local before = tide.memory_stats().allocated
    for _ = 1, 500 do
        step()
    end
    collectgarbage()
    collectgarbage()
    t.is_true(tide.memory_stats().allocated <= before + 4096)
end)

t.test("a_context_may_be_set_up_behind_forward", function()
    local Product = tide.autograd.Function("Product", {
        forward = function(x, y, k) return x * y * k, x + y end,
        setup_context = function(ctx, inputs, product, sum)
            ctx:save_for_backward(inputs[1], inputs[2])
            ctx:mark_non_differentiable(sum)
            ctx.k = inputs[3]
            ctx.same = product.shape == sum.shape
        end,
        backward = function(ctx, g)
            local x, y = table.unpack(ctx.saved_tensors)
            t.is_true(ctx.same and ctx.needs_input_grad[1])
            return g * y * ctx.k, g * x * ctx.k
        end,
    })
    local x = tide.tensor({ 1, 2 }, { dtype = tide.float64, requires_grad = true })
    local y = tide.tensor({ 3, 5 }, { dtype = tide.float64, requires_grad = true })
    local product, sum = Product(x, y, 2)
    t.is_false(sum.requires_grad)
    product:sum():backward()
    t.eq({ product:tolist(), x.grad:tolist(), y.grad:tolist() }, { { 6, 20 }, { 6, 10 }, { 2, 4 } })
    t.is_true(tide.autograd.gradcheck(function(a, b) return (Product(a, b, 3)) end, { x, y }))
end)
