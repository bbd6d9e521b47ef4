-- test_weight_only.lua: layers whose weights alone have few bits: how near to floats they are, their files, GGML's blocks.
local t = require "harness"
local Q, nn = tide.quantization, tide.nn
local DATA = os.getenv "TIDE_SOURCE" .. "/tests/golden/data/gguf/"

local function far(y, want) return ((y:double() - want:double()):norm() / want:double():norm()):item() end

local refused = t.refused

local function model()
    tide.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 50), nn.GELU(), nn.Linear(50, 20))
end

t.test("fewer_bits_are_further_from_floats_and_smaller", function()
    local net, x = model(), tide.randn(9, 64)
    local last, bytes = 0, math.huge
    for _, row in ipairs { { "int8", 0.012 }, { "int6", 0.03 }, { "int4", 0.12 } } do
        local small = Q.quantize_weights(net, { dtype = row[1] })
        local off = far(small(x), net(x):detach())
        t.is_true(off > last and off < row[2], row[1] .. ": " .. off)
        local taken = 0
        for _, part in pairs(small:state_dict()) do
            taken = taken + part.nbytes
        end
        t.is_true(taken < bytes)
        last, bytes = off, taken
    end
end)

t.test("each_weight_is_off_by_half_a_step_at_most", function()
    tide.manual_seed(2)
    local linear = nn.Linear(96, 24)
    for _, symmetric in ipairs { false, true } do
        local small = nn.quantized.WeightOnlyLinear.from_float(linear, { dtype = "int8", group_size = 32, symmetric = symmetric })
        local off = (small:dequantize() - linear.weight:detach()):abs():view(24, 3, 32):amax(3)
        local steps = small.scales:transpose(2, 3):reshape(-1, 3)[{ { 1, 24 }, {} }]
        t.is_true(((off - steps * 0.5001)):le(0):all():item() or symmetric, "affine")
        t.is_true(((off - steps * 1.0001)):le(0):all():item(), "at the end of the range a step is cut off")
    end
    local zeros = nn.Linear(32, 2)
    zeros:load_state_dict { weight = tide.zeros(2, 32), bias = tide.ones(2) }
    t.is_true(nn.quantized.WeightOnlyLinear.from_float(zeros)(tide.randn(3, 32)):eq(1):all():item(), "a weight of zeros")
end)

t.test("a_filter_says_which_layers_change", function()
    local net = model()
    local small = Q.quantize_weights(net, { filter = function(layer, name) return name == "3" and layer.in_features == 50 end })
    t.is_true(nn.is(small[1], nn.Linear))
    t.is_true(nn.is(small[3], nn.quantized.WeightOnlyLinear))
    t.is_true(nn.is(net[3], nn.Linear), "the model stays as it was")
    t.is_true(nn.is(Q.quantize_weights(net[1]), nn.quantized.WeightOnlyLinear), "a layer by itself")
end)

t.test("layers_are_saved_and_loaded", function()
    local net, x, path = model(), tide.randn(4, 64), os.tmpname() .. ".safetensors"
    for _, options in ipairs { { dtype = "int8" }, { dtype = "int4" }, { dtype = "int4", symmetric = true, group_size = 64 } } do
        local small, other = Q.quantize_weights(net, options), Q.quantize_weights(model(), options)
        for _, part in pairs(other:state_dict()) do
            part:zero_()
        end
        tide.save(small:state_dict(), path)
        other:load_state_dict(tide.load(path))
        t.is_true(tide.equal(other(x), small(x)))
        refused("expected (4, 12, 64)", function() Q.quantize_weights(net, { dtype = "int6" }):load_state_dict(tide.load(path)) end)
    end
    os.remove(path)
end)

t.test("halves_go_in_and_out", function()
    local small, x = Q.quantize_weights(model()), tide.randn(3, 64)
    for _, dtype in ipairs { tide.float16, tide.bfloat16 } do
        local y = small[1](x:to(dtype))
        t.eq(y.dtype, dtype)
        t.is_true(far(y:float(), small[1](x)) < 0.02)
    end
end)

t.test("gradients_go_through_to_what_stands_in_front", function()
    local small = Q.quantize_weights(model(), { dtype = "int4" })[1]
    local x, g = tide.randn(3, 5, 64, { requires_grad = true }), tide.randn(3, 5, 50)
    local y = small(x)
    t.is_true(tide.equal(y:detach(), tide.no_grad(small, x)), "the same with and without")
    y:backward(g)
    t.is_true(far(x.grad, g:matmul(small:dequantize())) < 1e-6)
    t.is_true(not tide.no_grad(small, x).requires_grad)
end)

t.test("what_cannot_be_is_refused", function()
    local linear = nn.Linear(8, 4)
    refused("group_size: a multiple of 32 expected for 8 bits, got 20", Q.quantize_weights, linear, { group_size = 20 })
    refused("dtype", Q.quantize_weights, linear, { dtype = "int3" })
    linear:load_state_dict { weight = tide.full({ 4, 8 }, 0 / 0), bias = tide.zeros(4) }
    refused("NaN or infinity", Q.quantize_weights, linear)
    refused("quantize_weights: layer '1'", Q.quantize_weights, nn.Sequential(linear))
end)

-- The same floats as the package gguf unpacks, and products of them.
t.test("ggml_blocks_are_multiplied_as_they_lie", function()
    tide.manual_seed(4)
    local packed, floats = tide.load(DATA .. "types.gguf", { packed = true }), tide.load(DATA .. "floats.gguf")
    for _, name in ipairs { "Q8_0", "Q4_0", "Q4_K", "Q6_K" } do
        local layer, weight = packed[name], floats[name]
        t.is_true(tide.equal(layer:dequantize(), weight), name)
        local x = tide.randint(-127, 128, { 5, weight.shape[2] }):float()
        x[{ {}, { 1, -1, 32 } }] = 127 -- blocks that are rounded to themselves
        t.is_true(far(layer(x), x:double():mm(weight:double():t())) < 1e-6, name)
    end
    t.is_true(tide.is_tensor(packed.Q5_0), "others are unpacked")
    refused("has no packed matrices", tide.load, os.getenv "TIDE_SOURCE" .. "/tests/golden/images/png/png_3_8.png", { packed = true })
end)

t.test("gptq_is_nearer_on_the_data_it_has_seen", function()
    tide.manual_seed(5)
    local net = model()
    local mix = tide.randn(8, 64) * 0.5 -- features that go together
    local function data(n) return tide.randn(n, 8):mm(mix) + tide.randn(n, 64) * 0.05 end
    local x, held = data(256), data(256)
    for _, options in ipairs { { dtype = "int4" }, { dtype = "int4", symmetric = true, group_size = 64 } } do
        local plain, better = Q.quantize_weights(net, options), Q.gptq(net, function(m) m(x) end, options)
        local want = net(held):detach()
        local before, after = far(plain(held), want), far(better(held), want)
        t.is_true(after < 0.75 * before, ("%g after %g"):format(after, before))
    end
end)

t.finish()
