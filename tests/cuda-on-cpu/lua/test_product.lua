-- test_product.lua: matrix products on the device against the CPU.
local t = require "harness"
local both = require "both"
local c = require "compare"

if not both.there then
    t.skip("product", "no CUDA device")
    return
end

tide.manual_seed(4)

local TOLERANCE = { float16 = 2e-3, bfloat16 = 1.6e-2, float32 = 1e-5, float64 = 1e-12 }

local function matrices(dtype, ...)
    return TOLERANCE[dtype] and tide.randn(...):to(dtype) or both.elements(dtype, ...)
end

local function check(dtype, fn, ...)
    if TOLERANCE[dtype] then
        both.close(TOLERANCE[dtype], fn, ...)
    else
        both.same(fn, ...)
    end
end

local function matmul(a, b)
    return a:matmul(b)
end

local NUMBERS = { "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64" }

t.test("every_dtype_and_form", function()
    both.reset()
    for _, dtype in ipairs(NUMBERS) do
        for _, a in ipairs(both.forms(matrices(dtype, 20, 37))) do
            for _, b in ipairs(both.forms(matrices(dtype, 37, 25))) do
                check(dtype, matmul, a, b)
            end
        end
        check(dtype, matmul, matrices(dtype, 37), matrices(dtype, 37))
        check(dtype, matmul, matrices(dtype, 37), matrices(dtype, 37, 5))
        check(dtype, matmul, matrices(dtype, 5, 37), matrices(dtype, 37))
    end
    if both.launches("") then
        t.is_true(both.launches("product_kernel") > 0, "its kernel ran")
    end
end)

t.test("bytes_are_summed_up_in_int32", function()
    local function bytes(...) return tide.randint(-128, 128, { ... }):to "int8" end
    local function int_mm(a, b) return tide.int_mm(a, b) end
    for _, a in ipairs(both.forms(bytes(20, 37))) do
        for _, b in ipairs(both.forms(bytes(37, 25))) do
            both.same(int_mm, a, b)
        end
    end
    both.same(int_mm, bytes(3, 5000), bytes(5000, 5)) -- in parts
    both.same(int_mm, bytes(130, 40), bytes(40, 70))
    both.same(int_mm, bytes(3, 0), bytes(0, 5))
    both.same(function(a, b) -- a result with gaps
        local out = tide.zeros({ 5, 12 }, { dtype = tide.int32, device = a.device })
        tide.int_mm(a, b, { out = out[{ {}, { 2, 12, 2 } }] })
        return out
    end, bytes(5, 8), bytes(8, 6))
end)

t.test("limits_of_tiles", function()
    for _, n in ipairs { 1, 15, 16, 17, 63, 64, 65, 130 } do
        check("float32", matmul, tide.randn(n, 33), tide.randn(33, 65))
        check("float32", matmul, tide.randn(65, n), tide.randn(n, 33))
        check("float32", matmul, tide.randn(33, 65), tide.randn(65, n))
    end
end)

t.test("long_sums_are_cut_into_parts", function()
    for _, dtype in ipairs(NUMBERS) do
        for _, k in ipairs { 511, 512, 513, 5000 } do
            check(dtype, matmul, matrices(dtype, 3, k), matrices(dtype, k, 5))
        end
    end
    check("float32", matmul, tide.randn(2, 70000), tide.randn(70000, 2))
end)

t.test("batches", function()
    check("float32", matmul, tide.randn(3, 4, 5, 6), tide.randn(3, 4, 6, 7))
    check("float64", matmul, matrices("float64", 3, 1, 5, 6), matrices("float64", 4, 6, 7))
    check("float32", matmul, tide.randn(5, 6), tide.randn(9, 6, 2))
    check("float32", matmul, tide.randn(1, 5, 6):expand(4, 5, 6), tide.randn(4, 6, 7):transpose(2, 3):contiguous():transpose(2, 3))
    check("int32", matmul, matrices("int32", 40, 3, 4), matrices("int32", 40, 4, 5))
end)

t.test("biases", function()
    for _, dtype in ipairs(both.FLOATS) do
        check(dtype, function(x, w, b) return tide.nn.functional.linear(x, w, b) end, matrices(dtype, 7, 20),
            matrices(dtype, 9, 20), matrices(dtype, 9))
        check(dtype, function(b, x, w) return tide.addmm(b, x, w) end, matrices(dtype, 9), matrices(dtype, 7, 600),
            matrices(dtype, 600, 9))
    end
end)

t.test("nothing_and_what_is_no_number", function()
    check("float32", matmul, tide.zeros(0, 4), tide.zeros(4, 5))
    check("float32", matmul, tide.zeros(3, 0), tide.zeros(0, 5))
    check("float32", matmul, tide.zeros(0, 3, 4), tide.zeros(0, 4, 5))
    both.same(matmul, tide.tensor { { 0 / 0, 1 }, { 1 / 0, 2 } }, tide.tensor { { 0.0, 1 }, { 3, -1 } })
end)

t.test("gradients", function()
    check("float32", function(a, b)
        a, b = a:detach():requires_grad_(), b:detach():requires_grad_()
        a:matmul(b):mul(a:matmul(b)):sum():backward()
        return a.grad, b.grad
    end, tide.randn(2, 30, 20), tide.randn(2, 20, 10))
end)

t.test("what_is_given_is_written_without_a_copy", function()
    local calls = { { tide.matmul, { 7, 5 }, { 5, 4 }, { 7, 4 } }, { tide.matmul, { 5 }, { 5 }, {} }, { tide.matmul, { 7, 5 }, { 5 }, { 7 } },
        { tide.mm, { 7, 5 }, { 5, 4 }, { 7, 4 } }, { tide.bmm, { 2, 7, 5 }, { 2, 5, 4 }, { 2, 7, 4 } } }
    for _, call in ipairs(calls) do
        local a, b = tide.randn(call[2]), tide.randn(call[3])
        local x, y, out = a:to("cuda"), b:to("cuda"), tide.zeros(call[4], { device = "cuda" })
        both.reset()
        t.is_true(rawequal(call[1](x, y, { out = out }), out))
        if both.counts then
            t.eq(both.launches "td_dense" + both.launches "td_flat", 0, "copies")
        end
        c.agree(call[1](a, b), out, "out", 1e-5, 1e-5)
    end
    -- what shares memory with a factor, is of another shape or is recorded goes by way of a tensor of its own
    local a = tide.randn(4, 4)
    local x = a:to("cuda")
    tide.matmul(x, x, { out = x })
    c.agree(a:matmul(a), x, "out is a factor", 1e-5, 1e-5)
    local out = tide.zeros(0, { device = "cuda" })
    tide.matmul(x, x, { out = out })
    t.eq(out.shape, { 4, 4 })
end)
