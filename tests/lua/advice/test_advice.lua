-- test_advice.lua: what advice is like, what draws it and what must not, and what it is asked for in vain. The programs of
-- notebooks/advice are in test_advice_programs.lua.
local t = require "harness"
local advised = require "advised"
local json = require "json"
local profiler = tide.profiler

local function grow()
    local all = tide.zeros(0, 64)
    for _ = 1, 300 do
        all = tide.cat { all, tide.rand(16, 64) }
    end
end

t.test("advice_is_a_list_that_prints_a_line_for_each", function()
    local item, advice = advised.found(function() return profiler.profile { grow, with_stack = true } end, "grow")
    t.eq({ item.kind, item.count, item.measured }, { "grow", 299, true })
    t.is_true(item.file:find("test_advice.lua", 1, true))
    local text = tostring(advice)
    t.is_true(text:find(tostring(item), 1, true), tostring(item))
    t.is_true((text .. "\n"):find(("[^\n]*test_advice.lua:%d: 299 × cat .*: .* — .*× %%(measured%%)\n"):format(item.line)), text)
    local back = json.read(tide._require("advice.collect").to_json(advice))
    t.eq(#back, #advice)
    for k, other in ipairs(back) do
        t.eq({ other.kind, other.line, other.text, other.fix }, { advice[k].kind, advice[k].line, advice[k].text, advice[k].fix })
    end
end)

t.test("replays_leave_no_trace", function()
    tide.manual_seed(3)
    local profile = profiler.profile { grow, with_stack = true }
    local before, threads, grad = tide.get_rng_state(), tide.get_num_threads(), tide.is_grad_enabled()
    t.is_true(#profile:advice() > 0)
    t.is_true(tide.equal(before, tide.get_rng_state()))
    t.eq(tide.get_num_threads(), threads)
    t.eq(tide.is_grad_enabled(), grad)
    local events = #profile
    profile:advice()
    t.eq(#profile, events, "replays are not recorded")
end)

t.test("small_shares_are_not_worth_a_line", function()
    local x = tide.rand(1500, 1500)
    local profile = profiler.profile { function()
        for _ = 1, 3 do
            x:mm(x)
        end
        local all = tide.zeros(0)
        for _ = 1, 12 do
            all = tide.cat { all, tide.rand(2) }
        end
    end, with_stack = true }
    t.eq(advised.of_kind(profile:advice(), "grow"), nil)
end)

t.test("recurrences_are_no_lists_rows_or_batches", function()
    local w, steps = tide.rand(16, 16) / 16, tide.rand(300, 16)
    local profile = profiler.profile { function()
        local h = tide.zeros(16)
        for k = 1, 300 do
            h = tide.tanh(w:mv(h) + steps[k])
        end
    end, with_stack = true }
    local advice = profile:advice()
    for _, kind in ipairs { "foreach", "batch", "small_batch", "hoist" } do
        t.eq(advised.of_kind(advice, kind), nil, tostring(advice))
    end
end)

t.test("a_value_that_is_all_a_loop_makes_is_not_to_be_hoisted", function()
    local a, b = tide.rand(64, 64), tide.rand(64, 64)
    local profile = profiler.profile { function()
        for _ = 1, 100 do
            a:mm(b):exp():sum()
        end
    end, with_stack = true }
    t.eq(advised.of_kind(profile:advice(), "hoist"), nil, "it is being measured")
end)

t.test("a_loss_summed_with_its_history_is_found", function()
    local w, x = tide.rand(8, 8, { requires_grad = true }), tide.rand(8, 8)
    local function program()
        local total = 0
        for _ = 1, 40 do
            local loss = x:mm(w):square():mean()
            loss:backward()
            w.grad = nil
            total = total + loss
        end
    end
    local item = advised.found(function() return profiler.profile { program, with_stack = true } end, "no_grad")
    t.is_true(item.fix:find("loss:item()", 1, true), tostring(item))
end)

t.test("float64_that_crept_in_is_found_where_it_meets_float32", function()
    local x, scale = tide.rand(300, 300), tide.rand(300, { dtype = tide.float64 })
    local function program()
        local y = x * scale
        for _ = 1, 40 do
            y = y:tanh() + 0.5
        end
    end
    local item = advised.found(function() return profiler.profile { program, with_stack = true } end, "cast")
    t.is_true(item.text:find("float64", 1, true), tostring(item))
end)

t.test("an_optimizer_without_lists_is_found", function()
    local params = {}
    for k = 1, 40 do
        params[k] = tide.rand(8, { requires_grad = true })
        params[k].grad = tide.rand(8)
    end
    local function program()
        local optimizer = tide.optim.Adam(params, { foreach = false })
        for _ = 1, 30 do
            optimizer:step()
        end
    end
    local item = advised.found(function() return profiler.profile { program, with_stack = true } end, "optimizer")
    t.is_true(item.fix:find("foreach = false", 1, true), tostring(item))
end)

-- ---- recordings that hold less ----

t.test("an_empty_recording_draws_nothing", function()
    local profile = profiler.profile { function() end, with_stack = true }
    t.eq(#profile:advice(), 0)
    t.is_true(tostring(profile:advice()):find("no advice", 1, true))
    t.eq(tide._require("advice.collect").to_json(profile:advice()), "[]")
end)

t.test("a_running_profile_is_stopped_first", function()
    local profile = profiler.profile { with_stack = true }
    grow()
    t.is_true(#profile:advice() > 0)
    t.error_has(function() profile:step() end, "ended")
end)

t.test("without_lines_and_identities_what_is_there_will_do", function()
    local profile = profiler.profile(function()
        for _ = 1, 20 do
            collectgarbage()
        end
    end)
    local item = advised.of_kind(profile:advice(), "gc")
    t.is_true(item and item.file == nil and item.line == nil, tostring(profile:advice()))
    for _, other in ipairs(profiler.profile { grow }:advice()) do
        t.eq(other.kind, "gc", "without lines nobody knows that it is one loop")
    end
end)

t.test("traces_are_advised_on_without_a_replay", function()
    local path = os.tmpname()
    profiler.profile { function()
        for _ = 1, 30 do
            collectgarbage()
            tide.rand(3):sum():item()
        end
    end, with_stack = true }:export_chrome_trace(path)
    local advice = profiler.load(path):advice()
    os.remove(path)
    local item = advised.of_kind(advice, "gc")
    t.is_true(item and not item.measured, tostring(advice))
end)

t.test("garbage_that_earlier_work_left_is_not_the_programs", function()
    local function program()
        for _ = 1, 400 do
            tide.rand(200, 100):relu():sum():item()
        end
    end
    profiler.profile { program, with_stack = true }
    advised.try(function(last)
        do
            local junk = {}
            for k = 1, 300000 do
                junk[k] = { k }
            end
        end
        local advice = profiler.profile { program, with_stack = true }:advice()
        t.is_true(not last or not advised.of_kind(advice, "gc"), tostring(advice))
        return not advised.of_kind(advice, "gc")
    end)
end)

t.test("pytorchs_traces_are_read_too", function()
    local path = os.tmpname()
    local file, events = assert(io.open(path, "w")), {}
    for k = 0, 99 do
        events[#events + 1] = ('{"ph":"X","cat":"cpu_op","name":"aten::add_","pid":1,"tid":1,"ts":%d,"dur":5,"args":{"Input Dims":[[10],[10]]}}')
            :format(10 * k)
        events[#events + 1] = ('{"ph":"X","cat":"user_annotation","name":"load batch","pid":1,"tid":1,"ts":%d,"dur":4}'):format(10 * k + 5)
    end
    file:write('{"traceEvents":[', table.concat(events, ","), "]}")
    file:close()
    local advice = profiler.load(path):advice()
    os.remove(path)
    local item = advised.of_kind(advice, "data")
    t.is_true(item and not item.measured, tostring(advice))
end)

t.test("wrong_arguments_are_refused", function()
    local profile = profiler.profile(function() end)
    t.error_has(function() profile:advice(1) end, "advice")
    t.error_has(function() profile.advice() end, "advice")
    t.error_has(function() profile.advice(3) end, "advice")
end)

t.test("every_kind_has_a_page", function()
    for _, kind in ipairs(tide._require("advice.collect").kinds) do
        local page = tide.advice[kind]
        t.is_true(#page.text > 60 and #page.slow > 5 and #page.mended > 5, kind)
        t.is_true(tide._doc(page).doc:find(page.title, 1, true), kind)
    end
end)
