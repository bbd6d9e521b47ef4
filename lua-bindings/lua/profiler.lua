-- profiler.lua: tide.profiler: what of it needs no C: schedules.
local tide = ...
local profiler, Profile, metatable = tide._profiler()

profiler.schedule = tide._function(
    "schedule(*, int(0..) wait=0, int(0..) warmup=0, int(1..) active, int(0..) repeats=0, int(0..) skip_first=0) -> function",
    "For profile{schedule = ...}: of each cycle of steps leave out `wait`, record `warmup` and forget them, keep `active`; "
    .. "so often (0: to the end), after the first steps were skipped. The function says of a step, from 0, \"none\", "
    .. "\"warmup\", \"record\", or \"save\" where on_trace_ready is called behind it.",
    function(wait, warmup, active, repeats, skip_first)
        local cycle = wait + warmup + active
        return function(step)
            step = step - skip_first
            if step < 0 or repeats > 0 and step >= repeats * cycle then
                return "none"
            end
            local at = step % cycle
            return at < wait and "none" or at < wait + warmup and "warmup" or at < cycle - 1 and "record" or "save"
        end
    end)

local handed = 0 -- files of one process in one second have other names

profiler.tensorboard_trace_handler = tide._function("tensorboard_trace_handler(str dir_name, str? worker_name=nil, bool use_gzip=false) -> function",
    "For profile{on_trace_ready = ...}: writes each trace into a folder, which it makes, as WORKER.TIME.pt.trace.json (.gz with use_gzip), where "
    .. "TensorBoard finds it. worker_name: the machine's.", function(dir_name, worker_name, use_gzip)
        local environment = tide._require("utils.environment")
        worker_name = worker_name or environment.host_name()
        return function(p)
            environment.make_folder("tensorboard_trace_handler", dir_name)
            handed = handed + 1
            local own = string.sub(string.format("%p", p), -6)
            p:export_chrome_trace(string.format("%s/%s.%d%s%06d.pt.trace.json%s", dir_name, worker_name, os.time(), own, handed, use_gzip and ".gz" or ""))
        end
    end)

-- ---- tables ----

-- Where the peaks of this machine are remembered; nil: nowhere.
local function peak_file()
    local cache = tide._require("utils.environment").cache()
    return cache and cache .. "/tide-peak"
end

-- {flops =, bytes =, threads =} as they were measured; nil: they were not, or for other threads.
local function remembered_peak()
    local path = peak_file()
    local file = path and io.open(path)
    if not file then
        return nil
    end
    local flops, bytes, threads = string.match(file:read("l") or "", "^tide%-peak ([%d.e+]+) ([%d.e+]+) (%d+)$")
    file:close()
    flops, bytes = tonumber(flops), tonumber(bytes)
    return flops and bytes and tonumber(threads) == tide.get_num_threads()
        and { flops = flops, bytes = bytes, threads = tonumber(threads) } or nil
end

local function best_rate(amount, fn)
    local best, start = 0, tide.time()
    repeat
        local before = tide.time()
        fn()
        best = math.max(best, amount / (tide.time() - before))
    until tide.time() - start > 1
    return best
end

-- A product of float32 that the cache holds well, and sums over more memory than any cache holds.
local function measure_peak()
    local n, long = 1024, 1 << 25
    local x, y, out = tide.rand(n, n), tide.rand(n, n), tide.empty(n, n)
    local a, b = tide.zeros(long), tide.ones(long)
    return { flops = best_rate(2 * n ^ 3, function() tide.mm(x, y, { out = out }) end),
        bytes = best_rate(12 * long, function() a:add_(b) end), threads = tide.get_num_threads() }
end

profiler.peak = tide._function("peak(*, bool measure=false) -> table",
    "What this machine can do: FLOP/s of float32 products and bytes a second between memory and processor, {flops, bytes, "
    .. "threads}; measured once (a few seconds), remembered in ~/.cache/tide-peak, measured anew with {measure = true} and "
    .. "for another number of threads.", function(measure)
        local peak = not measure and remembered_peak()
        if peak then
            return peak
        end
        peak = measure_peak()
        local path = peak_file()
        local file = path and io.open(path .. ".part", "w")
        if file then
            file:write(string.format("tide-peak %.6e %.6e %d\n", peak.flops, peak.bytes, peak.threads))
            file:close()
            os.rename(path .. ".part", path)
        end
        return peak
    end)

-- What PyTorch's table is sorted by.
local KEYS = { cpu_time = "total", cpu_time_total = "total", self_cpu_time_total = "self", cuda_time = "device", cuda_time_total = "device",
    self_cuda_time_total = "device", device_time_total = "device", self_device_time_total = "device", count = "calls",
    cpu_memory_usage = "memory", self_cpu_memory_usage = "memory", cuda_memory_usage = "memory", self_cuda_memory_usage = "memory",
    device_memory_usage = "memory", self_device_memory_usage = "memory", device_time = "device", key = "name" }
for _, key in ipairs { "self", "total", "calls", "name", "memory", "flops", "device" } do
    KEYS[key] = key
end

-- PyTorch's names.
profiler.record_function = profiler.record
profiler.ProfilerActivity = { CPU = "cpu", CUDA = "cuda" }
tide._document(profiler.ProfilerActivity, "ProfilerActivity", "tide.profiler.ProfilerActivity",
    "What profile{activities = {...}} may name: CPU, CUDA. Whatever runs is recorded, on every device.")

-- What is summed up and what was recorded, under PyTorch's names.
local named = tide._require("profiler.averages")

Profile.key_averages = tide._function("key_averages(Profile p, *, bool group_by_input_shape=false) -> Averages",
    "The rows of table() as a list, for `for _, e in ipairs(p:key_averages())`: e.key, e.kind, e.count; e.cpu_time_total, "
    .. "e.self_cpu_time_total, e.device_time_total, e.self_device_time_total in µs, and e.cpu_time, e.device_time of one call; "
    .. "e.cpu_memory_usage and e.self_cpu_memory_usage in bytes; e.flops; e.input_shapes with group_by_input_shape; with _str behind a time, "
    .. "as text. An operator and the kernel that it ran are two rows, as in the table, which the list prints as. "
    .. "a.self_cpu_time_total is the sum, a:total_average() one row of all, a:table{sort_by = \"self_cpu_time_total\", row_limit = 10} the text.",
    function(p, group_by_input_shape) return named.averages(p, group_by_input_shape) end)

Profile.total_average = tide._function("total_average(Profile p) -> FunctionEventAvg", "One row of all: key_averages():total_average().",
    function(p) return named.averages(p, false):total_average() end)

Profile.events = tide._function("events(Profile p) -> list",
    "What was recorded, by thread and stream, in the order of its beginnings: name, kind, thread, start_us, duration_us, self_us, parent; "
    .. "what a device did, and transfers between ranks (kind collective), know their launcher, the number of the event "
    .. "that asked for it, and a transfer its bytes, its group and its number there. PyTorch's names (cpu_time_total, time_range, cpu_parent, "
    .. "cpu_children, input_shapes) tell the same.", function(p) return named.events(p:_events()) end)

local print_table = Profile._table
Profile._table = nil
Profile.table = tide._function("table(Profile p, *, str? sort_by=nil, "
    .. "\"self\"|\"total\"|\"calls\"|\"name\"|\"memory\"|\"flops\"|\"device\" sort=\"self\", bool group_by_shape=false, int(1..)? top=nil, "
    .. "int(1..)? limit=nil) -> str",
    "Time and calls by name, and by shapes with group_by_shape; what devices did for each (`device`, and with what was called inside); memory of a profile with profile_memory; FLOP/s and memory's "
    .. "bandwidth of one with with_flops, with their shares of the machine's where `tide --peak` has measured it. sort_by and "
    .. "sort, top and limit mean the same.",
    function(p, sort_by, sort, group_by_shape, top, limit)
        local peak = remembered_peak() or {}
        if sort_by and not KEYS[sort_by] then
            tide._fail('table: option sort_by: expected "self", "total", "calls", "name", "memory", "flops" or "device", or PyTorch\'s '
                .. '"self_cpu_time_total" and its kin, got "%s"', sort_by)
        end
        sort_by = sort_by and KEYS[sort_by]
        return tide._require("notebook.text").note(print_table(p, { sort = sort_by or sort, group_by_shape = group_by_shape, limit = top or limit,
            peak_flops = peak.flops, peak_bytes = peak.bytes }))
    end)

-- A notebook shows what took longest as a table with bars.
function metatable:__display() return { ["text/html"] = tide._require("profiler.html").page(self) } end

Profile.timeline = tide._function("timeline(Profile p, *, number? from=nil, number? to=nil, int(10..1000)? width=nil) -> Timeline",
    "The recording as a picture: rows for what Lua, dispatch, kernels and devices do, from and to in µs (all of it where they are missing); in a notebook one that "
    .. "can be zoomed (w a s d), searched and asked. t:html() is that as a page.",
    function(p, from, to, width) return tide._require("profiler.timeline")(p, from, to, width) end)

-- ---- advice ----

Profile.advice = tide._function("advice(Profile p) -> list",
    "What could be better, worst first: {kind, file, line, count, share, text, fix, gain, measured} each. share of the wall time that it is "
    .. "about, fix what to write instead, gain the factor for that share, measured where Tide ran both; nothing below 5 % of the time. "
    .. "It wants a recording with lines and shapes, profile{fn, with_stack = true}; ?advice.KIND tells about a kind.",
    function(p) return tide._require("advice.collect").advise(p) end)

-- What `tide --profile FILE` calls around everything that runs. A file that can't be written is refused before; it is of
-- bounded length, for viewers too.
local running
local MOST_PROFILED = 400000

function profiler._begin(path, most)
    local draft = path .. ".part"
    local file, message = io.open(draft, "w")
    if not file then
        local name = #path > 200 and string.sub(path, 1, 197) .. "..." or path
        error(string.format("%s: %s", name, string.match(message, ".*: ?(.*)") or message), 0)
    end
    file:close()
    os.remove(draft)
    running = profiler.profile { with_stack = true, profile_memory = true, identities = false, max_events = most or MOST_PROFILED }
end

function profiler._finish(path)
    local profile = running
    running = nil
    profile:stop()
    profile:export_chrome_trace(path)
    local totals = profile:_totals()
    if totals.evicted > 0 then
        io.stderr:write(string.format("tide: --profile: the trace holds the last %d of %d events; --profile-events %d keeps them all\n",
            totals.events, totals.events + totals.evicted, totals.events + totals.evicted))
    end
end

-- What `tide --advise` calls around everything that runs.
local MOST_ADVISED = 150000 -- the newest are looked at: it takes as long as a second's script runs

function profiler._begin_advice()
    running = profiler.profile { with_stack = true, max_events = MOST_ADVISED }
end

function profiler._finish_advice(form)
    local profile = running
    running = nil
    profile:stop()
    local advice, totals = profile:advice(), profile:_totals()
    io.stdout:write(form == "json" and tide._require("advice.collect").to_json(advice) or tostring(advice), "\n")
    if totals.evicted > 0 and form ~= "json" then
        io.stdout:write(string.format("(looked at: the last %d of %d events, the last %.3g s)\n", totals.events,
            totals.events + totals.evicted, totals.wall_ns * 1e-9))
    end
end

tide._document(profiler, "profiler", "tide.profiler",
    "profile(fn) records what runs; record(name, fn) names a part of it; step() marks a step; schedule{...} says which "
    .. "steps are recorded.")

return profiler
