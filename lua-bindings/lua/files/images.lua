-- files/images.lua: PNG and JPEG files as uint8 tensors (channels, height, width) and back: tide.io's functions of them, and
-- their format for tide.load. Pixels are decoded in C (lua-bindings/images/), in which nothing is known of options.
local tide = ...
local fail, declare = tide._fail, tide._function
local images = { name = "PNG and JPEG images" }

-- Channels by the name of a mode; torchvision's names for the same stand beside them.
local MODES = { unchanged = 0, grey = 1, gray = 1, l = 1, grey_alpha = 2, gray_alpha = 2, rgb = 3, rgba = 4, rgb_alpha = 4 }

local function channels_of(fname, mode)
    return MODES[string.lower(mode)]
        or fail('%s: option mode: "rgb", "rgba", "grey", "grey_alpha" or "unchanged" expected, got "%s"', fname, mode)
end

local function decode(fname, what, bytes, mode, scale, turned, most, into)
    local channels = channels_of(fname, mode)
    if scale ~= 1 and scale ~= 2 and scale ~= 4 and scale ~= 8 then
        fail("%s: option scale: 1, 2, 4 or 8 expected, got %d", fname, scale)
    end
    return tide._image_decode(bytes, channels, scale, turned, most, what, into)
end

local function read(fname, path, ...)
    local _read <close> = tide._stage_enter("read", path)
    local bytes <close> = tide._bytes(path, fname)
    local _decode <close> = tide._stage_enter("decode", path)
    return decode(fname, string.format("%s: '%s'", fname, path), bytes, ...)
end

-- Pixels as files have them: (height, width, channels), on the CPU.
local function pixels_of(fname, x, most)
    x = x.ndim == 2 and x:unsqueeze(1) or x
    if x.dtype ~= tide.uint8 or x.ndim ~= 3 or x:numel() == 0 then
        fail("%s: image: uint8 of shape (channels, height, width) expected, got %s of shape %s", fname, tostring(x.dtype), tostring(x.shape))
    elseif not most[x.shape[1]] then
        fail("%s: image: %s channels expected, got shape %s", fname, most.text, tostring(x.shape))
    end
    return x:cpu():permute(2, 3, 1):contiguous()
end

local PNG <const> = { true, true, true, true, text = "1 to 4" }
local JPEG <const> = { true, false, true, text = "1 or 3" }

local function encode_jpeg(fname, image, quality)
    return tide._jpeg(pixels_of(fname, image, JPEG), quality, fname)
end

--- open(io): its functions of images.
function images.open(io)
    local options = 'str mode="unchanged", int scale=1, bool apply_exif_orientation=false, int(1..) max_pixels=178956970, '
        .. "Tensor? into=nil) -> Tensor"

    io.read_image = declare("read_image(str path, *, " .. options,
        "A PNG or JPEG file as uint8 (channels, height, width). mode: \"rgb\", \"rgba\", \"grey\", \"grey_alpha\", or the channels of the "
        .. "file. scale 2, 4 or 8 decodes a JPEG at that fraction of its sides, rounded up, for less time; a PNG stays as it is. Samples "
        .. "of 16 bits keep their upper 8. apply_exif_orientation turns it as the camera was held; more than max_pixels are refused "
        .. "before they take memory; into is a tensor (a row of a batch) that the pixels are written to.", function(path, ...)
            return read("read_image", path, ...)
        end)

    io.decode_image = declare("decode_image(any bytes, *, " .. options,
        "The same of a file's bytes, which are a string or a uint8 tensor: files that lie in archives.", function(bytes, ...)
            return decode("decode_image", "decode_image", bytes, ...)
        end)

    io.encode_png = declare("encode_png(Tensor image) -> str", "The bytes of a PNG file of a uint8 image (channels, height, width): grey, grey "
        .. "with alpha, RGB or RGB with alpha.", function(image)
            return tide._png(pixels_of("encode_png", image, PNG), true)
        end)

    io.write_png = declare("write_png(Tensor image, str path)", "Write a uint8 image (channels, height, width) of 1 to 4 channels as PNG, "
        .. "whole or not at all.", function(image, path)
            tide._write(path, "write_png", tide._png(pixels_of("write_png", image, PNG), true))
        end)

    io.encode_jpeg = declare("encode_jpeg(Tensor image, *, int(1..100) quality=75) -> str", "The bytes of a JPEG file of a uint8 image "
        .. "(channels, height, width): grey or RGB.", function(image, quality)
            return encode_jpeg("encode_jpeg", image, quality)
        end)

    io.write_jpeg = declare("write_jpeg(Tensor image, str path, *, int(1..100) quality=75)", "Write a uint8 image (channels, height, width) of 1 "
        .. "or 3 channels as JPEG, whole or not at all.", function(image, path, quality)
            tide._write(path, "write_jpeg", encode_jpeg("write_jpeg", image, quality))
        end)
end

function images.match(head)
    return string.sub(head, 1, 8) == "\x89PNG\r\n\x1A\n" or string.sub(head, 1, 3) == "\xFF\xD8\xFF"
end

function images.load(path, options)
    local x = tide.io.read_image(path)
    return options and options.device and x:to(options.device) or x
end

return images
