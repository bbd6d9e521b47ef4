-- test_nn_prune.lua: parameters of which a part is held at zero: the masks are PyTorch's, prunings add up, and what was
-- pruned trains, is saved, copied and ends.
local t = require "harness"
local nn = tide.nn
local prune = nn.utils.prune

local W = { { 0.1, -0.9, 0.35, 0.6 }, { -0.2, 0.8, 0.15, -0.55 }, { 0.5, 0.05, -0.7, 0.3 } }

local function layer()
    local m = nn.Linear(4, 3)
    m.weight.data:copy_(tide.tensor(W))
    m.bias.data:copy_(tide.tensor { 0.1, -0.2, 0.3 })
    return m
end

local function mask(m, name) return m[(name or "weight") .. "_mask"]:int():tolist() end

t.test("prunings_of_one_tensor_add_up_as_in_pytorch", function()
    local m = layer()
    t.is_true(rawequal(prune.l1_unstructured(m, "weight", 0.25), m))
    t.eq(mask(m), { { 0, 1, 1, 1 }, { 1, 1, 0, 1 }, { 1, 0, 1, 1 } })
    prune.l1_unstructured(m, { name = "weight", amount = 2 }) -- of those left
    t.eq(mask(m), { { 0, 1, 1, 1 }, { 0, 1, 0, 1 }, { 1, 0, 1, 0 } })
    prune.ln_structured(m, "weight", { amount = 1, n = 2, dim = 1 })
    t.eq(mask(m), { { 0, 1, 1, 1 }, { 0, 1, 0, 1 }, { 0, 0, 0, 0 } })
    prune.ln_structured(m, "weight", { amount = 0.3, n = math.huge, dim = 2 })
    t.eq(mask(m), { { 0, 1, 0, 1 }, { 0, 1, 0, 1 }, { 0, 0, 0, 0 } })
    t.is_true(tide.equal(m.weight, tide.tensor(W) * m.weight_mask))
end)

t.test("slices_of_convolutions_and_scores_of_ones_own", function()
    local c = nn.Conv2d(2, 3, 2)
    c.weight.data:copy_((tide.arange(24) - 11.0):reshape(3, 2, 2, 2))
    prune.ln_structured(c, "weight", 0.5, 1, 2)
    prune.ln_structured(c, "weight", 1, "fro", 1)
    t.eq(c.weight_mask:sum { 3, 4 }:tolist(), { { 0, 4 }, { 0, 0 }, { 0, 4 } })
    local m = layer()
    prune.l1_unstructured(m, "weight", 6, { importance_scores = -tide.tensor(W) })
    t.eq(mask(m), { { 0, 1, 0, 1 }, { 0, 1, 0, 1 }, { 1, 0, 1, 0 } })
end)

t.test("parameters_are_pruned_as_one_vector", function()
    local a, b = layer(), layer()
    prune.global_unstructured({ { a, "weight" }, { b, "bias" } }, { pruning_method = prune.L1Unstructured, amount = 0.3 })
    t.eq(a.weight_mask:sum():item() + b.bias_mask:sum():item(), 11)
    t.eq(mask(a)[3], { 1, 0, 1, 1 })
    t.eq(mask(b, "bias")[3], 1)
end)

t.test("by_chance_so_many_go", function()
    local m = layer()
    prune.random_unstructured(m, "weight", 0.5)
    t.eq(m.weight_mask:sum():item(), 6)
    prune.random_unstructured(m, "weight", 0.5)
    t.eq(m.weight_mask:sum():item(), 3)
    m = layer()
    prune.random_structured(m, "weight", { amount = 2, dim = 2 })
    t.eq(m.weight_mask:sum(1):gt(0):sum():item(), 2)
    t.eq(m.weight_mask:sum():item(), 6)
    prune.identity(m, "bias")
    t.eq(mask(m, "bias"), { 1, 1, 1 })
end)

t.test("what_is_pruned_trains_is_saved_and_ends", function()
    local m = layer()
    local weight, x = m.weight, tide.randn(5, 4)
    t.is_false(prune.is_pruned(m))
    prune.custom_from_mask(m, "weight", tide.tensor { { 1, 0, 1, 0 }, { 1, 1, 1, 1 }, { 0, 0, 0, 0 } })
    t.is_true(prune.is_pruned(nn.Sequential(m)))
    local parameters, buffers = {}, {}
    for name in m:named_parameters() do
        parameters[#parameters + 1] = name
    end
    for name in m:named_buffers() do
        buffers[#buffers + 1] = name
    end
    t.eq({ parameters, buffers }, { { "bias", "weight_orig" }, { "weight_mask" } })
    t.is_true(rawequal(m.weight_orig, weight)) -- an optimizer goes on with it
    local opt = tide.optim.SGD(m:parameters(), { lr = 0.1 })
    m(x):pow(2):sum():backward()
    t.eq(weight.grad[3]:tolist(), { 0, 0, 0, 0 })
    opt:step()
    t.is_true(tide.equal(m(x), tide.linear(x, weight * m.weight_mask, m.bias)))
    local other = layer()
    prune.identity(other, "weight")
    other:load_state_dict(m:state_dict())
    t.is_true(tide.equal(other(x), m(x)))
    local copy = m:clone()
    t.is_true(prune.is_pruned(copy))
    t.is_true(tide.equal(copy(x), m(x)))
    local y = m(x):detach()
    prune.remove(m, "weight")
    t.is_true(rawequal(m.weight, weight) and not prune.is_pruned(m))
    t.is_true(tide.equal(m(x), y))
    t.eq(m:state_dict().weight_mask, nil)
end)

t.test("methods_of_ones_own", function()
    local EveryOther = prune.BasePruningMethod("EveryOther", { PRUNING_TYPE = "unstructured", compute_mask = function(_, _, default_mask)
        local left = default_mask:clone()
        left:view(-1)["1::2"] = 0
        return left
    end })
    local m = layer()
    EveryOther.apply(m, "weight")
    t.eq(mask(m)[1], { 0, 1, 0, 1 })
    EveryOther.apply(m, "weight") -- of those left
    t.eq(mask(m)[1], { 0, 0, 0, 1 })
    t.error_has(function() prune.BasePruningMethod("X", { compute_mask = print }) end, "PRUNING_TYPE")
end)

t.test("bad_prunings_are_refused_and_change_nothing", function()
    local m = layer()
    t.error_has(function() prune.l1_unstructured(m, "weigth", 0.2) end, "no parameter 'weigth'")
    t.error_has(function() prune.l1_unstructured(m, "weight", 1.5) end, "amount")
    t.error_has(function() prune.l1_unstructured(m, "weight", 13) end, "13 of 12")
    t.error_has(function() prune.ln_structured(m, "bias", 1, 2, 1) end, "two dims")
    t.error_has(function() prune.ln_structured(m, "weight", 1, 2, 3) end, "dim 3")
    t.error_has(function() prune.custom_from_mask(m, "weight", tide.ones(3)) end, "shape")
    t.error_has(function() prune.remove(m, "weight") end, "not pruned")
    t.error_has(function() prune.global_unstructured({ { m, "weight" } }, prune.LnStructured, { amount = 1 }) end, "unstructured")
    t.is_true(not prune.is_pruned(m) and m.weight.is_leaf)
end)
