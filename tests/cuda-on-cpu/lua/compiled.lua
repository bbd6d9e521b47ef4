-- compiled.lua: programs with kernels that are compiled at run time: the bits of the interpreter, which
-- another process asks. What is tried follows from TIDE_CUDA_COMPILE, TIDE_CUDA_KERNELS and
-- TIDE_PLAYED_NVRTC. On the device that the CPU plays compilations and launches are counted; on a chip the timeline tells
-- which kernels ran.
local t = require "harness"
local both = require "both"
local cases = require "compiled_cases"

local opened = package.loadlib(os.getenv "TIDE_CUDA_MODULE" or "", "luaopen_played")
local played = opened and opened()
if not tide.cuda.is_available() then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    return
elseif played and not played.has_compiler() then
    t.skip("compiling at run time", "the compiler that plays NVRTC is not installed")
    return
end
local here = arg[0]:match("^(.*)/") or "."
local asked = os.getenv "TIDE_CUDA_COMPILE"
local most = tonumber(os.getenv "TIDE_CUDA_KERNELS" or 512)
local fails = os.getenv "TIDE_PLAYED_NVRTC" == "fail"

-- What the interpreter gives for some cases.
local function interpreted(from, to)
    local path = os.tmpname()
    local ok = os.execute(("TIDE_CUDA_COMPILE=never '%s' '%s/compiled_save.lua' %s %d %d"):format(os.getenv "TIDE",
        here, path, from, to))
    t.eq(ok, true)
    local tensors = tide.load(path)
    os.remove(path)
    return tensors
end

local function same_bits(got, want, what)
    t.eq(tostring(got.dtype), tostring(want.dtype), what)
    t.eq(got.shape, want.shape, what)
    local a, b = got:double(), want:double()
    t.eq(tide.allclose(a, b, { rtol = 0, atol = 0, equal_nan = true }), true, what)
    t.eq(tide.equal(a:signbit():logical_or(a:isnan()), b:signbit():logical_or(b:isnan())), true, what .. ": signs")
end

local function compare(from, to)
    both.reset()
    local got = cases.run(from, to)
    local counts = played and played.counts() or {}
    counts.sums = both.launches("td_sum_kernel")
    local want = interpreted(from, to)
    t.eq(#got, #want)
    for k, result in ipairs(got) do
        same_bits(result[2], want[k], result[1])
    end
    return counts
end

local function kernels() return both.launches("td_program") end

-- The kernels of programs' own among what a chip did for fn.
local function on_the_timeline(fn)
    local n = 0
    for _, event in ipairs(tide.profiler.profile { fn, kernels = true }:events()) do
        n = n + (event.kind == "device" and event.name:find("td_program", 1, true) and 1 or 0)
    end
    return n
end

if not played then
    for k, name in ipairs(cases.names) do
        t.test("a_chips_kernels_have_the_interpreters_bits_in_" .. name:gsub(" ", "_"), function()
            compare(k, k)
            if asked == "now" then -- later it may not be worth it
                t.is_true(on_the_timeline(function() cases.run(k, k) end) > 0, "no kernel of a program's own ran")
            end
        end)
    end
elseif fails then
    t.test("a_compiler_that_fails_leaves_results_right_and_is_not_asked_again", function()
        local counts = compare(2, 3)
        t.eq(kernels(), 0)
        t.is_true(counts.compilations > 0)
        both.reset()
        cases.run(2, 3)
        t.eq(played.counts().compilations, 0, "failures are remembered")
    end)
elseif asked == "later" then
    t.test("a_program_is_interpreted_until_its_kernel_is_there", function()
        local x = tide.arange(5000, { dtype = tide.float32, device = "cuda" })
        local y = tide.ones(5000, { device = "cuda" })
        local first = tide.addcmul(x, x, y, { value = 0.3 })
        both.reset()
        local rounds = 0
        repeat -- the thread that compiles takes its time
            local again = tide.addcmul(x, x, y, { value = 0.3 })
            rounds = rounds + 1
            if rounds % 100 == 1 or kernels() > 0 then
                same_bits(again:cpu(), first:cpu(), "round " .. rounds)
            end
        until kernels() > 0
        t.is_true(rounds > 10, "it was not worth it at once")
        t.eq(played.counts().compilations, 2) -- the first makes what the compiler keeps
    end)

    t.test("a_process_ends_while_its_program_is_compiled", function()
        local program = [[local x = tide.ones(5000000, {device = "cuda"}) tide.lerp(x, x, 0.25) os.exit(%s)]]
        for _, way in ipairs { "0", "0, true" } do
            t.eq(select(3, os.execute(("'%s' -e '%s'"):format(os.getenv "TIDE", program:format(way)))), 0)
        end
    end)

    t.test("many_elements_are_worth_a_kernel_at_once", function()
        local x = tide.ones(5000000, { device = "cuda" })
        both.reset()
        tide.lerp(x, x, 0.25)
        repeat -- as above
            local y = tide.lerp(x:narrow(1, 1, 100), x:narrow(1, 5, 100), 0.25)
            t.eq(y:sum():item(), 100)
        until kernels() > 0
        t.eq(played.counts().compilations, 1)
    end)
elseif most < 512 then
    t.test("no_more_kernels_are_kept_than_there_is_room_for", function()
        local counts = compare(2, 3)
        t.eq(counts.compilations, most + 1) -- the first makes what the compiler keeps
        t.is_true(kernels() > 0)
        both.reset()
        cases.run(2, 3)
        t.eq(played.counts().compilations, 0)
        t.is_true(kernels() > 0, "those that are kept go on")
    end)
else
    for k, name in ipairs(cases.names) do
        t.test("kernels_of_their_own_have_the_interpreters_bits_in_" .. name:gsub(" ", "_"), function()
            local counts = compare(k, k)
            t.is_true(counts.compilations > 0 and (counts.kernels.td_program or 0) > 0)
            if name == "sums" then
                t.is_true(counts.sums > 0, "sums are the interpreter's")
            end
        end)
    end

    t.test("programs_that_differ_in_numbers_share_a_kernel", function()
        local x = tide.arange(3000, { dtype = tide.float32, device = "cuda" })
        tide.softplus(x, 1, 20)
        both.reset()
        local a, b = tide.softplus(x, 2, 20), tide.softplus(x, 3, 10)
        t.eq({ played.counts().compilations, kernels() }, { 0, 2 })
        t.is_false(tide.equal(a, b))
    end)

    t.test("an_Adam_step_over_161_tensors_stays_3_launches", function()
        local params = {}
        for k = 1, 161 do
            params[k] = tide.randn(10 + 37 * (k % 9)):to("cuda"):requires_grad_(true)
            params[k].grad = tide.randn(params[k].shape[1]):to("cuda")
        end
        local adam = tide.optim.Adam(params, { lr = 0.1 })
        adam:step()
        tide.cuda.synchronize()
        both.reset()
        adam:step()
        local counts = played.counts()
        t.is_true(counts.launches <= 3, counts.launches .. " launches")
        t.eq(counts.launches, kernels())
        t.eq({ counts.synchronisations, counts.compilations }, { 0, 0 })
    end)

    t.test("recorded_work_has_kernels_of_its_own", function()
        local x = tide.ones(1000, { device = "cuda" })
        local graph, y = tide.cuda.graph(function() return tide.addcmul(x, x, x) end)
        x:fill_(3)
        graph:replay()
        t.eq(y:sum():item(), 12000)
    end)

    t.test("devices_of_a_kind_share_kernels", function()
        if tide.cuda.device_count() < 2 then
            return
        end
        local x = tide.ones(1000, { device = "cuda:1" })
        both.reset()
        t.eq(tide.addcmul(x, x, x):sum():item(), 2000)
        t.eq(played.counts().compilations, 0)
    end)
end
