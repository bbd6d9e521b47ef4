-- data/loader.lua: tide.data.DataLoader: batches of a dataset, made here or by workers.
--
-- All randomness follows from (seed, epoch): the order of the samples, and by (seed, epoch, index) the default generator's draws
-- within each; the script's own draws go on as if there were no loader. Workers take batches of indices from one queue, so that
-- their number changes nothing but the time.
local tide = ...
local fail, declare = tide._fail, tide._function
local protocol, samplers, new_epoch = tide._require "data.protocol", tide._require "data.samplers", tide._require "data.epoch"
local datasets, explain, buffers = tide._require "data.datasets", tide._require "data.explain", tide._require "data.buffers"
local loader = {}

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

-- ---- the loader ----

local Loader = setmetatable({ __name = "DataLoader" }, {
    __index = function(_, key)
        if math.type(key) == "integer" then
            fail("DataLoader: batches come one behind the other, without numbers: for x, y in loader do, or for i, x, y in loader:enumerate() do")
        end
    end,
})
Loader.__index = Loader
tide._class("DataLoader", Loader)

-- The loader's workers, started where there are none.
function Loader:workers()
    if not self.pool then
        make_room()
        local source, init = self.source, self.worker_init
        self.pool = protocol.aside(tide.workers, { n = self.num_workers, init = function()
            return tide._require "data.fetch".hold(source, init)
        end })
        pools[self.pool] = true
    end
    return self.pool
end

local function close_pool(self)
    if self.pool then
        self.pool:close()
        self.pool = nil
    end
end

function Loader:end_epoch()
    if self.persistent == false then
        close_pool(self)
    end
end

-- What batches were prepared from when the loader was made.
local FIXED = { "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate", "pin_memory", "drop_last", "prefetch",
    "worker_init", "on_error" }

local function begin(self)
    for _, name in ipairs(FIXED) do
        if not rawequal(rawget(self, name), self.fixed[name]) then
            fail("DataLoader: %s was changed, which a loader that is made does not follow: make another one", name)
        end
    end
    local epoch, given = self.epoch, self.batch
    local new = new_epoch(self, epoch, given, self.seed)
    self.epoch, self.batch, self.latest = epoch + 1, 0, new
    self.counts.since = nil
    return new
end

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

Loader.enumerate = declare("enumerate(DataLoader self, int start=1) -> function", "An epoch whose batches are numbered from `start` on: "
    .. "for i, x, y in loader:enumerate() do.", function(self, start)
        local epoch, at = begin(self), start - 1
        local function numbered(...)
            if (...) ~= nil then
                at = at + 1
                return at, ...
            end
        end
        return function() return numbered(epoch:next()) end, nil, nil, epoch
    end)

local function length(self)
    if self.source.iterable then
        local n, size = protocol.length("DataLoader", self.dataset), self.source.batch_size
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
    close_pool(self)
end
Loader.close = declare("close(DataLoader self)", "End the workers now, which the collector does otherwise; a later loop starts new ones.", close)
Loader.__close = close

-- nil where nobody knows it.
function Loader:_length()
    local known = self.source.iterable and protocol.has_length(self.dataset) or not self.source.iterable and protocol.has_length(self.batches)
    return known and length(self) or nil
end

function Loader:__tostring()
    local known = self:_length()
    return string.format("DataLoader(%sbatch_size = %s%s)", known and string.format("%d batches, ", known) or "",
        self.batch_size and tostring(self.batch_size) or self.source.single and "false" or "a batch_sampler's",
        self.num_workers > 0 and string.format(", num_workers = %d", self.num_workers) or "")
end

-- Options that exclude each other, as PyTorch's do.
local function check_options(o)
    if o.batch_sampler ~= nil and (o.batch_size ~= 1 or o.shuffle or o.sampler ~= nil or o.drop_last) then
        fail("DataLoader: batch_sampler says all that batch_size, shuffle, sampler and drop_last say: give it alone")
    elseif o.sampler ~= nil and o.shuffle then
        fail("DataLoader: sampler and shuffle = true both say the order: give one of them")
    elseif o.batch_size == false and o.drop_last then
        fail("DataLoader: batch_size = false makes no batches: drop_last does not go with it")
    end
    for _, name in ipairs(o.num_workers == 0 and { "prefetch", "persistent" } or {}) do
        if o[name] then
            fail("DataLoader: %s is about workers: it needs num_workers above 0", name)
        end
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

local function check_batch_size(size)
    if size ~= false and not (math.type(size) == "integer" and size >= 1) then
        fail("DataLoader: batch_size: expected an integer from 1, or false for samples without batches, got %s", tide._describe(size))
    end
    return size
end

-- The seed of a loader that is given none: a draw, so that manual_seed, or the state of its generator, decides it too.
local function draw_seed(generator)
    return tide.randint(0, 1 << 53, { 1 }, { generator = generator }):item()
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

-- What says the order of a map-style dataset, and what a worker must know.
local function prepare(self, data)
    local own = data._classes.BatchSampler
    local iterable, single = protocol.is_iterable(self.dataset), self.batch_size == false
    if not iterable then
        self.sampler = self.sampler or self.batch_sampler == nil and (self.shuffle and data.RandomSampler or data.SequentialSampler)(
            protocol.length("DataLoader", self.dataset)) or nil
        self.batches = self.batch_sampler or single and self.sampler or data.BatchSampler(self.sampler, self.batch_size, self.drop_last)
        self.slices = getmetatable(self.batches) == own
        self.batch_size = self.batch_sampler == nil and self.batch_size or nil
    end
    self.source = { dataset = self.dataset, collate = self.collate, iterable = iterable, single = single, drop_last = self.drop_last,
        batch_size = single and 1 or self.batch_size or nil, skips = self.on_error == "skip", seed = self.seed, prefetch = self.prefetch,
        num_workers = self.num_workers, shared = iterable and self.dataset.sharded == true,
        pin = (self.pin_memory or string.find(tostring(self.device), "^cuda") ~= nil) and tide.cuda.is_available() }
    if self.source.pin and self.num_workers == 0 then
        self.source.buffers = buffers.new(true)
    end
    local plain = not iterable and self.batch_size and not (self.collate or self.source.skips or self.worker_init or self.source.pin)
    self.source.row_bytes = plain and datasets.row_bytes(self.dataset) or nil
end

function loader.open(data)
    local schema = "DataLoader(any dataset, any batch_size=1, bool shuffle=false, any sampler=nil, any batch_sampler=nil, "
        .. "int(0..256) num_workers=0, function? collate=nil, bool pin_memory=false, bool drop_last=false, *, int(1..)? prefetch=nil, float timeout=0, "
        .. 'function? worker_init=nil, bool? persistent=nil, int? seed=nil, generator? generator=nil, bool in_order=true, device? device=nil, '
        .. '"raise"|"skip" on_error="raise") -> DataLoader'
    local doc = "Batches of a dataset: for x, y in loader do ... end is an epoch, #loader how many batches it has; batch_size = false gives samples as "
        .. "they are. num_workers threads, which hold the dataset as it is at the first loop, make batches ahead, prefetch (2) each; their number "
        .. "changes no batch. The order and the draws follow from the seed, which is drawn from the generator where none is given. persistent = false ends them with each epoch. on_error = \"skip\" leaves samples out that raise and lists them in "
        .. "loader.skipped. With a CUDA device batches lie in pinned memory and are copied beside its work; loader:explain() says where the time goes."

    local function new(dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate, pin_memory, drop_last, prefetch, timeout,
        worker_init, persistent, seed, generator, in_order, device, on_error)
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
        protocol.one_source("DataLoader", generator, seed)
        local self = setmetatable({ dataset = dataset, batch_size = check_batch_size(batch_size), shuffle = shuffle, sampler = sampler,
            batch_sampler = batch_sampler, num_workers = num_workers, collate = collate, pin_memory = pin_memory, drop_last = drop_last,
            prefetch = prefetch, timeout = timeout, worker_init = worker_init, persistent = persistent, in_order = in_order, device = device,
            on_error = on_error, epoch = 1, batch = 0, skipped = {}, counts = explain.counts() }, Loader)
        check_options(self)
        if timeout < 0 then
            fail("DataLoader: timeout: expected seconds from 0, got %s", tide._number(timeout, 6))
        end
        self.prefetch, self.seed = prefetch or 2, seed or draw_seed(generator)
        prepare(self, data)
        self.fixed = {}
        for _, name in ipairs(FIXED) do
            self.fixed[name] = self[name]
        end
        return self
    end

    data._classes.DataLoader = Loader
    data.DataLoader = declare(schema, doc, new)
    data.get_worker_info = declare("get_worker_info() -> table?", "In a worker of a DataLoader: {id, num_workers, seed, dataset}, ids counted from "
        .. "1; nil elsewhere. An iterable dataset with sharded = true gives each worker a share by it.",
        function() return tide._require "data.fetch".worker_info() end)
    explain.open(data, Loader)
    tide._document(Loader, "DataLoader", schema, doc)
end

return loader
