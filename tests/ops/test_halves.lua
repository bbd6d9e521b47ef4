-- test_halves.lua: pointwise operators of 16-bit floats are those of float32, rounded: for every 16-bit float, over
-- broadcast, strided and unaligned operands, single elements, results in place and given ones.
local t = require "harness"

local HALVES = { "float16", "bfloat16" }

-- Every float of 16 bits, as float32: those of bfloat16 are the upper halves, those of float16 have their value.
local function all_floats(name)
    local values = {}
    for k = 0, 65535 do
        local sign, exponent, fraction = k >> 15 == 1 and -1.0 or 1.0, k >> 10 & 31, k & 1023
        if name == "bfloat16" then
            values[k + 1] = (string.unpack("<f", string.pack("<I4", k << 16)))
        elseif exponent == 31 then
            values[k + 1] = fraction == 0 and sign * math.huge or 0 / 0
        else
            values[k + 1] = sign * (exponent == 0 and fraction * 2.0 ^ -24 or (fraction + 1024) * 2.0 ^ (exponent - 25))
        end
    end
    return tide.tensor(values)
end

-- Of a sign and a value that are the same, NaN for NaN.
local function same(a, b)
    if a.dtype == tide.bool then
        return a.dtype == b.dtype and tide.equal(a, b)
    end
    local x, y = a:float(), b:float()
    local equal = (tide.eq(x, y) & tide.eq(tide.signbit(x), tide.signbit(y))) | (tide.isnan(x) & tide.isnan(y))
    return a.dtype == b.dtype and equal:all():item()
end

local function rounded(y, dtype)
    return y.dtype == tide.bool and y or y:to(dtype)
end

local ONE = { "neg", "abs", "relu", "sqrt", "floor", "ceil", "round", "trunc", "square", "reciprocal", "sign", "frac",
    "isnan", "isinf", "signbit" }
local TWO = { "add", "sub", "mul", "div", "maximum", "minimum", "lt", "le", "gt", "ge", "eq", "ne", "copysign" }

for _, name in ipairs(HALVES) do
    local dtype = tide[name]

    t.test("of one " .. name .. ", each there is", function()
        local wide = all_floats(name)
        local x = wide:to(dtype)
        t.is_true(same(x, wide:to(dtype)) and same(x:float(), wide))
        for _, op in ipairs(ONE) do
            t.is_true(same(tide[op](x), rounded(tide[op](wide), dtype)), op)
            local from = 3 -- another place in the vectors, and a tail
            t.is_true(same(tide[op](x[from .. ":65000"]), rounded(tide[op](wide[from .. ":65000"]), dtype)), op .. " of a part")
        end
    end)

    -- How the two operands lie: rows longer and shorter than a vector, one element along a row or for all.
    local wide = all_floats(name)
    local shuffled = wide[tide.randperm(65536)]
    local function shaped(x, ...) return x[":" .. tide.zeros(...):numel()]:reshape(...) end
    local CASES = {
        { "as they lie", shaped(wide, 60, 1001), shaped(shuffled, 60, 1001) },
        { "a row for all", shaped(wide, 60, 1001), shuffled["9:1009"] },
        { "an element for each row", shaped(wide, 60, 1001), shaped(shuffled, 60, 1) },
        { "an element for each row first", shaped(shuffled, 60, 1), shaped(wide, 60, 1001) },
        { "short rows", shaped(wide, 600, 17), shaped(shuffled, 600, 1) },
        { "shorter rows", shaped(wide, 600, 5), shaped(shuffled, 600, 1) },
        { "three dims", shaped(wide, 7, 40, 33), shaped(shuffled, 7, 1, 33) },
        { "one element", shaped(wide, 60, 1001), shuffled["77:77"] },
    }

    t.test("of two " .. name, function()
        for _, op in ipairs(TWO) do
            for _, case in ipairs(CASES) do
                local a, b = case[2], case[3]
                local want = rounded(tide[op](a, b), dtype)
                t.is_true(same(tide[op](a:to(dtype), b:to(dtype)), want), op .. ": " .. case[1])
            end
            local a, b = CASES[1][2], CASES[1][3]
            local want = rounded(tide[op](a, b), dtype)
            t.is_true(same(tide[op](a:to(dtype):t(), b:to(dtype):t()), want:t()), op .. " transposed")
            t.is_true(same(tide[op](a:t():contiguous():to(dtype):t(), b:to(dtype)), want), op .. ", one transposed")
        end
    end)

    t.test("of a " .. name .. " and a number", function()
        local x = wide:to(dtype)
        for _, number in ipairs { 0.1, -3, 1e30 } do
            for _, op in ipairs { "add", "sub", "mul", "div", "clamp_min", "clamp_max" } do
                t.is_true(same(tide[op](x, number), rounded(tide[op](wide, number), dtype)), op .. " " .. number)
            end
            local nearest = tide.tensor({ number }):to(dtype):float():item() -- compared as such a float
            for _, op in ipairs { "lt", "ge", "eq" } do
                t.is_true(same(tide[op](x, number), tide[op](wide, nearest)), op .. " " .. number)
            end
        end
        t.is_true(same(1 - x, rounded(1 - wide, dtype)))
        t.is_true(same(2 / x, rounded(2 / wide, dtype)))
    end)

    t.test(name .. " in place and into what is given", function()
        local a, b = CASES[1][2], CASES[1][3]
        local x, y = a:to(dtype), b:to(dtype)
        local out = tide.zeros(60, 1001, { dtype = dtype })
        tide.mul(x, y, { out = out })
        t.is_true(same(out, (a * b):to(dtype)))
        local apart = tide.zeros(60, 2002, { dtype = dtype })
        local even = apart:as_strided({ 60, 1001 }, { 2002, 2 })
        even:copy_(x)
        even:add_(y)
        t.is_true(same(even, (a + b):to(dtype)))
        t.eq(apart:as_strided({ 60, 1001 }, { 2002, 2 }, 1):float():abs():sum():item(), 0.0)
        x:mul_(y):sub_(y)
        t.is_true(same(x, ((a * b):to(dtype):float() - b):to(dtype)))
        -- of a wider result each element is written whole, of a narrower one it is rounded
        local wide_out, mixed = tide.zeros(60, 1001), tide.zeros(60, 1001, { dtype = dtype })
        tide.add(a:to(dtype), b:to(dtype), { out = wide_out })
        t.is_true(same(wide_out, (a + b):to(dtype):float()) or same(wide_out, a + b))
        tide.add(a, b, { out = mixed })
        t.is_true(same(mixed, (a + b):to(dtype)))
    end)

    t.test("several steps of " .. name, function()
        local a, b = CASES[1][2], CASES[1][3]
        local x = a:to(dtype)
        t.is_true(same(tide.leaky_relu(x), tide.leaky_relu(a):to(dtype)))
        t.is_true(same(tide.leaky_relu(x:t()), tide.leaky_relu(a):to(dtype):t()))
        t.is_true(same(tide.addcmul(x, b:to(dtype), x), tide.addcmul(a, b, a):to(dtype)))
        t.is_true(same(tide.hardshrink(x[":, 3:990"]), tide.hardshrink(a[":, 3:990"]):to(dtype)))
    end)

    t.test("several steps of " .. name .. ", tails and places", function()
        local ways = {
            function(u, v) return tide.leaky_relu(u, 0.3) end,
            function(u, v) return tide.prelu(u, v[":1"]) end,
            function(u, v) return tide.addcmul(u, v, u, { value = 0.7 }) end,
            function(u, v) return tide.addcmul(v, u, u, { value = -2 }) end,
            function(u, v) return tide.addcdiv(u, u, v) end,
            function(u, v) return tide.lerp(u, v, 0.3) end,
            function(u, v) return tide.clamp(u, -1, 2) end,
            function(u, v) return tide.nan_to_num(u) end,
            function(u, v) return tide.softshrink(u) end,
            function(u, v) return tide.hardswish(u) end,
            function(u, v) return tide.threshold(u, 0.5, -7) end,
            function(u, v) return tide.rsub(u, v, { alpha = 3 }) end,
            function(u, v) return tide.sub(u, v, { alpha = 0.5 }) end,
        }
        for _, n in ipairs { 256, 257, 300, 511, 1023, 4100 } do
            local a, b = shuffled[":" .. n], shuffled["5001:" .. 5000 + n]
            local x, y = a:to(dtype), b:to(dtype)
            for k, way in ipairs(ways) do
                local want = way(a, b):to(dtype)
                t.is_true(same(way(x, y), want), k .. " of " .. n)
                local tail = tide.zeros(n + 3, { dtype = dtype })["4:"] -- which begins anywhere
                tail:copy_(x)
                t.is_true(same(way(tail, y), want), k .. " of " .. n .. " further on")
            end
            local z, wide = x:clone(), tide.zeros(n)
            z:addcmul_(y, z, { value = 0.5 })
            t.is_true(same(z, tide.addcmul(a, b, a, { value = 0.5 }):to(dtype)))
            tide.addcmul(x, y, x, { value = 0.5, out = wide })
            local want = tide.addcmul(a, b, a, { value = 0.5 })
            t.is_true(same(wide, want) or same(wide, want:to(dtype):float()))
            z = x:clone()
            z:lerp_(y, 0.25)
            t.is_true(same(z, tide.lerp(a, b, 0.25):to(dtype)))
        end
    end)
end
