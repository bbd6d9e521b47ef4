-- onnx/tensors.lua: tensors of ONNX as Tide's, from the model's file or from files beside it. Every length is compared with what is
-- there before it is used.
local tide = ...
local tensors = {}

local DTYPES <const> = { "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64",
    "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4" }
local BYTES <const> = { float32 = 4, uint8 = 1, int8 = 1, int16 = 2, int32 = 4, int64 = 8, bool = 1, float16 = 2, float64 = 8, bfloat16 = 2 }

--- wrong(format, ...): a model that can't be read or run is raised as a table, so that faults of ours stay errors.
function tensors.wrong(what, ...) error({ onnx = string.format(what, ...) }, 0) end
local wrong = tensors.wrong

--- shown(name): a name as messages show it.
function tensors.shown(name) return (string.gsub(string.sub(name or "", 1, 80), "[%c\127]", "?")) end

--- dtype(number): Tide's dtype of ONNX's number; raised is that there is none.
function tensors.dtype(number, what)
    local name = DTYPES[number]
    if not BYTES[name] then
        wrong("%s is %s, a dtype that Tide has not", what, name or string.format("of type %s", tostring(number)))
    end
    return tide[name], BYTES[name]
end

local NUMBERS = {}
for number, name in ipairs(DTYPES) do
    NUMBERS[name] = number
end

--- dtype_number(name): ONNX's number of "float32".
function tensors.dtype_number(name) return NUMBERS[name] or wrong("a dtype that ONNX has not: %s", name) end

--- dtype_of(x): "float32" of a tensor.
function tensors.dtype_of(x) return (string.gsub(tostring(x.dtype), "^tide%.", "")) end

--- dtype_name(number): "float32", for messages.
function tensors.dtype_name(number) return DTYPES[number] or string.format("type %s", tostring(number)) end

-- How many elements sizes mean, and that there is room for so many.
local function count_of(sizes, what)
    local n = 1.0
    for _, size in ipairs(sizes) do
        if size < 0 then
            wrong("%s has a size of %d", what, size)
        end
        n = n * size
    end
    if n > 2.0 ^ 48 then
        wrong("%s has %.0f elements", what, n)
    end
    return math.tointeger(n)
end

-- A tensor of a file, or why there is none.
local function check(what, x, why) return x or wrong("%s: %s", what, why) end

-- A name in the model's own folder: no way out of it.
local function beside(folder, name, what)
    if not folder then
        wrong("%s lies in another file, '%s', and nobody knows where", what, tensors.shown(name))
    elseif name == "" or string.find(name, "^/") or string.find("/" .. name .. "/", "/../", 1, true) or string.find(name, "%z") then
        wrong("%s lies in '%s', which is not beside the model", what, tensors.shown(name))
    end
    return folder .. name
end

local function from_outside(entry, dtype, bytes, sizes, folder, what)
    local where = {}
    for _, pair in ipairs(entry.external_data) do
        where[pair.key or ""] = pair.value
    end
    local path = beside(folder, where.location or "", what)
    local file <close> = tide._file_open(path, nil, "onnx.load")
    local at = math.tointeger(tonumber(where.offset or 0)) or wrong("%s has no place in '%s'", what, tensors.shown(where.location))
    if at < 0 or at > file:size() or bytes > file:size() - at then
        wrong("%s takes %d bytes from %d on, '%s' has %d", what, bytes, at, tensors.shown(where.location), file:size())
    end
    return check(what, file:tensor(at, dtype, sizes))
end

-- The number that 16 bits mean.
local function of_half(bits)
    local sign, exponent, part = bits >> 15 & 1, bits >> 10 & 31, bits & 1023
    local value = exponent == 0 and part * 2.0 ^ -24 or (1024 + part) * 2.0 ^ (exponent - 25)
    if exponent == 31 then
        value = part == 0 and math.huge or 0 / 0
    end
    return sign == 1 and -value or value
end

local function of_brain(bits) return (string.unpack("<f", string.pack("<I4", (bits & 0xFFFF) << 16))) end

-- Elements that are listed one by one.
local function from_lists(entry, dtype, n, what)
    local list = entry.float_data
    if dtype == tide.int64 then
        list = entry.int64_data
    elseif dtype == tide.float64 then
        list = entry.double_data
    elseif dtype ~= tide.float32 then
        list = entry.int32_data
    end
    if #list ~= n then
        wrong("%s has %d elements, its sizes say %d", what, #list, n)
    elseif n == 0 then
        return tide.zeros(0, { dtype = dtype })
    elseif dtype == tide.float16 or dtype == tide.bfloat16 then
        local numbers, number = {}, dtype == tide.float16 and of_half or of_brain
        for k, bits in ipairs(list) do
            numbers[k] = number(bits)
        end
        list = numbers
    elseif dtype == tide.bool then
        return tide.tensor(list, { dtype = tide.int64 }):ne(0)
    elseif dtype == tide.int8 or dtype == tide.int16 or dtype == tide.int32 then
        local signed = {}
        for k, value in ipairs(list) do -- negative ones are written with 64 bits, by some with 32
            signed[k] = value >= 1 << 31 and value - (1 << 32) or value
        end
        list = signed
    end
    return tide.tensor(list, { dtype = dtype })
end

--- read(entry, file, folder): the tensor of a message, of a file that tide._file_open has opened.
function tensors.read(entry, file, folder)
    local what = string.format("tensor '%s'", tensors.shown(entry.name))
    local dtype, width = tensors.dtype(entry.data_type, what)
    local n = count_of(entry.dims, what)
    if entry.data_location == 1 then
        return from_outside(entry, dtype, n * width, entry.dims, folder, what)
    elseif entry.raw_data then
        local bytes = entry.raw_data.stop - entry.raw_data.at
        if bytes ~= n * width then
            wrong("%s has %d bytes, its sizes say %d", what, bytes, n * width)
        end
        return check(what, file:tensor(entry.raw_data.at, dtype, entry.dims))
    end
    return from_lists(entry, dtype, n, what):view(entry.dims)
end

return tensors
