-- test_quantized_models.lua: models with convolutions on their way to bytes: modules fused, calibrated, trained and
-- converted, with and without stubs.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn

local refused = t.refused

local function snr(want, got)
    return 10 * math.log(want:square():sum():item() / (want - got):square():sum():item(), 10)
end

local function near(got, want, tolerance) t.is_true((got - want):abs():amax():item() <= tolerance) end

local function block()
    local Block = nn.class "Block"
    function Block:init()
        self.conv1 = nn.Conv2d(8, 8, 3, { padding = 1, bias = false })
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(8, 8, 3, { padding = 1, groups = 8 })
        self.sum = nn.quantized.FloatFunctional()
        self.join = nn.quantized.FloatFunctional()
    end
    function Block:forward(x)
        local y = self.conv2(self.relu(self.bn1(self.conv1(x))))
        return self.join:cat({ self.sum:add_relu(y, x), x }, 2)
    end
    return Block()
end

local function network()
    tide.manual_seed(1)
    local net = nn.Sequential(Q.QuantStub(), nn.Conv2d(3, 8, 3, { stride = 2 }), nn.BatchNorm2d(8), nn.ReLU(), block(), nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5), Q.DeQuantStub())
    for _ = 1, 4 do
        net(tide.randn(8, 3, 16, 16) * 2 + 0.5)
    end
    return net
end

t.test("fused_modules_compute_what_they_did", function()
    local net, x = network():eval(), tide.randn(4, 3, 16, 16)
    local fused = Q.fuse_modules(net, { "5.conv1", "5.bn1", "5.relu" })
    near(fused(x), net(x), 1e-5)
    t.eq(fused[5].conv1[1].weight:dim(), 4)
    t.is_true(nn.is(fused[5].bn1, nn.Identity) and nn.is(fused[5].relu, nn.Identity))
    t.is_true(nn.is(net[5].bn1, nn.BatchNorm2d), "the model stays")
    t.is_true(nn.is(Q.fuse_modules(net, { { "5.conv1", "5.bn1" } })[5].conv1, nn.Conv2d))
    refused("no part '5.conv7'", Q.fuse_modules, net, { "5.conv7", "5.bn1" })
    refused("expected, got '5.conv1' (Conv2d), '5.relu' (ReLU), '5.bn1' (BatchNorm2d)", Q.fuse_modules, net, { "5.conv1", "5.relu", "5.bn1" })
    refused("must be in evaluation", Q.fuse_modules, network():train(), { "5.conv1", "5.bn1" })
end)

t.test("a_network_with_stubs_runs_in_bytes_from_one_to_the_other", function()
    local net, x = network():eval(), tide.randn(4, 3, 16, 16)
    local prepared = Q.prepare(Q.fuse_modules(net, { "5.conv1", "5.bn1", "5.relu" }))
    near(prepared(x), net(x), 1e-5)
    for _ = 1, 4 do
        prepared(tide.randn(8, 3, 16, 16))
    end
    local small = Q.convert(prepared)
    local seen = {}
    for name, module in small:named_modules() do
        if nn.is(module, nn.quantized.Conv2d) or nn.is(module, nn.quantized.Linear) or nn.is(module, nn.MaxPool2d) then
            module:register_forward_hook(function(_, _, y) seen[name] = y.dtype == tide.quint8 end)
        end
    end
    local y = small(x)
    t.is_true(snr(net(x), y) > 25, snr(net(x), y))
    for _, name in ipairs { "2", "5.conv1.1", "5.conv2", "6", "9" } do
        t.is_true(seen[name], name)
    end
    t.is_true(small[2].relu and small[5].conv1[1].relu and not small[5].conv2.relu)
    local rows = Q.report(net, small, x)
    t.eq(rows[1].name, "2")
    t.is_true(rows[1].snr > 25 and rows[1].bytes * 3 < rows[1].float_bytes)
    t.eq(small[5].conv2:proof().groups, 0) -- depthwise: nothing can saturate
    t.is_true(small[2]:proof().pairs > 0)
end)

t.test("convolutions_in_a_sequential_hand_on_bytes_without_stubs", function()
    tide.manual_seed(2)
    local net = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(4, 6, 3), nn.Tanh()):eval()
    local prepared = Q.prepare(net)
    prepared(tide.randn(8, 3, 20))
    local small, x = Q.convert(prepared), tide.randn(8, 3, 20)
    t.is_true(small[1].relu and not small[1].floats and small[5].floats)
    t.is_true(snr(net(x), small(x)) > 20)
    t.eq(small(x).dtype, tide.float32)
    local state = small:state_dict()
    local other = Q.convert(prepared)
    other:load_state_dict(state)
    t.is_true(tide.equal(other(x), small(x)))
end)

t.test("training_with_rounded_weights_is_what_converts", function()
    local net = network()
    local lists = { "5.conv1", "5.bn1", "5.relu" }
    local q = Q.prepare_qat(Q.fuse_modules_qat(net, lists))
    local optimizer = tide.optim.SGD(q:parameters(), { lr = 0.2 })
    tide.manual_seed(3)
    local x, labels = tide.randn(64, 3, 16, 16), tide.randint(1, 6, { 64 })
    local first, last
    for _ = 1, 30 do
        optimizer:zero_grad()
        local loss = nn.functional.cross_entropy(q(x), labels)
        first, last = first or loss:item(), loss:item()
        loss:backward()
        optimizer:step()
    end
    t.is_true(last < first * 0.9, last / first)
    q:eval()
    for _, module in q:named_modules() do
        if nn.is(module, Q.FakeQuantize) then
            module.observer_enabled = false
        end
    end
    local want, got = q(x), Q.convert(q)(x)
    t.is_true(snr(want, got) > 25, snr(want, got))
end)

t.test("rounded_layers_give_what_bytes_give", function()
    tide.manual_seed(4)
    for _, pair in ipairs { { nn.Conv2d(4, 6, 3, { groups = 2 }), tide.randn(2, 4, 7, 7) }, { nn.Linear(5, 3), tide.randn(4, 5) } } do
        local q = Q.prepare_qat(pair[1])
        q(pair[2])
        q:eval()
        local small, want = Q.convert(q), q(pair[2])
        local off = (small(pair[2]) - want):abs():amax():item()
        t.is_true(off <= small[1].scale:item() * 1.01, "at most a step off, where sums lie between two")
    end
    refused("padding_mode 'reflect'", Q.prepare_qat, nn.Conv2d(2, 2, 3, { padding_mode = "reflect" }))
    refused("prepare it first", Q.convert, nn.Conv2d(2, 2, 3))
    refused("call its add", nn.quantized.QFunctional(), tide.ones(1))
end)

t.test("a_resnet_converts_and_gives_the_same_bits_for_any_number_of_threads", function()
    local resnet = dofile(os.getenv "TIDE_SOURCE" .. "/notebooks/networks/resnet.lua")
    tide.manual_seed(5)
    local before = tide.get_num_threads()
    local net = resnet.new(18, { classes = 10, width = 8 }):eval()
    local x = tide.randn(2, 3, 64, 64)
    local prepared = Q.prepare(resnet.fused(net))
    near(prepared(x), net(x), 1e-4)
    local small = Q.convert(prepared)
    local want = small(x)
    t.is_true(snr(net(x), want) > 20, snr(net(x), want))
    for n = 1, 2 do
        tide.set_num_threads(n)
        t.is_true(tide.equal(small(x), want))
    end
    tide.set_num_threads(before)
    local path, float = os.tmpname(), os.tmpname()
    tide.save(small:state_dict(), path)
    tide.save(net:state_dict(), float)
    local function size(name)
        local file <close> = io.open(name)
        return file:seek "end"
    end
    t.is_true(size(path) < size(float) * 0.45, "a narrow network has many scales")
    os.remove(path)
    os.remove(float)
end)

t.test("a_layer_keeps_floats_where_they_are_quicker_and_says_so", function()
    tide.manual_seed(8)
    local bytes, floats, calls = 0, 0, 0
    local function timer() -- calls for bytes come first: each takes `bytes`, then each `floats`
        calls = calls + 1
        return calls % 2 == 1 and 0 or calls <= 6 and bytes or floats
    end
    local function planned(layer, x, in_bytes, in_floats)
        bytes, floats, calls = in_bytes, in_floats, 0
        return layer:plan(x, { runs = 3, timer = timer })
    end
    local x = tide.quantize_per_tensor(tide.randn(2, 4, 6, 6), 0.03, 128, tide.quint8)
    local conv = nn.quantized.Conv2d.from_float(nn.Conv2d(4, 4, 3, { padding = 1 }), { scale = 0.02, zero_point = 120, relu = true })
    local want, residual = conv(x), tide.quantize_per_tensor(tide.randn(2, 4, 6, 6), 0.03, 128, tide.quint8)
    local added = conv(x, residual)
    local choice = planned(conv, x, 3, 2)
    t.eq(choice.kept, "float32")
    t.eq(tostring(choice), "float32 for x of shape (2, 4, 6, 6): int8 3000000.0 us, float32 2000000.0 us")
    t.is_true(string.find(tostring(conv), "in float32", 1, true))
    for _, pair in ipairs { { conv(x), want }, { conv(x, residual), added } } do
        t.eq(pair[1].dtype, tide.quint8)
        near(pair[1]:dequantize(), pair[2]:dequantize(), 0.0201)
    end
    t.eq(planned(conv, x, 1, 2).kept, "int8")
    t.is_true(tide.equal(conv(x), want))
    local linear = nn.quantized.dynamic.Linear.from_float(nn.Linear(8, 4))
    local rows = tide.randn(3, 8)
    local exact = tide.linear(rows, linear.weight:dequantize(), linear.bias)
    planned(linear, rows, 2, 1)
    t.is_true(tide.equal(linear(rows), exact))
    linear.weight = tide.quantize_per_tensor(tide.ones(4, 8), 1, 0, tide.qint8)
    near(linear(rows), rows:sum(2, { keepdim = true }) + linear.bias, 1e-5)
end)
