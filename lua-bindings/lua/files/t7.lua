-- files/t7.lua: what Torch7 saved (torch.save of Lua, 64 bits), in its binary and its ASCII form: tables, numbers, strings,
-- booleans, tensors and storages, each once however often it is named. Numbers and what they count are as the file has them:
-- Torch7 counted from 1 as well. An object of another class is the table of its fields, with the class's name as
-- torch_typename; functions are left out by their place, and what they hold with them. Nothing is run.
local tide = ...
local strided = tide._require("files.strided")
local t7 = { name = ".t7 (Torch7)" }

local MAX_DEPTH <const>, MOST_TEXT <const>, MAX_DIMS <const> = 500, 1 << 28, 16
local NIL <const>, NUMBER <const>, STRING <const>, TABLE <const>, OBJECT <const>, BOOLEAN <const> = 0, 1, 2, 3, 4, 5
local FUNCTIONS <const> = { [6] = true, [7] = true, [8] = true } -- the first has no number of its own

-- A table or an object that is the first, and what must stand behind it; the name's ending for anything else.
function t7.match(head, path)
    if string.find(head, "^[\3\4]%z%z%z\1%z%z%z") and #head >= 12 then
        local n = string.unpack("<i4", head, 9)
        if string.byte(head) == OBJECT then
            return n > 0 and n < 100 and string.find(head, "^V %d", 13) ~= nil or string.find(head, "^%a[%w_]*%.%w+", 13) ~= nil
        end
        return n >= 0 and (#head < 16 or string.unpack("<I4", head, 13) <= 8)
    end
    return string.find(head, "^3\n1\n%d+\n[0-8]?\n?") ~= nil or string.find(head, "^4\n1\n%d+\nV %d") ~= nil
        or string.find(path, "%.t7$") ~= nil and (string.find(head, "^[\0-\8]%z%z%z") ~= nil or string.find(head, "^[0-8]\n") ~= nil)
end

-- ---- the two forms ----

local function shown(name) return (string.gsub(string.sub(tostring(name), 1, 120), "[%c\127]", "?")) end

local function binary(file, fail)
    local c = tide._require("files.cursor")(function(at, n) return file:read(at, n) end, file:size(), function() fail("cut off, or damaged") end)
    local form = {}
    function form.int() return c.number("<i4") end
    function form.long() return c.number("<i8") end
    function form.double() return c.number("<d") end
    function form.bytes(n) return c.take(n) end
    function form.elements(dtype, size, n)
        local x, why = nil, n < 0 and "a negative number of elements"
        if not why and n > c.left() // size then
            why = string.format("%d elements in %d bytes", n, c.left())
        elseif not why then
            x, why = file:tensor(c.at, tide[dtype], { n })
        end
        c.at = x and c.at + n * size or c.at
        return x or fail("a storage has %s", why)
    end
    return form
end

local special = { nan = 0 / 0, ["-nan"] = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

-- Numbers have blanks between them; what has a length ends with a line's end.
local function ascii(file, fail)
    local text, at, form = file:read(0, MOST_TEXT), 1, {}
    local function word() -- one that nothing stands behind may have lost its end
        local _, stop, found = string.find(text, "^%s*([^%s]+)%s", at)
        at = stop or fail("cut off, or damaged")
        return found
    end
    local function end_line()
        at = string.sub(text, at, at) == "\n" and at + 1 or at
    end
    local function whole()
        return math.tointeger(tonumber(word())) or fail("a number that is none")
    end
    function form.int()
        local n = whole()
        end_line()
        return n
    end
    form.long = form.int
    local function number()
        local found = word()
        return special[found] or tonumber(found) or fail("a number that is none")
    end
    function form.double()
        local x = number() + 0.0
        end_line()
        return x
    end
    function form.bytes(n)
        if n < 0 or n > #text - at + 1 then
            fail("cut off, or damaged")
        end
        at = at + n
        local found = string.sub(text, at - n, at - 1)
        if n > 0 then
            end_line()
        end
        return found
    end
    function form.elements(dtype, _, n)
        local raw, values = dtype == "uint8" and "B" or dtype == "int8" and "b", {}
        if n < 0 or n > #text - at + 1 then
            fail("a storage has %d elements in %d bytes", n, #text - at + 1)
        end
        local bytes = raw and form.bytes(n)
        for k = 1, n do
            values[k] = raw and string.unpack(raw, bytes, k) or number()
        end
        if n > 0 and not raw then
            end_line()
        end
        return tide.tensor(values, { dtype = tide[dtype] })
    end
    return form
end

-- ---- objects ----

local dtypes = { Byte = "uint8", Char = "int8", Short = "int16", Int = "int32", Long = "int64", Half = "float16", Float = "float32",
    Double = "float64" }
local bytes_of = { uint8 = 1, int8 = 1, int16 = 2, int32 = 4, int64 = 8, float16 = 2, float32 = 4, float64 = 8 }

-- The dtype of torch.FloatTensor, torch.CudaTensor, torch.CudaLongStorage, ..., and which of the two it is.
local function kind_of(class)
    local name, kind = string.match(class, "^torch%.(%a-)(Tensor)$")
    if not name then
        name, kind = string.match(class, "^torch%.(%a-)(Storage)$")
    end
    local plain = name == "Cuda" and "Float" or name and string.gsub(name, "^Cuda", "")
    return dtypes[plain], kind
end

local read

local function place(r)
    local parts = {}
    for k, key in ipairs(r.path) do
        parts[k] = (type(key) == "string" or type(key) == "number") and tostring(key) or type(key)
    end
    return #parts > 0 and shown(table.concat(parts, ".")) or "the whole"
end

local function fail(r, what, ...) r.fail("'%s': " .. what, place(r), ...) end

local function read_text(r)
    local n = r.form.int()
    return n >= 0 and n <= MOST_TEXT and r.form.bytes(n) or fail(r, "a text of %d bytes", n)
end

-- Numbers that are whole are integers, as Torch7 shows them.
local function read_number(r)
    local x = r.form.double()
    return x ~= 0 and x > -2.0 ^ 53 and x < 2.0 ^ 53 and math.tointeger(x) or x == 0 and 1 / x > 0 and 0 or x
end

local function read_into(r, value, key)
    r.path[#r.path + 1] = key
    local item = read(r)
    r.path[#r.path] = nil
    if item ~= nil and (key == nil or key ~= key) then
        fail(r, "a key that can't be one")
    elseif key ~= nil then
        value[key] = item
    end
end

local function read_pairs(r, n, value)
    if n < 0 then
        fail(r, "a table of %d pairs", n)
    end
    for _ = 1, n do
        r.path[#r.path + 1] = "[a key]"
        local key = read(r)
        r.path[#r.path] = nil
        read_into(r, value, key)
    end
    return value
end

local function read_sizes(r, ndim)
    local list = {}
    for d = 1, ndim do
        list[d] = r.form.long()
    end
    return list
end

-- Its storage stands behind it, or did so before; a tensor without one has no elements.
local function read_tensor(r, dtype)
    local ndim = r.form.int()
    if ndim < 0 or ndim > MAX_DIMS then
        fail(r, "a tensor of %d dims", ndim)
    end
    local shape, strides = read_sizes(r, ndim), read_sizes(r, ndim)
    local offset, storage = r.form.long(), read(r)
    if ndim == 0 or storage == nil then
        return tide.zeros(0, { dtype = tide[dtype] })
    elseif not tide.is_tensor(storage) or not r.storages[storage] or storage.dtype ~= tide[dtype] then
        fail(r, "a tensor of %s without such a storage", dtype)
    end
    local x, why = strided.view(storage, 0, storage:numel(), offset == math.mininteger and -1 or offset - 1, shape, strides)
    return x or fail(r, "%s", why)
end

local function read_storage(r, dtype)
    local x = r.form.elements(dtype, bytes_of[dtype], r.form.long())
    x = r.device and x:to(r.device) or x
    r.storages[x] = true
    return x
end

-- Containers of the package tds: a number, something unused, and as many items or pairs.
local function read_container(r, class, value)
    local n = r.form.int()
    read(r)
    if class == "tds.Hash" then
        return read_pairs(r, n, value)
    end
    for k = 1, n do
        read_into(r, value, k)
    end
    return value
end

-- What other classes write is the table of their fields, unless they have something of their own.
local function read_fields(r, class, value)
    local tag = r.form.int()
    if tag ~= TABLE then
        fail(r, "class %s writes no table of fields", shown(class))
    end
    local index = r.form.int()
    if r.made[index] == nil then
        r.made[index] = value
        read_pairs(r, r.form.int(), value)
    end
    value.torch_typename = class
    return value
end

local function read_object(r, index)
    local class = read_text(r)
    if string.find(class, "^V %d+$") then -- versions came later
        class = read_text(r)
    end
    local dtype, kind = kind_of(class)
    if dtype then
        r.made[index] = (kind == "Tensor" and read_tensor or read_storage)(r, dtype)
        return r.made[index]
    end
    r.made[index] = {}
    if class == "tds.Hash" or class == "tds.Vec" then
        return read_container(r, class, r.made[index])
    end
    return read_fields(r, class, r.made[index])
end

-- What a function holds is read, to be passed over.
local function read_function(r, index)
    r.left[place(r)] = "a function"
    if index then
        r.gone[index] = true
    end
    local n, left = r.form.int(), r.left
    if n < 0 then
        fail(r, "a function of %d bytes", n)
    end
    r.form.bytes(n)
    r.left = {}
    read(r)
    r.left = left
end

function read(r)
    local tag = r.form.int()
    if tag == NIL then
        return nil
    elseif tag == NUMBER then
        return read_number(r)
    elseif tag == STRING then
        return read_text(r)
    elseif tag == BOOLEAN then
        return r.form.int() == 1
    elseif tag ~= TABLE and tag ~= OBJECT and not FUNCTIONS[tag] then
        fail(r, "a value of the unknown kind %d", tag)
    end
    r.depth = r.depth + 1
    if r.depth > MAX_DEPTH then
        fail(r, "nested more than %d deep", MAX_DEPTH)
    end
    local index, value = tag ~= 6 and r.form.int() or nil, nil
    if index and r.made[index] ~= nil then
        value = r.made[index]
    elseif index and r.gone[index] then
        r.left[place(r)] = "a function"
    elseif FUNCTIONS[tag] then
        read_function(r, index)
    elseif tag == OBJECT then
        value = read_object(r, index)
    else
        r.made[index] = {}
        value = read_pairs(r, r.form.int(), r.made[index])
    end
    r.depth = r.depth - 1
    return value
end

--- load(path, options): what was saved, and of what was left out why, by place.
function t7.load(path, options)
    local formats = tide._require("files.formats")
    local file <close> = tide._file_open(path, options.map, "load")
    local function raise(what, ...) tide._fail("load: '%s': " .. what, path, ...) end
    local form = (string.find(file:read(0, 2), "^[0-8]\n") and ascii or binary)(file, raise)
    local r = { form = form, fail = raise, device = options.device, path = {}, made = {}, gone = {}, left = {}, storages = {}, depth = 0 }
    local value = read(r)
    if value == nil and next(r.left) then
        raise("it holds a function, and no tables or tensors")
    end
    formats.warn_of_left(path, r.left)
    return formats.results(value, {}, r.left)
end

return t7
