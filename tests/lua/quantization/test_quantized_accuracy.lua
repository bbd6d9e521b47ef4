-- test_quantized_accuracy.lua: networks that learned Fashion-MNIST, in bytes: what is lost after calibration and after training with
-- rounding, on images that neither has seen, and the size of what is kept. tests/bench/plan.lua has the same at full size.
local t = require "harness"
local Q, nn, F = tide.quantization, tide.nn, tide.nn.functional

if os.getenv "TIDE_SANITIZED" then
    t.skip("networks that learn", "test_quantized_models runs the same layers under sanitizers")
    t.finish()
end
local found, why = pcall(tide.data.fashion_mnist)
if not found then
    t.skip("Fashion-MNIST", tostring(why))
    t.finish()
end

local BATCH <const>, SEEN <const>, TESTS <const>, STEPS <const>, STATIC_LOSS <const>, TRAINED_LOSS <const> = 64, 8000, 10000, 200, 0.3, 0.1

-- The first images of a set at half their size.
local function images(many, train)
    local data = tide.data.fashion_mnist { train = train }
    local x = data.data[{ { 1, many } }]:float():view(-1, 1, 28, 28) / 255
    return F.avg_pool2d(x, 2) * 2 - 1, data.targets[{ { 1, many } }]
end

tide.set_num_threads(1)
local x, labels = images(SEEN, true)
local other, truth = images(TESTS, false)

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

-- A residual network of one block, all of whose layers lie between stubs.
local Residual = nn.class "Residual"
local JOINED <const> = { { "first", "norm", "relu" }, { "conv1", "bn1", "relu1" }, { "conv2", "bn2" } }

local function conv(from, to) return nn.Conv2d(from, to, 3, { padding = 1, bias = false }) end

function Residual:init()
    self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
    self.first, self.norm, self.relu, self.pool = conv(1, 32), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)
    self.conv1, self.bn1, self.relu1 = conv(32, 32), nn.BatchNorm2d(32), nn.ReLU()
    self.conv2, self.bn2, self.sum = conv(32, 32), nn.BatchNorm2d(32), nn.quantized.FloatFunctional()
    self.head = nn.Linear(32 * 49, 10)
end

function Residual:forward(x)
    local y = self.pool(self.relu(self.norm(self.first(self.quant(x)))))
    y = self.sum:add_relu(self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(y))))), y)
    return self.dequant(self.head(y:flatten(2)))
end

local function joined(net, training)
    return (training and Q.fuse_modules_qat or Q.fuse_modules)(net, JOINED)
end

for name, case in pairs {
    cnn = { make = cnn, of = function(net) return net end },
    resnet = { make = Residual, of = joined },
} do
    t.test("few_points_are_lost_and_a_quarter_is_kept_of_a_" .. name, function()
        tide.manual_seed(1)
        local net = train(case.make(), STEPS, 0.05, 1)
        local prepared = Q.prepare(case.of(net))
        tide.no_grad(function() prepared(x["1:500"]) end)
        local static = Q.convert(prepared)
        local trained = Q.convert(train(Q.prepare_qat(case.of(net, true)), 40, 0.01, 2))
        local floats = right(net)
        t.is_true(floats > 70, floats)
        t.is_true(floats - right(static) <= STATIC_LOSS, ("%.2f in floats, %.2f after calibration"):format(floats, right(static)))
        t.is_true(floats - right(trained) <= TRAINED_LOSS, ("%.2f in floats, %.2f after training"):format(floats, right(trained)))
        local share = bytes_of(static) / bytes_of(net)
        t.is_true(share < 0.3, share)
    end)
end

t.finish()
