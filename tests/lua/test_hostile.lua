-- test_hostile.lua: what a Lua program can do to the bindings without the debug library: types that pass for
-- others, finalizers that come late, texts and stacks of any size. A wrong call is refused in one line.
local t = require "harness"

-- A program of its own, for what happens when a state is closed: its output.
local function run(code)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(code)
    file:close()
    local pipe = assert(io.popen(("%s %s 2>&1; echo exit $?"):format(os.getenv("TIDE"), path)))
    local output = pipe:read("a")
    pipe:close()
    os.remove(path)
    return output
end

local function message(fn, ...)
    local ok, err = pcall(fn, ...)
    t.is_false(ok)
    return tostring(err)
end

t.test("a_class_named_as_a_type_of_userdata_is_not_that_type", function()
    local output = run [[
        local file = getmetatable(io.stdout)
        for _, name in ipairs { "Generator", "Profile", "range", "mode", "Tensor", "dtype", "schema" } do
            tide._class(name, file)
        end
        print(pcall(tide.rand, 3, { generator = io.stdout }))
        do local p <close> = tide.profiler.profile() end
        do local p <close> = tide.profiler.record("x") end
        do local p <close> = tide.no_grad() end
        print(tide.ones(1):item(), io.type(io.stdout))
    ]]
    t.is_true(output:find("option generator: expected a tide.Generator, got FILE", 1, true), output)
    t.is_true(output:find("1.0\tfile\nexit 0", 1, true), output)
end)

t.test("a_function_that_a_finalizer_calls_after_its_own_schema_is_refused", function()
    local output = run [[
        late = setmetatable({}, { __gc = function()
            for name, fn in pairs { Linear = tide.nn.Linear, gradcheck = tide.autograd.gradcheck } do
                print(name, select(2, pcall(fn, 2, 2)))
            end
            print((tide._doc(tide.autograd.gradcheck)))
        end })
        tide.nn.Linear(1, 1)
        tide.autograd.gradcheck(function(x) return x end, tide.ones(1, { dtype = "float64", requires_grad = true }))
    ]]
    local _, n = output:gsub("its state is being closed", "")
    t.eq(n, 2, output)
    t.is_true(output:find("nil\nexit 0", 1, true), output)
end)

t.test("a_finalizer_at_the_end_of_a_state_may_use_tensors", function()
    local output = run [[
        late = setmetatable({}, { __gc = function()
            local x = tide.ones(2)
            print(pcall(function() return x:numel(), true, x:size(), true, tostring(x) end))
        end })
    ]]
    t.is_true(output:find("true\t2\ttrue\t(2)\ttrue\t[1.", 1, true) and output:find("exit 0", 1, true), output)
end)

t.test("a_stack_of_a_million_guards_is_closed_from_its_foot", function()
    local guards = {}
    for k = 1, 1000000 do
        guards[k] = k % 3 == 0 and tide.enable_grad() or tide.no_grad()
    end
    do local first <close> = guards[1] end
    t.is_false(tide.is_grad_enabled())
    do local last <close> = guards[1000000] end -- the one below it is a third
    t.is_true(tide.is_grad_enabled())
    for k = 999999, 2, -1 do
        local _ <close> = guards[k]
    end
    t.is_true(tide.is_grad_enabled())
end)

t.test("a_guard_taken_out_of_the_middle_leaves_the_others_in_force", function()
    local a, b, c = tide.no_grad(), tide.enable_grad(), tide.no_grad()
    do local _ <close> = b end
    t.is_false(tide.is_grad_enabled())
    do local _ <close> = c end
    t.is_false(tide.is_grad_enabled())
    do local _ <close> = a end
    t.is_true(tide.is_grad_enabled())
end)

t.test("long_choices_of_a_schema_fit_a_message", function()
    local words = {}
    for k = 1, 40 do
        words[k] = '"' .. ("a"):rep(100 + k) .. '"'
    end
    local fn = tide._function(("f(%s x)"):format(table.concat(words, "|")), "Takes long words.", function() end)
    for _ = 1, 10 do
        local text = message(fn, "zz")
        t.is_true(text:find('f: argument 1 (x): expected "aaa', 1, true), text)
        t.is_true(text:find('got string "zz"', 1, true), text)
    end
end)

t.test("a_message_is_one_line_of_bounded_length", function()
    local x, long = tide.ones(2), ("A"):rep(1000000)
    local cases = {
        { tide.sum, "a\nb" }, { tide.sum, setmetatable({}, { __name = "a\nb" }) },
        { tide.sum, x, { ["a\nb"] = 1 } }, { tide.sum, x, { [long] = 1 } }, { tide.zeros, 2, { device = "a\nb" } },
        { tide.zeros, 2, { device = long } }, { tide.zeros, 2, { dtype = long } }, { function() return x[long] end },
        { function() return x["1\n2"] end }, { function() return x["1 " .. long] end },
        { function() x[long] = 1 end }, { tide._fail, "%s\n%s", long, long }, { tide.sum, x, long },
        { tide.nn.Conv2d, { long, 1, 1 } }, { tide.nn.Linear, 2, 2, { [long] = 1 } },
    }
    for k, case in ipairs(cases) do
        local text = message(table.unpack(case))
        t.is_false(text:find("[%c]"), k .. ": " .. text:sub(1, 200))
        t.is_true(#text < 1200, k .. ": " .. #text)
    end
end)

t.test("a_name_that_is_no_string_is_not_the_name_of_a_value", function()
    for _, name in ipairs { 5, true, {}, 1.5 } do
        local text = message(tide.sum, setmetatable({}, { __name = name }))
        t.is_true(text:find("expected a tensor, got table", 1, true), text)
        text = message(tide.cat, { tide.ones(1), setmetatable({}, { __name = name }) })
        t.is_true(text:find("element 2: expected a tensor, got table", 1, true), text)
    end
end)

t.test("a_range_may_be_closed_again", function()
    local profiler = tide.profiler
    local p = profiler.profile(function()
        local range = profiler.record("outer")
        for _ = 1, 3 do
            local a <close> = range
            local b <close> = profiler.record("inner")
        end
    end)
    t.eq(#p:events(), 4)
end)

t.test("a_list_is_what_lies_in_it_and_not_what_its_metatable_answers", function()
    local disguised = setmetatable({}, {
        __index = function(_, k) return math.type(k) == "integer" and k <= 3 and k or nil end,
        __len = function() return 3 end,
    })
    t.eq(#tide.benchmark.merge(disguised), 0)
    t.error_has(function() tide.autograd.gradgradcheck(tide.sin, disguised) end, "no input requires grad")
end)

t.test("norms_of_what_is_no_list_of_tensors_are_refused", function()
    for _, arguments in ipairs { {}, { tide.ones(2), 2 }, { "cuda:99", 2 }, { { 1 }, 2 }, { { tide.ones(2), "x" }, 2 }, { { tide.ones(2) } } } do
        t.is_true(not pcall(tide._foreach_norm, table.unpack(arguments)))
    end
    t.eq(tide._foreach_norm({ tide.ones(4) }, 2)[1]:item(), 2)
end)

t.test("what_is_no_dtype_holds_nothing", function()
    for _, what in ipairs { "self", "float23", 2, 0 / 0, {}, tide.ones(1) } do
        t.is_true(message(tide._dtype_holds, what, 1):find("a dtype expected", 1, true))
    end
    t.eq({ tide._dtype_holds(tide.int8, 127), tide._dtype_holds("int8", 128) }, { true, false })
end)

t.test("empty_lists_as_arguments_are_recorded", function()
    local p = tide.profiler.profile { function()
        tide.zeros {}
        tide.ones(2, 2):sum {}
        tide.rand(5):quantile(tide.tensor(0.5))
        tide.zeros({}, { dtype = tide.int64 }):expand {}
    end, record_shapes = true, with_stack = true }
    t.is_true(#p:events() >= 3)
end)

-- What writes a module's fields took any table: with that of strings all of Lua lost its methods.
t.test("init_of_modules_writes_modules_alone", function()
    local strings = getmetatable ""
    for _, name in ipairs { "Linear", "GRUCell", "LSTM", "Transformer", "ReLU", "PReLU", "CrossEntropyLoss", "Sequential",
        "ModuleDict", "ParameterList", "BatchNorm2d", "Embedding", "MultiheadAttention" } do
        local told = message(tide.nn[name].init, strings, 2, 3)
        t.is_true(told:find(name .. ".init: argument 1 (self): a module expected, got table", 1, true), told)
        t.is_true(message(tide.nn[name].init, 2, 3):find("a module expected", 1, true))
    end
    for key in pairs(strings) do
        t.is_true(key:sub(1, 2) == "__", tostring(key))
    end
    local Two = tide.nn.class("Two", tide.nn.Linear)
    function Two:init(n) tide.nn.Linear.init(self, n, 2) end
    t.eq(Two(3).weight.shape, { 2, 3 })
end)

t.test("the_gradient_of_a_single_window_of_any_step", function()
    local x = tide.ones(4, 2):requires_grad_()
    x:unfold(1, 4, math.maxinteger):sum():backward()
    t.eq(x.grad, tide.ones(4, 2))
    x.grad = nil
    x:unfold(1, 2, 2):sum():backward()
    t.eq(x.grad, tide.ones(4, 2))
end)

t.test("messages_do_not_repeat_names_of_files_without_end", function()
    local told = message(tide.profiler._begin, ("A"):rep(100000))
    t.is_true(#told < 400 and told:find("too long", 1, true), #told)
end)
