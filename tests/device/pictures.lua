-- pictures.lua: `tide tests/device/pictures.lua FOLDER`: the loop and the one call over lists of
-- notebooks/foreach_timeline.ipynb on the device, as pages of the timeline and as a trace.
local folder = arg[1] or "."
local COUNT, SIZE = 512, 1000
local params, grads = {}, {}
for k = 1, COUNT do
    params[k], grads[k] = tide.zeros(SIZE, { device = "cuda" }), tide.ones(SIZE, { device = "cuda" })
end

local function save(name, text)
    local file = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
    file:close()
end

local cases = {
    loop = function()
        for k = 1, COUNT do
            params[k]:add_(grads[k])
        end
    end,
    foreach = function() tide.foreach.add_(params, grads) end,
}
for name, fn in pairs(cases) do
    fn()
    tide.cuda.synchronize()
    local profile = tide.profiler.profile { fn, kernels = true }
    local first, last, busy, launches = math.huge, 0, 0, 0
    for _, e in ipairs(profile:events()) do
        first, last = math.min(first, e.start_us), math.max(last, e.start_us + e.duration_us)
        if e.kind == "device" then
            busy, launches = busy + e.duration_us, launches + 1
        end
    end
    print(("%s: %.0f µs, %d kernels, at work %.1f µs, %.1f %% of it"):format(name, last - first, launches, busy,
        100 * busy / (last - first)))
    print(tostring(profile:table()))
    save(name .. ".html", profile:timeline():html())
    profile:export_chrome_trace(folder .. "/" .. name .. ".json")
end
