-- step.lua: work whose n-th request for memory fails (nth.c is preloaded): step.lua WORK HOW N.
-- Prints what was wrong; with N = 0 the number of requests that the work makes.
local work, how, n = arg[1], arg[2], tonumber(arg[3])
local shape = n + 1 -- of convolutions: plans are made anew for each
local faults = os.getenv
assert(faults("faults:off"), "nth.c is not preloaded")

local function say(...)
    print(work, how, n, ...)
end

-- ---- what is done ----

local works = {}

-- The first `require` of a plain state; the second must succeed.
function works.require()
    package.loaded.tide, tide = nil, nil
    local t = require "tide"
    return t.ones(3):sum():item()
end

local tide = work ~= "require" and require "tide"

-- A convolution of ever other shapes, with its gradient, and products of every library.
function works.convolution()
    tide.manual_seed(7)
    local channels, size = 8 + shape % 5, 8 + shape % 11 -- enough of them for oneDNN
    local x = tide.randn(2, channels, size, 12)
    local w = tide.randn(16, channels, 3, 3, {requires_grad = true})
    local y = tide.conv2d(x, w):sum()
    y:backward()
    local a = tide.randn(70, 80)
    local b = a:matmul(a:t())
    return y:item() + w.grad:sum():item() + b:sum():item() + a:double():matmul(a:double():t()):sum():item()
end

local model, optimizer
if work == "training" then
    local nn = tide.nn
    tide.manual_seed(1)
    model = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 4))
    optimizer = tide.optim.SGD(model:parameters(), {lr = 0.01})
end

-- A step of training whose loss is taken without the step's effect.
function works.training()
    tide.manual_seed(7)
    local x, target = tide.randn(16, 12), tide.ones(16, 4)
    local loss = ((model(x) - target) ^ 2):mean()
    optimizer:zero_grad()
    loss:backward()
    local total = 0
    for _, p in ipairs(model:parameters()) do
        total = total + p.grad:sum():item()
    end
    return loss:item() + total
end

-- Operators that return lists, tables, texts, indices.
function works.lists()
    local x = tide.arange(60):reshape(12, 5)
    local total = 0
    for _, part in ipairs(x:split(5)) do
        total = total + part:sum():item()
    end
    local values, places = x:max(1)
    total = total + values:sum():item() + places:sum():item() + #tostring(x) + #x:tolist()
    total = total + x[x:gt(30)]:sum():item() + x["3:7"]:sum():item()
    local co = coroutine.wrap(function()
        coroutine.yield(tide.cat({x, x}):sum():item())
    end)
    return total + co() + #tide.tensor({{1, 2}, {3, 4}}):tolist()
end

-- Quantized tensors of both kinds, what moves them, and products of bytes.
function works.quantized()
    local total = 0
    tide.manual_seed(7)
    local x, w = tide.randn(5, 18), tide.randn(20, 18)
    local q = tide.quantize_per_tensor(x, 0.05, 100, tide.quint8)
    local rows = tide.quantize_per_channel(w, tide.ones(20) * 0.02, tide.zeros(20, {dtype = tide.int64}), 1, tide.qint8)
    local packed = tide._quantized_pack(rows)
    local y = tide._quantized_linear(q, packed, tide.ones(20), 0.5, 60)
    local z = tide._quantized_linear_dynamic(x, packed, tide.ones(20))
    local copy = tide.cat({q, y:t():t()[{{}, {1, 18}}]:clone()}, 1)
    copy[2] = x[1]
    local images = tide.quantize_per_tensor(tide.randn(2, 4, 6, 5), 0.05, 100, tide.quint8)
    for _, groups in ipairs {1, 2, 4} do
        local kernels = tide._quantized_pack(tide.quantize_per_tensor(tide.randn(4, 4 // groups, 3, 3), 0.02, 3, tide.qint8), groups)
        local made = tide._quantized_conv(images, kernels, tide.ones(4), 0.1, 90, {3, 3}, {1, 1}, {1, 1}, {1, 1}, true, images)
        made = tide._quantized_add(made, tide._quantized_mul(images, images, 0.1, 80), 0.1, 90, true)
        total = total + tide.avg_pool2d(tide.max_pool2d(made, 2), 2):relu():mean{3, 4}:dequantize():sum():item()
    end
    for _, dtype in ipairs {"int8", "int4", "int6"} do
        total = total + tide.quantization.quantize_weights(tide.nn.Linear(18, 20), {dtype = dtype})(x):sum():item()
    end
    local bag = tide.nn.quantized.EmbeddingBag.from_float(tide.nn.EmbeddingBag(6, 4))
    total = total + bag(tide.tensor {1, 6, 6}, tide.tensor {1, 3}):sum():item()
    return total + copy:dequantize():sum():item() + z:sum():item() + rows:t()[3]:int_repr():sum():item()
        + (tide.equal(q, copy[{{1, 5}}]) and 1 or 0)
end

-- ---- with a failure ----

local do_it = works[work]

local function used()
    collectgarbage()
    collectgarbage()
    return package.loaded.tide and package.loaded.tide.memory_allocated() or 0
end

-- Reports count as requests too, so nothing is printed while the switch is on.
local function attempt(command)
    assert(faults(command) == "armed") -- the word lies in the state: the answer asks for nothing
    local good, result = pcall(do_it)
    local requests = faults("faults:off")
    return good, result, requests
end

if tide then
    -- Nothing gets out of a parallel region of C++; and what one thread finds room for before it enters oneDNN, which
    -- looks at no answer of malloc while it plans, another may have taken when it is asked for.
    tide.set_num_threads((how == "new" or how == "from" and work == "convolution") and 1 or 2)
    tide.ones(1000000):sin():sum() -- the team of threads is there
    do_it()
    do_it()
end
shape = n
if n == 0 then
    local _, _, requests = attempt(("faults:%s:1000000000"):format(how))
    print(requests)
    return
end
local before = used()
local good, result = attempt(("faults:%s:%d"):format(how, n))
local text = tostring(result)
if not good and not text:find("memory") then
    say("says", text)
end
if not good then
    result = nil
end
if tide and used() > before then
    say("leaks", used() - before)
end
local again, after = pcall(do_it)
local last, want = pcall(do_it)
if not again or not last or after ~= want or result and result ~= want then
    say("gave", result, after, want)
end
