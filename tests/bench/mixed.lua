-- mixed.lua: training steps in float32 and under bfloat16 autocast: a small convolutional network, a perceptron and
-- ResNet-18, row-major and with channels last; besides, a loop of 100 steps of a recurrent net and a layer of a
-- transformer. One thread; mixed.py has the same in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local models = loadfile(here .. "models.lua")(bench)

-- How far the losses of three steps may be apart: under autocast a product has 8 bits.
local EXACT, ROUGH = 1e-3, 3e-2

local function train(name, model, shape, options)
    bench.made(name, function()
        local net = models.fill(model())
        shape[1] = bench.size(shape[1], 4)
        local x, y = bench.uniform(shape), bench.ints({ shape[1] }, 1, 11)
        if options.memory_format then
            net:to { memory_format = options.memory_format }
            x = x:to { memory_format = options.memory_format }
        end
        local step = models.step(net, x, y, options.amp and { device = "cpu", dtype = tide.bfloat16 } or nil)
        return step, function() return models.three(step) end
    end, { threads = 1, tolerance = options.amp and ROUGH or EXACT })
end

for _, amp in ipairs { false, true } do
    local mark = amp and "_amp" or ""
    train("net_train" .. mark .. "_b8", models.net, { 8, 1, 28, 28 }, { amp = amp })
    train("net_train" .. mark .. "_b64", models.net, { 64, 1, 28, 28 }, { amp = amp })
    train("mlp_train" .. mark .. "_b64", models.perceptron, { 64, 784 }, { amp = amp })
    train("resnet18_cifar_train_b16" .. mark, models.resnet18, { 16, 3, 32, 32 }, { amp = amp })
    train("resnet18_cifar_train_b16" .. mark .. "_cl", models.resnet18, { 16, 3, 32, 32 },
        { amp = amp, memory_format = tide.channels_last })
end

-- h = tanh(x[t] u + h w) for 100 steps in a batch of 8, 64 wide, the square of the last h as loss, and gradient descent.
bench.made("rnn_loop100_h64_b8_train", function()
    local steps = bench.size(100)
    local x, u = bench.uniform { steps, 8, 64 }, bench.uniform({ 64, 64 }, -0.2, 0.2):requires_grad_()
    local w, start = bench.uniform({ 64, 64 }, -0.2, 0.2):requires_grad_(), tide.zeros(8, 64)
    local optimizer = tide.optim.SGD({ u, w }, { lr = 0.01 })
    local function step()
        optimizer:zero_grad()
        local h = start
        for t = 1, steps do
            h = (x[t]:mm(u) + h:mm(w)):tanh()
        end
        local loss = (h * h):mean()
        loss:backward()
        optimizer:step()
        return loss
    end
    return step, function() return models.three(step) end
end, { threads = 1, tolerance = EXACT })

-- A layer of 4 heads and a feed-forward net of 512, over 8 sequences of 64 places; the mean square as loss.
bench.made("transformer_block_train_d128_s64_b8", function()
    local layer = models.fill(tide.nn.TransformerEncoderLayer(128, 4, 512, { dropout = 0, batch_first = true }))
    local x, target = bench.uniform { bench.size(8, 2), 64, 128 }, bench.uniform { bench.size(8, 2), 64, 128 }
    local optimizer = tide.optim.SGD(layer:parameters(), { lr = 0.01, momentum = 0.9 })
    local criterion = tide.nn.MSELoss()
    local function step()
        optimizer:zero_grad()
        local loss = criterion(layer(x), target)
        loss:backward()
        optimizer:step()
        return loss
    end
    return step, function() return models.three(step) end
end, { threads = 1, tolerance = EXACT })
