-- test_make.lua: progressions, bands and draws on CUDA, which are the CPU's to the last bit.
local t = require "harness"
local c = require "compare"

-- What fn(device) makes on each device, with the same seed.
local function alike(what, fn, near)
    tide.manual_seed(42)
    local cpu = fn("cpu")
    tide.manual_seed(42)
    local cuda = fn("cuda")
    if near then
        c.same(cpu, cuda, what)
    else
        t.eq(tide.equal(cpu, cuda:cpu()), true, what .. ": " .. tostring(cpu) .. "\nCUDA: " .. tostring(cuda:cpu()))
    end
end

c.test("progressions", function()
    for _, dtype in ipairs(c.all) do
        if tostring(dtype) ~= tostring(tide.bool) then
            alike(tostring(dtype), function(device) return tide.arange(3, 100, 7, { dtype = dtype, device = device }) end)
        end
    end
    for _, dtype in ipairs(c.floats) do
        for _, n in ipairs { 0, 1, 2, 255, 257, 70000 } do
            alike(tostring(dtype) .. " " .. n, function(device)
                return tide.linspace(-1, 3.3, n, { dtype = dtype, device = device })
            end)
        end
    end
end)

c.test("bands", function()
    for _, dtype in ipairs(c.all) do
        for k, x in ipairs(c.views(7, 33, dtype)) do
            for _, d in ipairs { -40, -3, 0, 2, 40 } do
                c.both(tostring(dtype) .. " " .. k .. " from " .. d, function(v) return v:tril(d), v:triu(d) end, x)
            end
        end
    end
    c.both("in place", function(v) return v:clone():tril_(), v:clone():t():triu_(1) end, c.numbers({ 40, 40 }, tide.float32))
    c.both("a batch", function(v) return v:triu(-1) end, c.numbers({ 3, 4, 5, 6 }, tide.float64):permute(2, 1, 4, 3))
    c.both("nothing", function(v) return v:tril() end, tide.zeros(0, 3))
end)

c.test("draws_of_floats", function()
    for _, dtype in ipairs(c.floats) do
        for _, n in ipairs { 1, 2, 3, 31, 257, 1025, 70001 } do
            local what = tostring(dtype) .. " " .. n
            alike("rand " .. what, function(device) return tide.rand(n, { dtype = dtype, device = device }) end)
            alike("randn " .. what, function(device) return tide.randn(n, { dtype = dtype, device = device }) end)
            alike("uniform " .. what, function(device)
                return tide.zeros(n, { dtype = dtype, device = device }):uniform_(-3, 5)
            end)
            alike("normal " .. what, function(device)
                return tide.zeros(n, { dtype = dtype, device = device }):normal_(2, 3)
            end)
        end
        for _, name in ipairs { "exponential_", "cauchy_", "log_normal_" } do
            alike(name .. tostring(dtype), function(device)
                return tide.zeros(777, { dtype = dtype, device = device })[name](tide.zeros(777, { dtype = dtype, device = device }))
            end)
        end
    end
end)

c.test("draws_of_any_dtype", function()
    for _, dtype in ipairs(c.all) do
        alike("bernoulli " .. tostring(dtype), function(device)
            return tide.zeros(999, { dtype = dtype, device = device }):bernoulli_(0.3)
        end)
        if tostring(dtype) ~= tostring(tide.bool) then
            alike("randint " .. tostring(dtype), function(device)
                return tide.randint(0, 100, { 1001 }, { dtype = dtype, device = device })
            end)
            alike("geometric " .. tostring(dtype), function(device)
                return tide.zeros(999, { dtype = dtype, device = device }):geometric_(0.3)
            end)
        end
    end
    alike("randint of many", function(device) return tide.randint(-2 ^ 40 // 1 | 0, 2 ^ 41 // 1 | 0, { 1001 }, { device = device }) end)
end)

c.test("draws_into_views", function()
    alike("columns", function(device) return tide.zeros(33, 7, { device = device }):t():uniform_() end)
    alike("every other", function(device)
        local x = tide.zeros(101, { device = device, dtype = tide.float64 })
        x:as_strided({ 50 }, { 2 }, 1):normal_()
        return x
    end)
end)
