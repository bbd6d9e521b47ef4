-- workers.lua: tide.workers{n}: threads that each run a Lua state of their own, and jobs for them. What can travel between
-- states is said by lua-bindings/workers/parcel.h.
local tide = ...
local fail, declare, class = tide._fail, tide._function, tide._class

local Job = { __name = "Job" }
Job.__index = Job
class("Job", Job)

Job.get = declare("get(Job self) -> any", "Wait for the job; what its function returned. Raises its error, with the worker's traceback.",
    function(self) return tide._job_get(self.handle) end)
Job.done = declare("done(Job self) -> bool", "Has the job ended?", function(self) return tide._job_done(self.handle) end)
Job.stop = declare("stop(Job self)", "The job does not begin, or is interrupted.", function(self) tide._job_stop(self.handle) end)

function Job:__tostring()
    return tide._job_done(self.handle) and "Job(done)" or "Job(running)"
end

local Pool = { __name = "Pool" }
Pool.__index = Pool
class("Pool", Pool)

local function submit(self, fn, ...)
    if not self.handle then
        fail("submit: the pool is closed")
    end
    return setmetatable({ handle = tide._pool_submit(self.handle, 0, fn, ...) }, Job)
end

Pool.submit = declare("submit(Pool self, function? fn, ...) -> Job",
    "Run fn(...) on one of the pool's threads: job = pool:submit(fn, x); y = job:get(). nil stands for the function that init returned, "
        .. "which does not travel with each job.", submit)

local AHEAD = 4 -- jobs for each thread that wait while one runs: enough to keep it busy, few enough for memory

Pool.map = declare("map(Pool self, function fn, list list) -> list",
    "The results fn(list[1]), fn(list[2]), ... in their order. The first error ends it, and stops the jobs behind.",
    function(self, fn, list)
        local jobs, results, sent, n = {}, {}, 0, #list
        local ok, message = pcall(function()
            for k = 1, n do
                while sent < n and sent < k + AHEAD * self.n do
                    sent = sent + 1
                    jobs[sent] = submit(self, fn, list[sent])
                end
                results[k] = jobs[k]:get()
                jobs[k] = nil
            end
        end)
        if not ok then
            for _, job in pairs(jobs) do
                job:stop()
            end
            error(message, 0)
        end
        return results
    end)

local function close(self)
    local handle = self.handle
    self.handle = nil
    if handle then
        tide._pool_close(handle)
    end
end

Pool.close = declare("close(Pool self)", "Stop what runs and end the threads; waits for them.", close)
Pool.__close = close

function Pool:__tostring()
    return string.format("Pool(%d%s)", self.n, self.handle and "" or ", closed")
end

return declare("workers(*, int(1..256) n, function? init=nil) -> Pool",
    "Threads with a Lua state each: pool = tide.workers{n = 4}; pool:map(fn, list), pool:submit(fn, ...). Functions take their upvalues "
        .. "and the globals that they name along, tensors share their memory. init: a function that each thread runs first.",
    function(n, init)
        return setmetatable({ n = n, handle = tide._pool_new(n, init) }, Pool)
    end)
