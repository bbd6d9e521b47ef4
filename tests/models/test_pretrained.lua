-- test_pretrained.lua: a classifier of images, speech or none, and whose voice, against what PyTorch makes of the same weights.
local t = require "harness"
local folder = os.getenv "TIDE_SOURCE" .. "/notebooks/models/"
local golden = dofile(os.getenv "TIDE_SOURCE" .. "/tests/models/golden.lua")

local function furthest(x, list) return (x:flatten() - tide.tensor(list, { dtype = x.dtype })):abs():max():item() end

-- As golden.py makes them.
local function image()
    local k = tide.arange(3 * 224 * 224, { dtype = tide.float64 })
    return (k * 0.013 + (k * 0.00071):sin() * 4):sin():view(1, 3, 224, 224):float()
end

local function sound()
    local s = tide.arange(48000, { dtype = tide.float64 }) / 16000
    local phase = (s * 120 + (s * 9):sin() * 3) * (2 * math.pi)
    local voice = (phase:cos() * 6 - 6):exp() * ((s * (2 * math.pi * 700)):sin() + (s * (2 * math.pi * 1200)):sin() * 0.6)
    local loud = (s:gt(0.7) & s:lt(2.1)):double() * ((s * (2 * math.pi * 4)):sin() + 1)
    return (voice * loud * 0.2):float()
end

-- A test of a network whose package is here.
local function try(name, what, check)
    local found, net = pcall(function() return dofile(folder .. name .. ".lua").load() end)
    if found then
        t.test(what, function() check(net) end)
    else
        t.skip(name, tostring(net))
    end
end

try("efficientnet", "efficientnets_scores_are_pytorchs", function(net)
    local _ <close> = tide.no_grad()
    local scores = net:forward(image())[1]
    t.is_true(furthest(scores["::50"], golden.scores) < 2e-5)
    local classes = select(2, scores:topk(5))
    t.eq((classes - 1):tolist(), golden.best)
    local found = net:classify(tide.full({ 3, 240, 300 }, 90, { dtype = tide.uint8 }), 3)
    t.is_true(#found == 3 and found[1].share >= found[2].share)
end)

try("silero", "speech_is_as_likely_as_in_pytorch", function(net)
    t.is_true(furthest(net:likely(sound()), golden.speech) < 1e-5)
    t.eq(net:speech(tide.zeros(16000)), {})
end)

try("resemblyzer", "a_voice_is_the_point_that_it_is_in_pytorch", function(net)
    t.is_true(furthest(net:mel(sound())["::40, ::8"], golden.mel) < 1e-6)
    t.is_true(furthest(net:embed(sound())["::8"], golden.voice) < 1e-5)
end)

t.finish()
