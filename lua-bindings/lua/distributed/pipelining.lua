-- distributed/pipelining.lua: a network in stages, on devices of one process or on ranks, through which a batch goes in
-- micro-batches: several stages work at once, each on another of them.
--
-- A schedule is a list of actions for each stage, forward ("F") and backward ("B") of a micro-batch. Stages share no graph:
-- between two of them are two links, one for activations and one for their gradients, which are queues in one process and
-- messages between ranks. Each stage does its backwards in the order of micro-batches, so that gradients are added up as in
-- a loop over micro-batches without a pipeline: to the bit.
local tide = ...
local fail, declare = tide._fail, tide._function

local pipelining = {}
local distributed

-- ---- messages between ranks ----

local DTYPES <const> = { "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool" }
local HEADER <const> = 64 -- numbers: how many tensors, and of each dtype, whether it has a gradient, dims, sizes

local function header_of(list)
    local numbers = { #list }
    for _, x in ipairs(list) do
        for code, name in ipairs(DTYPES) do
            if x.dtype == tide[name] then
                table.move({ code, x.requires_grad and 1 or 0, distributed._by_device(x) and 1 or 0, x:dim() }, 1, 4, #numbers + 1, numbers)
            end
        end
        table.move(x:size(), 1, x:dim(), #numbers + 1, numbers)
    end
    if #numbers > HEADER then
        fail("pipeline: a stage's outputs are too many for a message: %d tensors", #list)
    end
    for k = #numbers + 1, HEADER do
        numbers[k] = 0
    end
    return tide.tensor(numbers, { dtype = tide.int64 })
end

-- A link to or from another rank. What is sent is kept until it has arrived. known: the receiver knows shapes and dtypes. device: this
-- rank's stage's, where what went from device to device arrives. A gradient takes the way of what it is the gradient of.
local Remote = {}
Remote.__index = Remote

function Remote:post(x)
    self.works[#self.works + 1] = distributed._labelled(self.label, distributed.send, x, self.peer, { group = self.group, async = true })
end

function Remote:put(list)
    if not self.known then
        self:post(header_of(list))
    end
    for _, x in ipairs(list) do
        self:post(x)
    end
end

function Remote:ready() return true end

-- `like`: tensors of the same shapes, where the receiver knows them.
function Remote:take(like)
    local function receive(x) return distributed._labelled(self.label, distributed.recv, x, self.peer, { group = self.group }) end
    local list = {}
    if like then
        for k, x in ipairs(like) do
            list[k] = receive(tide.empty(x:size(), { dtype = x.dtype, device = distributed._by_device(x) and x.device or "cpu" }))
        end
        return list
    end
    local numbers, at = receive(tide.empty(HEADER, { dtype = tide.int64 })):tolist(), 1
    for k = 1, numbers[1] do
        local code, needs, by_device, ndim = table.unpack(numbers, at + 1, at + 4)
        local shape = table.move(numbers, at + 5, at + 4 + ndim, 1, {})
        if by_device == 1 and not string.find(self.device, "^cuda") then
            fail("pipeline: %s come from a CUDA device by NCCL, this rank's stage is on %s", self.label, self.device)
        end
        list[k] = receive(tide.empty(shape, { dtype = tide[DTYPES[code]], device = by_device == 1 and self.device or "cpu" }))
            :requires_grad_(needs == 1)
        at = at + 4 + ndim
    end
    return list
end

function Remote:finish()
    for _, work in ipairs(self.works) do
        work:wait()
    end
    self.works = {}
end

-- A link within the process: a queue.
local Queue = {}
Queue.__index = Queue

function Queue:put(list) self[#self + 1] = list end
function Queue:ready() return #self > 0 end
function Queue:take() return table.remove(self, 1) end
function Queue:finish() end

-- ---- stages ----

local Stage = { __name = "PipelineStage" }
Stage.__index = Stage
tide._class("PipelineStage", Stage)

function Stage:__tostring() return string.format("PipelineStage(%d of %d, on %s)", self.index, self.count, self.device) end

pipelining.PipelineStage = declare(
    "PipelineStage(Module submodule, int(1..) stage_index, int(1..) num_stages, *, device? device=nil, any group=nil) -> PipelineStage",
    "A part of a network for a schedule: stage stage_index, from 1, of num_stages, on a device (its parameters' as if nothing is said). "
        .. "Where each rank has one stage, rank r of the group has stage r + 1. A DistributedDataParallel as submodule exchanges its gradients "
        .. "once a step. Example: stage = tide.distributed.pipelining.PipelineStage(tide.nn.Linear(4, 2), 1, 1)",
    function(submodule, index, count, device, group)
        if index > count then
            fail("PipelineStage: stage_index %d: from 1 to %d, the number of stages, expected", index, count)
        end
        local first = submodule:parameters()[1]
        return setmetatable({ submodule = submodule, index = index, count = count, group = group,
            device = device and tide.empty(0, { device = device }).device or first and first.device or "cpu" }, Stage)
    end)

-- fn(...), with DistributedDataParallel's exchange of gradients at the last micro-batch alone.
local function in_turn(self, last, fn, ...)
    if last or not self.submodule.no_sync then
        return fn(...)
    end
    local _ <close> = self.submodule:no_sync()
    return fn(...)
end

local function check_outputs(self, outputs)
    for k = 1, outputs.n do
        if not tide.is_tensor(outputs[k]) then
            fail("pipeline: stage %d returned %s as result %d: a tensor expected", self.index, tide._describe(outputs[k]), k)
        end
    end
end

local actions = {}

function actions.F(run, stage, m)
    local given = stage.index == 1 and run.inputs[m] or run.forward[stage.index]:take()
    local inputs, from = {}, {}
    for k, x in ipairs(given) do
        from[k] = x.device
        inputs[k] = stage.index == 1 and x:to(stage.device) or x:detach():to(stage.device):requires_grad_(x.requires_grad and run.train)
    end
    local outputs = table.pack(in_turn(stage, m == run.n, stage.submodule, table.unpack(inputs)))
    check_outputs(stage, outputs)
    run.live[stage.index][m] = run.train and { inputs = inputs, from = from, outputs = outputs } or nil
    if stage.index < stage.count then
        run.forward[stage.index + 1]:put(outputs)
    else
        run.results[m] = outputs
    end
end

-- Those of a stage's tensors that have a gradient.
local function wanting(list)
    local some = {}
    for _, x in ipairs(list) do
        some[#some + 1] = x.requires_grad and x or nil
    end
    return some
end

local function loss_of(run, stage, m, outputs)
    local target = run.targets and run.targets[m]
    local loss = target and run.loss_fn(outputs[1], target:to(outputs[1].device)) or run.loss_fn(table.unpack(outputs, 1, outputs.n))
    if not tide.is_tensor(loss) or loss:numel() ~= 1 then
        fail("pipeline: loss_fn returned %s: a tensor of one element expected", tide._describe(loss))
    end
    run.losses[m] = loss:detach()
    in_turn(stage, m == run.n, function() (run.scale and loss / run.n or loss):backward() end)
end

function actions.B(run, stage, m)
    local kept = run.live[stage.index][m]
    run.live[stage.index][m] = nil
    if stage.index == stage.count then
        loss_of(run, stage, m, kept.outputs)
    else
        local outputs = wanting(kept.outputs)
        local gradients = run.backward[stage.index]:take(outputs)
        for k, x in ipairs(outputs) do
            gradients[k] = gradients[k]:to(x.device)
        end
        if #outputs > 0 then
            in_turn(stage, m == run.n, tide.autograd.backward, outputs, gradients)
        end
    end
    if stage.index > 1 then
        local gradients = {}
        for k, x in ipairs(kept.inputs) do
            if x.requires_grad then
                gradients[#gradients + 1] = (x.grad or tide.zeros_like(x)):to(kept.from[k])
            end
        end
        run.backward[stage.index - 1]:put(gradients)
    end
end

-- ---- schedules ----

local Schedule = { __name = "PipelineSchedule" }
Schedule.__index = Schedule
tide._class("PipelineSchedule", Schedule)

-- The actions of stage `index` of `count`: {kind, micro-batch} in their order.
local orders = {}

function orders.GPipe(_, _, n)
    local list = {}
    for k = 1, 2 * n do
        list[k] = { k <= n and "F" or "B", (k - 1) % n + 1 }
    end
    return list
end

-- As many forwards as stages are ahead of the first backward; then one of each in turn, so that no more are kept.
orders["1F1B"] = function(index, count, n)
    local list, forwards, backwards = {}, 0, 0
    while backwards < n do
        if forwards < n and forwards - backwards < count - index + 1 then
            forwards = forwards + 1
            list[#list + 1] = { "F", forwards }
        else
            backwards = backwards + 1
            list[#list + 1] = { "B", backwards }
        end
    end
    return list
end

-- What a stage waits for before an action.
local function is_ready(run, stage, action)
    if action[1] == "F" then
        return stage.index == 1 or run.forward[stage.index]:ready()
    end
    return stage.index == stage.count or run.backward[stage.index]:ready()
end

-- Each stage in turn does its next action, if what that waits for is there.
local function perform(run, stages)
    local left, at, lists = 0, {}, {}
    for s, stage in ipairs(stages) do
        local list = {}
        for _, action in ipairs(orders[run.order](stage.index, stage.count, run.n)) do
            list[#list + 1] = (run.train or action[1] == "F") and action or nil
        end
        lists[s], at[s], left = list, 1, left + #list
    end
    while left > 0 do
        for s, stage in ipairs(stages) do
            local action = lists[s][at[s]]
            if action and is_ready(run, stage, action) then
                at[s], left = at[s] + 1, left - 1
                actions[action[1]](run, stage, action[2])
            end
        end
    end
end

-- Links into the stages of this process, and out of them.
local function link(run, stages)
    run.forward, run.backward = {}, {}
    local function remotes(s, peer)
        local group = stages[1].group
        run.forward[s] = setmetatable({ peer = peer, group = group, works = {}, label = "activations into stage " .. s,
            device = stages[1].device }, Remote)
        run.backward[s - 1] = setmetatable({ peer = peer, group = group, works = {}, known = true, label = "gradients into stage " .. s - 1 },
            Remote)
    end
    local count = stages[1].count
    for s = 2, count do -- forward[s] leads into stage s, backward[s - 1] out of it
        if #stages == count then
            run.forward[s], run.backward[s - 1] = setmetatable({}, Queue), setmetatable({}, Queue)
        elseif s == stages[1].index then
            remotes(s, s - 2)
        elseif s - 1 == stages[1].index then
            remotes(s, s - 1)
        end
    end
end

local function cut(what, x, n)
    if not tide.is_tensor(x) or x:dim() == 0 then
        fail("step: %s: a tensor with a batch as its first dim expected, got %s", what, tide._describe(x))
    end
    local parts = x:chunk(n)
    if #parts ~= n then
        fail("step: %s: %d rows make %d micro-batches, and %d are expected", what, x:size(1), #parts, n)
    end
    return parts
end

-- The micro-batches: a list of arguments for each.
local function cut_inputs(n, given)
    local inputs = {}
    for m = 1, n do
        inputs[m] = {}
    end
    for k, x in ipairs(given) do
        for m, part in ipairs(cut("input " .. k, x, n)) do
            inputs[m][k] = part
        end
    end
    return inputs
end

-- The last stage's outputs of all micro-batches.
local function join(results)
    local whole = {}
    for k = 1, results[1] and results[1].n or 0 do
        local parts = {}
        for m, outputs in ipairs(results) do
            parts[m] = outputs[k]:detach()
        end
        whole[k] = tide.cat(parts, 1)
    end
    return table.unpack(whole)
end

local function execute(self, train, given, options)
    distributed = tide.distributed
    local n, first, last = self.n, self.stages[1], self.stages[#self.stages]
    local run = { n = n, order = self.order, train = train, loss_fn = self.loss_fn, scale = self.scale, results = {}, live = {},
        losses = options.losses or {} }
    for _, stage in ipairs(self.stages) do
        run.live[stage.index] = {}
    end
    if first.index == 1 then
        run.inputs = cut_inputs(n, given or fail("step: the first stage wants inputs"))
    elseif given and #given > 0 then
        fail("step: inputs are the first stage's, and this is stage %d", first.index)
    end
    run.targets = options.target and last.index == last.count and cut("target", options.target, n) or nil
    link(run, self.stages)
    if train then
        tide.enable_grad(perform, run, self.stages)
    else
        tide.no_grad(perform, run, self.stages)
    end
    for s = 1, first.count do
        for _, links in ipairs { run.forward, run.backward } do
            if links[s] and links[s].finish then
                links[s]:finish()
            end
        end
    end
    return join(run.results)
end

Schedule.step = declare("step(PipelineSchedule self, Tensor|Tensor[]? inputs=nil, *, Tensor? target=nil, list? losses=nil) -> any",
    "One batch through the stages, and its gradients back where there is a loss_fn. The first stage's process gives the inputs, that of "
        .. "the last the target; it gets the outputs, and the micro-batches' losses in the list `losses`. All ranks call it.",
    function(self, inputs, target, losses)
        return execute(self, self.loss_fn ~= nil, inputs, { target = target, losses = losses })
    end)

Schedule.eval = declare("eval(PipelineSchedule self, Tensor|Tensor[]? inputs=nil) -> any",
    "One batch through the stages, without gradients.", function(self, inputs) return execute(self, false, inputs, {}) end)

function Schedule:__tostring()
    return string.format("Schedule%s(%d stages, %d micro-batches)", self.order, self.stages[1].count, self.n)
end

-- One stage, where each rank of the group has one, or all of them.
local function read_stages(fname, given)
    local stages = getmetatable(given) == Stage and { given } or given
    if type(stages) ~= "table" or #stages == 0 then
        fail("%s: argument 1 (stages): a PipelineStage, or the list of all, expected, got %s", fname, tide._describe(given))
    end
    for s, stage in ipairs(stages) do
        if getmetatable(stage) ~= Stage then
            fail("%s: stages[%d]: a PipelineStage expected, got %s", fname, s, tide._describe(stage))
        elseif #stages > 1 and (stage.index ~= s or stage.count ~= #stages) then
            fail("%s: stages[%d] is stage %d of %d: all of one process are stages 1 to %d", fname, s, stage.index, stage.count, #stages)
        end
    end
    local stage = stages[1]
    if #stages == 1 and stage.count > 1
        and (tide.distributed.size(stage.group) ~= stage.count or tide.distributed.rank(stage.group) ~= stage.index - 1) then
        fail("%s: stage %d of %d is rank %d's of as many, and this is rank %d of %d", fname, stage.index, stage.count, stage.index - 1,
            tide.distributed.rank(stage.group), tide.distributed.size(stage.group))
    end
    return table.move(stages, 1, #stages, 1, {})
end

local function schedule(order, doc)
    local fname = "Schedule" .. order
    pipelining[fname] = declare(fname .. "(any stages, int(1..) n_microbatches, *, function? loss_fn=nil, bool scale_grads=true) -> PipelineSchedule",
        doc .. " stages: this rank's PipelineStage, or the list of all where one process has them. loss_fn(output, target) is the loss "
            .. "of a micro-batch; scale_grads divides it by their number. Example: tide.distributed.pipelining." .. fname
            .. "(tide.distributed.pipelining.PipelineStage(tide.nn.Linear(4, 2), 1, 1), 2)",
        function(stages, n, loss_fn, scale)
            return setmetatable({ stages = read_stages(fname, stages), n = n, order = order, loss_fn = loss_fn, scale = scale }, Schedule)
        end)
end
schedule("GPipe", "All micro-batches forward, then all backward, in their order (Huang et al. 2019).")
schedule("1F1B", "One forward and one backward in turn, so that a stage keeps the graphs of no more micro-batches than there are stages from it to the "
    .. "last (Narayanan et al. 2021). Backwards are in the order of micro-batches.")

-- ---- a Sequential whose parts lie on several devices ----

-- Neighbours on one device are one stage; what has no parameters goes with what is before it.
local function partition(module)
    local stages = {}
    for _, child in ipairs(module:children()) do
        local p = child:parameters()[1]
        local stage = stages[#stages]
        if not stage or p and stage.device and p.device ~= stage.device then
            stage = {}
            stages[#stages + 1] = stage
        end
        stage.device = stage.device or p and p.device
        stage[#stage + 1] = child
    end
    return stages
end

--- Adds Pipe, which is a module; gives the class of schedules.
function pipelining._open(nn)
    local read = declare("Pipe(Module module, *, int(1..) chunks=1)",
        "A Sequential whose parts lie on several devices, through which a batch goes in `chunks` micro-batches, each stage's next one while "
            .. "the following stage works on the one before. Autograd goes back through it as through the Sequential; gradients are added "
            .. "up from the last micro-batch to the first. Example: y = tide.distributed.pipelining.Pipe(tide.nn.Sequential(tide.nn.Linear(4, 2)), "
            .. "{chunks = 2})(tide.randn(6, 4))")
    local Pipe = nn.class "Pipe"
    function Pipe:init(...)
        local options = read(...)
        if not nn.is(options.module, nn.Sequential) or #options.module == 0 then
            fail("Pipe: argument 1 (module): a Sequential with parts expected, got %s", tide._describe(options.module))
        end
        self.module, self.chunks = options.module, options.chunks
    end
    function Pipe:forward(x)
        local stages, parts = partition(self.module), x:chunk(self.chunks)
        for clock = 1, #parts + #stages - 1 do
            for s = math.min(clock, #stages), math.max(1, clock - #parts + 1), -1 do
                local m = clock - s + 1
                parts[m] = stages[s].device and parts[m]:to(stages[s].device) or parts[m]
                for _, layer in ipairs(stages[s]) do
                    parts[m] = layer(parts[m])
                end
            end
        end
        return tide.cat(parts, 1)
    end
    pipelining.Pipe = Pipe
    tide._document(Pipe, read)
    return Schedule
end

return pipelining
