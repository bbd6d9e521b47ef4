-- test_blas.lua: products that cuBLASLt does: results, what is asked of it, and that its choices are kept.
-- Runs on the played device with the library's stand-in, and on a real one, where nothing can be counted.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("products by cuBLASLt", "no CUDA device")
    return
end

if both.counts and not os.getenv("TIDE_CUDA_MODULE"):find("libraries", 1, true) then
    t.skip("products by cuBLASLt", "this played device has none")
    return
end

tide.manual_seed(11)

local TOLERANCE = { float16 = 2e-3, bfloat16 = 1.6e-2, float32 = 1e-5, float64 = 1e-12 }
local NAME = "cublasLtMatmul"

local function matmul(a, b) return a:matmul(b) end

local function randn(dtype, ...) return tide.randn(...):to(dtype) end

-- fn's result is the CPU's, and the library made it, where that can be counted.
local function by_library(what, dtype, fn, ...)
    both.reset()
    both.close(TOLERANCE[dtype], fn, ...)
    local n = both.launches(NAME)
    t.is_true(not n or n > 0, what .. ": the library was not asked")
end

t.test("every_float_dtype_and_layout_goes_to_the_library", function()
    for _, dtype in ipairs(both.FLOATS) do
        for i, a in ipairs(both.forms(randn(dtype, 20, 37))) do
            for k, b in ipairs(both.forms(randn(dtype, 37, 25))) do
                by_library(("%s, forms %d and %d"):format(dtype, i, k), dtype, matmul, a, b)
            end
        end
        by_library(dtype .. ", one row", dtype, matmul, randn(dtype, 1, 37), randn(dtype, 37, 25))
        by_library(dtype .. ", one column", dtype, matmul, randn(dtype, 20, 37), randn(dtype, 37, 1))
        by_library(dtype .. ", one number", dtype, matmul, randn(dtype, 1, 37), randn(dtype, 37, 1))
    end
end)

t.test("batches_lie_as_they_are_given", function()
    for _, dtype in ipairs(both.FLOATS) do
        by_library("plain", dtype, matmul, randn(dtype, 3, 20, 30), randn(dtype, 3, 30, 10))
        by_library("turned", dtype, matmul, randn(dtype, 3, 30, 20):transpose(2, 3), randn(dtype, 3, 10, 30):transpose(2, 3))
        by_library("expanded", dtype, matmul, randn(dtype, 1, 20, 30):expand(4, 20, 30), randn(dtype, 4, 30, 10))
        by_library("every second", dtype, matmul, randn(dtype, 6, 20, 30)[{ { 1, 6, 2 } }], randn(dtype, 3, 30, 10))
    end
end)

t.test("biases_are_added_by_the_library", function()
    for _, dtype in ipairs(both.FLOATS) do
        by_library("linear", dtype, function(x, w, b) return tide.nn.functional.linear(x, w, b) end, randn(dtype, 7, 20),
            randn(dtype, 9, 20), randn(dtype, 9))
        by_library("addmm", dtype, function(b, x, w) return tide.addmm(b, x, w) end, randn(dtype, 9), randn(dtype, 7, 30),
            randn(dtype, 30, 9))
    end
end)

t.test("what_it_does_not_do_is_done_by_our_own_kernels", function()
    both.same(matmul, both.elements("int32", 5, 6), both.elements("int32", 6, 7))
    both.same(matmul, tide.zeros(3, 0), tide.zeros(0, 5))
    both.close(1e-5, matmul, randn("float32", 40, 60)[{ {}, { 1, 60, 2 } }], randn("float32", 30, 9)) -- no leading dim
end)

local function bytes(...) return tide.randint(-128, 128, { ... }):to "int8" end

-- The CPU's result of a times b's part, or of parts of both, made by the library or by a kernel of ours, where that can
-- be counted. What is sent to the device begins where a block does; parts are taken there.
local function bytes_by(library, what, fn, a, b)
    both.reset()
    both.same(fn, a, b)
    local asked, ours = both.launches(NAME), both.launches "product_kernel"
    if asked then
        t.eq({ asked, ours }, library and { 1, 0 } or { 0, 1 }, what)
    end
end

local function by_rows(a, b) return tide.int_mm(a, b) end
local function by_weight(a, b) return tide.int_mm(a, b:t()) end

-- Columns of a and of a weight.
local function columns(from, to)
    return function(a, b) return tide.int_mm(a[{ {}, from }], b[{ {}, to }]:t()) end
end

t.test("bytes_whose_terms_lie_side_by_side_in_fours_go_to_the_library", function()
    bytes_by(true, "a weight", by_weight, bytes(20, 36), bytes(24, 36))
    bytes_by(true, "one row", by_weight, bytes(1, 36), bytes(24, 36))
    bytes_by(true, "parts of rows", columns({ 5, 40 }, { 9, 44 }), bytes(21, 48), bytes(24, 44))
    bytes_by(true, "long sums", by_weight, bytes(2, 131068), bytes(4, 131068))
    if both.counts then
        t.eq(both.counts().compute, "32I")
    end
end)

t.test("bytes_that_it_does_not_take_go_to_our_own_kernel", function()
    bytes_by(false, "columns that are no fours", by_weight, bytes(20, 36), bytes(25, 36))
    bytes_by(false, "terms that are no fours", by_weight, bytes(20, 37), bytes(24, 37))
    bytes_by(false, "rows of 38 bytes", columns({ 1, 36 }, {}), bytes(20, 38), bytes(24, 36))
    bytes_by(false, "columns of 38 bytes", columns({}, { 1, 36 }), bytes(20, 36), bytes(24, 38))
    bytes_by(false, "a place between fours", columns({ 2, 37 }, {}), bytes(20, 40), bytes(24, 36))
    bytes_by(false, "sums beyond an int32", by_weight, tide.full({ 2, 131072 }, -128, { dtype = tide.int8 }),
        tide.full({ 4, 131072 }, -128, { dtype = tide.int8 }))
    bytes_by(false, "a result that lies by columns", function(a, b)
        return tide.int_mm(a, b:t(), { out = tide.zeros({ 8, 8 }, { dtype = tide.int32, device = a.device }):t() })
    end, bytes(8, 8), bytes(8, 8))
    if both.counts then -- a chip's library may take more layouts than the one that all of them do
        bytes_by(false, "few rows of bytes", by_rows, bytes(20, 36), bytes(36, 24))
    end
end)

t.test("many_bytes_are_copied_so_that_the_library_takes_them", function()
    local a, b = bytes(256, 256), bytes(256, 256)
    local lefts, rights = both.forms(a), both.forms(b)
    for k = 1, #lefts do
        bytes_by(true, "form " .. k, by_rows, lefts[k], rights[#rights + 1 - k])
    end
    bytes_by(true, "a place between fours", columns({ 2, 257 }, {}), bytes(256, 260), b)
    bytes_by(true, "a row over again", function(x, y) return tide.int_mm(x:expand(256, 256), y) end, bytes(1, 256), b)
end)

t.test("gradients", function()
    both.close(1e-5, function(a, b)
        a, b = a:detach():requires_grad_(), b:detach():requires_grad_()
        a:matmul(b):mul(a:matmul(b)):sum():backward()
        return a.grad, b.grad
    end, tide.randn(2, 30, 20), tide.randn(2, 20, 10))
end)

-- ---- what only the played device tells ----

if not both.counts then
    t.skip("what the library is asked for", "only the played device counts")
    return
end

t.test("a_choice_is_made_once_for_a_shape", function()
    local a, b = tide.randn(11, 23):cuda(), tide.randn(23, 13):cuda()
    local before = both.counts().choices
    for _ = 1, 5 do
        a:matmul(b)
    end
    t.eq(both.counts().choices - before, 1, "one for the shape")
    a:matmul(tide.randn(13, 23):cuda():t())
    t.eq(both.counts().choices - before, 2, "another for another layout")
    a:matmul(b)
    t.eq(both.counts().choices - before, 2, "both are kept")
end)

t.test("what_the_library_says_of_bytes_is_kept", function()
    local function choices_of(a, b)
        local before = both.counts().choices
        for _ = 1, 3 do
            tide.int_mm(a, b)
        end
        return both.counts().choices - before
    end
    t.eq(choices_of(bytes(12, 28):cuda(), bytes(20, 28):cuda():t()), 1, "taken")
    t.eq(choices_of(bytes(12, 28):cuda(), bytes(28, 20):cuda()), 1, "refused")
    t.eq(choices_of(bytes(260, 256):cuda(), bytes(256, 256):cuda()), 2, "refused, and taken when it was copied")
end)

-- What a product of a dtype asks the library to compute in.
local function asked(dtype)
    local x = tide.randn(8, 8):to(dtype):cuda()
    x:matmul(x)
    return both.counts().compute
end

t.test("tf32_is_asked_for_where_it_is_allowed", function()
    local matmul_flags = tide.backends.cuda.matmul
    t.eq(matmul_flags.allow_tf32, false)
    t.eq({ asked "float32", asked "float64", asked "float16", asked "bfloat16" }, { "32F", "64F", "32F", "32F" })
    tide.backends.cudnn.allow_tf32 = true -- which is for convolutions
    t.eq(asked "float32", "32F")
    matmul_flags.allow_tf32 = true
    t.eq({ asked "float32", asked "float64", asked "float16", asked "bfloat16" },
        { "32F_FAST_TF32", "64F", "32F", "32F" })
    local a, b = tide.randn(30, 40), tide.randn(40, 20)
    local exact, rounded = a:matmul(b), a:cuda():matmul(b:cuda()):cpu()
    local error = ((exact - rounded):abs():max() / exact:abs():max()):item()
    t.is_true(error > 1e-6 and error < 5e-3, ("factors of ten bits: an error of %g"):format(error))
    matmul_flags.allow_tf32 = false
    t.eq(asked "float32", "32F")
    both.close(1e-5, matmul, a, b)
end)

t.test("a_switch_of_tf32_chooses_anew_once", function()
    local x = tide.randn(9, 9):cuda()
    x:matmul(x)
    local before = both.counts().choices
    for _ = 1, 3 do
        tide.backends.cuda.matmul.allow_tf32 = true
        x:matmul(x)
        tide.backends.cuda.matmul.allow_tf32 = false
        x:matmul(x)
    end
    t.eq(both.counts().choices - before, 1)
end)
