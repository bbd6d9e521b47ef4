-- test_integers.lua: arithmetic of integers at the ends of their dtypes wraps around, as Lua's own does, in
-- every operator that calculates with them and in every layout; division by -1 and by 0 has no trap.
local t = require "harness"

local dtypes = {
    { dtype = tide.uint8, bits = 8 }, { dtype = tide.int8, bits = 8 }, { dtype = tide.int16, bits = 16 },
    { dtype = tide.int32, bits = 32 }, { dtype = tide.int64, bits = 64 },
}

-- What a dtype makes of a Lua integer.
local function wrapped(d, v)
    if d.bits == 64 then
        return v
    end
    v = v & ((1 << d.bits) - 1)
    return (d.dtype ~= tide.uint8 and v >= 1 << (d.bits - 1)) and v - (1 << d.bits) or v
end

local function ends(d)
    local low = d.dtype == tide.uint8 and 0 or d.bits == 64 and math.mininteger or -(1 << (d.bits - 1))
    local high = d.dtype == tide.uint8 and 255 or d.bits == 64 and math.maxinteger or (1 << (d.bits - 1)) - 1
    local list = { low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100, high // 2, high // 2 + 1, low // 2 }
    for k = 1, d.dtype == tide.uint8 and 0 or 3 do
        list[#list + 1] = -k
    end
    return list
end

-- All pairs of the ends, as two columns.
local function pairs_of(d)
    local a, b = {}, {}
    for _, x in ipairs(ends(d)) do
        for _, y in ipairs(ends(d)) do
            a[#a + 1], b[#b + 1] = x, y
        end
    end
    return a, b
end

local function tensor(d, list)
    return tide.tensor(list, { dtype = d.dtype })
end

-- The same elements a step of two apart.
local function apart(x)
    return tide.stack({ x, x }, -1):select(-1, 2)
end

local function check(d, got, want, what)
    t.eq(got.dtype, d.dtype, what)
    local list = got:tolist()
    for k = 1, #want do
        if list[k] ~= wrapped(d, want[k]) then
            error(("%s, element %d: got %s, expected %s"):format(what, k, list[k], wrapped(d, want[k])), 2)
        end
    end
end

local function floor_mod(a, b) return b == -1 and 0 or a % b end
local function floor_div(a, b) return b == -1 and -a or a // b end
local function trunc_mod(a, b)
    return b == -1 and 0 or a == math.mininteger and (b > 0 and -(-(a + b) % b) or math.fmod(a, b)) or math.fmod(a, b)
end
local function power(a, b)
    if b < 0 then
        return a == 1 and 1 or a == -1 and (b & 1 == 1 and -1 or 1) or 0
    end
    local result = 1
    while b > 0 do
        result, a, b = b & 1 == 1 and result * a or result, a * a, b >> 1
    end
    return result
end

local binary = {
    add = function(a, b) return a + b end,
    sub = function(a, b) return a - b end,
    mul = function(a, b) return a * b end,
    bitwise_and = function(a, b) return a & b end,
    bitwise_or = function(a, b) return a | b end,
    bitwise_xor = function(a, b) return a ~ b end,
    maximum = math.max,
    minimum = math.min,
    pow = power,
}
local division = {
    floor_divide = floor_div,
    remainder = floor_mod,
    fmod = trunc_mod,
    trunc_divide = function(a, b) return b == -1 and -a or (a - trunc_mod(a, b)) // b end,
}
local unary = {
    neg = function(a) return -a end,
    abs = function(a) return a < 0 and -a or a end,
    square = function(a) return a * a end,
    sign = function(a) return a > 0 and 1 or a < 0 and -1 or 0 end,
    bitwise_not = function(a) return ~a end,
    relu = function(a) return a > 0 and a or 0 end,
}

for _, d in ipairs(dtypes) do
    local name = tostring(d.dtype):match("[%w_]+$")
    local function walk(functions, without_zero)
        local a, b = pairs_of(d)
        if without_zero then
            for k = #b, 1, -1 do
                if b[k] == 0 then
                    table.remove(a, k)
                    table.remove(b, k)
                end
            end
        end
        local x, y = tensor(d, a), tensor(d, b)
        for op, fn in pairs(functions) do
            local want = {}
            for k = 1, #a do
                want[k] = fn(a[k], b[k])
            end
            check(d, tide[op](x, y), want, op)
            check(d, tide[op](apart(x), y), want, op .. " of what lies apart")
            check(d, tide[op](x, y, { out = tide.empty_like(x) }), want, op .. " with out=")
            for _, k in ipairs { 1, #a // 2, #a } do -- a single number on the right
                if op == "pow" and b[k] < 0 then
                    t.error_has(function() tide.pow(x, b[k]) end, "is no integer")
                else
                    check(d, tide[op](x["1:3"], b[k]), { fn(a[1], b[k]), fn(a[2], b[k]), fn(a[3], b[k]) }, op)
                end
            end
        end
    end

    t.test(name .. "_pairs_wrap", function() walk(binary) end)
    t.test(name .. "_division_by_minus_one_wraps", function() walk(division, true) end)
    t.test(name .. "_division_by_zero_is_refused", function()
        for op in pairs(division) do
            t.error_has(function() return tide[op](tensor(d, ends(d)), 0) end, "division by zero")
            t.error_has(function() return tide[op](tensor(d, { 1, 2 }), tensor(d, { 1, 0 })) end, "division by zero")
        end
    end)
    t.test(name .. "_single_elements_wrap", function()
        local list, want = ends(d), {}
        for op, fn in pairs(unary) do
            for k, v in ipairs(list) do
                want[k] = fn(v)
            end
            check(d, tide[op](tensor(d, list)), want, op)
        end
    end)

    t.test(name .. "_sums_and_products_wrap_in_int64", function()
        local list, wide = ends(d), { dtype = tide.int64, bits = 64 }
        local sum, product, sums = 0, 1, {}
        for k, v in ipairs(list) do
            sum, product, sums[k] = sum + v, product * (v | 1), sum + v
        end
        local x = tensor(d, list)
        check(wide, x:sum():reshape(1), { sum }, "sum")
        check(wide, apart(x):sum():reshape(1), { sum }, "sum of what lies apart")
        check(wide, tide.stack({ x, x }, 2):sum(1), { sum, sum }, "sum by columns")
        check(wide, (x | 1):prod():reshape(1), { product }, "prod")
        check(wide, x:cumsum(1), sums, "cumsum")
        check(wide, apart(x):cumsum(1), sums, "cumsum of what lies apart")
    end)

    t.test(name .. "_matrix_products_wrap", function()
        local list = ends(d)
        local n, x = #list, tensor(d, ends(d))
        local all = x:reshape(n, 1):matmul(x:reshape(1, n))
        for i = 1, n do
            local want = {}
            for k = 1, n do
                want[k] = list[i] * list[k]
            end
            check(d, all[i], want, "outer product")
        end
        local dot = 0
        for k = 1, n do
            dot = dot + list[k] * list[k]
        end
        check(d, x:dot(x):reshape(1), { dot }, "dot")
        check(d, x:expand(5, n):matmul(x), { dot, dot, dot, dot, dot }, "mv")
        check(d, x:expand(2, n):matmul(x:reshape(n, 1)):reshape(-1), { dot, dot }, "mm")
        check(d, x:expand(3, 1, n):bmm(x:reshape(n, 1):expand(3, n, 1)):reshape(-1), { dot, dot, dot }, "bmm")
        check(d, tide.linear(x:reshape(1, n), x:reshape(1, n), x["1:1"]):reshape(-1), { dot + list[1] }, "linear")
    end)

    t.test(name .. "_additions_to_places_wrap", function()
        local list, ones = ends(d), {}
        local sum = list[1]
        for k, v in ipairs(list) do
            sum, ones[k] = sum + v, 1
        end
        local x, start = tensor(d, list), tensor(d, { list[1] })
        check(d, start:scatter_add(1, tide.tensor(ones), x), { sum }, "scatter_add")
        check(d, start:index_add(1, tide.tensor(ones), x), { sum }, "index_add")
        check(d, tide.add(start, start, { alpha = 3 }), { 4 * list[1] }, "alpha")
    end)

    t.test(name .. "_is_clamped_to_bounds_that_it_does_not_hold", function()
        local x, list = tensor(d, ends(d)), ends(d)
        check(d, x:clamp(math.mininteger, math.maxinteger), list, "clamp")
        check(d, x:clamp_min(-300), d.bits == 8 and list or x:maximum(tensor(d, { -300 })):tolist(), "clamp_min")
        check(d, x:clamp_max(math.maxinteger), list, "clamp_max")
    end)

    t.test(name .. "_conversions_from_integers_keep_the_low_bits", function()
        local from = { dtype = tide.int64, bits = 64 }
        local list = ends(from)
        check(d, tensor(from, list):to(d.dtype), list, "to")
        check(d, apart(tensor(from, list)):to(d.dtype), list, "to of what lies apart")
    end)
end

-- As x86 converts, and PyTorch there: the least int64 (for int64 and uint8) or int32 (for the others) stands
-- for what that does not hold, and narrower dtypes take the low bits.
t.test("floats_out_of_range_become_the_least_integer_on_every_path", function()
    local given = { 1e30, -1e30, math.huge, -math.huge, 0 / 0, 2.0 ^ 63, -2.0 ^ 63, 300.7, -1.5, 3e9, -3e9, 2.0 ^ 31,
        -2.0 ^ 31, 40000.5, -40000.5, 2.0 ^ 31 - 128, 0.99, -0.99, 255.5 }
    local function want(d, v)
        local bits = (d.bits == 64 or d.dtype == tide.uint8) and 63 or 31
        local n = v ~= v and -2.0 ^ bits or (v < 0 and math.ceil or math.floor)(v)
        if math.type(n) == "float" or n > 2.0 ^ bits - 1 or n < -2.0 ^ bits then
            n = math.tointeger(-2.0 ^ bits)
        end
        return n
    end
    for _, float in ipairs { tide.float32, tide.float64 } do
        local x = tide.tensor(given, { dtype = float })
        for _, d in ipairs(dtypes) do
            local list, long = {}, {}
            for k, v in ipairs(given) do
                list[k] = want(d, v)
            end
            for k = 1, 50 * #list do
                long[k] = list[(k - 1) % #list + 1]
            end
            check(d, x:to(d.dtype), list, "to")
            check(d, x:tile(50):to(d.dtype), long, "to of a long tensor")
            check(d, apart(x):to(d.dtype), list, "to of what lies apart")
            check(d, tide.zeros(#list, { dtype = d.dtype }):copy_(x), list, "copy_")
            for k = 1, #given do
                check(d, tide.zeros(3, { dtype = d.dtype }):copy_(x[k]), { list[k], list[k], list[k] }, "copy_ of one")
                check(d, x[k]:to(d.dtype):reshape(1), { list[k] }, "to of one without dims")
            end
        end
    end
end)

t.test("numbers_that_an_integer_dtype_does_not_hold_are_refused", function()
    for _, d in ipairs(dtypes) do
        local text, x = tostring(d.dtype):gsub("^tide%.", "") .. " can't hold", tide.zeros(2, { dtype = d.dtype })
        for _, v in ipairs { 1e30, -1e30, math.huge, -math.huge, 0 / 0, 2.0 ^ 63 } do
            t.error_has(function() tide.full({ 1 }, v, { dtype = d.dtype }) end, text)
            t.error_has(function() tide.full_like(x, v) end, text)
            t.error_has(function() x:fill_(v) end, text)
            t.error_has(function() x[1] = v end, text)
            t.error_has(function() x:masked_fill(tide.tensor { true, true }, v) end, text)
            t.error_has(function() x:index_fill(1, tide.tensor { 1 }, v) end, text)
            t.error_has(function() x:scatter(1, tide.tensor { 1 }, v) end, text)
            t.error_has(function() tide.tensor({ v }, { dtype = d.dtype }) end, text)
        end
        t.eq(x:tolist(), { 0, 0 }, "nothing was written")
        t.eq(x:fill_(1.75):tolist(), { 1, 1 }, "the whole part is held")
    end
    t.error_has(function() tide.full({ 1 }, 300, { dtype = tide.int8 }) end, "full: int8 can't hold 300")
    t.error_has(function() tide.full({ 1 }, 256, { dtype = tide.uint8 }) end, "uint8 can't hold 256")
    t.eq(tide.full({ 1 }, -1, { dtype = tide.uint8 }):item(), 255, "unsigned ones wrap around from below")
    t.eq(tide.full({ 1 }, -200, { dtype = tide.uint8 }):item(), 56)
    t.error_has(function() tide.full({ 1 }, -256, { dtype = tide.uint8 }) end, "uint8 can't hold -256")
    t.eq(tide.full({ 2 }, 1e30, { dtype = tide.float16 }):tolist(), { math.huge, math.huge }, "floats hold any")
    t.eq(tide.full({ 1 }, 300, { dtype = tide.bool }):item(), true)
end)

-- The sums are small enough for float64 to hold them all; what a dtype cuts off is cut off at the end.
local function same_as_in_doubles(d, got, want)
    t.is_true(tide.equal(got:long(), want:long():to(d.dtype):long()), tostring(d.dtype) .. " " .. tostring(got.shape))
end

t.test("a_matrix_times_a_vector_whichever_way_they_lie", function()
    for _, d in ipairs(dtypes) do
        for _, shape in ipairs { { 1, 600 }, { 3, 5 }, { 40, 100 }, { 700, 3 }, { 33, 1025 } } do
            local m, v = tide.randint(0, 90, shape):to(d.dtype), tide.randint(0, 90, { shape[2] }):to(d.dtype)
            local want = tide.mv(m:double(), v:double())
            local turned = m:t():contiguous():t()
            local gaps = tide.stack({ m, m }, 3)[":, :, 1"]
            for _, x in ipairs { m, turned, gaps } do
                same_as_in_doubles(d, tide.mv(x, v), want)
                same_as_in_doubles(d, tide.matmul(v[{ {} }]:reshape(1, -1), x:t()):reshape(-1), want)
            end
            same_as_in_doubles(d, tide.mv(m, tide.stack({ v, v }, 2)[":, 1"]), want)
            same_as_in_doubles(d, tide.zeros(shape[1], { dtype = d.dtype }):addmv(m, v), want)
        end
    end
end)

t.test("convolutions_of_any_number_of_channels", function()
    local cases = {
        { 2, 1, 3, 1, { 9, 7 }, {} }, { 2, 8, 8, 1, { 12, 10 }, { padding = 1 } }, { 1, 7, 5, 1, { 6, 9 }, { stride = 2 } },
        { 3, 8, 12, 4, { 8, 5 }, { padding = 2, dilation = 2 } }, { 2, 6, 6, 6, { 5, 5 }, {} }, { 2, 5, 4, 1, { 30 }, { padding = 1 } },
        { 1, 4, 3, 1, { 5, 6, 4 }, { padding = 1 } }, { 0, 4, 3, 1, { 5, 6 }, {} },
    }
    for _, d in ipairs(dtypes) do
        for _, case in ipairs(cases) do
            local n, c, o, groups, places, how = table.unpack(case)
            local dims, kernel = #places, {}
            for k = 1, dims do
                kernel[k] = 3
            end
            local options = { stride = how.stride, padding = how.padding, dilation = how.dilation, groups = groups }
            local x = tide.randint(0, 60, { n, c, table.unpack(places) }):to(d.dtype)
            local w = tide.randint(0, 60, { o, c // groups, table.unpack(kernel) }):to(d.dtype)
            local back = tide.randint(0, 60, { c, o // groups, table.unpack(kernel) }):to(d.dtype)
            local b = tide.randint(0, 60, { o }):to(d.dtype)
            local conv, transposed = tide["conv" .. dims .. "d"], tide["conv_transpose" .. dims .. "d"]
            for _, bias in ipairs { false, b } do
                options.bias = bias or nil
                local got, turned = conv(x, w, options), d.bits == 64 and transposed(x, back, options)
                options.bias = bias and bias:double() or nil
                same_as_in_doubles(d, got, conv(x:double(), w:double(), options))
                if turned then
                    same_as_in_doubles(d, turned, transposed(x:double(), back:double(), options))
                end
            end
        end
    end
end)
