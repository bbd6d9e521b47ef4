-- test_conv_ways.lua: convolutions that the CPU makes in ways of its own (kernels of one place as products, depthwise ones a
-- vector of channels at a time) against float64, which goes another way; and that a result does not depend on threads or on how often a weight was met.
local t = require "harness"
local F = tide.nn.functional

-- x's shape, weight's shape, stride, padding, groups, dilation, whether images lie channels last.
local cases = {
    { { 1, 24, 16, 9 }, { 40, 24, 1, 1 } }, { { 3, 7, 12, 11 }, { 5, 7, 1, 1 } }, { { 2, 70, 32, 32 }, { 33, 70, 1, 1 } },
    { { 1, 300, 7, 7 }, { 130, 300, 1, 1 } }, { { 1, 600, 5, 3 }, { 64, 600, 1, 1 } }, { { 2, 300, 7, 7 }, { 130, 300, 1, 1 } },
    { { 1, 9, 140 }, { 6, 9, 1 } }, { { 1, 20, 4, 6, 7 }, { 8, 20, 1, 1, 1 } }, { { 1, 40, 1100 }, { 50, 40, 1 } },
    { { 1, 5, 20, 17 }, { 5, 1, 3, 3 }, 1, 1, 5 }, { { 2, 3, 14, 14 }, { 3, 1, 5, 5 }, 1, 2, 3 }, { { 1, 4, 33, 40 }, { 4, 1, 3, 3 }, 2, 0, 4 },
    { { 1, 4, 30, 31 }, { 4, 1, 5, 5 }, 2, 2, 4 }, { { 1, 2, 18, 50 }, { 2, 1, 3, 3 }, 1, 0, 2 }, { { 1, 2, 4, 70 }, { 2, 1, 5, 5 }, 1, 3, 2 },
    { { 1, 6, 16, 16 }, { 6, 1, 3, 3 }, { 1, 2 }, 1, 6 }, { { 1, 6, 16, 16 }, { 12, 1, 3, 3 }, 1, 1, 6 }, { { 1, 3, 29, 29 }, { 3, 1, 3, 3 }, 2, { 1, 2 }, 3 },
    { { 1, 37, 7, 7 }, { 37, 1, 5, 5 }, 1, 2, 37 }, { { 1, 16, 3, 2 }, { 16, 1, 7, 7 }, 1, 3, 16 }, { { 3, 18, 15, 13 }, { 18, 1, 3, 3 }, 2, 1, 18, 2 },
    { { 1, 20, 9, 61 }, { 20, 1, 2, 4 }, { 3, 1 }, { 0, 5 }, 20 }, { { 1, 35, 50 }, { 35, 1, 3 }, 2, 1, 35 }, { { 2, 17, 90, 80 }, { 17, 1, 3, 3 }, 1, 1, 17 },
    { { 1, 24, 16, 9 }, { 100, 24, 1, 1 }, 1, 0, 1, 1, true }, { { 3, 600, 7, 5 }, { 70, 600, 1, 1 }, 1, 0, 1, 1, true },
    { { 2, 32, 12, 12 }, { 32, 1, 3, 3 }, 1, 1, 32, 1, true }, { { 1, 37, 23, 19 }, { 37, 1, 5, 5 }, 2, { 2, 1 }, 37, 1, true },
    { { 3, 72, 9, 9 }, { 72, 1, 7, 7 }, 1, 3, 72, 1, true }, { { 1, 200, 7, 7 }, { 200, 1, 5, 5 }, 1, 2, 200, 1, true },
    { { 1, 5, 2, 3 }, { 5, 1, 3, 7 }, 1, { 4, 9 }, 5, 1, true }, { { 2, 80, 31, 33 }, { 80, 1, 3, 3 }, { 3, 1 }, 0, 80, { 2, 1 }, true },
    { { 1, 48, 90, 64 }, { 48, 1, 7, 7 }, 2, 3, 48, 1, true }, { { 1, 16, 40, 41 }, { 16, 1, 3, 3 }, 1, 1, 16, 2, true },
    { { 1, 70, 7, 7 }, { 100, 70, 3, 3 }, 1, 1, 1, 1, true }, { { 1, 120, 5, 6 }, { 33, 120, 3, 3 }, 1, 1, 1, 1, true }, { { 1, 3, 9, 31 }, { 70, 3, 5, 3 }, { 2, 1 }, { 4, 1 }, 1, { 1, 3 }, true },
    { { 1, 130, 14, 14 }, { 200, 130, 1, 1 }, 2, 0, 1, 1, true }, { { 1, 5, 3, 2 }, { 7, 5, 4, 7 }, 1, { 5, 9 }, 1, 1, true }, { { 1, 140, 24, 33 }, { 65, 140, 2, 2 }, 2, 0, 1, 1, true },
}

local function convolve(x, weight, bias, case)
    local by_dims = { F.conv1d, F.conv2d, F.conv3d }
    return by_dims[x:dim() - 2](x, weight, bias, { stride = case[3] or 1, padding = case[4] or 0, groups = case[5] or 1, dilation = case[6] or 1 })
end

for k, case in ipairs(cases) do
    t.test(("case_%d_is_that_of_float64"):format(k), function()
        local _ <close> = tide.no_grad()
        tide.manual_seed(k)
        local x, weight, threads = tide.randn(case[1]), tide.randn(case[2]), tide.get_num_threads()
        x = case[7] and x:contiguous { memory_format = "channels_last" } or x
        weight = case[7] and k % 2 == 0 and weight:contiguous { memory_format = "channels_last" } or weight
        for _, bias in ipairs { false, tide.randn(case[2][1]) } do
            local b = bias or nil
            local want = convolve(x:double(), weight:double(), b and b:double(), case)
            local first = convolve(x, weight, b, case)
            local most = 1e-4 + 1e-6 * want:abs():max():item()
            t.is_true((first:double() - want):abs():max():item() < most, "bias: " .. tostring(bias ~= false))
            for _, n in ipairs { 1, 2, 1, 2 } do
                tide.set_num_threads(n)
                t.is_true(tide.equal(convolve(x, weight, b, case), first), "another time, threads: " .. n)
            end
            tide.set_num_threads(threads)
        end
        weight:mul_(2) -- what was kept of it holds no longer
        local want = convolve(x:double(), weight:double(), nil, case)
        local most = 2e-4 + 1e-6 * want:abs():max():item()
        t.is_true((convolve(x, weight, nil, case):double() - want):abs():max():item() < most, "after a write")
    end)
end

t.test("infinities_and_nan_stay_where_they_belong", function()
    for _, last in ipairs { false, true } do
        local x, weight = tide.zeros(1, 4, 20, 20), tide.ones(4, 1, 3, 3)
        x[{ 1, 2, 10, 10 }] = math.huge
        weight[{ 3, 1, 1, 1 }] = math.huge -- at the first place that meets padding alone
        x = last and x:contiguous { memory_format = "channels_last" } or x
        local y = F.conv2d(x, weight, nil, { padding = 1, groups = 4 })
        t.eq(y:isinf():sum():item(), 9)
        t.eq(y[{ 1, 2 }]:isnan():sum():item(), 0)
        t.is_true(not last or y[{ 1, 3, 1, 1 }]:item() == 0, "a weight beside the image")
    end
end)
