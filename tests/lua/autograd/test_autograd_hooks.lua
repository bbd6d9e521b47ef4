-- test_autograd_hooks.lua: hooks on tensors and nodes, the graph as Lua sees it, backward into inputs.
local t = require "harness"
local grad = tide.autograd.grad
local f64 = { dtype = tide.float64, requires_grad = true }

local function leaf(...)
    return tide.tensor({ ... }, f64)
end

t.test("a_hook_sees_the_gradient_and_may_replace_it", function()
    local x, seen = leaf(1, 2), {}
    local y = x * 2
    y:register_hook(function(g) seen[#seen + 1] = g:tolist() end)
    y:register_hook(function(g) return g * 10 end)
    y:register_hook(function(g) seen[#seen + 1] = g:tolist() end)
    local s = (y * 3):sum()
    s:backward()
    t.eq(seen, { { 3, 3 }, { 30, 30 } })
    t.eq(x.grad:tolist(), { 60, 60 })
end)

t.test("a_leaf_s_hook_runs_once_on_the_whole_gradient", function()
    local x, log = leaf(1, 2), {}
    x:register_post_accumulate_grad_hook(function(p)
        log[#log + 1] = p.grad:tolist()
        log[#log + 1] = rawequal(p, x) or p == x
    end)
    x:register_hook(function(g)
        log[#log + 1] = g:tolist()
        return g * 2
    end)
    local s = (x * 2 + x * 3):sum()
    s:backward()
    t.eq(log, { { 5, 5 }, { 10, 10 }, true })
    t.eq(grad((x * 2):sum(), { x })[1]:tolist(), { 4, 4 })
    t.eq(#log, 4, "grad leaves .grad alone")
    t.eq(x.grad:tolist(), { 10, 10 })
end)

t.test("a_step_of_an_optimizer_may_be_a_hook", function()
    local x = leaf(1, 2)
    x:register_post_accumulate_grad_hook(function(p)
        tide.no_grad(function() p:sub_(p.grad * 0.5) end)
        p.grad = nil
    end)
    for _ = 1, 2 do
        local s = (x * 2):sum()
        s:backward()
    end
    t.eq(x:tolist(), { -1, 0 })
    t.eq(x.grad, nil)
end)

t.test("what_retain_grad_keeps_is_behind_all_hooks", function()
    local x = leaf(1)
    local y = x * 2
    y:register_hook(function(g) return g * 10 end)
    y:retain_grad()
    y:register_hook(function(g) return g * 10 end)
    local s = y * 3
    s:backward()
    t.eq(y.grad:tolist(), { 300 })
    t.eq(x.grad:tolist(), { 600 })
end)

t.test("a_removed_hook_is_not_called", function()
    local x, calls = leaf(1), 0
    local y = x * 2
    local first, second
    first = y:register_hook(function()
        calls = calls + 1
        second:remove() -- not even by this backward
    end)
    second = y:register_hook(function() calls = calls + 100 end)
    y:backward({ retain_graph = true })
    t.eq(calls, 1)
    first:remove()
    first:remove()
    do
        local _ <close> = y:register_hook(function() calls = calls + 10 end)
        y:backward({ retain_graph = true })
    end
    y:backward()
    t.eq(calls, 11)
end)

t.test("a_hook_that_fails_ends_backward_and_leaves_nothing", function()
    local x, calls = leaf(1, 2), 0
    local y = x * 2
    local hook = y:register_hook(function() error("no such gradient") end)
    local s = (y * y):sum()
    t.error_matches(function() s:backward() end, "^[^:]*test_autograd_hooks.lua:%d+: no such gradient$")
    t.eq(x.grad, nil)
    hook:remove()
    local object = {}
    hook = y:register_hook(function() error(object) end)
    local again = (y * y):sum()
    local ok, raised = pcall(function() again:backward() end)
    t.eq(ok, false)
    t.eq(rawequal(raised, object), true)
    hook:remove()
    for _, value in ipairs { false, 3, print } do
        hook = y:register_hook(function() error(value) end)
        ok, raised = pcall(function() (y * y):sum():backward() end)
        t.eq({ ok, raised }, { false, value })
        hook:remove()
    end
    hook = y:register_hook(function() error(nil) end)
    t.eq({ pcall(function() (y * y):sum():backward() end) }, { false })
    hook:remove()
    y:register_hook(function() calls = calls + 1 end)
    local third = (y * y):sum()
    third:backward()
    t.eq(calls, 1)
    t.eq(x.grad:tolist(), { 8, 16 })
    t.eq(tide.is_grad_enabled(), true)
end)

t.test("what_a_hook_returns_must_fit", function()
    local x = leaf(1, 2)
    local function returning(value)
        local y = x * 2
        y:register_hook(function() return value end)
        local s = y:sum()
        s:backward()
    end
    t.error_has(function() returning(tide.ones(3, { dtype = tide.float64 })) end,
        "a hook gave a gradient of shape (3) in place of one of shape (2)")
    t.error_has(function() returning(tide.ones(2)) end, "a hook gave a float32 gradient in place of a float64 one")
    t.error_has(function() returning(3) end, "a hook returns a tensor or nil, got number 3")
    t.error_has(function() tide.ones(2):register_hook(print) end, "does not require grad")
    t.error_has(function() (x * 2):register_post_accumulate_grad_hook(print) end, "only leaves accumulate gradients")
    t.error_has(function() x:register_hook(3) end, "expected a function")
end)

t.test("hooks_are_recorded_under_create_graph_alone", function()
    local x, modes = leaf(2), {}
    local y = x * x
    y:register_hook(function(g)
        modes[#modes + 1] = tide.is_grad_enabled()
        return g * x
    end)
    local g = grad(y, { x }, { create_graph = true })[1]
    t.eq(g:tolist(), { 8 }) -- 2 x * x
    t.eq(grad(g, { x })[1]:tolist(), { 8 })
    local z = x * x
    z:register_hook(function() modes[#modes + 1] = tide.is_grad_enabled() end)
    local _ <close> = tide.enable_grad()
    z:backward()
    t.eq(modes, { true, false })
end)

t.test("modes_within_a_hook_are_backward_s_whatever_guards_are_open", function()
    local x, modes = leaf(1), {}
    local y, z = x * 2, x * 3
    local function look()
        modes[#modes + 1] = tide.is_grad_enabled()
        tide.enable_grad(function() modes[#modes + 1] = tide.is_grad_enabled() end)
        modes[#modes + 1] = tide.is_grad_enabled()
    end
    z:register_hook(look)
    y:register_hook(function() modes[#modes + 1] = tide.is_grad_enabled() end)
    local _ <close> = tide.enable_grad()
    local s = z * y -- z's node is the younger
    s:backward()
    t.eq(modes, { false, true, false, false })
    t.eq(tide.is_grad_enabled(), true)
    t.eq(x.grad.requires_grad, false)
end)

t.test("hooks_run_in_coroutines_that_run_backward", function()
    local x, log = leaf(1), {}
    local y = x * 2
    y:register_hook(function() log[#log + 1] = coroutine.running() end)
    local co = coroutine.create(function()
        y:backward({ retain_graph = true })
        coroutine.yield("half")
        y:backward()
        return "done"
    end)
    t.eq({ coroutine.resume(co) }, { true, "half" })
    t.eq({ coroutine.resume(co) }, { true, "done" })
    t.eq(log, { co, co })
    local z = x * 2
    z:register_hook(function() coroutine.yield() end)
    t.error_has(function() coroutine.wrap(function() z:backward() end)() end, "yield")
end)

t.test("a_hook_may_run_backward_itself_and_close_what_is_in_use", function()
    local x, w = leaf(2), leaf(3)
    local h = x * x
    local y = h * w
    h:register_hook(function()
        local inner = tide.enable_grad(function() return w * w end)
        inner:backward()
    end)
    y:register_hook(function()
        h:free()
        y:free()
        collectgarbage()
    end)
    y:backward()
    t.eq(w.grad:tolist(), { 10 }) -- 4, and 6 of its own
    t.eq(x.grad:tolist(), { 12 })
end)

t.test("backward_within_the_same_graph_is_an_error_and_no_crash", function()
    local x = leaf(2)
    local h = x * x
    local y = h * h
    h:register_hook(function() y:backward() end)
    t.error_has(function() y:backward() end, "")
    local z = x * x
    z:backward()
    t.eq(x.grad ~= nil, true)
end)

t.test("inputs_may_lose_their_handles_in_a_hook", function()
    local outputs, inputs = {}, { leaf(2), leaf(3) }
    outputs[1] = inputs[1] * inputs[2]
    outputs[1]:register_hook(function()
        inputs[1], inputs[2], outputs[1] = nil, nil, nil
        collectgarbage()
        collectgarbage()
    end)
    local g = grad(outputs, inputs, { materialize_grads = true })
    t.eq({ g[1]:item(), g[2]:item() }, { 3, 2 })
end)

-- ---- nodes ----

t.test("nodes_know_their_name_and_what_is_behind_them", function()
    local x = leaf(1)
    local y = x * 2 + x
    t.eq(tostring(y.grad_fn), "<AddBackward>")
    t.eq(y.grad_fn:name(), "AddBackward")
    t.eq(y.grad_fn == y.grad_fn, true)
    local next = y.grad_fn.next_functions
    t.eq({ next[1][1]:name(), next[1][2], next[2][1]:name(), next[2][2] }, { "MulBackward", 1, "AccumulateGrad", 1 })
    t.eq(next[2][1].variable == x, true)
    t.eq(next[1][1].variable, nil)
    t.eq(x.grad_fn, nil)
    t.eq(tostring(leaf(1, 2):max(1).grad_fn), "<MaxDimBackward>")
    t.eq((x * tide.ones(1)).grad_fn.next_functions[2], false)
    t.error_has(function() return y.grad_fn.nam end, "no field or method 'nam'")
end)

t.test("hooks_of_nodes_see_and_replace_gradients", function()
    local x, seen = leaf(2, 3), {}
    local y = x * x
    y.grad_fn:register_prehook(function(outs)
        seen[#seen + 1] = outs[1]:tolist()
        return { outs[1] * 2 }
    end)
    local hook = y.grad_fn:register_hook(function(ins, outs)
        seen[#seen + 1] = outs[1]:tolist()
        seen[#seen + 1] = #ins
        return { ins[1] * 10, nil }
    end)
    local s = y:sum()
    s:backward({ retain_graph = true })
    t.eq(seen, { { 1, 1 }, { 2, 2 }, 2 })
    t.eq(x.grad:tolist(), { 44, 66 })
    hook:remove()
    y.grad_fn:register_hook(function() return { tide.ones(3), nil } end)
    t.error_has(function() s:backward { retain_graph = true } end, "in place of one of shape (2)")
    t.error_has(function() y.grad_fn.next_functions[1][1]:register_hook(print) end, "x:register_hook")
    local z = x * 2
    z.grad_fn:register_hook(function() return { 1, 2, 3, 4 } end)
    t.error_has(function() z:sum():backward() end, "register_hook: a hook returns a tensor or nil, got number 1")
end)

-- ---- backward ----

t.test("backward_into_inputs_leaves_others_alone", function()
    local x, w = leaf(1, 1), leaf(2, 2)
    local y = x * w
    local s = (y * 2):sum()
    s:backward { inputs = { w, y } }
    t.eq(x.grad, nil)
    t.eq(w.grad:tolist(), { 2, 2 })
    t.eq(y.grad:tolist(), { 2, 2 })
    local z = x * 3
    z:retain_grad()
    tide.autograd.backward({ z }, { tide.ones(2) }, { inputs = z })
    t.eq(z.grad:tolist(), { 1, 1 })
    t.error_has(function() s:backward { inputs = {} } end, "inputs is an empty list")
    t.error_has(function() x:sum():backward { inputs = tide.ones(1) } end, "input 1 does not require grad")
end)

t.test("grad_options_are_pytorch_s", function()
    local x, other = leaf(1, 2), leaf(1)
    local function sum() return (x * 2):sum() end
    t.eq(grad(sum(), { x, other }, { materialize_grads = true })[2]:tolist(), { 0 })
    t.error_has(function() grad(sum(), { x, other }, { materialize_grads = true, allow_unused = false }) end,
        "allow_unused = false refuses them")
    t.error_has(function() grad(sum(), { x, other }) end, "input 2 has no part")
    t.error_has(function() grad(sum(), { x }, { is_grads_batched = true }) end, "is_grads_batched is not supported")
    t.error_has(function() grad({ sum(), tide.ones(1) }, { x }) end, "output 2 does not require grad")
    t.eq(grad(x * 2, { x }, { grad_outputs = tide.ones(2) })[1].dtype, tide.float64)
    local s = sum()
    grad(s, { x }, { create_graph = true })
    grad(s, { x }, { create_graph = true, retain_graph = false })
    t.error_has(function() grad((x * x):sum(), { x }, { grad_outputs = { tide.ones(2), tide.ones(2) } }) end,
        "2 grad_outputs for 1 outputs")
end)

t.test("detach_in_place_ends_the_history", function()
    local x = leaf(1, 2)
    local y = x * 2
    t.eq(rawequal(y:detach_(), y), true)
    t.eq({ y.requires_grad, y.is_leaf }, { false, true })
    t.eq(leaf(1):detach_().requires_grad, false)
    t.error_has(function() (x * 2):view(2):detach_() end, "detach_: a view can't be detached in place")
end)

t.test("views_made_without_recording_are_not_written_while_recording", function()
    local x = leaf(1, 2)
    local y = x * 1
    local view = tide.no_grad(function() return y:view(2) end)
    t.error_has(function() view:mul_(2) end, "a view made under tide.no_grad")
    tide.no_grad(function() view:mul_(2) end)
    t.eq(y:tolist(), { 2, 4 })
    y:detach():mul_(2)
    t.eq(y:tolist(), { 4, 8 })
end)

t.test("a_million_nodes_in_a_chain_are_built_run_and_freed", function()
    local x = leaf(1)
    local y, depth = x, 0
    for _ = 1, 1000000 do
        y = y + 1
    end
    x:register_hook(function() depth = depth + 1 end)
    y:backward { retain_graph = true }
    t.eq({ x.grad:item(), depth }, { 1, 1 })
    y = nil
    collectgarbage()
end)

t.test("hooks_keep_nothing_alive_once_their_graph_is_gone", function()
    local function count(object)
        local alive = setmetatable({ object }, { __mode = "v" })
        return function()
            collectgarbage()
            local _ = tide.ones(100) + 1 -- dropped anchors are let go when a call has ended
            collectgarbage()
            collectgarbage()
            return #alive
        end
    end
    local function make()
        local x = leaf(1)
        local object = {}
        local y = x * 2
        y:register_hook(function() return object and nil end)
        return y, count(object)
    end
    local y, alive = make()
    t.eq(alive(), 1)
    y:backward()
    t.eq(alive(), 1)
    y = nil
    t.eq(alive(), 0)
end)

-- ---- marks and hooks on what is written ----

-- The gradient that retain_grad keeps is that of the tensor as it is when backward runs, however it got there.
t.test("marks_of_retain_grad_move_on_with_the_history", function()
    local function marked(write, through)
        local x = tide.ones(2, 3, { requires_grad = true })
        local y = x * 3
        y:retain_grad()
        y = write(y, x) or y
        ;((through and through(y) or y) * 5):sum():backward()
        return y.grad
    end
    local fives = { { 5.0, 5.0, 5.0 }, { 5.0, 5.0, 5.0 } }
    for what, write in pairs {
        mul_ = function(y) y:mul_(2) end,
        twice = function(y) y:mul_(2):add_(1) end,
        copy_ = function(y, x) y:copy_(x * 2) end,
        zero_ = function(y) y:zero_() end,
        assigned = function(y) y[1] = 7 end,
        masked = function(y) y[y:gt(0)] = 1 end,
        through_a_view = function(y) y:t():mul_(2) end,
        through_a_part = function(y) y[1]:mul_(2) end,
        scattered = function(y) y:index_add_(1, tide.tensor { 1 }, tide.ones(1, 3)) end,
        of_a_list = function(y) tide.foreach.mul_({ y }, 2) end,
    } do
        t.eq(marked(write):tolist(), fives, what)
    end
    t.eq(marked(function(y) y:t_() end):tolist(), { { 5.0, 5.0 }, { 5.0, 5.0 }, { 5.0, 5.0 } }, "turned")
    t.eq(marked(function(y) y:unsqueeze_(1) end).shape, tide.ones(1, 2, 3).shape, "another shape")
end)

t.test("a_view_that_its_base_left_behind_keeps_its_mark", function()
    local x = tide.ones(2, { requires_grad = true })
    local y = x * 3
    local v = y["1:1"]
    v:retain_grad()
    y:mul_(2)
    ;(v:sum() * 5):backward()
    t.eq(v.grad:tolist(), { 5.0 })
    t.eq(x.grad:tolist(), { 30.0, 0.0 })
end)

-- A hook belongs to the values that it was registered for, as PyTorch's documentation has it.
t.test("hooks_stay_with_the_history_that_they_were_registered_for", function()
    local x = tide.ones(2, { requires_grad = true })
    local y, seen = x * 3, {}
    y:register_hook(function(g) seen[#seen + 1] = g:tolist() end)
    y:mul_(2)
    y:register_hook(function(g) seen[#seen + 1] = g:tolist() end)
    y:sum():backward()
    t.eq(seen, { { 1.0, 1.0 }, { 2.0, 2.0 } })
end)

t.test("hooks_after_accumulation_hear_of_chosen_inputs", function()
    local x, z = tide.ones(2, { requires_grad = true }), tide.ones(2, { requires_grad = true })
    local heard = {}
    x:register_post_accumulate_grad_hook(function(p) heard[#heard + 1] = p.grad:tolist() end)
    z:register_post_accumulate_grad_hook(function() heard[#heard + 1] = "z" end)
    ;(x * 3 + z):sum():backward { inputs = { x } }
    t.eq(heard, { { 3.0, 3.0 } })
    t.eq(z.grad, nil)
    tide.autograd.grad((x * 2):sum(), { x }) -- nothing is accumulated
    t.eq(#heard, 1)
    local y = x * 2
    y:retain_grad()
    y:mul_(2)
    y:sum():backward { inputs = { x, y } }
    t.eq(y.grad:tolist(), { 1.0, 1.0 })
    t.eq(x.grad:tolist(), { 7.0, 7.0 })
    t.eq(#heard, 2)
end)
