-- plain_lua.lua: the module in an interpreter that isn't ours: `lua5.4` with LUA_CPATH_5_4 at the build.
local t = require "harness"

t.test("require_makes_no_global", function()
    t.eq(rawget(_G, "tide"), nil)
    local tide = require "tide"
    t.eq(type(tide), "table")
    t.eq(rawget(_G, "tide"), nil)
    t.eq(require "tide", tide)
end)

local tide = require "tide"

t.test("operators_work", function()
    local x = tide.ones(2, 3)
    t.eq((x + x):sum():item(), 12)
    t.eq(x:size(2), 3)
    t.eq((x:matmul(tide.ones(3, 2)) * 2)[1]:sum():item(), 12)
end)

t.test("errors_are_lua_errors", function()
    t.error_has(function() return tide.ones(2, 3):matmul(tide.ones(4, 5)) end, "matmul")
end)

t.test("gradients_flow", function()
    local x = tide.ones(3, {requires_grad = true})
    local y = (x * x):sum()
    y:backward()
    t.eq(x.grad:sum():item(), 6)
end)

t.test("modes_belong_to_coroutines", function()
    local co = coroutine.wrap(function()
        local _ <close> = tide.no_grad()
        coroutine.yield(tide.is_grad_enabled())
        return tide.is_grad_enabled()
    end)
    t.eq(co(), false)
    t.eq(tide.is_grad_enabled(), true)
    t.eq(co(), false)
    t.error_has(function() coroutine.wrap(function() error("x") end)() end, "plain_lua.lua")
end)

t.test("collected_tensors_give_their_memory_back", function()
    for _ = 1, 2000 do
        local _ = tide.empty(250000)
    end
    collectgarbage()
    local status = io.open("/proc/self/status")
    local peak = status and tonumber(status:read("a"):match("VmHWM:%s*(%d+) kB"))
    if status then
        status:close()
    end
    if not peak then
        return t.skip("peak memory", "no /proc/self/status here")
    elseif os.getenv("ASAN_OPTIONS") then
        return t.skip("peak memory", "a sanitizer keeps freed memory back")
    end
    t.is_true(peak < 400 * 1024, "peak of " .. peak .. " kB resident")
end)

-- Tensors that are alive when the state closes are released there, after this module's last line.
local kept = {tide.ones(10), coroutine.wrap(function() coroutine.yield(tide.ones(10)) end)}
kept[2]()
_G.kept = kept
