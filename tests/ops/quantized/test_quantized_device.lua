-- test_quantized_device.lua: products of bytes and of weights of few bits on a device whose memory the host may not touch
-- (tests/device), where packed weights are lines: the CPU's bits.
local t = require "harness"
local nn = tide.nn
local register, why = package.loadlib(os.getenv "TIDE_LATE_DEVICE" or "", "register_late_device")
if not register then
    t.skip("quantized tensors on a device", why)
    return
end
register()
tide.manual_seed(9)

-- A layer or a model of random weights, on the CPU and on the device.
local function check(what, layer, x)
    local _ <close> = tide.no_grad()
    local want = layer(x)
    local got = layer:to "late"(x:to "late")
    t.eq(got.device, "late:0", what)
    t.eq(got.dtype, want.dtype, what)
    t.is_true(tide.equal(got:cpu(), want), what)
end

local function bytes(...) return tide.quantize_per_tensor(tide.randn(...), 0.03, 110, tide.quint8) end

t.test("linear_layers_and_convolutions", function()
    local options = { scale = 0.05, zero_point = 90 }
    for _, features in ipairs { { 1, 1 }, { 7, 5 }, { 16, 4 }, { 65, 33 } } do
        local layer = nn.Linear(features[1], features[2])
        check("linear", nn.quantized.Linear.from_float(layer, options), bytes(3, features[1]))
        check("dynamic", nn.quantized.dynamic.Linear.from_float(layer), tide.randn(2, 3, features[1]))
    end
    for _, groups in ipairs { 1, 2, 8 } do
        for _, kernel in ipairs { 1, 3 } do
            local layer = nn.Conv2d(8, 16, kernel, { groups = groups, padding = kernel // 2, stride = 2 })
            check("convolution", nn.quantized.Conv2d.from_float(layer, options), bytes(2, 8, 7, 6))
        end
    end
    for groups = 1, 2 do
        local layer = nn.ConvTranspose2d(4, 6, 3, { stride = 2, padding = 1, output_padding = 1, groups = groups })
        check("transposed convolution", nn.quantized.ConvTranspose2d.from_float(layer, options), bytes(2, 4, 5, 6))
    end
    check("convolution of volumes", nn.quantized.Conv3d.from_float(nn.Conv3d(3, 5, 2), options), bytes(2, 3, 4, 5, 6))
end)

t.test("weights_of_few_bits", function()
    for _, dtype in ipairs { "int8", "int4", "int6" } do
        check(dtype, nn.quantized.WeightOnlyLinear.from_float(nn.Linear(70, 20), { dtype = dtype }), tide.randn(3, 70))
    end
end)

t.test("sums_and_functions_of_elements", function()
    local x, y = bytes(4, 30), bytes(4, 30)
    local f = nn.quantized.QFunctional { scale = 0.1, zero_point = 50 }
    for _, fn in ipairs { function(a, b) return f:add(a, b) end, function(a, b) return f:mul_relu(a, b) end, function(a) return a:sigmoid() end } do
        t.is_true(tide.equal(fn(x:to "late", y:to "late"):cpu(), fn(x, y)))
    end
end)

t.test("shapes_are_known_without_elements", function()
    local layer = nn.quantized.Conv2d.from_float(nn.Conv2d(4, 6, 3), { scale = 1 })
    local y = tide._quantized_conv(bytes(2, 4, 5, 5):to "meta", tide._quantized_pack(layer.weight:to "meta"), nil, 1, 0, { 3, 3 }, { 1, 1 }, { 0, 0 }, { 1, 1 })
    t.eq({ tostring(y.shape), y.dtype }, { "(2, 6, 3, 3)", tide.quint8 })
end)

t.finish()
