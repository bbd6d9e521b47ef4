-- files/cifar.lua: the binary files of CIFAR-10 and CIFAR-100: rows of one or two labels, counted from 0, and 3 planes of 32 x 32
-- bytes. They have no header: their names and a length of whole rows say what they are.
local tide = ...
local cifar = { name = "CIFAR" }

local SIDE <const> = 32
local PIXELS <const> = 3 * SIDE * SIDE
local LABELS <const> = { cifar10 = 1, cifar100 = 2 }
local CLASSES <const> = { cifar10 = { 10 }, cifar100 = { 20, 100 } }

-- "cifar10" or "cifar100", by the name and the length; nil.
local function kind_of(path, size)
    local name = string.match(path, "([^/]*)%.bin$")
    local kind = name and ((string.find(name, "^data_batch_%d$") or name == "test_batch") and "cifar10"
        or (name == "train" or name == "test") and "cifar100")
    return kind and size > 0 and size % (PIXELS + LABELS[kind]) == 0 and kind or nil
end

function cifar.match(head, path)
    local facts = head ~= "" and string.find(path, "%.bin$") and tide._system_calls().stat(path)
    return facts and kind_of(path, facts.size) ~= nil or false
end

--- read(fname, path, kind): images (uint8, n x 3 x 32 x 32), and for each label a tensor of class numbers from 1.
function cifar.read(fname, path, kind)
    local bytes = tide._bytes(path, fname)
    local width, n = PIXELS + LABELS[kind], bytes:numel()
    if n == 0 or n % width ~= 0 then
        tide._fail("%s: '%s': rows of %d bytes expected, the file has %d", fname, path, width, n)
    end
    local rows, labels = bytes:view(-1, width), {}
    for k, most in ipairs(CLASSES[kind]) do
        labels[k] = rows:select(2, k):to(tide.int64) + 1
        if labels[k]:max():item() > most then
            tide._fail("%s: '%s': a label of %d, where there are %d classes", fname, path, labels[k]:max():item() - 1, most)
        end
    end
    return rows:narrow(2, width - PIXELS + 1, PIXELS):contiguous():view(-1, 3, SIDE, SIDE), table.unpack(labels)
end

--- load(path, options): {images, labels}, of CIFAR-100 {images, coarse, labels}; labels are class numbers from 1.
function cifar.load(path, options)
    local kind = kind_of(path, tide._system_calls().stat(path).size)
    local images, first, second = cifar.read("load", path, kind)
    local result = { images = images, labels = second or first, coarse = second and first or nil }
    for name, x in pairs(result) do
        result[name] = options.device and x:to(options.device) or x
    end
    return result
end

return cifar
