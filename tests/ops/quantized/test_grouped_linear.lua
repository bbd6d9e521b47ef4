-- test_grouped_linear.lua: products of floats with weights of few bits in groups, against float64 sums of what both are rounded to.
local t = require "harness"
local groups = tide._require "quantization.groups"

-- x as td_grouped_linear_plan rounds it: blocks of 32 in float32.
local function rounded(x)
    local rows, columns = x.shape[1], x.shape[2]
    local wide = tide.zeros(rows, (columns + 31) // 32 * 32)
    wide[{ {}, { 1, columns } }] = x
    wide = wide:view(rows, -1, 32)
    local scale = wide:abs():amax(3, { keepdim = true }) / 127
    local ints = (wide * (1 / scale)):round()
    return (tide.where(scale:gt(0), ints, tide.zeros_like(ints)):double() * scale:double()):view(rows, -1)[{ {}, { 1, columns } }]
end

local function far(y, want) return ((y:double() - want):norm() / want:norm()):item() end

local function random_weight(n, k, bits, size, symmetric)
    local count = (k + size - 1) // size
    local ints = tide.randint(0, 1 << bits, { n, k }):to(tide.uint8)
    local scales = tide.rand(n, count) * 0.01 + 0.001
    return ints, scales, not symmetric and scales * tide.randint(0, 1 << bits, { n, count }):float() or nil
end

-- What they stand for, by operators.
local function floats(ints, scales, mins, bits, size)
    local columns = ints.shape[2]
    local function spread(x) return x:double():repeat_interleave(size, 2)[{ {}, { 1, columns } }] end
    local x = (ints:double() - (mins and 0 or 1 << (bits - 1))) * spread(scales)
    return mins and x - spread(mins) or x
end

local KINDS = { { 8, 32 }, { 8, 64, true }, { 8, 256, true }, { 4, 32 }, { 4, 32, true }, { 4, 128 }, { 6, 16, true }, { 6, 48 } }

local function each_kind(check)
    for _, kind in ipairs(KINDS) do
        check(kind[1], kind[2], kind[3] or false)
    end
end

t.test("products_are_the_sums_of_what_both_are_rounded_to", function()
    tide.manual_seed(1)
    each_kind(function(bits, size, symmetric)
        for _, shape in ipairs { { 1, 1, 1 }, { 1, 33, 40 }, { 2, 16, 64 }, { 5, 7, 100 }, { 6, 48, 256 }, { 13, 70, 130 } } do
            local m, n, k = table.unpack(shape)
            local ints, scales, mins = random_weight(n, k, bits, size, symmetric)
            local x, bias = tide.randn(m, k), tide.randn(n)
            local weight, s, z = groups.pack(ints, scales, mins, bits, size)
            local want = rounded(x):mm(floats(ints, scales, mins, bits, size):t())
            local y = tide._grouped_linear(x, weight, s, z, nil, n, bits, size)
            -- float32's steps are worth what is summed, not what is left of it
            local room = rounded(x):abs():mm((floats(ints, scales, mins, bits, size):abs() + (mins and 255 * 0.011 or 0)):t())
            local off = ((y:double() - want):abs() / room):amax():item()
            t.is_true(off < 1e-6, ("%d bits, groups of %d, %dx%dx%d: off by %g"):format(bits, size, m, n, k, off))
            t.is_true(tide.equal(tide._grouped_linear(x, weight, s, z, bias, n, bits, size), y + bias), "bias")
        end
    end)
end)

t.test("packed_weights_are_unpacked_to_the_same_floats", function()
    tide.manual_seed(2)
    each_kind(function(bits, size, symmetric)
        local ints, scales, mins = random_weight(19, 77, bits, size, symmetric)
        local weight, s, z = groups.pack(ints, scales, mins, bits, size)
        local got = groups.floats(weight, s, z, 19, 77, bits, size)
        t.is_true(far(got, floats(ints, scales, mins, bits, size)) < 1e-6, bits .. " bits")
    end)
end)

t.test("rows_of_a_batch_are_those_of_each_alone", function()
    tide.manual_seed(3)
    each_kind(function(bits, size, symmetric)
        local ints, scales, mins = random_weight(35, 96, bits, size, symmetric)
        local weight, s, z = groups.pack(ints, scales, mins, bits, size)
        local x = tide.randn(3, 5, 96):transpose(1, 2)
        local y = tide._grouped_linear(x, weight, s, z, nil, 35, bits, size)
        t.eq({ table.unpack(y.shape) }, { 5, 3, 35 })
        for k = 1, 5 do
            for j = 1, 3 do
                t.is_true(tide.equal(y[{ k, j }], tide._grouped_linear(x[{ k, j }], weight, s, z, nil, 35, bits, size)))
            end
        end
    end)
end)

-- The largest integers that there are: sums of pairs in 16 bits come nearest to their ends.
t.test("no_sum_of_integers_saturates", function()
    for _, kind in ipairs { { 8, 0 }, { 8, 255 }, { 6, 63 }, { 4, 15 } } do
        local bits, u = kind[1], kind[2]
        local ints, scales = tide.full({ 16, 64 }, u):to(tide.uint8), tide.ones(16, 64 // 32)
        for _, mins in ipairs { false, scales } do
            local weight, s, z = groups.pack(ints, scales, mins or nil, bits, 32)
            for _, value in ipairs { 127, -127 } do
                local y = tide._grouped_linear(tide.full({ 4, 64 }, value):float(), weight, s, z, nil, 16, bits, 32)
                local want = 64 * value * (u - (mins and 1 or 1 << (bits - 1)))
                t.is_true(y:eq(want):all():item(), ("%d bits, %d times %d: %g, not %d"):format(bits, u, value, y[{ 1, 1 }]:item(), want))
            end
        end
    end
end)

t.test("any_number_of_threads_gives_the_same_bits", function()
    tide.manual_seed(5)
    local ints, scales, mins = random_weight(300, 320, 4, 32)
    local weight, s, z = groups.pack(ints, scales, mins, 4, 32)
    local x, before = tide.randn(33, 320), tide.get_num_threads()
    local want = tide._grouped_linear(x, weight, s, z, nil, 300, 4, 32)
    for _, n in ipairs { 1, 2, 3, 5 } do
        tide.set_num_threads(n)
        t.is_true(tide.equal(tide._grouped_linear(x, weight, s, z, nil, 300, 4, 32), want))
    end
    tide.set_num_threads(before)
end)

t.test("what_cannot_be_rounded_is_nan_or_zero", function()
    local ints, scales = random_weight(3, 64, 8, 32, true)
    local weight, s = groups.pack(ints, scales, nil, 8, 32)
    local x = tide.zeros(5, 64)
    x[{ 1, 3 }], x[{ 2, 40 }], x[{ 3, 40 }], x[{ 4, 3 }] = 0 / 0, math.huge, -math.huge, 1e-40
    local y = tide._grouped_linear(x, weight, s, nil, nil, 3, 8, 32)
    t.is_true(y[{ { 1, 3 }, {} }]:isnan():all():item(), "NaN and infinities")
    t.is_true(y[{ { 4, 5 }, {} }]:eq(0):all():item(), "denormal blocks and zeros")
    t.eq({ table.unpack(tide._grouped_linear(tide.zeros(0, 64), weight, s, nil, nil, 3, 8, 32).shape) }, { 0, 3 })
end)

t.test("what_does_not_fit_is_refused", function()
    local function refused(text, ...)
        local ok, why = pcall(tide._grouped_linear, ...)
        t.is_true(not ok and string.find(why, text, 1, true), text .. ": " .. tostring(why))
    end
    local ints, scales = random_weight(3, 64, 8, 32, true)
    local weight, s = groups.pack(ints, scales, nil, 8, 32)
    local x = tide.zeros(2, 64)
    refused("float32", x:double(), weight, s, nil, nil, 3, 8, 32)
    refused("4, 6 or 8 bits", x, weight, s, nil, nil, 3, 5, 32)
    refused("multiple of 32", x, weight, s, nil, nil, 3, 8, 16)
    refused("weight of shape (1, 8, 64)", tide.zeros(2, 32), weight, s, nil, nil, 3, 8, 32)
    refused("weight of shape (2, 16, 64)", x, weight, s, nil, nil, 17, 8, 32)
    refused("weight of shape (1, 8, 64)", x, weight, s, nil, nil, 3, 4, 32)
    refused("scales of shape (1, 1, 16)", x, weight, s, nil, nil, 3, 8, 64)
    refused("uint8", x, weight:to(tide.int8), s, nil, nil, 3, 8, 32)
    refused("mins of shape", x, weight, s, s:transpose(2, 3):contiguous(), nil, 3, 8, 32)
    refused("bias", x, weight, s, nil, tide.zeros(4), 3, 8, 32)
end)

t.finish()
