-- What a ScriptFunction was made of: its Lua function runs in its place where it is to be looked into, and a module that has
-- changed since is told.
local t = require "harness"
local nn = tide.nn

t.test("eager_runs_the_function_itself", function()
    local seen = 0
    local function fn(x)
        tide.jit.ignore(print)
        return x * 2
    end
    local function counted(x)
        local _ = seen
        return x + 1
    end
    local f = tide.jit.script(counted, { eager = true })
    debug.sethook(function() seen = seen + 1 end, "c")
    f(tide.ones(1))
    debug.sethook()
    t.is_true(seen > 0)
    t.eq(f(tide.ones(2)):tolist(), { 2, 2 })
    t.is_true(tostring(f:why()):find("eager: calls run the Lua function", 1, true))
    t.is_true(fn)
    local traced = tide.jit.trace(counted, tide.ones(2), { eager = true })
    t.eq(traced(tide.ones(3)):tolist(), { 2, 2, 2 })
end)

t.test("a_debugger_that_stops_at_lines_sees_those_of_the_function", function()
    local f = tide.jit.script(function(x)
        local y = x * 2
        return y + 1
    end)
    local first = debug.getinfo(1, "l").currentline - 4
    local lines = {}
    debug.sethook(function(_, line) lines[line - first] = true end, "l")
    local y = f(tide.ones(1))
    debug.sethook()
    t.eq(y:item(), 3)
    t.is_true(lines[1] and lines[2], "lines of the function")
    lines = {}
    f(tide.ones(1))
    t.eq(next(lines), nil)
end)

t.test("a_loaded_graph_runs_as_it_was_written", function()
    local f, path = tide.jit.script(function(x) return (x * 2 + 1):tanh() end), os.tmpname()
    f:save(path)
    local g = tide.jit.load(path, { eager = true })
    os.remove(path)
    local x = tide.randn(5)
    t.eq(g(x):tolist(), f(x):tolist())
    t.is_true(tostring(g:why()):find("operator by operator", 1, true))
end)

-- ---- modules ----

t.test("a_module_that_changed_is_told", function()
    local model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    local f, x = tide.jit.script(model), tide.randn(4, 2)
    local function told(what)
        t.error_has(function() f(x) end, what)
        t.error_has(function() tide.jit.fork(f, x) end, what)
    end
    f(x)
    model:eval()
    told "'training' of BatchNorm1d was true when the function was scripted, and is false"
    model:train()
    f(x)
    local weight = model[1].weight
    model[1].weight = nn.Parameter(tide.randn(3, 2))
    told "'weight' of Linear is another one"
    model[1].weight = weight
    f(x)
    local layer = model[1]
    model[1] = nn.Linear(2, 3)
    told "'1' of Sequential is another one"
    model[1] = layer
    local hook = model[2]:register_forward_hook(function() end)
    told "'_hooks' of BatchNorm1d"
    hook:remove()
    f(x)
    model:double()
    told "'weight' of Linear is another one"
end)

t.test("values_that_change_in_place_are_no_change", function()
    local layer = nn.Linear(2, 2)
    local f, x = tide.jit.script(layer), tide.randn(1, 2)
    tide.no_grad(function() layer.weight:mul_(2) end)
    t.eq(f(x):tolist(), layer(x):tolist())
    layer:load_state_dict(nn.Linear(2, 2):state_dict())
    t.eq(f(x):tolist(), layer(x):tolist())
end)

t.test("fields_that_were_not_there", function()
    local Block = nn.class "Guarded"
    function Block:init()
        self.scale = 2
        self.layers = nn.ModuleList(nn.Identity())
    end
    function Block:forward(x)
        for _, layer in ipairs(self.layers) do
            x = layer(x)
        end
        return self.bias and x + self.bias or x * self.scale
    end
    local block = Block()
    local f = tide.jit.script(block)
    t.eq(f(tide.ones(1)):item(), 2)
    block.bias = tide.ones(1)
    t.error_has(function() f(tide.ones(1)) end, "'bias' of Guarded is another one")
    block.bias = nil
    block.scale = 3
    t.error_has(function() f(tide.ones(1)) end, "'scale' of Guarded was 2 when the function was scripted, and is 3")
    block.scale = 2
    block.layers:append(nn.ReLU())
    t.error_has(function() f(tide.ones(1)) end, "'2' of ModuleList is another one")
end)

-- ---- lifetimes ----

t.test("functions_that_are_collected_while_they_run_elsewhere", function()
    local futures = {}
    for k = 1, 20 do
        local f = tide.jit.script(function(x, n) --: Tensor, int
            for _ = 1, n do
                x = x * 0.999 + 0.001
            end
            return x
        end)
        futures[k] = tide.jit.fork(f, tide.full({ 64 }, k / 20), 2000)
    end
    collectgarbage()
    collectgarbage()
    for k, future in ipairs(futures) do
        local y = tide.jit.wait(future)
        t.eq(y:numel(), 64)
        t.is_true(math.abs(y[1]:item() - 1) < 0.2, "future " .. k)
    end
end)
