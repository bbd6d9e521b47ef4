-- test_scripted_convolutions.lua: what stands before and behind a convolution of a graph as steps of it: the bits of the calls as
-- they were written, but for images that were padded before, whose sums may come in another order.
local t = require "harness"
local F = tide.nn.functional

-- Channels, those of the result, kernel, groups, size of images, padding, stride, images (2).
local cases = {
    { 32, 64, 1, 1, 14, 0, 1 }, { 32, 96, 1, 1, 7, 0, 1 }, { 600, 70, 1, 1, 12, 0, 1 }, { 8, 8, 3, 8, 9, 1, 1 }, { 40, 40, 5, 40, 7, 2, 1 },
    { 40, 40, 3, 40, 15, 0, 2 }, { 72, 72, 7, 72, 9, 3, 1 }, { 40, 70, 3, 1, 8, 1, 1, 1 }, { 80, 33, 3, 1, 9, 1, 2, 1 }, { 16, 24, 3, 1, 12, 1, 2 }, { 3, 1, 3, 1, 20, 1, 1 }, { 32, 32, 3, 4, 10, 1, 1 },
}

-- Of the convolution y, a tensor r like it.
local behind = {
    relu = function(y) return F.relu(y) end,
    relu6 = function(y) return F.relu6(y) end,
    hardswish = function(y) return F.hardswish(y) end,
    clamped = function(y) return y:clamp(-0.5, 0.25) end,
    at_least = function(y) return y:clamp(-0.5) end,
    at_most = function(y) return y:clamp_max(0.5) end,
    hardtanh = function(y) return F.hardtanh(y, -2, 1.5) end,
    added = function(y, r) return y + r end,
    added_and_clamped = function(y, r) return F.relu(r + y) end,
    added_twice = function(y, r) return y + r + y end,
    in_place = function(y) return y:relu_() end,
    scaled = function(y, r) return y:add(r, { alpha = 2 }) end,
}

-- What the passes of f did with these inputs: {[name] = rewrites}.
local function passes_of(f, ...)
    local found = {}
    for _, step in ipairs(f:passes(...)) do
        found[step.pass] = (found[step.pass] or 0) + step.changes
    end
    return found
end

t.test("what_a_graph_gives_takes_no_larger_memory_than_it_needs", function()
    local _ <close> = tide.no_grad()
    local weight = tide.randn(8, 8, 3, 3)
    local x = tide.randn(1, 8, 128, 128)
    local f = tide.jit.trace(function(y) -- whose first result goes before its last is made
        y = F.conv2d(F.conv2d(y, weight), weight)
        return F.conv2d(y, weight, nil, { stride = { 1, 2 } }):view(8, -1)
    end, { x }, { check = false })
    for _ = 1, 4 do f(x) end
    collectgarbage()
    local before = tide.memory_stats().allocated
    local kept = f(x)
    collectgarbage()
    local needed = kept:numel() * 4
    local taken = tide.memory_stats().allocated - before
    t.is_true(taken >= needed and taken <= needed * 1.25 + 64, taken .. " of " .. needed)
end)

for k, case in ipairs(cases) do
    for _, last in ipairs { false, true } do
        t.test(("case_%d%s_has_the_bits_of_its_calls"):format(k, last and "_channels_last" or ""), function()
            local _ <close> = tide.no_grad()
            tide.manual_seed(k)
            local c, o, kernel, groups, size, padding, stride, images = table.unpack(case)
            local x, weight, bias = tide.randn(images or 2, c, size, size), tide.randn(o, c // groups, kernel, kernel), tide.randn(o)
            x[{ 1, 1, 2, 2 }] = 0 / 0
            x = last and x:contiguous { memory_format = "channels_last" } or x
            for _, b in ipairs { false, bias } do
                local function convolve(y) return F.conv2d(y, weight, b or nil, { stride = stride, padding = padding, groups = groups }) end
                local r = tide.randn_like(convolve(x))
                for name, fn in pairs(behind) do
                    local f = tide.jit.trace(function(y, added) return fn(convolve(y), added) end, { x, r }, { check = false })
                    local want = fn(convolve(x), r)
                    for _ = 1, 3 do
                        local got = f(x, r)
                        t.is_true(tide.allclose(got, want, { rtol = 0, atol = 0, equal_nan = true }), name)
                        t.eq(table.concat(got:stride(), " "), table.concat(want:stride(), " "), name)
                    end
                end
            end
        end)
    end
end

t.test("what_was_padded_before_is_padded_by_the_convolution", function()
    local _ <close> = tide.no_grad()
    tide.manual_seed(3)
    for _, case in ipairs(cases) do
        local c, o, kernel, groups, size, padding, stride = table.unpack(case)
        local x, weight = tide.randn(2, c, size, size), tide.randn(o, c // groups, kernel, kernel)
        local function fn(y, w) return F.relu(F.conv2d(F.pad(y, { 0, 1, 2, 1 }), w, nil, { stride = stride, padding = padding, groups = groups })) end
        local f, want = tide.jit.trace(function(y) return fn(y, weight) end, { x }, { check = false }), fn(x:double(), weight:double())
        for _ = 1, 3 do
            t.is_true((f(x):double() - want):abs():max():item() < 1e-3)
        end
        t.is_true(passes_of(f, x).epilogue == 1)
    end
end)

t.test("what_a_convolution_can_not_do_is_left", function()
    local _ <close> = tide.no_grad()
    local x, w = tide.randn(1, 4, 8, 8), tide.randn(4, 4, 3, 3)
    local left = {
        function(y) return F.conv2d(F.pad(y, { 1, 1, 1, 1 }, { mode = "reflect" }), w) end,
        function(y) return F.conv2d(F.pad(y, { 1, 1, 1, 1 }, { value = 1 }), w) end,
        function(y) return F.conv2d(F.pad(y, { -1, 1, 1, 1 }), w) end,
        function(y) return F.conv2d(y, w) + tide.ones(6) end, -- broadcast
        function(y)
            local z = F.conv2d(y, w)
            return z, F.relu(z)
        end,
        function(y) return F.relu(F.conv2d(y:double(), w:double())) end,
    }
    for k, fn in ipairs(left) do
        local f = tide.jit.trace(fn, { x }, { check = false })
        t.eq(passes_of(f, x).epilogue, nil, "case " .. k)
        t.is_true(tide.equal((f(x)), (fn(x))), "case " .. k)
    end
end)

t.test("a_recorded_call_has_its_gradient", function()
    local x, w = tide.randn(1, 4, 8, 8, { requires_grad = true }), tide.randn(4, 4, 3, 3)
    local f = tide.jit.trace(function(y) return F.relu6(F.conv2d(y, w)):sum() end, { x }, { check = false })
    f(x):backward()
    local got = x.grad
    x.grad = nil
    F.relu6(F.conv2d(x, w)):sum():backward()
    t.is_true(tide.equal(got, x.grad))
end)
