-- gpu.lua: products, elements, reductions, Adam over ResNet-50's parameters, a chain of tiny adds, the digits network's
-- step, and a training step of ResNet-50, on a CUDA device; gpu.py has the same cases in PyTorch.
--
-- A line of JSON for each case: {"case", "median_s", "min_s", "iqr_s"}, and what a call moves ("bytes"), computes ("flops")
-- or trains on ("images"). Time is the device's, between two events around as many calls as fill a batch. With
-- TIDE_BENCH_TINY set sizes are tiny and batches few, to see that everything runs.
local TINY = os.getenv "TIDE_BENCH_TINY"
local MIN_BATCH, BATCHES = TINY and 0 or 0.02, TINY and 3 or 9
local nn, optim = tide.nn, tide.optim
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local models = loadfile(here .. "models.lua")(bench)
local chosen = bench.chosen

if not tide.cuda.is_available() then
    io.stderr:write("gpu.lua: ", tide.cuda.unavailable_reason(), "\n")
    os.exit(2)
end
tide.manual_seed(0)

-- ---- measuring ----

local from, to = tide.cuda.Event(nil, { enable_timing = true }), tide.cuda.Event(nil, { enable_timing = true })

local function time_batch(fn, loops)
    tide.cuda.synchronize()
    from:record()
    for _ = 1, loops do
        fn()
    end
    to:record()
    return from:elapsed_time(to) / 1000
end

-- `facts`: what a call does, {bytes = n}, {flops = n} or {images = n}. What is trained on images also tells its peak of
-- the device's memory.
local function case(name, fn, facts)
    if not chosen(name) then
        return
    end
    collectgarbage() -- what other cases left is none of this one's memory
    tide.cuda.reset_peak_memory_stats()
    local began = os.time() -- programs that are compiled at run time are so by then
    repeat
        for _ = 1, TINY and 1 or 3 do
            fn()
        end
        tide.cuda.synchronize()
    until TINY or not (facts and facts.compiled) or os.time() > began + 1
    local loops = 1
    while time_batch(fn, loops) < MIN_BATCH do
        loops = loops * 2
    end
    local times = {}
    for k = 1, BATCHES do
        times[k] = time_batch(fn, loops) / loops
    end
    table.sort(times)
    local text = ('{"case": "%s", "median_s": %.5g, "min_s": %.5g, "iqr_s": %.3g'):format(name, times[(BATCHES + 1) // 2],
        times[1], times[(3 * BATCHES + 3) // 4] - times[(BATCHES + 3) // 4])
    for key, value in pairs(facts or {}) do
        text = text .. (', "%s": %.0f'):format(key, value)
    end
    if facts and facts.images then
        text = text .. (', "peak_bytes": %d'):format(tide.cuda.max_memory_allocated())
    end
    print(text .. "}")
    io.stdout:flush()
end

local function any_chosen(...)
    for _, name in ipairs { ... } do
        if chosen(name) then
            return true
        end
    end
    return false
end

local function there(x) return x:to("cuda") end

-- ---- products ----

local function products(kind, dtype, tf32)
    for _, n in ipairs(TINY and { 16, 24 } or { 1024, 2048, 4096, 8192 }) do
        local name = ("matmul_%s_%d"):format(kind, n)
        if chosen(name) then
            local a, b = there(tide.randn(n, n)):to(dtype), there(tide.randn(n, n)):to(dtype)
            local out = tide.zeros(n, n, { dtype = dtype, device = "cuda" })
            tide.backends.cuda.matmul.allow_tf32 = tf32
            case(name, function() tide.matmul(a, b, { out = out }) end, { flops = 2 * n ^ 3 })
            tide.backends.cuda.matmul.allow_tf32 = false
        end
    end
end

products("bf16", tide.bfloat16, false)
products("f16", tide.float16, false)
products("tf32", tide.float32, true)
products("f32", tide.float32, false)

for _, n in ipairs(TINY and { 24, 32 } or { 1024, 2048, 4096, 8192 }) do
    local name = ("int_mm_%d"):format(n)
    if any_chosen(name, name .. "_rows") then
        local a, b = there(tide.randint(-128, 128, { n, n }):to "int8"), there(tide.randint(-128, 128, { n, n }):to "int8")
        local out = tide.zeros(n, n, { dtype = tide.int32, device = "cuda" })
        case(name, function() tide.int_mm(a, b:t(), { out = out }) end, { flops = 2 * n ^ 3 }) -- as a layer has its weight
        case(name .. "_rows", function() tide.int_mm(a, b, { out = out }) end, { flops = 2 * n ^ 3 })
    end
end

-- ---- elements and reductions ----

local SIDE = TINY and 32 or 10000
local N = SIDE * SIDE

local function elements(mark, dtype, size)
    if not any_chosen("copy" .. mark, "add" .. mark, "mul_scalar" .. mark, "gelu" .. mark, "add_row" .. mark, "sum" .. mark,
        "max" .. mark, "sum_rows" .. mark, "sum_columns" .. mark, "softmax" .. mark) then
        return
    end
    local x, y = there(tide.randn(SIDE, SIDE)):to(dtype), there(tide.randn(SIDE, SIDE)):to(dtype)
    local out, row = tide.zeros_like(x), there(tide.randn(SIDE)):to(dtype)
    case("copy" .. mark, function() out:copy_(x) end, { bytes = 2 * N * size })
    case("add" .. mark, function() tide.add(x, y, { out = out }) end, { bytes = 3 * N * size })
    case("mul_scalar" .. mark, function() tide.mul(x, 2.5, { out = out }) end, { bytes = 2 * N * size })
    case("gelu" .. mark, function() return nn.functional.gelu(x) end, { bytes = 2 * N * size })
    case("add_row" .. mark, function() tide.add(x, row, { out = out }) end, { bytes = 2 * N * size })
    case("sum" .. mark, function() return x:sum() end, { bytes = N * size })
    case("max" .. mark, function() return x:amax() end, { bytes = N * size })
    case("sum_rows" .. mark, function() return x:sum(2) end, { bytes = N * size })
    case("sum_columns" .. mark, function() return x:sum(1) end, { bytes = N * size })
    case("softmax" .. mark, function() return x:softmax(2) end, { bytes = 2 * N * size })
end

elements("_f32_1e8", tide.float32, 4)
elements("_bf16_1e8", tide.bfloat16, 2)

-- ---- Adam over ResNet-50's parameters ----

if chosen "adam_resnet50" then
    local params = models.parameters(models.resnet50_shapes(), "cuda")
    local adam = optim.Adam(params, { lr = 0.001 })
    case("adam_resnet50", function() adam:step() end, { compiled = 1 })
end

-- ---- launches ----

if chosen "chain_1000_adds" then
    local x, one = tide.zeros(1, { device = "cuda" }), tide.ones(1, { device = "cuda" })
    case("chain_1000_adds", function()
        local y = x
        for _ = 1, TINY and 10 or 1000 do
            y = y + one
        end
    end)
end

if any_chosen("digits_step", "digits_graph") then
    local step = models.step(models.digits():to("cuda"), there(tide.rand(32, 1, 32, 32)), there(tide.randint(1, 11, { 32 })))
    case("digits_step", step, { images = 32 })
    if chosen "digits_graph" then
        step()
        local graph = tide.cuda.graph(step)
        case("digits_graph", function() graph:replay() end, { images = 32 })
    end
end

-- ---- ResNet-50 ----

if chosen "resnet50_step_bf16" then
    local batch, side = TINY and 2 or 128, TINY and 16 or 224
    local model = models.resnet50():to("cuda")
    model:to { memory_format = tide.channels_last }
    local x = there(tide.randn(batch, 3, side, side)):to { memory_format = tide.channels_last }
    local step = models.step(model, x, there(tide.randint(1, 1001, { batch })), { device = "cuda", dtype = tide.bfloat16 })
    case("resnet50_step_bf16", step, { images = batch })
end
