-- test_kept_weights.lua: weights that products keep packed are what the tensors hold, however these were written: results equal those
-- of a fresh copy of the weight, bit for bit.
local t = require "harness"
local nn, F = tide.nn, tide.nn.functional

local ROWS <const>, IN <const>, OUT <const> = 16, 192, 320

-- The products of a weight (out, in) by both of its sides.
local function products(x, y, weight) return F.linear(x, weight), y:matmul(weight) end

-- A function that looks at the products of a weight: are they those of its elements?
local function looker(dtype)
    local x, y = tide.randn({ ROWS, IN }, { dtype = dtype }), tide.randn({ ROWS, OUT }, { dtype = dtype })
    return function(weight, what)
        local _ <close> = tide.no_grad()
        for _ = 1, 3 do -- met, packed, kept
            local right, left = products(x, y, weight)
            local want_right, want_left = products(x, y, weight:detach():clone())
            t.is_true(tide.equal(right, want_right) and tide.equal(left, want_left), what)
        end
    end
end

local function writes(dtype)
    local source = tide.randn({ OUT, IN }, { dtype = dtype })
    return {
        { "add_", function(w) w:add_(1) end },
        { "copy_", function(w) w:copy_(source) end },
        { "mul_ of a view", function(w) w[3]:mul_(2) end },
        { "assignment to a place", function(w) w[{ 7, 9 }] = 100 end },
        { "assignment by a mask", function(w) w[w:gt(1)] = -3 end },
        { "out=", function(w) tide.add(source, 2, { out = w }) end },
        { "fill_", function(w) w:fill_(0.25) end },
        { "uniform_", function(w) w:uniform_() end },
        { "zero_ of the transpose", function(w) w.T[2]:zero_() end },
        { "detach", function(w) w:detach():sub_(3) end },
        { "data", function(w) w.data:add_(source) end },
        { "foreach", function(w) tide.foreach.add_({ w }, 1) end },
        { "scatter_", function(w) w:scatter_(2, tide.ones(OUT, 1, { dtype = tide.int64 }), 5) end },
        { "scripted write", tide.jit.script(function(w) return w:mul_(0.5) end) },
    }
end

t.test("written_weights_are_packed_anew", function()
    for _, dtype in ipairs { tide.float32, tide.bfloat16, tide.float16 } do
        tide.manual_seed(1)
        local look, w = looker(dtype), tide.randn({ OUT, IN }, { dtype = dtype })
        look(w, "at first")
        for _, row in ipairs(writes(dtype)) do
            local _ <close> = tide.no_grad()
            row[2](w)
            look(w, row[1])
        end
    end
end)

-- A function that looks at what autocast makes of a weight, in regions of their own, in all modes.
local function caster()
    local x = tide.randn(ROWS, IN)
    return function(weight, what)
        for _, mode in ipairs { "no_grad", "inference_mode", "enable_grad", "no_grad" } do
            for _ = 1, 3 do -- met, cast, kept
                local got = tide[mode](function()
                    return tide.autocast("cpu", function() return F.linear(x, weight) end, { dtype = tide.bfloat16 })
                end)
                t.eq(got.requires_grad, mode == "enable_grad", what)
                t.is_true(tide.equal(got:detach(), F.linear(x:bfloat16(), weight:detach():clone():bfloat16())), what .. ": " .. mode)
            end
        end
    end
end

t.test("written_weights_are_cast_anew_by_autocast", function()
    tide.manual_seed(7)
    local look, w = caster(), tide.randn({ OUT, IN }, { requires_grad = true })
    look(w, "at first")
    for _, row in ipairs(writes()) do
        tide.no_grad(function() row[2](w) end)
        look(w, row[1])
    end
end)

t.test("casts_that_are_kept_are_of_their_own_tensor", function()
    local w, x = tide.randn(IN, IN), tide.randn(ROWS, IN)
    local turned = w.T:detach()
    w:requires_grad_()
    turned:requires_grad_()
    for _ = 1, 3 do
        for _, weight in ipairs { w, turned } do
            local got = tide.no_grad(function() return tide.autocast("cpu", function() return F.linear(x, weight) end, { dtype = tide.bfloat16 }) end)
            t.is_true(tide.equal(got, F.linear(x:bfloat16(), weight:detach():clone():bfloat16())))
        end
    end
end)

t.test("sparse_weights_are_not_kept", function()
    local before = tide.memory_stats().kept
    local w = tide.eye(IN):to_sparse():requires_grad_()
    for _ = 1, 3 do
        tide.no_grad(function()
            tide.autocast("cpu", function() pcall(tide.matmul, w, tide.randn(IN, ROWS)) end, { dtype = tide.bfloat16 })
        end)
    end
    t.eq(tide.memory_stats().kept, before)
end)

-- A step of training under autocast, its region's end included.
local function trained(layer, optimizer)
    optimizer:zero_grad()
    tide.autocast("cpu", function() return layer(tide.randn(ROWS, IN)):float():square():mean() end, { dtype = tide.bfloat16 }):backward()
    optimizer:step()
end

t.test("training_under_autocast_lets_go_of_casts_that_evaluation_kept", function()
    local layer = nn.Linear(IN, OUT)
    local optimizer, before = tide.optim.SGD(layer:parameters(), { lr = 0.1 }), tide.memory_stats().kept
    for _ = 1, 3 do
        tide.no_grad(function() tide.autocast("cpu", function() return layer(tide.randn(ROWS, IN)) end, { dtype = tide.bfloat16 }) end)
    end
    t.is_true(tide.memory_stats().kept > before)
    trained(layer, optimizer)
    trained(layer, optimizer)
    t.eq(tide.memory_stats().kept, before)
    local look = caster()
    look(layer.weight, "after training")
end)

t.test("weights_that_optimizers_step_are_packed_anew", function()
    local optimizers = { function(p) return tide.optim.SGD(p, { lr = 0.1, momentum = 0.9 }) end,
        function(p) return tide.optim.AdamW(p, { lr = 0.1 }) end,
        function(p) return tide.optim.AdamW(p, { lr = 0.1, foreach = false }) end }
    for k, make in ipairs(optimizers) do
        tide.manual_seed(k)
        local look, layer = looker(), nn.Linear(IN, OUT)
        local optimizer = make(layer:parameters())
        for step = 1, 3 do
            look(layer.weight, ("optimizer %d before step %d"):format(k, step))
            optimizer:zero_grad()
            layer(tide.randn(ROWS, IN)):square():mean():backward()
            optimizer:step()
        end
        look(layer.weight, ("optimizer %d at the end"):format(k))
    end
end)

t.test("weights_that_are_loaded_or_converted_are_packed_anew", function()
    tide.manual_seed(3)
    local look, layer, other = looker(), nn.Linear(IN, OUT), nn.Linear(IN, OUT)
    look(layer.weight, "at first")
    layer:load_state_dict(other:state_dict())
    t.is_true(tide.equal(layer.weight, other.weight))
    look(layer.weight, "load_state_dict")
    layer:to(tide.float64):to(tide.float32)
    look(layer.weight, "to")
    nn.init.normal_(layer.weight)
    look(layer.weight, "init")
    nn.utils.vector_to_parameters(tide.randn(IN * OUT + OUT), layer:parameters())
    look(layer.weight, "vector_to_parameters")
    layer.weight = nn.Parameter(tide.randn(OUT, IN))
    look(layer.weight, "another parameter")
end)

t.test("weights_that_are_gone_keep_nothing", function()
    collectgarbage()
    collectgarbage()
    local before = tide.memory_stats().kept
    do
        local look, w = looker(), tide.randn(OUT, IN)
        look(w, "a weight")
    end
    collectgarbage()
    collectgarbage()
    t.eq(tide.memory_stats().kept, before)
end)

t.test("training_keeps_no_panels", function()
    local layer = nn.Sequential(nn.Linear(IN, OUT), nn.ReLU(), nn.Linear(OUT, IN))
    local optimizer, before = tide.optim.SGD(layer:parameters(), { lr = 0.1 }), tide.memory_stats().kept
    for _ = 1, 4 do
        optimizer:zero_grad()
        layer(tide.randn(ROWS, IN)):square():mean():backward()
        optimizer:step()
    end
    t.eq(tide.memory_stats().kept, before)
end)

t.test("a_result_does_not_depend_on_threads_or_modes", function()
    tide.manual_seed(5)
    local threads = tide.get_num_threads()
    for _, size in ipairs { { ROWS, OUT }, { 700, 64 }, { 1000, 130 } } do -- the last ones are cut by rows
        local rows, out = table.unpack(size)
        local x, w, b = tide.randn(rows, IN), tide.randn(out, IN, { requires_grad = true }), tide.randn(out)
        local recorded = F.linear(x, w, b)
        for _, n in ipairs { 1, 2, 5, 1 } do
            local _ <close> = tide.no_grad()
            tide.set_num_threads(n)
            t.is_true(tide.equal(F.linear(x, w, b), recorded))
        end
        tide.set_num_threads(threads)
        t.is_true(tide.allclose(recorded:detach():double(), F.linear(x:double(), w:detach():double(), b:double()), { rtol = 1e-4, atol = 1e-4 }))
    end
end)
