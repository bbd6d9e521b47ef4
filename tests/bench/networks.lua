-- networks.lua: the reference networks of notebooks/networks in every way that they can run: `NETWORK train WAY` is a step of training,
-- `NETWORK run WAY` a call without gradients. Ways: f32, amp (bfloat16), channels_last, amp+channels_last, scripted, int8. networks.py has
-- the same networks in PyTorch, networks_table.py puts both into one table.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local root = here .. "../../notebooks/networks/"
local nn, F = tide.nn, tide.nn.functional
local size = bench.size

local function network(name) return dofile(root .. name .. ".lua") end

-- ---- networks: a module, its inputs, and the loss of what it gives ----

-- The network of PyTorch's first tutorial, for images of 32 by 32.
local function tutorial()
    local net = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    local labels = bench.ints({ size(32, 4) }, 0, 10) + 1
    return { net = net, inputs = { bench.uniform { #labels, 3, 32, 32 } }, images = true, loss = function(y) return F.cross_entropy(y, labels) end }
end

local function resnet(depth, batch, pixels, options)
    return function()
        local labels = bench.ints({ size(batch, 2) }, 0, options.classes) + 1
        pixels = size(pixels, 32)
        return { net = network("resnet").new(depth, options), inputs = { bench.uniform { #labels, 3, pixels, pixels } }, images = true,
            loss = function(y) return F.cross_entropy(y, labels) end }
    end
end

local function tanh_rnn()
    local x, wanted = bench.uniform { size(16, 2), size(32, 4), 64 }, bench.uniform { size(16, 2), size(32, 4), 16 }
    return { net = network("rnn").tanh(64, 128, 16), inputs = { x }, loss = function(y) return F.mse_loss(y, wanted) end }
end

local function letters()
    local tokens = bench.ints({ size(16, 2), size(64, 4) + 1 }, 0, 65) + 1
    return { net = network("rnn").letters(65, 128, 2), inputs = { tokens[":, :-2"] },
        loss = function(y) return F.cross_entropy(y:flatten(1, 2), tokens[":, 2:"]:flatten()) end }
end

local function gpt()
    local tokens = bench.ints({ size(8, 2), size(64, 4) + 1 }, 0, 65) + 1
    return { net = network("gpt").new { tokens = 65, width = 128, heads = 4, layers = 4, context = 64 }, inputs = { tokens[":, :-2"] },
        loss = function(y) return F.cross_entropy(y:flatten(1, 2), tokens[":, 2:"]:flatten()) end }
end

local function vae()
    local x = bench.uniform({ size(64, 2), 784 }, 0, 1)
    return { net = network("vae").new(784, 256, 16), inputs = { x }, loss = function(...) return network("vae").loss(x, ...) end }
end

local function diffusion()
    local x, t = bench.uniform { size(16, 2), 1, 16, 16 }, bench.uniform({ size(16, 2) }, 0, 1)
    return { net = network("diffusion").new(1, 32), inputs = { x, t }, images = true, loss = function(y) return F.mse_loss(y, x) end }
end

local function tacotron2()
    local n, length = size(4, 2), size(40, 6)
    local text, truth = bench.ints({ n, size(20, 4) }, 0, 40) + 1, bench.uniform { n, 80, length }
    local frames = tide.full({ n }, length, { dtype = tide.int64 })
    return { net = network("tacotron2").new { letters = 40, encoder = 128, attention_rnn = 256, decoder_rnn = 256, prenet = 64, postnet = 128 },
        inputs = { text, tide.full({ n }, text:size(2), { dtype = tide.int64 }), truth, frames },
        loss = function(made, better, gates) return network("tacotron2").loss(truth, frames, made, better, gates) end }
end

local NETWORKS <const> = {
    { "tutorial", tutorial }, { "resnet18", resnet(18, 8, 32, { classes = 10, small = true }) }, { "resnet50", resnet(50, 4, 96, { classes = 1000 }) },
    { "resnet101", resnet(101, 2, 96, { classes = 1000 }) }, { "tanh_rnn", tanh_rnn }, { "letters", letters }, { "gpt", gpt }, { "vae", vae },
    { "diffusion", diffusion }, { "tacotron2", tacotron2 },
}

-- ---- ways ----

local function with_autocast(fn)
    return function() return tide.autocast("cpu", fn, { dtype = tide.bfloat16 }) end
end

local function channels_last(case)
    case.net:to { memory_format = "channels_last" }
    case.inputs[1] = case.inputs[1]:to { memory_format = "channels_last" }
end

local function in_bytes(case)
    return pcall(function()
        local prepared = tide.quantization.prepare(case.net:eval())
        tide.no_grad(function() prepared(table.unpack(case.inputs)) end)
        case.net = tide.quantization.convert(prepared)
        tide.no_grad(function() case.net(table.unpack(case.inputs)) end)
    end)
end

-- A function that calls the network in a way; nil: there is no such way for it.
local function forward_of(case, way)
    local net, inputs, ok = case.net, case.inputs, true
    if way == "scripted" then
        ok, net = pcall(tide.jit.trace, net, inputs, { check = false })
    end
    return ok and function() return net(table.unpack(inputs)) end or nil
end

local function make(build, what, way)
    tide.manual_seed(0)
    local case = build()
    case.net:train(what == "train")
    if way:find "channels_last" then
        channels_last(case)
    elseif way == "int8" and not in_bytes(case) then
        return nil
    end
    local forward = forward_of(case, way)
    if not forward then
        return nil
    end
    local mixed = way:find "amp" and with_autocast or function(fn) return fn end
    if what == "run" then
        local run = mixed(forward)
        return function()
            local _ <close> = tide.no_grad()
            return run()
        end
    end
    local optimizer = tide.optim.SGD(case.net:parameters(), { lr = 1e-4, momentum = 0.9 })
    local loss_of = mixed(function() return case.loss(forward()) end)
    return function()
        optimizer:zero_grad()
        loss_of():backward()
        optimizer:step()
    end
end

-- The most memory that the process held since it began, in MB.
local function peak_memory()
    local file = io.open "/proc/self/status"
    local kilobytes = file and file:read("a"):match "VmHWM:%s*(%d+)"
    return kilobytes and kilobytes // 1024 or 0
end

for _, row in ipairs(NETWORKS) do
    for _, what in ipairs { "train", "run" } do
        for _, way in ipairs { "f32", "amp", "channels_last", "amp+channels_last", "scripted", "int8" } do
            local name = ("%s_%s_%s"):format(row[1], what, way)
            local fits = (row[1]:find "resnet" or row[1] == "tutorial" or row[1] == "diffusion" or not way:find "channels_last")
                and not (way == "int8" and what == "train")
            if fits and bench.chosen(name) then
                local step = make(row[2], what, way)
                if step then
                    bench.case(name, step, { result = function() step() end })
                    print(('{"case": "%s", "peak_mb": %d}'):format(name, peak_memory()))
                end
            end
        end
    end
end
