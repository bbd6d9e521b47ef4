-- test_values_profiler.lua: the figures of a profile's table and the fields of its trace that viewers need.
local t = require "harness"
local json = require "json"
local profiler = tide.profiler

local units = { ns = 1e-9, ["µs"] = 1e-6, ms = 1e-3, s = 1 }

local function seconds(text)
    local number, unit = text:match("^([%d.]+) (%S+)$")
    return tonumber(number) * units[unit]
end

-- The row of a name: self, total, calls, mean.
local function row(text, name)
    for line in text:gmatch("[^\n]+") do
        local self, total, calls, mean =
            line:match("^" .. name .. " +%a+ +([%d.]+ %S+) +[%d.]+ %% +([%d.]+ %S+) +(%d+) +([%d.]+ %S+)$")
        if self then
            return seconds(self), seconds(total), tonumber(calls), seconds(mean)
        end
    end
    error("no row of " .. name .. " in\n" .. text)
end

local function busy(seconds_long)
    local start = os.clock()
    while os.clock() - start < seconds_long do
    end
end

t.test("total_is_with_what_lies_inside_and_mean_is_its_share_of_a_call", function()
    local text = profiler.profile(function()
        for _ = 1, 4 do
            profiler.record("outer", function()
                busy(0.001)
                profiler.record("inner", function() busy(0.004) end)
            end)
        end
    end):table()
    local self, total, calls, mean = row(text, "outer")
    local inner_self, inner_total = row(text, "inner")
    t.eq(calls, 4)
    t.is_true(inner_total >= 0.016 and total >= 0.020, text)
    t.close(mean / (total / 4), 1, 0.01, "mean")
    t.close((self + inner_total) / total, 1, 0.02, "self and what lies inside")
    t.close(inner_self / inner_total, 1, 0.02)
end)

t.test("what_lies_within_itself_counts_once", function()
    local function descend(n)
        profiler.record("level", function()
            busy(0.002)
            if n > 1 then
                descend(n - 1)
            end
        end)
    end
    local profile = profiler.profile(function() descend(4) end)
    local self, total, calls = row(profile:table(), "level")
    t.eq(calls, 4)
    t.close(total / self, 1, 0.02, "total is the outermost one's time")
end)

t.test("limit_is_a_number_of_rows", function()
    local profile = profiler.profile(function() return (tide.ones(3):exp():sin() * 2):sum() end)
    local function rows(options)
        local n = -2 -- the heading and the line below
        for line in profile:table(options):gmatch("[^\n]+") do
            n = n + (line:match("^%.%.%. %d+ more$") and 0 or 1)
        end
        return n
    end
    local all = rows()
    t.is_true(all >= 5)
    t.eq({ rows { limit = 1 }, rows { limit = 3 }, rows { limit = 1000 } }, { 1, 3, all })
    t.is_true(profile:table { limit = 3 }:find(("... %d more"):format(all - 3), 1, true))
end)

local function trace_of(profile)
    local path = os.tmpname()
    profile:export_chrome_trace(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    os.remove(path)
    return json.read(text).traceEvents
end

t.test("arrows_end_in_the_slice_that_encloses_them", function()
    local ends = 0
    for _, e in ipairs(trace_of(profiler.profile(function()
        (tide.ones(3, { requires_grad = true }) * 2):sum():backward()
    end))) do
        if e.ph == "f" then
            ends = ends + 1
            t.eq(e.bp, "e")
        elseif e.ph == "s" then
            t.eq(e.bp, nil)
        end
    end
    t.is_true(ends >= 2)
end)

t.test("backward_of_what_was_recorded_before_has_no_arrows", function()
    local x = tide.ones(3, { requires_grad = true })
    local early = (x * 2):sum()
    local events = trace_of(profiler.profile(function()
        local late = (x * 3):exp()
        early:backward()
        return late
    end))
    local nodes = 0
    for _, e in ipairs(events) do
        nodes = nodes + (e.cat == "autograd" and 1 or 0)
        t.is_false(e.ph == "s" or e.ph == "f", "an arrow")
    end
    t.is_true(nodes >= 2)
end)

t.test("arrows_join_nodes_to_their_own_operators_alone", function()
    local x = tide.ones(3, { requires_grad = true })
    local slices, from, joined = {}, {}, 0
    local events = trace_of(profiler.profile(function()
        local y = x * 2
        local part = y[{ { 1, 2 } }]
        y[1] = 5 -- its node is made of another one, without an operator
        part:mul_(3)
        local loss = (part:sin() + y:sum()):sum()
        loss:backward()
    end))
    for _, e in ipairs(events) do
        if e.ph == "X" and (e.cat == "cpu_op" or e.cat == "autograd") then
            slices[e.ts] = e
        end
    end
    for _, e in ipairs(events) do
        if e.ph == "s" then
            from[e.id] = slices[e.ts]
        elseif e.ph == "f" then
            joined = joined + 1
            t.eq(from[e.id].args["Sequence number"], slices[e.ts].args["Sequence number"], slices[e.ts].name)
        end
    end
    t.is_true(joined >= 3)
end)

t.test("shapes_of_tensors_in_a_list_are_in_the_trace", function()
    local x, y = tide.ones(2, 3), tide.ones(4, 3)
    for _, e in ipairs(trace_of(profiler.profile(function() return tide.cat { x, y } end))) do
        if e.name == "cat" and e.cat == "cpu_op" then
            t.eq(e.args["Input Dims"], { { 2, 3 }, { 4, 3 } })
            return
        end
    end
    error("no slice of cat")
end)
