-- test_several_devices.lua: networks on several CUDA devices of one process: gradients across devices, DataParallel,
-- pipelines; the same in whatever order the devices take their work.
local t = require "harness"
local nn = tide.nn

if not tide.cuda.is_available() or tide.cuda.device_count() < 2 then
    t.skip("several devices", tide.cuda.unavailable_reason() or "there is one CUDA device")
    t.finish()
end
local opened = package.loadlib(os.getenv "TIDE_CUDA_MODULE" or "", "luaopen_played")
local played = opened and opened()
local N <const> = tide.cuda.device_count()

-- fn in several orders of the devices' work.
local function each_order(fn)
    for round = 1, played and 4 or 1 do
        if played then
            played.seed(round)
        end
        fn()
    end
end

local function close(a, b, tolerance)
    local off = (a:cpu() - b:cpu()):abs():max():item()
    t.is_true(off <= tolerance, "off by " .. off)
end

local function grads(module)
    local list = {}
    for name, p in module:named_parameters() do
        list[#list + 1] = p.grad or error(name .. " has no gradient")
        t.eq(p.grad.device, p.device, name)
    end
    return list
end

t.test("a_gradient_is_on_the_device_of_what_it_is_for", function()
    for _, from in ipairs { "cpu", "cuda:0", "cuda:1" } do
        for _, to in ipairs { "cpu", "cuda:0", "cuda:1" } do
            local x = tide.tensor({ 1.0, 2.0, 3.0 }, { device = from, requires_grad = true })
            x:to(to):pow(3):sum():backward()
            t.eq(tostring(x.grad.device), from)
            t.eq(x.grad:tolist(), { 3, 12, 27 })
            local y = tide.zeros(3, { device = to })
            x.grad = nil
            y:copy_(x * 2)
            y:sum():backward()
            t.eq(tostring(x.grad.device), from, "copy_")
            x.grad = nil
            local f = tide.jit.script(function(z) return (z * z):to(to):sum() end)
            for _ = 1, 2 do
                x.grad = nil
                f(x):backward()
                t.eq(tostring(x.grad.device), from, "script")
            end
            local once = tide.autograd.grad(x:to(to):pow(3):sum(), x, { create_graph = true })[1]
            t.eq(tide.autograd.grad(once:sum(), x)[1]:tolist(), { 6, 12, 18 }, "twice")
        end
    end
end)

-- Two halves on two devices, as one writes them.
local Halves = nn.class "Halves"
function Halves:init()
    self.first = nn.Sequential(nn.Linear(6, 10), nn.Tanh()):to "cuda:0"
    self.second = nn.Linear(10, 3):to "cuda:1"
end
function Halves:forward(x) return self.second(self.first(x:to "cuda:0"):to "cuda:1") end

t.test("a_network_whose_halves_are_on_two_devices_trains_as_on_one", function()
    each_order(function()
        tide.manual_seed(3)
        local halves = Halves()
        local whole = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3)):to "cuda:0"
        for k, p in ipairs(halves:parameters()) do
            whole:parameters()[k].data:copy_(p)
        end
        local a, b = tide.optim.AdamW(halves:parameters(), { lr = 0.05 }), tide.optim.AdamW(whole:parameters(), { lr = 0.05 })
        local x, y = tide.randn(8, 6), tide.randn(8, 3)
        local losses
        for _ = 1, 5 do
            a:zero_grad()
            b:zero_grad()
            losses = { nn.functional.mse_loss(halves(x), y:to "cuda:1"), nn.functional.mse_loss(whole(x:to "cuda:0"), y:to "cuda:0") }
            losses[1]:backward()
            losses[2]:backward()
            a:step()
            b:step()
        end
        t.eq(losses[1]:item(), losses[2]:item())
        for k, p in ipairs(halves:parameters()) do
            t.is_true(tide.equal(p:cpu(), whole:parameters()[k]:cpu()))
        end
    end)
end)

t.test("data_parallel_has_the_gradients_of_the_whole_batch", function()
    each_order(function()
        tide.manual_seed(1)
        local net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)):to "cuda:0"
        local alone, dp = net:clone(), nn.DataParallel(net)
        for _, rows in ipairs { 8, 5, 1 } do -- even, uneven, and fewer than devices
            net:zero_grad()
            alone:zero_grad()
            local x = tide.randn(rows, 6, { requires_grad = true })
            local y, z = dp(x), alone(x:to "cuda:0")
            t.eq(tostring(y.device), "cuda:0")
            close(y, z, 1e-6)
            local dx = tide.autograd.grad(z:pow(2):sum(), x, { retain_graph = true })[1]
            z:pow(2):sum():backward({ inputs = alone:parameters() })
            y:pow(2):sum():backward()
            close(x.grad, dx, 1e-5)
            local want = grads(alone)
            for k, g in ipairs(grads(net)) do
                close(g, want[k], 1e-5)
            end
        end
        t.eq(tostring(nn.DataParallel(net, { device_ids = { 0, 1 }, output_device = 1 })(tide.randn(4, 6)).device), "cuda:1")
    end)
end)

t.test("data_parallel_says_which_device_an_error_is_of", function()
    local Picky = nn.class "Picky"
    function Picky:init() self.layer = nn.Linear(2, 2) end
    function Picky:forward(x)
        if tostring(x.device) == "cuda:1" then
            error("too warm here", 0)
        end
        return self.layer(x)
    end
    local dp = nn.DataParallel(Picky():to "cuda:0")
    t.error_has(function() dp(tide.randn(4, 2)) end, "DataParallel: replica 2 on cuda:1: too warm here")
    t.error_has(function() nn.DataParallel(nn.Linear(2, 2))(tide.randn(4, 2)) end,
        "the module must be on cuda:0, the first of device_ids, and 'weight' of a Linear is on cpu: module:to('cuda:0')")
    t.error_has(function() nn.DataParallel(nn.Linear(2, 2), { device_ids = { N } }) end, "DataParallel: option device_ids[1]: ")
end)

local pipelining = tide.distributed.pipelining
local MICRO <const> = 3

local function layers()
    tide.manual_seed(4)
    local list = {}
    for s = 1, N do
        list[s] = nn.Sequential(nn.Linear(5, 5), nn.Tanh()):to("cuda:" .. s - 1)
    end
    return list
end

-- What a loop over micro-batches comes to: outputs, losses, gradients of all parameters.
local function unpipelined(list, x, target)
    local outputs, losses = {}, {}
    for m, part in ipairs(x:chunk(MICRO)) do
        for s, layer in ipairs(list) do
            part = layer(part:to("cuda:" .. s - 1))
        end
        outputs[m] = part
        losses[m] = nn.functional.mse_loss(part, target:chunk(MICRO)[m]:to(part.device))
        local loss = losses[m] / MICRO
        loss:backward()
    end
    return tide.cat(outputs), losses
end

t.test("a_pipeline_has_the_bits_of_a_loop_over_micro_batches", function()
    each_order(function()
        for _, name in ipairs { "ScheduleGPipe", "Schedule1F1B" } do
            local list, alone, stages = layers(), layers(), {}
            for s, layer in ipairs(list) do
                stages[s] = pipelining.PipelineStage(layer, s, N)
                t.eq(stages[s].device, "cuda:" .. s - 1)
            end
            local schedule = pipelining[name](stages, MICRO, { loss_fn = nn.functional.mse_loss })
            local x, target, losses = tide.randn(7, 5), tide.randn(7, 5), {}
            local y = schedule:step(x, { target = target, losses = losses })
            local want, wanted = unpipelined(alone, x, target)
            t.is_true(tide.equal(y, want))
            for m = 1, MICRO do
                t.eq(losses[m]:item(), wanted[m]:item())
            end
            for s = 1, N do
                local gradients = grads(alone[s])
                for k, g in ipairs(grads(list[s])) do
                    t.is_true(tide.equal(g, gradients[k]), name)
                end
            end
            t.is_true(tide.equal(schedule:eval(x), want))
        end
    end)
end)

t.test("a_pipe_is_its_sequential_in_micro_batches", function()
    each_order(function()
        local parts, same = {}, {}
        for s, layer in ipairs(layers()) do
            parts[#parts + 1], parts[#parts + 2] = layer[1], layer[2]
            same[s] = layer:clone()
        end
        local pipe = pipelining.Pipe(nn.Sequential(table.unpack(parts)), { chunks = MICRO })
        local x, target = tide.randn(7, 5), tide.randn(7, 5)
        local y, want, outputs = pipe(x), x, {}
        for m, part in ipairs(x:chunk(MICRO)) do
            for s, layer in ipairs(same) do
                part = layer(part:to("cuda:" .. s - 1))
            end
            outputs[m] = part
        end
        want = tide.cat(outputs)
        t.is_true(tide.equal(y, want))
        nn.functional.mse_loss(y, target:to(y.device)):backward()
        nn.functional.mse_loss(want, target:to(y.device)):backward()
        local gradients = grads(pipe)
        for s, layer in ipairs(same) do
            for k, g in ipairs(grads(layer)) do
                t.is_true(tide.equal(g, gradients[2 * s - 2 + k]))
            end
        end
    end)
end)

t.finish()
