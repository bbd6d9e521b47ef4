-- WAV files: tide.io.read_audio and write_wav, against what libsndfile reads of tests/golden/sound.
local t = require "harness"

local folder = os.getenv("TIDE_SOURCE") .. "/tests/golden/sound/"
local samples = tide.io.load_npz(folder .. "samples.npz")
local path = os.tmpname()

local function put(bytes)
    local file <close> = assert(io.open(path, "wb"))
    file:write(bytes)
end

local function get(name)
    local file <close> = assert(io.open(name or path, "rb"))
    return file:read("a")
end

t.test("every_kind_of_samples_is_read_as_libsndfile_reads_it", function()
    local n = 0
    for name, want in pairs(samples) do
        local x, rate = tide.io.read_audio(folder .. name)
        t.eq({ x.dtype, x:tolist(), rate }, { tide.float32, want:tolist(), 8000 + want.shape[1] }, name)
        local y, again = tide.load(folder .. name)
        t.eq({ y:tolist(), again }, { want:tolist(), rate }, name)
        n = n + 1
    end
    t.eq(n, 30)
end)

t.test("a_part_is_read_by_offset_and_frames", function()
    for name, want in pairs(samples) do
        for offset = 0, 7 do
            for frames = 0, 8 do
                local x = tide.io.read_audio(folder .. name, { offset = offset, frames = frames })
                local n = math.min(frames, 7 - offset)
                t.eq(tostring(x.shape), ("(%d, %d)"):format(want.shape[1], n))
                if n > 0 then
                    t.eq(x:tolist(), want:narrow(2, offset + 1, n):tolist())
                end
            end
        end
    end
    t.error_has(function() tide.io.read_audio(folder .. "pcm_16_1_wav.wav", { offset = 8 }) end, "option offset: 8, where there are 7 frames")
    t.error_has(function() tide.io.read_audio(folder .. "pcm_16_1_wav.wav", { offset = -1 }) end, "offset")
end)

t.test("what_is_written_is_read_again_to_the_last_bit_of_its_kind", function()
    tide.manual_seed(1)
    for _, kind in ipairs { { 8 }, { 16 }, { 24 }, { 32 }, { 32, true }, { 64, true } } do
        for _, channels in ipairs { 1, 2, 3, 8 } do
            local x = tide.rand(channels, 13) * 2 - 1
            tide.io.write_wav(x, path, 44100, { bits = kind[1], float = kind[2] })
            local y, rate = tide.io.read_audio(path)
            t.eq(rate, 44100)
            t.is_true((x - y):abs():max():item() <= (kind[2] and 0 or 2 / (1 << kind[1]) + 2 ^ -24))
            local first = get()
            tide.io.write_wav(y, path, 44100, { bits = kind[1], float = kind[2] })
            t.eq(get(), first)
            t.eq(#first, string.unpack("<I4", first, 5) + 8) -- RIFF's length
        end
    end
end)

t.test("integers_are_cut_off_at_their_ends", function()
    local x = tide.tensor { 2, 1, 0.5, -1, -3, 0 / 0, math.huge, -math.huge }
    for bits, ends in pairs { [8] = 127 / 128, [16] = 32767 / 32768, [24] = 8388607 / 8388608 } do
        tide.io.write_wav(x, path, 8000, { bits = bits })
        t.eq(tide.io.read_audio(path)[1]:tolist(), { ends, ends, 0.5, -1, -1, 0, ends, -1 })
    end
end)

t.test("a_file_of_integers_has_the_bytes_that_the_format_asks_for", function()
    tide.io.write_wav(tide.tensor { { 0.5, -1 }, { 0, 0.25 } }, path, 8000)
    t.eq(get(), "RIFF" .. string.pack("<I4", 44) .. "WAVEfmt " .. string.pack("<I4I2I2I4I4I2I2", 16, 1, 2, 8000, 32000, 4, 16)
        .. "data" .. string.pack("<I4i2i2i2i2", 8, 16384, 0, -32768, 8192))
end)

-- A file of chunks, {id, bytes}.
local function riff(...)
    local parts = {}
    for k, chunk in ipairs { ... } do
        parts[k] = string.pack("<c4I4", chunk[1], chunk[3] or #chunk[2]) .. chunk[2] .. (#chunk[2] % 2 == 1 and "\0" or "")
    end
    local body = table.concat(parts)
    return string.pack("<c4I4c4", "RIFF", 4 + #body, "WAVE") .. body
end

local function format(tag, channels, bits, step)
    return { "fmt ", string.pack("<I2I2I4I4I2I2", tag, channels, 8000, 0, step or channels * bits // 8, bits) }
end

t.test("chunks_that_say_nothing_of_samples_are_passed_over", function()
    put(riff({ "LIST", "odd" }, format(1, 1, 16), { "cue ", "1234" }, { "data", "\0\x40\0\x80" }, { "id3 ", "more" }))
    t.eq(tide.io.read_audio(path):tolist(), { { 0.5, -1 } })
    put(riff(format(1, 1, 8), { "data", "\x80\xC0\x40" }):sub(1, -2)) -- the byte that makes it even is often missing
    t.eq(tide.io.read_audio(path):tolist(), { { 0, 0.5, -0.5 } })
    put(riff(format(1, 1, 16), { "data", "\0\x40\0\x80", 0xFFFFFFFF })) -- a stream of which nobody knew the length
    t.eq(tide.io.read_audio(path):tolist(), { { 0.5, -1 } })
    put(riff(format(1, 1, 12, 2), { "data", "\0\x40\0\x80" })) -- 12 bits at the upper end of 16
    t.eq(tide.io.read_audio(path):tolist(), { { 0.5, -1 } })
    put(riff(format(1, 2, 16), { "data", "" }))
    t.eq(tostring(tide.io.read_audio(path).shape), "(2, 0)")
end)

t.test("files_that_are_wrong_are_refused", function()
    for _, case in ipairs {
        { "", "cut off, or no WAV file" }, { "RIFF\0\0\0\0AVI ", "no WAV file" }, { "RIFX\0\0\0\0WAVE", "highest byte first" },
        { riff(), "it has no samples" }, { riff(format(1, 1, 16)), "it has no samples" },
        { riff({ "data", "1234" }, format(1, 1, 16)), "its samples stand in front of their format" },
        { riff({ "fmt ", "short" }, { "data", "" }), "its format is cut off" },
        { riff(format(7, 1, 8), { "data", "" }), "its samples are µ-law" }, { riff(format(99, 1, 8), { "data", "" }), "of kind 99" },
        { riff(format(1, 0, 8), { "data", "" }), "0 channels" }, { riff(format(1, 2, 16, 2), { "data", "" }), "samples of 16 bits, 2 channels in 2 bytes" },
        { riff(format(3, 1, 16), { "data", "" }), "samples of 16 bits" }, { riff(format(1, 1, 40), { "data", "" }), "samples of 40 bits" },
        { riff(format(0xFFFE, 1, 16), { "data", "" }), "of a kind that is not known" },
        { riff(format(1, 1, 16), { "data", "12", 4 }), "cut off: 4 bytes of samples, the file has 2" },
        { riff(format(1, 1, 16), { "data", "123" }), "3 bytes are no whole number of frames of 2" },
        { riff({ "LIST", "", 1000 }), "cut off in its header" },
    } do
        put(case[1])
        t.error_has(function() tide.io.read_audio(path) end, case[2], case[2])
        t.error_has(function() tide.io.read_audio(path) end, "read_audio: '" .. path .. "': ")
    end
    t.error_has(function() tide.io.read_audio("/nowhere.wav") end, "read_audio: cannot read '/nowhere.wav': No such file or directory")
    t.error_has(function() tide.io.read_audio("/tmp") end, "read_audio: cannot read '/tmp': ")
end)

t.test("what_can_not_be_written_is_refused", function()
    t.error_has(function() tide.io.write_wav(tide.zeros(1, 2, 3), path, 8000) end, "write_wav: x: floats (channels, frames) expected")
    t.error_has(function() tide.io.write_wav(tide.arange(3), path, 8000) end, "write_wav: x: floats (channels, frames) expected")
    t.error_has(function() tide.io.write_wav(tide.zeros(3), path, 8000, { bits = 12 }) end, "option bits: 8, 16, 24 or 32 expected, got 12")
    t.error_has(function() tide.io.write_wav(tide.zeros(3), path, 8000, { bits = 16, float = true }) end, "option bits: 32 or 64 expected, got 16")
    t.error_has(function() tide.io.write_wav(tide.zeros(3), path, 0) end, "rate")
    t.error_has(function() tide.io.write_wav(tide.zeros(1, 1):expand(2, 1 << 31), path, 8000) end, "a file holds 4 GiB at most")
end)

os.remove(path)
t.finish()
