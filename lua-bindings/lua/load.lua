-- load.lua: tide.load. What a file is, files/formats.lua finds; each format is a module of its own.
local tide = ...

return tide._function("load(str path, *, device? device=nil, bool map=true, device? map_location=nil, bool? weights_only=nil) -> any",
    "A file of any format that Tide reads, found by its content: what tide.save wrote, any safetensors file (also in shards, by "
    .. "their index or the folder that holds it) as a table of tensors by name, the file's metadata where it has any, and the "
    .. "dtypes of tensors that are left out, by name, since Tide has none such; mapped, so that elements are read when they are "
    .. "used; NumPy's arrays, as load_npy and load_npz read them; CSV, TSV and JSON lines as a tide.data.table; archives of tar as their "
    .. "files' bytes by name. map_location is device; weights_only changes nothing: no file "
    .. "can run code.",
    function(path, device, map, map_location)
        local _range <close> = tide.profiler.record { "load", kind = "data" }
        local format = tide._require("files.formats").find(path)
        return format.load(path, { device = device or map_location, map = map })
    end)
