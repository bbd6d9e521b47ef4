-- mixed.lua: training steps in float32 and under bfloat16 autocast: the digits network, a perceptron of three layers,
-- and ResNet-18 for images of 32 x 32, row-major and with channels last. One thread; mixed.py has the same in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local nn, optim = tide.nn, tide.optim
tide.set_num_threads(1)
tide.manual_seed(0)

local function digits()
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(576, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
end

local function perceptron()
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
end

-- ---- ResNet-18 ----

local Block = nn.class("Block")

function Block:init(into, out, stride)
    self.conv1 = nn.Conv2d(into, out, 3, { stride = stride, padding = 1, bias = false })
    self.bn1 = nn.BatchNorm2d(out)
    self.conv2 = nn.Conv2d(out, out, 3, { padding = 1, bias = false })
    self.bn2 = nn.BatchNorm2d(out)
    if stride ~= 1 or into ~= out then
        self.down = nn.Sequential(nn.Conv2d(into, out, 1, { stride = stride, bias = false }), nn.BatchNorm2d(out))
    end
end

function Block:forward(x)
    local y = self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
    return (y + (self.down and self.down(x) or x)):relu()
end

local function resnet18()
    local layers, into = { nn.Conv2d(3, 64, 3, { padding = 1, bias = false }), nn.BatchNorm2d(64), nn.ReLU() }, 64
    for stage, out in ipairs { 64, 128, 256, 512 } do
        layers[#layers + 1] = Block(into, out, stage == 1 and 1 or 2)
        layers[#layers + 1] = Block(out, out, 1)
        into = out
    end
    layers[#layers + 1] = nn.AdaptiveAvgPool2d(1)
    layers[#layers + 1] = nn.Flatten()
    layers[#layers + 1] = nn.Linear(512, 10)
    return nn.Sequential(table.unpack(layers))
end

-- ---- steps ----

local function train(name, make, shape, options)
    if not bench.chosen(name) then
        return
    end
    local model, x, y = make(), tide.randn(shape), tide.randint(1, 11, { shape[1] })
    if options.memory_format then
        model:to { memory_format = options.memory_format }
        x = x:to { memory_format = options.memory_format }
    end
    local criterion = nn.CrossEntropyLoss()
    local optimizer = optim.SGD(model:parameters(), { lr = 0.01, momentum = 0.9 })
    local mixed = { device = "cpu", dtype = tide.bfloat16, enabled = options.amp }
    bench.case(name, function()
        optimizer:zero_grad()
        local loss = tide.autocast(mixed, function() return criterion(model(x), y) end)
        loss:backward()
        optimizer:step()
    end)
end

for _, amp in ipairs { false, true } do
    local mark = amp and "_amp" or ""
    train("net_train" .. mark .. "_b8", digits, { 8, 1, 32, 32 }, { amp = amp })
    train("net_train" .. mark .. "_b64", digits, { 64, 1, 32, 32 }, { amp = amp })
    train("mlp_train" .. mark .. "_b64", perceptron, { 64, 784 }, { amp = amp })
    train("resnet18_cifar_train_b16" .. mark, resnet18, { 16, 3, 32, 32 }, { amp = amp })
    train("resnet18_cifar_train_b16" .. mark .. "_cl", resnet18, { 16, 3, 32, 32 },
        { amp = amp, memory_format = tide.channels_last })
end
