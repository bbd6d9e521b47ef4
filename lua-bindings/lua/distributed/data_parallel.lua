-- distributed/data_parallel.lua: DistributedDataParallel: a module whose parameters are the same on all ranks, and whose
-- gradients are averaged over them while backward still runs.
--
-- Hooks on the parameters hear when a gradient is complete. When a bucket has all of its gradients, and all buckets before
-- it were begun (the order must be the same on all ranks), its reduction begins; the last gradient waits for all of them.
local tide = ...
local fail, nn = tide._fail, tide.nn
local distributed = tide.distributed
local buckets, averaging = tide._require "distributed.buckets", tide._require "distributed.hooks"

local DDP = nn.class "DistributedDataParallel"

local OPTIONS <const> = {
    group = "any", process_group = "any", bucket_cap_mb = "number", first_bucket_mb = "number", find_unused_parameters = "boolean", static_graph = "boolean",
    broadcast_buffers = "boolean", hook = "any",
}

-- ---- the beginning: the same parameters everywhere ----

local function read_options(options)
    for name, value in pairs(options) do
        if not OPTIONS[name] then
            fail("DistributedDataParallel: unknown option '%s'", tostring(name))
        elseif OPTIONS[name] ~= "any" and type(value) ~= OPTIONS[name] then
            fail("DistributedDataParallel: option %s: a %s expected, got %s", name, OPTIONS[name], tide._describe(value))
        end
    end
    local hook = options.hook or "none"
    if type(hook) == "string" then
        hook = averaging[hook] or fail("DistributedDataParallel: option hook: '%s' is none of: fp16, bf16, none", hook)
    elseif type(hook) ~= "function" then
        fail("DistributedDataParallel: option hook: 'fp16', 'bf16' or a function expected, got %s", tide._describe(hook))
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
        local found = tide._leaves(gather_tensors(outputs, {}))
        self.unused = {}
        for number, p in ipairs(self.params) do
            if not found[p:data_ptr()] then
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

-- Buffers of one dtype and device travel together.
local function send_buffers(self)
    local kinds, order = {}, {}
    for _, entry in ipairs(self.buffers) do
        local key = tostring(entry.tensor.dtype) .. entry.tensor.device
        if not kinds[key] then
            kinds[key] = {}
            order[#order + 1] = key
        end
        table.insert(kinds[key], entry.tensor)
    end
    for _, key in ipairs(order) do
        local rows = {}
        for k, x in ipairs(kinds[key]) do
            rows[k] = x:detach():flatten()
        end
        local row, at = tide.cat(rows), 1
        distributed.broadcast(row, self.source, { group = self.group })
        for _, x in ipairs(kinds[key]) do
            x:detach():copy_(row:narrow(1, at, x:numel()):view(x:size()))
            at = at + x:numel()
        end
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
    check_finished(self)
    rebuild(self)
    if self.broadcast and #self.buffers > 0 and self.training then
        tide.no_grad(function() send_buffers(self) end)
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
    self.average, self.group = read_options(options), options.group or options.process_group
    self.first_mb, self.most_mb = options.first_bucket_mb or 1, options.bucket_cap_mb or 25
    self.find_unused, self.static_graph = options.find_unused_parameters or options.static_graph or false, options.static_graph or false
    self.broadcast, self.source, self.syncing = options.broadcast_buffers ~= false, 0, true
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

local function no_sync(self, fn)
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

DDP.join = tide._function("join(Module self, function fn)",
    "fn trains on inputs of which ranks have different numbers: ranks that are through help the others, and all end with the parameters of "
        .. "a rank that went on longest.", join)

return DDP
