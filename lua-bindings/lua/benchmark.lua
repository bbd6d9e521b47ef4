-- benchmark.lua: tide.benchmark: Timer measures a statement or a function, Measurement says what it took and how sure
-- that is, Compare sets measurements side by side. The arithmetic is that of torch.utils.benchmark.
local tide = ...
local benchmark = {}

local WARN, GROSS = 0.1, 0.25               -- of the median: an interquartile range that is worth a word
local SURE, MOST_FIGURES = 25e-9, 4         -- no measurement is surer than this, s
local Z = 1.645                             -- of a two-sided confidence of 90 %

-- ---- text ----

local units = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "µs" }, { 1e-9, "ns" } }

local function unit_of(seconds)
    for _, unit in ipairs(units) do
        if seconds >= unit[1] then
            return unit
        end
    end
    return units[4]
end

-- Of that many significant digits.
local function trim(x, figures)
    if x == 0 then
        return 0
    end
    local scale = 10.0 ^ (figures - 1 - math.floor(math.log(math.abs(x), 10)))
    return math.floor(x * scale + 0.5) / scale
end

local function width_of(text) return utf8.len(text) or #text end

local function pad(text, width, left)
    local blanks = string.rep(" ", width - width_of(text))
    return left and text .. blanks or blanks .. text
end

-- ---- measurements ----

local Measurement = { __name = "Measurement" }
tide._class("Measurement", Measurement)

local function quantile(sorted, q)
    local at = 1 + q * (#sorted - 1)
    local low = math.floor(at)
    local high = math.min(low + 1, #sorted)
    return sorted[low] + (sorted[high] - sorted[low]) * (at - low)
end

local function mean_of(list, from, to)
    local sum = 0
    for k = from, to do
        sum = sum + list[k]
    end
    return sum / (to - from + 1)
end

-- The digits of the median that a confidence interval of the middle half leaves standing.
local function figures_of(sorted, median)
    local n = #sorted
    local from, to = n // 4 + 1, math.ceil(3 * n / 4)
    local mean, squares = mean_of(sorted, from, to), 0
    for k = from, to do
        squares = squares + (sorted[k] - mean) ^ 2
    end
    local count = to - from + 1
    local interval = math.max(Z * (squares / count) ^ 0.5 / count ^ 0.5, SURE)
    return math.floor(math.min(math.max(math.floor(math.log(median / interval, 10)), 1), MOST_FIGURES))
end

local function measurement(task, number_per_run, raw_times)
    local times = {}
    for k, seconds in ipairs(raw_times) do
        times[k] = seconds / number_per_run
    end
    local sorted = table.move(times, 1, #times, 1, {})
    table.sort(sorted)
    local median, iqr = quantile(sorted, 0.5), quantile(sorted, 0.75) - quantile(sorted, 0.25)
    return setmetatable({ title = task.label .. (task.env and string.format(" (%s)", task.env) or ""), as_row_name = task.sub_label or task.label,
        has_warnings = iqr > WARN * median, flops = task.flops, bytes = task.bytes, label = task.label, sub_label = task.sub_label, description = task.description, env = task.env,
        num_threads = task.num_threads, number_per_run = number_per_run, raw_times = raw_times, times = times,
        median = median, mean = mean_of(times, 1, #times), iqr = iqr,
        significant_figures = figures_of(sorted, median) }, Measurement)
end

local methods = {}
Measurement.__index = methods

methods.meets_confidence = tide._function("meets_confidence(Measurement m, number threshold=0.1) -> bool",
    "Is the interquartile range less than this share of the median?", function(m, threshold)
        return m.iqr < threshold * m.median
    end)

local function rate_of(amount, m) return amount and amount / m.median end

methods.flops_per_second = tide._function("flops_per_second(Measurement m) -> number?",
    "By the median; nil where the timer was not told (or asked to find out) what a run does.", function(m)
        return rate_of(m.flops, m)
    end)
methods.bytes_per_second = tide._function("bytes_per_second(Measurement m) -> number?", "Likewise.", function(m)
    return rate_of(m.bytes, m)
end)

local function rate_text(rate, unit)
    local scale, prefix = 1, ""
    for _, step in ipairs { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } } do
        if rate >= step[1] then
            scale, prefix = step[1], step[2]
            break
        end
    end
    return string.format("%.3g %s%s/s", rate / scale, prefix, unit)
end

local function rates_line(m)
    local parts = {}
    parts[#parts + 1] = m.flops and rate_text(rate_of(m.flops, m), "FLOP")
    parts[#parts + 1] = m.bytes and rate_text(rate_of(m.bytes, m), "B")
    return #parts > 0 and "  " .. table.concat(parts, ", ") or nil
end

function Measurement.__tostring(m)
    local unit = unit_of(m.median)
    local function show(seconds) return string.format("%.2f %s", seconds / unit[1], unit[2]) end
    local lines = { m.label .. (m.sub_label and ": " .. m.sub_label or "") }
    lines[#lines + 1] = m.description
    if #m.times > 1 then
        lines[#lines + 1] = string.format("  median: %s, IQR: %s, mean: %s", show(m.median), show(m.iqr), show(m.mean))
    else
        lines[#lines + 1] = "  " .. show(m.median)
    end
    lines[#lines + 1] = string.format("  %d measurement%s, %d runs each, %d thread%s", #m.times, #m.times == 1 and "" or "s",
        m.number_per_run, m.num_threads, m.num_threads == 1 and "" or "s")
    lines[#lines + 1] = rates_line(m)
    if not m:meets_confidence(WARN) and #m.times > 1 then
        lines[#lines + 1] = string.format("  the interquartile range is %.0f %% of the median: %s", 100 * m.iqr / m.median,
            m:meets_confidence(GROSS) and "the machine may be unsteady" or "something else was at work")
    end
    return table.concat(lines, "\n")
end

benchmark.merge = tide._function("merge(Measurement[] measurements) -> list",
    "One measurement of those that were of the same: label, sub_label, description, env and number of threads.",
    function(list)
        local merged, groups = {}, {}
        for _, m in ipairs(list) do
            local key = table.concat({ m.label, m.sub_label or "", m.description or "", m.env or "", m.num_threads }, "\0")
            if not groups[key] then
                groups[key] = { task = m, times = {} }
                merged[#merged + 1] = groups[key]
            end
            table.move(m.times, 1, #m.times, #groups[key].times + 1, groups[key].times)
        end
        for k, group in ipairs(merged) do
            merged[k] = measurement(group.task, 1, group.times)
        end
        return merged
    end)

-- ---- timers ----

local Timer = { __name = "Timer" }
tide._class("Timer", Timer)

local function compile(text, what, env)
    local fn, message = load(text, "=" .. what, "t", env)
    if not fn then
        tide._fail("Timer: %s: %s", what, (string.gsub(message, "\n.*", "")))
    end
    return fn
end

-- The statement; of an expression that is none an assignment.
local function body_of(stmt)
    return load("return " .. stmt, "=stmt", "t") and not load(stmt, "=stmt", "t") and "local _ = " .. stmt or stmt
end

-- A function of a number that runs the statement so often. Both parts are read by themselves first: neither can end
-- what stands around it.
local function loop_of(stmt, setup, globals)
    local env = setmetatable({}, { __index = function(_, name)
        local value = globals[name]
        if value == nil then
            value = _G[name]
        end
        return value
    end })
    compile(setup, "setup", env)
    local body = body_of(stmt)
    compile(body, "stmt", env)
    return compile(setup .. "\nreturn function(__loops, __mark) for __k = 1, __loops do " .. body .. "\nend return __mark end",
        "stmt", env)()
end

-- What one run computes and moves, as a profile of it knows.
local function find_work(timer)
    local profile = tide.profiler.profile { timer.loop, 1, timer, with_flops = true, kernels = true }
    local flops, bytes = profile:_work()
    timer.flops = timer.flops or flops > 0 and flops or nil
    timer.bytes = timer.bytes or bytes > 0 and bytes or nil
end

local function make_timer(stmt, fn, setup, globals, label, sub_label, description, env, num_threads, flops, bytes, rates)
    if (stmt == nil) == (fn == nil) then
        tide._fail("Timer: one of stmt and fn expected, got %s", stmt and "both" or "neither")
    elseif fn and (setup ~= "" or globals) then
        tide._fail("Timer: setup and globals are for stmt: fn has what it needs")
    end
    local loop = stmt and loop_of(stmt, setup, globals or {}) or function(loops, mark)
        for _ = 1, loops do
            fn()
        end
        return mark
    end
    return setmetatable({ loop = loop, label = label or stmt or "function", sub_label = sub_label,
        description = description, env = env, num_threads = num_threads, flops = flops, bytes = bytes, rates = rates,
        stmt = stmt, setup = setup, has_globals = globals ~= nil }, Timer)
end

-- Seconds that so many runs take, without what is loaded and memory touched for the first time; each begins with the same heap.
local function run(timer, number)
    collectgarbage()
    local _watch <close> = tide._watch_loading()
    local loaded, start = tide._loading_seconds(), tide.time()
    if timer.loop(number, timer) ~= timer then
        error("Timer: stmt must not return", 0)
    end
    return tide.time() - start - (tide._loading_seconds() - loaded)
end

local function with_threads(timer, fn)
    local before = tide.get_num_threads()
    tide.set_num_threads(timer.num_threads)
    local ok, result = xpcall(function()
        if timer.rates then
            timer.rates = false
            find_work(timer)
        end
        return fn()
    end, function(message) return message end)
    tide.set_num_threads(before)
    if not ok then
        error(result, 0)
    end
    return result
end

-- How many runs take that long at least: 1, 10, 100, ...
local function block_size(timer, least)
    local number = 1
    while run(timer, number) < least do
        number = number * 10
    end
    return number
end

local function measure(timer, number, min_run_time, max_run_time, enough)
    local times, total = {}, 0
    repeat
        times[#times + 1] = run(timer, number)
        total = total + times[#times]
    until total >= max_run_time or total >= min_run_time and enough(times)
    return measurement(timer, number, times)
end

local timers = {}
Timer.__index = timers
function Timer.__tostring(timer) return string.format("Timer: %s", timer.label) end

timers.timeit = tide._function("timeit(Timer t, int(1..) number=1000000) -> Measurement",
    "So many runs in one measurement.", function(timer, number)
        return with_threads(timer, function()
            run(timer, math.max(number // 100, 2))
            return measurement(timer, number, { run(timer, number) })
        end)
    end)

timers.blocked_autorange = tide._function("blocked_autorange(Timer t, *, number(0..) min_run_time=0.2) -> Measurement",
    "Measurements of as many runs each as the clock needs, for min_run_time seconds.", function(timer, min_run_time)
        return with_threads(timer, function()
            local number = block_size(timer, math.max(min_run_time / 1000, 1e-4))
            return measure(timer, number, min_run_time, math.huge, function() return true end)
        end)
    end)

timers.adaptive_autorange = tide._function("adaptive_autorange(Timer t, *, number(0..) threshold=0.1, "
    .. "number(0..) min_run_time=0.01, number(0..) max_run_time=10.0) -> Measurement",
    "Measurements until their interquartile range is less than `threshold` of the median, or for max_run_time seconds.",
    function(timer, threshold, min_run_time, max_run_time)
        return with_threads(timer, function()
            local number = block_size(timer, math.max(min_run_time / 100, 1e-4))
            return measure(timer, number, min_run_time, max_run_time, function(times)
                return #times > 3 and measurement(timer, number, times):meets_confidence(threshold)
            end)
        end)
    end)

timers.collect_callgrind = tide._function("collect_callgrind(Timer t, *, int(1..) number=100, str? program=nil) -> CallgrindStats",
    "How many instructions a run of the statement takes, by valgrind's callgrind, in a process of its own (`program`: this one's): "
    .. "the same each time, however busy the machine is.", function(timer, number, program)
        if not timer.stmt then
            tide._fail("collect_callgrind: a timer of stmt expected: a function can't be given to another process")
        elseif timer.has_globals then
            tide._fail("collect_callgrind: globals can't be given to another process: put them into setup")
        end
        return tide._require("benchmark.process").collect_callgrind(timer.label, timer.setup, body_of(timer.stmt), timer.num_threads, number, program)
    end)

local read_timer = tide._function("Timer(str? stmt=nil, function? fn=nil, *, str setup=\"\", table? globals=nil, "
    .. "str? label=nil, str? sub_label=nil, str? description=nil, str? env=nil, int(1..1024) num_threads=1, number(0..)? flops=nil, "
    .. "number(0..)? bytes=nil, bool rates=false) -> Timer",
    "Measures a statement, with locals of `setup` and names of `globals`, or a function: t:timeit(n), t:blocked_autorange(), "
    .. "t:adaptive_autorange(). label, sub_label and description are its place in the table that Compare prints. `flops` and `bytes` say what a run "
    .. "computes and moves, rates = true finds out: measurements show FLOP/s and bytes a second.", make_timer)

-- A function that is given as stmt is fn.
function benchmark.Timer(first, ...)
    if type(first) == "function" then
        return read_timer(nil, first, ...)
    elseif type(first) == "table" and getmetatable(first) == nil and type(first.stmt) == "function" and first.fn == nil then
        local options = {}
        for name, value in next, first do
            options[name == "stmt" and "fn" or name] = value
        end
        return read_timer(options, ...)
    end
    return read_timer(first, ...)
end
tide._document(benchmark.Timer, read_timer)

-- ---- side by side ----

local Compare = { __name = "Compare" }
tide._class("Compare", Compare)
local compares = {}
Compare.__index = compares

local function add_once(list, value)
    for _, known in ipairs(list) do
        if known == value then
            return
        end
    end
    list[#list + 1] = value
end

local function row_name(m) return (m.env and "(" .. m.env .. ") " or "") .. (m.sub_label or "") end

-- The measurements of a label: columns by description, rows by threads, then by name.
local function grid_of(list)
    local grid = { columns = {}, threads = {}, rows = {}, cells = {}, least = math.huge }
    for _, m in ipairs(list) do
        add_once(grid.columns, m.description or "")
        add_once(grid.threads, m.num_threads)
        add_once(grid.rows, row_name(m))
        grid.cells[m.num_threads .. "\0" .. row_name(m) .. "\0" .. (m.description or "")] = m
        grid.least = math.min(grid.least, m.median)
    end
    table.sort(grid.threads)
    grid.unit = unit_of(grid.least)
    return grid
end

local function cell(grid, threads, row, column) return grid.cells[threads .. "\0" .. row .. "\0" .. column] end

local function number_text(self, grid, m)
    local value = m.median / grid.unit[1]
    if not self.trimmed then
        return string.format("%.1f", value)
    end
    value = trim(value, m.significant_figures)
    local digits = math.max(0, m.significant_figures - 1 - math.floor(math.log(value, 10)))
    return string.format("%." .. math.min(digits, 9) .. "f", value)
end

-- The best of a column (of a row with rowwise) is green, twice and five times as slow are dim and plain red.
-- Colours go to who shows them: a terminal, a notebook.
local function shows_colors()
    local frontend = tide._frontend and tide._frontend() or {}
    return frontend.color or frontend.notebook
end

local function color_of(self, grid, m, threads, row, column)
    local best = math.huge
    for _, other in ipairs(self.rowwise and grid.columns or grid.rows) do
        local n = self.rowwise and cell(grid, threads, row, other) or cell(grid, threads, other, column)
        best = n and math.min(best, n.median) or best
    end
    local ratio = m.median / best
    return ratio == 1 and "\27[32;1m" or ratio > 5 and "\27[31;1m" or ratio > 2 and "\27[31;2m" or nil
end

-- Lines of a grid: a heading and a list of rows, whose first entry is the name.
local function lines_of(self, grid, visit)
    for _, threads in ipairs(grid.threads) do
        visit(string.format("%d thread%s", threads, threads == 1 and "" or "s"))
        for _, row in ipairs(grid.rows) do
            local texts, colors, any = {}, {}, false
            for k, column in ipairs(grid.columns) do
                local m = cell(grid, threads, row, column)
                any = any or m ~= nil
                texts[k] = m and number_text(self, grid, m) or ""
                colors[k] = m and self.colored and shows_colors() and color_of(self, grid, m, threads, row, column) or false
            end
            if any then
                visit(nil, row, texts, colors)
            end
        end
    end
end

local function groups_of(self)
    local labels, by_label = {}, {}
    for _, m in ipairs(self.results) do
        if not by_label[m.label] then
            by_label[m.label] = {}
            labels[#labels + 1] = m.label
        end
        table.insert(by_label[m.label], m)
    end
    return labels, by_label
end

local function draw(self, label, grid)
    local first, widths, out = 0, {}, {}
    for k, column in ipairs(grid.columns) do
        widths[k] = width_of(column)
    end
    lines_of(self, grid, function(heading, row, texts)
        first = math.max(first, width_of(heading or "  " .. row))
        for k, text in ipairs(texts or {}) do
            widths[k] = math.max(widths[k], width_of(text))
        end
    end)
    local function line(name, texts, colors)
        local parts = { pad(name, first, true) }
        for k, text in ipairs(texts) do
            text = pad(text, widths[k])
            parts[k + 1] = colors and colors[k] and colors[k] .. text .. "\27[0m" or text
        end
        out[#out + 1] = table.concat(parts, "  |  ")
    end
    line("", grid.columns)
    local width = width_of(out[1])
    table.insert(out, 1, "[" .. string.gsub(pad(" " .. label .. " ", math.max(width - 2, 0), true), " +$", function(blanks)
        return " " .. string.rep("-", #blanks - 1)
    end) .. "]")
    lines_of(self, grid, function(heading, row, texts, colors)
        if heading then
            out[#out + 1] = heading .. ": " .. string.rep("-", math.max(width - width_of(heading) - 2, 0))
        else
            line("  " .. row, texts, colors)
        end
    end)
    out[#out + 1] = string.format("\nTimes are in %s.", ({ s = "seconds (s)", ms = "milliseconds (ms)", ["µs"] = "microseconds (µs)",
        ns = "nanoseconds (ns)" })[grid.unit[2]])
    return table.concat(out, "\n")
end

function Compare.__tostring(self)
    local labels, by_label = groups_of(self)
    local tables = {}
    for k, label in ipairs(labels) do
        tables[k] = draw(self, label, grid_of(by_label[label]))
    end
    return table.concat(tables, "\n\n")
end

compares.print = tide._function("print(Compare c)", "Print the tables.", function(self) print(self) end)
compares.extend_results = tide._function("extend_results(Compare c, Measurement[] results)", "Measurements that are compared too.",
    function(self, results)
        self.results = benchmark.merge(table.move(results, 1, #results, #self.results + 1, table.move(self.results, 1, #self.results, 1, {})))
    end)
compares.trim_significant_figures = tide._function("trim_significant_figures(Compare c)",
    "Show no more digits than the measurements are sure of.", function(self) self.trimmed = true end)
compares.colorize = tide._function("colorize(Compare c, *, bool rowwise=false)",
    "Colours: the best of each column, or row, is green, what is twice and five times as slow red.", function(self, rowwise)
        self.colored, self.rowwise = true, rowwise
    end)

local function quoted(text)
    return string.find(text, '[",\n]') and '"' .. string.gsub(text, '"', '""') .. '"' or text
end

compares.csv = tide._function("csv(Compare c) -> str",
    "A line per measurement: label, sub_label, description, env, threads, median, iqr (seconds), runs.", function(self)
        local lines = { "label,sub_label,description,env,num_threads,median_s,iqr_s,measurements" }
        for _, m in ipairs(self.results) do
            lines[#lines + 1] = table.concat({ quoted(m.label), quoted(m.sub_label or ""), quoted(m.description or ""),
                quoted(m.env or ""), m.num_threads, string.format("%.6g", m.median), string.format("%.6g", m.iqr), #m.times }, ",")
        end
        return table.concat(lines, "\n") .. "\n"
    end)

compares.markdown = tide._function("markdown(Compare c) -> str", "The tables in Markdown.", function(self)
    local labels, by_label = groups_of(self)
    local function safe(text) return (string.gsub(text, "[|\n]", { ["|"] = "\\|", ["\n"] = " " })) end
    local out = {}
    for _, label in ipairs(labels) do
        local grid = grid_of(by_label[label])
        out[#out + 1] = string.format("| %s (%s) |", safe(label), grid.unit[2])
        local rule = "|---|"
        for _, column in ipairs(grid.columns) do
            out[#out] = out[#out] .. " " .. safe(column) .. " |"
            rule = rule .. "---:|"
        end
        out[#out + 1] = rule
        local threads
        lines_of(self, grid, function(heading, row, texts)
            threads = heading or threads
            if not heading then
                out[#out + 1] = string.format("| %s, %s | %s |", safe(row), threads, table.concat(texts, " | "))
            end
        end)
        out[#out + 1] = ""
    end
    return table.concat(out, "\n")
end)

benchmark.Compare = tide._function("Compare(Measurement[] measurements) -> Compare",
    "Measurements side by side: a table per label, with a column per description and a row per sub_label, env and number of "
    .. "threads. c:print(), c:trim_significant_figures(), c:colorize(), c:csv(), c:markdown().", function(list)
        return setmetatable({ results = benchmark.merge(list) }, Compare)
    end)

-- A measurement of times that are known already, in seconds: of another program, or saved.
benchmark.measurement = tide._function("measurement(list times, *, str label, str? sub_label=nil, str? description=nil, "
    .. "str? env=nil, int(1..) num_threads=1, int(1..) number_per_run=1) -> Measurement",
    "What these times say, seconds of number_per_run runs each.", function(times, label, sub_label, description, env, threads, number)
        for k, seconds in ipairs(times) do
            if type(seconds) ~= "number" or not (seconds > 0 and seconds < math.huge) then
                tide._fail("measurement: entry %d: seconds expected, got %s", k, tide._describe(seconds))
            end
        end
        if #times == 0 then
            tide._fail("measurement: no times")
        end
        return measurement({ label = label, sub_label = sub_label, description = description, env = env,
            num_threads = threads }, number, times)
    end)

-- ---- two builds ----

benchmark.compare_versions = tide._function("compare_versions(*, str before, str after, str? stmt=nil, str setup=\"\", str? script=nil, "
    .. "list? arguments=nil, int(2..10000) rounds=10, number(0..) min_run_time=0.05) -> Comparison",
    "Two builds of Tide (paths of their programs) run a statement, or a script as a whole, in processes of their own and in turns: "
    .. "c.before and c.after are Measurements, c.ratio is after / before and lies between c.low and c.high (95 %), c.faster says who "
    .. "is; nil where the difference may be chance.", function(...)
        return tide._require("benchmark.process").comparer(measurement, body_of)(...)
    end)

for _, parts in ipairs { tide._require "benchmark.fuzzer", tide._require("benchmark.files")(measurement) } do
    for name, value in pairs(parts) do
        benchmark[name] = value
    end
end

tide._document(benchmark, "benchmark", "tide.benchmark",
    "Timer{stmt = ...} measures, Compare{...} sets measurements side by side.")

return benchmark
