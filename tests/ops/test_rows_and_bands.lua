-- test_rows_and_bands.lua: rows added and reduced at places, and bands of matrices, in every dtype and layout, against
-- what single elements give.
local t = require "harness"

local DTYPES = { "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" }

local function numbers(dtype, shape)
    local x = tide.randint(0, dtype == "bool" and 2 or 9, shape)
    if tide[dtype].is_floating_point then
        x = x:double() / 4 - 1
        x:masked_fill_(tide.rand(shape):lt(0.05), 0 / 0)
        x:masked_fill_(tide.rand(shape):lt(0.05), -0.0)
    end
    return x:to(tide[dtype])
end

-- Bits of elements, so that zeros of two signs differ; NaN is one.
local function same(a, b, what)
    t.eq(a.shape, b.shape, what)
    if a.dtype.is_floating_point then
        t.is_true(tide.equal(a:isnan(), b:isnan()), what)
        t.is_true(tide.equal(a:signbit() & a:isnan():logical_not(), b:signbit() & b:isnan():logical_not()), what)
        a, b = a:nan_to_num(77):double(), b:nan_to_num(77):double()
    end
    t.is_true(tide.equal(a, b), what)
end

-- x itself, across, with gaps, and with its last dim in front.
local function layouts(x)
    local n = x:dim()
    local gaps = tide.zeros(2 * x:size(1), table.unpack(x.shape, 2, n)):to(x.dtype)
    local part = gaps:slice(1, 1, 2 * x:size(1), 2)
    part:copy_(x)
    local behind = x:movedim(1, -1):contiguous():movedim(-1, 1)
    return { x, x:transpose(-1, -2):contiguous():transpose(-1, -2), part, behind }
end

-- scatter of one source element after the other, each with a write of its own.
local function one_by_one(x, index, source, how)
    local y = x:contiguous():clone()
    for k, row in ipairs(index:tolist()) do
        local old, new = y[row], source[k]
        local wide = old.dtype == tide.bool and tide.int32 or old.dtype
        if how == "sum" then
            y[row] = (old:to(wide) + new:to(wide)):to(old.dtype)
        elseif how == "prod" then
            y[row] = (old:to(wide) * new:to(wide)):to(old.dtype)
        else
            local wins = how == "amax" and old:gt(new) or how == "amin" and old:lt(new)
            y[row] = tide.where(wins | old:ne(old), old, new)
        end
    end
    return y
end

for _, dtype in ipairs(DTYPES) do
    t.test("rows_of_" .. dtype .. "_at_places_that_are_named_twice", function()
        tide.manual_seed(41)
        for _, shape in ipairs { { 7, 3 }, { 6, 37 }, { 5, 4, 33 } } do
            local index = tide.randint(1, shape[1] + 1, { 2 * shape[1] })
            local x = numbers(dtype, shape)
            local source = numbers(dtype, { 2 * shape[1], table.unpack(shape, 2) })
            for a, here in ipairs(layouts(x)) do
                for b, from in ipairs(layouts(source)) do
                    local name = ("%s of %s, layouts %d and %d"):format(dtype, tostring(x.shape), a, b)
                    same(here:index_add(1, index, from), one_by_one(x, index, source, "sum"), "index_add, " .. name)
                    for _, how in ipairs { "prod", "amax", "amin" } do
                        same(here:index_reduce(1, index, from, how), one_by_one(x, index, source, how), how .. ", " .. name)
                    end
                end
            end
        end
    end)

    t.test("one_row_of_" .. dtype .. "_for_all_places", function()
        tide.manual_seed(44)
        local x = numbers(dtype, { 6, 5, 37 })
        local index, row, number = tide.tensor { 2, 5, 2, -1 }, numbers(dtype, { 5, 37 }), numbers(dtype, {})
        local many = row:expand(4, 5, 37)
        for k, here in ipairs(layouts(x)) do
            local want = here:contiguous():clone()
            for _, at in ipairs { 2, 5, 6 } do
                want[at] = number
            end
            local name = dtype .. ", layout " .. k
            same(here:index_fill(1, index, number), want, "index_fill, " .. name)
            same(here:index_put({ index }, number), want, "a number, " .. name)
            same(here:index_put({ index }, row), here:index_copy(1, index, many:clone()), "a row, " .. name)
            same(here:index_put({ index }, row:unsqueeze(1)), here:index_copy(1, index, many:clone()), "of 3 dims, " .. name)
            same(here:index_put({ index }, row, true), here:index_add(1, index, many:clone()), "added, " .. name)
            same(here:transpose(1, 2):index_fill(2, index, number), want:transpose(1, 2), "across, " .. name)
        end
    end)

    t.test("elements_of_" .. dtype .. "_added_along_a_line", function()
        tide.manual_seed(42)
        local x, source = numbers(dtype, { 3, 50 }), numbers(dtype, { 3, 90 })
        local index = tide.randint(1, 51, { 3, 90 })
        local want = {}
        for row = 1, 3 do
            want[row] = one_by_one(x[row]:unsqueeze(-1), index[row], source[row]:unsqueeze(-1), "sum"):squeeze(-1)
        end
        want = tide.stack(want)
        for _, here in ipairs(layouts(x)) do
            for _, from in ipairs(layouts(source)) do
                same(here:scatter_add(2, index, from), want, dtype)
                same(here:scatter_add(2, tide.where(index:gt(25), index - 51, index), from), want, dtype .. " from the end")
                same(here:t():scatter_add(1, index:t(), from:t()), want:t(), dtype .. " across")
            end
        end
    end)

    t.test("elements_of_" .. dtype .. "_added_along_short_lines", function()
        tide.manual_seed(45)
        for _, places in ipairs { 1, 5, 64, 65 } do
            local x, source = numbers(dtype, { 40, 3 }), numbers(dtype, { 40, places })
            local index = tide.randint(1, 4, { places })
            local want = one_by_one(x:t(), index, source:t(), "sum"):t()
            for a, here in ipairs(layouts(x)) do
                for b, from in ipairs(layouts(source)) do
                    local name = ("%d places of %s, layouts %d and %d"):format(places, dtype, a, b)
                    same(here:index_add(2, index, from), want, name)
                    same(here:index_put({ tide.arange(1, 41):unsqueeze(-1), index }, from, true), want, "put, " .. name)
                end
            end
        end
    end)

    t.test("bands_of_" .. dtype, function()
        tide.manual_seed(43)
        for _, shape in ipairs { { 1, 1 }, { 4, 9 }, { 9, 4 }, { 3, 5, 6 }, { 2, 2, 7, 3 }, { 40, 3 }, { 150, 3, 5 } } do
            local x = numbers(dtype, shape)
            local rows, columns = shape[#shape - 1], shape[#shape]
            local distance = tide.arange(0, columns):unsqueeze(1) - tide.arange(0, rows):unsqueeze(2)
            local zero = tide.zeros(shape):to(x.dtype)
            for diagonal = -rows - 2, columns + 2 do
                local lower = tide.where(distance:le(diagonal), x, zero)
                local upper = tide.where(distance:ge(diagonal), x, zero)
                for k, here in ipairs(layouts(x)) do
                    local name = ("%s of %s, diagonal %d, layout %d"):format(dtype, tostring(x.shape), diagonal, k)
                    same(here:tril(diagonal), lower, "tril, " .. name)
                    same(here:triu(diagonal), upper, "triu, " .. name)
                    same(layouts(x:clone())[k]:tril_(diagonal), lower, "tril_, " .. name)
                    same(layouts(x:clone())[k]:triu_(diagonal), upper, "triu_, " .. name)
                end
            end
            same(x:tril(math.maxinteger), x)
            same(x:triu(math.mininteger), x)
            same(x:triu(math.maxinteger), zero)
            same(x:tril(math.mininteger), zero)
        end
    end)
end

-- Rows of so many elements that all ways of moving them are met.
for _, dtype in ipairs { "int8", "bfloat16", "float32", "float64" } do
    t.test("short_rows_of_" .. dtype .. "_are_read_and_set", function()
        tide.manual_seed(45)
        for _, width in ipairs { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 33, 65 } do
            local x, index = numbers(dtype, { 30, width }), tide.randint(1, 31, { 50 })
            local rows, set = {}, x:clone()
            for k = 1, 50 do
                local at = index[k]:item()
                rows[k] = x[at]
                set[at] = 3
            end
            local name = dtype .. ", " .. width
            same(x:index_select(1, index), tide.stack(rows), "index_select, " .. name)
            same(x:index_fill(1, index, 3), set, "index_fill, " .. name)
            local copied = tide.zeros_like(x):index_copy(1, index, tide.stack(rows))
            same(copied:index_select(1, index), tide.stack(rows), "index_copy, " .. name)
            same(tide.stack { x, x }:index_fill(2, index, 3), tide.stack { set, set }, "index_fill of two, " .. name)
        end
    end)

    t.test("extremes_of_few_columns_of_" .. dtype, function()
        tide.manual_seed(46)
        for _, columns in ipairs { 1, 2, 3, 6, 31, 32, 33 } do
            for _, rows in ipairs { 100, 1001, 5003 } do
                local x = tide.randint(0, 100, { rows, columns }):to(tide[dtype])
                if x.dtype.is_floating_point then
                    x[rows // 2][1], x[rows - 1][columns] = 0 / 0, 0 / 0
                end
                local lines = x:t():contiguous()
                for _, how in ipairs { "max", "min" } do
                    local values, places = x[how](x, 1)
                    local want, at = lines[how](lines, 2)
                    local name = ("%s, %d x %d"):format(how, rows, columns)
                    same(values, want, name)
                    t.is_true(tide.equal(places, at), name)
                end
            end
        end
    end)
end

for _, dtype in ipairs(DTYPES) do
    t.test("running_extremes_of_few_columns_of_" .. dtype, function()
        tide.manual_seed(48)
        for _, shape in ipairs { { 1, 2 }, { 9000, 3 }, { 513, 8 }, { 3, 70, 7 }, { 5, 40, 9 } } do
            local x = numbers(dtype, shape)
            local lines = x:transpose(-1, -2):contiguous()
            for _, how in ipairs { "cummax", "cummin" } do
                local values, places = x[how](x, #shape - 1)
                local want, at = lines[how](lines, #shape)
                local name = how .. " of " .. tostring(x.shape)
                same(values, want:transpose(-1, -2), name)
                t.is_true(tide.equal(places, at:transpose(-1, -2)), name)
            end
        end
    end)
end

for dtype, limit in pairs { float32 = 1e-5, float64 = 1e-13, float16 = 2e-3, bfloat16 = 2e-2 } do
    t.test("short_rows_of_" .. dtype .. "_are_normalised", function()
        tide.manual_seed(47)
        for _, n in ipairs { 1, 2, 3, 6, 16, 17, 32, 33 } do
            for _, rows in ipairs { 1, 63, 64, 65, 200 } do
                local x = (tide.randn(rows, n) + 2):to(tide[dtype])
                local w, b = (tide.rand(n) + 0.5):to(x.dtype), tide.rand(n):to(x.dtype)
                local wide = x:double()
                local mean = wide:mean(2, { keepdim = true })
                local var = (wide - mean):square():mean(2, { keepdim = true })
                local y = tide.layer_norm(x, { n }, w, b, 0.1)
                local name = ("%s of %d x %d"):format(dtype, rows, n)
                local want = (wide - mean) / (var + 0.1):sqrt() * w:double() + b:double()
                t.is_true(tide.allclose(y:double(), want, { rtol = limit, atol = 4 * limit }), "layer_norm, " .. name)
                want = wide / (wide:square():mean(2, { keepdim = true }) + 0.1):sqrt()
                t.is_true(tide.allclose(tide.rms_norm(x, { n }, nil, 0.1):double(), want, { rtol = limit, atol = limit }), name)
                same(tide.layer_norm(x[rows], { n }, w, b, 0.1), y[rows], "one row alone, " .. name)
            end
        end
        local same_all = tide.full({ 70, 5 }, 0.1):to(tide[dtype])
        t.is_true(tide.equal(tide.layer_norm(same_all, { 5 }), tide.zeros_like(same_all)), "rows of one number")
    end)
end

t.test("a_band_may_be_written_over_what_it_is_read_from", function()
    local memory = tide.rand(9, 8)
    local x, out = memory:slice(1, 1, 8), memory:slice(1, 2, 9)
    local want = x:clone():tril(1)
    tide.tril(x, 1, { out = out })
    t.is_true(tide.equal(out, want))
end)

t.test("a_part_is_written_into_a_copy_that_lies_as_the_tensor_does", function()
    local x = tide.rand(5, 4):t()
    t.eq(x:select_scatter(tide.zeros(5), 1, 2):stride(), x:stride())
    t.eq(x:slice_scatter(tide.zeros(4, 2), 2, 1, 2):stride(), x:stride())
    t.eq(x:diagonal_scatter(tide.zeros(4)):stride(), x:stride())
    local source = tide.rand(4, 5)
    t.is_true(tide.equal(x:slice_scatter(source), source))
    t.is_true(tide.equal(x:slice_scatter(source[":, 1:2"], 2, 1, 2), tide.cat({ source[":, 1:2"], x[":, 3:5"] }, 2)))
end)

-- ---- elements some steps apart ----

t.test("elements_some_steps_apart_are_picked_and_put", function()
    for _, dtype in ipairs { "uint8", "bfloat16", "float32", "float64" } do
        for step = 2, 9 do
            for _, n in ipairs { 1, 2, 7, 16, 33, 64, 130 } do
                local x = tide.arange(n * step):remainder(251):to(tide[dtype]):reshape(n, step)
                for _, column in ipairs { 1, step } do
                    local want = {}
                    for k = 0, n - 1 do
                        want[k + 1] = (k * step + column - 1) % 251
                    end
                    local part = x:select(2, column)
                    t.eq(part:contiguous():tolist(), want, ("%s, %d of step %d"):format(dtype, n, step))
                    local to = tide.zeros(n, step):to(tide[dtype])
                    to:select(2, column):copy_(part:contiguous())
                    t.eq(to:select(2, column):tolist(), want)
                    t.eq(to:double():sum():item(), part:double():sum():item(), "nothing beside them is written")
                end
            end
        end
    end
end)

-- ---- few elements behind each result ----

-- What reductions make of a list of numbers, one number after the other.
local function reduce_list(list)
    local first = tonumber(list[1]) or 0 -- bools are no extremes
    local r = { sum = 0, prod = 1, amax = first, amin = first, any = false, all = true, count_nonzero = 0, norm = 0 }
    for _, v in ipairs(list) do
        v = v == true and 1 or v or 0
        r.sum, r.prod, r.norm = r.sum + v, r.prod * v, r.norm + v * v
        r.amax = (v ~= v or v > r.amax) and v or r.amax
        r.amin = (v ~= v or v < r.amin) and v or r.amin
        r.any, r.all = r.any or v ~= 0, r.all and v ~= 0
        r.count_nonzero = r.count_nonzero + (v ~= 0 and 1 or 0)
    end
    r.mean, r.norm = r.sum / #list, math.sqrt(r.norm)
    return r
end

for _, dtype in ipairs(DTYPES) do
    t.test("reductions_of_short_rows_of_" .. dtype, function()
        tide.manual_seed(49)
        local floating = tide[dtype].is_floating_point
        local names = { "sum", "prod", "any", "all", "count_nonzero" }
        if dtype ~= "bool" then
            table.move({ "amax", "amin" }, 1, 2, #names + 1, names)
        end
        if floating then
            table.move({ "mean", "norm" }, 1, 2, #names + 1, names)
        end
        for _, n in ipairs { 1, 2, 3, 4, 5, 8, 16, 17, 33, 70 } do
            local x = numbers(dtype, { 7, 20, n })
            local want = {}
            for k, list in ipairs(x:reshape(140, n):tolist()) do
                for name, value in pairs(reduce_list(list)) do
                    want[name] = want[name] or {}
                    want[name][k] = value
                end
            end
            local running = {}
            for k, list in ipairs(x:reshape(140, n):tolist()) do
                local sum = 0
                for at, v in ipairs(list) do
                    sum = sum + (v == true and 1 or v or 0)
                    list[at] = sum
                end
                running[k] = list
            end
            local near = { rtol = dtype == "bfloat16" and 1e-2 or dtype == "float16" and 2e-3 or 1e-5, equal_nan = true }
            local all = layouts(x)
            all[#all + 1] = x:transpose(1, 2):contiguous():transpose(1, 2)
            all[#all + 1] = x:flip(3):contiguous():flip(3)
            for at, y in ipairs(all) do
                local sums = tide.tensor(running, { dtype = tide.float64 }):reshape(7, 20, n)
                local what = ("cumsum of %s, rows of %d, layout %d"):format(dtype, n, at)
                t.is_true(tide.allclose(y:cumsum(3):double(), sums, near), what)
                for _, name in ipairs(names) do
                    local got = name == "norm" and y:norm(2, 3) or y[name](y, 3)
                    local expected = tide.tensor(want[name]):reshape(7, 20):to(got.dtype)
                    local what = ("%s of %s, rows of %d, layout %d"):format(name, dtype, n, at)
                    if not got.dtype.is_floating_point or name == "amax" or name == "amin" then
                        t.is_true(tide.equal(got:isnan(), expected:isnan()), what)
                        t.is_true(tide.equal(got:nan_to_num(77), expected:nan_to_num(77)), what)
                    else
                        t.is_true(tide.allclose(got:double(), expected:double(), near), what)
                    end
                    t.is_true(name ~= "sum" or not tide.any(got:eq(0) & got:signbit()):item(), what .. ": 0 is +0")
                end
            end
        end
    end)
end

-- ---- writes on several threads ----

t.test("places_named_twice_come_out_the_same_on_any_number_of_threads", function()
    local function writes()
        tide.manual_seed(7)
        local got = {}
        for _, how in ipairs { { { 60, 700 }, 1 }, { { 60, 700 }, 2 }, { { 5, 9, 1100 }, 2 }, { { 5, 3000, 3 }, 2 }, { { 40, 30, 40 }, 3 } } do
            local shape, dim = how[1], how[2]
            local x, source = tide.randn(shape), tide.randn(shape)
            local index = tide.randint(1, math.min(shape[dim], 6) + 1, shape)
            got[#got + 1] = x:scatter_add(dim, index, source)
            got[#got + 1] = x:scatter(dim, index, source)
            got[#got + 1] = x:scatter_reduce(dim, index, source, "amax")
        end
        local x, source = tide.randn(300, 70), tide.randn(2000, 70)
        local index = tide.randint(1, 301, { 2000 })
        got[#got + 1] = x:index_add(1, index, source)
        got[#got + 1] = x:index_copy(1, index, source)
        got[#got + 1] = x:t():contiguous():t():index_add(1, index, source)
        got[#got + 1] = x:index_fill(1, index, 3)
        got[#got + 1] = x:index_add(1, index, source:bfloat16():to(tide.float32), { alpha = 2 })
        return got
    end
    local before = tide.get_num_threads()
    tide.set_num_threads(1)
    local want = writes()
    for _, threads in ipairs { 2, 3, 8 } do
        tide.set_num_threads(threads)
        for k, x in ipairs(writes()) do
            t.is_true(tide.equal(x, want[k]), ("write %d on %d threads"):format(k, threads))
        end
    end
    tide.set_num_threads(before)
end)

-- ---- where extremes are ----

-- The first of the largest (the smallest), or of what is not a number.
local function place_of(list, smallest)
    local best = 1
    for k = 2, #list do
        local v, b = list[k], list[best]
        if b == b and (v ~= v or (smallest and v < b) or (not smallest and v > b)) then
            best = k
        end
    end
    return best
end

for _, dtype in ipairs { "float16", "bfloat16", "float32", "float64", "int64" } do
    t.test("places_of_extremes_of_rows_of_" .. dtype, function()
        tide.manual_seed(50)
        for _, n in ipairs { 2, 31, 33, 64, 65, 100, 128, 129, 140, 300 } do
            local x = (tide.randn(21, n, { dtype = tide.float64 }) * 9):to(tide[dtype]) -- many are equal
            if x.dtype.is_floating_point then
                x:slice(1, 3, 21, 5):slice(2, 1 + n // 3, n, 7):fill_(0 / 0)
                x:slice(1, 4, 21, 5):trunc_()
                x:slice(1, 5, 21, 5):fill_(-math.huge)
            end
            local largest, smallest = {}, {}
            for k, list in ipairs(x:tolist()) do
                largest[k], smallest[k] = place_of(list), place_of(list, true)
            end
            for _, way in ipairs { x, x:t():contiguous():t() } do
                local values, places = way:max(2)
                t.eq(places:tolist(), largest, dtype .. " max of " .. n)
                t.is_true(tide.allclose(values, x:gather(2, places:unsqueeze(2)):squeeze(2), { equal_nan = true }))
                t.eq(way:argmin(2):tolist(), smallest, dtype .. " argmin of " .. n)
            end
        end
    end)
end
