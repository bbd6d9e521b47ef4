-- test_index.lua: reading and writing at indices on the device against the CPU.
local t = require "harness"
local both = require "both"

if not both.there then
    t.skip("index", "no CUDA device")
    return
end

tide.manual_seed(1)

local COUNTS = { 1, 31, 32, 33, 255, 256, 257, 1023, 1025, 5000 }

local function places(n, size)
    return tide.randint(1, size + 1, { n })
end

t.test("rows_of_every_dtype_and_form_are_read", function()
    both.reset()
    for _, dtype in ipairs(both.ALL) do
        for _, x in ipairs(both.forms(both.elements(dtype, 7, 5, 16))) do
            for d = 1, 3 do
                both.same(function(x, i) return x:index_select(d, i) end, x, places(40, x:size(d)))
            end
        end
    end
    if both.launches("") then
        t.is_true(both.launches("index_read") > 0, "its kernel ran")
    end
end)

t.test("several_indices_and_masks", function()
    local x, m = both.elements("float32", 6, 4, 5, 3), tide.rand(6, 4):gt(0.4)
    for _, y in ipairs(both.forms(x)) do
        both.same(function(x, i, j) return x[{ i, j }] end, y, places(9, 6), places(9, 4))
        both.same(function(x, i, j) return x[{ {}, i, {}, j }] end, y, places(9, 4), places(9, 3))
        both.same(function(x, i, j) return x[{ i:reshape(3, 1), {}, j }] end, y, places(3, 6), places(5, 5))
        both.same(function(x, m) return x[m] end, y, m)
    end
    both.same(function(x, i) return x[i] end, tide.rand(5), -places(7, 5))
    both.same(function(x, i) return x[i] end, tide.rand(5), tide.tensor(3))
end)

t.test("reading_crosses_the_limits_of_blocks", function()
    local x = tide.rand(300, 4)
    for _, n in ipairs(COUNTS) do
        both.same(function(x, i) return x[i] end, x, places(n, 300))
    end
    both.same(function(x, i) return x[i] end, tide.rand(9), places(70000, 9))
end)

t.test("nothing_is_read_and_nothing_written", function()
    both.same(function(x, i) return x[i] end, tide.rand(5, 3), places(0, 5))
    both.same(function(x, i) return x[i] end, tide.rand(5, 0), places(4, 5))
    both.same(function(x, i, v) return x:index_put({ i }, v) end, tide.rand(5, 3), places(0, 5), tide.rand(0, 3))
    both.same(function(x, i) return x:gather(1, i) end, tide.rand(5, 3), tide.zeros(0, 3):to("int64"))
end)

t.test("the_last_of_several_values_is_put", function()
    for _, dtype in ipairs(both.ALL) do
        for _, x in ipairs(both.forms(both.elements(dtype, 7, 5))) do
            for _, n in ipairs { 3, 40, 300 } do
                both.same(function(x, i, v) return x:index_copy_(1, i, v) end, x, places(n, 7),
                    both.elements(dtype, n, 5))
                both.same(function(x, i, j, v) return x:index_put_({ i, j }, v) end, x, places(n, 7), places(n, 5),
                    both.elements(dtype, n))
            end
        end
    end
end)

t.test("values_are_added_in_their_order", function()
    for _, dtype in ipairs(both.ALL) do
        for _, n in ipairs { 3, 40, 5000 } do
            local x, v = both.elements(dtype, 9, 4), both.elements(dtype, n, 4)
            if dtype:find("float", 1, true) then
                v = (v:to("float64") * 0.37):to(dtype) -- what is rounded differs with the order
            end
            for _, y in ipairs(both.forms(x)) do
                both.same(function(x, i, v) return x:index_put_({ i }, v, true) end, y, places(n, 9), v)
            end
        end
    end
end)

t.test("adding_crosses_the_limits_of_tiles", function()
    for _, n in ipairs { 1, 255, 257, 4095, 4096, 4097, 70000 } do
        for _, size in ipairs(n < 5000 and { 1, 2, 255, 257 } or { 70000 }) do
            both.same(function(x, i, v) return x:index_add(1, i, v) end, tide.rand(size), places(n, size), tide.randn(n))
        end
    end
    both.same(function(x, i, v) return x:index_add(2, i, v) end, tide.rand(200, 6, 100), places(50, 6),
        tide.randn(200, 50, 100))
end)

t.test("gathered_along_every_dim", function()
    for _, dtype in ipairs(both.ALL) do
        for _, x in ipairs(both.forms(both.elements(dtype, 6, 5, 4))) do
            for d = 1, 3 do
                local i = tide.randint(1, x:size(d) + 1, { 4, 5, 3 })
                if d == 2 then
                    i = tide.randint(1, 6, { 4, 9, 3 })
                end
                for _, form in ipairs(both.forms(i)) do
                    both.same(function(x, i) return x:gather(d, i) end, x, form)
                end
            end
        end
    end
    both.same(function(x, i) return x:gather(1, i) end, tide.tensor(2.5), tide.tensor(1))
    both.same(function(x, i) return x:gather(1, i) end, tide.rand(9), places(70000, 9))
end)

local function scatter(how, x, d, i, v)
    if how == "put" then
        return x:scatter_(d, i, v)
    elseif how == "add" then
        return x:scatter_add_(d, i, v)
    elseif how == "multiply" then
        return x:scatter_(d, i, v, { reduce = "multiply" })
    end
    return x:scatter_reduce_(d, i, v, how)
end

t.test("scattered_in_every_way", function()
    for _, dtype in ipairs(both.ALL) do
        for _, how in ipairs { "put", "add", "multiply", "amax", "amin" } do
            for _, n in ipairs { 5, 40 } do
                local i, v = tide.randint(1, 4, { 6, n }), both.elements(dtype, 6, n)
                for _, x in ipairs(both.forms(both.elements(dtype, 6, 3))) do
                    both.same(function(x, i, v) return scatter(how, x, 2, i, v) end, x, i, v)
                end
                local turned = tide.randint(1, 4, { n, 3 })
                both.same(function(x, i, v) return scatter(how, x, 1, i, v) end, both.elements(dtype, 3, 3), turned,
                    both.forms(both.elements(dtype, n, 3))[2])
            end
        end
    end
    both.same(function(x, i, v) return x:scatter_add_(1, i, v) end, tide.tensor(2.5), tide.tensor(1), tide.tensor(3.5))
end)

t.test("scattering_long_and_many_lines", function()
    for _, how in ipairs { "put", "add", "amax" } do
        both.same(function(x, i, v) return scatter(how, x, 1, i, v) end, tide.rand(100), places(20000, 100),
            tide.rand(20000) + 0.5)
        both.same(function(x, i, v) return scatter(how, x, 1, i, v) end, tide.rand(9, 17000),
            tide.randint(1, 10, { 20, 17000 }), tide.rand(20, 17000))
    end
end)

t.test("nan_and_infinities_pass", function()
    local nan, inf = 0 / 0, 1 / 0
    local x, v = tide.tensor { 1, nan, -inf, -0.0 }, tide.tensor { nan, 2, inf, 0, -inf, nan }
    local i = tide.tensor { 1, 2, 3, 4, 3, 4 }
    for _, how in ipairs { "put", "add", "multiply", "amax", "amin" } do
        both.same(function(x, i, v) return scatter(how, x, 1, i, v) end, x, i, v)
        both.same(function(x, i, v) return 1 / scatter(how, x, 1, i, v) end, x, i, v)
    end
    both.same(function(x, i) return 1 / x[i] end, x, i:clamp(1, 4))
end)

t.test("what_is_seen_several_times_is_added_up", function()
    for _, dtype in ipairs(both.FLOATS) do
        both.same(function(g) return tide.col2im(g, { 6, 7 }, 3, { padding = 1 }) end, both.elements(dtype, 2, 18, 42))
        both.same(function(x)
            x:requires_grad_()
            x:unfold(1, 5, 2):mul(x:unfold(1, 5, 2)):sum():backward()
            return x.grad
        end, both.elements(dtype, 900))
        both.same(function(x)
            x:requires_grad_()
            local y = x:as_strided({ 40, 30, 2 }, { 3, 1, 0 })
            y:mul(y):sum():backward()
            return x.grad
        end, both.elements(dtype, 200))
        both.same(function(x)
            x:requires_grad_()
            x:diagonal():mul(3):sum():backward()
            return x.grad
        end, both.elements(dtype, 40, 50))
    end
end)

t.test("an_index_that_leads_nowhere_is_refused", function()
    local function refused(want, fn)
        local ok, here = pcall(fn, "cpu")
        t.is_false(ok)
        t.error_has(function() fn("cuda"):to("cpu") end, want)
        t.is_true(tostring(here):find(want, 1, true) ~= nil, tostring(here))
    end
    local function on(device, ...)
        return tide.tensor({ ... }, { device = device })
    end
    refused("index 7 is out of range for dim 1 of size 5", function(d)
        return tide.zeros(5, 2, { device = d })[on(d, 1, 7)]
    end)
    refused("index -4 is out of range for dim 2 of size 3", function(d)
        return tide.zeros(5, 3, { device = d })[{ {}, on(d, 1, -4) }]
    end)
    refused("index 9 is out of range for dim 2 of size 3", function(d)
        return tide.zeros(5, 3, { device = d }):gather(2, on(d, 1, 9):reshape(1, 2))
    end)
    for _, n in ipairs { 4, 50 } do
        refused("index 9 is out of range for dim 1 of size 5", function(d)
            local i = tide.ones(n, { dtype = tide.int64, device = d })
            i[n] = 9
            return tide.zeros(5, { device = d }):index_add(1, i, tide.ones(n, { device = d }))
        end)
        refused("index 9 is out of range for dim 1 of size 5", function(d)
            local i = tide.ones(n, { dtype = tide.int64, device = d })
            i[n] = 9
            return tide.zeros(5, { device = d }):scatter(1, i, tide.ones(n, { device = d }))
        end)
        refused("index 9 is out of range for dim 1 of size 5", function(d)
            local i = tide.ones(n, { dtype = tide.int64, device = d })
            i[n] = 9
            return tide.zeros(5, { device = d }):index_copy(1, i, tide.ones(n, { device = d }))
        end)
    end
end)

t.test("a_refused_write_says_what_became_of_the_rest", function()
    local rest = "; what other indices name has been written"
    for _, n in ipairs { 4, 50, 3000 } do
        for _, write in ipairs {
            function(x, i, v) x:index_add_(1, i, v) end, function(x, i, v) x:index_copy_(1, i, v) end,
            function(x, i, v) x:scatter_(1, i, v) end, function(x, i, v) x:scatter_add_(1, i, v) end,
            function(x, i, v) x[i] = v end,
        } do
            local x, i = tide.zeros(5, { device = "cuda" }), tide.full({ n }, 2, { dtype = tide.int64, device = "cuda" })
            i[3] = 9
            t.error_has(function()
                write(x, i, tide.ones(n, { device = "cuda" }))
                tide.cuda.synchronize()
            end, "index 9 is out of range for dim 1 of size 5" .. rest)
            local left = x:tolist()
            t.is_true(left[2] >= 1, "what the message says")
            t.eq({ left[1], left[3], left[4], left[5] }, { 0, 0, 0, 0 })
        end
    end
    local x, i = tide.zeros(5, { device = "cuda" }), tide.tensor({ 1, 9 }, { device = "cuda" })
    for _, read in ipairs { function() return x[i] end, function() return x:gather(1, i) end } do
        local ok, why = pcall(function() return read():tolist() end)
        t.is_true(not ok and not why:find(rest, 1, true), why)
    end
end)

t.test("the_kernels_ran", function()
    if not both.launches("") then
        return
    end
    both.reset()
    local x = tide.rand(50, { device = "cuda" })
    local i, v = places(300, 50):to("cuda"), tide.rand(300, { device = "cuda" })
    local _ = x:index_add(1, i, v), x:scatter_add(1, i, v), x:scatter(1, i, v), x:gather(1, i)
    t.eq(both.launches("combine_ordered"), 2)
    t.eq(both.launches("put_last"), 1)
    t.eq(both.launches("gather_kernel"), 1)
end)
