-- What tide.distributed.simulate makes of steps whose answers are known by hand.
local t = require "harness"
local simulate = tide.distributed.simulate
local MIB <const> = 1 << 20

-- Three buckets of one MiB, a millisecond of backward each; on these links a MiB takes 1000 µs in one passage.
local function make_step()
    local buckets = {}
    for k = 1, 3 do
        buckets[k] = { bytes = MIB, ready_us = 1000 * k }
    end
    return { ranks = 4, rest_us = 500, buckets = buckets }
end
local LINKS <const> = { latency_us = 10, bandwidth = MIB * 1e3 }

local function near(found, expected) t.close(found, expected, 1e-6 * (1 + math.abs(expected))) end

t.test("one_rank_takes_backward_and_the_rest", function()
    local row = simulate(make_step(), { ranks = { 1 }, links = LINKS }).rows[1]
    near(row.step_us, 3500)
    t.eq(row.exposed_us, 0)
    t.eq(row.hidden, 1)
    t.eq(row.efficiency, 1)
end)

t.test("transfers_of_a_ring_go_one_behind_the_other", function()
    -- 6 hops of 10 µs and 1.5 passages: 1560 µs each; they end at 2560, 4120 and 5680.
    local row = simulate(make_step(), { ranks = { 4 }, links = LINKS, algorithm = "ring" }).rows[1]
    near(row.step_us, 6180)
    near(row.exposed_us, 2680)
    near(row.hidden, 1 - 2680 / 4680)
    near(row.efficiency, 3500 / 6180)
end)

t.test("direct_messages_share_the_link_and_their_latencies_overlap", function()
    -- 1.5 passages of 1000 µs each use the link from 1000 on; the last arrives 2 hops behind its end.
    for _, algorithm in ipairs { "direct", "auto" } do
        local row = simulate(make_step(), { ranks = { 4 }, links = LINKS, algorithm = algorithm }).rows[1]
        near(row.step_us, 1000 + 3 * 1500 + 20 + 500)
    end
    -- What all_reduce does among many ranks is MPI's own.
    local step = { rest_us = 0, buckets = { { bytes = MIB, ready_us = 0 } } }
    local rows = simulate(step, { ranks = { 16, 32 }, links = LINKS }).rows
    near(rows[1].step_us, 20 + 15 / 8 * 1000)
    near(rows[2].step_us, 10 * 1010)
end)

t.test("a_transfer_that_is_quick_is_hidden_but_for_the_last", function()
    local row = simulate(make_step(), { ranks = { 2 }, links = { latency_us = 0, bandwidth = MIB * 1e4 } }).rows[1]
    near(row.step_us, 3600)
    near(row.hidden, 2 / 3)
end)

t.test("trees_and_nodes_have_costs_of_their_own", function()
    local step = { rest_us = 0, buckets = { { bytes = MIB, ready_us = 0 } } }
    local function time(p, options)
        options.ranks = { p }
        return simulate(step, options).rows[1].step_us
    end
    near(time(8, { links = LINKS, algorithm = "tree" }), 2 * 3 * 1010)
    near(time(5, { links = LINKS, algorithm = "tree" }), 2 * 3 * 1010)
    near(time(1, { links = LINKS, algorithm = "tree" }), 0)
    local links = { latency_us = 10, bandwidth = MIB * 1e3, per_node = 4, ["local"] = { latency_us = 1, bandwidth = MIB * 1e4 } }
    near(time(8, { links = links, algorithm = "hierarchical" }), 6 + 150 + 20 + 1000)
    near(time(4, { links = links, algorithm = "hierarchical" }), 6 + 150)
    near(time(10000, { links = LINKS, algorithm = "ring" }), 2 * 9999 * 10 + 2 * 9999 / 10000 * 1000)
end)

t.test("other_buckets_are_cut_out_of_gradients_that_come_evenly", function()
    local caps = simulate(make_step(), { links = LINKS, algorithm = "ring", bucket_cap_mb = { 3, 1, 0.5 }, first_bucket_mb = 3 }).caps
    t.eq(caps.ranks, 4)
    t.eq({ caps[1].buckets, caps[2].buckets, caps[3].buckets }, { 1, 3, 6 })
    near(caps[1].step_us, 3000 + 60 + 4500 + 500)
    near(caps[2].step_us, 6180)
    -- 810 µs each from 500 on: the last of six ends at 500 + 6 * 810.
    near(caps[3].step_us, 500 + 6 * 810 + 500)
    -- The first bucket is smaller, as DistributedDataParallel's is.
    t.eq(simulate(make_step(), { links = LINKS, bucket_cap_mb = { 25 } }).caps[1].buckets, 2)
end)

t.test("a_module_says_where_gradients_end", function()
    local model = { buckets = {} }
    for k = 1, 3 do
        model.buckets[k] = { params = { tide.zeros(3 * MIB // 16), tide.zeros(MIB // 16) } }
    end
    local caps = simulate(make_step(), { links = LINKS, algorithm = "ring", model = model, bucket_cap_mb = { 0.8 } }).caps
    t.eq(caps[1].buckets, 6) -- of 3/4 and 1/4 MiB: no two fit together
    -- 60 and 1500 of each MiB: 1185 from 750 on; 435 for the quarters, whose end is what the next three quarters wait for.
    near(caps[1].step_us, 750 + 3 * 1185 + 3 * 435 + 500)
end)

t.test("links_are_found_from_what_transfers_took", function()
    local step = make_step()
    step.buckets[2].bytes = 2 * MIB
    for _, bucket in ipairs(step.buckets) do
        bucket.time_us = 60 + 1.5 * bucket.bytes / (MIB * 1e3) * 1e6
    end
    local result = simulate(step, { ranks = { 4 }, algorithm = "ring" })
    near(result.links.latency_us, 10)
    near(result.links.bandwidth, MIB * 1e3)
    t.is_true(result.links.fitted)
    local tree = simulate(step, { algorithm = "tree" }).links
    near(tree.latency_us, 15)
    near(tree.bandwidth, 4 / 1.5 * MIB * 1e3)
    local direct = simulate(step).links
    near(direct.latency_us, 30)
    near(direct.bandwidth, MIB * 1e3)
    t.is_true(tostring(simulate(step)):find("auto (direct with 4 ranks) of links (30 µs", 1, true) ~= nil)
    t.is_true(tostring(result):find("ring of links (10 µs, 1.05e+03 MB/s, fitted to what was measured)", 1, true) ~= nil, tostring(result))
end)

-- A profile of three steps, the first of which has other buckets: 200 µs of forward and optimizer, gradients after 100 and 300 µs.
local function make_profile()
    local events, now = {}, 0
    local function add(kind, name, start, duration, bytes)
        events[#events + 1] = { kind = kind, name = name, start_us = start, duration_us = duration, bytes = bytes }
    end
    for k = 1, 3 do
        add("operator", "linear", now, 150)
        now = now + 150
        add("backward", "SumBackward", now, 10)
        add("backward", "LinearBackward", now + 10, 290)
        if k > 1 then
            add("collective", "all_reduce bucket 1: 2.weight", now + 100, 100, 1000)
            add("collective", "all_reduce bucket 2: 1.weight", now + 150, 200, 3000)
        else
            add("collective", "all_reduce bucket 1: 2 parameters", now + 300, 50, 4000)
        end
        add("collective", "barrier", now + 320, 5, 0)
        now = now + 350
        add("optimizer", "SGD.step", now, 50)
        now = now + 50
    end
    return { events = function() return events end }
end

t.test("a_step_is_read_off_a_profile", function()
    local result = simulate(make_profile(), { measured = 2, ranks = { 2 }, bucket_cap_mb = { 1 } })
    local step = result.step
    t.eq(#step.buckets, 2)
    near(step.rest_us, 200)
    near(step.step_us, 550)
    near(step.buckets[1].ready_us, 100)
    near(step.buckets[2].ready_us, 150)
    near(step.buckets[1].time_us, 100)
    near(step.buckets[2].time_us, 150) -- it began while the first was under way
    near(result.rows[1].step_us, 550)
    t.eq(result.rows[1].buckets, 2)
    t.eq(result.caps[1].buckets, 1)
end)

t.test("transfers_that_are_under_way_together_share_the_link", function()
    -- Ten MB/s: 1000 bytes take 100 µs. The first two overlap, and end nearly together; the third is alone, a latency of 20 µs each time.
    local events = {}
    for k = 0, 2 do
        events[#events + 1] = { kind = "backward", name = "LinearBackward", start_us = 5000 * k, duration_us = 1000 }
        for j, at in ipairs { { 100, 215 }, { 110, 220 }, { 900, 340 } } do
            events[#events + 1] = { kind = "collective", name = "all_reduce bucket " .. j .. ": weight", start_us = 5000 * k + at[1],
                duration_us = at[2], bytes = j < 3 and 1050 or 3200 }
        end
    end
    local result = simulate({ events = function() return events end }, { measured = 2, ranks = { 2, 4 } })
    t.eq(#result.step.busy, 6)
    t.eq(result.step.busy[1].transfers, 2)
    near(result.step.busy[1].time_us, 230)
    near(result.links.latency_us, 10)
    near(result.links.bandwidth, 1e7)
    near(result.rows[1].step_us, result.step.step_us)
    near(result.rows[2].step_us, 900 + 480 + 20 + result.step.rest_us)
end)

t.test("one_bucket_a_step_makes_a_step_of_each", function()
    local events = {}
    for k = 0, 3 do
        events[2 * k + 1] = { kind = "backward", name = "LinearBackward", start_us = 1000 * k, duration_us = 100 }
        events[2 * k + 2] = { kind = "collective", name = "all_reduce bucket 1: weight", start_us = 1000 * k + 100, duration_us = 300, bytes = 8 }
    end
    local step = simulate({ events = function() return events end }, { measured = 2 }).step
    t.eq(#step.buckets, 1)
    near(step.step_us, 1000)
    near(step.rest_us, 600)
end)

t.test("what_is_wrong_is_said", function()
    local function wrong(text, ...)
        local arguments = table.pack(...)
        t.error_has(function() simulate(table.unpack(arguments, 1, arguments.n)) end, text)
    end
    wrong("simulate: a profile or a measured step expected, got number 5", 5)
    wrong("the profile has no step of DistributedDataParallel", { events = function() return {} end })
    wrong("simulate: unknown option 'rank'", make_step(), { rank = 3 })
    wrong("option algorithm: 'star' is none of: auto, direct, ring, tree, hierarchical", make_step(), { algorithm = "star" })
    wrong("option links: {latency_us = ..., bandwidth = ...} expected: nothing was measured between ranks", make_step())
    wrong("option links: {latency_us = µs, bandwidth = bytes a second} expected", make_step(), { links = { latency_us = 1 } })
    wrong("option links['local']:", make_step(), { links = LINKS, algorithm = "hierarchical" })
    wrong("option ranks: integers from 1 expected, got", make_step(), { links = LINKS, ranks = { 0 } })
    wrong("option bucket_cap_mb: numbers above 0 expected", make_step(), { links = LINKS, bucket_cap_mb = { -1 } })
    wrong("buckets[2]: {bytes = ..., ready_us = ...} expected",
        { rest_us = 0, buckets = { { bytes = 1, ready_us = 5 }, { bytes = 1, ready_us = 4 } } }, { links = LINKS })
end)
