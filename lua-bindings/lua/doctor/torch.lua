-- doctor/torch.lua: what torch.save wrote, for `tide --doctor FILE`, by the descriptions of its pickles (files/pickle.lua):
-- nothing is run.
local tide = ...
local torch = {}

local pickle, files, values = tide._require("files.pickle"), tide._require("files.torch"), tide._require("files.torch_values")
local items = pickle.list_of

local MAX_PICKLE, MAX_DEPTH = 32 << 20, 64

-- ---- what it means ----

-- {dtype, sizes, key, numel, size of an element} of a call that rebuilds a tensor; nil.
local function as_tensor(value, depth)
    local name = type(value) == "table" and value.call
    local args = name and items(value.args)
    if name == "torch._utils._rebuild_parameter" or name == "torch._utils._rebuild_parameter_with_state" then
        return (depth or 0) < 8 and as_tensor(args[1], (depth or 0) + 1) or nil -- hostile ones hold themselves
    elseif name ~= "torch._utils._rebuild_tensor_v2" and name ~= "torch._utils._rebuild_tensor"
        and name ~= "torch._utils._rebuild_tensor_v3" then
        return nil
    end
    local reference = values.reference(args[1]) or { class = "?", key = "?" }
    local own = name == "torch._utils._rebuild_tensor_v3" and type(args[7]) == "table" and string.match(args[7].global or "", "^torch%.(.*)$")
    local stored = values.storage_dtype(reference.class)
    local found = { dtype = own or stored, sizes = {}, key = reference.key, numel = reference.numel, size = values.dtype_bytes(stored) }
    for k, size in ipairs(items(args[3])) do
        found.sizes[k] = math.tointeger(size) or "?"
    end
    return found
end

-- Tensors by name into the list, and other values are counted.
local function gather(value, name, into, depth)
    local found = as_tensor(value)
    if found then
        tide._require("doctor.arrays").add(into.list, name == "" and "tensor" or name, found.dtype, found.sizes)
        into.storages[found.key] = found
        if not values.own_dtype(found.dtype) then
            into.foreign[#into.foreign + 1] = string.format(("'%s' is %s, which Tide has not: in Python, x.to(torch.float32) or another")
                , name == "" and "tensor" or name, found.dtype)
        end
        return
    elseif type(value) ~= "table" or into.seen[value] or depth > MAX_DEPTH then
        into.others = into.others + 1
        return
    end
    into.seen[value] = true
    local front = name == "" and "" or name .. "."
    for k, pair in ipairs(value.pairs or {}) do
        local key = pair[1]
        gather(pair[2], front .. ((type(key) == "string" or type(key) == "number") and string.sub(tostring(key), 1, 200) or k), into, depth + 1)
    end
    for k, item in ipairs(value.list or {}) do
        gather(item, front .. k, into, depth + 1)
    end
    local other = string.match(value.call or "", "^torch%._utils%._rebuild_(%w+)")
    if other and not values.calls[value.call] then -- quantized, nested, of a subclass
        into.foreign[#into.foreign + 1] = string.format(("'%s' is of another kind (%s): in Python, x.to_dense() or x.dequantize()")
            , name == "" and "tensor" or name, other)
    elseif value.call and value.call ~= "collections.OrderedDict" then
        into.objects[value.call] = true
        if type(value.state) == "table" then
            gather(value.state, name, into, depth + 1)
        end
    end
end

local function new_gathering()
    return { list = tide._require("doctor.arrays").new_list(), storages = {}, foreign = {}, others = 0, seen = {}, objects = {} }
end

-- Names that torch's own loader would not call with weights_only.
local function tell_globals(globals, out)
    local names = {}
    for name in pairs(globals) do
        local own = string.find(name, "^torch%._utils%._rebuild") or string.find(name, "^torch%.[%w_.]*Storage$") or string.find(name, "^torch%.[%l%d_]+$")
        if not values.calls[name] and not values.other_kinds[name] and not own then
            names[#names + 1] = name
        end
    end
    table.sort(names)
    for k = 1, math.min(#names, 12) do
        out.problem("code", string.format("unpickling it would call or import %s: it is more than weights", names[k]),
            "load it only where you trust who wrote it; in Python: torch.load(path, weights_only=True) refuses it")
    end
end

local function tell_contents(into, out)
    tide._require("doctor.arrays").tell(into.list, out, "tensors")
    if into.others > 0 then
        out.ok("besides", "%d values that are no tensors", into.others)
    end
    for k = 1, math.min(#into.foreign, 12) do
        out.problem("dtype", into.foreign[k])
    end
end

local function tell_reading(out)
    out.note("reading", "tide.load reads tensors, tables and plain values, and leaves out by name what else there is; nothing is run")
end

local function tell_damage(wrong, out)
    out.problem("pickle", "damaged: " .. wrong, "fetch or write the file again")
end

--- archive(zip, entry, out): the form of today, an archive.
function torch.archive(zip, entry, out)
    out.kind("a file of torch.save (an archive)")
    local front = files.pickle_name(entry.name)
    local by_name, code = {}, false
    for _, each in ipairs(zip.entries) do
        by_name[each.name] = each
        code = code or string.find(each.name, "/code/", 1, true)
    end
    if code then
        out.note("kind", "TorchScript: it holds a program besides weights")
    end
    local into = new_gathering()
    local bytes, why = zip.first_bytes(entry, math.min(entry.size, MAX_PICKLE))
    if not bytes or #bytes < entry.size then
        return out.problem("pickle", why or entry.size > MAX_PICKLE and "too long to be looked at" or "cut off", "fetch or write the file again")
    end
    local found, wrong = pickle.describe(function(at, n) return string.sub(bytes, at + 1, at + n) end, 0)
    if not found then
        return tell_damage(wrong, out)
    end
    tell_globals(found.globals, out)
    gather(found.value, "", into, 0)
    tell_contents(into, out)
    for key, tensor in pairs(into.storages) do
        local storage = by_name[front .. "data/" .. key]
        local wanted = tensor.size and math.type(tensor.numel) == "integer" and tensor.size * tensor.numel
        if not storage then
            out.problem("elements", string.format("those of storage '%s' are missing: no entry '%sdata/%s'", key, front, key))
        elseif wanted and storage.size < wanted then
            out.problem("elements", string.format("storage '%s' takes %d bytes, its entry has %d", key, wanted, storage.size))
        end
    end
    tell_reading(out)
end

-- Behind the pickles each storage stands with its number of elements before it.
local function check_storages(file, at, keys, into, out)
    for _, key in ipairs(items(keys)) do
        local found = into.storages[tostring(key)]
        local size = found and found.size
        if not size then
            return
        end
        local head = at + 8 <= file.size and file.read(at, 8)
        local n = head and string.unpack("<i8", head)
        if not n or n < 0 or n > (file.size - at - 8) // size then
            return out.problem("length", "cut off: the elements end beyond the file", "fetch or write the file again")
        end
        at = at + 8 + n * size
    end
end

--- legacy(file, out): five pickles, and the elements.
function torch.legacy(file, out)
    out.kind("a file of torch.save (the form before archives)")
    local at, into, all, globals, wrong = 0, new_gathering(), {}, {}, nil
    for k = 1, 5 do
        all[k], wrong = pickle.describe(file.read, at)
        if wrong then
            break
        end
        at = all[k].stop
        for name in pairs(all[k].globals) do
            globals[name] = true
        end
    end
    tell_globals(globals, out)
    gather(all[4] and all[4].value, "", into, 0)
    tell_contents(into, out)
    if wrong then
        tell_damage(wrong, out)
    else
        check_storages(file, at, all[5].value, into, out)
    end
    tell_reading(out)
end

--- pickle(file, out): a pickle that is none of torch.save's.
function torch.pickle(file, out)
    out.kind("a pickle of Python")
    local found, wrong = pickle.describe(file.read, 0)
    tell_globals(found and found.globals or {}, out)
    if wrong then
        tell_damage(wrong, out)
    end
    out.note("reading", "Tide reads pickles of torch.save alone: in Python, torch.save(object, 'weights.pt')")
end

return torch
