-- test_autograd_modes.lua: inference_mode, anomaly mode, keepers of saved tensors, checkpoint, modes that
-- last.
local t = require "harness"
local grad = tide.autograd.grad
local f64 = { dtype = tide.float64, requires_grad = true }

local function leaf(...)
    return tide.tensor({ ... }, f64)
end

-- ---- inference_mode ----

local function made()
    return tide.inference_mode(function() return tide.tensor({ 1, 2 }, { dtype = tide.float64 }) end)
end

t.test("inference_mode_records_nothing", function()
    local x = leaf(1, 2)
    tide.inference_mode(function()
        t.eq({ tide.is_inference_mode_enabled(), tide.is_grad_enabled() }, { true, false })
        t.eq((x * 2).requires_grad, false)
        t.eq(tide.enable_grad(function() return (x * 2).requires_grad end), false)
        tide.inference_mode(false, function()
            t.eq({ tide.is_inference_mode_enabled(), tide.is_grad_enabled() }, { false, true })
            t.eq({ (x * 2).requires_grad, tide.ones(1):is_inference() }, { true, false })
        end)
    end)
    t.eq({ tide.is_inference_mode_enabled(), tide.is_grad_enabled() }, { false, true })
    do
        local _ <close> = tide.inference_mode()
        t.eq(tide.ones(1):is_inference(), true)
    end
    t.eq(tide.inference_mode(false, function() return tide.ones(1):is_inference() end), false)
    t.error_has(function() tide.inference_mode(function() error("inside") end) end, "inside")
    t.eq(tide.is_inference_mode_enabled(), false)
end)

t.test("its_tensors_are_told_from_others", function()
    local i, x = made(), leaf(1, 2)
    t.eq({ i:is_inference(), x:is_inference() }, { true, false })
    t.eq({ i:view(2, 1):is_inference(), i:detach():is_inference(), i[1]:is_inference() }, { true, true, true })
    t.eq({ i:clone():is_inference(), (i + 1):is_inference() }, { false, false })
    t.eq(tide.inference_mode(function() return x:view(2):is_inference() end), false)
    t.error_has(function() return i._version end, "not counted")
    t.eq(tide.inference_mode(function() return tide.ones(1, { requires_grad = true }).requires_grad end), true)
end)

t.test("they_take_no_part_in_autograd", function()
    local i, x = made(), leaf(3, 4)
    t.error_has(function() return x * i end, "mul: a tensor made in inference_mode can't be saved for backward")
    t.eq(grad((x + i):sum(), { x })[1]:tolist(), { 1, 1 }) -- add saves nothing
    t.eq((x * i:clone()):tolist(), { 3, 8 })
    t.eq(tide.no_grad(function() return x * i end):tolist(), { 3, 8 })
    t.error_has(function() i:requires_grad_() end, "can't require grad outside of it")
    t.error_has(function() i.requires_grad = true end, "can't require grad outside of it")
    t.eq(tide.inference_mode(function() return i:requires_grad_().requires_grad end), true)
    local j = made()
    for _, write in ipairs { function() j:add_(1) end, function() j[1] = 3 end, function() j:zero_() end,
        function() tide.add(j, 1, { out = j }) end, function() tide.no_grad(function() j:add_(1) end) end } do
        t.error_has(write, "a tensor made in inference_mode is written outside of it")
    end
    t.eq(j:tolist(), { 1, 2 })
    tide.inference_mode(function() j:add_(1) end)
    t.eq(j:tolist(), { 2, 3 })
    t.eq(x:detach():clone():copy_(j):tolist(), { 2, 3 })
    local F = tide.autograd.Function { forward = function(ctx, v)
        ctx:save_for_backward(j)
        return v * 2
    end }
    t.error_has(function() F(x) end, "inference_mode can't be saved for backward")
end)

t.test("others_stay_what_they_are_in_it", function()
    local x = leaf(1, 2)
    local y = x * x
    tide.inference_mode(function() y:add_(1) end)
    t.eq({ y._version, tostring(y.grad_fn) }, { 1, "<MulBackward>" })
    local view = tide.inference_mode(function() return y:view(2) end)
    t.error_has(function() view:add_(1) end, "a view made under tide.no_grad or tide.inference_mode")
    local z = x:exp()
    tide.inference_mode(function() z:add_(1) end)
    t.error_has(function() z:sum():backward() end, "changed in place")
end)

t.test("inference_mode_belongs_to_its_coroutine", function()
    local co = coroutine.wrap(function()
        local _ <close> = tide.inference_mode()
        coroutine.yield(tide.ones(1):is_inference())
        return tide.ones(1):is_inference()
    end)
    t.eq(co(), true)
    t.eq(tide.ones(1):is_inference(), false)
    t.eq(co(), true)
end)

-- ---- modes that last ----

t.test("a_mode_set_by_a_statement_lasts", function()
    local function collect()
        collectgarbage()
        collectgarbage()
    end
    tide.set_grad_enabled(false)
    collect()
    t.eq(tide.is_grad_enabled(), false)
    tide.enable_grad(function()
        collect()
        t.eq(tide.is_grad_enabled(), true)
    end)
    t.eq(tide.is_grad_enabled(), false)
    local co = coroutine.wrap(function()
        tide.set_grad_enabled(true)
        collect()
        coroutine.yield(tide.is_grad_enabled())
        return tide.is_grad_enabled()
    end)
    t.eq(co(), true)
    t.eq(tide.is_grad_enabled(), false)
    t.eq(co(), true)
    for _ = 1, 100 do
        tide.set_grad_enabled(true)
    end
    collect()
    t.eq(tide.is_grad_enabled(), true)
    do
        local _ <close> = tide.set_grad_enabled(false)
        t.eq(tide.is_grad_enabled(), false)
    end
    t.eq(tide.is_grad_enabled(), true)
    tide.no_grad(function()
        tide.set_grad_enabled(true)
        collect()
        t.eq(tide.is_grad_enabled(), true)
    end)
    collect()
    t.eq(tide.is_grad_enabled(), true)
end)

-- What was set last holds, in whatever order and whenever the guards of the statements are collected.
t.test("the_last_statement_counts_whichever_guard_is_collected_first", function()
    local function collect()
        collectgarbage()
        collectgarbage()
    end
    local is = tide.is_grad_enabled
    for _, last in ipairs { false, true } do
        tide.set_grad_enabled(not last)
        tide.set_grad_enabled(last) -- both go in one sweep
        collect()
        t.eq(is(), last)
        tide.enable_grad(function() end)
        t.eq(is(), last)
    end
    for order = 1, 2 do
        local guards = { tide.set_grad_enabled(false), tide.set_grad_enabled(true), tide.set_grad_enabled(false) }
        local anomaly = tide.autograd.set_detect_anomaly(true)
        guards[order], guards[3] = nil, nil
        collect()
        t.eq({ is(), tide.autograd.is_anomaly_enabled() }, { false, true })
        guards, anomaly = nil, nil
        collect()
        t.eq({ is(), tide.autograd.is_anomaly_enabled() }, { false, true })
        tide.set_grad_enabled(true)
        tide.autograd.set_detect_anomaly(false)
        collect()
        t.eq({ is(), tide.autograd.is_anomaly_enabled() }, { true, false })
    end
    for _, collected in ipairs { false, true } do -- within a block, which ends
        tide.enable_grad(function()
            tide.set_grad_enabled(false)
            if collected then
                collect()
            end
            t.eq(is(), false)
        end)
        t.eq(is(), false)
        collect()
        t.eq(is(), false)
        tide.set_grad_enabled(true)
        collect()
    end
    t.eq(is(), true)
end)

-- ---- anomalies ----

t.test("nan_in_a_gradient_names_the_forward_line", function()
    local x = tide.zeros(2, f64)
    local function run()
        local y = x * 1
        local z = y:sqrt() -- here
        local s = (z * 0):sum()
        s:backward()
    end
    run()
    t.is_true(x.grad[1]:item() ~= x.grad[1]:item())
    local line = debug.getinfo(run, "S").linedefined + 2
    local message = t.error_has(function() tide.autograd.detect_anomaly(run) end,
        "SqrtBackward gave nan in the gradient of its input 1 (recorded at ")
    t.is_true(message:find(("test_autograd_modes.lua:%d)"):format(line), 1, true), message)
    t.eq(tide.autograd.is_anomaly_enabled(), false)
    tide.autograd.detect_anomaly { run, check_nan = false }
    local y = (x * 1):sqrt()
    t.error_has(function() tide.autograd.detect_anomaly(function() (y * 0):sum():backward() end) end,
        "recorded before detect_anomaly was on")
end)

t.test("a_module_that_calls_itself_is_out_of_stack_soon_while_lines_are_noted", function()
    local m = tide.nn.Sequential(tide.nn.ReLU())
    m.part = m
    t.error_has(function()
        tide.autograd.detect_anomaly(function() return m(tide.ones(1, { requires_grad = true })) end)
    end, "stack overflow")
end)

t.test("set_detect_anomaly_is_a_statement_and_a_block", function()
    local x = leaf(1)
    tide.autograd.set_detect_anomaly(true)
    collectgarbage()
    t.eq(tide.autograd.is_anomaly_enabled(), true)
    t.error_has(function() (x * (0 / 0)):backward() end, "MulBackward gave nan")
    x.grad = nil
    local y = x * 2
    y:backward()
    t.eq(x.grad:item(), 2)
    tide.autograd.set_detect_anomaly(false)
    do
        local _ <close> = tide.autograd.set_detect_anomaly(true)
        t.eq(tide.autograd.is_anomaly_enabled(), true)
    end
    t.eq(tide.autograd.is_anomaly_enabled(), false)
end)

t.test("errors_of_nodes_name_the_forward_line_too", function()
    local x = leaf(1, 2)
    tide.autograd.detect_anomaly(function()
        local h = x * 1
        local y = h:exp() * h
        h:add_(1)
        local message = t.error_has(function() y:sum():backward() end, "changed in place after it was saved")
        t.is_true(message:find("Backward recorded at [^:]*test_autograd_modes.lua:%d+%)"), message)
        local F = tide.autograd.Function { forward = function(_, v) return v * 1 end, backward = function() error("own", 0) end }
        t.error_matches(function() F(x):sum():backward() end, "^own$")
    end)
end)

t.test("second_derivatives_are_watched_by_the_first_line", function()
    local x = tide.zeros(1, f64)
    tide.autograd.detect_anomaly(function()
        local y = x ^ 1.5 -- first derivative 0, second infinite, times 0
        local g = grad(y, { x }, { create_graph = true })[1]
        t.error_has(function() (g * g * (g + 1)):backward() end, "gave nan")
    end)
end)

-- ---- keepers of saved tensors ----

local hooks = tide.autograd.graph.saved_tensors_hooks

t.test("saved_tensors_may_be_kept_by_others", function()
    local x, packed, unpacked = leaf(2, 3), 0, 0
    local function pack(v)
        packed = packed + 1
        t.eq(tide.is_grad_enabled(), false)
        return { v:tolist() }
    end
    local function unpack(list)
        unpacked = unpacked + 1
        return tide.tensor(list[1], { dtype = tide.float64 })
    end
    local y = hooks(pack, unpack, function() return (x * x * x):exp() end)
    t.eq(packed, 5) -- x, x; x * x, x; the result of exp
    t.eq(unpacked, 0)
    local want = grad((x * x * x):exp():sum(), { x })[1]
    t.close(grad(y:sum(), { x }, { retain_graph = true })[1]:tolist(), want:tolist(), 1e-3)
    t.eq(unpacked, 5)
    local s = y:sum()
    s:backward()
    t.eq(unpacked, 10)
    t.error_has(function() s:backward() end, "backward a second time")
    local F = tide.autograd.Function { forward = function(ctx, v)
        ctx:save_for_backward(v)
        return v * 2
    end, backward = function(ctx, g) return g * ctx.saved_tensors[1] end }
    packed = 0
    local z = hooks(pack, unpack, F, x)
    t.eq(packed, 1)
    t.eq(grad(z:sum(), { x })[1]:tolist(), { 2, 3 })
end)

t.test("gradients_of_gradients_go_through_packed_tensors", function()
    local x = leaf(0.5, 1)
    local function fn(v)
        return hooks(function(s) return s end, function(s) return s end, function() return (v * v):sin() end)
    end
    t.eq(tide.autograd.gradcheck(fn, { x }), true)
    t.eq(tide.autograd.gradgradcheck(fn, { x }), true)
end)

t.test("keepers_that_fail_say_so", function()
    local x = leaf(1, 2)
    local function keep(v) return v end
    t.error_matches(function() hooks(function() error("no room") end, keep, function() return x * x end) end,
        "test_autograd_modes.lua:%d+: no room")
    local y = leaf(1, 2)
    t.error_has(function() hooks(function(v) v:add_(1) end, keep, function() return y * y end) end,
        "a pack hook changed the saved tensor in place")
    local function unpacking(value)
        local z = hooks(keep, function() return value end, function() return x:exp() end)
        return function() z:sum():backward() end
    end
    t.error_has(unpacking(3), "unpack must return a tensor, got number 3")
    t.error_has(unpacking(tide.ones(2)), "unpacking gave a float32 tensor of shape (2) on cpu, where a float64")
    t.error_has(unpacking(tide.ones(3, { dtype = tide.float64 })), "unpacking gave a float64 tensor of shape (3)")
    t.eq((x * x):tolist(), { 1, 4 })
end)

t.test("a_keeper_s_mode_that_outlives_its_block_keeps_plainly", function()
    local x, packed = leaf(2), 0
    local co
    hooks(function(v)
        packed = packed + 1
        return v
    end, function(v) return v end, function()
        co = coroutine.wrap(function()
            local _ <close> = tide.enable_grad()
            coroutine.yield()
            return x * x
        end)
        co()
    end)
    collectgarbage()
    t.eq(grad(co(), { x })[1]:item(), 4)
    t.eq(packed, 0)
    local y = x * x
    t.eq(packed, 0)
    t.eq(grad(y, { x })[1]:item(), 4)
end)

-- ---- checkpoint ----

local checkpoint = tide.utils.checkpoint

t.test("a_checkpoint_gives_the_same_gradients", function()
    local x, w, calls = leaf(0.5, 1), leaf(2, 3), 0
    local function fn(a, b, factor)
        calls = calls + 1
        local h = (a * b):sin()
        return (h * h * w):exp() * factor, h
    end
    local want = grad({ (fn(x, x, 2)):sum() }, { x, w })
    calls = 0
    local y, h = checkpoint(fn, x, x, 2)
    t.eq(calls, 1)
    local got = grad({ y:sum() }, { x, w }, { retain_graph = true })
    t.eq(calls, 2)
    t.eq({ got[1] == want[1], got[2] == want[2] }, { true, true })
    got = grad({ y:sum(), h:sum() }, { x, w })
    t.eq(calls, 3)
    t.eq(got[2] == want[2], true)
    t.eq(tide.no_grad(function() return (checkpoint(fn, x, x, 2)).requires_grad end), false)
    t.eq(tide.autograd.gradcheck(function(v) return (checkpoint(fn, v, v, 1)) end, { x }), true)
    t.eq(tide.autograd.gradgradcheck(function(v) return (checkpoint(fn, v, v, 1)) end, { x }), true)
    local s = checkpoint(fn, x, x, 2):sum()
    s:backward()
    t.eq(x.grad == want[1], true)
end)

t.test("a_sequence_is_checkpointed_in_segments", function()
    local net = tide.nn.Sequential(tide.nn.Linear(3, 4), tide.nn.Tanh(), tide.nn.Linear(4, 4), tide.nn.Dropout(0.5), tide.nn.Linear(4, 1))
    local x = tide.randn(5, 3, { requires_grad = true })
    local function gradients(run)
        tide.manual_seed(4)
        return tide.autograd.grad(run():sum(), { x, net[1].weight, net[-1].weight })
    end
    local want = gradients(function() return net(x) end)
    for segments = 1, 5 do
        local calls = 0
        local hook = net[1]:register_forward_pre_hook(function() calls = calls + 1 end)
        local got = gradients(function() return tide.utils.checkpoint_sequential(net, segments, x, { use_reentrant = false }) end)
        hook:remove()
        t.eq(calls, segments > 1 and 2 or 1, "the first segment runs again in backward, the last does not")
        for k = 1, 3 do
            t.is_true(tide.equal(got[k], want[k]))
        end
    end
    t.is_true(tide.equal(tide.utils.checkpoint_sequential({ tide.exp, tide.sin }, 2, x), x:exp():sin()))
    t.error_has(function() tide.utils.checkpoint_sequential(net, 6, x) end, "at least 6 functions expected, got 5 of them")
    t.error_has(function() checkpoint(net, x, { use_reentrant = true }) end, "there is one kind")
end)

t.test("checkpoints_nest", function()
    local x = leaf(0.5, 1)
    local function inner(a) return (a:sin() * a):exp() end
    local function outer(a) return checkpoint(inner, a * 2):cos() * a end
    local want = grad((inner(x * 2):cos() * x):sum(), { x })[1]
    t.eq(grad(checkpoint(outer, x):sum(), { x })[1] == want, true)
end)

t.test("random_numbers_come_again", function()
    local x = tide.ones(100, f64)
    local function fn(a) return a * (tide.rand(100, { dtype = tide.float64 }):gt(0.5)) * a end
    tide.manual_seed(3)
    local y = checkpoint(fn, x)
    local after = tide.rand(2)
    local next = tide.get_rng_state()
    y:sum():backward()
    t.eq(x.grad == y:detach() * 2, true, "x is 1 everywhere: 2 where the mask is")
    t.eq(tide.get_rng_state() == next, true)
    tide.manual_seed(3)
    fn(x)
    t.eq(tide.rand(2) == after, true)
    local state = tide.get_rng_state()
    local a = tide.rand(3)
    tide.set_rng_state(state)
    t.eq(tide.rand(3) == a, true)
    t.error_has(function() tide.set_rng_state(tide.ones(2)) end, "as get_rng_state gives it")
end)

t.test("a_checkpoint_keeps_nothing_of_what_is_within", function()
    local x = tide.ones(10000, { requires_grad = true })
    local function fn(a)
        for _ = 1, 20 do
            a = (a * 1.01):sin()
        end
        return a
    end
    local function peak(run)
        collectgarbage()
        collectgarbage()
        local before = tide.memory_stats().allocated
        local y = run()
        collectgarbage()
        collectgarbage()
        return tide.memory_stats().allocated - before, y
    end
    local plain = peak(function() return fn(x) end)
    local checked, y = peak(function() return checkpoint(fn, x) end)
    t.is_true(plain > 20 * 40000, plain)
    t.is_true(checked < 4 * 40000, checked)
    y:sum():backward()
    t.is_true(x.grad ~= nil)
end)

t.test("a_function_that_does_not_repeat_is_told", function()
    local x, times = leaf(1, 2), 0
    local y = checkpoint(function(a)
        times = times + 1
        return times == 1 and a:exp() * a or a * 2
    end, x)
    t.error_has(function() y:sum():backward() end, "called again the function saved")
    local z = checkpoint(function(a)
        times = times + 1
        if times > 3 then
            error("not again")
        end
        return a:exp()
    end, x)
    t.error_matches(function() z:sum():backward() end, "test_autograd_modes.lua:%d+: not again")
end)
