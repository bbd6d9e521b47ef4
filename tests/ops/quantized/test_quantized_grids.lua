-- test_quantized_grids.lua: the grids of parameters of FBGEMM's own tests: bytes against the rule that
-- engine/ops/quantized/README.md states, worked out by operators of floats, and beside those of fbgemm's engine
-- (tests/golden/quantization/grids.py) where it doesn't saturate.
local t = require "harness"
local json = require "json"
local floats, doubles = { dtype = tide.float32 }, { dtype = tide.float64 }

local function ints(low, high, sizes) return tide.randint(low, high + 1, sizes) end
local function bytes(x, scale, point) return tide._make_per_tensor_quantized_tensor(x:to(tide.uint8), scale, point) end

local function weight_of(w, scales, points, whole)
    if whole then
        return tide._make_per_tensor_quantized_tensor(w:to(tide.int8), scales[1]:item(), points[1]:item())
    end
    return tide._make_per_channel_quantized_tensor(w:to(tide.int8), scales, points, 1)
end

-- A number for each channel, beside places of n dims.
local function along(x, n)
    local sizes = { -1 }
    for d = 1, n do
        sizes[d + 1] = 1
    end
    return x:reshape(sizes)
end

-- sums (exact, of doubles), bias and scales of channels that n dims follow, to bytes.
local function round(sums, c, scales, bias, n)
    local both = tide.tensor(c.sa, floats) * scales:float()
    local value = sums:float()
    if bias then
        value = value + along(bias / both, n)
    end
    value = (value * along(both / c.sc, n)):round():clamp(-100000, 100000):long() + c.zc
    return value:clamp(c.relu and c.zc or 0, 255)
end

local function same(y, want, what) t.is_true(tide.equal(y:int_repr():long(), want), what) end

-- How scales and zero points are shared among n channels: one for all, one for each group, one for each channel.
local function share(granularity, n, groups, low, high)
    local count = granularity == "TENSOR" and 1 or granularity == "GROUP" and groups or n
    local function spread(x) return x:reshape(count, 1):expand(count, n // count):reshape(-1) end
    return spread((tide.rand(count, doubles) + 0.5) * 0.00079), spread(ints(low, high, { count }))
end

-- Sums from -8 to 8, the scale of the result 2: half of what is rounded lies between two integers.
t.test("requantize_only", function()
    tide.manual_seed(1)
    for rows = 1, 4 do
        for _, columns in ipairs { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 32 } do
            for _, relu in ipairs { false, true } do
                for _, whole in ipairs { true, false } do
                    local x, w = ints(2, 4, { rows, 1 }), ints(-8, 8, { columns, 1 })
                    local points = ints(-8, 8, { columns })
                    if whole then
                        points = points[1]:expand(columns):clone()
                    end
                    local bias, scales = ints(-8, 8, { columns }):float(), tide.ones(columns, doubles)
                    local c = { sa = 1, sc = 2, zc = 3, relu = relu }
                    local packed = tide._quantized_pack(weight_of(w + points:reshape(-1, 1), scales, points, whole))
                    local sums = tide.matmul((x - 3):double(), w:t():double())
                    same(tide._quantized_linear(bytes(x, 1, 3), packed, bias, c.sc, c.zc, relu), round(sums:t(), c, scales, bias, 1):t(),
                        ("%d rows, %d columns"):format(rows, columns))
                end
            end
        end
    end
end)

local SHAPES = { { 1, 128, 512 }, { 1, 2048, 513 }, { 6, 512, 512 }, { 6, 2048, 256 }, { 6, 2048, 257 }, { 102, 2323, 256 },
    { 102, 512, 257 }, { 120, 4, 288 } }

-- Rows of a product are places of a convolution, whose groups are those of the product. A column-major x is one whose channels come first.
t.test("packed_requantize", function()
    tide.manual_seed(2)
    for _, shape in ipairs(SHAPES) do
        for _, groups in ipairs { 1, 3, 4 } do
            local m, n, depth = shape[1], shape[2] // groups * groups, shape[3] // groups * groups
            local x, w = ints(0, 255, { 1, depth, m }), ints(-128, 127, { n, depth // groups, 1 })
            for k, granularity in ipairs { "TENSOR", "GROUP", "OUT_CHANNEL" } do
                local scales, points = share(granularity, n, groups, -50, -10)
                local bias = (k + m + groups) % 2 == 0 and tide.randn(n) or nil
                local c = { sa = 1.5625, sc = 1, zc = 5, relu = (k + n) % 2 == 0 }
                local packed = tide._quantized_pack(weight_of(w, scales, points, k == 1), groups)
                local sums = tide.conv1d((x - 43):double(), w:double() - along(points, 2), nil, 1, 0, 1, groups)
                local want, q = round(sums, c, scales, bias, 1), bytes(x, c.sa, 43)
                local what = ("%dx%dx%d %s of %d groups"):format(m, n, depth, granularity, groups)
                for _, put in ipairs { q, q:transpose(2, 3):contiguous():transpose(2, 3) } do
                    same(tide._quantized_conv(put, packed, bias, c.sc, c.zc, { 1 }, { 1 }, { 0 }, { 1 }, c.relu), want, what)
                end
                if groups == 1 then
                    local rows = q:reshape(depth, m):t()
                    local rank2 = tide._quantized_pack(weight_of(w:reshape(n, depth), scales, points, k == 1))
                    same(tide._quantized_linear(rows, rank2, bias, c.sc, c.zc, c.relu), want[1]:t(), what)
                end
            end
        end
    end
end)

-- Sums themselves: a range of 0 to 255 has the scale 1, so that floats are the sums.
t.test("acc32", function()
    tide.manual_seed(3)
    for _, shape in ipairs(SHAPES) do
        local m, n, depth = table.unpack(shape)
        local x, w = ints(0, 255, { m, depth }), ints(-128, 127, { n, depth })
        x[1][1], x[1][2] = 0, 255
        local packed = tide._quantized_pack(weight_of(w, tide.ones(n, doubles), tide.zeros(n):long()))
        local y = tide._quantized_linear_dynamic(x:float(), packed)
        t.is_true(tide.equal(y:double(), tide.matmul(x:double(), w:t():double())), ("%dx%dx%d"):format(m, n, depth))
    end
end)

local function convolution(c, what)
    local k, s, p, n = c.kernel, c.stride, c.padding, c.groups
    local x, w = ints(0, 255, { c.batch, c.channels, table.unpack(c.size) }), ints(-128, 127, { c.out, c.channels // n, k, k })
    local scales, points = share(c.granularity, c.out, n, -50, -10)
    if c.symmetric then
        points = points * 0
    end
    local bias = c.bias and tide.randn(c.out) or nil
    local to = { sa = 1, sc = c.sc or 1, zc = 5, relu = c.relu }
    local packed = tide._quantized_pack(weight_of(w, scales, points, c.granularity == "TENSOR"), n)
    local sums = tide.conv2d((x - c.point):double(), w:double() - along(points, 3), nil, s, p, 1, n)
    same(tide._quantized_conv(bytes(x, 1, c.point), packed, bias, to.sc, to.zc, { k, k }, { s, s }, { p, p }, { 1, 1 }, c.relu),
        round(sums, to, scales, bias, 2), what)
end

-- Kernel, stride, padding and groups in all combinations; the others take their values in turn.
t.test("uniconv", function()
    tide.manual_seed(4)
    local n = 0
    local function turn(list, every) return list[n // every % #list + 1] end
    for _, kernel in ipairs { 1, 3, 5, 7 } do
        for stride = 1, 2 do
            for padding = 0, 2 do
                for _, groups in ipairs { 1, 4, 16 } do
                    n = n + 1
                    convolution({ batch = turn({ 1, 2 }, 1), channels = turn({ 16, 32 }, 2), out = turn({ 16, 32 }, 3),
                        size = { turn({ 10, 10, 30 }, 4), turn({ 10, 30, 55 }, 1) }, groups = groups, kernel = kernel, stride = stride,
                        padding = padding, point = turn({ 0, 43 }, 5), symmetric = turn({ true, false }, 7), bias = n % 2 == 0,
                        relu = n % 3 == 0, granularity = turn({ "TENSOR", "GROUP", "OUT_CHANNEL" }, 2) },
                        ("kernel %d stride %d padding %d groups %d"):format(kernel, stride, padding, groups))
                end
            end
        end
    end
end)

-- GConvTest: few channels in each of many groups.
t.test("groupwise", function()
    tide.manual_seed(5)
    local n = 0
    for _, each in ipairs { 2, 4, 8, 16 } do
        for _, groups in ipairs { 1, 2, 8, 32 } do
            for stride = 1, 2 do
                for _, granularity in ipairs { "TENSOR", "GROUP", "OUT_CHANNEL" } do
                    n = n + 1
                    convolution({ batch = 1, channels = each * groups, out = each * groups, groups = groups, size = { 7, 9 }, kernel = 3,
                        stride = stride, padding = 1, point = n % 2 * 43, symmetric = n % 3 == 0, bias = n % 4 > 1, relu = n % 5 == 0,
                        granularity = granularity }, ("%d groups of %d"):format(groups, each))
                end
            end
        end
    end
end)

t.test("depthwise", function()
    tide.manual_seed(6)
    for _, channels in ipairs { 8, 16, 24, 33, 64, 72 } do
        for times = 1, 2 do
            for stride = 1, 2 do
                for _, kernel in ipairs { 3, 5 } do
                    for k = 0, 3 do
                        convolution({ batch = 2, channels = channels, out = channels * times, groups = channels, size = { 9, 14 },
                            kernel = kernel, stride = stride, padding = kernel // 2, point = k % 2 * 43, symmetric = k < 2, bias = k == 0,
                            relu = k == 1, sc = 0.25, granularity = k % 2 == 0 and "TENSOR" or "OUT_CHANNEL" },
                            ("%d channels, %d results of each"):format(channels, times))
                    end
                end
            end
        end
    end
end)

t.test("quantize", function()
    tide.manual_seed(7)
    local limits = { [tide.quint8] = { 0, 255 }, [tide.qint8] = { -128, 127 } }
    for dtype, limit in pairs(limits) do
        for _, n in ipairs { 1, 2, 5, 8, 9, 16, 20, 28, 32, 33 } do
            local x = tide.randn(n) * 40
            local inverse = 1 / tide.tensor(0.3, floats)
            local want = ((x * inverse):round():long() + 3):clamp(table.unpack(limit))
            same(tide.quantize_per_tensor(x, 0.3, 3, dtype), want, ("%d numbers"):format(n))
        end
    end
    local x = tide.full({ 33 }, -2.9483526e-05)
    t.is_true(tide.equal(tide.quantize_per_tensor(x, 2.3124334356729307e-07, 128, tide.quint8):int_repr():long(), tide.zeros(33):long() + 1))
    x = tide.tensor({ 3.40282e38, -2.16845e38 }, floats)
    for dtype, limit in pairs(limits) do
        t.eq(table.concat(tide.quantize_per_tensor(x, 1.19209e-07, 0, dtype):int_repr():tolist(), " "), limit[2] .. " " .. limit[1])
    end
end)

-- QuantizeGroupwise: K channels, of which the neighbours of a group have one scale; its layouts KCX and KXC.
t.test("quantize_groupwise", function()
    tide.manual_seed(8)
    for _, k in ipairs { 4, 12, 64 } do
        for _, c in ipairs { 12, 16, 32 } do
            for _, places in ipairs { 1, 10, 15, 30 } do
                for _, groups in ipairs { 1, 4 } do
                    local scales, points = share("GROUP", k, groups, -20, 20)
                    scales = scales * 100
                    local x = tide.randn(k, c, places) * 4
                    local want = ((x * along(1 / scales:float(), 2)):round():long() + along(points, 2)):clamp(-128, 127)
                    for _, put in ipairs { x, x:transpose(2, 3):contiguous():transpose(2, 3) } do
                        same(tide.quantize_per_channel(put, scales, points, 1, tide.qint8), want, ("%dx%dx%d"):format(k, c, places))
                    end
                end
            end
        end
    end
end)

-- ---- beside fbgemm's engine ----

-- The generator and the digest of grids.py.
local function draw(sizes, seed, low, high)
    local n = 1
    for _, size in ipairs(sizes) do
        n = n * size
    end
    local k = tide.arange(0, n)
    return (low + ((k * k % 65521) * (2 * seed + 1) + k * 40503 + seed * 977) % 65521 % (high - low + 1)):reshape(sizes)
end

local function digest(y)
    local v = y:int_repr():long():reshape(-1)
    local k = tide.arange(0, v:numel())
    return ((v + 1) * ((k * k % 65521 * 31 + k * 17) % 65521 + 1)):sum():item()
end

local function golden_weight(sizes, seed, case)
    local scales, points = draw({ sizes[1] }, seed + 1, 1, 16):double() / 16384, draw({ sizes[1] }, seed + 2, -20, 20)
    if case.whole then
        scales = tide.full({ 1 }, 1 / 2048, doubles)
    end
    return weight_of(draw(sizes, seed, -64, 63), scales, case.symmetric and points * 0 or points, case.whole)
end

t.test("bytes_are_fbgemms", function()
    local counts = { linear = 0, conv = 0, transposed = 0 }
    for line in io.lines(os.getenv("TIDE_SOURCE") .. "/tests/golden/quantization/grids.jsonl") do
        local case = json.read(line)
        local seed, y = case.seed, nil
        if case.linear then
            local m, n, depth = table.unpack(case.linear)
            local packed = tide._quantized_pack(golden_weight({ n, depth }, seed + 4, case))
            local bias = not case.relu and draw({ n }, seed + 3, -64, 64):float() / 32 or nil
            y = tide._quantized_linear(bytes(draw({ m, depth }, seed, 0, 127), 0.03125, 43), packed, bias, 0.25, 5, case.relu)
            counts.linear = counts.linear + 1
        elseif case.transposed then
            local channels, out, groups, k, s, p, extra, dilation = table.unpack(case.transposed)
            case.whole = true
            y = tide.nn.quantized.functional.conv_transpose2d(bytes(draw({ 2, channels, table.unpack(case.size) }, seed, 0, 127), 0.03125, case.point),
                golden_weight({ channels, out // groups, k, k }, seed + 4, case), draw({ out }, seed + 3, -64, 64):float() / 32, s, p, extra, groups,
                dilation, 0.125, 7):contiguous()
            counts.transposed = counts.transposed + 1
        else
            local batch, channels, out, groups, k, s, p = table.unpack(case.conv)
            local packed = tide._quantized_pack(golden_weight({ out, channels // groups, k, k }, seed + 4, case), groups)
            local x = bytes(draw({ batch, channels, table.unpack(case.size) }, seed, 0, 127), 0.03125, case.point)
            y = tide._quantized_conv(x, packed, draw({ out }, seed + 3, -64, 64):float() / 32, 0.125, 7, { k, k }, { s, s }, { p, p },
                { 1, 1 }, case.relu):contiguous()
            counts.conv = counts.conv + 1
        end
        t.eq(digest(y), case.digest, line)
    end
    t.eq(counts.linear, 32)
    t.eq(counts.conv, 128)
    t.eq(counts.transposed, 36)
end)
