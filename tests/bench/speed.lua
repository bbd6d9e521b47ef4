-- speed.lua: the operators of the table of speed: elements, softmax and normalisation, products, and shapes that once
-- were slow. talks.lua, foreach.lua and mixed.lua have the table's other cases; `tests/bench/compare speed` runs them
-- all. One thread but for the cases that name theirs; speed.py has the same in PyTorch.
--
-- A result is dropped as soon as it is there and left to the collector, as a script's loop leaves it: no case closes
-- what a user wouldn't.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local F = tide.nn.functional
local uniform, size = bench.uniform, bench.size

local function case(name, make, options)
    bench.made(name, make, options or { threads = 1 })
end

-- ---- elements ----

local pointwise = {
    { "add", function(x, y) return x + y end }, { "mul", function(x, y) return x * y end },
    { "relu", function(x) return x:relu() end }, { "exp", function(x) return x:exp() end },
    { "tanh", function(x) return x:tanh() end }, { "gelu", function(x) return F.gelu(x) end },
}
for _, n in ipairs { 100000, 10000000 } do
    for _, row in ipairs(pointwise) do
        case(row[1] .. "_" .. n, function()
            local x, y = uniform({ size(n) }, -3, 3), uniform({ size(n) }, -3, 3)
            return function() return row[2](x, y) end
        end)
    end
    case("sum_" .. n, function() -- of one sign: where terms cancel, roundings are all that is left
        local x = uniform({ size(n) }, 0, 3)
        return function() return x:sum() end
    end)
end

-- ---- rows ----

case("softmax_4096x1024", function()
    local x = uniform({ size(4096), size(1024) }, -3, 3)
    return function() return x:softmax(2) end
end)
case("layernorm_4096x1024", function()
    local width = size(1024)
    local x, weight, bias = uniform({ size(4096), width }, -3, 3), uniform { width }, uniform { width }
    return function() return F.layer_norm(x, { width }, weight, bias) end
end)

-- ---- products ----

for _, kind in ipairs { { "f32", tide.float32 }, { "bf16", tide.bfloat16 } } do
    for _, n in ipairs { 64, 256, 1024, 2048 } do
        case(("matmul_%s_%d"):format(kind[1], n), function()
            local side = size(n)
            local x, y = uniform({ side, side }):to(kind[2]), uniform({ side, side }):to(kind[2])
            return function() return x:matmul(y) end
        end)
    end
end
for _, rows in ipairs { 1, 16, 256 } do
    case("linear1024_f32_b" .. rows, function()
        local width = size(1024)
        local x, weight, bias = uniform { size(rows), width }, uniform { width, width }, uniform { width }
        return function() return F.linear(x, weight, bias) end
    end)
end

-- ---- shapes that once were slow ----

case("broadcast_1x48x2_48x1x2", function()
    local x, y = uniform { 1, 48, 2 }, uniform { 48, 1, 2 }
    return function() return x - y end
end)
case("broadcast_2x1x48_2x48x1", function()
    local x, y = uniform { 2, 1, 48 }, uniform { 2, 48, 1 }
    return function() return x - y end
end)
case("conv2d_1x1x1x9000_k91", function()
    local x, weight = uniform { 1, 1, 1, size(9000, 200) }, uniform { 1, 1, 1, 91 }
    return function() return F.conv2d(x, weight) end
end)
case("matmul_256x64x60_denormal", function()
    local x, y = uniform({ size(256), 64 }, 0.5, 1) * 1e-39, uniform({ 64, 60 }, 0.5, 1)
    return function() return x:matmul(y) end
end)
for _, threads in ipairs { 1, 2, 16 } do
    case("softmax_256x64_t" .. threads, function()
        local x = uniform({ 256, 64 }, -3, 3)
        return function() return x:softmax(2) end
    end, { threads = threads })
end
