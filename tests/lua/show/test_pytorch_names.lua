-- test_pytorch_names.lua: every public name of PyTorch is in Tide, or Tide says what it has instead. The list
-- is PyTorch's own (tests/peers/names/generate.py).
local t = require "harness"
local here = arg[0]:match("^(.*)/") or "."

for _, name in ipairs(tide._lazy) do
    local _ = tide[name]
end

-- The objects whose fields are those of PyTorch's classes.
local objects = {
    Tensor = function() return tide.ones(2, 2) end,
    ["nn.Module"] = function() return tide.nn.Linear(1, 1) end,
    ["profiler.profile"] = function() return (tide.profiler.profile(function() end)) end,
    ["amp.GradScaler"] = function() return tide.amp.GradScaler() end,
    ["optim.Optimizer"] = function() return tide.optim.SGD({ tide.ones(1, { requires_grad = true }) }, { lr = 1 }) end,
    Generator = function() return tide.Generator() end,
    Size = function() return tide.ones(1).shape end,
    ["utils.benchmark.Timer"] = function() return tide.benchmark.Timer { stmt = "x = 1" } end,
    ["distributions.Distribution"] = function() return rawget(tide,"distributions") and tide.distributions.Normal(0, 1) end,
    ["optim.lr_scheduler.LRScheduler"] = function()
        return tide.optim.lr_scheduler.StepLR(tide.optim.SGD({ tide.ones(1, { requires_grad = true }) }, { lr = 1 }), 1)
    end,
}

local function has(room, name)
    local owner = objects[room] and objects[room]() or tide
    if not objects[room] and room ~= "torch" then
        for part in room:gmatch("[^.]+") do
            owner = type(owner) == "table" and rawget(owner, part) or nil
        end
    end
    local ok, value = pcall(function() return owner[name] end)
    return owner ~= nil and ok and (value ~= nil or room == "Tensor")
end

-- Calls fn(room, name) for each name of the list.
local function each(fn)
    local room
    for line in io.lines(here .. "/../../peers/names/names.txt") do
        if line:find("^%S+:$") then
            room = line:sub(1, -2)
        elseif line:sub(1, 1) ~= "#" then
            for name in line:gmatch("%S+") do
                fn(room, name)
            end
        end
    end
end

-- What is said of a name that is not there: by the error where Tide has the room, else by help.
local function told(room, name)
    local owner = tide
    if room == "Tensor" then
        owner = tide.ones(2, 2)
    elseif objects[room] then
        return tide._require("help.pytorch").text(room .. "." .. name) or ""
    elseif room ~= "torch" then
        for part in room:gmatch("[^.]+") do
            owner = type(owner) == "table" and rawget(owner, part) or nil
        end
    end
    local path = room == "torch" and name or room .. "." .. name
    if type(owner) ~= "table" and room ~= "Tensor" or not owner or name:find("^_") and not name:find("^_foreach_") or room == "backends.cudnn" then -- which lists its own settings
        return tide._require("help.pytorch").text(path) or ""
    end
    local ok, message = pcall(function() return owner[name] end)
    return ok and "" or message
end

t.test("every_name_of_pytorch_s_is_there_or_answered", function()
    local missing, count = {}, 0
    each(function(room, name)
        count = count + 1
        local text = not has(room, name) and told(room, name)
        local near = text and text:match("did you mean '([%w_]+)'")
        local same = near and near:lower():gsub("_", "") == name:lower():gsub("_", "") -- distributions.beta, the module of Beta
        if text and not (same or text:find("PyTorch's ", 1, true) or text:find("not in Tide: ", 1, true) or text:find("there is tide.", 1, true)
            or text:find("is for sparse tensors", 1, true)) then
            missing[#missing + 1] = room .. "." .. name .. " (" .. text .. ")"
        end
    end)
    t.is_true(count > 4000, "the list is there")
    t.eq(table.concat(missing, " "), "")
end)

t.test("names_in_wide_use_are_said_to_be_what_they_are_here", function()
    local rows = { -- of room, name: what stands in the message
        { tide.utils, "data", "PyTorch's utils.data is tide.data" },
        { tide, "from_numpy", "tide.load(\"x.npy\")" }, { tide.ones(1), "numpy", "tide.save(x, \"x.npy\")" },
        { tide.cuda, "amp", "is tide.amp" }, { tide, "set_default_tensor_type", "tide.set_default_dtype" },
        { tide.profiler, "emit_nvtx", "nvtx = true" }, { tide, "fft", "not in Tide: there are no complex numbers" },
        { tide, "fx", "not in Tide: functions become graphs by tide.jit" }, { tide, "Linear", "there is tide.nn.Linear" }, { tide, "conj", "x itself" },
        { tide, "sqrt_", "x:sqrt_()" }, { tide, "FloatTensor", "{dtype = tide.float64}" }, { tide.nn, "UninitializedParameter", "tide.nn.LazyLinear" },
        { tide.optim, "functional", "tide.optim" }, { tide, "_foreach_mul_", "tide.foreach.mul_" }, { tide, "onse", "did you mean 'ones'?" }, { tide.cuda, "is_availble", "did you mean 'is_available'?" },
    }
    for _, row in ipairs(rows) do
        t.error_has(function() return row[1][row[2]] end, row[3])
    end
    t.eq(tide._of_our_own, nil)
    t.eq(tide._require("help.pytorch").text("utils.benchmark.Compare"), "PyTorch's utils.benchmark.Compare is tide.benchmark.Compare")
    t.eq(tide._require("help.pytorch").text("made_up_by_nobody"), nil)
end)

t.test("options_of_pytorch_s_are_said_to_be_what_they_are_here", function()
    local profile = tide.profiler.profile(function() end)
    t.eq(profile:table { row_limit = 3, group_by_input_shape = true }, profile:table { limit = 3, group_by_shape = true })
    t.eq(tide.autocast({ device_type = "cpu", cache_enabled = false, enabled = false }, function() return 7 end), 7)
    t.error_has(function() tide.optim.SGD({ tide.ones(1, { requires_grad = true }) }, { learning_rate = 0.1 }) end, "PyTorch's is 'lr'")
    local x = tide.ones(1, { requires_grad = true })
    for option, want in pairs { fullgraph = "f:why()", mode = "it is measured", backend = "the engine's own", dynamic = "each size" } do
        t.error_has(function() tide.compile(print, { [option] = true }) end, want)
    end
    t.error_has(function() tide.autograd.grad(x * 2, x, { only_inputs = true }) end, "gradients go to the inputs alone")
    t.error_has(function() tide.nn.Linear(1, 1):register_forward_hook(print, { with_kwargs = true }) end, "among the hook's args")
    t.eq(tide.nn.GRU(1, 1):flatten_parameters(), nil)
    t.error_has(function() profile:table { group_by = "shape" } end, "group_by_shape")
    t.error_has(function() tide.profiler.profile { with_modules = true } end, "no option 'with_modules'")
    t.eq(tide.profiler.schedule { ["repeat"] = 1, active = 1 }(5), tide.profiler.schedule { repeats = 1, active = 1 }(5))
    t.error_has(function() tide.ones(2, { row_limit = 2 }) end, "no option 'row_limit'")
end)

t.test("what_answers_name_is_in_tide", function()
    local wrong = {}
    local function check(path, text)
        for named in text:gmatch("tide%.([%w_.]*[%w_])") do
            local value, from = tide, tide
            for part in named:gmatch("[^.]+") do
                from = value
                local ok, found = pcall(function() return from[part] end)
                value = ok and found or nil
                if value == nil then
                    wrong[#wrong + 1] = path .. ": tide." .. named
                    break
                end
            end
        end
        for method in text:gmatch("x:([%w_]+)") do
            if method ~= "NAME" and not rawget(tide._methods, method) then
                wrong[#wrong + 1] = path .. ": x:" .. method
            end
        end
        for field in text:gmatch("%f[%w_]x%.([%w_]+)") do
            if field ~= "npy" and not pcall(function() return tide.ones(1)[field] end) then
                wrong[#wrong + 1] = path .. ": x." .. field
            end
        end
    end
    each(function(room, name)
        local path = room == "torch" and name or room .. "." .. name
        if not has(room, name) then
            check(path, told(room, name))
        end
    end)
    t.eq(table.concat(wrong, "\n"), "")
end)
