-- profiler.lua: tide.profiler: what of it needs no C: schedules.
local tide = ...
local profiler = tide._profiler()

profiler.schedule = tide._function(
    "schedule(*, int(0..) wait=0, int(0..) warmup=0, int(1..) active, int(0..) repeats=0, int(0..) skip_first=0) -> function",
    "For profile{schedule = ...}: of each cycle of steps leave out `wait`, record `warmup` and forget them, keep `active`; "
    .. "so often (0: to the end), after the first steps were skipped. The function says of a step, from 0, \"none\", "
    .. "\"warmup\", \"record\", or \"save\" where on_trace_ready is called behind it.",
    function(wait, warmup, active, repeats, skip_first)
        local cycle = wait + warmup + active
        return function(step)
            step = step - skip_first
            if step < 0 or repeats > 0 and step >= repeats * cycle then
                return "none"
            end
            local at = step % cycle
            return at < wait and "none" or at < wait + warmup and "warmup" or at < cycle - 1 and "record" or "save"
        end
    end)

-- What `tide --profile FILE` calls around everything that runs. A file that can't be written is refused before.
local running

function profiler._begin(path)
    local draft = path .. ".part"
    local file, message = io.open(draft, "w")
    if not file then
        error(message:gsub("%.part: ", ": ", 1), 0)
    end
    file:close()
    os.remove(draft)
    running = profiler.profile { with_stack = true, profile_memory = true }
end

function profiler._finish(path)
    local profile = running
    running = nil
    profile:stop()
    profile:export_chrome_trace(path)
end

tide._document(profiler, "profiler", "tide.profiler",
    "profile(fn) records what runs; record(name, fn) names a part of it; step() marks a step; schedule{...} says which "
    .. "steps are recorded.")

return profiler
