-- distributed/hooks.lua: how a bucket of gradients is averaged over the ranks. A hook takes a bucket ({row, index, group})
-- and begins; what it returns finishes, once row holds the mean.
local tide, distributed = ..., nil

local hooks = {}

local function reduce(row, op, group)
    distributed = distributed or tide.distributed
    return distributed.all_reduce(row, op, { group = group, async = true })
end

--- The mean in the gradients' own dtype.
function hooks.none(bucket)
    local work = reduce(bucket.row, "mean", bucket.group)
    return function() work:wait() end
end

-- Half the bytes: cast, divide by the ranks (so that the sum can't overflow where the mean does not), reduce, cast back.
local function compressed(dtype)
    return function(bucket)
        local row = bucket.row
        local small = row:div(tide.distributed.size(bucket.group)):to(dtype)
        local work = reduce(small, "sum", bucket.group)
        return function()
            work:wait()
            row:copy_(small)
        end
    end
end

hooks.fp16 = compressed(tide.float16)
hooks.bf16 = compressed(tide.bfloat16)

-- ---- the largest elements alone ----

-- What was left out of a bucket's gradients so far, which is added to the next. It is kept by parameter: buckets may change.
local function left_out(kept, bucket)
    local known = kept[bucket]
    if not known then
        known = tide.zeros_like(bucket.row)
        local at = 1
        for _, p in ipairs(bucket.params) do
            local key, view = p:data_ptr(), known:narrow(1, at, p:numel())
            if kept[key] then
                view:copy_(kept[key])
            end
            kept[key], at = view, at + p:numel()
        end
        kept[bucket] = known
    end
    return known
end

--- topk(ratio, start): a hook that sends the elements of a bucket that are largest by magnitude, so many of them, and their places,
--- which are summed on each rank; what it leaves out is added to the next step's. The first `start` steps send all.
function hooks.topk(ratio, start)
    local kept, steps = setmetatable({}, { __mode = "k" }), {}
    return function(bucket)
        steps[bucket.index] = (steps[bucket.index] or 0) + 1
        if steps[bucket.index] <= start then
            return hooks.none(bucket)
        end
        local row, rest = bucket.row, left_out(kept, bucket)
        rest:add_(row)
        local _, places = rest:abs():topk(math.ceil(ratio * row:numel()), 1, { sorted = false })
        local options = { group = bucket.group, async = true }
        local sent = rest:index_select(1, places)
        rest:index_fill_(1, places, 0)
        local values = tide.distributed.all_gather(sent, options)
        places = tide.distributed.all_gather(places:to(tide.int32), options)
        return function()
            local theirs = places:wait()
            row:zero_()
            for r, part in ipairs(values:wait()) do
                row:index_add_(1, theirs[r]:to(tide.int64), part)
            end
            row:div_(#theirs)
        end
    end
end

-- ---- PowerSGD (Vogels et al. 2019) ----

-- The columns of p made orthonormal, one behind the other, in place.
local function orthonormalize(p)
    for k = 1, p:size(2) do
        local column = p:narrow(2, k, 1)
        column:div_(column:norm():clamp_min(1e-20))
        if k < p:size(2) then
            local rest = p:narrow(2, k + 1, p:size(2) - k)
            rest:sub_(column:matmul(column:t():matmul(rest)))
        end
    end
end

-- What is kept of a gradient between steps: what was left out of it (error feedback), and the last factor (warm start), which
-- begins as the same numbers on all ranks.
local function memory_of(state, p, rows, columns, rank)
    local key = p:data_ptr()
    if not state[key] then
        local generator = tide.Generator(rows * 1000003 + columns)
        state[key] = { error = tide.zeros(rows, columns, { dtype = p.dtype, device = p.device }),
            q = tide.randn(columns, rank, { generator = generator, dtype = p.dtype }):to(p.device) }
    end
    return state[key]
end

--- powersgd(rank, start): a hook that sends two thin factors in place of a gradient that is a matrix, where that halves its
--- bytes at least; others as they are. The first `start` steps send all.
function hooks.powersgd(rank, start)
    local state, steps = {}, {}
    return function(bucket)
        steps[bucket.index] = (steps[bucket.index] or 0) + 1
        if steps[bucket.index] <= start then
            return hooks.none(bucket)
        end
        local jobs, plain = {}, {}
        for k, view in ipairs(bucket.views) do
            local rows = view:dim() > 1 and view:size(1) or 1
            local columns = view:numel() // math.max(rows, 1)
            if (rows + columns) * rank * 2 < rows * columns then
                local kept = memory_of(state, bucket.params[k], rows, columns, rank)
                local matrix = view:view(rows, columns)
                matrix:add_(kept.error)
                local p = matrix:matmul(kept.q)
                jobs[#jobs + 1] = { matrix = matrix, kept = kept, p = p, work = reduce(p, "mean", bucket.group) }
            else
                plain[#plain + 1] = reduce(view, "mean", bucket.group)
            end
        end
        return function()
            for _, job in ipairs(jobs) do
                job.work:wait()
                orthonormalize(job.p)
                job.kept.q = job.matrix:t():matmul(job.p)
                job.work = reduce(job.kept.q, "mean", bucket.group)
            end
            for _, job in ipairs(jobs) do
                job.work:wait()
                local mean = job.p:matmul(job.kept.q:t())
                job.kept.error = job.matrix - mean
                job.matrix:copy_(mean)
            end
            for _, work in ipairs(plain) do
                work:wait()
            end
        end
    end
end

return hooks
