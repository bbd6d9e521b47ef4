-- What recordings tell of scripted functions: groups by their operators and places, what other threads compile, and where
-- kernels come from. Each case that compiles elsewhere is a process of its own.
local t = require "harness"

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function read(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    return text
end

-- What a script prints that finds no kernels of other processes, and has graphs made later.
local function output_of(code)
    local path = folder .. "/script.lua"
    local file = assert(io.open(path, "w"))
    file:write(code)
    file:close()
    local pipe = assert(io.popen(("TIDE_SCRIPT=later XDG_CACHE_HOME='%s/cache' '%s' '%s' 2>&1"):format(folder, os.getenv "TIDE", path)))
    local text = pipe:read "a"
    pipe:close()
    return text
end

local LARGE = [[
    local function large(x, y)
        for k = 1, 40 do
            x = (x * y + k):tanh() - y
        end
        return x
    end
    local f = tide.jit.script(large)
    local x, y = tide.rand(50), tide.rand(50)
    local function events_of(fn)
        local p = tide.profiler.profile(fn)
        local kinds = {}
        for _, e in ipairs(p:events()) do
            kinds[e.kind] = kinds[e.kind] or {}
            kinds[e.kind][e.name] = (kinds[e.kind][e.name] or 0) + 1
        end
        return kinds, p
    end
    local function until_specialised() -- another thread does it
        local patience = tide.time() + 60
        repeat
            f(x, y)
            tide.sleep(1e-3)
        until f:why().lines[2]:find "1 spec" or tide.time() > patience
    end
]]

t.test("a_group_is_called_after_its_operators_and_a_trace_has_their_places", function()
    local f = tide.jit.script(function(x, y)
        local z = x * y + x
        return z:tanh()
    end)
    local line = debug.getinfo(1, "l").currentline - 3
    local x, y = tide.rand(10), tide.rand(10)
    f(x, y)
    local p = tide.profiler.profile(function() f(x, y) end)
    local names = {}
    for _, e in ipairs(p:events()) do
        names[e.kind] = (names[e.kind] or "") .. e.name
    end
    t.eq({ names.operator, names.kernel }, { "fused mul add tanh", "fused mul add tanh" })
    p:export_chrome_trace(folder .. "/trace.json")
    local operators = read(folder .. "/trace.json"):match '"operators":"([^"]*)"'
    local file = "[^,]*test_profiler_scripts.lua:"
    t.is_true(operators:find(("^mul %s%d, add %s%d, tanh %s%d$"):format(file, line, file, line, file, line + 1)), operators)
    local back = tide.profiler.load(folder .. "/trace.json")
    t.eq(#back:events(), #p:events())
end)

t.test("equal_operators_in_a_row_are_counted_in_a_groups_name", function()
    local f = tide.jit.script(function(x, y)
        for _ = 1, 10 do
            x = x * y
        end
        return x
    end)
    local x = tide.ones(10)
    f(x, x)
    t.eq(tide.profiler.profile(function() f(x, x) end):events()[1].name, "fused mul*10")
end)

t.test("a_graph_that_is_specialised_elsewhere_is_an_event_of_its_thread", function()
    local text = output_of(LARGE .. [[
        local kinds, p = events_of(until_specialised)
        print((kinds.compile or {})["specialise large"], (kinds.loading or {})["specialise a function"])
        p:export_chrome_trace("]] .. folder .. [[/later.json")
        local after = events_of(function() f(x, y) end)
        print(next(after.compile or {}), (after.operator or {}).mul)
    ]])
    t.eq(text, "1\tnil\nnil\tnil\n")
    local trace = read(folder .. "/later.json")
    t.is_true(trace:find('"cat":"compile","name":"specialise large"', 1, true) and trace:find('"name":"compiler of graphs"', 1, true))
end)

t.test("code_that_is_made_and_found_again_is_told", function()
    local code = [[
        local f = tide.jit.script(function(x, y) return (x * y + x) * y - 1 end)
        local x = tide.rand(4000)
        local p = tide.profiler.profile(function()
            local patience, c = tide.time() + 60
            repeat
                f(x, x)
                tide.sleep(1e-3)
                c = tide.jit.cache()
            until c.compiled + c.loaded + c.refused > 0 or tide.time() > patience
        end)
        local names = {}
        for _, e in ipairs(p:events()) do names[#names + 1] = e.kind == "compile" and e.name or nil end
        local c = tide.jit.cache()
        p:export_chrome_trace("]] .. folder .. [[/code.json")
        print(table.concat(names, ", "), c.compiled, c.loaded)
    ]]
    local first, second = output_of(code), output_of(code)
    if first == "\t0\t0\n" then
        return t.skip("code_that_is_made_and_found_again_is_told", "no LLVM here")
    end
    t.is_true(read(folder .. "/code.json"):find '"name":"machine code",.*"compiled":0,"read from disk":1}')
    t.eq({ first, second }, { "compile code of mul add mul sub\t1\t0\n", "read code of mul add mul sub\t0\t1\n" })
    t.eq(output_of "print(tide.jit.cache{clear = true}.removed, tide.jit.cache().entries, tide.jit.cache())":match "^%d+\t%d+", "1\t0")
end)

t.test("why_tells_what_a_specialisation_has_saved_by_calls_that_were_timed", function()
    local text = output_of(LARGE .. [[
        until_specialised()
        for _ = 1, 300 do f(x, y) end
        print(f:why())
    ]])
    t.is_true(text:find "%d+ calls, %d+%.%d%d ms to make; %d+%.%d%d ms %a+ so far %(%d+%.%d%d µs a call as written, %d+%.%d%d µs now", text)
    t.is_true(text:find "%d+ calls ran the graph as written", text)
end)
