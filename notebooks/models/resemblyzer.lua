-- resemblyzer.lua: whose voice it is: an LSTM of three layers over the loudness of 40 pitches, whose last state is a point that is near
-- those of the same voice.
--
--     pip download --no-deps resemblyzer           (16 MB; once, in this folder or one of $TIDE_HUB)
--     voices = dofile("notebooks/models/resemblyzer.lua").load()
--     print(voices:embed(sound):dot(voices:embed(other)))
local tide = require "tide"
local F = tide.nn.functional

local RATE <const>, WINDOW <const>, HOP <const>, MELS <const> = 16000, 400, 160, 40
local FRAMES <const>, STEP <const>, LEAST <const> = 160, 77, 0.75 -- of a part of sound: its frames, from part to part, that must be there
local LOUDNESS <const> = -30 -- decibels below full scale

local Voices = {}
Voices.__index = Voices

-- ---- pitches ----

-- Slaney's scale: linear up to 1,000 Hz, logarithmic above.
local LINEAR <const>, KNEE <const> = 200 / 3, 1000
local PER_STEP <const> = math.log(6.4) / 27

local function to_mel(hz) return hz < KNEE and hz / LINEAR or KNEE / LINEAR + math.log(hz / KNEE) / PER_STEP end
local function to_hz(mel)
    local above = mel - KNEE / LINEAR
    return above < 0 and mel * LINEAR or KNEE * math.exp(above * PER_STEP)
end

-- Triangles over the frequencies of a window, each of area 1: (40, 201).
local function filters()
    local bins, rows, edges = WINDOW // 2 + 1, {}, {}
    for k = 0, MELS + 1 do
        edges[k] = to_hz(to_mel(RATE / 2) * k / (MELS + 1))
    end
    for m = 1, MELS do
        local row, low, top, high = {}, edges[m - 1], edges[m], edges[m + 1]
        for b = 0, bins - 1 do
            local hz = b * RATE / WINDOW
            row[b + 1] = math.max(0, math.min((hz - low) / (top - low), (high - hz) / (high - top))) * 2 / (high - low)
        end
        rows[m] = row
    end
    return tide.tensor(rows)
end

-- Waves of each frequency under Hann's window, as kernels of a convolution: (402, 1, 400), cosines first.
local function waves()
    local time = tide.arange(WINDOW, { dtype = tide.float64 })
    local turns = tide.outer(tide.arange(WINDOW // 2 + 1, { dtype = tide.float64 }), time) * (2 * math.pi / WINDOW)
    local window = tide.hann_window(WINDOW, { dtype = tide.float64 })
    return (tide.cat({ turns:cos(), turns:sin() }, 1) * window):float():unsqueeze(2)
end

--- mel(sound): (frames, 40): power of each pitch, every 10 ms.
function Voices:mel(sound)
    local x = F.pad(sound:view(1, 1, -1), { WINDOW // 2, WINDOW // 2 })
    local parts = F.conv1d(x, self.waves, { stride = HOP })[1]
    local power = parts:view(2, WINDOW // 2 + 1, -1):square():sum(1)
    return self.filters:mm(power):t():contiguous()
end

-- ---- the network ----

--- forward(mels): a point of length 1 for each of mels (n, frames, 40): (n, 256).
function Voices:forward(mels)
    local n = mels:size(1)
    local zeros = tide.zeros(3, n, 256)
    local _, h = tide.lstm(mels, { zeros, zeros }, self.params, { num_layers = 3, batch_first = true })
    return F.normalize(F.linear(h[3], self.w["linear.weight"], self.w["linear.bias"]):relu(), { dim = 2 })
end

--- embed(sound): the point of a voice, (256), of mono sound (samples between -1 and 1) of 16,000 a second. What is softer than
--- -30 dB is made as loud; pauses are not cut out.
function Voices:embed(sound)
    local _ <close> = tide.no_grad()
    sound = sound:float()
    local change = LOUDNESS - 10 * math.log(sound:square():mean():item(), 10)
    sound = change > 0 and sound * 10 ^ (change / 20) or sound
    local frames = (sound:size(1) + HOP) // HOP
    local starts = {}
    for start = 0, math.max(0, frames - FRAMES + STEP), STEP do
        starts[#starts + 1] = start
    end
    local last = starts[#starts]
    if #starts > 1 and (sound:size(1) - last * HOP) / (FRAMES * HOP) < LEAST then
        starts[#starts] = nil
    end
    local behind = (starts[#starts] + FRAMES) * HOP - sound:size(1)
    local mel = self:mel(behind > 0 and F.pad(sound, { 0, behind }) or sound)
    local parts = {}
    for k, start in ipairs(starts) do
        parts[k] = mel[{ { start + 1, start + FRAMES } }]
    end
    return F.normalize(self:forward(tide.stack(parts)):mean(1), { dim = 1 })
end

local resemblyzer = {}

--- load(path): the network; the package is found by its name where no path is given.
function resemblyzer.load(path)
    local w = tide.hub.package(path or "resemblyzer"):load("*.pt").model_state
    local params = {}
    for layer = 0, 2 do
        for _, name in ipairs { "weight_ih", "weight_hh", "bias_ih", "bias_hh" } do
            params[#params + 1] = w["lstm." .. name .. "_l" .. layer]
        end
    end
    return setmetatable({ w = w, params = params, filters = filters(), waves = waves() }, Voices)
end

return resemblyzer
