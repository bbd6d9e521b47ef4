-- test_norm.lua: normalisations on CUDA, forward and back, compared with the CPU's.
local t = require "harness"
local c = require "compare"

-- The result of fn and the gradients of all tensors, from a gradient that is not the same anywhere.
local function there_and_back(what, fn, ...)
    c.both(what, function(...)
        local leaves = table.pack(...)
        for k = 1, leaves.n do
            leaves[k] = leaves[k]:detach():requires_grad_()
        end
        local y = fn(table.unpack(leaves))
        local g = c.numbers(y.shape, y.dtype):to(y.device)
        y:backward(g * g / 8 - g:sin())
        local results = { y:detach() }
        for k = 1, leaves.n do
            results[#results + 1] = leaves[k].grad
        end
        return table.unpack(results)
    end, ...)
end

c.test("rows", function()
    for _, dtype in ipairs { tide.float32, tide.float64 } do
        for _, n in ipairs { 3, 31, 32, 33, 255, 257, 1025, 3000 } do
            local x, w, b = c.numbers({ 5, n }, dtype), c.numbers({ n }, dtype), c.numbers({ n }, dtype) / 2
            local what = tostring(dtype) .. " of " .. n
            there_and_back(what, function(v, w, b) return tide.layer_norm(v, { n }, w, b) end, x, w, b)
            there_and_back(what .. ", no weights", function(v) return tide.layer_norm(v, { n }) end, x)
            there_and_back(what .. ", not centered", function(v, w) return tide.rms_norm(v, { n }, w, { eps = 1e-5 }) end, x, w)
        end
    end
end)

-- Their gradients are 0, which rounding blurs by as much as 1 / sqrt(eps) enlarges it.
c.test("rows_of_one", function()
    c.both("one", function(v) return tide.layer_norm(v, { 1 }), tide.rms_norm(v, { 1 }) end, c.numbers({ 40, 1 }, tide.float32))
end)

c.test("short_floats_and_layouts", function()
    for _, dtype in ipairs(c.floats) do
        for k, x in ipairs(c.views(7, 40, dtype)) do
            c.both(tostring(dtype) .. " " .. k, function(v) return tide.layer_norm(v, { 40 }) end, x)
        end
    end
end)

c.test("groups", function()
    for _, dtype in ipairs { tide.float32, tide.float64 } do
        for _, side in ipairs { 1, 3, 8 } do
            local x, w, b = c.numbers({ 2, 6, side, side }, dtype), c.numbers({ 6 }, dtype), c.numbers({ 6 }, dtype) / 2
            for _, groups in ipairs { 1, 2, 3 } do
                if side > 1 or groups < 6 then
                    there_and_back(tostring(dtype) .. " " .. side .. " in " .. groups, function(v, w, b)
                        return tide.group_norm(v, groups, w, b)
                    end, x, w, b)
                end
            end
        end
    end
end)

c.test("many_rows", function()
    there_and_back("many short rows", function(v, w) return tide.layer_norm(v, { 3 }, w) end,
        c.numbers({ 9000, 3 }, tide.float32), c.numbers({ 3 }, tide.float32))
end)

c.test("channels", function()
    for _, dtype in ipairs { tide.float32, tide.float64 } do
        for _, shape in ipairs { { 4, 3 }, { 70, 33 }, { 2, 5, 3 }, { 3, 4, 5, 6 }, { 2, 8, 4, 4 }, { 600, 2, 5 } } do
            local n = shape[2]
            local x, w, b = c.numbers(shape, dtype), c.numbers({ n }, dtype), c.numbers({ n }, dtype) / 2
            local what = tostring(dtype) .. " " .. table.concat(shape, "x")
            there_and_back(what, function(v, w, b) return tide.batch_norm(v, nil, nil, w, b, true) end, x, w, b)
            local mean, var = c.numbers({ n }, dtype), c.numbers({ n }, dtype):abs() + 1
            there_and_back(what .. ", as it was", function(v, w, b)
                return tide.batch_norm(v, mean:to(v.device), var:to(v.device), w, b)
            end, x, w, b)
            if #shape == 4 then
                local last = x:permute(1, 3, 4, 2):contiguous():permute(1, 4, 2, 3)
                there_and_back(what .. ", channels last", function(v, w, b)
                    return tide.batch_norm(v, nil, nil, w, b, true)
                end, last, w, b)
            end
        end
    end
    for _, dtype in ipairs { tide.float16, tide.bfloat16 } do
        c.both(tostring(dtype), function(v) return tide.batch_norm(v, nil, nil, nil, nil, true) end,
            c.numbers({ 4, 8, 6 }, dtype))
    end
end)

c.test("offsets_that_dwarf_the_spread", function()
    local x = tide.arange(4096, { dtype = tide.float64 }) % 5 * 0.25 + 1e6
    for _, dtype in ipairs { tide.float32, tide.float64 } do
        local y = tide.layer_norm(x:to(dtype):to("cuda"), { 4096 }):cpu():double()
        local exact = tide.layer_norm(x, { 4096 })
        t.eq(tide.allclose(y, exact, { rtol = 0, atol = 2e-6 }), true, tostring(dtype))
    end
end)
