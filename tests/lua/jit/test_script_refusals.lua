-- What scripts can't have is refused with its place, its line and the reason.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local h = dofile(here .. "/script_harness.lua")
local refused = h.refused

t.test("jumps_back", function()
    refused(function(x)
        ::again::
        x = x * 2
        if x:sum():item() < 10 then goto again end
        return x
    end, "goto again: a graph has no jumps back")
end)

t.test("recursion", function()
    local function loop(n) return loop(n - 1) end --: int
    refused(loop, "calls itself")
    local odd
    local function even(x) return odd(x - 1) end
    function odd(x) return even(x - 1) end
    refused(function(x) return even(x) end, "calls itself")
end)

t.test("close", function()
    refused(function(x)
        local _ <close> = x
        return x
    end, "<close> of a tensor")
end)

t.test("comparisons_of_tensors", function()
    refused(function(x)
        if x > 0 then return x end
        return -x
    end, "x:gt(y)")
end)

t.test("variables_outside_are_not_set", function()
    local count = 0
    refused(function(x)
        count = count + 1
        return x
    end, "'count'")
    refused(function(x)
        some_global = 1
        return x
    end, "'some_global'")
end)

t.test("types_that_branches_disagree_on", function()
    refused(function(n) --: int
        local v
        if n > 0 then v = "text" else v = 5 end
        return v
    end, "give it one type")
    refused(function(n) --: int
        local s = "text"
        for i = 1, n do s = i end
        return s
    end, "'s' is a string before the loop and an integer in it")
end)

t.test("arithmetic_on_what_is_no_number", function()
    refused(function(x) return x + nil end, "nil")
    refused(function(x) return x + {} end, "list")
    refused(function(x) return "a" - x:size(1) end, "string")
end)

t.test("varargs_of_the_script_itself", function()
    refused(function(...) return ... end, "'...'")
end)

t.test("functions_in_c_that_no_graph_knows", function()
    refused(function(x)
        os.time()
        return x
    end, "'time'")
    refused(function(x) return math.random() end, "math.random")
    refused(function(x) return pcall(x) end, "pcall")
end)

t.test("branches_that_nest_too_deep", function()
    local lines = { "return function(n) --: int" }
    for k = 1, 100 do
        lines[#lines + 1] = string.format("    if n == %d then return %d end", k, 2 * k)
    end
    lines[#lines + 1] = "    return 0\nend"
    refused(load(table.concat(lines, "\n"))(), "nested deeper than")
end)

t.test("contexts", function()
    refused(function(x) return tide.set_default_device("cpu", function() return x end) end, "around the call")
    refused(function(x)
        local guard = tide.no_grad()
        return x
    end, "no_grad opens a mode")
    refused(function(x)
        tide.set_grad_enabled(false)
        return x
    end, "set_grad_enabled opens a mode")
    refused(function(x, on) --: Tensor, bool
        return tide.inference_mode(on, function() return x end)
    end, "must be known")
    refused(function(x) return tide.autocast("cpu", function() return x end, { dtpye = tide.float16 }) end, "'dtpye'")
end)

t.test("modules_of_the_script_are_not_written", function()
    local layer = tide.nn.Linear(2, 2)
    refused(function(x)
        layer.calls = 1
        return layer(x)
    end, "can be read and not set")
end)

t.test("methods_that_leave_the_graph", function()
    refused(function(x) return x:tolist() end, "tolist")
    refused(function(x) return x:backward() end, "backward")
    refused(function(x) return x:no_such_method() end, "no_such_method")
end)

t.test("dims_count_from_one", function()
    refused(function(x) return x:sum(0) end, "count from 1")
    refused(function(x) return x[0] end, "count from 1")
end)

t.test("options_that_are_none", function()
    refused(function(x) return x:sum(1, { keepdims_ = true }) end, "keepdims_")
    refused(function(x) return x:sum(1, true) end, "options go in a table")
    refused(function(x) return tide.add(x, x, { out = x }) end, "out")
end)

t.test("annotations", function()
    refused(function(x) --: tenzor
        return x
    end, "a list of types")
    refused(function(x) --: int, int
        return x
    end, "2 types for 1 parameters")
end)

t.test("loops_over_iterators", function()
    refused(function(x)
        for w in string.gmatch("a b", "%a") do x = x + 1 end
        return x
    end, "")
end)

t.test("steps_that_are_not_known", function()
    refused(function(n) --: int
        local s = 0
        for i = 1, 10, n do s = s + i end
        return s
    end, "step")
end)

t.test("tables_with_names_of_tables_do_not_leave", function()
    refused(function(x) return { a = x, b = { 1, 2 } } end, "'b' is a table")
end)

t.test("tables_that_a_graph_copied_are_not_written", function()
    refused(function(x, n) --: Tensor, int
        local row, rows = { n, x }, {}
        for _ = 1, n do
            rows[#rows + 1] = row
        end
        row[1] = 7
        return rows[1][1]
    end, "holds a copy of it")
    refused(function(p) --: bool
        local a, b = { 1, 2.5 }, { 3, 4.5 }
        local c = p and a or b
        a[1] = 9
        return c[1]
    end, "two that branches left")
end)

t.test("what_is_refused_within_tide_is_told_where_it_is_called", function()
    refused(function(x) return tide.save(x, "file") end, "save: ")
    local _, problem = pcall(tide.jit.script, function(x) return tide.save(x, "file") end)
    t.is_true(problem:find("test_script_refusals.lua:", 1, true))
end)

t.test("a_tensor_is_no_list_of_tensors", function()
    refused(function(x) return tide.cat(x, 1) end, "put it in a table")
end)

t.test("generators_of_the_script", function()
    local g = tide.Generator()
    refused(function(x) return x:multinomial(1, { generator = g }) end, "a generator is an input")
end)

t.test("orders_of_lists_that_nobody_says", function()
    refused(function(n) --: int
        local list = { { n, 0.5 }, { 2, 1.5 } }
        table.sort(list, function(a, b) return a[2] < b[2] end)
        return list[1][1]
    end, "table.sort")
end)

t.test("texts_that_were_changed", function()
    local fn = load("return function(x) return x end", "@/no/such/file.lua")()
    t.error_has(function() tide.jit.script(fn) end, "/no/such/file.lua")
    t.error_has(function() tide.jit.script(math.floor) end, "C")
    t.error_has(function() tide.jit.script(5) end, "function")
end)

t.test("functions_of_one_line_that_are_alike", function()
    local a, b = function(x) return x + 1 end, function(x) return x + 1 end
    t.error_has(function() tide.jit.script(a) end, "give each lines of its own")
    t.is_true(b)
end)

t.test("functions_of_one_line_are_told_apart_by_their_code", function()
    local k = 10
    local function pair() return function(x) return x + 1 end, function(x) return x + 2 end, function(x) return x + k end end
    local a, b, c = pair()
    t.eq({ tide.jit.script(a)(tide.ones(1)):item(), tide.jit.script(b)(tide.ones(1)):item(), tide.jit.script(c)(tide.ones(1)):item() },
        { 2, 3, 11 })
    local outer = function(x) local function inner(y) return y * 3 end return inner(x) end
    t.eq(tide.jit.script(outer)(tide.ones(1)):item(), 3)
end)
