-- load.lua: tide.load.
local tide = ...

return tide._function("load(str path, *, device? device=nil, bool map=true) -> any",
    "What tide.save wrote, or any safetensors file as a table of tensors by name, and the file's metadata; mapped, so "
    .. "that elements are read when they are used; NumPy's array where the file's name ends in .npy.", function(path, device, map)
        local _range <close> = tide.profiler.record { "load", kind = "data" }
        if path:find("%.npy$") then
            local x = tide._npy_read(path, "load")
            return device and x:to(device) or x
        end
        local tensors, notes = tide._archive_read(path, map)
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
        return tensors, notes
    end)
