-- test_advice_people.lua: programs as people write them, and how they are better written: what each draws, and that the
-- mended one draws nothing of the kind; and programs that are right, which once drew advice.
local t = require "harness"
local advised = require "advised"
local counted = require "counted"

-- ---- slow programs and their mends: kind, slow, mended ----

local examples = tide.rand(500, 16)
local lists = {}
for k = 1, 200 do
    lists[k] = { math.sin(k), math.cos(k), k / 200 }
end

local function adam_by_hand(steps, width)
    local params, m, v = {}, {}, {}
    for k = 1, 6 do
        params[k] = tide.randn(width):requires_grad_()
        m[k], v[k] = tide.zeros(width), tide.zeros(width)
    end
    for step = 1, steps do
        for k = 1, #params do
            params[k].grad = tide.ones(width)
        end
        local _ <close> = tide.no_grad()
        for k, p in ipairs(params) do
            m[k]:mul_(0.9):add_(p.grad, { alpha = 0.1 })
            v[k]:mul_(0.999):addcmul_(p.grad, p.grad, { value = 0.001 })
            local mh, vh = m[k] / (1 - 0.9 ^ step), v[k] / (1 - 0.999 ^ step)
            p:sub_(mh / (vh:sqrt() + 1e-8) * 0.01)
        end
    end
end

local programs = {
    rows_stacked = { "batch", function()
        for step = 1, 100 do
            local rows = {}
            for k = 1, 48 do
                rows[k] = examples[(step * 7 + k * 13) % 500 + 1]
            end
            tide.stack(rows):sum()
        end
    end, function()
        for step = 1, 100 do
            local places = {}
            for k = 1, 48 do
                places[k] = (step * 7 + k * 13) % 500 + 1
            end
            examples:index_select(1, tide.tensor(places)):sum()
        end
    end, "rows looked up one by one" },
    lists_stacked = { "batch", function()
        for step = 1, 100 do
            local rows = {}
            for k = 1, 48 do
                rows[k] = tide.tensor(lists[(step + k) % 200 + 1])
            end
            tide.stack(rows):sum()
        end
    end, function()
        for step = 1, 100 do
            local rows = {}
            for k = 1, 48 do
                rows[k] = lists[(step + k) % 200 + 1]
            end
            tide.tensor(rows):sum()
        end
    end, "tensors made of a list each" },
    averages_of_weights = { "foreach", function()
        local averages, weights = {}, {}
        for k = 1, 40 do
            averages[k], weights[k] = tide.randn(16, 16), tide.randn(16, 16)
        end
        for _ = 1, 60 do
            for k = 1, #averages do
                averages[k]:mul_(0.99):add_(weights[k], { alpha = 0.01 })
            end
        end
    end, function()
        local averages, weights = {}, {}
        for k = 1, 40 do
            averages[k], weights[k] = tide.randn(16, 16), tide.randn(16, 16)
        end
        for _ = 1, 60 do
            tide.foreach.mul_(averages, 0.99)
            tide.foreach.add_(averages, weights, { alpha = 0.01 })
        end
    end, "mul_, add_" },
    adam_by_hand = { "optimizer", function() adam_by_hand(80, 64) end, function()
        local params = {}
        for k = 1, 6 do
            params[k] = tide.randn(64):requires_grad_()
        end
        local optimizer = tide.optim.Adam(params, { lr = 0.01 })
        for _ = 1, 80 do
            for k = 1, #params do
                params[k].grad = tide.ones(64)
            end
            optimizer:step()
        end
    end, "an optimizer by hand" },
}

for name, program in pairs(programs) do
    local kind, slow, mended, text = table.unpack(program)
    t.test("people_are_told_of_" .. name, function()
        local advice, right = counted.advice_of(slow), counted.advice_of(mended)
        local item = advised.of_kind(advice, kind)
        t.is_true(item and item.text:find(text, 1, true), tostring(advice))
        t.is_true(item.gain > 1.05 and item.share <= 1, tostring(item))
        t.is_true(not advised.of_kind(right, kind), tostring(right))
    end)
end

-- ---- right programs: kinds that they must not draw ----

local right = {
    joins_of_many_that_differ = { { "hoist", "sync" }, function() -- more tensors than are kept of a call
        local pieces, s = {}, 0
        for k = 1, 20 do
            pieces[k] = tide.rand(50, 64)
        end
        for _ = 1, 60 do
            pieces[20] = tide.rand(50, 64)
            s = s + tide.cat(pieces):sum():item()
        end
    end },
    a_loss_that_is_printed = { { "sync" }, function()
        local x, y, w = tide.randn(800, 32), tide.randn(800, 1), tide.zeros(32, 1, { requires_grad = true })
        local optimizer, total = tide.optim.SGD({ w }, { lr = 0.01 }), 0
        for _ = 1, 60 do
            optimizer:zero_grad()
            local loss = (x:matmul(w) - y):square():mean()
            loss:backward()
            optimizer:step()
            total = total + loss:item()
        end
    end },
    sums_that_are_wanted = { { "sync" }, function()
        local total, table_of = 0, tide.rand(500, 64)
        for step = 1, 60 do
            total = total + table_of:index_select(1, tide.tensor { step, step + 1, step + 2 }):sum():item()
        end
    end },
    a_small_parameter_among_others = { { "scalar" }, function() adam_by_hand(40, 1) adam_by_hand(40, 64) end },
    pieces_that_are_kept = { { "batch" }, function()
        local pieces = {}
        for k = 1, 12 do
            pieces[k] = tide.rand(32)
        end
        for _ = 1, 60 do
            tide.stack(pieces):sum()
        end
    end },
}

for name, program in pairs(right) do
    t.test("nothing_of_the_kind_is_said_of_" .. name, function()
        local advice = counted.advice_of(program[2])
        for _, kind in ipairs(program[1]) do
            t.is_true(not advised.of_kind(advice, kind), tostring(advice))
        end
    end)
end
