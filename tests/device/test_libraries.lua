-- test_libraries.lua: NVIDIA's libraries are found and used: products, convolutions, decompositions, programs compiled at
-- run time and the timeline are theirs. A machine that lacks one computes the same by other means, so that nothing but a
-- look at the kernels' names tells.
local t = require "harness"

if not tide.cuda.is_available() then
    t.skip("CUDA", tide.cuda.unavailable_reason())
    t.finish()
end

-- What the device did for fn, by name; and whether any of it is none of Tide's kernels.
local function kernels(fn)
    fn() -- what is loaded, chosen and compiled at the first call is not recorded
    local names, foreign = {}, false
    for _, event in ipairs(tide.profiler.profile { fn, kernels = true }:events()) do
        if event.kind == "device" then
            names[#names + 1] = event.name
            foreign = foreign or not event.name:find("td_", 1, true)
        end
    end
    return table.concat(names, "\n"), foreign
end

local function by_library(what, fn)
    t.test(what, function()
        local names, foreign = kernels(fn)
        t.is_true(#names > 0, "the device did nothing")
        t.is_true(foreign, "only kernels of Tide's ran: " .. names)
    end)
end

local cuda = { device = "cuda" }
local x = tide.randn(512, 512, cuda)
by_library("cuBLASLt_multiplies", function() return x:matmul(x) end)
local half = x:bfloat16()
by_library("cuBLASLt_multiplies_bfloat16", function() return half:matmul(half) end)
local layer = tide.nn.quantized.dynamic.Linear(512, 512):cuda()
by_library("cuBLASLt_multiplies_bytes", function() return layer(x[{ { 1, 64 } }]) end)
local image, weight = tide.randn(8, 64, 32, 32, cuda), tide.randn(64, 64, 3, 3, cuda)
by_library("cuDNN_convolves", function() return tide.conv2d(image, weight, nil, { padding = 1 }) end)
local last = { memory_format = tide.channels_last }
local image_last, weight_last = image:bfloat16():to(last), weight:bfloat16():to(last)
by_library("cuDNN_convolves_channels_last", function() return tide.conv2d(image_last, weight_last, nil, { padding = 1 }) end)
local positive = x:matmul(x:t()) + 512 * tide.eye(512, cuda)
by_library("cuSOLVER_decomposes", function() return tide.linalg.cholesky(positive) end)

t.test("NVRTC_compiles_programs", function()
    local many = tide.randn(10000000, cuda)
    tide.addcmul(many, many, many, { value = 0.3 })
    local ends = os.time() + 6 -- the compiler works on a thread of its own
    local names
    repeat
        names = kernels(function() return tide.addcmul(many, many, many, { value = 0.3 }) end)
    until names:find("td_program", 1, true) or os.time() > ends
    t.is_true(names:find("td_program", 1, true), names)
end)

t.test("CUPTI_tells_what_a_kernel_takes", function()
    local profile = tide.profiler.profile { function() return x:exp() end, kernels = true }
    local found
    for _, event in ipairs(profile:events()) do
        found = event.kind == "device" and event or found
    end
    t.is_true(found, "no event of the device")
    t.is_true(found.name:find("td_", 1, true), "a kernel has its own name under CUPTI: " .. found.name)
end)
