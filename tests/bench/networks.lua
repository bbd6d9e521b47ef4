-- networks.lua: the reference networks of notebooks/networks in every way that they can run: `NETWORK train WAY` is a step of training,
-- `NETWORK run WAY` a call without gradients, `NETWORK learn WAY` what the network scores on data that it has not seen after STEPS steps
-- on real data. Ways: f32, amp (bfloat16), channels_last, amp+channels_last, scripted, int8 (a network of floats made one of bytes;
-- static where it is one of convolutions, else dynamic). networks.py has the same networks in PyTorch, networks_table.py puts both
-- into one table. With TIDE_BENCH_DATA, a folder, `learn` writes there what it learns from and the weights that it begins with, from
-- which networks.py begins too. TIDE_BENCH_DEVICE (cpu): the device of steps of training and calls; a time is until it is done.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local pytorch_name = dofile(here .. "../models/pytorch_names.lua")
local root = here .. "../../notebooks/networks/"
local folder, device = os.getenv "TIDE_BENCH_DATA", os.getenv "TIDE_BENCH_DEVICE" or "cpu"
local nn, F = tide.nn, tide.nn.functional
local size = bench.size

local function network(name) return dofile(root .. name .. ".lua") end

-- ---- real data: {inputs, target} of `many` examples ----

local read = {} -- Fashion-MNIST, by whether it is for training

-- Images of clothes (many, 28, 28) from 0 to 1, and their kinds.
local function clothes(many, train)
    local data = read[train] or tide.data.fashion_mnist { train = train }
    read[train] = data
    return data.data[{ { 1, many } }]:view(-1, 28, 28):float() / 255, data.targets[{ { 1, many } }]
end

local function clothes_for(channels)
    return function(many, train)
        local x, labels = clothes(many, train)
        x = F.pad((x:unsqueeze(2) - 0.286) / 0.353, { 2, 2, 2, 2 })
        return { x:expand(-1, channels, -1, -1):contiguous() }, labels
    end
end

-- Lines of images, and of each the next.
local function lines_of_clothes(many, train)
    local x = clothes(many, train)
    return { x[":, :-2"]:contiguous() }, x[":, 2:"]:contiguous()
end

-- Stretches of 64 letters of a license, and of each the next; the last tenth of the text is kept for the score.
local function license(many, train)
    local file = assert(io.open "/usr/share/common-licenses/GPL-3")
    local tokens = network("text").letters(file:read("a"):lower())
    file:close()
    local first, last = 1, #tokens * 9 // 10
    if not train then
        first, last = last + 1, #tokens
    end
    local starts = first + tide.arange(many) * 7919 % (last - first - 64)
    local rows = tokens[starts:unsqueeze(2) + tide.arange(65)]
    return { rows[":, :-2"]:contiguous() }, rows[":, 2:"]:contiguous()
end

-- Small images with noise of a strength each, and the noise.
local function noisy_clothes(many, train)
    local x = F.pad(F.avg_pool2d(clothes(many, train):unsqueeze(2), 2) * 2 - 1, { 1, 1, 1, 1 }, { value = -1 })
    local t, noise = bench.uniform({ many }, 0, 1), tide.randn(x.shape, { generator = tide.Generator():manual_seed(train and 1 or 2) })
    local share = ((t * math.pi / 2):cos() ^ 2):clamp(1e-4, 0.9999):view(-1, 1, 1, 1)
    return { x * share:sqrt() + noise * (1 - share):sqrt(), t }, noise
end

local function rights(labels, y) return 100 * y:argmax(2):eq(labels):float():mean() end
local RIGHT <const>, BITS <const> = "% right", "bits a letter"

-- ---- networks: a module, its inputs, the target and the loss of it and what the module returns; what it learns from, and its score ----

local function classes(labels, y) return F.cross_entropy(y, labels) end

-- The network of PyTorch's first tutorial, for images of 32 by 32.
local function tutorial()
    local net = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    local n = size(32, 4)
    return { net = net, inputs = { bench.uniform { n, 3, 32, 32 } }, target = bench.ints({ n }, 0, 10) + 1, images = true, loss = classes,
        data = clothes_for(3), score = rights, unit = RIGHT, steps = 600, rate = 0.02 }
end

local function resnet(depth, batch, pixels, options)
    return function()
        local n, side = size(batch, 2), size(pixels, 32)
        local made = network "resnet"
        options.width = bench.tiny and 8 or nil
        return { net = made.new(depth, options), inputs = { bench.uniform { n, 3, side, side } }, target = bench.ints({ n }, 0, options.classes) + 1,
            images = true, fuse = made.fused, loss = classes, data = options.small and clothes_for(3), score = rights, unit = RIGHT, steps = 150, rate = 0.02 }
    end
end

local function tanh_rnn(learns)
    local made, n, length = network "rnn", size(16, 2), size(32, 4)
    local net = learns and made.tanh(28, 128, 28) or made.tanh(64, 128, 16)
    return { net = net, inputs = { bench.uniform { n, length, 64 } }, target = bench.uniform { n, length, 16 },
        loss = function(wanted, y) return F.mse_loss(y, wanted) end, data = lines_of_clothes, unit = "squared error", steps = 400, rate = 0.05 }
end

-- Of tokens (n, length) and their scores (n, length, tokens).
local function letter_loss(tokens, y) return F.cross_entropy(y:flatten(1, 2), tokens:flatten()) end
local function letter_bits(tokens, y) return letter_loss(tokens, y) / math.log(2) end

local function language(make, batch, steps, rate)
    return function()
        local tokens = bench.ints({ size(batch, 2), size(64, 4) + 1 }, 0, 65) + 1
        return { net = make(), inputs = { tokens[":, :-2"]:contiguous() }, target = tokens[":, 2:"]:contiguous(), loss = letter_loss, data = license,
            score = letter_bits, unit = BITS, steps = steps, rate = rate }
    end
end

local function vae()
    local made, x = network "vae", bench.uniform({ size(64, 2), 784 }, 0, 1)
    return { net = made.new(784, 256, 16), inputs = { x }, target = x, unit = "nats", steps = 400, rate = 0.02,
        loss = made.loss,
        data = function(many, train)
            local images = clothes(many, train):flatten(2)
            return { images }, images
        end }
end

local function diffusion()
    local x, t = bench.uniform { size(16, 2), 1, 16, 16 }, bench.uniform({ size(16, 2) }, 0, 1)
    return { net = network("diffusion").new(1, 32), inputs = { x, t }, target = x, images = true, data = noisy_clothes, unit = "squared error",
        loss = function(noise, y) return F.mse_loss(y, noise) end, steps = 300, rate = 0.05 }
end

local function tacotron2()
    local made, n, length = network "tacotron2", size(4, 2), size(40, 6)
    local text, truth = bench.ints({ n, size(20, 4) }, 0, 40) + 1, bench.uniform { n, 80, length }
    local frames = tide.full({ n }, length, { dtype = tide.int64 })
    return { net = made.new { letters = 40, encoder = 128, attention_rnn = 256, decoder_rnn = 256, prenet = 64, postnet = 128 },
        inputs = { text, tide.full({ n }, text:size(2), { dtype = tide.int64 }), truth, frames }, target = truth,
        loss = function(wanted, before, after, gates) return made.loss(wanted, frames:to(wanted.device), before, after, gates) end }
end

local function waveglow()
    local made, n, frames = network "waveglow", size(2, 1), size(16, 4)
    return { net = made.new { steps = size(6, 2), width = size(64, 8), layers = size(4, 2) },
        inputs = { bench.uniform { n, frames * 256 }, bench.uniform { n, 80, frames } }, target = tide.zeros(1), loss = function(_, noise, volume) return made.loss(noise, volume) end }
end

-- What a step of Q-learning asks of the network: the worth of actions that were taken.
local function dqn()
    local n = 64
    local actions = bench.ints({ n, 1 }, 0, 2) + 1
    return { net = network("dqn").network(), inputs = { bench.uniform { n, 4 } }, target = bench.uniform { n },
        loss = function(worth, y) return F.smooth_l1_loss(y:gather(2, actions:to(y.device)):squeeze(2), worth) end }
end

local function letters() return network("rnn").letters(65, 128, 2) end
local function gru_letters() return network("rnn").letters(65, 128, 2, "GRU") end
local function gpt() return network("gpt").new { tokens = 65, width = 128, heads = 4, layers = 4, context = 64 } end

local NETWORKS <const> = {
    { "tutorial", tutorial }, { "resnet18", resnet(18, 8, 32, { classes = 10, small = true }) }, { "resnet50", resnet(50, 4, 96, { classes = 1000 }) },
    { "resnet101", resnet(101, 2, 96, { classes = 1000 }) }, { "tanh_rnn", tanh_rnn }, { "letters", language(letters, 16, 300, 1) },
    { "gru_letters", language(gru_letters, 16, 300, 1) },
    { "gpt", language(gpt, 8, 300, 0.3) }, { "vae", vae }, { "diffusion", diffusion }, { "tacotron2", tacotron2 }, { "waveglow", waveglow },
    { "dqn", dqn },
}

-- ---- ways ----

local function with_autocast(fn)
    return function() return tide.autocast(device, fn, { dtype = tide.bfloat16 }) end
end

local function in_order(x, way) return way:find "channels_last" and x:to { memory_format = "channels_last" } or x end

-- The network in bytes; what it takes is what it is calibrated with.
local function in_bytes(case)
    local net = case.net:eval()
    if not case.images then
        return tide.quantization.quantize_dynamic(net)
    end
    local prepared = tide.quantization.prepare(case.fuse and case.fuse(net) or net)
    tide.no_grad(function() prepared(table.unpack(case.inputs)) end)
    return tide.quantization.convert(prepared)
end

local NO_BYTES <const> = { diffusion = true, tacotron2 = true, waveglow = true, dqn = true } -- most of what they do is no layer of bytes

-- Is there such a way for the network?
local function fits(case, what, way)
    if what == "learn" and not case.data or way:find "channels_last" and not case.images then
        return false
    end
    return way ~= "int8" or what ~= "train" and not NO_BYTES[case.name]
end

-- A case and what calls its network with its inputs, in a way.
local function make(row, what, way)
    tide.manual_seed(0)
    local case = row[2](what == "learn")
    case.name = row[1]
    if not fits(case, what, way) then
        return nil
    end
    case.net:train(what ~= "run")
    if way:find "channels_last" then
        case.net:to { memory_format = "channels_last" }
        case.inputs[1] = in_order(case.inputs[1], way)
    elseif way == "int8" and what == "run" then
        case.net = in_bytes(case)
    end
    return case, way:find "amp" and with_autocast or function(fn) return fn end
end

local function traced(case, way)
    return way == "scripted" and tide.jit.trace(case.net, case.inputs, { check = false }) or case.net
end

local function loss_of(case, net)
    return case.loss(case.target, net(table.unpack(case.inputs)))
end

-- A step of training, or a call.
local function timed(row, what, way)
    local case, mixed = make(row, what, way)
    if not case then
        return nil
    end
    case.net:to(device)
    case.target = case.target:to(device)
    for k, x in ipairs(case.inputs) do
        case.inputs[k] = x:to(device)
    end
    local net = traced(case, way)
    local function wait()
        if device ~= "cpu" then
            tide.cuda.synchronize()
        end
    end
    if what == "run" then
        local run = mixed(function() return net(table.unpack(case.inputs)) end)
        return function()
            local _ <close> = tide.no_grad()
            run()
            wait()
        end
    end
    local optimizer = tide.optim.SGD(case.net:parameters(), { lr = 1e-4, momentum = 0.9 })
    local loss = mixed(function() return loss_of(case, net) end)
    return function()
        optimizer:zero_grad()
        loss():backward()
        optimizer:step()
        wait()
    end
end

-- The most memory that the process held since it began, in MB.
local function peak_memory()
    local file = io.open "/proc/self/status"
    local kilobytes = file and file:read("a"):match "VmHWM:%s*(%d+)"
    return kilobytes and kilobytes // 1024 or 0
end

-- ---- learning ----

local function write(path, case, inputs, target, test_inputs, test_target)
    local all = { target = target:clone(), test_target = test_target:clone() } -- an autoencoder's are its inputs
    for k, x in ipairs(inputs) do
        all["input." .. k - 1], all["test_input." .. k - 1] = x, test_inputs[k]
    end
    for name, x in pairs(case.net:state_dict()) do
        all["net." .. pytorch_name(name)] = x:contiguous()
    end
    tide.save(all, path)
end

-- Rows first to last of what a case takes and wants.
local function take(case, way, inputs, target, first, last)
    for k, x in ipairs(inputs) do
        case.inputs[k] = in_order(x[{ { first, last } }], x:dim() == 4 and way or "")
    end
    case.target = target[{ { first, last } }]
end

local function learn(row, way)
    local case, mixed = make(row, "learn", way)
    if not case then
        return nil
    end
    local steps, batch, tests = bench.tiny and 2 or case.steps, #case.target, bench.tiny and 8 or 500
    local inputs, target = case.data(steps * batch, true)
    local test_inputs, test_target = case.data(tests, false)
    local path = folder and ("%s/%s.safetensors"):format(folder, case.name)
    local there = path and io.open(path)
    if there then
        there:close()
    elseif path then
        write(path, case, inputs, target, test_inputs, test_target)
    end
    local optimizer = tide.optim.SGD(case.net:parameters(), { lr = case.rate, momentum = 0.9 })
    take(case, way, inputs, target, 1, batch)
    local net = traced(case, way)
    local loss = mixed(function() return loss_of(case, net) end)
    for step = 0, steps - 1 do
        take(case, way, inputs, target, step * batch + 1, (step + 1) * batch)
        optimizer:zero_grad()
        local value = loss()
        value:backward()
        nn.utils.clip_grad_norm_(case.net:parameters(), 1)
        optimizer:step()
    end
    local quantized = way == "int8" and in_bytes(case)
    case.net:eval()
    take(case, way, test_inputs, test_target, 1, tests)
    if case.score then
        case.loss = case.score
    end
    local _ <close> = tide.no_grad()
    net = quantized or traced(case, way)
    return mixed(function() return loss_of(case, net) end)():item(), case.unit
end

for _, row in ipairs(NETWORKS) do
    for _, what in ipairs { "train", "run", "learn" } do
        for _, way in ipairs { "f32", "amp", "channels_last", "amp+channels_last", "scripted", "int8" } do
            local name = ("%s_%s_%s"):format(row[1], what, way)
            if bench.chosen(name) and what == "learn" then
                local score, unit = learn(row, way)
                if score then
                    print(('{"case": "%s", "score": %.6g, "unit": "%s"}'):format(name, score, unit))
                end
            elseif bench.chosen(name) then
                local step = timed(row, what, way)
                if step then
                    bench.case(name, step, { result = function() step() end })
                    print(('{"case": "%s", "peak_mb": %d}'):format(name, peak_memory()))
                end
            end
        end
    end
end
