-- files/formats.lua: which format a file has. A format is a module files/NAME.lua: `name` for messages, `match(head, path)`
-- with the file's first bytes (none of a folder, a pipe, a device: these can't be read twice), `load(path, options)` with
-- the options of tide.load, `folder(path)` where a folder may be one, and `dtype`, `packed` where it has those options. What the bytes say goes before the name's
-- ending, which decides for formats without a signature alone.
local tide = ...
local formats = {}

local HEAD <const>, SHOWN <const> = 4096, 8

-- The first that matches reads the file; what says little about itself stands last.
local NAMES = { "npy", "gguf", "torch", "npz", "t7", "images", "wav", "shards", "tar", "idx", "cifar", "safetensors", "csv", "jsonl" }

-- What files begin with that nobody here reads, and what may be done.
local foreign = {
    { "^PK\3\4", "a zip archive of no kind that is read" }, { "^\x89HDF\r\n", "an HDF5 file: safetensors.numpy.save_file writes what can be read" },
    { "^\x80[\1-\5]", "a pickle of Python: safetensors.torch.save_file writes what can be read" },
    { "^\x1F\x8B", "compressed by gzip: gunzip it first" },
    { "^version https://git%-lfs", "a pointer of Git LFS: 'git lfs pull' fetches the file" },
    { "^%s*<!", "a page of HTML: the download went wrong" }, { "^%s*<[hH][tT][mM][lL]", "a page of HTML: the download went wrong" },
    { "^%s*[{%[]", "a text of JSON" },
}

-- The first bytes as letters where they are such, and as numbers.
local function show_bytes(head)
    if #head == 0 then
        return "it is empty"
    end
    local first = string.sub(head, 1, SHOWN)
    return string.format("it begins with %s ('%s')", (string.gsub(string.gsub(first, ".", function(c)
        return string.format("%02x ", string.byte(c))
    end), " $", "")), (string.gsub(first, "[^ -~]", ".")))
end

local function refuse(head, path)
    local read = {}
    for k, name in ipairs(NAMES) do
        read[k] = tide._require("files." .. name).name
    end
    local what = show_bytes(head)
    for _, kind in ipairs(foreign) do
        if string.find(head, kind[1]) then
            what = kind[2]
            break
        end
    end
    tide._fail("load: '%s': of no format that is read: %s; read are %s", path, what, table.concat(read, ", "))
end

local function first_bytes(path, size)
    local n = math.min(size, HEAD)
    local bytes <close> = tide._bytes(path, "load", 0, n)
    return tide._string(bytes, 0, n)
end

--- find(path): the module that reads it; an error that says what the file is where none does.
function formats.find(path)
    local facts, why = tide._system_calls().stat(path)
    if not facts then
        tide._fail("load: cannot read '%s': %s", path, why)
    end
    local head = facts.kind == "file" and first_bytes(path, facts.size) or ""
    for _, name in ipairs(NAMES) do
        local format = tide._require("files." .. name)
        if facts.kind == "folder" then
            if format.folder and format.folder(path) then
                return format
            end
        elseif format.match(head, path) then
            return format
        end
    end
    if facts.kind ~= "file" then
        tide._fail("load: '%s': %s", path, facts.kind == "folder" and "Is a directory" or "not a regular file")
    end
    refuse(head, path)
end

-- ---- what formats share ----

--- warn_of_left(path, left [, why]): one line says what a file holds and was left out, {name = what}.
function formats.warn_of_left(path, left, why)
    local names = {}
    for name, what in pairs(left) do
        names[#names + 1] = string.format("'%s' (%s)", name, what)
    end
    if #names > 0 then
        table.sort(names)
        warn((string.gsub(string.format("tide: load: '%s': left out%s: %s%s", path, why or "",
            table.concat(names, ", ", 1, math.min(#names, 8)),
            #names > 8 and string.format(" and %d more", #names - 8) or ""), "%c", "?")))
    end
end

--- results(value, notes [, left]): the value, and what a file says besides where it says something: a prompt shows all
--- results of a call.
function formats.results(value, notes, left)
    if left and next(left) then
        return value, notes, left
    elseif next(notes) then
        return value, notes
    end
    return value
end

return formats
