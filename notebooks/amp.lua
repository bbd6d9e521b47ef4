-- amp.lua: automatic mixed precision on the digits network (data/digits.csv): the same training in float32 and
-- under autocast, with a GradScaler where the low dtype is float16.
--
--     tide notebooks/amp.lua [seed]
--
-- Then two models with a loss and an optimizer each and one scaler for both. The rate falls, so that accuracies can be compared. Prints time and test accuracy of each. On a machine with a GPU float16 runs there too.
local tide = require "tide"
local nn, optim = tide.nn, tide.optim

local seed = math.tointeger(tonumber(arg and arg[1] or 0)) or error("the seed must be an integer", 0)
local epochs, batch, rate = 15, 32, 0.05
local here = (arg and arg[0] or "notebooks/amp.lua"):match("^(.*)/[^/]*$") or "."

-- ---- data ----

local rows = tide.io.read_csv(here .. "/data/digits.csv")
tide.manual_seed(seed)
rows = rows[tide.randperm(#rows)]
local images = tide.interpolate(rows[":, 1:64"]:reshape(-1, 1, 8, 8) / 16, { scale_factor = 4 })
local digits = rows[":, 65"]:long() + 1 -- classes count from 1: digit 0 is class 1
local n_train = 1437
local train_x, train_y = images[{ { 1, n_train } }], digits[{ { 1, n_train } }]
local test_x, test_y = images[{ { n_train + 1, -1 } }], digits[{ { n_train + 1, -1 } }]

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
local function train(device, dtype)
    tide.manual_seed(seed)
    local mixed = { device = device, dtype = dtype, enabled = dtype ~= nil }
    local model, criterion = new_model():to(device), nn.CrossEntropyLoss()
    local optimizer = optim.SGD(model:parameters(), { lr = rate, momentum = 0.9 })
    local scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    local scaler = tide.amp.GradScaler { enabled = dtype == tide.float16 }
    local x, y = train_x:to(device), train_y:to(device)
    local started = tide.time()
    for _ = 1, epochs do
        local order = tide.randperm(n_train)
        for first = 1, n_train, batch do
            local pick = order[{ { first, math.min(first + batch - 1, n_train) } }]
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
    return seconds, model(test_x:to(device)):argmax(2):eq(test_y:to(device)):float():mean():item()
end

-- Two models, two losses, two optimizers: one loss is the first model's, the other that of both together. A
-- scaler serves them all; an optimizer whose gradients hold inf is skipped alone, and update() comes last, once.
local function train_two(device, dtype)
    tide.manual_seed(seed)
    local mixed = { device = device, dtype = dtype, enabled = dtype ~= nil }
    local first_model, criterion = new_model():to(device), nn.CrossEntropyLoss()
    local second_model = nn.Sequential(nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10)):to(device)
    local first_optimizer = optim.SGD(first_model:parameters(), { lr = rate, momentum = 0.9 })
    local second_optimizer = optim.Adam(second_model:parameters(), { lr = 0.001 })
    local schedulers = { optim.lr_scheduler.ExponentialLR(first_optimizer, 0.6),
        optim.lr_scheduler.ExponentialLR(second_optimizer, 0.6) }
    local scaler = tide.amp.GradScaler { enabled = dtype == tide.float16 }
    local x, y = train_x:to(device), train_y:to(device)
    local started = tide.time()
    for _ = 1, epochs // 2 do
        local order = tide.randperm(n_train)
        for first = 1, n_train, batch do
            local pick = order[{ { first, math.min(first + batch - 1, n_train) } }]
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
    local scores = first_model(test_x:to(device)) + second_model(test_x:to(device))
    return seconds, scores:argmax(2):eq(test_y:to(device)):float():mean():item()
end

local function show(device, name, dtype)
    for _, way in ipairs { { "one model ", train }, { "two models", train_two } } do
        local seconds, accuracy = way[2](device, dtype)
        print(("%s  %-4s %-9s %6.2f s   test accuracy %.4f"):format(way[1], device, name, seconds, accuracy))
    end
end

show("cpu", "float32")
show("cpu", "bfloat16", tide.bfloat16)
if pcall(tide.zeros, 1, { device = "cuda" }) then
    show("cuda", "float32")
    show("cuda", "float16", tide.float16)
end
