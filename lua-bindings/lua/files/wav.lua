-- files/wav.lua: WAV files, sound as it is: chunks of which "fmt " says what samples are and "data" holds them; RF64 where sizes
-- take 64 bits. Every length is compared with the file's before it is used, and only the frames that are asked for are read.
local tide = ...
local fail, declare = tide._fail, tide._function
local wav = { name = "WAV" }

local PCM <const>, FLOAT <const>, EXTENSIBLE <const> = 1, 3, 0xFFFE
local REST_OF_GUID <const> = "\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71"
local UNKNOWN <const> = 0xFFFFFFFF -- a size that whoever wrote the file did not know, or that stands elsewhere
local KINDS <const> = { [PCM] = { "u8", "i16", "i24", "i32" }, [FLOAT] = { [4] = "f32", [8] = "f64" } }
local OTHERS <const> = { [2] = "ADPCM", [6] = "A-law", [7] = "µ-law", [0x11] = "IMA ADPCM", [0x55] = "MP3" }

-- ---- reading ----

-- What the chunk "fmt " says: {kind, channels, rate, step (bytes of a frame)}; nil and why.
local function read_format(text)
    if #text < 16 then
        return nil, "its format is cut off"
    end
    local tag, channels, rate, _, step, bits = string.unpack("<I2I2I4I4I2I2", text)
    if tag == EXTENSIBLE then
        if #text < 40 or string.sub(text, 27, 40) ~= REST_OF_GUID then
            return nil, "its format is of a kind that is not known"
        end
        tag = string.unpack("<I2", text, 25)
    end
    if not KINDS[tag] then
        return nil, string.format("its samples are %s: integers and floats are read", OTHERS[tag] or string.format("of kind %d", tag))
    elseif channels == 0 or rate == 0 then
        return nil, string.format("%d channels at a rate of %d", channels, rate)
    end
    local width = (bits + 7) // 8
    local kind = KINDS[tag][width]
    if not kind or step ~= width * channels then
        return nil, string.format("samples of %d bits, %d channels in %d bytes", bits, channels, step)
    end
    return { kind = kind, channels = channels, rate = rate, step = step }
end

-- The place and the length of the samples, and their format; nil and why. `read(at, n)` gives bytes from a place (from 0) on.
local function find_samples(read, size)
    local first, _, form = string.unpack("<c4I4c4", read(0, 12))
    if first ~= "RIFF" and first ~= "RF64" or form ~= "WAVE" then
        return nil, first == "RIFX" and "its numbers have their highest byte first, which is not read" or "no WAV file"
    end
    local at, format, wide = 12, nil, nil
    while at + 8 <= size do
        local id, length = string.unpack("<c4I4", read(at, 8))
        at = at + 8
        if id == "ds64" and length >= 24 and length <= size - at then
            wide = string.unpack("<i8", read(at + 8, 8))
        elseif id == "data" then
            if not format then
                return nil, "damaged: its samples stand in front of their format"
            elseif length == UNKNOWN then
                length = first == "RF64" and wide or (size - at) // format.step * format.step
            end
            if length < 0 or length > size - at then
                return nil, string.format("cut off: %d bytes of samples, the file has %d of them", length, size - at)
            elseif length % format.step ~= 0 then
                return nil, string.format("damaged: %d bytes are no whole number of frames of %d", length, format.step)
            end
            format.at, format.frames = at, length // format.step
            return format
        elseif length > size - at then
            return nil, "cut off in its header"
        elseif id == "fmt " then
            local why
            format, why = read_format(read(at, math.min(length, 40)))
            if not format then
                return nil, why
            end
        end
        at = at + length + length % 2
    end
    return nil, "cut off, or damaged: it has no samples"
end

local function open(fname, path)
    local file <close>, why = io.open(path, "rb")
    local size = file and file:seek("end")
    if not size or size > 1 << 62 then -- a folder has a size that no file has
        fail("%s: cannot read '%s': %s", fname, path, why and string.gsub(why, "^.*: ", "") or "no regular file")
    end
    local function read(at, n)
        file:seek("set", at)
        local bytes = file:read(n) or ""
        return #bytes == n and bytes or fail("%s: '%s': cut off", fname, path)
    end
    local found, wrong = nil, "cut off, or no WAV file"
    if size >= 12 then
        found, wrong = find_samples(read, size)
    end
    return found or fail("%s: '%s': %s", fname, path, wrong)
end

local function read(fname, path, offset, frames)
    local what = open(fname, path)
    if offset > what.frames then
        fail("%s: '%s': option offset: %d, where there are %d frames", fname, path, offset, what.frames)
    end
    local n = math.min(frames or what.frames, what.frames - offset)
    local bytes <close> = tide._bytes(path, fname, what.at + offset * what.step, n * what.step)
    return tide._sound(bytes, 0, what.kind, what.channels, n), what.rate
end

function wav.match(head)
    return (string.sub(head, 1, 4) == "RIFF" or string.sub(head, 1, 4) == "RF64") and string.sub(head, 9, 12) == "WAVE"
end

--- load(path, options): float32 (channels, frames), and the rate.
function wav.load(path, options)
    local x, rate = read("load", path, 0)
    return options.device and x:to(options.device) or x, rate
end

-- ---- writing ----

local function header(kind, float, channels, rate, frames)
    local width = math.tointeger(string.sub(kind, 2)) // 8
    local step, tag = width * channels, float and FLOAT or PCM
    local format = string.pack("<I2I2I4I4I2I2", channels > 2 and EXTENSIBLE or tag, channels, rate, rate * step, step, 8 * width)
    if channels > 2 then
        format = format .. string.pack("<I2I2I4I2", 22, 8 * width, 0, tag) .. REST_OF_GUID
    elseif float then
        format = format .. "\0\0"
    end
    local fact = float and string.pack("<c4I4I4", "fact", 4, frames) or ""
    local size = frames * step
    return string.pack("<c4I4c4c4I4", "RIFF", 4 + 8 + #format + #fact + 8 + size + size % 2, "WAVE", "fmt ", #format) .. format .. fact
        .. string.pack("<c4I4", "data", size), size % 2 == 1 and "\0" or ""
end

-- The bytes of a file: its beginning, the samples (a tensor, or a string), what follows them.
local function encode(fname, x, rate, bits, float, as_text)
    x = x.ndim == 1 and x:unsqueeze(1) or x
    local kind = float and KINDS[FLOAT][bits // 8] or not float and KINDS[PCM][bits // 8]
    if x.ndim ~= 2 or not x:is_floating_point() then
        fail("%s: x: floats (channels, frames) expected, got %s of shape %s", fname, tostring(x.dtype), tostring(x.shape))
    elseif x.shape[1] < 1 or x.shape[1] > 65535 // 8 then
        fail("%s: x: 1 to %d channels expected, got shape %s", fname, 65535 // 8, tostring(x.shape))
    elseif not kind or bits % 8 ~= 0 then
        fail("%s: option bits: %s expected, got %d", fname, float and "32 or 64" or "8, 16, 24 or 32", bits)
    elseif x:numel() * (bits // 8) > (1 << 32) - 128 or rate * x.shape[1] * (bits // 8) >= 1 << 32 then
        fail("%s: x: a file holds 4 GiB at most, shape %s at a rate of %d takes more", fname, tostring(x.shape), rate)
    end
    local head, pad = header(kind, float, x.shape[1], rate, x.shape[2])
    return head, tide._sound_bytes(x:detach():cpu():to(tide.float32):contiguous(), kind, as_text), pad
end

local function write(x, path, rate, bits, float)
    tide._write(path, "write_wav", encode("write_wav", x, rate, bits, float))
end

--- bytes(fname, x, rate): a file of 16 bits as a string, of sound as write_wav takes it.
function wav.bytes(fname, x, rate)
    return table.concat { encode(fname, x, rate, 16, false, true) }
end

--- open(to): tide.io's functions of sound.
function wav.open(to)
    to.read_audio = declare("read_audio(str path, *, int(0..) offset=0, int(0..)? frames=nil) -> Tensor, int",
        "A WAV file as float32 (channels, frames) from -1 to 1, and how many frames a second has: integers of 8 to 32 bits, floats of 32 "
        .. "and 64. offset frames are passed over, so many frames read, or as many as there are behind it.", function(path, offset, frames)
            return read("read_audio", path, offset, frames)
        end)
    to.write_wav = declare("write_wav(Tensor x, str path, int(1..) rate, *, int bits=16, bool float=false)",
        "Write sound of (channels, frames), or one channel, from -1 to 1 as a WAV file of integers of 8, 16, 24 or 32 bits or of floats of 32 "
        .. "or 64; what lies beyond what integers hold is cut off. The file appears whole or not at all.", write)
end

return wav
