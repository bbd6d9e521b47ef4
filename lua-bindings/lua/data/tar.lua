-- data/tar.lua: tide.data.tar: samples in archives of tar, as webdataset has them: files that follow each other and whose names are
-- the same up to the first point are one sample, {__key__ = that name, jpg = ..., cls = ...}.
local tide = ...
local fail, declare, describe = tide._fail, tide._function, tide._describe
local archives = {}

-- ---- names of shards ----

-- "a-{000..002}" and "a-{x,y}" as lists.
local function expand(pattern, list)
    local front, inner, behind = string.match(pattern, "^(.-){([^{}]*)}(.*)$")
    local first, last = string.match(inner or "", "^(%d+)%.%.(%d+)$")
    if first then
        local width = (#first > 1 and string.sub(first, 1, 1) == "0" or #first == #last) and #first or 1
        for k = tonumber(first), tonumber(last), tonumber(first) <= tonumber(last) and 1 or -1 do
            expand(string.format("%s%0" .. width .. "d%s", front, k, behind), list)
        end
    elseif inner and string.find(inner, ",", 1, true) then
        for choice in string.gmatch(inner .. ",", "([^,]*),") do
            expand(front .. choice .. behind, list)
        end
    else
        list[#list + 1] = pattern
    end
    return list
end

-- {paths, decode = how}: all in one table.
local function read_call(paths, how)
    if type(paths) ~= "table" then
        return paths, how
    end
    for key in next, paths do
        if type(key) == "string" and key ~= "decode" then
            fail("tar: no option '%s': there is decode", key)
        end
    end
    if paths.decode ~= nil then
        how = paths.decode
    end
    return type(paths[1]) == "table" and #paths == 1 and paths[1] or paths, how
end

local function paths_of(given)
    local list = {}
    for k, path in ipairs(type(given) == "table" and given or { given }) do
        if type(path) ~= "string" then
            fail("tar: paths[%d]: a path expected, got %s", k, describe(path))
        end
        expand(path, list)
    end
    if #list == 0 then
        fail("tar: a path or a list of paths expected, got %s", describe(given))
    end
    return list
end

-- ---- decoding ----

local function integer(bytes)
    return math.tointeger(tonumber(bytes)) or nil, "no integer"
end

local function json(bytes)
    local value, problem = tide._require("files.json").decode(bytes)
    return value, problem
end

local function image(bytes)
    local decode = rawget(tide.io, "decode_image")
    return decode and decode(bytes) or bytes
end

local function plain(bytes) return bytes end
local function npy(bytes) return tide._npy_decode(bytes) end

local DECODERS <const> = { json = json, jsn = json, npy = npy, txt = plain, text = plain, transcript = plain,
    cls = integer, cls2 = integer, class = integer, count = integer, index = integer, inx = integer, id = integer,
    jpg = image, jpeg = image, png = image }

-- A file's bytes as its field: by the end of the field's name.
local function decode(self, member, field, bytes)
    local ending = string.match(field, "[^.]*$")
    local own = type(self.decode) == "table" and (self.decode[field] or self.decode[ending])
    local decoder = own or self.decode ~= false and DECODERS[ending]
    if not decoder then
        return bytes
    end
    local ok, value, problem = pcall(decoder, bytes)
    if not ok or value == nil then
        fail("tar: '%s': '%s': %s", member.path, member.name, tostring(ok and problem or value or "its decoder gave nil"))
    end
    return value
end

-- ---- samples ----

-- The sample's name and the field of a file: up to the first point behind the last folder; nil where it has no point.
local function split(name)
    local folder, rest = string.match(name, "^(.*/)([^/]*)$")
    local stem, field = string.match(rest or name, "^([^.]+)%.(.+)$")
    if stem then
        return (folder or "") .. stem, string.lower(field)
    end
end

-- A function that gives the next file of all shards, with its bytes.
local function each_file(self)
    local shard, step, read, stream = 0, nil, nil, nil
    return function()
        while true do
            local member = step and step()
            if member then
                member.path = self.paths[shard]
                return member, read
            elseif stream then
                stream:close()
            end
            shard = shard + 1
            if not self.paths[shard] then
                step, stream = nil, nil
                return nil
            end
            step, read, stream = tide._require("files.tar").opened(self.paths[shard], "tar")
        end
    end
end

local function iterate(self)
    local step, sample, shard = each_file(self), nil, nil
    local function give(following, path)
        local done = sample
        sample, shard = following, path
        return done
    end
    return function()
        for member, read in step do
            local key, field = split(member.name)
            if key then
                local done
                if not sample or sample.__key__ ~= key or shard ~= member.path then
                    done = give({ __key__ = key }, member.path)
                elseif sample[field] ~= nil then
                    fail("tar: '%s': sample '%s' has two files '%s'", member.path, key, field)
                end
                sample[field] = decode(self, member, field, read(member))
                if done then
                    return done
                end
            end
        end
        return give(nil, nil)
    end
end

-- ---- writing ----

-- What a sample's field is in a file.
local function encode(key, field, value)
    local kind = type(value)
    local ending = string.match(field, "[^.]*$")
    if kind == "string" then
        return value
    elseif ending == "json" then
        return tide._require("files.json").encode(value, "write_tar: sample '" .. key .. "': field '" .. field .. "'")
    elseif kind == "number" then
        return tide._number(value, 17)
    elseif tide.is_tensor(value) and ending == "npy" then
        return tide._npy_encode(value:detach():cpu():contiguous())
    end
    fail("write_tar: sample '%s': field '%s': bytes expected, a number, a tensor for npy or a table for json; got %s", key, field,
        describe(value))
end

local function write_sample(writer, sample, n)
    if type(sample) ~= "table" or type(sample.__key__) ~= "string" then
        fail("write_tar: sample %d: a table with a __key__ expected, got %s", n, describe(sample))
    elseif string.find(string.match(sample.__key__, "[^/]*$"), "^[.]?$") or string.find(string.match(sample.__key__, "[^/]*$"), ".", 1, true)
        or string.find(sample.__key__, "\0", 1, true) then
        fail("write_tar: sample %d: '%s': a key has a name without a point", n, (string.gsub(sample.__key__, "%c", "?")))
    end
    local fields = {}
    for field in pairs(sample) do
        if type(field) ~= "string" or field ~= "__key__" and string.find(field, "[/%z]") or field == "" then
            fail("write_tar: sample '%s': names of fields expected, got %s", sample.__key__, describe(field))
        end
        fields[#fields + 1] = field ~= "__key__" and field or nil
    end
    table.sort(fields, tide._before)
    for _, field in ipairs(fields) do
        writer:write(tide._require("files.tar").entry(sample.__key__ .. "." .. field, encode(sample.__key__, field, sample[field])))
    end
end

function archives.open(data)
    local protocol = tide._require "data.protocol"
    local Tar = { __name = "Tar" }
    Tar.__index = Tar
    tide._class("Tar", Tar)
    data._classes.Tar = Tar
    Tar.iter = declare("iter(Tar self) -> function", "A function that gives the next sample.", iterate)
    function Tar.__tostring(self) return string.format("Tar(%d shard%s)", #self.paths, #self.paths == 1 and "" or "s") end

    local schema = "tar(any paths, *, any decode=nil)"
    local doc = "Samples in archives of tar, as webdataset has them: tide.data.tar(\"shard-{000..009}.tar\") or a list of paths, packed by gzip or "
        .. "not. Files that follow each other and whose names are the same up to the first point are one sample, {__key__, cls = 3, json = {...}, "
        .. "jpg = ...}: cls and its like are integers, txt texts, json tables, npy tensors, jpg and png what tide.io.decode_image makes of them. "
        .. "decode = false leaves bytes, {field = fn} has functions of one's own. An iterable dataset."
    data.tar = declare(schema .. " -> Tar", doc, function(paths, how)
        paths, how = read_call(paths, how)
        if how ~= nil and type(how) ~= "boolean" and type(how) ~= "table" then
            fail("tar: option decode: false or a table of functions expected, got %s", describe(how))
        end
        return setmetatable({ paths = paths_of(paths), decode = how }, Tar)
    end)
    tide._document(Tar, "Tar", schema, doc)

    data.write_tar = declare("write_tar(any samples, str path) -> int",
        "Write samples, {__key__ = name, field = bytes, number, tensor (npy) or table (json)}, of a list or a dataset as an archive that tar reads, "
            .. "packed where the path ends in gz; how many there were. The file appears whole or not at all.", function(samples, path)
            protocol.check("write_tar", samples)
            local writer <close> = tide._stream_create(path, "write_tar", string.find(path, "gz$") ~= nil)
            local n = 0
            for sample in protocol.iterate(samples) do
                n = n + 1
                write_sample(writer, sample, n)
            end
            writer:write(tide._require("files.tar").END)
            writer:finish()
            return n
        end)
end

return archives
