-- diffusion.lua: digits out of noise: a network learns to name the noise in an image, and takes it away step by step.
--
--     tide notebooks/networks/diffusion.lua [steps]
--
-- «Denoising Diffusion Probabilistic Models», Ho, Jain and Abbeel, 2020, with a cosine schedule (Nichol and Dhariwal, 2021).
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

-- ---- the network: two scales, and a shortcut between them ----

local Block = nn.class "Block"

function Block:init(from, to, time)
    self.first = nn.Conv2d(from, to, 3, { padding = 1 })
    self.norm = nn.GroupNorm(4, to)
    self.time = nn.Linear(time, to)
    self.second = nn.Conv2d(to, to, 3, { padding = 1 })
    self.beside = from ~= to and nn.Conv2d(from, to, 1) or nn.Identity()
end

function Block:forward(x, time)
    local y = F.silu(self.norm(self.first(x))) + self.time(time):unsqueeze(3):unsqueeze(4)
    return F.silu(self.second(y)) + self.beside(x)
end

local Net = nn.class "DenoisingNet"

function Net:init(channels, width)
    self.waves = width
    self.time = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.SiLU())
    self.down = Block(channels, width, 2 * width)
    self.middle = Block(width, 2 * width, 2 * width)
    self.up = Block(3 * width, width, 2 * width)
    self.out = nn.Conv2d(width, channels, 1)
end

--- forward(x, t): the noise in images (n, channels, height, width) at times (n) from 0 to 1.
function Net:forward(x, t)
    local angles = t:unsqueeze(2) * tide.linspace(0, math.log(1000), self.waves, { device = t.device }):exp()
    local time = self.time(tide.cat({ angles:sin(), angles:cos() }, 2))
    local large = self.down(x, time)
    local small = self.middle(F.avg_pool2d(large, 2), time)
    return self.out(self.up(tide.cat({ large, F.interpolate(small, { scale_factor = 2 }) }, 2), time))
end

local diffusion = {}

--- new(channels, width): a network with random weights.
function diffusion.new(channels, width)
    return Net(channels, width)
end

-- The share of an image's variance that is still the image's at time t, a tensor from 0 to 1.
local function kept(t)
    return ((t + 0.008) * (math.pi / 2 / 1.008)):cos():pow(2):clamp(1e-4, 0.9999)
end

--- train(net, x, {steps, batch, rate, seed}): the losses of Adam on images (n, channels, height, width) around 0.
function diffusion.train(net, x, options)
    local draw = { generator = tide.Generator():manual_seed(options.seed or 0) }
    local optimizer = tide.optim.Adam(net:parameters(), { lr = options.rate or 2e-3 })
    local batch, losses = options.batch or 64, {}
    for step = 1, options.steps do
        local image = x[tide.randint(1, #x + 1, { batch }, draw)]
        local t, noise = tide.rand(batch, draw), tide.randn(image.shape, draw)
        local share = kept(t):view(-1, 1, 1, 1)
        local loss = F.mse_loss(net(image * share:sqrt() + noise * (1 - share):sqrt(), t), noise)
        optimizer:zero_grad()
        loss:backward()
        optimizer:step()
        losses[step] = loss:item()
    end
    return losses
end

--- sample(net, shape, {steps = 50, seed}): images out of noise, without further noise on the way (DDIM).
function diffusion.sample(net, shape, options)
    local _ <close> = tide.no_grad()
    local steps = options.steps or 50
    local x = tide.randn(shape, { generator = tide.Generator():manual_seed(options.seed or 0) })
    for k = steps, 1, -1 do
        local share, after = kept(tide.tensor { k / steps }), kept(tide.tensor { (k - 1) / steps })
        local noise = net(x, tide.full({ shape[1] }, k / steps))
        local image = ((x - noise * (1 - share):sqrt()) / share:sqrt()):clamp(-1, 1)
        x = image * after:sqrt() + noise * (1 - after):sqrt()
    end
    return x:clamp(-1, 1)
end

if arg and arg[0] and arg[0]:find "diffusion%.lua$" then
    tide.manual_seed(0)
    local digits = dofile((arg[0]:gsub("networks/diffusion%.lua$", "data/digits.lua"))) { seed = 0 }
    local x = F.interpolate(digits.train_x, { size = { 8, 8 } }) * 2 - 1
    local net = diffusion.new(1, 32)
    local losses = diffusion.train(net, x, { steps = tonumber(arg[1] or 1500) })
    print(("loss %.4f"):format(losses[#losses]))
    print(tide.plot.image((diffusion.sample(net, { 24, 1, 8, 8 }, {}) + 1) / 2, { nrow = 8 }))
end

return diffusion
