-- benchmark/files.lua: measurements of tide.benchmark in files, as JSON, which are taken from nobody unread.
local tide = ...

return function(measurement)
    local files = {}

    local SAVED = "tide.benchmark.measurements"

    files.save = tide._function("save(Measurement[] measurements, str path)",
        "Write measurements to a file, whole or not at all; load brings them back.", function(list, path)
            if string.find(path, "%.gz$") then
                tide._fail("save: %s: measurements are not packed: another name expected", path)
            end
            local out = { format = SAVED, measurements = tide._require("files.json").list {} }
            for k, m in ipairs(list) do
                out.measurements[k] = { label = m.label, sub_label = m.sub_label, description = m.description, env = m.env,
                    num_threads = m.num_threads, number_per_run = m.number_per_run, raw_times = m.raw_times, flops = m.flops, bytes = m.bytes }
            end
            tide._profiler_write(path, tide._require("files.json").encode(out, "save") .. "\n")
        end)

    -- What load gives of a saved table; nil: it is none.
    local function revive(saved)
        local function is(value, kind) return value == nil or type(value) == kind end
        local times = type(saved) == "table" and saved.raw_times
        if type(times) ~= "table" or #times == 0 or type(saved.label) ~= "string" or math.type(saved.num_threads) ~= "integer"
            or not is(saved.sub_label, "string") or not is(saved.description, "string") or not is(saved.env, "string")
            or not is(saved.flops, "number") or not is(saved.bytes, "number") or math.type(saved.number_per_run) ~= "integer"
            or saved.number_per_run < 1 then
            return nil
        end
        for _, seconds in ipairs(times) do
            if type(seconds) ~= "number" or not (seconds > 0 and seconds < math.huge) then
                return nil
            end
        end
        return measurement(saved, saved.number_per_run, times)
    end

    files.load = tide._function("load(str path) -> list", "The measurements that save wrote.", function(path)
        local file, message = io.open(path)
        local text, why
        if file then
            text, why = file:read("a")
            file:close()
        end
        if not text then
            tide._fail("load: %s", message or path .. ": " .. why)
        end
        local ok, saved = pcall(tide._require("files.json").decode, text)
        if not ok or type(saved) ~= "table" or saved.format ~= SAVED or type(saved.measurements) ~= "table" then
            tide._fail("load: %s: holds no measurements that tide.benchmark.save wrote", path)
        end
        local list = {}
        for k, entry in ipairs(saved.measurements) do
            list[k] = revive(entry) or tide._fail("load: %s: measurement %d is broken", path, k)
        end
        return list
    end)

    return files
end
