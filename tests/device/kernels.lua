-- kernels.lua: `tide tests/device/kernels.lua [MODEL...]`: what a training step of tests/bench/gpu.lua's networks (resnet50,
-- digits) has the device do: kernels by name with their time, and the share of the step that the device works.
-- kernels.py says the same of PyTorch.
local bench_folder = (arg[0]:match("^(.*)/") or ".") .. "/../bench/"
local bench = dofile(bench_folder .. "bench.lua")
local models = loadfile(bench_folder .. "models.lua")(bench)

local function there(x) return x:to("cuda") end

local function tell(name, step)
    for _ = 1, 5 do
        step()
    end
    tide.cuda.synchronize()
    local profile = tide.profiler.profile { function()
        step()
        tide.cuda.synchronize()
    end, kernels = true }
    local by_name, list, busy, first, last = {}, {}, 0, math.huge, 0
    for _, e in ipairs(profile:events()) do
        if e.kind == "device" or e.kind == "transfer" or e.kind == "memset" then
            local one = by_name[e.name] or { name = e.name, us = 0, n = 0 }
            if one.n == 0 then
                by_name[e.name], list[#list + 1] = one, one
            end
            one.us, one.n, busy = one.us + e.duration_us, one.n + 1, busy + e.duration_us
            first, last = math.min(first, e.start_us), math.max(last, e.start_us + e.duration_us)
        end
    end
    table.sort(list, function(a, b) return a.us > b.us end)
    print(("%s: %.0f µs from the first to the last, the device at work %.0f µs"):format(name, last - first, busy))
    for k = 1, math.min(#list, 40) do
        print(("%9.0f µs %5d  %s"):format(list[k].us, list[k].n, list[k].name:sub(1, 150)))
    end
end

local steps = {
    resnet50 = function()
        local last = { memory_format = tide.channels_last }
        local batch, side = bench.tiny and 2 or 128, bench.tiny and 16 or 224
        local model = models.resnet50():to("cuda")
        model:to(last)
        return models.step(model, there(tide.randn(batch, 3, side, side)):to(last), there(tide.randint(1, 1001, { batch })),
            { device = "cuda", dtype = tide.bfloat16 })
    end,
    digits = function()
        return models.step(models.digits():to("cuda"), there(tide.rand(32, 1, 32, 32)), there(tide.randint(1, 11, { 32 })))
    end,
}
for _, name in ipairs(#arg > 0 and arg or { "digits", "resnet50" }) do
    tell(name, (steps[name] or error("kernels.lua: no network '" .. name .. "'"))())
end
