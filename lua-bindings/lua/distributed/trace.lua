-- distributed/trace.lua: what all ranks recorded, as one: a trace on one clock, and what became of each transfer. All ranks
-- call these functions together; what is wrong on one of them is said on all, so that nobody waits.
local tide = ...
local fail, distributed = tide._fail, tide.distributed
local host_name = tide._require("utils.environment").host_name

local ROUNDS <const> = 32
local HEAD <const>, TAIL <const> = "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", "\n]}\n"
local trace = {}

-- ---- one clock ----

local function now() return math.floor(tide.time() * 1e9) end

-- What this rank's clock is moved by to be rank 0's, and how far that may be off, ns: of several exchanges with rank 0 the one
-- that took least.
local function align()
    local cell = tide.zeros(1, { dtype = tide.int64 })
    if distributed.rank() == 0 then
        for r = 1, distributed.size() - 1 do
            for _ = 1, ROUNDS do
                distributed.recv(cell, r)
                distributed.send(cell:fill_(now()), r)
            end
        end
        return 0, 0
    end
    local shift, least = 0, math.maxinteger
    for _ = 1, ROUNDS do
        local before = now()
        distributed.send(cell, 0)
        distributed.recv(cell, 0)
        local took = now() - before
        if took < least then
            shift, least = cell:item() - before - took // 2, took
        end
    end
    return shift, least // 2
end

-- Has every rank a recording of its own? When this one's began by the monotonic clock, ns, and its events.
local function agree(fname, profile)
    local ok, began, count = pcall(function() return profile:_began() end)
    local wrong = not ok and "a profile expected, got " .. tide._describe(profile)
        or began == 0 and "the profile has nothing that this process recorded" or ""
    for r, why in ipairs(distributed.all_gather_object(wrong)) do
        if why ~= "" then
            fail("%s: rank %d: %s", fname, r - 1, why)
        end
    end
    return began, count
end

-- ---- the trace ----

--- export(profile, path): the events of all ranks in one file, which rank 0 writes.
function trace.export(profile, path)
    local began, count = agree("export_chrome_trace", profile)
    local rank, wrong = distributed.rank(), ""
    local shift, doubt = align()
    local first = distributed.all_reduce(tide.tensor({ began + shift }, { dtype = tide.int64 }), "min"):item()
    local ids = 0
    for r, n in ipairs(distributed.all_gather_object(count)) do
        ids = ids + (r <= rank and n or 0)
    end
    local note = rank == 0 and "its clock is all ranks'" or string.format("clock within %.1f us of rank 0's", doubt / 1e3)
    local part = profile:_trace_part(rank, string.format("rank %d (%s)", rank, host_name()), note, began + shift - first, ids)
    local parts = distributed.gather_object(part, 0)
    if parts then
        local ok, message = pcall(tide._profiler_write, path, HEAD .. table.concat(parts, ",\n") .. TAIL)
        wrong = ok and "" or string.gsub(message, "^.*save: ", "")
    end
    wrong = distributed.broadcast_object(wrong, 0)
    if wrong ~= "" then
        fail("export_chrome_trace: rank 0: %s", wrong)
    end
end

-- ---- what became of transfers ----

-- When backward's kernels ran: {start, end, ...} in µs, rising, without overlaps.
local function find_busy(events)
    local inside, spans = {}, {}
    for k, e in ipairs(events) do -- what lies around an event comes before it
        inside[k] = e.kind == "backward" or e.parent and inside[e.parent] or false
        if inside[k] and e.kind == "kernel" then
            spans[#spans + 1] = { e.start_us, e.start_us + e.duration_us }
        end
    end
    table.sort(spans, function(a, b) return a[1] < b[1] end)
    local merged = {}
    for _, span in ipairs(spans) do
        local last = merged[#merged]
        if last and span[1] <= last[2] then
            last[2] = math.max(last[2], span[2])
        else
            merged[#merged + 1] = span
        end
    end
    return merged
end

-- How much of the `duration` from `from` on lies in the spans. Times are rounded, and so are their sums: never more than all.
local function overlap(spans, from, duration)
    local to = from + duration
    local low, high = 1, #spans + 1
    while low < high do -- the first that ends behind `from`
        local middle = (low + high) // 2
        if spans[middle][2] <= from then
            low = middle + 1
        else
            high = middle
        end
    end
    local sum = 0
    while low <= #spans and spans[low][1] < to do
        sum = sum + math.min(to, spans[low][2]) - math.max(from, spans[low][1])
        low = low + 1
    end
    return math.min(sum, duration)
end

-- This rank's collectives, in columns, times in µs by rank 0's clock.
local function columns_of(profile, began, shift)
    local events = profile:events()
    local busy, origin = find_busy(events), (began + shift) / 1e3
    local columns = { name = {}, key = {}, bytes = {}, start = {}, time = {}, hidden = {} }
    for _, e in ipairs(events) do
        if e.kind == "collective" and e.number then
            local n = #columns.name + 1
            columns.name[n], columns.key[n], columns.bytes[n] = e.name, e.group .. "/" .. e.number, e.bytes
            columns.start[n], columns.time[n] = origin + e.start_us, e.duration_us
            columns.hidden[n] = overlap(busy, e.start_us, e.duration_us)
        end
    end
    return columns
end

-- Rows by name, and who began each collective first and last.
local function add_rank(rows, meetings, rank, columns)
    for k, name in ipairs(columns.name) do
        local row = rows[name]
        if not row then
            row = { name = name, transfers = 0, total_bytes = 0, total_us = 0, hidden_us = 0, late = {} }
            rows[name], rows[#rows + 1] = row, row
        end
        row.transfers, row.total_bytes = row.transfers + 1, row.total_bytes + columns.bytes[k]
        row.total_us, row.hidden_us = row.total_us + columns.time[k], row.hidden_us + columns.hidden[k]
        local start, meeting = columns.start[k], meetings[columns.key[k]]
        if not meeting then
            meeting = { row = row, ranks = 0, first = start, last = start, who = rank }
            meetings[columns.key[k]], meetings[#meetings + 1] = meeting, meeting
        end
        meeting.ranks, meeting.first = meeting.ranks + 1, math.min(meeting.first, start)
        if start > meeting.last then
            meeting.last, meeting.who = start, rank
        end
    end
end

-- Which rank came last most often, how often, and by how much then.
local function find_last(row)
    local who
    for rank, late in pairs(row.late) do
        local best = row.late[who]
        if not best or late.times > best.times or late.times == best.times and rank < who then
            who = rank
        end
    end
    if who then
        row.last, row.last_times, row.late_us = who, row.late[who].times, row.late[who].us / row.late[who].times
    end
    row.late = nil
end

local UNITS <const> = { "B", "kB", "MB", "GB", "TB" }
local function amount(bytes)
    local k = 1
    while bytes >= 999.5 and k < #UNITS do
        bytes, k = bytes / 1000, k + 1
    end
    return string.format(k == 1 and "%.0f %s" or "%.3g %s", bytes, UNITS[k])
end

local Report = {}
function Report:__tostring()
    local widest = 10
    for _, row in ipairs(self) do
        widest = math.max(widest, #row.name)
    end
    local form = "%-" .. widest .. "s  %5s  %8s  %10s  %11s  %6s  %s"
    local lines = { string.format(form, "collective", "calls", "bytes", "time", "bandwidth", "hidden", "last") }
    for _, row in ipairs(self) do
        local last = row.last and string.format("rank %d (%d of %d, by %.3f ms)", row.last, row.last_times, row.meetings, row.late_us / 1e3) or "-"
        lines[#lines + 1] = string.format(form, row.name, string.format("%.0f", row.calls), amount(row.bytes), string.format("%.3f ms", row.time_us / 1e3),
            amount(row.bandwidth) .. "/s", string.format("%.0f %%", 100 * row.hidden), last)
    end
    lines[#lines + 1] = string.format("%d ranks, clocks within %.1f µs; times are a transfer's, hidden is what backward's kernels ran beside", self.ranks,
        self.clocks_us)
    return table.concat(lines, "\n")
end

--- communication(profile): a row for each kind of transfer, those that took longest first; the same list on all ranks.
function trace.communication(profile)
    local began = agree("communication", profile)
    local shift, doubt = align()
    local rows, meetings, clocks = {}, {}, 0
    local every = distributed.all_gather_object({ columns = columns_of(profile, began, shift), doubt = doubt / 1e3 })
    for r, theirs in ipairs(every) do
        add_rank(rows, meetings, r - 1, theirs.columns)
        clocks = math.max(clocks, theirs.doubt)
    end
    for _, meeting in ipairs(meetings) do
        local row, late = meeting.row, meeting.last - meeting.first
        row.meetings = (row.meetings or 0) + 1
        if meeting.ranks > 1 and late > clocks then
            local of = row.late[meeting.who] or { times = 0, us = 0 }
            row.late[meeting.who], of.times, of.us = of, of.times + 1, of.us + late
        end
    end
    local report = { ranks = #every, clocks_us = clocks }
    for k, row in ipairs(rows) do
        find_last(row)
        row.calls, row.bytes, row.time_us = row.transfers / #every, row.total_bytes / row.transfers, row.total_us / row.transfers
        row.bandwidth, row.hidden = row.total_bytes / row.total_us * 1e6, row.hidden_us / row.total_us
        report[k] = row
    end
    table.sort(report, function(a, b)
        if a.total_us ~= b.total_us then
            return a.total_us > b.total_us
        end
        return a.name < b.name
    end)
    return setmetatable(report, Report)
end

return trace
