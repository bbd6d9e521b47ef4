-- files/npy.lua: the format of NumPy's arrays for tide.load; what lies in them files/numpy.lua reads.
local tide = ...
local npy = { name = ".npy" }

--- match(head, path): also packed by gzip, and through pipes, where the name says so.
function npy.match(head, path)
    return string.sub(head, 1, 6) == "\x93NUMPY"
        or (head == "" or string.sub(head, 1, 2) == "\x1F\x8B") and string.find(path, "%.npy$") ~= nil
end

--- load(path, options): each array is a result.
function npy.load(path, options)
    return tide._require("files.numpy").load(path, options.device, "load")
end

return npy
