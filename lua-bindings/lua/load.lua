-- load.lua: tide.load.
local tide = ...

-- One line says what a file holds and a table of tensors can't.
local function warn_of(left, path)
    local names = {}
    for name, dtype in pairs(left) do
        names[#names + 1] = ("'%s' (%s)"):format(name, dtype)
    end
    if #names > 0 then
        table.sort(names)
        warn((("tide: load: '%s': left out, since Tide has not their dtype: %s%s"):format(path,
            table.concat(names, ", ", 1, math.min(#names, 8)),
            #names > 8 and (" and %d more"):format(#names - 8) or ""):gsub("%c", "?")))
    end
end

return tide._function("load(str path, *, device? device=nil, bool map=true) -> any",
    "What tide.save wrote, or any safetensors file as a table of tensors by name, the file's metadata, and the dtypes "
    .. "of tensors that are left out, by name, since Tide has none such; mapped, so that elements are read when they are "
    .. "used; NumPy's arrays, as load_npy reads them, where the file's name ends in .npy.", function(path, device, map)
        local _range <close> = tide.profiler.record { "load", kind = "data" }
        if path:find("%.npy$") then
            return tide._load_arrays(path, device, "load")
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
            return tide._checkpoint.restore(tensors, text, path), notes
        end
        warn_of(left, path)
        return tensors, notes, left
    end)
