-- test_products.lua: products large enough for ways of their own, against float64.
local t = require "harness"

-- m, n, k: below and above the sizes from which the right side is packed, odd ones, ones that fill no block
local sizes = {
    { 255, 64, 64 }, { 256, 64, 64 }, { 256, 63, 64 }, { 300, 65, 97 }, { 257, 130, 999 }, { 512, 200, 333 },
    { 256, 64, 1000 }, { 384, 1000, 65 },
}

local function close(got, want, what)
    local far = ((got:double() - want):abs() - want:abs() / 256):max():item()
    t.is_true(far <= 1e-5 * want:abs():max():item(), ("%s is off by %g"):format(what, far))
end

-- The same matrix, or batch of them, in several ways to lie.
local lies = {
    rows = function(x) return x end,
    columns = function(x) return x:t():contiguous():t() end,
    inner = function(x)
        local around = tide.zeros(x.shape[1] + 3, x.shape[2] + 5, { dtype = x.dtype })
        local inside = around[{ { 2, x.shape[1] + 1 }, { 4, x.shape[2] + 3 } }]
        inside:copy_(x)
        return inside
    end,
}

for _, s in ipairs(sizes) do
    local m, n, k = table.unpack(s)
    t.test(("products_of_bfloat16_are_rounded_once.%dx%dx%d"):format(m, n, k), function()
        tide.manual_seed(m + n + k)
        local a, b = tide.randn(m, k):bfloat16(), tide.randn(k, n):bfloat16()
        local bias = tide.randn(n):bfloat16()
        local want = a:double():matmul(b:double())
        for name, lie in pairs(lies) do
            close(lie(a):matmul(b), want, "left by " .. name)
            close(a:matmul(lie(b)), want, "right by " .. name)
            close(tide.linear(a, lie(b:t()), bias), want + bias:double(), "linear, weight by " .. name)
        end
    end)
end

t.test("images_of_a_batch_are_convolved_each_by_itself_on_any_number_of_threads", function()
    local before = tide.get_num_threads()
    for _, dtype in ipairs { "float64", "int64" } do
        local x = tide.randint(-9, 10, { 7, 6, 20, 20 }):to(tide[dtype])
        local w = tide.randint(-9, 10, { 16, 3, 3, 3 }):to(tide[dtype])
        for threads = 1, 3 do
            tide.set_num_threads(threads)
            local y = tide.conv2d(x, w, nil, 1, 0, 1, 2)
            local up = tide.conv_transpose2d(y, w, nil, 1, 0, 0, 2)
            for k = 1, 7 do
                t.is_true(tide.equal(y[k], tide.conv2d(x[k], w, nil, 1, 0, 1, 2)), dtype .. ", image " .. k)
                t.is_true(tide.equal(up[k], tide.conv_transpose2d(y[k], w, nil, 1, 0, 0, 2)), dtype .. ", back, image " .. k)
            end
        end
    end
    tide.set_num_threads(before)
end)

-- Sizes for each way that float32 goes, on processors with AVX-512 and without: of few multiplications, of many, and
-- with lines that lie a multiple of a kilobyte apart.
local floats = {
    { 3, 3, 3 }, { 16, 17, 16 }, { 100, 3, 4 }, { 31, 32, 32 }, { 32, 32, 33 }, { 5, 20, 400 }, { 90, 80, 70 }, { 512, 40, 64 }, { 256, 30, 192 }, { 40, 512, 100 },
    { 130, 129, 512 }, { 600, 50, 16 },
}

for _, s in ipairs(floats) do
    local m, n, k = table.unpack(s)
    t.test(("products_of_float32_are_those_of_float64.%dx%dx%d"):format(m, n, k), function()
        tide.manual_seed(m + n + k)
        local a, b, bias = tide.randn(m, k), tide.randn(k, n), tide.randn(n)
        local want = a:double():matmul(b:double())
        local function near(got, wanted, what)
            local far = (got:double() - wanted):abs():max():item()
            t.is_true(far <= 2e-6 * math.sqrt(k) * 4, ("%s is off by %g"):format(what, far))
        end
        for left, lie_left in pairs(lies) do
            for right, lie_right in pairs(lies) do
                local what = left .. " by " .. right
                near(lie_left(a):matmul(lie_right(b)), want, what)
                near(tide.linear(lie_left(a), lie_right(b:t()), bias), want + bias:double(), "linear, " .. what)
                local out = tide.full({ m, n + 2 }, 7.0)
                tide.mm(lie_left(a), lie_right(b), { out = out[{ {}, { 2, n + 1 } }] })
                near(out[{ {}, { 2, n + 1 } }], want, "into columns, " .. what)
                t.is_true(out[{ {}, { 1, n + 2, n + 1 } }]:eq(7):all():item(), "a product wrote beside its result")
            end
        end
        local c = tide.randn(3, k, n)
        local batch, rows = a:expand(3, m, k), tide.stack({ a, 2 * a, -a })
        for i, x in ipairs { batch, rows, rows:transpose(2, 3):contiguous():transpose(2, 3) } do
            local y = c:transpose(2, 3):contiguous():transpose(2, 3)
            near(x:matmul(c), x:double():matmul(c:double()), "batch " .. i)
            near(x:matmul(y), x:double():matmul(c:double()), "batch of transposed " .. i)
        end
    end)
end
