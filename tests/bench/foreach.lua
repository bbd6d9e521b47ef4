-- foreach.lua: lists of tensors in a loop and at once: add, SGD with momentum and Adam over 100 and 500 tensors of
-- 1,000 floats and over ResNet-50's parameters. One thread; foreach.py has the same cases in PyTorch.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local models = loadfile(here .. "models.lua")(bench)
local foreach, optim = tide.foreach, tide.optim

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

-- ---- optimizers ----

-- What three steps make of the parameters, for comparing.
local function after_three(step, params)
    return function()
        for _ = 1, 3 do
            step()
        end
        return params
    end
end

local function zeros(params) return models.tensors(params, tide.zeros_like) end

-- What each way needs: a function of the parameters that gives a step.
local ways = {
    { "sgdm_loop_", function(params)
        local buffers = zeros(params)
        return function() sgdm_loop(params, buffers) end
    end },
    { "sgdm_foreach_", function(params)
        local sgd = optim.SGD(params, { lr = 0.01, momentum = 0.9 })
        return function() sgd:step() end
    end },
    { "adam_loop_", function(params)
        local moments, n = models.tensors(params, function(p) return { avg = tide.zeros_like(p), square = tide.zeros_like(p) } end), 0
        return function()
            n = n + 1
            adam_loop(params, moments, n)
        end
    end },
    { "adam_foreach_", function(params)
        local adam = optim.Adam(params, { lr = 0.001 })
        return function() adam:step() end
    end },
}

local function optimizers(name, shapes)
    for _, way in ipairs(ways) do
        bench.made(way[1] .. name, function()
            local params = models.parameters(shapes)
            local step = way[2](params)
            return step, after_three(step, params)
        end, one)
    end
end

-- What memory gives: reads and writes of 25.6 million floats that no cache holds.
bench.made("memory_25.6M_3x", function()
    local x, y = tide.zeros(bench.size(25600000)), tide.ones(bench.size(25600000))
    return function() return x:add_(y) end
end, one)

for _, n in ipairs { 100, 500 } do
    local shapes, name = models.equal_shapes(n), n .. "x1k"
    for _, way in ipairs { { "add_loop_", add_loop }, { "add_foreach_", foreach.add_ } } do
        bench.made(way[1] .. name, function()
            local a, b = models.tensors(shapes, tide.zeros), models.tensors(shapes, tide.ones)
            local function add() way[2](a, b) end
            return add, after_three(add, a)
        end, one)
    end
    optimizers(name, shapes)
end
optimizers("resnet50", models.resnet50_shapes())
