-- test_arguments.lua: one rule for all calls: a table's list part is data, its named part options, and
-- what is neither is refused; every function refuses options that it has not.
local t = require "harness"
local nn = tide.nn

local function shape(x) return { table.unpack(x.shape) } end

t.test("a_list_and_options_may_share_a_table", function()
    local a, b = tide.ones(2, 1), tide.zeros(2, 1)
    t.eq(shape(tide.cat { a, b, dim = 2 }), { 2, 2 })
    t.eq(shape(tide.stack { a, b, dim = -1 }), { 2, 1, 2 })
    t.eq(shape(a:sum { 1, keepdim = true }), { 1, 1 })
    t.eq(shape(a:sum { 1, 2 }), {})
    t.eq(shape(a:permute { 2, 1 }), { 1, 2 })
    t.eq(tide.zeros({ 2, 3, dtype = tide.float64 }).dtype, tide.float64)
    t.eq(tide.randn({ 2, requires_grad = true }).requires_grad, true)
    t.eq(shape(tide.randint { 1, 5, { 2, 3 } }), { 2, 3 })
    t.eq(tide.tensor({ 1, 2, dtype = tide.float32 }).dtype, tide.float32)
    t.eq(tide.tensor({ 1.5, 2, requires_grad = true }).requires_grad, true)
    t.eq(shape(tide.tensor { { 1, 2 }, { 3, 4 }, dtype = tide.int32 }), { 2, 2 })
    t.eq(tide.linspace { 0, 1, 3, dtype = tide.float64 }:tolist(), { 0, 0.5, 1 })
end)

t.test("the_older_forms_mean_what_they_did", function()
    local a = tide.ones(2, 3)
    t.eq(shape(a:sum { dim = 1 }), { 3 })
    t.eq(shape(a:sum(1, { keepdim = true })), { 1, 3 })
    t.eq(shape(a:sum({ 1, 2 }, { keepdim = true })), { 1, 1 })
    t.eq(shape(a:sum(nil, { keepdim = true })), { 1, 1 })
    t.eq(shape(tide.cat({ a, a }, 2)), { 2, 6 })
    t.eq(shape(tide.zeros(a.shape)), { 2, 3 })
    t.eq(shape(tide.zeros()), {})
    t.eq(shape(tide.zeros { dtype = tide.int32 }), {})
    t.eq(shape(tide.zeros {}), {})
    t.eq(tide.tensor({}):numel(), 0)
    t.eq(tide.add(a, a, { alpha = 2 }):sum():item(), 18)
    t.eq(a:to({ dtype = tide.float64 }).dtype, tide.float64)
    local x = tide.ones(2, { requires_grad = true })
    local y, grad = x * 3, tide.autograd.grad
    t.eq(grad(y, x, { grad_outputs = tide.ones(2), retain_graph = true })[1]:tolist(), { 3, 3 })
    t.eq(grad({ y, y }, { x }, { grad_outputs = { tide.ones(2), tide.ones(2) }, retain_graph = true })[1]:tolist(), { 6, 6 })
    t.error_has(function() grad({ y, y }, x, { grad_outputs = tide.ones(2) }) end, "grad: 1 grad_outputs for 2 outputs")
    tide.autograd.backward(y, tide.ones(2), { retain_graph = true })
    tide.autograd.backward({ y }, { tide.ones(2) })
    t.eq(x.grad:tolist(), { 6, 6 })
end)

t.test("layers_take_all_in_one_table_too", function()
    local text = "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))"
    t.eq(tostring(nn.Conv2d(3, 8, 3, { padding = 1 })), text)
    t.eq(tostring(nn.Conv2d { 3, 8, 3, padding = 1 }), text)
    t.eq(tostring(nn.Conv2d { in_channels = 3, out_channels = 8, kernel_size = { 3, 3 }, padding = 1 }), text)
    t.eq(tostring(nn.MaxPool2d { 2, 3 }), tostring(nn.MaxPool2d({ 2, 3 })))
    t.eq(nn.MaxPool2d { 2, stride = 1 }.stride, { 1, 1 })
    t.eq(nn.MaxPool2d { 3, 2, padding = 1 }.stride, { 2, 2 })
    t.eq(nn.MaxPool2d({ 3, 2 }, { padding = 1 }).kernel_size, { 3, 2 })
    t.eq(#nn.Sequential { nn.ReLU(), nn.Tanh() }, 2)
    t.eq(#nn.Sequential(nn.ReLU()), 1)
    t.eq(#nn.Sequential(), 0)
end)

t.test("files_profiles_and_bars_do_too", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write("a;b\n1;2\n")
    file:close()
    t.eq(tide.io.read_csv { path, header = true, delimiter = ";" }:tolist(), { { 1, 2 } })
    os.remove(path)
    local profile = tide.profiler.profile(function() return tide.ones(2) + 1 end)
    t.is_true(#profile:table { sort = "calls", limit = 1 } < #profile:table { sort = "calls" })
    t.error_has(function() profile:table { limit = 0 } end, "option limit: expected an integer from 1 on")
    t.is_true(tostring(tide.progress { 3, text = "bar" }):find("bar", 1, true))
    t.error_has(function() tide.progress { 3, txt = "bar" } end, "did you mean 'text'?")
end)

t.test("optimizers_read_options_behind_the_list", function()
    local a, b = tide.ones(1, { requires_grad = true }), tide.ones(1, { requires_grad = true })
    t.eq(tide.optim.SGD({ a, b, lr = 0.5 }).param_groups[1].lr, 0.5)
    t.eq(tide.optim.SGD({ a, b }, { lr = 0.5 }).param_groups[1].lr, 0.5)
    local groups = tide.optim.SGD({ { params = { a } }, { params = { b }, lr = 2 }, lr = 0.5 }).param_groups
    t.eq({ groups[1].lr, groups[2].lr }, { 0.5, 2 })
    t.error_has(function() tide.optim.SGD({ { params = { a }, lrr = 2 } }) end, "did you mean 'lr'?")
    t.error_has(function() tide.optim.SGD({ a, lrr = 2 }) end, "did you mean 'lr'?")
end)

t.test("what_is_neither_element_nor_name_is_refused", function()
    local a = tide.ones(2)
    t.error_has(function() tide.cat { a, nil, a } end, "cat: the list has a hole: 1 of its 3 elements are nil")
    t.error_has(function() tide.cat { a, [3] = a } end, "got the key number 3: the list has a hole")
    t.error_has(function() tide.zeros { 2, [true] = 3 } end, "got the key true")
    t.error_has(function() tide.zeros { 2, [1.5] = 3 } end, "got the key number 1.5")
    t.error_has(function() tide.zeros({ 2, dtype = tide.int32 }, {}) end, "they go into the table that comes last")
    t.error_has(function() tide.tensor { { 1, 2, dtype = tide.int32 } } end, "tensor: element (1)")
    t.error_has(function() tide.tensor { { 1 }, { 2, [5] = 1 } } end, "element (2)")
    t.error_has(function() tide.tensor { dtype = tide.int32 } end, "argument 1 (values)")
    t.error_has(function() a:sum(1, { 2, keepdim = true }) end, "sum")
    t.error_has(function() tide.sin { 1, 2 } end, "sin: argument 1 (x): expected a tensor, got table")
    t.error_has(function() nn.Linear { 2, 3, [5] = 1 } end, "hole")
    t.error_has(function() nn.Sequential { nn.ReLU(), nil, nn.ReLU() } end, "hole")
    t.error_has(function() nn.Sequential { nn.ReLU(), last = nn.ReLU() } end, "no option 'last'")
end)

-- Every function that is no operator, with arguments that are right but for an option that is none.
t.test("no_function_ignores_an_option", function()
    local x, model = tide.ones(1, { requires_grad = true }), nn.Linear(1, 1)
    local optimizer = tide.optim.SGD { x }
    local profile = tide.profiler.profile(function() end)
    local calls = {
        tensor = { tide.tensor, 1 }, manual_seed = { tide.manual_seed, 1 }, initial_seed = { tide.initial_seed },
        set_num_threads = { tide.set_num_threads, 1 }, get_num_threads = { tide.get_num_threads }, set_flush_denormal = { tide.set_flush_denormal, false },
        Generator = { tide.Generator }, time = { tide.time }, sleep = { tide.sleep, 0 },
        finfo = { tide.finfo }, iinfo = { tide.iinfo, tide.int8 },
        memory_allocated = { tide.memory_allocated }, memory_stats = { tide.memory_stats },
        reset_peak_memory_stats = { tide.reset_peak_memory_stats }, empty_cache = { tide.empty_cache },
        synchronize = { tide.synchronize },
        is_grad_enabled = { tide.is_grad_enabled }, progress = { tide.progress, 3 },
        save = { tide.save, {}, "/nonexistent/t" }, load = { tide.load, "none" }, read_csv = { tide.io.read_csv, "none" }, grad = { tide.autograd.grad, x, x },
        backward = { tide.autograd.backward, x }, gradcheck = { tide.autograd.gradcheck, tide.sin, x },
        gradgradcheck = { tide.autograd.gradgradcheck, tide.sin, x }, jacobian = { tide.autograd.functional.jacobian, tide.sin, x },
        get_rng_state = { tide.get_rng_state }, set_rng_state = { tide.set_rng_state, x },
        is_inference_mode_enabled = { tide.is_inference_mode_enabled }, table = { profile.table, profile },
        events = { profile.events, profile }, stop = { profile.stop, profile },
        export_chrome_trace = { profile.export_chrome_trace, profile, "/nonexistent/t" },
        step = { optimizer.step, optimizer }, zero_grad = { optimizer.zero_grad, optimizer },
        parameters = { model.parameters, model }, train = { model.train, model }, eval = { model.eval, model },
        Parameter = { nn.Parameter, x }, ReLU = { nn.ReLU }, MSELoss = { nn.MSELoss },
        matrix_norm = { tide.linalg.matrix_norm, tide.eye(2), 1, { 1, 2 } }, vector_norm = { tide.linalg.vector_norm, x, 2, 1 },
        norm = { tide.linalg.norm, x, 2, 1 }, cond = { tide.linalg.cond, tide.eye(2), 2 },
        lstsq = { tide.linalg.lstsq, tide.eye(2), tide.eye(2) },
        uniform_ = { nn.init.uniform_, x }, kaiming_normal_ = { nn.init.kaiming_normal_, x },
    }
    for _, name in ipairs { "item", "tolist", "size", "stride", "dim", "numel", "element_size", "is_contiguous",
        "is_floating_point", "data_ptr", "requires_grad_", "retain_grad", "backward", "detach_", "is_inference", "bool", "byte", "int", "long",
        "float", "double" } do
        calls["x:" .. name] = { x[name], x }
    end
    for name, call in pairs(calls) do
        local arguments = { table.unpack(call, 2) }
        arguments[#arguments + 1] = { memory_fromat = 1 }
        t.error_has(function() call[1](table.unpack(arguments)) end, "no option 'memory_fromat'", name)
    end
end)

t.test("names_that_are_near_are_told", function()
    t.error_has(function() tide.tensor(1, { dtpye = tide.int32 }) end, "tensor: no option 'dtpye': did you mean 'dtype'?")
    t.error_has(function() tide.ones(1):sum():backward { retain_grap = true } end, "did you mean 'retain_graph'?")
    t.error_has(function() nn.Linear(1, 1):train { mod = true } end, "did you mean 'mode'?")
    t.error_has(function() tide.io.read_csv("x", { headr = true }) end, "did you mean 'header'?")
    t.error_has(function() nn.MSELoss { reduction = "max" } end, 'expected "mean", "sum" or "none", got string "max"')
    t.error_has(function() nn.init.kaiming_normal_(tide.ones(2, 2), { mode = "fan" }) end, '"fan_in" or "fan_out"')
end)

t.test("integers_are_not_cut", function()
    t.error_has(function() tide.set_num_threads((1 << 32) + 1) end, "from 1 to 1024")
    t.error_has(function() nn.Dropout(-0.1) end, "a number from 0 to 1")
    t.error_has(function() nn.Dropout(0 / 0) end, "a number from 0 to 1")
    t.error_has(function() nn.Linear(2.5, 1) end, "no integer representation")
end)

t.test("help_is_the_text_that_calls_are_read_by", function()
    local function signature(f) return tide._doc(f).signature end
    t.eq(signature(nn.Dropout), "Dropout(number(0..1) p=0.5, bool inplace=false)")
    t.eq(signature(nn.Flatten), "Flatten(dim start_dim=2, dim end_dim=-1)")
    t.eq(signature(nn.MSELoss), 'MSELoss("mean"|"sum"|"none" reduction="mean")')
    t.eq(signature(tide.no_grad), "no_grad(function? fn=nil, ...) -> any")
    t.eq(signature(tide.autograd.grad), "grad(Tensor|Tensor[] outputs, Tensor|Tensor[] inputs, "
        .. "{Tensor|Tensor?[] grad_outputs=nil, bool? retain_graph=nil, bool create_graph=false, bool? allow_unused=nil, "
        .. "bool materialize_grads=false, bool is_grads_batched=false}) -> list")
    t.eq(signature(nn.Sequential), "Sequential(Module[] modules)")
    t.eq(signature(nn.Module.train), "train(Module self, bool mode=true) -> Module")
    t.eq(signature(tide.ones(1).item), "item(Tensor x) -> number")
end)

t.test("a_schema_that_is_none_says_where", function()
    t.error_has(function() tide._function("f(bogus x)", "Nothing.") end, "schema 'f(bogus x)', at 3: a type expected")
    t.error_has(function() tide._function("f(int(1.) x)", "Nothing.") end, "'..' expected")
    t.error_has(function() tide._function("f(int x", "Nothing.") end, "',' or ')' expected")
    t.eq(tide._doc(tide._function('f(int(..3)[2] a, "x"|"y" b="y", *, Some? c, Tensor?[] d=nil)', "Nothing.")).signature,
        'f(int(..3)[2] a, "x"|"y" b="y", {Some? c=nil, Tensor?[] d=nil})')
end)

t.test("methods_name_who_they_are_called_on", function()
    local layer = nn.Linear(1, 1)
    t.error_has(function() layer.parameters() end, "parameters: argument 1 (self): expected a Module, got nothing")
    t.error_has(function() layer.train(tide.optim.SGD(layer:parameters())) end, "expected a Module, got SGD")
    t.error_has(function() tide.ones(1).item() end, "item: argument 1 (x): expected a tensor")
    t.eq(nn.class("Mine", nn.Sequential)(nn.ReLU()):children()[1].training, true)
end)

-- ---- shapes ----

t.test("shapes_count_from_1_and_from_the_end", function()
    local s = tide.zeros(2, 3, 4).shape
    t.eq({ s[1], s[3], s[-1], s[-3] }, { 2, 4, 4, 2 })
    t.error_has(function() return s[0] end, "count from 1")
    t.error_has(function() return s[-4] end, "out of range")
    t.error_has(function() return s.foo end, 'got string "foo"')
    t.error_has(function() return s[1.5] end, "integer")
    t.eq(s[4], nil)
    t.eq(#s, 3)
    t.eq({ table.unpack(s) }, { 2, 3, 4 })
    local list = {}
    for k, size in ipairs(s) do
        list[k] = size
    end
    t.eq(list, { 2, 3, 4 })
    t.eq(tostring(s), "(2, 3, 4)")
    t.eq(s == tide.ones(2, 3, 4).shape, true)
    t.eq(s == tide.ones(2, 3).shape, false)
    t.eq(tide.tensor(1).shape[1], nil)
    t.eq(tide.ones(2, 3):stride()[-1], 1)
end)

t.test("metatables_are_locked_and_metamethods_look_at_what_they_get", function()
    local x = tide.ones(2)
    local profile = tide.profiler.profile(function() end)
    for name, value in pairs { x = x, shape = x.shape, dtype = x.dtype, generator = tide.Generator(),
        profile = profile, guard = tide.enable_grad(), range = tide.profiler.record("r") } do
        t.ne(type(getmetatable(value)), "table", name)
        t.error_has(function() setmetatable(value, {}) end, type(value) == "table" and "protected" or "table expected")
    end
    for _, value in ipairs { x, x.shape, x.dtype, tide.Generator(), profile } do
        for event, f in pairs(debug.getmetatable(value)) do
            if type(f) == "function" and event ~= "__gc" then
                for _, wrong in ipairs { ("A"):rep(64), 3, {}, io.stdout } do
                    pcall(f, wrong, wrong)
                    pcall(f, tide.ones(2), wrong)
                    pcall(f)
                end
            end
        end
    end
    t.eq(x:sum():item(), 2)
end)

t.test("options_as_numpy_names_them", function()
    local x = tide.arange(6):reshape(2, 3)
    t.eq(x:sum { axis = 1, keepdims = true }:tolist(), { { 3, 5, 7 } })
    t.eq(tide.cat({ x, x }, { axis = 2 }).shape, { 2, 6 })
    t.eq(x:swapaxes { axis0 = 1, axis1 = 2 }.shape, { 3, 2 })
    t.error_has(function() x:sum(1, { axis = 2 }) end, "sum: 'axis' is given twice")
    t.error_has(function() x:sum { dim = 1, axis = 1 } end, "is given twice")
    t.error_has(function() x:exp { axis = 1 } end, "exp: no option 'axis'")
end)
