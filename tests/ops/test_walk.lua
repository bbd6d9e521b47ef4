-- test_walk.lua: walks the table of operators; every property here is asked of every operator.
--
-- An operator's samples are in samples/FAMILY.lua: NAME = {function(mk) return {args...} end, ...}.
-- `mk` makes operands:
--   mk(...)           floats of the dtype under test in (-1, 1), distinct and away from 0
--   mk.pos(...)       floats in (0.1, 2)
--   mk.index(n, ...)  int64 from 1 to n
--   mk.mask(...)      bool
--   mk.ints(...)      int64 from 1 to 9
-- and a sample may give n = number of arguments where the last ones are nil.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."

local ops, samples = tide._ops(), {}
local families = {}
for _, op in ipairs(ops) do
    families[op.family] = true
end
for family in pairs(families) do
    local file = loadfile(here .. "/samples/" .. family .. ".lua")
    for name, list in pairs(file and file() or {}) do
        samples[name] = list
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

local function maker(dtype, requires_grad, layout)
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
    function mk.mask(...) return layout(random_tensor({ ... }, -1, 1, tide.float64):gt(0)) end
    function mk.ints(...)
        return layout((random_tensor({ ... }, 0, 1, tide.float64) * 8):floor():to(tide.int64) + 1)
    end
    return mk
end

-- ---- calling ----

local function call(op, args)
    local n = args.n or #args
    if op.method_only or op.inplace_only then
        return table.pack(args[1][op.name](table.unpack(args, 1, n)))
    end
    return table.pack(tide[op.name](table.unpack(args, 1, n)))
end

local function flatten(results)
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

local function run(op, sample, ...)
    local start = seed
    local results = flatten(call(op, sample(maker(...))))
    seed = start -- the next variant gets the same numbers
    return results
end

local function close(a, b, tolerance)
    if not tide.is_tensor(a) then
        return a == b
    end
    if #a.shape ~= #b.shape or tostring(a.shape) ~= tostring(b.shape) then
        return false
    end
    a, b = a:detach():to(tide.float64), b:detach():to(tide.float64)
    local same = a:eq(b) | (a:isnan() & b:isnan())
    local near = (a - b):abs():le(b:abs() * tolerance + tolerance)
    return (same | near):all():item()
end

local function check_same(got, want, tolerance, what)
    t.eq(#got, #want, what .. ": number of results")
    for k = 1, #want do
        if not close(got[k], want[k], tolerance) then
            error(("%s, result %d:\n%s\nexpected\n%s"):format(what, k, tostring(got[k]), tostring(want[k])))
        end
    end
end

-- ---- layouts: the same values, lying otherwise ----

local layouts = {
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

local function differentiable_inputs(args)
    local inputs, places = {}, {}
    for k = 1, args.n or #args do
        local a = args[k]
        if tide.is_tensor(a) and a.requires_grad then
            inputs[#inputs + 1], places[#places + 1] = a, { args, k }
        elseif type(a) == "table" and not tide.is_tensor(a) then
            for key, x in pairs(a) do
                if tide.is_tensor(x) and x.requires_grad then
                    inputs[#inputs + 1], places[#places + 1] = x, { a, key }
                end
            end
        end
    end
    return inputs, places
end

-- A function of the inputs alone: they are put back in their places among the arguments.
local function as_function(op, args, places)
    return function(...)
        local given = { ... }
        for k, place in ipairs(places) do
            place[1][place[2]] = given[k]
        end
        if op.random then
            tide.manual_seed(1)
        end
        local all = args
        if op.inplace_only then -- it writes its first argument: not the leaf itself
            all = { n = args.n or #args, table.unpack(args, 1, args.n or #args) }
            all[1] = all[1] * 1
        end
        local outputs = {}
        for _, x in ipairs(flatten(call(op, all))) do
            if tide.is_tensor(x) and x.dtype.is_floating_point then
                outputs[#outputs + 1] = x
            end
        end
        return table.unpack(outputs)
    end
end

-- ---- the walk ----

for _, op in ipairs(ops) do
    local list = samples[op.name]
    if not op.internal then
        t.test(op.name .. "_has_samples", function()
            t.is_true(list and #list >= 3, "at least three samples in samples/" .. op.family .. ".lua")
            t.is_true(op.doc and #op.doc > 0, "a line of doc")
        end)
    end
    for number, sample in ipairs(list or {}) do
        local name = ("%s_%d"):format(op.name, number)
        local comparable = not op.random and op.name ~= "empty" and op.name ~= "empty_like"
        t.test(name .. "_f32_agrees_with_f64", function()
            local want = run(op, sample, tide.float64)
            local got = run(op, sample, tide.float32)
            if comparable then
                check_same(got, want, 2e-5, "float32")
            end
        end)
        for layout, arrange in pairs(layouts) do
            t.test(name .. "_" .. layout, function()
                if comparable then
                    local want = run(op, sample, tide.float64)
                    check_same(run(op, sample, tide.float64, false, arrange), want, 1e-12, layout)
                end
            end)
        end
        if op.inplace and not op.inplace_only then
            t.test(name .. "_in_place_equals_out_of_place", function()
                local args = sample(maker(tide.float64))
                if not tide.is_tensor(args[1]) then
                    return
                end
                local want = tide[op.name](table.unpack(args, 1, args.n or #args))
                if tostring(want.shape) ~= tostring(args[1].shape) or want.dtype ~= args[1].dtype
                    or op.random then
                    return
                end
                args[1] = args[1]:clone()
                local got = args[1][op.name .. "_"](table.unpack(args, 1, args.n or #args))
                check_same({ got }, { want }, 0, "in place")
                check_same({ args[1] }, { want }, 0, "the tensor written")
            end)
        end
        if op.differentiable then
            t.test(name .. "_gradient", function()
                local args = sample(maker(tide.float64, true))
                local inputs, places = differentiable_inputs(args)
                local fn = as_function(op, args, places)
                local wanted = false
                for _, y in ipairs({ fn(table.unpack(inputs)) }) do
                    wanted = wanted or y.requires_grad
                end
                if #inputs == 0 or not wanted then
                    return
                end
                t.is_true(tide.autograd.gradcheck(fn, inputs))
                t.is_true(tide.autograd.gradgradcheck(fn, inputs))
            end)
        end
    end
    if not op.internal and not op.method_only and not op.inplace_only then
        t.test(op.name .. "_names_itself_in_errors", function()
            local ok, message = pcall(tide[op.name], {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})
            t.is_true(not ok, "nonsense is refused")
            t.is_true(message:find(op.name, 1, true), "the message names the operator: " .. message)
        end)
    end
end
