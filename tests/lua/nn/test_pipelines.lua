-- test_pipelines.lua: tide.distributed.pipelining in one process, all stages on the CPU.
local t = require "harness"
local nn, P = tide.nn, tide.distributed.pipelining

local STAGES <const>, MICRO <const> = 3, 5

local function layers(seed)
    tide.manual_seed(seed)
    local list = {}
    for s = 1, STAGES do
        list[s] = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    end
    return list
end

-- A schedule over the layers; turns[s]: what stage s does, most[s]: of how many micro-batches it keeps graphs.
local function watched(name, list, options)
    local stages, turns, most = {}, {}, {}
    for s, layer in ipairs(list) do
        local live = 0
        turns[s], most[s] = "", 0
        layer:register_forward_hook(function(_, _, y)
            live = live + 1
            most[s], turns[s] = math.max(most[s], live), turns[s] .. "F"
            if y.requires_grad then
                y:register_hook(function() live, turns[s] = live - 1, turns[s] .. "B" end)
            end
        end)
        stages[s] = P.PipelineStage(layer, s, #list)
    end
    return P[name](stages, MICRO, options), turns, most
end

t.test("schedules_have_the_bits_of_a_loop_over_micro_batches", function()
    for name, expected in pairs { ScheduleGPipe = { { "FFFFFBBBBB", "FFFFFBBBBB", "FFFFFBBBBB" }, { 5, 5, 5 } },
        Schedule1F1B = { { "FFFBFBFBBB", "FFBFBFBFBB", "FBFBFBFBFB" }, { 3, 2, 1 } } } do
        for _, scale in ipairs { true, false } do
            local list, alone, losses = layers(1), layers(1), {}
            local schedule, turns, most = watched(name, list, { loss_fn = nn.functional.mse_loss, scale_grads = scale })
            local x, target = tide.randn(13, 4), tide.randn(13, 4) -- the last micro-batch has fewer rows
            local y = schedule:step(x, { target = target, losses = losses })
            t.eq({ turns, most }, expected, name)
            local outputs = {}
            for m, part in ipairs(x:chunk(MICRO)) do
                for s = 1, STAGES do
                    part = alone[s](part)
                end
                local loss = nn.functional.mse_loss(part, target:chunk(MICRO)[m])
                t.is_true(tide.equal(losses[m], loss:detach()))
                outputs[m], loss = part:detach(), scale and loss / MICRO or loss
                loss:backward()
            end
            t.is_true(tide.equal(y, tide.cat(outputs)))
            for s = 1, STAGES do
                for k, p in ipairs(list[s]:parameters()) do
                    t.is_true(tide.equal(p.grad, alone[s]:parameters()[k].grad), name)
                end
            end
            t.is_true(tide.equal(schedule:eval(x), y))
        end
    end
end)

t.test("several_inputs_and_results_and_a_loss_without_a_target", function()
    local Two = nn.class "Two"
    function Two:init() self.layer = nn.Linear(4, 4) end
    function Two:forward(x, n) return self.layer(x), n + 1 end
    local first, second = Two(), Two()
    local schedule = P.Schedule1F1B({ P.PipelineStage(first, 1, 2), P.PipelineStage(second, 2, 2) }, 2,
        { loss_fn = function(y, n) return (y * n:unsqueeze(2)):sum() end, scale_grads = false })
    local x, n = tide.randn(6, 4), tide.arange(6)
    local y, m = schedule:step({ x, n })
    t.eq(m:tolist(), { 2, 3, 4, 5, 6, 7 })
    t.is_true(tide.allclose(y, second.layer(first.layer(x))))
    local want = tide.autograd.grad((second.layer(first.layer(x)) * m:unsqueeze(2)):sum(), first.layer.weight)[1]
    t.is_true(tide.allclose(first.layer.weight.grad, want, { rtol = 1e-4, atol = 1e-5 }))
end)

t.test("a_pipe_is_its_sequential", function()
    local net = nn.Sequential(table.unpack(layers(2)))
    local x = tide.randn(7, 4, { requires_grad = true })
    local y = P.Pipe(net, { chunks = 3 })(x)
    local parts = {}
    for m, part in ipairs(x:chunk(3)) do
        parts[m] = net(part)
    end
    t.is_true(tide.equal(y, tide.cat(parts)))
    local a, b = tide.autograd.grad(y:pow(2):sum(), x)[1], tide.autograd.grad(tide.cat(parts):pow(2):sum(), x)[1]
    t.is_true(tide.equal(a, b))
    t.eq(#P.Pipe(net, { chunks = 3 }):parameters(), 6)
end)

t.test("what_is_wrong_is_said_in_a_line", function()
    local stage = P.PipelineStage(nn.Linear(4, 4), 1, 2)
    t.eq(tostring(stage), "PipelineStage(1 of 2, on cpu)")
    t.error_has(function() P.PipelineStage(nn.Linear(4, 4), 3, 2) end, "stage_index 3: from 1 to 2")
    t.error_has(function() P.ScheduleGPipe({ stage, stage }, 2) end, "stages[2] is stage 1 of 2")
    t.error_has(function() P.ScheduleGPipe(stage, 2) end, "this is rank 0 of 1")
    t.error_has(function() P.ScheduleGPipe({}, 2) end, "a PipelineStage, or the list of all, expected")
    t.error_has(function() P.ScheduleGPipe({ nn.Linear(2, 2) }, 2) end, "stages[1]: a PipelineStage expected")
    local schedule = P.ScheduleGPipe(P.PipelineStage(nn.Linear(4, 4), 1, 1), 4, { loss_fn = function(y) return y end })
    t.error_has(function() schedule:step(tide.randn(3, 4)) end, "input 1: 3 rows make 3 micro-batches, and 4 are expected")
    t.error_has(function() schedule:step() end, "the first stage wants inputs")
    t.error_has(function() schedule:step(tide.randn(8, 4)) end, "a tensor of one element expected")
    t.error_has(function() P.Pipe(nn.Linear(2, 2)) end, "a Sequential with parts expected")
    local Text = nn.class "Text"
    function Text:forward() return "text" end
    t.error_has(function() P.ScheduleGPipe(P.PipelineStage(Text(), 1, 1), 1):step(tide.randn(2, 2)) end,
        "as result 1: a tensor expected")
end)

t.finish()
