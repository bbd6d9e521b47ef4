-- test_data_parallel_threads.lua: tide.nn.DataParallel on the CPU: replicas that share the module's parameters, each in a thread.
local t = require "harness"
local nn = tide.nn

local function replicas(net, n, options)
    local all = { device_ids = {} }
    for k = 1, n do
        all.device_ids[k] = "cpu"
    end
    for name, value in pairs(options or {}) do
        all[name] = value
    end
    return nn.DataParallel(net, all)
end

local function close(a, b, tolerance)
    t.eq(a.shape, b.shape)
    local off = (a - b):abs():max():item()
    t.is_true(off <= tolerance, "off by " .. off)
end

t.test("it_trains_as_the_module_alone", function()
    tide.manual_seed(1)
    local net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    local alone, dp = net:clone(), replicas(net, 3)
    local a, b = tide.optim.SGD(dp:parameters(), { lr = 0.1, momentum = 0.9 }), tide.optim.SGD(alone:parameters(), { lr = 0.1, momentum = 0.9 })
    for step = 1, 6 do
        local rows = ({ 9, 7, 3, 2, 1, 8 })[step] -- even, uneven, fewer than replicas
        local x, y = tide.randn(rows, 6), tide.randint(1, 3, { rows })
        a:zero_grad()
        b:zero_grad()
        nn.functional.cross_entropy(dp(x), y):backward()
        nn.functional.cross_entropy(alone(x), y):backward()
        a:step()
        b:step()
        for k, p in ipairs(net:parameters()) do
            close(p, alone:parameters()[k], 2e-6)
        end
    end
    local names = {}
    for name in dp:named_parameters() do
        names[#names + 1] = name
    end
    t.eq(names, { "module.1.weight", "module.1.bias", "module.3.weight", "module.3.bias" })
end)

t.test("gradients_are_the_sums_in_the_order_of_replicas_and_go_to_inputs", function()
    tide.manual_seed(2)
    local layer = nn.Linear(5, 4)
    local dp = replicas(layer, 2)
    local x = tide.randn(6, 5, { requires_grad = true })
    dp(x):pow(3):sum():backward()
    local parts = {}
    for k = 1, 2 do
        parts[k] = tide.autograd.grad(layer(x:detach():narrow(1, 3 * k - 2, 3)):pow(3):sum(), layer.weight)[1]
    end
    t.is_true(tide.equal(layer.weight.grad, parts[1] + parts[2]))
    close(x.grad, tide.autograd.grad(layer(x):pow(3):sum(), x)[1], 1e-6)
end)

t.test("values_of_every_form_are_cut_and_laid_together", function()
    local Forms = nn.class "Forms"
    function Forms:init() self.layer = nn.Linear(2, 2, false) end
    function Forms:forward(x, factor, options)
        local y = self.layer(x) * factor * options.more[1]
        return { y = y, sums = { y:sum() }, name = options.name }, options.other + 1, nil
    end
    local net = Forms()
    local dp = replicas(net, 2)
    local x, more = tide.randn(4, 2), tide.randn(4, 1)
    local given = { more = { more }, other = tide.arange(4), name = "it" }
    local a, b = dp(x, 2, given)
    close(a.y, net.layer(x) * 2 * more, 1e-6)
    close(a.sums[1], a.y:view(2, 4):sum(2), 1e-6)
    t.eq(a.name, "it")
    t.eq(b:tolist(), { 1, 2, 3, 4 })
    local loss = a.y:sum() + a.sums[1]:sum()
    loss:backward()
    close(net.layer.weight.grad, tide.autograd.grad((net.layer(x) * 4 * more):sum(), net.layer.weight)[1], 1e-5)
    local other = replicas(nn.Linear(3, 2), 2, { dim = 2 })
    t.eq(other(tide.randn(5, 4, 3)).shape, tide.empty(5, 4, 2).shape)
end)

t.test("hooks_run_in_replicas_and_those_of_parameters_here", function()
    local net = nn.Sequential(nn.Linear(3, 2))
    net[1]:register_forward_hook(function(_, _, y) return y * 2 end)
    local heard = {}
    net[1].weight:register_hook(function(g)
        heard[#heard + 1] = g
        return g * 0
    end)
    local x = tide.randn(4, 3)
    local dp = replicas(net, 2)
    close(dp(x), net(x), 1e-6)
    dp(x):sum():backward()
    t.eq(#heard, 1)
    t.eq(net[1].weight.grad:abs():sum():item(), 0)
end)

t.test("layers_of_all_kinds_have_replicas", function()
    local tied = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    tied[2].weight = tied[1].weight
    local frozen = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    frozen[1]:requires_grad_(false)
    for _, case in ipairs {
        { nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2)), tide.randn(4, 3, 8, 8) },
        { nn.TransformerEncoderLayer(8, 2, { dim_feedforward = 16, batch_first = true }), tide.randn(4, 5, 8) },
        { nn.LSTM(3, 5, { batch_first = true }), tide.randn(4, 6, 3) }, { nn.Embedding(9, 4), tide.randint(1, 9, { 5, 2 }) },
        { tied, tide.randn(4, 3) }, { frozen, tide.randn(4, 3) }, { replicas(nn.Linear(3, 2), 2), tide.randn(4, 3) },
    } do
        local net, x = case[1]:eval(), case[2]
        local alone, dp = net:clone(), replicas(net, 2)
        local a, b = dp(x), alone(x)
        close(a, b, 1e-5)
        a:pow(2):sum():backward()
        b:pow(2):sum():backward()
        for k, p in ipairs(net:parameters()) do
            local want = alone:parameters()[k].grad
            if want then
                close(p.grad, want, 1e-4)
            else
                t.eq(p.grad, nil)
            end
        end
    end
end)

t.test("buffers_are_what_the_first_replica_makes_of_them", function()
    tide.manual_seed(3)
    local net = nn.Sequential(nn.BatchNorm1d(3))
    local alone = net:clone()
    local x = tide.randn(8, 3)
    replicas(net, 2)(x)
    alone(x:narrow(1, 1, 4))
    t.is_true(tide.equal(net[1].running_mean, alone[1].running_mean))
    t.eq(net[1].num_batches_tracked:item(), 1)
end)

t.test("modes_of_the_caller_hold_in_replicas", function()
    local Says = nn.class "Says"
    function Says:init() self.layer = nn.Linear(2, 2) end
    function Says:forward(x)
        local y = self.layer(x)
        return y, tostring(y.dtype), tide.is_grad_enabled(), self.training
    end
    local dp = replicas(Says(), 2)
    local x = tide.randn(4, 2)
    local y, dtype, grad, training = dp(x)
    t.eq({ y.requires_grad, dtype, grad, training }, { true, "tide.float32", true, true })
    y, dtype, grad, training = tide.no_grad(function() return dp:eval()(x) end)
    t.eq({ y.requires_grad, dtype, grad, training }, { false, "tide.float32", false, false })
    y, dtype = tide.autocast(function() return dp(x) end)
    t.eq({ tostring(y.dtype), dtype }, { "tide.bfloat16", "tide.bfloat16" })
    y = tide.inference_mode(function() return dp(x) end)
    t.is_false(y.requires_grad)
end)

t.test("random_numbers_follow_the_seed_and_differ_between_replicas", function()
    local dp = replicas(nn.Dropout(0.5), 2)
    local x = tide.ones(2, 64)
    tide.manual_seed(5)
    local a, b = dp(x), dp(x)
    tide.manual_seed(5)
    t.is_true(tide.equal(a, dp(x)) and tide.equal(b, dp(x)))
    t.is_false(tide.equal(a[1], a[2]) or tide.equal(a, b))
    dp:eval()
    local before = tide.get_rng_state()
    t.is_true(tide.equal(dp(x), x) and tide.equal(before, tide.get_rng_state()))
end)

t.test("backward_again_wants_retain_graph_and_not_twice_derivatives", function()
    local layer = nn.Linear(3, 1)
    local dp = replicas(layer, 2)
    local x = tide.randn(4, 3)
    local loss = dp(x):pow(2):sum()
    loss:backward { retain_graph = true }
    local once = layer.weight.grad:clone()
    loss:backward()
    close(layer.weight.grad, once * 2, 1e-5)
    t.error_has(function() loss:backward() end, "second time")
    t.error_has(function()
        tide.autograd.grad(dp(x):pow(2):sum(), layer.weight, { create_graph = true })[1]:sum():backward()
    end, "once_differentiable")
end)

t.test("graphs_that_nobody_asks_for_are_let_go", function()
    local dp = replicas(nn.Sequential(nn.Linear(64, 4096), nn.Tanh()), 2)
    local x, most = tide.randn(256, 64), 0
    for k = 1, 40 do
        dp(x)
        if k % 4 == 0 then
            collectgarbage()
            most = math.max(most, tide.memory_allocated "cpu")
        end
    end
    t.is_true(most < 20 * 256 * 4096 * 4, most) -- forty calls' graphs are more than forty of these
end)

t.test("errors_name_the_replica", function()
    local Picky = nn.class "Picky"
    function Picky:init() self.layer = nn.Linear(2, 2) end
    function Picky:forward(x)
        if x[1][1]:item() > 0 then
            error("not that", 0)
        end
        return self.layer(x)
    end
    local dp = replicas(Picky(), 2)
    t.error_has(function() dp(tide.tensor { { -1.0, 0.0 }, { 1.0, 0.0 } }) end, "DataParallel: replica 2 on cpu: not that")
    t.eq(dp(tide.tensor { { -1.0, 0.0 }, { -1.0, 0.0 } }).shape, tide.empty(2, 2).shape)
    local net = nn.Linear(2, 2)
    t.error_has(function() replicas(net, 2)(tide.randn(4, 2), tide.randn(1, 2)) end,
        "DataParallel: a tensor of shape (1, 2) makes 1 parts along dim 1, and another 2")
    t.error_has(function() nn.DataParallel(net, { device_ids = {} }) end, "option device_ids: the list is empty")
    t.error_has(function() nn.DataParallel(net, { device_ids = { true } }) end, "a device's number or name expected")
    net.handle = io.stdout
    t.error_has(function() replicas(net, 2)(tide.randn(4, 2)) end, "can't go to a worker")
end)

t.finish()
