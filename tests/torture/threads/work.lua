-- work.lua: what one Lua state does among others on other threads: random steps, each of which knows what must
-- come out. Called with a seed, the time to stop at (tide.time) and a folder of its own; returns how many steps it
-- took, how many of them were interrupted, and a line about what was wrong, if anything.
local seed, stop_at, folder = ...
local tide = require "tide"
local nn = tide.nn

local function random_of(seed_of_step) -- a generator of its own: math.random's belongs to the state, steps come and go
    local state = seed_of_step
    return function(n)
        state = (state * 6364136223846793005 + 1442695040888963407)
        return (state >> 33) % n + 1
    end
end

local function check(condition, what)
    if not condition then
        error("wrong: " .. what, 0)
    end
end

local function near(a, b, what)
    check(math.abs(a - b) <= 1e-4 * math.max(1, math.abs(b)), ("%s: %.9g, expected %.9g"):format(what, a, b))
end

local steps = {}

function steps.elementwise(random)
    local n = 10 ^ (random(5) + 1) // 1 | 0
    local x = tide.full({ n }, random(7))
    local y = x * 2 + x:sqrt() * x:sqrt() - x
    near(y:sum():item(), 2 * x:sum():item(), "sum of a long expression")
end

function steps.gradient(random)
    local n = 10 ^ (random(4) + 1) // 1 | 0
    local x = tide.ones(n, { requires_grad = true })
    local k = random(9)
    for _ = 1, 3 do
        ((x * k):exp():log() * k):sum():backward()
    end
    near(x.grad:sum():item(), 3 * n * k * k, "gradient")
end

function steps.product(random)
    local n = 8 * random(24)
    local a = tide.ones(n, n, { dtype = random(2) == 1 and tide.float32 or tide.float64, requires_grad = true })
    local c = a:matmul(a)
    near(c[n][n]:item(), n, "product")
    c:sum():backward()
    near(a.grad[1][n]:item(), 2 * n, "gradient of a product")
end

function steps.layers(random)
    local batch = random(6)
    local model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 9 * 9, 5))
    local optimizer = tide.optim.SGD(model:parameters(), { lr = 0.01, momentum = 0.9 })
    local x, t = tide.randn(batch, 1, 20, 20), tide.ones(batch, { dtype = tide.int64 })
    local criterion, first, last = nn.CrossEntropyLoss(), nil, nil
    for _ = 1, 6 do
        optimizer:zero_grad()
        local loss = criterion(model(x), t)
        loss:backward()
        optimizer:step()
        last = loss:item()
        first = first or last
    end
    check(last < first, "a loss that does not fall")
end

function steps.random(random)
    local x = tide.randn(20000)
    check(math.abs(x:mean():item()) < 0.1, "mean of a normal draw")
    local p = tide.randperm(random(100000))
    check(p:sum():item() == #p * (#p + 1) // 2, "a permutation")
end

function steps.threads(random)
    tide.set_num_threads(random(4))
    check(tide.get_num_threads() <= 4, "number of threads")
end

function steps.garbage(random)
    for _ = 1, 200 do
        local _ = tide.ones(random(1000))
    end
    collectgarbage(random(3) == 1 and "collect" or "step")
end

function steps.wide(random) -- programs that need memory of each worker
    local x = tide.ones(300000)
    local y = x
    for _ = 1, random(20) + 10 do
        y = y * x + x * 0
    end
    near(y:sum():item(), 300000, "a long chain")
end

local function count(profile, name)
    local n = 0
    for _, event in ipairs(profile:events()) do
        check(event.name ~= "foreign", "an event of another state")
        n = n + (event.name == name and 1 or 0)
    end
    return n
end

-- Runs another step inside a recording, which sees that step's work and no other state's.
function steps.recording(random, name, step)
    local mine = "state " .. seed
    local profile = tide.profiler.profile()
    local _ <close> = profile
    for _ = 1, 3 do
        local range <close> = tide.profiler.record(mine)
        step(random)
    end
    profile:stop()
    check(count(profile, mine) == 3, "ranges of a recording of " .. name)
    for _, event in ipairs(profile:events()) do
        check(not event.name:find("^state ") or event.name == mine, "a range of another state")
    end
    check(#tostring(profile) > 0, "a table")
    if random(4) == 1 then
        profile:export_chrome_trace(folder .. "/trace.json")
    end
end

local names = {}
for name in pairs(steps) do
    names[#names + 1] = name
end
table.sort(names)

local taken, interrupted = 0, 0
while tide.time() < stop_at do
    local random = random_of(seed * 1000003 + taken)
    local name, inner = names[random(#names)], nil
    repeat
        inner = names[random(#names)]
    until inner ~= "recording"
    taken = taken + 1
    local ok, message = pcall(steps[name], random, inner, steps[inner])
    if not ok then
        if not tostring(message):find("interrupted", 1, true) then
            return taken, interrupted, ("step %d (%s, %s): %s"):format(taken, name, inner, message)
        end
        interrupted = interrupted + 1
    end
end
return taken, interrupted, nil
