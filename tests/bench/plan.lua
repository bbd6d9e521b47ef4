-- plan.lua: what quantizing promises, held against data that neither training nor choosing has seen. `NETWORK_plan`: a plan by
-- tide.quantization.plan{loss = 0.2}, its loss on that data, and the processor's time on one thread that the network and the plan take
-- in turns, beside what the plan said. `NETWORK_accuracy_SEED`: the share of right answers in floats, in bytes after calibration and after training with rounding, and
-- in floats after as many steps more; the size of the state in bytes as a share of that in floats.
-- Networks: cnn and resnet (Fashion-MNIST at half its size), letters (an LSTM on a license).
-- With TIDE_BENCH_DATA, a folder, trained weights are kept there and read when they are there.
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench = dofile(here .. "bench.lua")
local root = here .. "../../notebooks/networks/"
local folder = os.getenv "TIDE_BENCH_DATA"
local nn, F, Q = tide.nn, tide.nn.functional, tide.quantization
local size = bench.size

local PROMISE <const>, BATCH <const>, SEEDS <const> = 0.2, 250, 3

-- ---- data: x and y of so many examples from one on ----

local images_of = {}

local function clothes(first, many, train)
    if not images_of[train] then
        local data = tide.data.fashion_mnist { train = train }
        images_of[train] = { F.avg_pool2d((data.data:float():view(-1, 1, 28, 28) / 255 - 0.2860) / 0.3530, 2), data.targets }
    end
    local rows = { { first, first + many - 1 } }
    return images_of[train][1][rows], images_of[train][2][rows]
end

local LENGTH <const> = 64

-- Stretches of letters of a license and of each the next. Its last fifth is what training has not seen.
local letters_of

local function license(first, many, train)
    if not letters_of then
        local file = assert(io.open "/usr/share/common-licenses/GPL-3")
        letters_of = dofile(root .. "text.lua").letters(file:read("a"):lower())
        file:close()
    end
    local cut = #letters_of * 4 // 5
    local low, high = train and 1 or cut, train and cut or #letters_of
    local starts = low + (tide.arange(many) + first) * 7919 % (high - low - LENGTH)
    local rows = letters_of[starts:unsqueeze(2) + tide.arange(LENGTH + 1)]
    return rows[":, :-2"]:contiguous(), rows[":, 2:"]:contiguous()
end

-- What is asked of training: batches of examples first to last.
local function batches_of(data, first, many, train)
    local list = {}
    for k = 1, size(many, 2 * BATCH) // BATCH do
        local x, y = data(first + (k - 1) * BATCH, BATCH, train)
        list[k] = { x, y }
    end
    return list
end

-- ---- networks ----

local function image_loss(y, labels) return F.cross_entropy(y, labels) end
local function image_score(y, labels) return y:argmax(2):eq(labels) end

local function cnn()
    return nn.Sequential(nn.Conv2d(1, 32, 3, { padding = 1 }), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, { padding = 1 }),
        nn.BatchNorm2d(64), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Linear(128, 10))
end

local resnet = dofile(root .. "resnet.lua")

-- batch: examples of a step of training; seen: examples of training; planned: those behind them, from which the plan chooses; other: of the set that is kept apart.
-- of(net, training): the network as prepare and prepare_qat take it.
local NETWORKS <const> = {
    { name = "cnn", make = cnn, data = clothes, loss = image_loss, score = image_score, seen = 40000, planned = 20000, other = 10000, steps = 600,
        rate = 0.05, more = 100, of = function(net) return net end },
    { name = "resnet", make = function() return resnet.new(18, { classes = 10, channels = 1, width = 16, small = true }) end, data = clothes,
        loss = image_loss, score = image_score, seen = 40000, planned = 10000, other = 10000, steps = 300, rate = 0.05, more = 60,
        of = resnet.fused },
    { name = "letters", make = function() return dofile(root .. "rnn.lua").letters(65, 128, 2) end, data = license, planned = 750, other = 500,
        seen = 5000, steps = 300, rate = 1, batch = 16, loss = function(y, tokens) return F.cross_entropy(y:flatten(1, 2), tokens:flatten()) end,
        score = function(y, tokens) return y:argmax(3):eq(tokens) end, of = function(net) return net end },
}

-- SGD with momentum whose rate falls to nothing over the steps.
local function train(net, network, steps, rate, seed)
    local order = tide.Generator():manual_seed(seed)
    local optimizer = tide.optim.SGD(net:parameters(), { lr = rate, momentum = 0.9, weight_decay = 1e-4 })
    local schedule = tide.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    local batch = network.batch or 64
    net:train()
    for _ = 1, steps do
        local first = tide.randint(1, network.seen - batch, { 1 }, { generator = order }):item()
        local x, y = network.data(first, batch, true)
        optimizer:zero_grad()
        network.loss(net(x), y):backward()
        nn.utils.clip_grad_norm_(net:parameters(), 1)
        optimizer:step()
        schedule:step()
    end
    return net:eval()
end

local function trained(network, seed)
    tide.manual_seed(seed)
    local net = network.make()
    local path = folder and ("%s/plan.%s.%d.safetensors"):format(folder, network.name, seed)
    local there = path and io.open(path)
    if there then
        there:close()
        net:load_state_dict(tide.load(path))
        return net:eval()
    end
    train(net, network, size(network.steps, 2), network.rate, seed)
    if path then
        tide.save(net:state_dict(), path)
    end
    return net
end

-- Each sample's score of a network: 1 for what is right.
local function scores(net, network, batches)
    local parts = {}
    for k, batch in ipairs(batches) do
        parts[k] = network.score(net(batch[1]), batch[2]):double():reshape(-1)
    end
    return tide.cat(parts)
end

local function percent(x) return 100 * x:mean():item() end

-- ---- the promise of a plan ----

local function median(list)
    table.sort(list)
    return (list[(#list + 1) // 2] + list[#list // 2 + 1]) / 2
end

-- Medians of the seconds of two calls, in turns.
local function in_turns(first, second, rounds)
    local a, b = {}, {}
    for k = 1, rounds do
        local begun = os.clock()
        first()
        local between = os.clock()
        second()
        a[k], b[k] = between - begun, os.clock() - between
    end
    return median(a), median(b)
end

local function plan_case(name, network)
    local net = network.of(trained(network, 1))
    tide.set_num_threads(1)
    local _ <close> = tide.no_grad()
    local plan = Q.plan(net, batches_of(network.data, network.seen + 1, network.planned, true), { loss = PROMISE, score = network.score, timer = os.clock })
    local small = plan:apply(net)
    local other = batches_of(network.data, 1, network.other, false)
    local off = scores(net, network, other) - scores(small, network, other)
    local x = other[1][1]
    local floats = net:clone()
    local seconds, float_seconds = in_turns(function() small(x) end, function() floats(x) end, bench.tiny and 1 or 31)
    local kinds = {}
    for k, layer in ipairs(plan.layers) do
        kinds[k] = layer.kind
    end
    print(('{"case": "%s", "promise": %g, "loss": %.3f, "margin": %.3f, "other_loss": %.3f, "other_margin": %.3f, "said_s": %.4g, "median_s": %.4g, '
        .. '"float_said_s": %.4g, "float_s": %.4g, "threads": %d, "note": "%s"}'):format(name, PROMISE, plan.loss, plan.margin, percent(off),
        196 * off:std():item() / math.sqrt(#off), plan.seconds, seconds, plan.float_seconds, float_seconds, tide.get_num_threads(),
        table.concat(kinds, " ")))
    io.stderr:write(tostring(plan), "\n")
end

-- ---- accuracy after calibration and after training ----

local function bytes_of(net)
    local bytes = 0
    for _, x in pairs(net:state_dict()) do
        bytes = bytes + (tide.is_tensor(x) and x.nbytes or 0)
    end
    return bytes
end

local function accuracy_case(name, network, seed)
    local net = trained(network, seed)
    local other, seen = batches_of(network.data, 1, network.other, false), batches_of(network.data, 1, 2000, true)
    local function right(small)
        return tide.no_grad(function() return percent(scores(small, network, other)) end)
    end
    local prepared = Q.prepare(network.of(net))
    tide.no_grad(function()
        for _, batch in ipairs(seen) do
            prepared(batch[1])
        end
    end)
    local static = Q.convert(prepared)
    local rounding = Q.prepare_qat(network.of(net, true))
    local steps, rate = size(network.more, 2), network.rate / 20
    local qat = Q.convert(train(rounding, network, steps, rate, seed + 100))
    local floats = train(net:clone(), network, steps, rate, seed + 100)
    print(('{"case": "%s", "float": %.2f, "static": %.2f, "float_trained_on": %.2f, "qat": %.2f, "bytes": %.3f}'):format(name, right(net),
        right(static), right(floats), right(qat), bytes_of(static) / bytes_of(net)))
end

for _, network in ipairs(NETWORKS) do
    local name = network.name .. "_plan"
    if bench.chosen(name) then
        plan_case(name, network)
    end
    for seed = 1, network.more and SEEDS or 0 do
        name = ("%s_accuracy_%d"):format(network.name, seed)
        if bench.chosen(name) then
            accuracy_case(name, network, seed)
        end
        io.stdout:flush()
    end
end
