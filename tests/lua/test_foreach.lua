-- test_foreach.lua: tide.foreach is the loop of calls: results, bits, gradients, refusals; and what lists may be.
local t = require "harness"
local foreach = tide.foreach

local function same(a, b)
    return a.dtype == b.dtype and a.shape == b.shape and a:stride() == b:stride()
        and tide.equal(a:nan_to_num(7), b:nan_to_num(7))
end

-- Tensors of every kind that a list may hold side by side; values such that logarithms and roots are numbers.
local function mixture(seed)
    tide.manual_seed(seed)
    local list = {}
    local function add(x) list[#list + 1] = x end
    for _, dtype in ipairs { tide.float32, tide.float64, tide.bfloat16, tide.float16 } do
        for _, shape in ipairs { { 3, 5 }, { 1 }, {}, { 0 }, { 40, 70 }, { 2, 3, 4, 5 } } do
            add((tide.rand(shape) + 0.25):to(dtype))
        end
        add((tide.rand(8, 6) + 0.25):to(dtype):t())
        add((tide.rand(2, 3, 4, 5) + 0.25):to(dtype):contiguous({ memory_format = "channels_last" }))
        add((tide.rand(9, 8) + 0.25):to(dtype)[{ {}, { 2, 5 } }])
    end
    return list
end

local function map(list, f)
    local results = {}
    for k, x in ipairs(list) do
        results[k] = f(x, k)
    end
    return results
end

local function clones(list) return map(list, function(x) return x:clone() end) end

local calls = {
    { "add", 2 }, { "sub", 2 }, { "mul", 2 }, { "div", 2 }, { "maximum", 2 }, { "minimum", 2 }, { "pow", 2 },
    { "neg", 1 }, { "abs", 1 }, { "sqrt", 1 }, { "rsqrt", 1 }, { "exp", 1 }, { "log", 1 }, { "reciprocal", 1 },
    { "sign", 1 }, { "sin", 1 }, { "tanh", 1 }, { "sigmoid", 1 }, { "floor", 1 }, { "erf", 1 },
    { "addcmul", 3, { value = 0.3 } }, { "addcdiv", 3, { value = -0.7 } }, { "add", 2, { alpha = 0.1 } },
    { "sub", 2, { alpha = 3 } },
}

t.test("lists_have_the_bits_of_the_loop", function()
    local a, b, c = mixture(1), mixture(2), mixture(3)
    for _, call in ipairs(calls) do
        local name, n, options = table.unpack(call)
        local lists = table.move({ a, b, c }, 1, n, 1, {})
        lists[n + 1] = options
        local have = foreach[name](table.unpack(lists, 1, options and n + 1 or n))
        local written = clones(a)
        lists[1] = written
        local back = foreach[name .. "_"](table.unpack(lists, 1, options and n + 1 or n))
        t.is_true(rawequal(back, written))
        for k = 1, #a do
            local args = { a[k], n > 1 and b[k] or nil, n > 2 and c[k] or nil }
            args[n + 1] = options
            local want = tide[name](table.unpack(args, 1, options and n + 1 or n))
            t.is_true(same(have[k], want), ("%s, entry %d"):format(name, k))
            t.is_true(tide.equal(written[k]:nan_to_num(7), want:nan_to_num(7)), ("%s_, entry %d"):format(name, k))
        end
    end
end)

t.test("the_other_operand_may_be_a_number_numbers_or_one_tensor", function()
    local a = mixture(4)
    local numbers = map(a, function(_, k) return k / 8 end)
    local scalar = tide.tensor(0.37)
    for _, other in ipairs { 3, 0.1, numbers, scalar } do
        for _, name in ipairs { "add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max" } do
            local have = foreach[name](a, other)
            for k, x in ipairs(a) do
                local value = type(other) == "table" and other[k] or other
                t.is_true(same(have[k], tide[name](x, value)), ("%s, entry %d"):format(name, k))
            end
        end
    end
    local have = foreach.lerp(a, a, numbers)
    for k, x in ipairs(a) do
        t.is_true(same(have[k], tide.lerp(x, x, k / 8)))
    end
    local scaled = foreach.addcmul(a, a, a, { value = numbers })
    for k, x in ipairs(a) do
        t.is_true(same(scaled[k], tide.addcmul(x, x, x, { value = k / 8 })))
    end
    t.is_true(tide.equal(foreach.pow(2, { tide.tensor { 1., 2. } })[1], tide.tensor { 2., 4. }))
end)

t.test("integers_and_dtypes_that_differ_go_the_way_of_the_loop", function()
    local a = { tide.tensor { 1, 2 }, tide.tensor { 1.5, 2.5 }, tide.tensor { true, false }, tide.ones(2, 3) }
    local b = { tide.tensor { 0.5, 1 }, tide.tensor({ 3, 4 }, { dtype = tide.float64 }), tide.tensor { 1, 1 }, tide.ones(3) }
    local sums, ratios = foreach.add(a, b), foreach.div(a, 2)
    for k, x in ipairs(a) do
        t.is_true(same(sums[k], x + b[k]))
        t.is_true(same(ratios[k], x / 2))
    end
end)

t.test("gradients_are_those_of_the_loop", function()
    local a = map(mixture(5), function(x) return x:detach():requires_grad_() end)
    local b = map(a, function(x) return x:detach():clone():requires_grad_() end)
    local left, right = 0, 0
    for k, y in ipairs(foreach.mul(foreach.exp(a), a)) do
        left = y:double():sum() + left
        right = (b[k]:exp() * b[k]):double():sum() + right
    end
    left:backward()
    right:backward()
    for k, x in ipairs(a) do
        t.is_true(same(x.grad, b[k].grad), "entry " .. k)
    end
    local half = foreach.mul({ a[1], a[1]:detach() }, 2)
    t.eq(half[1].requires_grad, true)
    t.eq(half[2].requires_grad, false)
end)

t.test("writing_is_noticed_by_backward", function()
    local x = tide.ones(3, { requires_grad = true })
    local y = x * 2
    local z = (y * y):sum()
    foreach.mul_({ y:detach() }, 3)
    t.error_has(function() z:backward() end, "in place")
end)

t.test("a_refused_call_writes_nothing", function()
    local function refused(lists, other, text)
        local before = clones(lists)
        t.error_has(function() foreach.add_(lists, other) end, text)
        for k, x in ipairs(lists) do
            t.is_true(tide.equal(x, before[k]), "entry " .. k)
        end
    end
    local a = function() return tide.ones(3) end
    refused({ a(), a(), tide.tensor { 1, 2, 3 } }, 0.5, "foreach.add_: entry 3: a float32 result can't be written into a int64")
    refused({ a(), a() }, { a(), tide.ones(2) }, "foreach.add_: entry 2:")
    refused({ a(), tide.ones(1):expand(3) }, 1, "foreach.add_: entry 2: several elements")
    local leaf = tide.ones(3, { requires_grad = true })
    refused({ a(), leaf }, 1, "foreach.add_: entry 2: a leaf that requires grad")
    local x = a()
    refused({ x, a(), x }, 1, "foreach.add_: entry 3: tensors 1 and 3 of the list that is written have elements in common")
    refused({ x[{ { 1, 2 } }], x[{ { 2, 3 } }] }, 1, "tensors 1 and 2")
    t.error_has(function() foreach.zero_({ x, x }) end, "tensors 1 and 2")
end)

t.test("views_of_one_tensor_that_do_not_meet_are_written", function()
    local x = tide.zeros(4, 4)
    foreach.add_({ x[{ {}, 1 }], x[{ {}, 3 }], x[{ {}, 2 }] }, { 1, 3, 2 })
    t.is_true(tide.equal(x[1], tide.tensor { 1., 2., 3., 0. }))
    local halves = { x[{ { 1, 2 } }], x[{ { 3, 4 } }] }
    foreach.zero_(halves)
    t.eq(x:sum():item(), 0)
end)

t.test("what_reads_what_another_writes_goes_in_order", function()
    local function run(f)
        local a, b = tide.ones(3), tide.ones(3) * 2
        f(a, b)
        return a, b
    end
    local a, b = run(function(x, y) foreach.add_({ x, y }, { y, x }) end)
    local c, d = run(function(x, y)
        x:add_(y)
        y:add_(x)
    end)
    t.is_true(tide.equal(a, c))
    t.is_true(tide.equal(b, d))
    local one = tide.ones(2000)
    foreach.mul_({ one, tide.ones(3) }, one[5])
    foreach.add_({ one, tide.ones(3) }, one[1700])
    t.is_true(tide.equal(one, tide.ones(2000) * 2))
end)

t.test("copies_and_zeros", function()
    local a = mixture(6)
    local b = map(a, function(x) return tide.zeros_like(x):double() end)
    foreach.copy_(b, a)
    for k, x in ipairs(a) do
        t.is_true(tide.equal(b[k], x:double()))
    end
    t.eq(foreach.zero({ tide.ones(2) })[1]:sum():item(), 0)
    t.eq(foreach.copy({ tide.ones(2) }, { tide.ones(2) * 3 })[1]:sum():item(), 6)
    t.eq(#foreach.exp {}, 0)
    t.eq(#foreach.add({}, {}), 0)
    foreach.zero_ {}
end)

t.test("clamp_takes_one_bound_or_both", function()
    local a = mixture(8)
    for _, bounds in ipairs { { 0.5, 0.75 }, { 0.5 }, { nil, 0.75 } } do
        local have, written = foreach.clamp(a, bounds[1], bounds[2]), clones(a)
        foreach.clamp_(written, bounds[1], bounds[2])
        for k, x in ipairs(a) do
            local want = x:clamp(bounds[1], bounds[2])
            t.is_true(same(have[k], want))
            t.is_true(tide.equal(written[k], want))
        end
    end
    t.error_has(function() foreach.clamp(a) end, "min, max or both")
end)

t.test("clamp_between_two_bounds_is_one_pass", function()
    local x = { tide.randn(5), tide.randn(300), tide.randn(2, 3):double() }
    local low, high = map(x, function(y) return tide.full_like(y, -0.5) end), { 0.1, 0.2, 0.3 }
    local mixed = { { low[1], 0, 1 }, high }
    for _, bounds in ipairs { { -0.5, 0.5 }, { { -1, 0, 0.5 }, high }, { low, 0.5 }, { low, high }, mixed } do
        local passes = 0
        local profile = tide.profiler.profile(function()
            for k, y in ipairs(foreach.clamp(x, bounds[1], bounds[2])) do
                local min, max = bounds[1], bounds[2]
                min, max = type(min) == "table" and min[k] or min, type(max) == "table" and max[k] or max
                t.is_true(same(y, tide.minimum(tide.maximum(x[k], min), max)))
            end
        end)
        for _, event in ipairs(profile:events()) do
            local kernel = event.kind == "kernel" and event.name:find "^foreach_clamp"
            passes = passes + (kernel and 1 or 0)
        end
        t.is_true(bounds == mixed or passes == 2, passes .. " passes") -- one for each dtype
    end
    t.error_has(function() foreach.clamp(x, { 0 }, 1) end, "foreach.clamp: list min has 1 entries, list x has 3")
end)

t.test("wrong_lists", function()
    local x = tide.ones(2)
    t.error_has(function() foreach.add() end, "foreach.add: argument 1 (a): a list of tensors expected, got nothing")
    t.error_has(function() foreach.add(x, 1) end, "foreach.add: argument 1 (a): a list of tensors expected, got")
    t.error_has(function() foreach.add({ x, x }, { x }) end, "foreach.add: list b has 1 entries, list a has 2")
    t.error_has(function() foreach.add({ x, "y" }, 1) end, "foreach.add: list a: entry 2: expected a tensor or a number")
    t.error_has(function() foreach.exp { x, 3 } end, "foreach.exp: list x: entry 2: expected a tensor, got")
    t.error_has(function() foreach.add({ x, nil, x }, 1) end, "hole")
    t.error_has(function() foreach.add({ x }, 1, { alpa = 2 }) end, "no option 'alpa': did you mean 'alpha'?")
    t.error_has(function() foreach.add({ x }, 1, { alpha = { 1, 2 } }) end, "list alpha has 2 entries, list a has 1")
    t.error_has(function() foreach.add({ x }, 1, 2) end, "at most 2 arguments, got 3")
    t.error_has(function() foreach.add({ x, k = 3 }, 1) end, "a list has no options")
    t.error_has(function() foreach.add({ x }, { x, alpha = "a" }) end, "alpha")
    t.error_has(function() foreach.add_({ 3 }, { x }) end, "foreach.add_: entry 1: a tensor expected")
    t.error_has(function() foreach.add_(3, { x }) end, "foreach.add_: argument 1 (a): a list of tensors expected")
    t.error_has(function() foreach.mul({ x, tide.ones(3) }, { x, x }) end, "foreach.mul: entry 2:")
    local closed
    do
        local y <close> = tide.ones(2)
        closed = y
    end
    t.error_has(function() foreach.exp { x, closed } end, "closed")
end)

-- How often each kernel or operator ran; both count.
local function counts(profile)
    local by_name = {}
    for _, e in ipairs(profile:events()) do
        if e.kind == "operator" or e.kind == "kernel" then
            by_name[e.name] = (by_name[e.name] or 0) + 1
        end
    end
    return by_name
end

t.test("a_list_is_one_run_of_a_program", function()
    local list = map(mixture(7), function(x) return x:float():contiguous() end)
    local profile = tide.profiler.profile(function() foreach.mul_(foreach.mul(list, 2), list) end)
    t.eq(counts(profile), { foreach_mul = 2, foreach_mul_ = 2 }) -- the operator and its kernel
end)

t.test("norms_have_the_bits_of_the_loop", function()
    local list = mixture(8)
    local function add(x) list[#list + 1] = x end
    add(tide.randn(300000)) -- cut into pieces
    add(tide.randn(500, 400):t())
    add(tide.randn(200000):half())
    add(tide.full({ 10 }, 1e30)) -- squares are inf
    add(tide.full({ 10 }, 1e-30):double() * 1e-200)
    add(tide.tensor { 1, 0 / 0, 2.5 })
    add(tide.zeros(1))
    for _, ord in ipairs { 2, 1, 0, math.huge, 3, 0.5 } do
        local given = ord == math.huge and map(list, function(x) return x:numel() > 0 and x or tide.ones(2) end) or list
        local norms = foreach.norm(given, ord)
        for k, norm in ipairs(norms) do
            t.is_true(same(norm, tide.linalg.vector_norm(given[k], ord)), ("entry %d, order %s"):format(k, ord))
        end
    end
    t.eq(#foreach.norm({}), 0)
    t.error_has(function() foreach.norm { tide.ones(2), tide.tensor { 1, 2 } } end, "foreach.norm: entry 2: floats expected")
    t.error_has(function() foreach.norm({ tide.ones(2), tide.ones(0) }, math.huge) end, "foreach.norm: entry 2: ")
    t.error_has(function() foreach.norm({ tide.ones(2), 3 }) end, "element 2: expected a tensor, got number 3")
end)

t.test("norms_of_a_list_are_one_kernel", function()
    local list = mixture(9)
    t.eq(counts(tide.profiler.profile(function() foreach.norm(list) end)), { foreach_norm = 2 })
end)

t.test("norms_of_what_is_recorded_have_gradients", function()
    local x = tide.tensor({ 3.0, 4.0 }):requires_grad_()
    local norms = foreach.norm { tide.ones(4), x, x * 2 }
    t.eq({ norms[1].requires_grad, norms[2]:item(), norms[3]:item() }, { false, 5.0, 10.0 })
    local total = norms[2] + norms[3]
    total:backward()
    t.close(x.grad:tolist(), { 1.8, 2.4 }, 1e-6)
    local inferred
    do
        local _ <close> = tide.inference_mode()
        inferred = foreach.norm({ x })[1]
    end
    t.is_true(inferred:is_inference())
end)

t.test("a_step_of_an_optimizer_is_one_run_and_allocates_no_tensors", function()
    local params = {}
    for k = 1, 161 do
        params[k] = tide.randn(k % 7 + 1, 9):requires_grad_()
        params[k].grad = tide.randn_like(params[k])
    end
    for _, name in ipairs { "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop" } do
        local optimizer = tide.optim[name](params, { lr = 0.01, momentum = name == "SGD" and 0.9 or nil })
        optimizer:step()
        local before = tide.memory_stats().allocations
        local profile = tide.profiler.profile(function() optimizer:step() end)
        local runs = 0
        for event, n in pairs(counts(profile)) do
            t.eq(event, name:lower() .. "_step")
            runs = runs + n
        end
        t.eq(runs, 2, name) -- the operator and its kernel
        t.eq(tide.memory_stats().allocations - before, 0, name)
    end
end)
