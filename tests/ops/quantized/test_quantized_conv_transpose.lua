-- test_quantized_conv_transpose.lua: transposed convolutions of bytes against sums of integers worked out by other operators,
-- in the rounding that engine/ops/quantized/README.md states, and as layers of a model.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn

local refused = t.refused

local function ints(low, high, sizes) return tide.randint(low, high + 1, sizes) end
local function bytes(x, scale, point) return tide._make_per_tensor_quantized_tensor(x:to(tide.uint8), scale, point) end
local function float32(x) return tide.tensor(x, { dtype = tide.float32 }) end

local function list(value, n)
    local all = {}
    for d = 1, n do
        all[d] = type(value) == "table" and value[d] or value
    end
    return all
end

-- A number for each place of a dim of a tensor of so many dims.
local function along(x, dim, ndim)
    local sizes = list(1, ndim)
    sizes[dim] = -1
    return x:reshape(sizes)
end

-- c: channels, out, groups, size (in), kernel, stride, padding, extra, dilation, za, whole, symmetric, bias, batch, last
local function run(c)
    local n = #c.kernel
    local groups, za, scale = c.groups or 1, c.za or 43, 0.7
    local stride, padding, extra = list(c.stride or 1, n), list(c.padding or 0, n), list(c.extra or 0, n)
    local dilation, outputs = list(c.dilation or 1, n), c.out // groups
    local x = ints(0, 255, { c.batch or 2, c.channels, table.unpack(c.size) })
    local w = ints(-128, 127, { c.channels, outputs, table.unpack(c.kernel) })
    local points = c.symmetric and tide.zeros(outputs):long() or ints(-50, 50, { outputs })
    local scales = tide.rand(outputs, { dtype = tide.float64 }) * 0.001 + 0.0005
    if c.whole then
        points, scales = points[1]:expand(outputs), scales[1]:expand(outputs)
    end
    local weight = c.whole and tide._make_per_tensor_quantized_tensor(w:to(tide.int8), scales[1]:item(), points[1]:item())
        or tide._make_per_channel_quantized_tensor(w:to(tide.int8), scales:contiguous(), points:contiguous(), 2)
    local bias = c.bias and tide.randn(c.out) or nil
    local q = bytes(x, 0.02, za)
    if c.last then
        q = q:contiguous { memory_format = n == 2 and "channels_last" or "channels_last_3d" }
    end
    local y = nn.quantized.functional[("conv_transpose%dd"):format(n)](q, weight, bias, stride, padding, extra, groups, dilation, scale, 5)
    local sums = tide[("conv_transpose%dd"):format(n)](x:long() - za, w:long() - along(points, 2, n + 2), nil, stride, padding, extra, groups,
        dilation)
    local both = float32(0.02) * scales:float():tile { groups }
    local value = sums:float()
    if bias then
        value = value + along(bias / both, 2, n + 2)
    end
    value = value * along(both / scale, 2, n + 2)
    return y, (value:round():clamp(-100000, 100000):long() + 5):clamp(0, 255)
end

local function check(c, what)
    local y, want = run(c)
    t.eq(tostring(y.shape), tostring(want.shape))
    t.is_true(tide.equal(y:int_repr():long(), want), what)
end

t.test("transposed_convolutions_are_exact_for_every_stride", function()
    tide.manual_seed(3)
    local n = 0
    for _, kernel in ipairs { 1, 2, 3, 4, 5 } do
        for _, stride in ipairs { 1, 2, 3 } do
            for _, groups in ipairs { 1, 2, 16 } do
                for dilation = 1, 2 do
                    n = n + 1
                    check({ channels = 16, out = n % 3 == 0 and 32 or 16, groups = groups, size = { 5, 7 }, kernel = { kernel, kernel },
                        stride = stride, padding = (kernel - 1) * dilation // 2, extra = n % stride, dilation = dilation, bias = n % 2 == 0,
                        symmetric = n % 4 == 0, whole = n % 5 == 0, last = n % 2 == 1, za = n % 3 == 1 and 0 or nil },
                        ("kernel %d stride %d groups %d dilation %d"):format(kernel, stride, groups, dilation))
                end
            end
        end
    end
end)

t.test("one_and_three_dims_and_uneven_numbers_are_exact", function()
    tide.manual_seed(4)
    check { channels = 3, out = 5, size = { 17 }, kernel = { 4 }, stride = 3, padding = 2, dilation = 2, bias = true }
    check { channels = 6, out = 9, groups = 3, size = { 9 }, kernel = { 3 }, padding = 1, whole = true, batch = 1 }
    check { channels = 4, out = 6, size = { 3, 4, 5 }, kernel = { 2, 3, 4 }, stride = { 1, 2, 3 }, padding = { 1, 0, 2 }, extra = { 0, 1, 2 }, last = true }
    check { channels = 8, out = 8, groups = 8, size = { 4, 5, 6 }, kernel = { 3, 1, 3 }, stride = 2, padding = { 1, 0, 1 }, bias = true }
    check { channels = 20, out = 33, size = { 6, 7 }, kernel = { 3, 2 }, stride = { 2, 1 }, dilation = { 3, 4 }, padding = { 2, 3 } }
    check { channels = 12, out = 70, size = { 8, 5 }, kernel = { 2, 2 }, stride = 2, bias = true, whole = true, za = 0 }
    -- strides beyond the kernel, and places that no element reaches
    check { channels = 8, out = 4, size = { 3, 3 }, kernel = { 2, 1 }, stride = { 5, 3 }, extra = { 4, 2 }, bias = true }
    check { channels = 8, out = 8, groups = 8, size = { 2, 3 }, kernel = { 2, 1 }, stride = { 5, 3 }, extra = { 4, 2 }, bias = true }
    check { channels = 8, out = 4, size = { 5, 5 }, kernel = { 3, 3 }, stride = 2, dilation = 4, padding = 3 }
    check { channels = 4, out = 4, size = { 1 }, kernel = { 2 }, stride = 4 }
    check { channels = 4, out = 4, size = { 4 }, kernel = { 3 }, dilation = 3, extra = 2 }
end)

t.test("any_number_of_threads_gives_the_same_bits", function()
    local before = tide.get_num_threads()
    for _, groups in ipairs { 1, 2, 32 } do
        local want
        for n = 1, 3 do
            tide.set_num_threads(n)
            tide.manual_seed(6)
            local y = run { channels = 32, out = 96, groups = groups, size = { 30, 30 }, kernel = { 4, 4 }, stride = 2, padding = 1 }
            want = want or y
            t.is_true(tide.equal(y, want))
        end
    end
    tide.set_num_threads(before)
end)

t.test("layers_are_made_of_floats_and_keep_their_state", function()
    tide.manual_seed(9)
    for n = 1, 3 do
        local name = ("ConvTranspose%dd"):format(n)
        local layer = nn[name](4, 6, 3, { groups = 2, stride = 2, output_padding = 1 })
        local small = nn.quantized[name].from_float(layer, { scale = 0.05, zero_point = 90 })
        t.eq(small.weight:q_per_channel_axis(), 2)
        local q = bytes(ints(0, 255, { 2, 4, table.unpack(list(4, n)) }), 0.02, 100)
        local y = small(q)
        t.is_true(tide.equal(y[1], small(q[1])), "no batch")
        t.is_true((layer(q:dequantize()) - y:dequantize()):abs():amax():item() < 0.1, name)
        local other = nn.quantized[name](4, 6, 3, { groups = 2, stride = 2, output_padding = 1 })
        other:load_state_dict(small:state_dict())
        t.is_true(tide.equal(other(q), y))
        t.is_true(small:proof().pairs > 0)
        t.eq(small:plan(q, { runs = 1 }).shape, tostring(q.shape))
    end
end)

t.test("models_are_prepared_and_converted", function()
    tide.manual_seed(10)
    local net = nn.Sequential(nn.Conv2d(3, 8, 3, { stride = 2, padding = 1 }), nn.ReLU(), nn.ConvTranspose2d(8, 8, 4, { stride = 2, padding = 1 }),
        nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 4, 3, { padding = 1, groups = 2 }), nn.BatchNorm2d(4))
    net(tide.randn(16, 3, 12, 12))
    net:eval()
    local x = tide.randn(8, 3, 12, 12)
    for _, backend in ipairs { "onednn", "qnnpack" } do
        local prepared = Q.prepare(net, { qconfig = Q.get_default_qconfig(backend) })
        prepared(x)
        local small = Q.convert(prepared)
        t.eq(tostring(getmetatable(small[3]).__name), "ConvTranspose2d")
        t.is_true(small[3].weight.is_quantized and small[3].relu, "with its batch norm and ReLU")
        local want = net(x)
        t.is_true((small(x) - want):square():mean():item() < 0.01 * want:var():item(), backend)
    end
    local trained = Q.prepare_qat(net)
    trained(x):square():mean():backward()
    t.is_true(Q.convert(trained:eval())[3].weight.is_quantized)
end)

t.test("bad_input_is_one_clear_line", function()
    local F = nn.quantized.functional
    local q = bytes(tide.zeros(1, 4, 5, 5), 1, 0)
    local weight = tide.quantize_per_tensor(tide.randn(4, 3, 3, 3), 0.1, 0, tide.qint8)
    refused("its columns, dim 2", F.conv_transpose2d, q,
        tide.quantize_per_channel(tide.randn(4, 3, 3, 3), tide.ones(4), tide.zeros(4):long(), 1, tide.qint8))
    refused("don't take 3 channels", F.conv_transpose2d, bytes(tide.zeros(1, 3, 5, 5), 1, 0), weight)
    refused("output_padding 2", F.conv_transpose2d, q, weight, nil, 2, 0, 2)
    refused("a result of size -1", F.conv_transpose2d, q, weight, nil, 1, 4)
    refused("a qint8 tensor (in, out / groups, kernel) of 4 dims and 3 groups", F.conv_transpose2d, q, weight, nil, 1, 0, 0, 3)
    refused("a quint8 tensor of one scale", F.conv_transpose2d, tide.quantize_per_tensor(tide.zeros(1, 4, 5, 5), 1, 0, tide.qint8), weight)
    refused("doesn't fit 3 features", F.conv_transpose2d, q, weight, tide.zeros(4))
    refused("can't be divided into 3 groups", nn.quantized.ConvTranspose2d, 4, 6, 3, { groups = 3 })
    refused("1 packed weights for 4 remainders", tide._quantized_conv_transpose, q, { tide._quantized_pack(weight) }, nil, 1, 0, { 3, 3 }, { 2, 2 },
        { 0, 0 }, { 0, 0 }, { 1, 1 })
end)
