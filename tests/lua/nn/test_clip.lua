-- test_clip.lua: tide.nn.utils: norms of all gradients and gradients kept within bounds.
local t = require "harness"
local utils = tide.nn.utils

local function parameters()
    local list = {}
    for k, values in ipairs { { 3, -4 }, { 12 }, { 0, 0, 84 } } do
        list[k] = tide.zeros(#values, { requires_grad = true })
        list[k].grad = tide.tensor(values):float()
    end
    list[4] = tide.zeros(2, { requires_grad = true }) -- without a gradient
    return list
end

t.test("the_total_norm_is_that_of_one_vector", function()
    local grads = { tide.tensor { 3., -4. }, tide.tensor({ 12. }, { dtype = tide.float64 }), tide.tensor { 0., 84. } }
    t.close(utils.get_total_norm(grads):item(), 85, 1e-5)
    t.close(utils.get_total_norm(grads, 1):item(), 103, 1e-5)
    t.close(utils.get_total_norm(grads, math.huge):item(), 84, 1e-5)
    t.close(utils.get_total_norm(grads[1], 3):item(), 91 ^ (1 / 3), 1e-5)
    t.eq(utils.get_total_norm({}):item(), 0)
end)

t.test("gradients_are_scaled_down_to_the_norm_and_not_up", function()
    local params = parameters()
    t.close(utils.clip_grad_norm_(params, 8.5):item(), 85, 1e-5)
    t.close(params[1].grad[2]:item(), -0.4, 1e-6)
    t.close(params[3].grad[3]:item(), 8.4, 1e-5)
    t.close(utils.clip_grad_norm_(params, 100):item(), 8.5, 1e-5)
    t.close(params[3].grad[3]:item(), 8.4, 1e-5)
    t.close(utils.clip_grad_norm_(params[2], 0.6, 1):item(), 1.2, 1e-6)
    t.close(params[2].grad:item(), 0.6, 1e-6)
    utils.clip_grads_with_norm_(params, 1, tide.tensor(10.0))
    t.close(params[2].grad:item(), 0.06, 1e-6)
    t.eq(utils.clip_grad_norm_({ params[4] }, 1):item(), 0)
end)

t.test("a_norm_that_is_no_number_is_refused_where_asked_and_nothing_is_written", function()
    local params = parameters()
    params[2].grad:fill_(0 / 0)
    t.error_has(function() utils.clip_grad_norm_(params, 1, { error_if_nonfinite = true }) end,
        "clip_grad_norm_: the total norm of order 2 is")
    t.eq(params[1].grad[1]:item(), 3)
    utils.clip_grad_norm_(params, 1)
    t.is_true(tide.isnan(params[1].grad[1]):item())
    t.error_has(function() utils.get_total_norm({ tide.tensor { math.huge } }, { error_if_nonfinite = true }) end, "inf")
end)

t.test("gradients_are_kept_between_two_values", function()
    local params = parameters()
    utils.clip_grad_value_(params, 3.5)
    t.eq(params[1].grad[1]:item(), 3)
    t.eq(params[1].grad[2]:item(), -3.5)
    t.eq(params[3].grad[3]:item(), 3.5)
    t.error_has(function() utils.clip_grad_value_(params) end, "clip_value")
end)

t.test("gradients_without_elements_count_nothing", function()
    for _, p in ipairs { math.huge, 2, 1, -math.huge } do
        local a, b = tide.zeros(2, { requires_grad = true }), tide.zeros(0, { requires_grad = true })
        a.grad, b.grad = tide.tensor { 3.0, -4.0 }, tide.zeros(0)
        local want = tide.linalg.vector_norm(a.grad, p):item()
        t.eq(utils.clip_grad_norm_({ b, a }, 100, p):item(), want)
        t.eq(utils.get_total_norm({ b, a.grad }, p):item(), want)
        a.grad = nil
        t.eq(utils.clip_grad_norm_({ b, a }, 100, p):item(), 0.0)
    end
end)
