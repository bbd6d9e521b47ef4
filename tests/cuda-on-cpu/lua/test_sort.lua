-- test_sort.lua: orders on the device against the CPU: sorts, ranks, rows, places, random orders.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("sort", "no CUDA device")
    return
end

tide.manual_seed(3)

local NUMBERS = table.move(both.ALL, 2, #both.ALL, 1, {}) -- all but bool

-- Elements with many equal ones; floats with zeros of both signs, infinities and NaN.
local function mixed(dtype, ...)
    local x = both.elements(dtype, ...)
    if dtype:find("float", 1, true) then
        x = tide.where(x:eq(2), tide.tensor(0 / 0, { dtype = dtype }), x)
        x = tide.where(x:eq(3), tide.tensor(1 / 0, { dtype = dtype }), x)
        x = tide.where(x:eq(-3), tide.tensor(-1 / 0, { dtype = dtype }), x)
        x = tide.where(x:eq(1), tide.tensor(-0.0, { dtype = dtype }), x)
    end
    return x
end

-- Signs of zeros too.
local function bits(values, index)
    return values, index, values:signbit():logical_and(values:eq(0))
end

local function all_orders(x)
    for dim = 1, math.max(1, x:dim()) do
        for _, descending in ipairs { false, true } do
            both.same(function(x) return bits(x:sort(dim, { descending = descending, stable = true })) end, x)
        end
    end
end

t.test("sorts_of_every_dtype_and_form", function()
    both.reset()
    for _, dtype in ipairs(both.ALL) do
        for _, x in ipairs(both.forms(mixed(dtype, 5, 37, 3))) do
            all_orders(x)
        end
        both.same(function(x) return x:argsort(1, { stable = true }) end, mixed(dtype, 300))
    end
    if both.launches("") then
        t.is_true(both.launches("td_sort_short") > 0, "its kernel ran")
    end
end)

t.test("limits_of_tiles", function()
    for _, n in ipairs { 1, 2, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 70000 } do
        all_orders(mixed("float32", n))
        all_orders(mixed("int64", n))
        all_orders(mixed("bfloat16", n))
    end
    all_orders(mixed("float32", 700, 3))
    all_orders(tide.randn(9000))
end)

t.test("long_lines_of_every_dtype", function()
    both.reset()
    for _, dtype in ipairs(both.ALL) do
        all_orders(mixed(dtype, 3, 2500))
        all_orders(mixed(dtype, 2500, 5))
        all_orders(mixed(dtype, 4000))
    end
    all_orders(tide.randn(3000, 7, { dtype = "float64" }))
    if both.launches("") then
        t.is_true(both.launches("DeviceRadixSort") > 0, "the library's sort ran")
        t.is_true(both.launches("td_sort_lines") > 0, "lines were sorted apart")
    end
end)

t.test("odd_shapes", function()
    all_orders(tide.tensor(2.5))
    all_orders(tide.zeros(0))
    all_orders(tide.zeros(3, 0))
    all_orders(tide.zeros(0, 3))
    all_orders(tide.rand(3, 1):expand(3, 40))
    all_orders(tide.rand(1):expand(3000))
end)

t.test("first_few", function()
    both.reset()
    for _, dtype in ipairs(NUMBERS) do
        for _, largest in ipairs { true, false } do
            local options = { largest = largest }
            both.same(function(x) return x:topk(3, 2, options) end, mixed(dtype, 6, 40))
            both.same(function(x) return x:topk(3, 1, options) end, mixed(dtype, 6, 40):t():contiguous():t())
            both.same(function(x) return x:topk(300, 1, options) end, mixed(dtype, 5000))
            both.same(function(x) return x:topk(1, 1, options) end, mixed(dtype, 2500, 2))
        end
    end
    for _, k in ipairs { 1, 255, 257, 2500, 17499, 17501 } do
        both.same(function(x) return x:topk(k) end, tide.randn(70000))
        both.same(function(x) return x:topk(k) end, mixed("float16", 70000))
        both.same(function(x) return x:topk(math.min(k, 5000), 1) end, mixed("float64", 10001, 2))
    end
    both.same(function(x) return x:topk(300) end, tide.zeros(20000))
    if both.launches("") then
        t.is_true(both.launches("td_select_gather") > 0, "a few of a long line were found first")
    end
    both.same(function(x) return x:topk(0, 1) end, tide.rand(5))
    both.same(function(x) return x:topk(1) end, tide.tensor(5))
end)

local function selections(x, dim)
    both.same(function(x) return x:median(dim) end, x)
    both.same(function(x) return x:nanmedian(dim) end, x)
    local n = x:dim() > 0 and x:size(dim) or 1
    for _, rank in ipairs { 1, (n + 1) // 2, n } do
        both.same(function(x) return x:kthvalue(rank, dim) end, x)
    end
end

t.test("ranks_and_medians", function()
    both.reset()
    for _, dtype in ipairs(NUMBERS) do
        for _, x in ipairs(both.forms(mixed(dtype, 4, 33))) do
            selections(x, 1)
            selections(x, 2)
        end
        selections(mixed(dtype, 3000), 1)
        selections(mixed(dtype, 2100, 3), 1)
        both.same(function(x) return x:median() end, mixed(dtype, 40, 70))
    end
    if both.launches("") then
        t.is_true(both.launches("td_select_short") > 0, "short lines had a kernel")
        t.is_true(both.launches("td_select_place") > 0, "long lines had kernels")
    end
end)

t.test("ranks_of_lines_in_pieces", function()
    for _, n in ipairs { 2047, 2048, 2049, 8193, 70000 } do
        selections(tide.randn(n), 1)
        selections(mixed("float16", n), 1)
        selections(tide.zeros(n), 1)
    end
    selections(tide.full({ 5000 }, 0 / 0), 1)
    selections(tide.tensor(1.5), 1)
    selections(tide.randn(2, 70000), 2)
    both.same(function(x) return x:median(1) end, tide.zeros(3, 0))
end)

t.test("rows_in_order", function()
    both.reset()
    for _, dtype in ipairs(both.ALL) do
        local x = both.elements(dtype, 40, 3)
        both.same(function(x) return x:unique { dim = 1, return_inverse = true, return_counts = true } end, x)
        both.same(function(x) return x:unique { dim = 2 } end, x)
        both.same(function(x) return x:unique { dim = 1, return_inverse = true } end, both.elements(dtype, 2500, 3))
    end
    both.same(function(x) return x:unique { dim = 1 } end, tide.randint(2, { 3000, 19 }):to("uint8"))
    if both.launches("") then
        t.is_true(both.launches("td_order_rows") > 0, "short ones had a kernel")
        t.is_true(both.launches("td_row_keys") > 0, "long ones had a kernel")
    end
end)

t.test("places_in_sequences", function()
    both.reset()
    for _, dtype in ipairs(NUMBERS) do
        local lines, values = both.elements(dtype, 4, 50):sort(2), both.elements(dtype, 4, 70)
        for _, options in ipairs { {}, { right = true }, { out_int32 = true } } do
            both.same(function(s, v) return tide.searchsorted(s, v, options) end, lines, values)
            both.same(function(s, v) return tide.searchsorted(s, v, options) end, lines:select(1, 2), values)
            both.same(function(s, v) return tide.bucketize(v, s, options) end, lines:select(1, 1), values)
        end
        both.same(function(s, v) return tide.searchsorted(s, v) end, lines:t():contiguous():t(), values)
    end
    local x = tide.tensor { 3.0, 0 / 0, 1, -1, 1 / 0 }
    both.same(function(s, v, k) return tide.searchsorted(s, v, { sorter = k }) end, x, mixed("float32", 300), x:argsort())
    both.same(function(s, v) return tide.searchsorted(s, v) end, x, x)
    both.same(function(s, v) return tide.searchsorted(s, v) end, tide.zeros(0), tide.rand(70000))
    both.same(function(s, v) return tide.searchsorted(s, v) end, tide.zeros(5), tide.zeros(0))
    if both.launches("") then
        t.is_true(both.launches("td_search_kernel") > 0, "its kernel ran")
    end
end)

t.test("a_sorter_that_leads_out_is_refused", function()
    for _, place in ipairs { 4, -1000 } do
        local function search(device)
            local s = tide.tensor({ 1.0, 2, 3 }, { device = device })
            local sorter = tide.tensor({ 1, 2, place }, { dtype = "int64", device = device })
            return tide.searchsorted(s, s, { sorter = sorter }):cpu()
        end
        local _, here = pcall(search, "cpu")
        local fine, there = pcall(search, "cuda")
        t.eq(fine, false)
        t.eq(tostring(there):match("sorter.*"), tostring(here):match("sorter.*"))
    end
end)

t.test("random_orders_are_the_cpus", function()
    both.reset()
    for _, n in ipairs { 0, 1, 2, 31, 33, 1025, 2048, 2049, 5001, 70000 } do
        local function draw(device)
            tide.manual_seed(n)
            tide.rand(3)
            return tide.randperm(n, { device = device }):cpu()
        end
        t.is_true(tide.equal(draw("cpu"), draw("cuda")), "of " .. n)
    end
    if both.launches("") then
        t.is_true(both.launches("td_permut") > 0, "its kernel ran")
    end
end)
