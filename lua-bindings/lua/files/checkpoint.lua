-- files/checkpoint.lua: any nested table of tensors and plain values as named tensors and one text of JSON, and back. The
-- text says what safetensors can't: the tables, keys that are no strings, integers and floats with all their bits,
-- what is one and the same object. It knows no files. Tensors that are the same elements (tied weights) are one in
-- the file; a view of a part of another becomes a tensor of its own.
--
-- true, 7, 0.5 and "text" stand for themselves; an integer has no point and a float has one. The rest are objects
-- with one key:
--   {"tensor": NAME}, {"leaf": NAME}   a tensor; one that requires grad
--   {"list": [...]}                    a table with keys 1 to n; numbered with the next in order of beginning
--   {"table": [KEY, VALUE, ...]}       any other
--   {"same": N}                        the N-th table again
--   {"hex": DIGITS}                    a string that is no UTF-8
--   {"bits": DIGITS}                   a float that JSON can't write
--   {"generator": DIGITS}              the state of a tide.Generator
--   {"dtype": NAME}
--   {"shard": [TENSOR, LIST, LIST]}    a part of a tensor: its elements, the whole's sizes, where it begins
local tide = ...
local checkpoint = {}

local MAX_DEPTH = 100

local function shard_class() return tide._require("distributed.shard") end

-- ---- from values to text ----

local function hex(bytes)
    return (string.gsub(bytes, ".", function(c) return string.format("%02x", string.byte(c)) end))
end

-- A key that is no string, as text.
local function key_text(key)
    return type(key) == "number" and tide._number(key) or tostring(key)
end

-- Where a value stands, for messages: object.model[1].
local function place(path)
    local text = "object"
    for _, key in ipairs(path) do
        if #text > 200 then
            return text .. "..."
        end
        if type(key) == "string" and #key > 40 then
            key = string.sub(key, 1, 40) .. "..."
        end
        local name = type(key) == "string" and string.match(key, "^[%a_][%w_]*$")
        text = text .. (name and "." .. name or type(key) == "string" and "[" .. string.gsub(string.format("%q", key), "\n", "n") .. "]"
            or "[" .. key_text(key) .. "]")
    end
    return text
end

-- The name of a tensor in the file: its keys with points between them, as state_dict names it.
local function name_tensor(writer)
    local parts = {}
    for k, key in ipairs(writer.path) do
        parts[k] = type(key) == "string" and key or key_text(key)
    end
    local name = #parts > 0 and table.concat(parts, ".") or "tensor"
    if not utf8.len(name) then
        name = string.gsub(name, "[\128-\255]", "?")
    end
    local unique, n = name, 1
    while writer.taken[unique] or unique == "__metadata__" do
        n = n + 1
        unique = name .. "#" .. n
    end
    writer.taken[unique] = true
    return unique
end

-- What two tensors have in common when they are the same elements (tied weights).
local function identify(x)
    if x:numel() == 0 then
        return x
    end
    return string.format("%d %s %s %s", x:data_ptr(), tostring(x.dtype), tostring(x.shape), table.concat(x:stride(), " "))
        .. tostring(x.device)
end

local write

-- Integers and parameters, which are written as the values that they are.
local function write_quantized(writer, x)
    local parts = { write(writer, x:int_repr()) }
    local parameters = x:qscheme() == "per_tensor_affine" and { x:q_scale(), x:q_zero_point() }
        or { x:q_per_channel_scales(), x:q_per_channel_zero_points(), x:q_per_channel_axis() }
    for _, parameter in ipairs(parameters) do
        parts[#parts + 1] = write(writer, parameter)
    end
    return string.format('{"quantized":[%s]}', table.concat(parts, ","))
end

local function write_tensor(writer, x)
    if x.is_quantized then
        return write_quantized(writer, x)
    elseif x.layout ~= "strided" then
        tide._fail("save: %s is a sparse tensor: save its indices() and values(), or to_dense()", place(writer.path))
    end
    local form, same = x.requires_grad and "leaf" or "tensor", identify(x)
    local name = writer.names[same]
    if not name then
        name = name_tensor(writer)
        writer.names[same] = name
        writer.count = writer.count + 1
        writer.list[writer.count] = name
        writer.tensors[writer.count] = x:detach():contiguous()
    end
    return string.format('{"%s":%s}', form, tide._json_quote(name))
end

local function write_number(x)
    if math.type(x) == "integer" then
        return string.format("%d", x)
    elseif x ~= x or x == math.huge or x == -math.huge then
        return string.format('{"bits":"%016x"}', (string.unpack("<i8", string.pack("<d", x))))
    end
    local text = tide._number(x, 17)
    return string.find(text, "[.e]") and text or text .. ".0"
end

local RANK = { boolean = 1, number = 2, string = 3 }

local function key_before(a, b)
    if RANK[type(a)] ~= RANK[type(b)] then
        return RANK[type(a)] < RANK[type(b)]
    elseif type(a) == "boolean" then
        return a and not b
    elseif type(a) == "number" then
        return a < b
    end
    return tide._before(a, b)
end

-- A table's keys in order, and whether they are 1 to n.
local function sort_keys(writer, value)
    local keys = {}
    for key in next, value do
        if not RANK[type(key)] then
            tide._fail("save: %s has a key that is a %s: strings, numbers and booleans can be saved",
                place(writer.path), tide._describe(key))
        end
        keys[#keys + 1] = key
    end
    table.sort(keys, key_before)
    for k = 1, #keys do
        if math.type(keys[k]) ~= "integer" or keys[k] ~= k then
            return keys, false
        end
    end
    return keys, #keys > 0
end

local function write_table(writer, value)
    if writer.tables[value] then
        return string.format('{"same":%d}', writer.tables[value])
    elseif #writer.path >= MAX_DEPTH then
        tide._fail("save: object is nested more than %d tables deep", MAX_DEPTH)
    end
    writer.ntables = writer.ntables + 1
    writer.tables[value] = writer.ntables
    local keys, is_list = sort_keys(writer, value)
    local parts, path = {}, writer.path
    for _, key in ipairs(keys) do
        path[#path + 1] = key
        if not is_list then
            parts[#parts + 1] = write(writer, key)
        end
        parts[#parts + 1] = write(writer, rawget(value, key))
        path[#path] = nil
    end
    return string.format('{"%s":[%s]}', is_list and "list" or "table", table.concat(parts, ","))
end

-- What has a class of its own is not its fields.
local function check_plain(writer, value)
    local class = getmetatable(value)
    if class == nil or class == "tide.Size" or type(class) == "table" and class.__name == "OrderedDict" then
        return
    end
    local ok, has = pcall(function() return value.state_dict end)
    tide._fail("save: %s is an object (%s)%s", place(writer.path), tide._describe(value),
        ok and has and ": save what its state_dict() gives" or ": plain tables, tensors and values can be saved")
end

write = function(writer, value)
    local kind, class = type(value), getmetatable(value)
    if kind == "boolean" then
        return tostring(value)
    elseif kind == "number" then
        return write_number(value)
    elseif kind == "string" then
        return utf8.len(value) and tide._json_quote(value) or string.format('{"hex":"%s"}', hex(value))
    elseif kind == "table" and class == shard_class() then
        return string.format('{"shard":[%s,%s,%s]}', write(writer, value.tensor:detach()), write(writer, value.shape), write(writer, value.start))
    elseif kind == "table" then
        check_plain(writer, value)
        return write_table(writer, value)
    elseif tide.is_tensor(value) then
        return write_tensor(writer, value)
    elseif class == "tide.Generator" then
        return string.format('{"generator":"%s"}', hex(string.char(table.unpack(value:get_state():tolist()))))
    elseif class == "tide.dtype" then
        return string.format('{"dtype":"%s"}', string.match(tostring(value), "%w+$"))
    end
    tide._fail("save: %s is %s: tensors, tables, strings, numbers and booleans can be saved", place(writer.path),
        tide._describe(value))
end

--- flatten(object): names, tensors and the text.
function checkpoint.flatten(object)
    local writer = { path = {}, taken = {}, names = {}, list = {}, tensors = {}, count = 0, tables = {}, ntables = 0 }
    local text = write(writer, object)
    return writer.list, writer.tensors, text
end

-- ---- and back ----

local function fail(reader, what, ...)
    tide._fail("load: '%s': its structure is wrong: " .. what, reader.path, ...)
end

local function unhex(reader, digits, bytes)
    if type(digits) ~= "string" or string.find(digits, "[^0-9a-f]") or #digits % 2 == 1 or bytes and #digits ~= 2 * bytes then
        fail(reader, "hexadecimal digits expected")
    end
    return (string.gsub(digits, "..", function(pair) return string.char(tonumber(pair, 16)) end))
end

local function find_tensor(reader, name)
    return type(name) == "string" and reader.tensors[name] or fail(reader, "it names a tensor that is not there")
end

local read

local function add_table(reader, content)
    if type(content) ~= "table" or next(content) ~= nil and content[1] == nil then
        fail(reader, "an array expected")
    end
    local value = {}
    reader.tables[#reader.tables + 1] = value
    return value
end

local FORMS = {
    tensor = find_tensor,
    leaf = function(reader, name)
        local x = find_tensor(reader, name)
        if not tide.is_floating_point(x) then
            fail(reader, "a tensor of integers that requires grad")
        end
        reader.leaves[name] = reader.leaves[name] or x:detach():requires_grad_(true)
        return reader.leaves[name]
    end,
    list = function(reader, content)
        local list = add_table(reader, content)
        for k, node in ipairs(content) do
            list[k] = read(reader, node)
        end
        return list
    end,
    table = function(reader, content)
        local value = add_table(reader, content)
        if #content % 2 == 1 then
            fail(reader, "a key without a value")
        end
        for k = 1, #content, 2 do
            local key = read(reader, content[k])
            if not RANK[type(key)] or key ~= key or value[key] ~= nil then
                fail(reader, "a key that can't be one, or stands there twice")
            end
            value[key] = read(reader, content[k + 1])
        end
        return value
    end,
    quantized = function(reader, content)
        local parts = {}
        for k, node in ipairs(type(content) == "table" and content or {}) do
            parts[k] = read(reader, node)
        end
        local make = #parts == 3 and tide._make_per_tensor_quantized_tensor
            or #parts == 4 and tide._make_per_channel_quantized_tensor or fail(reader, "three or four parts of a quantized tensor expected")
        local ok, x = pcall(make, table.unpack(parts))
        return ok and x or fail(reader, "%s", x)
    end,
    shard = function(reader, content)
        local name = type(content) == "table" and type(content[1]) == "table" and content[1].tensor
        local x, shape, start = name and find_tensor(reader, name), read(reader, content[2]), read(reader, content[3])
        if not name or not shard_class().fits(x, shape, start) then
            fail(reader, "a part of a tensor that does not lie in it")
        end
        local shard = shard_class().new(x, shape, start, name)
        if reader.on_shard then
            reader.on_shard(shard)
        end
        return shard
    end,
    same = function(reader, number)
        return reader.tables[number] or fail(reader, "it names a table that is not there")
    end,
    hex = unhex,
    bits = function(reader, digits)
        return (string.unpack(">d", unhex(reader, digits, 8)))
    end,
    generator = function(reader, digits)
        return tide.Generator():set_state(tide.tensor({ string.byte(unhex(reader, digits, 16), 1, -1) }, { dtype = tide.uint8 }))
    end,
    dtype = function(reader, name)
        local dtype = type(name) == "string" and rawget(tide, name)
        return getmetatable(dtype) == "tide.dtype" and dtype or fail(reader, "it names a dtype that is not there")
    end,
}

read = function(reader, node)
    if type(node) ~= "table" then
        return node
    end
    local form, content = next(node)
    if not FORMS[form] or next(node, form) ~= nil then
        fail(reader, "an object that means nothing")
    end
    return FORMS[form](reader, content)
end

--- restore(tensors, text, path, on_shard): the object; the path is for messages. on_shard (or nil) is told of each shard.
function checkpoint.restore(tensors, text, path, on_shard)
    return read({ tensors = tensors, leaves = {}, tables = {}, path = path, on_shard = on_shard }, tide._json_read(text, path))
end

return checkpoint
