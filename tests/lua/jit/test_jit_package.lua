-- test_jit_package.lua: functions in files, on other threads, and what the engine makes of them, as Lua sees it.
local t = require "harness"
local jit = tide.jit

local function f64(values) return tide.tensor(values, { dtype = tide.float64 }) end

local function read(path)
    local file <close> = assert(io.open(path, "rb"))
    return file:read "a"
end

t.test("a_module_that_was_saved_is_loaded_with_its_parameters", function()
    tide.manual_seed(9)
    local path, again = os.tmpname(), os.tmpname()
    local net = tide.nn.Sequential(tide.nn.Linear(3, 4), tide.nn.GELU(), tide.nn.Linear(4, 2))
    local f, x = jit.trace(net, tide.randn(5, 3)), tide.randn(5, 3)
    f:save(path)
    local g = jit.load(path)
    t.eq(g.name, "Sequential")
    t.is_true(tide.equal(g(x), net(x)))
    t.eq(g.graph:gsub("<Tensor>", ""), f.graph:gsub("<Tensor>", ""))
    g:save(again)
    t.is_true(read(path) == read(again))
    for _, p in ipairs(g.constants) do
        t.eq(p.requires_grad, true)
    end
    os.remove(path)
    os.remove(again)
end)

t.test("operators_on_tensors_that_are_given_numbers_alone_are_loaded_as_such", function()
    local path = os.tmpname()
    local f = jit.trace(function(x) return tide.mul(2.0, 3.0) + x, tide.maximum(tide.add(1, 2), x) end, f64 { 1, 5 }, { check = false })
    f:save(path)
    local a, b = jit.load(path)(f64 { 1, 5 })
    os.remove(path)
    t.eq({ a:tolist(), b:tolist() }, { { 7.0, 11.0 }, { 3.0, 5.0 } })
    local numbers = tide._script.parse("graph(%a : int):\n  %b : int = aten::mul(%a, %a)\n  return (%b)\n", {}, "numbers")
    t.eq(numbers(3), 9)
end)

t.test("loading_runs_no_lua_and_wrong_files_are_one_line", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write "return os.exit(1)"
    file:close()
    t.error_has(function() jit.load(path) end, "load: '" .. path .. "': no archive, or cut off")
    os.remove(path)
    t.error_has(function() jit.load(path) end, "load: '" .. path .. "': ")
    t.error_has(function() jit.trace(function(x) return x end, tide.ones(1)):save "/nowhere/f" end, "save: traced: ")
end)

t.test("a_function_that_calls_lua_can_not_be_saved", function()
    local double = jit.ignore(function(x) return x * 2 end)
    local f = jit.script(function(x) return double(x) + 1 end)
    t.eq(f(f64 { 3 }):item(), 7.0)
    t.error_has(function() f:save(os.tmpname()) end, "functions of the front end, which no file holds")
end)

t.test("errors_of_functions_that_a_graph_calls_come_out_as_they_are", function()
    local failing = jit.ignore(function() error { code = 5 } end)
    local f = jit.script(function(x) return failing(x) end)
    local ok, message = pcall(f, f64 { 1 })
    t.eq({ ok, message.code }, { false, 5 })
    t.eq((f64 { 1 } + 1):item(), 2.0)
end)

t.test("forked_calls_give_what_calls_give", function()
    local f = jit.trace(function(x) return (x * 2):sum(), x + 1 end, f64 { 1, 2 })
    local futures = {}
    for k = 1, 20 do
        futures[k] = jit.fork(f, f64 { k, k })
    end
    for k, future in ipairs(futures) do
        local sum, more = jit.wait(future)
        t.eq({ sum:item(), more:tolist() }, { 4.0 * k, { k + 1.0, k + 1.0 } })
        t.eq((jit.wait(future)):item(), 4.0 * k) -- as often as one likes
    end
    t.error_has(function() jit.wait(3) end, "wait: argument 1")
    t.error_has(function() jit.fork(print) end, "fork: argument 1")
    local wrong = jit.fork(jit.trace(function(x, y) return x:matmul(y) end, { tide.ones(2, 2), tide.ones(2, 2) }), tide.ones(2, 3), tide.ones(2, 2))
    t.error_has(function() jit.wait(wrong) end, "matmul")
end)

t.test("functions_that_are_dropped_while_they_run_elsewhere", function()
    local futures = {}
    for k = 1, 50 do
        local w = tide.full({ 64, 64 }, k / 64)
        futures[k] = jit.fork(jit.trace(function(x) return x:matmul(w) end, tide.ones(64, 64), { check = false }), tide.ones(64, 64))
        if k % 10 == 0 then
            collectgarbage()
        end
    end
    collectgarbage()
    for k, future in ipairs(futures) do
        t.close(jit.wait(future)[{ 1, 1 }]:item(), k, 1e-4)
    end
end)

t.test("graph_for_has_the_types_of_its_inputs_and_groups", function()
    local f = jit.trace(function(x) return (x * 2):exp():tanh() end, f64 { 1, 2 })
    local text = f:graph_for(tide.ones(3, 4))
    t.is_true(text:find("%x : Float(3, 4", 1, true), text)
    t.is_true(text:find("prim::FusionGroup_0(%x)", 1, true), text)
    t.eq(f.graph:find("FusionGroup", 1, true), nil)
end)

t.test("passes_show_what_each_does", function()
    local f = jit.trace(function(x) return (x * 1):exp() + 0 * 3 end, f64 { 1, 2 })
    local steps = f:passes(f64 { 1, 2 })
    local names = {}
    for _, step in ipairs(steps) do
        names[step.pass] = true
        t.is_true(step.changes > 0 and step.before ~= step.after)
    end
    t.is_true(names.peephole and names.fuse)
    t.is_true(tostring(steps):find("\n- ", 1, true) and tostring(steps):find("\n+ ", 1, true))
    local html = getmetatable(steps).__display(steps)["text/html"]
    t.eq(select(2, html:gsub("<details>", "")), #steps)
end)

t.test("values_of_every_kind_go_in_and_out", function()
    local parse = tide._script.parse
    local f = parse([[
graph(%i : int,
      %f : float,
      %b : bool,
      %s : str,
      %l : Tensor[],
      %n : int[],
      %t : (int, Tensor[], str?),
      %o : float?):
  return (%i, %f, %b, %s, %l, %n, %t, %o)
]], {}, "same")
    local x = tide.ones(2)
    local i, fl, b, s, l, n, tuple, o = f(7, 2, true, "a\0b", { x, x }, { 1, 2 }, { 3, { x }, nil }, nil)
    t.eq({ i, math.type(fl), b, s, n, tuple[1], o }, { 7, "float", true, "a\0b", { 1, 2 }, 3, nil })
    t.error_has(function() f(7, 2, true, "s", { x }, { 1, 2 }, 3) end, "same: input 7 (t): (int, Tensor[], str?) expected, got number 3")
    t.error_has(function() f(7, 2, true, "s", { x, 1 }, { 1, 2 }, { 3, {} }) end, "same: input 5 (l): Tensor[] expected, entry 2 is number 1")
    t.error_has(function() f(7.5, 2, true, "s", { x }, { 1, 2 }, { 3, {} }) end, "same: input 1 (i): int expected, got number 7.5")
    t.eq({ #l, l[1]:tolist(), tuple[2][1]:tolist() }, { 2, { 1.0, 1.0 }, { 1.0, 1.0 } })
end)
