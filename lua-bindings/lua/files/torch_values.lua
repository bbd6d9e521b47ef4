-- files/torch_values.lua: what descriptions of pickles (files/pickle.lua) mean in files of torch.save: tables, numbers,
-- texts, and tensors of storages that the caller finds. Names of functions and classes that are known stand in `calls`;
-- everything else is left out by its place and its name. Nothing is run.
--
-- Dicts are tables (an OrderedDict's pairs() go in the file's order), lists, tuples and sets lists from 1 on, bytes strings.
-- None, and what is left out, is nil: a dict has no such key, a list keeps the others' places and has its length as `n`.
local tide = ...
local pickle, strided = tide._require("files.pickle"), tide._require("files.strided")
local values = {}

local MAX_DEPTH <const> = 500
local list_of = pickle.list_of

-- ---- dtypes ----

local storages = {
    Float = "float32", Double = "float64", Half = "float16", BFloat16 = "bfloat16", Long = "int64", Int = "int32", Short = "int16",
    Char = "int8", Byte = "uint8", Bool = "bool", Untyped = "uint8", ComplexFloat = "complex64", ComplexDouble = "complex128",
    QInt8 = "qint8", QUInt8 = "quint8", QInt32 = "qint32", QUInt4x2 = "quint4x2", QUInt2x4 = "quint2x4",
}
local sizes = {
    float32 = 4, float64 = 8, float16 = 2, bfloat16 = 2, int64 = 8, int32 = 4, int16 = 2, int8 = 1, uint8 = 1, bool = 1, complex32 = 4,
    complex64 = 8, complex128 = 16, qint8 = 1, quint8 = 1, qint32 = 4, quint4x2 = 1, quint2x4 = 1, uint16 = 2, uint32 = 4, uint64 = 8,
}

--- storage_dtype(class): the name of the dtype of a storage's class; the class where it is not known.
function values.storage_dtype(class)
    local kind = string.match(class, "^torch%.([%w]+)Storage$") or string.match(class, "^torch%.cuda%.(%w+)Storage$")
        or string.match(class, "^torch%.storage%.(%w+)Storage$")
    return storages[kind] or class
end

--- dtype_bytes(name): what an element takes; nil where that is not known.
function values.dtype_bytes(name) return sizes[name] or string.find(name, "^float8_") and 1 or nil end

--- own_dtype(name): Tide's dtype of that name; nil where it has none.
function values.own_dtype(name)
    local dtype = sizes[name] and rawget(tide, name)
    return getmetatable(dtype) == "tide.dtype" and dtype or nil
end

--- reference(description): of a reference to a storage {class, key, numel, view}; nil where it is none.
function values.reference(description)
    local stored = list_of(type(description) == "table" and description.stored or nil)
    local class, key = stored[2], stored[3]
    if stored[1] ~= "storage" or type(class) ~= "table" or type(class.global) ~= "string"
        or (type(key) ~= "string" and math.type(key) ~= "integer") then
        return nil
    end
    local view = stored[6] ~= pickle.None and stored[6] or nil
    return { class = class.global, key = tostring(key), numel = stored[5], view = view }
end

-- ---- dicts that keep their order ----

local orders = setmetatable({}, { __mode = "k" })
local Ordered = { __name = "OrderedDict" }
values.Ordered = Ordered

-- The file's keys that are still there, then those that came later.
function Ordered.__pairs(t)
    local order, k, seen, later = orders[t] or {}, 0, {}, nil
    return function()
        while k < #order do
            k = k + 1
            local key = order[k]
            local value = rawget(t, key)
            if value ~= nil and not seen[key] then
                seen[key] = true
                return key, value
            end
        end
        repeat
            local value
            later, value = next(t, later)
            if later ~= nil and not seen[later] then
                return later, value
            end
        until later == nil
    end
end

-- ---- from descriptions to values ----

local build

local function place(r)
    local parts = {}
    for k, key in ipairs(r.path) do
        parts[k] = tostring(key)
    end
    local text = #parts > 0 and table.concat(parts, ".") or "the whole"
    return (string.gsub(#text > 200 and string.sub(text, 1, 200) .. "..." or text, "%c", "?"))
end

local function leave_out(r, what, ...)
    r.why = string.format(what, ...)
    r.left[place(r)] = r.why
    return nil
end

local function fail(r, what, ...) r.fail("'%s': " .. what, place(r), ...) end

-- A name of the file as messages show it.
local function shown(name) return (string.gsub(string.sub(tostring(name), 1, 120), "[%c\127]", "?")) end

local function build_at(r, key, value)
    r.path[#r.path + 1] = key
    local made = build(r, value)
    r.path[#r.path] = nil
    return made
end

local function build_list(r, items, into)
    for k, item in ipairs(items) do
        into[k] = build_at(r, k, item)
        if into[k] == nil then
            into.n = #items
        end
    end
    return into
end

local function build_key(r, key)
    if type(key) == "string" or type(key) == "boolean" or type(key) == "number" and key == key then
        return key
    end
    r.path[#r.path + 1] = "[a key]"
    leave_out(r, "no string or number")
    r.path[#r.path] = nil
end

local function build_dict(r, pairs_of, into)
    for _, pair in ipairs(pairs_of) do
        local key = build_key(r, pair[1])
        if key ~= nil then
            into[key] = build_at(r, key, pair[2])
            if orders[into] then
                table.insert(orders[into], key)
            end
        end
    end
    return into
end

-- ---- tensors ----

-- A view of a storage, shared with all others of it.
local function view(r, reference, dtype, offset, shape, strides)
    if not values.own_dtype(dtype) then
        return leave_out(r, "%s", shown(dtype))
    end
    local row, count, first = r.storage(reference, dtype, fail, r)
    local x, why = strided.view(row, first, count, offset, shape, strides)
    return x or fail(r, "%s", why)
end

local function rebuild_tensor(r, args, dtype)
    local reference = values.reference(args[1])
    if not reference then
        return leave_out(r, "a tensor without a storage")
    end
    return view(r, reference, dtype or values.storage_dtype(reference.class), args[2], list_of(args[3]), list_of(args[4]))
end

local function with_grad(r, x, wanted)
    if tide.is_tensor(x) and wanted == true and x:is_floating_point() and x.layout == "strided" then
        return x:detach():requires_grad_(true)
    end
    return x
end

-- Bits that stand for a tensor's elements being negated or conjugated.
local function has_bits(metadata)
    for _, pair in ipairs(type(metadata) == "table" and metadata.pairs or {}) do
        if pair[2] == true then
            return true
        end
    end
    return false
end

local function rebuild_v2(r, args, dtype, metadata)
    if has_bits(metadata) then
        return leave_out(r, "a tensor with a bit for its sign")
    end
    return with_grad(r, rebuild_tensor(r, args, dtype), args[5])
end

local function rebuild_v3(r, args)
    local name = type(args[7]) == "table" and args[7].global or ""
    return rebuild_v2(r, args, string.match(name, "^torch%.(.*)$") or name, args[8])
end

local function rebuild_parameter(r, args) return with_grad(r, build(r, args[1]), args[2]) end

-- Are there as many indices as values, for the first dims, and are values of the others?
local function fits(indices, elements, shape)
    local n = indices.ndim == 2 and indices.shape[1]
    if indices.dtype ~= tide.int64 or indices.layout ~= "strided" or elements.layout ~= "strided" or not n or n > #shape
        or elements.ndim ~= 1 + #shape - n or elements.shape[1] ~= indices.shape[2] then
        return false
    end
    for d = n + 1, #shape do
        if elements.shape[d - n + 1] ~= shape[d] then
            return false
        end
    end
    return true
end

-- Indices count from 0 in the file, and lie within the sizes.
local function rebuild_sparse(r, args)
    local layout, data = build(r, args[1]), list_of(args[2])
    if layout ~= "torch.sparse_coo" then
        return leave_out(r, "%s", shown(layout))
    end
    local indices, elements, listed = build(r, data[1]), build(r, data[2]), build(r, data[3])
    local shape = strided.sizes(type(listed) == "table" and listed or { false })
    if not tide.is_tensor(indices) or not tide.is_tensor(elements) or not shape or not fits(indices, elements, shape) then
        return fail(r, "its indices, values or sizes are none, or don't fit")
    end
    for d = 1, indices:numel() > 0 and indices.shape[1] or 0 do
        local row = indices[d]
        if row:min():item() < 0 or row:max():item() >= shape[d] then
            fail(r, "an index lies beyond its %d places in dim %d", shape[d], d)
        end
    end
    return tide.sparse_coo_tensor(indices + 1, elements, shape)
end

-- ---- what else is known ----

local function first_list(r, args, into) return build_list(r, list_of(args[1]), into) end

-- What Python writes as u'...' with 'latin1' are bytes.
local function encode(r, args)
    local text, as, bytes = args[1], args[2], {}
    if type(text) ~= "string" or not utf8.len(text) then
        return leave_out(r, "bytes that are none")
    elseif as ~= "latin1" and as ~= "latin-1" then
        return text
    end
    for _, code in utf8.codes(text) do
        bytes[#bytes + 1] = code < 256 and string.char(code) or "?"
    end
    return table.concat(bytes)
end

local function bytes_of(r, args)
    local bytes = args[1] == nil and "" or build(r, args[1])
    return type(bytes) == "string" and (args[2] and encode(r, { bytes, args[2] }) or bytes) or leave_out(r, "bytes that are none")
end

local scalars = { f4 = "f", f8 = "d", i1 = "i1", i2 = "i2", i4 = "i4", i8 = "i8", u1 = "I1", u2 = "I2", u4 = "I4", b1 = "I1" }

local function numpy_scalar(r, args)
    local dtype = type(args[1]) == "table" and args[1].call == "numpy.dtype" and args[1] or {}
    local code, order = list_of(dtype.args)[1], list_of(dtype.state)[2]
    local format, bytes = scalars[code], args[2] and build(r, args[2])
    if not format or type(bytes) ~= "string" or #bytes ~= string.packsize(format) then
        return leave_out(r, "a number of NumPy's of type %s", shown(code))
    end
    local value = string.unpack((order == ">" and ">" or "<") .. format, bytes)
    if code == "b1" then
        return value ~= 0
    end
    return value
end

local function first_text(_, args) return shown(args[1]) end

local function device(_, args)
    return math.type(args[2]) == "integer" and string.format("%s:%d", shown(args[1]), args[2]) or shown(args[1])
end

local function ordered(r, args, into, value)
    orders[into] = {}
    setmetatable(into, Ordered)
    for _, pair in ipairs(list_of(args[1])) do -- as Python 2 wrote them
        build_dict(r, { list_of(pair) }, into)
    end
    build_dict(r, type(args[1]) == "table" and args[1].pairs or {}, into)
    return build_dict(r, value.pairs or {}, into)
end

local function plain_dict(r, args, into, value)
    for _, arg in ipairs(args) do
        build_dict(r, type(arg) == "table" and arg.pairs or {}, into)
    end
    return build_dict(r, value.pairs or {}, into)
end

-- A tensor with attributes of its own: they are dropped.
local function from_type(r, args)
    local fn, class = args[1], args[2]
    local name = type(class) == "table" and class.global
    if type(fn) == "table" and (name == "torch.Tensor" or name == "torch._tensor.Tensor" or name == "torch.nn.parameter.Parameter") then
        return build(r, { call = fn.global, args = args[3] })
    end
    return leave_out(r, "class %s", shown(name))
end

-- (reader, arguments, a fresh table that stands for the result, the description)
local calls = {
    ["collections.OrderedDict"] = ordered, ["collections.defaultdict"] = plain_dict, ["collections.Counter"] = plain_dict,
    ["builtins.dict"] = plain_dict, ["__builtin__.dict"] = plain_dict,
    ["builtins.set"] = first_list, ["__builtin__.set"] = first_list, ["builtins.frozenset"] = first_list,
    ["__builtin__.frozenset"] = first_list, ["builtins.list"] = first_list, ["builtins.tuple"] = first_list, ["torch.Size"] = first_list,
    ["_codecs.encode"] = encode, ["builtins.bytearray"] = bytes_of, ["__builtin__.bytearray"] = bytes_of, ["builtins.bytes"] = bytes_of,
    ["torch.device"] = device, ["torch.serialization._get_layout"] = first_text, ["numpy.dtype"] = first_text,
    ["numpy.core.multiarray.scalar"] = numpy_scalar, ["numpy._core.multiarray.scalar"] = numpy_scalar,
    ["torch._utils._rebuild_tensor"] = function(r, args) return rebuild_tensor(r, args) end,
    ["torch._utils._rebuild_tensor_v2"] = function(r, args) return rebuild_v2(r, args, nil, args[7]) end,
    ["torch._utils._rebuild_tensor_v3"] = rebuild_v3, ["torch._utils._rebuild_sparse_tensor"] = rebuild_sparse,
    ["torch._utils._rebuild_parameter"] = rebuild_parameter, ["torch._utils._rebuild_parameter_with_state"] = rebuild_parameter,
    ["torch.nn.parameter.Parameter"] = rebuild_parameter, ["torch._tensor._rebuild_from_type_v2"] = from_type,
    ["torch._utils._rebuild_device_tensor_from_cpu_tensor"] = rebuild_parameter,
}
values.calls = calls

--- other_kinds: tensors that are left out, by the function that would rebuild them.
values.other_kinds = {
    ["torch._utils._rebuild_qtensor"] = "a quantized tensor", ["torch._utils._rebuild_nested_tensor"] = "a nested tensor",
    ["torch._utils._rebuild_meta_tensor_no_storage"] = "a tensor on the meta device",
    ["torch._utils._rebuild_wrapper_subclass"] = "a tensor of a subclass",
}

local function build_global(r, name)
    local dtype = string.match(name, "^torch%.([%w_]+)$")
    if dtype and values.dtype_bytes(dtype) then
        return values.own_dtype(dtype) or dtype
    end
    return leave_out(r, "class or function %s", shown(name))
end

local function build_table(r, value)
    local into = {}
    if value.call then
        local fn = calls[value.call]
        if not fn then
            return leave_out(r, "%s", values.other_kinds[value.call] or "class " .. shown(value.call))
        end
        r.made[value] = (fn == ordered or fn == plain_dict or fn == first_list) and into or nil
        return fn(r, list_of(value.args), into, value)
    elseif value.pairs then
        r.made[value] = into
        return build_dict(r, value.pairs, into)
    elseif value.list then
        r.made[value] = into
        return build_list(r, value.list, into)
    elseif value.stored ~= nil then
        local reference = values.reference(value)
        return reference and view(r, reference, values.storage_dtype(reference.class), 0, { reference.numel }, { 1 })
            or leave_out(r, "a reference to something else")
    elseif value.global then
        return build_global(r, value.global)
    end
    return leave_out(r, "an integer beyond 64 bits")
end

function build(r, value)
    if value == pickle.None then
        return nil
    elseif type(value) ~= "table" then
        return value
    elseif r.made[value] ~= nil then
        return r.made[value]
    elseif r.gone[value] then
        return leave_out(r, "%s", r.gone[value])
    end
    r.depth = r.depth + 1
    if r.depth > MAX_DEPTH then
        fail(r, "nested more than %d deep", MAX_DEPTH)
    end
    local made = build_table(r, value)
    r.made[value], r.gone[value], r.depth = made, made == nil and r.why or nil, r.depth - 1
    return made
end

--- build(description, storage, fail): the value, and {place = why} of what was left out. storage(reference, dtype, fail, r)
--- gives a row of a storage's elements, how many of them belong to the reference and the place of the first;
--- fail(format, ...) raises.
function values.build(description, storage, raise)
    local r = { path = {}, left = {}, made = {}, gone = {}, depth = 0, storage = storage, fail = raise }
    return build(r, description), r.left
end

return values
