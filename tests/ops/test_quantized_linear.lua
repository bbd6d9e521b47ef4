-- test_quantized_linear.lua: products of bytes against sums of integers worked out by other operators, and models
-- quantized dynamically and statically.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn

local refused = t.refused

local function weight_of(ints, scales, points)
    return tide._make_per_channel_quantized_tensor(ints:to(tide.int8), scales, points, 1)
end

-- What td_quantized_linear_plan says, by operators of float32 and int64.
local function reference(x, za, sa, w, scales, zb, bias, sc, zc, relu)
    local sums = tide.matmul(x:long() - za, (w:long() - zb:reshape(-1, 1)):t())
    local both = tide.tensor(sa, { dtype = tide.float32 }) * scales:float()
    local value = sums:float()
    if bias then
        value = value + bias / both
    end
    local rounded = (value * (both / sc)):round():clamp(-100000, 100000):long() + zc
    return rounded:clamp(relu and zc or 0, 255)
end

local function ints(low, high, ...) return tide.randint(low, high + 1, { ... }) end

local function check(m, n, k, options)
    local x, w = options.x or ints(0, 255, m, k), options.w or ints(-128, 127, n, k)
    local points = options.points or ints(-50, -10, n)
    local scales = tide.rand(n, { dtype = tide.float64 }) * 0.001 + 0.0005
    local bias = options.bias and tide.randn(n) or nil
    local packed = tide._quantized_pack(weight_of(w, scales, points))
    local q = tide._make_per_tensor_quantized_tensor(x:to(tide.uint8), 0.02, options.za or 43)
    local y = tide._quantized_linear(q, packed, bias, options.sc or 0.013, 5, options.relu)
    local want = reference(x, options.za or 43, 0.02, w, scales, points, bias, options.sc or 0.013, 5, options.relu)
    t.is_true(tide.equal(y:int_repr():long(), want), ("%dx%dx%d"):format(m, n, k))
end

-- FBGEMM's PackedRequantizeTest, its largest shapes made smaller.
t.test("products_are_exact_over_fbgemms_shapes", function()
    tide.manual_seed(3)
    for _, shape in ipairs { { 1, 128, 512 }, { 1, 128, 513 }, { 6, 64, 512 }, { 6, 128, 256 }, { 6, 128, 257 }, { 102, 83, 256 },
        { 102, 32, 257 }, { 120, 4, 288 } } do
        for _, bias in ipairs { false, true } do
            for _, relu in ipairs { false, true } do
                check(shape[1], shape[2], shape[3], { bias = bias, relu = relu, sc = 0.05 })
            end
        end
    end
end)

-- sum * (x scale * weight scale) + bias, in float32 in this order; the scale of x is 1/128, found as its range is 255 of it.
t.test("floats_are_the_sums_times_both_scales_plus_the_bias", function()
    tide.manual_seed(5)
    for _, columns in ipairs { 1, 15, 16, 17, 47, 64, 65, 130 } do
        for rows = 1, 8 do
            local x = ints(-100, 155, rows, 20)
            x[1][1], x[1][2] = -100, 155
            local w, points = ints(-128, 127, columns, 20), rows % 2 == 0 and ints(-50, -10, columns) or tide.zeros(columns):long()
            local scales = tide.rand(columns, { dtype = tide.float64 }) * 0.001 + 0.0005
            local bias, relu = rows % 3 > 0 and tide.randn(columns) or nil, rows % 4 > 1
            local want = tide.matmul(x, (w - points:view(-1, 1)):t()):float() * (scales:float() / 128) + (bias or 0)
            local y = tide._quantized_linear_dynamic(x:float() / 128, tide._quantized_pack(weight_of(w, scales, points)), bias, relu)
            t.is_true(tide.equal(y, relu and want:relu() or want), ("%d rows, %d columns"):format(rows, columns))
        end
    end
end)

-- RequantizeOnlyTest: every small number of rows and columns.
t.test("products_are_exact_for_every_small_shape", function()
    tide.manual_seed(4)
    for rows = 1, 7 do
        for _, columns in ipairs { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 32, 47, 64, 65 } do
            check(rows, columns, 1 + (rows * columns) % 9, { bias = columns % 2 == 0, relu = rows % 2 == 0, sc = 0.001, za = 3 })
        end
    end
end)

t.test("sums_of_pairs_that_saturate_16_bits_are_exact", function()
    local points = tide.zeros(5):long()
    for _, w in ipairs { 127, -128 } do
        check(3, 5, 64, { x = tide.full({ 3, 64 }, 255):long(), w = tide.full({ 5, 64 }, w):long(), points = points, sc = 2, za = 0 })
    end
    -- 211 * 71 + 171 * 107 saturates in fbgemm's AVX2 kernel
    local q = tide._make_per_tensor_quantized_tensor(tide.tensor { { 211, 171 } }:to(tide.uint8), 1, 0)
    local packed = tide._quantized_pack(weight_of(tide.tensor { { 71, 107 } }, tide.ones(1), tide.zeros(1):long()))
    t.eq(tide._quantized_linear(q, packed, nil, 256, 0):int_repr():item(), 130)
end)

t.test("any_number_of_threads_gives_the_same_bits", function()
    tide.manual_seed(5)
    local linear = nn.quantized.dynamic.Linear.from_float(nn.Linear(130, 70))
    local x, before = tide.randn(33, 130), tide.get_num_threads()
    local want = linear(x)
    for n = 1, 3 do
        tide.set_num_threads(n)
        t.is_true(tide.equal(linear(x), want))
    end
    tide.set_num_threads(before)
    -- a row of a batch is what it is alone, as long as its range is
    x[1] = x:amax() * tide.ones(130)
    x[2] = x:amin() * tide.ones(130)
    t.is_true(tide.equal(linear(x)[{ { 1, 3 } }], linear(x[{ { 1, 3 } }])))
end)

t.test("shapes_of_leading_dims_are_kept_and_empty_batches_are_empty", function()
    local linear = nn.quantized.dynamic.Linear.from_float(nn.Linear(6, 4))
    t.eq(tostring(linear(tide.randn(2, 3, 6)).shape), "(2, 3, 4)")
    t.eq(tostring(linear(tide.randn(6)).shape), "(4)")
    t.eq(tostring(linear(tide.randn(0, 6)).shape), "(0, 4)")
    t.eq(linear(tide.randn(4, 12)[{ {}, { 1, 12, 2 } }]).shape[2], 4)
end)

t.test("proof_counts_pairs_that_could_saturate", function()
    local linear = nn.Linear(8, 2, false)
    tide.no_grad(function()
        linear.weight:copy_(tide.tensor { { 1, 1, 0, 0, 0, 0, 0, 0 }, { 0.5, 0.4, 0.1, 0.1, 0, 0, 0, 1 } })
    end)
    local proof = nn.quantized.dynamic.Linear.from_float(linear):proof()
    t.eq(proof.pairs, 8)
    t.eq(proof.unsafe_pairs, 1) -- 127 + 127; 64 + 51 and 127 + 0 cannot saturate
    t.is_true(proof.cost >= 0 and proof.cost <= 1 / 3)
end)

local function model()
    tide.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 5))
end

local function snr(want, got)
    return 10 * math.log(want:square():sum():item() / (want - got):square():sum():item(), 10)
end

t.test("quantize_dynamic_keeps_the_model_and_what_it_computes", function()
    local m = model()
    local x, before = tide.randn(64, 20), tostring(m)
    local d = Q.quantize_dynamic(m, { nn.Linear })
    t.eq(tostring(m), before)
    t.is_true(snr(m(x), d(x)) > 35)
    t.eq(d[1].weight.dtype, tide.qint8)
    t.is_true(d[1].relu)
    refused("RNN, Embedding and EmbeddingBag are replaced, got class Conv2d", Q.quantize_dynamic, m, { nn.Conv2d })
end)

t.test("prepare_calibrate_convert", function()
    local m = model()
    local p = Q.prepare(m)
    refused("has seen no data", Q.convert, p)
    for _ = 1, 4 do
        p(tide.randn(64, 20))
    end
    local c, x = Q.convert(p), tide.randn(64, 20)
    t.is_true(snr(m(x), c(x)) > 25)
    t.eq(c(x).dtype, tide.float32)
    t.is_true(not c[1].floats, "the next layer takes bytes")
    t.is_true(c[3].floats, "tanh takes floats")
    local report = Q.report(m, c, x)
    t.eq(#report, 3)
    t.is_true(report[1].bytes * 3 < report[1].float_bytes)
    t.is_true(report[3].snr > 25)
    t.is_true(string.find(tostring(report), "SNR", 1, true))
    refused("prepare it first", Q.convert, m)
end)

t.test("a_quantized_model_is_saved_by_its_state", function()
    local d = Q.quantize_dynamic(model())
    local x, path = tide.randn(3, 20), os.tmpname()
    tide.save(d:state_dict(), path)
    local state = tide.load(path)
    os.remove(path)
    t.is_true(tide.equal(state["1.weight"], d[1].weight))
    tide.manual_seed(2)
    local fresh = Q.quantize_dynamic(model())
    tide.no_grad(function()
        for _, layer in ipairs { fresh[1], fresh[3], fresh[5] } do
            layer.weight = tide.quantize_per_channel(tide.zeros(layer.weight.shape), tide.ones(layer.weight:size(1)),
                tide.zeros(layer.weight:size(1)):long(), 1, tide.qint8)
        end
    end)
    t.is_true(not tide.equal(fresh(x), d(x)))
    fresh:load_state_dict(state)
    t.is_true(tide.equal(fresh(x), d(x)))
    local static = nn.quantized.Linear.from_float(nn.Linear(20, 4), { scale = 0.25, zero_point = 7, in_scale = 0.02, in_zero_point = 128 })
    local other = nn.quantized.Linear(20, 4, { in_scale = 1 })
    other:load_state_dict(static:state_dict())
    t.is_true(tide.equal(other(x), static(x)))
    t.eq(other(x):q_zero_point(), 7)
end)

t.test("fake_quantization_trains", function()
    local x = tide.randn(32, 4, { requires_grad = true })
    local fake = Q.FakeQuantize(Q.MinMaxObserver { dtype = "qint8", qscheme = "per_tensor_symmetric" })
    local y = fake(x)
    t.is_true((y - x):abs():amax():item() <= x:abs():amax():item() / 127)
    y:sum():backward()
    t.is_true(tide.equal(x.grad, tide.ones(32, 4)))
    fake.fake_quant_enabled = false
    t.is_true(tide.equal(fake(x), x))
    local learned = Q.LearnableFakeQuantize(0.5)
    local opt = tide.optim.SGD(learned:parameters(), { lr = 0.1 })
    local first
    for _ = 1, 30 do
        opt:zero_grad()
        local loss = (learned(x:detach()) - x:detach()):square():sum()
        first = first or loss:item()
        loss:backward()
        opt:step()
    end
    t.is_true((learned(x) - x):square():sum():item() < first / 2, "the step size is learned")
end)

t.test("bad_input_is_one_clear_line", function()
    local linear = nn.quantized.dynamic.Linear.from_float(nn.Linear(6, 4))
    refused("doesn't fit a weight of shape (4, 6)", linear, tide.randn(2, 5))
    refused("NaN or infinity", linear, tide.tensor { 1, 2, 3, 4, 5, 0 / 0 })
    refused("float", linear, tide.zeros(6):long())
    refused("dequantize", linear, tide.quantize_per_tensor(tide.zeros(6), 1, 0, tide.quint8))
    refused("packed weights expected", tide._quantized_linear_dynamic, tide.randn(6), tide.zeros(64):to(tide.uint8))
    local static = nn.quantized.Linear.from_float(nn.Linear(6, 4))
    refused("a quint8 tensor expected", static, tide.randn(6))
    refused("a quint8 tensor", static, tide.quantize_per_tensor(tide.zeros(6), 1, 0, tide.qint8))
    refused("a qint8 tensor expected", tide._quantized_pack, tide.randn(2, 2))
    refused("its channels are its rows", tide._quantized_pack,
        tide.quantize_per_channel(tide.randn(2, 2), tide.ones(2), tide.zeros(2):long(), 2, tide.qint8))
    refused("don't fit 32 bits", tide._quantized_pack, tide.quantize_per_tensor(tide.zeros(1, 33025), 1, 0, tide.qint8))
    refused("has seen no data", function() return Q.HistogramObserver():calculate_qparams() end)
    refused("NaN or infinity", Q.MinMaxObserver(), tide.tensor { 1, 0 / 0 })
    refused("NaN or infinity", Q.HistogramObserver(), tide.tensor { 1, 1 / 0 })
    refused("quant_min", Q.MinMaxObserver, { quant_min = 3, quant_max = 2 })
    refused("reduce_range", Q.MinMaxObserver, { qscheme = "per_tensor_symmetric", reduce_range = true })
    refused("a scale", Q.fake_quantize_per_tensor_affine, tide.randn(2), 0, 0, 0, 255)
    refused("a zero point", Q.fake_quantize_per_tensor_affine, tide.randn(2), 1, 300, 0, 255)
    refused("quant_min", Q.fake_quantize_per_tensor_affine, tide.randn(2), 1, 0, 5, 5)
    refused("axis 3", Q.fake_quantize_per_channel_affine, tide.randn(2, 2), tide.ones(2), tide.zeros(2), 3, 0, 255)
    refused("above 0", Q.LearnableFakeQuantize, 0)
end)
