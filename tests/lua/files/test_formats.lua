-- test_formats.lua: tide.load finds a file's format by what is in it, whatever its name ends in; and what has no format is
-- refused in a line that says what was seen.
local t = require "harness"

local base = os.tmpname()

local function put(path, bytes)
    local f <close> = assert(io.open(path, "wb"))
    f:write(bytes)
end

local function get(path)
    local f <close> = assert(io.open(path, "rb"))
    return f:read("a")
end

-- A file of each format that Tide writes: {its ending, what writes it, what was read of it}.
local x = tide.tensor { { 1, 2 }, { 3, 4 } }
local WRITTEN = {
    { ".npy", function(path) tide.save(x, path) end, function(got) return got end },
    { ".npz", function(path) tide.save({ w = x }, path) end, function(got) return got.w end },
    { ".safetensors", function(path) tide.save({ w = x, deep = { 1, "a" } }, path) end, function(got) return got.w end },
}

t.test("a_file_is_read_by_what_it_holds_whatever_its_name_says", function()
    for _, row in ipairs(WRITTEN) do
        row[2](base .. row[1])
        local bytes = get(base .. row[1])
        for _, ending in ipairs { "", ".npy", ".npz", ".safetensors", ".pt", ".gguf", ".t7", ".csv", ".json", ".png", ".txt" } do
            local path = base .. ".other" .. ending
            put(path, bytes)
            t.eq(row[3](tide.load(path)):tolist(), { { 1, 2 }, { 3, 4 } }, row[1] .. " as " .. ending)
            t.eq(row[3](tide.load(path, { device = "cpu" })):tolist(), { { 1, 2 }, { 3, 4 } })
            os.remove(path)
        end
        os.remove(base .. row[1])
    end
end)

t.test("what_has_no_format_is_refused_in_one_line", function()
    local path = base .. ".unknown"
    for bytes, part in pairs {
        ["GIF89a\1\0\1"] = "it begins with 47 49 46 38 39 61 01 00 ('GIF89a..')", [""] = "it is empty", ["\n"] = "it begins with 0a ('.')",
        ["PK\3\4 and more"] = "a zip archive", [("\0"):rep(5000)] = "00 00 00 00",
    } do
        put(path, bytes)
        local message = t.error_has(function() tide.load(path) end, "load: '" .. path .. "': of no format that is read: ")
        t.is_true(message:find(part, 1, true) and message:find("; read are .npy, ", 1, true) and not message:find("\n"), message)
    end
    os.remove(path)
    t.error_has(function() tide.load(path) end, "load: cannot read '" .. path .. "': No such file")
    t.error_has(function() tide.load("/") end, "Is a directory")
    t.error_has(function() tide.load("/dev/null") end, "not a regular file")
end)

-- ---- shards ----

local folder = base .. ".shards"

-- An index beside two files, with other files' names where they are given.
local function write_shards(first, second, more)
    os.execute("mkdir -p '" .. folder .. "'")
    tide.io.save_npy(tide.ones(1), folder .. "/array.npy")
    for k, name in ipairs { "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors" } do
        local header = ('{"__metadata__":{"format":"pt"},"w%d":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'):format(k)
        put(folder .. "/" .. name, string.pack("<s8", header) .. string.pack("<ff", k, k + 0.5))
    end
    put(folder .. "/model.safetensors.index.json", ('{"metadata": {"total_size": 16}, "weight_map": {"w1": %s, "w2": %s%s}}'):format(
        first or '"model-00001-of-00002.safetensors"', second or '"model-00002-of-00002.safetensors"', more or ""))
end

t.test("shards_are_read_by_their_index_and_by_their_folder", function()
    write_shards()
    for _, path in ipairs { folder .. "/model.safetensors.index.json", folder, folder .. "/" } do
        for _, map in ipairs { true, false } do
            local tensors, notes = tide.load(path, { map = map })
            t.eq({ tensors.w1:tolist(), tensors.w2:tolist(), notes.total_size }, { { 1, 1.5 }, { 2, 2.5 }, 16 })
        end
    end
end)

t.test("an_index_that_leads_elsewhere_or_lies_is_refused", function()
    local index = folder .. "/model.safetensors.index.json"
    for _, case in ipairs {
        { '"../x"', "a file beside the index is due" }, { '"/etc/passwd"', "a file beside the index" }, { '".."', "a file beside the index" },
        { '"a\\\\b"', "a file beside the index" }, { '"a\\u0000b"', "a file beside the index" }, { '""', "a file beside the index" },
        { '"."', "a file beside the index" }, { "1", "where a file's name is due" }, { "null", "where a file's name is due" },
        { '["x"]', "where a file's name is due" }, { '"none.safetensors"', "No such file" }, { '"array.npy"', "no safetensors file" },
        { '"model-00002-of-00002.safetensors"', "'w1' is not in 'model-00002-of-00002.safetensors'" },
    } do
        write_shards(case[1])
        local message = t.error_has(function() tide.load(index) end, case[2], case[1])
        t.is_true(message:find("load: '", 1, true) and not message:find("\n"), message)
    end
    for bytes, part in pairs {
        ['{"weight_map": 1}'] = "has a 'weight_map'", ['{"weight_map": {"a": "b"'] = "JSON", ['{"x": 1}'] = "has a 'weight_map'",
        ['{"weight_map": {"a": "b", "a": "b"}}'] = "twice", ['{"weight_map": ' .. ("["):rep(300)] = "nested too deeply",
    } do
        put(index, bytes)
        local message = t.error_has(function() tide.load(index) end, part, bytes:sub(1, 60))
        t.is_true(not message:find("\n"), message)
    end
    os.execute("rm -r '" .. folder .. "'")
end)
