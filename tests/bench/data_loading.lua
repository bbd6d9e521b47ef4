-- data_loading.lua: what a loader gives: batches of rows of tensors, of small .npy files, of JPEGs, by two workers; the first batch
-- of a new loader. A case takes a batch (the next epoch behind the last), the first ones are made anew each time. data_loading.py
-- has the same cases in PyTorch. TIDE_BENCH_IMAGES names a folder of JPEGs, which make_images.py makes.
local here = arg[0]:match("^(.*/)") or "./"
local tide = require "tide"
local bench = dofile(here .. "bench.lua")
tide.set_num_threads(1)
local data = tide.data

-- A function that gives the next batch, through as many epochs as are asked for.
local function endless(loader)
    local step
    return function()
        step = step or loader:iter()
        local x, y = step()
        if x == nil then
            step = loader:iter()
            x, y = step()
        end
        return x, y
    end
end

local function first(set, options)
    return function()
        local loader <close> = data.DataLoader(set, options)
        for x, y in loader do
            return x, y
        end
    end
end

local rows = bench.size(1000000)
local set = data.TensorDataset(tide.zeros(rows, 8), tide.zeros(rows, { dtype = tide.int64 }))
for _, shuffle in ipairs { false, true } do
    for _, size in ipairs { 64, 256 } do
        bench.made(("loader_rows_%s%d"):format(shuffle and "shuffled_" or "", size), function()
            return endless(data.DataLoader(set, { batch_size = size, shuffle = shuffle, num_workers = 2 }))
        end)
    end
end

-- Files of a picture's size, 120 × 160 × 3 bytes.
local function files()
    local folder, list = os.tmpname(), {}
    os.remove(folder)
    os.execute("mkdir " .. folder)
    for k = 1, bench.size(512) do
        list[k] = ("%s/%d.npy"):format(folder, k)
        tide.io.save_npy(tide.full({ 120, 160, 3 }, k % 256, { dtype = tide.uint8 }), list[k])
    end
    return data.map(list, function(path) return tide.io.load_npy(path):permute(3, 1, 2):to(tide.float32):div_(255) end), folder
end

local images = os.getenv "TIDE_BENCH_IMAGES"
local list, folder = files()
local options = { batch_size = 64, shuffle = true, num_workers = 2 }
bench.made("loader_npy_files", function() return endless(data.DataLoader(list, options)) end)
bench.made("loader_npy_files_first", function() return first(list, options) end)
if images then
    local T = data.transforms
    local pictures = data.ImageFolder(images, { transform = T.Compose { T.RandomCrop(112), T.RandomHorizontalFlip(),
        function(x) return x:to(tide.float32):div_(255) end } })
    bench.made("loader_jpegs", function() return endless(data.DataLoader(pictures, options)) end)
    bench.made("loader_jpegs_first", function() return first(pictures, options) end)
end
os.execute("rm -r " .. folder)
