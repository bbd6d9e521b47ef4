-- test_examples.lua: every public function has an example that help shows (tests/docs/test_examples.py runs them), and
-- no example is of something that is not there.
local t = require "harness"
local examples = tide._require "help.examples"

-- Functions and classes by their names, of tide and its rooms.
local function public()
    local found, seen = {}, {}
    local function walk(prefix, module)
        for name, value in pairs(module) do
            if type(name) == "string" and not name:find("^_") then
                if type(value) == "function" or type(value) == "table" and rawget(value, "__index") ~= nil then
                    found[prefix .. name] = value
                elseif type(value) == "table" and not seen[value] then
                    seen[value] = true
                    walk(prefix .. name .. ".", value)
                end
            end
        end
    end
    for _, name in ipairs(tide._lazy) do
        assert(tide[name] ~= nil)
    end
    walk("", tide)
    return found
end

local functions = public()

t.test("every_public_function_has_an_example", function()
    local missing, n = {}, 0
    for name, value in pairs(functions) do
        local doc = tide._doc(value)
        local has = doc and (doc.doc:find("Example: ", 1, true) or examples.of(value, doc))
        if not has then
            missing[#missing + 1] = name
        end
        n = n + 1
    end
    table.sort(missing)
    t.eq(missing, {})
    t.is_true(n > 900, n)
end)

t.test("every_operator_has_one_methods_too", function()
    local missing = {}
    for _, op in ipairs(tide._ops()) do
        if not op.internal and not examples.all()[op.name] then
            missing[#missing + 1] = op.name
        end
    end
    t.eq(missing, {})
    local x = tide.empty(1)
    for _, name in ipairs { "item", "tolist", "backward", "size", "requires_grad_", "detach_", "where", "numel" } do
        t.is_true(examples.of(x[name], tide._doc(x[name])), name)
    end
    t.is_true(examples.of(x.add_, tide._doc(x.add_)):find("tide.add", 1, true))
end)

t.test("methods_of_objects_have_examples", function()
    local model = tide.nn.Sequential(tide.nn.Linear(1, 1))
    local opt = tide.optim.Adam(model:parameters())
    local objects = {
        { model, "add_module apply bfloat16 buffers children clone cpu double eval float get_buffer get_parameter get_submodule "
            .. "half load_state_dict modules named_buffers named_children named_modules named_parameters parameters "
            .. "register_buffer register_forward_hook register_full_backward_hook register_parameter requires_grad_ state_dict "
            .. "summary to train zero_grad" },
        { opt, "step zero_grad add_param_group state_dict load_state_dict" },
        { tide.optim.lr_scheduler.StepLR(opt, 1), "step state_dict load_state_dict get_last_lr" },
        { tide.amp.GradScaler(), "scale step update unscale_ get_scale state_dict load_state_dict" },
        { tide.Generator(), "manual_seed seed initial_seed get_state set_state" },
        { tide.empty(1), "item tolist backward float long half double bool requires_grad_ detach_ numel" },
    }
    for _, row in ipairs(objects) do
        for name in row[2]:gmatch("%S+") do
            local example = examples.of(row[1][name], tide._doc(row[1][name]))
            t.is_true(example and example:find(name, 1, true), name)
        end
    end
end)

t.test("names_that_two_rooms_have_are_told_apart", function()
    local function of(value) return examples.of(value, tide._doc(value)) end
    t.is_true(of(tide.nn.functional.embedding):find("nn.functional.embedding", 1, true))
    t.is_true(of(tide.embedding):find("> tide.embedding(", 1, true))
    t.is_true(of(tide.foreach.abs):find("tide.foreach.abs", 1, true))
    t.is_true(of(tide.linalg.norm):find("tide.linalg.norm", 1, true))
    t.is_true(of(tide.profiler.load):find("tide.profiler.load", 1, true))
    t.is_true(of(tide.load):find("tide.load(path)", 1, true))
    t.is_true(of(tide.special.expit):find("sigmoid", 1, true))
    t.eq(of(print), nil)
end)

t.test("examples_are_of_what_is_there", function()
    local operators, unknown = {}, {}
    for _, op in ipairs(tide._ops()) do
        operators[op.name] = true
    end
    for name in pairs(examples.all()) do
        local session = name == "breakpoint" or name == "clear_output" or name == "input" or name == "set_next_input"
        if not (operators[name] or functions[name] or session or examples.find(name)) then
            unknown[#unknown + 1] = name
        end
    end
    t.eq(unknown, {})
end)
