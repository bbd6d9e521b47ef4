-- models.lua: the networks and the lists of tensors that several benchmarks train: the digits network, a convolutional
-- network for images of 28 x 28, a perceptron, ResNet-18, ResNet-50, a layer of a transformer, and a training step of
-- them. models.py has the same in PyTorch.
local bench = ...
local nn, optim = tide.nn, tide.optim
local models = {}

-- ---- networks ----

-- The network of notebooks/digits.lua, for images of 32 x 32.
function models.digits()
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(576, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
end

-- For images of 28 x 28.
function models.net()
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, { padding = 1 }), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, 10))
end

function models.perceptron()
    return nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
end

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

-- For images of 32 x 32.
function models.resnet18()
    local into = bench.size(64, 8)
    local layers = { nn.Conv2d(3, into, 3, { padding = 1, bias = false }), nn.BatchNorm2d(into), nn.ReLU() }
    for stage, out in ipairs { into, 2 * into, 4 * into, 8 * into } do
        layers[#layers + 1] = Block(into, out, stage == 1 and 1 or 2)
        layers[#layers + 1] = Block(out, out, 1)
        into = out
    end
    layers[#layers + 1] = nn.AdaptiveAvgPool2d(1)
    layers[#layers + 1] = nn.Flatten()
    layers[#layers + 1] = nn.Linear(into, 10)
    return nn.Sequential(table.unpack(layers))
end

-- ResNet-50's stages: how many blocks each has.
local STAGES = bench.tiny and { 1 } or { 3, 4, 6, 3 }

local Bottleneck = nn.class("Bottleneck")

function Bottleneck:init(into, width, stride)
    self.conv1 = nn.Conv2d(into, width, 1, { bias = false })
    self.bn1 = nn.BatchNorm2d(width)
    self.conv2 = nn.Conv2d(width, width, 3, { stride = stride, padding = 1, bias = false })
    self.bn2 = nn.BatchNorm2d(width)
    self.conv3 = nn.Conv2d(width, 4 * width, 1, { bias = false })
    self.bn3 = nn.BatchNorm2d(4 * width)
    if stride ~= 1 or into ~= 4 * width then
        self.down = nn.Sequential(nn.Conv2d(into, 4 * width, 1, { stride = stride, bias = false }), nn.BatchNorm2d(4 * width))
    end
end

function Bottleneck:forward(x)
    local y = self.bn1(self.conv1(x)):relu()
    y = self.bn3(self.conv3(self.bn2(self.conv2(y)):relu()))
    return (y + (self.down and self.down(x) or x)):relu()
end

function models.resnet50()
    local layers = { nn.Conv2d(3, 64, 7, { stride = 2, padding = 3, bias = false }), nn.BatchNorm2d(64), nn.ReLU(),
        nn.MaxPool2d(3, { stride = 2, padding = 1 }) }
    local into = 64
    for stage, blocks in ipairs(STAGES) do
        local width = 64 << (stage - 1)
        for block = 1, blocks do
            layers[#layers + 1] = Bottleneck(into, width, block == 1 and stage > 1 and 2 or 1)
            into = 4 * width
        end
    end
    layers[#layers + 1] = nn.AdaptiveAvgPool2d(1)
    layers[#layers + 1] = nn.Flatten()
    layers[#layers + 1] = nn.Linear(into, 1000)
    return nn.Sequential(table.unpack(layers))
end

-- ---- lists of tensors ----

-- ResNet-50's parameters: every convolution has a normalisation behind it.
function models.resnet50_shapes()
    local shapes = {}
    local function conv(out, into, k)
        shapes[#shapes + 1] = { out, into, k, k }
        shapes[#shapes + 1], shapes[#shapes + 2] = { out }, { out }
    end
    conv(64, 3, 7)
    local into = 64
    for stage, blocks in ipairs(STAGES) do
        local width = 64 << (stage - 1)
        for block = 1, blocks do
            conv(width, into, 1)
            conv(width, width, 3)
            conv(4 * width, width, 1)
            if block == 1 then
                conv(4 * width, into, 1)
            end
            into = 4 * width
        end
    end
    shapes[#shapes + 1], shapes[#shapes + 2] = { 1000, into }, { 1000 }
    return shapes
end

-- n vectors of 1,000.
function models.equal_shapes(n)
    local shapes = {}
    for k = 1, bench.size(n) do
        shapes[k] = { 1000 }
    end
    return shapes
end

function models.tensors(shapes, make)
    local list = {}
    for k, shape in ipairs(shapes) do
        list[k] = make(shape)
    end
    return list
end

-- Leaves with gradients, on a device where one is given.
function models.parameters(shapes, device)
    return models.tensors(shapes, function(shape)
        local p = bench.uniform(shape):to(device or "cpu"):requires_grad_()
        p.grad = bench.uniform(shape):to(device or "cpu")
        return p
    end)
end

-- ---- training ----

-- The same parameters as in PyTorch: weights that keep the size of what passes, ones for a normalisation, no biases.
function models.fill(model)
    local _ <close> = tide.no_grad()
    for name, p in model:named_parameters() do
        if p:dim() > 1 then
            local bound = (3 * p.shape[1] / p:numel()) ^ 0.5
            p:copy_(bench.uniform(p.shape, -bound, bound))
        else
            p:fill_(name:find "bias$" and 0 or 1)
        end
    end
    return model
end

-- A training step over one batch: SGD with momentum; `mixed` is what autocast is given, nil: none. It returns the loss.
function models.step(model, x, y, mixed)
    local criterion = nn.CrossEntropyLoss()
    local optimizer = optim.SGD(model:parameters(), { lr = 0.01, momentum = 0.9 })
    return function()
        optimizer:zero_grad()
        local loss = mixed and tide.autocast(mixed, function() return criterion(model(x), y) end) or criterion(model(x), y)
        loss:backward()
        optimizer:step()
        return loss
    end
end

-- What three steps return, for comparing.
function models.three(step)
    local function value() return step():detach():to(tide.float32) end
    return { value(), value(), value() }
end

return models
