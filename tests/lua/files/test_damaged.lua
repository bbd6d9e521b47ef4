-- Files of every format of images, sound and IDX, cut at every byte and with every byte changed: one line that says what is wrong,
-- or the right data. Where no checksum guards a byte, what it says now is as right as what it said.
local t = require "harness"

local source = os.getenv("TIDE_SOURCE") .. "/tests/golden/"
local path = os.tmpname() .. ".idx"

local function bytes_of(name)
    local file <close> = assert(io.open(name, "rb"))
    return file:read("a")
end

local function put(bytes)
    local file <close> = assert(io.open(path, "wb"))
    file:write(bytes)
end

local function of_bytes(fn)
    return function(bytes)
        put(bytes)
        return fn(path)
    end
end

-- read(bytes) gives a tensor; guarded: a checksum stands behind every byte.
local decode = { read = function(bytes) return tide.io.decode_image(bytes) end, fname = "decode_image" }
local png = { read = decode.read, fname = decode.fname, guarded = true }
local wav = { read = of_bytes(tide.io.read_audio), fname = "read_audio" }
local idx = { read = of_bytes(tide.load), fname = "load" }

local function list(format, folder, names)
    local files = {}
    for name in names:gmatch("%S+") do
        files[#files + 1] = { name = name, format = format, bytes = bytes_of(source .. folder .. name) }
    end
    return files
end

local files = {}
for _, group in ipairs {
    list(png, "images/png/", "png_0_1_interlaced.png png_0_16_clear.png png_2_8.png png_3_4.png png_3_8_clear.png png_4_16.png png_6_8_interlaced.png exif_big_8.png"),
    list(decode, "images/jpg/", "jpeg_420.jpg jpeg_progressive.jpg jpeg_grey.jpg jpeg_inks.jpg exif_little_6.jpg"),
    list(wav, "sound/", "pcm_u8_1_wav.wav pcm_24_2_wavex.wav pcm_16_3_rf64.wav float_2_wavex.wav double_1_wav.wav"),
    { { name = "idx", format = idx, bytes = string.pack(">I4I4I4", 0x802, 2, 3) .. "abcdef" },
        { name = "idx of float64", format = idx, bytes = string.pack(">I4I4dd", 0xE01, 2, 1.5, -2) } },
} do
    table.move(group, 1, #group, #files + 1, files)
end

-- The tensor, or nil where the refusal is as it should be.
local function try(file, bytes, what)
    local ok, x = pcall(file.format.read, bytes)
    if ok then
        return x
    end
    t.eq(type(x), "string", what)
    t.is_true(x:find(file.format.fname .. ": ", 1, true) and not x:find("\n"), what .. ": " .. x)
end

local function is_same(x, want)
    return x.dtype == want.dtype and tostring(x.shape) == tostring(want.shape) and x:nan_to_num(7):equal(want:nan_to_num(7))
end

t.test("a_file_that_is_cut_off_is_an_error_or_whole", function()
    for _, file in ipairs(files) do
        local want, refused = file.format.read(file.bytes), 0
        for n = 0, #file.bytes - 1 do
            local what = ("%s cut at %d"):format(file.name, n)
            local x = try(file, file.bytes:sub(1, n), what)
            refused = refused + (x and 0 or 1)
            t.is_true(not x or is_same(x, want), what)
        end
        t.is_true(refused > #file.bytes - 20, file.name)
    end
end)

t.test("a_byte_that_was_changed_is_an_error_or_changes_nothing_that_is_guarded", function()
    for _, file in ipairs(files) do
        local want = file.format.read(file.bytes)
        for n = 1, math.min(#file.bytes, 700) do
            for _, bits in ipairs { 0xFF, 1, 0x80 } do
                local what = ("%s with byte %d changed by %02x"):format(file.name, n, bits)
                local x = try(file, file.bytes:sub(1, n - 1) .. string.char(file.bytes:byte(n) ~ bits) .. file.bytes:sub(n + 1), what)
                if x and file.format.guarded then
                    t.is_true(is_same(x, want), what)
                elseif x then
                    t.is_true(x:numel() <= 100000 and x:to(tide.float64):nan_to_num(0):sum():item(), what)
                end
            end
        end
    end
end)

t.test("scales_and_modes_hold_for_damaged_files_too", function()
    local bytes = bytes_of(source .. "images/jpg/jpeg_420.jpg")
    for n = 1, #bytes, 7 do
        for _, options in ipairs { { scale = 8 }, { mode = "grey" }, { mode = "rgba", scale = 2 }, { apply_exif_orientation = true } } do
            try({ format = { read = function(b) return tide.io.decode_image(b, options) end, fname = "decode_image" } },
                bytes:sub(1, n - 1) .. string.char(bytes:byte(n) ~ 0xFF) .. bytes:sub(n + 1), "byte " .. n)
        end
    end
end)

t.test("rows_of_cifar_that_are_not_whole_are_refused", function()
    local folder = path .. "s"
    assert(os.execute("mkdir -p '" .. folder .. "'"))
    local row = "\3" .. ("\9"):rep(3072)
    for _, n in ipairs { 0, 1, 3072, 3074, 6145 } do
        local file <close> = assert(io.open(folder .. "/test_batch.bin", "wb"))
        file:write((row .. row):sub(1, n))
        file:close()
        t.error_has(function() tide.data.cifar10(folder, { train = false }) end, "cifar10: ")
    end
    assert(os.execute("rm -r '" .. folder .. "'"))
end)

os.remove(path)
t.finish()
