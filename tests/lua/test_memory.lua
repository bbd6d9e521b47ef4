-- test_memory.lua: tensors are let go of: by the collector in time, in coroutines, after errors.
local t = require "harness"

local function settle()
    collectgarbage()
    collectgarbage()
    return tide.memory_allocated()
end

t.test("garbage_does_not_pile_up", function()
    local before = settle()
    tide.reset_peak_memory_stats()
    for _ = 1, 2000 do
        local _ = tide.empty(250000) -- 1 MB each: Lua itself sees a few bytes of it
    end
    t.is_true(tide.memory_stats().peak - before < 200e6, "peak " .. tide.memory_stats().peak)
    t.eq(settle(), before)
end)

t.test("freed_memory_is_used_again", function()
    if os.getenv("ASAN_OPTIONS") then
        return t.skip("freed_memory_is_used_again", "under a sanitizer every block goes back to the system")
    end
    local x = tide.empty(1000000)
    x = nil
    collectgarbage()
    local before = tide.memory_stats().system_allocations
    for _ = 1, 20 do
        local y = tide.empty(1000000)
        y = nil
        collectgarbage()
    end
    t.eq(tide.memory_stats().system_allocations, before)
end)

t.test("close_lets_go_at_once", function()
    local before = settle()
    local kept
    do
        local x <close> = tide.empty(1000000)
        kept = x
        t.is_true(tide.memory_allocated() >= before + 4000000)
    end
    t.eq(tide.memory_allocated(), before)
    t.error_has(function() return kept + 1 end, "closed")
end)

t.test("coroutines_and_errors_leave_nothing", function()
    local before = settle()
    for _ = 1, 50 do
        local co = coroutine.wrap(function()
            local x = tide.ones(10000)
            coroutine.yield(x:sum():item())
            error("late")
        end)
        t.eq(co(), 10000)
        pcall(co)
        pcall(function() return tide.ones(10000):matmul(tide.ones(3)) end)
        pcall(function() return tide.cat({ tide.ones(10000), tide.ones(2, 2) }) end)
        pcall(function() return tide.ones(10000)[{ { 1, 2 }, 5 }] end)
    end
    t.eq(settle(), before)
end)

t.test("graphs_are_freed_with_their_tensors", function()
    local before = settle()
    do
        local x = tide.ones(100000, { requires_grad = true })
        local y = x
        for _ = 1, 10 do
            y = y * 2 + 1
        end
        y = nil
        x = nil
    end
    t.eq(settle(), before)
end)

t.test("cycles_through_tables_are_collected", function()
    local before = settle()
    for _ = 1, 10 do
        local a = { x = tide.ones(100000) }
        a.self = a
    end
    t.eq(settle(), before)
end)

t.test("too_much_is_refused_and_nothing_is_lost", function()
    local x = tide.ones(3)
    for _, size in ipairs { 1e15, 1e18 } do
        t.error_has(function() return tide.empty(math.tointeger(size)) end, "out of memory")
    end
    t.error_has(function() return tide.empty(1 << 40, 1 << 40) end, "out of memory")
    t.error_has(function() return tide.empty(-1) end, "negative")
    t.eq(x:sum():item(), 3)
end)
