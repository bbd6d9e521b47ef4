-- test_jit_trace.lua: tide.jit.trace: what is recorded gives what the function gives, what leaves the graph is said with its
-- line, the check finds what was fixed, and wrong calls are one line.
local t = require "harness"
local jit = tide.jit

local function f64(values) return tide.tensor(values, { dtype = tide.float64 }) end

-- What warn says while fn runs, as lines; and what fn gives.
local function warnings(fn)
    local lines, before = {}, warn
    warn = function(...) lines[#lines + 1] = table.concat { ... } end
    local results = table.pack(pcall(fn))
    warn = before
    if not results[1] then
        error(results[2], 0)
    end
    return lines, table.unpack(results, 2, results.n)
end

local function line_of(fn, offset) return debug.getinfo(fn, "S").linedefined + offset end

t.test("a_traced_function_gives_known_numbers", function()
    local f = jit.trace(function(x) return x * x:sigmoid(), x:logsumexp(1) end, { f64 { 0, 1, 2 } })
    local silu, sum = f(f64 { 0.5, -1, 3 })
    -- mpmath, 20 digits
    for k, want in ipairs { 0.31122966560092728, -0.26894142136999512, 2.8577223804672998 } do
        t.close(silu[k]:item(), want, 1e-15)
    end
    t.close(sum:item(), 3.0956743294143823, 1e-14)
end)

t.test("tensors_from_outside_are_constants_by_reference", function()
    local w = f64 { 1, 2 }
    local f = jit.trace(function(x) return x * w end, { f64 { 1, 1 } })
    t.eq(f(f64 { 3, 3 }):tolist(), { 3.0, 6.0 })
    w:fill_(10)
    t.eq(f(f64 { 3, 3 }):tolist(), { 30.0, 30.0 })
end)

t.test("an_input_that_the_function_holds_too_is_told_from_it", function()
    local w = f64 { 1, 2 }
    local f = jit.trace(function(x) return x + w end, { w })
    t.eq(f(f64 { 5, 5 }):tolist(), { 6.0, 7.0 })
end)

t.test("modules_have_their_parameters_in_the_graph_and_train", function()
    tide.manual_seed(3)
    local net = tide.nn.Sequential(tide.nn.Linear(3, 4), tide.nn.Tanh(), tide.nn.Linear(4, 1))
    local f = jit.trace(net, { tide.randn(5, 3) })
    t.eq(f.name, "Sequential")
    local x = tide.randn(5, 3)
    t.is_true(tide.equal(f(x), net(x)))
    f(x):sum():backward()
    local got = {}
    for k, p in ipairs(net:parameters()) do
        got[k], p.grad = p.grad:clone(), nil
    end
    net(x):sum():backward()
    for k, p in ipairs(net:parameters()) do
        t.is_true(tide.equal(got[k], p.grad), k)
    end
end)

t.test("lists_and_several_results", function()
    local f = jit.trace(function(x) return x + 1, { x, x * 2 }, x:sum() end, f64 { 1, 2 })
    local a, list, sum = f(f64 { 3, 4 })
    t.eq(a:tolist(), { 4.0, 5.0 })
    t.eq({ #list, list[1]:tolist(), list[2]:tolist() }, { 2, { 3.0, 4.0 }, { 6.0, 8.0 } })
    t.eq(sum:item(), 7.0)
end)

t.test("writes_in_place_reach_the_inputs_of_a_call_and_not_those_of_the_trace", function()
    local given = f64 { 1, 2 }
    local f = jit.trace(function(x)
        x:mul_(2)
        return x + 1
    end, given)
    t.eq(given:tolist(), { 1.0, 2.0 })
    local x = f64 { 5, 6 }
    t.eq(f(x):tolist(), { 11.0, 13.0 })
    t.eq(x:tolist(), { 10.0, 12.0 })
end)

t.test("indices_count_from_1_inside_and_outside", function()
    local f = jit.trace(function(x)
        local best, at = x:max(2)
        return best, at, x:gather(2, at:unsqueeze(2))
    end, f64 { { 1, 2, 3 }, { 3, 2, 1 } })
    local best, at, gathered = f(f64 { { 1, 9, 3 }, { 3, 2, 8 } })
    t.eq({ best:tolist(), at:tolist(), gathered:tolist() }, { { 9.0, 8.0 }, { 2, 3 }, { { 9.0 }, { 8.0 } } })
end)

t.test("graphs_name_inputs_and_lines", function()
    local function cell(x, h) return x:matmul(h) end
    local f = jit.trace(cell, { tide.ones(2, 2), tide.ones(2, 2) }, { name = "cell" })
    t.is_true(f.graph:find("graph(%x : Float(2, 2", 1, true), f.graph)
    t.is_true(f.graph:find("%h : Float(2, 2", 1, true))
    t.is_true(f.graph:find("aten::matmul%(%%x, %%h%) # [^\n]*test_jit_trace.lua:" .. line_of(cell, 0) .. "\n"), f.graph)
    t.eq(tostring(f), "ScriptFunction cell(Tensor x, Tensor h)")
end)

t.test("values_that_leave_the_graph_are_named_with_their_lines", function()
    local function fn(x)
        local n = x:sum():item()
        local list = x:tolist()
        local rows = x.shape[1] + #x + x:size(1) + x:numel()
        return x * n + list[1] + rows + 0 * (tide.equal(x, x) and 1 or 0)
    end
    local lines, f = warnings(function() return jit.trace(fn, f64 { 1, 2 }, { check = false }) end)
    local said = table.concat(lines, "\n")
    for what, offset in pairs { ["item()"] = 1, ["tolist()"] = 2, ["the shape"] = 3, ["the length"] = 3, ["the size"] = 3, ["the number"] = 3,
        ["a comparison"] = 4 } do
        t.is_true(said:find("test_jit_trace.lua:" .. line_of(fn, offset) .. ": " .. what, 1, true), what .. " in " .. said)
    end
    t.eq(#lines, 7, said)
    t.eq(#f:why().fixed, 7)
    t.eq(#warnings(function() return jit.trace(fn, f64 { 1, 2 }, { check = false }) end), 0) -- once a line
end)

t.test("what_is_read_of_constants_and_by_modules_is_no_matter", function()
    local w = f64 { 2 }
    local net = tide.nn.Sequential(tide.nn.Conv2d(2, 3, 3), tide.nn.BatchNorm2d(3), tide.nn.ReLU())
    local lines = warnings(function()
        jit.trace(function(x) return x * w:item() * #w end, f64 { 1 })
        jit.trace(net, tide.randn(1, 2, 5, 5))
    end)
    t.eq(lines, {})
end)

t.test("modes_within_are_in_the_graph_and_others_are_named", function()
    local function fn(x)
        local y = tide.no_grad(function() return x + 1 end)
        return tide.enable_grad(function() return x * y end)
    end
    local traced
    t.eq(#warnings(function() traced = jit.trace(fn, f64 { 1 }) end), 0)
    local a, b = f64 { 3 }:requires_grad_(), f64 { 3 }:requires_grad_()
    fn(a):sum():backward()
    traced(b):sum():backward()
    t.eq(b.grad:tolist(), a.grad:tolist())
    local lines = warnings(function() tide.no_grad(function() jit.trace(fn, f64 { 1 }) end) end)
    t.eq(#lines, 1)
    t.is_true(lines[1]:find("grad mode", 1, true))
end)

t.test("the_check_puts_statistics_back", function()
    local norm = tide.nn.BatchNorm1d(3)
    local x = tide.randn(4, 3)
    jit.trace(norm, x)
    t.eq(norm.num_batches_tracked:item(), 1)
    local other = tide.nn.BatchNorm1d(3)
    other(x)
    t.eq(norm.running_mean:tolist(), other.running_mean:tolist())
end)

t.test("the_check_finds_a_branch_that_was_fixed", function()
    local function fn(x)
        if x:sum() > 0 then
            return x * 2
        end
        return x
    end
    local ok, message
    warnings(function() ok, message = pcall(jit.trace, fn, f64 { 1, 2 }) end)
    t.eq(ok, false)
    t.is_true(message:find("check: with other numbers of the same shapes traced result 1 differs", 1, true), message)
    t.is_true(message:find("test_jit_trace.lua:" .. line_of(fn, 1), 1, true), message)
    warnings(function() t.eq(jit.trace(fn, f64 { 1, 2 }, { check = false })(f64 { -1, -1 }):tolist(), { -2.0, -2.0 }) end)
end)

t.test("the_check_draws_what_the_function_draws_and_leaves_the_generator", function()
    tide.manual_seed(11)
    tide.rand(1) -- what the trace itself draws
    local want = tide.rand(3):tolist()
    tide.manual_seed(11)
    local f = jit.trace(function(x) return x + tide.rand(1) end, tide.ones(1))
    t.eq(tide.rand(3):tolist(), want)
    t.eq(f:why().lines[2], "  check: equal to the function on 3 sets of other numbers")
end)

t.test("guards_that_were_open_before_and_within_keep_the_recording", function()
    local before <close> = tide.no_grad()
    local f
    warnings(function()
        f = jit.trace(function(x)
            local inner <close> = tide.enable_grad()
            return (x + 1) * 2
        end, f64 { 1 }, { check = false })
    end)
    t.eq(select(2, f.graph:gsub("aten::", "")), 2)
    t.eq(f(f64 { 2 }):item(), 6.0)
end)

t.test("after_an_error_nothing_is_recorded", function()
    local ok, message = pcall(jit.trace, function(x) return x:matmul(x.nothing) end, f64 { 1 })
    t.eq(ok, false)
    ok, message = pcall(jit.trace, function() error { code = 7 } end, f64 { 1 })
    t.eq({ ok, message.code }, { false, 7 })
    t.eq((f64 { 1 } + 1):item(), 2.0)
    t.eq(jit.trace(function(x) return x + 1 end, f64 { 1 })(f64 { 2 }):item(), 3.0)
end)

t.test("a_trace_within_a_trace_is_refused", function()
    local ok, message = pcall(jit.trace, function(x) return jit.trace(function(y) return y end, x)(x) end, f64 { 1 })
    t.eq(ok, false)
    t.is_true(message:find("one trace at a time", 1, true), message)
end)

t.test("calls_of_script_functions_within_a_trace_become_part_of_it", function()
    local double = jit.trace(function(x) return x * 2 end, f64 { 1 })
    local f = jit.trace(function(x) return double(x) + 1 end, f64 { 1 })
    t.eq(f(f64 { 4 }):item(), 9.0)
end)

t.test("inputs_that_share_memory_have_gradients_of_their_own", function()
    local x = tide.ones(2, 2, { requires_grad = true })
    local function inputs() return x * 1, x, x:detach() end
    local f = jit.trace(function(a, b, c) return (a - b):tanh(), c * a end, { inputs() }, { check = false })
    for _ = 1, 3 do
        local _, product = f(inputs())
        product:sum():backward()
    end
    t.eq(x.grad:tolist(), { { 3, 3 }, { 3, 3 } })
end)

t.test("backward_minds_no_writes_to_what_it_does_not_read", function()
    local f = jit.trace(function(x, y) return x:tanh(), y * x end, { tide.ones(2), tide.ones(2) }, { check = false })
    local x, y = tide.ones(2, { requires_grad = true }), tide.ones(2, { requires_grad = true })
    for _ = 1, 2 do
        local a, b = f(x, y)
        tide.no_grad(function() a:mul_(2) end) -- which the gradient of tanh reads
        b:sum():backward()
    end
    t.eq({ x.grad:tolist(), y.grad:tolist() }, { { 2, 2 }, { 2, 2 } })
    t.error_has(function()
        local a = f(x, y)
        tide.no_grad(function() a:mul_(2) end)
        a:sum():backward()
    end, "changed in place")
end)

t.test("wrong_calls_are_one_line", function()
    local f = jit.trace(function(x, y) return x:matmul(y) end, { tide.ones(2, 3), tide.ones(3, 2) }, { name = "product" })
    local function fails(want, fn, ...)
        local ok, message = pcall(fn, ...)
        t.eq(ok, false)
        t.is_true(message:find(want, 1, true), message .. " lacks " .. want)
        t.eq(message:find("\n", 1, true), nil)
    end
    fails("trace: argument 1 (fn): expected a function or a module, got number 3", jit.trace, 3, tide.ones(1))
    fails("trace: argument 2 (inputs): expected a tensor or a list of tensors, got string", jit.trace, print, "x")
    fails("a list of tensors expected, got an empty one", jit.trace, function() return tide.ones(1) end, {})
    fails("result 1 of traced is number 3", jit.trace, function() return 3 end, tide.ones(1))
    fails("result 2 of traced is nil", jit.trace, function(x) return x, nil end, tide.ones(1))
    fails("traced returns nothing", jit.trace, function() end, tide.ones(1))
    fails("product: 2 inputs expected (Tensor x, Tensor y), got 1", f, tide.ones(2, 3))
    fails("product: input 2 (y): Tensor expected, got number 4", f, tide.ones(2, 3), 4)
    fails("the graph was made with x of shape (2, 3); here it has (2, 4)", f, tide.ones(2, 4), tide.ones(3, 2))
    fails("test_jit_trace.lua:", f, tide.ones(2, 4), tide.ones(3, 2))
    fails('a ScriptFunction has no field or method string "grap"', function() return f.grap end)
end)

t.test("a_function_that_is_dropped_while_its_result_lives", function()
    local results = {}
    for k = 1, 200 do
        local f = jit.trace(function(x) return x * k, x:view(-1) end, f64 { 1, 2 }, { check = false })
        results[k] = f(f64 { k, 1 })
        f = nil
        if k % 50 == 0 then
            collectgarbage()
        end
    end
    for k, x in ipairs(results) do
        t.eq(x[1]:item(), k * k * 1.0)
    end
end)
