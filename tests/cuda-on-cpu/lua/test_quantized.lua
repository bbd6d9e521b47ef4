-- test_quantized.lua: quantized tensors, products of bytes and weights of few bits on the device: the CPU's bits.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("quantized tensors", "no CUDA device")
    return
end

tide.manual_seed(21)
local nn, Q = tide.nn, tide.quantization

local function there(x) return tide.is_tensor(x) and x:to("cuda") or x end

-- fn of arguments on the CPU and on the device: one quantized or floating tensor, whose bits agree.
local function same(what, fn, ...)
    local here, moved = table.pack(...), {}
    for k = 1, here.n do
        moved[k] = there(here[k])
    end
    local want, got = fn(...), fn(table.unpack(moved, 1, here.n))
    t.eq(got.device, "cuda:0", what)
    t.eq(got.dtype, want.dtype, what)
    t.eq(got.shape, want.shape, what)
    local back = got:cpu()
    if want.is_quantized then
        t.is_true(tide.equal(back, want), what)
    else
        t.is_true(tide.allclose(back, want, { rtol = 0, atol = 0, equal_nan = true }), what)
    end
end

local refused = t.refused

local function ints(low, high, ...) return tide.randint(low, high + 1, { ... }) end
local function bytes(x, scale, point) return tide._make_per_tensor_quantized_tensor(x:to(tide.uint8), scale, point) end

-- A weight of full bytes, by channel or of one scale, with zero points or none.
local function weight(sizes, by_channel, centred)
    local w = tide.randint(-128, 128, sizes):to(tide.int8)
    if not by_channel then
        return tide._make_per_tensor_quantized_tensor(w, 0.003, centred and 0 or -5)
    end
    local points = centred and tide.zeros(sizes[1]):long() or ints(-50, 10, sizes[1])
    return tide._make_per_channel_quantized_tensor(w, tide.rand(sizes[1], { dtype = tide.float64 }) * 0.01 + 0.0005, points, 1)
end

-- ---- tensors ----

t.test("floats_are_rounded_as_on_the_cpu", function()
    local x = tide.cat { tide.randn(3000) * 50, tide.tensor { 0 / 0, 1 / 0, -1 / 0, 0.0, -0.0, 0.25, 0.75, 1.25, 1e30, -1e30, 1e-42 } }
    for dtype, point in pairs { quint8 = 100, qint8 = -7, qint32 = 2000000000 } do
        for _, scale in ipairs { 0.5, 0.1, 1e-7, 3e30, 1.5e-38 } do
            same(dtype, function(a) return tide.quantize_per_tensor(a, scale, point, dtype) end, x)
            same(dtype, function(a) return tide.quantize_per_tensor(a, scale, point, dtype):dequantize() end, x)
        end
    end
    local images = tide.randn(4, 5, 6, 7)
    for axis = 1, 4 do
        local n = images:size(axis)
        same("axis " .. axis, function(a, s, z) return tide.quantize_per_channel(a, s, z, axis, tide.qint8) end, images,
            tide.rand(n):double() * 0.1 + 0.01, ints(-20, 20, n))
    end
    same("nothing", function(a) return tide.quantize_per_tensor(a, 1, 0, tide.quint8) end, tide.zeros(0, 3))
end)

t.test("operators_of_quantized_tensors_give_the_same", function()
    local x = tide.quantize_per_tensor(tide.randn(2, 3, 8, 6), 0.05, 100, tide.quint8)
    local F = nn.functional
    local calls = {
        views = function(a) return a:transpose(2, 4)[2] end,
        contiguous = function(a) return a:permute(1, 3, 4, 2):contiguous() end,
        cat = function(a) return tide.cat({ a, tide.quantize_per_tensor(a:dequantize(), 0.07, 3, tide.quint8) }, 2) end,
        relu = function(a) return a:relu() end,
        relu6 = F.relu6,
        clamp = function(a) return a:clamp(-0.5, 1) end,
        max_pool = function(a) return F.max_pool2d(a, 2) end,
        avg_pool = function(a) return F.avg_pool2d(a, 3, 2) end,
        adaptive = function(a) return F.adaptive_avg_pool2d(a, 1) end,
        mean = function(a) return a:mean(3) end,
        interpolate = function(a) return F.interpolate(a, { scale_factor = 2 }) end,
        copy = function(a)
            local b = a:clone()
            b[1] = a[2]:dequantize() * 1.5
            return b
        end,
    }
    for name, fn in pairs(calls) do
        same(name, fn, x)
    end
    for _, rows in ipairs { 50, 2 } do -- a table for many, floats for few
        local a = tide.quantize_per_tensor(tide.randn(rows, 60), 0.05, -3, tide.qint8)
        both.reset()
        for _, name in ipairs { "sigmoid", "tanh", "gelu", "hardsigmoid" } do
            local fn = tide[name] or F[name]
            local want, got = fn(a), fn(there(a))
            t.eq({ got:q_scale(), got:q_zero_point() }, { want:q_scale(), want:q_zero_point() }, name)
            local off = (got:cpu():int_repr():int() - want:int_repr():int()):abs():max():item()
            t.is_true(off <= (both.counts and 0 or 1), name) -- a chip's functions may differ in the last bit
        end
        if both.counts then
            t.eq(both.launches "byte_lookup", rows == 50 and 4 or 0)
        end
    end
    local function qfunctional(a, b)
        local f = nn.quantized.QFunctional { scale = 0.11, zero_point = 60 }
        return tide.cat { f:add(a, b):flatten(), f:mul(a, b):flatten(), f:add_relu(a, b):flatten(), f:mul_relu(a, b):flatten() }
    end
    same("sums and products", qfunctional, x, tide.quantize_per_tensor(tide.randn(2, 3, 8, 6), 0.03, 128, tide.quint8))
end)

t.test("a_tensor_by_channel_is_the_same_there_and_back", function()
    local x = tide.quantize_per_channel(tide.randn(4, 6), tide.rand(4):double() + 0.1, ints(-5, 5, 4), 1, tide.qint8)
    local y = there(x)
    t.is_true(tide.equal(y:cpu(), x))
    t.is_true(tide.equal(there(x), y), "parameters that lie elsewhere on the device are compared")
    t.is_false(tide.equal(there(tide.quantize_per_channel(x:dequantize(), tide.ones(4):double(), tide.zeros(4):long(), 1, tide.qint8)), y))
    t.eq((tostring(y):gsub("cuda:0", "cpu")), tostring(x))
    t.eq(y[3]:q_scale(), x[3]:q_scale())
    -- a copy takes over parameters from another device
    local to = there(tide.quantize_per_channel(tide.zeros(4, 6), tide.ones(4):double(), tide.zeros(4):long(), 1, tide.qint8))
    to:copy_(x)
    t.is_true(tide.equal(to, y))
    local path = os.tmpname()
    tide.save({ x = y }, path)
    t.is_true(tide.equal(tide.load(path).x:cpu(), x))
    os.remove(path)
end)

t.test("observers_and_fake_quantization_see_the_same", function()
    local x = tide.randn(6, 40)
    for _, name in ipairs { "MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver", "HistogramObserver" } do
        for _, symmetric in ipairs { false, true } do
            local scheme = (name:find "Channel" and "per_channel_" or "per_tensor_") .. (symmetric and "symmetric" or "affine")
            local found = {}
            for _, device in ipairs { "cpu", "cuda" } do
                local observer = Q[name] { dtype = "qint8", qscheme = scheme }:to(device)
                for k = 1, 3 do
                    observer(x:to(device) * k)
                end
                local scales, points = observer:calculate_qparams()
                t.eq(scales.device, device == "cpu" and "cpu" or "cuda:0", name)
                found[#found + 1] = tide.cat { scales:cpu():double(), points:cpu():double() }
            end
            t.is_true(tide.equal(found[1], found[2]), name .. " " .. scheme)
        end
    end
    local results = {}
    for _, device in ipairs { "cpu", "cuda" } do
        local fake, a = Q.FakeQuantize():to(device), x:to(device):detach():requires_grad_()
        local y = fake(a)
        y:square():sum():backward()
        results[#results + 1] = tide.stack { y:detach():cpu(), a.grad:cpu() }
    end
    t.is_true(tide.equal(results[1], results[2]))
end)

-- ---- products of bytes ----

-- That bytes were multiplied by the kernel that they should be, where it can be counted.
local function check_kernel(name)
    if both.counts then
        t.is_true(both.launches(name) > 0, name)
    end
end

-- Layers of rows m, columns n and a depth, with weights of one scale and by channel.
local function check_linear(k, m, n, depth, points)
    for _, by_channel in ipairs { false, true } do
        for _, centred in ipairs(points or { false, true }) do
            local x, w = bytes(ints(0, 255, m, depth), 0.02, (k * 37) % 256), weight({ n, depth }, by_channel, centred)
            local bias = k % 2 == 0 and tide.randn(n) or nil
            same(("%dx%dx%d"):format(m, n, depth), function(a, b, c)
                return tide._quantized_linear(a, tide._quantized_pack(b), c, 0.05 * depth ^ 0.5, 70, k % 3 == 0)
            end, x, w, bias)
            same(("%dx%dx%d, dynamic"):format(m, n, depth), function(a, b, c)
                return tide._quantized_linear_dynamic(a, tide._quantized_pack(b), c, k % 3 == 0)
            end, tide.randn(m, depth), w, bias)
        end
    end
end

t.test("linear_layers_of_every_small_shape", function()
    both.reset()
    for k, shape in ipairs { { 1, 1, 1 }, { 1, 5, 7 }, { 2, 3, 4 }, { 3, 4, 8 }, { 5, 7, 16 }, { 7, 8, 17 }, { 1, 64, 33 }, { 33, 10, 30 },
        { 17, 65, 64 }, { 40, 12, 129 }, { 3, 9, 1200 } } do
        check_linear(k, table.unpack(shape))
    end
    check_kernel "byte_small"
end)

t.test("linear_layers_of_many_rows", function()
    both.reset()
    for k, depth in ipairs { 40, 208 } do -- bytes that are gathered, and whole ones that take more steps than there are stages
        check_linear(k, 330, 500, depth, { k == 1 })
    end
    check_kernel "byte_tiles"
end)

t.test("bytes_that_begin_anywhere", function() -- vectors of them are read only where they are aligned
    local x = bytes(ints(0, 255, 5 * 32 + 1), 0.02, 77)
    same("rows", function(a, b) return tide._quantized_linear(a[{ { 2, 161 } }]:view(5, 32), tide._quantized_pack(b), nil, 1, 70) end, x,
        weight({ 6, 32 }, true, false))
    local images = bytes(ints(0, 255, 4 * 25 * 8 + 1), 0.02, 77)
    same("channels", function(a, b)
        local lines = a[{ { 2, 801 } }]:view(4, 5, 5, 8):permute(1, 4, 2, 3)
        return tide._quantized_conv(lines, tide._quantized_pack(b, 8), nil, 1, 70, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 })
    end, images, weight({ 8, 1, 3, 3 }, true, false))
end)

t.test("the_largest_sums_are_exact", function()
    local depth = 33024
    for _, w in ipairs { 127, -128 } do
        for _, x in ipairs { 0, 255 } do
            same(("%d times %d"):format(x, w), function(a, b)
                return tide._quantized_linear(a, tide._quantized_pack(b), nil, 3e7, 128)
            end, bytes(tide.full({ 2, depth }, x), 1, 255 - x), tide._make_per_tensor_quantized_tensor(tide.full({ 3, depth }, w):to(tide.int8), 1, -1 - w))
        end
    end
end)

-- Sizes of x and of the weight, and the kernel that multiplies them if it is not byte_small; what is not said is one, or a padding of 0.
local CONVS <const> = {
    { { 2, 3, 9, 8 }, { 5, 3, 3, 3 } },
    { { 2, 3, 9, 8 }, { 5, 3, 3, 2 }, stride = { 2, 1 }, padding = { 1, 2 }, dilation = { 1, 2 } },
    { { 1, 8, 5, 5 }, { 7, 8, 1, 1 } },
    { { 3, 16, 6, 5 }, { 12, 16, 3, 3 }, padding = { 1, 1 }, stride = { 2, 2 } },
    { { 2, 12, 6, 5 }, { 10, 6, 3, 3 }, groups = 2, padding = { 1, 1 } },
    { { 2, 16, 41, 40 }, { 56, 16, 3, 3 }, "byte_tiles", padding = { 1, 1 } },
    { { 2, 3, 41, 40 }, { 56, 3, 3, 3 }, "byte_tiles", padding = { 2, 1 }, dilation = { 2, 1 } },
    { { 2, 32, 38, 38 }, { 64, 16, 3, 3 }, "byte_tiles", groups = 2, padding = { 1, 1 } },
    { { 2, 12, 6, 5 }, { 8, 3, 3, 3 }, "byte_direct", groups = 4, padding = { 1, 1 } },
    { { 2, 9, 6, 5 }, { 9, 1, 3, 3 }, "byte_direct", groups = 9, padding = { 1, 1 } },
    { { 1, 6, 7, 5 }, { 12, 1, 3, 3 }, "byte_direct", groups = 6, stride = { 2, 2 } },
    { { 1, 4, 14, 13 }, { 4, 1, 12, 12 }, "byte_direct", groups = 4 }, -- more weights than a block has room for
    { { 2, 12, 6, 5 }, { 12, 1, 3, 3 }, "byte_depthwise", groups = 12, padding = { 1, 1 } },
    { { 1, 136, 5, 9 }, { 136, 1, 5, 5 }, "byte_depthwise", groups = 136, padding = { 2, 2 } },
    { { 2, 8, 9, 11 }, { 8, 1, 3, 3 }, "byte_depthwise", groups = 8, padding = { 1, 2 }, stride = { 2, 2 } },
    { { 2, 8, 9, 11 }, { 8, 1, 2, 4 }, "byte_depthwise", groups = 8, padding = { 0, 3 }, dilation = { 3, 2 } },
    { { 3, 4, 11 }, { 4, 1, 4 }, "byte_depthwise", groups = 4, padding = { 2 } },
    { { 4, 10 }, { 5, 4, 3 } }, -- one signal without a batch
    { { 3, 5, 11 }, { 4, 5, 4 }, padding = { 2 }, stride = { 3 } },
    { { 2, 3, 4, 5, 6 }, { 4, 3, 2, 3, 2 }, padding = { 0, 1, 1 } },
}

local function filled(value, n)
    local list = {}
    for d = 1, n do
        list[d] = value
    end
    return list
end

local HOWS <const> = { { bias = true }, { residual = true, by_channel = true }, { relu = true, by_channel = true, centred = true, last = true } }

t.test("convolutions_of_every_kind", function()
    for number, c in ipairs(CONVS) do
        both.reset()
        local sizes, kernel = c[2], { table.unpack(c[2], 3) }
        local n = #kernel
        for _, how in ipairs(HOWS) do
            local function fn(a, b, bias, add)
                return tide._quantized_conv(a, tide._quantized_pack(b, c.groups or 1), bias, 1.3, 90, kernel, c.stride or filled(1, n),
                    c.padding or filled(0, n), c.dilation or filled(1, n), how.relu or false, add)
            end
            local x = ints(0, 255, table.unpack(c[1])):to(tide.uint8)
            x = how.last and #c[1] == 4 and x:contiguous { memory_format = tide.channels_last } or x
            local a, b = bytes(x, 0.03, 31), weight(sizes, how.by_channel, how.centred)
            local bias = how.bias and tide.randn(sizes[1]) or nil
            local add = how.residual and bytes(ints(0, 255, table.unpack(fn(a, b).shape)), 0.4, 11) or nil
            same("convolution " .. number, fn, a, b, bias, add)
        end
        check_kernel(c[3] or "byte_small")
    end
end)

t.test("transposed_convolutions", function()
    local _ <close> = tide.no_grad()
    for groups = 1, 2 do
        for _, dilation in ipairs { 1, 2 } do
            local layer = nn.ConvTranspose2d(4, 6, 3, { stride = 2, padding = 1, output_padding = 1, groups = groups, dilation = dilation })
            layer = nn.quantized.ConvTranspose2d.from_float(layer, { scale = 0.05, zero_point = 90 })
            local x = tide.quantize_per_tensor(tide.randn(2, 4, 5, 6), 0.03, 110, tide.quint8)
            local want = layer(x)
            t.is_true(tide.equal(layer:cuda()(there(x)):cpu(), want), groups .. " groups")
        end
    end
end)

-- ---- weights of few bits ----

t.test("weights_of_few_bits_in_groups", function()
    local groups = tide._require "quantization.groups"
    for _, kind in ipairs { { 8, 32 }, { 8, 64, true }, { 8, 704, true }, { 4, 32 }, { 4, 128, true }, { 6, 16, true }, { 6, 48 } } do
        local bits, size, symmetric = table.unpack(kind)
        for _, shape in ipairs { { 1, 1, 1 }, { 1, 33, 40 }, { 5, 7, 100 }, { 9, 17, 700 } } do
            local m, n, k = table.unpack(shape)
            local rounded, s, z = groups.round(tide.randn(n, k), bits, size, symmetric or false)
            local w, scales, mins = groups.pack(rounded, s, z, bits, size)
            local x = tide.randn(m, k) * 3
            x[1][1] = m == 5 and 0 / 0 or m == 9 and 1e-42 or 100
            same(("%d bits, groups of %d, %dx%dx%d"):format(bits, size, m, n, k), function(a, b, c, d, e)
                return tide._grouped_linear(a, b, c, d, e, n, bits, size)
            end, x, w, scales, mins, m > 1 and tide.randn(n) or nil)
        end
    end
    if both.counts then
        t.is_true(both.launches "grouped_kernel" > 0, "its kernel ran")
    end
end)

-- ---- tables of rows ----

local TABLE_DTYPES <const> = { [8] = "quint8", [4] = "quint4x2" }

t.test("tables_are_packed_to_the_same_bytes", function()
    for _, bits in ipairs { 8, 4 } do
        for _, n in ipairs { 2, 6, 70 } do
            local x = tide.randn(11, n) * 3
            x[1], x[2], x[3] = 0, -2.5, x[3] * 1e-9
            x[4][1], x[4][2] = 0.0, -0.0 -- of which the first is the offset
            x["4, 3:"] = 0
            x[5][2], x[6] = 6e4, x[6] * 1e-42
            same(("%d bits, %d elements"):format(bits, n), function(a) return tide._pack_rows(a, bits) end, x)
            same("every second", function(a) return tide._pack_rows(a["::2"], bits) end, x)
        end
        same("no rows", function(a) return tide._pack_rows(a, bits) end, tide.zeros(0, 8))
    end
    same("large", function(a) return tide._pack_rows(a, 8) end, tide.tensor { { 3e38, -3e38, 1, 0 }, { 1e38, 2e38, 3e38, 1.5e38 } })
    if both.counts then
        t.is_true(both.launches "pack_rows_kernel" > 0, "its kernel ran")
    end
end)

t.test("bags_of_rows_give_the_same", function()
    local index, offsets = tide.randint(1, 41, { 100 }), tide.tensor { 1, 5, 5, 80, 101 }
    local samples = tide.randn(100)
    for _, bits in ipairs { 8, 4 } do
        for _, n in ipairs { 6, 64 } do
            local rows = tide._pack_rows(tide.randn(42, n), bits)
            for first = 0, 1 do -- of a table that begins within another, elements need not lie at multiples of 4 bytes
                for _, options in ipairs { {}, { mean = true }, { last = true }, { padding = 3 }, { mean = true, last = true, padding = -1 } } do
                    for _, weights in ipairs { false, samples } do
                        same(("%d bits, %d elements"):format(bits, n), function(a, i, o, w)
                            return tide._add_rows(a[{ { 1 + first, 40 + first } }], i, o, w or nil, n, bits, options.mean or false, options.last or false, options.padding)
                        end, rows, index, offsets, weights)
                    end
                end
                same("a matrix of indices", function(a, i) return tide._add_rows(a, i, nil, nil, n, bits, true, false, nil) end, rows, index:view(20, 5))
            end
        end
    end
    same("no bags", function(a, i, o) return tide._add_rows(a, i, o, nil, 4, 8, false, false, nil) end, tide._pack_rows(tide.randn(3, 4), 8), tide.zeros(0):long(),
        tide.zeros(0):long())
    if both.counts then
        t.is_true(both.launches "add_rows_kernel" > 0, "its kernel ran")
    end
end)

t.test("layers_of_tables_go_to_the_device", function()
    local index, offsets = tide.randint(1, 31, { 24 }), tide.tensor { 1, 9, 9 }
    for bits, dtype in pairs(TABLE_DTYPES) do
        for _, class in ipairs { "Embedding", "EmbeddingBag" } do
            local from = nn[class](30, 10)
            local layer = nn.quantized[class].from_float(from, { dtype = dtype })
            local want = class == "Embedding" and layer(index:view(4, 6)) or layer(index, offsets)
            local floats = layer:dequantize()
            layer:cuda()
            t.is_true(tide.equal((class == "Embedding" and layer(there(index:view(4, 6))) or layer(there(index), there(offsets))):cpu(), want), class .. bits)
            t.is_true(tide.equal(layer:dequantize():cpu(), floats))
            local made = nn.quantized[class].from_float(from:cuda(), { dtype = dtype })
            t.is_true(tide.equal(made.weight:cpu(), layer.weight:cpu()), "packed there")
            t.is_true(tide.equal(layer:cpu():dequantize(), floats))
        end
    end
end)

-- The device tells what it found when the host waits for it.
t.test("rows_and_bags_that_are_not_there_are_refused", function()
    local rows = there(tide._pack_rows(tide.randn(5, 8), 8))
    local function read(index, offsets) return tide._add_rows(rows, there(index), offsets and there(offsets), nil, 8, 8, false, false, nil):cpu() end
    refused("index 6 is not a row from 1 to 5", read, tide.tensor { { 1, 6 } })
    refused("index 0: indices count from 1", read, tide.tensor { 0, 1, 2 }, tide.tensor { 3 })
    refused("offsets: a bag begins at 3 and ends before 2", read, tide.tensor { 1, 2, 3 }, tide.tensor { 1, 3, 2 })
    refused("offsets: a bag begins at 9 and ends before 4", read, tide.tensor { 1, 2, 3 }, tide.tensor { 9 })
    t.eq(read(tide.tensor { { 1, 5 } }).shape, { 1, 8 })
    refused("tensors on cuda:0 and cpu don't mix", tide._add_rows, rows, tide.ones(1, 1):long(), nil, nil, 8, 8, false, false, nil)
end)

-- ---- models ----

t.test("a_model_goes_to_the_device_with_all_that_it_has", function()
    local linear = nn.quantized.Linear.from_float(nn.Linear(8, 6), { scale = 0.05, zero_point = 100 }):cuda()
    for name, buffer in linear:named_buffers() do
        t.eq(buffer.device, "cuda:0", name)
    end
    t.eq(linear.weight.dtype, tide.qint8)
    t.eq(nn.BatchNorm1d(3):cuda().num_batches_tracked.device, "cuda:0")
    t.eq(nn.BatchNorm1d(3):cuda():half().num_batches_tracked.dtype, tide.int64)
    t.is_true(linear:proof().pairs == 24)
    local back = linear:cpu()
    t.eq(back.weight.device, "cpu")
end)

t.test("a_static_and_a_dynamic_model_and_one_of_few_bits_give_the_same_bits", function()
    tide.manual_seed(3)
    local net = nn.Sequential(nn.Conv2d(3, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, { groups = 8 }), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)):eval()
    local x = tide.randn(2, 3, 8, 8)
    local _ <close> = tide.no_grad()
    local prepared = Q.prepare(net)
    prepared(x)
    local static = Q.convert(prepared)
    local state = static:state_dict()
    local want = static(x)
    t.is_true(tide.equal(static:cuda()(there(x)):cpu(), want))
    static:load_state_dict(state) -- from the CPU into what lies on the device
    t.is_true(tide.equal(static(there(x)):cpu(), want))
    t.is_true(tide.equal(static:cpu()(x), want))
    local dense = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    local rows = tide.randn(5, 64)
    for name, made in pairs { dynamic = Q.quantize_dynamic(dense), int8 = Q.quantize_weights(dense), int4 = Q.quantize_weights(dense, { dtype = "int4" }) } do
        local here = made(rows)
        t.is_true(tide.equal(made:cuda()(there(rows)):cpu(), here), name)
    end
end)

t.test("layers_are_recorded", function()
    local _ <close> = tide.no_grad()
    local how = { in_scale = 0.02, in_zero_point = 120, scale = 0.05, zero_point = 100 }
    local linear = nn.quantized.Linear.from_float(nn.Linear(24, 6), how)
    local conv = nn.quantized.Conv2d.from_float(nn.Conv2d(4, 6, 3), how)
    local few = nn.quantized.WeightOnlyLinear.from_float(nn.Linear(24, 6), { dtype = "int4" })
    local rows, image = tide.randn(3, 24), tide.randn(1, 4, 6, 5)
    local function run(a, b) return linear(a):dequantize(), conv(b):dequantize(), few(a) end
    local want = { run(rows, image) }
    linear, conv, few = linear:cuda(), conv:cuda(), few:cuda()
    local a, b = tide.zeros(3, 24):cuda(), tide.zeros(1, 4, 6, 5):cuda()
    run(a, b) -- packs the weights, and asks for scales
    local graph, x, y, z = tide.cuda.graph(function() return run(a, b) end)
    a:copy_(rows)
    b:copy_(image)
    graph:replay()
    for k, got in ipairs { x, y, z } do
        t.is_true(tide.equal(got:cpu(), want[k]), "result " .. k)
    end
end)

t.test("what_does_not_go_is_refused_in_a_line", function()
    local q, w = bytes(ints(0, 255, 2, 8), 0.1, 3), weight({ 4, 8 }, true)
    refused("x lies on cuda:0, the packed weights on cpu", tide._quantized_linear, there(q), tide._quantized_pack(w), nil, 1, 0)
    refused("sums saturate on the CPU alone, the weight lies on cuda:0", tide._quantized_pack, there(w), 1, true)
    refused("doesn't fit a weight of shape (4, 8)", tide._quantized_linear, there(bytes(ints(0, 255, 2, 9), 0.1, 3)), tide._quantized_pack(there(w)), nil, 1, 0)
    refused("packed weights expected", tide._quantized_linear, there(q), there(tide.zeros(64):to(tide.uint8)), nil, 1, 0)
    refused("packed weights expected", tide._quantized_linear, there(q), tide._quantized_pack(there(w)):clone(), nil, 1, 0)
end)

t.finish()
