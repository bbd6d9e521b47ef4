-- quantization/groups.lua: weights of a few bits in groups: floats rounded, integers put in the order in which products read
-- them (engine/ops/plan/plan.h, td_grouped_linear_plan), and back. A matrix of unsigned integers u (out, in) has a scale and
-- perhaps a min for each group of a row, (out, groups), and stands for scale * (u - offset) - min, offset being half of the
-- range where there are no mins, and 0 where there are.
local tide = ...
local fail = tide._fail
local groups = {}

local COLUMNS <const>, LINE <const> = 16, 64
local LEAST <const> = 2.0 ^ -126 -- the least normal scale
local NARROWER <const> = 10 -- ranges that are tried

local function rounded_up(n, size) return (n + size - 1) // size * size end

--- fit(bits, features, size): the size of a group, the whole row where none is given; it must be what products can take.
function groups.fit(bits, features, size)
    local step = bits == 6 and 16 or 32
    size = size or rounded_up(features, step)
    if size % step ~= 0 then
        fail("WeightOnlyLinear: group_size: a multiple of %d expected for %d bits, got %d", step, bits, size)
    end
    return size
end

local function offset_of(bits, mins) return mins and 0 or 1 << (bits - 1) end

-- With zeros below and at the right.
local function widened(x, rows, columns)
    if x.shape[1] == rows and x.shape[2] == columns then
        return x
    end
    local wide = tide.zeros(rows, columns, { dtype = x.dtype })
    wide[{ { 1, x.shape[1] }, { 1, x.shape[2] } }] = x
    return wide
end

-- ---- floats to integers ----

--- check(linear, who): a weight that has scales, or an error that begins with `who`.
function groups.check(linear, who)
    if not linear.weight:isfinite():all():item() then
        fail("%s: the weight has NaN or infinity in it: there is no scale for it", who)
    end
end

--- round_to(x, scale, zero, bits): x / scale + zero rounded, as floats that are integers of so many bits. zero: nil for the middle.
function groups.round_to(x, scale, zero, bits)
    return ((x / scale):round() + (zero or 1 << (bits - 1))):clamp(0, (1 << bits) - 1)
end

-- The scale and the zero point (nil where symmetric) of groups between `low` and `high`. A scale that would be no normal number is 1.
local function parameters(low, high, bits, symmetric)
    local most = (1 << bits) - 1
    local scale = symmetric and tide.maximum(-low, high) / (most / 2) or (high - low) / most
    scale = tide.where(scale:ge(LEAST), scale, tide.ones_like(scale))
    return scale, not symmetric and (-low / scale):round():clamp(0, most) or nil
end

--- choose(weight, bits, size, symmetric): the scale and the zero point (nil where symmetric) of every group of a matrix of finite float32.
--- Of fewer than 8 bits, those of the narrower range, from 1 down to 0.7 of the whole, that leave the smallest squared error.
function groups.choose(weight, bits, size, symmetric)
    local rows, columns = weight.shape[1], weight.shape[2]
    local wide = widened(weight, rows, rounded_up(columns, size)):view(rows, -1, size)
    local low, high = wide:amin(3):clamp(nil, 0), wide:amax(3):clamp(0)
    local scale, zero = parameters(low, high, bits, symmetric)
    local function squares(s, z)
        s, z = s:unsqueeze(3), z and z:unsqueeze(3)
        return ((groups.round_to(wide, s, z, bits) - (z or 1 << (bits - 1))) * s - wide):square():sum(3)
    end
    local least = bits < 8 and squares(scale, zero)
    for part = bits < 8 and 1 or NARROWER + 1, NARROWER do
        local share = 1 - 0.3 * part / NARROWER
        local s, z = parameters(low * share, high * share, bits, symmetric)
        local errors = squares(s, z)
        local better = errors:lt(least)
        scale, zero, least = tide.where(better, s, scale), z and tide.where(better, z, zero), tide.where(better, errors, least)
    end
    return scale, zero
end

-- A number of each group for each of its elements.
local function spread(numbers, size, columns)
    return numbers:repeat_interleave(size, 2)[{ {}, { 1, columns } }]
end

--- round(weight, bits, size, symmetric): the integers (uint8), scales and mins (nil where symmetric) of a matrix of floats.
function groups.round(weight, bits, size, symmetric)
    weight = weight:detach():float()
    local columns = weight.shape[2]
    local scales, zeros = groups.choose(weight, bits, size, symmetric)
    local ints = groups.round_to(weight, spread(scales, size, columns), zeros and spread(zeros, size, columns), bits)
    return ints:to(tide.uint8), scales, zeros and scales * zeros
end

-- ---- the order of products ----

-- Numbers of groups (out, groups) by panel: (panels, groups, 16).
local function pack_numbers(numbers)
    local wide = widened(numbers:float(), rounded_up(numbers.shape[1], COLUMNS), numbers.shape[2])
    return wide:view(-1, COLUMNS, wide.shape[2]):transpose(2, 3):contiguous()
end

local function unpack_numbers(packed, rows)
    return packed:transpose(2, 3):reshape(-1, packed.shape[2])[{ { 1, rows }, {} }]
end

--- pack(ints, scales, mins, bits, size): the weight, the scales and the mins in their order.
function groups.pack(ints, scales, mins, bits, size)
    local columns = scales.shape[2] * size
    local wide = widened(ints:to(tide.uint8), rounded_up(ints.shape[1], COLUMNS), columns)
    local quads = wide:view(-1, COLUMNS, columns // 4, 4):transpose(2, 3):contiguous():view(-1, columns // 4, LINE)
    local panels = quads.shape[1]
    local function of(x, k) return x[{ {}, {}, k }] end
    if bits == 4 then
        local pairs_of = quads:view(panels, -1, 2, LINE)
        quads = of(pairs_of, 1) | of(pairs_of, 2):bitwise_left_shift(4)
    elseif bits == 6 then
        local fours = quads:view(panels, -1, 4, LINE)
        local low, high = fours & 15, fours:bitwise_right_shift(4)
        quads = tide.stack({ of(low, 1) | of(low, 2):bitwise_left_shift(4), of(low, 3) | of(low, 4):bitwise_left_shift(4),
            of(high, 1) | of(high, 2):bitwise_left_shift(2) | of(high, 3):bitwise_left_shift(4) | of(high, 4):bitwise_left_shift(6) }, 3)
        quads = quads:view(panels, -1, LINE)
    end
    return quads:contiguous(), pack_numbers(scales), mins and pack_numbers(mins)
end

--- lines(features, bits, size): the sizes of a packed weight of so many features out and in, and of its scales.
function groups.sizes(out_features, in_features, bits, size)
    local panels, count = rounded_up(out_features, COLUMNS) // COLUMNS, rounded_up(in_features, size) // size
    return { panels, count * size * bits // 32, LINE }, { panels, count, COLUMNS }
end

-- The integers of a packed weight (out, in).
local function unpack_ints(packed, rows, columns, bits)
    local panels, quads = packed.shape[1], packed
    local function of(x, k) return x[{ {}, {}, k }] end
    if bits == 4 then
        quads = tide.stack({ packed & 15, packed:bitwise_right_shift(4) }, 3)
    elseif bits == 6 then
        local lines, fours = packed:view(panels, -1, 3, LINE), {}
        for k = 1, 4 do
            local low = of(lines, (k + 1) // 2):bitwise_right_shift((k - 1) % 2 * 4) & 15
            fours[k] = low | (of(lines, 3):bitwise_right_shift(2 * (k - 1)) & 3):bitwise_left_shift(4)
        end
        quads = tide.stack(fours, 3)
    end
    local ints = quads:reshape(panels, -1, COLUMNS, 4):transpose(2, 3):reshape(panels * COLUMNS, -1)
    return ints[{ { 1, rows }, { 1, columns } }]
end

--- floats(weight, scales, mins, rows, columns, bits, size): the matrix of float32 that a packed weight stands for.
function groups.floats(weight, scales, mins, rows, columns, bits, size)
    local ints = unpack_ints(weight, rows, columns, bits):float() - offset_of(bits, mins)
    local x = ints * spread(unpack_numbers(scales, rows), size, columns)
    return mins and x - spread(unpack_numbers(mins, rows), size, columns) or x
end

return groups
