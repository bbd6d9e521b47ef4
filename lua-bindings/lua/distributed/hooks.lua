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

return hooks
