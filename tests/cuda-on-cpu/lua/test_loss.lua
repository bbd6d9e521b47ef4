-- test_loss.lua: cross entropy on CUDA, forward and back, compared with the CPU's; what it refuses.
local t = require "harness"
local c = require "compare"

local function labels(n, classes)
    return (tide.arange(n) * 7 % classes + 1):long()
end

local function both_ways(what, x, target, weight, options)
    c.both(what, function(v, y, w)
        local leaf = v:detach():requires_grad_()
        local loss = tide.cross_entropy(leaf, y, w or nil, options)
        loss:backward(c.numbers(loss.shape, loss.dtype):to(loss.device) + 1)
        return loss:detach(), leaf.grad
    end, x, target, weight)
end

c.test("reductions_and_weights", function()
    for _, dtype in ipairs(c.floats) do
        for _, reduction in ipairs { "none", "sum", "mean" } do
            for _, n in ipairs { 1, 5, 33, 257, 1500 } do
                local what = tostring(dtype) .. " " .. reduction .. " " .. n
                both_ways(what, c.numbers({ 9, n }, dtype), labels(9, n), false, { reduction = reduction })
            end
            local x, target = c.numbers({ 40, 6 }, dtype), labels(40, 6)
            both_ways(tostring(dtype) .. " weighted " .. reduction, x, target, c.numbers({ 6 }, dtype):abs(),
                { reduction = reduction })
            both_ways(tostring(dtype) .. " ignoring " .. reduction, x, target, false,
                { reduction = reduction, ignore_index = 3 })
        end
    end
end)

c.test("images", function()
    local target = labels(2 * 5 * 8, 4):reshape(2, 5, 8)
    for _, reduction in ipairs { "none", "sum", "mean" } do
        both_ways(reduction, c.numbers({ 2, 4, 5, 8 }, tide.float32), target, false, { reduction = reduction })
        both_ways("turned " .. reduction, c.numbers({ 2, 5, 8, 4 }, tide.float64):permute(1, 4, 2, 3), target, false,
            { reduction = reduction })
    end
end)

c.test("many_lines", function()
    both_ways("sum", c.numbers({ 20000, 3 }, tide.float32), labels(20000, 3), false, { reduction = "sum" })
end)

c.test("extreme_scores", function()
    local inf = math.huge
    for _, row in ipairs { { -inf, 0, 1 }, { inf, 0, 1 }, { 0 / 0, 0, 1 }, { 1e30, 0, 0 }, { -inf, -inf, -inf } } do
        local x = tide.tensor { row, { 1, 2, 3 } }
        c.both(table.concat(row, " "), function(v, y) return tide.cross_entropy(v, y, { reduction = "none" }) end, x,
            tide.tensor { 2, 3 })
    end
end)

c.test("nothing_to_learn", function()
    c.both("no lines", function(v, y) return tide.cross_entropy(v, y), tide.cross_entropy(v, y, { reduction = "sum" }) end,
        tide.zeros(0, 3), tide.zeros(0, { dtype = tide.int64 }))
    c.both("all ignored", function(v, y) return tide.cross_entropy(v, y, { ignore_index = 2 }) end,
        tide.zeros(4, 3), tide.full({ 4 }, 2, { dtype = tide.int64 }))
end)

c.test("targets_that_are_no_class", function()
    local x = tide.zeros(3, 4, { device = "cuda" })
    local function of(values, scores)
        return function() return tide.cross_entropy(scores or x, tide.tensor(values):to("cuda")):item() end
    end
    t.error_has(of { 1, 5, 2 }, "target 5 at position 2 is not a class from 1 to 4")
    t.error_has(of { 1, 4, -2 }, "target -2 at position 3 is not a class from 1 to 4")
    t.error_has(of({ { 1, 2 }, { 3, 1 } }, tide.zeros(2, 2, 2, { device = "cuda" })),
        "target 3 at element 3, counted row by row, is not a class from 1 to 2")
    t.eq(of { 1, 4, 2 }() > 1, true)
end)
