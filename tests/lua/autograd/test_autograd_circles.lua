-- test_autograd_circles.lua: circles of what only its own gradient, or a hook of its own, holds are collected in time, and what
-- is held besides them stays. In a state of their own: what a script held at most before, it may hold again until a backward
-- pass has ended.
local t = require "harness"

local CIRCLE = 1 << 18 -- elements: a megabyte

local circles = {
    gradient_of_itself = function()
        local x = tide.ones(CIRCLE, { requires_grad = true })
        x.grad = x * 2
    end,
    its_own_gradient = function()
        local x = tide.ones(CIRCLE)
        x.grad = x
    end,
    gradient_that_is_a_view = function()
        local x = tide.ones(CIRCLE)
        x.grad = x:view(2, -1):view(-1)
    end,
    create_graph = function()
        local x = tide.ones(CIRCLE, { requires_grad = true })
        local y = (x * x * x):sum()
        y:backward(nil, { create_graph = true })
    end,
    one_another = function()
        local a, b = tide.ones(CIRCLE, { requires_grad = true }), tide.ones(CIRCLE, { requires_grad = true })
        a.grad, b.grad = b * 2, a * 2
    end,
    retained = function()
        local y = tide.ones(CIRCLE, { requires_grad = true }) * 2
        y:retain_grad()
        local z = (y * y):sum()
        z:backward(nil, { create_graph = true })
    end,
    write_through_a_view = function()
        local x = tide.ones(CIRCLE, { requires_grad = true })
        local y = x * 1
        y["1:10"] = y["11:20"] * y["21:30"]
        x.grad = y
    end,
    hook_of_a_leaf = function()
        local x = tide.ones(CIRCLE, { requires_grad = true })
        x:register_hook(function() return x end)
    end,
    hook_of_a_result = function()
        local y = tide.ones(CIRCLE, { requires_grad = true }) * 2
        local kept = { { y } }
        y:register_hook(function() return kept[1][1] end)
        y:sum():backward()
    end,
    hooks_of_one_another = function()
        local a, b = tide.ones(CIRCLE, { requires_grad = true }), tide.ones(CIRCLE, { requires_grad = true })
        a:register_hook(function() return b end)
        b:register_post_accumulate_grad_hook(function() return a end)
    end,
    hook_of_a_node = function()
        local y = tide.ones(CIRCLE, { requires_grad = true }) * 2
        y.grad_fn:register_hook(function() return y end)
    end,
    context_of_a_function = function()
        local F = tide.autograd.Function { forward = function(ctx, x)
            ctx.output = x * 2
            return ctx.output
        end }
        F(tide.ones(CIRCLE, { requires_grad = true }))
    end,
    saved_by_a_keeper = function()
        local y
        y = tide.autograd.graph.saved_tensors_hooks(function(x) return { x, function() return y end } end,
            function(packed) return packed[1] end, function() return tide.ones(CIRCLE, { requires_grad = true }):exp() end)
    end,
    in_place = function()
        local x = tide.ones(CIRCLE, { requires_grad = true })
        local y = x * 1
        y:mul_(y)
        y:sin_()
        y:pow_(2)
        y["1:10"]:exp_()
    end,
}
for name, make in pairs(circles) do
    t.test("a_circle_is_collected_" .. name, function()
        collectgarbage()
        tide.reset_peak_memory_stats()
        local before = tide.memory_allocated()
        for _ = 1, 300 do
            make()
        end
        local grown = tide.memory_stats().peak - before
        t.is_true(grown < 150 << 20, ("%s: %d MB of 300 circles at once"):format(name, grown >> 20))
    end)
end

t.test("a_circle_that_is_held_stays", function()
    local x = tide.full({ 3 }, 2.0, { requires_grad = true })
    x.grad = x ^ 3
    local behind -- holds a leaf with a gradient of its own by its history alone
    do
        local z = tide.full({ 3 }, 3.0, { requires_grad = true })
        z.grad = z * 5
        behind = z * z.grad
    end
    for name, make in pairs(circles) do
        for _ = 1, 60 do
            make()
        end
        t.eq(x.grad:tolist(), { 8, 8, 8 }, name)
    end
    t.eq(tide.autograd.grad(x.grad:sum(), x)[1]:tolist(), { 12, 12, 12 })
    t.eq(behind:tolist(), { 45, 45, 45 })
    behind:sum():backward()
    x.grad = nil
    local y = (x * x):sum()
    y:backward()
    t.eq(x.grad:tolist(), { 4, 4, 4 })
end)

-- What only hooks lead to, and what hooks and others lead to, while circles are looked for.
t.test("what_is_held_besides_a_circle_keeps_its_hooks", function()
    local calls, others = 0, {}
    local function make()
        local w = tide.ones(3, { requires_grad = true })
        local y = w * 2
        others[1] = w -- by the hook, and by us
        y:register_hook(function(g)
            calls = calls + 1
            return g * w * y -- by the hook alone
        end)
        return y * 1 -- y lives by its node alone
    end
    local z = make()
    for _, name in ipairs { "hook_of_a_leaf", "hook_of_a_result", "context_of_a_function" } do
        for _ = 1, 60 do
            circles[name]()
        end
    end
    z:sum():backward()
    t.eq(calls, 1)
    t.eq(others[1].grad:tolist(), { 4, 4, 4 })
end)
