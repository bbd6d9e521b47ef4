-- test_quantized_accuracy.lua: networks that learned Fashion-MNIST, in bytes: what is lost after calibration and after training with
-- rounding, on images that neither has seen, and the size of what is kept. tests/bench/plan.lua has the same at full size.
local t = require "harness"
local Q, nn, F = tide.quantization, tide.nn, tide.nn.functional

local found, why = pcall(tide.data.fashion_mnist)
if not found then
    t.skip("Fashion-MNIST", tostring(why))
    t.finish()
end

local BATCH <const>, SEEN <const>, STATIC_LOSS <const>, TRAINED_LOSS <const> = 64, 8000, 0.3, 0.1

-- The first images of a set at half their size.
local function images(many, train)
    local data = tide.data.fashion_mnist { train = train }
    local x = data.data[{ { 1, many } }]:float():view(-1, 1, 28, 28) / 255
    return F.avg_pool2d(x, 2) * 2 - 1, data.targets[{ { 1, many } }]
end

local x, labels = images(SEEN, true)
local other, truth = images(10000, false)

local function train(net, steps, rate, seed)
    local order = tide.Generator():manual_seed(seed)
    local optimizer = tide.optim.SGD(net:parameters(), { lr = rate, momentum = 0.9 })
    local schedule = tide.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net:train()
    for _ = 1, steps do
        local rows = tide.randint(1, SEEN + 1, { BATCH }, { generator = order })
        optimizer:zero_grad()
        F.cross_entropy(net(x[rows]), labels[rows]):backward()
        optimizer:step()
        schedule:step()
    end
    return net:eval()
end

local function right(net)
    local sum = 0
    for first = 1, #other, 500 do
        local rows = { { first, first + 499 } }
        sum = sum + tide.no_grad(function() return net(other[rows]):argmax(2):eq(truth[rows]):sum():item() end)
    end
    return 100 * sum / #other
end

local function bytes_of(net)
    local path = os.tmpname()
    tide.save(net:state_dict(), path)
    local file <close> = assert(io.open(path, "rb"))
    os.remove(path)
    return file:seek("end")
end

local function cnn()
    return nn.Sequential(nn.Conv2d(1, 32, 3, { padding = 1 }), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3),
        nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(1600, 64), nn.ReLU(), nn.Linear(64, 10))
end

local resnet = dofile(os.getenv "TIDE_SOURCE" .. "/notebooks/networks/resnet.lua")

for name, case in pairs {
    cnn = { make = cnn, of = function(net) return net end, steps = 150 },
    resnet = { make = function() return resnet.new(18, { classes = 10, channels = 1, width = 8, small = true }) end, of = resnet.fused, steps = 120 },
} do
    t.test("few_points_are_lost_and_a_quarter_is_kept_of_a_" .. name, function()
        tide.manual_seed(1)
        local net = train(case.make(), case.steps, 0.05, 1)
        local prepared = Q.prepare(case.of(net))
        tide.no_grad(function() prepared(x["1:500"]) end)
        local static = Q.convert(prepared)
        local trained = Q.convert(train(Q.prepare_qat(case.of(net, true)), 30, 0.005, 2))
        local floats = right(net)
        t.is_true(floats > 75, floats)
        t.is_true(floats - right(static) <= STATIC_LOSS, ("%.2f in floats, %.2f after calibration"):format(floats, right(static)))
        t.is_true(floats - right(trained) <= TRAINED_LOSS, ("%.2f in floats, %.2f after training"):format(floats, right(trained)))
        local share = bytes_of(static) / bytes_of(net)
        t.is_true(share < 0.3, share)
    end)
end

t.finish()
