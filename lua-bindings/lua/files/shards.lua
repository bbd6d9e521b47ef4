-- files/shards.lua: safetensors in several files, by an index of JSON that says which holds which tensor
-- (model.safetensors.index.json), or by a folder with one. Files are opened one after the other and mapped as they are
-- by themselves. An index names files beside it, and none elsewhere.
local tide = ...
local shards = { name = "model.safetensors.index.json" }

local INDEX <const>, MOST_BYTES <const> = "model.safetensors.index.json", 100 << 20

--- match(head, path): JSON with a map of weights.
function shards.match(head, path)
    return string.find(head, "^%s*{") ~= nil
        and (string.find(head, '"weight_map"%s*:') ~= nil or string.find(path, "%.index%.json$") ~= nil)
end

--- folder(path): does it hold an index?
function shards.folder(path)
    return tide._system_calls().stat(path .. "/" .. INDEX) ~= nil
end

local function fail(path, what, ...)
    tide._fail("load: '%s': " .. what, path, ...)
end

local function shown(text)
    return (string.gsub(string.sub(tostring(text), 1, 80), "[%c\127]", "?"))
end

local function read_index(path)
    local handle <close>, why = io.open(path, "rb")
    local text = handle and handle:read(MOST_BYTES + 1) or ""
    if not handle then
        fail(path, "%s", (string.gsub(why, "^.*: ", "")))
    elseif #text > MOST_BYTES then
        fail(path, "an index of more than %d MB", MOST_BYTES >> 20)
    end
    local index, wrong = tide._require("files.json").decode(text)
    if wrong then
        fail(path, "%s", wrong)
    elseif type(index) ~= "table" or type(index.weight_map) ~= "table" then
        fail(path, "an index of weights has a 'weight_map' from names to files")
    end
    return index
end

-- The names of tensors by file. A file's name is one step: no folder, none above, no link to elsewhere by '..'.
local function names_by_file(index, path)
    local files, order = {}, {}
    for name, file in pairs(index.weight_map) do
        if type(name) ~= "string" or type(file) ~= "string" then
            fail(path, "its weight_map has '%s' for '%s', where a file's name is due", shown(file), shown(name))
        elseif string.find(file, "[/\\%z]") or file == "" or file == "." or file == ".." then
            fail(path, "its weight_map has '%s' for '%s': a file beside the index is due", shown(file), shown(name))
        end
        if not files[file] then
            files[file] = {}
            order[#order + 1] = file
        end
        table.insert(files[file], name)
    end
    table.sort(order, tide._before)
    return files, order
end

-- The metadata of an index that tables of texts, numbers and truths hold.
local function notes_of(index)
    return type(index.metadata) == "table" and index.metadata ~= tide._require("files.json").null and index.metadata or {}
end

--- load(path, options): tensors by name, the index's metadata, and dtypes of those left out.
function shards.load(path, options)
    if tide._system_calls().stat(path).kind == "folder" then
        path = path .. "/" .. INDEX
    end
    local index = read_index(path)
    local files, order = names_by_file(index, path)
    local base, formats = string.match(path, "^(.*/)") or "", tide._require("files.formats")
    local all, left = {}, {}
    for _, file in ipairs(order) do
        local tensors, others = tide._require("files.safetensors").read(base .. file, options)
        for _, name in ipairs(files[file]) do
            all[name], left[name] = tensors[name], others[name]
            if not tensors[name] and not others[name] then
                fail(path, "'%s' is not in '%s'", shown(name), file)
            end
        end
    end
    formats.warn_of_left(path, left, ", since Tide has not their dtype")
    return formats.results(all, notes_of(index), left)
end

return shards
