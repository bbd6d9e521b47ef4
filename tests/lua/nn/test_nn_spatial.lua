-- test_nn_spatial.lua: the layers over spatial dims: they are the functions of the same meaning, print as
-- PyTorch's do and begin with its values.
local t = require "harness"
local nn = tide.nn

t.test("convolutions_of_every_dim_are_their_functions", function()
    for n, name in ipairs { "Conv1d", "Conv2d", "Conv3d" } do
        local x = n == 1 and tide.randn(2, 4, 9) or n == 2 and tide.randn(2, 4, 7, 6) or tide.randn(1, 4, 5, 6, 4)
        local layer = nn[name](4, 6, 3, { stride = 2, padding = 1, dilation = 1, groups = 2 })
        local fn = tide["conv" .. n .. "d"]
        t.eq(layer(x) == fn(x, layer.weight, layer.bias, 2, 1, 1, 2), true, name)
        t.is_true(layer.weight:abs():max():item() <= 1 / math.sqrt(2 * 3 ^ n))
        local same = nn[name](4, 2, 3, { padding = "same" })
        t.eq({ table.unpack(same(x).shape, 3) }, { table.unpack(x.shape, 3) })
    end
    t.error_has(function() nn.Conv2d(1, 1, 3, { stride = 2, padding = "same" }) end, 'padding "same" needs a stride of 1')
    t.error_has(function() nn.Conv1d(3, 4, 3, { groups = 2 }) end, "Conv1d: 3 and 4 channels can't be divided into 2 groups")
end)

t.test("padding_modes_of_a_convolution_pad_before_it", function()
    local x = tide.randn(1, 2, 6, 7)
    for _, mode in ipairs { "reflect", "replicate", "circular" } do
        local layer = nn.Conv2d(2, 3, { 3, 5 }, { padding = { 1, 2 }, padding_mode = mode })
        t.eq(layer(x) == tide.conv2d(tide.pad(x, { 2, 2, 1, 1 }, mode), layer.weight, layer.bias), true, mode)
        local same = nn.Conv2d(2, 3, { 2, 4 }, { padding = "same", padding_mode = mode })
        t.eq(same(x) == tide.conv2d(tide.pad(x, { 1, 2, 0, 1 }, mode), same.weight, same.bias), true, mode)
    end
end)

t.test("transposed_convolutions_give_the_size_that_is_asked_for", function()
    local x = tide.randn(1, 4, 5)
    local layer = nn.ConvTranspose1d(4, 6, 3, { stride = 3, groups = 2 })
    t.eq(layer(x) == tide.conv_transpose1d(x, layer.weight, layer.bias, 3, 0, 0, 2), true)
    t.is_true(layer.weight:abs():max():item() <= 1 / math.sqrt(3 * 3))
    for size = 15, 17 do
        t.eq(layer(x, { size }).shape[3], size)
        t.eq(layer(x, { 1, 6, size }).shape[3], size)
    end
    t.error_has(function() layer(x, { 18 }) end, "ConvTranspose1d: output_size must lie between 15 and 17 for an input of shape (1, 4, 5), got 18")
    t.eq(nn.ConvTranspose2d(2, 3, 2)(tide.ones(1, 2, 3, 3)).shape[4], 4)
    t.eq(nn.ConvTranspose3d(2, 3, 2)(tide.ones(1, 2, 3, 3, 3)).shape[5], 4)
end)

t.test("layers_print_as_elsewhere", function()
    for _, row in ipairs {
        { nn.Conv1d(2, 4, 3, { padding = 1, bias = false }), "Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding=(1,), bias=false)" },
        { nn.Conv3d(2, 4, 3, { dilation = 2, padding = "same", padding_mode = "circular" }),
            "Conv3d(2, 4, kernel_size=(3, 3, 3), stride=(1, 1, 1), padding=same, dilation=(2, 2, 2), padding_mode=circular)" },
        { nn.ConvTranspose2d(2, 4, 3, 2, 1, 1), "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1))" },
        { nn.MaxPool1d(3), "MaxPool1d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=false)" },
        { nn.MaxPool3d({ 1, 2, 3 }, 2), "MaxPool3d(kernel_size=(1, 2, 3), stride=2, padding=0, dilation=1, ceil_mode=false)" },
        { nn.AvgPool1d(3), "AvgPool1d(kernel_size=(3,), stride=(3,), padding=(0,))" },
        { nn.AvgPool3d(3), "AvgPool3d(kernel_size=3, stride=3, padding=0)" },
        { nn.AdaptiveMaxPool2d({ 3, false }), "AdaptiveMaxPool2d(output_size=(3, nil))" },
        { nn.AdaptiveAvgPool3d(2), "AdaptiveAvgPool3d(output_size=2)" },
        { nn.LPPool2d(2, 3), "LPPool2d(norm_type=2, kernel_size=3, stride=3, ceil_mode=false)" },
        { nn.MaxUnpool2d(2), "MaxUnpool2d(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0))" },
        { nn.ConstantPad1d(1, 3.5), "ConstantPad1d(padding=(1, 1), value=3.5)" },
        { nn.ReflectionPad2d({ 1, 2, 3, 4 }), "ReflectionPad2d((1, 2, 3, 4))" },
        { nn.Upsample { scale_factor = 2, mode = "bilinear" }, "Upsample(scale_factor=2, mode='bilinear')" },
        { nn.Upsample { size = { 3, 4 } }, "Upsample(size=(3, 4), mode='nearest')" },
        { nn.Unfold(2), "Unfold(kernel_size=2, dilation=1, padding=0, stride=1)" },
        { nn.Fold({ 4, 5 }, 2), "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=1)" },
        { nn.PixelShuffle(3), "PixelShuffle(upscale_factor=3)" },
        { nn.ChannelShuffle(2), "ChannelShuffle(groups=2)" },
    } do
        t.eq(tostring(row[1]), row[2])
    end
end)

t.test("pools_and_their_undoing", function()
    local x = tide.randn(1, 2, 6, 4)
    local y, places = nn.MaxPool2d(2, { return_indices = true })(x)
    t.eq(y == tide.max_pool2d(x, 2), true)
    local back = nn.MaxUnpool2d(2)(y, places)
    t.eq(tide.max_pool2d(back:abs(), 2) == y:abs(), true)
    t.eq(select("#", nn.MaxPool2d(2)(x)), 1)
    t.eq(nn.AvgPool2d(2, { divisor_override = 2 })(x) == tide.avg_pool2d(x, 2, { divisor_override = 2 }), true)
    t.eq(nn.AvgPool2d(2)(x).shape, tide.ones(1, 2, 3, 2).shape)
    t.eq(nn.LPPool1d(2, 2)(x[1]) == tide.lp_pool1d(x[1], 2, 2), true)
    t.eq(nn.AdaptiveMaxPool1d(3)(x[1]) == tide.adaptive_max_pool1d(x[1], 3), true)
    t.eq(#table.pack(nn.AdaptiveMaxPool2d(3, true)(x)), 2)
    t.eq(nn.AdaptiveAvgPool2d({ false, 2 })(x).shape, tide.ones(1, 2, 6, 2).shape)
end)

t.test("pads_of_one_number_and_of_a_pair_for_each_dim", function()
    local x = tide.randn(1, 2, 4, 5)
    t.eq(nn.ZeroPad2d(1)(x) == tide.pad(x, { 1, 1, 1, 1 }), true)
    t.eq(nn.ConstantPad2d({ 1, 0, 2, -1 }, 7)(x) == tide.pad(x, { 1, 0, 2, -1 }, { value = 7 }), true)
    t.eq(nn.ReplicationPad1d({ 1, 2 })(x[1]) == tide.pad(x[1], { 1, 2 }, "replicate"), true)
    t.eq(nn.CircularPad3d(1)(x) == tide.pad(x, { 1, 1, 1, 1, 1, 1 }, "circular"), true)
    t.error_has(function() nn.ReflectionPad2d({ 1, 2 }) end, "ReflectionPad2d: padding must be a number or have 4 of them, got 2")
end)

t.test("resampling_windows_and_shuffles_are_their_functions", function()
    local x = tide.randn(1, 4, 4, 6)
    t.eq(nn.Upsample { scale_factor = { 2, 1.5 }, mode = "bilinear", align_corners = true }(x)
        == tide.interpolate(x, { scale_factor = { 2, 1.5 }, mode = "bilinear", align_corners = true }), true)
    t.eq(nn.UpsamplingBilinear2d { scale_factor = 2 }(x)
        == tide.interpolate(x, { scale_factor = 2, mode = "bilinear", align_corners = true }), true)
    t.eq(nn.UpsamplingNearest2d { size = 9 }(x) == tide.interpolate(x, 9), true)
    t.eq(nn.Fold({ 4, 6 }, 2)(nn.Unfold(2)(x)) == tide.col2im(tide.im2col(x, 2), { 4, 6 }, 2), true)
    t.eq(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)) == x, true)
    t.eq(nn.ChannelShuffle(2)(nn.ChannelShuffle(2)(x)) == x, true)
    t.eq(nn.functional.unfold(x, 2) == tide.im2col(x, 2), true)
    t.eq(nn.functional.upsample(x, 9) == tide.interpolate(x, 9), true)
end)
