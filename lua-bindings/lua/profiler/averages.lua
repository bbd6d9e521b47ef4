-- profiler/averages.lua: rows and events of a recording as PyTorch's FunctionEventAvg, EventList and FunctionEvent name them.
local tide = ...
local averages = {}

-- µs as PyTorch writes them.
local function time_text(us)
    if us >= 1e6 then
        return string.format("%.3fs", us / 1e6)
    end
    return us >= 1e3 and string.format("%.3fms", us / 1e3) or string.format("%.3fus", us)
end

-- A field that is not there: CUDA's is the device's, one that ends in _str is a time as text.
local function other_name(e, name)
    local device, n = string.gsub(name, "cuda", "device", 1)
    if n > 0 then
        return e[device]
    end
    local time = string.match(name, "^(.*time.*)_str$")
    return time and e[time] and time_text(e[time])
end

-- ---- averages ----

local Average = { __name = "FunctionEventAvg" }

function Average.__index(e, name)
    return type(name) == "string" and other_name(e, name) or nil
end

function Average:__tostring()
    return string.format("<FunctionEventAvg key=%s self_cpu_time=%s cpu_time=%s  self_device_time=%s device_time=%s cpu_memory_usage=%d>", self.key,
        self.self_cpu_time_total_str, self.cpu_time_str, self.self_device_time_total_str, self.device_time_str, self.cpu_memory_usage)
end

local function average(row)
    local host = row.on_device and 0 or 1e-3
    return setmetatable({ key = row.name, kind = row.kind, count = row.calls, flops = row.flops,
        cpu_time = host * row.total_ns / row.calls, cpu_time_total = host * row.total_ns, self_cpu_time_total = host * row.self_ns,
        device_time = 1e-3 * row.device_total_ns / row.calls, device_time_total = 1e-3 * row.device_total_ns,
        self_device_time_total = 1e-3 * row.device_ns, device_type = row.on_device and "cuda" or "cpu",
        cpu_memory_usage = row.memory_total, self_cpu_memory_usage = row.memory,
        input_shapes = row.shapes or {}, input_dtypes = row.dtypes or {} }, Average)
end

local methods = {}

-- Of which recording a list is, and how its rows are told apart.
local sources = setmetatable({}, { __mode = "k" })

local function sum(list, field)
    local total = 0
    for _, e in ipairs(list) do
        total = total + e[field]
    end
    return total
end

-- Times and memory of the calls themselves add up to the whole; those with what was called inside don't.
function methods:total_average()
    local own, device = sum(self, "self_cpu_time_total"), sum(self, "self_device_time_total")
    local count, memory = math.max(1, sum(self, "count")), 0
    for _, e in ipairs(self) do
        memory = memory + (e.kind == "memory" and e.cpu_memory_usage or 0)
    end
    return setmetatable({ key = "Total", kind = "total", count = sum(self, "count"), flops = sum(self, "flops"), cpu_time = own / count,
        cpu_time_total = own, self_cpu_time_total = own, device_time = device / count, device_time_total = device,
        self_device_time_total = device, device_type = "cpu", cpu_memory_usage = memory, self_cpu_memory_usage = memory }, Average)
end

function methods:table(options)
    local source = sources[self]
    local all = { group_by_shape = source.by_shape }
    for name, value in pairs(options or {}) do
        all[name] = value
    end
    return source.profile:table(all)
end

local Averages = { __name = "Averages" }

function Averages.__index(list, name)
    return methods[name] or name == "self_cpu_time_total" and sum(list, name) or nil
end

function Averages:__tostring() return tostring(self:table()) end

local MOST_ROWS = 100000

-- The rows of a profile, what took most of its own time first.
function averages.averages(profile, by_shape)
    local events = profile:_totals().events
    local list = profile:_rows(math.max(1, math.min(events, MOST_ROWS)), by_shape)
    for k, row in ipairs(list) do
        list[k] = average(row)
    end
    sources[list] = { profile = profile, by_shape = by_shape }
    return setmetatable(list, Averages)
end

-- ---- events ----

local FIELDS = { key = "name", cpu_time = "duration_us", cpu_time_total = "duration_us", self_cpu_time_total = "self_us", input_shapes = "shapes",
    input_dtypes = "dtypes", sequence_nr = "sequence" }

local function children(list, k)
    local found = {}
    for n = k + 1, #list do
        if list[n].parent == k then
            found[#found + 1] = list[n]
        elseif not list[n].parent or list[n].parent < k then
            break -- what lies inside an event comes right behind it
        end
    end
    return found
end

-- The list, whose events answer to PyTorch's names too.
function averages.events(list)
    local Event, places = { __name = "FunctionEvent" }, nil

    local function place(e)
        if not places then
            places = {}
            for k, event in ipairs(list) do
                places[event] = k
            end
        end
        return places[e]
    end

    function Event.__index(e, name)
        if FIELDS[name] then
            return rawget(e, FIELDS[name])
        elseif name == "count" then
            return 1
        elseif name == "id" then
            return place(e)
        elseif name == "cpu_parent" then
            return list[rawget(e, "parent")]
        elseif name == "cpu_children" then
            return children(list, place(e))
        elseif name == "time_range" then
            local start, duration = e.start_us, e.duration_us
            return { start = start, ["end"] = start + duration, elapsed_us = function() return duration end }
        end
        return type(name) == "string" and other_name(e, name) or nil
    end

    for _, e in ipairs(list) do
        setmetatable(e, Event)
    end
    return list
end

return averages
