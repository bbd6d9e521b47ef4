-- load.lua: tide.load.
local tide = ...

-- One line says what a file holds and a table of tensors can't.
local function warn_of(left, path, why)
    local names = {}
    for name, what in pairs(left) do
        names[#names + 1] = string.format("'%s' (%s)", name, what)
    end
    if #names > 0 then
        table.sort(names)
        warn((string.gsub(string.format("tide: load: '%s': left out%s: %s%s", path, why,
            table.concat(names, ", ", 1, math.min(#names, 8)),
            #names > 8 and string.format(" and %d more", #names - 8) or ""), "%c", "?")))
    end
end

-- The value, and what a file says besides where it says something: a prompt shows all results of a call.
local function with_notes(value, notes, left)
    if left and next(left) then
        return value, notes, left
    elseif next(notes) then
        return value, notes
    end
    return value
end

return tide._function("load(str path, *, device? device=nil, bool map=true, device? map_location=nil, bool? weights_only=nil) -> any",
    "What tide.save wrote, or any safetensors file as a table of tensors by name, the file's metadata where it has any, and the "
    .. "dtypes of tensors that are left out, by name, since Tide has none such; mapped, so that elements are read when they are "
    .. "used; NumPy's arrays, as load_npy and load_npz read them, where the file's name ends in .npy or .npz. map_location is "
    .. "device; weights_only changes nothing: no file can run code.",
    function(path, device, map, map_location)
        device = device or map_location
        local _range <close> = tide._stage_enter("read", path, "load")
        if string.find(path, "%.npy$") then
            return tide._require("files.numpy").load(path, device, "load")
        elseif string.find(path, "%.npz$") then
            local arrays, left = tide._require("files.numpy").load_archive(path, device, "load")
            warn_of(left, path, "")
            return with_notes(arrays, left)
        end
        local tensors, left, notes = tide._archive_read(path, map)
        if device then
            for name, x in pairs(tensors) do
                tensors[name] = x:to(device)
            end
        end
        local text = notes.tide
        notes.tide = nil
        if text then
            return with_notes(tide._require("files.checkpoint").restore(tensors, text, path), notes)
        end
        warn_of(left, path, ", since Tide has not their dtype")
        return with_notes(tensors, notes, left)
    end)
