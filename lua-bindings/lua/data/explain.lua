-- data/explain.lua: where a loader's time goes: counts that epochs add to, and what loader:explain() says of them.
--
-- A stage's time on the clock is busy where the processor worked for it and waiting otherwise: for a file, for a processor. The
-- rate with n workers is the least of three: what n workers make, what the script takes, what the processors can do for both.
local tide = ...
local fail, declare = tide._fail, tide._function
local explain = {}

--- counts(): of a loader that has done nothing.
function explain.counts()
    return { batches = 0, samples = 0, stages = {}, wait = 0, script = 0, script_processor = 0, turns = 0 }
end

local Explanation = { __name = "Explanation" }
Explanation.__index = Explanation
tide._class("Explanation", Explanation)

-- Batches a second with n workers, from seconds of a batch: {make, processor, script, script_processor, processors}.
local function rate(cost, n)
    if n == 0 then
        return 1 / (cost.make + cost.script)
    end
    return math.min(n / cost.make, 1 / cost.script, cost.processors / (cost.processor + cost.script_processor))
end

Explanation.predict = declare("predict(Explanation self, int(0..256) num_workers) -> float", "Batches a second with so many workers.",
    function(self, n) return rate(self.cost, n) end)

local ORDER = { read = 1, decode = 2, transform = 3, get = 4, collate = 5, pin = 6 }

local function milliseconds(seconds) return string.format("%9.3f ms", seconds * 1e3) end

function Explanation:__tostring()
    local lines = { string.format("%d batches of %s samples, %d worker%s: %.4g batches/s", self.batches, tide._number(self.samples / self.batches, 4),
        self.num_workers, self.num_workers == 1 and "" or "s", self.rate), "stage            busy      waiting   of a batch" }
    for _, stage in ipairs(self.stages) do
        lines[#lines + 1] = string.format("%-10s %s %s", stage.name, milliseconds(stage.busy), milliseconds(stage.waiting))
    end
    lines[#lines + 1] = string.format("%-10s %s %s", "wait", milliseconds(0), milliseconds(self.wait))
    lines[#lines + 1] = string.format("%-10s %s %s", "script", milliseconds(self.cost.script_processor),
        milliseconds(math.max(self.cost.script - self.cost.script_processor, 0)))
    local parts = {}
    for _, n in ipairs { 0, 1, 2, 4, 8 } do
        parts[#parts + 1] = string.format("%d: %.4g", n, rate(self.cost, n))
    end
    lines[#lines + 1] = "batches/s to expect by num_workers: " .. table.concat(parts, ", ")
    return table.concat(lines, "\n")
end

local function sorted(stages, batches)
    local list = {}
    for name, spent in pairs(stages) do
        list[#list + 1] = { name = name, busy = spent.processor / batches, waiting = math.max(spent.clock - spent.processor, 0) / batches }
    end
    table.sort(list, function(a, b)
        local x, y = ORDER[a.name] or 3.5, ORDER[b.name] or 3.5
        return x < y or x == y and a.name < b.name
    end)
    return list
end

--- open(data, Loader): the methods that count, and explain().
function explain.open(data, Loader)
    data.stage = declare("stage(str name, str? file=nil) -> any", "What follows, until it is closed, is counted as this stage of making a sample: "
        .. "local _ <close> = tide.data.stage(\"decode\", path). loader:explain(), errors and profiles name stages; files and pictures "
        .. "that tide.io reads are stages by themselves.", function(name, file) return tide._stage_enter(name, file) end)

    -- The times when the script began to wait; what it did since the last batch is its own.
    function Loader:begin_wait()
        local counts, clock, processor = self.counts, tide._clocks()
        local since = counts.since
        if since then
            counts.script = counts.script + clock - since
            counts.script_processor = counts.script_processor + processor - counts.since_processor
            counts.turns = counts.turns + 1
        end
        return clock
    end

    function Loader:end_wait(begun)
        local counts, clock, processor = self.counts, tide._clocks()
        counts.wait = counts.wait + clock - begun
        counts.since, counts.since_processor = clock, processor
    end

    function Loader:count(batch)
        local counts, task = self.counts, batch.task
        counts.batches = counts.batches + 1
        counts.samples = counts.samples + (type(task) == "number" and self.source.batch_size or type(task) == "string" and 1 or #task)
        if batch.stages then
            tide._stages_add(counts.stages, batch.stages)
        end
    end

    Loader.explain = declare("explain(DataLoader self) -> Explanation", "Where the time of the batches so far went, by stage (read, decode, transform, "
        .. "get for the rest, collate, wait, script), busy and waiting, and the rate to expect with other numbers of workers: "
        .. "e.stages, e.rate, e:predict(2).", function(self)
            local counts = self.counts
            if counts.batches == 0 then
                fail("explain: no batches yet: loop over the loader before")
            end
            local n, turns = counts.batches, math.max(counts.turns, 1)
            local stages = sorted(counts.stages, n)
            local cost = { make = 0, processor = 0, script = counts.script / turns, script_processor = counts.script_processor / turns,
                processors = (tide._processors()) }
            if #stages == 0 then -- rows, which are gathered while the script waits
                stages = { { name = "get", busy = counts.wait / n, waiting = 0 } }
            end
            for _, stage in ipairs(stages) do
                cost.make, cost.processor = cost.make + stage.busy + stage.waiting, cost.processor + stage.busy
            end
            return setmetatable({ stages = stages, batches = n, samples = counts.samples, num_workers = self.num_workers, wait = counts.wait / n,
                cost = cost, rate = n / (counts.wait + counts.script) }, Explanation)
        end)
end

return explain
