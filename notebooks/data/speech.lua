-- speech.lua: words spoken by espeak-ng, as sound, as spectrograms and as letters, for networks that learn to speak.
--
--     local speech = require "data.speech"
--     local sound = speech.say "tide"                     (samples), 22,050 a second
--     local spectrum = speech.mel(sound)                  (80, frames), a frame every 256 samples
--
-- apt install espeak-ng; nothing is played and nothing is sent anywhere.
local tide = require "tide"
local F = tide.nn.functional

local speech = { RATE = 22050, WINDOW = 1024, HOP = 256, BANDS = 80, LETTERS = 28 }
local HIGHEST <const>, QUIET <const> = 8000, 1e-5 -- Hz; what is softer counts as this

-- ---- sound ----

--- say(text, {speed = 150, voice = "en"}): the text, of letters and spaces, as mono sound from -1 to 1, without the pauses around it.
function speech.say(text, options)
    options = options or {}
    if not text:find "^[%a ]+$" then
        error(("speech.say: letters and spaces expected, got '%s'"):format(text), 2)
    end
    local path <const> = os.tmpname()
    local done = os.execute(("espeak-ng -v %s -s %d -w %s '%s' 2>/dev/null"):format(options.voice or "en", options.speed or 150, path, text))
    local found, sound, rate = pcall(tide.io.read_audio, path)
    os.remove(path)
    if not done or not found then
        error("speech.say: espeak-ng does not run: apt install espeak-ng", 2)
    end
    assert(rate == speech.RATE)
    local loud = sound[1]:abs():gt(0.003):nonzero():flatten()
    return sound[1][{ { loud[1]:item(), loud[-1]:item() } }]:clone()
end

-- ---- spectrograms ----

local function to_mel(hz) return 2595 * math.log(1 + hz / 700, 10) end
local function to_hz(mel) return 700 * (10 ^ (mel / 2595) - 1) end

-- Triangles over the frequencies of a window, as high as 1: (80, 513).
local function filters()
    local edges = tide.linspace(0, to_mel(HIGHEST), speech.BANDS + 2):tolist()
    for k, mel in ipairs(edges) do
        edges[k] = to_hz(mel)
    end
    local hz = tide.arange(speech.WINDOW // 2 + 1, { dtype = tide.float64 }) * (speech.RATE / speech.WINDOW)
    local rows = {}
    for m = 1, speech.BANDS do
        local rising = (hz - edges[m]) / (edges[m + 1] - edges[m])
        local falling = (edges[m + 2] - hz) / (edges[m + 2] - edges[m + 1])
        rows[m] = rising:minimum(falling):clamp(0)
    end
    return tide.stack(rows):float()
end

-- Waves of each frequency under Hann's window, as kernels of a convolution: (1026, 1, 1024), cosines first.
local function waves()
    local time = tide.arange(speech.WINDOW, { dtype = tide.float64 })
    local turns = tide.outer(tide.arange(speech.WINDOW // 2 + 1, { dtype = tide.float64 }), time) * (2 * math.pi / speech.WINDOW)
    local window = tide.hann_window(speech.WINDOW, { dtype = tide.float64 })
    return (tide.cat({ turns:cos(), turns:sin() }, 1) * window):float():unsqueeze(2)
end

local FILTERS <const>, WAVES <const> = filters(), waves()

--- mel(sound): the logarithm of how loud each of 80 bands of pitch is, (80, frames), in the middle of every 256 samples.
function speech.mel(sound)
    local around = (speech.WINDOW - speech.HOP) // 2
    local parts = F.conv1d(F.pad(sound:view(1, 1, -1), { around, around }), WAVES, { stride = speech.HOP })[1]
    local size = parts:view(2, speech.WINDOW // 2 + 1, -1):square():sum(1):sqrt()
    return FILTERS:mm(size):clamp(QUIET):log()
end

-- ---- letters ----

--- letters(text): its letters as tokens from 2 on, and 1 for all else: int64 (letters).
function speech.letters(text)
    local tokens = {}
    for letter in text:lower():gmatch "." do
        tokens[#tokens + 1] = letter:find "%a" and letter:byte() - 95 or 1
    end
    return tide.tensor(tokens)
end

--- batch(texts, options): what Tacotron 2 learns from: letters (n, most), their numbers (n), spectrograms (n, 80, most), quiet behind
--- their end, and the numbers of their frames (n); and the sounds.
function speech.batch(texts, options)
    local tokens, counts, mels, frames, sounds = {}, {}, {}, {}, {}
    for k, text in ipairs(texts) do
        sounds[k] = speech.say(text, options)
        tokens[k], mels[k] = speech.letters(text), speech.mel(sounds[k])
        counts[k], frames[k] = #tokens[k], mels[k]:size(2)
    end
    local letters, length = math.max(table.unpack(counts)), math.max(table.unpack(frames))
    for k = 1, #texts do
        tokens[k] = F.pad(tokens[k], { 0, letters - counts[k] }, { value = 1 })
        mels[k] = F.pad(mels[k], { 0, length - frames[k] }, { value = math.log(QUIET) })
    end
    return tide.stack(tokens), tide.tensor(counts), tide.stack(mels), tide.tensor(frames), sounds
end

return speech
