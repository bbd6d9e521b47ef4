-- tide.data.transforms against what torchvision and Pillow make of the same images (tests/golden/images/transforms.py), and by
-- what must hold of those that draw.
local t = require "harness"

local T = tide.data.transforms
local golden = tide.io.load_npz(os.getenv("TIDE_SOURCE") .. "/tests/golden/images/transforms.npz")
local a, b = golden.a, golden.b

-- By how much values may differ, and how many per cent of them may differ at all, by the function's name.
local tolerances = {
    adjust_brightness = { 1, 1 }, adjust_contrast = { 1, 1 }, adjust_saturation = { 1, 2 }, adjust_hue = { 1, 5 },
    affine = { 1, 10 }, rotate = { 1, 10 }, -- rounded between two numbers, in float32 there
    normalize = { 1e-5, 100 }, convert_image_dtype = { 1e-6, 100 },
}
-- "nearest" may take a neighbour where a place lies just between two: all places do of a quarter turn of sides that are even and odd.
local places = { affine = true, rotate = true }

local function share_of(differs)
    return 100 * differs:to(tide.float64):mean():item()
end

t.test("values_are_torchvisions_and_pillows", function()
    local n = 0
    for key, want in pairs(golden) do
        local call = key:gsub("÷", "/")
        if #key > 1 then
            local got = assert(load("local T, a, b = ... return " .. call))(T, a, b)
            local name = call:match("^T%.([%w_]+)")
            local most, share = table.unpack(tolerances[name] or { 0, 0 })
            t.eq({ got.dtype, tostring(got.shape) }, { want.dtype, tostring(want.shape) }, call)
            local differ = (got:to(tide.float64) - want:to(tide.float64)):abs()
            t.is_true(share_of(differ:gt(0)) <= share, call .. ": differ " .. share_of(differ:gt(0)))
            if places[name] and not call:find("bilinear") then
                t.is_true(share_of(differ:gt(0)) <= (call:find("90") and 6 or 1), call .. ": differ " .. share_of(differ:gt(0)))
            else
                t.is_true(differ:max():item() <= most, call .. ": by " .. differ:max():item())
            end
            n = n + 1
        end
    end
    t.is_true(n > 130, n)
end)

t.test("images_that_are_parts_of_others_and_batches_give_the_same", function()
    local batch = tide.stack { a, a:flip(3), a:flip(2) }
    local part = a:narrow(2, 3, 20):narrow(3, 5, 25)
    for name, fn in pairs {
        resize = function(x) return T.resize(x, { 9, 11 }) end, bicubic = function(x) return T.resize(x, { 50, 8 }, { interpolation = "bicubic" }) end,
        nearest = function(x) return T.resize(x, { 50, 8 }, { interpolation = "nearest" }) end,
        hue = function(x) return T.adjust_hue(x, 0.3) end, contrast = function(x) return T.adjust_contrast(x, 1.5) end,
        rotate = function(x) return T.rotate(x, 33, { interpolation = "bilinear" }) end, crop = function(x) return T.center_crop(x, { 8, 40 }) end,
        normalize = function(x) return T.normalize(x, { 0.1, 0.2, 0.3 }, { 0.5 }) end, pad = function(x) return T.pad(x, 2) end,
        hflip = T.hflip,
    } do
        local before = part:clone()
        t.is_true(fn(part):equal(fn(part:contiguous())), name)
        t.is_true(part:equal(before), name .. " changes its argument")
        local got = fn(batch)
        for k = 1, 3 do
            t.is_true(got[k]:equal(fn(batch[k])), name)
        end
    end
end)

t.test("sizes_of_one_and_constant_images_hold", function()
    for _, way in ipairs { "nearest", "bilinear", "bicubic" } do
        for _, value in ipairs { 0, 1, 128, 255 } do
            local x = tide.full({ 2, 13, 1 }, value, { dtype = tide.uint8 })
            for _, size in ipairs { { 1, 1 }, { 200, 3 }, { 2, 70 }, { 13, 1 } } do
                local y = T.resize(x, size, { interpolation = way })
                t.eq({ tostring(y.shape), y:min():item(), y:max():item() }, { ("(2, %d, %d)"):format(size[1], size[2]), value, value })
            end
        end
    end
end)

t.test("resize_writes_into_a_row", function()
    local rows = tide.zeros(2, 3, 9, 11, { dtype = tide.uint8 })
    T.resize(a, { 9, 11 }, { into = rows[2] })
    t.is_true(rows[2]:equal(T.resize(a, { 9, 11 })))
    t.eq(rows[1]:sum():item(), 0)
    t.error_has(function() T.resize(a, { 9, 12 }, { into = rows[2] }) end, "into: a uint8 tensor of shape (3, 9, 12) expected")
end)

-- ---- what draws ----

local function chain()
    return T.Compose { T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.RandomRotation(20), T.ColorJitter { brightness = 0.4, contrast = { 0.5, 1.5 },
        saturation = 0.4, hue = 0.1 }, T.RandomAffine(10, { translate = { 0.1, 0.2 }, scale = { 0.8, 1.2 }, shear = 5 }), T.RandomCrop(12, { padding = 1 }),
        T.Normalize({ 0.5 }, { 0.25 }) }
end

t.test("draws_follow_from_the_default_generator_alone", function()
    local f = chain()
    tide.manual_seed(7)
    local x, y = f(a), f(a)
    tide.manual_seed(7)
    t.is_true(f(a):equal(x))
    t.is_true(f(a):equal(y))
    t.is_true(not x:equal(y))
    t.eq({ x.dtype, tostring(x.shape) }, { tide.float32, "(3, 12, 12)" })
end)

t.test("batches_are_the_same_for_any_number_of_workers", function()
    local images = {}
    for k = 1, 10 do
        images[k] = a:roll(k, 3)
    end
    local f, first = chain(), nil
    local set = tide.data.map(images, function(x) return f(x) end)
    for _, n in ipairs { 0, 1, 2, 7 } do
        local loader <close> = tide.data.DataLoader(set, { batch_size = 4, shuffle = true, num_workers = n, seed = 3 })
        local all = {}
        for x in loader do
            all[#all + 1] = x
        end
        local got = tide.cat(all, 1)
        first = first or got
        t.is_true(got:equal(first), n)
    end
end)

t.test("random_parts_lie_within_and_reach_every_place", function()
    local x = tide.arange(0, 30):to(tide.uint8):view(1, 5, 6)
    tide.manual_seed(1)
    local seen = {}
    for _ = 1, 400 do
        local y = T.random_crop(x, { 4, 4 })
        seen[y[{ 1, 1, 1 }]:item()] = true
        t.eq(y[{ 1, 4, 4 }]:item(), y[{ 1, 1, 1 }]:item() + 21)
    end
    t.eq(seen, { [0] = true, [1] = true, [2] = true, [6] = true, [7] = true, [8] = true })
    local flips = 0
    for _ = 1, 400 do
        flips = flips + (T.random_horizontal_flip(x, 0.25)[{ 1, 1, 1 }]:item() == 5 and 1 or 0)
    end
    t.is_true(flips > 60 and flips < 140, flips)
    t.eq(T.random_vertical_flip(x, 1)[{ 1, 1, 1 }]:item(), 24)
    t.is_true(T.random_vertical_flip(x, 0):equal(x))
    for _ = 1, 50 do
        t.eq(tostring(T.random_resized_crop(x, { 3, 2 }, { scale = { 0.01, 0.02 }, ratio = { 5, 6 } }).shape), "(1, 3, 2)")
    end
end)

t.test("mixup_mixes_images_and_labels_alike", function()
    local x = tide.stack { tide.full({ 1, 2, 2 }, 0, { dtype = tide.uint8 }), tide.full({ 1, 2, 2 }, 255, { dtype = tide.uint8 }) }
    tide.manual_seed(3)
    local mixed, y = T.mixup(x, tide.tensor { 1, 3 }, 4, { alpha = 0.7 })
    local share = y[{ 1, 1 }]:item()
    t.is_true(share > 0 and share < 1)
    t.close(y:tolist(), { { share, 0, 1 - share, 0 }, { 1 - share, 0, share, 0 } }, 1e-6)
    t.close(mixed[{ 1, 1, 1, 1 }]:item(), 1 - share, 1e-6)
    t.close(mixed[{ 2, 1, 2, 2 }]:item(), share, 1e-6)
end)

t.test("cutmix_takes_a_box_of_another_image_and_its_share_of_the_label", function()
    local x = tide.stack { tide.full({ 1, 8, 10 }, 0, { dtype = tide.uint8 }), tide.full({ 1, 8, 10 }, 255, { dtype = tide.uint8 }) }
    local shares = 0
    for seed = 1, 20 do
        tide.manual_seed(seed)
        local mixed, y = T.cutmix(x, tide.tensor { 1, 3 }, 4)
        local taken = mixed[1]:ne(0)
        local share = taken:sum():item() / 80
        t.eq(mixed.dtype, tide.uint8)
        t.close(y:tolist(), { { 1 - share, 0, share, 0 }, { share, 0, 1 - share, 0 } }, 1e-6)
        t.is_true(mixed[2]:eq(0):equal(taken), "the box is at one place of all images")
        t.eq(taken:any(3):sum():item() * taken:any(2):sum():item(), taken:sum():item(), "it is a rectangle")
        shares = shares + share
    end
    t.is_true(shares > 4 and shares < 16, shares)
    t.eq(x[1]:sum():item(), 0)
end)

t.test("erasing_overwrites_a_rectangle_of_the_area_that_is_asked_for", function()
    local x = tide.ones(2, 20, 30)
    for seed = 1, 20 do
        tide.manual_seed(seed)
        local y = T.random_erasing(x, 1, { scale = { 0.1, 0.2 }, value = { 5, 7 } })
        local gone = y[1]:eq(5)
        local height, width = gone:any(2):sum():item(), gone:any(1):sum():item()
        t.is_true(y[2]:eq(7):equal(gone) and y[1]:masked_fill(gone, 1):equal(x[1]))
        t.eq(height * width, gone:sum():item())
        t.is_true(height * width >= 0.08 * 600 and height * width <= 0.23 * 600, height * width)
    end
    t.is_true(rawequal(T.random_erasing(x, 0), x))
    t.is_true(T.RandomErasing { p = 1, value = "random" }(x):ne(x):any():item())
    t.is_true(rawequal(T.random_erasing(x, 1, { scale = { 4, 5 } }), x), "no part is so large")
end)

t.test("lists_of_transforms_are_applied_by_chance_or_one_of_them", function()
    local function grown(by) return function(x) return x + by end end
    local applied, chosen = 0, { [10] = 0, [20] = 0 }
    local maybe, one = T.RandomApply({ grown(1), grown(2) }, 0.3), T.RandomChoice({ grown(10), grown(20) }, { p = { 1, 3 } })
    local zero = tide.zeros(1, 1, 1)
    for _ = 1, 400 do
        local more = maybe(zero):item()
        t.is_true(more == 0 or more == 3)
        applied = applied + more / 3
        local k = one(zero):item()
        chosen[k] = chosen[k] + 1
    end
    t.is_true(applied > 80 and applied < 160, applied)
    t.is_true(chosen[10] > 60 and chosen[10] < 140, chosen[10])
    t.is_true(rawequal(T.RandomGrayscale(0)(a), a))
    t.is_true(T.random_grayscale(a, 1):equal(T.grayscale(a, 3)))
end)

t.test("transforms_say_what_they_are", function()
    t.eq(tostring(T.RandomApply({ T.Resize(8), T.Grayscale() }, 0.25)), "RandomApply({Resize(8, bilinear), Grayscale(1)}, 0.25)")
    t.eq(tostring(T.Compose { T.Resize(8), T.CenterCrop({ 4, 6 }), T.RandomVerticalFlip(0.25) }),
        "Compose{Resize(8, bilinear), CenterCrop({4, 6}), RandomVerticalFlip(0.25)}")
end)

t.test("wrong_calls_say_what_was_expected", function()
    for text, fn in pairs {
        ["resize: image: uint8 on the CPU expected, got tide.float32"] = function() T.resize(a:float(), 8) end,
        ["resize: image: shape (channels, height, width) expected"] = function() T.resize(a[1], 8) end,
        ["resize: size: one or two integers from 1 expected"] = function() T.resize(a, { 1, 2, 3 }) end,
        ["resize: size: one or two integers"] = function() T.Resize(0)(a) end,
        ['resize: option interpolation: "nearest", "bilinear" or "bicubic" expected, got "lanczos"'] = function() T.resize(a, 8, { interpolation = "lanczos" }) end,
        ["random_crop: a part of (50, 50) of an image of (29, 37)"] = function() T.random_crop(a, 50) end,
        ["adjust_hue: factor: -0.5 to 0.5 of a turn expected, got 0.7"] = function() T.adjust_hue(a, 0.7) end,
        ["adjust_contrast: factor: a number from 0 expected, got -1"] = function() T.adjust_contrast(a, -1) end,
        ["adjust_brightness: image: 1 or 3 channels expected, got shape (2, 29, 37)"] = function() T.adjust_brightness(a:narrow(1, 1, 2), 1) end,
        ["normalize: 3 channels, but 2 numbers of mean and 1 of std"] = function() T.normalize(a, { 1, 2 }, { 1 }) end,
        ["normalize: option std: no number but 0 expected"] = function() T.normalize(a, { 1 }, { 0 }) end,
        ["color_jitter: option hue: a number from 0 to 0.5"] = function() T.color_jitter(a, { hue = 0.7 }) end,
        ["random_resized_crop: option scale: two numbers above 0"] = function() T.random_resized_crop(a, 8, { scale = { 0, 1 } }) end,
        ["random_horizontal_flip: option p: 0 to 1 expected, got 2"] = function() T.random_horizontal_flip(a, 2) end,
        ["affine: option scale: a number above 0 expected, got 0"] = function() T.affine(a, { scale = 0 }) end,
        ["Compose: entry 2: a transform or a function expected"] = function() T.Compose { T.hflip, 3 } end,
        ["pad: padding: one, two or four integers from 0 expected"] = function() T.pad(a, -1) end,
        ["cutmix: a batch of images and as many class numbers expected"] = function() T.cutmix(a, tide.tensor { 1 }, 3) end,
        ["cutmix: option alpha: a number above 0"] = function() T.cutmix(a, tide.tensor { 1, 1, 1 }, 3, { alpha = 0 }) end,
        ["random_choice: transforms, and with option p a weight for each"] = function() T.random_choice(a, { T.hflip }, { p = { 1, 2 } }) end,
        ["random_apply: entry 1: a transform or a function expected"] = function() T.random_apply(a, { 3 }, 1) end,
        ["grayscale: num_output_channels: 1 or 3"] = function() T.grayscale(a, 2) end,
        ["random_erasing: option value: a number, one for each channel"] = function() T.random_erasing(a, 1, { value = { 1, 2 } }) end,
        ["mixup: a batch of images and as many class numbers expected"] = function() T.mixup(a, tide.tensor { 1 }, 3) end,
    } do
        t.error_has(fn, text)
    end
end)

t.finish()
