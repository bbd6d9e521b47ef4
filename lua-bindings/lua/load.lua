-- load.lua: tide.load. What a file is, files/formats.lua finds; each format is a module of its own.
local tide = ...

return tide._function("load(str path, *, device? device=nil, bool map=true, device? map_location=nil, bool? weights_only=nil, "
    .. "dtype? dtype=nil, bool packed=false) -> any",
    "A file of any format that Tide reads, found by its content (?files): what tide.save wrote; safetensors, also in shards, by "
    .. "their index or the folder that holds it; NumPy's .npy and .npz; PyTorch's .pt and .pth in both forms; Torch7's .t7; GGUF; "
    .. "images, sound, IDX and CIFAR's files; CSV, TSV and JSON lines as a tide.data.table; archives of tar as their files' bytes by name. "
    .. "Tensors come by name or as they were saved, then the file's metadata where it has any, then what was left out and why, "
    .. "by name or place. Mapped where that can be, so that elements are read when they are used. dtype is of what GGUF files "
    .. "have packed (float32 as if nothing is said); with packed, their matrices of Q8_0, Q4_0, Q4_K and Q6_K come as layers, "
    .. "tide.nn.quantized.WeightOnlyLinear, which multiply them as they are. map_location is device; weights_only changes nothing: no file can run code.",
    function(path, device, map, map_location, _, dtype, packed)
        local _range <close> = tide._stage_enter("read", path, "load")
        local format = tide._require("files.formats").find(path)
        if dtype and not format.dtype then
            tide._fail("load: '%s': option dtype: %s has none: x:to(dtype)", path, format.name)
        end
        if packed and not format.packed then
            tide._fail("load: '%s': option packed: %s has no packed matrices", path, format.name)
        end
        return format.load(path, { device = device or map_location, map = map, dtype = dtype, packed = packed })
    end)
