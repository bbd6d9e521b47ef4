-- test_quantized_conv.lua: convolutions of bytes against sums of integers worked out by other operators, in the rounding
-- that engine/ops/quantized/README.md states; and sums, products and means of quantized tensors.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn

local refused = t.refused

local function ints(low, high, sizes) return tide.randint(low, high + 1, sizes) end
local function bytes(x, scale, point) return tide._make_per_tensor_quantized_tensor(x:to(tide.uint8), scale, point) end

local function along(x, n)
    local sizes = { -1 }
    for d = 1, n do
        sizes[d + 1] = 1
    end
    return x:reshape(sizes)
end

-- The sums in int64, then float32 as td_quantized_conv_plan says.
local function reference(c, x, w, points, scales, bias, residual)
    local n = #c.kernel
    local sums = tide[("conv%dd"):format(n)](x:long() - c.za, w:long() - along(points, n + 1), nil, c.stride, c.padding, c.dilation, c.groups)
    local both = tide.tensor(0.02, { dtype = tide.float32 }) * scales:float()
    local value = sums:float()
    if bias then
        value = value + along(bias / both, n)
    end
    value = value * along(both / c.sc, n)
    if residual then
        value = value + (residual:long() - 7):float() * (tide.tensor(0.03, { dtype = tide.float32 }) / c.sc)
    end
    return (value:round():clamp(-100000, 100000):long() + 5):clamp(c.relu and 5 or 0, 255)
end

local function list(value, n)
    local all = {}
    for d = 1, n do
        all[d] = type(value) == "table" and value[d] or value
    end
    return all
end

-- c: batch, channels, out, groups, size (in), kernel, stride, padding, dilation, za, symmetric, whole, bias, relu, residual, last
local function run(c)
    local n = #c.kernel
    c.groups, c.za, c.sc = c.groups or 1, c.za or 43, c.sc or 0.7
    c.stride, c.padding, c.dilation = list(c.stride or 1, n), list(c.padding or 0, n), list(c.dilation or 1, n)
    local x = c.x or ints(0, 255, { c.batch or 2, c.channels, table.unpack(c.size) })
    local w = c.w or ints(-128, 127, { c.out, c.channels // c.groups, table.unpack(c.kernel) })
    local points = c.symmetric and tide.zeros(c.out):long() or ints(-50, -10, { c.out })
    local scales = tide.rand(c.out, { dtype = tide.float64 }) * 0.001 + 0.0005
    if c.whole then
        points, scales = points[1]:expand(c.out), scales[1]:expand(c.out)
    end
    local weight = c.whole and tide._make_per_tensor_quantized_tensor(w:to(tide.int8), scales[1]:item(), points[1]:item())
        or tide._make_per_channel_quantized_tensor(w:to(tide.int8), scales, points, 1)
    local bias = c.bias and tide.randn(c.out) or nil
    local residual
    if c.residual then
        local shape = tide[("conv%dd"):format(n)](x, w, nil, c.stride, c.padding, c.dilation, c.groups).shape
        residual = ints(0, 255, shape)
    end
    local q = bytes(x, 0.02, c.za)
    if c.last then
        q = q:contiguous { memory_format = n == 2 and "channels_last" or "channels_last_3d" }
    end
    local y = tide._quantized_conv(q, tide._quantized_pack(weight, c.groups), bias, c.sc, 5, c.kernel, c.stride, c.padding, c.dilation, c.relu,
        residual and bytes(residual, 0.03, 7))
    return y, reference(c, x, w, points, scales, bias, residual)
end

local function check(c, what)
    local y, want = run(c)
    t.is_true(tide.equal(y:int_repr():long(), want), what)
end

-- FBGEMM's UniConvTest, its planes made smaller.
t.test("convolutions_are_exact_over_fbgemms_shapes", function()
    tide.manual_seed(3)
    local n = 0
    for _, kernel in ipairs { 1, 3, 5, 7 } do
        for _, stride in ipairs { 1, 2 } do
            for padding = 0, 2 do
                for _, groups in ipairs { 1, 4, 16 } do
                    n = n + 1
                    check({ batch = 1 + n % 2, channels = 16, out = n % 3 == 0 and 32 or 16, groups = groups, size = { 10, 13 },
                        kernel = { kernel, kernel }, stride = stride, padding = padding, bias = n % 2 == 0, relu = n % 5 == 0,
                        symmetric = n % 4 == 0, last = n % 2 == 1, residual = n % 7 == 0 },
                        ("kernel %d stride %d padding %d groups %d"):format(kernel, stride, padding, groups))
                end
            end
        end
    end
end)

t.test("one_and_three_dims_dilations_and_uneven_sizes_are_exact", function()
    tide.manual_seed(4)
    check { channels = 3, out = 5, size = { 17 }, kernel = { 4 }, stride = 2, padding = 1, dilation = 2, bias = true }
    check { channels = 6, out = 9, groups = 3, size = { 9 }, kernel = { 3 }, padding = 1, whole = true }
    check { channels = 4, out = 6, size = { 5, 6, 7 }, kernel = { 2, 3, 3 }, stride = { 1, 2, 1 }, padding = { 1, 0, 1 }, last = true }
    check { channels = 8, out = 8, groups = 8, size = { 4, 5, 6 }, kernel = { 3, 1, 3 }, padding = 1, bias = true, relu = true }
    check { channels = 3, out = 65, size = { 9, 8 }, kernel = { 7, 5 }, stride = 2, padding = { 3, 2 }, symmetric = true }
    check { channels = 20, out = 33, size = { 6, 7 }, kernel = { 3, 2 }, dilation = { 1, 3 }, padding = { 0, 3 } }
    check { channels = 12, out = 7, size = { 8, 5 }, kernel = { 1, 1 }, stride = 2, residual = true, relu = true }
    check { channels = 12, out = 70, size = { 8, 5 }, kernel = { 1, 1 }, bias = true, whole = true, last = true }
    check { channels = 64, out = 40, size = { 15, 16 }, kernel = { 3, 3 }, padding = 1, symmetric = true, last = true }
end)

-- I8DepthwiseTest: every number of channels around a vector's, one or two results of each.
t.test("depthwise_convolutions_are_exact", function()
    tide.manual_seed(5)
    for _, channels in ipairs { 2, 8, 15, 16, 17, 31, 32, 48, 70 } do
        for times = 1, 2 do
            for stride = 1, 2 do
                check({ channels = channels, out = channels * times, groups = channels, size = { 7, 6 }, kernel = { 3, 3 }, stride = stride,
                    padding = 1, bias = times == 1, symmetric = stride == 1, relu = channels % 2 == 0, residual = channels == 16 },
                    ("%d channels"):format(channels))
            end
        end
    end
    check { channels = 24, out = 24, groups = 24, size = { 11, 9 }, kernel = { 5, 5 }, dilation = 2, padding = 4, last = true }
    -- lines long enough for places that meet no edge to be run by themselves
    for _, channels in ipairs { 5, 16, 40, 70 } do
        for _, width in ipairs { 49, 50, 55, 56, 61 } do
            check { channels = channels, out = channels, groups = channels, size = { 4, width }, kernel = { 3, 3 }, padding = 1,
                residual = width == 55, relu = width == 56, symmetric = width % 2 == 1 }
        end
        for _, symmetric in ipairs { false, true } do
            check { channels = channels, out = channels, groups = channels, size = { 3, 105 }, kernel = { 3, 3 }, stride = 2, padding = 1, symmetric = symmetric }
            check { channels = channels, out = channels, groups = channels, size = { 60 }, kernel = { 4 }, dilation = 2, symmetric = symmetric }
            check { channels = channels, out = channels, groups = channels, size = { 9, 11 }, kernel = { 5, 5 }, padding = 2, symmetric = symmetric, za = 0 }
        end
    end
end)

-- Neighbouring groups are packed as one as far as a panel's 16 columns go, and as their number divides.
t.test("groups_of_few_channels_are_exact", function()
    tide.manual_seed(11)
    for _, c in ipairs { { 2, 2, 32 }, { 4, 4, 8 }, { 3, 5, 6 }, { 8, 4, 5 }, { 1, 2, 7 }, { 4, 1, 12 }, { 6, 16, 3 }, { 5, 9, 4 } } do
        local inputs, outputs, groups = table.unpack(c)
        check({ channels = inputs * groups, out = outputs * groups, groups = groups, size = { 9, 8 }, kernel = { 3, 3 }, padding = 1,
            bias = groups % 2 == 0, symmetric = inputs == 4, za = inputs == 4 and 0 or nil, residual = inputs == 2 },
            ("%d groups of %d and %d channels"):format(groups, inputs, outputs))
    end
    -- columns that read bytes of their own: weights that saturate or not, tiles of all heights, edges, other zero points
    for _, c in ipairs { { 4, 8, 128 }, { 8, 4, 128 }, { 4, 4, 50 }, { 8, 6, 50 }, { 8, 3, 128 }, { 4, 6, 128 } } do
        local channels, groups, most = table.unpack(c)
        for za = 0, 9, 9 do
            check({ channels = channels * groups, out = channels * groups, groups = groups, size = { 7, 5 + groups }, kernel = { 3, 2 },
                padding = 1, w = ints(-most, most - 1, { channels * groups, channels, 3, 2 }), symmetric = true, za = za, bias = true,
                stride = za == 0 and 1 or 2, dilation = groups % 3 == 0 and 2 or 1, relu = za == 9, residual = most == 50, last = true },
                ("%d groups of %d channels, weights below %d"):format(groups, channels, most))
        end
    end
    local function weight(sizes) return tide.quantize_per_tensor(tide.randn(sizes), 0.1, 0, tide.qint8) end
    t.eq(tide._quantized_pack(weight { 128, 4, 3, 3 }, 32):size(1), 8)
    t.eq(tide._quantized_pack(weight { 15, 4, 3, 3 }, 5):dim(), 1)
end)

-- Elements of the kernel that are outside are left out where the zero point is 0: kernels that reach across all of the input, and strides
-- and paddings that leave places with no element at all.
t.test("what_lies_outside_multiplies_zeros", function()
    tide.manual_seed(12)
    for _, za in ipairs { 0, 9 } do
        check { channels = 8, out = 20, size = { 4, 4 }, kernel = { 3, 3 }, padding = 1, za = za, batch = 5, residual = true }
        check { channels = 8, out = 20, size = { 9, 9 }, kernel = { 3, 3 }, padding = 4, dilation = 4, za = za, symmetric = true }
        check { channels = 4, out = 6, size = { 3, 30 }, kernel = { 5, 5 }, padding = 2, za = za, batch = 4, last = true }
        check { channels = 4, out = 6, size = { 2, 3 }, kernel = { 2, 3 }, padding = { 5, 4 }, stride = { 1, 3 }, za = za, bias = true }
        check { channels = 8, out = 6, size = { 3, 4 }, kernel = { 1, 1 }, padding = 2, za = za, bias = true, batch = 9 }
        check { channels = 4, out = 6, size = { 4, 5, 6 }, kernel = { 3, 3, 3 }, padding = 1, za = za, batch = 8 }
        check { channels = 4, out = 6, size = { 12, 12 }, kernel = { 7, 7 }, padding = 3, za = za }
        check { channels = 16, out = 16, groups = 4, size = { 8, 8 }, kernel = { 3, 3 }, padding = 1, stride = 2, za = za, batch = 6 }
    end
end)

t.test("sums_that_saturate_16_bits_are_exact", function()
    for _, value in ipairs { 127, -128 } do
        for _, groups in ipairs { 1, 16 } do
            check { x = tide.full({ 1, 16, 6, 6 }, 255):long(), w = tide.full({ 16, 16 // groups, 3, 3 }, value):long(), channels = 16,
                out = 16, groups = groups, kernel = { 3, 3 }, padding = 1, symmetric = true, za = 0, sc = 90 }
        end
    end
end)

t.test("any_number_of_threads_gives_the_same_bits", function()
    local before = tide.get_num_threads()
    for k, groups in ipairs { 1, 2, 32, 32 } do
        local want
        for n = 1, 3 do
            tide.set_num_threads(n)
            tide.manual_seed(6)
            local y = run { batch = 3, channels = 32, out = k == 4 and 32 or 160, groups = groups, size = { 30, k == 4 and 113 or 30 },
                kernel = { 3, 3 }, padding = 1 }
            want = want or y
            t.is_true(tide.equal(y, want))
        end
    end
    tide.set_num_threads(before)
end)

t.test("results_lie_channels_last_and_images_need_no_batch", function()
    local q = bytes(ints(0, 255, { 2, 3, 5, 6 }), 0.1, 4)
    local conv = nn.quantized.Conv2d.from_float(nn.Conv2d(3, 4, 3, { padding = 1 }), { scale = 0.1, zero_point = 9 })
    local y = conv(q)
    t.is_true(y:int_repr():is_contiguous { memory_format = "channels_last" })
    t.is_true(tide.equal(conv(q[2]):int_repr(), y[2]:int_repr()))
    t.eq(tostring(conv(bytes(tide.zeros(0, 3, 5, 6), 0.1, 4)).shape), "(0, 4, 5, 6)")
end)

t.test("functions_do_what_layers_do", function()
    tide.manual_seed(9)
    for n = 1, 3 do
        local layer = nn[("Conv%dd"):format(n)](4, 6, 3, { groups = 2, stride = 2 })
        local conv = nn.quantized[("Conv%dd"):format(n)].from_float(layer, { scale = 0.05, zero_point = 90 })
        local q = bytes(ints(0, 255, { 2, 4, table.unpack(list(7, n)) }), 0.02, 100)
        local y = nn.quantized.functional[("conv%dd"):format(n)](q, conv.weight, conv.bias, 2, 0, 1, 2, 0.05, 90)
        t.is_true(tide.equal(y, conv(q)))
    end
    local linear = nn.quantized.Linear.from_float(nn.Linear(4, 3), { scale = 0.05, zero_point = 90 })
    local q = bytes(ints(0, 255, { 2, 4 }), 0.02, 100)
    t.is_true(tide.equal(nn.quantized.functional.linear(q, linear.weight, linear.bias, 0.05, 90), linear(q)))
end)

t.test("sums_and_products_round_what_the_floats_would_be", function()
    tide.manual_seed(7)
    for _, dtype in ipairs { "quint8", "qint8" } do
        local point = dtype == "quint8" and 100 or -3
        local a = tide.quantize_per_tensor(tide.randn(3, 5, 7, 9), 0.02, point, dtype)
        local b = tide.quantize_per_tensor(tide.randn(3, 5, 7, 9), 0.03, point + 20, dtype)
        for _, layout in ipairs { "contiguous", "channels_last", "turned" } do
            local x = layout == "channels_last" and a:contiguous { memory_format = layout } or a
            local y = layout == "turned" and b:transpose(3, 4):contiguous():transpose(3, 4) or b
            local function round(z) return tide.quantize_per_tensor(z, 0.05, point + 1, dtype) end
            t.is_true(tide.equal(tide._quantized_add(x, y, 0.05, point + 1), round(a:dequantize() + b:dequantize())), layout)
            t.is_true(tide.equal(tide._quantized_mul(x, y, 0.05, point + 1), round(a:dequantize() * b:dequantize())), layout)
            t.is_true(tide.equal(tide._quantized_add(x, y, 0.05, point + 1, true), round((a:dequantize() + b:dequantize()):relu())), layout)
        end
        t.is_true(tide.equal(tide._quantized_add(a, b[1][1], 0.05, point), tide._quantized_add(a, b[1][1]:expand(3, 5, 7, 9):contiguous(), 0.05, point)))
    end
    local q = nn.quantized.QFunctional(0.05, 3)
    local a, b = tide.quantize_per_tensor(tide.randn(2, 3), 0.02, 10, "quint8"), tide.quantize_per_tensor(tide.randn(2, 3), 0.03, 100, "quint8")
    local joined = q:cat({ a, b }, 2)
    t.eq(joined:q_scale(), 0.05)
    t.is_true(tide.equal(joined, tide.quantize_per_tensor(tide.cat({ a:dequantize(), b:dequantize() }, 2), 0.05, 3, "quint8")))
end)

t.test("pooling_means_and_resizing_keep_the_parameters", function()
    tide.manual_seed(8)
    local x = ints(0, 255, { 2, 3, 8, 6 })
    local q = bytes(x, 0.1, 31)
    local function same(y, want)
        t.eq(y:q_scale(), 0.1)
        t.eq(y:q_zero_point(), 31)
        t.is_true(tide.equal(y:int_repr():long(), want))
    end
    local float = x:double() - 31
    local function back(y) return (y:round() + 31):clamp(0, 255):long() end
    same(tide.max_pool2d(q, 3, 2, 1), tide.max_pool2d(x, 3, 2, 1))
    same(q:contiguous { memory_format = "channels_last" }:relu(), x:clamp_min(31))
    same(tide.adaptive_max_pool2d(q, 2), tide.adaptive_max_pool2d(x, 2))
    same(tide.avg_pool2d(q, 3, 2, 1), back(tide.avg_pool2d(float, 3, 2, 1)))
    same(tide.adaptive_avg_pool2d(q, { 1, 2 }), back(tide.adaptive_avg_pool2d(float, { 1, 2 })))
    same(q:mean { 3, 4 }, back(float:mean { 3, 4 }))
    same(tide.interpolate(q, { 16, 12 }), tide.interpolate(x:double(), { 16, 12 }):long())
    local written = q:clone()
    written:relu_()
    same(written, x:clamp_min(31))
    refused("no other dtype", function() return q:mean({ 3 }, { dtype = tide.float64 }) end)
    refused("out=", tide.relu, q, { out = tide.zeros(2, 3, 8, 6) })
    local channels = tide.quantize_per_channel(float:float(), tide.ones(3), tide.zeros(3):long(), 2, "quint8")
    refused("quantized by channel", tide.avg_pool2d, channels, 2)
    refused("quantized by channel", tide.relu, channels)
    refused("dequantize", tide.max_pool2d, q, 2, { return_indices = true })
    refused("dequantize", tide.softmax, q, 1)
    refused("dequantize", tide.conv_transpose2d, q, tide.randn(3, 2, 2, 2))
end)

t.test("bad_input_is_one_clear_line", function()
    local conv = nn.quantized.Conv2d.from_float(nn.Conv2d(4, 6, 3))
    local weight = tide.quantize_per_tensor(tide.randn(6, 2, 3, 3), 0.1, 0, tide.qint8)
    local two = { 1, 1 }
    local function call(x, packed, options)
        options = options or {}
        return tide._quantized_conv(x, packed, options.bias, options.scale or 1, options.point or 0, options.kernel or { 3, 3 }, two, { 0, 0 },
            two, false, options.residual)
    end
    local q = bytes(tide.zeros(1, 4, 5, 5), 1, 0)
    refused("a quint8 tensor expected, or in_scale", conv, tide.randn(1, 4, 5, 5))
    refused("a quint8 tensor of one scale", conv, tide.quantize_per_tensor(tide.zeros(1, 4, 5, 5), 1, 0, tide.qint8))
    refused("takes 4 channels, input has 3", conv, bytes(tide.zeros(1, 3, 5, 5), 1, 0))
    refused("doesn't fit the padded input", conv, bytes(tide.zeros(1, 4, 2, 5), 1, 0))
    refused("residual has shape", conv, q, bytes(tide.zeros(1, 6, 4, 3), 1, 0))
    refused("can't be divided into 4 groups", tide._quantized_pack, weight, 4)
    refused("can't be divided into 0 groups", tide._quantized_pack, weight, 0)
    refused("its channels are its rows", tide._quantized_pack,
        tide.quantize_per_channel(tide.randn(6, 2, 3, 3), tide.ones(2), tide.zeros(2):long(), 2, tide.qint8), 2)
    refused("scales and zero_points have an element for each of the 6", tide.quantize_per_channel, tide.randn(6, 2, 3, 3), tide.ones(5),
        tide.zeros(5):long(), 1, tide.qint8)
    local packed = tide._quantized_pack(weight, 2)
    refused("a zero point of quint8 is from 0 to 255, got 256", call, q, packed, { point = 256 })
    refused("a scale is above 0", call, q, packed, { scale = 0 })
    refused("don't have a kernel of 5 elements", call, q, packed, { kernel = { 5, 1 } })
    refused("doesn't fit 6 features", call, q, packed, { bias = tide.zeros(5) })
    refused("bias is int64", call, q, packed, { bias = tide.zeros(6):long() })
    refused("packed weights expected", call, q, tide.zeros(2, 64):to(tide.uint8))
    refused("a linear layer expected", tide._quantized_linear, bytes(tide.zeros(1, 18), 1, 0),
        tide._quantized_pack(tide.quantize_per_tensor(tide.randn(40, 2, 3, 3), 0.1, 0, tide.qint8), 2), nil, 1, 0)
    refused("padding_mode 'reflect'", nn.quantized.Conv2d.from_float, nn.Conv2d(2, 2, 3, { padding_mode = "reflect" }))
    refused("can't be divided into 3 groups", nn.quantized.Conv2d, 4, 6, 3, { groups = 3 })
    refused("two quint8 or two qint8 tensors", tide._quantized_add, q, tide.zeros(1), 1, 0)
end)
