-- test_networks.lua: the reference networks of notebooks/networks: what PyTorch's own make of the same parameters, what they promise
-- (an inverse, a volume, a cache that changes nothing), and that each learns, twice to the same bits.
local t = require "harness"
local source = os.getenv "TIDE_SOURCE"
local golden = dofile(source .. "/tests/models/golden_networks.lua")
local pytorch_name = dofile(source .. "/tests/models/pytorch_names.lua")
local F = tide.nn.functional

local function network(name) return dofile(source .. "/notebooks/networks/" .. name .. ".lua") end

local digits = dofile(source .. "/notebooks/data/digits.lua") { seed = 0 }
local images = F.interpolate(digits.train_x, { size = { 8, 8 } })

-- ---- PyTorch's ----

-- As golden_networks.py makes it.
local function wave(shape, phase)
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    return (tide.arange(n, { dtype = tide.float64 }) * 0.7 + phase):sin():view(shape)
end

local function fill(net)
    local names, state = {}, {}
    for name, x in pairs(net:state_dict()) do
        if not name:find "num_batches_tracked$" then
            state[pytorch_name(name)] = x
            names[#names + 1] = pytorch_name(name)
        end
    end
    table.sort(names)
    for phase, name in ipairs(names) do
        local x = state[name]
        local y = wave({ x.shape:unpack() }, phase - 1)
        if x:dim() >= 2 then
            y = y * math.sqrt(#x / x:numel())
        elseif name:find "weight$" or name:find "running_var$" then
            y = y * 0.1 + 1
        else
            y = y * 0.1
        end
        tide.no_grad(function() x:copy_(y) end)
    end
    return net:eval()
end

-- How far apart, in shares of the largest.
local function off(x, list)
    local truth = tide.tensor(list, { dtype = tide.float64 })
    t.eq(x:numel(), #list)
    return ((x:double():flatten() - truth):abs():max() / truth:abs():max()):item()
end

t.test("resnets_are_torchvisions", function()
    local _ <close> = tide.no_grad()
    local x = wave({ 2, 3, 64, 64 }, 0):float()
    for depth, count in pairs { [18] = 11689512, [50] = 25557032, [101] = 44549160 } do
        local net, n = network("resnet").new(depth), 0
        for _, p in ipairs(net:parameters()) do
            n = n + p:numel()
        end
        t.eq(n, count)
        if golden["resnet" .. depth] then
            t.is_true(off(fill(net)(x)[":, ::100"], golden["resnet" .. depth]) < 2e-5, depth)
        end
    end
    t.error_has(function() network("resnet").new(34) end, "ResNet-34: there are 18, 50 and 101")
end)

t.test("gpt_is_gpt2", function()
    local _ <close> = tide.no_grad()
    local net = fill(network("gpt").new { tokens = 50, context = 32, width = 48, heads = 4, layers = 3 })
    local tokens = tide.arange(24):view(2, 12) * 7 % 50 + 1
    local scores = net(tokens)
    t.is_true(off(scores[":, ::5, ::10"], golden.gpt) < 1e-5)
    local cache = {} -- part by part it knows the same
    local parts = { net(tokens[":, 1:5"], cache), net(tokens[":, 6:6"], cache), net(tokens[":, 7:12"], cache) }
    t.is_true((tide.cat(parts, 2) - scores):abs():max():item() < 1e-5)
    t.error_has(function() net(tide.ones(1, 33, { dtype = tide.int64 })) end, "33 tokens are more than the 32")
    local likeliest = net:generate({ 3, 1, 4 }, 40, { temperature = 0 }) -- more than the context holds
    t.eq(#likeliest, 40)
    t.eq(net:generate({ 3, 1, 4 }, 40, { top_k = 1 }), likeliest)
    local function drawn() return net:generate({ 3, 1, 4 }, 10, { generator = tide.Generator():manual_seed(5) }) end
    t.eq(drawn(), drawn())
end)

t.test("tacotron2_is_torchaudios", function()
    local _ <close> = tide.no_grad()
    local net = fill(network("tacotron2").new { letters = 20, bands = 10, encoder = 16, attention_rnn = 24, decoder_rnn = 24,
        attention_hidden = 12, location_filters = 4, location_size = 7, prenet = 12, prenet_dropout = 0, postnet = 16, postnet_layers = 4 })
    local letters = tide.arange(14):view(2, 7) * 3 % 20 + 1
    local made, better, gates, weights = net(letters, tide.tensor { 7, 5 }, wave({ 2, 10, 9 }, 1):float(), tide.tensor { 9, 6 })
    t.is_true(off(made[":, ::3, ::2"], golden.made) < 1e-5)
    t.is_true(off(better[":, ::3, ::2"], golden.better) < 1e-5)
    t.is_true(off(gates, golden.gates) < 1e-6)
    t.is_true(off(weights[":, ::4"], golden.weights) < 1e-5)
    t.error_has(function() network("tacotron2").new { size = 3 } end, "no option 'size'")
end)

-- ---- promises ----

t.test("waveglow_can_be_turned_round_and_knows_its_volume", function()
    tide.manual_seed(0)
    local net = network("waveglow").new { bands = 6, hop = 16, window = 64, steps = 6, width = 12, layers = 3 }
    for _, one in ipairs(net.nets) do
        tide.nn.init.normal_(one.finish.weight, { std = 0.1 })
    end
    local sound, spectrum = tide.randn(2, 160), tide.randn(2, 6, 8)
    local noise = net(sound, spectrum)
    t.is_true((net:inverse(noise:detach(), spectrum) - sound):abs():max():item() < 1e-5)
    t.is_true((noise:detach():transpose(2, 3):flatten(2) - sound):abs():max():item() > 0.1) -- it does something
    net = net:double()
    local one, its = sound["1:1, 1:32"]:double(), spectrum["1:1"]:double()
    local jacobian = tide.autograd.functional.jacobian(function(x) return (net(x, its)) end, one)
    local _, truth = tide.linalg.slogdet(jacobian:reshape(32, 32))
    local _, volume = net(one, its)
    t.close(volume:item(), truth:item(), 1e-9)
    t.error_has(function() net(tide.zeros(1, 4000):double(), its) end, "4000 samples of sound are more than")
end)

-- ---- learning ----

-- Loss before and after, in `run`, which seeds itself and returns losses; the same again.
local function learns(run, share)
    tide.manual_seed(3)
    local first = run()
    t.is_true(first[#first] < first[1] * share, ("%g after %g"):format(first[#first], first[1]))
    tide.manual_seed(3)
    t.eq(run(), first)
end

t.test("resnet_learns_digits_in_float32_and_in_bfloat16", function()
    local resnet = network "resnet"
    for _, autocast in ipairs { false, true } do
        learns(function()
            local net = resnet.new(18, { classes = 10, channels = 1, width = 8, small = true })
            return resnet.train(net, images, digits.train_y, { steps = 20, batch = 32, autocast = autocast })
        end, 0.7)
    end
end)

local text = ("the tide comes in, the tide goes out, and the moon looks on. "):rep(20)

t.test("language_models_learn_a_text", function()
    local gpt, rnn = network "gpt", network "rnn"
    local tokens, names, found = network("text").letters(text)
    t.eq(names[found.t], "t")
    learns(function()
        local net = gpt.new { tokens = #names, context = 32, width = 32, heads = 2, layers = 2 }
        return gpt.train(net, tokens, { steps = 25, length = 24, rate = 5e-3 })
    end, 0.6)
    for _, kind in ipairs { "LSTM", "GRU" } do
        learns(function()
            return rnn.train_letters(rnn.letters(#names, 32, 1, kind), tokens, { steps = 25, batch = 4, length = 24, rate = 2e-2 })
        end, 0.6)
    end
end)

t.test("the_rnn_of_the_talks_adds_what_it_reads", function()
    learns(function()
        local net = network("rnn").tanh(1, 16, 1)
        local optimizer, losses = tide.optim.Adam(net:parameters(), { lr = 1e-2 }), {}
        for step = 1, 60 do
            local x = tide.rand(16, 6, 1) * 0.3
            local loss = F.mse_loss((net(x)), x:cumsum(2))
            optimizer:zero_grad()
            loss:backward()
            optimizer:step()
            losses[step] = loss:item()
        end
        return losses
    end, 0.2)
end)

t.test("waveglow_and_tacotron2_learn_in_mixed_precision", function()
    local waveglow, tacotron2 = network "waveglow", network "tacotron2"
    local sound = (tide.arange(2 * 160, { dtype = tide.float32 }):view(2, 160) * 0.2):sin() * 0.5
    local spectrum = tide.ones(2, 4, 8)
    local function train(net, steps, rate, loss_of)
        local optimizer, scaler, losses = tide.optim.Adam(net:parameters(), { lr = rate }), tide.amp.GradScaler(), {}
        for step = 1, steps do
            optimizer:zero_grad()
            local loss = tide.autocast(function() return loss_of(net) end)
            scaler:scale(loss):backward()
            scaler:step(optimizer)
            scaler:update()
            losses[step] = loss:item()
        end
        return losses
    end
    learns(function()
        return train(waveglow.new { bands = 4, hop = 16, window = 64, steps = 4, width = 8, layers = 2 }, 25, 1e-2,
            function(net) return waveglow.loss(net(sound, spectrum)) end)
    end, 0.5)
    local letters, lengths, frames = tide.tensor { { 1, 2, 3, 4 }, { 4, 3, 2, 1 } }, tide.tensor { 4, 4 }, tide.tensor { 8, 6 }
    local truth = (tide.arange(2 * 4 * 8, { dtype = tide.float32 }):view(2, 4, 8) * 0.3):sin()
    learns(function()
        local net = tacotron2.new { letters = 4, bands = 4, encoder = 16, encoder_layers = 1, attention_rnn = 16, decoder_rnn = 16,
            attention_hidden = 8, location_filters = 4, location_size = 3, prenet = 8, prenet_dropout = 0, postnet = 8, postnet_layers = 2 }
        return train(net, 30, 1e-2, function() return tacotron2.loss(truth, frames, net(letters, lengths, truth, frames)) end)
    end, 0.8)
end)

t.test("an_autoencoder_and_a_diffusion_model_learn_digits", function()
    local vae, diffusion = network "vae", network "diffusion"
    learns(function() return vae.train(vae.new(64, 64, 2), images:flatten(2), { epochs = 3 }) end, 0.85)
    learns(function()
        local net = diffusion.new(1, 8)
        local losses = diffusion.train(net, images * 2 - 1, { steps = 40, batch = 32 })
        t.is_true(diffusion.sample(net, { 2, 1, 8, 8 }, { steps = 3 }):abs():max():item() <= 1)
        return losses
    end, 0.6)
end)

t.test("a_pole_stays_up_longer_by_and_by", function()
    local dqn = network "dqn"
    local cart = dqn.cart(1)
    local state = cart:reset()
    t.eq(#state, 4)
    local fell
    repeat
        _, fell = cart:step(1) -- pushed one way alone it falls at once
    until fell
    t.is_true(cart.steps < 15)
    local function mean(list, first, last)
        local sum = 0
        for k = first, last do
            sum = sum + list[k]
        end
        return sum / (last - first + 1)
    end
    local _, lengths = dqn.train { episodes = 60 }
    t.is_true(mean(lengths, 41, 60) > 2 * mean(lengths, 1, 20), table.concat(lengths, " "))
end)

t.finish()
