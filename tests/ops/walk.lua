-- walk.lua: what the walks over the table of operators share: samples, operands for them, calls, and
-- the comparison of results.
--
-- An operator's samples are in samples/FAMILY.lua: NAME = {function(mk) return {args...} end, ...}.
-- `mk` makes operands:
--   mk(...)           floats of the dtype under test in (-1, 1), distinct and away from 0
--   mk.pos(...)       floats in (0.1, 2)
--   mk.index(n, ...)  int64 from 1 to n
--   mk.spd(...)       symmetric matrices whose eigenvalues are far above 0
--   mk.tall(...)      matrices whose singular values lie apart, and away from 0
--   mk.mask(...)      bool
--   mk.ints(...)      int64 from 1 to 9
-- and a sample may give n = number of arguments where the last ones are nil.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."

local makers = dofile(here .. "/sample_makers.lua")
local walk = { ops = tide._ops(), samples = {} }
do
    local families = {}
    for _, op in ipairs(walk.ops) do
        families[op.family] = true
    end
    for family in pairs(families) do
        local file = loadfile(here .. "/samples/" .. family .. ".lua")
        for name, list in pairs(file and file(makers) or {}) do
            walk.samples[name] = list
        end
    end
end

-- ---- operands ----

local seed = 0

local function numel(sizes)
    local n = 1
    for _, size in ipairs(sizes) do
        n = n * size
    end
    return n
end

local function random_tensor(sizes, low, high, dtype)
    seed = seed + 1
    tide.manual_seed(seed)
    local x = tide.rand(sizes, { dtype = tide.float64 })
    return (x * (high - low) + low):to(dtype)
end

-- Distinct values whose distance from each other and from 0 is far above a difference quotient's step;
-- operands of one sample lie apart from each other too.
local function spread_tensor(sizes, dtype)
    local n = numel(sizes)
    seed = seed + 1
    tide.manual_seed(seed)
    local order = tide.randperm(math.max(n, 1)):to(tide.float64)
    if n == 0 then
        return tide.empty(sizes, { dtype = dtype })
    end
    local x = (order - (n + 1) / 2 + 0.1 + 0.06 * (seed % 6)) * (1.9 / (n + 1))
    return x:reshape(sizes):to(dtype)
end

function walk.maker(dtype, requires_grad, layout)
    layout = layout or function(x) return x end
    local mk = {}
    local function finish(x)
        x = layout(x)
        return requires_grad and x:detach():requires_grad_(true) or x
    end
    setmetatable(mk, { __call = function(_, ...) return finish(spread_tensor({ ... }, dtype)) end })
    function mk.pos(...) return finish(random_tensor({ ... }, 0.1, 2, dtype)) end
    function mk.index(n, ...)
        return layout((random_tensor({ ... }, 0, 1, tide.float64) * n):floor():clamp(0, n - 1)
            :to(tide.int64) + 1)
    end
    function mk.spd(...)
        local x = random_tensor({ ... }, -0.4, 0.4, tide.float64)
        return finish((x + x:transpose(-2, -1) + 2 * tide.eye(x.shape[-1])):to(dtype))
    end
    function mk.tall(...)
        local x = random_tensor({ ... }, -0.2, 0.2, tide.float64)
        local k = tide.arange(1, x.shape[-1] + 1, 1, { dtype = tide.float64 })
        return finish((x + tide.eye(x.shape[-2], x.shape[-1]) * k):to(dtype))
    end
    function mk.mask(...) return layout(random_tensor({ ... }, -1, 1, tide.float64):gt(0)) end
    function mk.ints(...)
        return layout((random_tensor({ ... }, 0, 1, tide.float64) * 8):floor():to(tide.int64) + 1)
    end
    return mk
end

-- ---- calling ----

-- Like pairs, in the order of the keys as texts, which is another every time otherwise.
function walk.in_order(t)
    local keys, k = {}, 0
    for key in pairs(t) do
        keys[#keys + 1] = key
    end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    return function()
        k = k + 1
        return keys[k], t[keys[k]]
    end
end

function walk.call(op, args)
    local n = args.n or #args
    if op.method_only or op.inplace_only then
        return table.pack(args[1][op.name](table.unpack(args, 1, n)))
    end
    return table.pack(tide[op.name](table.unpack(args, 1, n)))
end

function walk.flatten(results)
    local list = {}
    for k = 1, results.n do
        local r = results[k]
        if type(r) == "table" then
            for _, x in ipairs(r) do
                list[#list + 1] = x
            end
        else
            list[#list + 1] = r
        end
    end
    return list
end

-- The arguments of a sample; the next variant gets the same numbers.
function walk.arguments(sample, ...)
    local start = seed
    local args = sample(walk.maker(...))
    seed = start
    return args
end

function walk.run(op, sample, ...)
    return walk.flatten(walk.call(op, walk.arguments(sample, ...)))
end

-- Vectors that stay what they are with the other sign.
walk.signless = { linalg_eigh = true, linalg_svd = true }

-- All elements of a tensor of any layout, strided.
local function plain(x)
    x = x:detach()
    return x.is_quantized and x:dequantize() or x:to_dense()
end

local function close(a, b, tolerance)
    if not tide.is_tensor(a) then
        return a == b
    end
    if #a.shape ~= #b.shape or tostring(a.shape) ~= tostring(b.shape) then
        return false
    end
    a, b = plain(a):to(tide.float64), plain(b):to(tide.float64)
    local same = a:eq(b) | (a:isnan() & b:isnan())
    local near = (a - b):abs():le(b:abs() * tolerance + tolerance)
    return (same | near):all():item()
end

function walk.check_same(got, want, tolerance, what, signless)
    t.eq(#got, #want, what .. ": number of results")
    for k = 1, #want do
        local a, b = got[k], want[k]
        if signless then
            a, b = a:abs(), b:abs()
        end
        if not close(a, b, tolerance) then
            error(("%s, result %d:\n%s\nexpected\n%s"):format(what, k, tostring(got[k]), tostring(want[k])))
        end
    end
end

-- ---- layouts: the same values, lying otherwise ----

walk.layouts = {
    transposed = function(x)
        return x:dim() < 2 and x or x:transpose(1, -1):contiguous():transpose(1, -1)
    end,
    sliced = function(x)
        if x:dim() == 0 then
            return x
        end
        local sizes = { table.unpack(x.shape) }
        local last = #sizes
        sizes[last] = 2 * sizes[last] + 1
        local big = tide.zeros(sizes, { dtype = x.dtype })
        local view = big:slice(-1, 1, sizes[last] - 1, 2)
        view:copy_(x)
        return view
    end,
    offset = function(x)
        local sizes = { 3, table.unpack(x.shape) }
        local big = tide.zeros(sizes, { dtype = x.dtype })
        big[2] = x
        return big[2]
    end,
}

function walk.differentiable_inputs(args)
    local inputs, places = {}, {}
    for k = 1, args.n or #args do
        local a = args[k]
        if tide.is_tensor(a) and a.requires_grad and not a.is_sparse then
            inputs[#inputs + 1], places[#places + 1] = a, { args, k }
        elseif type(a) == "table" and not tide.is_tensor(a) then
            for key, x in walk.in_order(a) do
                if tide.is_tensor(x) and x.requires_grad then
                    inputs[#inputs + 1], places[#places + 1] = x, { a, key }
                end
            end
        end
    end
    return inputs, places
end

-- Operators that read one triangle of their matrices: their gradients are those of symmetric or triangular ones.
local function symmetric(args)
    args[1] = (args[1] + args[1]:transpose(-2, -1)) / 2
end
local function is_upper(options)
    return type(options) == "table" and not tide.is_tensor(options) and options.upper
end
local shaped = {
    linalg_cholesky = symmetric, linalg_cholesky_ex = symmetric, linalg_eigh = symmetric, linalg_eigvalsh = symmetric,
    cholesky_inverse = function(args) args[1] = is_upper(args[2]) and args[1]:triu() or args[1]:tril() end,
    cholesky_solve = function(args) args[2] = is_upper(args[3]) and args[2]:triu() or args[2]:tril() end,
}

-- A function of the inputs alone: they are put back in their places among the arguments.
function walk.as_function(op, args, places)
    return function(...)
        local given = { ... }
        for k, place in ipairs(places) do
            place[1][place[2]] = given[k]
        end
        if op.random then
            tide.manual_seed(1)
        end
        if shaped[op.name] then
            shaped[op.name](args)
        end
        local all = args
        if op.inplace_only then -- it writes its first argument: not the leaf itself
            all = { n = args.n or #args, table.unpack(args, 1, args.n or #args) }
            all[1] = all[1] * 1
        end
        local outputs = {}
        for _, x in ipairs(walk.flatten(walk.call(op, all))) do
            if tide.is_tensor(x) and x.dtype.is_floating_point then
                outputs[#outputs + 1] = x:to_dense()
            end
        end
        return table.unpack(outputs)
    end
end

return walk
