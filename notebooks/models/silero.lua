-- silero.lua: where somebody speaks: Silero VAD, a spectrogram, four convolutions and an LSTM, which says of every 32 ms how likely
-- they are speech.
--
--     pip download --no-deps silero-vad           (11 MB; once, in this folder or one of $TIDE_HUB)
--     vad = dofile("notebooks/models/silero.lua").load()
--     for _, part in ipairs(vad:speech("talk.wav")) do print(part.from, part.to) end
local tide = require "tide"
local F = tide.nn.functional

local RATE <const>, PIECE <const>, BEFORE <const>, BEHIND <const> = 16000, 512, 64, 64 -- samples
local BANDS <const>, SIZE <const> = 129, 128

local Vad = {}
Vad.__index = Vad

--- forward(pieces, state): how likely each piece is speech, (n, pieces), of sound (n, pieces, 576), of which 64 samples are those
--- before; and the state behind the last, which the next call may begin with.
function Vad:forward(pieces, state)
    local w, n, count = self.w, pieces:size(1), pieces:size(2)
    local x = F.pad(pieces:reshape(n * count, 1, -1), { 0, BEHIND }, { mode = "reflect" })
    local waves = F.conv1d(x, w["stft_conv.weight"], { stride = BANDS - 1 })
    local parts = waves:view(n * count, 2, BANDS, -1)
    x = parts:square():sum(2):sqrt()
    for k, stride in ipairs { 1, 2, 2, 1 } do
        x = F.conv1d(x, w["conv" .. k .. ".weight"], w["conv" .. k .. ".bias"], { stride = stride, padding = 1 }):relu()
    end
    x = x:view(n, count, SIZE)
    local start = state or { tide.zeros(1, n, SIZE), tide.zeros(1, n, SIZE) }
    local out, h, c = tide.lstm(x, start, { w["lstm_cell.weight_ih"], w["lstm_cell.weight_hh"], w["lstm_cell.bias_ih"],
        w["lstm_cell.bias_hh"] }, { batch_first = true })
    return F.linear(out:relu(), w["final_conv.weight"]:squeeze(3), w["final_conv.bias"]):squeeze(3):sigmoid(), { h, c }
end

-- Sound (samples) as overlapping pieces (1, pieces, 576).
local function pieces_of(x)
    local behind = -x:size(1) % PIECE
    return F.pad(x, { BEFORE, behind }):unfold(1, BEFORE + PIECE, PIECE):unsqueeze(1)
end

--- likely(sound): how likely each 32 ms are speech, of mono sound (samples) of 16,000 a second.
function Vad:likely(sound)
    local _ <close> = tide.no_grad()
    return self:forward(pieces_of(sound:float()))[1]
end

--- speech(sound, options): where somebody speaks, as {from, to} in seconds; sound is samples, or a WAV file's path. `threshold`
--- (0.5): more likely than this; `least` (0.25): no shorter stretch; `gap` (0.1): no shorter pause.
function Vad:speech(sound, options)
    options = options or {}
    if type(sound) == "string" then
        local samples, rate = tide.io.read_audio(sound)
        assert(rate == RATE, "sound of 16,000 samples a second is expected, this has " .. tostring(rate))
        sound = samples:mean(1)
    end
    local threshold, gap = options.threshold or 0.5, options.gap or 0.1
    local parts, step = {}, PIECE / RATE
    for k, likely in ipairs(self:likely(sound):tolist()) do
        local last = parts[#parts]
        if likely > threshold and last and (k - 1) * step - last.to < gap then
            last.to = k * step
        elseif likely > threshold then
            parts[#parts + 1] = { from = (k - 1) * step, to = k * step }
        end
    end
    local long = {}
    for _, part in ipairs(parts) do
        if part.to - part.from >= (options.least or 0.25) then
            long[#long + 1] = part
        end
    end
    return long
end

local silero = {}

--- load(path): the network; the package is found by its name where no path is given.
function silero.load(path)
    return setmetatable({ w = tide.hub.package(path or "silero-vad"):load "silero_vad_16k.safetensors" }, Vad)
end

return silero
