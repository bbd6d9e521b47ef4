-- Scripts and the rest of tide.jit: forks, functions that are left to Lua, prints, files, gradients, second sizes.
local t = require "harness"

t.test("forks_run_beside_and_are_waited_for", function()
    local function work(a, b) return a:matmul(b), a:sum() end
    local f = tide.jit.script(function(x, y)
        local k = 3
        local first = tide.jit.fork(work, x, y * k)
        local second = tide.jit.fork(function(z) return z * k + x end, y)
        local p, q = tide.jit.wait(first)
        return p, q, tide.jit.wait(second)
    end)
    local x, y = tide.randn(2, 2), tide.randn(2, 2)
    local p, q, r = f(x, y)
    t.eq({ p:tolist(), q:item(), r:tolist() }, { x:matmul(y * 3):tolist(), x:sum():item(), (y * 3 + x):tolist() })
end)

t.test("forks_do_not_set_what_is_outside", function()
    t.error_has(function()
        tide.jit.script(function(x)
            local k = 0
            local future = tide.jit.fork(function(y)
                k = 5
                return y
            end, x)
            return tide.jit.wait(future) * k
        end)
    end, "'k'")
end)

t.test("forks_do_not_write_lists_of_others", function()
    t.error_has(function()
        tide.jit.script(function(x, n) --: Tensor, int
            local list = { x }
            for k = 1, n do list[#list + 1] = x * k end
            local future = tide.jit.fork(function(y)
                list[#list + 1] = y
                return y
            end, x)
            tide.jit.wait(future)
            return #list
        end)
    end, "of which it has a copy")
end)

t.test("ignored_functions_are_called_in_lua", function()
    local seen = 0
    local ask = tide.jit.ignore(function(x, n) --: Tensor, int -> Tensor, int
        seen = seen + n
        return x * 2, seen
    end)
    local f = tide.jit.script(function(x)
        local y, count = ask(x, 3)
        return y + 1, count * 10
    end)
    local y, count = f(tide.ones(2))
    t.eq({ y:tolist(), count, seen }, { { 3, 3 }, 30, 3 })
end)

t.test("gradients_go_through_branches_and_loops", function()
    local function fn(x, n) --: Tensor, int
        local y = x
        for i = 1, n do
            if i % 2 == 0 then y = y * x else y = y:sin() end
        end
        return y:sum()
    end
    local f = tide.jit.script(fn)
    local a, b = tide.randn(3):requires_grad_(true), nil
    b = a:detach():clone():requires_grad_(true)
    f(a, 4):backward()
    fn(b, 4):backward()
    t.eq(a.grad:tolist(), b.grad:tolist())
end)

t.test("other_sizes_and_dtypes_run_again", function()
    local function fn(x)
        local y = x * 2 + 1
        if x:size(1) > 2 then y = y:sum(1) end
        return y:relu(), x:dim()
    end
    local f = tide.jit.script(fn)
    for _, x in ipairs { tide.randn(2, 3), tide.randn(4, 3), tide.randn(3, 1), tide.randn(5), tide.randn(4, 3):double(),
        tide.randn(4, 3):t(), tide.arange(1, 6) } do
        local y, n = f(x)
        local want, wanted = fn(x)
        t.eq({ y:tolist(), tostring(y.dtype), n }, { want:tolist(), tostring(want.dtype), wanted })
    end
end)

t.test("other_ways_of_calling_operators", function()
    local function fn(x, y)
        local z = x:to(y)
        return tide.max(x, y), x:min(y), z, x:to("float64"), x:to("cpu"), tide.tensordot(x, y, { { 2 }, { 2 } }), x:where(x:gt(0), 0)
    end
    local f = tide.jit.script(fn)
    local x, y = tide.randn(2, 3), tide.randn(2, 3)
    local got, want = table.pack(f(x, y)), table.pack(fn(x, y))
    for k = 1, want.n do
        t.eq(got[k]:tolist(), want[k]:tolist(), "result " .. k)
    end
end)

t.test("a_saved_script_is_loaded_without_its_source", function()
    local layer = tide.nn.Sequential(tide.nn.Linear(3, 4), tide.nn.Tanh())
    local f, path = tide.jit.script(layer), os.tmpname()
    f:save(path)
    local g, x = tide.jit.load(path), tide.randn(2, 3)
    os.remove(path)
    t.eq(g(x):tolist(), layer(x):tolist())
end)
