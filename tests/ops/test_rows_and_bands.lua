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

    t.test("bands_of_" .. dtype, function()
        tide.manual_seed(43)
        for _, shape in ipairs { { 1, 1 }, { 4, 9 }, { 9, 4 }, { 3, 5, 6 }, { 2, 2, 7, 3 } } do
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
