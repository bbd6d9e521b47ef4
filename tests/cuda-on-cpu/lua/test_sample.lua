-- test_sample.lua: Poisson numbers and weighted choices on the device: the CPU's from the same seed.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("sample", "no CUDA device")
    return
end

-- What fn draws from x on each.
local function same(what, fn, x, seed)
    local function draw(x)
        tide.manual_seed(seed or 11)
        tide.rand(5)
        return fn(x):cpu()
    end
    local here, there = draw(x), draw(x:to("cuda"))
    t.eq(there.dtype, here.dtype)
    t.is_true(tide.allclose(there:double(), here:double(), { rtol = 0, atol = 0, equal_nan = true }), what)
end

t.test("poisson_numbers", function()
    both.reset()
    tide.manual_seed(1)
    for _, dtype in ipairs(both.FLOATS) do
        for _, most in ipairs { 0.5, 9, 11, 40, 1e4 } do
            for _, x in ipairs(both.forms((tide.rand(33, 70) * most):to(dtype))) do
                same(dtype .. " up to " .. most, tide.poisson, x)
            end
        end
    end
    same("edges", tide.poisson, tide.tensor { 0, 1e-300, 9.999, 10, 1e8, 1e30, 1 / 0 })
    same("many", tide.poisson, tide.rand(70000) * 30)
    same("none", tide.poisson, tide.zeros(0))
    same("one", tide.poisson, tide.tensor(3.5))
    if both.launches("") then
        t.is_true(both.launches("td_poisson") > 0, "its kernel ran")
    end
end)

t.test("choices_with_places_twice", function()
    both.reset()
    tide.manual_seed(2)
    for _, dtype in ipairs(both.FLOATS) do
        for _, n in ipairs { 1, 2, 33, 1023, 1025, 5000 } do
            local x = (tide.rand(3, n) * tide.rand(3, n):gt(0.3) + 1e-3):to(dtype)
            local fn = function(x) return x:multinomial(70, { replacement = true }) end
            same(dtype .. " of " .. n, fn, x)
            same("turned", fn, x:t():contiguous():t())
            same("one row", fn, x:select(1, 1))
        end
    end
    local zeros_at_ends = tide.cat { tide.zeros(40), tide.ones(3), tide.zeros(2000) }
    same("zeros", function(x) return x:multinomial(5000, { replacement = true }) end, zeros_at_ends)
    same("one place", function(x) return x:multinomial(9, { replacement = true }) end, tide.tensor { 0.0, 2, 0 })
    if both.launches("") then
        t.is_true(both.launches("td_choose") > 0, "its kernel ran")
    end
end)

t.test("choices_without_a_place_twice", function()
    tide.manual_seed(3)
    for _, n in ipairs { 1, 2, 33, 1025, 2049, 5000 } do
        local x = tide.rand(3, n) + 1e-3
        for _, draws in ipairs { 1, (n + 1) // 2, n } do
            same(draws .. " of " .. n, function(x) return x:multinomial(draws) end, x)
        end
    end
    same("zeros last", function(x) return x:multinomial(4) end, tide.tensor { 0.0, 1, 0, 2 })
end)

t.test("refusals_are_the_cpus", function()
    for _, weights in ipairs { { 1, -1 }, { 1, 0 / 0 }, { 1, 1 / 0 }, { 0, 0 } } do
        for _, replacement in ipairs { true, false } do
            local function refusal(device)
                local fine, what = pcall(function()
                    local x = tide.tensor({ { 1.0, 2.0 }, weights }, { dtype = "float32", device = device })
                    return x:multinomial(1, { replacement = replacement }):cpu()
                end)
                t.eq(fine, false)
                return tostring(what):match("weights.*") or tostring(what)
            end
            t.eq(refusal("cuda"):match("^[^\n]*"), refusal("cpu"):match("^[^\n]*"))
        end
    end
    local fine = pcall(function() return tide.tensor({ 1.0, 2 }, { device = "cuda" }):multinomial(1):cpu() end)
    t.eq(fine, true, "nothing is left of the refusals")
end)
