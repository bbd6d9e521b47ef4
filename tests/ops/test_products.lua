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

-- The same matrix in several ways to lie.
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
