-- test_once.lua: every kind of kernel once, over little, against the CPU: what compute-sanitizer's tools, under which a
-- kernel takes a hundred times as long, are run over (tests/cuda-on-cpu/sanitize).
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("every kind of kernel", "no CUDA device")
    return
end

tide.manual_seed(3)
local nn = tide.nn

t.test("pointwise_programs", function()
    local x, y = tide.randn(300, 7), tide.randn(300, 7)
    both.close(1e-6, function(a, b) return a + b, (a * b):exp():clamp(0, 9), a:where(a:gt(b), b) end, x, y)
    both.close(1e-6, function(a, b) return a:t() + b:t():contiguous() end, x, y)
    both.same(function(a) return a:to("int32"), a:to("float16"), a:gt(0) end, x)
    both.same(function(a) return tide.arange(1, 300, 2, { device = a.device }) end, x)
end)

t.test("reductions_scans_and_softmax", function()
    local x = tide.rand(70, 33) + 0.5
    both.close(1e-5, function(a) return a:sum(), a:sum(1), a:mean(2), a:var(2), a:norm(), a:prod(2) end, x)
    both.same(function(a) return a:max(2) end, x)
    both.same(function(a) return a:argmin(1), a:any(), a:amax(1) end, x)
    both.close(1e-5, function(a) return a:cumsum(1), a:cumsum(2), a:softmax(2), a:log_softmax(1) end, x)
end)

t.test("indices", function()
    local x, i = tide.randn(40, 9), tide.randint(1, 41, { 300 })
    both.same(function(a, k) return a:index_select(1, k), a[k], a:gather(1, k:reshape(-1, 1):expand(-1, 9)) end, x, i)
    both.close(1e-5, function(a, k)
        local rows = tide.ones(300, 9, { device = a.device })
        return a:index_add(1, k, rows), a:scatter_add(1, k:reshape(-1, 1):expand(-1, 9), rows)
    end, x, i)
    both.same(function(a) return a:nonzero(), a[a:gt(0)] end, x)
    both.same(function(a) return a:tril(), a:triu(2) end, x)
    both.same(function(a, k) -- beyond the end: refused, and nothing is read there
        t.is_false(pcall(function()
            a:index_select(1, k + 40)
            tide.synchronize(a.device)
        end))
        return a
    end, x, i)
end)

t.test("products_and_convolutions", function()
    both.close(1e-5, function(a, b) return a:matmul(b), a:t():matmul(a) end, tide.randn(70, 65), tide.randn(65, 33))
    both.close(1e-5, function(a, b) return a:matmul(b) end, tide.randn(3, 5, 300), tide.randn(3, 300, 4))
    both.same(function(a, b) return a:matmul(b) end, both.elements("int32", 9, 8), both.elements("int32", 8, 7))
end)

t.test("bytes_and_weights_of_few_bits", function()
    tide.manual_seed(6)
    local quantized = nn.quantized
    local net = nn.Sequential(quantized.Conv2d(8, 8, 3, { padding = 1, in_scale = 0.05, in_zero_point = 100 }), quantized.Conv2d(8, 8, 3, { groups = 8 }),
        nn.Flatten(), quantized.Linear(8 * 16, 10, { floats = true }), quantized.dynamic.Linear(10, 32),
        quantized.WeightOnlyLinear.from_float(nn.Linear(32, 7), { dtype = "int4" }))
    for k = 1, 4 do
        local layer = net[k]
        if layer.weight then
            layer.weight = tide.quantize_per_tensor(tide.randn(layer.weight.shape), 0.02, -3, tide.qint8)
        end
    end
    local x = tide.randn(2, 8, 6, 6)
    local want = net(x)
    t.is_true(tide.equal(net:cuda()(x:cuda()):cpu(), want))
    local f = quantized.QFunctional { scale = 0.1, zero_point = 50 }
    local a = tide.quantize_per_tensor(x, 0.05, 100, tide.quint8)
    t.is_true(tide.equal(f:add(a:cuda(), a:cuda()):sigmoid():cpu(), f:add(a, a):sigmoid()))
end)

-- Forward, backward and a step of networks that use the kernels of layers.
t.test("layers_and_their_gradients", function()
    local function train(device)
        tide.manual_seed(5)
        local net = nn.Sequential(nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.GELU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, { padding = 1, groups = 2 }), nn.GroupNorm(2, 8), nn.AvgPool2d(2),
            nn.Upsample { scale_factor = 2, mode = "bilinear" }, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LayerNorm(32),
            nn.Linear(32, 10)):to(device)
        local words = nn.Embedding(20, 10):to(device)
        local x, y = tide.randn(6, 3, 12, 12):to(device), tide.randint(1, 11, { 6 }):to(device)
        local params = net:parameters()
        params[#params + 1] = words.weight
        local opt, losses = tide.optim.Adam(params, { lr = 0.01 }), {}
        for step = 1, 2 do
            opt:zero_grad()
            local loss = tide.cross_entropy(net(x) + words(y), y)
            loss:backward()
            opt:step()
            losses[step] = loss:item()
        end
        return losses
    end
    t.close(train("cuda"), train("cpu"), 1e-3)
end)

t.test("draws", function()
    both.same(function(a)
        tide.manual_seed(9)
        return tide.rand(1000, { device = a.device }), tide.randint(1, 7, { 99 }, { device = a.device })
    end, tide.ones(1))
end)

t.test("a_recorded_graph", function()
    local x = tide.ones(300):cuda()
    local graph, y = tide.cuda.graph(function() return (x * 2):sum() end)
    x:fill_(3)
    graph:replay()
    t.eq(y:item(), 1800)
end)
