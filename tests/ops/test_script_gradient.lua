-- test_script_gradient.lua: every differentiable operator of the table within a traced function: its gradient
-- as a graph has the bits of eager mode's, and so has the second one.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local walk = dofile(here .. "/walk.lua")

-- Recorded call by call, since elements choose what runs, or what is made ("some": for some arguments).
local BY_CALLS = {
    masked_select = "all", masked_scatter = "all", sparse_coo_tensor = "all", combinations = "all",
    to_sparse = "all", sparse_mask = "all", matrix_exp = "some", linalg_matrix_exp = "some",
    index_put = "some", embedding_bag = "some", repeat_interleave = "some",
}

-- Gradients of the sum of all outputs times fixed numbers; and whether one node stands for the whole call.
local function gradients(fn, inputs, again)
    tide.manual_seed(1) -- as walk.as_function does
    local total, name = 0, nil
    for k, y in ipairs { fn(table.unpack(inputs)) } do
        if tide.is_tensor(y) and y.requires_grad then
            name = name or y.grad_fn and y.grad_fn:name()
            total = total + (y * tide.linspace(0.5, 1 + k, math.max(y:numel(), 1), { dtype = tide.float64 })
                :narrow(1, 1, y:numel()):reshape(y.shape)):sum()
        end
    end
    if total == 0 then
        return nil
    end
    local first = tide.autograd.grad(total, inputs, { allow_unused = true, create_graph = again })
    if type(first) ~= "table" then
        first = { first }
    end
    if not again then
        return first, name
    end
    local sum = 0
    for k = 1, #inputs do
        local g = first[k]
        if g and g.requires_grad then
            sum = sum + (g * g):sum()
        end
    end
    if sum == 0 then
        return {}, name
    end
    local second = tide.autograd.grad(sum, inputs, { allow_unused = true })
    return type(second) == "table" and second or { second }, name
end

local function same(a, b, exact)
    if not a or not b then
        return not a == not b
    end
    if exact then
        return tide.equal(a:isnan(), b:isnan()) and tide.equal(a:nan_to_num(), b:nan_to_num())
    end
    return tide.allclose(a, b, { rtol = 1e-9, atol = 1e-11, equal_nan = true })
end

local function check(op, sample, k)
    local args = walk.arguments(sample, tide.float64, true)
    local inputs, places = walk.differentiable_inputs(args)
    local fn = walk.as_function(op, args, places)
    if #inputs == 0 or not gradients(fn, inputs) then
        return
    end
    local ok, f = pcall(tide.jit.trace, fn, inputs, { check = false })
    if not ok then
        return
    end
    local want = gradients(fn, inputs)
    local _, eager = gradients(fn, inputs)
    local got, name = gradients(f, inputs)
    local as_graph = name == "ScriptFunctionBackward"
    if eager and BY_CALLS[op.name] ~= "some" then -- without a grad_fn the result is an input
        t.eq(as_graph, not BY_CALLS[op.name], op.name .. ", sample " .. k)
    end
    for j = 1, #inputs do
        t.is_true(same(want[j], got[j], true), string.format("%s, sample %d: gradient of input %d", op.name, k, j))
    end
    local deeper, wanted = pcall(gradients, fn, inputs, true)
    if deeper then
        got = gradients(f, inputs, true)
        for j = 1, #inputs do
            t.is_true(same(wanted[j], got[j]), string.format("%s, sample %d: second gradient of input %d", op.name, k, j))
        end
    end
end

for _, op in ipairs(walk.ops) do
    local samples = walk.samples[op.name]
    if samples and op.differentiable and op.name ~= "normal" and not op.internal then
        t.test(op.name .. "_in_a_graph", function()
            for k, sample in ipairs(samples) do
                check(op, sample, k)
            end
        end)
    end
end
