-- trace.lua: a job whose ranks record what they do: transfers are events of profiles, all ranks' events make one trace, and a
-- report says what became of each transfer. Argument: the trace's path. The last rank comes late to a collective.
local dist, nn, F = tide.distributed, tide.nn, tide.nn.functional
dist.init { timeout = 30 }
local rank, size = dist.rank(), dist.size()
local path = arg[1]

local function fails_with(text, fn)
    local ok, message = pcall(fn)
    assert(not ok and message:find(text, 1, true), tostring(message))
end

-- ---- what a profile has ----

tide.manual_seed(1)
local net = dist.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 3)),
    { bucket_cap_mb = 0.1, first_bucket_mb = 0.01 })
local x, y = tide.randn(32, 64), tide.randint(1, 3, { 32 })
local function step()
    net:zero_grad()
    F.cross_entropy(net(x), y):backward()
end
step()
step() -- the buckets follow the first backward by now
local profile = tide.profiler.profile(function()
    for _ = 1, 3 do
        step()
    end
    if rank == size - 1 then
        tide.sleep(0.1)
    end
    dist.barrier()
    tide.profiler.record("asks", function() dist.all_reduce(tide.ones(1000)) end)
    if size > 1 and rank < 2 then
        dist[rank == 0 and "send" or "recv"](tide.ones(5, { dtype = tide.float64 }), 1 - rank)
    end
end)
local events, found, waits = profile:events(), {}, {}
for _, e in ipairs(events) do
    if e.kind == "collective" then
        found[e.name] = found[e.name] or {}
        table.insert(found[e.name], e)
        assert(e.duration_us > 0 and e.track:find "^transfers", e.track)
    elseif e.kind == "wait" then
        waits[e.name] = (waits[e.name] or 0) + 1
    end
end
local averaged = {}
for name, list in pairs(found) do
    table.sort(list, function(a, b) return a.start_us < b.start_us end)
    if name:find "^all_reduce bucket" then
        averaged[#averaged + 1] = name
        assert(#list == 3, name .. ": an event for each step")
        for k = 2, 3 do
            assert(list[k].number > list[k - 1].number and list[k].group == 0, "numbers rise")
        end
    end
end
table.sort(averaged)
assert(averaged[1]:find "^all_reduce bucket 1: 5%.%a+, 5%.%a+$", averaged[1])
assert(#averaged == #net.buckets and #averaged > 1, "a name for each bucket")
local total = 0
for _, name in ipairs(averaged) do
    total = total + found[name][1].bytes
end
local expected = 0
for _, p in net:named_parameters() do
    expected = expected + p:numel() * 4
end
assert(total == expected, "buckets' bytes are those of all gradients")
assert(events[found.all_reduce[1].launcher].name == "asks", "a transfer knows who asked for it")
assert(found.all_reduce[1].bytes == 4000 and found.barrier[1].bytes == 0)
if size > 1 then
    assert(rank == size - 1 or waits["wait for barrier"] == 1, "the script waited for the late rank")
    local pair = found[rank == 0 and "send" or "recv"]
    assert(rank > 1 or pair[1].bytes == 40 and not pair[1].number, "one to another has no number")
end
assert(tostring(profile:table()):find("barrier +collective"), "the table of all rows, short ones too, names the transfer")

-- Of more than may be kept the newest stay.
local many = tide.profiler.profile { function()
    for k = 1, 700 do
        dist.all_reduce(tide.ones(k))
    end
end, max_events = 300, kernels = true }
local kept = {}
for _, e in ipairs(many:events()) do
    kept[#kept + 1] = e.kind == "collective" and e or nil
end
table.sort(kept, function(a, b) return a.number < b.number end)
assert(#kept > 0 and #kept <= 300 and kept[#kept].bytes == 2800, "the last transfer is kept")
for k = 2, #kept do
    assert(kept[k].number == kept[k - 1].number + 1, "and those before it")
end

-- ---- the report ----

local report = dist.communication(profile)
local rows = {}
for _, row in ipairs(report) do
    rows[row.name] = row
    assert(row.hidden >= 0 and row.hidden <= 1 and row.time_us > 0, row.name)
    assert(math.abs(row.bandwidth * row.time_us / 1e6 - row.bytes) <= 1e-6 * (row.bytes + 1), row.name)
end
for _, name in ipairs(averaged) do
    assert(rows[name].calls == 3 and rows[name].meetings == 3, name)
end
assert(not rows.send and not rows.recv, "collectives alone")
if size > 1 then
    local row = rows.barrier
    assert(row.last == size - 1 and row.last_times == 1 and row.late_us > 50000, tostring(report))
    assert(report.clocks_us > 0 and report.clocks_us < 50000, report.clocks_us)
end
assert(tostring(report):find("collective +calls +bytes +time +bandwidth +hidden +last\n"))

-- A transfer that lies in backward's kernels whole is hidden whole: no rounding makes more of it.
for _ = 1, 40 do
    for _, row in ipairs(dist.communication(tide.profiler.profile(step))) do
        assert(row.hidden >= 0 and row.hidden <= 1, ("%s: %.17g"):format(row.name, row.hidden))
    end
end

-- ---- what it would be elsewhere ----

local links = { latency_us = 50, bandwidth = 1e9 }
local simulated = dist.simulate(profile, { links = links, ranks = { 1, size, 10000 }, model = net })
assert(#simulated.step.buckets == #net.buckets and simulated.step.ranks == size)
for k, bucket in ipairs(simulated.step.buckets) do
    assert(bucket.bytes == net.buckets[k].row:numel() * 4 and bucket.ready_us >= 0 and bucket.time_us >= 0, k)
end
assert(simulated.rows[1].exposed_us == 0 and simulated.rows[3].step_us > simulated.rows[1].step_us)
if size > 1 then
    assert(dist.simulate(profile).links.fitted)
else
    fails_with("nothing was measured between ranks", function() dist.simulate(profile) end)
end

-- ---- the trace ----

dist.export_chrome_trace(profile, path)
local counts = dist.all_gather_object(#events)
local loaded = tide.profiler.load(path):events()
local of_rank, all = {}, 0
for _, e in ipairs(loaded) do
    local r = math.tointeger(tonumber(e.track:match "^rank (%d+): "))
    of_rank[r] = (of_rank[r] or 0) + 1
    all = all + 1
    if e.kind == "collective" and e.launcher then -- and not of another rank
        assert(loaded[e.launcher].track:find("^rank " .. r .. ": "), "what asked for a transfer is of its rank")
    end
end
for r = 0, size - 1 do
    assert(of_rank[r] == counts[r + 1], "all events of each rank")
end
-- No rank leaves a barrier before the last has come to it.
local last_start, first_end = 0, math.huge
local barriers = 0
for _, e in ipairs(loaded) do
    if e.kind == "collective" and e.name == "barrier" then
        barriers = barriers + 1
        assert(e.number == found.barrier[1].number and e.group == 0 and e.bytes == 0, "a trace that is read has the numbers")
        last_start, first_end = math.max(last_start, e.start_us), math.min(first_end, e.start_us + e.duration_us)
    end
end
assert(barriers == size, "the ranks' barrier")
assert(first_end + report.clocks_us * 2 >= last_start, ("clocks: %g, %g"):format(first_end, last_start))

-- ---- what is wrong is said on all ranks ----

local text = ("rank %d: a profile expected, got nil"):format(size - 1)
local mine = rank ~= size - 1 and profile or nil
fails_with("export_chrome_trace: " .. text, function() dist.export_chrome_trace(mine, path) end)
fails_with("communication: " .. text, function() dist.communication(mine) end)
fails_with("has nothing that this process recorded", function() dist.export_chrome_trace(tide.profiler.load(path), path) end)
fails_with("export_chrome_trace: rank 0: /nowhere/at/all.json: No such file", function() dist.export_chrome_trace(profile, "/nowhere/at/all.json") end)
assert(dist.all_reduce(tide.ones(1)):item() == size, "the job goes on")
if rank == 0 and arg[2] then
    print(report)
end
print("rank " .. rank .. ": ok")
