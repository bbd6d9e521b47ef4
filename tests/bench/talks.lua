-- talks.lua: the cases of the talks: the distances of two sets of points pair by pair and at once, ten multiplications
-- one after the other, what single elements cost, take against gather over dtypes and sizes. The loops of foreach.lua
-- belong to them too. One thread; talks.py has the same cases in PyTorch.
-- Results are left to the collector, as the talks' loops leave them.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local one = { threads = 1 }

-- ---- distances ----

local x, y = bench.uniform { 100, 2 }, bench.uniform { bench.size(200), 2 }

local function pairwise_loop()
    local out = tide.empty(x.shape[1], y.shape[1])
    for i = 1, x.shape[1] do
        local point, row = x[i], out[i]
        for j = 1, y.shape[1] do
            local d = point - y[j]
            row[j] = (d * d):sum():sqrt()
        end
    end
    return out
end

local function pairwise_batched()
    local d = x:unsqueeze(2) - y:unsqueeze(1)
    return (d * d):sum(3):sqrt()
end

bench.case("pairwise_loop_100x200x2", pairwise_loop, one)
bench.case("pairwise_batched_100x200x2", pairwise_batched, one)

-- ---- ten multiplications ----

local function ten(v, factor)
    local p = v
    for _ = 1, 10 do
        p = p * factor
    end
    return p
end

for _, n in ipairs { 5, 1000, 100000, 10000000 } do
    bench.made("mul10_eager_" .. n, function()
        local v = bench.uniform({ bench.size(n) }, 0.5, 1.5)
        return function() return ten(v, v) end
    end, one)
end

-- ---- single elements ----

local a, b = tide.ones(1), tide.ones(1)
local g, list = tide.ones(1, { requires_grad = true }), tide.ones(10)
bench.case("add_1", function() return a + b end, one)
bench.case("add_1_inplace", function() return a:add_(b) end, one)
bench.case("add_1_grad", function() return g + b end, one)
bench.case("select_1", function() return list[3] end, one)
local function backward() ten(g, b):backward() end
bench.case("backward_chain10_scalar", backward, { threads = 1, result = function()
    backward()
    return g.grad
end })

-- ---- take against gather ----

local sizes = { { "1k", 1000 }, { "100k", 100000 }, { "1M", 1000000 } }
for _, name in ipairs { "uint8", "int32", "int64", "float16", "float32", "float64" } do
    for _, size in ipairs(sizes) do
        local n = bench.size(size[2])
        local function operands() return bench.ints({ n }, 0, 100):to(tide[name]), bench.ints({ n }, 1, n + 1) end
        bench.made(("take_%s_%s"):format(name, size[1]), function()
            local from, index = operands()
            return function() return from:take(index) end
        end, one)
        bench.made(("gather_%s_%s"):format(name, size[1]), function()
            local from, index = operands()
            return function() return from:gather(1, index) end
        end, one)
    end
end
