-- test_nn_fractional.lua: fractional max pooling (values as PyTorch's stand in tests/golden/modules), and
-- normalisation across channels.
local t = require "harness"
local nn = tide.nn
local F = nn.functional

t.test("windows_cover_the_input_and_places_say_where", function()
    tide.manual_seed(1)
    local x = tide.randn(2, 3, 9, 11)
    local y, places = F.fractional_max_pool2d(x, { 2, 3 }, { output_size = { 4, 5 }, return_indices = true })
    t.eq({ table.unpack(y.shape) }, { 2, 3, 4, 5 })
    t.is_true(tide.equal(x:flatten(3):gather(3, places:flatten(3)), y:flatten(3)))
    local volume = tide.randn(1, 2, 6, 7, 8)
    y, places = nn.FractionalMaxPool3d(2, { output_ratio = { 0.5, 0.6, 0.7 }, return_indices = true })(volume)
    t.eq({ table.unpack(y.shape) }, { 1, 2, 3, 4, 5 })
    t.is_true(tide.equal(volume:flatten(3):gather(3, places:flatten(3)), y:flatten(3)))
    t.eq({ table.unpack(F.fractional_max_pool2d(x[1], 2, { output_ratio = 0.5 }).shape) }, { 3, 4, 5 })
end)

t.test("the_same_draws_give_the_same_windows", function()
    local x = tide.randn(1, 1, 20, 20)
    local function pooled()
        tide.manual_seed(5)
        return F.fractional_max_pool2d(x, 2, { output_size = 7 })
    end
    t.is_true(tide.equal(pooled(), pooled()))
end)

t.test("gradients_go_to_the_largest", function()
    local samples = tide.tensor({ { { 0.3, 0.8 } } }, { dtype = tide.float64 })
    local x = tide.randn({ 1, 1, 6, 7 }, { dtype = tide.float64 }):requires_grad_()
    t.is_true(tide.autograd.gradcheck(function(v)
        return F.fractional_max_pool2d(v, 2, { output_size = { 3, 4 }, _random_samples = samples })
    end, { x }))
end)

t.test("wrong_fractional_pools_say_what_is_wrong", function()
    local x = tide.randn(1, 2, 5, 5)
    local function refuses(text, ...)
        local args = table.pack(...)
        t.error_has(function() F.fractional_max_pool2d(table.unpack(args, 1, args.n)) end, text)
    end
    refuses("give either output_size or output_ratio", x, 2)
    refuses("give either output_size or output_ratio", x, 2, { output_size = 2, output_ratio = 0.5 })
    refuses("dim 1: an output of 5 by windows of 2 doesn't fit into 5", x, 2, { output_size = 5 })
    refuses("numbers between 0 and 1 expected, got 1.5", x, 2, { output_ratio = 1.5 })
    refuses("one number or 2 expected, got 3", x, 2, { output_ratio = { 0.5, 0.5, 0.5 } })
    refuses("input must have 4 dims, or 3 without batch, got shape (5, 5)", x[1][1], 2, { output_size = 2 })
    refuses("floats expected, got tide.int64", x:long(), 2, { output_size = 2 })
    refuses("_random_samples must have shape (1, 2, 2), got (1, 2, 3)", x, 2,
        { output_size = 2, _random_samples = tide.rand(1, 2, 3) })
    t.error_has(function() nn.FractionalMaxPool2d(2) end, "give either output_size or output_ratio")
    t.error_has(function() nn.FractionalMaxPool3d(2, { output_ratio = 0 }) end, "numbers between 0 and 1 expected, got 0")
end)

t.test("channels_are_normalised_by_as_many_before_as_behind", function()
    local x = tide.randn({ 2, 7, 2, 3 }, { dtype = tide.float64 })
    for size = 1, 6 do
        local half, want = (size - 1) // 2, {}
        for c = 1, 7 do
            local first, last = math.max(1, c - half), math.min(7, c + half)
            local sum = x:narrow(2, first, last - first + 1):square():sum(2)
            want[c] = x:select(2, c) * (sum * (0.3 / size) + 1.5) ^ -0.6
        end
        t.is_true(tide.allclose(nn.CrossMapLRN2d(size, 0.3, 0.6, 1.5)(x), tide.stack(want, 2), { atol = 1e-12 }))
    end
    t.eq({ tostring(nn.CrossMapLRN2d(3)), tostring(nn.LocalResponseNorm(2, 0.5)) },
        { "CrossMapLRN2d(3, alpha=0.0001, beta=0.75, k=1)", "LocalResponseNorm(2, alpha=0.5, beta=0.75, k=1)" })
    t.error_has(function() nn.CrossMapLRN2d(3)(x[1]) end, "CrossMapLRN2d: images (N, C, H, W) expected, got shape (7, 2, 3)")
end)
