-- test_scan.lua: running sums and their like on CUDA, compared with the CPU's.
local t = require "harness"
local c = require "compare"

c.test("kinds_dtypes_and_layouts", function()
    for _, dtype in ipairs(c.all) do
        for k, x in ipairs(c.views(6, 37, dtype, true)) do
            for dim = 1, 2 do
                local what = tostring(dtype) .. " " .. k .. " along " .. dim
                c.both(what, function(v) return v:cumsum(dim) end, x)
                if tostring(dtype) ~= tostring(tide.bool) then
                    c.both(what, function(v) return v:cummax(dim) end, x)
                    c.both(what, function(v) return v:cummin(dim) end, x)
                end
                if dtype.is_floating_point ~= false and (tostring(dtype)):find("float") then
                    c.both(what, function(v) return v:logcumsumexp(dim) end, x)
                end
            end
        end
        c.both("prod of " .. tostring(dtype), function(v) return v:cumprod(1), v:cumprod(2) end, c.numbers({ 5, 3 }, dtype))
    end
end)

c.test("long_lines", function()
    for _, n in ipairs { 1, 31, 32, 33, 255, 257, 1023, 1025, 16384, 70000 } do
        local x = c.numbers({ n }, tide.float64)
        c.both("of " .. n, function(v) return v:cumsum(1), v:logcumsumexp(1), (v:sign() + 0.5):cumprod(1) * 0 end,
            x:narrow(1, 1, math.min(n, 1025)))
        c.both("integers of " .. n, function(v) return v:cumsum(1), v:cumprod(1) end, c.numbers({ n }, tide.int64))
        c.both("places in " .. n, function(v) return v:cummax(1) end, x)
        c.both("columns of " .. n, function(v) return v:cumsum(1) end, c.numbers({ n, 2 }, tide.int32))
    end
    c.both("sums of 70000", function(v) return v:abs():cumsum(1), v:abs():logcumsumexp(1) end,
        c.numbers({ 70000 }, tide.float64))
    c.both("many lines", function(v) return v:cumsum(1), v:cummin(1) end, c.numbers({ 40, 9000 }, tide.int32))
end)

c.test("recurrences", function()
    c.both("gradient of cumprod", function(v)
        local leaf = v:detach():requires_grad_()
        leaf:cumprod(1):sum():backward()
        return leaf.grad
    end, c.numbers({ 40, 3 }, tide.float64) / 4)
end)

c.test("odd_shapes", function()
    c.both("0-dim", function(v) return v:cumsum(1), v:cummax(1) end, tide.tensor(2.5))
    c.both("nothing", function(v) return v:cumsum(1), v:cumsum(2) end, tide.zeros(0, 3))
    c.both("to another dtype", function(v) return v:cumsum(1, { dtype = tide.float64 }), v:cumsum(1, { dtype = tide.int32 }) end,
        c.numbers({ 300 }, tide.float32))
    c.both("middle", function(v) return v:cumsum(2) end, c.numbers({ 3, 50, 4 }, tide.int64))
end)
