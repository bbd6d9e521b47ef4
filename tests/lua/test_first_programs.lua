-- test_first_programs.lua: the programs that people write first, each saved, loaded and resumed: a regression on a
-- CSV, logistic regression with minibatches, a character RNN, a CNN with profile and trace, a residual module with
-- gradcheck.
local t = require "harness"
local nn, optim = tide.nn, tide.optim

local function with_file(fn)
    local path = os.tmpname()
    local ok, why = pcall(fn, path)
    os.remove(path)
    if not ok then
        error(why, 0)
    end
end

-- Train from `first` to `last` by train.step(); between the two halves everything goes through a file into a
-- program that was made anew. Returns the losses and the program at the end.
local function train(make, last, stop)
    tide.manual_seed(11)
    local program, losses = make(), {}
    for step = 1, last do
        losses[step] = program.step()
        if step == stop then
            with_file(function(path)
                tide.save({ model = program.model:state_dict(), optimizer = program.optimizer:state_dict(),
                    rng = tide.get_rng_state() }, path)
                tide.manual_seed(99)
                program = make()
                local saved = tide.load(path)
                program.model:load_state_dict(saved.model)
                program.optimizer:load_state_dict(saved.optimizer)
                tide.set_rng_state(saved.rng)
            end)
        end
    end
    return losses, program
end

local function check(make, last, fall)
    local losses, program = train(make, last)
    t.is_true(losses[last] < losses[1] * fall, ("the loss fell from %g to %g"):format(losses[1], losses[last]))
    local resumed = train(make, last, last // 2)
    t.eq(resumed, losses, "losses of the resumed training")
    return program
end

t.test("questions_about_a_device_s_memory_have_answers_without_one", function()
    if tide.cuda.is_available() then
        return t.skip("questions_about_a_device_s_memory", "a CUDA device is there")
    end
    tide.cuda.empty_cache()
    t.eq({ tide.cuda.memory_allocated(), tide.cuda.max_memory_allocated(), tide.cuda.memory_reserved() }, { 0, 0, 0 })
    t.error_has(function() tide.cuda.memory_allocated("cuda:1") end, "is not there")
    t.error_has(function() tide.cuda.synchronize() end, "is not there")
end)

t.test("a_regression_on_a_csv", function()
    with_file(function(path)
        local file = assert(io.open(path, "w"))
        file:write("size,rooms,price\n")
        for k = 1, 40 do
            local size, rooms = 30 + k * 7 % 50, 1 + k % 4
            file:write(("%g,%d,%g\n"):format(size, rooms, 3 * size + 20 * rooms + 5))
        end
        file:close()
        local rows = tide.io.read_csv(path, { header = true })
        local x, y = rows[":, 1:2"], rows[":, 3:3"]
        x, y = (x - x:mean(1)) / x:std(1), (y - y:mean()) / y:std()
        local program = check(function()
            local model = nn.Linear(2, 1)
            local optimizer = optim.SGD(model:parameters(), { lr = 0.1 })
            return { model = model, optimizer = optimizer, step = function()
                optimizer:zero_grad()
                local loss = nn.functional.mse_loss(model(x), y)
                loss:backward()
                optimizer:step()
                return loss:item()
            end }
        end, 60, 0.01)
        t.close(program.model(x)[1]:item(), y[1]:item(), 0.1)
    end)
end)

t.test("logistic_regression_with_minibatches", function()
    tide.manual_seed(3)
    local x = tide.randn(120, 4)
    local y = x:matmul(tide.tensor { 1, -2, 0.5, 3 }):gt(0):float()
    local program = check(function()
        local model, criterion = nn.Linear(4, 1), nn.BCEWithLogitsLoss()
        local optimizer = optim.Adam(model:parameters(), { lr = 0.05 })
        return { model = model, optimizer = optimizer, step = function()
            local sum = 0
            local order = tide.randperm(120)
            for first = 1, 120, 32 do
                local pick = order[{ { first, math.min(first + 31, 120) } }]
                optimizer:zero_grad()
                local loss = criterion(model(x[pick]):squeeze(2), y[pick])
                loss:backward()
                optimizer:step()
                sum = sum + loss:item()
            end
            return sum
        end }
    end, 20, 0.5)
    t.is_true(program.model(x):squeeze(2):gt(0):float():eq(y):float():mean():item() > 0.9)
end)

t.test("a_character_rnn", function()
    local text, numbers, letters = ("hello tide. "):rep(6), {}, {}
    for k = 1, #text do
        local letter = text:sub(k, k)
        if not letters[letter] then
            letters[#letters + 1], letters[letter] = letter, #letters + 1
        end
        numbers[k] = letters[letter]
    end
    local all = tide.tensor(numbers):long()
    local input, target = all[{ { 1, -2 } }]:unsqueeze(1), all[{ { 2, -1 } }]
    local program = check(function()
        local model = nn.ModuleDict { embed = nn.Embedding(#letters, 12),
            rnn = nn.GRU(12, 24, { batch_first = true }), head = nn.Linear(24, #letters) }
        local optimizer = optim.Adam(model:parameters(), { lr = 0.02 })
        return { model = model, optimizer = optimizer, step = function()
            optimizer:zero_grad()
            local out = model.rnn(model.embed(input))
            local loss = nn.functional.cross_entropy(model.head(out)[1], target)
            loss:backward()
            nn.utils.clip_grad_norm_(model:parameters(), 1)
            optimizer:step()
            return loss:item()
        end }
    end, 40, 0.2)
    local _ <close> = tide.no_grad()
    local model, state, letter, said = program.model, nil, letters.h, "h"
    for _ = 1, 11 do
        local out
        out, state = model.rnn(model.embed(tide.tensor({ { letter } }):long()), state)
        letter = model.head(out[1][1]):argmax():item()
        said = said .. letters[letter]
    end
    t.eq(said, "hello tide. ")
end)

t.test("a_cnn_with_profile_and_trace", function()
    tide.manual_seed(4)
    local x, y = tide.randn(16, 1, 8, 8), tide.randint(1, 5, { 16 })
    local program = check(function()
        local model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(36, 4))
        local optimizer = optim.SGD(model:parameters(), { lr = 0.1, momentum = 0.9 })
        return { model = model, optimizer = optimizer, step = function()
            optimizer:zero_grad()
            local loss = nn.functional.cross_entropy(model(x), y)
            loss:backward()
            optimizer:step()
            return loss:item()
        end }
    end, 30, 0.5)
    local profile = tide.profiler.profile(program.step)
    t.is_true(tostring(profile):find("conv2d", 1, true))
    local names = {}
    for _, event in ipairs(profile:events()) do
        names[event.name] = true
    end
    for _, name in ipairs { "conv2d", "max_pool2d", "cross_entropy", "sgd_step" } do
        t.is_true(names[name], "no event is called " .. name)
    end
    with_file(function(path)
        profile:export_chrome_trace(path)
        local trace = assert(io.open(path)):read "a"
        t.is_true(trace:find '"traceEvents"' and trace:find "conv2d")
    end)
end)

t.test("a_residual_module_with_gradcheck", function()
    local Residual = nn.class "Residual"
    function Residual:init(width)
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
    end
    function Residual:forward(x) return x + self.second(self.first(x):tanh()) end
    local block = Residual(3):double()
    local x = tide.randn(2, 3, { dtype = tide.float64, requires_grad = true })
    t.is_true(tide.autograd.gradcheck(block, { x }))
    local data, target = tide.randn(30, 3), tide.randn(30, 3)
    check(function()
        local model = nn.Sequential(Residual(3), Residual(3))
        local optimizer = optim.AdamW(model:parameters(), { lr = 0.02 })
        return { model = model, optimizer = optimizer, step = function()
            optimizer:zero_grad()
            local loss = nn.functional.mse_loss(model(data), target)
            loss:backward()
            optimizer:step()
            return loss:item()
        end }
    end, 40, 0.8)
end)
