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

local function refused(text, fn, ...)
    local ok, why = pcall(fn, ...)
    t.is_true(not ok and string.find(why, text, 1, true), why)
end

t.test("layers_with_and_without_stubs_are_written_between_their_roundings", function()
    tide.manual_seed(1)
    local x = tide.randn(64, 3, 12, 12)
    local net = quantized(nn.Sequential(Q.QuantStub(), nn.Conv2d(3, 8, 3, { stride = 2 }), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, { padding = 1, groups = 8 }), nn.Hardswish(), nn.Flatten(), nn.Linear(32, 5), Q.DeQuantStub()), x)
    near(net, x, net[9].scale:item(), { dynamic = { x = { 1 } } })
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

os.remove(path)
