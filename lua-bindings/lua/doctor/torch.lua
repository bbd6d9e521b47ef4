-- doctor/torch.lua: what torch.save wrote, for `tide --doctor FILE`. Pickles are programs; here each instruction builds
-- a description and none calls anything: a global is its name, a call a table of what would be called with what.
local tide = ...
local torch = {}

local MAX_PICKLE, MAX_STEPS, MAX_DEPTH = 32 << 20, 1000000, 64
local Mark, None = {}, {}

-- ---- the instructions ----

-- Where a pickle is broken is raised as a table, so that faults of ours stay errors.
local function broken(what) error({ pickle = what }, 0) end

local function take(vm, n)
    if n < 0 or vm.at + n - 1 > #vm.bytes then
        broken("cut off")
    end
    vm.at = vm.at + n
    return string.sub(vm.bytes, vm.at - n, vm.at - 1)
end

local function number(vm, format) return (string.unpack(format, take(vm, string.packsize(format)))) end

local function line(vm)
    local stop = string.find(vm.bytes, "\n", vm.at, true) or broken("cut off")
    local text = string.sub(vm.bytes, vm.at, stop - 1)
    vm.at = stop + 1
    return text
end

local function push(vm, value)
    vm.n = vm.n + 1
    vm.stack[vm.n] = value
end

local function pop(vm)
    if vm.n == 0 or vm.stack[vm.n] == Mark then
        broken("takes from an empty stack")
    end
    local value = vm.stack[vm.n]
    vm.stack[vm.n], vm.n = nil, vm.n - 1
    return value
end

-- What lies above the last mark, which goes too.
local function pop_marked(vm)
    local first = vm.n
    while first > 0 and vm.stack[first] ~= Mark do
        first = first - 1
    end
    if first == 0 then
        broken("a mark is missing")
    end
    local items = table.move(vm.stack, first + 1, vm.n, 1, {})
    for k = first, vm.n do
        vm.stack[k] = nil
    end
    vm.n = first - 1
    return items
end

local function top(vm)
    if vm.n == 0 then
        broken("takes from an empty stack")
    end
    return vm.stack[vm.n]
end

local function name_global(vm, module, name)
    local text = tostring(module) .. "." .. tostring(name)
    vm.globals[text] = true
    push(vm, { global = text })
end

local function call(vm)
    local args, fn = pop(vm), pop(vm)
    push(vm, { call = type(fn) == "table" and fn.global or "?", args = type(args) == "table" and args or {} })
end

local function add_items(vm, target, items)
    if type(target) == "table" and target.pairs == nil and target.call then
        target.pairs = {}
    end
    local into = type(target) == "table" and target.pairs
    for k = 1, into and #items - 1 or 0, 2 do
        into[#into + 1] = { items[k], items[k + 1] }
    end
end

local function append(target, items)
    for _, item in ipairs(type(target) == "table" and target.list and items or {}) do
        target.list[#target.list + 1] = item
    end
end

local function tuple(n)
    return function(vm)
        local items = {}
        for k = n, 1, -1 do
            items[k] = pop(vm)
        end
        push(vm, { list = items })
    end
end

local function get(vm, key)
    local value = vm.memo[key]
    push(vm, value == nil and broken("reads what it never kept") or value)
end

local function constant(value) return function(vm) push(vm, value) end end
local function read_number(format) return function(vm) push(vm, number(vm, format)) end end
local function read_text(format) return function(vm) push(vm, take(vm, number(vm, format))) end end
local function nothing() end

local function long(vm, n)
    local bytes = take(vm, n)
    push(vm, n == 0 and 0 or n <= 8 and string.unpack("<i" .. n, bytes) or { long = bytes })
end

local steps = {
    ["("] = function(vm) push(vm, Mark) end,
    ["0"] = function(vm) pop(vm) end,
    ["1"] = function(vm) pop_marked(vm) end,
    ["2"] = function(vm) push(vm, top(vm)) end,
    ["N"] = constant(None), ["\x88"] = constant(true), ["\x89"] = constant(false),
    ["K"] = read_number("<I1"), ["M"] = read_number("<I2"), ["J"] = read_number("<i4"), ["G"] = read_number(">d"),
    ["I"] = function(vm) push(vm, tonumber(line(vm)) or 0) end,
    ["L"] = function(vm) push(vm, tonumber((string.gsub(line(vm), "L$", ""))) or 0) end,
    ["F"] = function(vm) push(vm, tonumber(line(vm)) or 0) end,
    ["\x8a"] = function(vm) long(vm, number(vm, "<I1")) end,
    ["\x8b"] = function(vm) long(vm, number(vm, "<i4")) end,
    ["U"] = read_text("<I1"), ["T"] = read_text("<i4"), ["X"] = read_text("<I4"), ["\x8c"] = read_text("<I1"),
    ["\x8d"] = read_text("<i8"), ["B"] = read_text("<I4"), ["C"] = read_text("<I1"), ["\x8e"] = read_text("<i8"),
    ["\x96"] = read_text("<i8"),
    ["S"] = function(vm) push(vm, line(vm)) end, ["V"] = function(vm) push(vm, line(vm)) end,
    ["}"] = function(vm) push(vm, { pairs = {} }) end, ["]"] = function(vm) push(vm, { list = {} }) end,
    [")"] = function(vm) push(vm, { list = {} }) end, ["\x8f"] = function(vm) push(vm, { list = {} }) end,
    ["t"] = function(vm) push(vm, { list = pop_marked(vm) }) end, ["l"] = function(vm) push(vm, { list = pop_marked(vm) }) end,
    ["\x91"] = function(vm) push(vm, { list = pop_marked(vm) }) end,
    ["d"] = function(vm)
        local made = { pairs = {} }
        add_items(vm, made, pop_marked(vm))
        push(vm, made)
    end,
    ["\x85"] = tuple(1), ["\x86"] = tuple(2), ["\x87"] = tuple(3),
    ["a"] = function(vm)
        local item = pop(vm)
        append(top(vm), { item })
    end,
    ["e"] = function(vm)
        local items = pop_marked(vm)
        append(top(vm), items)
    end,
    ["\x90"] = function(vm)
        local items = pop_marked(vm)
        append(top(vm), items)
    end,
    ["s"] = function(vm)
        local value, key = pop(vm), pop(vm)
        add_items(vm, top(vm), { key, value })
    end,
    ["u"] = function(vm)
        local items = pop_marked(vm)
        add_items(vm, top(vm), items)
    end,
    ["c"] = function(vm)
        local module = line(vm)
        name_global(vm, module, line(vm))
    end,
    ["\x93"] = function(vm)
        local name, module = pop(vm), pop(vm)
        name_global(vm, module, name)
    end,
    ["R"] = call, ["\x81"] = call,
    ["\x92"] = function(vm)
        pop(vm)
        call(vm)
    end,
    ["i"] = function(vm)
        local module = line(vm)
        name_global(vm, module, line(vm))
        local fn, items = pop(vm), pop_marked(vm)
        push(vm, { call = fn.global, args = { list = items } })
    end,
    ["o"] = function(vm)
        local items = pop_marked(vm)
        local fn = table.remove(items, 1)
        push(vm, { call = type(fn) == "table" and fn.global or "?", args = { list = items } })
    end,
    ["b"] = function(vm)
        local state, target = pop(vm), top(vm)
        if type(target) == "table" and target.call then
            target.state = state
        end
    end,
    ["Q"] = function(vm) push(vm, { stored = pop(vm) }) end,
    ["P"] = function(vm) push(vm, { stored = line(vm) }) end,
    ["q"] = function(vm) vm.memo[number(vm, "<I1")] = top(vm) end,
    ["r"] = function(vm) vm.memo[number(vm, "<I4")] = top(vm) end,
    ["p"] = function(vm) vm.memo[tonumber(line(vm)) or -1] = top(vm) end,
    ["\x94"] = function(vm)
        vm.memo[vm.kept] = top(vm)
        vm.kept = vm.kept + 1
    end,
    ["h"] = function(vm) get(vm, number(vm, "<I1")) end, ["j"] = function(vm) get(vm, number(vm, "<I4")) end,
    ["g"] = function(vm) get(vm, tonumber(line(vm)) or -1) end,
    ["\x80"] = function(vm) take(vm, 1) end, ["\x95"] = function(vm) take(vm, 8) end,
    ["\x97"] = nothing, ["\x98"] = nothing,
}

-- The description that a pickle makes, and where it ends; globals' names gather in `globals`. Raises what is wrong.
local function describe(bytes, at, globals)
    local vm = { bytes = bytes, at = at, stack = {}, n = 0, memo = {}, kept = 0, globals = globals }
    for _ = 1, MAX_STEPS do
        local code = take(vm, 1)
        if code == "." then
            return pop(vm), vm.at
        end
        local step = steps[code] or broken(string.format("an instruction that pickle has not (byte %d)", string.byte(code)))
        step(vm)
    end
    broken(string.format("longer than %d instructions", MAX_STEPS))
end

-- The description, where it ends; or nil, nil and what is wrong.
local function try_describe(bytes, at, globals)
    local ok, value, stop = pcall(describe, bytes, at, globals)
    if ok then
        return value, stop
    elseif type(value) == "table" and value.pickle then
        return nil, nil, value.pickle
    end
    error(value, 0)
end

-- ---- what it means ----

local storages = { Float = "float32", Double = "float64", Half = "float16", BFloat16 = "bfloat16", Long = "int64", Int = "int32",
    Short = "int16", Char = "int8", Byte = "uint8", Bool = "bool" }
local has = { float32 = 4, float64 = 8, float16 = 2, bfloat16 = 2, int64 = 8, int32 = 4, int16 = 2, int8 = 1, uint8 = 1, bool = 1 }

local function items(value) return type(value) == "table" and value.list or {} end

-- {dtype, sizes, key} of a call that rebuilds a tensor; nil.
local function as_tensor(value, depth)
    local name = type(value) == "table" and value.call
    local args = name and items(value.args)
    if name == "torch._utils._rebuild_parameter" or name == "torch._utils._rebuild_parameter_with_state" then
        return (depth or 0) < 8 and as_tensor(args[1], (depth or 0) + 1) or nil -- hostile ones hold themselves
    elseif name ~= "torch._utils._rebuild_tensor_v2" and name ~= "torch._utils._rebuild_tensor"
        and name ~= "torch._utils._rebuild_tensor_v3" then
        return nil
    end
    local stored = items(type(args[1]) == "table" and args[1].stored)
    local class = type(stored[2]) == "table" and stored[2].global or ""
    local kind = string.match(class, "^torch%.(%w+)Storage$") or string.match(class, "^torch%.storage%.(%w+)Storage$") or class
    local dtype = storages[kind] or type(args[7]) == "table" and string.match(args[7].global or "", "^torch%.(.*)$") or kind
    local found = { dtype = dtype, sizes = {}, key = tostring(stored[3]), numel = stored[5] }
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
        if not has[found.dtype] then
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
    if other then -- quantized, sparse, nested, of a subclass
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

local harmless = { ["collections.OrderedDict"] = true, ["_codecs.encode"] = true, ["builtins.set"] = true,
    ["__builtin__.set"] = true, ["builtins.bytearray"] = true, ["torch.device"] = true, ["torch.Size"] = true,
    ["torch.serialization._get_layout"] = true }

-- Names that torch's own loader would not call with weights_only.
local function tell_globals(globals, out)
    local names = {}
    for name in pairs(globals) do
        local own = string.find(name, "^torch%._utils%._rebuild") or string.find(name, "^torch%.[%w_.]*Storage$") or string.find(name, "^torch%.[%l%d_]+$")
        if not harmless[name] and not own then
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
    out.note("reading", "Tide reads no pickles: in Python, safetensors.torch.save_file(torch.load(path, weights_only=True), 'weights.safetensors')")
end

--- archive(zip, pickle, out): the form of today, an archive.
function torch.archive(zip, pickle, out)
    out.kind("a file of torch.save (an archive)")
    local front = string.match(pickle.name, "^(.*/)data%.pkl$")
    local by_name, code = {}, false
    for _, entry in ipairs(zip.entries) do
        by_name[entry.name] = entry
        code = code or string.find(entry.name, "/code/", 1, true)
    end
    if code then
        out.note("kind", "TorchScript: it holds a program besides weights")
    end
    local globals, into = {}, new_gathering()
    local bytes, why = zip.first_bytes(pickle, math.min(pickle.size, MAX_PICKLE))
    if not bytes or #bytes < pickle.size then
        return out.problem("pickle", why or pickle.size > MAX_PICKLE and "too long to be looked at" or "cut off", "fetch or write the file again")
    end
    local value, _, wrong = try_describe(bytes, 1, globals)
    tell_globals(globals, out)
    if wrong then
        return out.problem("pickle", "damaged: " .. wrong, "fetch or write the file again")
    end
    gather(value, "", into, 0)
    tell_contents(into, out)
    for key, found in pairs(into.storages) do
        local entry, size = by_name[front .. "data/" .. key], has[found.dtype]
        local wanted = size and math.type(found.numel) == "integer" and size * found.numel
        if not entry then
            out.problem("elements", string.format("those of storage '%s' are missing: no entry '%sdata/%s'", key, front, key))
        elseif wanted and entry.size < wanted then
            out.problem("elements", string.format("storage '%s' takes %d bytes, its entry has %d", key, wanted, entry.size))
        end
    end
    tell_reading(out)
end

local LEGACY = "\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." -- the number that files of torch.save before 1.6 begin with

--- is_legacy(head): do these first bytes begin the form before archives?
function torch.is_legacy(head) return string.sub(head, 3, 2 + #LEGACY) == LEGACY end

-- Behind the pickles each storage stands with its number of elements before it.
local function check_storages(file, at, keys, into, out)
    for _, key in ipairs(items(keys)) do
        local found = into.storages[tostring(key)]
        local size = found and has[found.dtype]
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
    local bytes, at, wrong = file.read(0, MAX_PICKLE), 1, nil
    local values, globals, into = {}, {}, new_gathering()
    for k = 1, 5 do
        values[k], at, wrong = try_describe(bytes, at, globals)
        if wrong then
            break
        end
    end
    tell_globals(globals, out)
    gather(values[4], "", into, 0)
    tell_contents(into, out)
    if wrong then
        out.problem("pickle", "damaged: " .. wrong, "fetch or write the file again")
    else
        check_storages(file, at - 1, values[5], into, out)
    end
    tell_reading(out)
end

--- pickle(file, out): a pickle that is none of torch.save's.
function torch.pickle(file, out)
    out.kind("a pickle of Python")
    local globals = {}
    local _, _, wrong = try_describe(file.read(0, MAX_PICKLE), 1, globals)
    tell_globals(globals, out)
    if wrong then
        out.problem("pickle", "damaged: " .. wrong, "fetch or write the file again")
    end
    tell_reading(out)
end

return torch
