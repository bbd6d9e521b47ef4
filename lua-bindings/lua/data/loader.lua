-- data/loader.lua: tide.data.DataLoader: batches of a dataset, made here or by workers.
--
-- All randomness follows from (seed, epoch): the order of the samples, and by (seed, epoch, index) the default generator's draws
-- within each; the script's own draws go on as if there were no loader. Workers take batches of indices from one queue, so that
-- their number changes nothing but the time.
local tide = ...
local fail, declare = tide._fail, tide._function
local protocol, samplers, fetch = tide._require "data.protocol", tide._require "data.samplers", tide._require "data.fetch"
local loader = {}

local PAUSE = 0.0005 -- seconds between two looks at several jobs, or at one that is waited for no longer than timeout

-- ---- an epoch ----

local Epoch = { __name = "epoch" }
Epoch.__index = Epoch

-- What is to be made next: a list of indices, a batch's number, or nil. A sampler draws from numbers of the epoch's own.
function Epoch:pull()
    if self.source.iterable then
        self.number = self.number + 1
        return self.number
    end
    return protocol.aside(function()
        if self.draws then
            tide.set_rng_state(self.draws)
        else
            tide.manual_seed(protocol.mix(self.key, 0))
            self.step = self.loader.order(self.epoch)
        end
        local indices = self.step()
        self.draws = tide.get_rng_state()
        if tide.is_tensor(indices) then
            return indices:tolist()
        elseif indices ~= nil and type(indices) ~= "table" then
            fail("DataLoader: batch_sampler gives lists of indices, got %s", tide._describe(indices))
        end
        return indices
    end)
end

local FEW = 16
local pools, most = setmetatable({}, { __mode = "k" }), FEW

-- The collector does not know what a thread weighs: before there are twice as many pools as were in use, it looks which are.
local function make_room()
    local function count()
        local n = 0
        for _ in next, pools do
            n = n + 1
        end
        return n
    end
    if count() >= most then
        collectgarbage()
        most = math.max(FEW, 2 * count())
    end
end

-- The loader's workers, started where there are none.
local function workers(self)
    if not self.pool then
        make_room()
        local source, init = self.source, self.worker_init
        self.pool = protocol.aside(tide.workers, { n = self.num_workers, init = function()
            tide._require "data.fetch".hold(source, init)
        end })
        pools[self.pool] = true
    end
    return self.pool
end

local function run(key, job) return tide._require "data.fetch".work(key, job) end

function Epoch:fill()
    local most = self.loader.prefetch * self.loader.num_workers
    while not self.drained and #self.pending < most do
        local job = self:pull()
        if job == nil then
            self.drained = true
        else
            self.pending[#self.pending + 1] = workers(self.loader):submit(run, self.key, job)
        end
    end
end

-- Which of the pending jobs comes next; waits for it.
function Epoch:wait()
    local timeout, in_order = self.loader.timeout, self.loader.in_order
    local deadline = timeout > 0 and tide.time() + timeout
    while deadline or not in_order do
        for k = 1, in_order and 1 or #self.pending do
            if self.pending[k]:done() then
                return table.remove(self.pending, k)
            end
        end
        if deadline and tide.time() > deadline then
            self:close()
            fail("DataLoader: no batch came within %s s (timeout)", tide._number(timeout, 6))
        end
        tide.sleep(PAUSE)
    end
    return table.remove(self.pending, 1)
end

-- ok, values or message, left out; nothing at the end.
function Epoch:make()
    if self.loader.num_workers == 0 then
        local job = not self.drained and self:pull()
        if job then
            return protocol.aside(fetch.batch, self.source, self.key, job)
        end
    else
        self:fill()
        if #self.pending > 0 then
            return self:wait():get()
        end
    end
end

local function moved(value, device)
    if tide.is_tensor(value) then
        return value:to(device)
    elseif type(value) == "table" and getmetatable(value) == nil then
        local copy = {}
        for key, v in next, value do
            copy[key] = moved(v, device)
        end
        return copy
    end
    return value
end

-- The values of the next batch; nothing at the end.
function Epoch:next()
    local own, device = self.loader, self.loader.device
    while not self.ended do
        local made, ok, values, left_out = pcall(self.make, self)
        if not made or ok == false then
            self:close()
            error(made and values or ok, 0)
        elseif ok == nil then
            self.ended = true
            break
        end
        for _, sample in ipairs(left_out) do
            own.skipped[#own.skipped + 1] = sample
        end
        if values.n == 0 and self.source.iterable then
            self.drained = true
        else
            self.given = self.given + 1
        end
        if values.n > 0 then
            for k = 1, device and values.n or 0 do
                values[k] = moved(values[k], device)
            end
            self.last = values[1]
            return table.unpack(values, 1, values.n)
        end
    end
end

-- What is pending does not begin, or is stopped; more than once is harmless.
function Epoch:close()
    self.closed = not self.ended
    self.ended = true
    for _, job in ipairs(self.pending) do
        pcall(job.stop, job)
    end
    self.pending = {}
end
Epoch.__close = Epoch.close

local function begin(self)
    local epoch, given = self.epoch, self.batch
    local key = protocol.mix(self.seed, epoch)
    local new = setmetatable({ loader = self, epoch = epoch, key = key, given = 0, number = 0, pending = {}, source = self.source }, Epoch)
    self.epoch, self.batch, self.latest = epoch + 1, 0, new
    if self.source.iterable then
        new.number = given
    else
        for _ = 1, given do
            new.drained = new:pull() == nil
        end
    end
    new.given = given
    return new
end

-- ---- the loader ----

local Loader = { __name = "DataLoader" }
Loader.__index = Loader
tide._class("DataLoader", Loader)

-- for x, y in loader do: the first value of the batch before says which loop asks.
function Loader:__call(_, last)
    local epoch = self.looping
    if last == nil then
        if epoch then
            epoch:close()
        end
        epoch = begin(self)
        self.looping = epoch
    elseif not epoch or epoch.closed or not rawequal(epoch.last, last) and last == last then
        fail("DataLoader: another loop over this loader has begun since: for ... in loader:iter() do gives each an epoch of its own")
    end
    return epoch:next()
end

Loader.iter = declare("iter(DataLoader self) -> function", "An epoch of its own, for loops within one another: for x, y in loader:iter() do.",
    function(self)
        local epoch = begin(self)
        return function() return epoch:next() end, nil, nil, epoch
    end)

local function length(self)
    if self.source.iterable then
        local n, size = protocol.length("DataLoader", self.dataset), self.batch_size
        return self.drop_last and n // size or (n + size - 1) // size
    end
    return protocol.length("DataLoader", self.batches)
end
Loader.__len = length
Loader.len = declare("len(DataLoader self) -> int", "How many batches an epoch has: #loader.", length)

Loader.set_epoch = declare("set_epoch(DataLoader self, int epoch)", "The next loop is this epoch, which decides the order and the draws; "
    .. "they count from 1.", function(self, epoch)
        self.epoch, self.batch, self.latest = epoch, 0, nil
    end)

Loader.state = declare("state(DataLoader self) -> table", "Where the loader stands, {seed, epoch, batch}: for a checkpoint, load_state goes on "
    .. "there.", function(self)
        local at = self.latest
        if at and not at.ended or at and at.closed then
            if self.num_workers > 0 and not self.in_order and at.given > 0 then
                fail("state: within an epoch of in_order = false it is not known which batches have come")
            end
            return { seed = self.seed, epoch = at.epoch, batch = at.given }
        end
        return { seed = self.seed, epoch = self.epoch, batch = self.batch }
    end)

Loader.load_state = declare("load_state(DataLoader self, table state)", "The next loop goes on where state() was taken, whatever the number of "
    .. "workers: at the batch behind those that had come.", function(self, state)
        for _, name in ipairs { "seed", "epoch", "batch" } do
            if math.type(state[name]) ~= "integer" or name == "batch" and state[name] < 0 then
                fail("load_state: expected what state() gives, {seed, epoch, batch}: '%s' is %s", name, tide._describe(state[name]))
            end
        end
        if self.looping then
            self.looping:close()
        end
        self.seed, self.epoch, self.batch, self.latest = state.seed, state.epoch, state.batch, nil
    end)

local function close(self)
    if self.latest then
        self.latest:close()
    end
    if self.pool then
        self.pool:close()
        self.pool = nil
    end
end
Loader.close = declare("close(DataLoader self)", "End the workers now, which the collector does otherwise; a later loop starts new ones.", close)
Loader.__close = close

function Loader:__tostring()
    local known = self.source.iterable and protocol.has_length(self.dataset) or not self.source.iterable and protocol.has_length(self.batches)
    return string.format("DataLoader(%sbatch_size = %s%s)", known and string.format("%d batches, ", length(self)) or "",
        self.batch_size and tostring(self.batch_size) or "a batch_sampler's",
        self.num_workers > 0 and string.format(", num_workers = %d", self.num_workers) or "")
end

-- Options that say the same thing.
local function check_options(o)
    if o.batch_sampler ~= nil and (o.batch_size ~= 1 or o.shuffle or o.sampler ~= nil or o.drop_last) then
        fail("DataLoader: batch_sampler says all that batch_size, shuffle, sampler and drop_last say: give it alone")
    elseif o.sampler ~= nil and o.shuffle then
        fail("DataLoader: sampler and shuffle = true both say the order: give one of them")
    end
    if protocol.is_iterable(o.dataset) then
        for _, name in ipairs { "shuffle", "sampler", "batch_sampler" } do
            if o[name] then
                fail("DataLoader: an iterable dataset has an order of its own: %s does not go with it", name)
            end
        end
        if o.on_error == "skip" then
            fail("DataLoader: on_error = \"skip\" needs samples by number: an iterable dataset stops at an error")
        end
    end
    for _, name in ipairs { "sampler", "batch_sampler" } do
        if o[name] ~= nil then
            samplers.check("DataLoader: " .. name, o[name])
        end
    end
end

-- The seed of a loader that is given none: a draw, so that manual_seed decides it too.
local function draw_seed()
    return tide.randint(0, 1 << 53, { 1 }):item()
end

-- {dataset, batch_size = 4}: is a table one call's arguments?
local function is_call(value)
    if type(value) ~= "table" or getmetatable(value) ~= nil or value[1] == nil or value.get ~= nil or value.iter ~= nil then
        return false
    end
    for key in next, value do
        if type(key) == "string" then
            return true
        end
    end
    return false
end

function loader.open(data)
    local schema = "DataLoader(any dataset, *, int(1..) batch_size=1, bool shuffle=false, any sampler=nil, any batch_sampler=nil, "
        .. "int(0..256) num_workers=0, function? collate=nil, bool drop_last=false, int(1..) prefetch=2, float timeout=0, "
        .. 'function? worker_init=nil, int? seed=nil, bool in_order=true, device? device=nil, "raise"|"skip" on_error="raise") -> DataLoader'
    local doc = "Batches of a dataset: for x, y in loader do ... end is an epoch, #loader how many batches it has. num_workers threads, which "
        .. "hold the dataset as it is at the first loop, make batches ahead; their number changes no batch. on_error = \"skip\" leaves samples out that raise and lists them in loader.skipped."

    local function new(dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate, drop_last, prefetch, timeout, worker_init,
        seed, in_order, device, on_error)
        if is_call(dataset) then
            local options = {}
            for key, value in next, dataset do
                if key ~= 1 then
                    options[key] = value
                end
            end
            return data.DataLoader(dataset[1], options)
        end
        protocol.check("DataLoader", dataset)
        local self = { dataset = dataset, batch_size = batch_size, shuffle = shuffle, sampler = sampler, batch_sampler = batch_sampler,
            num_workers = num_workers, collate = collate, drop_last = drop_last, prefetch = prefetch, timeout = timeout,
            worker_init = worker_init, in_order = in_order, device = device, on_error = on_error, epoch = 1, batch = 0, skipped = {} }
        check_options(self)
        if timeout < 0 then
            fail("DataLoader: timeout: expected seconds from 0, got %s", tide._number(timeout, 6))
        end
        local iterable = protocol.is_iterable(dataset)
        if not iterable then
            self.sampler = sampler or batch_sampler == nil and (shuffle and data.RandomSampler or data.SequentialSampler)(
                protocol.length("DataLoader", dataset)) or nil
            self.batches = batch_sampler or data.BatchSampler(self.sampler, batch_size, drop_last)
            self.batch_size = batch_sampler == nil and batch_size or nil
        end
        self.source = { dataset = dataset, collate = collate, iterable = iterable, batch_size = batch_size, drop_last = drop_last,
            skips = on_error == "skip" }
        self.seed = seed or draw_seed()
        local batches = self.batches
        self.order = function(epoch)
            local set_epoch = protocol.method(batches, "set_epoch")
            if set_epoch then
                set_epoch(batches, epoch)
            end
            return samplers.iterate("DataLoader", batches)
        end
        return setmetatable(self, Loader)
    end

    data._classes.DataLoader = Loader
    data.DataLoader = declare(schema, doc, new)
    tide._document(Loader, "DataLoader", schema, doc)
end

return loader
