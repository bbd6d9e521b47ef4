-- test_quantization_plan.lua: which layers are quantized, by name, class and pattern, and by plans, whose promise is tried on
-- data that they have not seen; reports of layers.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn

local refused = t.refused

local function is_small(module) return module.weight ~= nil and module.weight.is_quantized end

local function perceptron(width)
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
end

t.test("layers_are_chosen_by_name_pattern_and_class", function()
    local net, x = perceptron(8), tide.randn(4, 16)
    local function converted(qconfig)
        local prepared = Q.prepare(net, { qconfig = qconfig })
        prepared(x)
        local small, names = Q.convert(prepared), {}
        for name, module in small:named_modules() do
            names[#names + 1] = is_small(module) and name or nil
        end
        return table.concat(names, " ")
    end
    local q = Q.QConfig()
    t.eq(converted(q), "1 3 5")
    t.eq(converted { default = q, ["3"] = false }, "1 5")
    t.eq(converted { [nn.Linear] = q, ["5"] = false }, "1 3")
    t.eq(converted { patterns = { { "[13]", q } } }, "1 3")
    t.eq(converted { default = false, patterns = { { ".*", q } }, ["1"] = false }, "3 5")
    t.eq(converted(Q.QConfigMapping():set_global(q):set_module_name("1", nil):set_object_type(nn.ReLU, nil)), "3 5")
    t.eq(converted(Q.get_default_qconfig_mapping "fbgemm"), "1 3 5")
    local deep = Q.prepare(nn.Sequential(perceptron(8), nn.Linear(4, 2)), { qconfig = { default = q, ["1"] = false, ["1.3"] = q } })
    t.is_true(nn.is(deep[1][1], nn.Linear) and not nn.is(deep[1][3], nn.Linear) and not nn.is(deep[2], nn.Linear), "what lies in it too")
end)

t.test("names_that_are_none_are_refused_with_near_ones", function()
    local net, q = nn.Sequential { { "layer1", nn.Linear(4, 4) }, { "head", nn.Linear(4, 2) } }, Q.QConfig()
    refused("the model has no module 'layer2'; near it: 'layer1', 'head'", Q.prepare, net, { qconfig = { layer2 = q } })
    refused("no module's name is matched by 'block%d'", Q.prepare_qat, net, { qconfig = { patterns = { { "block%d", q } } } })
    refused("a QConfig expected, or nil or false", Q.prepare, net, { qconfig = { head = 1 } })
    refused("call it for the QConfig that it makes", Q.prepare, net, { qconfig = Q.get_default_qconfig })
    refused("weights become qint8, got tide.float16", Q.quantize_dynamic, net, { tide.nn.Linear }, tide.float16)
    refused("give one of them", Q.prepare, net, { qconfig = q, observer = Q.MinMaxObserver })
    refused("no module 'tail'", Q.quantize_dynamic, net, { qconfig = { tail = false } })
    refused("a class such as tide.nn.Linear", Q.QConfigMapping().set_object_type, Q.QConfigMapping(), {}, q)
    refused("an observer of qint8 expected", Q.convert, (function()
        local prepared = Q.prepare(net, { qconfig = Q.QConfig { weight = Q.MinMaxObserver } })
        prepared(tide.randn(2, 4))
        return prepared
    end)())
end)

t.test("weights_are_quantized_by_their_observer_and_parts_replaced", function()
    local net, x = perceptron(8), tide.randn(8, 16)
    local prepared = Q.prepare(net, { qconfig = { default = Q.get_default_qconfig "qnnpack", ["5"] = Q.default_dynamic_qconfig() } })
    prepared(x)
    local small = Q.convert(prepared)
    t.eq(small[1].weight:qscheme(), "per_tensor_affine")
    t.is_true(nn.is(small[5], nn.quantized.dynamic.Linear))
    local dynamic = Q.quantize_dynamic(net, { qconfig = { default = Q.QConfig(), ["3"] = false } })
    t.is_true(is_small(dynamic[1]) and nn.is(dynamic[3], nn.Linear) and is_small(dynamic[5]))
    t.is_true(nn.is(Q.quantize_dynamic(nn.Linear(4, 2), { qconfig = { default = false } }), nn.Linear))
    t.is_true(is_small(Q.quantize_dynamic(nn.Linear(4, 2))))
    local trained = Q.prepare_qat(net, { qconfig = { default = Q.QConfig { activation = Q.MinMaxObserver, weight = Q.get_default_qconfig("qnnpack").weight },
        ["1"] = false } })
    trained(x):sum():backward()
    local bytes = Q.convert(trained)
    t.is_true(nn.is(bytes[1], nn.Linear) and bytes[3].weight:qscheme() == "per_tensor_affine")
end)

t.test("modules_of_floats_stand_among_bytes", function()
    tide.manual_seed(2)
    local net = nn.Sequential(Q.QuantStub(), nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm { 8 }, nn.Linear(8, 8), nn.Hardswish(), nn.Linear(8, 4), Q.DeQuantStub())
    local x = tide.randn(64, 8)
    local prepared = Q.prepare(net, { qconfig = { default = Q.QConfig(), ["7"] = false } })
    prepared(x)
    local small, seen = Q.convert(prepared), {}
    for name, module in small:named_children() do
        module:register_forward_hook(function(_, _, y) seen[tostring(name)] = y.dtype end)
    end
    local y, want = small(x), net(x)
    t.eq(seen["4"], tide.quint8)
    t.eq(seen["6"], tide.quint8)
    t.eq(seen["7"], tide.float32) -- what follows are floats
    t.is_true(10 * math.log(want:square():sum():item() / (want - y):square():sum():item(), 10) > 25)
end)

t.test("a_report_says_ranges_clipping_and_times", function()
    tide.manual_seed(3)
    local net, clock = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), 0
    local prepared = Q.prepare(net, { qconfig = Q.QConfig { activation = Q.MinMaxObserver } })
    prepared(tide.rand(64, 4) * 0.1)
    local function timer()
        clock = clock + 1
        return clock
    end
    local small = Q.convert(prepared)
    local rows = Q.report(net, small, tide.randn(64, 4) * 10, { timer = timer })
    t.eq(#rows, 2)
    t.is_true(rows[1].clipped > 0.3 and rows[1].low == 0 and rows[1].high > 1, "it was calibrated with less")
    t.is_true(rows[1].seconds > 0 and rows[1].float_seconds > rows[1].seconds, "the ReLU's time belongs to the layer of floats")
    local good = Q.report(net, small, tide.rand(64, 4) * 0.1)
    t.is_true(good[1].clipped < 0.05)
    t.is_true(good[1].snr > 25 and good[1].snr > rows[1].snr)
    t.is_true(string.find(tostring(rows), "clipped %", 1, true))
    t.is_true(string.find(rows:__display()["text/html"], "<svg", 1, true))
end)

-- What each of the classes' modules is called, in order, while fn runs: "f" and "q" for the first and the second class.
local function calls_of(float, small, fn)
    local order, before = {}, { [float] = float.forward, [small] = small.forward }
    for class, letter in pairs { [float] = "f", [small] = "q" } do
        class.forward = function(...)
            order[#order + 1] = letter
            return before[class](...)
        end
    end
    local ok, why = pcall(fn)
    for class, forward in pairs(before) do
        class.forward = forward
    end
    t.is_true(ok, why)
    return table.concat(order)
end

t.test("models_are_timed_in_turns_behind_a_call_that_does_not_count", function()
    local net, x = nn.Sequential(nn.Linear(4, 4)), tide.randn(8, 4)
    local small, rows = Q.quantize_dynamic(net), nil
    local order = calls_of(nn.Linear, nn.quantized.dynamic.Linear, function() rows = Q.report(net, small, x, { runs = 3 }) end)
    t.eq(order, "fq" .. string.rep("fq", 3))
    -- A layer that is called twice in a call of the model takes both; the median forgets what is seldom.
    local Twice = nn.class "Twice"
    function Twice:init() self.layer = nn.Linear(4, 4) end
    function Twice:forward(y) return self.layer(self.layer(y)) end
    local ticks, clock = 0, 0
    local function timer()
        ticks = ticks + 1
        clock = clock + (ticks == 20 and 1000 or 1)
        return clock
    end
    local model = Twice()
    rows = Q.report(model, Q.quantize_dynamic(model), x, { runs = 5, timer = timer })
    t.eq({ rows[1].seconds, rows[1].float_seconds }, { 2, 2 })
end)

-- ---- plans ----

-- Points around a centre for each of four classes, in the shape given.
local function batches(n, seed, shape)
    local list = {}
    tide.manual_seed(7)
    local centres = tide.randn(4, 16) * 0.7
    tide.manual_seed(seed)
    for k = 1, n do
        local y = tide.randint(1, 5, { 256 })
        local x = centres[y] + tide.randn(256, 16)
        list[k] = { shape and x:reshape(shape) or x, y }
    end
    return list
end

local function train(net, shape)
    local optimizer = tide.optim.Adam(net:parameters(), { lr = 5e-3 })
    for _, batch in ipairs(batches(40, 11, shape)) do
        optimizer:zero_grad()
        nn.functional.cross_entropy(net(batch[1]), batch[2]):backward()
        optimizer:step()
    end
    return net:eval()
end

local function accuracy(net, data)
    local right, all = 0, 0
    for _, batch in ipairs(data) do
        right = right + net(batch[1]):argmax(2):eq(batch[2]):sum():item()
        all = all + #batch[2]
    end
    return 100 * right / all
end

-- A clock of its own, which layers move on: floats by their weights, bytes by a quarter of that and a constant; floats among bytes by
-- `border` more.
local function with_clock(fn, border)
    local clock, before = 0, {}
    local function count(class, cost)
        before[class] = class.forward
        function class:forward(...)
            clock = clock + cost(self.weight and self.weight:numel() or self.hidden_size ^ 2 * 8)
            return before[class](self, ...)
        end
    end
    for _, name in ipairs { "Linear", "Conv1d", "Conv2d" } do
        count(nn[name], function(n) return n end)
        count(nn.quantized[name], function(n) return 100 + n / 4 end)
    end
    count(nn.quantized.dynamic.Linear, function(n) return 200 + n / 3 end)
    count(nn.LSTM, function(n) return 4 * n end) -- of bytes its linear layers count
    before[nn.quantized.Float] = nn.quantized.Float.forward
    function nn.quantized.Float:forward(x)
        clock = clock + (border or 0)
        return before[nn.quantized.Float](self, x)
    end
    count(nn.quantized.WeightOnlyLinear, function(bytes) return 50 + bytes / 8 end)
    local ok, why = pcall(fn, function() return clock end)
    for class, forward in pairs(before) do
        class.forward = forward
    end
    if not ok then
        error(why, 0)
    end
end

local function residual()
    local Residual = nn.class "Residual"
    function Residual:init()
        self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
        self.first, self.second, self.head = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4)
        self.sum = nn.quantized.FloatFunctional()
    end
    function Residual:forward(x)
        local y = self.first(self.quant(x)):relu()
        return self.dequant(self.head(self.sum:add_relu(self.second(y), y)))
    end
    return Residual()
end

t.test("a_plan_may_choose_weights_of_four_bits", function()
    tide.manual_seed(5)
    local net = perceptron(64)
    train(net)
    with_clock(function(timer)
        local plan = Q.plan(net, batches(8, 12), { loss = 2, timer = timer, runs = 1 })
        local small, found = plan:apply(net), 0
        for _, layer in ipairs(plan.layers) do
            local is = nn.is(small:get_submodule(layer.name), nn.quantized.WeightOnlyLinear)
            t.eq(is, layer.kind == "int4")
            found = found + (is and 1 or 0)
        end
        t.is_true(found > 0 and plan.loss + plan.margin <= 2, tostring(plan))
        t.is_true(accuracy(small, batches(8, 13)) >= accuracy(net, batches(8, 13)) - 2.5)
    end)
end)

for name, make in pairs {
    perceptron = function() return perceptron(32) end,
    convolutions = function()
        return nn.Sequential(nn.Conv2d(1, 16, 3, { padding = 1 }), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(),
            nn.Flatten(), nn.Linear(64, 4)), { -1, 1, 4, 4 }
    end,
    residual = residual,
} do
    t.test("the_promise_of_a_plan_holds_on_other_data_for_" .. name, function()
        tide.manual_seed(5)
        local net, shape = make()
        train(net, shape)
        with_clock(function(timer)
            local promise = 1
            local plan = Q.plan(net, batches(8, 12, shape), { loss = promise, kinds = { "int8" }, timer = timer, runs = 1 })
            t.is_true(plan.loss + plan.margin <= promise and plan.samples == 2048 and plan.margin > 0)
            local small, kinds = plan:apply(net), {}
            for _, layer in ipairs(plan.layers) do
                kinds[layer.kind] = (kinds[layer.kind] or 0) + 1
                local weights = net:get_submodule(layer.name).weight:numel()
                local where = small:get_submodule(layer.name)
                if weights <= 133 then
                    t.is_true(layer.kind == "f32" and string.find(layer.why, "slower", 1, true), "what is slower stays")
                end
                t.eq(is_small(where), layer.kind == "int8")
            end
            t.is_true(kinds.int8 > 0 and plan.seconds < plan.float_seconds)
            local other = batches(8, 13, shape)
            t.is_true(accuracy(net, other) - accuracy(small, other) <= promise)
        end)
    end)
end

t.test("layers_that_lose_much_stay_in_floats", function()
    tide.manual_seed(6)
    local net = train(perceptron(32))
    tide.no_grad(function() -- one value is far out, and nothing reads it
        net[1].bias[1] = 1e5
        net[3].weight[":, 1"] = 0
    end)
    with_clock(function(timer)
        local data = batches(8, 14)
        local plan = Q.plan(net, data, { loss = 1, kinds = { "int8" }, timer = timer, runs = 1 })
        t.eq(plan.layers[1].kind .. plan.layers[2].kind, "f32f32")
        t.is_true(string.find(plan.layers[1].why, "lose more", 1, true))
        t.is_true(plan.rows[1].loss > 5 and plan.rows[1].best, "the quickest of all")
        local text = tostring(plan)
        t.is_true(string.find(text, "of 2048 samples", 1, true) and string.find(text, "\n* ", 1, true))
        local path = os.tmpname()
        plan:save(path)
        local read = Q.load_plan(path)
        os.remove(path)
        t.eq(tostring(read), text)
        local page = read:__display()["text/html"]
        for _, shown in ipairs { "<td>1</td><td>f32</td>", "the plan</text>", "loss asked for</text>", "of 2048 samples" } do
            t.is_true(string.find(page, shown, 1, true), shown)
        end
        refused("keeps none", read.apply, read, net)
        for _, spoil in ipairs { function(state) state.layers = 3 end, function(state) state.rows[1].loss = "5" end,
            function(state) state.sure = nil end, function(state) state.layers[1] = { kind = "f32" } end } do
            plan:save(path)
            local state = tide.load(path)
            spoil(state)
            tide.save(state, path)
            refused("holds no plan", Q.load_plan, path)
        end
        os.remove(path)
        t.is_true(tide.equal(read:apply(net, data)(data[1][1]), plan:apply(net, data)(data[1][1])))
    end)
end)

t.test("floats_among_bytes_that_cost_more_than_bytes_gain_are_no_plan", function()
    tide.manual_seed(5)
    local net, data = train(residual()), batches(8, 12)
    tide.no_grad(function() -- weights that are far out, of an input that is 0
        net.first.weight[":, 1"] = 1e4
        for _, batch in ipairs(data) do
            batch[1][":, 1"] = 0
        end
    end)
    local plans = {}
    for k, border in ipairs { 0, 1e5 } do
        with_clock(function(timer) plans[k] = Q.plan(net, data, { loss = 1, kinds = { "int8" }, timer = timer, runs = 1 }) end, border)
    end
    for k, plan in ipairs(plans) do
        local least = math.huge
        for _, row in ipairs(plan.rows) do
            least = row.loss + row.margin <= 1 and math.min(least, row.seconds) or least
        end
        t.eq(plan.seconds, least, "the quickest that keeps the promise")
        t.is_true(plan.rows[1].loss > 5 and (plan.seconds < plan.float_seconds) == (k == 1), tostring(plan))
    end
    local floats = plans[2]:apply(net)
    for _, layer in ipairs(plans[2].layers) do
        t.eq(layer.kind, "f32")
    end
    t.is_true(tide.equal(floats(data[1][1]), net(data[1][1])), "a plan of floats rounds nothing")
end)

t.test("a_layer_that_is_slower_in_bytes_joins_its_neighbours_where_the_model_is_quicker", function()
    tide.manual_seed(5)
    local net, data = train(residual()), batches(8, 12)
    for border, kind in pairs { [0] = "f32", [1e4] = "int8" } do
        with_clock(function(timer)
            local plan = Q.plan(net, data, { loss = 2, kinds = { "int8" }, timer = timer, runs = 1 })
            for _, layer in ipairs(plan.layers) do
                t.eq(layer.kind, layer.name == "head" and kind or "int8", tostring(plan))
            end
            t.is_true(kind == "f32" or plan.seconds < plan.float_seconds / 2)
        end, border)
    end
end)

t.test("a_layer_alone_has_a_plan", function()
    tide.manual_seed(5)
    local net, x = nn.Linear(64, 32), tide.randn(512, 64)
    with_clock(function(timer)
        local plan = Q.plan(net, { { x, net(x):argmax(2) } }, { loss = 5, kinds = { "int8" }, timer = timer, runs = 1 })
        t.eq({ #plan.layers, plan.layers[1].name, plan.layers[1].kind }, { 1, "1", "int8" })
        t.is_true(is_small(plan:apply(net)[1]) and nn.is(net, nn.Linear))
    end)
end)

t.test("recurrent_layers_are_of_a_plan", function()
    tide.manual_seed(7)
    local Words = nn.class "Words"
    function Words:init()
        self.table = nn.Embedding(20, 8)
        self.order = nn.LSTM(8, 16, { batch_first = true })
        self.out = nn.Linear(16, 4)
    end
    function Words:forward(index)
        local y, after = self.order(self.table(index))
        return self.out(y[":, -1"]), after
    end
    local net, index = Words():eval(), tide.randint(1, 21, { 2048, 6 })
    local data = { { index, net(index):argmax(2) } }
    with_clock(function(timer)
        local plan = Q.plan(net, data, { loss = 5, timer = timer, runs = 1 })
        t.eq({ #plan.layers, plan.layers[1].name, plan.layers[1].kind }, { 2, "order", "dynamic" }, tostring(plan))
        local small = plan:apply(net)
        t.is_true(nn.is(small.order, nn.quantized.dynamic.LSTM) and nn.is(small.table, nn.Embedding))
        t.is_true(plan.seconds < plan.float_seconds and plan.loss + plan.margin <= 5)
    end)
end)

t.test("few_samples_promise_little_and_say_how_many_more", function()
    tide.manual_seed(6)
    local net = train(perceptron(32))
    with_clock(function(timer)
        local plan = Q.plan(net, batches(1, 15), { loss = 0.2, timer = timer, runs = 1 })
        t.is_true(plan.seconds == plan.float_seconds and plan.sure > 0.2)
        local more = tonumber(string.match(tostring(plan), "(%d+) more samples for %+/%- 0%.2"))
        t.close(more, 256 * (plan.sure / 0.2) ^ 2 - 256, 1)
    end)
    refused("there is no batch in it", Q.plan, net, {})
    refused("dynamic, int4, int8 expected, got", Q.plan, net, batches(1, 15), { kinds = { "int3" } })
    refused("no linear layer, no convolution", Q.plan, nn.ReLU(), batches(1, 15))
end)
