-- distributed/data_parallel.lua: DistributedDataParallel: a module whose parameters are the same on all ranks, and whose
-- gradients are averaged over them while backward still runs.
--
-- Hooks on the parameters hear when a gradient is complete. When a bucket has all of its gradients, and all buckets before
-- it were begun (the order must be the same on all ranks), its reduction begins; the last gradient waits for all of them.
local tide = ...
local fail, nn = tide._fail, tide.nn
local distributed = tide.distributed
local buckets, averaging, tree, rows = tide._require "distributed.buckets", tide._require "distributed.hooks", tide._require "distributed.tree",
    tide._require "distributed.rows"

local DDP = nn.class "DistributedDataParallel"

local OPTIONS <const> = {
    group = "any", process_group = "any", bucket_cap_mb = "number", first_bucket_mb = "number", find_unused_parameters = "boolean", static_graph = "boolean",
    device_ids = "table", broadcast_buffers = "boolean", hook = "any", deterministic = "number",
}

-- ---- the beginning: the same parameters everywhere ----

-- A module's parameters say where it is. A script may say it once more, as PyTorch's do.
local function check_device(ids, module)
    if #ids ~= 1 then
        fail("DistributedDataParallel: option device_ids: one device expected, got %d (a module on several needs no device_ids)", #ids)
    end
    local device = nn._device_name(ids[1], "device_ids", "DistributedDataParallel")
    for name, p in module:named_parameters() do
        if p.device ~= device then
            fail("DistributedDataParallel: option device_ids: '%s' is on %s, not on %s: module:to('%s') comes first", name, p.device, device, device)
        end
    end
end

local function read_options(options, module)
    for name, value in pairs(options) do
        if not OPTIONS[name] then
            fail(name == 1 and "DistributedDataParallel: options have names: {device_ids = {0}}" or "DistributedDataParallel: unknown option '%s'", name)
        elseif OPTIONS[name] ~= "any" and type(value) ~= OPTIONS[name] then
            fail("DistributedDataParallel: option %s: a %s expected, got %s", name, OPTIONS[name], tide._describe(value))
        end
    end
    if options.device_ids then
        check_device(options.device_ids, module)
    end
    local hook = options.hook or "none"
    if type(hook) == "string" then
        hook = averaging[hook] or fail("DistributedDataParallel: option hook: '%s' is none of: fp16, bf16, none", hook)
    elseif type(hook) ~= "function" then
        fail("DistributedDataParallel: option hook: 'fp16', 'bf16' or a function expected, got %s", tide._describe(hook))
    end
    local wanted, size = options.deterministic, distributed.size(options.group)
    if wanted and (math.type(wanted) ~= "integer" or wanted < size) then
        fail("DistributedDataParallel: option deterministic: how many micro-batches a step has expected, one for each of %d ranks at least, got %s",
            size, tostring(wanted))
    elseif wanted and not tide.are_deterministic_algorithms_enabled() then
        fail("DistributedDataParallel: option deterministic: tide.use_deterministic_algorithms(true) comes first")
    elseif wanted and options.hook then
        fail("DistributedDataParallel: options deterministic and hook exclude each other")
    end
    return hook
end

local function describe(named)
    local lines = {}
    for k, entry in ipairs(named) do
        lines[k] = string.format("%s %s %s%s", entry.name, tostring(entry.tensor.shape), tostring(entry.tensor.dtype),
            entry.tensor.requires_grad and "" or ", without gradient")
    end
    return lines
end

-- All ranks must have the same parameters: the first that differs is named.
local function check_alike(self, named)
    local mine, every = describe(named), distributed.all_gather_object(describe(named), { group = self.group })
    for r, theirs in ipairs(every) do
        for k = 1, math.max(#mine, #theirs) do
            if mine[k] ~= theirs[k] then
                fail("DistributedDataParallel: parameter %d is %s on rank %d and %s on rank %d", k, mine[k] or "missing",
                    distributed.rank(self.group), theirs[k] or "missing", r - 1)
            end
        end
    end
end

local function broadcast_all(self, named, src)
    local works = {}
    tide.no_grad(function()
        for k, entry in ipairs(named) do
            works[k] = distributed.broadcast(entry.tensor:detach(), src, { group = self.group, async = true })
        end
        for _, work in ipairs(works) do
            work:wait()
        end
    end)
end

-- ---- buckets and what has come into them ----

local function reset(self)
    self.waiting, self.next_bucket, self.finishes, self.heard = self.count, 1, {}, {}
    for _, bucket in ipairs(self.buckets) do
        bucket.waiting = #bucket.params
    end
end

-- "bucket 1: weight, bias", or how many parameters it has where their names are long.
local function label_of(self, bucket)
    local names = {}
    for k, p in ipairs(bucket.params) do
        names[k] = self.names[self.number[p]]
    end
    local text = table.concat(names, ", ")
    return string.format("bucket %d: %s", bucket.index, #text <= 80 and text or #names .. " parameters")
end

-- Parameters by number, in the order in which their gradients are expected.
local function lay_out(self, order)
    local params = {}
    for k, number in ipairs(order) do
        params[k] = self.params[number]
    end
    self.buckets = buckets.make(params, self.first_mb, self.most_mb)
    self.place = {}
    for _, bucket in ipairs(self.buckets) do
        bucket.group, bucket.label = self.group, label_of(self, bucket)
        for k, p in ipairs(bucket.params) do
            local view = bucket.views[k]
            if p.grad then -- a gradient that is there already moves into its new place
                view:copy_(p.grad)
                p.grad = view
            end
            self.place[self.number[p]] = { bucket = bucket, view = view, at = view:data_ptr() }
        end
    end
    reset(self)
end

local function begin_average(self, k)
    local bucket = self.buckets[k]
    self.finishes[k] = distributed._labelled(bucket.label, self.average, bucket)
end

local function finish_averages(self)
    for k, finish in ipairs(self.finishes) do
        distributed._labelled(self.buckets[k].label, finish)
    end
end

local function finish_all(self)
    finish_averages(self)
    if #self.seen == self.count then
        self.order = self.order or self.seen
    end
    self.seen = {}
    reset(self)
end

local function begin_full(self)
    while self.next_bucket <= #self.buckets and self.buckets[self.next_bucket].waiting == 0 do
        begin_average(self, self.next_bucket)
        self.next_bucket = self.next_bucket + 1
    end
end

-- The gradient of a parameter is complete (or will not come: it is zero then).
local function arrive(self, number)
    local place = self.place[number]
    if self.heard[number] then
        fail("DistributedDataParallel: parameter '%s' got its gradient twice in one backward", self.names[number])
    end
    self.heard[number] = true
    self.waiting = self.waiting - 1
    place.bucket.waiting = place.bucket.waiting - 1
    begin_full(self)
    if self.waiting == 0 then
        finish_all(self)
    end
end

local function hear(self, number)
    local p, place = self.params[number], self.place[number]
    if not self.syncing then
        return
    end
    local grad = p.grad
    if grad.layout ~= "strided" then
        fail("DistributedDataParallel: the gradient of '%s' is sparse: Embedding{..., sparse = false}", self.names[number])
    elseif grad:data_ptr() ~= place.at then
        place.view:copy_(grad)
        p.grad = place.view
    end
    self.seen[#self.seen + 1] = number
    arrive(self, number)
end

-- ---- unused parameters ----

-- The tensors in a value, in a list.
local function gather_tensors(value, list)
    if tide.is_tensor(value) then
        list[#list + 1] = value
    elseif type(value) == "table" then
        for _, part in pairs(value) do
            gather_tensors(part, list)
        end
    end
    return list
end

local function skip_unused(self, outputs)
    if not (self.static_graph and self.unused) then
        self.unused = {}
        for number, used in ipairs(tide._leaves(gather_tensors(outputs, {}), self.params)) do
            if not used then
                self.unused[#self.unused + 1] = number
            end
        end
    end
    for _, number in ipairs(self.unused) do
        local place, grad = self.place[number], self.params[number].grad
        if not grad then
            place.view:zero_()
        end
        arrive(self, number)
    end
end

local function check_finished(self)
    if self.waiting == self.count or self.waiting == 0 or #self.seen == 0 then
        return
    end
    local missing = {}
    for number, name in ipairs(self.names) do
        if not self.heard[number] then
            missing[#missing + 1] = name
        end
    end
    fail("DistributedDataParallel: the last backward brought no gradient for %s: find_unused_parameters = true where some parameters "
        .. "take no part", table.concat(missing, ", "))
end

-- ---- before each forward ----

-- Buffers of one dtype and device are taken together.
local function take_row(tensors, row)
    for k, part in ipairs(rows.cut(row, rows.sizes(tensors))) do
        tensors[k]:detach():copy_(part)
    end
end

local function by_kind(buffers)
    local found, list = {}, {}
    for _, entry in ipairs(buffers) do
        local key = tostring(entry.tensor.dtype) .. entry.tensor.device
        if not found[key] then
            found[key] = {}
            list[#list + 1] = found[key]
        end
        table.insert(found[key], entry.tensor)
    end
    return list
end

local function send_buffers(self)
    for _, tensors in ipairs(by_kind(self.buffers)) do
        local row = rows.join(tensors)
        distributed.broadcast(row, self.source, { group = self.group })
        take_row(tensors, row)
    end
end

-- After the first backward the buckets follow its order, that of rank 0, on all ranks.
local function rebuild(self)
    if self.rebuilt or not self.ran then
        return
    end
    local order = distributed.broadcast_object(self.order or self.registered, 0, { group = self.group })
    self.rebuilt = true
    tide.no_grad(function() lay_out(self, order) end)
end

local function prepare(self)
    if self.mean then
        if not self.mean.number then
            fail("DistributedDataParallel: option deterministic: training belongs into a loop over ddp:micro_batches()")
        end
        return
    end
    check_finished(self)
    rebuild(self)
    if self.broadcast and #self.buffers > 0 and self.training then
        tide.no_grad(function() send_buffers(self) end)
    end
end

-- ---- micro-batches, whose mean has the same bits for every number of ranks ----

-- A hook that adds a bucket of the present micro-batch; with the last one its mean is on its way.
local function add_to_mean(self)
    return function(bucket)
        if self.mean.added[bucket] then
            fail("DistributedDataParallel: a second backward in one micro-batch")
        end
        return self.mean:add(bucket, bucket.row) or function() end
    end
end

-- What a micro-batch made of the buffers (running statistics) starts in each from what they were before the step, and its mean is
-- taken as that of gradients is. Changes are averaged, so that what does not change keeps its bits; integers (counters) change alike.
local function begin_step(self)
    rebuild(self)
    reset(self)
    self.seen, self.kept = {}, {}
    for k, tensors in ipairs(self.broadcast and self.training and by_kind(self.buffers) or {}) do
        self.kept[k] = { tensors = tensors, row = rows.join(tensors) }
    end
end

local function add_buffers(self)
    for _, kept in ipairs(self.kept) do
        if kept.row:is_floating_point() then
            local row = rows.join(kept.tensors)
            kept.change = (row - kept.row):masked_fill_(row:eq(kept.row), 0)
            kept.finish = distributed._labelled("buffers", self.mean.add, self.mean, kept, kept.change)
        end
    end
end

-- The next micro-batch begins without gradients: what is added up is each one's own.
local function begin_micro_batch(self, number, seed)
    for _, kept in ipairs(self.kept) do
        take_row(kept.tensors, kept.row)
    end
    for _, p in ipairs(self.params) do
        p.grad = nil
    end
    self.mean:begin(number)
    if seed then
        tide.manual_seed(seed * self.mean.count + number)
    end
end

-- A parameter that took no part has a gradient of zero.
local function end_micro_batch(self)
    if self.waiting == self.count and not next(self.mean.added) then
        fail("DistributedDataParallel: no backward in micro-batch %d", self.mean.number + 1)
    end
    local missing = {}
    for number = 1, self.waiting < self.count and self.count or 0 do
        if not self.heard[number] then
            missing[#missing + 1] = number
        end
    end
    for _, number in ipairs(missing) do
        self.place[number].view:zero_()
        arrive(self, number)
    end
    add_buffers(self)
end

local function end_step(self)
    for _, kept in ipairs(self.kept) do
        if kept.finish then
            distributed._labelled("buffers", kept.finish)
        end
    end
    self.mean:wait()
    self.mean.number, self.ran = nil, true
    for _, kept in ipairs(self.kept) do
        if kept.change then
            take_row(kept.tensors, kept.row + kept.change)
        end
    end
    for number, p in ipairs(self.params) do
        p.grad = self.place[number].view
    end
end

local function micro_batches(self, seed)
    local mean = self.mean
    if not mean then
        fail("micro_batches: DistributedDataParallel(module, {deterministic = N}) expected")
    end
    local number
    return function()
        return tide.no_grad(function()
            if number then
                end_micro_batch(self)
            else
                begin_step(self)
            end
            number = number and number + 1 or mean.first
            if number == mean.behind then
                end_step(self)
                return nil
            end
            begin_micro_batch(self, number, seed)
            return number + 1
        end)
    end
end

-- ---- uneven inputs ----

-- How many ranks still have inputs; the highest of them.
local function count_active(self, active)
    local rank = distributed.rank(self.group)
    local counts = distributed.all_reduce(tide.tensor { active and 1 or 0 }, { group = self.group })
    local highest = distributed.all_reduce(tide.tensor { active and rank or -1 }, "max", { group = self.group })
    return counts:item(), highest:item()
end

-- What a rank without inputs does while others train: its part of their collectives, with gradients of zero.
local function shadow(self)
    local last = distributed.rank(self.group)
    while true do
        local active, highest = count_active(self, false)
        if active == 0 then
            break
        end
        last = highest
        self.source = highest
        prepare(self)
        self.ran = true
        for k, bucket in ipairs(self.buckets) do
            bucket.row:zero_()
            begin_average(self, k)
        end
        finish_averages(self)
        reset(self)
    end
    return last
end

-- ---- the module ----

function DDP:init(model, options)
    options = options or {}
    if not nn.is_module(model) then
        fail("DistributedDataParallel: a module expected, got %s", tide._describe(model))
    end
    self.module = model
    self.average, self.group = read_options(options, model), options.group or options.process_group
    self.first_mb, self.most_mb = options.first_bucket_mb or 1, options.bucket_cap_mb or 25
    self.find_unused, self.static_graph = options.find_unused_parameters or options.static_graph or false, options.static_graph or false
    self.broadcast, self.source, self.syncing = options.broadcast_buffers ~= false, 0, true
    if options.deterministic then
        self.mean, self.average = tree.new(options.deterministic, self.group), add_to_mean(self)
    end
    self.named, self.buffers, self.params, self.names, self.number = {}, {}, {}, {}, {}
    for name, p in model:named_parameters() do
        self.named[#self.named + 1] = { name = name, tensor = p }
        if p.requires_grad then
            self.params[#self.params + 1] = p
            self.names[#self.params] = name
            self.number[p] = #self.params
        end
    end
    for name, x in model:named_buffers() do
        self.buffers[#self.buffers + 1] = { name = name, tensor = x }
    end
    self.count, self.seen, self.registered = #self.params, {}, {}
    if self.count == 0 then
        fail("DistributedDataParallel: no parameter requires a gradient")
    end
    check_alike(self, self.named)
    broadcast_all(self, self.named, 0)
    broadcast_all(self, self.buffers, 0)
    for k = 1, self.count do -- gradients come about in the reverse order
        self.registered[k] = self.count + 1 - k
    end
    lay_out(self, self.registered)
    for number, p in ipairs(self.params) do
        p:register_post_accumulate_grad_hook(function() tide.no_grad(function() hear(self, number) end) end)
    end
end

function DDP:forward(...)
    local train = tide.is_grad_enabled() and self.syncing
    if train then
        if self.joining then
            local _, highest = count_active(self, true)
            self.source = highest -- whose buffers are up to date
        end
        prepare(self)
        self.ran = true
    end
    local outputs = table.pack(self.module(...))
    if train and self.find_unused then
        tide.no_grad(function() skip_unused(self, outputs) end)
    end
    return table.unpack(outputs, 1, outputs.n)
end

local Unsynced = { __close = function(self) self.ddp.syncing = self.before end }

-- What makes no sense where micro-batches are all there is.
local function refuse_deterministic(self, name)
    if self.mean then
        fail("%s: not with option deterministic, which sums over ddp:micro_batches()", name)
    end
end

local function no_sync(self, fn)
    refuse_deterministic(self, "no_sync")
    local handle = setmetatable({ ddp = self, before = self.syncing }, Unsynced)
    self.syncing = false
    if fn == nil then
        return handle
    end
    local _ <close> = handle
    return fn()
end

DDP.no_sync = tide._function("no_sync(Module self, function? fn=nil) -> any",
    "Gradients stay this rank's own, and add up, until the next backward outside of it: ddp:no_sync(fn), or local _ <close> = ddp:no_sync().",
    no_sync)

local function join(self, fn)
    refuse_deterministic(self, "join")
    self.joining = true
    local ok, message = xpcall(fn, debug.traceback)
    self.joining = false
    if not ok then
        error(message, 0)
    end
    local last = tide.no_grad(function() return shadow(self) end)
    last = distributed.all_reduce(tide.tensor { last }, "max", { group = self.group }):item()
    broadcast_all(self, self.named, last)
    broadcast_all(self, self.buffers, last)
    self.source = 0
end

DDP.micro_batches = tide._function("micro_batches(Module self, int? seed=nil) -> function",
    "The micro-batches of this rank in a step, for a module with option deterministic: `for k in ddp:micro_batches() do` forward and backward "
        .. "of micro-batch k (from 1; all ranks' together are the step's) `end`. Behind the loop gradients are the means over all of them, with the "
        .. "same bits for every number of ranks, and so are running statistics. Gradients that were there are dropped. seed: random numbers "
        .. "begin anew in each micro-batch, by it and k (give each step another).",
    micro_batches)

DDP.join = tide._function("join(Module self, function fn)",
    "fn trains on inputs of which ranks have different numbers: ranks that are through help the others, and all end with the parameters of "
        .. "a rank that went on longest.", join)

return DDP
