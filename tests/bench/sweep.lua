-- sweep.lua: every operator of the table over sizes, dtypes and layouts: a line of JSON for each case,
-- {"case", "min_s", "bytes", "kinds"}: the least time of a call, the bytes of its operands and results (0 where it makes
-- nothing or is no matter of memory), dtypes and shapes of results. `tests/bench/compare sweep` runs it beside PyTorch and judges.
--
--     tide tests/bench/sweep.lua [--quick] [--gradients] [--tiny] [--list] [OPERATOR or CASE...]
--
-- 1e7 elements are called in float32 and bfloat16 alone, which take the time of all the rest as it is. The layouts
-- short_rows, rows_of_3 (of bfloat16 too) and rows_of_37 are of matrices with 6, 3 and 37 columns, which lie one row
-- behind the other.
-- --gradients: a call and the gradients of all its float operands, float32 at 1e3 and 1e5 in every layout.
-- --quick: float32 at 1e3 and 1e5 alone. --tiny: little of everything. --list: the calls as JSON instead, for
-- sweep.py. A case is OPERATOR[:NUMBER OF ITS CALL]/SIZE/DTYPE/LAYOUT; what refuses a call says
-- {"refused": CASE, "why": TEXT}. TIDE_BENCH_THREADS in the environment: threads, otherwise one.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"

local flags, wanted, wanted_cases = {}, {}, {}
for _, word in ipairs(arg) do
    if word:find "^%-%-" then
        flags[word] = true
    elseif word:find "/" then
        local operator = word:match "^[^:/]*"
        wanted[operator], wanted[1] = true, operator
        wanted_cases[operator] = wanted_cases[operator] or {}
        wanted_cases[operator][word] = true
    else
        wanted[word], wanted[1] = true, word
    end
end
for flag in pairs(flags) do
    if not ({ ["--quick"] = true, ["--gradients"] = true, ["--tiny"] = true, ["--list"] = true })[flag] then
        io.stderr:write("sweep.lua: unknown option '", flag, "'\n")
        os.exit(1)
    end
end

local bench = dofile(here .. "bench.lua")
local table_of = dofile(here .. "sweep_calls.lua")
local TINY, QUICK, GRADIENTS = flags["--tiny"] or bench.tiny, flags["--quick"], flags["--gradients"]
local BATCH, BATCHES, LONG, VERY_LONG = TINY and 0 or 1e-3, TINY and 1 or 3, 0.02, 0.3
tide.set_num_threads(tonumber(os.getenv("TIDE_BENCH_THREADS")) or 1)

-- ---- which cases ----

local LARGE = 10000000
local SIZES = TINY and { 1, 24 } or (QUICK or GRADIENTS) and { 1000, 100000 } or { 1, 1000, 100000, LARGE }
local DTYPES = (QUICK or GRADIENTS) and { "float32" } or { "float32", "float64", "bfloat16", "int64" }
local LAYOUTS = QUICK and { "contiguous" } or { "contiguous", "transposed", "channels_last", "short_rows", "rows_of_3", "rows_of_37" }
-- Families whose operators should take as long as their bytes take to be moved.
local MOVING = {}
for family in ([[pointwise activation reduce copy create make_like cat_split index scatter_write norm loss margin pad diagonal repeat_split statistics
    resample max_pool shape embedding gather]]):gmatch "%S+" do
    MOVING[family] = true
end

-- ---- operands, as descriptions ----

local IMAGES = { [1] = { 1, 1, 1, 1 }, [24] = { 1, 4, 4, 4 }, [1000] = { 1, 8, 12, 10 }, [100000] = { 8, 8, 40, 40 },
    [10000000] = { 32, 32, 100, 100 } }
local VOLUMES = { [1] = { 1, 1, 1, 1, 1 }, [24] = { 1, 2, 4, 4, 4 }, [1000] = { 1, 4, 4, 8, 8 }, [100000] = { 2, 8, 10, 25, 25 },
    [10000000] = { 8, 16, 20, 62, 62 } }
local COLUMNS = { [1] = 1, [24] = 6, [1000] = 100, [100000] = 1000, [10000000] = 1000 }
local SHORT_ROWS = { short_rows = 6, rows_of_3 = 3, rows_of_37 = 37 } -- columns by layout
local FIXED = { mask = "bool", index = "int64" } -- dtypes that fillings have whatever the case's is

local Operands = {}
Operands.__index = Operands

local function operands(n, dtype, layout)
    local columns = math.min(SHORT_ROWS[layout] or COLUMNS[n], n)
    return setmetatable({ n = n, dtype = dtype, layout = layout, c = columns, r = n // columns, channels = IMAGES[n][2], slots = 0,
        laid = layout == "contiguous" }, Operands)
end

-- Is there a way for a tensor of so many dims to lie so?
local function lies(layout, ndim)
    return layout == "transposed" and ndim >= 2 or layout == "channels_last" and ndim == 4
end

function Operands:of(shape, fill, high)
    self.slots = self.slots + 1
    local laid = lies(self.layout, #shape)
    self.laid = self.laid or laid
    local dtype = FIXED[fill] or self.dtype
    return { kind = "tensor", shape = shape, fill = fill or "even", dtype = dtype, layout = laid and self.layout or "contiguous",
        slot = self.slots, high = high or 0 }
end
function Operands:m(fill)
    self.laid = self.laid or SHORT_ROWS[self.layout] ~= nil
    return self:of({ self.r, self.c }, fill)
end
function Operands:vector(fill) return self:of({ self.n }, fill) end
function Operands:image(fill) return self:of(IMAGES[self.n], fill) end
function Operands:volume() return self:of(VOLUMES[self.n]) end
function Operands:signal()
    local image = IMAGES[self.n]
    return self:of { image[1], image[2], image[3] * image[4] }
end
function Operands:x(fill)
    if self.layout == "transposed" then
        return self:m(fill)
    elseif self.layout == "channels_last" and self.n < LARGE then -- elements lie dense there: one size shows it
        return self:image(fill)
    end
    return self:vector(fill)
end
for _, fill in ipairs { "pos", "unit", "mask", "whole", "over" } do
    Operands[fill] = function(self) return self:x(fill) end
end
function Operands:side(most) return math.max(math.min(math.floor(self.n ^ 0.5), most or 1000), 1) end
function Operands:square(most) return self:of { self:side(most), self:side(most) } end
function Operands:batch() return self:of { 10, self:side(300), self:side(300) } end
function Operands:definite()
    local side = math.max(math.min(math.floor(self.n ^ (1 / 3)), 100), 1)
    return self:of({ side, side }, "definite")
end
function Operands:index(high, shape) return self:of(shape, "index", high) end

-- ---- operands, made ----

local SAME = 200000 -- elements

-- Integers from low to below high: the same as sweep.py's, since results' shapes come of some, but of a large one, where
-- that would take longer than the calls.
local function ints(shape, low, high)
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    return n > SAME and tide.randint(low, high, shape) or bench.ints(shape, low, high)
end

local fillings = {
    even = function(shape) return tide.rand(shape) * 2 - 1 end,
    pos = function(shape) return tide.rand(shape) * 1.9 + 0.1 end,
    unit = function(shape) return tide.rand(shape) * 0.98 + 0.01 end,
    over = function(shape) return tide.rand(shape) + 1.5 end,
    mask = function(shape) return ints(shape, 0, 2):eq(1) end,
    whole = function(shape) return ints(shape, 1, 10) end,
    signs = function(shape) return tide.rand(shape):gt(0.5) * 2 - 1 end,
    index = function(shape, high) return ints(shape, 1, high + 1) end,
    ordered = function(shape) return tide.linspace(-1, 1, shape[1]) end,
    definite = function(shape)
        local x = tide.rand(shape) * 0.1
        return x + x:t() + tide.eye(shape[1]) * shape[1]
    end,
}
fillings.scratch = fillings.even

local made, made_bytes, MOST_BYTES = {}, 0, 2 << 30

local function make(d)
    local key = table.concat({ d.fill, d.dtype, d.layout, d.slot, d.high, table.unpack(d.shape) }, " ")
    if made[key] then
        return made[key]
    end
    bench.seed(d.slot)
    local whole = d.dtype == "int64" and (d.fill == "even" or d.fill == "pos")
    local x = fillings[whole and "whole" or d.fill](d.shape, d.high):to(tide[d.dtype])
    if d.layout == "transposed" then
        x = x:transpose(-1, -2):contiguous():transpose(-1, -2)
    elseif d.layout == "channels_last" then
        x = x:contiguous { memory_format = tide.channels_last }
    end
    if made_bytes > MOST_BYTES then
        made, made_bytes = {}, 0
    end
    made[key], made_bytes = x, made_bytes + x:numel() * x:element_size()
    return x
end

local function value(d)
    if type(d) ~= "table" then
        return d
    elseif d.kind == "tensor" then
        return make(d)
    elseif d.kind == "dtype" then
        return tide[d.name]
    elseif d.kind == "at" then
        return d.value
    elseif d.kind == "nil" then
        return nil
    end
    local result = {}
    for key, item in pairs(d.items or d.names) do
        result[key] = value(item)
    end
    return result
end

-- ---- calls ----

local function default_call(op)
    local required, rest = op.signature:match("%b()"):sub(2, -2):match "^([^={]*)(.*)$"
    if rest:find "^=" then -- the last one named has a default
        required = required:gsub("[^,]*$", "")
    end
    local count = 0
    for parameter in required:gmatch "[^,]+" do
        if parameter:find "%S" then
            if not parameter:find "^%s*Tensor[%s|]" then
                return nil
            end
            count = count + 1
        end
    end
    return count > 0 and function(o)
        local args = {}
        for k = 1, count do
            args[k] = o:x(table_of.fills[op.name])
        end
        return args
    end or nil
end

local function calls_of(op)
    local call = default_call(op)
    return table_of.calls[op.name] or { call }
end

local function size_name(n)
    local zeros = math.tointeger(math.log(n, 10) // 1)
    return n == 10 ^ zeros and zeros > 1 and "1e" .. zeros or tostring(n)
end

-- All cases of an operator: {name, op, args (descriptions), family}.
local function cases_of(op)
    local cases = {}
    local calls = calls_of(op)
    local dtypes = table_of.fills[op.name] == "whole" and { "int64" } or DTYPES
    for number, call in ipairs(calls) do
        for _, dtype in ipairs(dtypes) do
            local layouts = dtype == dtypes[1] and LAYOUTS or dtype == "bfloat16" and { "contiguous", "rows_of_3" } or { "contiguous" }
            for _, layout in ipairs(layouts) do
                for _, n in ipairs(SIZES) do
                    local o = operands(n, dtype, layout)
                    local args = call(o)
                    local asked = n < LARGE or not SHORT_ROWS[layout] and (dtype == dtypes[1] or dtype == "bfloat16")
                    if o.laid and asked and (layout == "contiguous" or n > 1) then
                        local name = ("%s%s/%s/%s/%s"):format(op.name, #calls > 1 and ":" .. number or "", size_name(n), dtype, layout)
                        if not wanted_cases[op.name] or wanted_cases[op.name][name] then
                            cases[#cases + 1] = { name = name, op = op, args = args }
                        end
                    end
                end
            end
        end
    end
    return cases
end

local function is_called(op)
    return not op.internal and not table_of.left[op.name] and #calls_of(op) > 0 and (not wanted[1] or wanted[op.name])
end

-- ---- as JSON ----

local json
local function json_list(items)
    local texts = {}
    for k, item in ipairs(items) do
        texts[k] = json(item)
    end
    return "[" .. table.concat(texts, ", ") .. "]"
end
function json(d)
    if math.type(d) == "integer" or type(d) == "boolean" then
        return tostring(d)
    elseif type(d) == "number" then
        return ("%.17g"):format(d)
    elseif type(d) == "string" then
        return '"' .. d:gsub('[\\"]', "\\%0"):gsub("%c", " ") .. '"'
    elseif #d > 0 then
        return json_list(d)
    end
    local texts = {}
    for key, item in pairs(d) do
        texts[#texts + 1] = json(key) .. ": " .. json(item)
    end
    table.sort(texts)
    return "{" .. table.concat(texts, ", ") .. "}"
end

local function list_call(case)
    print(json { case = case.name, op = case.op.name, args = #case.args > 0 and case.args or nil })
end

-- ---- measuring ----

-- Float tensors among arguments, and in lists of them, become leaves, which are put into `leaves`.
local function as_leaves(x, leaves)
    if tide.is_tensor(x) and x.dtype.is_floating_point then
        leaves[#leaves + 1] = x:detach():requires_grad_()
        return leaves[#leaves]
    elseif type(x) == "table" and #x > 0 then
        local list = {}
        for k, item in ipairs(x) do
            list[k] = as_leaves(item, leaves)
        end
        return list
    end
    return x
end

-- The first result that is recorded; nil: none.
local function recorded(x)
    if tide.is_tensor(x) then
        return x.requires_grad and x or nil
    elseif type(x) == "table" then
        for _, item in ipairs(x) do
            local found = recorded(item)
            if found then
                return found
            end
        end
    end
end

-- A call, and the gradients of its leaves by its first result that has some.
local function with_gradients(fn, args, op)
    local leaves, held = {}, { n = args.n }
    if op.inplace_only then
        error("it writes its operand", 0)
    end
    for k = 1, args.n do
        held[k] = as_leaves(args[k], leaves)
    end
    local y = recorded { fn(table.unpack(held, 1, held.n)) }
    if not y then
        error("it has no gradient", 0)
    end
    local options = { grad_outputs = { tide.ones_like(y) }, allow_unused = true }
    return function()
        return tide.autograd.grad(recorded { fn(table.unpack(held, 1, held.n)) }, leaves, options)
    end
end

local function prepared(case)
    local args = { n = #case.args }
    for k = 1, args.n do
        args[k] = value(case.args[k])
    end
    local op = case.op
    if GRADIENTS then
        return with_gradients(op.method_only and args[1][op.name] or tide[op.name], args, op), args
    end
    local fn = (op.method_only or op.inplace_only) and args[1][op.name] or tide[op.name]
    return function() return fn(table.unpack(args, 1, args.n)) end, args
end

local function time_of(fn, loops)
    local start = tide.time()
    for _ = 1, loops do
        fn()
    end
    return (tide.time() - start) / loops
end

-- The least of a few short repetitions; one that is long is not repeated.
local function least_time(fn)
    local once = time_of(fn, 1)
    if once > VERY_LONG then
        return once
    elseif once > LONG then
        return math.min(once, time_of(fn, 1))
    end
    local loops = 1
    while once * loops < BATCH do
        loops = loops * 2
        once = time_of(fn, loops)
    end
    for _ = 2, BATCHES do
        once = math.min(once, time_of(fn, loops))
    end
    return once
end

local function bytes_in(x, seen)
    if tide.is_tensor(x) then
        local first = x:numel() > 0 and not seen[x] and x:numel() * x:element_size() or 0
        seen[x] = true
        return first
    elseif type(x) ~= "table" then
        return 0
    end
    local sum = 0
    for _, item in pairs(x) do
        sum = sum + bytes_in(item, seen)
    end
    return sum
end

-- Dtypes and shapes of what came out, so that a call that means something else in PyTorch is seen.
local function kinds(x, into)
    if tide.is_tensor(x) then
        into[#into + 1] = tostring(x.dtype):gsub("^.*%.", "") .. " " .. table.concat(x.shape, " ")
    elseif type(x) == "table" then
        for _, item in ipairs(x) do
            kinds(item, into)
        end
    end
    return into
end

local function run(case)
    local ok, fn, args = pcall(prepared, case)
    local results = ok and table.pack(pcall(fn)) or { false, fn }
    if not results[1] then
        print(json { refused = case.name, why = tostring(results[2]) })
        return
    end
    local bytes = 0
    if MOVING[case.op.family] and not case.op.view and not GRADIENTS then
        bytes = bytes_in(args, {}) + bytes_in({ table.unpack(results, 2, results.n) }, {})
    end
    local made_of = table.concat(kinds({ table.unpack(results, 2, results.n) }, {}), ", ")
    results = nil
    bench.turn(case.name, function()
        print(('{"case": "%s", "min_s": %.4g, "bytes": %d, "kinds": "%s"}'):format(case.name, least_time(fn), bytes, made_of))
    end)
end

for name in pairs(wanted) do
    if type(name) == "string" then
        local found
        for _, op in ipairs(tide._ops()) do
            found = found or op.name == name and is_called(op)
        end
        if not found then
            io.stderr:write("sweep.lua: no operator '", name, "' that is called\n")
            os.exit(1)
        end
    end
end
for _, op in ipairs(tide._ops()) do
    if is_called(op) then
        for _, case in ipairs(cases_of(op)) do
            (flags["--list"] and list_call or run)(case)
        end
        collectgarbage()
    elseif not wanted[1] and not op.internal and not table_of.left[op.name] then
        print(json { uncalled = op.name })
    end
end
