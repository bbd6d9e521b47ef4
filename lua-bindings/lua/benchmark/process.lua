-- benchmark/process.lua: what is measured in processes of its own: compare_versions of two builds, and instructions
-- counted by valgrind. Knows how to start programs and to read what they print; tide.benchmark gives it `measurement`.
local tide = ...
local process = {}

-- A program beside the script is one of this folder, not of the shell's path.
local function located(path) return string.find(path, "/", 1, true) and path or "./" .. path end

local function quote(text) return "'" .. string.gsub(text, "'", "'\\''") .. "'" end

local function lines_of(text)
    local lines = {}
    for line in string.gmatch(text, "[^\n]+") do
        lines[#lines + 1] = line
    end
    return lines
end

-- Runs a command; its output, both streams, or (nil, why).
local function run(command)
    local pipe, message = io.popen(command, "r")
    if not pipe then
        return nil, message
    end
    local output = pipe:read("a")
    local ok, what, code = pipe:close()
    if ok then
        return output
    end
    local lines, last = lines_of(output), nil
    for k = #lines, 1, -1 do -- of an error with its traceback the error
        last = (last == nil or not string.find(lines[k], "^%s")) and not string.find(lines[k], "^stack traceback") and lines[k] or last
    end
    return nil, string.format("ended with %s %d%s", what == "signal" and "signal" or "code", code, last and ": " .. last or "")
end

-- A file that holds the text, while fn(path) runs.
local function with_file(text, fn)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local results = table.pack(xpcall(fn, function(message) return message end, path))
    os.remove(path)
    if not results[1] then
        error(results[2], 0)
    end
    return table.unpack(results, 2, results.n)
end

-- ---- two builds ----

-- Of a two-sided confidence of 95 %, by degrees of freedom.
local STUDENT = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 }

local function student(n) return STUDENT[n] or 1.96 + 2.5 / n end

-- The ratio of paired times, after to before, and between what it lies: Student's interval of the logarithms.
function process.ratio_of(before, after)
    local n, mean, squares = #before, 0, 0
    for k = 1, n do
        mean = mean + math.log(after[k] / before[k]) / n
    end
    for k = 1, n do
        squares = squares + (math.log(after[k] / before[k]) - mean) ^ 2
    end
    local half = n > 1 and student(n - 1) * (squares / (n - 1) / n) ^ 0.5 or math.huge
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
end

local Comparison = { __name = "Comparison" }
tide._class("Comparison", Comparison)
Comparison.__index = Comparison

function Comparison.__tostring(c)
    local verdict
    if c.faster then
        local by = c.faster == "after" and { 1 / c.ratio, 1 / c.high, 1 / c.low } or { c.ratio, c.low, c.high }
        verdict = string.format("%s is %.3f times as fast (95 %%: %.3f to %.3f)", c.faster, table.unpack(by))
    else
        verdict = string.format("no difference that is sure: after / before %.3f (95 %%: %.3f to %.3f)", c.ratio, c.low, c.high)
    end
    return string.format("%s\n%s\n%s, %d rounds", c.before, c.after, verdict, #c.before.times)
end

-- What a process of a version runs: it prints how long one run took, of as many as it is told, or as are long enough.
local PROGRAM = [==[
local clock = tide.time or os.clock
local loop = (function() %s
return function(__loops) for __k = 1, __loops do %s
end end end)()
local loops = tonumber(arg[1])
loop(2)
local function time() collectgarbage() local start = clock() loop(loops) return clock() - start end
if loops == 0 then
    loops = 1
    while time() < %g do loops = loops * 10 end
end
local best = math.huge
for _ = 1, 5 do best = math.min(best, time()) end
print(("tide-benchmark %%d %%.17g"):format(loops, best / loops))
]==]

local function fail(format, ...) tide._fail("compare_versions: " .. format, ...) end

local function run_version(which, path, rest)
    local output, why = run(quote(located(path)) .. " " .. rest .. " 2>&1")
    if not output then
        fail("%s ('%s') %s", which, path, why)
    end
    return output
end

-- A function of a version that measures it once, in seconds.
local function statement_runner(file)
    local loops = "0"
    return function(which, path)
        local output = run_version(which, path, quote(file) .. " " .. loops)
        local count, seconds = string.match(output, "tide%-benchmark (%d+) (%S+)%s*$")
        if not count then
            fail("%s ('%s') measured nothing: is it tide?", which, path)
        end
        loops = count
        return tonumber(seconds)
    end
end

local function script_runner(script, arguments)
    local rest = quote(script)
    for _, argument in ipairs(arguments) do
        rest = rest .. " " .. quote(tostring(argument))
    end
    return function(which, path)
        local start = tide.time()
        run_version(which, path, rest)
        return tide.time() - start
    end
end

-- Rounds of both, of which every second begins with the other.
local function alternate(measure, before, after, rounds)
    local times = { before = {}, after = {} }
    local paths = { before = before, after = after }
    for k = 1, rounds do
        for _, which in ipairs(k % 2 == 1 and { "before", "after" } or { "after", "before" }) do
            times[which][k] = measure(which, paths[which])
        end
    end
    return times
end

local function check_file(what, path)
    local file, message = io.open(path)
    local readable = file and file:read(0)
    if file then
        file:close()
    end
    if not readable then
        fail("%s: %s", what, message or "'" .. path .. "' is no file with anything in it")
    end
end

local function check_chunk(what, text)
    local fn, message = load(text, "=" .. what, "t")
    if not fn then
        fail("%s: %s", what, (string.gsub(message, "\n.*", "")))
    end
end

-- `measurement(task, number_per_run, times)` makes a Measurement.
function process.comparer(measurement, body_of)
    return function(before, after, stmt, setup, script, arguments, rounds, min_run_time)
        if (stmt == nil) == (script == nil) then
            fail("one of stmt and script expected, got %s", stmt and "both" or "neither")
        elseif script and setup ~= "" then
            fail("setup is for stmt")
        elseif stmt and arguments then
            fail("arguments are for a script")
        end
        check_file("before", before)
        check_file("after", after)
        local times
        if script then
            check_file("script", script)
            times = alternate(script_runner(script, arguments or {}), before, after, rounds)
        else
            check_chunk("setup", setup)
            local body = body_of(stmt)
            check_chunk("stmt", body)
            times = with_file(string.format(PROGRAM, setup, body, min_run_time), function(file)
                return alternate(statement_runner(file), before, after, rounds)
            end)
        end
        local c = { ratio = 0.0 }
        for which, list in pairs(times) do
            c[which] = measurement({ label = stmt or script, description = which, num_threads = tide.get_num_threads() }, 1, list)
        end
        c.ratio, c.low, c.high = process.ratio_of(times.before, times.after)
        c.faster = c.high < 1 and "after" or c.low > 1 and "before" or nil
        return setmetatable(c, Comparison)
    end
end

-- ---- instructions ----

-- The program that runs this, or tide beside the kernel.
local function own_program()
    local stat = io.open("/proc/self/stat")
    local id = stat and stat:read("n")
    if stat then
        stat:close()
    end
    local path = id and run(string.format("readlink /proc/%d/exe", id))
    path = path and string.gsub(string.gsub(path, "\n$", ""), "tide%-kernel$", "tide")
    return path and string.find(path, "tide$") and path or nil
end

local COUNTED = [==[
local __loop = (function() %s
return function(__loops) for __k = 1, __loops do %s
end end end)()
tide.set_num_threads(%d)
__loop(10)
collectgarbage()
collectgarbage("stop")
__loop(tonumber(arg[1]))
os.exit(0, true)
]==]

local function count_once(valgrind, program, file, number)
    local output, why = run(string.format("%s --tool=callgrind --callgrind-out-file=/dev/null %s %s %d 2>&1", valgrind, quote(program),
        quote(file), number))
    local count = output and string.match(output, "Collected : (%d+)")
    if not count then
        tide._fail("collect_callgrind: valgrind %s", why or "counted nothing")
    end
    return tonumber(count)
end

local Counts = { __name = "CallgrindStats" }
tide._class("CallgrindStats", Counts)
Counts.__index = Counts
function Counts.__tostring(c)
    return string.format("%s\n  %.1f instructions a run (callgrind, %d runs)", c.label, c.instructions, c.number)
end

-- Instructions of a run: of twice as many runs less those of as many, so that neither start nor end is counted.
function process.collect_callgrind(label, setup, body, threads, number, program)
    local valgrind = run("command -v valgrind")
    if not valgrind then
        tide._fail("collect_callgrind: there is no valgrind here to count instructions (Debian: apt install valgrind)")
    end
    program = program or own_program()
    if not program then
        tide._fail("collect_callgrind: which program is Tide? Say it with {program = path}")
    end
    return with_file(string.format(COUNTED, setup, body, threads), function(file)
        local base = count_once("valgrind", program, file, number)
        local twice = count_once("valgrind", program, file, 2 * number)
        return setmetatable({ label = label, number = number, instructions = (twice - base) / number, total = twice }, Counts)
    end)
end

return process
