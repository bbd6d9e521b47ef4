-- test_preparation.lua: what is done to a model so that few bits cost it less: outliers smoothed, layers equalized, biases corrected.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn

local function far(y, want) return ((y:double() - want:double()):norm() / want:double():norm()):item() end

local refused = t.refused

-- Weights changed where they lie.
local function change(fn)
    local _ <close> = tide.no_grad()
    fn()
end

-- A norm with a few channels 60 times as large as the others, as language models have them.
local function outliers()
    tide.manual_seed(1)
    local net = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16))
    change(function() net[1].weight[{ { 1, 64, 16 } }]:mul_(60) end)
    return net
end

t.test("smoothing_leaves_results_and_halves_what_8_bits_lose", function()
    local net = outliers()
    local x, held = tide.randn(128, 64), tide.randn(128, 64)
    local smooth = Q.smooth(net, function(m) m(x) end)
    local want = net(held):detach()
    t.is_true(far(smooth(held):detach(), want) < 1e-5, "the same model")
    local before, after = far(Q.quantize_dynamic(net)(held), want), far(Q.quantize_dynamic(smooth)(held), want)
    t.is_true(after < 0.5 * before, ("%g after %g"):format(after, before))
    local named = Q.smooth(net, function(m) m(x) end, { layers = { { "1", "2" } } })
    t.is_true(tide.equal(named(held), smooth(held)), "the same by names")
end)

t.test("smoothing_refuses_what_takes_nothing_of_a_norm", function()
    local net, run = outliers(), function() end
    refused("no part 'x'", Q.smooth, net, run, { layers = { { "x", "2" } } })
    refused("'4' is no linear layer of what '1' gives", Q.smooth, net, run, { layers = { { "1", "4" } } })
    refused("then linear layers, expected: 1", Q.smooth, net, run, { layers = { { "1" } } })
    t.is_true(tide.equal(Q.smooth(net, run)[2].weight, net[2].weight), "what meets no data stays")
end)

-- Layers whose channels have ranges some hundred times apart, and one scale for a weight.
local function rounded_whole(net)
    local copy = net:clone():eval()
    for _, module in copy:named_modules() do
        if rawget(module, "weight") or module.weight then
            change(function()
                local w = module.weight
                local scale = w:abs():amax():item() / 127
                w:copy_((w / scale):round() * scale)
            end)
        end
    end
    return copy
end

local function uneven(net)
    change(function()
        for _, module in net:named_modules() do
            if module.out_channels or module.out_features then
                local spread = tide.exp(tide.randn(module.weight.shape[1]) * 1.5)
                module.weight:mul_(spread:view(-1, table.unpack({ 1, 1, 1 }, 1, module.weight.ndim - 1)))
            end
        end
    end)
    return net
end

t.test("equalized_layers_give_the_same_and_lose_half_as_much_in_one_scale", function()
    tide.manual_seed(2)
    local linear = uneven(nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 32), nn.LeakyReLU(), nn.Linear(32, 8)))
    local mobile = uneven(nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, { groups = 16 }), nn.ReLU(),
        nn.Conv2d(16, 8, 1)))
    for _, row in ipairs { { linear:eval(), tide.randn(64, 24) }, { mobile:eval(), tide.randn(4, 3, 10, 10) } } do
        local net, x = row[1], row[2]
        local equal, want = Q.equalize(net), net(x):detach()
        t.is_true(far(equal(x):detach(), want) < 1e-5, "the same model")
        local inside = Q.equalize(nn.Sequential(net)) -- a Sequential in another is walked too
        t.is_true(far(inside(x):detach(), want) < 1e-5)
        local before, after = far(rounded_whole(net)(x):detach(), want), far(rounded_whole(equal)(x):detach(), want)
        t.is_true(after < before / 2, ("%g after %g"):format(after, before))
    end
end)

t.test("channels_that_are_zero_stay", function()
    local net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    change(function()
        net[1].weight[1]:zero_()
        net[3].weight[{ {}, 2 }]:zero_()
    end)
    local x = tide.randn(5, 4)
    local y = Q.equalize(net)(x)
    t.is_true(y:isfinite():all():item() and far(y:detach(), net(x):detach()) < 1e-6)
end)

t.test("corrected_biases_bring_means_back", function()
    tide.manual_seed(3)
    local linear = nn.Sequential(nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10, { bias = false })):eval()
    local x, held = tide.randn(512, 64) + 1, tide.randn(512, 64) + 1 -- means that are not 0
    local function means_off(small) return ((small(held) - linear(held):detach()):mean(1):norm()):item() end
    local small = Q.quantize_weights(linear, { dtype = "int4", symmetric = true })
    local better = Q.correct_bias(linear, small, function(m) m(x) end)
    t.is_true(means_off(better) < 0.4 * means_off(small), ("%g after %g"):format(means_off(better), means_off(small)))
    t.is_true(far(better(held), linear(held)) < far(small(held), linear(held)))
    refused("no layer", Q.correct_bias, nn.Sequential(nn.ReLU()), small, function() end)
end)

t.test("biases_of_convolutions_are_corrected_by_group", function()
    tide.manual_seed(4)
    local net = nn.Sequential(nn.Conv2d(4, 8, 3, { groups = 2 }), nn.BatchNorm2d(8), nn.ReLU()):eval()
    local x = tide.rand(8, 4, 12, 12) + 0.5
    local ready = Q.prepare(net)
    ready(x)
    local small = Q.convert(ready)
    change(function() -- coarser than bytes, so that there is something to correct
        local w = small[1].weight
        local floats = w:dequantize()
        small[1].weight = tide.quantize_per_channel((floats * 8 / floats:abs():amax():item()):round() / 8 * floats:abs():amax():item(),
            w:q_per_channel_scales(), w:q_per_channel_zero_points(), 1, tide.qint8)
    end)
    local better = Q.correct_bias(net, small, function(m) m(x) end)
    local function off(m) return (m(x) - net(x):detach()):mean { 1, 3, 4 }:norm():item() end
    t.is_true(off(better) < 0.5 * off(small), ("%g after %g"):format(off(better), off(small)))
end)

t.finish()
