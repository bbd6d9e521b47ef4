-- data/images.lua: datasets of images on disk: ImageFolder, a folder for each class; those whose files have a form of their own
-- (MNIST's, CIFAR's); and lines of a text. Nothing is fetched from the network. Labels are class numbers from 1.
local tide = ...
local fail, declare = tide._fail, tide._function
local protocol, datasets = tide._require "data.protocol", tide._require "data.datasets"
local images = {}

local DEEPEST <const>, MOST <const> = 32, 1 << 31

-- What lies in a folder, in the order of the bytes.
local function names_in(fname, folder)
    local names, why = tide._system_calls().names(folder, MOST)
    if not names then
        fail("%s: cannot read '%s': %s", fname, folder, why)
    end
    table.sort(names, tide._before)
    return names
end

local function kind_of(path)
    local facts = tide._system_calls().stat(path)
    return facts and facts.kind
end

local function transformed(self, image, label)
    if not self.transform and not self.target_transform then
        return image, label
    end
    local _ <close> = tide._stage_enter "transform"
    if self.transform then
        image = self.transform(image)
    end
    if self.target_transform then
        label = self.target_transform(label)
    end
    return image, label
end

-- ---- a folder for each class ----

-- Endings as a set: "png", ".PNG" and ".png" are one.
local function as_set(list)
    local set = {}
    for k, ending in ipairs(list) do
        if type(ending) ~= "string" or ending == "" then
            fail("ImageFolder: option extensions: endings of names expected, entry %d is %s", k, tide._describe(ending))
        end
        set[string.lower((string.gsub(ending, "^%.", "")))] = true
    end
    return set
end

-- Paths of the files in a folder, and in those within it.
local function gather(folder, endings, paths, depth)
    for _, name in ipairs(names_in("ImageFolder", folder)) do
        local path, ending = folder .. "/" .. name, string.match(name, "%.([^.]*)$")
        if ending and endings[string.lower(ending)] then
            paths[#paths + 1] = path
        elseif name ~= "." and name ~= ".." and depth < DEEPEST and kind_of(path) == "folder" then
            gather(path, endings, paths, depth + 1)
        end
    end
end

local function find_classes(root)
    local classes = {}
    for _, name in ipairs(names_in("ImageFolder", root)) do
        if string.sub(name, 1, 1) ~= "." and kind_of(root .. "/" .. name) == "folder" then
            classes[#classes + 1] = name
        end
    end
    if #classes == 0 then
        fail("ImageFolder: '%s' holds no folders: one for each class expected", root)
    end
    return classes
end

local function fill(self, endings)
    for k, name in ipairs(self.classes) do
        local first = #self.paths
        self.class_to_idx[name] = k
        gather(self.root .. "/" .. name, endings, self.paths, 1)
        if #self.paths == first then
            local known = {}
            for ending in pairs(endings) do
                known[#known + 1] = "." .. ending
            end
            table.sort(known)
            fail("ImageFolder: '%s/%s' holds no file that ends in %s", self.root, name, table.concat(known, ", "))
        end
        for i = first + 1, #self.paths do
            self.targets[i] = k
        end
    end
end

local function open_folders(data)
    local options <const> = { "mode", "scale", "apply_exif_orientation" }
    local class = datasets.define("ImageFolder(str root, any transform=nil, any target_transform=nil, *, list? extensions=nil, "
        .. 'str mode="rgb", int scale=1, bool apply_exif_orientation=false)',
        "Images in a folder for each class: get(i) gives the image, as read_image with mode, scale and apply_exif_orientation does "
        .. "and transform made of it, and the number of its class; classes are the folders' names in order, class_to_idx their "
        .. "numbers, paths and targets those of the samples.", {
        len = function(self) return #self.paths end,
        get = function(self, i)
            return transformed(self, tide.io.read_image(self.paths[i], self.how), self.targets[i])
        end,
        get_into = function(self, i, row)
            if not self.transform then
                local how = { into = row }
                for _, name in ipairs(options) do
                    how[name] = self.how[name]
                end
                tide.io.read_image(self.paths[i], how)
                return select(2, transformed(self, nil, self.targets[i]))
            end
            local image, label = transformed(self, tide.io.read_image(self.paths[i], self.how), self.targets[i])
            row:copy_(image)
            return label
        end,
    }, function(root, transform, target_transform, extensions, ...)
        local self = { root = root, transform = transform, target_transform = target_transform, paths = {}, targets = {},
            classes = find_classes(root), class_to_idx = {}, how = {} }
        for k, name in ipairs(options) do
            self.how[name] = select(k, ...)
        end
        fill(self, as_set(extensions or { "png", "jpg", "jpeg" }))
        return self
    end)
    return class
end

-- ---- tensors of images ----

-- Whole batches, where nothing is done to each image.
local function batch_of(self, indices)
    local rows = tide.is_tensor(indices) and indices or tide.tensor(indices)
    return self.data:index_select(1, rows), self.targets:index_select(1, rows)
end

local function open_tensors(data)
    local class = datasets.define("Images()", "", {
        len = function(self) return #self.targets end,
        get = function(self, i) return transformed(self, self.data[i], self.targets[i]:item()) end,
    })
    return function(x, targets, classes, transform, target_transform)
        local numbers = {}
        for k, name in ipairs(classes) do
            numbers[name] = k
        end
        return setmetatable({ data = x, targets = targets, classes = classes, class_to_idx = numbers, transform = transform,
            target_transform = target_transform, get_batch = not (transform or target_transform) and batch_of or nil }, class)
    end
end

-- A file of a folder, packed by gzip or not.
local function find_file(fname, root, name, hint)
    for _, path in ipairs { root .. "/" .. name, root .. "/" .. name .. ".gz" } do
        if kind_of(path) == "file" then
            return path
        end
    end
    fail("%s: there is no '%s/%s'%s", fname, root, name, hint or "")
end

local function read_mnist(fname, train, root, hint)
    local part = train and "train" or "t10k"
    local idx = tide._require "files.idx"
    local x = idx.read(fname, find_file(fname, root, part .. "-images-idx3-ubyte", hint))
    local labels = idx.read(fname, find_file(fname, root, part .. "-labels-idx1-ubyte", hint))
    if x.dtype ~= tide.uint8 or x.ndim ~= 3 or labels.dtype ~= tide.uint8 or labels.ndim ~= 1 or #x ~= #labels then
        fail("%s: '%s': images of shape %s and labels of shape %s don't belong together", fname, root, tostring(x.shape), tostring(labels.shape))
    end
    return x:unsqueeze(2), labels:to(tide.int64) + 1
end

local FASHION <const> = { "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot" }
local DIGITS <const> = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" }

local function open_mnist(data, new)
    data.fashion_mnist = declare('fashion_mnist(*, bool train=true, str root="/usr/share/datasets/fashion-mnist", any transform=nil, '
        .. "any target_transform=nil) -> Images",
        "Zalando's 60,000 pictures of clothes, or the 10,000 of the test with train = false: uint8 (1, 28, 28), classes from 1 to 10. The "
        .. "files are those of Debian's package dataset-fashion-mnist; data and targets have all of them.",
        function(train, root, transform, target_transform)
            local x, targets = read_mnist("fashion_mnist", train, root, ": apt install dataset-fashion-mnist, or option root says where its files lie")
            return new(x, targets, FASHION, transform, target_transform)
        end)
    data.mnist = declare("mnist(str root, bool train=true, any transform=nil, any target_transform=nil) -> Images",
        "Digits in a folder that holds MNIST's four files (train-images-idx3-ubyte and so on, packed by gzip or not): uint8 (1, 28, 28), "
        .. "the digit 0 is class 1.", function(root, train, transform, target_transform)
            local x, targets = read_mnist("mnist", train, root)
            return new(x, targets, DIGITS, transform, target_transform)
        end)
end

-- ---- CIFAR ----

-- The names of classes, a line each, in a text beside the files; numbers where it is not there.
local function read_classes(path, n)
    local classes, file <close> = {}, io.open(path, "r")
    for line in file and file:lines() or function() end do
        classes[#classes + 1] = string.match(line, "^(%S+)%s*$")
    end
    for k = #classes == n and n + 1 or 1, n do
        classes[k] = tostring(k)
    end
    return table.move(classes, 1, n, 1, {})
end

local function read_cifar(fname, root, files, kind, which)
    local all, labels = {}, {}
    for k, name in ipairs(files) do
        local read = { tide._require("files.cifar").read(fname, find_file(fname, root, name), kind) }
        all[k], labels[k] = read[1], read[which]
    end
    return tide.cat(all, 1), tide.cat(labels, 1)
end

local function open_cifar(data, new)
    local options = "(str root, bool train=true, any transform=nil, any target_transform=nil"
    data.cifar10 = declare("cifar10" .. options .. ") -> Images", "CIFAR-10 in a folder that holds its binary files (data_batch_1.bin to 5, "
        .. "test_batch.bin): uint8 (3, 32, 32), classes from 1 to 10.", function(root, train, transform, target_transform)
            local files = train and {} or { "test_batch.bin" }
            for k = 1, train and 5 or 0 do
                files[k] = string.format("data_batch_%d.bin", k)
            end
            local x, targets = read_cifar("cifar10", root, files, "cifar10", 2)
            return new(x, targets, read_classes(root .. "/batches.meta.txt", 10), transform, target_transform)
        end)
    data.cifar100 = declare("cifar100" .. options .. ", *, bool coarse=false) -> Images", "CIFAR-100 in a folder that holds train.bin and test.bin: "
        .. "uint8 (3, 32, 32), classes from 1 to 100, or the 20 that they belong to.", function(root, train, transform, target_transform, coarse)
            local x, targets = read_cifar("cifar100", root, { train and "train.bin" or "test.bin" }, "cifar100", coarse and 2 or 3)
            local classes = read_classes(root .. (coarse and "/coarse_label_names.txt" or "/fine_label_names.txt"), coarse and 20 or 100)
            return new(x, targets, classes, transform, target_transform)
        end)
end

-- ---- lines ----

local function open_lines()
    datasets.define("TextLines(str path)", "The lines of a text, which gzip may have packed, without their ends: get(i) gives line i.", {
        len = function(self) return #self.starts - 1 end,
        get = function(self, i)
            local first = self.starts[i]:item()
            return (string.gsub(tide._string(self.bytes, first, self.starts[i + 1]:item() - first), "\r?\n$", ""))
        end,
    }, function(path)
        local bytes = tide._bytes(path, "TextLines")
        local ends = bytes:eq(10):nonzero():squeeze(2)
        local n = bytes:numel()
        local last = n > 0 and bytes[n]:item() ~= 10 -- a line without its end
        return { bytes = bytes, starts = tide.cat({ tide.tensor { 0 }, ends, last and tide.tensor { n } or nil }, 1) }
    end)
end

function images.open(data)
    open_folders(data)
    local new = open_tensors(data)
    open_mnist(data, new)
    open_cifar(data, new)
    open_lines()
end

return images
