-- resnet.lua: ResNet-18, 50 and 101, with torchvision's names of parameters, so that its weights can be loaded.
--
--     tide notebooks/networks/resnet.lua [epochs]       trains a ResNet-18 on Fashion-MNIST (?tide.data.fashion_mnist)
--     resnet = dofile "notebooks/networks/resnet.lua"
--     net = resnet.new(50); net:load_state_dict(tide.load("resnet50.pth"))
--
-- «Deep Residual Learning for Image Recognition», He and others, 2015; the stride of a bottleneck is in its 3 by 3 convolution.
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

local function conv(from, to, size, stride)
    return nn.Conv2d(from, to, size, { stride = stride or 1, padding = size // 2, bias = false })
end

-- What stands beside a block whose shape changes.
local function shortcut(from, to, stride)
    if stride ~= 1 or from ~= to then
        return nn.Sequential(conv(from, to, 1, stride), nn.BatchNorm2d(to))
    end
end

local Basic = nn.class "BasicBlock"
local BASIC_GROWTH <const>, BOTTLENECK_GROWTH <const> = 1, 4

function Basic:init(from, width, stride)
    self.conv1 = conv(from, width, 3, stride)
    self.bn1 = nn.BatchNorm2d(width)
    self.relu = nn.ReLU()
    self.conv2 = conv(width, width, 3)
    self.bn2 = nn.BatchNorm2d(width)
    self.downsample = shortcut(from, width * BASIC_GROWTH, stride)
    self.sum = nn.quantized.FloatFunctional()
end

function Basic:forward(x)
    local y = self.relu(self.bn1(self.conv1(x)))
    y = self.bn2(self.conv2(y))
    return self.sum:add_relu(y, self.downsample and self.downsample(x) or x)
end

local Bottleneck = nn.class "Bottleneck"

function Bottleneck:init(from, width, stride)
    local to = width * BOTTLENECK_GROWTH
    self.conv1 = conv(from, width, 1)
    self.bn1 = nn.BatchNorm2d(width)
    self.relu1 = nn.ReLU()
    self.conv2 = conv(width, width, 3, stride)
    self.bn2 = nn.BatchNorm2d(width)
    self.relu2 = nn.ReLU()
    self.conv3 = conv(width, to, 1)
    self.bn3 = nn.BatchNorm2d(to)
    self.downsample = shortcut(from, to, stride)
    self.sum = nn.quantized.FloatFunctional()
end

function Bottleneck:forward(x)
    local y = self.relu1(self.bn1(self.conv1(x)))
    y = self.relu2(self.bn2(self.conv2(y)))
    y = self.bn3(self.conv3(y))
    return self.sum:add_relu(y, self.downsample and self.downsample(x) or x)
end

-- Of each depth: the kind of block, by how much its last convolution is wider, blocks of the four stages.
local KINDS <const> = {
    [18] = { Basic, BASIC_GROWTH, { 2, 2, 2, 2 } },
    [50] = { Bottleneck, BOTTLENECK_GROWTH, { 3, 4, 6, 3 } },
    [101] = { Bottleneck, BOTTLENECK_GROWTH, { 3, 4, 23, 3 } },
}

local ResNet = nn.class "ResNet"

function ResNet:init(depth, options)
    local block, growth, counts = table.unpack(KINDS[depth] or error(("ResNet-%s: there are 18, 50 and 101"):format(depth), 2))
    local width = options.width or 64
    self.small = options.small or false
    self.conv1 = nn.Conv2d(options.channels or 3, width, self.small and 3 or 7,
        { stride = self.small and 1 or 2, padding = self.small and 1 or 3, bias = false })
    self.bn1 = nn.BatchNorm2d(width)
    self.relu = nn.ReLU()
    self.quant, self.dequant = tide.quantization.QuantStub(), tide.quantization.DeQuantStub()
    local from = width
    for stage, count in ipairs(counts) do
        local to, blocks = width << (stage - 1), {}
        for k = 1, count do
            blocks[k] = block(from, to, (k == 1 and stage > 1) and 2 or 1)
            from = to * growth
        end
        self["layer" .. stage] = nn.Sequential(table.unpack(blocks))
    end
    self.fc = nn.Linear(from, options.classes or 1000)
    for _, layer in self:named_modules() do
        if nn.is(layer, nn.Conv2d) then
            nn.init.kaiming_normal_(layer.weight, { mode = "fan_out", nonlinearity = "relu" })
        end
    end
end

--- forward(x): scores of the classes, of images (n, channels, height, width).
function ResNet:forward(x)
    x = self.relu(self.bn1(self.conv1(self.quant(x))))
    if not self.small then
        x = F.max_pool2d(x, 3, { stride = 2, padding = 1 })
    end
    x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
    return self.dequant(self.fc(x:mean { 3, 4 }))
end

local resnet = {}

--- new(depth, {classes = 1000, channels = 3, width = 64, small = false}): a network of depth 18, 50 or 101 with random
--- weights; a small one begins with a 3 by 3 convolution and no pooling, for images of 32 by 32 and less.
function resnet.new(depth, options)
    return ResNet(depth, options or {})
end

-- What becomes one layer of bytes.
local JOINED <const> = {
    [Basic] = { { "conv1", "bn1", "relu" }, { "conv2", "bn2" } },
    [Bottleneck] = { { "conv1", "bn1", "relu1" }, { "conv2", "bn2", "relu2" }, { "conv3", "bn3" } },
    [ResNet] = { { "conv1", "bn1", "relu" } },
}

--- fused(net, training): a copy of a network in evaluation whose convolutions have their norms and ReLUs in them, for
--- tide.quantization.prepare; or (training) one for tide.quantization.prepare_qat.
function resnet.fused(net, training)
    local copy, parts = net:clone(), {}
    for _, module in copy:named_modules() do
        parts[#parts + 1] = module
    end
    for _, module in ipairs(parts) do
        local lists = JOINED[getmetatable(module)]
        local fuse = training and tide.quantization.fuse_modules_qat or tide.quantization.fuse_modules
        if lists then
            fuse(module, lists, true)
        end
    end
    return copy
end

--- train(net, x, labels, {steps, batch, rate, seed, autocast}): the losses of SGD with momentum on random batches.
function resnet.train(net, x, labels, options)
    local order = tide.Generator():manual_seed(options.seed or 0)
    local optimizer = tide.optim.SGD(net:parameters(), { lr = options.rate or 0.05, momentum = 0.9, weight_decay = 5e-4 })
    local losses = {}
    for step = 1, options.steps do
        local rows = tide.randint(1, #x + 1, { options.batch or 64 }, { generator = order })
        local function loss_of() return F.cross_entropy(net(x[rows]), labels[rows]) end
        local loss = options.autocast and tide.autocast(loss_of) or loss_of()
        optimizer:zero_grad()
        loss:backward()
        optimizer:step()
        losses[step] = loss:item()
    end
    return losses
end

--- accuracy(net, x, labels): the share of images whose class is the likeliest, in evaluation.
function resnet.accuracy(net, x, labels)
    local _ <close> = tide.no_grad()
    net:eval()
    local right = 0
    for first = 1, #x, 500 do
        local rows = { { first, math.min(first + 499, #x) } }
        right = right + net(x[rows]):argmax(2):eq(labels[rows]):sum():item()
    end
    net:train()
    return right / #x
end

if arg and arg[0] and arg[0]:find "resnet%.lua$" then
    local function images(train)
        local data = tide.data.fashion_mnist { train = train }
        return (data.data:float():view(-1, 1, 28, 28) / 255 - 0.2860) / 0.3530, data.targets
    end
    tide.manual_seed(0)
    local x, labels = images(true)
    local net = resnet.new(18, { classes = 10, channels = 1, width = 16, small = true })
    for epoch = 1, tonumber(arg[1] or 1) do
        local losses = resnet.train(net, x, labels, { steps = #x // 64, seed = epoch })
        print(("epoch %d: loss %.4f"):format(epoch, losses[#losses]))
    end
    local test, truth = images(false)
    print(("test accuracy %.4f"):format(resnet.accuracy(net, test, truth)))
end

return resnet
