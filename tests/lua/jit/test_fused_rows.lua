-- Groups along rows (engine/script/row_kernel.h) give the bits that their operators give one by one: for lengths and numbers
-- of rows around every way that reductions have, dims, dtypes, broadcasting and strided inputs, threads, NaN and infinities.
local t = require "harness"

local function layer_norm(x, w, b, s)
    local off = x - x:mean(-1, { keepdim = true })
    local spread = (off * off):mean(-1, { keepdim = true })
    return off / (spread + 1e-5):sqrt() * w + b * s
end

local function log_softmax(x, w, b, s)
    local top = x:amax(-1, { keepdim = true })
    local logs = x - top - (x - top):exp():sum(-1, { keepdim = true }):log()
    return logs * w, (logs * b):sum(-1), top * s
end

local function spread(x, w, b, s)
    local y = x:tanh() * w
    return (y - y:amin(-1, { keepdim = true })) / y:std(-1, { keepdim = true }) * s, y:var(-1), (x * y):prod(-1)
end

local function softmaxes(x, w, b, s)
    local p, l = (x * w):softmax(-1), x:log_softmax(-1)
    return (p * l):sum(-1, { keepdim = true }) + s, p, tide.where(x:gt(p):logical_and(l:lt(s)), p, l):nansum(-1)
end

local function two_dims(x, w, b, s)
    local m = x:mean({ -2, -1 }, { keepdim = true })
    return (x - m) * s, (x * m):sum({ -2, -1 })
end

local function losses(x, w, b, s)
    local top = x:amax(-1, { keepdim = true })
    local logs = x - top - (x - top):exp():sum(-1, { keepdim = true }):log()
    return -(logs * w):sum() / x:size(1), (x * s - b):square():mean(), x:mean(), logs
end

local PROGRAMS = { losses = losses, layer_norm = layer_norm, log_softmax = log_softmax, spread = spread, softmaxes = softmaxes, two_dims = two_dims }

local function check_bits(got, want, what)
    t.eq(tostring(got.dtype) .. tostring(got.shape), tostring(want.dtype) .. tostring(want.shape), what)
    local nan = want:isnan()
    t.is_true(got:isnan():equal(nan), what .. ": NaN elsewhere")
    got, want = tide.where(nan, 0, got), tide.where(nan, 0, want)
    t.is_true(got:equal(want) and got:signbit():equal(want:signbit()), what .. ": other bits")
end

-- A tensor, its elements among them what is no number where `odd`.
local function make(shape, dtype, odd)
    local x = tide.randn(shape, { dtype = dtype })
    if odd and x:numel() > 4 then
        local flat = x:view(-1)
        flat[1], flat[3], flat[x:numel() // 2] = 0 / 0, 1 / 0, -1 / 0
        flat[x:numel()], flat[4] = -0.0, -1 / 0
    end
    return x
end

local function inputs_of(shape, dtype, odd)
    local n = shape[#shape]
    return { make(shape, dtype, odd), make({ n }, dtype), make({ n }, dtype), tide.tensor(0.75, { dtype = dtype }) }
end

local function check(name, f, fn, inputs, what)
    local want, got = table.pack(fn(table.unpack(inputs))), table.pack(f(table.unpack(inputs)))
    t.eq(got.n, want.n)
    for k = 1, want.n do
        check_bits(got[k], want[k], ("%s, result %d, %s"):format(name, k, what))
    end
end

local function check_shapes(shapes, dtypes)
    for name, fn in pairs(PROGRAMS) do
        for _, dtype in ipairs(dtypes) do
            local f = tide.jit.script(fn)
            for k, shape in ipairs(shapes) do
                for threads = 1, 2 do
                    tide.set_num_threads(threads)
                    local what = ("(%s) %s, %d threads"):format(table.concat(shape, ", "), tostring(dtype), threads)
                    check(name, f, fn, inputs_of(shape, dtype, k % 2 == 0), what)
                end
            end
        end
    end
end

t.test("rows of every length", function()
    local shapes = {}
    for _, n in ipairs { 2, 7, 16, 17, 32, 33, 64, 129, 1000, 4097 } do
        for _, rows in ipairs { 1, 131, n < 40 and 1100 or n < 200 and 300 or 9 } do
            shapes[#shapes + 1] = { rows, 1, n }
        end
    end
    check_shapes(shapes, { tide.float32 })
end)

t.test("shapes of several dims, long rows, few elements, none", function()
    check_shapes({ { 3, 5, 7 }, { 2, 300, 9, 16 }, { 1, 70, 1 }, { 300, 2, 1 }, { 1, 2, 70001 }, { 65, 1, 65537 }, { 2, 0, 5 },
        { 0, 4, 5 }, { 2500, 1, 64 }, { 2100, 64 }, { 300, 1, 512 }, { 130, 1500 } }, { tide.float32, tide.float64 })
end)

t.test("inputs otherwise than traced run their operators", function()
    for name, fn in pairs(PROGRAMS) do
        local f = tide.jit.script(fn)
        local x, w, b, s = table.unpack(inputs_of({ 40, 3, 33 }, tide.float32))
        check(name, f, fn, { x, w, b, s }, "as they are")
        check(name, f, fn, { x, w, b, s }, "again")
        check(name, f, fn, { x:transpose(1, 2), w, b, s }, "transposed")
        check(name, f, fn, { x:narrow(3, 2, 7), w:narrow(1, 2, 7), b[{ { 1, 14, 2 } }], s }, "strided")
        check(name, f, fn, { x:narrow(1, 3, 1):expand(5, 3, 33), w, b, s }, "expanded")
        check(name, f, fn, { x, w:sum(1, { keepdim = true }), b, s }, "one weight")
        check(name, f, fn, { x, x:narrow(3, 1, 1):contiguous(), b, s }, "a weight for each row")
        check(name, f, fn, { x:double(), w, b, s }, "of two dtypes")
        x = x:clone():requires_grad_()
        check(name, f, fn, { x, w, b, s }, "recorded")
    end
end)

t.test("gradients", function()
    for name, fn in pairs(PROGRAMS) do
        local f = tide.jit.script(fn)
        for _, shape in ipairs { { 3, 4, 5 }, { 20, 20, 33 }, { 20, 20, 33 } } do
            local grads = {}
            local inputs = inputs_of(shape, tide.float32)
            for way, call in ipairs { fn, f } do
                local own = {}
                for k, x in ipairs(inputs) do
                    own[k] = x:clone():requires_grad_()
                end
                local total
                for _, y in ipairs(table.pack(call(table.unpack(own)))) do
                    total = total and total + (y * y):sum() or (y * y):sum()
                end
                grads[way] = tide.autograd.grad(total, own, { allow_unused = true })
            end
            for k = 1, 4 do
                if grads[1][k] then
                    check_bits(grads[2][k], grads[1][k], ("%s: gradient of input %d"):format(name, k))
                end
            end
        end
    end
end)

-- Rows of tables by number.
local function embedded(table, index, w)
    local x = tide.embedding(table, index)
    local off = x - x:mean(-1, { keepdim = true })
    return off / ((off * off):mean(-1, { keepdim = true }) + 1e-5):sqrt() * w, x:sum()
end

local function selected(table, index, w)
    local x = table:index_select(1, index):tanh()
    return x:softmax(-1) * w, x
end

local function check_table(fn, v, shape, n)
    local f, rows = tide.jit.script(fn), 1
    for _, size in ipairs(shape) do
        rows = rows * size
    end
    local table_, w, index = make({ v, n }, tide.float32, true), make({ n }, tide.float32), tide.randint(1, v + 1, shape)
    for _ = 1, 2 do
        check("tables", f, fn, { table_, index, w }, ("%d, %d, %d"):format(v, rows, n))
    end
    check("tables", f, fn, { table_, index:int(), w }, "int32")
    check("tables", f, fn, { table_:t():contiguous():t(), index, w }, "by columns")
    for _, wrong in ipairs(rows > 0 and { 0, v + 1, -1, -v - 1 } or {}) do
        index:view(-1)[rows] = wrong
        local ok, want = pcall(fn, table_, index, w)
        if ok then
            check("tables", f, fn, { table_, index, w }, "from the end")
        else
            t.error_has(function() f(table_, index, w) end, want:match "[^:]*$")
        end
    end
end

t.test("rows of tables", function()
    for _, case in ipairs { { 10, 7, 5 }, { 1000, 4000, 33 }, { 50, 9000, 64 }, { 3, 1, 2 }, { 4, 0, 6 } } do
        local v, rows, n = table.unpack(case)
        check_table(embedded, v, { rows }, n)
        check_table(embedded, v, { 2, rows, 1 }, n)
        check_table(selected, v, { rows }, n)
    end
    local table_, w, index = tide.randn(5000, 64), tide.randn(64), tide.randint(1, 5001, { 64 })
    for fn, group in pairs { [embedded] = "fused embedding mean sub mul mean add sqrt div mul sum", [selected] = "fused index_select tanh softmax mul" } do
        local f, names = tide.jit.script(fn), {}
        f(table_, index, w)
        for _, e in ipairs(tide.profiler.profile(function() f(table_, index, w) end):events()) do
            names[#names + 1] = e.kind == "operator" and e.name or nil
        end
        t.eq(names, { "from_one_based", group })
    end
end)

t.test("stages of several dtypes round where eager rounds", function()
    local function mixed(x, y)
        local powers = x:sin():float_power(y)
        return powers:mean(2, { keepdim = true }):maximum(powers), (x:half() * 1.1 + y:half()):float():softmax(2)
    end
    local f = tide.jit.script(mixed)
    for _, shape in ipairs { { 2, 3 }, { 40, 64 }, { 3, 5000 } } do
        local x, y = tide.rand(shape) + 0.1, tide.rand(shape)
        for _ = 1, 3 do
            local got, want = table.pack(f(x, y)), table.pack(mixed(x, y))
            for k = 1, 2 do
                t.is_true(tide.equal(got[k], want[k]), ("result %d of (%d, %d)"):format(k, shape[1], shape[2]))
            end
        end
    end
end)

-- Rows side by side.
local function joined(x, y, w)
    local both = tide.cat({ x, y, x }, -1)
    return (both * w):exp() / both:amax(-1, { keepdim = true }), both:mean()
end

t.test("rows side by side", function()
    local f = tide.jit.script(joined)
    for _, case in ipairs { { 5, 3, 4 }, { 700, 1, 6 }, { 3000, 20, 24 }, { 1, 9, 0 }, { 0, 2, 2 }, { 4, 0, 0 } } do
        local rows, n, m = table.unpack(case)
        local x, y, w = make({ rows, 2, n }, tide.float32, true), make({ rows, 2, m }, tide.float32), make({ 2 * n + m }, tide.float32)
        if 2 * n + m > 0 then
            for _ = 1, 2 do
                check("joined", f, joined, { x, y, w }, table.concat(case, ", "))
            end
            check("joined", f, joined, { x, y:transpose(1, 2):contiguous():transpose(1, 2), w }, "turned")
        end
    end
    t.error_has(function() f(tide.randn(3, 2, 4), tide.randn(3, 5, 4), tide.randn(12)) end, "cat")
    local x, w, names = tide.randn(30, 8), tide.randn(24), {}
    for _ = 1, 2 do
        f(x, x, w)
    end
    for _, e in ipairs(tide.profiler.profile(function() f(x, x, w) end):events()) do
        names[#names + 1] = e.kind == "operator" and e.name or nil
    end
    t.eq(names, { "fused cat mul exp amax div mean" })
end)

-- Bytes that are held at one time, at most, beside what was held before.
local function peak_of(fn)
    collectgarbage()
    collectgarbage()
    local before = tide.memory_allocated()
    tide.reset_peak_memory_stats()
    local kept = fn()
    return tide.memory_stats().peak - before, kept
end

t.test("what nobody reads outside is never in memory as a whole", function()
    local x, w, b, s = table.unpack(inputs_of({ 50000, 64 }, tide.float32))
    local whole = 4 * x:numel()
    local function loss(x, w, b, s)
        local logs = x - x:exp():sum(-1, { keepdim = true }):log()
        return (logs * w + b * s):sum()
    end
    for fn, results in pairs { [layer_norm] = 1, [loss] = 0 } do
        local f = tide.jit.script(fn)
        for _ = 1, 2 do
            f(x, w, b, s)
        end
        local eager = peak_of(function() return fn(x, w, b, s) end)
        local fused = peak_of(function() return f(x, w, b, s) end)
        t.is_true(eager > (results + 1) * whole, "eager " .. eager / whole)
        t.is_true(fused < (results + 0.3) * whole, "fused " .. fused / whole)
    end
end)

t.test("a group is one call of one kernel", function()
    local x, w, b, s = table.unpack(inputs_of({ 30, 64 }, tide.float32))
    local f = tide.jit.script(layer_norm)
    f(x, w, b, s)
    local names = {}
    local p = tide.profiler.profile(function() f(x, w, b, s) end)
    for _, e in ipairs(p:events()) do
        if e.kind == "operator" then
            names[#names + 1] = e.name
        end
    end
    t.eq(names, { "mul", "fused mean sub mul mean add sqrt div mul add" }) -- b * s is of another shape
end)

t.test("a loaded function takes what it was not traced with", function()
    local path = os.tmpname()
    local f = tide.jit.script(function(x, w) return (x - x:mean(2, { keepdim = true })) * w end)
    local x, w = tide.randn(6, 5), tide.randn(5)
    local graph = f:graph_for(x, w)
    f:save(path)
    local loaded = tide.jit.load(path)
    os.remove(path)
    t.is_true(tostring(graph):find "FusionGroup" ~= nil)
    for _, shape in ipairs { { 6, 5 }, { 7, 5 }, { 6, 5, 5 }, { 2, 3, 4, 5, 5 } } do
        local y = tide.randn(shape)
        check_bits(loaded(y, w), (y - y:mean(2, { keepdim = true })) * w, "loaded")
    end
end)
