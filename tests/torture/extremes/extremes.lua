-- extremes.lua: calls every operator with extremes of sizes, shapes, strides, dtypes and numbers.
--
--     tide extremes.lua SEED CALLS
--
-- An operator's samples (tests/ops/samples) say what its arguments are like; each is then replaced by
-- something extreme of its kind. Every call is written to stdout as a line of Lua before it is made, so
-- that whoever reads knows the last one. What is asked of a call: it ends; what it refuses it refuses in
-- one line; then the tensors given are what they were; a result can be read and printed. A finding is a
-- line that begins with "finding:"; the last line is "calls: N refused: M".
local here = arg[0]:match("^(.*)/") or "."
local seed, calls = tonumber(arg[1]) or 1, tonumber(arg[2]) or 1000

-- ---- a generator of its own: tide's is under test ----

local state = seed * 2654435761 + 88172645463325252

local function draw(n)
    state = state ~ (state << 13)
    state = state ~ (state >> 7)
    state = state ~ (state << 17)
    return (state >> 11) % n + 1
end
local function one_of(list)
    return list[draw(#list)]
end
local function chance(percent)
    return draw(100) <= percent
end

-- ---- extremes ----

-- No size lies between 2^18 and 2^36: what is made is small or impossible, never half of the machine.
local sizes = { 0, 1, 1, 2, 2, 3, 5, 7, 12, 255, 1 << 18, 1 << 36, 1 << 40, 1 << 53, 1 << 61, (1 << 61) + 1,
    1 << 62, math.maxinteger - 1, math.maxinteger }
local integers = { 0, 1, 1, 2, 3, 4, 7, -1, -1, -2, -3, -128, -(1 << 36), -(1 << 62), math.mininteger,
    math.mininteger + 1 }
table.move(sizes, 9, #sizes, #integers + 1, integers)
local numbers = { 0, 1, -1, 0.5, 2, -0.0, 1e30, -1e30, 1e300, -1e300, 5e-324, 1e-38, 255, math.huge, -math.huge, 0 / 0,
    math.maxinteger, math.mininteger }
local values = { 0, 1, -1, 0.5, 2, -0.0, 1e30, -1e30, 1e300, -1e300, 1.7976931348623157e308, 5e-324, 1e-38, 3e38,
    math.huge, -math.huge, 0 / 0, 255, 256, -129, 65504, 70000, 2147483648, math.maxinteger, math.mininteger,
    math.mininteger + 1, 9007199254740993 }
local dtypes = { "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" }

local function number_text(v)
    if v ~= v then
        return "0/0"
    elseif v == math.huge or v == -math.huge then
        return v > 0 and "math.huge" or "-math.huge"
    elseif v == math.mininteger then
        return "math.mininteger"
    end
    return math.type(v) == "integer" and tostring(v) or ("%.17g"):format(v):gsub("^(-?%d+)$", "%1.0")
end

local function list_text(list)
    local parts = {}
    for k, v in ipairs(list) do
        parts[k] = number_text(v)
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

-- ---- tensors, as text ----

local function some(n, from)
    local list = {}
    for k = 1, n do
        list[k] = one_of(from)
    end
    return list
end

-- Elements of an expression whose shape has n of them, at most a few.
local function elements(n, dtype)
    return ("tide.tensor(%s,{dtype=tide.%s})"):format(list_text(some(n, values)), dtype)
end

local function count(shape)
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    return n
end

-- What a view is made by; r is the number of dims, which it returns as well.
local views = {
    function(r) return ":unsqueeze(" .. draw(r + 1) .. ")", r + 1 end,
    function(r) return r > 0 and (":select(%d,1)"):format(draw(r)) or "", math.max(r - 1, 0) end,
    function(r) return r > 1 and (":transpose(%d,%d)"):format(draw(r), draw(r)) or "", r end,
    function(r) return r > 0 and (":narrow(%d,1,%d)"):format(draw(r), draw(2) - 1) or "", r end,
    function(r) return r > 0 and (":slice(%d,%d,nil,%d)"):format(draw(r), draw(3), math.abs(one_of(sizes)) + 1) or "", r end,
    function(r)
        local list = some(r + draw(2) - 1, sizes)
        return #list > 0 and (":unsqueeze(1):select(1,1):expand(%s)"):format(list_text(list)) or "", #list
    end,
    function()
        local n = draw(4) - 1
        local steps = some(n, { 0, 0, 1, 2, 3, 1 << 40, 1 << 62, math.maxinteger })
        return (":as_strided(%s,%s,%d)"):format(list_text(some(n, sizes)), list_text(steps), draw(3) - 1), n
    end,
}

-- A tensor of this shape, its dims perhaps replaced by extreme ones.
local function shaped(shape, dtype)
    local n = count(shape)
    if n > 64 or #shape == 0 and chance(50) then
        return elements(1, dtype) .. ":select(1,1)" .. (#shape > 0 and (":expand(%s)"):format(list_text(shape)) or "")
    end
    local text = n == 0 and ("tide.zeros(%s,{dtype=tide.%s})"):format(list_text(shape), dtype)
        or elements(n, dtype) .. (":reshape(%s)"):format(list_text(shape))
    if chance(60) or #shape == 0 then
        return text
    end
    local dim, wide = draw(#shape), { table.unpack(shape) }
    wide[dim] = one_of(sizes)
    return ("%s:narrow(%d,1,1):expand(%s)"):format(text, dim, list_text(wide))
end

local function wild(dtype)
    local text, r = elements(one_of { 1, 2, 6, 12 }, dtype), 1
    for _ = 1, draw(4) do
        local more
        more, r = one_of(views)(r)
        text = text .. more
    end
    return text
end

-- The text makes a tensor; nil where a view of it was refused, which is checked like a call.
local function tensor_text(shape, dtype)
    dtype = chance(30) and one_of(dtypes) or dtype
    return chance(25) and wild(dtype) or shaped(shape, dtype)
end

-- ---- samples: what the arguments of an operator are like ----

local ops, samples = tide._ops(), {}
local makers = dofile(here .. "/../../ops/sample_makers.lua")
for _, op in ipairs(ops) do
    if samples[op.family] == nil then
        samples[op.family] = false
        local file = loadfile(here .. "/../../ops/samples/" .. op.family .. ".lua")
        for name, list in pairs(file and file(makers) or {}) do
            samples[name] = list
        end
    end
end

local function maker()
    local mk = {}
    local function ints(n, ...) return (tide.rand({ ... }) * n):floor():to(tide.int64) + 1 end
    mk.pos = function(...) return tide.rand({ ... }) + 0.1 end
    mk.index = ints
    mk.mask = function(...) return tide.rand({ ... }):gt(0.5) end
    mk.ints = function(...) return ints(8, ...) end
    mk.spd = function(...) return tide.rand({ ... }) + 2 * tide.eye(({ ... })[select("#", ...)]) end
    mk.tall = mk.pos
    return setmetatable(mk, { __call = function(_, ...) return tide.rand({ ... }) end })
end

-- ---- an argument as text ----

local argument

local function table_text(t, tensors)
    local parts, n = {}, #t
    for k = 1, n do
        parts[k] = argument(t[k], tensors)
    end
    if n > 0 and chance(10) then
        parts[#parts + 1] = parts[draw(n)]
    elseif n > 1 and chance(10) then
        parts[n] = nil
    end
    for key, v in pairs(t) do
        if type(key) == "string" and key ~= "n" then
            parts[#parts + 1] = key .. "=" .. argument(v, tensors)
        end
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

-- Tensors go into a list of their own, so that they can be looked at afterwards.
local function tensor_argument(x, tensors)
    local name = tostring(x.dtype):match("[%w_]+$")
    local text
    if x.is_quantized then
        text = ("tide.quantize_per_tensor(%s,%s,%d,tide.%s)"):format(tensor_text({ table.unpack(x.shape) }, "float32"),
            one_of { "0.1", "1e30", "1e-30" }, one_of { 0, 3, 100 }, name)
    elseif not x.dtype.is_floating_point and x:numel() <= 64 and chance(50) then
        text = x:numel() == 0 and shaped({ table.unpack(x.shape) }, name)
            or ("tide.tensor(%s,{dtype=tide.%s}):reshape(%s)"):format(
                list_text(x:reshape(-1):to(tide.int64):tolist()), name, list_text(x.shape))
    else
        text = tensor_text({ table.unpack(x.shape) }, name)
    end
    tensors[#tensors + 1] = text
    return "t" .. #tensors
end

function argument(v, tensors)
    if tide.is_tensor(v) then
        return tensor_argument(v, tensors)
    elseif type(v) == "table" then
        return table_text(v, tensors)
    elseif math.type(v) == "integer" then
        return chance(40) and number_text(v) or chance(95) and number_text(one_of(integers)) or
            number_text(one_of(numbers))
    elseif type(v) == "number" then
        return chance(30) and number_text(v) or number_text(one_of(numbers))
    elseif type(v) == "string" then
        return ("%q"):format(v)
    elseif type(v) == "userdata" then
        return "tide." .. one_of(dtypes)
    end
    return tostring(v)
end

-- ---- a call as text ----

local function call_text(op, tensors)
    local sample = one_of(samples[op.name])
    local args = sample(maker())
    local parts = {}
    for k = 1, args.n or #args do
        parts[k] = argument(args[k], tensors)
    end
    local in_place = op.inplace_only and "" or op.inplace and chance(25) and "_"
    if in_place and parts[1] == "t1" or op.method_only then
        return ("%s:%s(%s)"):format(parts[1], op.name .. (in_place or ""), table.concat(parts, ",", 2))
    end
    if op.out and chance(25) and not table.concat(parts, ",", math.max(#parts, 1)):find("=") then
        tensors[#tensors + 1] = tensor_text(some(draw(3) - 1, { 0, 1, 2, 3 }), one_of(dtypes))
        parts[#parts + 1] = ("{out=t%d}"):format(#tensors)
    end
    return ("tide[%q](%s)"):format(op.name, table.concat(parts, ",")) -- one is called repeat
end

-- ---- what is asked ----

local findings, refused = 0, 0

local function finding(what, line)
    findings = findings + 1
    print(("finding: %s: %s"):format(what, line))
end

local function check_message(message, line)
    if type(message) ~= "string" then
        finding("an error that is no text", line)
    elseif message:find("\n") or #message > 1000 or message:find("internal") or message:find("%%") then
        finding("not one plain line: " .. message:gsub("\n", "\\n"), line)
    end
    return type(message) == "string" and message:find("interrupted", 1, true)
end

local function seen_strided(x)
    x = x.is_quantized and x:dequantize() or x
    local facts = ("%s %s %s "):format(tostring(x.shape), tostring(x:stride()), tostring(x.dtype))
    return facts .. (x:numel() <= 4096 and table.concat(x:reshape(-1):tolist() and
        (function(list)
            for k, v in ipairs(list) do list[k] = tostring(v):gsub("-nan", "nan") end
            return list
        end)(x:reshape(-1):tolist()), " ") or tostring(x))
end

-- All that can be seen of a tensor; of a large one its edges, of a sparse one its parts.
local function seen(x)
    if x.is_sparse then
        return "sparse " .. tostring(x.shape) .. seen_strided(x:_indices()) .. seen_strided(x:_values())
    end
    return seen_strided(x)
end

local function look_at(result, line)
    if not tide.is_tensor(result) then
        for _, x in ipairs(type(result) == "table" and #result < 100 and result or {}) do
            look_at(x, line)
        end
        return
    end
    local ok, message = pcall(seen, result)
    if not ok and not message:find("out of memory", 1, true) then
        finding("a result that can't be read: " .. message, line)
    end
end

local function make(texts, line)
    local made, before = {}, {}
    for k, text in ipairs(texts) do
        local ok, x = pcall(load("return " .. text))
        if not ok then
            refused = refused + 1
            check_message(x, line)
            return nil
        end
        made[k], before[k] = x, seen(x)
    end
    return made, before
end

local function names(n)
    local list = {}
    for k = 1, n do
        list[k] = "t" .. k
    end
    return table.concat(list, ",")
end

-- The gradient of what was made, where something small can have one.
local function go_back(made, call, line)
    for k, x in ipairs(made) do
        if not x.dtype.is_floating_point then
            goto continue
        end
        made[k] = x:detach():requires_grad_(true)
        ::continue::
    end
    local fn = load(("local %s = ... return %s"):format(names(#made), call))
    local ok, message = pcall(function()
        local y = fn(table.unpack(made))
        if tide.is_tensor(y) and y.requires_grad then
            y:sum():backward()
        end
    end)
    if not ok then
        check_message(message, line .. " -- and backward")
    end
end

local function run(op)
    local texts = {}
    local call = call_text(op, texts)
    local line = (#texts > 0 and ("local %s = %s "):format(names(#texts), table.concat(texts, ", ")) or "") ..
        "return " .. call
    print(line)
    local made, before = make(texts, line)
    if not made then
        return
    end
    local fn = assert(load((#texts > 0 and ("local %s = ... "):format(names(#texts)) or "") .. "return " .. call))
    local results = table.pack(pcall(fn, table.unpack(made)))
    if results[1] then
        for k = 2, results.n do
            look_at(results[k], line)
        end
        if op.differentiable and not op.random and #made > 0 and chance(20) then
            go_back(made, call, line)
        end
        return
    end
    refused = refused + 1
    if check_message(results[2], line) then
        return -- interrupted: what is written then is half written
    end
    for k, x in ipairs(made) do
        local ok, after = pcall(seen, x)
        if not ok or after ~= before[k] then
            finding(("tensor t%d is another after a call that failed (%s)"):format(k, results[2]), line)
        end
    end
end

io.stdout:setvbuf("line")
local callable = {}
for _, op in ipairs(ops) do
    if not op.internal and samples[op.name] then
        callable[#callable + 1] = op
    end
end
for _ = 1, calls do
    run(one_of(callable))
end
print(("calls: %d refused: %d findings: %d operators: %d"):format(calls, refused, findings, #callable))
os.exit(findings == 0)
