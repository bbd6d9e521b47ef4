-- test_scripted_training.lua: scripted functions that train: on inputs of changing sizes, with eager mode's bits and by
-- few graphs; what goes wrong in them has its line.
local t = require "harness"
local F = tide.nn.functional

local function inputs_of(shapes, trained)
    local list, leaves = {}, {}
    for k, shape in ipairs(shapes) do
        list[k] = tide.rand(shape) * 0.2 + 0.9
        if k <= trained then
            list[k].requires_grad = true
            leaves[k] = list[k]
        end
    end
    return list, leaves
end

-- Value and gradients, of the gradients' sum of squares too where `deeper`.
local function results(f, list, leaves, deeper)
    local y = (f(table.unpack(list)))
    local grads = tide.autograd.grad((y * y):sum(), leaves, { create_graph = deeper, allow_unused = true })
    local all = table.move(grads, 1, #leaves, 2, { y })
    if deeper then
        local sum = tide.zeros(1)
        for k = 1, #leaves do
            sum = grads[k] and sum + grads[k]:square():sum() or sum
        end
        table.move(tide.autograd.grad(sum, leaves, { allow_unused = true }), 1, #leaves, #all + 1, all)
    end
    return all
end

-- Name, function, shapes for a size, how many of the inputs train; and how many graphs backward has at most.
local cases = {
    { "broadcast", function(x, y) return (x * y - x:mean(1)):tanh() end, function(n) return { { n, 4 }, { 4 } } end, 2, 2 },
    { "a size as a number", function(x) return x:sum() / #x + x:cumsum(1) end, function(n) return { { n, 3 } } end, 1, 2 },
    { "places that move", function(x, y) return tide.cat({ x, y, x }, 1):exp() end, function(n) return { { n, 3 }, { 2, 3 } } end, 2, 2 },
    { "two sizes", function(x, y) return x:matmul(y):softmax(2) end, function(n) return { { n, 3 }, { 3, n + 2 } } end, 2, 2 },
    { "elements", function(x) return x:reshape(-1) * x:flatten():exp() / x:numel() end, function(n) return { { n, 2, n + 1 } } end, 1, 2 },
    { "layer norm", function(x, w, b) return F.layer_norm(x, { 6 }, w, b) end, function(n) return { { n, 6 }, { 6 }, { 6 } } end, 3, 2 },
    { "a stride that leaves rests", function(x, w) return F.conv2d(x, w, nil, { stride = 2, padding = 1 }) end,
        function(n) return { { 1, 2, n, n + 1 }, { 2, 2, 3, 3 } } end, 2, 3 },
    { "a branch on a size", function(x) if #x > 8 then return x:sin() end return x:cos() end, function(n) return { { n } } end, 1, 4 },
    { "as many steps as rows", function(x) local s = x[1] for i = 2, #x do s = s * x[i] end return s end,
        function(n) return { { n, 2 } } end, 1, 8 },
}

local function graphs_of(f) return tonumber(tostring(f:why()):match "backward is a graph for (%d+) kind" or 0) end

for _, case in ipairs(cases) do
    local name, fn, shapes, trained, most = table.unpack(case)
    t.test("sizes_change:_" .. name:gsub(" ", "_"), function()
        tide.manual_seed(3)
        local f = tide.jit.script(fn)
        for round, n in ipairs { 4, 6, 5, 4, 9, 6, 16, 2, 7, 12, 13, 9 } do
            local list, leaves = inputs_of(shapes(n), trained)
            local deeper = round % 3 == 0 and name ~= "layer norm"
            local want, got = results(fn, list, leaves, deeper), results(f, list, leaves, deeper)
            for k = 1, #want do
                local same = k <= #leaves + 1 and tide.equal or tide.allclose -- second gradients are added up in another order
                t.is_true(same(want[k], got[k]), ("%s: size %d, result %d"):format(name, n, k))
            end
        end
        t.is_true(graphs_of(f) <= most, tostring(f:why()))
    end)
end

t.test("one_of_several_results_trains_at_a_new_size", function()
    local function fn(x, y) return x * y, (x + y):exp() end
    local f = tide.jit.script(fn)
    for _, n in ipairs { 3, 5, 8, 5, 4, 8 } do
        local list, leaves = inputs_of({ { n }, { n } }, 2)
        for which = 1, 2 do
            local want = tide.autograd.grad(select(which, fn(table.unpack(list))):sum(), leaves)
            local got = tide.autograd.grad(select(which, f(table.unpack(list))):sum(), leaves)
            t.is_true(tide.equal(want[1], got[1]) and tide.equal(want[2], got[2]), ("size %d, result %d"):format(n, which))
        end
    end
    t.is_true(tostring(f:why()):find("backward is a graph for 2 kinds of inputs, 1 of them of any sizes", 1, true) ~= nil, tostring(f:why()))
end)

t.test("anomaly_mode_names_the_line_within_a_scripted_function", function()
    local line = debug.getinfo(1, "l").currentline
    local f = tide.jit.script(function(x)
        local a = x * 2
        local b = (a - a):sqrt()
        return b * 0 * x
    end)
    local x = tide.ones(3)
    x.requires_grad = true
    for _ = 1, 2 do -- the second time it has a gradient as a graph
        t.error_has(function() tide.autograd.detect_anomaly(function() f(x):sum():backward() end) end,
            "SqrtBackward gave nan in the gradient of its input 1 (recorded at ")
        t.error_matches(function() tide.autograd.detect_anomaly(function() f(x):sum():backward() end) end, ":" .. line + 3 .. "%)")
        f(x)
    end
end)

t.test("an_error_in_a_call_that_trains_has_its_line", function()
    local line = debug.getinfo(1, "l").currentline
    local f = tide.jit.script(function(x, places)
        local a = x * 2
        return a:index_select(1, places):exp()
    end)
    local x = tide.ones(3)
    x.requires_grad = true
    f(x, tide.tensor { 1, 2 })
    t.error_matches(function() f(x, tide.tensor { 1, 7 }) end, ":" .. line + 3 .. ": index 7 is out of range")
end)

t.test("autocast_around_a_scripted_function_holds_in_its_gradient", function()
    local function fn(x, w, b) return ((x:matmul(w) + b):tanh():matmul(w:t()) * 0.25):softmax(2) end
    local f = tide.jit.script(fn)
    for round, options in ipairs { { dtype = tide.bfloat16 }, { dtype = tide.float16, cache = false }, { enabled = false } } do
        for _, n in ipairs { 4, 6, 5, 6 } do
            local list, leaves = inputs_of({ { n, 8 }, { 8, 3 }, { 3 } }, 3)
            local function under(g)
                return function(...)
                    local _ <close> = tide.autocast { device = "cpu", dtype = options.dtype, cache = options.cache, enabled = options.enabled }
                    return (g(...))
                end
            end
            local want, got = results(under(fn), list, leaves), results(under(f), list, leaves)
            for k = 1, #want do
                t.is_true(want[k].dtype == got[k].dtype and tide.equal(want[k], got[k]),
                    ("autocast %d, size %d, result %d"):format(round, n, k))
            end
        end
    end
    t.eq(graphs_of(f), 6, tostring(f:why()))
end)

t.test("lists_that_come_in_and_go_out_have_gradients", function()
    local function some(xs, _) --: Tensor[], float
        local s = xs[1] * xs[2]
        return { s, s:exp(), xs[1] }
    end
    local function many(xs, scale) --: Tensor[], float
        local list = {}
        for k, x in ipairs(xs) do
            list[k] = x * (scale * k)
        end
        return list, tide.stack(list, 1):tanh():sum(1)
    end
    for _, fn in ipairs { some, many } do
        local f = tide.jit.script(fn)
        for _, n in ipairs { 4, 6, 5, 6 } do
            local list = inputs_of({ { n, 2 }, { n, 2 }, { n, 2 } }, 3)
            local function run(g)
                local entries, rest = g(table.move(list, 1, 3, 1, {}), 0.5)
                local sum = rest and rest:sum() or tide.zeros(1)
                for k, y in ipairs(entries) do
                    sum = sum + (y * k):sum()
                end
                return entries, tide.autograd.grad(sum, list, { allow_unused = true })
            end
            local want, wanted = run(fn)
            local got, grads = run(f)
            t.eq(#got, #want)
            for k = 1, 3 do
                t.is_true(tide.equal(want[k], got[k]), "entry " .. k)
                t.is_true(wanted[k] == grads[k] or tide.equal(wanted[k], grads[k]), "gradient " .. k)
            end
            t.eq(tostring(got[1].grad_fn), "<ScriptFunctionBackward>")
        end
        t.eq(graphs_of(f), 2, tostring(f:why()))
    end
end)

t.test("backward_lets_go_of_what_was_kept_as_it_goes", function()
    local function layers(x, ...)
        for _, w in ipairs { ... } do
            x = x:matmul(w):tanh()
        end
        return x
    end
    local list = inputs_of({ { 128, 128 }, { 128, 128 }, { 128, 128 }, { 128, 128 }, { 128, 128 }, { 128, 128 }, { 128, 128 } }, 7)
    local f = tide.jit.script(function(x, a, b, c, d, e, g)
        x = x:matmul(a):tanh():matmul(b):tanh():matmul(c):tanh()
        return x:matmul(d):tanh():matmul(e):tanh():matmul(g):tanh()
    end)
    local want = results(layers, list, list)
    local function peak(options)
        local sum = f(table.unpack(list)):sum()
        collectgarbage()
        collectgarbage "stop"
        local before = tide.memory_stats().allocated
        tide.reset_peak_memory_stats()
        local grads = tide.autograd.grad(sum, list, options)
        local most = tide.memory_stats().peak - before
        collectgarbage "restart"
        return most / (128 * 128 * 4), sum, grads
    end
    for _ = 1, 3 do
        local got = results(f, list, list)
        for k = 1, #want do
            t.is_true(tide.equal(got[k], want[k]), "result " .. k)
        end
    end
    local kept, sum, grads = peak { retain_graph = true }
    for k, grad in ipairs(tide.autograd.grad(sum, list)) do
        t.is_true(tide.equal(grad, grads[k]), "a second time, " .. k)
    end
    local given, again = peak()
    t.is_true(given + 3 < kept, ("%g and %g tensors"):format(given, kept))
    t.eq(pcall(tide.autograd.grad, again, list), false)
end)
