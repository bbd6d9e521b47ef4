-- test_quantization_golden.lua: observers, fake quantization and linear layers beside PyTorch's (tests/golden/quantization):
-- scales, zero points and bytes bit for bit.
local t = require "harness"
local json = require "json"
local Q = tide.quantization
local file = os.getenv("TIDE_SOURCE") .. "/tests/golden/quantization/observers.jsonl"

-- The generator of generate.py.
local function draw(n, seed, spread, shift)
    local state, out = seed, {}
    for k = 1, n do
        local total = 0
        for _ = 1, 4 do
            state = (state * 1103515245 + 12345) % 2147483648
            total = total + state // 65536
        end
        out[k] = (total / 32768 - 2) * (spread or 1) + (shift or 0)
    end
    return tide.tensor(out, { dtype = tide.float64 }):float()
end

local function bits(x)
    local out = x:detach():reshape(-1):tolist()
    for k, v in ipairs(out) do
        out[k] = string.format("%08x", (string.unpack("<I4", string.pack("<f", v))))
    end
    return table.concat(out, " ")
end

local cases = { observer = {}, fake = {}, fake_channels = {}, learnable = {}, linear = {}, conv = {},
    functions = {}, saturating = {}, saturating_conv = {} }
for line in io.lines(file) do
    local case = json.read(line)
    for kind, list in pairs(cases) do
        if case[kind] then
            list[#list + 1] = case
        end
    end
end

t.test("the_golden_file_has_cases_of_every_kind", function()
    for kind, list in pairs(cases) do
        t.is_true(#list >= 3, kind)
    end
end)

for _, case in ipairs(cases.observer) do
    local name = ("%s_%s_%s_%s_%d_%d"):format(case.observer, case.dtype, case.scheme, case.reduce_range, case.batches[1][1], case.batches[1][2])
    t.test(name .. "_is_pytorchs", function()
        local channels = case.observer:find("PerChannel", 1, true)
        local observer = Q[case.observer] { dtype = case.dtype, reduce_range = case.reduce_range,
            qscheme = (channels and "per_channel_" or "per_tensor_") .. case.scheme, ch_axis = channels and 2 or nil }
        for _, batch in ipairs(case.batches) do
            observer(draw(table.unpack(batch)):reshape(-1, 4))
        end
        local scale, point = observer:calculate_qparams()
        t.eq(bits(scale), table.concat(case.scale, " "))
        t.eq(table.concat(point:tolist(), " "), table.concat(case.zero_point, " "))
    end)
end

local function input() return draw(96, 12, 4.0):reshape(4, 6, 4):requires_grad_(true) end
local function incoming() return draw(96, 13):reshape(4, 6, 4) end
local function check(case, x, y)
    y:backward(incoming())
    t.eq(bits(y), table.concat(case.out, " "))
    t.eq(bits(x.grad), table.concat(case.grad, " "))
end

for k, case in ipairs(cases.fake) do
    t.test("fake_quantize_per_tensor_affine_is_pytorchs_" .. k, function()
        local x = input()
        check(case, x, Q.fake_quantize_per_tensor_affine(x, table.unpack(case.fake)))
    end)
end
for k, case in ipairs(cases.fake_channels) do
    t.test("fake_quantize_per_channel_affine_is_pytorchs_" .. k, function()
        local x, point, low, high = input(), table.unpack(case.fake_channels)
        check(case, x, Q.fake_quantize_per_channel_affine(x, draw(6, 14, 0.01, 0.1), tide.full({ 6 }, point, { dtype = tide.int32 }), 2,
            low, high))
    end)
end
for k, case in ipairs(cases.learnable) do
    t.test("a_learnable_scale_gets_pytorchs_gradient_" .. k, function()
        local x, scale, point, low, high = input(), table.unpack(case.learnable)
        local s = tide.tensor({ scale }, { requires_grad = true })
        local z = tide.tensor({ point + 0.0 }, { requires_grad = true })
        check(case, x, tide._fake_quantize_learnable(x, s, z, low, high, 0.25))
        t.close(s.grad:item(), case.scale_grad, 1e-4 * math.max(1, math.abs(case.scale_grad)))
        t.close(z.grad:item(), case.point_grad, 1e-4 * math.max(1, math.abs(case.point_grad)))
    end)
end

for _, case in ipairs(cases.linear) do
    local m, depth, n, k = table.unpack(case.linear)
    t.test(("linear_of_%dx%dx%d_is_fbgemms"):format(m, depth, n), function()
        local x, w, b = draw(m * depth, 20 + k):reshape(m, depth), draw(n * depth, 30 + k, 0.2):reshape(n, depth), draw(n, 40 + k)
        local qw = tide.quantize_per_channel(w, w:abs():amax(2):double() / 127, tide.zeros(n, { dtype = tide.int64 }), 1, tide.qint8)
        local qx = tide.quantize_per_tensor(x, 0.04, 60, tide.quint8):int_repr():clamp(0, 127)
        t.eq(table.concat(qx:reshape(-1):tolist(), " "), table.concat(case.x, " "))
        t.eq(table.concat(qw:int_repr():reshape(-1):tolist(), " "), table.concat(case.w, " "))
        local packed = tide._quantized_pack(qw)
        qx = tide._make_per_tensor_quantized_tensor(qx, 0.04, 60)
        local y, relu = tide._quantized_linear(qx, packed, b, 0.05, 100), tide._quantized_linear(qx, packed, b, 0.05, 100, true)
        t.eq(table.concat(y:int_repr():reshape(-1):tolist(), " "), table.concat(case.out, " "))
        t.eq(table.concat(relu:int_repr():reshape(-1):tolist(), " "), table.concat(case.relu, " "))
        -- fbgemm fuses the product with the bias where it can, which rounds once: a bit of the last place
        local dynamic = tide._quantized_linear_dynamic(x, packed, b, false, true):reshape(-1):tolist()
        for j, v in ipairs(dynamic) do
            t.close(v, case.dynamic[j], 4e-7 * math.max(1, math.abs(v)))
        end
    end)
end

-- Sums and products of PyTorch's are at most a step off where a value lies between two integers: its vectors
-- dequantize with one fused step.
local function near(got, want)
    local off = (got:int_repr():reshape(-1):long() - tide.tensor(want)):abs()
    t.is_true(off:amax():item() <= 1 and off:sum():item() <= #want / 50, off:sum():item())
end

for _, case in ipairs(cases.conv) do
    local channels, out, groups, size, stride, padding, dilation, k = table.unpack(case.conv)
    t.test(("convolution_of_%d_to_%d_in_%d_groups_is_fbgemms"):format(channels, out, groups), function()
        local x = draw(channels * 63, 50 + k):reshape(1, channels, 7, 9)
        local w = draw(out * (channels // groups) * size * size, 60 + k, 0.2):reshape(out, channels // groups, size, size)
        local b = draw(out, 70 + k)
        local qw = tide.quantize_per_channel(w, w:abs():amax { 2, 3, 4 }:double() / 127, tide.zeros(out, { dtype = tide.int64 }), 1, tide.qint8)
        local qx = tide._make_per_tensor_quantized_tensor(tide.quantize_per_tensor(x, 0.04, 60, tide.quint8):int_repr():clamp(0, 127), 0.04, 60)
        local packed = tide._quantized_pack(qw, groups)
        local function conv(scale, point, relu)
            return tide._quantized_conv(qx, packed, b, scale, point, { size, size }, { stride, stride }, { padding, padding },
                { dilation, dilation }, relu)
        end
        local y, other = conv(0.05, 100, false), conv(0.04, 90, true)
        t.is_true(tide.equal(y:int_repr():reshape(-1):long(), tide.tensor(case.out)))
        t.is_true(tide.equal(other:int_repr():reshape(-1):long(), tide.tensor(case.relu)))
        t.is_true(tide.equal(tide.max_pool2d(y, 2):int_repr():reshape(-1):long(), tide.tensor(case.largest)))
        near(tide._quantized_add(y, other, 0.09, 80), case.sum)
        near(tide._quantized_mul(y, other, 0.11, 70), case.product)
        near(tide.avg_pool2d(y, 2), case.mean)
    end)
end

-- ---- functions of bytes ----

local F, QF, f = tide.nn.functional, tide.nn.quantized.functional, tide.nn.quantized.QFunctional()
local UNARY = { sigmoid = tide.sigmoid, tanh = tide.tanh, hardsigmoid = F.hardsigmoid, gelu = F.gelu, relu6 = F.relu6,
    leaky_relu = function(x) return F.leaky_relu(x, 0.1) end, hardtanh = function(x) return F.hardtanh(x, -1.5, 2.2) end,
    clamp = function(x) return x:clamp(-0.7, 2.0) end, hardswish = function(x) return QF.hardswish(x, 0.03, 10) end,
    elu = function(x) return QF.elu(x, 0.04, 30, 0.8) end, celu = function(x) return QF.celu(x, 0.04, 30, 0.8) end,
    softmax = function(x) return QF.softmax(x:reshape(16, 16), 1 / 256, 0, 2) end,
    layer_norm = function(x) return QF.layer_norm(x:reshape(16, 16), 0.03, 120, { 16 }, draw(16, 90, 0.5, 1.0), draw(16, 91)) end }

-- Those whose values can lie between two integers are at most a step off there, as sums are.
local TIED = { leaky_relu = true, hardswish = true, elu = true, celu = true, ["add_scalar -1000"] = true, ["add_scalar_relu -1000"] = true }

local function as_golden(y, want, name)
    t.close(y:q_scale(), want[1], 1e-7 * want[1])
    t.eq(y:q_zero_point(), want[2])
    local ints = table.move(want, 3, #want, 1, {})
    if TIED[name] then
        return near(y, ints)
    end
    t.eq(table.concat(y:int_repr():reshape(-1):tolist(), " "), table.concat(ints, " "), name)
end

for _, case in ipairs(cases.functions) do
    local scale, point = table.unpack(case.functions)
    local order = tide.tensor(case.x, { dtype = tide.int32 })
    local x = tide._make_per_tensor_quantized_tensor(order:to(tide.uint8), scale, point)
    local signed = tide._make_per_tensor_quantized_tensor((order - 128):to(tide.int8), scale, point - 128)
    t.test(("functions_of_bytes_of_%g_are_pytorchs"):format(scale), function()
        for name, want in pairs(case.results) do
            local kind, number = string.match(name, "^(%S+) (%S+)$")
            as_golden(kind and f[kind](f, x, tonumber(number)) or UNARY[name](x), want, name)
        end
        for name, want in pairs(case.signed) do
            as_golden(UNARY[name](signed), want, name)
        end
    end)
end

-- ---- sums that saturate ----

local function full(n, seed, low, middle)
    return draw(n, seed, 200, middle):round():clamp(low, low + 255):to(low == 0 and tide.uint8 or tide.int8)
end

-- The bytes that fbgemm has where its pairs saturate; the exact ones differ in many.
local function compare(out, saturated, exact)
    saturated, exact = saturated:int_repr():reshape(-1):int(), exact:int_repr():reshape(-1):int()
    t.eq(table.concat(saturated:tolist(), " "), table.concat(out, " "))
    t.is_true(saturated:ne(exact):float():mean():item() > 0.1)
end

for _, case in ipairs(cases.saturating) do
    local m, depth, n, k = table.unpack(case.saturating)
    t.test(("saturating_linear_of_%dx%dx%d_is_fbgemms"):format(m, depth, n), function()
        local x = tide._make_per_tensor_quantized_tensor(full(m * depth, 100 + k, 0, 128):reshape(m, depth), 0.04, 60)
        local function layer(saturate)
            local l = tide.nn.quantized.Linear(depth, n, { scale = 1.5, zero_point = 100, saturate = saturate })
            l.weight = tide._make_per_tensor_quantized_tensor(full(n * depth, 110 + k, -128, 0):reshape(n, depth), 0.01, 0)
            l.bias = draw(n, 120 + k)
            return l
        end
        compare(case.out, layer "fbgemm"(x), layer "exact"(x))
    end)
end

for _, case in ipairs(cases.saturating_conv) do
    local channels, out, groups, size, k = table.unpack(case.saturating_conv)
    t.test(("saturating_convolution_of_%d_to_%d_is_fbgemms"):format(channels, out), function()
        local x = tide._make_per_tensor_quantized_tensor(full(channels * 30, 130 + k, 0, 128):reshape(1, channels, 5, 6), 0.04, 60)
        local function layer(saturate)
            local l = tide.nn.quantized.Conv2d(channels, out, size, 1, size // 2, 1, groups,
                { scale = 1.5, zero_point = 100, saturate = saturate })
            l.weight = tide._make_per_tensor_quantized_tensor(full(out * channels // groups * size * size, 140 + k, -128, 0):reshape(out,
                channels // groups, size, size), 0.01, 0)
            l.bias = draw(out, 150 + k)
            return l
        end
        compare(case.out, layer "fbgemm"(x), layer "exact"(x))
    end)
end

t.test("depthwise_weights_are_not_packed_to_saturate", function()
    local ok, why = pcall(tide._quantized_pack, tide.quantize_per_tensor(tide.ones(8, 1, 3, 3), 0.1, 0, tide.qint8), 8, true)
    t.is_true(not ok and string.find(why, "not depthwise", 1, true), why)
end)
