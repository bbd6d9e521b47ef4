-- distributed.lua: tide.distributed: one job of several processes. What is sent are elements in a row (lua-bindings/
-- distributed/job.c); shapes, groups and objects are made here.
local tide = ...
local fail, declare, class = tide._fail, tide._function, tide._class
local rows = tide._require "distributed.rows"
local numels, cut = rows.numels, rows.cut

local distributed = {}

local OPS <const> = '"sum"|"mean"|"product"|"min"|"max"|"band"|"bor"|"bxor"'
local NONE <const> = {}

-- ---- groups ----

local Group = { __name = "Group" }
Group.__index = Group
class("Group", Group)

Group.rank = declare("rank(Group self) -> int", "This process's rank within the group, from 0.", function(self) return self._rank end)
Group.size = declare("size(Group self) -> int", "How many ranks the group has.", function(self) return #self.ranks end)

function Group:__tostring()
    return string.format("Group(%s)", table.concat(self.ranks, ", "))
end

-- The engine's group (nil: all), this rank within it, its size.
local function take(fname, group)
    if group == nil then
        local _, rank, size = tide._distributed_state()
        return nil, rank, size
    elseif getmetatable(group) ~= Group then
        fail("%s: option group: expected a Group, got %s", fname, tide._describe(group))
    elseif not group.handle then
        fail("%s: this process (rank %d) is not in %s", fname, distributed.rank(), tostring(group))
    end
    return group.handle, group._rank, #group.ranks
end

-- ---- work under way ----

local Work = { __name = "Work" }
Work.__index = Work
class("Work", Work)

Work.wait = declare("wait(Work self) -> any", "Wait until it has arrived (what goes by NCCL: the current stream waits); what the function would have returned without async.",
    function(self)
        if self.handle then
            tide._work_wait(self.handle)
            self.handle = nil
            self.result, self.finish = self.finish and self.finish() or self.result, nil
        end
        return self.result
    end)
Work.done = declare("done(Work self) -> bool", "Has it arrived? Does not wait.",
    function(self) return not self.handle or tide._work_done(self.handle) end)

function Work:__tostring()
    return self:done() and "Work(done)" or "Work(under way)"
end

-- What transfers are for that are begun now, as recordings call them; nil: nothing more is known.
local label
local Labelled = { __close = function(self) label = self.before end }

--- _labelled(text, fn, ...): fn(...), whose transfers bear the label.
function distributed._labelled(text, fn, ...)
    local _ <close> = setmetatable({ before = label }, Labelled)
    label = text
    return fn(...)
end

-- Begin a transfer; `finish` makes the result once it has arrived.
local function post(group, kind, options, send, recv, finish)
    local handle = tide._post(group, kind, options.op or "sum", options.peer or 0, options.tag or 0, send, recv,
        options.send_counts, options.recv_counts, label)
    return setmetatable({ handle = handle, finish = finish }, Work)
end
distributed._post = post

local function give(work, async)
    if async then
        return work
    end
    return work:wait()
end

-- Do a tensor's elements go from device to device?
local function by_device(x) return string.find(x.device, "^cuda") ~= nil and select(6, tide._distributed_state()) end
distributed._by_device = by_device

-- The elements to send. MPI reads and writes the memory of the CPU: those of a CUDA device go by way of it.
local function host(x) return string.find(x.device, "^cuda") and not by_device(x) and x:to("cpu") or x end
distributed._host = host
local function row_of(x) return host(x:detach()):contiguous() end

-- A tensor that elements can be written to in a row, and what brings them back where that is another.
local function in_a_row(fname, x)
    if x.requires_grad and not x.is_leaf or x.layout ~= "strided" then
        fail("%s: a strided tensor without history expected: x:detach()", fname)
    end
    local plain = x:detach()
    local copy = row_of(x)
    if copy:data_ptr() == plain:data_ptr() then
        return plain, function() return x end
    end
    return copy, function()
        plain:copy_(copy)
        return x
    end
end

local function total(counts)
    local n = 0
    for _, count in ipairs(counts) do
        n = n + count
    end
    return n
end

-- The shapes of what each rank of the group has to give, all of as many dims.
local function exchange_shapes(handle, size, x)
    local mine = tide.tensor(x:dim() == 0 and { 1 } or x:size(), { dtype = tide.int64 })
    local every = tide.empty(size * mine:numel(), { dtype = tide.int64 })
    post(handle, "all_gather", NONE, mine, every):wait()
    local list, shapes = every:tolist(), {}
    for r = 1, size do
        local shape = {}
        for d = 1, x:dim() do
            shape[d] = list[(r - 1) * mine:numel() + d]
        end
        shapes[r] = shape
    end
    return shapes
end

local function same_shapes(size, x)
    local shapes = {}
    for r = 1, size do
        shapes[r] = x:size()
    end
    return shapes
end

-- ---- the job ----

distributed.init = declare("init(*, str? backend=nil, number timeout=1800)",
    "Enter the job that mpirun, srun or tide-run started. backend: 'mpi', or 'self' for this process alone (as if nothing is said: "
        .. "'mpi' where a launcher started it); 'mpi' is the rehearsal under tide-run --rehearse. 'nccl': as if nothing is said, and tensors on "
        .. "CUDA devices go from device to device by NCCL (libnccl.so.2, or what TIDE_NCCL names): the current stream waits for them, not the "
        .. "script; messages between two ranks have no tags then, and integers no band, bor, bxor. Each rank of a machine takes a device of its "
        .. "own, 'cuda:' .. local_rank(). timeout: seconds that a collective may wait "
        .. "for others.",
    function(backend, timeout)
        if timeout <= 0 then
            fail("init: option timeout: seconds above 0 expected, got %s", tostring(timeout))
        end
        tide._distributed_open(backend, timeout)
    end)
distributed.shutdown = declare("shutdown()", "Leave the job, together with the other ranks; the end of the script does it as well.",
    function() tide._distributed_close() end)
distributed.is_initialized = declare("is_initialized() -> bool", "Is this process in a job?",
    function() return (tide._distributed_state()) end)
distributed.backend = declare("backend() -> str", "Engine and version of the job, as in 'mpi: Open MPI v4.1.4'; '' outside of one.",
    function() return (select(5, tide._distributed_state())) end)
distributed.rank = declare("rank(any group=nil) -> int", "This process's rank in the job, or in a group, from 0; 0 outside of a job.",
    function(group) return (select(2, take("rank", group))) end)
distributed.size = declare("size(any group=nil) -> int", "How many ranks the job, or a group, has; 1 outside of a job.",
    function(group) return (select(3, take("size", group))) end)
distributed.local_rank = declare("local_rank() -> int", "This process's rank among those on its machine, as the launcher says, from 0.",
    function() return (select(4, tide._distributed_state())) end)

distributed.new_group = declare("new_group(list ranks) -> Group",
    "A group of ranks of the job, in rising order. All ranks of the job call it, with the same list; those that are not in it can't use it.",
    function(ranks)
        for k, rank in ipairs(ranks) do
            if math.type(rank) ~= "integer" then
                fail("new_group: ranks[%d]: an integer expected, got %s", k, tide._describe(rank))
            end
        end
        post(nil, "barrier", NONE):wait()
        local handle = tide._group_new(ranks)
        return setmetatable({ handle = handle, ranks = table.move(ranks, 1, #ranks, 1, {}),
            _rank = handle and tide._group_state(handle) or nil }, Group)
    end)

-- ---- collectives on tensors ----

distributed.barrier = declare("barrier(*, any group=nil, bool async=false) -> any", "Wait until all ranks are here; work on devices goes on.",
    function(group, async)
        return give(post(take("barrier", group), "barrier", NONE), async)
    end)

distributed.broadcast = declare("broadcast(Tensor x, int(0..) src=0, *, any group=nil, bool async=false) -> any",
    "x of rank src in place of that of the other ranks, which is of the same shape and dtype. Gives x.",
    function(x, src, group, async)
        local row, finish = in_a_row("broadcast", x)
        return give(post(take("broadcast", group), "broadcast", { peer = src }, nil, row, finish), async)
    end)

distributed.all_reduce = declare("all_reduce(Tensor x, " .. OPS .. " op=\"sum\", *, any group=nil, bool async=false) -> any",
    "x of all ranks, element by element, in place of x. float16 and bfloat16 are reduced in float32 and rounded at each step; mean is of "
        .. "floats, band, bor and bxor are of integers and bool. Gives x.",
    function(x, op, group, async)
        local row, finish = in_a_row("all_reduce", x)
        return give(post(take("all_reduce", group), "all_reduce", { op = op }, row, row, finish), async)
    end)

distributed.all_gather = declare("all_gather(Tensor x, *, bool uneven=false, any group=nil, bool async=false) -> any",
    "The list of all ranks' x. uneven: their sizes may differ (not how many dims they have), and are exchanged first.",
    function(x, uneven, group, async)
        local handle, _, size = take("all_gather", group)
        local row = row_of(x)
        local shapes = uneven and exchange_shapes(handle, size, row) or same_shapes(size, row)
        local counts = numels(shapes)
        local every = tide.empty(total(counts), { dtype = x.dtype, device = row.device })
        return give(post(handle, "all_gather", { recv_counts = counts }, row, every, function() return cut(every:to(x.device), shapes) end), async)
    end)

distributed.reduce_scatter = declare("reduce_scatter(Tensor x, " .. OPS .. " op=\"sum\", *, list? sizes=nil, any group=nil, bool async=false) -> any",
    "x of all ranks, element by element, of which each rank gets its part along dim 1. sizes: how long each rank's part is (equal as if "
        .. "nothing is said).",
    function(x, op, sizes, group, async)
        local handle, rank, size = take("reduce_scatter", group)
        local row = row_of(x)
        local length = row:dim() > 0 and row:size(1) or 0
        if sizes and (#sizes ~= size or total(sizes) ~= length) then
            fail("reduce_scatter: option sizes: %d sizes that add up to %d expected", size, length)
        elseif row:dim() == 0 or not sizes and length % size ~= 0 then
            fail("reduce_scatter: dim 1 of shape %s can't be shared among %d ranks evenly: sizes = {...}", tostring(x.shape), size)
        end
        local width, counts = row:numel() // math.max(length, 1), {}
        for r = 1, size do
            counts[r] = (sizes and sizes[r] or length // size) * width
        end
        local shape = row:size()
        shape[1] = sizes and sizes[rank + 1] or length // size
        local part = tide.empty(shape, { dtype = x.dtype, device = row.device })
        return give(post(handle, "reduce_scatter", { op = op, send_counts = counts }, row, part, function() return part:to(x.device) end), async)
    end)

distributed.gather = declare("gather(Tensor x, int(0..) dst=0, *, bool uneven=false, any group=nil, bool async=false) -> any",
    "The list of all ranks' x on rank dst, nil on others. uneven: as all_gather's.",
    function(x, dst, uneven, group, async)
        local handle, rank, size = take("gather", group)
        local row = row_of(x)
        local shapes = uneven and exchange_shapes(handle, size, row) or same_shapes(size, row)
        local counts = numels(shapes)
        local every = rank == dst and tide.empty(total(counts), { dtype = x.dtype, device = row.device }) or nil
        return give(post(handle, "gather", { peer = dst, recv_counts = counts }, row, every,
            every and function() return cut(every:to(x.device), shapes) end), async)
    end)

distributed.scatter = declare("scatter(Tensor x, list? parts=nil, int(0..) src=0, *, any group=nil, bool async=false) -> any",
    "Into x the part that rank src has for this rank: parts, a list of a tensor for each rank, is given there alone. Gives x.",
    function(x, parts, src, group, async)
        local handle, rank, size = take("scatter", group)
        local row, finish = in_a_row("scatter", x)
        local every, counts
        if rank == src then
            if not parts or #parts ~= size then
                fail("scatter: parts: a list of %d tensors expected on rank %d, got %s", size, src, parts and #parts or "nil")
            end
            counts = {}
            for r, part in ipairs(parts) do
                if part.dtype ~= x.dtype then
                    fail("scatter: parts[%d]: %s expected, got %s", r, tostring(x.dtype), tostring(part.dtype))
                end
                counts[r] = part:numel()
            end
            every = host(rows.join(parts))
        end
        return give(post(handle, "scatter", { peer = src, send_counts = counts }, every, row, finish), async)
    end)

distributed.all_to_all = declare("all_to_all(list parts, *, any group=nil, bool async=false) -> any",
    "The list of what each rank has for this one; parts is a tensor for each rank, of one dtype and as many dims, of any sizes.",
    function(parts, group, async)
        local handle, _, size = take("all_to_all", group)
        if #parts ~= size then
            fail("all_to_all: parts: a list of %d tensors expected, got %d", size, #parts)
        end
        local ndim, sizes, counts = parts[1]:dim(), {}, {}
        for r, part in ipairs(parts) do
            if part:dim() ~= ndim or part.dtype ~= parts[1].dtype then
                fail("all_to_all: parts[%d]: %d dims and %s expected, as parts[1] has", r, ndim, tostring(parts[1].dtype))
            end
            counts[r] = part:numel()
            table.move(part:size(), 1, ndim, #sizes + 1, sizes)
        end
        local shapes = {}
        if ndim == 0 then
            shapes = same_shapes(size, parts[1])
        else
            local mine = tide.tensor(sizes, { dtype = tide.int64 })
            local every = tide.empty_like(mine)
            post(handle, "all_to_all", NONE, mine, every):wait()
            local list = every:tolist()
            for r = 1, size do
                shapes[r] = table.move(list, (r - 1) * ndim + 1, r * ndim, 1, {})
            end
        end
        local expected, row = numels(shapes), host(rows.join(parts))
        local every = tide.empty(total(expected), { dtype = row.dtype, device = row.device })
        return give(post(handle, "all_to_all", { send_counts = counts, recv_counts = expected }, row, every,
            function() return cut(every:to(parts[1].device), shapes) end), async)
    end)

-- ---- from one rank to another ----

distributed.send = declare("send(Tensor x, int(0..) dst, *, int(0..32767) tag=0, any group=nil, bool async=false) -> any",
    "Send x to rank dst, which calls recv with a tensor of the same size and dtype. Gives x.",
    function(x, dst, tag, group, async)
        local row = row_of(x)
        return give(post(take("send", group), "send", { peer = dst, tag = tag }, row, nil, function() return x end), async)
    end)
distributed.recv = declare("recv(Tensor x, int(0..) src, *, int(0..32767) tag=0, any group=nil, bool async=false) -> any",
    "Into x what rank src sends. Gives x.",
    function(x, src, tag, group, async)
        local row, finish = in_a_row("recv", x)
        return give(post(take("recv", group), "recv", { peer = src, tag = tag }, nil, row, finish), async)
    end)

-- ---- objects ----

local function pack(object) return tide._require("distributed.objects").pack(object) end
local function unpack(bytes) return tide._require("distributed.objects").unpack(bytes) end

distributed.broadcast_object = declare("broadcast_object(any object=nil, int(0..) src=0, *, any group=nil) -> any",
    "The object of rank src, on all ranks: any value that tide.save takes.",
    function(object, src, group)
        local handle, rank = take("broadcast_object", group)
        local bytes = rank == src and pack(object) or nil
        local length = tide.tensor({ bytes and bytes:numel() or 0 }, { dtype = tide.int64 })
        post(handle, "broadcast", { peer = src }, nil, length):wait()
        bytes = bytes or tide.empty(length:item(), { dtype = tide.uint8 })
        post(handle, "broadcast", { peer = src }, nil, bytes):wait()
        return unpack(bytes)
    end)

distributed.all_gather_object = declare("all_gather_object(any object, *, any group=nil) -> list",
    "The list of all ranks' objects: any values that tide.save takes.",
    function(object, group)
        local list = {}
        for r, bytes in ipairs(distributed.all_gather(pack(object), { uneven = true, group = group })) do
            list[r] = unpack(bytes)
        end
        return list
    end)

distributed.gather_object = declare("gather_object(any object, int(0..) dst=0, *, any group=nil) -> list?",
    "The list of all ranks' objects on rank dst, nil on others.",
    function(object, dst, group)
        local rows = distributed.gather(pack(object), dst, { uneven = true, group = group })
        local list = rows and {}
        for r, bytes in ipairs(rows or {}) do
            list[r] = unpack(bytes)
        end
        return list
    end)

distributed.scatter_object = declare("scatter_object(list? objects=nil, int(0..) src=0, *, any group=nil) -> any",
    "The object that rank src has for this rank: objects, one for each rank, is given there alone.",
    function(objects, src, group)
        local _, rank, size = take("scatter_object", group)
        local parts, lengths
        if rank == src then
            if not objects or #objects ~= size then
                fail("scatter_object: objects: a list of %d expected on rank %d, got %s", size, src, objects and #objects or "nil")
            end
            parts, lengths = {}, {}
            for r, object in ipairs(objects) do
                parts[r] = pack(object)
                lengths[r] = tide.tensor({ parts[r]:numel() }, { dtype = tide.int64 })
            end
        end
        local length = distributed.scatter(tide.zeros(1, { dtype = tide.int64 }), lengths, src, { group = group })
        return unpack(distributed.scatter(tide.empty(length:item(), { dtype = tide.uint8 }), parts, src, { group = group }))
    end)

distributed.send_object = declare("send_object(any object, int(0..) dst, *, int(0..32767) tag=0, any group=nil)",
    "Send an object to rank dst, which calls recv_object.",
    function(object, dst, tag, group)
        local bytes = pack(object)
        distributed.send(tide.tensor({ bytes:numel() }, { dtype = tide.int64 }), dst, { tag = tag, group = group })
        distributed.send(bytes, dst, { tag = tag, group = group })
    end)
distributed.recv_object = declare("recv_object(int(0..) src, *, int(0..32767) tag=0, any group=nil) -> any",
    "The object that rank src sends.",
    function(src, tag, group)
        local length = distributed.recv(tide.zeros(1, { dtype = tide.int64 }), src, { tag = tag, group = group })
        return unpack(distributed.recv(tide.empty(length:item(), { dtype = tide.uint8 }), src, { tag = tag, group = group }))
    end)

-- ---- data parallel training ----

distributed.DistributedDataParallel = declare("DistributedDataParallel(any module, table? options=nil) -> Module",
    "A module that trains on all ranks' inputs as one: parameters and buffers are rank 0's at first, gradients are averaged while backward "
        .. "runs, in buckets; they may lie on several devices. options: group (or process_group), bucket_cap_mb (25), first_bucket_mb (1), "
        .. "find_unused_parameters, static_graph, "
        .. "broadcast_buffers (true), device_ids (the one device that the module is on, as PyTorch's scripts say it), hook ('fp16', 'bf16', tide.distributed.powersgd{}, topk{} or a function of a bucket that returns one that "
        .. "finishes), deterministic (how many micro-batches a step has: results are the same bits for every "
        .. "number of ranks, see micro_batches; after tide.use_deterministic_algorithms(true)). "
        .. "ddp:no_sync(fn) leaves gradients to add up, ddp:join(fn) takes inputs of different numbers.",
    function(module, options) return tide._require "distributed.data_parallel"(module, options) end)

distributed.powersgd = declare("powersgd(*, int(1..) rank=1, int(0..) start=1000) -> function",
    "A hook for DistributedDataParallel that sends two thin factors in place of a gradient that is a matrix, where that halves its bytes at "
        .. "least, with error feedback and warm start (Vogels et al. 2019). The first `start` steps send all.",
    function(rank, start) return tide._require "distributed.hooks".powersgd(rank, start) end)

distributed.topk = declare("topk(*, number ratio=0.01, int(0..) start=0) -> function",
    "A hook for DistributedDataParallel that sends, of each bucket of gradients, the share `ratio` of elements that are largest by magnitude, "
        .. "with their places, in place of all; what it leaves out is added to the next step's gradients (error feedback, Stich et al. 2018). Each "
        .. "rank gets size * ratio * 8 bytes an element of float32. The first `start` steps send all.",
    function(ratio, start)
        if not (ratio > 0 and ratio <= 1) then
            fail("topk: option ratio: a number above 0 and up to 1 expected, got %s", tostring(ratio))
        end
        return tide._require "distributed.hooks".topk(ratio, start)
    end)

-- ---- checkpoints ----

distributed.checkpoint = tide._require "distributed.sharded"

-- ---- states, layers and stages shared out among ranks ----

distributed.optim = { ZeroRedundancyOptimizer = declare(
    "ZeroRedundancyOptimizer(any params, any optimizer_class, table? options=nil) -> Optimizer",
    "An optimizer of a class, tide.optim.AdamW, whose states are shared out among the ranks (ZeRO-1): each steps its own parameters, by the "
        .. "same gradients, and sends them to the others; the same bits as the class alone. options: the class's, and group (or process_group). "
        .. "opt:consolidate_state_dict(to) brings the states to one rank, for state_dict there.",
    function(params, class_of, options) return tide._require "distributed.zero_redundancy".new(params, class_of, options) end) }

local function parallel(name, ...) return tide._require "distributed.tensor_parallel"[name](...) end
local LAYOUT <const> = '"replicate"|"shard" '

distributed.tensor = { parallel = {
    parallelize_module = declare("parallelize_module(any module, any plan, *, any group=nil) -> Module",
        "The module with Linear layers split among the ranks, as the plan says: a style, or styles by modules' full names, in which * is any "
            .. "part. Weights are rank 0's, and each rank keeps its slice under the same name. All ranks call it, and give the layers the same "
            .. "inputs.", function(module, plan, group) return parallel("parallelize_module", module, plan, group) end),
    ColwiseParallel = declare("ColwiseParallel(*, " .. LAYOUT .. 'input_layouts="replicate", ' .. LAYOUT .. 'output_layouts="shard") -> ParallelStyle',
        "A style for parallelize_module: each rank has some of a Linear's outputs. Layouts say whether inputs and outputs are the same on all "
            .. "ranks or a slice of the last dim. Example: tide.distributed.tensor.parallel.ColwiseParallel()",
        function(input, output) return parallel("ColwiseParallel", input, output) end),
    RowwiseParallel = declare("RowwiseParallel(*, " .. LAYOUT .. 'input_layouts="shard", ' .. LAYOUT .. 'output_layouts="replicate") -> ParallelStyle',
        "A style for parallelize_module: each rank has some of a Linear's inputs; products are summed over the ranks by all_reduce, and the "
            .. "bias is added to the sum. Behind a ColwiseParallel it needs no other exchange. Example: tide.distributed.tensor.parallel.RowwiseParallel()",
        function(input, output) return parallel("RowwiseParallel", input, output) end),
} }

distributed.pipelining = tide._require "distributed.pipelining"

-- ---- what was recorded ----

local function trace(name, ...) return tide._require "distributed.trace"[name](...) end

distributed.export_chrome_trace = declare("export_chrome_trace(any profile=nil, str path=\"trace.json\")",
    "One trace for the job, which rank 0 writes: each rank's profile is a process of its own, and clocks are aligned (a rank's label says "
        .. "how well). All ranks call it, each with its profile. Without a profile on one rank, or where the file can't be written, all "
        .. "ranks get the same error.",
    function(profile, path) trace("export", profile, path) end)

distributed.communication = declare("communication(any profile=nil) -> list",
    "What became of the transfers in all ranks' profiles: a row for each name (of DistributedDataParallel for each bucket), with calls, "
        .. "bytes, time_us (of one), bandwidth (bytes/s), hidden (the share beside which backward's kernels ran), last (the rank that mostly "
        .. "came last, last_times, late_us). print shows a table. All ranks call it, each with its profile, and all get it.",
    function(profile) return trace("communication", profile) end)

distributed.simulate = declare("simulate(any profile, table? options=nil) -> table",
    "What a step of DistributedDataParallel would take with other numbers of ranks and other buckets, worked out from this rank's profile of "
        .. "some steps (or from a step: {rest_us = ..., buckets = {{bytes = ..., ready_us = ...}, ...}}): rows for `ranks`, caps for `bucket_cap_mb`, "
        .. "each with step_us, exposed_us (what backward does not hide), hidden, efficiency, buckets; print shows tables. options: ranks (a list), "
        .. "algorithm ('auto', which is what all_reduce does, 'direct', 'ring', 'tree', 'hierarchical'), links ({latency_us = ..., bandwidth = bytes/s}; hierarchical: per_node and local = {...} too; "
        .. "as if nothing is said what the profile's transfers fit), measured (the profile's number of ranks), bucket_cap_mb (a list), "
        .. "first_bucket_mb (1), model (whose gradients are then not cut).",
    function(profile, options) return tide._require "distributed.simulator".simulate(profile, options) end)

distributed._classes = { Group = Group, Work = Work, PipelineSchedule = distributed.pipelining._open(tide.nn) } -- for help
distributed.pipelining._open = nil

tide._document(distributed.optim, "optim", "tide.distributed.optim", "Optimizers whose states are shared out among ranks: "
    .. "ZeroRedundancyOptimizer.")
tide._document(distributed.tensor, "tensor", "tide.distributed.tensor", "parallel: layers split among ranks.")
tide._document(distributed.tensor.parallel, "parallel", "tide.distributed.tensor.parallel", "Linear layers split among ranks: "
    .. "parallelize_module, ColwiseParallel, RowwiseParallel.")
tide._document(distributed.pipelining, "pipelining", "tide.distributed.pipelining", "Networks in stages, on devices or on ranks: "
    .. "PipelineStage, ScheduleGPipe, Schedule1F1B, Pipe.")
tide._document(distributed, "distributed", "tide.distributed", "Jobs of several processes on MPI and NCCL: init, collectives, groups, "
    .. "DistributedDataParallel, pipelining, tensor.parallel, optim. `tide-run -n 4 script.lua` starts one on this machine.")

return distributed
