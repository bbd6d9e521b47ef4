-- Ranks in rows and columns: groups that share ranks, taken in one order by all.
local dist = tide.distributed
dist.init()
local rank, size = dist.rank(), dist.size()
local rows, columns = {}, {}
for first = 0, size - 1, 2 do
    rows[#rows + 1] = dist.new_group { first, first + 1 }
end
for k = 0, 1 do
    local ranks = {}
    for r = k, size - 1, 2 do
        ranks[#ranks + 1] = r
    end
    columns[#columns + 1] = dist.new_group(ranks)
end
local x = tide.ones(3)
dist.all_reduce(x, { group = rows[rank // 2 + 1] })
dist.all_reduce(x, { group = columns[rank % 2 + 1] })
assert(x[1]:item() == size)
assert(dist.rank(rows[rank // 2 + 1]) == rank % 2)
