-- advice_twins.lua: slow programs as people write them, and the same ones mended: {kinds, slow, mended} by name.
local twins = {}

local function leaf(...) return tide.randn(...):requires_grad_() end
-- ---- elements that go to Lua ----

local function power_iteration(every)
    local a = tide.randn(48, 48)
    local v = tide.ones(48)
    for k = 1, 600 do
        local w = a:mv(v)
        w = w / w:norm()
        if k % every == 0 and (w - v):abs():max():item() < 1e-12 then
            break
        end
        v = w
    end
end
twins.item_power = { { "sync" }, function() power_iteration(1) end, function() power_iteration(100) end }

local function jacobi(every)
    local a, b, x = tide.rand(64, 64) * 0.01, tide.rand(64), tide.zeros(64)
    for k = 1, 600 do
        local y = b - a:mv(x)
        if k % every == 0 then
            if (y - x):norm():item() < -1 then
                break
            end
        end
        x = y
    end
end
twins.item_jacobi = { { "sync" }, function() jacobi(1) end, function() jacobi(100) end }

local function descent(every)
    local a, x = tide.rand(40, 40) * 0.01, tide.rand(40)
    for k = 1, 600 do
        local g = a:mv(x)
        if k % every == 0 and g:abs():sum():item() < -1 then
            break
        end
        x = x - g * 0.1
    end
end
twins.item_descent = { { "sync" }, function() descent(1) end, function() descent(100) end }

local scores, total = tide.rand(3000), 0
twins.item_elements = { { "elementwise_loop" }, function()
    for k = 1, 3000 do
        local s = scores[k]:item()
        total = s > 0.5 and total + s or total
    end
end, function()
    for _, s in ipairs(scores:tolist()) do
        total = s > 0.5 and total + s or total
    end
end }

local board = tide.rand(50, 50)
twins.item_board = { { "elementwise_loop" }, function()
    local best = -1
    for i = 1, 50 do
        for j = 1, 50 do
            best = math.max(best, board[i][j]:item())
        end
    end
end, function()
    local best = -1
    for _, row in ipairs(board:tolist()) do
        for _, v in ipairs(row) do
            best = math.max(best, v)
        end
    end
end }

-- ---- what could stand in front of the loop ----

twins.hoist_gram = { { "hoist" }, function()
    local x, w = tide.rand(400, 32), tide.rand(32)
    for _ = 1, 100 do
        w = w - x:t():matmul(x):mv(w) * 1e-6
    end
end, function()
    local x, w = tide.rand(400, 32), tide.rand(32)
    local gram = x:t():matmul(x)
    for _ = 1, 100 do
        w = w - gram:mv(w) * 1e-6
    end
end }

twins.hoist_inverse = { { "hoist" }, function()
    local a, s = tide.rand(24, 24) + tide.eye(24) * 24, tide.zeros(24)
    for _ = 1, 150 do
        s = s + tide.linalg.inv(a):mv(tide.rand(24))
    end
end, function()
    local a, s = tide.rand(24, 24) + tide.eye(24) * 24, tide.zeros(24)
    local inverse = tide.linalg.inv(a)
    for _ = 1, 150 do
        s = s + inverse:mv(tide.rand(24))
    end
end }

twins.hoist_scaled = { { "hoist" }, function()
    local x, w = tide.rand(2000, 16), tide.zeros(16)
    for _ = 1, 80 do
        local z = (x - x:mean(1)) / x:std(1)
        w = w - z:t():mv(z:mv(w) - 1) * 1e-5
    end
end, function()
    local x, w = tide.rand(2000, 16), tide.zeros(16)
    local z = (x - x:mean(1)) / x:std(1)
    for _ = 1, 80 do
        w = w - z:t():mv(z:mv(w) - 1) * 1e-5
    end
end }

local function waves(positions) return tide.cat({ positions:sin(), positions:cos() }, 2) end
twins.hoist_positions = { { "hoist" }, function()
    for _ = 1, 100 do
        local x = tide.rand(200, 32)
        x = x + waves(tide.arange(0, 200):reshape(200, 1) * tide.ones(1, 16) * 0.1)
        x:sum()
    end
end, function()
    local at = waves(tide.arange(0, 200):reshape(200, 1) * tide.ones(1, 16) * 0.1)
    for _ = 1, 100 do
        local x = tide.rand(200, 32)
        x = x + at
        x:sum()
    end
end }

twins.hoist_mask = { { "hoist" }, function()
    for _ = 1, 400 do
        local x = tide.rand(128, 128)
        local mask = tide.triu(tide.ones(128, 128), 1):bool()
        x:masked_fill(mask, -1e9):amax()
    end
end, function()
    local mask = tide.triu(tide.ones(128, 128), 1):bool()
    for _ = 1, 400 do
        local x = tide.rand(128, 128)
        x:masked_fill(mask, -1e9):amax()
    end
end }

-- ---- graphs for nothing ----

local function evaluate(net, x, quiet, steps)
    local _ <close> = quiet and tide.no_grad() or nil
    for _ = 1, steps do
        net(x):sum()
    end
end

local function mlp() return tide.nn.Sequential { tide.nn.Linear(16, 16), tide.nn.Tanh(), tide.nn.Linear(16, 8) } end

local function evaluation(quiet)
    evaluate(mlp(), tide.rand(8, 16), quiet, 400)
end
twins.no_grad_evaluation = { { "no_grad" }, function() evaluation(false) end, function() evaluation(true) end }

local function rollout(quiet)
    local _ <close> = quiet and tide.no_grad() or nil
    local w, state = leaf(8, 8), tide.rand(1, 8)
    for _ = 1, 500 do
        state = (state:matmul(w)):tanh()
    end
end
twins.no_grad_rollout = { { "no_grad" }, function() rollout(false) end, function() rollout(true) end }

local function recurrent(quiet)
    local cell, h, c = tide.nn.LSTMCell(8, 16), tide.zeros(2, 16), tide.zeros(2, 16)
    local _ <close> = quiet and tide.no_grad() or nil
    for _ = 1, 300 do
        h, c = cell(tide.rand(2, 8), { h, c })
    end
end
twins.no_grad_recurrent = { { "no_grad" }, function() recurrent(false) end, function() recurrent(true) end }

local function averaged(quiet)
    local weights, average = leaf(32), tide.zeros(32)
    local _ <close> = quiet and tide.no_grad() or nil
    for k = 1, 500 do
        average = average * 0.99 + weights * (1 / k)
        if not quiet then
            average = average:detach()
        end
    end
end
twins.no_grad_average = { { "no_grad" }, function() averaged(false) end, function() averaged(true) end }

local function trained_and_tested(quiet)
    local net, x, y = mlp(), tide.rand(8, 16), tide.rand(8, 8)
    local optimizer = tide.optim.SGD(net:parameters(), { lr = 0.01 })
    for _ = 1, 20 do
        optimizer:zero_grad()
        tide.nn.functional.mse_loss(net(x), y):backward()
        optimizer:step()
        evaluate(net, x, quiet, 20)
    end
end
twins.no_grad_tests = { { "no_grad" }, function() trained_and_tested(false) end, function() trained_and_tested(true) end }

-- ---- lists ----

local function tensors(n, ...)
    local list = {}
    for k = 1, n do
        list[k] = tide.rand(...)
    end
    return list
end

local function decayed(listed)
    local list, other = tensors(50, 20), tensors(50, 20)
    for _ = 1, 60 do
        if listed then
            tide.foreach.mul_(list, 0.99)
            tide.foreach.sub_(list, other, { alpha = 0.01 })
        else
            for k, x in ipairs(list) do
                x:mul_(0.99)
                x:sub_(other[k], { alpha = 0.01 })
            end
        end
    end
end
twins.foreach_decay = { { "foreach" }, function() decayed(false) end, function() decayed(true) end }

local function bounded(listed)
    local a, b = tensors(40, 24), tensors(40, 24)
    for _ = 1, 60 do
        if listed then
            tide.foreach.addcmul_(a, b, b, { value = 0.5 })
            tide.foreach.clamp_(a, -1, 1)
        else
            for k = 1, #a do
                a[k]:addcmul_(b[k], b[k], { value = 0.5 }):clamp_(-1, 1)
            end
        end
    end
end
twins.foreach_bounded = { { "foreach" }, function() bounded(false) end, function() bounded(true) end }

twins.foreach_target = { { "foreach" }, function()
    local a, b = tensors(30, 64), tensors(30, 64)
    for _ = 1, 80 do
        for k, x in ipairs(a) do
            x:lerp_(b[k], 0.01)
        end
    end
end, function()
    local a, b = tensors(30, 64), tensors(30, 64)
    for _ = 1, 80 do
        tide.foreach.lerp_(a, b, 0.01)
    end
end }

twins.foreach_squares = { { "foreach" }, function()
    local a, v = tensors(60, 16), tensors(60, 16)
    for _ = 1, 50 do
        for k = 1, #a do
            v[k]:mul_(0.9):addcmul_(a[k], a[k], { value = 0.1 })
        end
    end
end, function()
    local a, v = tensors(60, 16), tensors(60, 16)
    for _ = 1, 50 do
        tide.foreach.mul_(v, 0.9)
        tide.foreach.addcmul_(v, a, a, { value = 0.1 })
    end
end }

twins.foreach_clip = { { "foreach" }, function()
    local grads = tensors(40, 32)
    for _ = 1, 60 do
        for k = 1, #grads do
            grads[k] = grads[k]:clamp(-0.5, 0.5)
        end
    end
end, function()
    local grads = tensors(40, 32)
    for _ = 1, 60 do
        grads = tide.foreach.clamp(grads, -0.5, 0.5)
    end
end }

-- ---- one row at a time ----

local function net_row(batched)
    local net, x = mlp(), tide.rand(300, 16)
    local _ <close> = tide.no_grad()
    for _ = 1, 2 do
        if batched then
            net(x):argmax(2)
        else
            for k = 1, 300 do
                net(x[k]):argmax(1)
            end
        end
    end
end
twins.small_batch_net = { { "small_batch" }, function() net_row(false) end, function() net_row(true) end }

local function scored(batched)
    local w, x = tide.rand(64, 32), tide.rand(500, 64)
    if batched then
        local _ = x:matmul(w):softmax(2)
    else
        for k = 1, 500 do
            local _ = x[{ { k, k } }]:matmul(w):softmax(2)
        end
    end
end
twins.small_batch_scores = { { "small_batch" }, function() scored(false) end, function() scored(true) end }

local function trained_by_one(batched)
    local net, x, y = tide.nn.Linear(64, 16), tide.rand(64, 64), tide.rand(64, 16)
    for _ = 1, 5 do
        if batched then
            ((net(x) - y):square():sum()):backward()
        else
            for k = 1, 64 do
                (net(x[k]) - y[k]):square():sum():backward()
            end
        end
    end
end
twins.small_batch_training = { { "small_batch" }, function() trained_by_one(false) end, function() trained_by_one(true) end }

local function rotated(batched)
    local turn, points = tide.rand(16, 16), tensors(1500, 16)
    if batched then
        tide.stack(points):matmul(turn:t())
    else
        for k = 1, 1500 do
            points[k] = turn:mv(points[k])
        end
    end
end
twins.small_batch_points = { { "small_batch" }, function() rotated(false) end, function() rotated(true) end }

local function listed(batched)
    local net, rows = tide.nn.Linear(12, 12), {}
    for k = 1, 300 do
        rows[k] = {}
        for j = 1, 12 do
            rows[k][j] = math.sin(k * j)
        end
    end
    local _ <close> = tide.no_grad()
    if batched then
        net(tide.tensor(rows)):relu()
    else
        for k = 1, 300 do
            net(tide.tensor { rows[k] }):relu()
        end
    end
end
twins.small_batch_lists = { { "small_batch" }, function() listed(false) end, function() listed(true) end }

-- ---- optimizers by hand ----

local function by_hand(shapes, steps, update, optimizer, options, mended)
    local params, state = {}, {}
    for k, n in ipairs(shapes) do
        params[k] = leaf(n)
        state[k] = { m = tide.zeros(n), v = tide.zeros(n) }
    end
    local made = mended and tide.optim[optimizer](params, options)
    for step = 1, steps do
        for k, p in ipairs(params) do
            p.grad = tide.rand(shapes[k])
        end
        if mended then
            made:step()
        else
            local _ <close> = tide.no_grad()
            for k, p in ipairs(params) do
                update(p, state[k], step)
            end
        end
    end
end

local function adam(p, s, step)
    s.m = 0.9 * s.m + 0.1 * p.grad
    s.v = 0.999 * s.v + 0.001 * p.grad ^ 2
    local m, v = s.m / (1 - 0.9 ^ step), s.v / (1 - 0.999 ^ step)
    p:copy_(p - 0.01 * m / (v:sqrt() + 1e-8))
end
for _, n in ipairs { 4, 6, 8 } do
    local shapes = {}
    for k = 1, n do
        shapes[k] = 10 * k
    end
    twins["adam_of_" .. n] = { { "optimizer" }, function() by_hand(shapes, 150, adam) end,
        function() by_hand(shapes, 150, adam, "Adam", { lr = 0.01 }, true) end }
end
-- of one an optimizer costs more: nothing is to be said
twins.adam_of_1 = { {}, function() by_hand({ 10 }, 150, adam) end,
    function() by_hand({ 10 }, 150, adam, "Adam", { lr = 0.01 }, true) end, "optimizer" }
local function adam_in_place(p, s, step)
    s.m:mul_(0.9):add_(p.grad, { alpha = 0.1 })
    s.v:mul_(0.999):addcmul_(p.grad, p.grad, { value = 0.001 })
    p:addcdiv_(s.m / (1 - 0.9 ^ step), (s.v / (1 - 0.999 ^ step)):sqrt() + 1e-8, { value = -0.01 })
end
twins.adam_in_place = { { "optimizer" }, function() by_hand({ 8, 8, 8, 8, 8, 8, 8, 8 }, 100, adam_in_place) end,
    function() by_hand({ 8, 8, 8, 8, 8, 8, 8, 8 }, 100, adam_in_place, "Adam", { lr = 0.01 }, true) end }
local function decaying(p, s, step)
    p:mul_(0.9999)
    adam(p, s, step)
end
twins.adam_decaying = { { "optimizer" }, function() by_hand({ 8, 8, 8, 8, 8, 8 }, 100, decaying) end,
    function() by_hand({ 8, 8, 8, 8, 8, 8 }, 100, decaying, "AdamW", { lr = 0.01, weight_decay = 0.01 }, true) end }

-- ---- norms of gradients ----

local function bounded(mended)
    local params, last = {}, nil
    for k = 1, 30 do
        params[k] = leaf(40, 40)
        params[k].grad = tide.randn(40, 40)
    end
    for _ = 1, 100 do
        if mended then
            last = tide.nn.utils.clip_grad_norm_(params, 1.0)
        else
            local sum = 0
            for _, p in ipairs(params) do
                sum = sum + p.grad:pow(2):sum():item()
            end
            for _, p in ipairs(params) do
                p.grad:mul_(math.min(1, 1 / math.sqrt(sum)))
            end
            last = sum
        end
    end
    return last
end
-- lists of norms that tide.foreach makes are none of Lua's
twins.norm_of_gradients = { {}, function() bounded(false) end, function() bounded(true) end, "batch" }

-- ---- two mistakes ----

local function both(one, other) return { { twins[one][1][1], twins[other][1][1] },
    function() twins[one][2]() twins[other][2]() end, function() twins[one][3]() twins[other][3]() end } end
twins.two_gram_and_decay = both("hoist_gram", "foreach_decay")
twins.two_scores_and_mask = both("small_batch_scores", "hoist_mask")
twins.two_rollout_and_adam = both("no_grad_rollout", "adam_of_6")
twins.two_power_and_inverse = both("item_power", "hoist_inverse")
twins.two_points_and_bounded = both("small_batch_points", "foreach_bounded")
-- the two within one loop
local function step_of_two(mended)
    local x, list, other = tide.rand(400, 24), tensors(40, 16), tensors(40, 16)
    local gram = mended and x:t():matmul(x)
    for _ = 1, 60 do
        local g = mended and gram or x:t():matmul(x)
        tide.rand(24, 24):add_(g)
        if mended then
            tide.foreach.mul_(list, 0.9)
            tide.foreach.addcmul_(list, other, other, { value = 0.1 })
        else
            for k = 1, #list do
                list[k]:mul_(0.9):addcmul_(other[k], other[k], { value = 0.1 })
            end
        end
    end
end
twins.two_in_one_loop = { { "hoist", "foreach" }, function() step_of_two(false) end, function() step_of_two(true) end }

return twins
