-- driver.lua: makes the calls that it is sent and answers what came of them. A request is two lengths
-- (8 bytes each), a Lua chunk and the numbers of its tensors; an answer is two lengths, a header in JSON
-- and the numbers of its tensors. Numbers travel as 8 bytes each, so that every bit arrives: integers
-- and booleans as int64, floats as float64. Knows nothing of PyTorch; what is called the chunk says.
local BATCH = 100
local integers = { int64 = true, int32 = true, int16 = true, int8 = true, uint8 = true, bool = true }

-- ---- numbers ----

local function name_of(dtype)
    return tostring(dtype):match("[%w]+$")
end

local function unpack_numbers(data, at, n, dtype)
    local list, code = {}, integers[dtype] and "i8" or "d"
    while n > 0 do
        local count = math.min(n, BATCH)
        local values = table.pack(string.unpack("<" .. code:rep(count), data, at))
        table.move(values, 1, count, #list + 1, list)
        at, n = values[count + 1], n - count
    end
    return list, at
end

local function flatten(list, into)
    for _, value in ipairs(list) do
        if type(value) == "table" then
            flatten(value, into)
        else
            into[#into + 1] = value == true and 1 or value == false and 0 or value
        end
    end
    return into
end

local function pack_numbers(list, dtype)
    local parts, code = {}, integers[dtype] and "i8" or "d"
    for first = 1, #list, BATCH do
        local last = math.min(first + BATCH - 1, #list)
        parts[#parts + 1] = string.pack("<" .. code:rep(last - first + 1), table.unpack(list, first, last))
    end
    return table.concat(parts)
end

local function numbers_of(x)
    local list = x:detach():tolist()
    return pack_numbers(flatten(type(list) == "table" and list or { list }, {}), name_of(x.dtype))
end

-- ---- JSON of answers ----

local to_json

local function object_json(value)
    local parts = {}
    for key, entry in pairs(value) do
        parts[#parts + 1] = ("%q:%s"):format(key, to_json(entry))
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

function to_json(value)
    if type(value) == "table" then
        if value.list then
            local parts = {}
            for k, entry in ipairs(value.list) do
                parts[k] = to_json(entry)
            end
            return "[" .. table.concat(parts, ",") .. "]"
        end
        return object_json(value)
    elseif type(value) == "string" then
        return '"' .. value:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
    elseif value ~= value then
        return "NaN"
    elseif value == math.huge or value == -math.huge then
        return value > 0 and "Infinity" or "-Infinity"
    elseif math.type(value) == "float" then
        return ("%.17g"):format(value)
    end
    return tostring(value)
end

-- ---- a call ----

local function describe_sizes(sizes)
    return { list = table.move(sizes, 1, #sizes, 1, {}) }
end

-- Which of the sent storages holds the tensor's first element, and at which element of it.
local function find_storage(x, bases)
    local address = x:numel() > 0 and x:data_ptr() or -1
    for k, base in ipairs(bases) do
        local offset = address - base.address
        if offset >= 0 and offset < base.bytes then
            return k, offset // base.x:element_size()
        end
    end
end

local function describe(value, answer, bases)
    if not tide.is_tensor(value) then
        if value ~= nil and type(value) ~= "number" and type(value) ~= "boolean" then
            value = tostring(value)
        end
        return { value = value }
    end
    local storage, offset = find_storage(value, bases)
    answer.data[#answer.data + 1] = numbers_of(value)
    return { dtype = name_of(value.dtype), shape = describe_sizes(value.shape), strides = describe_sizes(value:stride()),
        grad = value.requires_grad, storage = storage, offset = offset }
end

local function collect(value, into)
    if type(value) == "table" and not tide.is_tensor(value) then
        for _, entry in ipairs(value) do
            collect(entry, into)
        end
    else
        into[#into + 1] = value
    end
    return into
end

-- The call's results in one list; a result that is nil keeps its place as false.
local function flat_results(results)
    local list = {}
    for k = 1, results.n do
        if results[k] == nil then
            list[#list + 1] = false
        else
            collect(results[k], list)
        end
    end
    return list
end

local function pick(list, places)
    local picked = {}
    for k, place in ipairs(places) do
        picked[k] = list[place]
    end
    return picked
end

-- Gradients of `outputs` by `inputs`, false where there is none.
local function gradients(outputs, inputs, cotangents, create_graph)
    local options = { grad_outputs = cotangents, allow_unused = true, create_graph = create_graph }
    local found = tide.autograd.grad(outputs, inputs, options)
    local list = {}
    for k = 1, #inputs do
        list[k] = found[k] or false
    end
    return list
end

-- Of those gradients that have a history; what has none does not depend on the inputs.
local function second_gradients(first, inputs, tensors, plan)
    local outputs, cotangents = {}, {}
    for k, place in ipairs(plan.outputs) do
        if first[place] and first[place].requires_grad then
            outputs[#outputs + 1], cotangents[#cotangents + 1] = first[place], tensors[plan.cotangents[k]]
        end
    end
    return #outputs > 0 and gradients(outputs, inputs, cotangents, false) or {}
end

local function describe_all(list, answer, bases)
    local described = {}
    for k, value in ipairs(list) do
        described[k] = describe(value, answer, bases)
    end
    return { list = described }
end

local function changed_bases(bases)
    local changed = {}
    for k, base in ipairs(bases) do
        local now = numbers_of(base.x)
        if now ~= base.sent then
            changed[#changed + 1] = { storage = k, data = now }
        end
    end
    return changed
end

local function run_gradients(plan, results, tensors, answer)
    local inputs = pick(tensors, plan.inputs)
    local first = gradients(pick(results, plan.outputs), inputs, pick(tensors, plan.cotangents), plan.second ~= nil)
    answer.gradients = describe_all(first, answer, {})
    if plan.second then
        answer.stage = "second gradient"
        local second = second_gradients(first, inputs, tensors, plan.second)
        answer.second = describe_all(second, answer, {})
    end
end

local function run(call, plan, answer, bases, tensors)
    local results = flat_results(table.pack(call()))
    answer.results = describe_all(results, answer, bases)
    answer.changed = changed_bases(bases)
    if plan.inputs then
        answer.stage = "gradient"
        run_gradients(plan, results, tensors, answer)
    end
end

-- What a chunk sees besides tide: B reads a storage, V lays a tensor over one.
local function environment(data, bases, tensors)
    local at = 1
    local function B(dtype, n)
        local list, first = nil, at
        list, at = unpack_numbers(data, at, n, dtype)
        local x = tide.tensor(list, { dtype = tide[dtype] })
        bases[#bases + 1] = { x = x, address = x:data_ptr(), bytes = n * x:element_size(), sent = data:sub(first, at - 1) }
    end
    local function V(base, size, stride, offset, grad)
        local x = bases[base].x:as_strided(size, stride, offset):detach()
        tensors[#tensors + 1] = grad and x:requires_grad_(true) or x
    end
    return setmetatable({ a = tensors, B = B, V = V, nan = 0 / 0, inf = math.huge }, { __index = _G })
end

local function serve(code, data)
    local bases, tensors = {}, {}
    local answer = { stage = "translation", data = {} }
    local ok, message = xpcall(function()
        local call, plan = assert(load(code, "=call", "t", environment(data, bases, tensors)))()
        answer.stage = "call"
        run(call, plan, answer, bases, tensors)
    end, function(error_value)
        return tostring(error_value)
    end)
    if not ok then
        answer.error = message
        answer.changed = answer.changed or changed_bases(bases)
    end
    local changed = { list = {} }
    for k, entry in ipairs(answer.changed or {}) do
        changed.list[k] = { storage = entry.storage }
        answer.data[#answer.data + 1] = entry.data
    end
    answer.changed = changed
    return answer
end

-- ---- what there is ----

local function signature(value)
    local doc = tide._doc(value)
    return doc and doc.signature or ""
end

-- Modules have a metatable that refuses other names; classes and objects say what they are.
local function is_module(value)
    local meta = type(value) == "table" and getmetatable(value)
    return type(value) == "table" and (not meta or type(meta) == "table" and rawget(meta, "__name") == nil)
end

local function inventory(into, place, prefix, depth)
    for key, value in pairs(place) do
        if type(key) == "string" and not key:match("^_") then
            if type(value) == "function" then
                into[prefix .. key] = signature(value)
            elseif is_module(value) and depth > 0 then
                inventory(into, value, prefix .. key .. ".", depth - 1)
            elseif not is_module(value) then
                into[prefix .. key] = "value"
            end
        end
    end
end

local function take_inventory()
    local found = {}
    inventory(found, tide, "", 2)
    for _, name in ipairs { "nn", "linalg", "special", "fft" } do -- those that are loaded when they are asked for
        local ok, place = pcall(function() return tide[name] end)
        if ok and type(place) == "table" then
            inventory(found, place, name .. ".", 2)
        end
    end
    for name, value in pairs(tide._methods) do
        found[":" .. name] = type(value) == "function" and signature(value) or "value"
    end
    return { inventory = found, data = {} }
end

-- ---- the loop ----

local function reply(answer)
    local data = table.concat(answer.data)
    answer.data = nil
    local header = to_json(answer)
    io.stdout:write(string.pack("<i8i8", #header, #data), header, data)
    io.stdout:flush()
end

io.stdout:setvbuf("full")
reply(take_inventory())
while true do
    local head = io.stdin:read(16)
    if not head then
        break
    end
    local code_length, data_length = string.unpack("<i8i8", head)
    local code, data = io.stdin:read(code_length), data_length > 0 and io.stdin:read(data_length) or ""
    reply(serve(code, data))
end
