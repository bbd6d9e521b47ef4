-- files/torch.lua: what torch.save wrote, in both its forms: an archive of zip (since 1.6), with a pickle and a file for
-- each storage, and the stream of pickles before it, with all storages behind them. Here storages are found and checked;
-- what the pickles mean files/torch_values.lua knows. Tensors are views of their storages as they were in PyTorch, and
-- storages are mapped where they can be.
local tide = ...
local pickle, values = tide._require("files.pickle"), tide._require("files.torch_values")
local torch = { name = ".pt and .pth (PyTorch)" }

local MOST_PICKLE <const> = 1 << 28
-- The number that the stream begins with: as protocols from 2 on write it, and as 0 and 1 do.
local MAGIC <const>, MAGIC_TEXT <const> = "\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", "L119547037146038801333356L\n."

--- is_stream(head): do these first bytes begin the form before archives?
function torch.is_stream(head)
    local at = string.find(head, MAGIC, 1, true)
    return at ~= nil and at <= 16 and string.byte(head) == 0x80 or string.sub(head, 1, #MAGIC_TEXT) == MAGIC_TEXT
end

--- pickle_name(name): what stands in front of the pickle's name if an entry of an archive is it; nil.
function torch.pickle_name(name) return string.match(name, "^([^/]+/)data%.pkl$") end

-- Is the pickle the first entry, as torch.save writes archives, or one of those in the directory?
local function is_archive(head, path)
    if string.sub(head, 1, 4) ~= "PK\3\4" or #head < 30 then
        return false
    elseif torch.pickle_name(string.sub(head, 31, 30 + string.unpack("<I2", head, 27))) then
        return true
    end
    local handle <close> = io.open(path, "rb")
    local zip = tide._require("files.zip")
    local archive = handle and zip.open(zip.file(handle, handle:seek("end") or 0))
    for _, entry in ipairs(archive and archive.entries or {}) do
        if torch.pickle_name(entry.name) then
            return true
        end
    end
    return false
end

-- The form before the stream, an archive of tar: nobody has written it since 2017.
local oldest = { sys_info = true, pickle = true, tensors = true, storages = true }

local function is_oldest(head)
    return string.sub(head, 258, 262) == "ustar" and oldest[string.match(head, "^%.?/?([%l_]+)%z")] == true
end

function torch.match(head, path) return torch.is_stream(head) or is_archive(head, path) or is_oldest(head) end

-- ---- storages ----

local function shown(name) return (string.gsub(string.sub(tostring(name), 1, 120), "[%c\127]", "?")) end

-- What values.build asks for storages by: they are made once for each dtype, at the places that place(key, bytes, fail)
-- finds.
local function storages(file, options, turned, place)
    local made = {}
    local function make(reference, dtype, fail, r)
        local size, id = values.dtype_bytes(dtype), reference.key .. " " .. dtype
        local bytes = reference.numel * values.dtype_bytes(values.storage_dtype(reference.class))
        local at = place(reference.key, bytes, fail, r)
        local x, why = file:tensor(at, values.own_dtype(dtype), { bytes // size }, turned)
        if not x then
            fail(r, "its storage '%s': %s", shown(reference.key), why)
        end
        made[id] = options.device and x:to(options.device) or x
        return made[id]
    end
    return function(reference, dtype, fail, r)
        local size = values.dtype_bytes(values.storage_dtype(reference.class))
        if not size or math.type(reference.numel) ~= "integer" or reference.numel < 0 or reference.numel > file:size() then
            fail(r, "its storage '%s' has no number of elements that the file could hold", shown(reference.key))
        end
        local x = made[reference.key .. " " .. dtype]
        if not x or x:numel() * values.dtype_bytes(dtype) < reference.numel * size then
            x = make(reference, dtype, fail, r)
        end
        local first, count = 0, x:numel()
        if reference.view then -- a part of the storage, as files before 0.4 have
            local view = pickle.list_of(reference.view)
            first, count = view[2], view[3]
            if math.type(first) ~= "integer" or math.type(count) ~= "integer" or first < 0 or count < 0
                or first > x:numel() or count > x:numel() - first then
                fail(r, "its part of storage '%s' is none", shown(reference.key))
            end
        end
        return x, count, first
    end
end

-- ---- the archive ----

local function open_archive(file, fail)
    local archive, wrong = tide._require("files.zip").open {
        size = file:size(), read = function(at, n) return file:read(at, n) end,
    }
    wrong = wrong or archive.wrong
    if wrong then
        fail("%s", wrong)
    end
    local by_name, front = {}, nil
    for _, entry in ipairs(archive.entries) do
        by_name[entry.name] = entry
        front = front or torch.pickle_name(entry.name)
    end
    return archive, by_name, front or fail("its pickle is missing: no entry 'NAME/data.pkl'")
end

-- Where a stored entry's bytes begin; nil and why there are none of that many.
local function entry_at(archive, entry, least, most)
    if not entry then
        return nil, "it is missing"
    elseif entry.size < least or entry.size > most then
        return nil, string.format("%d bytes are due, its entry has %d", entry.size < least and least or most, entry.size)
    elseif entry.method ~= 0 or entry.packed ~= entry.size then
        return nil, "it is packed, and torch.save stores"
    end
    return archive.data_at(entry)
end

local function load_archive(file, options, fail)
    local archive, by_name, front = open_archive(file, fail)
    local function bytes_of(name, most)
        local entry = by_name[front .. name]
        local at, why = entry_at(archive, entry, 0, most)
        return at and file:read(at, entry.size) or fail("'%s%s': %s", shown(front), name, why)
    end
    local bytes, order = bytes_of("data.pkl", MOST_PICKLE), by_name[front .. "byteorder"] and bytes_of("byteorder", 16) or "little"
    local found, wrong = pickle.describe(function(at, n) return string.sub(bytes, at + 1, at + n) end, 0)
    if not found then
        fail("its pickle is damaged: %s", wrong)
    elseif order ~= "little" and order ~= "big" then
        fail("its order of bytes is '%s'", shown(order))
    end
    local function place(key, size, raise, r)
        local at, why = entry_at(archive, by_name[front .. "data/" .. key], size, math.maxinteger)
        return at or raise(r, "its storage '%sdata/%s': %s", shown(front), shown(key), why)
    end
    return values.build(found.value, storages(file, options, order == "big", place), fail)
end

-- ---- the stream ----

-- Where each storage's elements lie: behind the pickles, one after the other, each behind its number of elements. The
-- pickles alone say what an element takes.
local function places_in_stream(file, at, keys, references, fail)
    local places = {}
    for _, key in ipairs(keys) do
        local reference = references[tostring(key)]
        local size = reference and values.dtype_bytes(values.storage_dtype(reference.class))
        if not size then
            fail("its storage '%s' is of no dtype that is known", shown(key))
        end
        local head = file:read(at, 8)
        local n = #head == 8 and string.unpack("<i8", head) or -1
        if n < 0 or n > (file:size() - at - 8) // size then
            fail("cut off: storage '%s' ends beyond the file", shown(key))
        end
        places[tostring(key)] = { at = at + 8, bytes = n * size }
        at = at + 8 + n * size
    end
    return places
end

local PICKLES <const> = 5 -- the number, the version, the system, the object, keys of storages

local function load_stream(file, options, fail)
    local at, all, found, wrong = 0, {}, nil, nil
    for k = 1, PICKLES do
        found, wrong = pickle.describe(function(from, n) return file:read(from, n) end, at)
        if not found then
            fail("pickle %d of %d is damaged: %s", k, PICKLES, wrong)
        end
        all[k], at = found, found.stop
    end
    if all[2].value ~= 1001 then
        fail("version %s of the form is not known", type(all[2].value) == "number" and tostring(all[2].value) or "?")
    end
    local references = {}
    for _, stored in ipairs(all[4].stored) do
        local reference = values.reference(stored)
        if reference then
            references[reference.key] = references[reference.key] or reference
        end
    end
    local places = places_in_stream(file, at, pickle.list_of(all[5].value), references, fail)
    local function place(key, size, raise, r)
        local found_at = places[key] or raise(r, "its storage '%s' is missing", shown(key))
        if found_at.bytes < size then
            raise(r, "its storage '%s' takes %d bytes, the file has %d", shown(key), size, found_at.bytes)
        end
        return found_at.at
    end
    return values.build(all[4].value, storages(file, options, false, place), fail)
end

--- load(path, options): what was saved, and of what was left out why, by place.
function torch.load(path, options)
    local formats = tide._require("files.formats")
    local file <close> = tide._file_open(path, options.map, "load")
    local function fail(what, ...) tide._fail("load: '%s': " .. what, path, ...) end
    local head = file:read(0, 512)
    local stream = torch.is_stream(head)
    if is_oldest(head) then
        fail("the oldest form of torch.save, an archive of tar, is not read: in Python, torch.save(torch.load(path), path)")
    end
    local value, left = (stream and load_stream or load_archive)(file, options, fail)
    local _, what = next(left)
    if value == nil and what then
        fail("it holds %s, and no tables or tensors: in Python, torch.save(model.state_dict(), path)", what)
    end
    formats.warn_of_left(path, left)
    return formats.results(value, {}, left)
end

return torch
