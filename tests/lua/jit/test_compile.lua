-- tide.compile: what compiled functions give is what the functions give, to the bit, whatever needs their values on the way.
local t = require "harness"
local nn, F, optim = tide.nn, tide.nn.functional, tide.optim

local function compiled(fn, options)
    options = options or {}
    options.measure = options.measure or false -- gather always
    return tide.compile(fn, options)
end

local function same(got, want, what)
    t.eq(#got, #want, what)
    for k = 1, #want do
        if tide.is_tensor(want[k]) then
            t.eq(tostring(got[k].dtype), tostring(want[k].dtype), what)
            t.eq(got[k].shape, want[k].shape, what)
            t.eq(got[k]:stride(), want[k]:stride(), what)
            t.eq(got[k].requires_grad, want[k].requires_grad, what)
            t.is_true(tide.equal(got[k]:detach():nan_to_num(7), want[k]:detach():nan_to_num(7)), what)
        else
            t.eq(got[k], want[k], what)
        end
    end
end

-- The function and its compiled form draw the same numbers and give the same, time after time.
local function check(what, fn, make, calls)
    local f = compiled(fn, { name = what })
    for n = 1, calls or 6 do
        tide.manual_seed(n)
        local want = table.pack(fn(make(n)))
        local after = tide.rand(1):item()
        tide.manual_seed(n)
        same(table.pack(f(make(n))), want, what .. ", call " .. n)
        t.eq(tide.rand(1):item(), after, what .. ": what is drawn afterwards")
    end
    return f:why()
end

local function two(...)
    local sizes = { ... }
    return function(n)
        tide.manual_seed(100 + n)
        return tide.randn(table.unpack(sizes)), tide.randn(table.unpack(sizes))
    end
end

t.test("calls_gather_and_run_as_one_graph", function()
    local why = check("chain", function(x, y)
        local z = (x * y + 1):tanh()
        return z / 3 - x, z:sum(1), x.T, z:reshape(-1)[3]
    end, two(4, 5))
    t.eq(why.graphs, 1)
    t.eq(#why.breaks, 0)
    t.is_true(why.graph_runs >= 4)
    t.is_true(tostring(why):find("chain: 6 calls", 1, true))
end)

t.test("values_that_escape_are_there", function()
    local seen
    local escapes = {
        item = function(s) return s:item() end,
        tolist = function(_, z) return z:tolist()[1][1] end,
        print = function(_, z) return tostring(z) end,
        equal = function(s, z) return s == z, z == z end,
        branch = function(s, z) if s > 0 then return z + 1 else return z - 1 end end,
        mask = function(_, z) return z[z:gt(0)] end,
        write = function(_, z) z[1] = 5; return z end,
        size = function(_, z) return z:size(1), #z, z.shape[2], tostring(z.dtype), z:numel(), z.device, z:is_contiguous() end,
        number = function(s, z) return z:roll(s:abs():ceil():long():clamp(1, 2), 1) end,
        error = function(_, z) local ok, message = pcall(function() return z:matmul(z) end); return ok, message, z * 2 end,
        upvalue = function(_, z) seen = z * 3; return seen end,
        table = function(s, z) local list = { s, z, z + s }; return list[3] end,
        closed = function(s, z) do local w <close> = z + 1 end return s end,
        inplace = function(_, z) z:mul_(2):add_(1); return z, z:exp_() end,
        out = function(_, z) return tide.add(z, 1, { out = tide.empty(3, 4) }) end,
        index = function(_, z) return z:argmax(2), z:sort(1) end,
        parts = function(_, z) local a, b = table.unpack(z:chunk(2, 2)); return a * b, a end,
        save = function(_, z)
            local path = os.tmpname()
            tide.save({ z = z }, path)
            local back = tide.load(path).z
            os.remove(path)
            return back
        end,
    }
    for name, escape in pairs(escapes) do
        check(name, function(x, y)
            local z = x * y - 0.5
            return escape((z * z):mean(), z)
        end, two(3, 4))
        if name == "upvalue" then
            t.eq(seen.shape, tide.zeros(3, 4).shape)
            t.is_true(seen:sum():item() == seen:sum():item())
        end
    end
end)

t.test("a_break_names_its_line_and_what_needed_the_values", function()
    local f = compiled(function(x)
        local s = (x * 2):sum()
        if s:item() > 0 then return x + s end
        return x - s
    end, { name = "broken" })
    for _ = 1, 5 do f(tide.ones(3)) end
    local why = f:why()
    t.eq(#why.breaks, 1)
    t.eq(why.breaks[1].what, "item")
    t.eq(why.breaks[1].count, 4)
    t.is_true(why.breaks[1].place:find "test_compile.lua:%d+$")
    t.is_true(tostring(why):find("ran before item, 4 times", 1, true))
    t.eq(why.graphs, 2 - 1) -- behind the item there is one call, which needs no graph
end)

t.test("sizes_dtypes_and_layouts_that_change_are_other_paths", function()
    check("sizes", function(x) return (x * 2 + 1):sum(-1), x:view(-1) end,
        function(n) return tide.arange(12):float():view(n % 2 == 0 and 3 or 4, -1) end, 8)
    check("dtypes", function(x) return x / 2, x * x end,
        function(n) return tide.arange(6):to(n % 2 == 0 and tide.float64 or tide.int32) end, 8)
    check("strides", function(x) return (x + 1):contiguous(), x * 2 end,
        function(n) local x = tide.randn(3, 3); return n % 2 == 0 and x.T or x end, 8)
    local x = tide.randn(4)
    check("twice", function(a, b) return a * b + a end, function(n) return x, n % 2 == 0 and x or x:clone() end, 8)
end)

t.test("numbers_of_lua_are_never_stale", function()
    local n, f = 0
    f = compiled(function(x) n = n + 1; return x * n + (n % 2 == 0 and 1 or 2) end)
    for k = 1, 9 do
        t.eq(f(tide.ones(2)):tolist(), { k + (k % 2 == 0 and 1 or 2), k + (k % 2 == 0 and 1 or 2) })
    end
end)

t.test("what_is_drawn_is_drawn_in_order", function()
    check("drawn", function(x)
        local a = tide.rand(3, 4)
        local _ = tide.randn(3, 4) -- nobody reads it, and it is drawn all the same
        local b = F.dropout(x, 0.5, { training = true })
        local c = b:sum():item()
        return a, b, c, tide.randint(0, 9, { 3 }), tide.bernoulli(tide.full({ 4 }, 0.5))
    end, two(3, 4))
    check("seeded", function(x) local a = tide.rand(2); tide.manual_seed(3); return a, tide.rand(2), x end, two(2))
end)

t.test("errors_are_those_of_the_function", function()
    local function fn(x, y)
        local z = x + 1
        return z:matmul(y)
    end
    local f = compiled(fn)
    local good, bad = tide.ones(2, 3), tide.ones(2, 3)
    for _ = 1, 4 do
        t.eq(f(good, tide.ones(3, 2)).shape, tide.zeros(2, 2).shape)
        local _, want = pcall(fn, good, bad)
        local ok, got = pcall(f, good, bad)
        t.eq({ ok, got }, { false, want })
    end
    local g = compiled(function(x, i) return x + 1, x:index_select(1, i) end)
    for _ = 1, 4 do
        g(tide.ones(3), tide.tensor { 1, 2 })
        local ok, message = pcall(g, tide.ones(3), tide.tensor { 1, 7 })
        t.is_true(not ok and message:find "test_compile.lua:%d+: index_select: ")
    end
    local h = compiled(function(x) local y = x * 2; error({ y = y }) end)
    for _ = 1, 4 do
        local ok, thrown = pcall(h, tide.ones(2))
        t.eq({ ok, thrown.y:tolist() }, { false, { 2, 2 } })
    end
    t.error_has(function() tide.compile(3) end, "expected a function or a module, got number 3")
end)

t.test("inputs_that_are_written_were_read_before", function()
    check("written", function(x, y)
        local a = x * 2
        x:add_(1)
        local b = x * 2
        tide.foreach.mul_({ x, y }, 3)
        local c = x + y
        y.data:zero_()
        return a, b, c, x + y
    end, two(3))
    check("viewed", function(x)
        local v, a = x[1], x * 1
        v:add_(1)
        return a, x * 1, v
    end, two(3, 2))
end)

-- Gradients of everything that has one.
local function with_gradients(fn, ...)
    local inputs = { ... }
    return function()
        local leaves = {}
        for k, x in ipairs(inputs) do leaves[k] = x:detach():clone():requires_grad_(true) end
        local results = table.pack(fn(table.unpack(leaves)))
        for _, x in ipairs(leaves) do results[#results + 1] = x.grad or false end
        results.n = nil
        return table.unpack(results)
    end
end

t.test("gradients_are_those_of_the_calls", function()
    local x, w = tide.randn(4, 3, { dtype = tide.float64 }), tide.randn(3, 3, { dtype = tide.float64 })
    local none = function() end
    check("within", with_gradients(function(a, b)
        local y = (a:matmul(b)):tanh()
        local loss = (y * y):sum()
        loss:backward()
        return loss, y
    end, x, w), none)
    check("intermediate", with_gradients(function(a, b)
        local y = a:matmul(b)
        local z = (y:exp() * 0.1 + y):sum()
        local g = tide.autograd.grad(z, { y, a }, { create_graph = true })
        g[2]:pow(2):sum():backward()
        return z, g[1], g[2]
    end, x, w), none)
    check("hooked", with_gradients(function(a, b)
        local y = a * 2
        local z = (y:matmul(b)):sigmoid():sum()
        y:register_hook(function(g) return g * 3 end)
        y:retain_grad()
        z:backward()
        return z, y.grad
    end, x, w), none)
    check("no_grad", with_gradients(function(a, b)
        local y = a * 2
        local s
        do
            local _ <close> = tide.no_grad()
            s = y:sum() + b:sum()
        end
        local z = (y * s):sum()
        z:backward()
        return z, s
    end, x, w), none)
    check("in place", with_gradients(function(a, b)
        local y = a * 2
        y:mul_(b[1])
        local v = y[2]
        v:add_(1)
        y:sum():backward()
        return y
    end, x, w), none)
    local f = compiled(function(a) local y = a:exp(); y:add_(1); return y:sum() end)
    for _ = 1, 4 do
        t.error_has(function() f(x:clone():requires_grad_(true)):backward() end, "exp")
    end
end)

t.test("casts_and_inference_are_the_function_s", function()
    local why = check("autocast", function(x, y)
        local a = x:matmul(y.T)
        local b = tide.autocast("cpu", { dtype = tide.bfloat16 }, function() return x:matmul(y.T) end)
        return a, b, b + a
    end, two(3, 3))
    t.is_true(tostring(why):find("at once, as under autocast", 1, true))
    check("inference", function(x, y)
        local a = tide.inference_mode(function() return (x * y):exp() end)
        return a, a + 1
    end, two(3, 3))
end)

-- A model trained by its function and by the compiled one ends with the same numbers.
local function train(make, step, compile)
    tide.manual_seed(11)
    local model = make()
    local optimizer = optim.AdamW(model:parameters(), { lr = 0.01 })
    local run = function(x, y) return step(model, optimizer, x, y) end
    if compile then run = compiled(run) end
    local losses = {}
    for k = 1, 6 do
        tide.manual_seed(50 + k)
        losses[k] = run(tide.randn(8, 4), tide.randint(1, 3, { 8 })):item()
    end
    local state = {}
    for name, p in pairs(model:state_dict()) do state[name] = p:tolist() end
    return losses, state
end

t.test("training_is_the_same_to_the_bit", function()
    local function plain(model, optimizer, x, y)
        optimizer:zero_grad()
        local loss = F.cross_entropy(model(x), y)
        loss:backward()
        optimizer:step()
        return loss
    end
    local makers = {
        mlp = function() return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3)) end,
        normed = function() return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)) end,
        recurrent = function()
            local lstm, head = nn.LSTM(2, 5), nn.Linear(5, 3)
            local Both = nn.class "Both"
            function Both:init() self.lstm, self.head = lstm, head end
            function Both:forward(x)
                local out = self.lstm(x:view(8, 2, 2):transpose(1, 2))
                return self.head(out[-1])
            end
            return Both()
        end,
    }
    for name, make in pairs(makers) do
        local losses, state = train(make, plain, false)
        local got_losses, got_state = train(make, plain, true)
        t.eq(got_losses, losses, name)
        t.eq(got_state, state, name)
    end
end)

t.test("modules_are_compiled_as_they_are", function()
    local model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    local f = compiled(model)
    local x = tide.randn(2, 3)
    for _ = 1, 5 do t.is_true(tide.equal(f(x), model(x))) end
    t.eq(#f:parameters(), 2)
    t.eq(f.training, true)
    f:eval()
    t.eq(model.training, false)
    t.is_true(tostring(f):find "^CompiledFunction")
end)

t.test("functions_within_one_another_recursion_and_coroutines", function()
    local inner = compiled(function(x) return x * 2 + 1 end)
    local function outer(x) return inner(x):exp() + inner(x + 1) end
    check("nested", outer, two(3))
    local function power(x, n) return n == 0 and x or power(x * 1.5, n - 1) + x end
    local deep
    deep = compiled(function(x, n) return n == 0 and x or deep(x * 1.5, n - 1) + x end)
    for _ = 1, 4 do t.is_true(tide.equal(deep(tide.ones(2), 5), power(tide.ones(2), 5))) end

    local function steps(x)
        local y = x
        for _ = 1, 3 do
            y = y * 2
            coroutine.yield(y + 1)
        end
        return y
    end
    local in_steps = compiled(steps)
    for _ = 1, 4 do
        local a, b = coroutine.wrap(steps), coroutine.wrap(function(x) return in_steps(x) end)
        local x = tide.ones(2)
        for _ = 1, 4 do
            local want, got = a(x), b(x)
            t.eq((got * 1):tolist(), (want * 1):tolist())
        end
    end
    local made = compiled(function(x)
        local all = {}
        local co = coroutine.wrap(function() for k = 1, 3 do coroutine.yield(x * k) end end)
        for k = 1, 3 do all[k] = co() end
        return all[1] + all[2] * all[3]
    end)
    for _ = 1, 4 do t.eq(made(tide.ones(1)):item(), 7) end
    local dropped = coroutine.create(function(x) return compiled(steps)(x) end) -- left for good in its midst
    coroutine.resume(dropped, tide.ones(2))
    dropped = nil
    collectgarbage()
    t.eq((tide.ones(2) * 2):tolist(), { 2, 2 })
end)

t.test("what_is_kept_is_bounded_and_said", function()
    local f = compiled(function(x)
        for _ = 1, 1500 do x = x + 1 end
        return x
    end, { name = "long" })
    for _ = 1, 4 do t.eq(f(tide.zeros(1)):item(), 1500) end
    local many = compiled(function(x, n) return x * n + 1 end)
    for n = 1, 90 do
        for _ = 1, 3 do many(tide.ones(1), n) end
    end
    local why = many:why()
    t.eq(why.graphs, 64)
    t.is_true(tostring(why):find("as many graphs", 1, true))
    local sizes = compiled(function(x) return (x * 2 + 1):sum() end)
    for n = 1, 4000 do t.eq(sizes(tide.ones(n)):item(), 3 * n) end
    t.is_true(tostring(sizes:why()):find("forgotten once", 1, true))
end)

t.test("the_faster_way_is_taken_and_told", function()
    local f = tide.compile(function(x) return x * 2 + 1 end, { name = "quick" })
    for k = 1, 200 do t.eq(f(tide.full({ 2 }, k)):tolist(), { 2 * k + 1, 2 * k + 1 }) end
    local why = f:why()
    t.eq(why.calls, 200)
    t.eq(#why.kinds, 1)
    t.is_true(why.kinds[1].at_once > 0 and why.kinds[1].deferred > 0)
    t.is_true(tostring(why):find("at once", 1, true))
end)

t.test("what_always_meets_new_calls_is_timed_too", function()
    local f = tide.compile(function(x, n) return x * n + 1 end, { name = "new" })
    for n = 1, 40 do t.eq(f(tide.ones(1), n):item(), n + 1) end
    local why = f:why()
    t.eq(#why.kinds, 1)
    t.is_true(why.kinds[1].at_once > 0 and why.kinds[1].deferred > 0, tostring(why))
end)

t.test("results_outlive_their_function", function()
    local kept
    do
        local f = compiled(function(x) return x * 3, function() return x end end)
        for _ = 1, 4 do kept = f(tide.ones(2)) end
    end
    collectgarbage()
    t.eq(kept:tolist(), { 3, 3 })
end)
