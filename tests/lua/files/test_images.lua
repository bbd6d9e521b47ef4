-- PNG and JPEG files: tide.io.read_image, decode_image, write_png, write_jpeg, against what Pillow reads of tests/golden/images.
local t = require "harness"

local folder = os.getenv("TIDE_SOURCE") .. "/tests/golden/images/"
local pixels = tide.io.load_npz(folder .. "pixels.npz")
local path = os.tmpname()

local function at(name)
    return folder .. name:sub(-3) .. "/" .. name
end

local function bytes_of(name)
    local file <close> = assert(io.open(at(name), "rb"))
    return file:read("a")
end

local function same(got, want, what)
    t.eq(got.dtype, tide.uint8, what)
    t.eq(tostring(got.shape), tostring(want.shape), what)
    t.is_true(got:is_contiguous(), what)
    t.eq((got:to(tide.int32) - want:to(tide.int32)):abs():max():item(), 0, what)
end

t.test("every_kind_of_png_and_jpeg_has_the_pixels_that_pillow_reads", function()
    local kinds = 0
    for key, want in pairs(pixels) do
        local name, scale = key:match("^([^:|]+)|?(%d*)$")
        if name and not name:find("^exif") then
            local options = { scale = tonumber(scale) or 1 }
            same(tide.io.read_image(at(name), options), want, key)
            same(tide.io.decode_image(bytes_of(name), options), want, key)
            kinds = kinds + 1
        end
    end
    t.is_true(kinds > 40, kinds)
end)

t.test("modes_drop_alpha_add_it_and_make_grey_as_pillow_does", function()
    local modes = { L = "grey", RGB = "rgb", RGBA = "rgba" }
    for key, want in pairs(pixels) do
        local name, mode = key:match("^(.+):(%u+)$")
        if name then
            same(tide.io.read_image(at(name), { mode = modes[mode] }), want, key)
            same(tide.io.read_image(at(name), { mode = mode == "L" and "GRAY" or mode }), want, key)
        end
    end
    local both = tide.io.read_image(at("png_6_8.png"), { mode = "grey_alpha" })
    same(both[{ { 2, 2 } }], pixels["png_6_8.png"][{ { 4, 4 } }])
    local grey = tide.io.read_image(at("jpeg_420.jpg"), { mode = "grey" })
    local of_colours = pixels["jpeg_420.jpg"]:to(tide.float32)
    local want = (of_colours[1] * 0.299 + of_colours[2] * 0.587 + of_colours[3] * 0.114)
    t.is_true((grey[1] - want):abs():max():item() < 6) -- colours that were cut off at 0 and 255 are another brightness
    t.eq(tostring(tide.io.read_image(at("jpeg_inks.jpg"), { mode = "grey" }).shape), "(1, 37, 53)")
end)

t.test("exif_turns_an_image_where_that_is_asked_for", function()
    local seen = 0
    for key, want in pairs(pixels) do
        if key:find("^exif") then
            same(tide.io.read_image(at(key), { apply_exif_orientation = true }), want, key)
            local plain = tide.io.read_image(at(key))
            t.eq(plain.shape[3], key:find("png") and 3 or 18)
            seen = seen + 1
        end
    end
    t.eq(seen, 12)
end)

t.test("pixels_go_into_a_row_of_a_batch", function()
    local batch = tide.zeros(2, 3, 37, 53, { dtype = tide.uint8 })
    local row = batch[2]
    t.is_true(rawequal(tide.io.read_image(at("jpeg_420.jpg"), { into = row }), row))
    same(batch[2]:contiguous(), pixels["jpeg_420.jpg"])
    t.eq(batch[1]:sum():item(), 0)
    local last = tide.zeros(37, 53, 3, { dtype = tide.uint8 }) -- channels behind one another
    tide.io.read_image(at("jpeg_420.jpg"), { into = last:permute(3, 1, 2) })
    same(last:permute(3, 1, 2):contiguous(), pixels["jpeg_420.jpg"])
    t.error_matches(function() tide.io.read_image(at("jpeg_420.jpg"), { into = batch }) end, "option into: a uint8 tensor of shape %(3, 37, 53%)")
    t.error_matches(function() tide.io.read_image(at("jpeg_420.jpg"), { into = tide.zeros(3, 37, 53) }) end, "option into: a uint8 tensor")
end)

t.test("workers_decode_at_once", function()
    local pool <close> = tide.workers { n = 4 }
    local names = { "jpeg_420.jpg", "png_6_16.png", "jpeg_progressive.jpg", "png_3_8.png", "jpeg_inks.jpg", "png_2_8_interlaced.png" }
    local list = {}
    for k = 1, 120 do
        list[k] = names[k % #names + 1]
    end
    local got = pool:map(function(name) return tide.io.read_image(at(name)) end, list)
    for k, name in ipairs(list) do
        same(got[k], pixels[name], name)
    end
end)

t.test("what_is_written_is_read_again", function()
    tide.manual_seed(1)
    for channels = 1, 4 do
        local x = tide.randint(0, 256, { channels, 7, 5 }):to(tide.uint8)
        tide.io.write_png(x, path)
        same(tide.io.read_image(path), x)
        same(tide.io.decode_image(tide.io.encode_png(x)), x)
        same(tide.load(path), x)
    end
    tide.io.write_png(tide.full({ 3, 2 }, 9, { dtype = tide.uint8 }), path) -- grey without a channel
    t.eq(tide.io.read_image(path):tolist(), { { { 9, 9 }, { 9, 9 }, { 9, 9 } } })
    local smooth = pixels["jpeg_420.jpg"]:narrow(1, 1, 1):contiguous()
    for _, x in ipairs { smooth, smooth:expand(3, -1, -1) } do
        tide.io.write_jpeg(x, path, { quality = 95 })
        local back = tide.io.read_image(path)
        t.eq(tostring(back.shape), tostring(x.shape))
        t.is_true((back:to(tide.float32) - x:to(tide.float32)):abs():mean():item() < 2)
        t.is_true(#tide.io.encode_jpeg(x, { quality = 30 }) < #tide.io.encode_jpeg(x, { quality = 95 }))
    end
end)

t.test("what_can_not_be_written_is_refused", function()
    for _, x in ipairs { tide.zeros(3, 4, 4), tide.zeros(5, 4, 4, { dtype = tide.uint8 }), tide.zeros(3, 0, 4, { dtype = tide.uint8 }),
        tide.zeros(4, { dtype = tide.uint8 }) } do
        t.error_matches(function() tide.io.write_png(x, path) end, "^[^\n]*write_png: image: ")
        t.error_matches(function() tide.io.write_jpeg(x, path) end, "^[^\n]*write_jpeg: image: ")
    end
    t.error_matches(function() tide.io.write_jpeg(tide.zeros(2, 4, 4, { dtype = tide.uint8 }), path) end, "1 or 3 channels expected, got shape %(2, 4, 4%)")
    t.error_matches(function() tide.io.write_jpeg(tide.zeros(1, 1, 65501, { dtype = tide.uint8 }), path) end, "at most 65500 pixels a side")
    t.error_matches(function() tide.io.write_png(tide.zeros(1, 2, 2, { dtype = tide.uint8 }), "/nowhere/at/all.png") end, "write_png: .*/nowhere/at/all.png")
    t.error_matches(function() tide.io.write_jpeg(tide.zeros(1, 2, 2, { dtype = tide.uint8 }), path, { quality = 101 }) end, "quality")
end)

t.test("options_that_make_no_sense_are_refused", function()
    t.error_matches(function() tide.io.read_image(at("jpeg_420.jpg"), { mode = "cmyk" }) end, 'read_image: option mode: .* got "cmyk"')
    t.error_matches(function() tide.io.read_image(at("jpeg_420.jpg"), { scale = 3 }) end, "read_image: option scale: 1, 2, 4 or 8")
    t.error_matches(function() tide.io.read_image(at("none.png")) end, "read_image: cannot read '.*none.png': No such file")
    t.error_matches(function() tide.io.decode_image("GIF89a") end, "decode_image: no image: PNG and JPEG are read")
    t.error_matches(function() tide.io.decode_image(tide.zeros(4)) end, "decode_image: a string, or uint8 bytes in a row")
end)

-- A PNG file of a size that nobody believes, and no pixels.
local function huge(width, height)
    local head = string.pack(">I4c4I4I4BBBBB", 13, "IHDR", width, height, 8, 2, 0, 0, 0)
    return "\x89PNG\r\n\x1A\n" .. head .. "\0\0\0\0" .. string.pack(">I4c4", 0, "IDAT") .. "\0\0\0\0"
end

t.test("a_small_file_does_not_take_much_memory", function()
    t.error_matches(function() tide.io.decode_image(huge(1 << 30, 1 << 30)) end, "1073741824 x 1073741824 pixels are more than max_pixels = 178956970")
    t.error_matches(function() tide.io.decode_image(huge(13000, 13000)) end, "damaged: 13000 x 13000 pixels don't fit 45 bytes")
    t.error_matches(function() tide.io.read_image(at("jpeg_420.jpg"), { max_pixels = 100 }) end, "53 x 37 pixels are more than max_pixels = 100")
    local x = tide.io.read_image(at("jpeg_420.jpg"), { max_pixels = 70, scale = 8 }) -- of what is decoded
    t.eq(x:numel(), 3 * 7 * 5)
end)

t.test("bytes_between_parts_of_a_jpeg_are_passed_over", function()
    local bytes = bytes_of("jpeg_444.jpg")
    local at = assert(bytes:find("\xFF\xDA", 1, true))
    same(tide.io.decode_image(bytes:sub(1, at - 1) .. "ab" .. bytes:sub(at)), pixels["jpeg_444.jpg"])
end)

os.remove(path)
t.finish()
