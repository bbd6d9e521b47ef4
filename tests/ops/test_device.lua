-- test_device.lua: walks the table of operators on a second device: results, writes in place, gradients
-- and their gradients are those of the CPU. TIDE_WALK_DEVICE says which: `late` (tests/device), whose
-- memory the host may not touch and which works late, or `cuda`, a real one or the one that the CPU plays
-- (tests/cuda-on-cpu).
local t = require "harness"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local walk = dofile(here .. "/walk.lua")

local DEVICE = os.getenv "TIDE_WALK_DEVICE" or "late"
tide.backends.cudnn.allow_tf32 = false -- true at the start: ten bits of mantissa are too few to compare
local EXACT = DEVICE == "late" -- the same kernels; others add up in another order

-- How near results lie: what is made in float32, though asked in float64, is as near as float32 allows.
local function tolerance_of(results)
    for _, x in ipairs(results) do
        if not EXACT and tide.is_tensor(x) and x.dtype == tide.float32 then
            return 2e-6
        end
    end
    return EXACT and 1e-12 or 1e-10
end
local function absent()
    if DEVICE == "late" then
        local register, why = package.loadlib(os.getenv "TIDE_LATE_DEVICE" or "", "register_late_device")
        if not register then
            return why
        end
        register()
        return os.getenv "TIDE_LATE_LACKS"
    end
    local there, why = pcall(tide.zeros, 1, { device = DEVICE })
    return not there and why or nil
end
local why = absent()
if why then
    t.skip("operators on the second device", why)
    t.finish()
end

local function there(x) return x:to(DEVICE) end

local function home(list)
    local moved = {}
    for k, x in ipairs(list) do
        moved[k] = tide.is_tensor(x) and x:to("cpu") or x
    end
    return moved
end

-- The device as an option of operators that make tensors from nothing.
local function with_device(op, args)
    if not op.signature:find("device", 1, true) then
        return args
    end
    local n = args.n or #args
    local options = args[n]
    if type(options) ~= "table" or tide.is_tensor(options) or #options > 0 or next(options) == nil then
        n, options = n + 1, {}
    end
    local copy = { device = DEVICE }
    for key, value in pairs(options) do
        copy[key] = value
    end
    args[n], args.n = copy, n
    return args
end

-- All tensors among the arguments, those that a sample makes by itself too.
local function all_there(value)
    if tide.is_tensor(value) then
        return there(value)
    elseif type(value) ~= "table" or getmetatable(value) then
        return value
    end
    local moved = {}
    for key, part in walk.in_order(value) do
        moved[key] = all_there(part)
    end
    return moved
end

local function arguments_there(sample, ...)
    return all_there(walk.arguments(sample, ...))
end

-- The functions of a device that each operator asks for, where the late device tells.
local work = {}
local tell_work = DEVICE == "late" and package.loadlib(os.getenv "TIDE_LATE_DEVICE", "tell_late_work")

local function note_work(op)
    work[op.name] = work[op.name] or {}
    tell_work()
    for name in os.getenv("TIDE_LATE_WORK"):gmatch("%S+") do
        work[op.name][name] = true
    end
end

local function on_device(op, sample, arrange)
    local args = with_device(op, arguments_there(sample, tide.float64, false, arrange))
    if not tell_work then
        return home(walk.flatten(walk.call(op, args)))
    end
    tell_work() -- what the arguments took
    local results = walk.flatten(walk.call(op, args))
    note_work(op)
    return home(results)
end

-- Gradients of sum(out * weight) and of the sum of their squares, as PyTorch's gradgradcheck would
-- ask for them.
local function gradients(op, sample, move)
    local args = walk.arguments(sample, tide.float64, true, move)
    if move == there then
        local leaves = walk.differentiable_inputs(args)
        args = all_there(args) -- leaves are there already
        t.eq(#walk.differentiable_inputs(args), #leaves)
    end
    local inputs, places = walk.differentiable_inputs(args)
    if #inputs == 0 then
        return nil
    end
    local outputs, loss = { walk.as_function(op, args, places)(table.unpack(inputs)) }, nil
    for k, y in ipairs(outputs) do
        if y.requires_grad then
            y = not EXACT and walk.signless[op.name] and y:abs() or y
            local weight = (tide.arange(y:numel(), { dtype = tide.float64 }) * 0.37 + k):cos()
            local part = (y * move(weight:reshape(y.shape))):sum()
            loss = loss and loss + part or part
        end
    end
    if not loss then
        return nil
    end
    local options = { create_graph = true, allow_unused = true }
    local first = tide.autograd.grad({ loss }, inputs, options)
    local squares
    for k = 1, #inputs do
        if tide.is_tensor(first[k]) and first[k].requires_grad then
            local part = (first[k] * first[k]):sum()
            squares = squares and squares + part or part
        end
    end
    local all = {}
    for k = 1, #inputs do
        all[#all + 1] = first[k]
    end
    if squares then
        local second = tide.autograd.grad({ squares }, inputs, { allow_unused = true })
        for k = 1, #inputs do
            all[#all + 1] = second[k]
        end
    end
    return all
end

local function detached(list)
    local plain = {}
    for k, x in ipairs(home(list)) do
        plain[k] = tide.is_tensor(x) and x:detach() or x
    end
    return plain
end

for _, op in ipairs(walk.ops) do
    for number, sample in ipairs(walk.samples[op.name] or {}) do
        local name = ("%s_%d"):format(op.name, number)
        local comparable = not op.name:find("empty") -- whatever lay in memory
        t.test(name .. "_on_the_device", function()
            tide.manual_seed(7)
            local want = walk.run(op, sample, tide.float64)
            tide.manual_seed(7)
            local got = on_device(op, sample)
            if comparable then
                local signless = not EXACT and walk.signless[op.name]
                walk.check_same(got, want, tolerance_of(want), "device", signless)
                walk.check_same(on_device(op, sample, walk.layouts.sliced), want, op.random and 10 or tolerance_of(want),
                    "device, sliced", signless)
            end
        end)
        if op.inplace and not op.inplace_only and not op.random then
            t.test(name .. "_in_place_on_the_device", function()
                local args = arguments_there(sample, tide.float64)
                local want = tide.is_tensor(args[1]) and tide[op.name](table.unpack(args, 1, args.n or #args))
                if not want or tostring(want.shape) ~= tostring(args[1].shape)
                    or want.dtype ~= args[1].dtype then
                    return
                end
                args[1] = args[1]:clone()
                local got = args[1][op.name .. "_"](table.unpack(args, 1, args.n or #args))
                walk.check_same(home { got }, home { want }, EXACT and 0 or 1e-10, "in place")
            end)
        end
        if op.differentiable and comparable and not op.random then
            t.test(name .. "_gradients_on_the_device", function()
                local want = gradients(op, sample, function(x) return x end)
                if want then
                    walk.check_same(detached(gradients(op, sample, there)), detached(want), EXACT and 1e-11 or 1e-9, "gradients")
                end
            end)
        end
    end
end

if tell_work then
    -- With TIDE_WORK_WRITE, a file, the list is written there: lua-bindings/lua/devices/work_lists.lua.
    t.test("what_operators_ask_of_a_device_is_listed", function()
        local lists = {}
        for name, functions in pairs(work) do
            local names = {}
            for f in pairs(functions) do
                names[#names + 1] = f
            end
            table.sort(names)
            lists[name] = table.concat(names, " ")
        end
        local path = os.getenv "TIDE_WORK_WRITE"
        if path then
            dofile(here .. "/write_work.lua")(lists, path)
        end
        local listed = tide._require "devices.work_lists"
        for name, functions in walk.in_order(lists) do
            t.eq(listed[name], functions, name .. " (TIDE_WORK_WRITE=FILE writes the list anew)")
        end
        for name in walk.in_order(listed) do
            t.is_true(lists[name], name .. " is listed and no operator")
        end
    end)
end

t.test("errors_that_elements_show_come_at_the_next_synchronisation", function()
    local x, index = there(tide.ones(3)), there(tide.tensor({ 5 }))
    t.error_has(function() return x:index_select(1, index):to("cpu") end, "out of range")
    t.eq((x + 1):sum():item(), 6)
end)

t.test("synchronize_waits_and_raises_what_the_work_met", function()
    local x, index = there(tide.ones(3)), there(tide.tensor({ 5 }))
    tide.synchronize(DEVICE)
    local picked
    if EXACT then
        picked = x:index_select(1, index)
        t.error_has(function() tide.synchronize(DEVICE) end, "out of range")
    else -- or at once
        t.error_has(function()
            picked = x:index_select(1, index)
            tide.synchronize(DEVICE)
        end, "out of range")
    end
    tide.synchronize({ device = DEVICE }) -- told once
    t.is_true(not picked or picked.shape[1] == 1)
    tide.synchronize()
    t.error_has(function() tide.synchronize("later") end, "'later' is no device")
end)

t.test("tensors_of_two_devices_do_not_mix", function()
    t.error_has(function() return there(tide.ones(3)) + tide.ones(3) end, "add: ")
    t.eq((there(tide.ones(3)) * tide.tensor(2)):to("cpu"):tolist(), { 2, 2, 2 })
end)

t.test("gradients_go_back_to_the_device_of_what_they_are_for", function()
    local x, factor = tide.tensor({ 1.0, 2.0 }, { requires_grad = true }), tide.tensor(3.0, { requires_grad = true })
    local y = there(x)
    local z = (y * y * factor):sum()
    z:backward()
    t.eq({ x.grad.device, factor.grad.device }, { "cpu", "cpu" })
    t.eq({ x.grad:tolist(), factor.grad:item() }, { { 6, 12 }, 5 })
    y = there(tide.tensor({ 1.0, 2.0 })):requires_grad_()
    y:to("cpu"):pow(2):sum():backward()
    t.eq(y.grad.device, y.device)
    t.eq(y.grad:to("cpu"):tolist(), { 2, 4 })
end)

t.test("a_training_step_is_that_of_the_cpu", function()
    local nn = tide.nn
    local function train(device)
        tide.manual_seed(1)
        local net = nn.Sequential(nn.Conv2d(1, 4, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(4 * 4 * 4, 10))
        local x, y = tide.randn(16, 1, 8, 8), tide.randint(1, 11, { 16 })
        if device then
            net:to(device)
            x, y = x:to(device), y:to(device)
        end
        local opt = tide.optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })
        local losses = {}
        for step = 1, 5 do
            opt:zero_grad()
            local loss = nn.functional and nn.functional.cross_entropy and nn.functional.cross_entropy(net(x), y)
                or tide.cross_entropy(net(x), y)
            loss:backward()
            opt:step()
            losses[step] = loss:item()
        end
        return losses
    end
    t.close(train(DEVICE), train(), 1e-5)
end)
