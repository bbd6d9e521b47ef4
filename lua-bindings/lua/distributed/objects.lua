-- distributed/objects.lua: Lua values as uint8 tensors and back: what tide.save takes, as a header (lengths, the text that
-- files/checkpoint.lua makes, each tensor's name, dtype and sizes) and the tensors' bytes.
local tide = ...
local checkpoint = tide._require "files.checkpoint"

local objects = {}

--- pack(object): a uint8 tensor.
function objects.pack(object)
    local names, tensors, text = checkpoint.flatten(object)
    local parts, whole = { string.pack("<s8i4", text, #names) }, {}
    for k, x in ipairs(tensors) do
        whole[k] = x:to("cpu"):contiguous()
        parts[#parts + 1] = string.pack("<s4s4i4", names[k], tostring(x.dtype), x:dim())
        for _, size in ipairs(x:size()) do
            parts[#parts + 1] = string.pack("<i8", size)
        end
    end
    local header = table.concat(parts)
    return tide._bundle(string.pack("<i8", #header) .. header, whole)
end

--- unpack(bytes): the object.
function objects.unpack(bytes)
    local length = string.unpack("<i8", tide._string(bytes, 0, 8))
    local header = tide._string(bytes, 8, length)
    local text, count, at = string.unpack("<s8i4", header)
    local tensors, place = {}, 8 + length
    for _ = 1, count do
        local name, dtype, ndim, sizes = nil, nil, nil, {}
        name, dtype, ndim, at = string.unpack("<s4s4i4", header, at)
        for d = 1, ndim do
            sizes[d], at = string.unpack("<i8", header, at)
        end
        local x = tide._bundle_tensor(bytes, place, tide[string.gsub(dtype, "^tide%.", "")], sizes)
        tensors[name] = x
        place = place + x:numel() * x:element_size()
    end
    return checkpoint.restore(tensors, text, "object")
end

return objects
