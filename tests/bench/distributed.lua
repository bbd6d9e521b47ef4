-- distributed.lua: all_reduce of three sizes, for tests/bench/distributed.py, which runs the same through PyTorch's gloo:
-- tide-run -n 2 tests/bench/distributed.lua. Rank 0 prints a JSON object a line.
local dist = tide.distributed
dist.init { timeout = 60 }
local clock = tide.time

for _, case in ipairs { { "4 KB", 1024, 200 }, { "1 MB", 262144, 40 }, { "26 MB", 6815744, 12 } } do
    local name, n, times = table.unpack(case)
    local x, took = tide.ones(n), {}
    for k = 1, times + 3 do
        x:fill_(1)
        dist.barrier()
        local began = clock()
        dist.all_reduce(x)
        if k > 3 then
            took[#took + 1] = clock() - began
        end
    end
    assert(x[1]:item() == dist.size())
    table.sort(took)
    if dist.rank() == 0 then
        print(string.format('{"case": "all_reduce %s, %d ranks", "median_s": %.6g, "iqr_s": %.3g, "note": "%s"}', name, dist.size(),
            took[(#took + 1) // 2], took[(3 * #took + 3) // 4] - took[(#took + 3) // 4], dist.backend()))
    end
end
