-- test_quantization_refusals.lua: what the workflows of quantization are given wrongly: each is refused in one line that says what was
-- expected, and the model is as it was.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn

local x, labels = tide.randn(4, 8), tide.ones(4):long()
local function perceptron() return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)) end

local function refused(text, fn, ...)
    local why = t.refused(text, fn, ...)
    t.is_true(not string.find(why, "\n", 1, true) and not string.find(why, "attempt to", 1, true), "one line, and none of Lua's: " .. why)
end

-- A converted model of what is given as option qconfig.
local function converted(qconfig, net, given)
    local prepared = Q.prepare(net or perceptron(), { qconfig = qconfig })
    prepared(given or x)
    return Q.convert(prepared)
end

t.test("what_observers_see_has_a_range", function()
    for _, bad in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
        local one = x:clone()
        one[2][3] = bad
        for _, make in ipairs { Q.MinMaxObserver, Q.MovingAverageMinMaxObserver, Q.PerChannelMinMaxObserver, Q.HistogramObserver } do
            local observer = make()
            observer(x)
            local scale, point = observer:calculate_qparams()
            refused("x has NaN or infinity in it", observer, one)
            local after_scale, after_point = observer:calculate_qparams()
            t.is_true(tide.equal(scale, after_scale) and tide.equal(point, after_point), "what was seen before is kept")
        end
        refused("x has NaN or infinity in it", converted, nil, nil, one)
    end
    local ok, why = pcall(Q.convert, Q.prepare(nn.Sequential(perceptron(), nn.ReLU())))
    t.is_true(not ok and string.find(why, "convert: layer '1.1': the HistogramObserver has seen no data: call it with some first$"), why)
    refused("has seen no data", function()
        local observer = Q.MinMaxObserver()
        observer(tide.empty(0))
        observer:calculate_qparams()
    end)
end)

t.test("a_qconfig_makes_observers_and_modules", function()
    for _, make in ipairs { function() return 3 end, function() end, nn.Identity } do
        refused("prepare: activation of the QConfig: a function that makes an observer expected", converted, Q.QConfig { activation = make })
        refused("prepare_qat: activation of the QConfig", Q.prepare_qat, perceptron(), { qconfig = Q.QConfig { activation = make } })
    end
    for what, value in pairs { ["nil"] = false, ["number 3"] = 3 } do
        refused("convert: layer '3': replace of the QConfig: a module expected, got " .. what, converted,
            { ["3"] = Q.QConfig { replace = function() return value or nil end } })
    end
    refused("convert: layer '1': pack_rows: rows of 4 bits have an even number", converted, Q.float_qparams_weight_only_qconfig_4bit(),
        nn.Sequential(nn.Embedding(4, 5)), tide.ones(2):long())
    refused("an observer of qint8 expected, got one of quint8", converted, Q.QConfig { weight = Q.MinMaxObserver })
    refused("replace makes the whole layer", Q.QConfig, { replace = print, weight = Q.MinMaxObserver })
end)

t.test("numbers_of_a_state_that_lie_are_refused_when_they_are_used", function()
    local small = converted()
    local want = small(x)
    for key, value in pairs { scale = 0.0, in_scale = 0 / 0, zero_point = 999, in_zero_point = -1 } do
        local state, name = small:state_dict(), "1." .. key
        local kept = state[name]:clone()
        state[name] = tide.tensor(value, { dtype = kept.dtype })
        small:load_state_dict(state)
        refused(string.find(key, "scale") and "a scale is above 0, finite" or "a zero point of quint8 is from 0 to 255", small, x)
        state[name] = kept
        small:load_state_dict(state)
        t.is_true(tide.equal(small(x), want))
    end
    local other = small:state_dict()
    other["1.weight"] = other["3.weight"]
    refused("1.weight has shape (2, 8), expected (8, 8)", small.load_state_dict, small, other)
end)

t.test("plans_want_batches_targets_and_scores", function()
    local net = perceptron()
    local function plan(data, options) return Q.plan(net, data, options) end
    refused("plan: data: there is no batch in it", plan, {})
    refused("plan: data: a list of batches {x, y} or a loader expected, got number 3", plan, 3)
    refused("plan: data: a list of batches {x, y} or a loader expected, got a tensor", plan, x)
    refused("plan: data: batch 2: {x, y} expected, got a tensor", plan, { { x, labels }, x })
    refused("shape (4), expected, got (2)", plan, { { x, labels[{ { 1, 2 } }] } })
    refused("shape (4), expected, got (4, 1)", plan, { { x, labels:view(4, 1) } })
    refused("shape (4), expected, got nil", plan, { { x } })
    refused("plan: calibration: there is no batch in it", plan, { { x, labels } }, { calibration = {} })
    for _, confidence in ipairs { 0, 1 } do
        refused("plan: option confidence: between 0 and 1 expected", plan, { { x, labels } }, { confidence = confidence })
    end
    for what, score in pairs { ["nil"] = function() end, ["number 1"] = function() return 1 end } do
        refused("plan: score: a tensor of a number for each sample expected, got " .. what, plan, { { x, labels } }, { score = score })
    end
end)

t.test("what_is_fused_fits", function()
    local net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(2, 2)):eval()
    refused("a ReLU or both expected, got '1' (Conv2d), '5' (Linear)", Q.fuse_modules, net, { "1", "5" })
    refused("the model has no part '9'", Q.fuse_modules, net, { "1", "9" })
    local images = tide.randn(2, 1, 3, 3)
    local fused = Q.fuse_modules(nn.Sequential(net), { "1.1", "1.2", "1.3" }) -- parts of a Sequential are named by their places
    t.is_true(nn.is(fused[1][2], nn.Identity) and nn.is(fused[1][1][1], nn.Conv2d))
    t.is_true(tide.allclose(fused(images), net(images), { atol = 1e-5 }))
end)

t.finish()
