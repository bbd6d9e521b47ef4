-- vae.lua: a variational autoencoder of handwritten digits: images as points of a plane, and points as images.
--
--     tide notebooks/networks/vae.lua [epochs]
--
-- «Auto-Encoding Variational Bayes», Kingma and Welling, 2013.
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

local Vae = nn.class "Vae"

function Vae:init(pixels, width, points)
    self.first, self.mean, self.spread = nn.Linear(pixels, width), nil, nil
    self.mean = nn.Linear(width, points)
    self.spread = nn.Linear(width, points)
    self.back = nn.Linear(points, width)
    self.last = nn.Linear(width, pixels)
end

--- decode(z): scores of pixels, whose sigmoid is their brightness, of points (n, points).
function Vae:decode(z)
    return self.last(F.relu(self.back(z)))
end

--- forward(x): scores of pixels, and mean and logarithm of the variance of the points, of images (n, pixels) from 0 to 1.
function Vae:forward(x)
    local h = F.relu(self.first(x))
    local mean, logarithm = self.mean(h), self.spread(h)
    return self:decode(mean + tide.randn_like(mean) * (logarithm / 2):exp()), mean, logarithm
end

local vae = {}

--- new(pixels, width, points): a network with random weights.
function vae.new(pixels, width, points)
    return Vae(pixels, width, points)
end

--- loss(x, scores, mean, logarithm): for an image, what its pixels and its point cost (the evidence's lower bound, negative).
function vae.loss(x, scores, mean, logarithm)
    local pixels = F.binary_cross_entropy_with_logits(scores, x, { reduction = "sum" })
    local point = (mean:pow(2) + logarithm:exp() - 1 - logarithm):sum() / 2
    return (pixels + point) / #x
end

--- train(net, x, {epochs, batch, rate}): the mean loss of each epoch.
function vae.train(net, x, options)
    local optimizer = tide.optim.Adam(net:parameters(), { lr = options.rate or 2e-3 })
    local loader = tide.data.DataLoader(tide.data.TensorDataset(x), { batch_size = options.batch or 64, shuffle = true, drop_last = true })
    local losses = {}
    for epoch = 1, options.epochs do
        local total = 0
        for batch in loader do
            local loss = vae.loss(batch, net(batch))
            optimizer:zero_grad()
            loss:backward()
            optimizer:step()
            total = total + loss:item()
        end
        losses[epoch] = total / #loader
    end
    return losses
end

if arg and arg[0] and arg[0]:find "vae%.lua$" then
    tide.manual_seed(0)
    local digits = dofile((arg[0]:gsub("networks/vae%.lua$", "data/digits.lua"))) { seed = 0 }
    local x = F.interpolate(digits.train_x, { size = { 8, 8 } }):flatten(2)
    local net = vae.new(64, 256, 2)
    for epoch, loss in ipairs(vae.train(net, x, { epochs = tonumber(arg[1] or 20) })) do
        print(("epoch %d: loss %.3f"):format(epoch, loss))
    end
    local line = tide.linspace(-2, 2, 8)
    local plane = tide.cartesian_prod { line, line }
    print(tide.plot.image(net:decode(plane):sigmoid():detach():view(-1, 1, 8, 8), { nrow = 8 }))
end

return vae
