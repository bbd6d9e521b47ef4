-- golden.lua: reads the golden values (tests/golden, written by its generate.py from PyTorch) and makes
-- calls of them. Knows how a tensor stands in the data; what is to be equal the tests decide.
local json = require "json"

local golden = {}

local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local FAMILIES = { "pointwise", "reduce", "products", "losses", "shapes", "indices", "alias", "spatial",
    "sorting", "margins", "neural", "special", "activation", "shaping", "placing", "algebra", "linalg", "forms", "sparse" }
local PERIOD = 97
-- Where the tensors of the data are put: nil, or another device whose operators shall give the same.
local DEVICE = os.getenv "TIDE_GOLDEN_DEVICE"
golden.on_device = DEVICE ~= nil
tide.backends.cudnn.allow_tf32 = false -- true at the start: ten bits of mantissa are too few to compare
-- The same values where work is cut in parts by the shapes alone.
tide.use_deterministic_algorithms(os.getenv "TIDE_GOLDEN_DETERMINISTIC" ~= nil)
local words = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

-- ---- numbers and tensors ----

local function numel(sizes)
    local n = 1
    for _, size in ipairs(sizes) do
        n = n * size
    end
    return n
end

--- fill(values, n): n numbers of a list that repeats; true and false as they are.
local function fill(values, n)
    local list, m = {}, #values
    for k = 1, n do
        local v = values[(k - 1) % m + 1]
        list[k] = words[v] or v
    end
    return list
end

--- tensor(entry, requires_grad): the tensor that an entry of the data describes.
function golden.tensor(entry, requires_grad)
    local n, dtype = numel(entry.s), tide[entry.t]
    if n == 0 then
        return tide.zeros(entry.s, { dtype = dtype, requires_grad = requires_grad, device = DEVICE })
    end
    local x = tide.tensor(fill(entry.v, n), { dtype = dtype, device = DEVICE }):reshape(entry.s)
    return requires_grad and x:clone():requires_grad_(true) or x -- a leaf, no view
end

-- ---- arguments ----

local argument
function argument(entry, inputs)
    if entry == json.null then
        return nil
    elseif type(entry) ~= "table" then
        return entry
    elseif entry.t then
        local x = golden.tensor(entry, entry.g and inputs ~= nil or false)
        if entry.g and inputs then
            inputs[#inputs + 1] = x
        end
        return x
    elseif entry.sparse then
        local s = entry.sparse
        return tide.sparse_coo_tensor(golden.tensor(s.i), argument(s.v, inputs), s.s, { is_coalesced = s.c })
    elseif entry.dtype then
        return tide[entry.dtype]
    elseif entry.n then
        return words[entry.n]
    end
    local list = {}
    for k, v in ipairs(entry) do
        list[k] = argument(v, inputs)
    end
    return list
end

--- arguments(case [, inputs]): the call's arguments with n, the options last; differentiated operands are
-- appended to `inputs`, without it nothing requires grad.
function golden.arguments(case, inputs)
    local args = { n = #case.a }
    for k, entry in ipairs(case.a) do
        args[k] = argument(entry, inputs)
    end
    if case.o then
        local options = {}
        for _, key in ipairs(golden.sorted_keys(case.o)) do
            options[key] = argument(case.o[key], inputs)
        end
        args.n = args.n + 1
        args[args.n] = options
    end
    return args
end

function golden.sorted_keys(t)
    local keys = {}
    for key in pairs(t) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    return keys
end

-- Forms of Lua that are no operator's call, by the names that they bear in the data.
local forms = {
    getitem = function(x, key) return x[key] end,
    setitem = function(x, key, value)
        local y = x:clone()
        y[key] = value
        return y
    end,
}

--- operators(): tide._ops(), their other names, and x[key], x[key] = value.
function golden.operators()
    local list, aliases = tide._ops(), tide._aliases()
    for _, name in ipairs(golden.sorted_keys(aliases)) do
        list[#list + 1] = { name = name, alias = aliases[name] }
    end
    for _, name in ipairs(golden.sorted_keys(forms)) do
        list[#list + 1] = { name = name, form = forms[name] }
    end
    return list
end

--- call(op, args): the results in one list, lists of tensors laid flat.
function golden.call(op, args)
    local n, results = args.n, nil
    if op.form then
        results = table.pack(op.form(table.unpack(args, 1, n)))
    elseif op.method_only or op.inplace_only then
        results = table.pack(args[1][op.name](table.unpack(args, 1, n)))
    else
        results = table.pack(tide[op.name](table.unpack(args, 1, n)))
    end
    local list = {}
    for k = 1, results.n do
        local r = results[k]
        if type(r) == "table" then
            table.move(r, 1, #r, #list + 1, list)
        else
            list[#list + 1] = r
        end
    end
    return list
end

-- ---- comparing ----

local function close(a, b, tolerance)
    if a == b then
        return a ~= 0 or not tolerance.zeros or 1 / a == 1 / b or math.type(a) == "integer"
    elseif type(a) ~= "number" or type(b) ~= "number" then
        return false
    end
    if tolerance.signless then
        a, b = math.abs(a), math.abs(b)
    end
    return a ~= a and b ~= b or math.abs(a - b) <= tolerance.relative * math.abs(b) + tolerance.absolute
end

-- How values that were shortened continue: the number at a place, and the places that are given.
local function expected(v, n)
    if v.every then
        return v.v, v.every
    end
    return fill(v, n), 1
end

-- Operators at whose ends PyTorch's gradient is NaN or infinite for no reason: test_gradient_ends.lua says what it is.
local ends = {
    elu = "NaN in loops by vectors, what comes in for NaN element by element, as here",
    gelu = "0 times infinity",
    silu = "0 times infinity",
    xlogy = "0 / 0 where the first operand is 0",
    acosh = "infinite at -1, where there is no result",
}
-- Those whose gradients it loses to rounding near a point.
local rounded = { sinc = 1e-8 }

--- The tolerance for gradients of an operator: `default`, but for what is known of it.
function golden.gradient_tolerance(op, default)
    if not ends[op.name] and not rounded[op.name] then
        return default
    end
    return { relative = default.relative, absolute = rounded[op.name] or default.absolute, zeros = default.zeros,
        finite = ends[op.name] ~= nil }
end

--- compare(got, v, tolerance): nil where a tensor's elements, row by row, are the values of the data;
-- otherwise the first that isn't. tolerance: {relative, absolute, zeros = whether 0 and -0 differ, finite = only
-- numbers are compared, signless = without their signs}.
function golden.compare(got, v, tolerance)
    local n = got:numel()
    if n == 0 then
        return nil
    end
    local have = got:detach():to_dense():to("cpu"):contiguous():reshape(n):tolist()
    local want, step = expected(v, n)
    for k, b in ipairs(want) do
        local a = have[(k - 1) * step + 1]
        b = words[b] or b
        local compared = not tolerance.finite or b - b == 0
        if compared and not close(a, b, tolerance) then
            return ("element %d: got %s, expected %s"):format((k - 1) * step + 1,
                type(a) == "number" and ("%.17g"):format(a) or tostring(a),
                type(b) == "number" and ("%.17g"):format(b) or tostring(b))
        end
    end
    return nil
end

--- weights_like(result, number): the fixed weights of generate.py for the number-th result (from 0).
function golden.weights_like(result, number)
    local list = {}
    for k = 0, PERIOD - 1 do
        list[k + 1] = (((k * 7 + 3 + 2 * number) % 11) - 5.5) / 8
    end
    local n = result:numel()
    if n == 0 then
        return tide.zeros(result.shape, { dtype = result.dtype, device = result.device })
    end
    return tide.tensor(fill(list, n), { dtype = result.dtype, device = result.device }):reshape(result.shape)
end

--- shape_text(x): "(2, 3)".
function golden.shape_text(sizes)
    return "(" .. table.concat({ table.unpack(sizes) }, ", ") .. ")"
end

-- ---- files ----

local function read(name, each)
    local path = here .. "/../golden/data/" .. name .. ".jsonl"
    local file = assert(io.open(path))
    file:read("l") -- the versions
    for line in file:lines() do
        each(json.read(line))
    end
    file:close()
end

--- cases([suffix]): every case of every family, by operator: {name = {case, ...}}.
function golden.cases(suffix)
    local found = {}
    for _, family in ipairs(FAMILIES) do
        read(family .. (suffix or ""), function(case)
            found[case.op] = found[case.op] or {}
            table.insert(found[case.op], case)
        end)
    end
    return found
end

--- lines(name): the entries of one file.
function golden.lines(name)
    local list = {}
    read(name, function(entry) list[#list + 1] = entry end)
    return list
end

return golden
