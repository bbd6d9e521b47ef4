-- files/gguf.lua: GGUF files: a table of metadata, and tensors by name, many of them packed a block at a time
-- (engine/io/blocks.h). The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Here headers are read and
-- written; every count and every place is checked against the file's length before it is used.
local tide = ...
local blocks = tide._require "files.ggml_blocks"
local gguf = { name = ".gguf", dtype = true, packed = true }

local MAX_DEPTH <const>, MAX_DIMS <const>, ALIGNMENT <const>, MOST_TEXT <const> = 8, 16, 32, 1 << 26
local STRING <const>, ARRAY <const>, BOOL <const> = 8, 9, 7

function gguf.match(head) return string.sub(head, 1, 4) == "GGUF" end

-- ---- dtypes and types ----

-- By number in a file; those that are packed engine/io/blocks.c knows.
local dtypes = { [0] = "float32", [1] = "float16", [24] = "int8", [25] = "int16", [26] = "int32", [27] = "int64", [28] = "float64",
    [30] = "bfloat16" }
local numbers, bytes_of = {}, { float32 = 4, float16 = 2, int8 = 1, int16 = 2, int32 = 4, int64 = 8, float64 = 8, bfloat16 = 2 }
for number, dtype in pairs(dtypes) do
    numbers[dtype] = number
end
local written = { F32 = "float32", F16 = "float16", BF16 = "bfloat16", F64 = "float64", I8 = "int8", I16 = "int16", I32 = "int32", I64 = "int64" }

-- Formats of string.unpack for values of metadata.
local scalars = { [0] = "<I1", "<i1", "<I2", "<i2", "<I4", "<i4", "<f", "<I1", [10] = "<i8", [11] = "<i8", [12] = "<d" }

--- type_name(number): of a tensor's type, as messages show it.
function gguf.type_name(number) return dtypes[number] or tide._block_type(number) or string.format("type %d", number) end

-- ---- reading headers ----

-- What is wrong with a file is raised as a table, so that faults of ours stay errors.
local function wrong(what, ...) error({ gguf = string.format(what, ...) }, 0) end

local function shown(name) return (string.gsub(string.sub(name, 1, 80), "[%c\127]", "?")) end

local function cursor(read, size)
    local c = tide._require("files.cursor")(read, size, function() wrong("cut off, or damaged: its header ends beyond the file") end)
    function c.text()
        local n = c.number("<i8")
        return n <= MOST_TEXT and c.take(n) or wrong("a text of %d bytes in its header", n)
    end
    -- A number of things of which each takes some bytes: no more than the file has room for.
    function c.count(least, what)
        local n = c.number("<i8")
        if n < 0 or n > c.left() // least then
            wrong("%s %s in a file of %d bytes", n < 0 and "more than 2^63" or string.format("%d", n), what, size)
        end
        return n
    end
    return c
end

local function read_scalar(kind, value)
    if kind == BOOL then
        return value ~= 0
    elseif kind == 10 and value < 0 then -- beyond 2^63
        return value + 2.0 ^ 64
    end
    return value
end

local function read_value(c, kind, depth)
    local format = scalars[kind]
    if format then
        return read_scalar(kind, c.number(format))
    elseif kind == STRING then
        return c.text()
    elseif kind ~= ARRAY then
        wrong("a value of metadata of the unknown kind %d", kind)
    elseif depth > MAX_DEPTH then
        wrong("arrays of metadata nested more than %d deep", MAX_DEPTH)
    end
    local inner, list = c.number("<I4"), {}
    local least = scalars[inner] and string.packsize(scalars[inner]) or 8
    for k = 1, c.count(least, "values of an array") do
        list[k] = read_value(c, inner, depth + 1)
    end
    return list
end

local function read_metadata(c, n)
    local metadata, kinds = {}, {}
    for _ = 1, n do
        local key = c.text()
        if kinds[key] then
            wrong("'%s' stands twice in its metadata", shown(key))
        end
        kinds[key] = c.number("<I4")
        metadata[key] = read_value(c, kinds[key], 1)
    end
    local alignment = metadata["general.alignment"]
    if alignment and (kinds["general.alignment"] ~= 4 or alignment < 1 or alignment & (alignment - 1) ~= 0) then
        wrong("its alignment is no power of two of 32 bits")
    end
    return metadata, alignment or ALIGNMENT
end

local function read_tensor(c)
    local name, ndim, sizes = c.text(), c.number("<I4"), {}
    if ndim > MAX_DIMS then
        wrong("'%s' has %d dims, more than %d", shown(name), ndim, MAX_DIMS)
    end
    for k = ndim, 1, -1 do -- the file's first dim is the last one
        sizes[k] = c.number("<i8")
        if sizes[k] < 0 then
            wrong("'%s' has a size of more than 2^63", shown(name))
        end
    end
    return { name = name, sizes = sizes, number = c.number("<I4"), at = c.number("<i8") }
end

local function read_header(read, size)
    local c = cursor(read, size)
    if c.take(4) ~= "GGUF" then
        wrong("no GGUF file")
    end
    local version = c.number("<I4")
    if version & 0xFFFF == 0 and version ~= 0 then
        wrong("its bytes have the other order: gguf-convert-endian turns them")
    elseif version ~= 2 and version ~= 3 then
        wrong("version %d of the format is not known", version)
    end
    local header, ntensors, nvalues = { version = version, tensors = {} }, c.count(24, "tensors"), c.count(13, "values of metadata")
    header.metadata, header.alignment = read_metadata(c, nvalues)
    local seen = {}
    for k = 1, ntensors do
        local entry = read_tensor(c)
        if seen[entry.name] then
            wrong("tensor '%s' stands there twice", shown(entry.name))
        end
        seen[entry.name], header.tensors[k] = true, entry
    end
    header.data_at = c.at + -c.at % header.alignment
    return header
end

--- header(read, size): of a file of `size` bytes that read(at, n) reads {version, metadata, alignment, data_at, tensors =
--- list of {name, sizes, number, at}}, at behind data_at; nil and what is wrong.
function gguf.header(read, size)
    local ok, header = pcall(read_header, read, size)
    if ok then
        return header
    end
    return nil, type(header) == "table" and header.gguf or error(header, 0)
end

-- ---- tensors ----

-- What a tensor takes, as a float: no product of integers wraps. nil where its type isn't known.
local function bytes_taken(entry)
    local dtype, _, elements, bytes = dtypes[entry.number], tide._block_type(entry.number)
    local count = 1.0
    for _, size in ipairs(entry.sizes) do
        count = count * size
    end
    return dtype and count * bytes_of[dtype] or bytes and count / elements * bytes
end

--- check_places(header, size, fail): no byte belongs to two tensors, so that what they take is bounded by what the file has;
--- fail(format, ...) raises.
function gguf.check_places(header, size, fail)
    local order = table.move(header.tensors, 1, #header.tensors, 1, {})
    table.sort(order, function(a, b) return a.at < b.at end)
    local stop = 0.0
    for _, entry in ipairs(order) do
        local bytes = bytes_taken(entry) or 0.0
        if entry.at < 0 or entry.at % header.alignment ~= 0 then
            fail("'%s' begins at byte %d, no multiple of %d", shown(entry.name), entry.at, header.alignment)
        elseif bytes > 0 and entry.at < stop then
            fail("the bytes of '%s' overlap another tensor's", shown(entry.name))
        elseif bytes > size - header.data_at - entry.at then
            fail("cut off: '%s' takes %.0f bytes from %d on, the file has %d", shown(entry.name), bytes, entry.at,
                math.max(0, size - header.data_at))
        end
        stop = math.max(stop, entry.at + bytes)
    end
end

local function load_tensor(file, at, entry, options)
    local dtype = dtypes[entry.number]
    if dtype then
        return file:tensor(at, tide[dtype], entry.sizes)
    end
    local kind, elements, bytes = tide._block_type(entry.number)
    local rows, columns = entry.sizes[1], entry.sizes[2]
    if options.packed and #entry.sizes == 2 and rows > 0 and columns > 0 and columns % elements == 0 and blocks.has(kind) then
        return blocks.linear(kind, file:tensor(at, tide.uint8, { rows, columns // elements, bytes }), columns)
    end
    local x, why = tide._blocks_read(file, at, entry.number, entry.sizes)
    return x and options.dtype and x:to(options.dtype) or x, why
end

--- load(path, options): tensors by name, the metadata, and of those that are left out their types. What is packed becomes
--- float32, or options.dtype.
function gguf.load(path, options)
    local formats = tide._require("files.formats")
    local file <close> = tide._file_open(path, options.map, "load")
    local function fail(what, ...) tide._fail("load: '%s': " .. what, path, ...) end
    local header, problem = gguf.header(function(at, n) return file:read(at, n) end, file:size())
    if not header then
        fail("%s", problem)
    end
    gguf.check_places(header, file:size(), fail)
    local tensors, left = {}, {}
    for _, entry in ipairs(header.tensors) do
        if bytes_taken(entry) then
            local x, why = load_tensor(file, header.data_at + entry.at, entry, options)
            if not x then
                fail("'%s': %s", shown(entry.name), why)
            end
            tensors[entry.name] = options.device and x:to(options.device) or x
        else
            left[entry.name] = gguf.type_name(entry.number)
        end
    end
    formats.warn_of_left(path, left)
    return formats.results(tensors, header.metadata, left)
end

-- ---- writing ----

local function put_text(text) return string.pack("<s8", text) end

-- The smallest kind that holds an integer or a float, of those that other readers look for first.
local function kind_of(value, what)
    if math.type(value) == "integer" then
        return value >= 0 and value < 1 << 32 and 4 or value >= -(1 << 31) and value < 0 and 5 or 11
    elseif type(value) == "number" then
        local short = string.unpack("<f", string.pack("<f", value))
        return (short == value or value ~= value) and 6 or 12
    elseif type(value) == "boolean" then
        return BOOL
    elseif type(value) == "string" then
        return STRING
    end
    tide._fail("write_gguf: option metadata: '%s': numbers, booleans, strings and lists of one of these expected, got %s", shown(what),
        tide._describe(value))
end

-- One kind for all of a list: integers of different ones are of 64 bits, and so are floats.
local widest = { [4] = 11, [5] = 11, [6] = 12 }

local function list_kind(list, what)
    local found
    for _, value in ipairs(list) do
        local kind = type(value) == "table" and ARRAY or kind_of(value, what)
        if found and found ~= kind then
            found, kind = widest[found] or found, widest[kind] or kind
        end
        if found and found ~= kind then
            tide._fail("write_gguf: option metadata: '%s': a list has values of one kind", shown(what))
        end
        found = kind
    end
    return found or STRING
end

local function put_value(value, kind, what, depth)
    if kind == STRING then
        return put_text(value)
    elseif kind == BOOL then
        return value and "\1" or "\0"
    elseif kind ~= ARRAY then
        return string.pack(scalars[kind], value)
    elseif depth > MAX_DEPTH then
        tide._fail("write_gguf: option metadata: '%s': nested more than %d deep", shown(what), MAX_DEPTH)
    end
    local inner = list_kind(value, what)
    local parts = { string.pack("<I4i8", inner, #value) }
    for k, item in ipairs(value) do
        parts[k + 1] = put_value(item, inner, what, depth + 1)
    end
    return table.concat(parts)
end

-- A table of metadata is a list from 1 on.
local function check_list(value, what)
    local n = 0
    for _ in pairs(value) do
        n = n + 1
    end
    if n ~= #value then
        tide._fail("write_gguf: option metadata: '%s': a list expected, got a table with keys", shown(what))
    end
end

local function put_metadata(metadata)
    local keys, parts = {}, {}
    for key in pairs(metadata) do
        if type(key) ~= "string" then
            tide._fail("write_gguf: option metadata: names are strings, got %s", tide._describe(key))
        end
        keys[#keys + 1] = key
    end
    table.sort(keys, tide._before)
    for _, key in ipairs(keys) do
        local value = metadata[key]
        if type(value) == "table" and not getmetatable(value) then
            check_list(value, key)
        end
        local kind = type(value) == "table" and not getmetatable(value) and ARRAY or kind_of(value, key)
        parts[#parts + 1] = put_text(key) .. string.pack("<I4", kind) .. put_value(value, kind, key, 1)
    end
    return #keys, table.concat(parts)
end

-- The number of a tensor's type, the tensor as it is written, and the type's name where it is packed.
local function as_written(name, x, wanted)
    x = x:detach():cpu()
    local label = wanted or nil
    if not label then
        local dtype = string.match(tostring(x.dtype), "%w+$")
        return numbers[dtype] or tide._fail("write_gguf: '%s': GGUF has no %s: convert it", shown(name), dtype), x:contiguous()
    elseif written[label] then
        return numbers[written[label]], x:to(tide[written[label]]):contiguous()
    end
    local known, elements, _, number, packs = tide._block_type(label)
    if not packs then
        tide._fail("write_gguf: option types: '%s': F32, F16, BF16, F64, I8, I16, I32, I64, Q8_0 or Q4_0 expected, got '%s'", shown(name),
            known or shown(label))
    elseif x.ndim == 0 or x.shape[x.ndim] % elements ~= 0 then
        tide._fail("write_gguf: '%s': rows of %s are multiples of %d elements, got shape %s", shown(name), label, elements, tostring(x.shape))
    end
    return number, x:to(tide.float32):contiguous(), label
end

local function sorted_names(tensors)
    local names = {}
    for name, x in pairs(tensors) do
        if type(name) ~= "string" then
            tide._fail("write_gguf: names are strings, got %s", tide._describe(name))
        elseif not tide.is_tensor(x) or x.is_sparse then
            tide._fail("write_gguf: '%s': a dense tensor expected, got %s", shown(name), tide._describe(x))
        elseif x.ndim > 4 then
            tide._fail("write_gguf: '%s': GGUF has no more than 4 dims, got shape %s", shown(name), tostring(x.shape))
        end
        names[#names + 1] = name
    end
    table.sort(names, tide._before)
    return names
end

-- A type for all is meant for matrices whose rows it fits; others stay as they are.
local function type_for(types, name, x)
    if type(types) ~= "string" then
        return types and types[name]
    end
    local _, elements = tide._block_type(types)
    return (not elements or x.ndim >= 2 and x.shape[x.ndim] % elements == 0) and x:is_floating_point() and types or nil
end

local function check_alignment(alignment)
    if math.type(alignment) ~= "integer" or alignment < 8 or alignment >= 1 << 20 or alignment & (alignment - 1) ~= 0 then
        tide._fail("write_gguf: option metadata: 'general.alignment': a power of two from 8 on expected, got %s", tide._describe(alignment))
    end
    return alignment
end

--- save(path, tensors, metadata, types): see tide.io.write_gguf.
function gguf.save(path, tensors, metadata, types)
    local names, alignment = sorted_names(tensors), check_alignment(metadata["general.alignment"] or ALIGNMENT)
    local nvalues, values = put_metadata(metadata)
    local list, labels, parts, at = {}, {}, { "GGUF", string.pack("<I4i8i8", 3, #names, nvalues), values }, 0
    for k, name in ipairs(names) do
        local number, x, label = as_written(name, tensors[name], type_for(types, name, tensors[name]))
        local sizes = { table.unpack(x.shape) }
        list[k], labels[k] = x, label or false
        parts[#parts + 1] = put_text(name) .. string.pack("<I4", x.ndim)
        for d = x.ndim, 1, -1 do
            parts[#parts + 1] = string.pack("<i8", sizes[d])
        end
        parts[#parts + 1] = string.pack("<I4i8", number, at)
        local bytes = math.tointeger(bytes_taken { number = number, sizes = sizes })
        at = at + bytes + -bytes % alignment
    end
    for name in pairs(type(types) == "table" and types or {}) do
        if tensors[name] == nil then
            tide._fail("write_gguf: option types: there is no tensor '%s'", shown(tostring(name)))
        end
    end
    tide._gguf_write(path, table.concat(parts), alignment, list, labels)
end

return gguf
