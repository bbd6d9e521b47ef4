-- Modes inside scripted functions: values, what requires grad, dtypes and gradients are those of Lua, however the mode is
-- left.
local t = require "harness"

local function plain(v)
    return tide.is_tensor(v) and { v:detach():tolist(), tostring(v.dtype), v.requires_grad } or tostring(v)
end

-- The results of a function and the gradient of the first one.
local function run(fn, ...)
    local x = tide.tensor { 0.5, -1.5, 2.0 }:requires_grad_()
    local results, list = table.pack(fn(x, ...)), {}
    for k = 1, results.n do
        list[k] = plain(results[k])
    end
    if results[1].requires_grad then
        results[1]:sum():backward()
        list.grad = x.grad:tolist()
    end
    return list
end

local function same(fn, ...)
    local want, scripted = run(fn, ...), tide.jit.script(fn)
    t.eq(run(scripted, ...), want)
    return scripted
end

t.test("to_the_end_of_the_function", function()
    same(function(x)
        local y = x * 2
        local _ <close> = tide.no_grad()
        return y * 3
    end)
end)

t.test("to_the_end_of_a_block", function()
    same(function(x)
        local y = x * 2
        local z
        do
            local _ <close> = tide.no_grad()
            z = y * 3
        end
        return y + z, z
    end)
end)

t.test("around_a_function", function()
    same(function(x)
        local w = tide.no_grad(function() return x * 2 end)
        return x * w, w
    end)
end)

t.test("around_a_function_with_arguments_and_results", function()
    same(function(x)
        local a, b = tide.no_grad(function(u) return u * 2, 3 end, x)
        return x * a * b, a
    end)
end)

t.test("one_in_another", function()
    same(function(x)
        local _ <close> = tide.no_grad()
        local y = tide.enable_grad(function() return x * 2 end)
        return y, x * 2
    end)
end)

t.test("left_by_return", function()
    local function fn(x, n) --: Tensor, int
        do
            local _ <close> = tide.no_grad()
            local s = x:sum()
            if n > 3 then return x * 2, s end
        end
        return x * 3, x
    end
    same(fn, 5)
    same(fn, 1)
end)

t.test("left_by_break", function()
    same(function(x, n) --: Tensor, int
        local y, s = x, x
        for i = 1, n do
            y = y * 1.5
            local _ <close> = tide.no_grad()
            s = s + y
            if i == 3 then break end
        end
        return y, s
    end, 5)
end)

t.test("a_loop_within", function()
    same(function(x, n) --: Tensor, int
        local mean = x * 0
        tide.no_grad(function()
            for i = 1, n do mean = mean * 0.5 + x end
        end)
        return x * mean
    end, 4)
end)

t.test("a_list_that_grows_within", function()
    same(function(x, n) --: Tensor, int
        local list = { x }
        do
            local _ <close> = tide.no_grad()
            for i = 1, n do list[#list + 1] = x * i end
        end
        return tide.stack(list):sum(1), #list
    end, 4)
end)

t.test("a_list_made_within", function()
    same(function(x, n) --: Tensor, int
        local list
        do
            local _ <close> = tide.no_grad()
            list = { x, x * 2 }
            local more = {}
            for i = 1, n do more[#more + 1] = x * i end
            list[2] = tide.stack(more):sum(1)
        end
        list[1] = list[1] * 2
        return list[1] + list[2], list[2]
    end, 4)
end)

t.test("a_table_with_names_written_within", function()
    same(function(x)
        local r = { a = x }
        tide.no_grad(function() r.b = r.a * 2 end)
        return r.a * r.b, r.b
    end)
end)

t.test("a_function_made_within", function()
    same(function(x)
        local f
        do
            local _ <close> = tide.no_grad()
            local w = x * 2
            f = function(y) return y * w end
        end
        return f(x)
    end)
end)

t.test("inference_mode", function()
    same(function(x)
        local y = tide.inference_mode(function() return (x * 2):sum() end)
        return x * 2
    end)
end)

t.test("set_grad_enabled", function()
    same(function(x)
        local _ <close> = tide.set_grad_enabled(false)
        return x * 2
    end)
end)

t.test("autocast_around_a_function", function()
    same(function(x)
        local w = x:view(3, 1) * x
        local y = tide.autocast("cpu", function() return w:matmul(w) end)
        return y:float() + 1, y
    end)
end)

t.test("autocast_to_the_end_of_a_block", function()
    same(function(x)
        local w = x:view(3, 1) * x
        local y
        do
            local _ <close> = tide.autocast { device = "cpu", dtype = tide.float16 }
            y = w:matmul(w)
            if y:dim() > 5 then return y end
        end
        return y:float() + 1, y
    end)
end)

t.test("a_repeat_that_reads_what_was_made_within", function()
    same(function(x)
        local i = 0
        local y = x
        repeat
            local _ <close> = tide.no_grad()
            i = i + 1
            y = y * 2
            local s = y:sum():item()
        until s > 20 or i > 6
        return x * y, i
    end)
end)

t.test("profiler_records", function()
    same(function(x)
        local y = tide.profiler.record("part", function() return x * 2 end)
        local _ <close> = tide.profiler.record("rest")
        return y * 3
    end)
end)

t.test("in_one_branch", function()
    same(function(x, p) --: Tensor, bool
        local y
        if p then
            y = tide.no_grad(function() return x * 2 end)
        else
            y = x * 3
        end
        return y * x
    end, true)
end)

t.test("where_a_condition_is_known", function()
    same(function(x)
        local freeze = true
        local _ <close> = freeze and tide.no_grad() or nil
        return x * 2
    end)
end)

t.test("autocast_in_no_grad", function()
    same(function(x)
        local y = tide.no_grad(function()
            local u = tide.autocast("cpu", function() return x:view(1, 3):matmul(x:view(3, 1)) end)
            return u:float()
        end)
        return y * x
    end)
end)

t.test("left_by_goto", function()
    same(function(x, n) --: Tensor, int
        local y = x
        for i = 1, n do
            do
                local _ <close> = tide.no_grad()
                if i == 2 then goto next end
                y = y + i
            end
            y = y * x
            ::next::
        end
        return y
    end, 3)
end)

t.test("its_graph_is_saved_and_loaded", function()
    local f, path = same(function(x)
        local y = tide.no_grad(function() return x * 2 end)
        return x * y
    end), os.tmpname()
    f:save(path)
    local g = tide.jit.load(path)
    os.remove(path)
    t.eq(g.graph, f.graph)
    t.eq(run(g), run(f))
end)
