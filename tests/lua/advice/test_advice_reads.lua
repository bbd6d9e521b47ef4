-- test_advice_reads.lua: elements read and written one by one, by any number of indices and in any order; how the work
-- of the adviser grows; and what a look at an element costs.
local t = require "harness"
local advised = require "advised"

local function record(fn) return tide.profiler.profile { fn, with_stack = true } end

local N = 24
local A, C, x = tide.rand(N, N), tide.rand(8, 8, 8), tide.rand(N * N)

-- By name: the loop that takes elements, what the advice says of it, and the loop as it is better written.
local programs = {
    two_indices = { function()
        local s = 0
        for i = 1, N do
            for j = 1, N do
                s = s + A[{ i, j }]:item()
            end
        end
        return s
    end, "one element of 24 × 24 float32 read: local list = A:tolist(), and list[i][j]", function()
        local s = 0
        for _, row in ipairs(A:tolist()) do
            for _, value in ipairs(row) do
                s = s + value
            end
        end
        return s
    end },
    index_of_index = { function()
        local s = 0
        for i = 1, N do
            for j = 1, N do
                s = s + A[i][j]:item()
            end
        end
        return s
    end, "one element of 24 × 24 float32 read", function() return A:sum():item() end },
    by_columns = { function()
        local s = 0
        for i = 1, N do
            for j = 1, N do
                s = s + A[{ j, i }]:item()
            end
        end
        return s
    end, "one element of 24 × 24 float32 read" },
    along_the_diagonal = { function()
        local s = 0
        for _ = 1, 20 do
            for i = 1, N do
                s = s + A[{ i, i }]:item()
            end
        end
        return s
    end, "one element of 24 × 24 float32 read", function()
        local s = 0
        for _ = 1, 20 do
            s = s + A:diagonal():sum():item()
        end
        return s
    end },
    three_indices = { function()
        local s = 0
        for i = 1, 8 do
            for j = 1, 8 do
                for k = 1, 8 do
                    s = s + C[{ i, j, k }]:item()
                end
            end
        end
        return s
    end, "one element of 8 × 8 × 8 float32 read: local list = C:tolist(), and list[i][j][k]" },
    one_index = { function()
        local s = 0
        for i = 1, N * N do
            s = s + x[i]:item()
        end
        return s
    end, "one element of 576 float32 read: local list = x:tolist(), and list[k] in the loop" },
    written = { function()
        local B = tide.zeros(N, N)
        for i = 1, N do
            for j = 1, N do
                B[{ i, j }] = i * j
            end
        end
        return B:sum():item()
    end, "written: fill a table in Lua, then B = tide.tensor(table)", function()
        local rows = tide.arange(1, N + 1)
        return rows:outer(rows):sum():item()
    end },
}

for name, program in pairs(programs) do
    t.test("elements_are_told_of_" .. name, function()
        local item = advised.found(function() return record(program[1]) end, "elementwise_loop")
        t.is_true(item.text:find(program[2]:match("^[^:]*"), 1, true) ~= nil
            and tostring(item):find(program[2], 1, true) ~= nil, tostring(item))
        t.is_true(item.count >= 400 and item.gain > 1.5, tostring(item))
        if program[3] then
            t.eq(advised.of_kind(record(program[3]):advice(), "elementwise_loop"), nil)
            t.close(program[3](), program[1](), 1e-2)
        end
    end)
end

-- ---- how the work grows ----

-- Instructions of Lua that advice on a profile takes; replays apart, which have a budget of time.
local function work_of(profile)
    local replay, thousands = tide._require "advice.replay", 0
    local gain, seconds = replay.gain, replay.seconds
    replay.gain, replay.seconds = function() end, function() end
    debug.sethook(function() thousands = thousands + 1 end, "", 1000)
    local ok, message = pcall(profile.advice, profile)
    debug.sethook()
    replay.gain, replay.seconds = gain, seconds
    assert(ok, message)
    return thousands
end

local shapes_of_loops = {
    nested = function(n)
        local img = tide.rand(n, n)
        for i = 2, n - 1 do
            for j = 2, n - 1 do
                local s = 0
                for di = -1, 1 do
                    for dj = -1, 1 do
                        s = s + img[{ i + di, j + dj }]
                    end
                end
                img[{ i, j }] = s / 9
            end
        end
    end,
    fresh_and_kept = function(n) -- what is made from nothing, the same each time
        local kept = {}
        for k = 1, n * n do
            kept[k % 7] = tide.zeros(4)
        end
    end,
    by_hand = function(n) -- an optimizer written by hand
        local params, m, v = {}, {}, {}
        for k = 1, 12 do
            params[k], m[k], v[k] = tide.randn(8), tide.zeros(8), tide.zeros(8)
        end
        for _ = 1, n * n // 12 do
            for k, p in ipairs(params) do
                local g = p * 2
                m[k] = m[k] * 0.9 + g * 0.1
                v[k] = v[k] * 0.99 + g * g * 0.01
                params[k] = p - m[k] / (v[k]:sqrt() + 1e-8) * 0.01
            end
        end
    end,
    two_loops = function(n)
        for i = 1, n do
            local row = tide.ones(4)
            for _ = 1, n do
                row:add_(1)
            end
            row:sum():item()
            row:mul(i)
        end
    end,
}

for name, fn in pairs(shapes_of_loops) do
    t.test("advice_on_four_times_the_calls_is_not_much_more_than_four_times_the_work_" .. name, function()
        local few, many = record(function() fn(30) end), record(function() fn(60) end)
        local a, b = work_of(few), work_of(many)
        t.is_true(#many > 1.5 * #few, #many)
        t.is_true(b < 8 * a + 500, ("%d thousand instructions for %d events, %d for %d"):format(a, #few, b, #many))
    end)
end

-- ---- a look at an element ----

t.test("a_look_that_costs_little_is_no_advice_and_what_is_computed_for_it_is", function()
    local w, data = tide.randn(300, 300), tide.randn(300, 300)
    local cheap = record(function()
        local total = 0
        for _ = 1, 40 do
            total = total + w:matmul(data):sum():item()
        end
    end):advice()
    t.eq(advised.of_kind(cheap, "sync"), nil)
    local function looks() -- the loop goes on with x, and what is looked at is for the look alone
        local x = tide.rand(20000)
        for _ = 1, 60 do
            local y = x * 0.9
            if (y - x):abs():amax():item() < 1e-9 then
                break
            end
            x = y
        end
    end
    local item = advised.found(function() return record(looks) end, "sync")
    t.is_true(item.text:find("with what is computed for it alone", 1, true), item.text)
    t.is_true(item.measured)
end)

t.test("what_is_promised_is_what_the_whole_gains", function()
    for _, item in ipairs(record(programs.two_indices[1]):advice()) do
        local whole, there = tostring(item):match("in all ([%d.]+)×, there ([%d.]+)×")
        t.is_true(math.abs(tonumber(whole) - 1 / (1 - item.share * (1 - 1 / item.gain))) < 0.06 * tonumber(whole), tostring(item))
        t.is_true(math.abs(tonumber(there) - item.gain) <= 0.5 and tonumber(whole) <= tonumber(there), tostring(item))
    end
end)
