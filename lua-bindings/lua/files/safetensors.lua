-- files/safetensors.lua: files of named tensors (engine/io/safetensors.h), Tide's checkpoints among them, for tide.load.
local tide = ...
local safetensors = { name = "safetensors" }

--- match(head, path): the length of a header, which is below 2^32, and a byte of it; a name that ends so is believed.
function safetensors.match(head, path)
    return string.find(head, "^....%z%z%z%z[^%z]") ~= nil or string.find(path, "%.safetensors$") ~= nil
end

--- read(path, options): {name = tensor}, {name = dtype} of those that are left out, {key = note}.
function safetensors.read(path, options)
    local tensors, left, notes = tide._archive_read(path, options.map)
    if options.device then
        for name, x in pairs(tensors) do
            tensors[name] = x:to(options.device)
        end
    end
    return tensors, left, notes
end

--- load(path, options): what tide.save wrote, or tensors by name, the file's metadata, and dtypes of those left out.
function safetensors.load(path, options)
    local formats = tide._require("files.formats")
    local tensors, left, notes = safetensors.read(path, options)
    local text = notes.tide
    notes.tide = nil
    if text then
        return formats.results(tide._require("files.checkpoint").restore(tensors, text, path), notes)
    end
    formats.warn_of_left(path, left, ", since Tide has not their dtype")
    return formats.results(tensors, notes, left)
end

return safetensors
