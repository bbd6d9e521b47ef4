-- digests.lua: prints `NAME DIGEST` for every operator over its samples, in two dtypes, for the operators
-- that are cut among threads over sizes worth it, and for a training; the same lines whatever may not change
-- a result. Run from the root of the checkout:
--
--     build/release/tide tests/torture/digests/digests.lua SEED [THREADS]
--
-- With THREADS (a number) each line is made with that many, set after the engine has worked with all.
package.path = "tests/lua/?.lua;" .. package.path
local walk = dofile("tests/ops/walk.lua")
tide.use_deterministic_algorithms(true)
local seed, threads = tonumber(arg[1]), tonumber(arg[2])

-- ---- digests ----

local function mix(h, bits)
    h = (h ~ bits) * 0x100000001b3
    return h ~ (h >> 29)
end

local function digest_of(x, h)
    if not tide.is_tensor(x) then
        return mix(h, string.unpack("<i8", string.pack("<d", tonumber(x) or (x and 1 or 0))))
    end
    for _, size in ipairs(x.shape) do
        h = mix(h, size)
    end
    x = x:detach()
    x = (x.is_sparse and x:to_dense() or x.is_quantized and x:int_repr() or x):reshape(-1)
    local n = x:numel()
    if n > 10000 then -- some of so many; the next seed takes others
        x = x:slice(1, 1 + seed % 7, n, 7)
    end
    if x.dtype == tide.bool then
        x = x:to(tide.int64)
    end
    local list = x:tolist()
    for k = 1, #list do
        local v = list[k]
        if v ~= v then
            v = 0x7ff8000000000000 -- which NaN it is says nothing
        elseif math.type(v) == "float" then
            v = string.unpack("<i8", string.pack("<d", v))
        end
        h = mix(h, v)
    end
    return h
end

local function line(name, results)
    local h = 0
    for _, x in ipairs(results) do
        h = digest_of(x, h)
    end
    print(("%s %016x"):format(name:gsub(" ", "_"), h))
end

-- `make` is called once before threads are set, so that whatever is kept for the next call is kept.
local function case(name, make)
    tide.manual_seed(seed)
    if threads then
        tide.set_num_threads(4)
        make()
        tide.set_num_threads(threads)
        tide.manual_seed(seed)
    end
    line(name, make())
end

local function with_gradients(fn, ...)
    local inputs = { ... }
    local leaves = {}
    for k, x in ipairs(inputs) do
        leaves[k] = x:detach():requires_grad_(true)
    end
    local y = fn(table.unpack(leaves))
    local g = tide.rand(table.unpack(y.shape)):to(y.dtype)
    local results = tide.autograd.grad({ y }, leaves, { grad_outputs = { g } })
    table.insert(results, 1, y)
    return results
end

-- ---- all operators ----

for _, op in ipairs(walk.ops) do
    local silent = op.internal or op.name:find("empty")
    for number, sample in ipairs(not silent and walk.samples[op.name] or {}) do
        for _, dtype in ipairs { "float32", "float64" } do
            case(("%s_%d.%s"):format(op.name, number, dtype), function()
                return walk.run(op, sample, tide[dtype])
            end)
        end
    end
end

-- ---- sizes worth several threads ----

local function normal(dtype, ...)
    return tide.randn(...):to(tide[dtype])
end

local products = {
    { 65, 33, 127 }, { 128, 128, 1024 }, { 8, 8, 20000 }, { 512, 1, 4096 }, { 1, 512, 4096 }, { 300, 500, 70 },
    { 16, 1000, 500 }, { 200, 200, 200 }, { 3, 3, 70000 },
}
for _, dtype in ipairs { "float32", "float64", "bfloat16" } do
    for _, s in ipairs(products) do
        local m, n, k = table.unpack(s)
        case(("matmul.%dx%dx%d.%s"):format(m, n, k, dtype), function()
            local a, b = normal(dtype, m, k), normal(dtype, k, n)
            local results = { a:matmul(b) }
            results[2] = a:t():contiguous():t():matmul(b)
            results[3] = a:matmul(b:t():contiguous():t())
            return results
        end)
    end
    case("matmul.batch." .. dtype, function()
        return { normal(dtype, 40, 24, 50):matmul(normal(dtype, 40, 50, 30)) }
    end)
    case("linear." .. dtype, function()
        return with_gradients(tide.linear, normal(dtype, 2000, 60), normal(dtype, 40, 60), normal(dtype, 40))
    end)
end

local convolutions = { -- images, channels in and out, size, kernel, padding, groups
    { 8, 3, 8, 16, 3, 1, 1 }, { 32, 16, 32, 14, 3, 1, 1 }, { 16, 32, 64, 7, 1, 0, 1 }, { 2, 8, 8, 20, 5, 2, 2 },
    { 3, 8, 16, 9, 3, 1, 4 }, { 1, 64, 128, 10, 3, 1, 1 }, { 40, 1, 6, 28, 5, 0, 1 }, { 1, 256, 256, 5, 1, 0, 1 },
    { 5, 3, 64, 20, 7, 3, 1 },
}
for _, dtype in ipairs { "float32", "float64", "float16" } do
    for _, s in ipairs(convolutions) do
        local n, from, to, size, kernel, padding, groups = table.unpack(s)
        case("conv2d." .. table.concat(s, "_") .. "." .. dtype, function()
            local function conv(x, w, b)
                return tide.conv2d(x, w, b, { padding = padding, groups = groups })
            end
            return with_gradients(conv, normal(dtype, n, from, size, size),
                normal(dtype, to, from // groups, kernel, kernel), normal(dtype, to))
        end)
    end
end

local large = {
    sum = function(x) return { x:sum(), x:sum(1), x:sum(2) } end,
    mean = function(x) return { x:mean(), x:mean(1), x:mean(2) } end,
    prod = function(x) return { x:prod(), x:prod(1), x:prod(2) } end,
    var = function(x) return { x:var(), x:var(1), x:std(2) } end,
    norm = function(x) return { x:norm(), x:norm(1.5), (x * 1e30):norm(2, 1) } end,
    extremes = function(x) return { x:amax(1), x:argmin(2), x:max() } end,
    cumsum = function(x) return { x:cumsum(1), x:cumsum(2) } end,
    softmax = function(x) return { x:softmax(1), x:softmax(2), x:log_softmax(2), x:logsumexp(1) } end,
    angles = function(x) return { (x * 100):sin(), (x * 100):cos(), (x * 1000):tan(), (x * 1e20):sin() } end,
    functions = function(x)
        return { x:exp(), x:tanh(), x:sigmoid(), x:erf(), tide.gelu(x), tide.silu(x), (x * 60):sinh(), x:abs():pow(2.3) }
    end,
    index = function(x)
        local at = tide.randint(1, 100, { 5000 })
        return { x:index_select(1, at), tide.zeros(100, 40):to(x.dtype):index_add(1, at, normal("float32", 5000, 40)
            :to(x.dtype)) }
    end,
    sort = function(x) return { tide.randperm(50000), x:nonzero() } end,
}
local names = {}
for name in pairs(large) do
    names[#names + 1] = name
end
table.sort(names)
for _, dtype in ipairs { "float32", "float64", "float16" } do
    for _, name in ipairs(names) do
        case(("large.%s.%s"):format(name, dtype), function() return large[name](normal(dtype, 171, 401)) end)
    end
end
case("large.cross_entropy", function()
    local class = tide.randint(1, 10, { 3000 })
    return with_gradients(function(x) return tide.cross_entropy(x, class) end, tide.randn(3000, 10))
end)
case("large.max_pool2d", function()
    return with_gradients(function(x) return tide.max_pool2d(x, 2) end, tide.randn(8, 6, 30, 30))
end)
case("large.avg_pool2d", function()
    return with_gradients(function(x) return tide.avg_pool2d(x, 2) end, tide.randn(8, 6, 30, 30))
end)
for _, dtype in ipairs { "float32", "float64", "float16", "bfloat16" } do
    case("large.rand." .. dtype, function() return { tide.rand(30001, { dtype = tide[dtype] }) } end)
    case("large.randn." .. dtype, function() return { tide.randn(30001, { dtype = tide[dtype] }) } end)
end

-- ---- training ----

case("training.20_steps", function()
    local nn, optim = require "tide.nn", require "tide.optim"
    local model = nn.Sequential(nn.Conv2d(1, 8, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3), nn.GELU(), nn.Flatten(), nn.Linear(16 * 5 * 5, 10))
    local sgd = optim.SGD(model:parameters(), { lr = 0.05, momentum = 0.9 })
    local x, class = tide.randn(64, 1, 14, 14), tide.randint(1, 10, { 64 })
    local losses = {}
    for step = 1, 20 do
        sgd:zero_grad()
        local loss = tide.cross_entropy(model(x), class)
        loss:backward()
        sgd:step()
        losses[step] = loss:detach()
    end
    for _, p in ipairs(model:parameters()) do
        losses[#losses + 1] = p:detach()
    end
    return losses
end)
