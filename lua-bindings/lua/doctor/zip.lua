-- doctor/zip.lua: archives of zip for `tide --doctor FILE`: which kind they are, and the first bytes of an entry.
-- Nothing is unpacked whole.
local tide = ...
local zip = {}

-- A function of an entry and a number of bytes; nil and why where they can't be had.
local function reader(file, archive)
    return function(entry, most)
        local at, why = archive.data_at(entry)
        if not at then
            return nil, why
        elseif entry.method == 0 then
            return file.read(at, math.min(most, entry.packed))
        end
        return tide._doctor_calls.inflate(file.read(at, math.min(entry.packed, most + 1024)), most)
    end
end

--- tell(file, out): which kind of archive it is, and what it holds.
function zip.tell(file, out)
    local archive, wrong = tide._require("files.zip").open(file)
    local head = file.read(0, 4096)
    if not archive then
        out.kind(string.find(head, ".npy", 1, true) and "an archive of NumPy's arrays (.npz)"
            or string.find(head, "data.pkl", 1, true) and "a file of torch.save" or "an archive (zip)")
        return out.problem("archive", wrong, "fetch or write the file again")
    end
    archive.first_bytes = reader(file, archive)
    local arrays, pickle = #archive.entries > 0, nil
    for _, entry in ipairs(archive.entries) do
        arrays = arrays and string.find(entry.name, "%.npy$") ~= nil
        pickle = string.find(entry.name, "^[^/]+/data%.pkl$") and entry or pickle
    end
    if arrays then
        tide._require("doctor.arrays").npz(archive, out)
    elseif pickle then
        tide._require("doctor.torch").archive(archive, pickle, out)
    else
        out.kind("an archive (zip)")
        out.ok("entries", "%d", #archive.entries)
        for k = 1, math.min(#archive.entries, 12) do
            out.ok("", "'%s' %d bytes", archive.entries[k].name, archive.entries[k].size)
        end
        out.note("reading", "Tide reads no archives: unzip %s", out.quoted)
    end
    if archive.wrong then
        out.problem("archive", archive.wrong, "fetch or write the file again")
    end
end

return zip
