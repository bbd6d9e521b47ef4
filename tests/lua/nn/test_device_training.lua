-- test_device_training.lua: training on the tests' second device (tests/device), whose memory the host may not touch
-- and which works late: labels, autocast, GradScaler, clipping and accumulation together are what they are on the CPU.
local t = require "harness"
local nn, amp = tide.nn, tide.amp

local register, why = package.loadlib(os.getenv "TIDE_LATE_DEVICE" or "", "register_late_device")
if register then
    register()
    why = os.getenv "TIDE_LATE_LACKS"
end
if why then
    t.skip("training on the second device", why)
    t.finish()
end

local function network()
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.0),
        nn.Linear(36, 5))
end

-- What a few steps on a device come to: losses, parameters, statistics, the scale, and dtypes on the way.
local function train(device, options)
    tide.manual_seed(11)
    local model, criterion = network():to(device), nn.CrossEntropyLoss { label_smoothing = 0.1 }
    local x, y = tide.randn(16, 1, 8, 8):to(device), (tide.arange(16) % 5 + 1):to(device)
    local optimizer = tide.optim[options.optimizer or "SGD"](model:parameters(), { lr = 0.05, foreach = options.foreach })
    local scaler = amp.GradScaler { init_scale = 256, growth_interval = 3, enabled = options.dtype ~= nil }
    local losses, seen = {}, nil
    for step = 1, 6 do
        for half = 1, 2 do -- gradients of two halves of a batch
            local part = { half * 8 - 7, half * 8 }
            local loss = tide.autocast({ device = device:match("^%a+"), dtype = options.dtype, enabled = options.dtype ~= nil },
                function()
                    local scores = model(x[{ part }])
                    seen = scores.dtype
                    return criterion(scores, y[{ part }]) / 2
                end)
            if step == options.overflow and half == 1 then
                loss = loss * math.huge
            end
            scaler:scale(loss):backward()
            losses[#losses + 1] = loss:item()
        end
        scaler:unscale_(optimizer)
        if step ~= options.overflow then
            nn.utils.clip_grad_norm_(model:parameters(), 1)
        end
        scaler:step(optimizer)
        scaler:update()
        optimizer:zero_grad()
    end
    local state = {}
    for name, value in pairs(model:state_dict()) do
        state[name] = value:cpu():double():reshape(-1):tolist()
    end
    local right = model:eval()(x):argmax(2):eq(y):sum():item()
    return { losses = losses, state = state, scale = scaler:get_scale(), dtype = seen, right = right }
end

local function check(options, tolerance)
    local far, near = train("late:1", options), train("cpu", options)
    local finite = {}
    for k, loss in ipairs(near.losses) do
        finite[k] = math.abs(loss) < math.huge
        t.close(far.losses[k], loss, tolerance, "loss " .. k)
    end
    for name, value in pairs(near.state) do
        t.close(far.state[name], value, tolerance, name)
    end
    t.eq(far.scale, near.scale)
    t.eq(far.dtype, near.dtype)
    t.is_true(math.abs(far.right - near.right) <= 1)
    return near
end

t.test("labels_train_on_another_device_as_on_the_cpu", function()
    t.eq(check({}, 1e-4).dtype, tide.float32)
    check({ optimizer = "Adam" }, 1e-3)
    check({ optimizer = "Adam", foreach = false }, 1e-3)
end)

t.test("autocast_and_scaler_train_there_with_labels", function()
    local result = check({ dtype = tide.bfloat16 }, 0.05)
    t.eq(result.dtype, tide.bfloat16)
    t.eq(result.scale, 1024) -- grown twice
end)

t.test("a_step_that_overflows_is_skipped_there_too", function()
    local result = check({ dtype = tide.bfloat16, overflow = 2 }, 0.05)
    t.eq(result.scale, 256) -- 256 / 2 * 2
end)

t.test("a_label_out_of_range_is_told_at_the_next_look", function()
    local scores = tide.randn(2, 5):to("late"):requires_grad_()
    t.error_has(function()
        local loss = nn.CrossEntropyLoss()(scores, tide.tensor({ 1, 6 }):to("late"))
        loss:item()
    end, "6")
end)
