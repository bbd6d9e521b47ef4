-- data/epoch.lua: one pass over a loader's batches: what is to be made, by whom, and in which order it comes.
--
-- A task is a tensor or list of indices, an index alone (a loader without batches), or the number of a batch of an iterable
-- dataset. Workers take tasks from one queue, so that their number changes nothing but the time; of a dataset that is shared
-- out among them each takes its own.
local tide = ...
local fail = tide._fail
local protocol, samplers, fetch = tide._require "data.protocol", tide._require "data.samplers", tide._require "data.fetch"

local Epoch = { __name = "epoch" }
Epoch.__index = Epoch

local PAUSE = 0.0005 -- seconds between two looks at several jobs
local SMALL = 1 << 19 -- bytes of rows that are gathered sooner than they are handed over

-- ---- tasks ----

-- The order is drawn here, from numbers of the epoch's own.
function Epoch:start()
    tide.manual_seed(protocol.mix(self.key, 0))
    local batches = self.loader.batches
    local set_epoch = protocol.method(batches, "set_epoch")
    if set_epoch then
        set_epoch(batches, self.epoch)
    end
    if self.loader.slices then
        self.step, self.skip = samplers.slices(batches.sampler, batches.batch_size, batches.drop_last)
    end
    self.step = self.step or samplers.iterate("DataLoader", batches)
end

-- What a sampler of the script's own gives next; where its draws stand is the epoch's.
function Epoch:ask()
    if self.draws then
        tide.set_rng_state(self.draws)
    else
        self:start()
    end
    local indices = self.step()
    self.draws = tide.get_rng_state()
    if self.source.single then
        return indices
    elseif tide.is_tensor(indices) then
        return self.skip and indices or indices:tolist()
    elseif indices ~= nil and type(indices) ~= "table" then
        fail("DataLoader: batch_sampler gives lists of indices, got %s", tide._describe(indices))
    end
    return indices
end

-- The next task, nil at the end.
function Epoch:pull()
    if self.skip then
        return self.step()
    elseif not self.source.iterable then
        return protocol.aside(self.ask, self)
    end
    repeat
        self.number = self.number + 1
    until not self.over[(self.number - 1) % self.shares]
    return self.number
end

-- Passes over the first n tasks.
function Epoch:pass(n)
    if self.source.iterable then
        self.number = n
    elseif n > 0 then
        protocol.aside(self.start, self)
        if self.skip then
            self.skip(n)
            return
        end
        self.step = nil
        for _ = 1, n do
            self.drained = self:pull() == nil
        end
    end
end

-- ---- batches ----

function Epoch:fill()
    local own = self.loader
    local most = own.prefetch * own.num_workers
    while not self.drained and #self.pending < most do
        local task = self:pull()
        if task == nil then
            self.drained = true
        else
            local worker = self.source.shared and (task - 1) % self.shares + 1 or 0
            self.pending[#self.pending + 1] = { job = tide._pool_submit(own:workers().handle, worker, nil, self.key, task), task = task }
        end
    end
end

-- The pending job that comes next, waited for.
function Epoch:wait()
    local timeout, in_order, pending = self.loader.timeout, self.loader.in_order, self.pending
    if in_order then
        if timeout == 0 or tide._job_wait(pending[1].job, timeout) then
            return table.remove(pending, 1)
        end
    else
        local deadline = timeout > 0 and tide.time() + timeout
        repeat
            for k = 1, #pending do
                if tide._job_done(pending[k].job) then
                    return table.remove(pending, k)
                end
            end
            tide.sleep(PAUSE)
        until deadline and tide.time() > deadline
    end
    self:close()
    fail("DataLoader: no batch came within %s s (timeout)", tide._number(timeout, 6))
end

local function packed(task, ok, left_out, stages, ...)
    if ok == nil then
        return nil
    end
    return { ok = ok, left_out = left_out, stages = stages, task = task, n = select("#", ...), ... }
end

-- Rows of tensors of which a batch is small are gathered here: no worker would do it as soon.
local function is_made_here(self)
    return self.loader.num_workers == 0 or self.source.row_bytes and self.source.row_bytes * self.loader.batch_size <= SMALL
end

-- The next batch as {ok, left_out, stages, task, values...}; ok = false: left_out is the error; nil: there is none. unless_ready:
-- false where it is not there yet.
function Epoch:make(unless_ready)
    if is_made_here(self) then
        local task = not self.drained and self:pull()
        self.drained = not task
        if task and self.source.row_bytes then
            return packed(task, fetch.work_on(self.source, self.key, task))
        end
        return task and packed(task, protocol.aside(fetch.work_on, self.source, self.key, task)) or nil
    end
    self:fill()
    if #self.pending == 0 then
        return nil
    elseif unless_ready and not (self.loader.in_order and tide._job_done(self.pending[1].job)) then
        return false
    end
    local entry = self:wait()
    return packed(entry.task, tide._job_get(entry.job, true))
end

-- From pinned memory the copies go on beside the device's other work, which waits for them where it needs them.
local function moved(value, device)
    if tide.is_tensor(value) then
        return value:to(device, { non_blocking = true })
    elseif type(value) == "table" and getmetatable(value) == nil then
        local copy = {}
        for key, v in next, value do
            copy[key] = moved(v, device)
        end
        return copy
    end
    return value
end

-- A share of an iterable dataset that has ended.
function Epoch:end_share(task)
    self.over[(task - 1) % self.shares] = true
    self.drained = self.shares == 1
    for k = 0, self.shares - 1 do
        if not self.over[k] then
            return
        end
    end
    self.drained = true
end

-- The next batch that has samples, on its device; nil at the end, false where it would have to be waited for.
function Epoch:receive(unless_ready)
    while true do
        local made, batch = pcall(self.make, self, unless_ready)
        if not made or batch and batch.ok == false then
            self:close()
            error(made and batch.left_out or batch, 0)
        elseif not batch then
            return batch
        end
        self.loader:count(batch)
        for _, sample in ipairs(batch.left_out or {}) do
            self.loader.skipped[#self.loader.skipped + 1] = sample
        end
        if batch.n > 0 then
            for k = 1, self.loader.device and batch.n or 0 do
                batch[k] = moved(batch[k], self.loader.device)
            end
            return batch
        elseif self.source.iterable then
            self:end_share(batch.task)
        else
            self.given = self.given + 1
        end
    end
end

-- The values of the next batch; nothing at the end.
function Epoch:next()
    if self.ended then
        return
    end
    local times = self.loader:begin_wait()
    local batch = self.ahead
    self.ahead = nil
    if not batch then
        local _ <close> = tide._stage_enter "DataLoader: wait"
        batch = self:receive()
    end
    if batch and self.loader.device and not is_made_here(self) then
        self.ahead = self:receive(true) or nil -- its copy goes on while the script works
    end
    self.loader:end_wait(times)
    if not batch then
        self.ended = true
        self.loader:end_epoch()
        return
    end
    self.given = self.source.iterable and batch.task or self.given + 1
    self.last = batch[1]
    return table.unpack(batch, 1, batch.n)
end

-- What is pending does not begin, or is stopped; more than once is harmless.
function Epoch:close()
    self.closed = not self.ended
    self.ended = true
    for _, entry in ipairs(self.pending) do
        tide._job_stop(entry.job)
    end
    self.pending, self.ahead = {}, nil
end
Epoch.__close = Epoch.close

--- (loader, epoch, given, seed): the pass of an epoch, behind its first `given` batches.
return function(loader, epoch, given, seed)
    local source = loader.source
    local new = setmetatable({ loader = loader, epoch = epoch, key = protocol.mix(seed, epoch), given = given, number = 0, pending = {},
        source = source, shares = source.shared and math.max(loader.num_workers, 1) or 1, over = {} }, Epoch)
    new:pass(given)
    return new
end
