-- distributed/simulator.lua: what a step of data parallel training takes with other numbers of ranks, other links and other
-- sizes of buckets, worked out from one that was measured.
--
-- A step is backward, in which bucket after bucket becomes ready, and the rest (forward, optimizer). Transfers use the link one
-- behind the other, each when its bucket is ready and the one before it is through; the step goes on when backward and all
-- transfers are through. What a transfer of n bytes among p ranks takes, with a latency a and a bandwidth b of a link each way:
--   direct        2 a + 2 (p - 1) / p n / b, from each to each; latencies of transfers that are under way together overlap
--   ring          2 (p - 1) a + 2 (p - 1) / p n / b
--   tree          2 ceil(log2 p) (a + n / b)
--   hierarchical  a ring of the m ranks of a node on its own links, and one of the p / m nodes
--   auto          what all_reduce does (engine/distributed/README.md): over MPI direct among few ranks, else MPI's own, which is a
--                 tree in Open MPI and moves what a ring does in MPICH; over NCCL a ring
local tide = ...
local fail = tide._fail

local MIB <const> = 1 << 20
local RANKS <const>, CAPS <const> = { 1, 2, 4, 8, 16, 64, 256, 1024, 10000 }, { 0.5, 1, 5, 10, 25, 50, 100 }
local simulator = {}

local function median(values)
    table.sort(values)
    local n = #values
    return n % 2 == 1 and values[n // 2 + 1] or (values[n // 2] + values[n // 2 + 1]) / 2
end

-- ---- what transfers take ----

-- A transfer's latency and how long it uses the link, µs.
local function ring(p, bytes, link)
    if p < 2 then
        return 0.0, 0.0
    end
    return 2 * (p - 1) * link.latency_us, 2 * (p - 1) / p * bytes / link.bandwidth * 1e6
end

local function direct(p, bytes, link)
    local latency, time = ring(p, bytes, link)
    return math.min(latency, 2 * link.latency_us), time
end

local function tree(p, bytes, link)
    local hops = 2 * math.ceil(math.log(p, 2) - 1e-9)
    return hops * link.latency_us, hops * bytes / link.bandwidth * 1e6
end

local COSTS <const> = {
    direct = direct,
    ring = ring,
    tree = tree,
    hierarchical = function(p, bytes, link)
        local node = math.min(link.per_node, p)
        local near_latency, near = ring(node, bytes, link["local"])
        local latency, time = ring(math.ceil(p / node), bytes, link)
        return near_latency + latency, near + time
    end,
}

-- Ranks among which all_reduce over MPI sends from each to each.
local DIRECT_RANKS <const> = 16

-- What is meant by an algorithm among p ranks.
local function kind_of(algorithm, p)
    if algorithm ~= "auto" then
        return algorithm
    end
    local backend = tide.distributed.backend()
    if string.find(backend, "^nccl") then
        return "ring"
    end
    return p <= DIRECT_RANKS and "direct" or string.find(backend, "MPICH") and "ring" or "tree"
end

-- a and b of a k + b n = t for points {n, t, k}, by least squares of relative errors; neither is below 0.
local function fit_line(points)
    local kk, kn, nn, kt, nt = 0, 0, 0, 0, 0
    for _, point in ipairs(points) do
        local n, t, k = point[1], math.max(point[2], 1e-3), point[3]
        local weight = 1 / t ^ 2
        kk, kn, nn = kk + weight * k * k, kn + weight * k * n, nn + weight * n * n
        kt, nt = kt + weight * k * t, nt + weight * n * t
    end
    local det = kk * nn - kn * kn
    local a = det > 1e-9 * kk * nn and (kt * nn - kn * nt) / det or 0
    if a < 0 then
        a = 0
    end
    local b = (nt - a * kn) / nn
    if b <= 0 then
        return kt / kk, 0
    end
    return a, b
end

-- The links by which transfers among p ranks would have taken what they took. `busy` are times in which some were under way,
-- {bytes, time_us, transfers}: those that are under way together share the link, so each by itself says nothing.
local function fit_links(busy, p, algorithm)
    if p < 2 then
        fail("simulate: option links: {latency_us = ..., bandwidth = ...} expected: nothing was measured between ranks")
    elseif algorithm == "hierarchical" then
        fail("simulate: option links: what was measured does not tell a node's own links from those between nodes")
    end
    local kind, points = kind_of(algorithm, p), {}
    for k, one in ipairs(busy) do
        points[k] = { one.bytes, one.time_us, kind == "direct" and 1 or one.transfers }
    end
    local a, b = fit_line(points)
    local hops, passes = COSTS[kind](p, 1, { latency_us = 1, bandwidth = 1e6 })
    return { latency_us = a / hops, bandwidth = b > 0 and passes / b * 1e6 or math.huge, fitted = true }
end

-- ---- a step that was recorded ----

-- The reductions of buckets, by steps: {{start, finish, bytes, number of the bucket}, ..., begin = when backward began} for
-- each. A step begins with bucket 1, behind an event of backward that no transfer of the step before follows.
local function find_steps(events)
    local transfers, starts = {}, {}
    for _, e in ipairs(events) do
        local bucket = e.kind == "collective" and tonumber(string.match(e.name, "^all_reduce bucket (%d+):"))
        if bucket then
            transfers[#transfers + 1] = { start = e.start_us, finish = e.start_us + e.duration_us, bytes = e.bytes, bucket = bucket }
        elseif e.kind == "backward" then
            starts[#starts + 1] = e.start_us
        end
    end
    table.sort(transfers, function(a, b) return a.start < b.start end)
    table.sort(starts)
    local steps, at = {}, 1
    for _, t in ipairs(transfers) do
        local begin = starts[at]
        if t.bucket == 1 and begin and begin <= t.start then
            steps[#steps + 1] = { begin = begin }
        end
        if #steps > 0 then
            table.insert(steps[#steps], t)
        end
        while starts[at] and starts[at] <= t.start do
            at = at + 1
        end
    end
    return steps
end

-- Steps that did the same as the last one.
local function alike(steps)
    local model, list = steps[#steps], {}
    for k, step in ipairs(steps) do
        local same = #step == #model
        for j = 1, same and #step or 0 do
            same = same and step[j].bytes == model[j].bytes
        end
        if same then
            step.next = steps[k + 1]
            list[#list + 1] = step
        end
    end
    return list
end

local function bounds(events)
    local first, last = math.huge, -math.huge
    for _, e in ipairs(events) do
        first, last = math.min(first, e.start_us), math.max(last, e.start_us + e.duration_us)
    end
    return first, last
end

-- What a step does besides backward and transfers: up to the next one's backward; of a single step, what lies around it.
local function rest_of(steps, events)
    local rests = {}
    for _, step in ipairs(steps) do
        if step.next then
            rests[#rests + 1] = math.max(0, step.next.begin - step.finish)
        end
    end
    if #rests > 0 then
        return median(rests)
    end
    local first, last = bounds(events)
    local step = steps[#steps]
    return step.begin - first + math.max(0, last - step.finish)
end

-- Times in which some of a step's transfers were under way, behind those in a list.
local function add_busy(list, step)
    local one
    for _, t in ipairs(step) do
        if not one or t.start >= one.finish then
            one = { start = t.start, finish = t.finish, bytes = 0, transfers = 0 }
            list[#list + 1] = one
        end
        one.bytes, one.transfers, one.finish = one.bytes + t.bytes, one.transfers + 1, math.max(one.finish, t.finish)
        one.time_us = one.finish - one.start
    end
end

--- measure(profile, ranks): a step as it was on this rank, among so many: {ranks, rest_us, step_us, buckets = {{bytes,
--- ready_us, time_us}, ...}, busy = {{bytes, time_us, transfers}, ...}}, times from the beginning of backward on.
function simulator.measure(profile, ranks)
    local ok, events = pcall(function() return profile:events() end)
    if not ok then
        fail("simulate: a profile or a measured step expected, got %s", tide._describe(profile))
    end
    local steps = find_steps(events)
    if #steps == 0 then
        fail("simulate: the profile has no step of DistributedDataParallel")
    end
    steps = alike(steps)
    local plan = { ranks = ranks, buckets = {}, busy = {} }
    for _, step in ipairs(steps) do
        add_busy(plan.busy, step)
        step.finish, step.served = step[#step].start, {}
        local before = -math.huge
        for k, t in ipairs(step) do
            step.served[k] = math.max(0, t.finish - math.max(t.start, before))
            before = math.max(before, t.finish)
        end
        step.finish = math.max(step.finish, before)
    end
    for k, t in ipairs(steps[1]) do
        local ready, times = {}, {}
        for j, step in ipairs(steps) do
            ready[j], times[j] = step[k].start - step.begin, step.served[k]
        end
        plan.buckets[k] = { bytes = t.bytes, bucket = t.bucket, ready_us = median(ready), time_us = median(times) }
    end
    for k = 2, #plan.buckets do -- medians of several steps need not rise
        plan.buckets[k].ready_us = math.max(plan.buckets[k].ready_us, plan.buckets[k - 1].ready_us)
    end
    local took = {}
    plan.rest_us = rest_of(steps, events)
    for j, step in ipairs(steps) do
        took[j] = step.finish - step.begin + plan.rest_us
    end
    plan.step_us = median(took)
    return plan
end

local function check_plan(plan)
    local before = 0
    for k, bucket in ipairs(plan.buckets) do
        if type(bucket) ~= "table" or type(bucket.bytes) ~= "number" or type(bucket.ready_us) ~= "number" or bucket.bytes < 0
            or bucket.ready_us < before then
            fail("simulate: buckets[%d]: {bytes = ..., ready_us = ...} expected, in the order in which they become ready", k)
        end
        before = bucket.ready_us
    end
    if #plan.buckets == 0 or type(plan.rest_us) ~= "number" then
        fail("simulate: a step has rest_us and buckets")
    end
    return plan
end

-- ---- other buckets ----

-- The gradients' bytes in a bucket: as its module says, else nothing is known.
local function sizes_of(model, plan, k)
    local bucket = model and model.buckets[plan.buckets[k].bucket or k]
    local sizes = {}
    for j, p in ipairs(bucket and bucket.params or {}) do
        sizes[j] = p:numel() * p:element_size()
    end
    return sizes
end

-- Gradients in the order in which they come, as pieces {bytes, sent, ready_us}: within a bucket they come evenly. Where it is not
-- known where one gradient ends, pieces are `grain` bytes.
local function pieces_of(plan, model, grain)
    local pieces, before = {}, 0
    for k, bucket in ipairs(plan.buckets) do
        local sizes, total = sizes_of(model, plan, k), 0
        if #sizes == 0 then
            local count = math.max(1, math.ceil(bucket.bytes / grain))
            for j = 1, count do
                sizes[j] = bucket.bytes / count
            end
        end
        for _, size in ipairs(sizes) do
            total = total + size
        end
        local at = 0
        for _, size in ipairs(sizes) do
            at = at + size
            pieces[#pieces + 1] = { bytes = size, sent = total > 0 and size / total * bucket.bytes or 0,
                ready_us = before + (bucket.ready_us - before) * (total > 0 and at / total or 1) }
        end
        before = bucket.ready_us
    end
    return pieces
end

-- Buckets of at most so many MiB, the first of `first_mb`, as DistributedDataParallel makes them.
local function regroup(plan, model, cap_mb, first_mb)
    local list, held = {}, nil
    local most = math.min(first_mb, cap_mb) * MIB
    for _, piece in ipairs(pieces_of(plan, model, most)) do
        if not held or held.size > 0 and held.size + piece.bytes > most * (1 + 1e-9) then
            most = #list == 0 and most or cap_mb * MIB
            held = { bytes = 0, size = 0 }
            list[#list + 1] = held
        end
        held.size, held.bytes, held.ready_us = held.size + piece.bytes, held.bytes + piece.sent, piece.ready_us
    end
    return list
end

-- ---- a step ----

-- When the step goes on, µs from backward's beginning; and what transfers took.
local function run(buckets, algorithm, p, link)
    local kind = kind_of(algorithm, p)
    local through, finish, total = 0.0, 0.0, 0.0
    for _, bucket in ipairs(buckets) do
        local latency, time = COSTS[kind](p, bucket.bytes, link)
        through, total = math.max(through, bucket.ready_us) + time, total + latency + time
        finish = math.max(finish, through + latency)
        through = kind == "direct" and through or finish
    end
    return math.max(finish, buckets[#buckets].ready_us), total
end

local function row_of(plan, buckets, algorithm, p, link)
    local backward = buckets[#buckets].ready_us
    local finish, total = run(buckets, algorithm, p, link)
    local exposed = finish - backward
    return { ranks = p, step_us = finish + plan.rest_us, exposed_us = exposed, hidden = total > 0 and 1 - exposed / total or 1,
        efficiency = (backward + plan.rest_us) / (finish + plan.rest_us) }
end

-- ---- the face ----

local OPTIONS <const> = { ranks = "table", links = "table", algorithm = "string", measured = "number", bucket_cap_mb = "table",
    first_bucket_mb = "number", model = "table" }

local function positive(x) return type(x) == "number" and x > 0 and x < math.huge end

local function check_link(link, name)
    if type(link) ~= "table" or type(link.latency_us) ~= "number" or link.latency_us < 0 or type(link.bandwidth) ~= "number"
        or link.bandwidth <= 0 then
        fail("simulate: option %s: {latency_us = µs, bandwidth = bytes a second} expected, got %s", name, tide._describe(link))
    end
end

local function check_options(options)
    for name, value in pairs(options) do
        if not OPTIONS[name] then
            fail("simulate: unknown option '%s'", tostring(name))
        elseif type(value) ~= OPTIONS[name] then
            fail("simulate: option %s: a %s expected, got %s", name, OPTIONS[name], tide._describe(value))
        end
    end
    local algorithm = options.algorithm or "auto"
    if algorithm ~= "auto" and not COSTS[algorithm] then
        fail("simulate: option algorithm: '%s' is none of: auto, direct, ring, tree, hierarchical", algorithm)
    end
    for _, p in ipairs(options.ranks or {}) do
        if math.type(p) ~= "integer" or p < 1 then
            fail("simulate: option ranks: integers from 1 expected, got %s", tide._describe(p))
        end
    end
    for _, cap in ipairs(options.bucket_cap_mb or {}) do
        if not positive(cap) then
            fail("simulate: option bucket_cap_mb: numbers above 0 expected, got %s", tide._describe(cap))
        end
    end
    if options.first_bucket_mb and not positive(options.first_bucket_mb) then
        fail("simulate: option first_bucket_mb: a number above 0 expected, got %s", tostring(options.first_bucket_mb))
    elseif options.model and not options.model.buckets then
        fail("simulate: option model: a DistributedDataParallel expected")
    end
    if options.links then
        check_link(options.links, "links")
    end
    if options.links and algorithm == "hierarchical" then
        check_link(options.links["local"], "links['local']")
        if math.type(options.links.per_node) ~= "integer" or options.links.per_node < 1 then
            fail("simulate: option links: per_node: how many ranks a node has, got %s", tide._describe(options.links.per_node))
        end
    end
    return algorithm
end

local Simulation = { __name = "Simulation" }

local function ms(us) return string.format("%.3f ms", us / 1e3) end

local function link_text(link)
    return string.format("%.3g µs, %.3g MB/s", link.latency_us, link.bandwidth / 1e6)
end

function Simulation:__tostring()
    local form = "%10s  %8s  %12s  %12s  %6s  %10s"
    local lines = { string.format(form, "ranks", "buckets", "step", "exposed", "hidden", "efficiency") }
    local function add(first, row)
        lines[#lines + 1] = string.format(form, first, row.buckets, ms(row.step_us), ms(row.exposed_us), string.format("%.0f %%", 100 * row.hidden),
            string.format("%.0f %%", 100 * row.efficiency))
    end
    for _, row in ipairs(self.rows) do
        add(tostring(row.ranks), row)
    end
    lines[#lines + 1] = string.format(form, "bucket MiB", "buckets", "step", "exposed", "hidden", "efficiency")
    for _, row in ipairs(self.caps) do
        add(string.format("%g", row.bucket_cap_mb), row)
    end
    local ranks = self.caps.ranks
    local kind = self.algorithm == "auto" and string.format("auto (%s with %d ranks)", kind_of("auto", ranks), ranks) or self.algorithm
    lines[#lines + 1] = string.format("%s of links (%s%s)%s; sizes of buckets with %d ranks; exposed is what backward does not hide", kind,
        link_text(self.links), self.links.fitted and ", fitted to what was measured" or "",
        self.step.step_us and string.format("; measured with %d ranks: %s", self.step.ranks, ms(self.step.step_us)) or "", ranks)
    return table.concat(lines, "\n")
end

--- simulate(what, options): what steps take; `what` is a profile, or a step as measure gives it.
function simulator.simulate(what, options)
    options = options or {}
    local algorithm = check_options(options)
    local measured = options.measured or tide.distributed.size()
    local plan = type(what) == "table" and what.buckets and check_plan(what) or simulator.measure(what, measured)
    measured = plan.ranks or measured
    local links = options.links
    if not links then
        local busy = plan.busy or {}
        for _, bucket in ipairs(plan.busy and {} or plan.buckets) do
            busy[#busy + 1] = bucket.time_us and { bytes = bucket.bytes, time_us = bucket.time_us, transfers = 1 }
        end
        links = fit_links(busy, #busy > 0 and measured or 1, algorithm)
    end
    local result = { step = plan, links = links, algorithm = algorithm, rows = {}, caps = { ranks = measured } }
    local most = 1
    for k, p in ipairs(options.ranks or RANKS) do
        result.rows[k] = row_of(plan, plan.buckets, algorithm, p, links)
        result.rows[k].buckets = #plan.buckets
        most = math.max(most, p)
    end
    result.caps.ranks = measured > 1 and measured or most
    for k, cap in ipairs(options.bucket_cap_mb or CAPS) do
        local buckets = regroup(plan, options.model, cap, options.first_bucket_mb or 1)
        result.caps[k] = row_of(plan, buckets, algorithm, result.caps.ranks, links)
        result.caps[k].bucket_cap_mb, result.caps[k].buckets = cap, #buckets
    end
    return setmetatable(result, Simulation)
end

return simulator
