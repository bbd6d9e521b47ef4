-- test_help.lua: everything public says what it is.
local t = require "harness"

local function documented(prefix, holder)
    for name, value in pairs(holder) do
        local public = type(name) == "string" and name:sub(1, 1) ~= "_"
        if public and (type(value) == "function" or type(value) == "table" and getmetatable(value)) then
            local doc = tide._doc(value)
            t.is_true(doc and doc.signature and doc.doc and #doc.doc > 3, prefix .. name .. " has help")
        end
    end
end

t.test("functions_of_tide", function()
    for _, name in ipairs(tide._lazy) do -- load the modules
        t.is_true(tide[name] ~= nil, name)
    end
    documented("tide.", tide)
end)

t.test("modules", function()
    documented("tide.autograd.", tide.autograd)
    documented("tide.io.", tide.io)
    documented("tide.profiler.", tide.profiler)
    documented("tide.benchmark.", tide.benchmark)
    documented("tide.optim.", tide.optim)
end)

t.test("classes_of_nn", function()
    documented("tide.nn.", tide.nn)
    documented("tide.nn.init.", tide.nn.init)
end)

t.test("methods_of_modules_and_optimizers", function()
    local own = { init = true, forward = true, extra_repr = true, describe = true } -- for classes to override
    for name, value in pairs(tide.nn.Module) do
        if type(value) == "function" and not name:find("^_") and not own[name] then
            t.is_true(tide._doc(value), "nn.Module." .. name)
        end
    end
    for _, name in ipairs { "step", "zero_grad", "state_dict", "load_state_dict" } do
        t.eq(tide._doc(tide.optim.SGD[name]).name, name)
    end
end)

t.test("methods_of_tensors", function()
    documented("x:", tide._methods)
end)

t.test("operators_show_counting_from_1", function()
    t.is_true(tide._doc(tide.unbind).signature:find("dim=1", 1, true))
    t.is_true(tide._doc("add_").signature:find("alpha", 1, true))
    t.eq(tide._doc(tide.nn.Linear).params, { "in_features", "out_features", "bias", "dtype", "device" })
    t.eq(tide._doc(print), nil)
    t.eq(tide._doc({}), nil)
end)

t.test("autocast_classes_are_those_of_pytorch_by_device", function()
    local function classes(name)
        local autocast = tide._doc(name).autocast
        return autocast.cpu .. " " .. autocast.cuda
    end
    t.eq(classes "add", "none none")
    t.eq(classes "mm", "lower lower")
    t.eq(classes "mv", "none lower")
    t.eq(classes "exp", "none fp32")
    t.eq(classes "softmax", "none fp32_result")
    t.eq(classes "prod", "fp32 fp32_result")
    t.eq(classes "mse_loss", "fp32 fp32")
    t.eq(classes "binary_cross_entropy", "fp32 banned")
    t.eq(classes "cat", "promote none")
    t.eq(classes "atan2", "none promote")
end)

-- ---- texts longer than anybody would write ----

t.test("defaults_are_shown_whole", function()
    local n = "-9223372036854775807"
    local defaults = ("int[] x={%s, %s, %s}, str y=\"%s\""):format(n, n, n, ("y"):rep(200))
    local wide = tide._function(("wide(%s) -> nil"):format(defaults), "Doc.", function() end)
    t.eq(tide._doc(wide).signature, ("wide(%s) -> nil"):format(defaults))
end)

t.test("choices_that_find_no_room_in_a_message_are_left_out", function()
    local words = {}
    for k = 1, 60 do
        words[k] = ('"choice%d"'):format(k)
    end
    local pick = tide._function(("pick(%s mode) -> nil"):format(table.concat(words, "|")), "Doc.", function() end)
    t.error_matches(function() pick("x") end, '"choice1", "choice2", [^\n]*, %.%.%., got string "x"')
    local one = tide._function(("pick(%s mode) -> nil"):format('"' .. ("c"):rep(300) .. '"'), "Doc.", function() end)
    t.error_has(function() one("x") end, "expected ..., got")
end)
