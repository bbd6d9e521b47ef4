-- files/numpy.lua: NumPy's files of arrays (.npy) as tensors, and its archives of them (.npz) as tables of tensors by name and
-- back. An archive is read entry by entry, so that memory holds an entry twice at most; npz.c unpacks it, and what an
-- array is engine/io/npy.c knows.
local tide = ...
local numpy = {}

local open <const> = io.open
local SUFFIX <const> = ".npy"

local function shown(name)
    return (string.gsub(string.sub(name, 1, 80), "[%c\127]", "?"))
end

-- The archive's entries, and where each lies.
local function open_archive(path, fname)
    local handle, why = open(path, "rb")
    local first
    if handle then
        first, why = handle:read(2)
    end
    if why then
        tide._fail("%s: cannot read '%s': %s", fname, path, (string.gsub(why, "^.*: ", "")))
    elseif first ~= "PK" then
        handle:close()
        tide._fail("%s: '%s': no archive of NumPy's arrays (.npz)", fname, path)
    end
    local file = tide._require("files.zip").file(handle, handle:seek("end") or 0)
    local archive, wrong = tide._require("files.zip").open(file)
    wrong = wrong or archive and archive.wrong
    if wrong then
        handle:close()
        tide._fail("%s: '%s': %s", fname, path, wrong)
    end
    return handle, archive
end

--- load(path, device, fname): all arrays of a file, each a result.
function numpy.load(path, device, fname)
    local _stage <close> = tide._stage_enter("read", path, fname)
    local arrays = table.pack(tide._npy_read(path, fname))
    for k = 1, device and arrays.n or 0 do
        arrays[k] = arrays[k]:to(device)
    end
    return table.unpack(arrays, 1, arrays.n)
end

--- load_archive(path, device, fname): {name = tensor}, and {name = why} of entries that are whole and hold no array that Tide
--- has a dtype for, or none at all. Where a name stands twice the later one counts, as in Python.
function numpy.load_archive(path, device, fname)
    local _stage <close> = tide._stage_enter("read", path, fname)
    local handle <close>, archive = open_archive(path, fname)
    local arrays, left = {}, {}
    for _, entry in ipairs(archive.entries) do
        local name = string.sub(entry.name, -#SUFFIX) == SUFFIX and string.sub(entry.name, 1, -#SUFFIX - 1)
        local at, why, foreign = archive.data_at(entry)
        local x
        if not name then
            name, why, foreign = entry.name, "no array", true
        elseif at then
            x, why, foreign = tide._npz_entry(path, at, entry.packed, entry.size, entry.method, entry.sum)
        end
        if not x and not foreign then
            tide._fail("%s: '%s': '%s': %s", fname, path, shown(entry.name), why)
        end
        arrays[name], left[name] = x and device and x:to(device) or x, not x and why or nil
    end
    local name = next(left)
    if not next(arrays) and name then
        tide._fail("%s: '%s': '%s': %s", fname, path, shown(name), left[name])
    end
    return arrays, left
end

--- save_archive(arrays, path, fname): the names in the order of their bytes.
function numpy.save_archive(arrays, path, fname)
    local names, tensors = {}, {}
    for name, x in pairs(arrays) do
        if type(name) ~= "string" then
            tide._fail("%s: '%s': names are strings, got %s", fname, path, tide._describe(name))
        elseif #name > 60000 then
            tide._fail("%s: '%s': a name of %d bytes is too long", fname, path, #name)
        elseif not tide.is_tensor(x) then
            tide._fail("%s: '%s': '%s': a tensor expected, got %s", fname, path, shown(name), tide._describe(x))
        elseif x.is_sparse then
            tide._fail("%s: '%s': '%s' is sparse: to_dense() is what a file holds", fname, path, shown(name))
        elseif x.is_quantized then
            tide._fail("%s: '%s': '%s' is %s: dequantize() or int_repr() is what NumPy's files hold", fname, path, shown(name), string.match(tostring(x.dtype), "%w+$"))
        elseif x.dtype == tide.bfloat16 then
            tide._fail("%s: '%s': '%s': NumPy has no bfloat16: convert it to float32", fname, path, shown(name))
        end
        names[#names + 1] = name
    end
    table.sort(names, tide._before)
    for k, name in ipairs(names) do
        tensors[k] = arrays[name]:detach():cpu():contiguous()
    end
    tide._npz_write(path, names, tensors, fname)
end

return numpy
