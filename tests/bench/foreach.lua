-- foreach.lua: lists of tensors in a loop and at once: add, SGD with momentum and Adam over 100 and 500 tensors of
-- 1,000 floats and over ResNet-50's parameters. One thread; foreach.py has the same cases in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local foreach, optim = tide.foreach, tide.optim

-- ResNet-50: per stage its blocks and width; every convolution has a normalisation behind it.
local function resnet50()
    local shapes = {}
    local function conv(out, into, k)
        shapes[#shapes + 1] = { out, into, k, k }
        shapes[#shapes + 1], shapes[#shapes + 2] = { out }, { out }
    end
    conv(64, 3, 7)
    local into = 64
    for stage, blocks in ipairs { 3, 4, 6, 3 } do
        local width = 64 << (stage - 1)
        for block = 1, blocks do
            conv(width, into, 1)
            conv(width, width, 3)
            conv(4 * width, width, 1)
            if block == 1 then
                conv(4 * width, into, 1)
            end
            into = 4 * width
        end
    end
    shapes[#shapes + 1], shapes[#shapes + 2] = { 1000, 2048 }, { 1000 }
    return shapes
end

local function equal(n)
    local shapes = {}
    for k = 1, n do
        shapes[k] = { 1000 }
    end
    return shapes
end

local function tensors(shapes, make)
    local list = {}
    for k, shape in ipairs(shapes) do
        list[k] = make(shape)
    end
    return list
end

local function parameters(shapes)
    return tensors(shapes, function(shape)
        local p = tide.randn(shape):requires_grad_()
        p.grad = tide.randn(shape)
        return p
    end)
end

local function add_loop(a, b)
    for k = 1, #a do
        a[k]:add_(b[k])
    end
end

local function sgdm_loop(params, state)
    local _ <close> = tide.no_grad()
    for k, p in ipairs(params) do
        local buffer = state[k]
        buffer:mul_(0.9):add_(p.grad)
        p:add_(buffer, { alpha = -0.01 })
    end
end

local function adam_loop(params, state, n)
    local _ <close> = tide.no_grad()
    local size, root = 0.001 / (1 - 0.9 ^ n), (1 - 0.999 ^ n) ^ 0.5
    for k, p in ipairs(params) do
        local s, grad = state[k], p.grad
        s.avg:lerp_(grad, 1 - 0.9)
        s.square:mul_(0.999):addcmul_(grad, grad, { value = 1 - 0.999 })
        local denom = (s.square:sqrt() / root):add_(1e-8)
        p:addcdiv_(s.avg, denom, { value = -size })
    end
end

local one = { threads = 1 }

local function optimizers(name, shapes)
    local params, buffers, moments, n = parameters(shapes), {}, {}, 0
    for k, p in ipairs(params) do
        buffers[k], moments[k] = tide.zeros_like(p), { avg = tide.zeros_like(p), square = tide.zeros_like(p) }
    end
    bench.case("sgdm_loop_" .. name, function() sgdm_loop(params, buffers) end, one)
    local sgd = optim.SGD(params, { lr = 0.01, momentum = 0.9 })
    bench.case("sgdm_foreach_" .. name, function() sgd:step() end, one)
    bench.case("adam_loop_" .. name, function()
        n = n + 1
        adam_loop(params, moments, n)
    end, one)
    local adam = optim.Adam(params, { lr = 0.001 })
    bench.case("adam_foreach_" .. name, function() adam:step() end, one)
end

-- What memory gives: reads and writes of 25.6 million floats that no cache holds.
local function bandwidth()
    local x, y = tide.zeros(25600000), tide.ones(25600000)
    bench.case("memory_25.6M_3x", function() x:add_(y) end, one)
end

for _, n in ipairs { 100, 500 } do
    local a, b = tensors(equal(n), tide.zeros), tensors(equal(n), tide.ones)
    local name = n .. "x1k"
    bench.case("add_loop_" .. name, function() add_loop(a, b) end, one)
    bench.case("add_foreach_" .. name, function() foreach.add_(a, b) end, one)
    optimizers(name, equal(n))
end
bandwidth()
optimizers("resnet50", resnet50())
