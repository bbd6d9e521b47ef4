-- test_onnx_quantized.lua: models of bytes written as models of ONNX, and ONNX's operators of bytes run by Tide's.
local t = require "harness"
local nn, Q = tide.nn, tide.quantization
local path = os.tmpname()

local function quantized(net, x, batches)
    local prepared = Q.prepare(net:eval())
    for _ = 1, batches or 2 do
        prepared(x)
    end
    return Q.convert(prepared)
end

local function written(model, x, options)
    tide.onnx.export(model, { x }, path, options)
    return tide.onnx.load(path)
end

-- The result of a model that was written is at most a step off, in few places.
local function near(model, x, step, options)
    local off = (model(x) - written(model, x, options)(x)):abs()
    t.is_true(off:amax():item() <= step * 1.001, off:amax():item())
    t.is_true(off:gt(step / 2):float():mean():item() < 0.05)
end

local refused = t.refused

t.test("layers_with_and_without_stubs_are_written_between_their_roundings", function()
    tide.manual_seed(1)
    local x = tide.randn(64, 3, 14, 14)
    local net = quantized(nn.Sequential(Q.QuantStub(), nn.Conv2d(3, 8, 3, { stride = 2 }), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, { padding = 1, groups = 8 }), nn.Hardswish(), nn.AvgPool2d(3), nn.Flatten(), nn.Linear(8, 5), Q.DeQuantStub()), x)
    near(net, x, net[10].scale:item(), { dynamic = { x = { 1 } } })
    local rows = tide.randn(40, 3, 8)
    local plain = quantized(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), rows)
    near(plain, rows, plain[3].scale:item())
    local model = io.open(path, "rb"):read "a"
    t.is_true(string.find(model, "QuantizeLinear", 1, true) and string.find(model, "DequantizeLinear", 1, true))
    t.is_true(#model < 2600, "weights are bytes")
end)

t.test("sums_in_bytes_are_written", function()
    tide.manual_seed(2)
    local Sum = nn.class "Sum"
    function Sum:init()
        self.quant, self.dequant, self.sum = Q.QuantStub(), Q.DeQuantStub(), nn.quantized.FloatFunctional()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, 8)
    end
    function Sum:forward(x)
        x = self.quant(x)
        return self.dequant(self.sum:add_relu(self.one(x), self.two(x)))
    end
    local x = tide.randn(50, 8)
    local net = quantized(Sum(), x)
    near(net, x, net.sum.scale:item())
end)

t.test("what_has_no_form_is_named", function()
    refused("'1' is a tide.nn.quantized.dynamic.Linear", tide.onnx.export, Q.quantize_dynamic(nn.Sequential(nn.Linear(4, 4))), { tide.randn(2, 4) }, path)
    refused("the range of a byte", tide.onnx.export, function(x) return tide._fake_quantize(x, tide.tensor(0.1), tide.tensor(0.0), 0, 15) end,
        { tide.randn(2, 4) }, path)
    refused("worked out while the model runs", tide.onnx.export, function(x) return tide._fake_quantize(x, x:amax(), tide.tensor(0.0), 0, 255) end,
        { tide.randn(2, 4) }, path)
end)

-- How often the operators of bytes are called while fn runs.
local function calls_of(fn)
    local linear, conv, n = tide._quantized_linear, tide._quantized_conv, 0
    local function counted(operator)
        return function(...)
            n = n + 1
            return operator(...)
        end
    end
    tide._quantized_linear, tide._quantized_conv = counted(linear), counted(conv)
    local ok, why = pcall(fn)
    tide._quantized_linear, tide._quantized_conv = linear, conv
    if not ok then
        error(why, 0)
    end
    return n
end

t.test("layers_between_roundings_are_read_as_layers_of_bytes_with_the_same_bits", function()
    tide.manual_seed(3)
    local x = tide.randn(16, 3, 12, 12)
    local net = quantized(nn.Sequential(Q.QuantStub(), nn.Conv2d(3, 8, 3, { stride = 2, padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, { padding = 1, groups = 4 }), nn.Flatten(), nn.Linear(72, 6), Q.DeQuantStub()), x)
    local model, y = written(net, x), nil
    t.eq(calls_of(function() y = model(x) end), 3)
    t.is_true(tide.equal(y, net(x)))
    local rows = tide.randn(5, 4, 8)
    local plain = quantized(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), rows)
    model = written(plain, rows)
    t.eq(calls_of(function() y = model(rows) end), 2)
    t.is_true(tide.equal(y, plain(rows)))
end)

-- ---- ONNX's operators of bytes ----

local operators = tide._require "onnx.operators"

local function byte(low, ...) return tide.randint(low, low + 256, { ... }):to(low == 0 and tide.uint8 or tide.int8) end
local function float(v) return tide.tensor(v, { dtype = tide.float32 }) end

-- The rule in float64: halves apart, the bytes are these.
local function by_rule(sums, factor, point)
    local exact = sums * factor + point
    return exact:clamp(0, 255), (exact - exact:floor() - 0.5):abs():gt(1e-4)
end

t.test("qlinear_operators_are_run_by_those_of_bytes_where_their_rule_is_the_same", function()
    tide.manual_seed(4)
    local a, b, scales = byte(0, 7, 33), byte(-128, 33, 10), tide.rand(10) * 0.01 + 0.001
    local a_zero, b_zero, y_zero = tide.tensor(120, { dtype = tide.uint8 }), byte(-128, 10), tide.tensor(100, { dtype = tide.uint8 })
    local function multiply(x, zero) return operators.QLinearMatMul({ attributes = {} }, x, float(0.02), zero, b, scales, b_zero, float(0.9), y_zero) end
    local got
    t.eq(calls_of(function() got = multiply(a, a_zero) end), 1)
    local sums = (a:double() - 120):matmul(b:double() - b_zero:double())
    local want, sure = by_rule(sums, scales:double() * 0.02 / 0.9, 100)
    t.is_true((got:double() - want):abs()[sure]:amax():item() <= 0.5001)
    local signed = (a:int() - 128):to(tide.int8) -- activations with a sign have no operator of bytes
    t.eq(calls_of(function() t.is_true(tide.equal(multiply(signed, tide.tensor(-8, { dtype = tide.int8 })), got)) end), 0)

    local x, w, bias = byte(0, 2, 4, 9, 9), byte(-128, 6, 2, 3, 3), tide.randint(-3000, 3000, { 6 }):to(tide.int32)
    local w_scale = tide.tensor { 0.5, 0.25, 0.125, 1, 2, 0.0625 } * 0.015625
    local function convolve(attributes, b32)
        return operators.QLinearConv({ attributes = attributes }, x, float(0.03125), a_zero, w, w_scale, tide.zeros(6, { dtype = tide.int8 }),
            float(0.7), y_zero, b32)
    end
    local even = { group = 2, strides = { 2, 2 }, pads = { 1, 1, 1, 1 }, kernel_shape = { 3, 3 } }
    t.eq(calls_of(function() got = convolve(even, bias) end), 1)
    sums = tide.conv2d(x:double() - 120, w:double(), bias:double(), { 2, 2 }, { 1, 1 }, { 1, 1 }, 2)
    want, sure = by_rule(sums, (w_scale:double() * 0.03125 / 0.7):view(1, 6, 1, 1), 100)
    t.is_true((got:double() - want):abs()[sure]:amax():item() <= 0.5001)
    local uneven = { group = 2, strides = { 2, 2 }, pads = { 1, 1, 0, 0 }, kernel_shape = { 3, 3 } }
    t.eq(calls_of(function() convolve(uneven, bias) end), 0)
    local large = (bias + 1):to(tide.int32) * 100003
    t.eq(calls_of(function() convolve(even, large) end), 0) -- float32 does not hold it
end)

os.remove(path)
