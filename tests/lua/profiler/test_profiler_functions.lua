-- test_profiler_functions.lua: the script's functions as events: how they nest, tail calls, errors, coroutines, hooks.
local t = require "harness"
local profiler = tide.profiler

-- The events of functions, indented by how deep they lie in one another.
local function outline(profile, kinds)
    local events, depth, lines = profile:events(), {}, {}
    for k, e in ipairs(events) do
        local shown = (kinds or { ["function"] = true })[e.kind]
        depth[k] = (e.parent and depth[e.parent] or 0) + (shown and 1 or 0)
        if shown then
            lines[#lines + 1] = (" "):rep(depth[k] - 1) .. e.name:gsub("^function <.*", "anonymous"):gsub(" %(.*", "")
        end
    end
    return table.concat(lines, "\n")
end

t.test("functions_nest_with_operators_and_bear_name_and_line", function()
    local x = tide.ones(3)
    local line = debug.getinfo(1, "l").currentline + 1
    local function inner() return (x + 1):exp() end
    local function outer()
        local y = inner()
        return y * 2
    end
    local p = profiler.profile { function()
        local _ = outer() + inner()
    end, functions = true }
    t.eq(outline(p, { ["function"] = true, operator = true }),
        "anonymous\n outer\n  inner\n   add\n   exp\n  mul\n inner\n  add\n  exp\n add")
    local found
    for _, e in ipairs(p:events()) do
        found = found or e.name:match("^inner %((.*)%)$")
    end
    t.is_true(found and found:find("test_profiler_functions.lua:" .. line, 1, true), tostring(found))
    t.is_true(p:table():find("outer", 1, true) and tostring(p:timeline { width = 60 }):find("Lua", 1, true))
end)

t.test("without_the_option_there_are_none_and_the_hook_is_gone_afterwards", function()
    local function f() return 1 end
    t.eq(outline(profiler.profile(function() f() end)), "")
    t.eq(outline(profiler.profile { function() f() end, functions = true }), "anonymous\n f")
    t.eq(debug.gethook(), nil)
end)

t.test("a_tail_call_takes_the_place_of_its_caller", function()
    local function last() return tide.ones(2):sum() end
    local function middle() return last() end
    local function first()
        local v = middle()
        return v
    end
    local text = outline(profiler.profile { function() first() first() end, functions = true })
    t.eq(text, "anonymous\n first\n  middle\n  anonymous\n first\n  middle\n  anonymous")
end)

t.test("an_error_ends_what_it_left", function()
    local function fails() error("no") end
    local function calls() fails() return 1 end
    local function after() return 2 end
    local p = profiler.profile { function()
        pcall(calls)
        after()
        xpcall(calls, function() return after() end)
        after()
    end, functions = true }
    t.eq(outline(p), "anonymous\n anonymous\n  fails\n after\n anonymous\n  fails\n   anonymous\n   anonymous\n after")
    t.error_has(function() profiler.profile { calls, functions = true } end, "no")
    t.eq(debug.gethook(), nil)
end)

t.test("coroutines_stop_where_they_yield_and_go_on_where_they_are_resumed", function()
    local function deep(n)
        coroutine.yield(n)
        return n
    end
    local function generator()
        for n = 1, 2 do
            deep(n)
        end
    end
    local function consumer()
        local co = coroutine.create(generator)
        while coroutine.status(co) ~= "dead" do
            coroutine.resume(co)
        end
    end
    local p = profiler.profile { function() consumer() end, functions = true }
    t.eq(outline(p), "anonymous\n consumer\n  anonymous\n   deep\n  anonymous\n   deep\n   deep\n  anonymous\n   deep")
end)

t.test("a_coroutine_that_waited_already_is_followed", function()
    local function work() return tide.ones(1) end
    local co = coroutine.wrap(function()
        while true do
            coroutine.yield()
            work()
        end
    end)
    co()
    local p = profiler.profile { function() co() co() end, functions = true }
    t.eq(select(2, outline(p):gsub("work", "")), 2)
    co()
    t.eq(debug.gethook(), nil)
end)

t.test("a_profile_that_begins_in_a_coroutine_ends_there_or_outside", function()
    local function work() return tide.ones(1) end
    local p
    local co = coroutine.wrap(function()
        p = profiler.profile { functions = true }
        work()
        coroutine.yield()
        work()
    end)
    co()
    work()
    collectgarbage()
    co()
    p:stop()
    t.eq(select(2, outline(p):gsub("work", "")), 3)
    for _, e in ipairs(p:events()) do
        local outer = e.kind == "function" and e.parent and p:events()[e.parent]
        t.is_true(not (outer and outer.name:find("^work ")), "work lies in work")
    end
    t.eq(debug.gethook(), nil)
end)

t.test("a_hook_of_the_scripts_own_is_not_taken_away", function()
    debug.sethook(function() end, "", 1000000)
    local ok, message = pcall(profiler.profile, { function() end, functions = true })
    debug.sethook()
    t.is_true(not ok and message:find("functions: the script has set a hook", 1, true), message)
    t.is_true(#profiler.profile(function() tide.ones(2):exp() end) > 0)
end)

t.test("deep_recursion_is_recorded", function()
    local function down(n) if n > 0 then down(n - 1) end end
    local p = profiler.profile { function() down(1000) end, functions = true }
    t.eq(select(2, outline(p):gsub("down", "")), 1001)
end)

t.test("loading_collecting_and_optimizing_are_events_of_their_own", function()
    local csv, file = os.tmpname(), os.tmpname()
    local out = assert(io.open(csv, "w"))
    out:write("1,2\n3,4\n")
    out:close()
    tide.save({ x = tide.ones(3) }, file)
    local w = tide.ones(3, { requires_grad = true })
    local adam = tide.optim.Adam({ w }, { lr = 0.1 })
    local p = profiler.profile { function()
        tide.io.read_csv(csv)
        pcall(tide.io.read_csv, "/no/such/file")
        tide.load(file)
        w:sum():backward()
        adam:step()
        collectgarbage()
        collectgarbage("step")
        collectgarbage("count")
    end }
    os.remove(csv)
    os.remove(file)
    local names = {}
    for _, e in ipairs(p:events()) do
        if e.kind == "data" or e.kind == "optimizer" or e.kind == "collector" and e.name == "collectgarbage" then
            names[#names + 1] = e.kind .. " " .. e.name
            t.eq(e.parent, nil, e.name)
        end
    end
    t.eq(table.concat(names, ", "), "data read_csv, data read_csv, data load, optimizer Adam.step, "
        .. "collector collectgarbage, collector collectgarbage")
end)

t.test("nvtx_needs_cuda_and_nothing_records_after_the_refusal", function()
    t.error_has(function() profiler.profile { function() end, nvtx = true } end, "profile: nvtx: there is no CUDA here")
    t.is_true(#profiler.profile(function() tide.ones(2):exp() end) > 0)
    for name, arguments in pairs { range_push = { "x" }, range_pop = {}, mark = { "x" } } do
        t.error_has(function() tide.cuda.nvtx[name](table.unpack(arguments)) end, name .. ": there is no CUDA here (")
    end
end)
