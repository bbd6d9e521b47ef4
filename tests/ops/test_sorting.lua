-- test_sorting.lua: lines so long that all threads order them together, and lines of lengths between, every dtype, NaN
-- and equal elements among them; what the golden values, which are short, can't show.
local t = require "harness"

local LONG = 300001
local DTYPES = { "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" }

-- Elements of which many are equal, in floats some NaN and zeros of both signs.
local function mixed(dtype, n)
    tide.manual_seed(7)
    local x = tide.randn(n, { dtype = tide.float64 }) * 30
    if not tide[dtype].is_floating_point then
        return (dtype == "uint8" and x:abs() or x):to(tide[dtype])
    end
    x = x:to(tide[dtype])
    x:slice(1, 5, n, 1009):fill_(0 / 0)
    x:slice(1, 2, n, 997):fill_(-0.0)
    x:slice(1, 3, n, 991):fill_(0.0)
    return x
end

-- NaN is not equal to itself: compared as another number.
local function plain(x)
    return x.dtype.is_floating_point and tide.where(x:isnan(), 77777, x:double()) or x
end

-- Are neighbours in order, NaN behind everything and equal ones as they stood?
local function check(x, values, at, descending)
    t.is_true(tide.equal(plain(values), plain(x:take(at))), "values are what stands at the indices")
    local n = values:numel()
    local a, b = values:slice(1, 1, n - 1), values:slice(1, 2, n)
    if descending then
        a, b = b, a
    end
    local floats = x.dtype.is_floating_point
    local rising = floats and a:lt(b) | (b:isnan() & a:isnan():logical_not()) or a:lt(b)
    local equal = floats and a:eq(b) | (a:isnan() & b:isnan()) or a:eq(b)
    local forward = at:slice(1, 1, n - 1):lt(at:slice(1, 2, n))
    t.is_true((rising | (equal & forward)):all():item(), "neighbours are in order, equal ones as they stood")
end

for _, dtype in ipairs(DTYPES) do
    local x = mixed(dtype, LONG)
    for _, descending in ipairs { false, true } do
        local name = dtype .. (descending and "_falling" or "_rising")
        t.test("a_long_line_of_" .. name .. "_is_sorted", function()
            local values, at = x:sort(1, descending)
            check(x, values, at, descending)
            t.eq(at:sum():item(), LONG * (LONG + 1) // 2, "every place is there once")
            t.is_true(tide.equal(at, x:argsort(1, descending)))
        end)
        t.test("the_first_of_a_long_line_of_" .. name, function()
            local values, at = x:sort(1, descending)
            for _, k in ipairs { 1, 10, 5000, LONG // 8, LONG - 1 } do
                local first, places = x:topk(k, 1, descending)
                t.is_true(tide.equal(places, at:slice(1, 1, k)), "indices of the first " .. k)
                t.is_true(tide.equal(plain(first), plain(values:slice(1, 1, k))), "the first " .. k)
            end
        end)
    end
    t.test("ranks_and_medians_of_a_long_line_of_" .. dtype, function()
        local values, at = x:sort()
        for _, k in ipairs { 1, 2, 1000, LONG // 2, LONG } do
            local value, place = x:kthvalue(k)
            t.eq(place:item(), at[k]:item(), "place of rank " .. k)
            t.is_true(tide.equal(plain(value), plain(values[k])), "rank " .. k)
        end
        local nans = x.dtype.is_floating_point and x:isnan():sum():item() or 0
        local middle, place = x:nanmedian(1)
        t.eq(place:item(), at[(LONG - nans - 1) // 2 + 1]:item(), "of what is not NaN")
        middle, place = x:median(1)
        t.eq(place:item(), nans > 0 and 5 or at[(LONG + 1) // 2]:item(), "of all")
        t.is_true(tide.equal(plain(middle), plain(x[place:item()])))
    end)
end

-- Sorts, first few, ranks and medians of one line, by what sort says, which is checked.
local function check_line(x, name)
    local n = x:numel()
    for _, descending in ipairs { false, true } do
        local values, at = x:sort(1, descending)
        t.eq(at:sum():item(), n * (n + 1) // 2, name .. ": every place is there once")
        if n > 1 then
            check(x, values, at, descending)
        end
        for _, k in ipairs { 1, (n + 15) // 16, (n + 3) // 4, (n + 1) // 2, n } do
            local first, places = x:topk(k, 1, descending)
            t.is_true(tide.equal(places, at:slice(1, 1, k)), name .. ": indices of the first " .. k)
            t.is_true(tide.equal(plain(first), plain(values:slice(1, 1, k))), name .. ": the first " .. k)
        end
    end
    local values, at = x:sort()
    for _, k in ipairs { 1, (n + 9) // 10, (n + 1) // 2, n - n // 7, n } do
        local value, place = x:kthvalue(k)
        t.eq(place:item(), at[k]:item(), name .. ": place of rank " .. k)
        t.is_true(tide.equal(plain(value), plain(values[k])), name .. ": rank " .. k)
    end
    local nan = x.dtype.is_floating_point and x:isnan() or tide.zeros(n, { dtype = tide.bool })
    local nans = nan:sum():item()
    local middle, place = x:median(1)
    t.eq(place:item(), nans > 0 and nan:nonzero():min():item() or at[(n + 1) // 2]:item(), name .. ": median")
    t.is_true(tide.equal(plain(middle), plain(x:median())), name .. ": median of all")
    middle, place = x:nanmedian(1)
    t.eq(place:item(), at[nans < n and (n - nans - 1) // 2 + 1 or 1]:item(), name .. ": median of what is not NaN")
    t.is_true(tide.equal(plain(middle), plain(x:nanmedian())), name .. ": nanmedian of all")
end

for _, dtype in ipairs(DTYPES) do
    t.test("lines_of_any_length_of_" .. dtype, function()
        for _, n in ipairs { 1, 2, 8, 17, 24, 25, 100, 129, 257, 1000, 2048, 4096, 4097, 9001 } do
            check_line(mixed(dtype, math.max(n, 5)):slice(1, 1, n), tostring(n))
        end
    end)
end

t.test("what_differs_in_its_lowest_bits_alone_is_sorted", function()
    tide.manual_seed(11)
    for _, n in ipairs { 7, 90, 1000, 5000 } do
        local low = tide.randint(0, 5 * n, { n })
        for _, high in ipairs { 1, 3, n // 4, n } do
            local base = tide.randint(0, high + 1, { n })
            check_line(base * (1 << 40) + low, "int64 of " .. high .. " upper halves")
            check_line((base - high // 2) * (1 << 58) + low * 3, "int64 of " .. high .. " that lie far apart")
            check_line((base - high // 2):double() + low:double() * 2 ^ -45, "float64 of " .. high .. " whole parts")
        end
    end
end)

t.test("ranks_where_one_element_is_most_of_the_line", function()
    tide.manual_seed(12)
    for _, n in ipairs { 40, 3000, 50000 } do
        for _, share in ipairs { 0.5, 0.99 } do
            local x = tide.where(tide.rand(n):lt(share), 3, tide.randint(0, 7, { n }))
            check_line(x, "int64")
            check_line(x:double(), "float64")
        end
    end
    check_line(tide.full({ 3000 }, 5), "all equal")
    check_line(tide.full({ 3000 }, 0 / 0), "all NaN")
    check_line(tide.arange(0, 5000), "rising")
    check_line(tide.arange(5000, 0, -1, { dtype = tide.float64 }), "falling")
    check_line(tide.tensor { math.mininteger, math.maxinteger, 0, -1, math.mininteger, 1 }:rep(300), "extremes")
end)

t.test("sorts_do_not_depend_on_the_number_of_threads", function()
    local x, before = mixed("float32", LONG), tide.get_num_threads()
    local _, many = x:sort()
    local _, some = x:topk(700)
    tide.set_num_threads(1)
    local _, one = x:sort()
    local _, few = x:topk(700)
    tide.set_num_threads(before)
    t.is_true(tide.equal(many, one))
    t.is_true(tide.equal(some, few))
end)

t.test("integers_that_span_their_range_are_sorted", function()
    local x = (tide.randn(LONG, { dtype = tide.float64 }) * 2 ^ 62):clamp(-2 ^ 62, 2 ^ 62):to(tide.int64) * 2
    x[7], x[8] = math.mininteger, math.maxinteger
    local values, at = x:sort()
    check(x, values, at, false)
    t.eq(at[1]:item(), 7)
    t.eq(x:kthvalue(LONG - 1):item(), values[LONG - 1]:item())
    t.eq(values[-1]:item(), math.maxinteger)
end)

t.test("a_line_that_is_all_equal_keeps_its_order", function()
    local x = tide.full({ LONG }, 3)
    local _, at = x:sort(1, true)
    t.is_true(tide.equal(at, tide.arange(1, LONG + 1)))
    local _, middle = x:median(1)
    t.eq(middle:item(), (LONG + 1) // 2)
    local _, few = x:topk(9)
    t.eq(few:tolist(), { 1, 2, 3, 4, 5, 6, 7, 8, 9 })
end)

t.test("several_long_lines_and_lines_across", function()
    local x = tide.randn(3, 140000)
    local rows, at = x:sort(2)
    local columns, across = x:t():contiguous():sort(1)
    t.is_true(tide.equal(rows, columns:t()))
    t.is_true(tide.equal(at, across:t()))
    t.is_true(tide.equal(x:kthvalue(70000, 2), rows:select(2, 70000)))
end)

t.test("unique_of_a_long_line_gives_it_back", function()
    local x = mixed("int32", LONG)
    local values, inverse, counts = x:unique { return_inverse = true, return_counts = true }
    t.is_true(tide.equal(values:take(inverse), x))
    t.eq(counts:sum():item(), LONG)
    t.is_true(tide.equal(tide.bincount(inverse), counts))
end)

t.test("rows_that_are_many_are_unique", function()
    local x = mixed("int16", 90000):reshape(30000, 3) // 12
    local rows, inverse, counts = x:unique { return_inverse = true, return_counts = true, dim = 1 }
    t.is_true(tide.equal(rows:index_select(1, inverse), x))
    t.eq(counts:sum():item(), 30000)
    local key = (rows[":, 1"]:long() * 1000 + rows[":, 2"]) * 1000 + rows[":, 3"]
    t.is_true(key:diff():gt(0):all():item(), "in order, none twice")
end)

t.test("the_median_of_nothing_is_nan_or_the_least_number", function()
    local nothing = tide.zeros(0):median():item()
    t.is_true(nothing ~= nothing)
    t.eq(tide.zeros(0, { dtype = tide.int64 }):median():item(), math.mininteger)
    t.eq(tide.zeros(0, { dtype = tide.int8 }):median():item(), -128)
    t.eq(tide.zeros(0, { dtype = tide.uint8 }):median():item(), 0)
end)

-- What a table of Lua counts; each NaN is met once.
local function counted_mode(list)
    local counts, best, place = {}, nil, nil
    for k, v in ipairs(list) do
        local n = v == v and (counts[v] or 0) + 1 or 1
        if v == v then counts[v] = n end
        local lead = best and counts[best] or best and 1 or 0
        if not best or n > lead or n == lead and (best ~= best and v == v or v <= best) then
            best, place = v, k
        end
    end
    return best, place
end

t.test("modes_are_what_is_met_most_often", function()
    tide.manual_seed(3)
    for _, n in ipairs { 1, 2, 3, 7, 37, 1000, 4096, 4097, 9000 } do
        for _, dtype in ipairs { "int64", "float64", "float32", "float16", "uint8" } do
            local kinds = dtype == "uint8" and 256 or n < 40 and 9 or n // 3
            local x = (tide.rand(3, n) * kinds):floor()
            if dtype ~= "uint8" then x = x - kinds // 2 end
            x = x:to(dtype)
            if x:is_floating_point() and n > 3 then x["2, :3"] = 0 / 0 end
            local values, places = x:mode()
            for line = 1, 3 do
                local best, place = counted_mode(x[line]:tolist())
                t.eq(values[line]:item(), best, dtype .. " " .. n)
                t.eq(places[line]:item(), place, dtype .. " " .. n)
            end
        end
    end
end)

t.test("modes_of_lines_of_nan_and_zeros_are_pytorchs", function()
    local nan = 0 / 0
    for _, n in ipairs { 2, 5000 } do
        local values, places = tide.full({ n }, nan):mode()
        t.is_true(values:isnan():item())
        t.eq(places:item(), 1)
        local zeros = tide.zeros(n)
        zeros[n] = -0.0
        values, places = zeros:mode()
        t.eq(1 / values:item(), -math.huge, "the last one that stands there")
        t.eq(places:item(), n)
    end
end)

t.test("the_gradient_of_modes_goes_to_where_they_stand", function()
    local x = tide.tensor({ { 1., 2., 2. }, { 3., 3., 1. } }):requires_grad_()
    local values, places = x:mode(2, true)
    t.eq(places:tolist(), { { 3 }, { 2 } })
    values:sum():backward()
    t.eq(x.grad:tolist(), { { 0, 0, 1 }, { 0, 1, 0 } })
end)

t.test("results_are_those_that_were_asked_for_in_order", function()
    local x, two = tide.tensor { 2, 1, 1, 2 }, { unique = { 1, 2 }, unique_consecutive = { 2, 1, 2 } }
    local inverse, counts = { unique = { 2, 1, 1, 2 }, unique_consecutive = { 1, 2, 2, 3 } },
        { unique = { 2, 2 }, unique_consecutive = { 1, 2, 1 } }
    for name, values in pairs(two) do
        for _, asked in ipairs { {}, { "return_counts" }, { "return_inverse" }, { "return_inverse", "return_counts" } } do
            local options, want = {}, { values }
            for _, option in ipairs(asked) do
                options[option] = true
                want[#want + 1] = (option == "return_counts" and counts or inverse)[name]
            end
            for _, dim in ipairs { 0, 1 } do
                options.dim = dim > 0 and dim or nil
                local got = table.pack(tide[name](x, options))
                t.eq(got.n, #want, name)
                for k = 1, got.n do
                    t.eq(got[k]:tolist(), want[k], name .. " " .. table.concat(asked, " "))
                end
            end
        end
    end
end)

-- Long ones are counted piece by piece.
t.test("histograms_of_many_elements_or_of_many_bins_miss_none", function()
    local n = 70001
    local x = tide.arange(0, n):to(tide.float64):reshape(1, n)
    local function same(bins, low, high, want)
        t.eq(x:histc(bins, low, high):tolist(), want)
        t.eq(tide.cat({ x, x }):t():histc(bins, low, high):tolist(), (tide.tensor(want) * 2):tolist())
    end
    same(7, 0, 70000, { 10000, 10000, 10000, 10000, 10000, 10000, 10001 })
    same(2, 32767, 32769, { 1, 2 })
    same(1, 70001, 70002, { 0 })
    t.is_true(x:histc(n):eq(1):all():item(), "as many bins as elements")
    t.eq(x:histc(100000, 0, 100000):sum():item(), n)
end)

t.test("wrong_calls_say_what_is_wrong", function()
    local x = tide.randn(3, 4)
    t.error_has(function() x:topk(5) end, "topk: k must be from 0 to the size of dim 2, 4; got 5")
    t.error_has(function() x:kthvalue(0) end, "kthvalue: k must be from 1 to the size of dim 2, 4; got 0")
    t.error_has(function() tide.zeros(2, 0):median(2) end, "median: dim 2 of shape (2, 0) is empty")
    t.error_has(function() tide.zeros(2, 0):mode() end, "mode: dim 2 of shape (2, 0) is empty")
    t.error_has(function() x:quantile(1.5) end, "quantile: q must lie between 0 and 1")
    t.error_has(function() x:quantile(0.5, { interpolation = "cubic" }) end, "got 'cubic'")
    t.error_has(function() tide.zeros(0):quantile(0.5) end, "quantile: x must not be empty")
    t.error_has(function() tide.tensor({ 1, 0 }):bincount() end, "count from 1")
    t.error_has(function() tide.tensor({ 1, -1 }):bincount() end, "bincount: numbers that are counted must not be")
    t.error_has(function() tide.searchsorted(x, tide.randn(2, 4)) end, "searchsorted: values of shape (2, 4) don't fit")
    t.error_has(function() tide.searchsorted(tide.randn(3), 1, { side = "up" }) end, "got 'up'")
    t.error_has(function() tide.searchsorted(tide.randn(3), 1, { side = "left", right = true }) end, "right is true")
    t.error_has(function() tide.zeros(0, 3):unique { dim = 2 } end, "dim 1 of shape (0, 3) is empty")
    t.error_has(function() tide.tensor({ 1, math.huge }):histc() end, "histc: the range from 1 to inf is not finite")
    t.error_has(function() tide.zeros(2, 2, 2):cov() end, "cov: x must have at most two dims, got 3")
    t.error_has(function() x:cov { fweights = tide.ones(4) } end, "cov: fweights must hold integers, got float32")
    t.error_has(function() tide.tensor(1.5):diff() end, "diff: x must have a dim")
    t.error_has(function() tide.zeros(3):renorm(2, 1, 1) end, "renorm: x must have two dims or more, got 1")
end)

t.test("a_hundred_million_ones_are_summed_exactly", function()
    t.eq(tide.ones(1):expand(100000000):sum():item(), 1e8)
end)

-- NaN is sorted last, and found there.
t.test("searches_know_where_sorting_puts_nan", function()
    local nan, inf = 0 / 0, math.huge
    for _, name in ipairs { "float64", "float32", "float16", "bfloat16" } do
        local dtype = { dtype = tide[name] }
        local s = tide.tensor({ 3, nan, 1, 2, nan }, dtype):sort()
        local v = tide.tensor({ 0, 1, 1.5, 3, 4, inf, -inf, nan }, dtype)
        local left, right = { 1, 1, 2, 3, 4, 4, 1, 4 }, { 1, 2, 2, 4, 4, 4, 1, 6 } -- NumPy's, from 1
        t.eq(tide.searchsorted(s, v):tolist(), left, name)
        t.eq(tide.searchsorted(s, v, { right = true }):tolist(), right, name)
        t.eq(tide.searchsorted(s:expand(2, 5), v:expand(2, 8)):tolist(), { left, left }, name .. " in lines")
        t.eq(tide.bucketize(v, s, { right = true }):tolist(), right, name .. " in buckets")
        local given, order = tide.tensor({ 3, nan, 1, 2, nan }, dtype):sort()
        t.is_true(given:size(1) == 5)
        t.eq(tide.searchsorted(tide.tensor({ 3, nan, 1, 2, nan }, dtype), v, { sorter = order }):tolist(), left, name .. " by a sorter")
    end
end)
