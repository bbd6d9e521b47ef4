-- files/npz.lua: the format of NumPy's archives for tide.load; what lies in them files/numpy.lua reads.
local tide = ...
local npz = { name = ".npz" }

--- match(head, path): an archive of arrays by its first entry, an empty one by its name.
function npz.match(head, path)
    if string.sub(head, 1, 2) ~= "PK" then
        return false
    end
    local length = string.sub(head, 1, 4) == "PK\3\4" and #head >= 30 and string.unpack("<I2", head, 27) or 0
    return string.sub(string.sub(head, 31, 30 + length), -4) == ".npy" or string.find(path, "%.npz$") ~= nil
end

--- load(path, options): tensors by name, and of what was left out why, by name.
function npz.load(path, options)
    local formats = tide._require("files.formats")
    local arrays, left = tide._require("files.numpy").load_archive(path, options.device, "load")
    formats.warn_of_left(path, left)
    return formats.results(arrays, left)
end

return npz
