-- test_workers.lua: tide.workers: what travels to another state and back, what is refused and in which words, errors,
-- randomness, memory that is shared, pools that are stopped, closed and dropped.
local t = require "harness"
local tide = require "tide"

-- The error's text holds each of these.
local function fails(fn, ...)
    local ok, message = pcall(fn)
    t.is_true(not ok, "an error was expected")
    for _, text in ipairs { ... } do
        t.is_true(tostring(message):find(text, 1, true), ("%q in %s"):format(text, message))
    end
end

local function with_pool(n, fn)
    local pool <close> = tide.workers { n = n }
    return fn(pool)
end

local function there_and_back(value)
    return with_pool(1, function(pool) return pool:submit(function(x) return x end, value):get() end)
end

t.test("plain_values_come_back_as_they_are", function()
    for _, value in ipairs { true, false, 0, -1, math.maxinteger, math.mininteger, 0.1, -0.0, 1 / 0, "", "a\0b\255", ("x"):rep(100000) } do
        local back = there_and_back(value)
        t.eq(back, value)
        t.eq(math.type(back), math.type(value))
    end
    local nan = there_and_back(0 / 0)
    t.is_true(nan ~= nan)
    t.eq(there_and_back(nil), nil)
    t.eq(1 / there_and_back(-0.0), -1 / 0)
end)

t.test("all_arguments_and_results_go_nil_among_them", function()
    with_pool(1, function(pool)
        local packed = table.pack(pool:submit(function(...) return select("#", ...), ... end, nil, 1, nil):get())
        t.eq(packed, { 3, nil, 1, nil, n = 4 })
        t.eq(select("#", pool:submit(function() end):get()), 0)
    end)
end)

t.test("tables_keep_what_they_share_and_their_circles", function()
    local shared = { 1 }
    local value = { a = shared, b = shared, [3.5] = "x", list = { 1, 2, nil, 4 } }
    value.self, value[shared] = value, "by a table"
    local back = there_and_back(value)
    t.is_true(back.a == back.b and back.self == back and back.a ~= shared)
    t.eq(back[back.a], "by a table")
    t.eq(back[3.5], "x")
    t.eq(back.list[4], 4)
end)

t.test("metatables_go_along", function()
    local class = { __name = "point" }
    class.__index = class
    function class:length() return self.x * 2 end
    local back = there_and_back(setmetatable({ x = 4 }, class))
    t.eq(back:length(), 8)
end)

t.test("a_local_called_as_a_global_that_can_not_go_along_takes_nothing_with_it", function()
    _G.file_of_the_test = io.stdout
    with_pool(1, function(pool)
        t.eq(pool:submit(function(x)
            local file_of_the_test = x + 1
            return file_of_the_test
        end, 5):get(), 6)
        t.eq(pool:submit(function(file_of_the_test) return file_of_the_test * 2 end, 5):get(), 10)
        t.error_has(function() pool:submit(function() return file_of_the_test end) end, "global 'file_of_the_test'")
    end)
    _G.file_of_the_test = nil
end)
t.test("functions_take_upvalues_and_globals_that_they_name", function()
    local factor, list = 3, { 10, 20 }
    local function inner(x) return x * factor end
    _G.global_of_the_test = function(x) return x + another_of_the_test end
    _G.another_of_the_test = 100
    with_pool(2, function(pool)
        t.eq(pool:submit(function(x) return inner(x) + list[2] + global_of_the_test(x) end, 5):get(), 15 + 20 + 105)
        local function even(n) return n == 0 or not odd_of_the_test(n - 1) end
        _G.odd_of_the_test = function(n) return n == 0 or not even(n - 1) end
        t.eq(pool:submit(even, 10):get(), even(10))
    end)
    _G.global_of_the_test, _G.another_of_the_test, _G.odd_of_the_test = nil, nil, nil
end)

t.test("what_is_known_everywhere_goes_by_its_name", function()
    local format, Linear, relu, none, double = string.format, tide.nn.Linear, tide.relu, tide.newaxis, tide.float64
    with_pool(1, function(pool)
        t.eq(pool:submit(function(x) return format("%d", x) end, 3):get(), "3")
        t.eq(pool:submit(function() return Linear == tide.nn.Linear, relu == tide.relu, double == tide.float64, none == tide.newaxis end):get(), true)
        t.is_true(select(2, pool:submit(function(f) return 1, f == math.sin end, math.sin):get()))
    end)
end)

t.test("names_are_found_at_once_when_modules_have_been_loaded", function()
    with_pool(1, function(pool)
        for k = 1, 3 do
            package.loaded["module_of_the_test_" .. k] = {}
            t.eq(pool:submit(math.sin, 0):get(), 0.0)
        end
        for k = 1, 3 do
            package.loaded["module_of_the_test_" .. k] = nil
        end
    end)
end)

t.test("tensors_share_their_memory", function()
    local x = tide.zeros(1000)
    local y = with_pool(1, function(pool)
        return pool:submit(function(a) a:add_(1) return a end, x):get()
    end)
    t.eq(x:sum():item(), 1000)
    x:add_(1)
    t.eq(y:sum():item(), 2000)
    for _, dtype in ipairs { "bool", "uint8", "int64", "float16", "bfloat16", "float64" } do
        local a = tide.ones(2, 3, { dtype = tide[dtype] }):t()
        local b = there_and_back(a)
        t.eq(b.dtype, a.dtype)
        t.eq(tostring(b.shape), tostring(a.shape))
        t.eq(tostring(b:stride()), tostring(a:stride()))
        t.is_true(tide.equal(a, b))
    end
end)

t.test("leaves_go_with_their_mark_and_histories_are_refused", function()
    local w = tide.ones(2, { requires_grad = true })
    local back = there_and_back(w)
    t.is_true(back.requires_grad and back.is_leaf)
    fails(function() there_and_back { w * 2 } end, "history")
end)

t.test("modules_of_nn_work_there", function()
    tide.manual_seed(1)
    local model = tide.nn.Sequential(tide.nn.Linear(4, 8), tide.nn.ReLU(), tide.nn.Linear(8, 2))
    local x = tide.randn(5, 4)
    local there = with_pool(2, function(pool)
        return pool:submit(function(m, input)
            local _ <close> = tide.no_grad()
            return m(input)
        end, model, x):get()
    end)
    t.is_true(tide.equal(there, model(x):detach()))
end)

t.test("what_can_t_travel_is_named_with_its_way", function()
    local file <close> = io.tmpfile()
    local function job() return file end
    local line = debug.getinfo(job, "S").linedefined
    with_pool(1, function(pool)
        fails(function() pool:submit(job) end, "upvalue 'file'", ":" .. line)
        fails(function() pool:submit(print, { a = { b = coroutine.create(print) } }) end, "field 'b'", "thread", "field 'a'")
        fails(function() pool:submit(print, file) end, "value '2'")
        fails(function() pool:submit(3) end, "fn", "function")
        local deep = {}
        for _ = 1, 1000 do
            deep = { deep }
        end
        fails(function() pool:submit(print, deep) end, "within one another")
        t.eq(pool:submit(function() return 1 end):get(), 1, "it goes on")
    end)
end)

t.test("an_error_comes_with_the_worker_s_lines", function()
    with_pool(1, function(pool)
        local line = debug.getinfo(1, "l").currentline + 1
        local job = pool:submit(function() local x = nil; return x.y end)
        fails(function() job:get() end, "in a worker", "test_workers.lua:" .. line, "'x'", "stack traceback")
        fails(function() pool:submit(function() error { code = 1 } end):get() end, "table")
        fails(function() pool:submit(function() os.exit(3) end):get() end, "os.exit")
        fails(function() pool:submit(function() return io.stdout end):get() end, "can't go")
        fails(function() pool:submit(function() return tide.ones(2, 3):matmul(tide.ones(2, 3)) end):get() end, "matmul")
        t.eq(pool:submit(function() return "alive" end):get(), "alive")
    end)
end)

t.test("map_keeps_the_order_and_stops_at_the_first_error", function()
    with_pool(3, function(pool)
        local list = {}
        for k = 1, 100 do
            list[k] = k
        end
        local squares = pool:map(function(x) return x * x end, list)
        t.eq(#squares, 100)
        t.eq(squares[73], 73 * 73)
        t.eq(pool:map(print, {}), {})
        fails(function() pool:map(function(x) return 1 // (x - 5) end, list) end, "in a worker")
    end)
end)

t.test("draws_are_a_worker_s_own_and_follow_the_seed", function()
    local function draws(n)
        tide.manual_seed(7)
        return with_pool(n, function(pool)
            local jobs = {}
            for k = 1, n do
                jobs[k] = pool:submit(function()
                    local until_all_run = tide.time() + 0.05
                    while tide.time() < until_all_run do end
                    return tide.rand(1):item()
                end)
            end
            local all = {}
            for k = 1, n do
                all[jobs[k]:get()] = true
            end
            return all
        end)
    end
    t.eq(draws(1), draws(1))
    tide.manual_seed(7)
    local before = tide.get_rng_state()
    with_pool(1, function(pool) pool:submit(function() tide.rand(1000) end):get() end)
    tide.set_rng_state(before)
    t.eq(tide.initial_seed(), 7, "seeding and drawing there changes nothing here")
    with_pool(1, function(pool) pool:submit(function() tide.manual_seed(99) end):get() end)
    t.eq(tide.initial_seed(), 7)
end)

t.test("threads_of_kernels_are_a_worker_s_own", function()
    local here = tide.get_num_threads()
    with_pool(1, function(pool)
        t.eq(pool:submit(function() return tide.get_num_threads() end):get(), 1)
        pool:submit(function() tide.set_num_threads(2) end):get()
        t.eq(pool:submit(function() return tide.get_num_threads() end):get(), 2)
    end)
    t.eq(tide.get_num_threads(), here)
end)

t.test("init_runs_once_in_each_state_and_its_error_is_each_job_s", function()
    local pool <close> = tide.workers { n = 1, init = function() counted = (counted or 0) + 1 end }
    t.eq(pool:submit(function() return counted end):get(), 1)
    t.eq(pool:submit(function() return counted end):get(), 1)
    local bad <close> = tide.workers { n = 1, init = function() error "no data" end }
    for _ = 1, 2 do
        fails(function() bad:submit(function() end):get() end, "no data")
    end
end)

t.test("a_job_that_loops_is_stopped_and_the_worker_lives", function()
    with_pool(1, function(pool)
        local job = pool:submit(function() while true do end end)
        local behind = pool:submit(function() return 1 end)
        t.is_true(not job:done())
        behind:stop()
        t.is_true(behind:done())
        fails(function() behind:get() end, "stopped")
        job:stop()
        fails(function() job:get() end, "stopped")
        local kernel = pool:submit(function() local x = tide.ones(400, 400) while true do x = x:matmul(x) * 0 end end)
        kernel:stop()
        fails(function() kernel:get() end, "stopped")
        t.eq(pool:submit(function() return 2 end):get(), 2)
    end)
end)

t.test("a_job_that_runs_when_its_pool_is_closed_was_stopped", function()
    local pool, begun = tide.workers { n = 1 }, tide.zeros(20)
    local job = pool:submit(function(x) x:fill_(1) while true do end end, begun)
    while begun[1]:item() == 0 do
        tide.sleep(0.001)
    end
    pool:close()
    fails(function() job:get() end, "stopped")
end)

t.test("a_closed_pool_takes_no_jobs_and_closes_twice", function()
    local pool = tide.workers { n = 2 }
    local endless = pool:submit(function() while true do end end)
    pool:close()
    pool:close()
    fails(function() endless:get() end, "stopped")
    fails(function() pool:submit(print) end, "closed")
    t.eq(tostring(pool), "Pool(2, closed)")
    fails(function() tide.workers { n = 0 } end, "n")
    fails(function() tide.workers {} end, "n")
end)

t.test("pools_that_are_dropped_leave_no_thread", function()
    local function threads()
        local n = 0
        for line in io.lines "/proc/self/status" do
            n = tonumber(line:match "^Threads:%s*(%d+)") or n
        end
        return n
    end
    with_pool(2, function(pool) pool:map(function(x) return tide.ones(100):sum():item() + x end, { 1, 2, 3 }) end)
    local before = threads()
    for _ = 1, 30 do
        local pool = tide.workers { n = 2 }
        pool:submit(function() while true do end end)
    end
    collectgarbage()
    collectgarbage()
    local patience = tide.time() + 60
    while threads() > before and tide.time() < patience do
        tide.sleep(0.01)
    end
    t.is_true(threads() <= before, "threads are left") -- one that ended may be counted before
end)
