-- digits.lua: one epoch of the digits network (notebooks/digits.lua), and one step of it.
local here = arg[0]:match("^(.*/)") or "./"
local tide = require "tide"
local bench = dofile(here .. "bench.lua")
local models = loadfile(here .. "models.lua")(bench)
tide.manual_seed(0)

local images, labels = tide.rand(1437, 1, 32, 32), tide.randint(1, 11, { 1437 })
local model = models.digits()
local criterion = tide.nn.CrossEntropyLoss()
local optimizer = tide.optim.SGD(model:parameters(), { lr = 0.05, momentum = 0.9 })

local function step(x, y)
    optimizer:zero_grad()
    local loss = criterion(model(x), y)
    loss:backward()
    optimizer:step()
end

local x, y = images[{ { 1, 32 } }], labels[{ { 1, 32 } }]
bench.case("digits step", function() step(x, y) end)
bench.case("digits epoch", function()
    local order = tide.randperm(1437)
    for first = 1, 1437, 32 do
        local pick = order[{ { first, math.min(first + 31, 1437) } }]
        step(images[pick], labels[pick])
    end
end)
