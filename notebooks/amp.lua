-- amp.lua: automatic mixed precision on the digits network (data/digits.lua): the same training in float32 and
-- under autocast, with a GradScaler where the low dtype is float16.
--
--     tide notebooks/amp.lua [seed]
--
-- Then two models with a loss and an optimizer each and one scaler for both. On a machine with a GPU float16 runs
-- there too. Prints time and test accuracy of each. With 360 images to test on, two trainings differ by a point
-- whatever their dtypes; so each way is trained five times, and every one of the 1,797 images is tested by the
-- training that has not seen it.
local tide = require "tide"
local nn, optim = tide.nn, tide.optim

local seed = math.tointeger(tonumber(arg and arg[1] or 0)) or error("the seed must be an integer", 0)
local epochs, batch, rate = 15, 32, 0.05
local folds = {}
for k = 1, 5 do
    folds[k] = require("data.digits") { seed = seed, fold = k }
end

local function new_model()
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10))
end

-- ---- training ----

-- What mixed precision adds to a loop are the lines with `autocast` and `scaler`.
local function train(data, device, dtype)
    tide.manual_seed(seed)
    local mixed = { device = device, dtype = dtype, enabled = dtype ~= nil }
    local model, criterion = new_model():to(device), nn.CrossEntropyLoss()
    local optimizer = optim.SGD(model:parameters(), { lr = rate, momentum = 0.9 })
    local scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    local scaler = tide.amp.GradScaler { enabled = dtype == tide.float16 }
    local x, y = data.train_x:to(device), data.train_y:to(device)
    local started = tide.time()
    for _ = 1, epochs do
        local order = tide.randperm(#x)
        for first = 1, #x, batch do
            local pick = order[{ { first, math.min(first + batch - 1, #x) } }]
            optimizer:zero_grad()
            local loss = tide.autocast(mixed, function() return criterion(model(x[pick]), y[pick]) end)
            scaler:scale(loss):backward()
            scaler:step(optimizer)
            scaler:update()
        end
        scheduler:step()
    end
    local seconds = tide.time() - started
    local _ <close> = tide.no_grad()
    return seconds, model(data.test_x:to(device)):argmax(2):eq(data.test_y:to(device)):sum():item()
end

-- Two models, two losses, two optimizers: one loss is the first model's, the other that of both together. A
-- scaler serves them all; an optimizer whose gradients hold inf is skipped alone, and update() comes last, once.
local function train_two(data, device, dtype)
    tide.manual_seed(seed)
    local mixed = { device = device, dtype = dtype, enabled = dtype ~= nil }
    local first_model, criterion = new_model():to(device), nn.CrossEntropyLoss()
    local second_model = nn.Sequential(nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10)):to(device)
    local first_optimizer = optim.SGD(first_model:parameters(), { lr = rate, momentum = 0.9 })
    local second_optimizer = optim.Adam(second_model:parameters(), { lr = 0.001 })
    local schedulers = { optim.lr_scheduler.ExponentialLR(first_optimizer, 0.6),
        optim.lr_scheduler.ExponentialLR(second_optimizer, 0.6) }
    local scaler = tide.amp.GradScaler { enabled = dtype == tide.float16 }
    local x, y = data.train_x:to(device), data.train_y:to(device)
    local started = tide.time()
    for _ = 1, epochs // 2 do
        local order = tide.randperm(#x)
        for first = 1, #x, batch do
            local pick = order[{ { first, math.min(first + batch - 1, #x) } }]
            first_optimizer:zero_grad()
            second_optimizer:zero_grad()
            local alone, together = tide.autocast(mixed, function()
                local a, b = first_model(x[pick]), second_model(x[pick])
                return criterion(a, y[pick]), criterion(a + b, y[pick])
            end)
            scaler:scale(alone):backward { retain_graph = true }
            scaler:scale(together):backward()
            scaler:step(first_optimizer)
            scaler:step(second_optimizer)
            scaler:update()
        end
        for _, scheduler in ipairs(schedulers) do
            scheduler:step()
        end
    end
    local seconds = tide.time() - started
    local _ <close> = tide.no_grad()
    local images = data.test_x:to(device)
    local scores = first_model(images) + second_model(images)
    return seconds, scores:argmax(2):eq(data.test_y:to(device)):sum():item()
end

local function show(device, name, dtype)
    for _, way in ipairs { { "one model ", train }, { "two models", train_two } } do
        local seconds, right, tested = 0, 0, 0
        for _, data in ipairs(folds) do
            local took, found = way[2](data, device, dtype)
            seconds, right, tested = seconds + took, right + found, tested + #data.test_x
        end
        print(("%s  %-4s %-9s %6.2f s   test accuracy %.4f"):format(way[1], device, name, seconds, right / tested))
    end
end

show("cpu", "float32")
show("cpu", "bfloat16", tide.bfloat16)
if pcall(tide.zeros, 1, { device = "cuda" }) then
    show("cuda", "float32")
    show("cuda", "float16", tide.float16)
end
