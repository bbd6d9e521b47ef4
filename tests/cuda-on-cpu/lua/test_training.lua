-- test_training.lua: training on CUDA as on the CPU: the digits' network, autocast with a GradScaler,
-- optimizers over lists; on the device that the CPU plays, or a real one.
local t = require "harness"

if not tide.cuda.is_available() then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end

local nn = tide.nn
tide.backends.cudnn.allow_tf32 = false -- true at the start: ten bits of mantissa are too few to compare

local function network()
    return nn.Sequential(nn.Conv2d(1, 4, 3, { padding = 1 }), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * 4 * 4, 10))
end

-- Losses of a few steps.
local function train(device, make_optimizer, options)
    options = options or {}
    tide.manual_seed(1)
    local net, x, y = network(), tide.randn(16, 1, 8, 8), tide.randint(1, 11, { 16 })
    net:to(device)
    x, y = x:to(device), y:to(device)
    local opt, losses = make_optimizer(net:parameters()), {}
    local scaler = options.scaled and tide.amp.GradScaler({ init_scale = 1024 })
    for step = 1, 6 do
        opt:zero_grad()
        local loss
        if options.dtype then
            local cast <close> = tide.autocast { device = device == "cpu" and "cpu" or "cuda", dtype = options.dtype }
            loss = tide.cross_entropy(net(x), y)
        else
            loss = tide.cross_entropy(net(x), y)
        end
        if scaler then
            scaler:scale(loss):backward()
            scaler:step(opt)
            scaler:update()
        else
            loss:backward()
            opt:step()
        end
        losses[step] = loss:item()
    end
    return losses
end

for name, make in pairs {
    SGD = function(p) return tide.optim.SGD(p, { lr = 0.05, momentum = 0.9, weight_decay = 1e-4 }) end,
    Adam = function(p) return tide.optim.Adam(p, { lr = 0.01 }) end,
    AdamW = function(p) return tide.optim.AdamW(p, { lr = 0.01, amsgrad = true }) end,
    RMSprop = function(p) return tide.optim.RMSprop(p, { lr = 0.01 }) end,
    Adagrad = function(p) return tide.optim.Adagrad(p, { lr = 0.05 }) end,
} do
    t.test("training_with_" .. name .. "_is_that_of_the_cpu", function()
        t.close(train("cuda", make), train("cpu", make), 1e-4)
    end)
end

t.test("bfloat16_autocast_trains_as_on_the_cpu", function()
    local function sgd(p) return tide.optim.SGD(p, { lr = 0.05 }) end
    t.close(train("cuda", sgd, { dtype = tide.bfloat16 }), train("cpu", sgd), 0.1)
end)

t.test("float16_autocast_with_a_scaler_trains_as_float32", function()
    local function sgd(p) return tide.optim.SGD(p, { lr = 0.05 }) end
    t.close(train("cuda", sgd, { dtype = tide.float16, scaled = true }), train("cpu", sgd), 0.05)
end)

t.test("a_state_dict_goes_to_a_file_and_back", function()
    local path = os.tmpname()
    tide.manual_seed(3)
    local net = network():to("cuda")
    tide.save(net:state_dict(), path)
    local again = network():to("cuda")
    again:load_state_dict(tide.load(path))
    os.remove(path)
    local x = tide.randn(2, 1, 8, 8):to("cuda")
    net:eval()
    again:eval()
    t.close(again(x):to("cpu"):tolist(), net(x):to("cpu"):tolist(), 0)
end)

t.test("gradients_of_gradients_are_checked_where_the_tensors_lie", function()
    local x = tide.randn(3, 2, { dtype = "float64" }):to("cuda"):requires_grad_()
    local function cube(v) return v * v * v end
    for _, fast_mode in ipairs { false, true } do
        t.is_true(tide.autograd.gradcheck(cube, x, { fast_mode = fast_mode }))
        t.is_true(tide.autograd.gradgradcheck(cube, x, { fast_mode = fast_mode }))
    end
end)
