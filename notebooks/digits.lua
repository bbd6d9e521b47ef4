-- digits.lua: the tutorial network on real handwritten digits (data/digits.lua).
--
--     tide notebooks/digits.lua [seed]
--
-- 1,797 images of 8x8 are scaled to 32x32; 1,437 of a seeded shuffle train the network, the other 360
-- test it. Prints `test accuracy 0.NNNN` last.
local tide = require "tide"
local nn, optim = tide.nn, tide.optim

local seed = math.tointeger(tonumber(arg and arg[1] or 0)) or error("the seed must be an integer", 0)
local epochs, batch, rate = 15, 32, 0.05

local data = require("data.digits") { seed = seed }
local n_train = #data.train_x

-- ---- network ----

local model = nn.Sequential(
    nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(576, 120), nn.ReLU(),
    nn.Linear(120, 84), nn.ReLU(),
    nn.Linear(84, 10))
print(model)

local criterion = nn.CrossEntropyLoss()
local optimizer = optim.SGD(model:parameters(), { lr = rate, momentum = 0.9 })

-- ---- training ----

local function train_epoch()
    local order, total, steps = tide.randperm(n_train), 0, 0
    for first = 1, n_train, batch do
        local pick = order[{ { first, math.min(first + batch - 1, n_train) } }]
        optimizer:zero_grad()
        local loss = criterion(model(data.train_x[pick]), data.train_y[pick])
        loss:backward()
        optimizer:step()
        total, steps = total + loss:item(), steps + 1
    end
    return total / steps
end

local function accuracy(x, y)
    local _ <close> = tide.no_grad()
    return model(x):argmax(2):eq(y):float():mean():item()
end

local progress = tide.progress(epochs, "training")
local started = tide.time()
for _ = 1, epochs do
    progress:step(("loss %.4f"):format(train_epoch()))
end
progress:close()
print(("trained %d epochs in %.2f s"):format(epochs, tide.time() - started))
print(("test accuracy %.4f"):format(accuracy(data.test_x, data.test_y)))
