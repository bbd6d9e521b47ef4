-- compare.lua: runs the same work on the CPU and on CUDA and compares what comes out.
local t = require "harness"

local c = {}
tide.backends.cudnn.allow_tf32 = false -- true at the start: ten bits of mantissa are too few to compare

c.floats = { tide.float16, tide.bfloat16, tide.float32, tide.float64 }
c.integers = { tide.uint8, tide.int8, tide.int16, tide.int32, tide.int64 }
c.all = { tide.bool, table.unpack(c.integers) }
for _, dtype in ipairs(c.floats) do
    c.all[#c.all + 1] = dtype
end

-- How far apart results may lie, of their size and of the largest of them.
local near = {
    [tostring(tide.float64)] = 1e-12,
    [tostring(tide.float32)] = 2e-6,
    [tostring(tide.float16)] = 2e-3,
    [tostring(tide.bfloat16)] = 1.6e-2,
}

function c.there()
    return (pcall(tide.zeros, 1, { device = "cuda" }))
end

function c.test(name, fn)
    if c.there() then
        t.test(name, fn)
    end
end

-- The largest finite number of a tensor, without its sign; 0 where there is none.
function c.largest(x)
    local numbers = x:double()
    return x:numel() > 0 and numbers:abs():where(numbers:isfinite(), 0):max():item() or 0
end

-- Two tensors, the second of CUDA's: of one dtype and shape, and as close as that; NaN is NaN.
function c.agree(cpu, cuda, what, rtol, atol)
    t.eq(cuda.device, "cuda:0", what .. ": device of the result")
    t.eq(cuda.dtype, cpu.dtype, what)
    t.eq(cuda.shape, cpu.shape, what)
    local back = cuda:cpu()
    local same = tide.equal(back, cpu) or near[tostring(cpu.dtype)]
        and tide.allclose(back:double(), cpu:double(), { rtol = rtol, atol = atol, equal_nan = true })
    if not same then
        error(("%s: the device's result differs:\n%s\n%s"):format(what, tostring(cpu), tostring(back)), 3)
    end
end

-- Equal, or for floats equal within the dtype's rounding.
function c.same(cpu, cuda, what)
    local tol = near[tostring(cpu.dtype)] or 0
    c.agree(cpu, cuda, what, tol, tol * math.max(1, c.largest(cpu)))
end

-- What fn makes of arguments on the CPU, and of what `send` makes of the tensors among them.
function c.run(send, fn, ...)
    local here, there = table.pack(...), {}
    for k = 1, here.n do
        there[k] = send(here[k])
        if tide.is_tensor(here[k]) and not here[k].requires_grad then
            here[k] = here[k]:clone() -- fn may write it
        end
    end
    local want = table.pack(fn(table.unpack(here, 1, here.n)))
    local got = table.pack(fn(table.unpack(there, 1, here.n)))
    t.eq(got.n, want.n)
    return want, got
end

-- What fn makes of tensors on the CPU and of their copies on CUDA.
function c.both(what, fn, ...)
    local want, got = c.run(c.lay_as, fn, ...)
    for k = 1, want.n do
        c.same(want[k], got[k], what .. ", result " .. k)
    end
end

-- A copy on CUDA that lies as x does: dims swapped, sliced and expanded ones too.
function c.lay_as(x)
    if not tide.is_tensor(x) then
        return x
    end
    local strides, reach = x:stride(), 0
    strides = type(strides) == "table" and strides or { strides }
    if x:numel() == 0 then
        return x:to("cuda")
    end
    for d = 1, #x.shape do
        reach = reach + (x.shape[d] - 1) * strides[d]
    end
    local offset = x:storage_offset()
    local flat = x:as_strided({ reach + 1 }, { 1 }, offset):to("cuda")
    local padded = tide.cat({ tide.zeros(3, { dtype = x.dtype, device = "cuda" }), flat })
    return padded:as_strided(x.shape, strides, padded:storage_offset() + 3)
end

-- Numbers of a dtype in a shape: a fixed sequence, floats with some that are special if asked for.
function c.numbers(shape, dtype, special)
    local n = 1
    for _, size in ipairs(shape) do
        n = n * size
    end
    local x = tide.arange(n, { dtype = tide.float64 })
    x = ((x * 37 + 11) % 101 - 50) / 8
    if tostring(dtype) == tostring(tide.bool) then
        x = x:gt(0)
    elseif tostring(dtype) == tostring(tide.uint8) then
        x = x:abs()
    end
    x = x:to(dtype)
    if special and n > 6 and near[tostring(dtype)] then
        x[2], x[3], x[5] = 0 / 0, 1 / 0, -0.0
    end
    return x:reshape(shape)
end

-- Views of the same numbers: row-major, dims swapped, sliced from an odd place on, expanded.
function c.views(rows, columns, dtype, special)
    return {
        c.numbers({ rows, columns }, dtype, special),
        c.numbers({ columns, rows }, dtype, special):t(),
        c.numbers({ rows + 1, columns + 2 }, dtype, special):narrow(1, 2, rows):narrow(2, 2, columns),
        c.numbers({ rows, 1 }, dtype, special):expand(rows, columns),
    }
end

return c
