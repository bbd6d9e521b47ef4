-- test_data_races.lua: loaders that are killed, left, and whose workers fail: the batches of an interrupted run are those of a
-- whole one, nothing is left of loaders that nobody wants any more, and whatever a worker does the session lives and says why.
local t = require "harness"
local tide = require "tide"
local data = tide.data

local function numbers(n)
    local list = {}
    for k = 1, n do
        list[k] = k
    end
    return list
end

local function write(path, text)
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
end

local function read(path)
    local file <close> = assert(io.open(path))
    return file:read "a"
end

-- A program that goes on where its state file says, and is killed at a batch where it is told one.
local program = [[
local states, log, workers, last = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
local rows = tide.data.TensorDataset(tide.arange(74, {dtype = tide.float32}):view(37, 2), tide.arange(37))
local loader <close> = tide.data.DataLoader(tide.data.map(rows, function(x, y)
    return x + tide.randn(2) * tide.rand(1), {label = y, lucky = tide.rand(1):item() > 0.5}
end), {batch_size = 4, shuffle = true, seed = 7, num_workers = workers})
local there = io.open(states)
if there then
    there:close()
    loader:load_state(tide.load(states))
end
local out, n = assert(io.open(log, "a")), 0
while loader:state().epoch <= 3 do
    for x, more in loader do
        for _, value in ipairs(x:view(-1):tolist()) do
            out:write(("%a "):format(value))
        end
        out:write(table.concat(more.label:tolist(), ","), tostring(more.lucky:sum():item()), "\n")
        out:flush()
        tide.save(loader:state(), states)
        n = n + 1
        if n == last then
            local pid = io.open("/proc/self/stat"):read("n")
            io.popen("kill -9 " .. math.tointeger(pid)):close()
            while true do end
        end
    end
end
print "whole"
]]

t.test("three_epochs_are_the_same_when_they_are_killed_and_go_on_with_other_workers", function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local path = folder .. "/program.lua"
    write(path, program)
    -- each part: workers, the batch at which it is killed (0: none)
    local function run(name, parts)
        for k, part in ipairs(parts) do
            local pipe <close> = io.popen(("'%s' %s %s/%s.state %s/%s.log %d %d 2>/dev/null"):format(os.getenv "TIDE", path, folder, name, folder,
                name, part[1], part[2]))
            local whole = pipe:read "a" == "whole\n"
            t.eq(whole, part[2] == 0, ("%s, part %d"):format(name, k))
        end
        return read(("%s/%s.log"):format(folder, name))
    end
    local wanted = run("plain", { { 0, 0 } })
    local _, lines = wanted:gsub("\n", "")
    t.eq(lines, 30)
    for workers = 1, 7 do
        if workers <= 2 or workers == 7 then
            t.eq(run("with" .. workers, { { workers, 0 } }), wanted, workers .. " workers")
        end
    end
    t.eq(run("killed", { { 2, 3 }, { 7, 12 }, { 0, 5 }, { 1, 0 } }), wanted, "killed in each epoch")
    os.execute("rm -r " .. folder)
end)

-- The shell counts once it is sent a line, when io.popen has returned: until then this process has both ends of the pipe open.
local function threads_and_files()
    local status, path = read "/proc/self/status", os.tmpname()
    local pipe = io.popen(("read go; ls /proc/%s/fd | wc -l >%s"):format(status:match "Pid:%s*(%d+)", path), "w")
    pipe:write "\n"
    assert(pipe:close())
    local files = tonumber(read(path))
    os.remove(path)
    return tonumber(status:match "Threads:%s*(%d+)"), files
end

-- TIDE_LOADERS: how many; 10,000 take minutes.
t.test("loaders_that_are_left_halfway_leave_no_thread_no_file_and_no_byte", function()
    local sets = {
        data.TensorDataset(tide.ones(40, 2)), data.map(numbers(40), function(k) return tide.full({ 1000 }, k) end),
        data.map({ iter = function()
            local k = 0
            return function()
                k = k + 1
                return k
            end
        end }, function(k) return tide.ones(100) * k end),
    }
    local function leave(count)
        for k = 1, count do
            local loader = data.DataLoader(sets[k % #sets + 1], { batch_size = 2, num_workers = k % 3, prefetch = k % 3 > 0 and 1 + k % 4 or nil })
            local n = 0
            for _ in loader do
                n = n + 1
                if n > k % 5 then
                    break
                end
            end
            if k % 4 == 0 then
                loader:close()
            end
        end
    end
    local function settle(threads)
        local patience = tide.time() + 60
        repeat
            collectgarbage()
            collectgarbage()
            tide.sleep(0.01)
        until threads_and_files() <= threads or tide.time() > patience
    end
    tide.ones(100000):sum()
    local before, files = threads_and_files()
    leave(12)
    settle(before)
    local bytes = tide.memory_allocated()
    leave(tonumber(os.getenv "TIDE_LOADERS") or os.getenv "TIDE_SANITIZED" and 30 or 200)
    settle(before)
    local after, files_after = threads_and_files()
    t.is_true(after <= before, ("%d threads, %d before"):format(after, before))
    t.is_true(files_after <= files, ("%d files, %d before"):format(files_after, files))
    t.is_true(tide.memory_allocated() <= bytes, ("%d bytes, %d before"):format(tide.memory_allocated(), bytes))
end)

t.test("whatever_a_worker_does_the_session_lives_and_says_why", function()
    for name, row in pairs {
        error = { function() error "broken" end, "broken" }, value = { function() error { 1 } end, "table" },
        tensor = { function() return tide.empty(1 << 50) end, "memory" },
        exit = { function() os.exit(3) end, "os.exit" }, overflow = { function()
            local function deep(n) return 1 + deep(n + 1) end
            return deep(1)
        end, "stack overflow" }, pattern = { function() return ("a"):rep(300000):find((".-"):rep(300000) .. "b") end, "too complex" },
        coroutine = { function() return coroutine.wrap(function() error "within" end)() end, "within" },
    } do
        local loader <close> = data.DataLoader(data.map(numbers(12), function(k)
            return k == 5 and row[1]() or k
        end), { batch_size = 2, num_workers = 2 })
        local seen = 0
        t.error_has(function()
            for _ in loader do
                seen = seen + 1
            end
        end, row[2])
        t.eq(seen, 2, name)
        local again = 0 -- the workers live
        loader:load_state { seed = loader.seed, epoch = 2, batch = 3 }
        for _ in loader do
            again = again + 1
        end
        t.eq(again, 3, name)
    end
    local failing <close> = data.DataLoader(numbers(3), { num_workers = 2, worker_init = function() error "no licence" end })
    t.error_has(function() for _ in failing do end end, "no licence")
end)

-- What a program prints, in so many kilobytes of addresses where that is said.
local function output(text, kilobytes)
    local path = os.tmpname()
    write(path, text)
    local pipe <close> = io.popen(("%s timeout 120 '%s' %s 2>&1; echo $?"):format(kilobytes and "ulimit -v " .. kilobytes .. ";" or "",
        os.getenv "TIDE", path))
    local all = pipe:read "a"
    os.remove(path)
    return all
end

t.test("a_worker_that_runs_out_of_memory_is_told_and_goes_on", function()
    if os.getenv "TIDE_SANITIZED" then
        return -- sanitizers want terabytes of addresses
    end
    t.eq(output([[
local loader = tide.data.DataLoader(tide.data.map({1, 2, 3, 4}, function(k)
    local parts, big = {}, ("x"):rep(1 << 20)
    for j = 1, k == 3 and 1 << 30 or 0 do
        parts[j] = big .. j
    end
    return k
end), {num_workers = 2})
local n = 0
local ok, message = pcall(function() for x in loader do n = n + 1 end end)
print(ok, message:match "sample 3", message:match "not enough memory", n)
loader:load_state{seed = loader.seed, epoch = 1, batch = 3}
for x in loader do print(x:item()) end
]], 400000), "false\tsample 3\tnot enough memory\t2\n4\n0\n")
end)

t.test("an_interrupt_ends_the_wait_for_workers_that_loop", function()
    local said = output [[
local loader = tide.data.DataLoader(tide.data.map({1, 2, 3, 4}, function(k) while true do end end), {num_workers = 2})
os.execute(("(sleep 0.3; kill -INT %d) &"):format(math.tointeger(io.open("/proc/self/stat"):read "n")))
for x in loader do end
]]
    t.is_true(said:find("tide: interrupted", 1, true) and said:find("130\n$"), said)
end)
