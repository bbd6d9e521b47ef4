-- soak.lua SECONDS SEED: work of every kind, drawn at random, for so long. Resident memory after the first minute
-- (or tenth) may grow by a sixteenth and a few megabytes until the end, and no more; tensors and Lua's heap, looked
-- at when everything is let go, not at all.
local SECONDS, SEED = tonumber(arg[1]), tonumber(arg[2])
local SLACK_KB, SLACK_LUA_KB, SLACK_TENSORS = 24 << 10, 512, 64 << 10
local nn, optim, grad = tide.nn, tide.optim, tide.autograd.grad

math.randomseed(SEED)
tide.manual_seed(SEED)
local random = math.random

local function resident_kb()
    for line in io.lines("/proc/self/status") do
        local kb = line:match("^VmRSS:%s*(%d+)")
        if kb then
            return tonumber(kb)
        end
    end
    error("no VmRSS in /proc/self/status")
end

-- ---- kinds of work ----

local net = nn.Sequential(nn.Conv2d(1, 4, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(2),
    nn.Linear(4 * 4 * 4, 10))
local sgd = optim.SGD(net:parameters(), { lr = 1e-3, momentum = 0.9 })
local loss = nn.CrossEntropyLoss()
local work = {}

function work.training_step()
    local x, target = tide.rand(16, 1, 8, 8), tide.randint(1, 11, { 16 })
    sgd:zero_grad()
    loss(net(x), target):backward()
    sgd:step()
end

function work.another_network()
    local width = random(1, 40)
    local model = nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1))
    local step = optim.SGD(model:parameters(), { lr = 0.1 })
    model(tide.rand(4, width)):sum():backward()
    step:step()
    model:load_state_dict(model:state_dict())
    return tostring(model), tostring(step)
end

function work.convolutions_of_other_shapes()
    local c, k = random(1, 6), random(1, 4)
    local x = tide.rand(random(1, 3), c, random(4, 40), random(4, 40), { requires_grad = true })
    local w = tide.rand(random(1, 6), c, k, k, { requires_grad = true })
    tide.conv2d(x, w, nil, random(1, 2), random(0, 2)):sum():backward()
end

function work.products_of_other_shapes()
    local m, n, k = random(0, 90), random(1, 90), random(1, 90)
    local dtype = random(2) == 1 and "float64" or "float32"
    return tide.matmul(tide.rand(m, k, { dtype = dtype }), tide.rand(k, n, { dtype = dtype })):sum():item()
end

local unary = { "exp", "sin", "sqrt", "relu", "sigmoid", "abs", "neg", "tanh", "floor", "log1p" }
function work.random_program()
    local values = { tide.rand(random(1, 300), random(1, 30)) }
    for k = 2, random(2, 30) do
        local x = values[random(#values)]
        local kind = random(8)
        values[k] = kind <= 3 and tide[unary[random(#unary)]](x) or kind == 4 and x + x.T:contiguous().T
            or kind == 5 and x:sum(1, { keepdim = true }):expand(x.shape) or kind == 6 and x:t()
            or kind == 7 and x[{ { 1, -1, random(2) } }] or x:to("float16"):to("float32")
    end
end

function work.writes_in_place_with_history()
    local x = tide.rand(random(1, 20000), { requires_grad = true })
    local y = x * 1
    y:exp_()
    local z = y * 2
    z["1:" .. random(z:numel())]:mul_(2)
    z:add_(1)
    z:sum():backward()
    local v = tide.rand(random(1, 20000), { requires_grad = true })
    local w = v * 1
    w:sin_() -- whose gradient reads what is written over
    w:sum():backward()
    assert((v.grad - v:detach():cos()):abs():max():item() < 1e-6)
end

function work.gradients_of_gradients()
    local x = tide.rand(random(1, 5000), { requires_grad = true })
    local first = grad((x ^ 3):sum(), x, { create_graph = true })[1]
    first:sum():backward()
end

function work.errors()
    for _, wrong in ipairs { function() return tide.ones(2) + tide.ones(3) end, function() return tide.zeros(-1) end,
        function() return tide.zeros(1 << 50) end, function() return tide.sum("x", { [("y"):rep(500)] = 1 }) end,
        function() return tide.ones(2)[{ 7 }] end, function() return nn.Linear(2, "x") end,
        function() return tide.ones(2, { requires_grad = true }):backward(tide.ones(3)) end } do
        assert(not pcall(wrong))
    end
end

function work.an_error_in_a_callback()
    local x = tide.rand(3, { dtype = "float64", requires_grad = true })
    local calls = random(0, 5)
    assert(not pcall(tide.autograd.gradcheck, function(v)
        calls = calls - 1
        return calls < 0 and error("enough") or (v * v):sum()
    end, x))
    assert(not pcall(tide.profiler.profile, function() return tide.ones(2) + error("enough") end))
    assert(not pcall(tide.no_grad, error, "enough"))
    assert(tide.is_grad_enabled())
end

function work.printing()
    local x = (tide.rand(random(1, 60), random(1, 60)) - 0.5) * 10 ^ random(-8, 8)
    return #tostring(x) + #tostring(x:long()) + #tostring(x:gt(0)) + #tostring(x.shape)
end

function work.tables()
    local x = tide.rand(random(1, 40), random(1, 40))
    assert(tide.tensor(x:tolist()).shape == x.shape)
end

function work.profiles()
    local p = tide.profiler.profile(function() return (tide.rand(10, { requires_grad = true }) * 2):sum():backward() end)
    return p:table(), #p:events(), p:export_chrome_trace("/dev/null")
end

function work.coroutines()
    local co = coroutine.wrap(function(x)
        local _ <close> = tide.no_grad()
        while true do
            x = coroutine.yield(x * 2)
        end
    end)
    for _ = 1, random(5) do
        co(tide.rand(1000))
    end
    assert(tide.is_grad_enabled())
end

function work.indices()
    local x = tide.rand(random(2, 200), random(2, 50))
    local rows = tide.randint(1, x.shape[1] + 1, { random(1, 50) })
    x[rows] = x[rows] * 2
    x[x:gt(0.5)] = 0
    return x:nonzero(), x:argmax(1), x:gather(1, tide.ones_like(x):long())
end

function work.chunks_and_functions()
    local name = "f" .. random(1000)
    local f = load(("local x = ... return tide._function('%s(Tensor x)', 'Twice.', function(x) return x * 2 end)(x)"):format(name))
    return f(tide.rand(10)):sum():item()
end

function work.generators() return tide.rand(100, { generator = tide.Generator(random(1 << 30)) }) end

-- ---- the loop ----

local names = {}
for name in pairs(work) do
    names[#names + 1] = name
end
table.sort(names)

-- What is left when everything is let go: resident kilobytes, Lua's, and bytes of tensors.
local function measure()
    collectgarbage()
    collectgarbage()
    return { resident = resident_kb(), lua = collectgarbage("count"), tensors = tide.memory_allocated() }
end

local start, first, rounds = tide.time(), nil, 0
local settled = math.min(60, SECONDS / 10)
repeat
    for _ = 1, 20 do
        local name = names[random(#names)]
        local ok, err = pcall(work[name])
        if not ok then
            print(("%s (round %d): %s"):format(name, rounds, err))
            os.exit(1)
        end
        rounds = rounds + 1
    end
    local spent = tide.time() - start
    if not first and spent >= settled and rounds >= 2000 then
        first = measure()
    end
until first and spent >= SECONDS

local last, found = measure(), 0
local function check(what, is, was, most)
    if is > most then
        found = found + 1
        print(("%s grew from %d to %d, at most %d expected"):format(what, was, is, most))
    end
end
check("resident memory (KB)", last.resident, first.resident, first.resident + first.resident // 16 + SLACK_KB)
check("Lua's heap (KB)", last.lua, first.lua, first.lua + SLACK_LUA_KB)
check("memory of tensors (bytes)", last.tensors, first.tensors, first.tensors + SLACK_TENSORS)
print(("figure: soak_rounds %d rounds"):format(rounds))
print(("figure: soak_resident_first %.1f MB"):format(first.resident / 1024))
print(("figure: soak_resident_last %.1f MB"):format(last.resident / 1024))
os.exit(found == 0 and 0 or 1)
