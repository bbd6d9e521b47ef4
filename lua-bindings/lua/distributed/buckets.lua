-- distributed/buckets.lua: gradients in buckets: rows of elements in which they lie one behind the other, as views, so that
-- one collective reduces many of them. Knows neither modules nor backward.
local tide = ...
local rows = tide._require "distributed.rows"

local MIB <const> = 1 << 20
local buckets = {}

local function bytes_of(p) return p:numel() * p:element_size() end

--- make(params, first_mb, most_mb): buckets of parameters in their order, each of one dtype and device: the first of so many MiB at most,
--- so that communication begins early, the others larger. A bucket has `row`, `params`, `views` and `index`.
function buckets.make(params, first_mb, most_mb)
    local list, open = {}, {}
    for _, p in ipairs(params) do
        local key = tostring(p.dtype) .. p.device
        local bucket = open[key]
        if not bucket or bucket.bytes > 0 and bucket.bytes + bytes_of(p) > bucket.most then
            bucket = { params = {}, bytes = 0, most = (#list == 0 and first_mb or most_mb) * MIB, index = #list + 1 }
            list[#list + 1] = bucket
            open[key] = bucket
        end
        bucket.params[#bucket.params + 1] = p
        bucket.bytes = bucket.bytes + bytes_of(p)
    end
    for _, bucket in ipairs(list) do
        local first = bucket.params[1]
        bucket.row = tide.zeros(bucket.bytes // first:element_size(), { dtype = first.dtype, device = first.device })
        bucket.views = rows.cut(bucket.row, rows.sizes(bucket.params))
    end
    return list
end

return buckets
