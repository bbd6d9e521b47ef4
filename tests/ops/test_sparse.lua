-- test_sparse.lua: every operator with a sparse tensor in each place where its samples have a strided one, and
-- with a sparse gradient coming in: it gives what it gives for the dense one, or refuses in one line that says so
-- and leaves the operands as they were. Nothing reads memory that a sparse tensor does not have.
local t = require "harness"
local here = debug.getinfo(1, "S").source:match("^@(.*)/") or "."
local walk = dofile(here .. "/walk.lua")

-- Their results are elements or places that a sparse tensor has in another way.
local of_parts = {
    values = true, indices = true, _values = true, _indices = true, _nnz = true, is_coalesced = true, sparse_dim = true,
    dense_dim = true, coalesce = true, sparse_coo_tensor = true,
}

local function refused(message, name)
    t.is_true(type(message) == "string" and not message:find("\n"), name .. ": one line: " .. tostring(message))
    t.is_true(message:find("sparse", 1, true), name .. ": " .. message)
end

local function places_of(args)
    local places = {}
    for k = 1, args.n or #args do
        if tide.is_tensor(args[k]) and args[k].layout == "strided" then
            places[#places + 1] = k
        end
    end
    return places
end

local function same(got, want, name)
    for k, y in ipairs(want) do
        if tide.is_tensor(y) and y.is_sparse then
            want[k] = y:to_dense()
        end
    end
    walk.check_same(got, want, 1e-9, name)
end

local function check_operand(op, sample, k)
    local name = ("%s with a sparse argument %d"):format(op.name, k)
    local args = walk.arguments(sample, tide.float64)
    local sparse = args[k]:to_sparse()
    local before = tostring(sparse)
    args[k] = sparse
    local ok, got = pcall(function() return walk.flatten(walk.call(op, args)) end)
    if not ok then
        refused(got, name)
        t.eq(tostring(sparse), before, name .. ": left alone")
        return
    end
    if not (op.random or op.name:find("empty")) then
        same(got, walk.run(op, sample, tide.float64), name)
    end
end

local function gradients(op, sample, wrap)
    local args = walk.arguments(sample, tide.float64, true)
    local inputs, places = walk.differentiable_inputs(args)
    local list = { n = args.n or #args, table.unpack(args, 1, args.n or #args) }
    if op.inplace_only then
        list[1] = list[1] * 1
    end
    local outputs, seeds = {}, {}
    for _, y in ipairs(walk.flatten(walk.call(op, list))) do
        if tide.is_tensor(y) and y.requires_grad and not y.is_sparse then
            outputs[#outputs + 1] = y
            seeds[#seeds + 1] = wrap(tide.arange(y:numel(), { dtype = y.dtype }):cos():reshape(y.shape))
        end
    end
    if #inputs == 0 or #outputs == 0 or #places == 0 then
        return {}
    end
    local got = tide.autograd.grad(outputs, inputs, { grad_outputs = seeds, allow_unused = true })
    for n = 1, #inputs do
        got[n] = (got[n] or tide.zeros_like(inputs[n])):to_dense()
    end
    return got
end

local function check_gradient(op, sample)
    local name = op.name .. " with a sparse gradient"
    local ok, got = pcall(gradients, op, sample, function(g) return g:to_sparse() end)
    if ok and not op.random then
        same(got, gradients(op, sample, function(g) return g end), name)
    elseif not ok then
        refused(got, name)
    end
end

for _, op in ipairs(walk.ops) do
    for number, sample in ipairs(not op.internal and not of_parts[op.name] and walk.samples[op.name] or {}) do
        local places = places_of(walk.arguments(sample, tide.float64))
        for _, k in ipairs(places) do
            t.test(("%s_%d_takes_or_refuses_a_sparse_argument_%d"):format(op.name, number, k),
                function() check_operand(op, sample, k) end)
        end
        if op.differentiable then
            t.test(("%s_%d_takes_or_refuses_a_sparse_gradient"):format(op.name, number),
                function() check_gradient(op, sample) end)
        end
    end
end
