-- Datasets of images on disk: ImageFolder, fashion_mnist, mnist, cifar10, cifar100; IDX and CIFAR files through tide.load; lines.
local t = require "harness"
local data = tide.data

local root = os.tmpname()
os.remove(root)

local function run(command, ...)
    assert(os.execute(command:format(...)))
end

local function put(path, bytes)
    local file <close> = assert(io.open(path, "wb"))
    file:write(bytes)
end

-- An image whose pixels say which it is.
local function image(k)
    return tide.full({ 3, 4, 5 }, k, { dtype = tide.uint8 })
end

local function make_folders()
    run("mkdir -p '%s/zebra/within/deep' '%s/ant' '%s/.hidden'", root, root, root)
    tide.io.write_png(image(1), root .. "/zebra/b.png")
    tide.io.write_png(image(2), root .. "/zebra/a.PNG")
    tide.io.write_png(image(3), root .. "/zebra/within/deep/c.png")
    tide.io.write_png(image(4):narrow(1, 1, 1), root .. "/ant/grey.png")
    put(root .. "/ant/notes.txt", "no image")
    put(root .. "/list.csv", "1,2")
end
make_folders()

t.test("image_folder_sorts_classes_and_files_and_counts_labels_from_1", function()
    local set = data.ImageFolder(root)
    t.eq(set.classes, { "ant", "zebra" })
    t.eq(set.class_to_idx, { ant = 1, zebra = 2 })
    t.eq({ #set, set:len() }, { 4, 4 })
    local seen = {}
    for k = 1, #set do
        local x, label = set:get(k)
        t.eq({ tostring(x.shape), x.dtype }, { "(3, 4, 5)", tide.uint8 })
        seen[k] = { x[{ 1, 1, 1 }]:item(), label }
    end
    t.eq(seen, { { 4, 1 }, { 2, 2 }, { 1, 2 }, { 3, 2 } })
    t.eq(set.targets, { 1, 2, 2, 2 })
    t.eq(set.paths[4], root .. "/zebra/within/deep/c.png")
    t.error_has(function() set:get(5) end, "ImageFolder: index 5: there are 4 samples")
end)

t.test("image_folder_applies_transforms_and_says_how_images_are_read", function()
    local set = data.ImageFolder(root, { mode = "grey", transform = function(x) return x:to(tide.float32) / 2 end,
        target_transform = function(label) return label * 10 end })
    local x, label = set:get(2)
    t.eq({ tostring(x.shape), x.dtype, x[{ 1, 1, 1 }]:item(), label }, { "(1, 4, 5)", tide.float32, 1, 20 })
end)

t.test("image_folder_goes_through_loaders_with_and_without_workers", function()
    for _, n in ipairs { 0, 2 } do
        for _, transform in ipairs { false, function(x) return x + 1 end } do
            local loader <close> = data.DataLoader(data.ImageFolder(root, { transform = transform or nil }), { batch_size = 3, num_workers = n })
            local got = {}
            for x, labels in loader do
                t.eq(x.dtype, tide.uint8)
                for k = 1, #labels do
                    got[#got + 1] = { x[{ k, 3, 4, 5 }]:item(), labels[k]:item() }
                end
            end
            local add = transform and 1 or 0
            t.eq(got, { { 4 + add, 1 }, { 2 + add, 2 }, { 1 + add, 2 }, { 3 + add, 2 } })
        end
    end
end)

t.test("image_folder_writes_into_rows", function()
    for _, transform in ipairs { false, function(x) return x + 1 end } do
        local set, rows = data.ImageFolder(root, { transform = transform or nil }), tide.zeros(2, 3, 4, 5, { dtype = tide.uint8 })
        t.eq(set:get_into(3, rows[2]), 2)
        t.eq({ rows[1]:sum():item(), rows[2]:min():item() }, { 0, transform and 2 or 1 })
    end
end)

t.test("image_folder_refuses_what_is_no_folder_of_classes", function()
    t.error_has(function() data.ImageFolder(root .. "/nowhere") end, "ImageFolder: cannot read '" .. root .. "/nowhere': No such file")
    t.error_has(function() data.ImageFolder(root .. "/ant") end, "holds no folders: one for each class expected")
    t.error_has(function() data.ImageFolder(root, { extensions = { "jpg" } }) end, "/ant' holds no file that ends in .jpg")
    t.error_has(function() data.ImageFolder(root, { extensions = { 3 } }) end, "option extensions: endings of names expected, entry 1")
    local broken = data.ImageFolder(root, { extensions = { ".txt", "png" } })
    t.error_matches(function() broken:get(2) end, "read_image: '.*notes.txt': no image: PNG and JPEG are read")
    t.error_has(function() data.ImageFolder(root, { mode = "cmyk" }):get(1) end, "option mode")
end)

-- ---- IDX ----

local function idx(kind, sizes, elements)
    return string.pack(">I2BB", 0, kind, #sizes) .. string.pack(">" .. ("I4"):rep(#sizes), table.unpack(sizes)) .. elements
end

t.test("idx_files_of_every_dtype_are_loaded", function()
    local path = root .. "/some.idx"
    local kinds = { { 8, "B", tide.uint8 }, { 9, "b", tide.int8 }, { 11, "i2", tide.int16 }, { 12, "i4", tide.int32 }, { 13, "f", tide.float32 },
        { 14, "d", tide.float64 } }
    for _, kind in ipairs(kinds) do
        put(path, idx(kind[1], { 2, 3 }, string.pack(">" .. kind[2]:rep(6), 1, 2, 3, 100, 5, 6)))
        local x = tide.load(path)
        t.eq({ x.dtype, x:tolist() }, { kind[3], { { 1, 2, 3 }, { 100, 5, 6 } } })
        run("gzip -kf '%s'", path)
        t.eq(tide.load(path .. ".gz"):tolist(), { { 1, 2, 3 }, { 100, 5, 6 } })
    end
    put(root .. "/without_an_ending", idx(11, { 2 }, string.pack(">i2i2", -2, 300))) -- by what it says and how long it is
    t.eq(tide.load(root .. "/without_an_ending"):tolist(), { -2, 300 })
    put(path, idx(8, { 0, 5 }, ""))
    t.eq(tostring(tide.load(path).shape), "(0, 5)")
end)

t.test("idx_files_that_are_wrong_are_refused", function()
    local path = root .. "/wrong.idx"
    for _, case in ipairs {
        { idx(8, { 2, 3 }, "12345"), "(2, 3) of tide.uint8 takes 6 bytes behind its header of 12, the file has 17" },
        { idx(8, { 2, 3 }, "1234567"), "the file has 19" },
        { idx(8, { 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF }, "1"), "the file has 17" },
        { idx(10, { 1 }, "1"), "no IDX file" }, { "\0\0\8", "cut off in its header" }, { "\0\0\8\3\0\0\0\1", "cut off in its header" },
    } do
        put(path, case[1])
        t.error_has(function() tide.load(path) end, case[2])
    end
end)

local function make_mnist(folder, n)
    run("mkdir -p '%s'", folder)
    for part, first in pairs { train = 0, t10k = 100 } do
        local pixels, labels = {}, {}
        for k = 1, n do
            pixels[k], labels[k] = string.char(first + k):rep(6), string.char((first + k) % 10)
        end
        put(folder .. "/" .. part .. "-images-idx3-ubyte", idx(8, { n, 2, 3 }, table.concat(pixels)))
        put(folder .. "/" .. part .. "-labels-idx1-ubyte", idx(8, { n }, table.concat(labels)))
    end
    run("gzip -f '%s/train-images-idx3-ubyte'", folder)
end

t.test("mnist_reads_a_folder_of_idx_files", function()
    make_mnist(root .. "/mnist", 5)
    local set = data.mnist(root .. "/mnist")
    t.eq({ #set, tostring(set.data.shape), set.classes[1], set.class_to_idx["9"] }, { 5, "(5, 1, 2, 3)", "0", 10 })
    local x, label = set:get(3)
    t.eq({ x:tolist(), label }, { { { { 3, 3, 3 }, { 3, 3, 3 } } }, 4 })
    t.eq(data.mnist(root .. "/mnist", { train = false }):get(1)[{ 1, 1, 1 }]:item(), 101)
    for _, n in ipairs { 0, 2 } do -- whole batches, and one by one where something is done to each
        for _, transform in ipairs { false, function(y) return y * 2 end } do
            local loader <close> = data.DataLoader(data.mnist(root .. "/mnist", { transform = transform or nil }), { batch_size = 2, num_workers = n })
            local sums, labels = {}, {}
            for a, b in loader do
                t.eq(a.dtype, tide.uint8)
                sums[#sums + 1], labels[#labels + 1] = a:to(tide.float32):sum():item(), b:tolist()
            end
            local by = transform and 2 or 1
            t.eq({ sums, labels }, { { 18 * by, 42 * by, 30 * by }, { { 2, 3 }, { 4, 5 }, { 6 } } })
        end
    end
    put(root .. "/mnist/train-labels-idx1-ubyte", idx(8, { 4 }, "1234"))
    t.error_has(function() data.mnist(root .. "/mnist") end, "images of shape (5, 2, 3) and labels of shape (4) don't belong together")
    t.error_has(function() data.mnist(root) end, "mnist: there is no '" .. root .. "/train-images-idx3-ubyte'")
end)

t.test("fashion_mnist_is_the_packages_or_says_how_to_get_it", function()
    t.error_has(function() data.fashion_mnist { root = root } end, "apt install dataset-fashion-mnist")
    local there = io.open("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz")
    if there then
        there:close()
        local set = data.fashion_mnist { train = false }
        t.eq({ #set, set.classes[10], tostring(set:get(1).shape) }, { 10000, "Ankle boot", "(1, 28, 28)" })
        t.eq(tide.bincount(set.targets):tolist(), { 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000 })
    end
end)

-- ---- CIFAR ----

local function cifar(labels, colours)
    local rows = {}
    for k, label in ipairs(labels) do
        rows[k] = label
        for plane = 1, 3 do
            rows[k] = rows[k] .. string.char(colours[k] + plane):rep(1024)
        end
    end
    return table.concat(rows)
end

t.test("cifar_files_are_read_in_both_forms", function()
    local folder = root .. "/cifar"
    run("mkdir -p '%s'", folder)
    for k = 1, 5 do
        put(("%s/data_batch_%d.bin"):format(folder, k), cifar({ string.char(k), "\9" }, { 10 * k, 100 }))
    end
    put(folder .. "/test_batch.bin", cifar({ "\0" }, { 7 }))
    put(folder .. "/batches.meta.txt", "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n")
    local set = data.cifar10(folder)
    t.eq({ #set, tostring(set.data.shape), set.classes[2], set.targets:tolist() }, { 10, "(10, 3, 32, 32)", "automobile",
        { 2, 10, 3, 10, 4, 10, 5, 10, 6, 10 } })
    local x, label = set:get(3)
    t.eq({ x[{ 1, 1, 1 }]:item(), x[{ 2, 32, 32 }]:item(), x[{ 3, 1, 1 }]:item(), label }, { 21, 22, 23, 3 })
    t.eq(#data.cifar10(folder, { train = false }), 1)
    put(folder .. "/train.bin", cifar({ "\19\99", "\0\0" }, { 1, 2 }))
    local fine, coarse = data.cifar100(folder), data.cifar100(folder, { coarse = true })
    t.eq({ fine.targets:tolist(), coarse.targets:tolist(), #fine.classes, coarse.classes[20] }, { { 100, 1 }, { 20, 1 }, 100, "20" })
    t.eq(tide.load(folder .. "/test_batch.bin").labels:tolist(), { 1 })
    local loaded = tide.load(folder .. "/train.bin")
    t.eq({ loaded.coarse:tolist(), loaded.labels:tolist(), tostring(loaded.images.shape) }, { { 20, 1 }, { 100, 1 }, "(2, 3, 32, 32)" })
    put(folder .. "/test_batch.bin", cifar({ "\10" }, { 7 }))
    t.error_has(function() data.cifar10(folder, { train = false }) end, "a label of 10, where there are 10 classes")
    put(folder .. "/test_batch.bin", "123")
    t.error_has(function() data.cifar10(folder, { train = false }) end, "rows of 3073 bytes expected, the file has 3")
    t.error_has(function() tide.load(folder .. "/test_batch.bin") end, "of no format that is read")
end)

-- ---- lines ----

t.test("text_lines_are_samples", function()
    local path = root .. "/poem.txt"
    for text, want in pairs { [""] = {}, ["a"] = { "a" }, ["a\n"] = { "a" }, ["a\r\n\nb\n c"] = { "a", "", "b", " c" }, ["\n"] = { "" } } do
        put(path, text)
        local set, got = data.TextLines(path), {}
        for k = 1, #set do
            got[k] = set:get(k)
        end
        t.eq(got, want)
    end
    put(path, "one\ntwo\nthree\n")
    run("gzip -f '%s'", path)
    local loader <close> = data.DataLoader(data.TextLines(path .. ".gz"), { batch_size = 2, num_workers = 2 })
    local got = {}
    for lines in loader do
        got[#got + 1] = lines
    end
    t.eq(got, { { "one", "two" }, { "three" } })
end)

run("rm -rf '%s'", root)
t.finish()
