-- data/transforms.lua: tide.data.transforms: images (channels, height, width) of uint8, or batches of them, at another size, in
-- another place, in other colours, as torchvision.transforms has them, and as numbers for a network. uint8 stays uint8 until
-- normalize. A function works on an image: resize(x, 224); a class makes a function of an image: Resize(224). What is random is
-- drawn from the default generator, which a DataLoader sets before each sample to a seed of epoch and sample alone.
local tide = ...
local fail, declare, describe = tide._fail, tide._function, tide._describe
local transforms = {}

-- ---- what is given ----

local function check_image(fname, x)
    if not tide.is_tensor(x) or x.ndim < 3 or x.ndim > 4 or x:numel() == 0 then
        fail("%s: image: shape (channels, height, width) expected, or a batch of such, got %s", fname,
            tide.is_tensor(x) and "shape " .. tostring(x.shape) or describe(x))
    end
    return x
end

-- The same, of uint8, on the CPU.
local function check_bytes(fname, x)
    check_image(fname, x)
    if x.dtype ~= tide.uint8 or tostring(x.device) ~= "cpu" then
        fail("%s: image: uint8 on the CPU expected, got %s on %s: transforms of bytes come before normalize", fname, tostring(x.dtype),
            tostring(x.device))
    end
    return x
end

-- Height and width of a size that is one number or two.
local function pair(fname, name, size)
    if math.type(size) == "integer" then
        size = { size, size }
    end
    if type(size) ~= "table" or #size ~= 2 or math.type(size[1]) ~= "integer" or math.type(size[2]) ~= "integer" or size[1] < 1 or size[2] < 1
        or size[1] >= 1 << 24 or size[2] >= 1 << 24 then
        fail("%s: %s: one or two integers from 1 expected, {height, width}, got %s", fname, name, describe(size))
    end
    return size[1], size[2]
end

local function side_of(x)
    return x.shape[x.ndim - 1], x.shape[x.ndim]
end

-- fn of planes (n, height, width) for an image or a batch.
local function by_planes(x, fn)
    if x.ndim == 3 then
        return fn(x)
    end
    local y = fn(x:flatten(1, 2))
    return y:view(x.shape[1], x.shape[2], y.shape[2], y.shape[3])
end

-- fn of each image of a batch, which are its own.
local function by_image(x, fn)
    x = x:is_contiguous() and x:clone() or x:contiguous()
    for k = 1, x.ndim == 4 and #x or 1 do
        fn(x.ndim == 4 and x[k] or x)
    end
    return x
end

-- ---- random numbers ----

local function uniform(low, high)
    return low + (high - low) * tide.rand({ 1 }, { dtype = tide.float64 }):item()
end

-- An integer from 0 to n.
local function upto(n)
    return n > 0 and tide.randint(0, n + 1, { 1 }):item() or 0
end

-- ---- size and place ----

local INTERPOLATIONS <const> = { nearest = "nearest", bilinear = "bilinear", bicubic = "bicubic" }

local function check_interpolation(fname, name)
    return INTERPOLATIONS[name] or fail('%s: option interpolation: "nearest", "bilinear" or "bicubic" expected, got "%s"', fname, name)
end

local function resize(x, size, interpolation, into)
    check_bytes("resize", x)
    check_interpolation("resize", interpolation)
    local height, width = side_of(x)
    local h, w
    if math.type(size) == "integer" and size >= 1 then -- of the shorter side
        h, w = height <= width and size or size * height // width, width <= height and size or size * width // height
        h, w = pair("resize", "size", { math.max(h, 1), math.max(w, 1) })
    else
        h, w = pair("resize", "size", size)
    end
    if h == height and w == width and not into then
        return x
    end
    return by_planes(x, function(planes)
        return tide._image_resize(planes, h, w, interpolation, into and (into.ndim == 3 and into or into:flatten(1, 2)))
    end)
end

local function pad(x, padding, fill)
    check_image("pad", x)
    local p = math.type(padding) == "integer" and { padding, padding, padding, padding } or padding
    p = type(p) == "table" and #p == 2 and { p[1], p[2], p[1], p[2] } or p
    for k = 1, 4 do
        if type(p) ~= "table" or #p ~= 4 or math.type(p[k]) ~= "integer" or p[k] < 0 then
            fail("pad: padding: one, two or four integers from 0 expected, {left, top, right, bottom}, got %s", describe(padding))
        end
    end
    local height, width = side_of(x)
    local sizes = { table.unpack(x.shape) }
    sizes[x.ndim - 1], sizes[x.ndim] = height + p[2] + p[4], width + p[1] + p[3]
    local y = tide.full(sizes, fill, { dtype = x.dtype, device = x.device })
    y:narrow(x.ndim - 1, p[2] + 1, height):narrow(x.ndim, p[1] + 1, width):copy_(x)
    return y
end

-- A part of an image; what lies outside is 0.
local function crop(x, top, left, h, w)
    local height, width = side_of(check_image("crop", x))
    local above, before = math.max(-top, 0), math.max(-left, 0)
    local below, behind = math.max(top + h - height, 0), math.max(left + w - width, 0)
    if above + before + below + behind > 0 then
        x = pad(x, { before, above, behind, below }, 0)
    end
    return x:narrow(x.ndim - 1, top + above + 1, h):narrow(x.ndim, left + before + 1, w)
end

local function center_crop(x, size)
    local height, width = side_of(check_image("center_crop", x))
    local h, w = pair("center_crop", "size", size)
    local function half(n) -- towards the even number where it lies between two
        return n % 2 == 0 and n // 2 or (n // 2 % 2 == 0 and n // 2 or n // 2 + 1)
    end
    -- a side that is too short is padded, one pixel more behind it than in front where that can't be even
    local top = h > height and -((h - height) // 2) or half(height - h)
    local left = w > width and -((w - width) // 2) or half(width - w)
    return crop(x, top, left, h, w)
end

local function random_crop(x, size, padding, fill)
    local h, w = pair("random_crop", "size", size)
    x = padding and pad(x, padding, fill) or check_image("random_crop", x)
    local height, width = side_of(x)
    if height < h or width < w then
        fail("random_crop: a part of (%d, %d) of an image of (%d, %d): padding makes it larger", h, w, height, width)
    end
    local top = upto(height - h)
    return crop(x, top, upto(width - w), h, w)
end

-- A part of a random area and ratio of its sides, in one of ten tries; else the largest in the middle.
local function random_part(height, width, scale, ratio)
    for _ = 1, 10 do
        local area = height * width * uniform(scale[1], scale[2])
        local aspect = math.exp(uniform(math.log(ratio[1]), math.log(ratio[2])))
        local w, h = math.floor((area * aspect) ^ 0.5 + 0.5), math.floor((area / aspect) ^ 0.5 + 0.5)
        if w >= 1 and w <= width and h >= 1 and h <= height then
            local top = upto(height - h)
            return top, upto(width - w), h, w
        end
    end
    local h, w, own = height, width, width / height
    if own < ratio[1] then
        h = math.max(1, math.min(height, math.floor(width / ratio[1] + 0.5)))
    elseif own > ratio[2] then
        w = math.max(1, math.min(width, math.floor(height * ratio[2] + 0.5)))
    end
    return (height - h) // 2, (width - w) // 2, h, w
end

local function check_range(fname, name, range, least)
    if #range ~= 2 or not (range[1] > least and range[1] <= range[2] and range[2] < math.huge) then
        fail("%s: option %s: two numbers above %d, the larger one last, expected", fname, name, least)
    end
    return range
end

local function random_resized_crop(x, size, scale, ratio, interpolation, into)
    local height, width = side_of(check_bytes("random_resized_crop", x))
    local h, w = pair("random_resized_crop", "size", size)
    scale = check_range("random_resized_crop", "scale", scale or { 0.08, 1 }, 0)
    ratio = check_range("random_resized_crop", "ratio", ratio or { 3 / 4, 4 / 3 }, 0)
    return resize(crop(x, random_part(height, width, scale, ratio)), { h, w }, interpolation, into)
end

local function chance(fname, p)
    return p >= 0 and p <= 1 and uniform(0, 1) < p or (p < 0 or p > 1) and fail("%s: option p: 0 to 1 expected, got %s", fname, tide._number(p))
end

-- ---- affine ----

-- Where a pixel of the result comes from, by the angle (clockwise, in degrees), the translation, the scale and the shear.
local function inverse(angle, translate, scale, shear, cx, cy)
    local rot, sx, sy = math.rad(angle), math.rad(shear[1]), math.rad(shear[2])
    local a, c = math.cos(rot - sy) / math.cos(sy), math.sin(rot - sy) / math.cos(sy)
    local b, d = -a * math.tan(sx) - math.sin(rot), -c * math.tan(sx) + math.cos(rot)
    local m = { d / scale, -b / scale, 0, -c / scale, a / scale, 0 }
    m[3] = m[1] * (-cx - translate[1]) + m[2] * (-cy - translate[2]) + cx
    m[6] = m[4] * (-cx - translate[1]) + m[5] * (-cy - translate[2]) + cy
    return m
end

local function affine(x, angle, translate, scale, shear, center, fill, interpolation)
    local height, width = side_of(check_bytes("affine", x))
    translate, shear = translate or { 0, 0 }, shear or { 0, 0 }
    if #translate ~= 2 or #shear ~= 2 or center and #center ~= 2 then
        fail("affine: options translate, shear and center are two numbers each, {x, y}")
    elseif not (scale > 0 and scale < math.huge) then
        fail("affine: option scale: a number above 0 expected, got %s", tide._number(scale))
    elseif interpolation ~= "nearest" and interpolation ~= "bilinear" then
        fail('affine: option interpolation: "nearest" or "bilinear" expected, got "%s"', interpolation)
    end
    local cx, cy = center and center[1] - width / 2 or 0, center and center[2] - height / 2 or 0
    local matrix = inverse(angle, translate, scale, shear, cx, cy)
    return by_planes(x, function(planes) return tide._image_warp(planes, matrix, interpolation == "bilinear", fill) end)
end

local function rotate(x, angle, center, fill, interpolation)
    return affine(x, -angle, { 0, 0 }, 1, { 0, 0 }, center, fill, interpolation)
end

-- ---- colours ----

local function adjust(x, what, factor)
    check_bytes("adjust_" .. what, x)
    local channels = x.shape[x.ndim - 2]
    if channels ~= 1 and channels ~= 3 then
        fail("adjust_%s: image: 1 or 3 channels expected, got shape %s", what, tostring(x.shape))
    elseif what == "hue" and not (factor >= -0.5 and factor <= 0.5) then
        fail("adjust_hue: factor: -0.5 to 0.5 of a turn expected, got %s", tide._number(factor))
    elseif what ~= "hue" and not (factor >= 0 and factor < math.huge) then
        fail("adjust_%s: factor: a number from 0 expected, got %s", what, tide._number(factor))
    end
    return by_image(x, function(image) tide._image_adjust(image, what, factor) end)
end

local KINDS <const> = { "brightness", "contrast", "saturation", "hue" }

-- A number b stands for factors from 1 - b to 1 + b, of hue from -b to b; two numbers for themselves.
local function factors(name, value)
    local middle, least = name == "hue" and 0 or 1, name == "hue" and -0.5 or 0
    local range = type(value) == "table" and value or { math.max(least, middle - value), middle + value }
    if #range ~= 2 or not (range[1] >= least and range[1] <= range[2]) or range[2] > (name == "hue" and 0.5 or math.huge) then
        fail("color_jitter: option %s: a number from 0%s, or two that are a range, expected", name, name == "hue" and " to 0.5" or "")
    end
    return range
end

local function color_jitter(x, ...)
    local order = tide.randperm(4):tolist()
    for _, k in ipairs(order) do
        local value = select(k, ...)
        if value ~= 0 then
            local range = factors(KINDS[k], value)
            x = adjust(x, KINDS[k], uniform(range[1], range[2]))
        end
    end
    return x
end

-- What saturation without colours leaves, in one channel or in three.
local function grayscale(x, channels)
    if channels ~= 1 and channels ~= 3 then
        fail("grayscale: num_output_channels: 1 or 3 expected, got %d", channels)
    end
    local grey = adjust(x, "saturation", 0):narrow(x.ndim - 2, 1, 1)
    local sizes = { table.unpack(grey.shape) }
    sizes[x.ndim - 2] = channels
    return channels == 1 and grey or grey:expand(sizes):contiguous()
end

-- ---- parts that are erased ----

local function write_part(part, value)
    if value == "random" then
        part:copy_(tide.randn({ table.unpack(part.shape) }, { dtype = part.dtype, device = part.device }))
    elseif type(value) == "table" and #value == part.shape[part.ndim - 2] then
        part:copy_(tide.tensor(value, { dtype = part.dtype, device = part.device }):view(#value, 1, 1))
    elseif type(value) == "number" then
        part:fill_(value)
    else
        fail('random_erasing: option value: a number, one for each channel or "random" expected, got %s', describe(value))
    end
end

local function random_erasing(x, p, scale, ratio, value)
    local height, width = side_of(check_image("random_erasing", x))
    scale = check_range("random_erasing", "scale", scale or { 0.02, 0.33 }, 0)
    ratio = check_range("random_erasing", "ratio", ratio or { 0.3, 3.3 }, 0)
    if not chance("random_erasing", p) then
        return x
    end
    for _ = 1, 10 do
        local area = height * width * uniform(scale[1], scale[2])
        local aspect = math.exp(uniform(math.log(ratio[1]), math.log(ratio[2])))
        local h, w = math.floor((area * aspect) ^ 0.5 + 0.5), math.floor((area / aspect) ^ 0.5 + 0.5)
        if h >= 1 and h < height and w >= 1 and w < width then
            local y, top = x:clone(), upto(height - h)
            write_part(crop(y, top, upto(width - w), h, w), value)
            return y
        end
    end
    return x
end

-- ---- numbers ----

local function convert_image_dtype(x, dtype)
    if x.dtype == dtype then
        return x
    elseif x.dtype == tide.uint8 and dtype.is_floating_point then
        return x:to(dtype) / 255
    elseif x:is_floating_point() and dtype == tide.uint8 then
        return (x * (256 - 1e-3)):clamp(0, 255):to(tide.uint8)
    end
    fail("convert_image_dtype: uint8 to floats or back expected, got %s to %s", tostring(x.dtype), tostring(dtype))
end

local function normalize(x, mean, std)
    check_image("normalize", x)
    local n, scales, shifts = x.shape[x.ndim - 2], {}, {}
    for k = 1, n do
        local m, s = mean[#mean == 1 and 1 or k], std[#std == 1 and 1 or k]
        if not m or not s or (#mean ~= 1 and #mean ~= n) or (#std ~= 1 and #std ~= n) then
            fail("normalize: %d channels, but %d numbers of mean and %d of std: one, or one for each", n, #mean, #std)
        elseif s == 0 then
            fail("normalize: option std: no number but 0 expected")
        end
        scales[k], shifts[k] = 1 / (255 * s), -m / s
    end
    if x.dtype == tide.uint8 then
        return tide._image_normalize(x:cpu():contiguous(), scales, shifts)
    end
    local sizes = { n, 1, 1 }
    local function column(list, at)
        local values = {}
        for k = 1, n do
            values[k] = list[#list == 1 and 1 or k]
        end
        return tide.tensor(values, { dtype = x.dtype, device = at }):view(sizes)
    end
    return (x - column(mean, x.device)) / column(std, x.device)
end

-- ---- batches ----

-- The share of each image that stays, drawn from Beta(alpha, alpha).
local function draw_share(fname, x, labels, least, alpha)
    if not tide.is_tensor(x) or not tide.is_tensor(labels) or labels.ndim ~= 1 or x.ndim < least or #x ~= #labels then
        fail("%s: a batch of images and as many class numbers expected", fname)
    elseif not (alpha > 0) then
        fail("%s: option alpha: a number above 0 expected, got %s", fname, tide._number(alpha))
    end
    return tide.distributions.Beta(alpha, alpha):sample():item()
end

-- Labels as probabilities: a share of each and the rest of that of the image before.
local function mixed_labels(labels, num_classes, share)
    local y = tide.one_hot(labels, num_classes):to(tide.float32)
    return y * share + y:roll(1, 1) * (1 - share)
end

local function mixup(x, labels, num_classes, alpha)
    local share = draw_share("mixup", x, labels, 2, alpha)
    x = x.dtype == tide.uint8 and x:to(tide.float32) / 255 or x
    return x * share + x:roll(1, 1) * (1 - share), mixed_labels(labels, num_classes, share)
end

local function cutmix(x, labels, num_classes, alpha)
    local share = draw_share("cutmix", x, labels, 3, alpha)
    local height, width = side_of(x)
    local function span(side) -- the first pixel of a box around a random place, and how many
        local half, middle = math.floor(side * 0.5 * (1 - share) ^ 0.5), upto(side - 1)
        local first = math.max(middle - half, 0)
        return first, math.min(middle + half, side) - first
    end
    local top, h = span(height)
    local left, w = span(width)
    local y = x:clone()
    if h > 0 and w > 0 then
        crop(y, top, left, h, w):copy_(crop(x:roll(1, 1), top, left, h, w))
    end
    return y, mixed_labels(labels, num_classes, 1 - h * w / (height * width))
end

-- ---- the functions, and the classes that make functions of an image of them ----

-- A function's name and what stands behind the image: a worker has the functions itself.
local Transform = { __name = "Transform" }
Transform.__index = Transform
local functions = {}

function Transform:__call(x)
    return functions[self.name](x, table.unpack(self, 1, self.n))
end

function functions.compose(x, list)
    for _, one in ipairs(list) do
        x = one(x)
    end
    return x
end

local function check_list(fname, list)
    for k, one in ipairs(list) do
        if type(one) ~= "function" and getmetatable(one) ~= Transform then
            fail("%s: entry %d: a transform or a function expected, got %s", fname, k, describe(one))
        end
    end
    return list
end

local function random_choice(x, list, weights)
    if #check_list("random_choice", list) == 0 or weights and #weights ~= #list then
        fail("random_choice: transforms, and with option p a weight for each, expected")
    end
    return list[weights and tide.multinomial(tide.tensor(weights, { dtype = tide.float64 }), 1):item() or upto(#list - 1) + 1](x)
end

-- Values as they were written.
local function shown(values)
    local parts = {}
    for k, value in ipairs(values) do
        parts[k] = type(value) == "table" and getmetatable(value) == nil and "{" .. shown(value) .. "}" or tostring(value)
    end
    return table.concat(parts, ", ")
end

function Transform:__tostring()
    return self.name == "compose" and "Compose{" .. shown(self[1]) .. "}" or self.class .. "(" .. shown(self) .. ")"
end

--- open(data): tide.data.transforms.
function transforms.open(data)
    local T = {}
    data.transforms = T
    data._classes.Transform = Transform
    tide._class("Transform", Transform)

    -- A function of an image, and where it has a class that; both have the same arguments behind the image.
    local function define(name, class, parameters, doc, fn)
        T[name] = declare(name .. "(Tensor image" .. (parameters ~= "" and ", " .. parameters or "") .. ") -> Tensor", doc, fn)
        functions[name] = fn
        if class then
            local schema = class .. "(" .. parameters .. ")"
            T[class] = declare(schema .. " -> Transform", "A function of an image: " .. doc, function(...)
                return setmetatable({ name = name, class = class, n = select("#", ...), ... }, Transform)
            end)
        end
    end

    define("resize", "Resize", 'any size, *, str interpolation="bilinear", Tensor? into=nil',
        "Another size: {height, width}, or a number for the shorter side; antialiased, \"nearest\", \"bilinear\" or \"bicubic\". Of uint8, with "
        .. "torchvision's values to the bit; into is a tensor of the result's shape to write to.", resize)
    define("pad", "Pad", "any padding, *, int(0..255) fill=0", "More pixels around it: a number, {x, y} or {left, top, right, bottom}.", pad)
    T.crop = declare("crop(Tensor image, int top, int left, int(1..) height, int(1..) width) -> Tensor",
        "A part of an image, a view of it; top and left are pixels passed over, and what lies outside is 0.", crop)
    define("center_crop", "CenterCrop", "any size", "The middle, {height, width} or a square; what is missing is 0.", center_crop)
    define("random_crop", "RandomCrop", "any size, *, any padding=nil, int(0..255) fill=0", "A part at a random place, of the image with padding.", random_crop)
    define("random_resized_crop", "RandomResizedCrop",
        'any size, *, number[]? scale=nil, number[]? ratio=nil, str interpolation="bilinear", Tensor? into=nil',
        "A part of a random area (scale of the whole, {0.08, 1}) and ratio of its sides ({3 / 4, 4 / 3}), at another size.", random_resized_crop)
    define("hflip", nil, "", "Right and left exchanged.", function(x) return check_image("hflip", x):flip(x.ndim) end)
    define("vflip", nil, "", "Top and bottom exchanged.", function(x) return check_image("vflip", x):flip(x.ndim - 1) end)
    define("random_horizontal_flip", "RandomHorizontalFlip", "float p=0.5", "hflip with probability p.",
        function(x, p) return chance("random_horizontal_flip", p) and T.hflip(x) or x end)
    define("random_vertical_flip", "RandomVerticalFlip", "float p=0.5", "vflip with probability p.",
        function(x, p) return chance("random_vertical_flip", p) and T.vflip(x) or x end)
    define("rotate", nil, 'number angle, *, number[]? center=nil, int(0..255) fill=0, str interpolation="nearest"',
        "Turned counter-clockwise by degrees around the middle, or center {x, y}; \"nearest\" or \"bilinear\".", rotate)
    define("affine", nil, "*, number angle=0, number[]? translate=nil, number scale=1, number[]? shear=nil, number[]? center=nil, "
        .. 'int(0..255) fill=0, str interpolation="nearest"',
        "Turned clockwise by degrees, moved by pixels {x, y}, scaled and sheared by degrees {x, y}; \"nearest\" or \"bilinear\".", affine)
    define("random_rotation", "RandomRotation", 'number degrees, *, number[]? center=nil, int(0..255) fill=0, str interpolation="nearest"',
        "rotate by -degrees to degrees.", function(x, degrees, ...) return rotate(x, uniform(-degrees, degrees), ...) end)
    define("random_affine", "RandomAffine", "number degrees, *, number[]? translate=nil, number[]? scale=nil, number shear=0, int(0..255) fill=0, "
        .. 'str interpolation="nearest"',
        "affine by -degrees to degrees, moved by at most translate {x, y} of its sides, scaled by scale {from, to}, sheared along x.",
        function(x, degrees, translate, scale, shear, fill, interpolation)
            local height, width = side_of(check_bytes("random_affine", x))
            local moved = { 0, 0 }
            local angle = uniform(-degrees, degrees)
            if translate then
                local dx, dy = translate[1] * width, (translate[2] or translate[1]) * height
                moved = { math.floor(uniform(-dx, dx) + 0.5), math.floor(uniform(-dy, dy) + 0.5) }
            end
            local by = scale and uniform(table.unpack(check_range("random_affine", "scale", scale, 0))) or 1
            return affine(x, angle, moved, by, { uniform(-shear, shear), 0 }, nil, fill, interpolation)
        end)
    for _, what in ipairs(KINDS) do
        define("adjust_" .. what, nil, "number factor", ({ brightness = "Each pixel times factor.", contrast = "Away from the grey of its mean by "
            .. "factor.", saturation = "Away from grey by factor.", hue = "Its hues turned by factor, -0.5 to 0.5 of a turn." })[what]
            .. " uint8, as torchvision.", function(x, factor) return adjust(x, what, factor) end)
    end
    define("color_jitter", "ColorJitter", "*, any brightness=0, any contrast=0, any saturation=0, any hue=0",
        "Colours changed at random, in random order: b stands for factors from 1 - b to 1 + b, of hue from -b to b; {from, to} for itself.", color_jitter)
    define("grayscale", "Grayscale", "int num_output_channels=1", "Grey, of one channel or (3) three that are equal.", grayscale)
    define("random_grayscale", "RandomGrayscale", "float p=0.1", "grayscale with probability p, of as many channels as before.",
        function(x, p) return chance("random_grayscale", p) and grayscale(x, x.shape[x.ndim - 2]) or x end)
    define("random_erasing", "RandomErasing", "float p=0.5, number[]? scale=nil, number[]? ratio=nil, any value=0",
        "With probability p a part of a random area (scale of the whole, {0.02, 0.33}) and ratio of its sides ({0.3, 3.3}) at a random place is "
        .. 'overwritten: by a number, by one for each channel, or by "random" draws of floats, which come after normalize.', random_erasing)
    define("convert_image_dtype", "ConvertImageDtype", "dtype dtype", "uint8 of 0 to 255 as floats of 0 to 1, or back.", convert_image_dtype)
    define("normalize", "Normalize", "number[] mean, number[] std", "(x - mean) / std by channel, as float32; uint8 counts as 0 to 1, in one pass.", normalize)
    T.mixup = declare("mixup(Tensor images, Tensor labels, int(1..) num_classes, *, number alpha=1) -> Tensor, Tensor",
        "A batch mixed with itself moved by one image, by a share that is drawn from Beta(alpha, alpha), and the labels as probabilities.", mixup)
    T.cutmix = declare("cutmix(Tensor images, Tensor labels, int(1..) num_classes, *, number alpha=1) -> Tensor, Tensor",
        "A batch with a box of each image taken from the one before, at one place and of an area by a share that is drawn from Beta(alpha, alpha); "
        .. "the labels as probabilities, by the areas.", cutmix)
    T.Compose = declare("Compose(list transforms) -> Transform", "Transforms, or any functions of an image, one behind the other.", function(list)
        return setmetatable({ name = "compose", n = 1, check_list("Compose", list) }, Transform)
    end)
    define("random_apply", "RandomApply", "list transforms, float p=0.5", "Transforms, or any functions, one behind the other, or (1 - p) none of them.",
        function(x, list, p) return chance("random_apply", p) and functions.compose(x, check_list("random_apply", list)) or x end)
    define("random_choice", "RandomChoice", "list transforms, *, number[]? p=nil", "One of some transforms or functions, as likely as p says, or all alike.",
        random_choice)
    tide._document(T, "transforms", "tide.data.transforms", "Images of uint8 before a network: Compose{RandomResizedCrop(224), "
        .. "RandomHorizontalFlip(), ColorJitter{brightness = 0.4}, Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})}.")
end

return transforms
