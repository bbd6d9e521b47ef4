-- test_conv.lua: convolutions and their gradients on the device against the CPU.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("conv", "no CUDA device")
    return
end

tide.manual_seed(5)

-- Is this the played device with its stand-in for cuDNN?
local by_library = both.counts and os.getenv("TIDE_CUDA_MODULE"):find("libraries", 1, true) ~= nil
local NAMES = { "cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter" }

local TOLERANCE = { float16 = 4e-3, bfloat16 = 3e-2, float32 = 1e-5, float64 = 1e-12 }

-- The result and the three gradients.
local function all_of(fn, options)
    return function(x, w, b)
        x, w, b = x:detach():requires_grad_(), w:detach():requires_grad_(), b:detach():requires_grad_()
        local y = fn(x, w, b, options)
        local g = tide.arange(y:numel(), { dtype = tide.float64 }):mul(0.7):cos():to(y.dtype):to(y.device)
        y:mul(g:reshape(y.shape)):sum():backward()
        return y:detach(), x.grad, w.grad, b.grad
    end
end

local function check(fn, dtype, options, x, w, o)
    x, w = tide.randn(table.unpack(x)):to(dtype), tide.randn(table.unpack(w)):to(dtype)
    local b = tide.randn(o):to(dtype)
    both.close(TOLERANCE[dtype], all_of(fn, options), x, w, b)
    if x:dim() == 4 then
        local last = { memory_format = "channels_last" }
        both.close(TOLERANCE[dtype], all_of(fn, options), x:contiguous(last), w:contiguous(last), b)
    end
end

t.test("two_dims", function()
    both.reset()
    for _, dtype in ipairs(both.FLOATS) do
        check(tide.conv2d, dtype, {}, { 2, 3, 9, 11 }, { 5, 3, 3, 2 }, 5)
        check(tide.conv2d, dtype, { stride = { 2, 3 }, padding = { 1, 2 }, dilation = { 2, 1 } }, { 2, 4, 9, 11 },
            { 6, 4, 3, 3 }, 6)
        check(tide.conv2d, dtype, { groups = 2, padding = 1 }, { 2, 4, 7, 6 }, { 6, 2, 3, 3 }, 6)
        check(tide.conv2d, dtype, { groups = 4 }, { 3, 4, 7, 6 }, { 4, 1, 2, 2 }, 4)
        check(tide.conv2d, dtype, {}, { 2, 8, 5, 5 }, { 70, 8, 1, 1 }, 70)
    end
    for _, name in ipairs(both.launches("") and (by_library and NAMES or { "product_kernel" }) or {}) do
        t.is_true(both.launches(name) > 0, name .. " ran")
    end
    t.is_true(not by_library or both.launches("product_kernel") == 0, "the library does them all")
end)

t.test("one_and_three_dims_and_single_images", function()
    check(tide.conv1d, "float32", { padding = 2, stride = 2 }, { 2, 3, 300 }, { 4, 3, 5 }, 4)
    check(tide.conv1d, "float64", { dilation = 3 }, { 3, 50 }, { 4, 3, 5 }, 4)
    check(tide.conv3d, "float32", { stride = 2, padding = 1 }, { 2, 2, 5, 6, 4 }, { 3, 2, 3, 2, 3 }, 3)
    check(tide.conv2d, "float32", {}, { 3, 8, 9 }, { 2, 3, 4, 4 }, 2)
end)

t.test("transposed", function()
    check(tide.conv_transpose2d, "float32", { stride = 2, padding = 1, output_padding = 1 }, { 2, 4, 5, 6 },
        { 4, 3, 3, 3 }, 3)
    check(tide.conv_transpose1d, "float64", { stride = 3, groups = 2 }, { 2, 4, 9 }, { 4, 3, 4 }, 6)
end)

t.test("long_sums_of_the_weights_gradient", function()
    check(tide.conv2d, "float32", { padding = 1 }, { 4, 2, 30, 31 }, { 3, 2, 3, 3 }, 3)
    check(tide.conv1d, "float64", {}, { 1, 1, 9000 }, { 1, 1, 3 }, 1)
end)

t.test("integers", function()
    for _, dtype in ipairs { "uint8", "int8", "int16", "int32", "int64" } do
        both.same(function(x, w) return tide.conv2d(x, w, nil, { padding = 1 }) end, both.elements(dtype, 2, 3, 6, 7),
            both.elements(dtype, 4, 3, 3, 3))
    end
end)

t.test("nothing", function()
    both.same(function(x, w) return tide.conv2d(x, w) end, tide.zeros(0, 3, 5, 5), tide.zeros(2, 3, 3, 3))
end)

if not by_library then
    return
end

-- What the gradients of a convolution, the last of which is the weight's, ask the library for.
local function asked(dtype)
    local x, w = tide.randn(2, 3, 6, 6):to(dtype):cuda():requires_grad_(), tide.randn(4, 3, 3, 3):to(dtype):cuda()
    w:requires_grad_()
    tide.conv2d(x, w):sum():backward()
    tide.cuda.synchronize()
    return both.counts().convolution
end

t.test("tf32_is_asked_for_where_it_is_allowed", function()
    t.eq({ asked "float32", asked "float64", asked "float16", asked "bfloat16" },
        { "FMA 1", "TENSOR_CORES 1", "TENSOR_CORES 1", "TENSOR_CORES 1" })
    tide.backends.cuda.matmul.allow_tf32 = true -- which is for products
    t.eq(asked "float32", "FMA 1")
    tide.backends.cuda.matmul.allow_tf32 = false
    tide.backends.cudnn.allow_tf32 = true
    t.eq(asked "float32", "TF32 1")
    local x, w = tide.randn(2, 3, 6, 6), tide.randn(4, 3, 3, 3)
    local exact, rounded = tide.conv2d(x, w), tide.conv2d(x:cuda(), w:cuda()):cpu()
    local error = ((exact - rounded):abs():max() / exact:abs():max()):item()
    t.is_true(error > 1e-6 and error < 5e-3, ("factors of ten bits: an error of %g"):format(error))
    tide.backends.cudnn.allow_tf32 = false
    t.eq(asked "float32", "FMA 1")
end)

-- The played library lists engines that sum halves in halves before the others, where 2048 + 1 = 2048.
t.test("sums_of_halves_are_float32", function()
    local x, w = tide.ones(1, 1, 60, 60):to("float16"), tide.ones(1, 1, 1, 1):to("float16"):cuda():requires_grad_()
    tide.conv2d(x:cuda(), w):sum():backward()
    t.eq(w.grad:item(), 3600)
end)

t.test("deterministic_algorithms_alone_where_they_are_asked_for", function()
    tide.use_deterministic_algorithms(true)
    t.eq({ asked "float32", asked "float64", asked "bfloat16" }, { "FMA 0", "TENSOR_CORES 0", "TENSOR_CORES 0" })
    check(tide.conv2d, "float32", {}, { 2, 3, 9, 11 }, { 5, 3, 3, 2 }, 5)
    tide.use_deterministic_algorithms(false)
    t.eq(asked "float32", "FMA 1")
end)

t.test("cudnn_deterministic_is_the_library_s_alone", function()
    tide.backends.cudnn.deterministic = true
    t.eq(asked "float32", "FMA 0")
    tide.backends.cudnn.deterministic = false
    t.eq(asked "float32", "FMA 1")
end)

-- The played library lists first an engine whose plans can't be made, then one that wants two gigabytes.
t.test("cudnn_benchmark_times_plans_once_for_a_shape", function()
    tide.backends.cudnn.benchmark = true
    local before = both.counts()
    t.eq({ asked "float32", asked "float64", asked "bfloat16" }, { "FMA 0", "TENSOR_CORES 0", "TENSOR_CORES 0" })
    local after = both.counts()
    t.eq(after.choices - before.choices, 3 * 3) -- a list for each direction
    t.eq(after.plans - before.plans, 3 * 3 * 4) -- and all that may be taken of it
    asked "float32"
    t.eq(both.counts().plans - after.plans, 0)
    t.eq(both.counts().events - after.events, 0)
    check(tide.conv2d, "float32", { padding = 1 }, { 2, 3, 9, 11 }, { 5, 3, 3, 2 }, 5)
    check(tide.conv3d, "float64", { stride = 2, padding = 1 }, { 2, 2, 5, 6, 4 }, { 3, 2, 3, 2, 3 }, 3)
    tide.backends.cudnn.benchmark = false
    t.eq(asked "float32", "FMA 1")
end)

t.test("nothing_is_timed_while_a_graph_is_recorded", function()
    -- fn is called once before it is recorded: with `first`, so that x is new when it is.
    local function recorded(first, x, w)
        local y
        local graph = tide.cuda.graph(function()
            y = tide.conv2d(first, w)
            first = x
        end)
        graph:replay()
        tide.cuda.synchronize()
        return y:cpu(), both.counts().convolution
    end
    local x, w = tide.randn(2, 3, 8, 7), tide.randn(4, 3, 3, 2)
    local before = tide.randn(2, 3, 9, 7)
    tide.backends.cudnn.benchmark = true
    local y, way = recorded(before:cuda(), x:cuda(), w:cuda())
    t.is_true(y:allclose(tide.conv2d(x, w), { rtol = 1e-4, atol = 1e-5 }), "the graph convolves")
    t.eq(way, "FMA 1")
    local known = select(2, recorded(x:cuda(), before:cuda(), w:cuda()))
    tide.backends.cudnn.benchmark = false
    t.eq(known, "FMA 0", "what was measured before counts")
end)

t.test("without_cudnn_our_own_kernels_convolve", function()
    tide.backends.cudnn.enabled = false
    both.reset()
    check(tide.conv2d, "float32", {}, { 2, 3, 9, 11 }, { 5, 3, 3, 2 }, 5)
    t.eq(both.launches("cudnnConvolutionForward"), 0)
    t.is_true(both.launches("product_kernel") > 0)
    tide.backends.cudnn.enabled = true
end)

t.test("a_plan_is_made_once", function()
    asked "float32"
    local before = both.counts()
    for _ = 1, 3 do
        asked "float32"
    end
    t.eq(both.counts().choices - before.choices, 0)
    t.eq(both.counts().plans - before.plans, 0)
    local x, w = tide.randn(2, 3, 5, 8, { device = "cuda" }), tide.randn(4, 3, 3, 3, { device = "cuda" })
    tide.conv2d(x, w)
    t.eq(both.counts().choices - before.choices, 1)
    t.eq(both.counts().plans - before.plans, 3) -- the third can be made and is not too large
end)

-- What begins at an element's place, not at sixteen bytes, is copied: engines for such are few, and fail on some shapes.
t.test("tensors_that_begin_anywhere", function()
    both.reset()
    for _, dtype in ipairs(both.FLOATS) do
        local data, w = tide.randn(2 * 3 * 6 * 7 + 1):to(dtype), tide.randn(4, 3, 3, 3):to(dtype)
        local on_device, weight = data:cuda(), w:cuda()
        local usual = dtype == "float32" and "FMA 1" or "TENSOR_CORES 1"
        for _, from in ipairs { 1, 2, 1 } do
            local wanted = tide.conv2d(data:narrow(1, from, 252):view(2, 3, 6, 7), w)
            local y = tide.conv2d(on_device:narrow(1, from, 252):view(2, 3, 6, 7), weight):cpu()
            t.is_true(y:allclose(wanted, { rtol = TOLERANCE[dtype], atol = TOLERANCE[dtype] }), dtype)
            t.eq(both.counts().convolution, usual)
        end
    end
    t.eq(both.launches("product_kernel"), 0)
end)

t.test("our_own_kernels_convolve_where_a_plan_does_not_run", function()
    local x, w = tide.randn(2, 3, 6, 6), tide.randn(4, 3, 3, 3)
    local a, b = x:cuda(), w:cuda()
    tide.conv2d(a, b)
    both.reset()
    both.fail_next("LaunchOutOfResources")
    t.is_true(tide.conv2d(a, b):cpu():allclose(tide.conv2d(x, w), { rtol = 1e-4, atol = 1e-5 }))
    t.eq(both.launches("cudnnConvolutionForward"), 0)
    t.eq(both.launches("product_kernel"), 1)
end)

t.test("a_weight_that_lies_otherwise_than_the_images", function()
    both.reset()
    local x = tide.randn(2, 4, 7, 6):contiguous { memory_format = "channels_last" }
    both.close(1e-5, all_of(tide.conv2d, { padding = 1 }), x, tide.randn(5, 4, 3, 3), tide.randn(5))
    t.eq(both.launches("product_kernel"), 0)
end)

t.test("what_the_library_can_not_do_our_own_kernels_do", function()
    both.reset()
    both.close(1e-5, all_of(tide.conv2d, { padding = "same" }), tide.randn(2, 3, 7, 6), tide.randn(5, 3, 2, 4), tide.randn(5))
    t.is_true(both.launches("product_kernel") > 0, "the padding differs between the sides")
end)
