-- test_reduce.lua: reductions and places of extremes on CUDA, compared with the CPU's.
local t = require "harness"
local c = require "compare"

local function dims_of(x)
    return x.ndim == 2 and { 1, 2, { 1, 2 } } or { 1 }
end

local function each(x, fn)
    for _, dim in ipairs(dims_of(x)) do
        fn(dim, type(dim) == "table" and "all dims" or "dim " .. dim)
    end
end

c.test("sums_of_every_dtype_and_layout", function()
    for _, dtype in ipairs(c.all) do
        for k, x in ipairs(c.views(9, 33, dtype, true)) do
            each(x, function(dim, name)
                c.both("sum of " .. tostring(dtype) .. " " .. k .. " " .. name, function(v) return v:sum(dim) end, x)
            end)
        end
    end
end)

c.test("products_and_extremes", function()
    for _, dtype in ipairs(c.all) do
        for k, x in ipairs(c.views(5, 3, dtype)) do
            each(x, function(dim, name)
                local what = tostring(dtype) .. " " .. k .. " " .. name
                c.both("amax of " .. what, function(v) return v:amax(dim), v:amin(dim) end, x)
                c.both("any of " .. what, function(v) return v:any(dim), v:all(dim) end, x)
                if type(dim) == "number" then
                    c.both("prod of " .. what, function(v) return v:prod(dim) end, x)
                end
                c.both("count of " .. what, function(v) return v:count_nonzero(dim) end, x)
            end)
        end
    end
end)

c.test("nan_wins_in_extremes", function()
    for _, dtype in ipairs(c.floats) do
        for k, x in ipairs(c.views(7, 40, dtype, true)) do
            each(x, function(dim, name)
                c.both(tostring(dtype) .. " " .. k .. " " .. name, function(v)
                    return v:amax(dim), v:amin(dim), v:nansum(dim)
                end, x)
            end)
        end
    end
end)

c.test("moments_and_norms", function()
    for _, dtype in ipairs(c.floats) do
        for k, x in ipairs(c.views(6, 35, dtype)) do
            each(x, function(dim, name)
                c.both(tostring(dtype) .. " " .. k .. " " .. name, function(v)
                    return v:mean(dim), v:var(dim), v:std(dim), tide.linalg.vector_norm(v, 2, dim),
                        tide.linalg.vector_norm(v, 1, dim), tide.linalg.vector_norm(v, 3, dim),
                        tide.linalg.vector_norm(v, math.huge, dim), tide.linalg.vector_norm(v, -math.huge, dim)
                end, x)
            end)
        end
    end
end)

c.test("sizes_that_cross_groups_and_pieces", function()
    for _, n in ipairs { 1, 31, 32, 33, 255, 256, 257, 1023, 1025, 70000 } do
        local x = c.numbers({ n }, tide.float32)
        c.both("all of " .. n, function(v) return v:sum(), v:mean(), v:var { correction = 0 }, v:amax() end, x)
        c.both("odd start of " .. n, function(v) return v:sum() end, c.numbers({ n + 3 }, tide.float16):narrow(1, 4, n))
        c.both("int of " .. n, function(v) return v:sum() end, c.numbers({ n }, tide.int32))
        c.both("columns of " .. n, function(v) return v:sum(1), v:std(1, { correction = 0 }) end,
            c.numbers({ n, 3 }, tide.float32))
        c.both("rows of " .. n, function(v) return v:sum(2), v:argmax(2), v:argmin(1) end, c.numbers({ 2, n }, tide.float32))
        c.both("place in " .. n, function(v) return v:argmax(), v:argmin() end, x)
    end
end)

c.test("several_dims_and_none", function()
    local x = c.numbers({ 3, 4, 5, 6 }, tide.float64)
    for _, dims in ipairs { { 1, 3 }, { 2, 4 }, { 1, 2, 4 }, { 3 }, { 1, 2, 3, 4 } } do
        local name = table.concat(dims, ",")
        c.both("dims " .. name, function(v) return v:sum(dims), v:var(dims), v:sum(dims, { keepdim = true }) end, x)
        c.both("permuted, dims " .. name, function(v) return v:sum(dims) end, x:permute(3, 1, 4, 2))
    end
    c.both("0-dim", function(v) return v:sum(), v:amax(), v:argmax() end, tide.tensor(2.5))
    c.both("nothing", function(v) return v:sum(), v:prod(), v:sum(1), v:sum(2), v:mean() end, tide.zeros(0, 3))
end)

c.test("other_dtypes_of_results", function()
    for _, dtype in ipairs(c.all) do
        local x = c.numbers({ 4, 37 }, dtype)
        for _, to in ipairs { tide.float32, tide.float64, tide.int64, tide.int8 } do
            c.both(tostring(dtype) .. " to " .. tostring(to), function(v)
                return v:sum(2, { dtype = to }), v:sum(1, { dtype = to })
            end, x)
        end
    end
end)

-- Columns read several at a time, and where these are not aligned one by one; rows with a head and a tail.
c.test("side_by_side", function()
    for _, dtype in ipairs(c.all) do
        for _, shape in ipairs { { 300, 24 }, { 2000, 8 }, { 70, 136 }, { 3, 1100 } } do
            local x = c.numbers({ shape[1], shape[2] + 8 }, dtype)
            for _, first in ipairs { 1, 2, 5 } do
                local view = x:narrow(2, first, shape[2])
                for dim = 1, 2 do
                    local what = ("%s, %d x %d from %d, dim %d"):format(dtype, shape[1], shape[2], first, dim)
                    c.both(what, function(v) return v:sum(dim), v:amax(dim), v:amin(dim), v:any(dim) end, view)
                    if dtype.is_floating_point then
                        c.both(what, function(v) return v:var(dim), v:norm(1, dim), v:norm(math.huge, dim) end, view)
                    end
                end
            end
        end
    end
end)

c.test("close_numbers_keep_their_variance", function()
    local x = tide.arange(5000, { dtype = tide.float64 }) % 7 * 1e-7 + 1e9
    c.both("rows", function(v) return v:var() end, x)
    c.both("columns", function(v) return v:var(1) end, x:reshape(1000, 5))
end)

c.test("norms_whose_squares_are_out_of_range", function()
    local inf, nan = math.huge, 0 / 0
    for _, row in ipairs { { 3e200, 4e200 }, { 3e-200, 4e-200 }, { 3e200, 4e-200, 1 }, { 1, 1e-170 }, { inf, 1 },
        { nan, inf }, { 0, -0.0 }, { 5e-324, 0 }, { 1e150, 1e160 } } do
        c.both(table.concat(row, " "), function(v) return tide.linalg.vector_norm(v) end,
            tide.tensor(row, { dtype = tide.float64 }))
    end
end)

c.test("places_of_extremes", function()
    for _, dtype in ipairs(c.all) do
        if tostring(dtype) ~= tostring(tide.bool) then
            for k, x in ipairs(c.views(11, 70, dtype, true)) do
                local what = tostring(dtype) .. " " .. k
                c.both(what, function(v) return v:argmax(), v:argmin() end, x)
                c.both(what, function(v) return v:argmax(1), v:argmin(2) end, x)
                c.both(what, function(v) return v:max(1) end, x)
                c.both(what, function(v) return v:min(2) end, x)
            end
        end
    end
    c.both("turned", function(v) return v:argmax() end, c.numbers({ 4, 5, 6 }, tide.int32):permute(3, 1, 2))
    c.both("equal ones", function(v) return v:argmax(), v:argmin(2) end, tide.zeros(3, 300))
    c.both("zeros of both signs", function(v) return v:argmax(), v:argmin() end, tide.tensor { -0.0, 0, -0.0 })
    c.both("many NaN", function(v) return v:argmax(), v:argmin() end, tide.full({ 20000 }, 0 / 0))
end)
