-- cuda.lua: tide.cuda: CUDA's devices and their memory, streams, events, recorded work.
local tide = ...
local raw = tide._cuda()
local fail, declare = tide._fail, tide._function
local cuda = {}

local function device_of(device)
    return device or "cuda"
end

-- ---- devices ----

cuda.is_available = declare("is_available() -> bool", "Is there a CUDA device that Tide can use?",
    function() return raw.count() > 0 end)

cuda.device_count = declare("device_count() -> int", "How many CUDA devices there are.",
    function() return raw.count() end)

cuda.unavailable_reason = declare("unavailable_reason() -> str?",
    "Why there is no CUDA device, in a line; nil where there is one.", function() return raw.reason() end)

cuda.get_device_name = declare("get_device_name(device? device=nil) -> str", "What a device calls itself.",
    function(device) return raw.properties(device_of(device)).name end)

cuda.get_device_properties = declare("get_device_properties(device? device=nil) -> table",
    "name, major and minor (compute capability), multi_processor_count, total_memory and L2_cache_size in bytes, "
    .. "warp_size, max_threads_per_multi_processor.",
    function(device) return raw.properties(device_of(device)) end)

cuda.get_device_capability = declare("get_device_capability(device? device=nil) -> int, int",
    "The compute capability: 9, 0.", function(device)
        local p = raw.properties(device_of(device))
        return p.major, p.minor
    end)

cuda.current_device = declare("current_device() -> int",
    "The number of the device that \"cuda\" without one stands for; numbers of devices count from 0, as in \"cuda:0\".",
    function() return raw.current() end)

cuda.set_device = declare("set_device(device device)",
    "From here on \"cuda\" without a number stands for this device: tide.cuda.set_device(\"cuda:1\").",
    function(device) raw.set_current(device) end)

cuda.synchronize = declare("synchronize(device? device=nil)",
    "Wait until the current stream has done its work; an error that the work met is raised here.",
    function(device) tide.synchronize(device_of(device)) end)

-- ---- memory ----

-- Does "cuda" stand for no device? Then none of its memory is used: scripts that ask run without one.
local function is_absent(device) return device == nil and raw.count() == 0 end

cuda.memory_stats = declare("memory_stats(device? device=nil) -> table",
    "Bytes allocated, peak and cached; allocations, and how many of them the cache could not serve.",
    function(device) return tide.memory_stats(device_of(device)) end)

cuda.memory_allocated = declare("memory_allocated(device? device=nil) -> int", "Bytes in use by tensors; 0 without a device.",
    function(device) return is_absent(device) and 0 or tide.memory_allocated(device_of(device)) end)

cuda.max_memory_allocated = declare("max_memory_allocated(device? device=nil) -> int",
    "The most bytes that were in use by tensors, since the start or reset_peak_memory_stats(); 0 without a device.",
    function(device) return is_absent(device) and 0 or tide.memory_stats(device_of(device)).peak end)

cuda.memory_reserved = declare("memory_reserved(device? device=nil) -> int",
    "Bytes in use by tensors, or kept for those to come; 0 without a device.", function(device)
        if is_absent(device) then
            return 0
        end
        local stats = tide.memory_stats(device_of(device))
        return stats.allocated + stats.cached
    end)

cuda.reset_peak_memory_stats = declare("reset_peak_memory_stats(device? device=nil)",
    "Let the peak start from what is in use now.", function(device) tide.reset_peak_memory_stats(device_of(device)) end)

cuda.empty_cache = declare("empty_cache(device? device=nil)", "Give cached memory back to the driver; nothing is done without a device.",
    function(device)
        if not is_absent(device) then
            tide.empty_cache(device_of(device))
        end
    end)

cuda.mem_get_info = declare("mem_get_info(device? device=nil) -> int, int",
    "Bytes that are free on the device, and all that it has.", function(device) return raw.memory(device_of(device)) end)

local function megabytes(bytes)
    return string.format("%.1f MB", bytes / 2 ^ 20)
end

cuda.memory_summary = declare("memory_summary(device? device=nil) -> str", "A device's memory as a table.",
    function(device)
        local stats = tide.memory_stats(device_of(device))
        local free, total = raw.memory(device_of(device))
        local rows = {
            { "in use by tensors", megabytes(stats.allocated) }, { "  at most", megabytes(stats.peak) },
            { "kept in the cache", megabytes(stats.cached) }, { "free on the device", megabytes(free) },
            { "of", megabytes(total) }, { "requests", string.format("%d", stats.allocations) },
            { "  of the driver", string.format("%d", stats.system_allocations) },
        }
        for k, row in ipairs(rows) do
            rows[k] = string.format("%-20s %14s", row[1], row[2])
        end
        return table.concat(rows, "\n")
    end)

-- ---- streams ----

local Stream = { __name = "Stream" }
Stream.__index = Stream
tide._class("Stream", Stream)

local function wrap_stream(handle)
    local id, device = raw.describe_stream(handle)
    return setmetatable({ handle = handle, id = id, device = device }, Stream)
end

Stream.__tostring = function(self) return string.format("Stream %d of %s", self.id, self.device) end
Stream.__eq = function(a, b) return a.id == b.id and a.device == b.device end

cuda.Stream = declare("Stream(device? device=nil, *, int priority=0) -> Stream",
    "A queue of work beside others of its device, more urgent where priority < 0. "
    .. "Work goes to it within `local s <close> = tide.cuda.stream(stream)`. What one stream made and another reads is "
    .. "waited for by itself.",
    function(device, priority) return wrap_stream(raw.new_stream(device_of(device), priority < 0)) end)

cuda.current_stream = declare("current_stream(device? device=nil) -> Stream", "The stream that work goes to.",
    function(device) return wrap_stream(raw.current_stream(device_of(device))) end)

cuda.default_stream = declare("default_stream(device? device=nil) -> Stream", "The stream that is there from the start.",
    function(device) return wrap_stream(raw.default_stream(device_of(device))) end)

local Entered = { __name = "entered stream" }
Entered.__close = function(self)
    if self.before then
        raw.leave_stream(self.before, self.device)
        self.before = nil
    end
end

cuda.stream = declare("stream(Stream stream) -> any",
    "Until it is closed, work goes to the stream: `local s <close> = tide.cuda.stream(stream)`.", function(stream)
        local before, device = raw.enter_stream(stream.handle)
        return setmetatable({ before = before, device = device }, Entered)
    end)

-- ---- events ----

local Event = { __name = "Event" }
Event.__index = Event
tide._class("Event", Event)
Event.__tostring = function(self) return "Event of " .. self.device end

cuda.Event = declare("Event(device? device=nil, *, bool enable_timing=false) -> Event",
    "A point in a stream's work: record, wait, query, synchronize; with enable_timing also elapsed_time.",
    function(device, enable_timing)
        device = device_of(device)
        return setmetatable({ handle = raw.new_event(device, enable_timing), device = device, timed = enable_timing }, Event)
    end)

local function method(class, schema, doc, fn)
    class[string.match(schema, "^[%w_]+")] = declare(schema, doc, fn)
end

local function stream_or_current(stream, device)
    return stream and stream.handle or raw.current_stream(device)
end

method(Event, "record(Event event, Stream? stream=nil) -> Event", "Put it behind the stream's work so far.",
    function(event, stream)
        raw.record_event(event.handle, stream_or_current(stream, event.device))
        event.recorded = true
        return event
    end)
method(Event, "wait(Event event, Stream? stream=nil)", "The stream's work to come begins after the event.",
    function(event, stream) raw.wait_for_event(event.handle, stream_or_current(stream, event.device)) end)
method(Event, "query(Event event) -> bool", "Has the work before it been done?",
    function(event) return raw.query_event(event.handle) end)
method(Event, "synchronize(Event event)", "Wait for the work before it.",
    function(event) raw.synchronize_event(event.handle) end)
method(Event, "elapsed_time(Event from, Event to) -> float", "Milliseconds between two events, waited for.",
    function(from, to)
        for k, e in ipairs { from, to } do
            if not e.timed then
                fail("elapsed_time: event %d was made without enable_timing", k)
            elseif not e.recorded then
                fail("elapsed_time: event %d has not been recorded", k)
            end
        end
        raw.synchronize_event(to.handle)
        return raw.elapsed_between(from.handle, to.handle)
    end)

method(Stream, "synchronize(Stream stream)", "Wait until the stream has done its work.",
    function(stream) raw.synchronize_stream(stream.handle) end)
method(Stream, "query(Stream stream) -> bool", "Has it done all its work?",
    function(stream) return raw.query_stream(stream.handle) end)
method(Stream, "record_event(Stream stream, Event? event=nil) -> Event", "An event behind the stream's work so far.",
    function(stream, event)
        event = event or cuda.Event(stream.device)
        return event:record(stream)
    end)
method(Stream, "wait_event(Stream stream, Event event)", "Work to come begins after the event.",
    function(stream, event) event:wait(stream) end)
method(Stream, "wait_stream(Stream stream, Stream other)", "Work to come begins after the other stream's work so far.",
    function(stream, other) stream:wait_event(other:record_event()) end)

-- ---- memory of the host ----

cuda.pin_memory = declare("pin_memory(Tensor x) -> Tensor",
    "A copy in memory of the host that devices read and write without a detour; x itself where it lies there: x:pin_memory().",
    function(x) return raw.is_pinned(x) and x or raw.pin_memory(x, "cuda"):copy_(x:detach()) end)

cuda.is_pinned = declare("is_pinned(Tensor x) -> bool", "Does it lie in such memory?",
    function(x) return raw.is_pinned(x) end)

-- ---- waiting that nobody asked for ----

cuda.set_sync_warnings = declare("set_sync_warnings(any mode)",
    "true: warn, once for each line, of what waits for a device although it was not told to: item(), printing, tolist(), "
    .. "nonzero(), masks as indices, comparisons as conditions, copies to the CPU. \"error\": refuse it. false: say nothing. "
    .. "synchronize() and the like ask for it and are not meant. It holds for the thread.",
    function(mode)
        if mode ~= true and mode ~= false and mode ~= "error" then
            fail("set_sync_warnings: mode must be true, false or \"error\", got %s", tide._describe(mode))
        end
        raw.watch_waits(mode)
    end)

-- ---- recorded work ----

local Graph = { __name = "Graph" }
Graph.__index = Graph
tide._class("Graph", Graph)
Graph.__tostring = function(self) return "Graph of " .. self.device end

cuda.graph = declare("graph(function fn, device? device=nil, *, int(0..) warmup=1) -> Graph, any",
    "Record what fn gives the device to do, after `warmup` calls: g:replay() does it again, all at once, reading and "
    .. "writing the same tensors. fn must not wait for the device (item, printing). Returns fn's results as well: their "
    .. "elements are there after the first replay.",
    function(fn, device, warmup)
        device = device_of(device)
        local stream = cuda.Stream(device)
        stream:wait_stream(cuda.current_stream(device))
        local entered <close> = cuda.stream(stream)
        for _ = 1, warmup do
            fn()
        end
        stream:synchronize()
        collectgarbage()
        raw.begin_graph(stream.handle)
        local results = table.pack(pcall(fn))
        local ended, graph = pcall(raw.end_graph, stream.handle)
        if not results[1] then
            error(results[2], 0)
        elseif not ended then
            error(graph, 0)
        end
        return setmetatable({ handle = graph, stream = stream, device = stream.device, results = results }, Graph),
            table.unpack(results, 2, results.n)
    end)

method(Graph, "replay(Graph graph)", "Do the recorded work; the current stream goes on after it.", function(graph)
    local current = cuda.current_stream(graph.device)
    graph.stream:wait_stream(current)
    raw.launch_graph(graph.handle, graph.stream.handle)
    current:wait_stream(graph.stream)
end)

-- ---- NVTX ----

cuda.nvtx = {
    range_push = declare("range_push(str name) -> int",
        "A range begins that tools beside the program show (Nsight, through NVTX); how many lie around it, negative while no tool looks.",
        function(name) return raw.push_range(name) end),
    range_pop = declare("range_pop() -> int",
        "The range that began last on this thread ends; how many are left, negative while no tool looks or where none is open.",
        function() return raw.pop_range() end),
    mark = declare("mark(str name)", "A moment with a name for tools beside the program (NVTX).",
        function(name) raw.mark(name) end),
}

tide._document(cuda.nvtx, "nvtx", "tide.cuda.nvtx",
    "Ranges and marks for tools beside the program (Nsight): range_push(name), range_pop(), mark(name).")
tide._document(cuda, "cuda", "tide.cuda",
    "CUDA's devices: is_available(), device_count(), memory_summary(), Stream, Event, graph(fn).")

return cuda
