-- script_sizes.lua: does a compiler ever make a caller wait? Programs are called 10,000 times with sizes that change, as they are
-- written and as scripted functions, forward and with backward; and what the first kernel of a process takes.
--
-- A line for each: {"case", "calls", "longest_s", "eager_longest_s", "over_s", "over_call", "written"}. All that happens at random
-- (other programs, the collector) differs from run to run, compilation does not: the whole is run in some rounds, each with
-- functions of its own, and of a call the least of the rounds counts. over_s is the most that a scripted call takes beyond the
-- same call in eager mode, at the call over_call; 2 ms are the goal. Beside it, {"case": "first_kernel_..."}: the milliseconds
-- that the thread which makes code took, with an empty cache and with what the process before left there (40 and 2 are the goals).
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local bench, programs = dofile(here .. "bench.lua"), dofile(here .. "script_programs.lua")
tide.set_num_threads(1)
local CALLS, ROUNDS = bench.tiny and 60 or 10000, bench.tiny and 2 or 4

local function norm(x, weight, bias)
    local off = x - x:mean(2, { keepdim = true })
    return off / ((off * off):mean(2, { keepdim = true }) + 1e-5):sqrt() * weight + bias
end

-- 180 operators.
local function large(x, y)
    for k = 1, 45 do
        x = (x * y + k):tanh() - y
    end
    return x
end

local PROGRAMS = {
    { "tenfold", programs.tenfold, function(n) return { { n }, { n } } end },
    { "gelu_mlp", programs.gelu_mlp, function(n) return { { n, 16 }, { 16, 32 }, { 32 }, { 32, 16 }, { 16 } } end },
    { "norm", norm, function(n) return { { n, 16 }, { 16 }, { 16 } } end },
    { "large", large, function(n) return { { n }, { n } } end },
}

-- The k-th size: from 1 to 97, or the same for a while.
local function size_of(k) return 1 + k // (k % 3 == 0 and 500 or 1) * 7919 % 97 end

local made = {} -- operands by program and size

local function operands(name, shapes, n, trained)
    local key = name .. n
    if not made[key] then
        made[key] = {}
        for k, shape in ipairs(shapes(n)) do
            made[key][k] = bench.uniform(shape, 0.9, 1.1)
        end
    end
    for _, x in ipairs(made[key]) do
        x.requires_grad = trained
    end
    return made[key]
end

-- The least that each call took in all rounds.
local function least_of(name, f_of, shapes, trained)
    local least = {}
    for _ = 1, ROUNDS do
        local f = f_of()
        for k = 1, CALLS do
            local inputs = operands(name, shapes, size_of(k), trained)
            local start = tide.time()
            local y = f(table.unpack(inputs))
            if trained then
                tide.autograd.grad(y:sum(), inputs)
            end
            local took = tide.time() - start
            least[k] = math.min(least[k] or took, took)
        end
        collectgarbage()
    end
    return least
end

for _, program in ipairs(PROGRAMS) do
    local name, fn, shapes = table.unpack(program)
    for _, trained in ipairs { false, true } do
        local case = name .. (trained and "_sizes_backward" or "_sizes")
        if bench.chosen(case) then
            local f
            local eager = least_of(name, function() return fn end, shapes, trained)
            local scripted = least_of(name, function()
                f = tide.jit.script(fn)
                return f
            end, shapes, trained)
            local over, at, longest, eager_longest = -math.huge, 0, 0, 0
            for k = 1, CALLS do
                if scripted[k] - eager[k] > over then
                    over, at = scripted[k] - eager[k], k
                end
                longest, eager_longest = math.max(longest, scripted[k]), math.max(eager_longest, eager[k])
            end
            local written = tostring(f:why()):match "(%d+) calls ran the graph as written" or "0"
            print(('{"case": "%s", "calls": %d, "longest_s": %.3g, "eager_longest_s": %.3g, "over_s": %.3g, "over_call": %d, "written": %s}')
                :format(case, CALLS, longest, eager_longest, over, at, written))
            io.stdout:flush()
        end
    end
end

-- ---- the first kernel ----

local FIRST = [[
    local f = tide.jit.script(function(x, y) return (x * y + x):sqrt() * y end)
    local x = tide.rand(5000)
    local c
    for _ = 1, 4000 do
        f(x, x)
        c = tide.jit.cache()
        if c.compiled + c.loaded + c.refused > 0 then break end
        tide.sleep(1e-3)
    end
    print(c.compiled, c.loaded, c.ms)
]]

if bench.chosen "first_kernel" then
    local folder, program = os.tmpname(), arg and arg[-1] or "tide"
    os.remove(folder)
    for _, from in ipairs { "compiled", "disk" } do
        local pipe = assert(io.popen(("XDG_CACHE_HOME='%s' '%s' -e '%s'"):format(folder, program, FIRST)))
        local compiled, loaded, ms = pipe:read("a"):match "(%d+)%s+(%d+)%s+(%S+)"
        pipe:close()
        print(('{"case": "first_kernel_%s", "compiled": %s, "read": %s, "ms": %s}'):format(from, compiled or "null", loaded or "null",
            ms or "null"))
    end
    os.execute(("rm -r '%s'"):format(folder))
end
