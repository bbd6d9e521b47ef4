-- test_function_options.lua: functions that take a function and options take these in every form, and
-- none in silence: name{fn, option = ...}, name(fn, {option = ...}), name({option = ...}, fn, ...) where
-- fn itself takes arguments, and, of contexts, `local _ <close> = name({option = ...})`.
local t = require "harness"

local function low() return (tide.ones(2, 2):matmul(tide.ones(2, 2))).dtype end
local function keep(x) return x end
local function square(x) return (x * x):sum() end

local function leaf() return tide.ones(2, { dtype = tide.float64, requires_grad = true }) end

local function has_lines(profile)
    local path = os.tmpname()
    profile:export_chrome_trace(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    os.remove(path)
    return text:find("test_function_options", 1, true) ~= nil
end

-- Contexts: `before` and `behind` are arguments without defaults, before the function and behind it;
-- `tell(...)`, called by the function itself, says whether the option held; else `see`, of the results.
local contexts = {
    autocast = { fn = tide.autocast, options = { dtype = tide.float16 }, tell = function() return low() == tide.float16 end },
    detect_anomaly = { fn = tide.autograd.detect_anomaly, options = { check_nan = false },
        tell = function()
            local x = tide.zeros(1, { requires_grad = true })
            return tide.autograd.is_anomaly_enabled() and (pcall(function() (x / 0 * 0):sum():backward() end))
        end },
    inference_mode = { fn = tide.inference_mode, options = { mode = false },
        tell = function() return not tide.ones(1):is_inference() end },
    profile = { fn = tide.profiler.profile, options = { with_stack = true }, see = has_lines,
        tell = function() return tide.ones(2) + 1 end },
    record = { fn = tide.profiler.record, before = { "part" }, options = { kind = "data" },
        tell = function() return true end },
    checkpoint = { fn = tide.utils.checkpoint, options = { preserve_rng_state = false }, open = false,
        tell = function() return true end },
}

local function call(row, ...)
    local list = table.pack(table.unpack(row.before or {}))
    local n = #(row.before or {})
    local more = table.pack(...)
    for k = 1, more.n do list[n + k] = more[k] end
    return row.fn(table.unpack(list, 1, n + more.n))
end

for name, row in pairs(contexts) do
    t.test(name .. "_takes_options_behind_before_and_around_its_function", function()
        local function held(...)
            if row.see then
                t.is_true(row.see((...)), "the option holds")
            else
                t.is_true((...), "the option holds")
            end
        end
        held(call(row, row.tell, row.options))
        held(call(row, row.options, row.tell))
        local around = {}
        for key, value in pairs(row.options) do around[key] = value end
        for _, value in ipairs(row.before or {}) do around[#around + 1] = value end
        around[#around + 1] = row.tell
        held(row.fn(around))
        if row.open ~= false then
            local made
            do
                local context <close> = call(row, row.options)
                made = row.tell()
                if row.see then made = context end
            end
            held(made)
        end
    end)

    t.test(name .. "_hands_its_function_what_is_no_option", function()
        local seen
        local function fn(...) seen = table.pack(...) end
        local list, object, empty = { 1, 2 }, setmetatable({}, {}), {}
        call(row, fn, 1, list)
        t.eq(seen[2], list)
        call(row, fn, object, row.options)
        t.is_true(seen.n == 1 and rawequal(seen[1], object))
        call(row, fn, 7, empty)
        t.is_true(seen.n == 2 and rawequal(seen[2], empty))
        call(row, fn, object)
        t.is_true(seen.n == 1 and rawequal(seen[1], object))
        local named = { rate = 1 }
        call(row, {}, fn, named)
        t.is_true(seen.n == 1 and rawequal(seen[1], named), "behind an empty table of options any table is the function's")
    end)
end

t.test("an_option_that_a_context_has_not_is_refused_with_the_right_form", function()
    for name, row in pairs(contexts) do
        if name ~= "inference_mode" then -- has none but what may be named
            local option = next(row.options)
            t.error_has(function() call(row, keep, { unknown = 1 }) end, name .. ": no option 'unknown'")
            t.error_has(function() call(row, keep, { unknown = 1 }) end, "fn, {")
            t.error_has(function() call(row, keep, 1, { unknown = 1 }) end, name .. ": no option 'unknown'")
            t.error_has(function() call(row, { unknown = 1 }, keep) end, name .. ": no option 'unknown'")
            t.error_has(function() call(row, keep, { [option .. "s"] = row.options[option] }) end,
                "did you mean '" .. option .. "'?")
        end
    end
    t.error_has(function() tide.no_grad { rate = 1 } end, "no_grad: no option 'rate'")
end)

t.test("a_function_may_be_named_and_a_default_before_it_left_out", function()
    t.eq(tide.no_grad { fn = function() return tide.is_grad_enabled() end }, false)
    t.eq(tide.no_grad { function(x) return x end, 5 }, 5)
    t.eq(tide.set_grad_enabled { false, function() return tide.is_grad_enabled() end }, false)
    t.eq(select("#", tide.no_grad(keep, nil)), 1)
    t.eq(tide.autocast(low, { device = "cpu", dtype = tide.float16 }), tide.float16)
    t.eq(tide.autocast { low, dtype = tide.float16 }, tide.float16)
    t.eq(tide.autocast { "cpu", low, dtype = tide.float16 }, tide.float16)
    t.eq(tide.autocast { fn = low, enabled = false }, tide.float32)
    t.eq(tide.inference_mode(nil, function() return tide.ones(1):is_inference() end), true)
    t.eq(select(2, tide.profiler.profile { fn = low, with_stack = true }), tide.float32)
    t.eq(tide.profiler.record { name = "part", fn = keep, kind = "data" }, nil)
    local named = { rate = 1 }
    t.is_true(rawequal(tide.no_grad(keep, named), named), "what has no options hands every table on")
end)

-- Functions whose function has no arguments in the call.
local plain = {
    custom_fwd = function(...) return tide.amp.custom_fwd(...) end,
    custom_bwd = function(...) return tide.amp.custom_bwd(...) end,
    gradcheck = function(...) return tide.autograd.gradcheck(...) end,
    gradgradcheck = function(...) return tide.autograd.gradgradcheck(...) end,
    interact = function(...) return tide.interact(...) end,
    Timer = function(...) return tide.benchmark.Timer(...) end,
}
for _, name in ipairs { "jacobian", "hessian", "vjp", "jvp", "hvp", "vhp" } do
    plain[name] = tide.autograd.functional[name]
end
for _, name in ipairs { "forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook" } do
    plain["register_" .. name] = function(...)
        local module = tide.nn.Linear(1, 1)
        return module["register_" .. name](module, ...)
    end
end

-- Of those: what stands behind the function, and an option.
local given = {
    gradcheck = { leaf, eps = 1e-6 }, gradgradcheck = { leaf, eps = 1e-6 }, interact = { function() return { x = { 1, 2 } } end,
        manual = false }, Timer = { label = "name" }, custom_fwd = { device = "cpu" }, custom_bwd = { device = "cpu" },
    vjp = { leaf, create_graph = false }, jacobian = { leaf, create_graph = false }, hessian = { leaf, create_graph = false },
    jvp = { leaf, leaf, create_graph = false }, hvp = { leaf, leaf, create_graph = false }, vhp = { leaf, leaf, create_graph = false },
}

t.test("other_functions_of_a_function_take_options_in_both_forms_and_refuse_others", function()
    for name, fn in pairs(plain) do
        local row = given[name] or { prepend = false }
        local list, all, options, wrong = { square }, { square }, {}, { unknown = true }
        for _, make in ipairs(row) do
            local value = make()
            list[#list + 1] = value
            all[#all + 1] = value
        end
        for key, value in pairs(row) do
            if type(key) == "string" then
                options[key], all[key] = value, value
            end
        end
        if name == "interact" then -- elsewhere than in a notebook it calls the function
            list[1] = keep
            all[1] = keep
        end
        list[#list + 1] = options
        t.is_true(pcall(fn, table.unpack(list)), name .. " with options behind")
        t.is_true(pcall(fn, all), name .. " with all in one table")
        list[#list] = wrong
        local ok, message = pcall(fn, table.unpack(list))
        t.is_true(not ok and message:find("unknown", 1, true), name .. " names the option that it has not")
    end
    for _, name in ipairs { "vjp", "jvp", "hvp", "vhp" } do -- the vector is left out
        local one = tide.ones(1, { dtype = tide.float64, requires_grad = true })
        t.error_has(function() plain[name](square, one, { create_grap = true }) end, "create_grap")
    end
end)

t.test("all_documented_functions_of_a_function_and_options_are_tested_here", function()
    local known = { Timer = true, profile = true }
    for name in pairs(contexts) do known[name] = true end
    for name in pairs(plain) do known[name] = true end
    local elsewhere = { -- options that are functions, among others; or it needs a device
        CyclicLR = true, TripletMarginWithDistanceLoss = true, triplet_margin_with_distance_loss = true, graph = true,
        FuzzedTensor = true, Function = true, AveragedModel = true, workers = true, DataLoader = true, prepare = true,
        prepare_qat = true, QConfig = true, plan = true, report = true, from_float = true, ScheduleGPipe = true, Schedule1F1B = true,
        gptq = true, quantize_weights = true, smooth = true }
    local seen, missing = {}, {}
    local function walk(value, depth)
        if seen[value] or depth > 6 then return end
        seen[value] = true
        local doc = tide._doc(value)
        local name, arguments = (doc and doc.signature or ""):match("^([%w_]+)(%b())")
        if name and arguments:find("function[?]? %w") and arguments:find("{", 1, true) and not known[name]
            and not elsewhere[name] then
            missing[#missing + 1] = name
        end
        if type(value) == "table" then
            for key, member in next, value do
                if type(key) == "string" and (type(member) == "table" or type(member) == "function") then
                    walk(member, depth + 1)
                end
            end
        end
    end
    for _, name in ipairs(tide._lazy) do local _ = tide[name] end
    walk(tide, 0)
    t.eq(missing, {})
end)
