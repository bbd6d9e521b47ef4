-- operators.lua: what single operators cost: dispatch on one element, memory and arithmetic on many.
local here = arg[0]:match("^(.*/)") or "./"
local tide = require "tide"
local bench = dofile(here .. "bench.lua")
tide.manual_seed(0)

local a, b = tide.ones(1), tide.ones(1)
bench.case("add 1", function() local _ = a + b end, { threads = 1 })
bench.case("mul_scalar 1", function() local _ = a * 2 end, { threads = 1 })
bench.case("add_ 1", function() a:add_(b) end, { threads = 1 })
bench.case("sum 1", function() local _ = a:sum() end, { threads = 1 })
local g = tide.ones(1, { requires_grad = true })
bench.case("add_recorded 1", function() local _ = g + b end, { threads = 1 })
bench.case("mul_backward 1", function()
    local y = g * b
    y:backward()
end, { threads = 1 })
bench.case("select 10", function() local _ = tide.ones(10)[3] end, { threads = 1 })
local m2 = tide.ones(2, 2)
bench.case("matmul 2x2", function() local _ = m2:mm(m2) end, { threads = 1 })

for _, n in ipairs { 1000, 1000000, 10000000 } do
    local x, y = tide.randn(n), tide.randn(n)
    bench.case(("add %d"):format(n), function() local _ <close> = x + y end)
    bench.case(("exp %d"):format(n), function() local _ <close> = x:exp() end)
    bench.case(("sum %d"):format(n), function() local _ <close> = x:sum() end)
end

local s = tide.randn(256, 1000)
bench.case("softmax 256x1000", function() local _ <close> = s:softmax(2) end)
local big = tide.randn(2048, 1024)
bench.case("transpose_copy 2048x1024", function() local _ <close> = big:t():contiguous() end)
bench.case("sum_dim1 2048x1024", function() local _ <close> = big:sum(1) end)
bench.case("randn 1000000", function() local _ <close> = tide.randn(1000000) end)

for _, n in ipairs { 32, 128, 512, 1024 } do
    local x, y = tide.randn(n, n), tide.randn(n, n)
    bench.case(("matmul %dx%d"):format(n, n), function() local _ <close> = x:mm(y) end)
end

local images, kernels = tide.randn(32, 64, 28, 28), tide.randn(64, 64, 3, 3)
bench.case("conv2d 32x64x28x28", function() local _ <close> = tide.conv2d(images, kernels, nil, 1, 1) end)
bench.case("max_pool2d 32x64x28x28", function() local _ <close> = tide.max_pool2d(images, 2) end)
